"""What a fork must not take along: open connections to ledgers.

SQLite keeps in a process's memory what that process has locked. A fork has a copy of this memory
and none of the locks: whatever it opened of the same file would go in unlocked, and could pass a
cap or lose a charge. So connections are closed before a fork, and each process opens its own when
it next needs one. A connection that is in use cannot be closed, nor can any where Python is not
told of the fork: then the fork may not use its file.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dpreg.errors import LedgerError
from dpreg.privacy.ledger.guard import Guard

__all__ = ["Shared", "keep_for_ever"]

_LONGEST: Final = 10.0  # seconds that a fork waits for another thread's use of a ledger
_open: Final[weakref.WeakSet[Shared]] = weakref.WeakSet()
_barred: Final[set[tuple[int, int]]] = set()
_held: Final[list[threading.RLock]] = []
_process = os.getpid()  # whose connections are known to be its own


class Shared:
    """A connection to a file, closed before a fork; threads use it one after the other."""

    def __init__(self, identity: tuple[int, int]) -> None:
        self.identity = identity
        self.connection: sqlite3.Connection | None = None
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
        if self.identity in _barred:
            raise LedgerError(
                "this process was forked while the ledger was in use, or by code that did not tell "
                "Python, so it cannot use the ledger safely: start the process anew instead of "
                "forking, or fork before the ledger is opened"
            )
        return self.connection is not None

    def close(self) -> None:
        """Close the connection, unless it is another process's."""
        with self.used():
            if self.process != os.getpid():
                self._inherited()
            if self.connection is not None:
                self.connection.close()
            self.connection = None

    def _inherited(self) -> None:
        if self.connection is not None:
            keep_for_ever(self.connection)  # closing it would harm whoever uses the file
            _barred.add(self.identity)
        self.connection, self.process, self._uses = None, os.getpid(), 0

    def _before_fork(self) -> None:
        lock = self._guard.lock()
        if self.process != os.getpid() or not lock.acquire(timeout=_LONGEST):
            return
        _held.append(lock)
        if self.connection is not None and not self._uses:
            self.connection.close()
            self.connection = None


def keep_for_ever(connection: object) -> None:
    """Let nobody close a connection, not even this process's end."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _before() -> None:
    for one in list(_open):
        one._before_fork()


def _after() -> None:
    while _held:
        _held.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_held.clear)
