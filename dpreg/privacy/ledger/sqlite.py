"""A ledger in an SQLite file, on SQLite's own locks.

The file keeps a write-ahead log (`journal_mode = WAL`, set once, kept in the file) and every commit
is synced (`synchronous = EXTRA`, which is FULL with a log and as safe without one). A writer begins
with `BEGIN IMMEDIATE`, which one connection at a time is granted; a reader with `BEGIN` sees one
state. Who is killed lets go of its locks, and the next to open the file undoes what it left open.

A connection lives as long as its transaction. So nothing is held between uses that a fork could
inherit, that would hide a file written over, or that a copy of the file would lack: the last
connection to close writes the log back.

Transactions of SQLite, and what its errors are called here.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from dpreg.errors import LedgerError
from dpreg.paths import catalogue, identity, ordinary, reason, sync_folder
from dpreg.privacy.ledger.chain import Database, Run

_BRIEF: Final = 0.05  # seconds in C, where an interrupt waits
_TOLD: Final = catalogue("told.toml", __package__)["sqlite"]


@contextmanager
def transaction(
    connection: sqlite3.Connection, begin: str, deadline: float, role: str
) -> Iterator[Run]:
    """Begin, waiting until a deadline; commit at the end of the block, undo if it raises."""

    def run(statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with as_ledger_errors(role):
            return connection.execute(statement, values).fetchall()

    with as_ledger_errors(role):
        _retry(connection, "PRAGMA synchronous = EXTRA", deadline)  # which reads the file, too
        _retry(connection, begin, deadline)
        try:
            _retry(connection, "SELECT count(*) FROM sqlite_master", deadline)  # now it has begun
            yield run
            _retry(connection, "COMMIT", deadline)
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _retry(connection: sqlite3.Connection, statement: str, deadline: float) -> None:
    """Run a statement that may find the database locked, until a deadline."""
    while True:
        try:
            connection.execute(statement).fetchall()
            return
        except sqlite3.OperationalError as fault:
            busy = getattr(fault, "sqlite_errorname", "").startswith("SQLITE_BUSY")
            if not busy or time.monotonic() > deadline:
                raise


@contextmanager
def as_ledger_errors(role: str = "ledger") -> Iterator[None]:
    """Raise what SQLite says as a LedgerError."""
    try:
        yield
    except sqlite3.Error as fault:
        name = getattr(fault, "sqlite_errorname", "")
        told = next(text for kind, text in _TOLD.items() if re.match(kind, name))
        raise LedgerError(told.replace("ledger", role)) from None


def connected(file: Path, mode: str) -> sqlite3.Connection:
    """Open a file."""
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(file))}{mode}", uri=True, isolation_level=None, timeout=_BRIEF
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


_MAKING: Final = 30.0  # seconds that another may take to make a ledger in the same folder
_uses: Final[list[tuple[int, tuple[int, int]]]] = []
"""Process and file of each open connection, so that a fork knows those that it inherited."""


class MemoryDatabase(Database):
    """A ledger in this process alone, each a new one; its threads take turns."""

    def __init__(self) -> None:
        super().__init__(None, "ledger")
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False
        )
        self._owner, self._lock = os.getpid(), threading.Lock()

    @contextmanager
    def transaction(self, begin: str, deadline: float) -> Iterator[Run]:
        """Run statements that are undone if the block raises."""
        if os.getpid() != self._owner:
            raise LedgerError("this ledger belongs to another process: give it a path")
        with self._lock, transaction(self._connection, begin, deadline, self.role) as run:
            yield run

    def __del__(self) -> None:
        """Let the account go."""
        self._connection.close()


class SqliteDatabase(Database):
    """A ledger, or a ledger's witness, in a file.

    Parameters
    ----------
    path : path-like
        Every link is followed, so that all names of the account are one account.
    role : {"ledger", "witness"}
        What messages call it.
    read_only : bool

    Raises
    ------
    LedgerError
        Where the name is no file's, or the file has a second name.
    """

    begin = ("BEGIN IMMEDIATE", "BEGIN")

    def __init__(
        self, path: str | os.PathLike[str], role: str = "ledger", *, read_only: bool = False
    ) -> None:
        found = ordinary(path, LedgerError)
        self.file = Path(os.path.realpath(path)) if found is None else found
        super().__init__(self.file, role, read_only=read_only)
        self._opened = None if found is None else self._identity()

    @contextmanager
    def transaction(self, begin: str, deadline: float) -> Iterator[Run]:
        """Take the lock, or read a snapshot; commit with a sync."""
        file = self._identity()
        if file != self._opened:
            raise LedgerError(
                f"the {self.role}'s file {str(self.file)!r} has been replaced since it was opened: "
                "charges made since may be missing from it; compare it with "
                "`dpreg ledger verify --head`"
            )
        with (
            _used(file),
            as_ledger_errors(self.role),
            closing(self._connection()) as connection,
            transaction(connection, begin, deadline, self.role) as run,
        ):
            for ending in ("-wal", "-shm"):
                with suppress(FileNotFoundError):
                    _share_with_group(f"{self.file}{ending}", self.file)
            yield run

    def _connection(self) -> sqlite3.Connection:
        writable = all(os.access(one, os.W_OK) for one in (self.file, self.file.parent))
        if not writable and not os.path.exists(f"{self.file}-wal"):
            # This user cannot make the log that reading takes, and all that was written is here.
            return connected(self.file, "?mode=ro&immutable=1")
        return connected(self.file, "?mode=ro" if self.read_only else "?mode=rw")

    def there(self, deadline: float) -> bool:
        """Tell whether the file was there."""
        return self._opened is not None

    def make(self, fill: Callable[[Run, str], object], deadline: float) -> None:
        """Make the file, unless there is one now."""
        _make_file(self.file, fill, self.role)
        self._opened = self._identity()

    def home(self, run: Run) -> str:
        """Return the file's number on its disk, which renaming keeps and copying does not."""
        return f"inode {self._identity()[1]}"

    def check(self, run: Run) -> None:
        """Let SQLite look at every page."""
        if run("PRAGMA quick_check(1)") != [("ok",)]:
            raise LedgerError("the ledger is damaged: SQLite's check of its pages fails")

    def _identity(self) -> tuple[int, int]:
        """Return device and number of the file at this path; refuse a second name."""
        try:
            found = os.stat(self.file)
        except OSError as fault:
            raise LedgerError(
                f"the {self.role} {str(self.file)!r} is gone, or cannot be opened: {reason(fault)}"
            ) from None
        if found.st_nlink > 1:
            raise LedgerError(
                f"the {self.role}'s file has a second name (a hard link), and what is charged "
                "under one name may be missing under the other: remove the link"
            )
        return identity(found)


