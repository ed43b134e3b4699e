"""From a path or an address to a database. Tested in `tests/privacy/ledger/test_files.py`."""

from __future__ import annotations

import os
import time

from dpreg.errors import LedgerError
from dpreg.privacy.ledger import postgres, sqlite
from dpreg.privacy.ledger.chain import Caps
from dpreg.privacy.ledger.store import Database

__all__ = ["opened"]


def opened(
    path: str | os.PathLike[str] | None, caps: Caps | None, read_only: bool, timeout: float
) -> Database:
    """Open a ledger's database, and make it first where there is none and caps are given."""
    if path is None:
        return sqlite.MemoryDatabase()
    if isinstance(path, str) and postgres.is_url(path):
        server = postgres.PostgresDatabase(path, read_only=read_only, timeout=timeout)
        with server.reading(time.monotonic() + timeout) as run:
            there = postgres.has_tables(run)
        if not there:
            if caps is None:
                raise LedgerError(
                    "there is no ledger in this database: make it with Ledger(cap, url)"
                )
            postgres.make_tables(server, caps, time.monotonic() + timeout)
        return server
    file, exists = sqlite.ledger_file(path)
    if not exists:
        if caps is None:
            raise LedgerError("there is no ledger at this path: make it with Ledger(cap, path)")
        sqlite.make_file(file, caps)
    return sqlite.SqliteDatabase(file, read_only=read_only)
