"""A fork made while a ledger is open: no cap is passed, and no charge that was answered is lost."""

import errno
import os
import sys

import pytest
from oracles import chargers
from oracles.forks import CLEAN, FORK, answers

from dpreg.errors import BudgetError, LedgerError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger, sqlite

ONE = Budget(1)
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="nothing is forked there")


def told(ledger, label):
    """Charge; return the head, or what was said in its place, in a list; nothing at the cap."""
    try:
        return [ledger.charge(ONE, label).head]
    except LedgerError as fault:
        return [str(fault)]
    except BudgetError:
        return []


def charged_elsewhere(path, work=chargers.once_each):
    results = CLEAN.Queue()
    process = CLEAN.Process(target=work, args=(path, 2, results))
    process.start()
    (heads,) = answers(results, [process])
    process.join()
    return heads


@pytest.mark.parametrize("anew", [False, True])
def test_a_fork_passes_no_cap_and_loses_no_charge(tmp_path, anew):
    """Charge, fork, charge in both; then another process takes what is left."""
    path = tmp_path / "ledger.db"
    ledger, results = Ledger(4, path), FORK.Queue()

    def inside():
        mine = Ledger.open(path) if anew else ledger
        results.put([head for label in ("child 1", "child 2") for head in told(mine, label)])

    heads = told(ledger, "parent")
    child = FORK.Process(target=inside)
    child.start()
    (own,) = answers(results, [child])
    child.join()
    heads += own + charged_elsewhere(path) + told(ledger, "parent again")
    assert len(heads) == 4
    assert heads == [entry.head for entry in Ledger.open(path).entries]


def test_a_process_that_ends_without_closing_loses_nothing(tmp_path):
    path = tmp_path / "ledger.db"
    Ledger(4, path)
    heads = charged_elsewhere(path, chargers.ended_without_closing)
    assert len(heads) == 2
    assert [entry.head for entry in Ledger.open(path).entries] == heads


def test_a_fork_of_a_process_that_was_using_the_ledger_may_not_use_it(tmp_path):
    path = tmp_path / "ledger.db"
    ledger, results = Ledger(4, path), FORK.Queue()
    other = Ledger(4, tmp_path / "other.db")

    def inside():
        said = told(ledger, "inherited")
        try:
            Ledger.open(path)
        except LedgerError as fault:
            said.append(str(fault))
        results.put((said, told(other, "of another file")))

    child = FORK.Process(target=inside)
    with ledger._book.database.reading(1e12):
        child.start()
    ((said, elsewhere),) = answers(results, [child])
    child.join()
    assert len(said) == 2
    assert all("was forked while the ledger was in use" in one for one in said)
    assert elsewhere == [other.head]
    ledger.charge(ONE, "parent")
    assert [entry.what for entry in ledger.entries] == ["parent"]


def test_a_process_that_keeps_the_folder_locked_is_a_clear_error(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr("dpreg.privacy.ledger.sqlite._MAKING", 0.2)
    guard = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(guard, fcntl.LOCK_EX)
    with pytest.raises(LedgerError, match=r"keeps the folder .* locked: no ledger was made"):
        Ledger(1, tmp_path / "ledger.db")
    os.close(guard)
    assert not Ledger(1, tmp_path / "ledger.db").entries


def test_a_folder_that_cannot_be_locked_is_a_clear_error(tmp_path, monkeypatch):
    def refuses(*_):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("fcntl.flock", refuses)
    with pytest.raises(LedgerError, match="no locks available"):
        Ledger(1, tmp_path / "ledger.db")


def test_a_ledger_that_another_made_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    """Two processes find no ledger; one makes it, and is charged, before the other has."""
    path, honest = tmp_path / "ledger.db", sqlite._place

    def place(made, file):
        monkeypatch.undo()
        Ledger(4, path).charge(ONE, "first")
        honest(made, file)

    monkeypatch.setattr(sqlite, "_place", place)
    assert [entry.what for entry in Ledger(4, path).entries] == ["first"]
    assert os.listdir(tmp_path) == ["ledger.db"]
