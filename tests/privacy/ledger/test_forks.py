"""A fork made while a ledger is open: no cap is passed, and no charge that was answered is lost."""

import os
import sys

import pytest
from oracles import chargers
from oracles.forks import CLEAN, FORK, answers

from dpreg.errors import BudgetError, LedgerError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.ledger.forks import Shared

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


def fork_and_close(path, *, anew):
    """Open, fork, close in the parent, charge on in the fork; return what was answered."""
    ledger, results = Ledger(4, path), FORK.Queue()
    ready, closed = FORK.Event(), FORK.Event()

    def inside():
        mine = Ledger.open(path) if anew else ledger
        heads = told(mine, "child 1")
        ready.set()
        assert closed.wait(60)
        results.put(
            heads + [head for label in ("child 2", "child 3") for head in told(mine, label)]
        )

    heads = told(ledger, "parent")
    child = FORK.Process(target=inside)
    child.start()
    assert ready.wait(60)
    ledger.close()
    closed.set()
    (own,) = answers(results, [child])
    child.join()
    return heads + own + charged_elsewhere(path)


@pytest.mark.parametrize("anew", [False, True])
def test_a_fork_passes_no_cap_and_loses_no_charge(tmp_path, anew):
    heads = fork_and_close(tmp_path / "ledger.db", anew=anew)
    assert len(heads) == 4
    assert heads == [entry.head for entry in Ledger.open(tmp_path / "ledger.db").entries]


def test_a_fork_that_drops_its_parents_ledger_deletes_nothing(tmp_path):
    path = tmp_path / "ledger.db"
    ledger, go = Ledger(4, path), FORK.Event()

    def inside():
        assert go.wait(60)
        ledger.close()

    child = FORK.Process(target=inside)
    child.start()
    ledger.close()
    heads = charged_elsewhere(path, chargers.ended_without_closing)
    go.set()
    child.join()
    assert len(heads) == 2
    assert [entry.head for entry in Ledger.open(path).entries] == heads


@pytest.mark.parametrize("how", ["while in use", "unseen"])
def test_a_fork_whose_connection_could_not_be_closed_may_not_charge(tmp_path, monkeypatch, how):
    path = tmp_path / "ledger.db"
    ledger, results = Ledger(4, path), FORK.Queue()
    if how == "unseen":
        for told_of_forks in ("_before_fork", "_after_fork"):
            monkeypatch.setattr(Shared, told_of_forks, lambda _: None)

    def inside():
        said = told(ledger, "inherited")
        try:
            Ledger.open(path)
        except LedgerError as fault:
            said.append(str(fault))
        results.put(said)

    child = FORK.Process(target=inside)
    if how == "unseen":
        child.start()
    else:
        with ledger._database.reading(1e12):
            child.start()
    (said,) = answers(results, [child])
    child.join()
    assert len(said) == 2
    assert all("was forked while the ledger was in use" in one for one in said)
    ledger.charge(ONE, "parent")
    assert [entry.what for entry in ledger.entries] == ["parent"]


def test_mutant_that_keeps_its_parents_locks_is_caught(tmp_path, monkeypatch):
    kept = []

    def forgets(self):
        kept.append(self.connection)
        self.connection, self.process = None, os.getpid()

    monkeypatch.setattr(Shared, "_before_fork", lambda _: None)
    monkeypatch.setattr(Shared, "_inherited", forgets)
    heads = fork_and_close(tmp_path / "ledger.db", anew=False)
    written = {entry.head for entry in Ledger.open(tmp_path / "ledger.db").entries}
    assert len(heads) > 4 or not set(heads) <= written


def test_a_process_that_keeps_the_folder_locked_is_a_clear_error(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr("dpreg.privacy.ledger.sqlite._MAKING", 0.2)
    guard = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(guard, fcntl.LOCK_EX)
    with pytest.raises(LedgerError, match=r"keeps the folder .* locked: no ledger was made"):
        Ledger(1, tmp_path / "ledger.db")
    os.close(guard)
    assert not Ledger(1, tmp_path / "ledger.db").entries
