"""Transactions of SQLite, and what its errors are called here.

Tested in `tests/privacy/ledger/test_sqlite.py` and `tests/privacy/ledger/test_files.py`.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from dpreg.errors import LedgerError
from dpreg.privacy.ledger.store import Run

__all__ = ["alone", "as_ledger_errors", "transaction"]

_UNLOCKABLE: Final = (
    sqlite3.SQLITE_IOERR_LOCK,
    sqlite3.SQLITE_IOERR_RDLOCK,
    sqlite3.SQLITE_IOERR_UNLOCK,
    sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK,
    sqlite3.SQLITE_IOERR_SHMLOCK,
    sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMMAP,
)
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str, deadline: float) -> Iterator[Run]:
    """Begin, waiting until a deadline; commit at the end of the block, undo if it raises."""

    def run(statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with as_ledger_errors():
            return connection.execute(statement, values).fetchall()

    with as_ledger_errors():
        _retry(connection, begin, deadline)
    try:
        yield run
        with as_ledger_errors():
            _retry(connection, "COMMIT", deadline)
    except BaseException:
        if connection.in_transaction:
            with as_ledger_errors():
                connection.execute("ROLLBACK")
        raise


def alone(connection: sqlite3.Connection, deadline: float) -> Run:
    """Return what runs one statement that is a transaction by itself, waiting until a deadline."""

    def run(statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with as_ledger_errors():
            return _retry(connection, statement, deadline, values)

    return run


def _retry(
    connection: sqlite3.Connection, statement: str, deadline: float, values: Sequence[Any] = ()
) -> list[tuple[Any, ...]]:
    """Run a statement that may find the database locked, until a deadline."""
    while True:
        try:
            return connection.execute(statement, values).fetchall()
        except sqlite3.OperationalError as fault:
            if _primary(fault) not in _BUSY:
                raise
            if time.monotonic() > deadline:
                raise LedgerError(
                    "the ledger has been held by another process all the time that this call may "
                    "wait (its timeout); nothing was charged: try again, or look for a process "
                    "that is stopped"
                ) from None


class as_ledger_errors:
    """Raise what SQLite says as a LedgerError.

    Every statement is run in one, and a generator would cost several times as much.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: object, fault: BaseException | None, trace: object) -> None:
        """Raise LedgerError for an error of SQLite's."""
        if isinstance(fault, sqlite3.Error):
            raise LedgerError(_told(fault)) from None


def _told(fault: sqlite3.Error) -> str:
    if getattr(fault, "sqlite_errorcode", 0) in _UNLOCKABLE:
        return "the file system here has no locks that a ledger could rest on: keep it on another"
    match _primary(fault):
        case sqlite3.SQLITE_FULL:
            return "the disk is full: nothing was charged"
        case sqlite3.SQLITE_READONLY:
            return "the ledger or its folder may not be written to: nothing was charged"
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return "the ledger may not be opened by this user: its folder must be writable, too"
        case sqlite3.SQLITE_IOERR:
            return "the disk failed, and nothing was released"
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return "the ledger is held by another process: nothing was charged"
        case sqlite3.SQLITE_NOTADB:
            return "this file is not a ledger; `dpreg ledger migrate` takes over one of dpreg 0.1"
        case _:
            return "the ledger is damaged, or no ledger; no charge is possible"


def _primary(fault: sqlite3.Error) -> int:
    return getattr(fault, "sqlite_errorcode", 0) & 0xFF
