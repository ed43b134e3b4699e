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
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from dpreg.errors import BudgetError, LedgerError
from dpreg.privacy.budget import NOTHING, Budget, decimal_string
from dpreg.privacy.ledger import chain as store
from dpreg.privacy.ledger.chain import (
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


def fitting(last: Line, run: Run, facts: Facts, seen: Position, asked: Line, now: datetime) -> Line:
    """Return the line that an entry would be after the last one, and write nothing.

    Raises
    ------
    BudgetError
        If it does not fit, or protects another unit than the book.
    LedgerError
        If the book is not the one that was seen, or one of the lines that it rests on was edited.
    """
    check_seen(run, last, seen, facts)
    unit = last.account_unit
    if asked.unit and unit and asked.unit != unit:
        raise BudgetError(
            f"{asked.what} is charged under {asked.unit}, and this ledger's other charges are "
            f"under {unit}: such epsilons do not add up; keep a ledger for each"
        )
    caps, mine, current, period = facts.caps, NOTHING, NOTHING, ""
    spent = _after(caps.total, last.spent, asked, "of {cap} is left")
    if asked.analyst or (caps.analyst is not None and asked.cost != NOTHING):
        cap = caps.of_analyst(asked.analyst)
        own = store.last(run, "analyst", asked.analyst) or facts.genesis
        mine = _after(cap, own.by_analyst, asked, "of {who}'s {cap} is left")
    if caps.period is not None:
        period = period_of(now, caps.every)
        own = store.last(run, "period", period) or facts.genesis
        told = f"of the {{cap}} for {period} is left"
        current = _after(caps.period, own.in_period, asked, told)
    line = replace(
        asked,
        number=last.number + 1,
        when=now.isoformat(timespec="seconds"),
        period=period,
        account_unit=unit or asked.unit,
        spent=spent,
        by_analyst=mine,
        in_period=current,
        previous=last.digest,
    )
    return line.sealed()


def check_seen(run: Run, last: Line, seen: Position, facts: Facts) -> None:
    """Refuse a book that no longer holds, or never held, the line that was seen before."""
    if holds(run, last, seen, facts):
        return
    if seen.number > last.number:
        raise LedgerError(
            f"the ledger was rolled back: it has {last.number} entries and had {seen.number}; no "
            "charge is possible until its later state is restored"
        )
    raise LedgerError(
        f"the ledger was rolled back or replaced: its entry {seen.number} is not the one that "
        "was seen before; no charge is possible until its true state is restored"
    )


def holds(run: Run, last: Line, seen: Position, facts: Facts) -> bool:
    """Tell whether a line that was seen is in the book."""
    if seen.number == 0:
        return seen == facts.genesis.position
    if seen.number == last.number:
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
        before = line
    if seen is not None and not holds(run, before, seen, facts):
        how = (
            f"it has {before.number} entries, and had {seen.number}"
            if seen.number > before.number
            else f"its entry {seen.number} is not the one that the head names"
        )
        raise LedgerError(f"the ledger was rolled back, or the head is another ledger's: {how}")
    return Verified(str(before.position), before.number, spent)


def _after(cap: Budget | None, spent: Budget, asked: Line, told: str) -> Budget:
    """Return a sum with the entry added; BudgetError where it passes its cap."""
    cost = asked.cost
    eps, delta = spent.eps + cost.eps, spent.delta + cost.delta
    fits = cap is None or (eps <= cap.eps and delta <= cap.delta)
    if cap is not None and not fits and cost != NOTHING:
        left = cap - spent if cap.covers(spent) else NOTHING
        parts = ("eps", "delta")
        short = tuple(part for part in parts if getattr(left, part) < getattr(cost, part))
        named = told.format(cap=_part(cap, short), who=asked.analyst)
        raise BudgetError(f"{asked.what} asks for {cost}, but only {_part(left, short)} {named}")
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


def check_home(run: Run, facts: Facts, home: str, watch: Watch | None) -> None:
    """Refuse a ledger that is another than was opened, lies elsewhere, or keeps another witness."""
    found, since = store.facts(run), watch.since if watch else ""
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
_HEADS = "SELECT number, hash FROM dpreg_witness ORDER BY number"


@dataclass(frozen=True, slots=True)
class Watch:
    """What a witness tells: the last head that it saw, None where it saw none, and the first.

    Of the first, the number is known, as text: a ledger keeps to the witness that began there.
    """

    seen: Position | None
    since: str
    _run: Run

    @classmethod
    def of(cls, run: Run) -> Watch:
        """Ask a witness; what it tells stands while it is held."""
        first, last = run(f"{_HEADS} LIMIT 1"), run(f"{_HEADS} DESC LIMIT 1")
        return cls(Position(*last[0]) if last else None, str(first[0][0]) if first else "", run)

    def note(self, head: Position) -> None:
        """Add a head, unless it is the last."""
        if head != self.seen:
            self._run("INSERT INTO dpreg_witness VALUES (?, ?)", (head.number, head.digest))

    def restart(self, head: Position) -> None:
        """Forget all heads but this one."""
        self._run("DELETE FROM dpreg_witness")
        self._run("INSERT INTO dpreg_witness VALUES (?, ?)", (head.number, head.digest))


def check_witness(
    run: Run, last: Line, seen: Position | None, facts: Facts, *, new: bool = False
) -> None:
    """Refuse a ledger that does not hold the last head that its witness saw.

    With `new` a ledger without entries passes that its witness has not been told of yet.
    """
    if new and last.number == 0 and (seen is None or seen.number == 0):
        return
    if seen is None:
        raise LedgerError(
            "the witness knows nothing of this ledger: name the right one; to make it this "
            "ledger's witness run `dpreg ledger adopt --witness`"
        )
    if not holds(run, last, seen, facts):
        raise LedgerError(
            f"the ledger is not what its witness saw: it has {last.number} entries, and the "
            f"witness's entry {seen.number} is not among them. It was restored from a backup, or "
            "the witness is another ledger's. Restore the later state; to accept that entries are "
            "lost, run `dpreg ledger adopt --witness`"
        )


_CLAIM: Final = re.compile("[:;,] nothing was charged")


@dataclass(frozen=True, slots=True)
class Book:
    """Where an account is kept, its witness if it has one, and what holds for it."""

    database: Database
    witness: Database | None
    facts: Facts

    def heard(self, deadline: float) -> Watch | None:
        """Ask the witness, if there is one; to be asked before the ledger is read."""
        if self.witness is None:
            return None
        with self.witness.reading(deadline) as run:
            return Watch.of(run)

    def introduce(self, deadline: float) -> None:
        """Tell the witness, if there is one, of a new ledger, unless a charge was seen."""
        head, heard = self.facts.genesis.position, self.heard(deadline)
        if heard is None or heard.seen == head:
            return
        with self._held(deadline) as watch:
            if watch is not None and (watch.seen is None or watch.seen.number == 0):
                watch.restart(head)

    def last(self, run: Run) -> Line:
        """Return the last line, or what stands before the first."""
        return store.last(run) or self.facts.genesis

    @contextmanager
    def reading(self, seen: Position, deadline: float) -> Iterator[tuple[Run, Line]]:
        """See one state, which must hold what was seen, and its last line.

        The witness is asked first: the ledger may only be later.
        """
        heard = self.heard(deadline)
        with self.database.reading(deadline) as run:
            last = self.last(run)
            check_seen(run, last, seen, self.facts)
            if heard is not None:
                check_witness(run, last, heard.seen, self.facts, new=True)
            yield run, last

    def charge(self, seen: Position, asked: Line, deadline: float) -> Line:
        """Charge once, even where a server goes away before it answers.

        BudgetError or LedgerError where that cannot be.
        """
        certain = True
        while True:
            try:
                with self._held(deadline) as watch:
                    with self.database.writing(deadline) as run:
                        last = self.last(run)
                        if watch is not None:
                            check_witness(run, last, watch.seen, self.facts)
                        check_home(run, self.facts, self.database.home(run), watch)
                        line = None if certain else store.find(run, asked.token, seen.number)
                        if line is None:
                            now = self.database.now(run)
                            last = line = fitting(last, run, self.facts, seen, asked, now)
                            store.write(run, line)
                        if watch is not None:
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
            last, what = self.last(run), "adopted"
            if watch is not None:
                lost = watch.seen and not holds(run, last, watch.seen, self.facts)
                what += f", given up what its witness saw, {watch.seen}" if lost else ", witnessed"
            elif WITNESSED in store.facts(run).home:
                what += ", no longer witnessed"
            asked = Line.asked(NOTHING, f"{what}: {reason}", "", "")
            line = fitting(last, run, self.facts, seen, asked, self.database.now(run))
            store.write(run, line)
            mark = "" if watch is None else f"{WITNESSED}{line.number}"
            store.move(run, self.database.home(run) + mark)
            if watch is not None:
                watch.restart(line.position)
        return line

    @contextmanager
    def _held(self, deadline: float) -> Iterator[Watch | None]:
        """Keep others out of the witness, if there is one, and commit it at the end."""
        if self.witness is None:
            yield None
        else:
            with self.witness.writing(deadline) as run:
                yield Watch.of(run)
