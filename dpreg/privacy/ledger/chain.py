"""A ledger's lines: what each says, and the chain of hashes that ties each to all before it.

A line holds the sums after it (of the account, of its analyst, of its period), so the next charge
needs the last line of each and never the whole book. The hash of a line covers these sums, its
own fields and the hash of the line before; the first line rests on the hash of the caps. Whoever
keeps one later hash can therefore tell whether the book still holds all that it held then.

The chain has no key. Someone who may write to the ledger can change a line and compute all hashes
after it anew: the book then agrees with itself, and disagrees with every head that somebody has
kept: in a handle, a release record, a log. Keep heads where that person cannot write.

What both databases share: the two tables, and how a line is found in and added to them.

Plain DB-API. The statements are a dozen and the same for SQLite and PostgreSQL but for the mark of
a parameter; what differs is how a transaction gets hold of the account, which is each database's
own affair and which no query builder hides. SQLAlchemy Core would be a dependency of every user
of SQLite, and would write the same dozen statements.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

from dpreg.errors import BudgetError, LedgerError, printable, shown
from dpreg.privacy.budget import NOTHING, Budget, exact

PERIODS: Final = ("day", "month", "quarter", "year")
_LARGEST: Final = 4000  # bits; a sum's denominator grows beyond only by charges of odd ratios
_LONGEST_NAME: Final = 200
_LONGEST_LABEL: Final = 10_000
_CANONICAL: Final = json.JSONEncoder(ensure_ascii=True, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge: what for, how much, when (UTC, ISO 8601), and whom it protects.

    `unit` is the neighbour relation and the rows a person may own; "" where the caller left it out.
    `analyst` and `period` name the accounts beside the data set's that it counts against; `number`
    counts from 1, and `head` is the ledger's head after it.
    """

    what: str
    budget: Budget
    when: str
    unit: str = ""
    analyst: str = ""
    period: str = ""
    number: int = 0
    head: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready mapping."""
        told = {name: getattr(self, name) for name in ("number", "what", "when", "unit", "analyst")}
        return {**told, "period": self.period, "head": self.head, **self.budget.to_dict()}


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a chain: how many lines, and the hash of the last. Printed as "12:3f0c..."."""

    number: int
    digest: str

    def __str__(self) -> str:
        """Write what `read` takes."""
        return f"{self.number}:{self.digest}"

    @classmethod
    def read(cls, text: object) -> Position:
        """Take what `str` wrote, else raise LedgerError."""
        number, _, digest = text.partition(":") if isinstance(text, str) else ("", "", "")
        whole = len(digest) == 64 and not set(digest) - set("0123456789abcdef")
        if not (number.isascii() and number.isdigit() and len(number) < 19 and whole):
            raise LedgerError(
                "a head is a number, a colon and 64 hexadecimal digits, as `Ledger.head` and "
                "`dpreg ledger show` print it"
            )
        return cls(int(number), digest)


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that may ever be charged: in all, by each analyst, in each period.

    Attributes
    ----------
    total : Budget
    analyst : Budget, mapping of names to budgets, or None
        One cap for every analyst, or one for each that is named; then nobody else may charge.
    period : Budget or None
    every : str
        The length of a period, of the UTC calendar: "day", "month", "quarter" or "year".
    """

    total: Budget
    analyst: Budget | Mapping[str, Budget] | None = None
    period: Budget | None = None
    every: str = "month"

    def __post_init__(self) -> None:
        """Take numbers as budgets, and reject invalid ones."""
        put = object.__setattr__
        put(self, "total", budget_of(self.total, "cap"))
        if isinstance(self.analyst, Mapping):
            named = {
                clean(name, "an analyst's name"): budget_of(value, f"analyst_cap[{name!r}]")
                for name, value in self.analyst.items()
            }
            put(self, "analyst", dict(sorted(named.items())))
        elif self.analyst is not None:
            put(self, "analyst", budget_of(self.analyst, "analyst_cap"))
        if self.period is not None:
            put(self, "period", budget_of(self.period, "period_cap"))
        if self.every not in PERIODS:
            raise BudgetError(
                f"period must be one of {', '.join(PERIODS)}; got {shown(self.every)}"
            )

    def of_analyst(self, name: str) -> Budget | None:
        """Return an analyst's cap, None where there is none; refuse who may not charge."""
        if self.analyst is None:
            return None
        if not name:
            raise BudgetError("this ledger has a cap for each analyst: say who asks by analyst=")
        if isinstance(self.analyst, Budget):
            return self.analyst
        if name not in self.analyst:
            raise BudgetError(f"{name!r} is not one of the analysts whom this ledger names")
        return self.analyst[name]

    def check_given(self, given: Caps) -> None:
        """Raise BudgetError where an account that exists has other caps than were given."""
        if self.total != given.total:
            raise BudgetError(f"the ledger at this path has the cap {self.total}")
        if given.analyst is not None and self.analyst != given.analyst:
            raise BudgetError("the ledger at this path has other caps for its analysts")
        if given.period is not None and (self.period, self.every) != (given.period, given.every):
            raise BudgetError("the ledger at this path has another cap for a period")

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready mapping from which `from_dict` makes equal caps."""
        told: dict[str, Any] = {"total": self.total.to_dict()}
        if isinstance(self.analyst, Budget):
            told["analyst"] = self.analyst.to_dict()
        elif self.analyst is not None:
            told["analysts"] = {name: cap.to_dict() for name, cap in self.analyst.items()}
        if self.period is not None:
            told |= {"period": self.period.to_dict(), "every": self.every}
        return told

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Caps:
        """Read what `to_dict` wrote."""
        analyst: Budget | Mapping[str, Budget] | None = None
        if "analyst" in told:
            analyst = Budget.from_dict(told["analyst"])
        elif "analysts" in told:
            analyst = {name: Budget.from_dict(cap) for name, cap in told["analysts"].items()}
        period = Budget.from_dict(told["period"]) if "period" in told else None
        return cls(Budget.from_dict(told["total"]), analyst, period, told.get("every", "month"))


@dataclass(frozen=True, slots=True)
class Line:
    """An entry as it is stored, with the sums after it and its place in the chain.

    One that is asked for has no place yet.

    Attributes
    ----------
    number : int
        From 1.
    token : str
        Random: tells whether a charge whose answer was lost is in the book.
    what, when, unit, analyst, period : str
    account_unit : str
        The unit that the account keeps to from here on; "" while no entry has named one.
    cost : Budget
    spent, by_analyst, in_period : Budget
        All charges of the account, of the analyst and of the period, this one included.
    previous, digest : str
        The hashes of the line before and of this one.
    """

    number: int = 0
    token: str = ""
    what: str = ""
    when: str = ""
    unit: str = ""
    analyst: str = ""
    period: str = ""
    account_unit: str = ""
    cost: Budget = NOTHING
    spent: Budget = NOTHING
    by_analyst: Budget = NOTHING
    in_period: Budget = NOTHING
    previous: str = ""
    digest: str = ""

    @classmethod
    def asked(cls, cost: Budget, what: object, unit: object, analyst: str) -> Line:
        """Return an entry that is asked for: a token of its own, and a short, printable label.

        BudgetError for a unit that cannot be printed, and so not stored everywhere.
        """
        whom = str(unit)
        if not whom.isprintable():
            raise BudgetError("unit must not hold control characters or unpaired surrogates")
        label = printable(str(what)[:_LONGEST_LABEL])
        return cls(token=secrets.token_hex(16), what=label, unit=whom, analyst=analyst, cost=cost)

    @classmethod
    def read(cls, row: tuple[Any, ...]) -> Line:
        """Read a row of the table. LedgerError if any of its fields, or its hash, was changed."""
        *cells, digest = row
        if _digest(cells) != digest:
            raise LedgerError(
                f"entry {row[0]} of the ledger has been edited: its hash does not match"
            )
        try:
            parts = [Fraction(*map(int, text.split("/"))) for text in cells[8:-1]]
            sums = [*map(Budget, parts[::2], parts[1::2])]
        except (ValueError, TypeError, ZeroDivisionError, AttributeError):
            raise LedgerError(f"entry {row[0]} of the ledger is damaged") from None
        return cls(*(*cells[:8], *sums, cells[-1], digest))

    def sealed(self) -> Line:
        """Return a new line with its hash."""
        return replace(self, digest=_digest(self.cells))

    @property
    def cells(self) -> list[str | int]:
        """The line as it stands in the table, before its hash."""
        sums = (self.cost, self.spent, self.by_analyst, self.in_period)
        texts = [fraction_text(part) for one in sums for part in (one.eps, one.delta)]
        named = (self.token, self.what, self.when, self.unit, self.analyst, self.period)
        return [self.number, *named, self.account_unit, *texts, self.previous]

    @property
    def position(self) -> Position:
        """The head of the chain at this line."""
        return Position(self.number, self.digest)

    @property
    def entry(self) -> Entry:
        """What users see of it."""
        return Entry(
            self.what, self.cost, self.when, self.unit, self.analyst, self.period, self.number,
            str(self.position),
        )  # fmt: skip


def budget_of(value: object, name: str) -> Budget:
    """Take a budget, or a number as an eps with delta = 0."""
    return value if isinstance(value, Budget) else Budget(exact(value, name, BudgetError))


def clean(name: object, role: str) -> str:
    """Return a name that can be stored and printed anywhere, else raise BudgetError."""
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME:
        raise BudgetError(f"{role} must be text of 1 to {_LONGEST_NAME} characters")
    if not name.isprintable():
        raise BudgetError(f"{role} must not hold control characters")
    return name


def period_of(when: datetime, every: str) -> str:
    """Name the calendar period of UTC that a time lies in: "2026-11", "2026-Q4", ..."""
    day = when.astimezone(UTC).strftime("%Y-%m-%d")
    quarter = f"{day[:4]}-Q{(int(day[5:7]) + 2) // 3}"
    return {"day": day, "month": day[:7], "quarter": quarter, "year": day[:4]}[every]


def fraction_text(value: Fraction) -> str:
    """Write a sum exactly; refuse one that would grow without end."""
    top, bottom = value.numerator, value.denominator
    if top.bit_length() > _LARGEST or bottom.bit_length() > _LARGEST:
        raise BudgetError(
            "the exact sum of this ledger's charges has too many digits: give eps and delta as "
            "short decimals"
        )
    return f"{top}/{bottom}"


def _digest(values: list[Any]) -> str:
    return hashlib.sha256(_CANONICAL.encode(values).encode("ascii")).hexdigest()


FORMAT: Final = 2
"""The version of the tables. 0.1 of dpreg kept ledgers as JSON, format 1."""

_TEXTS: Final = (
    *("token", "what", "at", "unit", "analyst", "period", "account_unit", "eps", "delta"),
    *("spent_eps", "spent_delta", "analyst_eps", "analyst_delta", "period_eps", "period_delta"),
    *("previous", "hash"),
)
"""The columns of the entries' table, after the number: the cells of a `Line`."""
_CREATE: Final = (
    "CREATE TABLE dpreg_ledger (id INTEGER PRIMARY KEY CHECK (id = 1), format INTEGER NOT NULL,"
    " identity TEXT NOT NULL, caps TEXT NOT NULL, home TEXT NOT NULL)",
    "CREATE TABLE dpreg_entries (number INTEGER PRIMARY KEY, "
    + ", ".join(f"{name} TEXT NOT NULL" for name in _TEXTS)
    + ")",
    "CREATE INDEX dpreg_by_analyst ON dpreg_entries (analyst, number) WHERE analyst <> ''",
    "CREATE INDEX dpreg_by_period ON dpreg_entries (period, number) WHERE period <> ''",
)
_COLUMNS: Final = ", ".join(("number", *_TEXTS))
_SELECT: Final = f"SELECT {_COLUMNS} FROM dpreg_entries"
_INSERT: Final = f"INSERT INTO dpreg_entries ({_COLUMNS}) VALUES ({', '.join('?' * 18)})"
_LAST: Final = "ORDER BY number DESC LIMIT 1"


