"""What tells that a file is still the one that was opened, whatever its rows.

Passes over one table must be over the same rows: halves of the rows are told apart by their places.

Tested in `tests/sources/test_files.py`.
"""

from __future__ import annotations

import os
import stat
from typing import TypeAlias

from dpreg.errors import DataError

__all__ = ["Stamp", "check_same", "stamp"]

Stamp: TypeAlias = tuple[int, int, int] | None
"""A file's number, its size and the time of its last change; None where these cannot be told."""


def stamp(path: str) -> Stamp:
    """Return the stamp of a file as it is now."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def check_same(path: str, first: Stamp) -> None:
    """Refuse a file that was written anew.

    Parameters
    ----------
    path : str
    first : Stamp
        Of the file when it was opened.

    Raises
    ------
    DataError
        Where it has another stamp now. One that cannot be looked at is left to who reads it.
    """
    if stamp(path) not in (None, first):
        raise DataError(f"{path} has been written anew since it was opened")
