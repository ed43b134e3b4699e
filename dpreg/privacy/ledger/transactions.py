"""Transactions of SQLite, and what its errors are called here.

Tested in `tests/privacy/ledger/test_sqlite.py` and `tests/privacy/ledger/test_files.py`.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from dpreg.errors import LedgerError
from dpreg.privacy.ledger.store import Run

__all__ = ["as_ledger_errors", "connected", "transaction"]

_BRIEF: Final = 0.05  # seconds in C, where an interrupt waits
_TOLD: Final = {
    "SQLITE_IOERR_(.*LOCK|SHMOPEN|SHMMAP)$": (
        "This file system lacks the locks a ledger needs; store it elsewhere."
    ),
    "SQLITE_FULL|SQLITE_IOERR_SHMSIZE": "the disk is full: nothing was charged",
    "SQLITE_IOERR": "the disk failed, and nothing was released",
    "SQLITE_READONLY": "the ledger or its folder may not be written to: nothing was charged",
    "SQLITE_CANTOPEN": "the ledger may not be opened by this user: may they write to its folder?",
    "SQLITE_BUSY": (
        "the ledger has been held by another process all the time that this call may wait (its "
        "timeout); nothing was charged: try again, or look for a process that is stopped"
    ),
    "SQLITE_NOTADB": (
        "this file is not a ledger; a ledger of dpreg 0.1 must be migrated with dpreg 0.2 first"
    ),
    "": "the ledger is damaged, or no ledger; no charge is possible",
}
"""What an error is called here: the first of these that its name begins with."""


@contextmanager
def transaction(
    connection: sqlite3.Connection, begin: str, deadline: float, role: str
) -> Iterator[Run]:
    """Begin, waiting until a deadline; commit at the end of the block, undo if it raises."""

    def run(statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with as_ledger_errors(role):
            return connection.execute(statement, values).fetchall()

    with as_ledger_errors(role):
        _retry(connection, "PRAGMA synchronous = EXTRA", deadline)  # which reads the file, too
        _retry(connection, begin, deadline)
    try:
        with as_ledger_errors(role):
            _retry(connection, "SELECT count(*) FROM sqlite_master", deadline)  # now it has begun
        yield run
        with as_ledger_errors(role):
            _retry(connection, "COMMIT", deadline)
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _retry(connection: sqlite3.Connection, statement: str, deadline: float) -> None:
    """Run a statement that may find the database locked, until a deadline."""
    while True:
        try:
            connection.execute(statement).fetchall()
            return
        except sqlite3.OperationalError as fault:
            busy = getattr(fault, "sqlite_errorname", "").startswith("SQLITE_BUSY")
            if not busy or time.monotonic() > deadline:
                raise


@contextmanager
def as_ledger_errors(role: str = "ledger") -> Iterator[None]:
    """Raise what SQLite says as a LedgerError."""
    try:
        yield
    except sqlite3.Error as fault:
        name = getattr(fault, "sqlite_errorname", "")
        told = next(text for kind, text in _TOLD.items() if re.match(kind, name))
        raise LedgerError(told.replace("ledger", role)) from None


def connected(file: Path, mode: str) -> sqlite3.Connection:
    """Open a file."""
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(file))}{mode}", uri=True, isolation_level=None, timeout=_BRIEF
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection
