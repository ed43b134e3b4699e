"""A ledger in a PostgreSQL database, through psycopg (the extra `postgres`).

Whoever writes holds PostgreSQL's advisory lock of the transaction on the account's table: the
server serves in turn and lets go at the end, however it ends. A row lock would need the right to
UPDATE. An analyst's role needs SELECT on `dpreg_ledger` and `dpreg_entries` and INSERT on the
latter (for a witness, both on `dpreg_witness`), and should have no more: then the server itself
keeps analysts from editing the book. The tables are looked for in the connection's search path, so
one database may hold several ledgers, each in a schema of its own
(``postgresql://host/base?options=-csearch_path%3Dhouses``).

A connection lives as long as its transaction, so no fork inherits one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any, Final

from dpreg.errors import BudgetError, LedgerError
from dpreg.paths import catalogue
from dpreg.privacy.ledger.chain import Database, Run

_SCHEMES: Final = ("postgresql://", "postgres://")
_LOCK: Final = 0x64707267  # "dprg": the first half of the lock's name, the table is the other
_SLOW: Final = 60.0
_TOLD: Final = catalogue("told.toml", __package__)["postgres"]
_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"


class LostConnection(LedgerError):
    """The server went away; whether the transaction was committed is not known."""


def is_url(place: object) -> bool:
    """Tell whether a ledger's place names a PostgreSQL database."""
    return isinstance(place, str) and place.startswith(_SCHEMES)


class PostgresDatabase(Database):
    """The tables of a ledger, or of a ledger's witness, on a server.

    Parameters
    ----------
    url : str
        As libpq takes it. A password is better kept in ``~/.pgpass`` or ``PGPASSWORD``: messages
        and pickles leave it out.
    role : {"ledger", "witness"}
    read_only : bool
    timeout : float
        Seconds to wait for the server.
    """

    begin = ("BEGIN ISOLATION LEVEL READ COMMITTED", _SNAPSHOT)

    def __init__(
        self, url: str, role: str = "ledger", *, read_only: bool = False, timeout: float = 30.0
    ) -> None:
        self._psycopg = _library()
        self._url, self._timeout = url, timeout
        self._table = "dpreg_entries" if role == "ledger" else "dpreg_witness"
        try:
            self._psycopg.conninfo.conninfo_to_dict(url)
        except self._psycopg.Error:
            raise BudgetError("this is not the address of a PostgreSQL database") from None
        super().__init__(_without_password(url), role, read_only=read_only)

    def there(self, deadline: float) -> bool:
        """Tell whether the search path leads to the tables."""
        with self.reading(deadline) as run:
            return self._has_tables(run)

    def make(self, fill: Callable[[Run, str], object], deadline: float) -> None:
        """Make the tables, unless they are there."""
        with self.transaction("BEGIN", deadline) as run:
            run(f"SELECT pg_advisory_xact_lock({_LOCK}, 0)")  # no two at once
            if not self._has_tables(run):
                fill(run, "")
                if self.role == "ledger":
                    run("UPDATE dpreg_ledger SET home = ? || home", (self.home(run),))

    def _has_tables(self, run: Run) -> bool:
        return run("SELECT to_regclass(?) IS NOT NULL", (self._table,)) == [(True,)]

    def home(self, run: Run) -> str:
        """Return the numbers of database and table, which a dump or a template changes."""
        found = run(
            "SELECT d.oid::bigint, 'dpreg_entries'::regclass::oid::bigint FROM pg_database d"
            " WHERE d.datname = current_database()"
        )
        return f"database {found[0][0]} table {found[0][1]}"

    def now(self, run: Run) -> datetime:
        """Return the server's time, which all analysts share."""
        found: datetime = run("SELECT clock_timestamp()")[0][0]
        return found

    @contextmanager
    def transaction(self, begin: str, deadline: float) -> Iterator[Run]:
        """Commit synchronously; whoever may write holds the account's lock."""
        with self._as_ledger_errors():
            seconds = max(int(min(self._timeout, _SLOW)), 2)
            connection = self._psycopg.connect(
                self._url, autocommit=True, connect_timeout=seconds, application_name="dpreg"
            )

        def run(statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
            with self._as_ledger_errors(connection):
                cursor = connection.execute(statement.replace("?", "%s").encode(), values)
                return cursor.fetchall() if cursor.description else []

        with closing(connection):  # the server undoes what was not committed
            run(begin)
            run(f"SET LOCAL lock_timeout = {max(int(1000 * (deadline - time.monotonic())), 1)}")
            # A server may answer before it has written; this account must not.
            run(
                "SELECT set_config('synchronous_commit', 'on', true)"
                " WHERE current_setting('synchronous_commit') = 'off'"
            )
            if begin == self.begin[0]:
                table = f"'{self._table}'::regclass::oid::bigint::int4"
                run(f"SELECT pg_advisory_xact_lock({_LOCK}, {table})")
            yield run
            run("COMMIT")

    @contextmanager
    def _as_ledger_errors(self, connection: Any = None) -> Iterator[None]:
        try:
            yield
        except self._psycopg.Error as fault:
            raise _told(fault, self._psycopg.OperationalError, connection, self.role) from None


def _library() -> Any:
    try:
        import psycopg
    except ImportError:
        raise BudgetError(
            "a ledger in PostgreSQL needs psycopg, which is an extra: run "
            "`pip install dpreg[postgres]`"
        ) from None
    return psycopg


def _without_password(url: str) -> str:
    """Leave the password out of an address, wherever it stands in it."""
    from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    query = urlencode([pair for pair in parse_qsl(parts.query) if pair[0] != "password"])
    netloc = user.partition(":")[0] + at + host
    return urlunsplit((parts.scheme, netloc, parts.path, query, ""))


def _told(fault: Any, operational: type[Exception], connection: Any, role: str) -> LedgerError:
    code = fault.sqlstate or ""
    told = _TOLD.get(code, _TOLD.get(code[:2]))
    if told is not None:
        return LedgerError(told.replace("the ledger", f"the {role}"))
    broken = connection is None or connection.closed or connection.broken
    if broken or code.startswith(("57P", "08")) or isinstance(fault, operational):
        return LostConnection(f"the {role}'s server cannot be reached, or has hung up")
    return LedgerError(f"the {role}'s server refused (SQLSTATE {code})")
