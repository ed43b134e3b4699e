"""Whether a file is still the one that was opened, told without a look at its rows.

All passes over a table must read the same rows: halves of them are told apart by their places.

Tested in `tests/sources/test_files.py`.
"""

from __future__ import annotations

import os
import stat
from typing import TypeAlias

from dpreg.errors import DataError
from dpreg.paths import identity

__all__ = ["Stamp", "check_same", "stamp"]

Stamp: TypeAlias = tuple[int, int, int, int] | None
"""A file's identity, its size and the time of its last change; None where these are not known."""


def stamp(path: str) -> Stamp:
    """Return the stamp of a file as it is now."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return *identity(status), status.st_size, status.st_mtime_ns


def check_same(path: str, first: Stamp) -> None:
    """Refuse a file that was written anew.

    Parameters
    ----------
    path : str
    first : Stamp
        The file's stamp when it was opened.

    Raises
    ------
    DataError
        If its stamp has changed. A file that cannot be looked at is left to whoever reads it.
    """
    if stamp(path) not in (None, first):
        raise DataError(f"{path} has changed since it was opened")
