"""What one charge does to a book, and how a book is gone through to see that it is whole.

A charge reads the last line, the last of its analyst and the last of its period, and adds one: its
cost does not depend on how long the book is.

Tested in `tests/privacy/ledger/test_handle.py`.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dpreg.errors import BudgetError, LedgerError, printable
from dpreg.privacy.budget import Budget, at_most, decimal_string
from dpreg.privacy.ledger import store
from dpreg.privacy.ledger.chain import (
    NOTHING,
    Line,
    Position,
    fraction_text,
    period_of,
)
from dpreg.privacy.ledger.store import Facts, Run

__all__ = [
    "Request",
    "Verified",
    "charged",
    "check_home",
    "check_seen",
    "fitting",
    "head_of",
    "label",
    "taken_over",
    "verified",
    "written",
]


_LONGEST_LABEL: Final = 10_000


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be charged."""

    token: str
    what: str
    cost: Budget
    unit: str
    analyst: str

    @classmethod
    def made(cls, cost: Budget, what: object, unit: object, analyst: str) -> Request:
        """Give a charge a token of its own, and keep its label short and printable.

        BudgetError for a unit that cannot be printed, and so not stored everywhere.
        """
        whom = str(unit)
        if not whom.isprintable():
            raise BudgetError("unit must not hold control characters or unpaired surrogates")
        return cls(secrets.token_hex(16), label(what), cost, whom, analyst)


def label(text: object) -> str:
    """Return a label that can be stored and printed anywhere."""
    return printable(str(text)[:_LONGEST_LABEL])


@dataclass(frozen=True, slots=True)
class Verified:
    """What going through a whole book found.

    Attributes
    ----------
    head : str
        The chain's head now; keep it where those who may write to the ledger cannot.
    entries : int
    spent : Budget
    """

    head: str
    entries: int
    spent: Budget


def charged(
    last: Line | None, run: Run, facts: Facts, seen: Position, request: Request, now: datetime
) -> Line:
    """Add a line after the last, if it fits under every cap; raise what `fitting` raises."""
    line = _fitting(last, run, facts, seen, request, now)
    store.write(run, line)
    return line


def fitting(run: Run, facts: Facts, seen: Position, request: Request, now: datetime) -> Line:
    """Return the line that a request would be, and write nothing; see `_fitting`."""
    return _fitting(store.last(run), run, facts, seen, request, now)


def _fitting(
    last: Line | None, run: Run, facts: Facts, seen: Position, request: Request, now: datetime
) -> Line:
    """Return the line that a request would be after the last one, and write nothing.

    Raises
    ------
    BudgetError
        If it does not fit, or protects another unit than the book.
    LedgerError
        If the book is not the one that was seen, or one of the lines that it rests on was edited.
    """
    check_seen(run, last, seen, facts)
    unit = "" if last is None else last.account_unit
    if request.unit and unit and request.unit != unit:
        raise BudgetError(
            f"{request.what} is charged under {request.unit}, and this ledger's other charges are "
            f"under {unit}: such epsilons do not add up; keep a ledger for each"
        )
    caps, period = facts.caps, ""
    before = NOTHING if last is None else last.spent
    spent = _after(caps.total, before, request, "of {cap} is left")
    mine = NOTHING
    if request.analyst or (caps.analyst is not None and request.cost != NOTHING):
        cap = caps.of_analyst(request.analyst)
        line = store.last(run, "analyst", request.analyst)
        before = NOTHING if line is None else line.by_analyst
        mine = _after(cap, before, request, "of {who}'s {cap} is left")
    current = NOTHING
    if caps.period is not None:
        period = period_of(now, caps.every)
        line = store.last(run, "period", period)
        before = NOTHING if line is None else line.in_period
        told = f"of the {{cap}} for {period} is left"
        current = _after(caps.period, before, request, told)
    when = now.isoformat(timespec="seconds")
    names = (request.token, request.what, when, request.unit, request.analyst, period)
    return Line.made(
        1 if last is None else last.number + 1,
        (*names, unit or request.unit),
        (request.cost, spent, mine, current),
        facts.genesis.digest if last is None else last.digest,
    )


def head_of(run: Run, facts: Facts, seen: Position) -> Line | None:
    """Return the last line of a book that still holds what was seen; None where it is empty."""
    last = store.last(run)
    check_seen(run, last, seen, facts)
    return last


def check_seen(run: Run, last: Line | None, seen: Position, facts: Facts) -> None:
    """Refuse a book that no longer holds, or never held, the line that was seen before."""
    number = 0 if last is None else last.number
    if seen.number > number:
        raise LedgerError(
            f"the ledger was rolled back: it has {number} entries and had {seen.number}; no "
            "charge is possible until its later state is restored"
        )
    if seen.number == 0:
        found: str | None = facts.genesis.digest
    elif last is not None and seen.number == number:
        found = last.digest
    else:
        found = store.stored_digest(run, seen.number)
    _check_digest(found, seen)


