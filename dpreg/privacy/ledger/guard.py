"""What keeps threads of one process apart. Tested in `tests/privacy/ledger/test_handle.py`."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dpreg.errors import LedgerError
from dpreg.paths import reason

__all__ = ["Guard", "take_flock"]


class Guard:
    """The lock that the threads of a process share; a fork starts with a lock of its own."""

    def __init__(self) -> None:
        self._lock, self._owner = threading.RLock(), os.getpid()

    def lock(self) -> threading.RLock:
        """Return this process's lock."""
        if os.getpid() != self._owner:
            self._lock, self._owner = threading.RLock(), os.getpid()
        return self._lock

    @contextmanager
    def held(self, deadline: float) -> Iterator[None]:
        """Keep other threads out, or raise LedgerError once the deadline has passed."""
        lock = self.lock()
        if not lock.acquire(timeout=max(deadline - time.monotonic(), 0)):
            raise LedgerError("another thread has held the ledger too long; nothing was charged")
        try:
            yield
        finally:
            lock.release()


def take_flock(file: int, deadline: float, message: str) -> None:
    """Wait for the one lock of an open file or folder; LedgerError(message) past the deadline."""
    if sys.platform == "win32":
        return
    import fcntl

    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise LedgerError(message) from None
            time.sleep(0.01)
        except OSError as fault:
            raise LedgerError(
                f"the file system here does not lock files: {reason(fault)}"
            ) from None
