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
from dpreg.privacy.ledger.chain import NOTHING, Line, Position, fraction_text, period_of
from dpreg.privacy.ledger.store import Facts, Run

__all__ = [
    "Request",
    "Verified",
    "charged",
    "check_home",
    "check_seen",
    "fitting",
    "holds",
    "verified",
]


WITNESSED: Final = ", witnessed since "
"""What a ledger notes beside its home while it keeps a witness, before that one's first number."""
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
        label = printable(str(what)[:_LONGEST_LABEL])
        return cls(secrets.token_hex(16), label, cost, whom, analyst)


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
    line = fitting(last, run, facts, seen, request, now)
    store.write(run, line)
    return line


def fitting(
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


def check_seen(run: Run, last: Line | None, seen: Position, facts: Facts) -> None:
    """Refuse a book that no longer holds, or never held, the line that was seen before."""
    if holds(run, last, seen, facts):
        return
    number = 0 if last is None else last.number
    if seen.number > number:
        raise LedgerError(
            f"the ledger was rolled back: it has {number} entries and had {seen.number}; no "
            "charge is possible until its later state is restored"
        )
    raise LedgerError(
        f"the ledger was rolled back or replaced: its entry {seen.number} is not the one that "
        "was seen before; no charge is possible until its true state is restored"
    )


def holds(run: Run, last: Line | None, seen: Position, facts: Facts) -> bool:
    """Tell whether a line that was seen is in the book."""
    if seen.number == 0:
        return seen == facts.genesis
    if last is not None and seen.number == last.number:
        return seen == last.position
    return store.stored_digest(run, seen.number) == seen.digest


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
        parts = ("eps", "delta")
        short = tuple(part for part in parts if getattr(left, part) < getattr(cost, part))
        named = told.format(cap=_part(cap, short), who=request.analyst)
        raise BudgetError(f"{request.what} asks for {cost}, but only {_part(left, short)} {named}")
    for part in (eps, delta):
        fraction_text(part)
    return Budget(eps, delta)


def _part(budget: Budget, names: tuple[str, ...]) -> str:
    """Write parts of a budget as `str` does, those that are 0 included."""
    return ", ".join(f"{name}={decimal_string(getattr(budget, name))}" for name in names)


def _check_sum(line: Line, cap: Budget | None, told: Budget, summed: Budget) -> None:
    if told != summed:
        raise LedgerError(f"the ledger's sums are wrong at entry {line.number}")
    if cap is not None and not cap.covers(summed):
        raise LedgerError(f"the ledger's cap is passed at entry {line.number}")


def check_home(run: Run, facts: Facts, home: str, since: str) -> None:
    """Refuse a ledger that is another than was opened, lies elsewhere, or keeps another witness.

    `since` is the witness's first number, "" without a witness.
    """
    identity, settled = store.settled(run)
    if identity != facts.identity:
        raise LedgerError("this is another ledger than was opened here: nothing was charged")
    place, _, kept = settled.partition(WITNESSED)
    if place != home:
        raise LedgerError(
            "this ledger is a copy, or was moved or restored from one: two copies would spend "
            "the same budget twice. If the other is gone for good, run `dpreg ledger adopt`"
        )
    if kept and not since:
        raise LedgerError("this ledger has a witness: to charge it, name the witness by witness=")
    if kept != since:
        raise LedgerError(
            "this is not the ledger's witness: name its own, or run `dpreg ledger adopt --witness`"
        )