def _check_digest(found: str | None, seen: Position) -> None:
    """Refuse a book in which another line, or none, stands where one was seen."""
    if found != seen.digest:
        raise LedgerError(
            f"the ledger was rolled back or replaced: its entry {seen.number} is not the one that "
            "was seen before; no charge is possible until its true state is restored"
        )


def verified(run: Run, facts: Facts, seen: Position | None) -> Verified:
    """Go through the book line by line.

    Raises
    ------
    LedgerError
        If a line was edited, is missing or out of its place, if a sum is not the sum, if a cap is
        passed, or if the book does not hold the head `seen`.
    """
    before = facts.genesis
    found = before if seen is None or seen.number == 0 else None
    spent, by_analyst, in_period = NOTHING, dict[str, Budget](), dict[str, Budget]()
    for line in store.lines(run):
        if line.number != before.number + 1 or line.previous != before.digest:
            raise LedgerError(f"the ledger's chain breaks at entry {line.number}")
        spent += line.cost
        _check_sum(line, facts.caps.total, line.spent, spent)
        if line.analyst:
            mine = by_analyst.get(line.analyst, NOTHING) + line.cost
            by_analyst[line.analyst] = mine
            _check_sum(line, facts.caps.of_analyst(line.analyst), line.by_analyst, mine)
        if line.period:
            current = in_period.get(line.period, NOTHING) + line.cost
            in_period[line.period] = current
            _check_sum(line, facts.caps.period, line.in_period, current)
        before = line.position
        if seen is not None and seen.number == before.number:
            found = before
    if seen is not None and found != seen:
        how = (
            f"it has {before.number} entries, and had {seen.number}"
            if seen.number > before.number
            else f"its entry {seen.number} is not the one that the head names"
        )
        raise LedgerError(f"the ledger was rolled back, or the head is another ledger's: {how}")
    return Verified(str(before), before.number, spent)


def _after(cap: Budget | None, spent: Budget, request: Request, told: str) -> Budget:
    """Return a sum with the request added; BudgetError where it passes its cap."""
    cost = request.cost
    eps, delta = spent.eps + cost.eps, spent.delta + cost.delta
    fits = cap is None or (at_most(eps, cap.eps) and at_most(delta, cap.delta))
    if cap is not None and not fits and cost != NOTHING:
        left = cap - spent if cap.covers(spent) else NOTHING
        short = _short(left, cost)
        named = told.format(cap=_part(cap, short), who=request.analyst)
        raise BudgetError(f"{request.what} asks for {cost}, but only {_part(left, short)} {named}")
    for part in (eps, delta):
        fraction_text(part)
    return Budget(eps, delta)


def _short(left: Budget, cost: Budget) -> tuple[str, ...]:
    """Name the parts of a budget of which too little is left."""
    parts = ("eps", "delta")
    return tuple(part for part in parts if getattr(left, part) < getattr(cost, part))


def _part(budget: Budget, names: tuple[str, ...]) -> str:
    """Write parts of a budget as `str` does, those that are 0 included."""
    return ", ".join(f"{name}={decimal_string(getattr(budget, name))}" for name in names)


def _check_sum(line: Line, cap: Budget | None, told: Budget, summed: Budget) -> None:
    if told != summed:
        raise LedgerError(f"the ledger's sums are wrong at entry {line.number}")
    if cap is not None and not cap.covers(summed):
        raise LedgerError(f"the ledger's cap is passed at entry {line.number}")


def taken_over(run: Run, facts: Facts, lines: list[tuple[Request, str]]) -> None:
    """Write the entries of an older ledger, with their times; they may have passed no cap."""
    last: Line | None = None
    for request, when in lines:
        now = datetime.fromisoformat(when)
        seen = facts.genesis if last is None else last.position
        last = charged(last, run, facts, seen, request, now)


def check_home(run: Run, facts: Facts, home: str) -> None:
    """Refuse a ledger that is another than was opened, or lies elsewhere than it was made."""
    _check_settled(store.settled(run), facts, home)


def written(run: Run, facts: Facts, seen: Position, number: int, home: str) -> Line | None:
    """Return the line of a number, from a book that is at home and holds what was seen."""
    found, before, line = store.glance(run, number, seen.number)
    _check_settled(found, facts, home)
    if line is not None:
        _check_digest(facts.genesis.digest if seen.number == 0 else before, seen)
    return line


def _check_settled(found: tuple[str, str], facts: Facts, home: str) -> None:
    identity, settled = found
    if identity != facts.identity:
        raise LedgerError("another ledger stands where this one was opened: nothing was charged")
    if settled != home:
        raise LedgerError(
            "this ledger is a copy, or was moved or restored from one: two copies would spend "
            "the same budget twice. If the other is gone for good, run `dpreg ledger adopt`"
        )
