"""A ledger's book: read as one state, and written in the order that `witness` proves.

What one charge does to a book, and how a book is gone through to see that it is whole.

A charge reads the last line, the last of its analyst and the last of its period, and adds one: its
cost does not depend on how long the book is.

A witness: the ledger's last head, kept where restoring the ledger alone does not bring it back.

A book restored in place from a backup (``cp backup.db ledger.db``) is whole by itself, as is every
chain of hashes that stops early. What tells is a later head kept elsewhere: in a second small
SQLite file, on another disk, or in PostgreSQL. There the witness has one table, to which each
charge adds the number and the hash of the line that it wrote.

Order. A charge takes the witness's lock, then the ledger's; compares; writes its line and its head;
commits the ledger, then the witness; and is answered only then. Each commit is atomic and synced.

No false alarm. The witness never holds a head that its ledger has not: a head is committed after
its line, and no charge takes a line out. A crash before the ledger's commit leaves both as they
were. One between the two commits leaves the witness behind, which is allowed; the next charge's
head stands for both lines. Readers ask the witness first and read the ledger afterwards, which may
have grown meanwhile and holds what the witness told.

No restore is missed. Say that a line was answered. Then its head was committed to the witness, and
no charge takes heads out, so the last head there is that line's or a later one's. A ledger restored
to a state without the line does not hold this last head, for its hash follows from all lines before
it: with it, the ledger would hold the answered line. So the ledger is refused. A line that was
written and never answered may be lost unseen: nothing was released for it.

A ledger notes the number at which its witness began (`WITNESSED`), and is charged neither
without a witness nor with one that it had before. The witness of a new ledger gets the head
before the first line when the ledger is first opened for charging; until then neither holds a
charge, and that is no alarm. `adopt` alone takes heads out of a witness, after the ledger's own
entry about it is committed; cut off between the two, it leaves a ledger that is refused, and is run
again.

What no file can know. If ledger and witness are restored together (a machine's snapshot), or by
someone who may write to both, all is as it was then. A head that was printed with a release, or
that a reviewer kept, still tells: `Ledger.verify(head)`. A ledger restored to the time before it
had a witness does not know of it: whoever opens it must name it.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dpreg.errors import BudgetError, LedgerError, printable
from dpreg.privacy.budget import Budget, decimal_string
from dpreg.privacy.ledger import chain as store
from dpreg.privacy.ledger.chain import (
    NOTHING,
    Database,
    Facts,
    Line,
    Position,
    Run,
    fraction_text,
    period_of,
)
from dpreg.privacy.ledger.postgres import LostConnection

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
    before_it = facts.genesis if last is None else last.position
    line = Line(
        number=before_it.number + 1,
        token=request.token,
        what=request.what,
        when=now.isoformat(timespec="seconds"),
        unit=request.unit,
        analyst=request.analyst,
        period=period,
        account_unit=unit or request.unit,
        cost=request.cost,
        spent=spent,
        by_analyst=mine,
        in_period=current,
        previous=before_it.digest,
    )
    return line.sealed()


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
    fits = cap is None or (eps <= cap.eps and delta <= cap.delta)
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
    found = store.facts(run)
    if found.identity != facts.identity:
        raise LedgerError("this is another ledger than was opened here: nothing was charged")
    place, _, kept = found.home.partition(WITNESSED)
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


CREATE = "CREATE TABLE dpreg_witness (number INTEGER PRIMARY KEY, hash TEXT NOT NULL)"
_LAST = "SELECT number, hash FROM dpreg_witness ORDER BY number DESC LIMIT 1"
_FIRST = "SELECT number FROM dpreg_witness ORDER BY number LIMIT 1"


@dataclass(frozen=True, slots=True)
class Watch:
    """A witness while it is held: the last head that it saw, None where it saw none, and the first.

    Of the first, the number is known, as text: a ledger keeps to the witness that began there.
    """

    seen: Position | None
    since: str
    _run: Run

    def note(self, head: Position) -> None:
        """Add a head, unless it is the last."""
        if head != self.seen:
            self._run("INSERT INTO dpreg_witness VALUES (?, ?)", (head.number, head.digest))

    def restart(self, head: Position) -> None:
        """Forget all heads but this one."""
        self._run("DELETE FROM dpreg_witness")
        self._run("INSERT INTO dpreg_witness VALUES (?, ?)", (head.number, head.digest))


@dataclass(frozen=True, slots=True)
class Witness:
    """The witness of one ledger, in a database of its own."""

    database: Database

    def seen(self, deadline: float) -> Position | None:
        """Return the last head that it saw; to be asked before the ledger is read."""
        with self.database.reading(deadline) as run:
            return _last(run)

    def since(self, deadline: float) -> str:
        """Return the number of its first head."""
        with self.database.reading(deadline) as run:
            return _first(run)

    @contextmanager
    def held(self, deadline: float) -> Iterator[Watch]:
        """Keep others out, and commit at the end."""
        with self.database.writing(deadline) as run:
            yield Watch(_last(run), _first(run), run)

    def introduce(self, head: Position, deadline: float) -> None:
        """Tell of a new ledger, unless a charge was seen."""
        if self.seen(deadline) == head:
            return
        with self.held(deadline) as watch:
            if watch.seen is None or watch.seen.number == 0:
                watch.restart(head)


def _last(run: Run) -> Position | None:
    rows = run(_LAST)
    return Position(*rows[0]) if rows else None


def _first(run: Run) -> str:
    return "".join(str(number) for (number,) in run(_FIRST))


def check_witness(
    run: Run, last: Line | None, seen: Position | None, facts: Facts, *, new: bool = False
) -> None:
    """Refuse a ledger that does not hold the last head that its witness saw.

    With `new` a ledger without entries passes that its witness has not been told of yet.
    """
    if new and last is None and (seen is None or seen.number == 0):
        return
    if seen is None:
        raise LedgerError(
            "the witness knows nothing of this ledger: name the right one; to make it this "
            "ledger's witness run `dpreg ledger adopt --witness`"
        )
    if not holds(run, last, seen, facts):
        number = 0 if last is None else last.number
        raise LedgerError(
            f"the ledger is not what its witness saw: it has {number} entries, and the witness's "
            f"entry {seen.number} is not among them. It was restored from a backup, or the witness "
            "is another ledger's. Restore the later state; to accept that entries are lost, run "
            "`dpreg ledger adopt --witness`"
        )


_CLAIM: Final = re.compile("[:;,] nothing was charged")


@dataclass(frozen=True, slots=True)
class Book:
    """Where an account is kept, its witness if it has one, and what holds for it."""

    database: Database
    witness: Witness | None
    facts: Facts

    @contextmanager
    def reading(self, seen: Position, deadline: float) -> Iterator[tuple[Run, Line | None]]:
        """See one state, which must hold what was seen, and its last line.

        The witness is asked first: the ledger may only be later.
        """
        heard = None if self.witness is None else self.witness.seen(deadline)
        with self.database.reading(deadline) as run:
            last = store.last(run)
            check_seen(run, last, seen, self.facts)
            if self.witness is not None:
                check_witness(run, last, heard, self.facts, new=True)
            yield run, last

    def charge(self, seen: Position, request: Request, deadline: float) -> Line:
        """Charge once, even where a server goes away before it answers.

        BudgetError or LedgerError where that cannot be.
        """
        certain = True
        while True:
            try:
                with self._held(deadline) as watch:
                    with self.database.writing(deadline) as run:
                        last = store.last(run)
                        if watch is not None:
                            check_witness(run, last, watch.seen, self.facts)
                        home, since = self.database.home(run), watch.since if watch else ""
                        check_home(run, self.facts, home, since)
                        line = None if certain else store.find(run, request.token, seen.number)
                        if line is None:
                            now = self.database.now(run)
                            last = line = fitting(last, run, self.facts, seen, request, now)
                            store.write(run, line)
                        if watch is not None and last is not None:
                            watch.note(last.position)
                    certain = False  # the ledger has committed, and its witness not yet
                return line
            except LostConnection:
                if time.monotonic() > deadline:
                    raise LedgerError(
                        "the connection to the ledger's server was lost: the charge may or "
                        "may not have been written, and nothing was released"
                    ) from None
                certain = False
                time.sleep(0.2)
            except LedgerError as fault:
                if certain:
                    raise
                why = _CLAIM.sub("", str(fault))
                raise LedgerError(
                    f"the charge may or may not have been written, and nothing was released; {why}"
                ) from None

    def adopt(self, seen: Position, reason: str, deadline: float) -> Line:
        """Settle the ledger where it lies, with this witness or none; an entry says so."""
        with self._held(deadline) as watch, self.database.writing(deadline) as run:
            last, what = store.last(run), "adopted"
            if watch is not None:
                lost = watch.seen and not holds(run, last, watch.seen, self.facts)
                what += f", given up what its witness saw, {watch.seen}" if lost else ", witnessed"
            elif WITNESSED in store.facts(run).home:
                what += ", no longer witnessed"
            request = Request.made(NOTHING, f"{what}: {reason}", "", "")
            now = self.database.now(run)
            line = fitting(last, run, self.facts, seen, request, now)
            store.write(run, line)
            mark = "" if watch is None else f"{WITNESSED}{line.number}"
            store.move(run, self.database.home(run) + mark)
            if watch is not None:
                watch.restart(line.position)
        return line

    def _held(self, deadline: float) -> AbstractContextManager[Watch | None]:
        return nullcontext() if self.witness is None else self.witness.held(deadline)
