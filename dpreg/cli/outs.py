"""Files for results: never one that the command reads or keeps its account in."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from dpreg.errors import ArgumentError
from dpreg.paths import identity
from dpreg.sources.files import check_not_data, files_of

__all__ = ["check_outs", "ledger_files", "table_files"]

Named = tuple[str, str]
"""What a file is to a command, and its path."""

_BESIDE = ("", "-wal", "-shm")  # what a ledger's file comes with


def check_outs(outs: Iterable[str], used: Iterable[Named]) -> None:
    """Refuse files for results that would replace each other or what is used, or join a table.

    Links are followed, since writing follows them: two names may be one file.

    Parameters
    ----------
    outs : iterable of str
    used : iterable of (str, str)

    Raises
    ------
    ArgumentError
    """
    taken = {_identity(path): what for what, path in used}
    for out in outs:
        here = _identity(out)
        if here in taken:
            raise ArgumentError(
                f"out {os.path.basename(out)!r} is also {taken[here]}, and would replace it: name "
                "another file"
            )
        check_not_data(out)
        taken[here] = "the out of another call"


def ledger_files(place: str | None, witness: str | None = None) -> Iterator[Named]:
    """Name a ledger's file, its witness's, and those that the database keeps beside them."""
    for name, one in (("ledger", place), ("witness", witness)):
        if one is not None and "://" not in one:
            for ending in _BESIDE:
                what = f"a file of the {name}'s" if ending else f"the {name}"
                yield what, os.path.realpath(one) + ending


def table_files(arguments: dict[str, Any]) -> Iterator[Named]:
    """Name the files that a call reads: the table's, and the schema's."""
    for path in files_of(arguments["data"]):
        yield "a file of the table", path
    if isinstance(arguments.get("schema"), str):
        yield "the schema", arguments["schema"]


def _identity(path: str) -> object:
    """Tell files apart: by the system's number where there is one, for names may differ in case."""
    place = os.path.realpath(path)
    try:
        return identity(os.stat(place))
    except OSError:
        return os.path.normcase(place)
