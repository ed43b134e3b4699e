"""Locks on single bytes of a file, which Linux gives to an open file rather than to a process.

They need not lie within the file, and end with whoever held them, however that ends.

Tested in `tests/privacy/ledger/test_together.py` and `tests/privacy/ledger/test_garbled.py`.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Final

__all__ = ["first_held", "is_free", "try_lock", "unlock"]

if sys.platform == "linux":
    import fcntl
    import struct

    _LOCK: Final = struct.Struct("@hhqqi4x")

    def try_lock(file: int, byte: int) -> bool:
        """Lock a byte for this open file alone; False where another holds it.

        OSError where the file system has no such locks.
        """
        try:
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0))
        except BlockingIOError:
            return False
        return True

    def unlock(file: int, byte: int) -> None:
        """Let go of a byte, if this open file holds it."""
        with suppress(OSError):
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, byte, 1, 0))

    def is_free(file: int, byte: int, length: int = 1) -> bool:
        """Tell whether nobody else holds one of these bytes."""
        return _held(file, byte, length) is None

    def first_held(file: int, byte: int, length: int) -> int | None:
        """Return the first of these bytes that somebody else holds."""
        first, found = None, _held(file, byte, length)
        while found is not None:
            first = found
            found = _held(file, byte, first - byte) if first > byte else None
        return first

    def _held(file: int, byte: int, length: int) -> int | None:
        """Return one of these bytes that somebody else holds."""
        order = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, length, 0)
        try:
            answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, order)
        except OSError:
            return None  # as where there is no queue
        kind, _, found, _, _ = _LOCK.unpack(answer)
        return None if kind == fcntl.F_UNLCK else max(int(found), byte)
