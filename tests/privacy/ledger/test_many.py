"""Many processes at once, killed ones among them. The large doses are `make audit`'s."""

import time

import pytest
from oracles import chargers
from oracles.forks import CLEAN, answers

from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.ledger import chain as store

TENTH = Budget("0.1")


def at_once(place, processes, charges):
    """Let processes charge twice what the cap allows."""
    cap = processes * charges // 2
    ledger = Ledger(cap * TENTH, place)
    start, results = CLEAN.Event(), CLEAN.Queue()
    workers = [
        CLEAN.Process(target=chargers.some, args=(place, charges, start, results))
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    time.sleep(1)
    start.set()
    told = answers(results, workers)
    for worker in workers:
        worker.join()
    heads = sorted(head for one in told for head in one)
    assert heads == sorted(entry.head for entry in ledger.entries)
    assert len(heads) == cap
    assert ledger.verify().spent == ledger.cap


def test_eight_processes_charge_the_cap_and_no_more(place):
    at_once(place, 8, 10)


@pytest.mark.parametrize("charges", [4, pytest.param(50, marks=pytest.mark.audit)])
def test_sixty_four_processes_charge_the_cap_and_no_more(tmp_path, charges):
    at_once(tmp_path / "ledger.db", 64, charges)


@pytest.mark.audit
def test_sixty_four_connections_charge_the_cap_and_no_more(base):
    at_once(base, 64, 50)


@pytest.mark.parametrize("times", [10, pytest.param(200, marks=pytest.mark.audit)])
def test_killed_processes_lose_and_overspend_nothing(place, times):
    ledger = Ledger(10_000, place)
    heads = chargers.killed(place, times)
    kept = {entry.head for entry in ledger.entries}
    assert set(heads) <= kept
    assert len(kept) <= len(heads) + times  # one charge a kill may be written and not told
    assert ledger.verify().spent == len(kept) * TENTH
    ledger.charge(TENTH, "goes on")


def test_mutant_that_answers_before_it_writes_is_caught(tmp_path, monkeypatch):
    path = tmp_path / "ledger.db"
    ledger = Ledger(10_000, path)
    monkeypatch.setattr(store, "write", lambda run, line: None)
    heads = chargers.killed(path, 2)
    assert not set(heads) <= {entry.head for entry in ledger.entries}
