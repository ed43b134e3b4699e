"""A ledger: one cap for many releases, kept in a database, charged before any draw.

A `Budget` is a value; a `Ledger` is the account it is taken from. Its rules are few:

- A charge that does not fit raises a BudgetError, before anything is read or drawn.
- A charge that fits is on disk before `charge` returns. A crash after it loses budget, never
  privacy. There are no refunds.
- Arithmetic is exact, and however many threads and users share it, charges never pass a cap.

From paths or addresses to databases.

What a public call was charged, kept for the record of its release.

A call charges deep inside, and its result is made elsewhere. Whoever wants to know opens `kept`
around the call: the charge that happens inside it, in the same thread, is noted there. Where one
`kept` is inside another, both note it.

What a call would charge: it is run up to its charge, and not a step further.

A public call settles everything that can be refused from public facts, then charges, then reads
rows. Given a ledger that stops it at the charge, it has refused what it would refuse and named its
price, and no row was read.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from dpreg.errors import ArgumentError, BudgetError, LedgerError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import book as charging
from dpreg.privacy.ledger import chain as store
from dpreg.privacy.ledger import postgres, sqlite
from dpreg.privacy.ledger.book import CREATE, WITNESSED, Book, Verified, Watch
from dpreg.privacy.ledger.chain import (
    Caps,
    Database,
    Entry,
    Facts,
    Line,
    Position,
    Run,
    clean,
)

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
        mark = ""
        if kept is not None:
            mark = f"{WITNESSED}0"
            with kept.reading(deadline) as run:
                seen = Watch.of(run).seen
            if seen is not None and seen.number:
                raise LedgerError(
                    f"there is no ledger here, and its witness saw {seen.number} entries: restore "
                    "it, or give a new ledger a new witness"
                )
        database.make(lambda run, home: store.create(run, caps, home + mark), deadline)
    with database.reading(deadline) as run:
        book = Book(database, kept, store.facts(run))
    with book.reading(book.facts.genesis.position, deadline) as (_, last):
        pass
    if last.number == 0 and not read_only:
        book.introduce(deadline)
    return book, last.position


def witness_at(place: Place, database: Database, make: bool, timeout: float) -> Database:
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
    return kept


def _database(place: Place | None, role: str, read_only: bool, timeout: float) -> Database:
    if place is None:
        return sqlite.MemoryDatabase()
    if isinstance(place, str) and postgres.is_url(place):
        return postgres.PostgresDatabase(place, role, read_only=read_only, timeout=timeout)
    return sqlite.SqliteDatabase(place, role, read_only=read_only)


Receipt = list[tuple[Facts, Line]]
"""The charges of a call, in order: the ledger's facts and the line that each wrote."""

_open: ContextVar[tuple[Receipt, ...]] = ContextVar("dpreg_receipts", default=())


@contextmanager
def kept(*, apart: bool = False) -> Iterator[Receipt]:
    """Collect the charges made while the block runs.

    Whoever asked around it notes them as well; not so `apart`, for a user's own code, which may
    make calls of its own.
    """
    receipt = Receipt()
    before = _open.set((*(() if apart else _open.get()), receipt))
    try:
        yield receipt
    finally:
        _open.reset(before)


TIMEOUT: Final = 30.0
_log = logging.getLogger("dpreg.ledger")
_T = TypeVar("_T")


