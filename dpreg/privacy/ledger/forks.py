"""What a fork must not take along: open connections to ledgers.

SQLite keeps in a process's memory what that process has locked. A fork has a copy of this memory
and none of the locks: whatever it opened of the same file would go in unlocked, and could pass a
cap or lose a charge. So connections are closed before a fork, and each process opens its own when
it next needs one. A connection that is in use cannot be closed, nor can any where Python is not
told of the fork: then the fork may not use its file.

A connection to a server may stay open over a fork. But both processes then share its socket, and
whichever closes it ends the session for both: so the fork drops its copy and never closes it.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from dpreg.errors import LedgerError
from dpreg.privacy.ledger.guard import Guard

__all__ = ["Shared"]

_LONGEST: Final = 10.0  # seconds that a fork waits for another thread's use of a ledger
_open: Final[weakref.WeakSet[Shared]] = weakref.WeakSet()
_barred: Final[set[tuple[int, int]]] = set()
_held: Final[list[threading.RLock]] = []
_process = os.getpid()  # whose connections are known to be its own


class Shared:
    """A connection that no fork takes along; threads use it one after the other.

    Parameters
    ----------
    file : tuple of 2 int, optional
        The identity of the file that it leads to, None for a server's.
    """

    def __init__(self, file: tuple[int, int] | None = None) -> None:
        self.file = file
        self.connection: Any = None
        self.process = os.getpid()
        self._guard, self._uses = Guard(), 0
        _open.add(self)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Use the connection, or open it, while no fork is made."""
        with self._guard.lock():
            self._uses += 1
            try:
                yield
            finally:
                self._uses -= 1

    def mine(self) -> bool:
        """Tell whether this process opened the connection; let go of what a fork inherited.

        LedgerError where the file cannot be used in this fork.
        """
        global _process
        here = os.getpid()
        if here != _process:
            _process = here
            for one in list(_open):
                if one.process != here:
                    one._inherited()
        if self.file in _barred:
            raise LedgerError(
                "this process was forked while the ledger was in use, or by code that did not tell "
                "Python, so it cannot use the ledger safely: start the process anew instead of "
                "forking, or fork before the ledger is opened"
            )
        return self.connection is not None

    def close(self) -> None:
        """Close the connection, unless it is another process's."""
        with self.used():
            self._after_fork()
            connection, self.connection = self.connection, None
            if connection is not None:
                connection.close()

    def _inherited(self) -> None:
        if self.connection is not None:
            # It is the parent's: closed here, if only as this process ends, it would be lost there.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.connection))
            if self.file is not None:
                _barred.add(self.file)
        self.connection, self.process, self._uses = None, os.getpid(), 0

    def _after_fork(self) -> None:
        if self.process != os.getpid():
            self._inherited()

    def _before_fork(self) -> None:
        if self.file is None:
            return
        lock = self._guard.lock()
        if self.process != os.getpid() or not lock.acquire(timeout=_LONGEST):
            return
        _held.append(lock)
        if self.connection is not None and not self._uses:
            self.connection.close()
            self.connection = None


def _before() -> None:
    for one in list(_open):
        one._before_fork()


def _in_parent() -> None:
    while _held:
        _held.pop().release()


def _in_child() -> None:
    _held.clear()
    for one in list(_open):
        one._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
