"""The database of a ledger in memory; `test_files.py` has what befalls a file."""

import math
import os

import pytest

from dpreg.errors import LedgerError
from dpreg.privacy.ledger.sqlite import MemoryDatabase


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