class Ledger:
    """An account of privacy budget with a cap.

    Parameters
    ----------
    cap : Budget, number or str
        The most that may ever be charged. A number is an eps with delta = 0.
    path : path-like or str, optional
        An SQLite file, or the address of a PostgreSQL database (``"postgresql://..."``, with the
        extra `postgres`). If the account exists its entries are taken up and its caps must equal
        those given; if not it is made. Without a path the ledger lives in this process alone, and
        cannot be pickled or copied, since each copy could spend the same budget again.
    analyst_cap : Budget, number, mapping of names to these, or None
        A cap for each analyst beside the data set's. With a mapping nobody else may charge.
    period_cap : Budget, number or None
        A cap for each period of the UTC calendar.
    period : {"day", "month", "quarter", "year"}
    analyst : str, optional
        Who charges through this handle; see `for_analyst`.
    witness : path-like or str, optional
        A second file, on another disk, or the address of another PostgreSQL database, that keeps
        the last head: a ledger restored from a backup is then refused (see
        `dpreg.privacy.ledger.book` for what no file can know). A ledger made with a witness is
        charged with it alone; one that exists gets one by `adopt`.
    read_only : bool
        Open an account that exists, to look at it.
    timeout : float
        Seconds to wait for the account while others hold it.

    Raises
    ------
    BudgetError
        If the account has other caps.
    LedgerError
        If it cannot be opened, is damaged, was copied or restored (see `adopt`), or is behind its
        witness.

    Notes
    -----
    A charge checks every cap and writes one line in one transaction, under the database's own lock
    and synced before it is answered, at a cost that does not depend on how many lines there are. On
    network file systems SQLite is only as good as their locks: for several machines, use
    PostgreSQL. Several users can share a file if they share a group that may write to the file and
    to its folder, which should pass its group on (``chmod g+ws``).

    Entries form a chain of hashes. Each handle keeps the last `head` that it saw and refuses a
    ledger that lacks it; `verify` tells the same to whoever kept a head elsewhere. What the chain
    does not protect from: see `dpreg.privacy.ledger.chain`.
    """

    __slots__ = ("_analyst", "_book", "_seen", "_timeout")

    def __init__(
        self,
        cap: Budget | object,
        path: Place | None = None,
        *,
        analyst_cap: Mapping[str, object] | object | None = None,
        period_cap: object | None = None,
        period: str = "month",
        analyst: str | None = None,
        witness: Place | None = None,
        read_only: bool = False,
        timeout: float = TIMEOUT,
    ) -> None:
        caps = Caps(cap, analyst_cap, period_cap, period)  # type: ignore[arg-type]
        self._set_up(analyst, timeout)
        self._book, self._seen = opened(path, caps, witness, read_only, self._timeout)
        self.caps.check_given(caps)

    @classmethod
    def open(
        cls,
        path: Place,
        *,
        analyst: str | None = None,
        witness: Place | None = None,
        read_only: bool = False,
        timeout: float = TIMEOUT,
    ) -> Self:
        """Open a saved ledger with the caps that it holds."""
        ledger = cls.__new__(cls)
        ledger._set_up(analyst, timeout)
        ledger._book, ledger._seen = opened(path, None, witness, read_only, ledger._timeout)
        return ledger

    def _set_up(self, analyst: str | None, timeout: float) -> None:
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0:
            raise BudgetError("timeout must be a number of seconds, at least 0")
        self._analyst = "" if analyst is None else clean(analyst, "analyst")
        self._timeout = min(float(timeout), 1e6)

    @property
    def cap(self) -> Budget:
        """The most that may ever be charged."""
        return self.caps.total

    @property
    def caps(self) -> Caps:
        """All caps: the data set's, the analysts' and the periods'."""
        return self._book.facts.caps

    @property
    def path(self) -> Path | str | None:
        """The file, or the database's address without a password."""
        return self._book.database.place

    @property
    def witness(self) -> Path | str | None:
        """The file or address of the witness, None where this handle names none."""
        return None if self._book.witness is None else self._book.witness.place

    @property
    def identity(self) -> str:
        """The random name that the account got when it was made."""
        return self._book.facts.identity

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All charges so far, in order, those of other processes included."""
        with self._reading() as (run, _):
            return tuple(line.entry for line in store.lines(run))

    @property
    def spent(self) -> Budget:
        """The exact sum of all charges."""
        with self._reading() as (_, last):
            return last.spent

    @property
    def remaining(self) -> Budget:
        """The cap less what is spent."""
        return self.cap - self.spent

    @property
    def head(self) -> str:
        """The chain's head: the number of entries, a colon, and the hash of the last."""
        with self._reading() as (_, last):
            return str(last.position)

    def charge(
        self, budget: Budget, what: str, unit: str = "", *, analyst: str | None = None
    ) -> Entry:
        """Take `budget` from the account, for good, before anything is read or drawn.

        Parameters
        ----------
        budget : Budget
        what : str
            What it pays for: public text, kept in the ledger.
        unit : str, optional
            Whom the charge protects, such as "replace-one, 1 row a person". Epsilons of different
            units do not add up to a promise to anyone, so one ledger keeps to one unit.
        analyst : str, optional
            Who asks; default: the handle's.

        Returns
        -------
        Entry

        Raises
        ------
        BudgetError
            If the charge does not fit under every cap, or its unit is not the account's; the
            account is then as it was.
        LedgerError
            If the account cannot be charged: damaged, rolled back, replaced, held for longer than
            `timeout`, not to be written to, on a full disk.
        """
        if not isinstance(budget, Budget):
            raise BudgetError("charge takes a Budget")
        asked = self._asked(budget, what, unit, analyst)
        line = self._book.charge(self._seen, asked, self._deadline())
        self._saw(line)
        _log.info("charged %s for %s: entry %d", budget, line.what, line.number)
        for receipt in _open.get():
            receipt.append((self._book.facts, line))
        return line.entry

    def check(self, budget: Budget, what: str, unit: str = "") -> None:
        """Raise what `charge` would raise now, and charge nothing."""
        asked = self._asked(budget, what, unit, None)
        database, facts = self._book.database, self._book.facts
        heard = self._book.heard(self._deadline())
        with self._reading() as (run, last):
            charging.check_home(run, facts, database.home(run), heard)
            now = database.now(run)
            charging.fitting(last, run, facts, facts.genesis.position, asked, now)

    def _asked(self, budget: Budget, what: str, unit: str, analyst: str | None) -> Line:
        name = self._analyst if analyst is None else clean(analyst, "analyst")
        return Line.asked(budget, what, unit, name)

    def spend(self, budget: Budget, what: str, release: Callable[[], _T]) -> _T:
        """Charge, then call `release` and return what it returns.

        If `release` raises, the charge stands: it may have read rows, and that it failed may say
        something about them.
        """
        self.charge(budget, what)
        return release()

    def for_analyst(self, name: str) -> Ledger:
        """Return a handle on the same account whose charges are this analyst's."""
        twin = object.__new__(type(self))
        for slot in Ledger.__slots__:
            setattr(twin, slot, getattr(self, slot))
        twin._analyst = clean(name, "analyst")
        return twin

    def verify(self, head: str | None = None) -> Verified:
        """Go through the whole book: hashes, sums, caps; and that it holds a head kept elsewhere.

        Parameters
        ----------
        head : str, optional
            A `head` seen earlier, by this handle or another, or from a release record.

        Raises
        ------
        LedgerError
            Naming the first entry that is wrong, or saying that the ledger was rolled back.
        """
        wanted = None if head is None else Position.read(head)
        with self._reading() as (run, _):
            self._book.database.check(run)
            return charging.verified(run, store.facts(run), wanted)

    def adopt(self, reason: str, *, witness: Place | None = None) -> Entry:
        """Let a ledger be charged where it lies now, after it was moved, copied or restored.

        The chain gets an entry that costs nothing and says so. Only do this when the other copy is
        gone for good: two copies spend the same budget twice.

        Parameters
        ----------
        reason : str
        witness : path-like or str, optional
            The ledger's witness from now on; default: the one that this handle was opened with, or
            none. A ledger that is behind its witness is opened without it and adopted with it: its
            lost entries are then given up, which the new entry says.
        """
        reason, book = clean(reason, "reason"), self._book
        if witness is not None:
            kept = witness_at(witness, book.database, True, self._timeout)
            book = replace(book, witness=kept)
        line = book.adopt(self._seen, reason, self._deadline())
        self._book = book
        self._saw(line)
        return line.entry

    def export(self) -> dict[str, Any]:
        """Return caps and entries with their heads, ready for JSON."""
        with self._reading() as (run, last):
            entries = [line.entry.to_dict() for line in store.lines(run)]
        return {
            "dpreg_ledger": store.FORMAT,
            "identity": self.identity,
            "caps": self.caps.to_dict(),
            "head": str(last.position),
            "entries": entries,
        }

    def close(self) -> None:
        """Do nothing: no file or connection is held open between uses."""

    def _deadline(self) -> float:
        return time.monotonic() + self._timeout

    def _saw(self, line: Line) -> None:
        """Keep the latest position; other threads may have seen later ones."""
        if line.number >= self._seen.number:
            self._seen = line.position

    @contextmanager
    def _reading(self) -> Iterator[tuple[Run, Line]]:
        """See one state of the account, which must not be older than what was seen."""
        with self._book.reading(self._seen, self._deadline()) as (run, last):
            self._saw(last)
            yield run, last

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by path: the copy is another handle."""
        if self.path is None:
            raise BudgetError("a ledger without a path cannot be copied or pickled: give it one")
        read_only = self._book.database.read_only
        given = (self._analyst or None, self.witness, read_only, self._timeout)
        return _again, (str(self.path), *given)

    def __repr__(self) -> str:
        """Show the account's state."""
        return f"<Ledger: {self.spent} spent of {self.cap}>"


