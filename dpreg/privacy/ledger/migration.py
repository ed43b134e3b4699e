"""Takes over a ledger of dpreg 0.1, a JSON file, which can then never be charged again."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpreg.errors import BudgetError, LedgerError
from dpreg.paths import named, ordinary, read_text, reason, write_text
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import charging, postgres, sqlite, store
from dpreg.privacy.ledger.chain import Caps
from dpreg.privacy.ledger.charging import Request
from dpreg.privacy.ledger.guard import take_flock
from dpreg.privacy.ledger.handle import TIMEOUT, Ledger
from dpreg.privacy.ledger.store import Database

__all__ = ["migrate"]


def migrate(old: str | os.PathLike[str], new: str | os.PathLike[str]) -> Ledger:
    """Take over a JSON ledger of dpreg 0.1 into a new ledger, and close the old file for good.

    The entries keep their times. The old file keeps them too, under a format that no dpreg
    charges. If this is interrupted, run it again.

    Parameters
    ----------
    old : path-like
    new : path-like or str
        An SQLite file that does not exist yet, or the address of a PostgreSQL database that holds
        no ledger.

    Returns
    -------
    Ledger

    Raises
    ------
    LedgerError
        If the old file is damaged or was taken over already, or the new place is taken.
    """
    source = ordinary(old, LedgerError)
    if source is None:
        raise LedgerError(f"there is no file {named(old)}")
    with _old_lock(source):
        saved = _loads(read_text(source, LedgerError))
        target = _target(new)
        if saved.get("dpreg_ledger") == "migrated":
            return _resumed(saved, target, new)
        cap, requests = _read(saved)
        _refuse_taken(target, new)
        identity = _filled(target, new, Caps(cap), requests)
        closed = {"dpreg_ledger": "migrated", "to": str(target), "identity": identity}
        kept = {"cap": saved["cap"], "entries": saved["entries"]}
        write_text(source, json.dumps(closed | kept, indent=1), LedgerError)
        return _placed(target, new)


def _target(new: str | os.PathLike[str]) -> str:
    if postgres.is_url(new):
        return postgres.without_password(str(new))
    return str(sqlite.ledger_file(new)[0])


def _refuse_taken(target: str, new: str | os.PathLike[str]) -> None:
    if postgres.is_url(target):
        server = postgres.PostgresDatabase(str(new))
        with closing(server), server.reading(time.monotonic() + TIMEOUT) as run:
            if postgres.has_tables(run):
                raise LedgerError("there is a ledger in this database already")
    elif os.path.lexists(target):
        raise LedgerError(f"there is a file {target!r} already: choose another name")


def _filled(
    target: str, new: str | os.PathLike[str], caps: Caps, requests: list[tuple[Request, str]]
) -> str:
    """Write the new ledger, a file under a name of its own until the old one is closed."""
    deadline = time.monotonic() + TIMEOUT
    database: Database
    if postgres.is_url(target):
        database = server = postgres.PostgresDatabase(str(new))
        postgres.make_tables(server, caps, deadline)
    else:
        waiting = _waiting(Path(target))
        for ending in ("", "-wal", "-shm", "-queue"):
            waiting.with_name(waiting.name + ending).unlink(missing_ok=True)
        sqlite.make_file(waiting, caps, waiting)
        database = sqlite.SqliteDatabase(waiting)
    with closing(database), database.writing(deadline) as run:
        facts = store.facts(run)
        charging.taken_over(run, facts, requests)
    return facts.identity


def _placed(target: str, new: str | os.PathLike[str]) -> Ledger:
    if not postgres.is_url(target):
        file = Path(target)
        try:
            waiting = _waiting(file)
            waiting.with_name(waiting.name + "-queue").unlink(missing_ok=True)
            sqlite.place_file(waiting, file)
        except OSError as fault:
            raise LedgerError(
                f"the new ledger cannot be put in its place: {reason(fault)}"
            ) from None
    return Ledger.open(new)


def _resumed(saved: Mapping[str, Any], target: str, new: str | os.PathLike[str]) -> Ledger:
    """Finish what was interrupted after the old file was closed."""
    file = Path(target)
    ours = saved.get("to") == target and not postgres.is_url(target)
    if ours and not file.exists() and _waiting(file).exists():
        return _placed(target, new)
    raise LedgerError(f"this ledger has already been taken over, into {saved.get('to')}")


def _waiting(file: Path) -> Path:
    return file.with_name(f".{file.name}.migrating")


def _loads(text: str) -> dict[str, Any]:
    try:
        saved = json.loads(text)
        if not isinstance(saved, dict) or "dpreg_ledger" not in saved:
            raise LedgerError("this file is not a ledger of dpreg 0.1")
    except (ValueError, RecursionError):
        raise LedgerError("this file is not a ledger of dpreg 0.1, or it is damaged") from None
    return saved


def _read(saved: Mapping[str, Any]) -> tuple[Budget, list[tuple[Request, str]]]:
    if saved["dpreg_ledger"] != 1:
        raise LedgerError("this file is not a ledger of dpreg 0.1")
    try:
        requests = [
            (
                Request(
                    token=secrets.token_hex(16),
                    what=charging.label(line["what"]),
                    cost=Budget.from_dict(line),
                    unit=charging.label(line.get("unit", "")),
                    analyst="",
                ),
                datetime.fromisoformat(line["when"]).astimezone(UTC).isoformat(),
            )
            for line in saved["entries"]
        ]
        return Budget.from_dict(saved["cap"]), requests
    except (KeyError, TypeError, ValueError, BudgetError):
        raise LedgerError("the old ledger is damaged: it cannot be read") from None


@contextmanager
def _old_lock(source: Path) -> Iterator[None]:
    """Hold the lock that dpreg 0.1 takes for each charge."""
    try:
        lock = os.open(source.with_name(source.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as fault:
        raise LedgerError(f"the old ledger cannot be locked: {reason(fault)}") from None
    try:
        deadline = time.monotonic() + TIMEOUT
        take_flock(lock, deadline, "the old ledger is held by another process")
        yield
    finally:
        os.close(lock)