class Run(Protocol):
    """Runs one statement inside a transaction; parameters are marked by "?"."""

    def __call__(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows, none for a statement that gives none."""


class Database:
    """A connection to the database of one ledger, or of its witness.

    Whatever the database's library raises comes out as a LedgerError.

    Attributes
    ----------
    place : Path, str or None
        Where the account lies, for users and for opening it anew: a file, a server's address
        without a password, or nowhere but in this process.
    role : {"ledger", "witness"}
        What messages call it.
    read_only : bool
    begin : (str, str)
        The statements that begin a transaction that writes, and one that reads.
    """

    begin: ClassVar[tuple[str, str]] = ("BEGIN", "BEGIN")

    def __init__(self, place: Path | str | None, role: str, *, read_only: bool = False) -> None:
        self.place, self.role, self.read_only = place, role, read_only

    def writing(self, deadline: float) -> AbstractContextManager[Run]:
        """Hold the account alone: commit at the end of the block, undo if it raises.

        When the block is left without an error, what it wrote is on the disk. `deadline` is a time
        of `time.monotonic`.
        """
        if self.read_only:
            raise LedgerError("this ledger was opened for reading: nothing can be charged")
        return self.transaction(self.begin[0], deadline)

    def reading(self, deadline: float) -> AbstractContextManager[Run]:
        """See the account at one moment, beside whoever writes."""
        return self.transaction(self.begin[1], deadline)

    def transaction(self, begin: str, deadline: float) -> AbstractContextManager[Run]:
        """Run statements together."""
        raise NotImplementedError

    def there(self, deadline: float) -> bool:
        """Tell whether there is an account."""
        return False

    def make(self, fill: Callable[[Run, str], object], deadline: float) -> None:
        """Make one unless there is one: `fill` gets a transaction and the account's home."""
        with self.writing(deadline) as run:
            fill(run, self.home(run))

    def home(self, run: Run) -> str:
        """Tell which file or which tables these are: a copy has another home."""
        return ""

    def now(self, run: Run) -> datetime:
        """Tell the time, by the clock that all users of the account share if there is one."""
        return datetime.now(UTC)

    def check(self, run: Run) -> None:
        """Let the database look for damage by its own means, if it has any."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What holds for a ledger as long as it lives, and where it lies."""

    identity: str
    caps: Caps
    home: str

    @property
    def genesis(self) -> Line:
        """What stands before the first line: nothing is spent, and the head is the caps' hash."""
        return Line(digest=_digest(["dpreg ledger", self.identity, self.caps.to_dict()]))


def create(run: Run, caps: Caps, home: str) -> None:
    """Make the tables of a new account."""
    for statement in _CREATE:
        run(statement)
    told = json.dumps(caps.to_dict(), sort_keys=True)
    identity = secrets.token_hex(16)
    run("INSERT INTO dpreg_ledger VALUES (1, ?, ?, ?, ?)", (FORMAT, identity, told, home))


def facts(run: Run) -> Facts:
    """Read what holds for the ledger, and see that the first line rests on it."""
    rows = run("SELECT format, identity, caps, home FROM dpreg_ledger")
    if len(rows) != 1:
        raise LedgerError("the ledger is damaged: its caps are missing")
    version, identity, caps, home = rows[0]
    if version != FORMAT:
        raise LedgerError(
            f"the ledger is in format {version} and this dpreg knows {FORMAT}: use a newer dpreg"
        )
    try:
        found = Facts(identity, Caps.from_dict(json.loads(caps)), home)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise LedgerError("the ledger is damaged: its caps cannot be read") from None
    first = run(f"{_SELECT} WHERE number = 1")
    if first and Line.read(first[0]).previous != found.genesis.digest:
        raise LedgerError("the ledger's caps have been edited: its first entry rests on others")
    return found


def move(run: Run, home: str) -> None:
    """Note where the account lies from now on."""
    run("UPDATE dpreg_ledger SET home = ? WHERE id = 1", (home,))


def last(run: Run, column: str = "", value: str = "") -> Line | None:
    """Return the last line, or the last of an analyst or a period; None where there is none."""
    where = f"WHERE {column} = ? AND {column} <> ''" if column else ""
    rows = run(f"{_SELECT} {where} {_LAST}", (value,) if column else ())
    return Line.read(rows[0]) if rows else None


def stored_digest(run: Run, number: int) -> str | None:
    """Return the hash of the line of a number, None where there is none."""
    rows = run("SELECT hash FROM dpreg_entries WHERE number = ?", (number,))
    return str(rows[0][0]) if rows else None


def find(run: Run, token: str, after: int) -> Line | None:
    """Return the line that holds a token, if it is one of those after a number."""
    rows = run(f"{_SELECT} WHERE token = ? AND number > ?", (token, after))
    return Line.read(rows[0]) if rows else None


def lines(run: Run, size: int = 1000) -> Iterator[Line]:
    """Go through all lines in order, a few at a time."""
    after = -1
    while rows := run(f"{_SELECT} WHERE number > ? ORDER BY number LIMIT ?", (after, size)):
        for row in rows:
            yield Line.read(row)
        after = rows[-1][0]


def write(run: Run, line: Line) -> None:
    """Add a line."""
    run(_INSERT, (*line.cells, line.digest))
