"""A ledger in a PostgreSQL database, through psycopg (the extra `postgres`).

An analyst's role needs SELECT on `dpreg_ledger` and `dpreg_entries` and INSERT on the latter, and
should have no more: then the server itself keeps analysts from editing the book. The tables are
looked for in the connection's search path, so one database may hold several ledgers, each in a
schema of its own (``postgresql://host/base?options=-csearch_path%3Dhouses``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, Final

from dpreg.errors import BudgetError, LedgerError
from dpreg.privacy.ledger.chain import Caps
from dpreg.privacy.ledger.forks import Shared
from dpreg.privacy.ledger.store import Run, create

__all__ = [
    "LostConnection",
    "PostgresDatabase",
    "has_tables",
    "is_url",
    "make_tables",
    "without_password",
]

_SCHEMES: Final = ("postgresql://", "postgres://")
_LOCK: Final = 0x64707267  # "dprg": the first half of the lock's name, the table is the other
_HOLD: Final = (
    f"SELECT pg_advisory_xact_lock({_LOCK}, 'dpreg_entries'::regclass::oid::bigint::int4)"
)
_SLOW: Final = 60.0


class LostConnection(LedgerError):
    """The server went away; whether the transaction was committed is not known."""


def is_url(place: object) -> bool:
    """Tell whether a ledger's place names a PostgreSQL database."""
    return isinstance(place, str) and place.startswith(_SCHEMES)


class PostgresDatabase:
    """A ledger's tables on a server.

    Parameters
    ----------
    url : str
        As libpq takes it. A password is better kept in ``~/.pgpass`` or ``PGPASSWORD``: messages
        and pickles leave it out.
    read_only : bool
    timeout : float
        Seconds to wait for the server.
    """

    def __init__(self, url: str, *, read_only: bool = False, timeout: float = 30.0) -> None:
        psycopg = _library()
        self._url = url
        self._read_only = read_only
        self._timeout = timeout
        self._errors: type[Exception] = psycopg.Error
        self._shared = Shared()
        try:
            psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error:
            raise BudgetError("this is not the address of a PostgreSQL database") from None
        self.place = without_password(url)
        with self._as_ledger_errors():
            self._connect()

    @contextmanager
    def writing(self, deadline: float) -> Iterator[Run]:
        """Hold the account's lock, which serves in turn; commit synchronously."""
        if self._read_only:
            raise LedgerError("this ledger was opened for reading: nothing can be charged")
        with self._transaction(deadline, "BEGIN ISOLATION LEVEL READ COMMITTED") as run:
            run(_HOLD)
            yield run

    @contextmanager
    def reading(self, deadline: float) -> Iterator[Run]:
        """Read one snapshot."""
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
        with self._transaction(deadline, begin) as run:
            yield run

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

    def check(self, run: Run) -> None:
        """Leave the server's pages to the server."""

    def close(self) -> None:
        """Close the connection."""
        with suppress(self._errors):
            self._shared.close()

    def __del__(self) -> None:
        """Close with the last handle."""
        if hasattr(self, "_shared"):
            self.close()

    @contextmanager
    def _transaction(self, deadline: float, begin: str) -> Iterator[Run]:
        connection = self._begun(begin, deadline)

        def run(statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
            with self._as_ledger_errors():
                cursor = connection.execute(statement.replace("?", "%s").encode(), values)
                return cursor.fetchall() if cursor.description else []

        try:
            yield run
            with self._as_ledger_errors():
                connection.execute(b"COMMIT")
        except BaseException:
            # An interrupted or broken connection is given up: the server undoes what is open.
            try:
                connection.execute(b"ROLLBACK")
            except self._errors:
                self.close()
            raise

    def _begun(self, begin: str, deadline: float) -> Any:
        """Begin a transaction, on a new connection where the old one was cut meanwhile."""
        while True:
            was_open = self._shared.mine()
            try:
                with self._as_ledger_errors():
                    connection = self._connect()
                    left = max(int(1000 * (deadline - time.monotonic())), 1)
                    connection.execute(begin.encode())
                    connection.execute(f"SET LOCAL lock_timeout = {left}".encode())
                    return connection
            except LostConnection:
                self.close()
                if not was_open:
                    raise

    def _connect(self) -> Any:
        import psycopg

        if not self._shared.mine() or self._shared.connection.closed:
            seconds = max(int(min(self._timeout, _SLOW)), 2)
            made = psycopg.connect(
                self._url, autocommit=True, connect_timeout=seconds, application_name="dpreg",
            )  # fmt: skip
            made.prepare_threshold = 2
            # A server may answer before it has written; this account must not.
            made.execute(
                b"SELECT set_config('synchronous_commit', 'on', false)"
                b" WHERE current_setting('synchronous_commit') = 'off'"
            )
            self._shared.connection = made
        return self._shared.connection

    @contextmanager
    def _as_ledger_errors(self) -> Iterator[None]:
        try:
            yield
        except self._errors as fault:
            raise _told(fault, self._shared.connection) from None


def make_tables(database: PostgresDatabase, caps: Caps, deadline: float) -> None:
    """Make the tables of a new ledger, unless they are there."""
    with database._transaction(deadline, "BEGIN") as run:
        run(f"SELECT pg_advisory_xact_lock({_LOCK}, 0)")  # no two at once
        if has_tables(run):
            return
        create(run, caps, "")
        run("UPDATE dpreg_ledger SET home = ?", (database.home(run),))


def has_tables(run: Run) -> bool:
    """Tell whether the search path leads to a ledger."""
    return run("SELECT to_regclass('dpreg_ledger') IS NOT NULL") == [(True,)]


def _library() -> Any:
    try:
        import psycopg
    except ImportError:
        raise BudgetError(
            "a ledger in PostgreSQL needs psycopg, which is an extra: run "
            "`pip install dpreg[postgres]`"
        ) from None
    return psycopg


def without_password(url: str) -> str:
    """Leave the password out of an address, wherever it stands in it."""
    from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    query = urlencode([pair for pair in parse_qsl(parts.query) if pair[0] != "password"])
    netloc = user.partition(":")[0] + at + host
    return urlunsplit((parts.scheme, netloc, parts.path, query, ""))


def _told(fault: Any, connection: Any) -> LedgerError:
    import psycopg

    code = fault.sqlstate or ""
    if isinstance(fault, psycopg.errors.LockNotAvailable):
        return LedgerError(
            "the ledger has been held by another connection all the time that this call may wait "
            "(its timeout); nothing was charged: try again, or look for a process that is stopped"
        )
    if isinstance(fault, psycopg.errors.InsufficientPrivilege):
        return LedgerError("this role may not do that to the ledger: nothing was charged")
    if isinstance(fault, psycopg.errors.ReadOnlySqlTransaction):
        return LedgerError("this server is read-only: nothing was charged")
    if isinstance(fault, psycopg.errors.UndefinedTable):
        return LedgerError("there is no ledger in this database: make it with Ledger(cap, url)")
    if isinstance(fault, psycopg.errors.UniqueViolation):
        return LedgerError("the ledger was written to past its lock: nothing was charged")
    if code.startswith("53"):
        return LedgerError("the server is out of disk, memory or connections: nothing was charged")
    broken = connection is None or connection.closed or connection.broken
    if broken or isinstance(fault, psycopg.OperationalError) or code.startswith(("57P", "08")):
        return LostConnection("the ledger's server cannot be reached, or has hung up")
    return LedgerError(f"the ledger's server refused (SQLSTATE {code or 'unknown'})")