@contextmanager
def _used(file: tuple[int, int]) -> Iterator[None]:
    """Use a file, unless this process was forked while its parent did.

    SQLite keeps in a process's memory what that process has locked. A fork has a copy of it and
    none of the locks: whatever it opened of the same file would go in unlocked.
    """
    process = os.getpid()
    if any(file == one and owner != process for owner, one in tuple(_uses)):
        raise LedgerError(
            "this process was forked while the ledger was in use, so it cannot use the ledger "
            "safely: start the process anew instead of forking"
        )
    _uses.append((process, file))
    try:
        yield
    finally:
        _uses.remove((process, file))


def _make_file(file: Path, fill: Callable[[Run, str], object], role: str) -> None:
    """Make a file at a path where there is none; leave one that is there alone.

    It is made under another name, synced and renamed, so no other process sees it half made.
    """
    made = file.with_name(f".{file.name[:100]}.{os.urandom(8).hex()}")
    try:
        os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        with as_ledger_errors(role), closing(connected(made, "?mode=rw")) as connection:
            with transaction(connection, "BEGIN IMMEDIATE", time.monotonic() + 10, role) as run:
                fill(run, f"inode {made.stat().st_ino}")
            if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise LedgerError("this file system cannot hold a ledger: SQLite's log fails there")
        _place(made, file)
    except OSError as fault:
        raise LedgerError(f"no {role} can be made at {str(file)!r}: {reason(fault)}") from None
    finally:
        for ending in ("", "-wal", "-shm"):
            with suppress(OSError):
                made.with_name(made.name + ending).unlink()


def _place(made: Path, file: Path) -> None:
    """Rename a new file to its place, unless there is one now."""
    if sys.platform == "win32":
        with suppress(FileExistsError):
            made.rename(file)
        return
    import fcntl

    # Renaming would replace a ledger that another process has just made.
    guard, deadline = os.open(file.parent, os.O_RDONLY), time.monotonic() + _MAKING
    try:
        while True:
            try:
                fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LedgerError(
                        f"another process keeps the folder {str(file.parent)!r} locked: no ledger "
                        "was made"
                    ) from None
                time.sleep(0.01)
        if not os.path.lexists(file):
            made.rename(file)
            sync_folder(file.parent)
        fcntl.flock(guard, fcntl.LOCK_UN)  # a fork may hold the folder open, and so the lock
    finally:
        os.close(guard)


def _share_with_group(beside: str, file: Path) -> None:
    """Give what SQLite keeps beside a file the file's own mode and group.

    A user who did not make it and may not change it leaves it as it is.
    """
    wanted, found = os.stat(file), os.stat(beside)
    if sys.platform == "win32" or found.st_uid != os.geteuid():
        return
    if found.st_gid != wanted.st_gid:
        try:
            os.chown(beside, -1, wanted.st_gid)
        except PermissionError:
            return  # not a member of that group
    if found.st_mode & 0o777 != wanted.st_mode & 0o777:
        os.chmod(beside, wanted.st_mode & 0o777)
