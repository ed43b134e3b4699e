"""From paths or addresses to databases. Tested in `tests/privacy/ledger/test_files.py`."""

from __future__ import annotations

import os
import time

from dpreg.errors import LedgerError
from dpreg.privacy.ledger import postgres, sqlite, store
from dpreg.privacy.ledger.book import Book
from dpreg.privacy.ledger.chain import Caps, Position
from dpreg.privacy.ledger.charging import WITNESSED
from dpreg.privacy.ledger.store import Database
from dpreg.privacy.ledger.witness import CREATE, Witness

__all__ = ["Place", "opened", "witness_at"]

Place = str | os.PathLike[str]


def opened(
    path: Place | None, caps: Caps | None, witness: Place | None, read_only: bool, timeout: float
) -> tuple[Book, Position]:
    """Open a ledger and its witness; make them first where there is none and caps are given.

    Returns the book, and where its chain stands.
    """
    if path is None and witness is not None:
        raise LedgerError("a ledger without a path has no use for a witness: give it a path")
    deadline = time.monotonic() + timeout
    database = _database(path, "ledger", read_only, timeout)
    there = database.there(deadline)
    if not there and (caps is None or read_only):
        place = "url" if postgres.is_url(path) else "path"
        raise LedgerError(f"there is no ledger at this {place}: make it with Ledger(cap, {place})")
    kept = None if witness is None else witness_at(witness, database, not there, timeout)
    if not there and caps is not None:
        seen = None if kept is None else kept.seen(deadline)
        if seen is not None and seen.number:
            raise LedgerError(
                f"there is no ledger here, and its witness saw {seen.number} entries: restore it, "
                "or give a new ledger a new witness"
            )
        mark = "" if kept is None else f"{WITNESSED}0"
        database.make(lambda run, home: store.create(run, caps, home + mark), deadline)
    with database.reading(deadline) as run:
        book = Book(database, kept, store.facts(run))
    with book.reading(book.facts.genesis, deadline) as (_, last):
        seen = book.facts.genesis if last is None else last.position
    if kept is not None and last is None and not read_only:
        kept.introduce(seen, deadline)
    return book, seen


def witness_at(place: Place, database: Database, make: bool, timeout: float) -> Witness:
    """Open the witness of a ledger."""
    kept, deadline = _database(place, "witness", False, timeout), time.monotonic() + timeout
    if kept.place == database.place:
        raise LedgerError("a ledger cannot be its own witness: keep that elsewhere")
    if make:
        kept.make(lambda run, _: run(CREATE), deadline)
    elif not kept.there(deadline):
        raise LedgerError(
            "there is no witness here: restore it; to make a new one for this ledger run "
            "`dpreg ledger adopt --witness`"
        )
    return Witness(kept)


def _database(place: Place | None, role: str, read_only: bool, timeout: float) -> Database:
    if place is None:
        return sqlite.MemoryDatabase()
    if isinstance(place, str) and postgres.is_url(place):
        return postgres.PostgresDatabase(place, role, read_only=read_only, timeout=timeout)
    return sqlite.SqliteDatabase(place, role, read_only=read_only)
