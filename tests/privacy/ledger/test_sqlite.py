"""The database of a ledger in memory; `test_files.py` has what befalls a file."""

import math
import os
import sqlite3

import pytest

from dpreg.errors import LedgerError
from dpreg.privacy.ledger.sqlite import MemoryDatabase, SqliteDatabase, as_ledger_errors


@pytest.fixture
def database():
    made = MemoryDatabase()
    with made.writing(math.inf) as run:
        run("CREATE TABLE kept (number INTEGER)")
        run("INSERT INTO kept VALUES (1)")
    return made


def numbers(database):
    with database.reading(math.inf) as run:
        return [row[0] for row in run("SELECT number FROM kept")]


def test_statements_are_undone_where_the_block_raises(database):
    def fails() -> None:
        with database.writing(math.inf) as run:
            run("INSERT INTO kept VALUES (2)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert numbers(database) == [1]


def test_another_process_may_not_use_it(database, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(LedgerError, match="another process"), database.writing(math.inf):
        pytest.fail("it was opened")


def test_two_of_them_share_nothing(database):
    other = MemoryDatabase()
    with other.reading(math.inf) as run:
        assert not list(run("SELECT name FROM sqlite_master"))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("SQLITE_IOERR_LOCK", "lacks the locks"),
        ("SQLITE_IOERR_RDLOCK", "lacks the locks"),
        ("SQLITE_IOERR_SHMLOCK", "lacks the locks"),
        ("SQLITE_IOERR_SHMMAP", "lacks the locks"),
        ("SQLITE_IOERR_SHMSIZE", "disk is full"),
        ("SQLITE_FULL", "disk is full"),
        ("SQLITE_IOERR_FSYNC", "disk failed"),
        ("SQLITE_BUSY_RECOVERY", "held by another process"),
        ("SQLITE_CORRUPT", "is damaged"),
    ],
)
def test_what_befalls_a_disk_is_named(name, told):
    fault = sqlite3.OperationalError("disk I/O error")
    fault.sqlite_errorname = name
    with pytest.raises(LedgerError, match=told), as_ledger_errors():
        raise fault


def test_commits_are_synced_to_the_disk(tmp_path):
    kept = SqliteDatabase(tmp_path / "kept.db")
    kept.make(lambda run, _: run("CREATE TABLE kept (number INTEGER)"), math.inf)
    with kept.writing(math.inf) as run:
        assert run("PRAGMA synchronous") == [(3,)]  # EXTRA
        assert run("PRAGMA journal_mode") == [("wal",)]
