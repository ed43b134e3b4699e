"""A ledger in an SQLite file: write-ahead log, synced at each commit, one writer at a time."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from dpreg.errors import LedgerError
from dpreg.paths import identity, ordinary, reason, sync_folder
from dpreg.privacy.ledger.chain import Caps
from dpreg.privacy.ledger.forks import Shared
from dpreg.privacy.ledger.guard import take_flock
from dpreg.privacy.ledger.queue import Queue, Turn, share_with_group
from dpreg.privacy.ledger.store import Run, create
from dpreg.privacy.ledger.transactions import alone, as_ledger_errors, transaction

__all__ = ["MemoryDatabase", "SqliteDatabase", "make_file"]

_BRIEF: Final = 50  # milliseconds in C, where an interrupt waits
_MAKING: Final = 30.0  # seconds that another may take to make a ledger in the same folder


class MemoryDatabase:
    """A ledger in this process alone."""

    place = ""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False
        )
        self._owner = os.getpid()

    @contextmanager
    def writing(self, deadline: float) -> Iterator[Run]:
        """Run statements that are undone if the block raises."""
        if os.getpid() != self._owner:
            raise LedgerError("this ledger belongs to another process: give it a path")
        with transaction(self._connection, "BEGIN", deadline) as run:
            yield run

    reading = writing

    def home(self, run: Run) -> str:
        """Return nothing: there are no copies."""
        return ""

    def now(self, run: Run) -> datetime:
        """Return this computer's time."""
        return datetime.now(UTC)

    def check(self, run: Run) -> None:
        """Find nothing to look at."""

    def close(self) -> None:
        """Let the account go."""
        self._connection.close()

    __del__ = close


