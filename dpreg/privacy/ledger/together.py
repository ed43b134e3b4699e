"""Charges of several processes in one transaction.

A disk syncs a few hundred times a second, and each charge must be synced before it is answered. So
whoever is first in the queue also makes the charges of those behind it: one after the other, each
checked against every cap as if it had come alone, all committed by one sync. None is answered
before the commit. Nobody takes another's word that it was charged: whoever was served reads its
line from the ledger. That it was refused it believes, for nothing is released then.

A charge is made at most once. Inside the ledger's lock, and before its line is written, the slot
of another's charge gets a note of the ledger's length; whoever finds a note there looks for the
charge's token among the lines written since, and only writes where it is missing. If the process
that serves is killed, its transaction is undone and the next in the queue begins anew; if it is
killed after the commit, the next finds the line.
"""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import Final

from dpreg.errors import BudgetError, LedgerError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import charging, store
from dpreg.privacy.ledger.chain import Line, Position, fraction_of, fraction_text
from dpreg.privacy.ledger.charging import Request
from dpreg.privacy.ledger.postgres import LostConnection
from dpreg.privacy.ledger.queue import Turn
from dpreg.privacy.ledger.sqlite import SqliteDatabase
from dpreg.privacy.ledger.store import Database, Facts, Run

__all__ = ["charge"]

_MOST: Final = 100
_REFUSED: Final = (1 << 64) - 1


def charge(
    database: Database, facts: Facts, seen: Position, request: Request, deadline: float
) -> Line:
    """Charge a ledger; LedgerError or BudgetError where that cannot be."""
    if isinstance(database, SqliteDatabase):
        return _in_turn(database, facts, seen, request, deadline)
    return _alone(database, facts, seen, request, deadline)


def _alone(
    database: Database, facts: Facts, seen: Position, request: Request, deadline: float
) -> Line:
    """Charge once, even where the server goes away before it answers."""
    lost = False
    while True:
        try:
            with database.writing(deadline) as run:
                charging.check_home(run, facts, database.home(run))
                if lost and (found := store.find(run, request.token, seen.number)):
                    return found
                return charging.charged(run, facts, seen, request, database.now(run))
        except LostConnection:
            if time.monotonic() > deadline:
                raise LedgerError(
                    "the ledger's server went away and did not come back: the charge may or "
                    "may not have been written, and nothing was released"
                ) from None
            lost = True
            time.sleep(0.2)


def _in_turn(
    database: SqliteDatabase, facts: Facts, seen: Position, request: Request, deadline: float
) -> Line:
    """Wait in the queue; once first, serve those who wait behind, too."""
    with database.turn(deadline, _message(facts, seen, request)) as turn:
        if turn.answer:
            found = _answered(database, turn, facts, seen, request, deadline)
            if found is not None:
                return found
        try:
            return _first(database, turn, facts, seen, request, deadline)
        except LedgerError:
            if turn.withdraw():
                raise
            raise LedgerError(
                "another process had begun to make this charge, and did not end within the time "
                "that this call may wait (its timeout): the charge may or may not have been "
                "written, and nothing was released"
            ) from None


def _answered(
    database: SqliteDatabase,
    turn: Turn,
    facts: Facts,
    seen: Position,
    request: Request,
    deadline: float,
) -> Line | None:
    """Look up what another process says it did; None where this one must do it itself."""
    if turn.answer == _REFUSED:
        token, _, why = turn.reply.decode(errors="replace").partition(" ")
        if token == request.token:
            raise BudgetError(why)
        with database.reading(deadline) as run:
            charging.fitting(run, facts, seen, request, database.now(run))
        return None
    run = database.glancing(deadline)
    line = charging.written(run, facts, seen, turn.answer, database.home(run))
    return line if line is not None and line.token == request.token else None


def _first(
    database: SqliteDatabase,
    turn: Turn,
    facts: Facts,
    seen: Position,
    request: Request,
    deadline: float,
) -> Line:
    """Hold the ledger: make this charge, and those of whoever waits behind."""
    refusal: BudgetError | None = None
    with database.locked(deadline) as run:
        charging.check_home(run, facts, database.home(run))
        book = _Book(run, facts, database.now(run))
        note = turn.keep()
        try:
            line = book.charged(seen, request, note)
        except LedgerError:
            raise
        except BudgetError as fault:
            refusal = fault
        answers = _those_behind(book, turn)
    turn.tell(answers)
    if refusal is not None:
        try:
            raise refusal
        finally:
            refusal = None  # its traceback holds this frame: a circle that keeps the ledger open
    return line


def _those_behind(book: _Book, turn: Turn) -> dict[int, tuple[int, bytes]]:
    """Make the charges of others.

    Returns for each ticket its line's number, or `_REFUSED` and why.
    """
    answers: dict[int, tuple[int, bytes]] = {}
    for other in turn.behind(_MOST):
        read = _read(other.message, book.facts)
        if read is None:
            break
        request, seen = read
        if not turn.take(other, other.slot.note or book.note):
            continue
        try:
            answers[other.ticket] = book.charged(seen, request, other.slot.note).number, b""
        except LedgerError:
            break  # the other's head is not in this book, or the disk failed: that one will see
        except BudgetError as fault:
            reply = f"{request.token} {fault}"
            answers[other.ticket] = _REFUSED, reply.encode(errors="replace")
    return answers


class _Book:
    """A ledger while this process holds it, and the last line that it has."""

    def __init__(self, run: Run, facts: Facts, now: datetime) -> None:
        self.facts = facts
        self._run, self._now = run, now
        self._last = store.last(run)

    @property
    def note(self) -> int:
        """What a note says of a charge that may be made from here on."""
        return 1 if self._last is None else self._last.number + 1

    def charged(self, seen: Position, request: Request, note: int) -> Line:
        """Make a charge, unless a note says that it may have been made, and it has."""
        if note and (found := store.find(self._run, request.token, note - 1)) is not None:
            return found
        self._last = charging.charged_after(
            self._last, self._run, self.facts, seen, request, self._now
        )
        return self._last


def _message(facts: Facts, seen: Position, request: Request) -> bytes:
    cost = (fraction_text(request.cost.eps), fraction_text(request.cost.delta))
    names = (request.token, request.what, request.unit, request.analyst)
    return json.dumps([facts.identity, str(seen), *cost, *names]).encode("ascii")


def _read(message: bytes, facts: Facts) -> tuple[Request, Position] | None:
    """Read what another process asks for; None where it is of another ledger, or unreadable."""
    try:
        identity, seen, eps, delta, *names = json.loads(message)
        if identity != facts.identity:
            return None
        token, what, unit, analyst = map(str, names)
        cost = Budget(fraction_of(eps), fraction_of(delta))
        return Request(token, what, cost, unit, analyst), Position.read(seen)
    except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError, BudgetError):
        return None