def _again(
    path: str, analyst: str | None, witness: Place | None, read_only: bool, timeout: float
) -> Ledger:
    return Ledger.open(path, analyst=analyst, witness=witness, read_only=read_only, timeout=timeout)


@dataclass(frozen=True, slots=True)
class Quotation:
    """The price of a call: `budget`, what it is for, and whom it protects."""

    budget: Budget
    what: str
    unit: str


class _Stop(BaseException):
    """Ends a call at its charge, with the price; no handler of ordinary errors holds it up."""


class _Till(Ledger):
    """A ledger that charges nothing and stops whoever asks."""

    __slots__ = ()

    def charge(
        self, budget: Budget, what: str, unit: str = "", *, analyst: str | None = None
    ) -> Entry:
        """Stop with the price."""
        raise _Stop(Quotation(budget, what, unit))


def quote(call: Callable[..., Any], *arguments: Any, **options: Any) -> Quotation:
    """Return what a public call would charge; raise what it would raise before.

    Parameters
    ----------
    call : callable
        A public call of dpreg that takes ``budget=``.
    *arguments, **options
        Its arguments, but for `budget`.
    """
    try:
        call(*arguments, **{**options, "budget": _Till(0)})
    except _Stop as stop:
        price: Quotation = stop.args[0]
        return price
    raise ArgumentError("this call charges nothing")