class SqliteDatabase:
    """A ledger in a file.

    Parameters
    ----------
    file : Path
        Every link followed, so that all names of the account are one account.
    read_only : bool

    Raises
    ------
    LedgerError
        Where there is no such file, it has a second name, it is not a ledger, or may not be opened.
    """

    def __init__(self, file: Path, *, read_only: bool = False) -> None:
        self.file = file
        self.place = str(file)
        self._read_only = read_only
        self._queue: Queue | None = None
        self._owner = os.getpid()
        self._shared = Shared(self._identity())
        with as_ledger_errors(), self._shared.used():
            self._connect()

    @contextmanager
    def writing(self, deadline: float) -> Iterator[Run]:
        """Wait in the queue, take the lock, commit with a sync."""
        with self.turn(deadline), self.locked(deadline) as run:
            yield run

    def turn(self, deadline: float, message: bytes = b"") -> AbstractContextManager[Turn]:
        """Wait in the queue."""
        if self._read_only:
            raise LedgerError("this ledger was opened for reading: nothing can be charged")
        if not os.access(self.place, os.W_OK):
            self._identity()
            raise LedgerError(f"the ledger {self.place!r} may not be written to by this user")
        with self._shared.used():
            self._connect()
            if self._queue is None:
                self._queue = Queue(self.file)
            return self._queue.turn(deadline, message)

    @contextmanager
    def locked(self, deadline: float) -> Iterator[Run]:
        """Take the lock, commit with a sync."""
        with self._transaction("BEGIN IMMEDIATE", deadline) as run:
            self._share()
            yield run

    def reading(self, deadline: float) -> AbstractContextManager[Run]:
        """Read one snapshot, beside whoever writes."""
        return self._transaction("BEGIN", deadline)

    @contextmanager
    def _transaction(self, begin: str, deadline: float) -> Iterator[Run]:
        with self._shared.used():
            connection = self._connect()
            self._check_file()
            # What was read before may be of a file that was overwritten since.
            connection.execute("PRAGMA shrink_memory")
            with transaction(connection, begin, deadline) as run:
                yield run

    def glancing(self, deadline: float) -> Run:
        """Look at what another process has just written, by one statement.

        Its commit made whatever this one held of the file out of date. That this is the file which
        was opened `home` shows: the book names its own file's number.
        """

        def run(statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
            with self._shared.used():
                return alone(self._connect(), deadline)(statement, values)

        return run

    def home(self, run: Run) -> str:
        """Return the file's number on its disk, which renaming keeps and copying does not."""
        return f"inode {self._identity()[1]}"

    def now(self, run: Run) -> datetime:
        """Return this computer's time."""
        return datetime.now(UTC)

    def check(self, run: Run) -> None:
        """Let SQLite look at every page."""
        if run("PRAGMA quick_check(1)") != [("ok",)]:
            raise LedgerError("the ledger is damaged: SQLite's check of its pages fails")

    def close(self) -> None:
        """Close the connection and leave the queue."""
        self._shared.close()
        if self._queue is not None:
            self._queue.close()
            self._queue = None

    def __del__(self) -> None:
        """Close with the last handle."""
        if hasattr(self, "_shared"):
            self.close()

    def _connect(self) -> sqlite3.Connection:
        if os.getpid() != self._owner:
            if self._queue is not None:
                self._queue.close()  # else the fork would keep its parent's ticket
            self._queue, self._owner = None, os.getpid()
        if not self._shared.mine():
            self._shared.connection = self._open("?mode=ro" if self._read_only else "?mode=rw")
        connection: sqlite3.Connection = self._shared.connection
        return connection

    def _open(self, mode: str) -> sqlite3.Connection:
        connection = _connection(self.file, mode)
        try:
            journal = connection.execute("PRAGMA journal_mode").fetchone()
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            connection.close()
            waiting = self.file.with_name(self.file.name + "-wal")
            writable = os.access(self.file.parent, os.W_OK) and os.access(self.file, os.W_OK)
            if "immutable" in mode or writable or _size(waiting):
                raise
            # Nobody can write where this folder is, and all that was written is in the file.
            return self._open("?mode=ro&immutable=1")
        except sqlite3.DatabaseError:
            connection.close()
            raise
        connection.execute("PRAGMA synchronous = FULL")
        if journal != ("wal",) and not self._read_only:
            connection.close()
            raise LedgerError("the ledger is damaged: it no longer keeps a write-ahead log")
        return connection

    def _identity(self) -> tuple[int, int]:
        """Return device and number of the file at this path; refuse a second name."""
        try:
            found = os.stat(self.place)
        except FileNotFoundError:
            raise LedgerError(
                f"the ledger's file {self.place!r} is gone, and with it what was spent"
            ) from None
        except OSError as fault:
            raise LedgerError(
                f"the ledger {self.place!r} cannot be opened: {reason(fault)}"
            ) from None
        if found.st_nlink > 1:
            raise LedgerError(
                "the ledger's file has a second name (a hard link), and what is charged under one "
                "name may be missing under the other: remove the link"
            )
        return identity(found)

    def _check_file(self) -> None:
        if self._identity() != self._shared.file:
            raise LedgerError(
                f"the ledger's file {self.place!r} has been replaced since it was opened: charges "
                "made since may be missing from it; compare it with `dpreg ledger verify --head`"
            )

    def _share(self) -> None:
        """Let the group that may write the ledger write what SQLite keeps beside it."""
        for ending in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                share_with_group(self.place + ending, self.place)


def make_file(file: Path, caps: Caps, fresh: Path | None = None) -> None:
    """Make an empty ledger at a path where there is none; leave one that is there alone.

    It is made under another name, synced and renamed, so no other process sees it half made.
    """
    made = file.with_name(f".{file.name[:100]}.{os.urandom(8).hex()}") if fresh is None else fresh
    try:
        os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        home = f"inode {made.stat().st_ino}"
        with as_ledger_errors(), closing(_connection(made, "?mode=rw")) as connection:
            with transaction(connection, "BEGIN IMMEDIATE", time.monotonic() + 10) as run:
                create(run, caps, home)
            if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise LedgerError("this file system cannot hold a ledger: SQLite's log fails there")
        if fresh is None:
            place_file(made, file)
    except OSError as fault:
        raise LedgerError(f"no ledger can be made at {str(file)!r}: {reason(fault)}") from None
    finally:
        if fresh is None:
            for ending in ("", "-wal", "-shm"):
                with suppress(OSError):
                    made.with_name(made.name + ending).unlink()


def place_file(made: Path, file: Path) -> None:
    """Rename a new ledger to its place, unless there is one now."""
    if sys.platform == "win32":
        with suppress(FileExistsError):
            made.rename(file)
        return
    import fcntl

    # Renaming would replace a ledger that another process has just made.
    guard = os.open(file.parent, os.O_RDONLY)
    try:
        held = f"another process keeps the folder {str(file.parent)!r} locked: no ledger was made"
        take_flock(guard, time.monotonic() + _MAKING, held)
        try:
            if not os.path.lexists(file):
                made.rename(file)
                sync_folder(file.parent)
        finally:
            fcntl.flock(guard, fcntl.LOCK_UN)  # a fork may hold the file open, and so the lock
    finally:
        os.close(guard)


def ledger_file(path: str | os.PathLike[str]) -> tuple[Path, bool]:
    """Follow links to a ledger's file; tell whether there is one."""
    found = ordinary(path, LedgerError)
    return (Path(os.path.realpath(path)), False) if found is None else (found, True)


def _connection(file: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(file))}{mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=_BRIEF / 1000,
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
