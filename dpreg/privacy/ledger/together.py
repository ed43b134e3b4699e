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
import re
import time
from datetime import datetime
from typing import Final

from dpreg.errors import BudgetError, LedgerError
from dpreg.privacy.ledger import charging, store
from dpreg.privacy.ledger.chain import Line, Position, budget_from, fraction_text
from dpreg.privacy.ledger.charging import Request
from dpreg.privacy.ledger.postgres import LostConnection
from dpreg.privacy.ledger.queue import Turn
from dpreg.privacy.ledger.sqlite import SqliteDatabase
from dpreg.privacy.ledger.store import Database, Facts, Run

__all__ = ["charge"]

_MOST: Final = 100
_REFUSED: Final = (1 << 64) - 1
_LARGEST: Final = (1 << 63) - 1  # that a database counts to
_CLAIM: Final = re.compile("[:;,] nothing was charged")


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
                last, now = store.last(run), database.now(run)
                return charging.charged(last, run, facts, seen, request, now)
        except LostConnection:
            if time.monotonic() > deadline:
                raise LedgerError(
                    "the ledger's server went away and did not come back: the charge may or "
                    "may not have been written, and nothing was released"
                ) from None
            lost = True
            time.sleep(0.2)
        except LedgerError as fault:
            if not lost:
                raise
            raise _unsure(fault) from None


def _unsure(fault: LedgerError) -> LedgerError:
    """Say why it failed, and not that nothing was charged: that is not known."""
    why = _CLAIM.sub("", str(fault))
    return LedgerError(
        f"the charge may or may not have been written, and nothing was released; {why}"
    )


def _in_turn(
    database: SqliteDatabase, facts: Facts, seen: Position, request: Request, deadline: float
) -> Line:
    """Wait in the queue; once first, serve those who wait behind, too."""
    with database.turn(deadline, _message(facts, seen, request)) as turn:
        try:
            if turn.answer:
                found = _answered(database, turn, facts, seen, request, deadline)
                if found is not None:
                    return found
            return _first(database, turn, facts, seen, request, deadline)
        except LedgerError as fault:
            if turn.withdraw():
                raise
            raise _unsure(fault) from None


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
    if turn.answer > _LARGEST:
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
        line = book.found(seen, request, turn.keep())
        if line is None:
            try:
                line = book.charged(seen, request)
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
    assert line is not None
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
            line = book.found(seen, request, other.slot.note) or book.charged(seen, request)
            answers[other.ticket] = line.number, b""
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

    def found(self, seen: Position, request: Request, note: int) -> Line | None:
        """Return the line of a charge, if a note says that it may have been made and it has."""
        if not note:
            return None
        # A note that speaks of lines to come is garbled; who asked saw what was written before.
        after = note - 1 if note <= self.note else seen.number
        return store.find(self._run, request.token, after)

    def charged(self, seen: Position, request: Request) -> Line:
        """Make a charge."""
        self._last = charging.charged(self._last, self._run, self.facts, seen, request, self._now)
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
        if not "".join((token, what, unit, analyst)).isprintable():
            return None
        cost = budget_from(eps, delta)
        fraction_text(cost.eps), fraction_text(cost.delta)  # what is asked for can be told
        return Request(token, what, cost, unit, analyst), Position.read(seen)
    except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError, BudgetError):
        return None
