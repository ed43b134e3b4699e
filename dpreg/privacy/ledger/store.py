"""What both databases share: the two tables, and how a line is found in and added to them.

Plain DB-API. The statements are a dozen and the same for SQLite and PostgreSQL but for the mark of
a parameter; what differs is how a transaction gets hold of the account, which is each database's
own affair and which no query builder hides. SQLAlchemy Core would be a dependency of every user
of SQLite, and would write the same dozen statements.

Tested in `tests/privacy/ledger/test_handle.py`.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from dpreg.errors import LedgerError
from dpreg.privacy.ledger.chain import Caps, Line, Position

__all__ = ["Database", "Facts", "Run", "create", "facts", "last", "lines", "stored_digest", "write"]

FORMAT: Final = 2
"""The version of the tables. 0.1 of dpreg kept ledgers as JSON, format 1."""

_CREATE: Final = (
    "CREATE TABLE dpreg_ledger (id INTEGER PRIMARY KEY CHECK (id = 1), format INTEGER NOT NULL,"
    " identity TEXT NOT NULL, caps TEXT NOT NULL, home TEXT NOT NULL)",
    "CREATE TABLE dpreg_entries (number INTEGER PRIMARY KEY, token TEXT NOT NULL,"
    " what TEXT NOT NULL, at TEXT NOT NULL, unit TEXT NOT NULL, analyst TEXT NOT NULL,"
    " period TEXT NOT NULL, account_unit TEXT NOT NULL, eps TEXT NOT NULL, delta TEXT NOT NULL,"
    " spent_eps TEXT NOT NULL, spent_delta TEXT NOT NULL, analyst_eps TEXT NOT NULL,"
    " analyst_delta TEXT NOT NULL, period_eps TEXT NOT NULL, period_delta TEXT NOT NULL,"
    " previous TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE INDEX dpreg_by_analyst ON dpreg_entries (analyst, number) WHERE analyst <> ''",
    "CREATE INDEX dpreg_by_period ON dpreg_entries (period, number) WHERE period <> ''",
)
_COLUMNS: Final = (
    "number, token, what, at, unit, analyst, period, account_unit, eps, delta, spent_eps,"
    " spent_delta, analyst_eps, analyst_delta, period_eps, period_delta, previous, hash"
)
_SELECT: Final = f"SELECT {_COLUMNS} FROM dpreg_entries"
_INSERT: Final = f"INSERT INTO dpreg_entries ({_COLUMNS}) VALUES ({', '.join('?' * 18)})"
_LAST: Final = "ORDER BY number DESC LIMIT 1"


class Run(Protocol):
    """Runs one statement inside a transaction; parameters are marked by "?"."""

    def __call__(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows, none for a statement that gives none."""


class Database(Protocol):
    """A connection to the database of one ledger.

    Whatever the database's library raises comes out as a LedgerError.
    """

    @property
    def place(self) -> str:
        """Where the account lies, for messages and for opening it anew; no password."""

    def there(self, deadline: float) -> bool:
        """Tell whether there is an account."""

    def make(self, fill: Callable[[Run, str], object], deadline: float) -> None:
        """Make one unless there is one: `fill` gets a transaction and the account's home."""

    def writing(self, deadline: float) -> AbstractContextManager[Run]:
        """Hold the account alone: commit at the end of the block, undo if it raises.

        When the block is left without an error, what it wrote is on the disk. `deadline` is a time
        of `time.monotonic`.
        """

    def reading(self, deadline: float) -> AbstractContextManager[Run]:
        """See the account at one moment."""

    def home(self, run: Run) -> str:
        """Tell which file or which tables these are: a copy has another home."""

    def now(self, run: Run) -> datetime:
        """Tell the time, by the clock that all users of the account share if there is one."""

    def check(self, run: Run) -> None:
        """Let the database look for damage by its own means."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What holds for a ledger as long as it lives, and where it was made."""

    identity: str
    caps: Caps
    home: str

    @property
    def genesis(self) -> Position:
        """The head before the first line."""
        return self.caps.genesis(self.identity)


def create(run: Run, caps: Caps, home: str) -> None:
    """Make the tables of a new account."""
    for statement in _CREATE:
        run(statement)
    told = json.dumps(caps.to_dict(), sort_keys=True)
    identity = secrets.token_hex(16)
    run("INSERT INTO dpreg_ledger VALUES (1, ?, ?, ?, ?)", (FORMAT, identity, told, home))


def facts(run: Run) -> Facts:
    """Read what holds for the ledger, and see that the first line rests on it."""
    version, identity, caps, home = _only(
        run("SELECT format, identity, caps, home FROM dpreg_ledger")
    )
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


def _only(rows: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    if len(rows) != 1:
        raise LedgerError("the ledger is damaged: its caps are missing")
    return rows[0]


def settled(run: Run) -> tuple[str, str]:
    """Return the account's identity, and where it lies."""
    identity, home = _only(run("SELECT identity, home FROM dpreg_ledger"))
    return identity, home


def move(run: Run, home: str) -> None:
    """Note where the account lies from now on."""
    run("UPDATE dpreg_ledger SET home = ? WHERE id = 1", (home,))


def last(run: Run, column: str = "", value: str = "") -> Line | None:
    """Return the last line, or the last of an analyst or a period; None where there is none."""
    if column not in ("", "analyst", "period"):
        raise ValueError(column)
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
    run(_INSERT, line.row())
