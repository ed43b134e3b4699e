import contextlib
import copy
import json
import multiprocessing
import os
import pickle
import threading
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from oracles.events import order_of_events

import dpreg
from dpreg.errors import BudgetError
from dpreg.privacy import ledger as module
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.mechanisms import choose
from dpreg.sources import TableSource

TENTH = Budget("0.1")


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    return Ledger(Budget(5, "1e-6"), tmp_path / "ledger.json" if request.param == "file" else None)


def test_fifty_charges_of_a_tenth_make_five_and_not_one_more_fits(ledger):
    for number in range(50):
        ledger.charge(TENTH, f"charge {number}")
    assert ledger.spent == Budget(5)
    assert ledger.remaining == Budget(0, "1e-6")
    assert len(ledger.entries) == 50
    with pytest.raises(BudgetError, match=r"only eps=0, delta=0\.000001 of"):
        ledger.charge(Budget("1e-300"), "one more")
    assert ledger.spent == Budget(5)
    ledger.charge(Budget(0), "free of charge")


def test_delta_is_capped_too(ledger):
    ledger.charge(Budget(1, "0.0000006"), "first")
    with pytest.raises(BudgetError):
        ledger.charge(Budget(1, "0.0000005"), "second")


def test_thirds_are_exact(tmp_path):
    ledger = Ledger(1, tmp_path / "thirds.json")
    for _ in range(3):
        ledger.charge(Budget(Fraction(1, 3)), "a third")
    assert Ledger.open(ledger.path).remaining == Budget(0)


def test_a_charge_is_on_disk_and_a_second_handle_sees_it(tmp_path):
    path = tmp_path / "ledger.json"
    first, second = Ledger(1, path), Ledger(1, path)
    first.charge(TENTH, "by the first")
    assert second.spent == TENTH
    assert [entry.what for entry in Ledger.open(path).entries] == ["by the first"]
    saved = json.loads(path.read_text())
    assert saved["entries"][0]["eps"] == "0.1"


def test_pickles_are_handles_on_the_same_account(tmp_path):
    ledger = Ledger(1, tmp_path / "ledger.json")
    ledger.charge(TENTH, "before")
    twin = pickle.loads(pickle.dumps(ledger))
    twin.charge(Budget("0.9"), "by the twin")
    with pytest.raises(BudgetError):
        ledger.charge(TENTH, "too much")


def test_a_ledger_in_memory_cannot_be_doubled():
    ledger = Ledger(1)
    for double in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(BudgetError, match="path"):
            double(ledger)


def test_a_fork_of_a_ledger_in_memory_is_refused(monkeypatch):
    ledger = Ledger(1)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(BudgetError, match="another process"):
        ledger.charge(TENTH, "in the child")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"dpreg_ledger": 1}', '{"dpreg_ledger": 2}'])
def test_a_damaged_file_stops_all_charges(tmp_path, text):
    path = tmp_path / "ledger.json"
    path.write_text(text)
    with pytest.raises(BudgetError):
        Ledger(1, path)
    with pytest.raises(BudgetError):
        Ledger.open(path)
    assert path.read_text() == text


def test_a_file_with_negative_spends_is_refused(tmp_path):
    ledger = Ledger(1, tmp_path / "ledger.json")
    ledger.charge(TENTH, "honest")
    ledger.path.write_text(ledger.path.read_text().replace('"0.1"', '"-5"'))
    with pytest.raises(BudgetError):
        ledger.charge(TENTH, "with a refund forged")


def test_another_cap_and_a_lost_file_are_refused(tmp_path):
    ledger = Ledger(1, tmp_path / "ledger.json")
    with pytest.raises(BudgetError, match="cap"):
        Ledger(2, ledger.path)
    with pytest.raises(BudgetError, match="no ledger"):
        Ledger.open(tmp_path / "elsewhere.json")
    ledger.charge(TENTH, "once")
    ledger.path.unlink()
    with pytest.raises(BudgetError, match="gone"):
        ledger.charge(TENTH, "twice")


def test_a_failed_write_charges_nothing_and_draws_nothing(tmp_path, monkeypatch):
    ledger = Ledger(1, tmp_path / "ledger.json")

    def full(*args):
        raise OSError("no space left")

    drawn = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="space"):
            ledger.spend(TENTH, "a release", lambda: drawn.append(1))
    assert drawn == []
    assert ledger.spent == Budget(0)


def test_an_error_after_the_charge_is_never_refunded(ledger):
    def broken():
        raise RuntimeError("in the release")

    with pytest.raises(RuntimeError):
        ledger.spend(TENTH, "a release", broken)
    assert ledger.spent == TENTH


@pytest.mark.parametrize("cap", [-1, float("nan"), True, "many"])
def test_bad_caps_are_refused(cap):
    with pytest.raises(BudgetError):
        Ledger(cap)


def test_only_budgets_are_charged(ledger):
    with pytest.raises(BudgetError):
        ledger.charge(0.1, "a float")


# Several at once


def charges_until_full(ledger):
    done = 0
    while True:
        try:
            ledger.charge(TENTH, "a share")
        except BudgetError:
            return done
        done += 1


def in_a_process(path, start, results):
    ledger = Ledger(3, path)
    start.wait()
    results.put(charges_until_full(ledger))


def two_threads(handles):
    start, done = threading.Barrier(2), []

    def work(handle):
        start.wait()
        done.append(charges_until_full(handle))

    threads = [threading.Thread(target=work, args=(handle,)) for handle in handles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done)


def test_two_threads_never_overspend(tmp_path):
    shared = Ledger(3)
    assert two_threads([shared, shared]) == 30
    path = tmp_path / "ledger.json"
    assert two_threads([Ledger(3, path), Ledger(3, path)]) == 30
    assert Ledger.open(path).spent == Budget(3)


def test_eight_processes_never_overspend(tmp_path):
    path = tmp_path / "ledger.json"
    Ledger(3, path)
    context = multiprocessing.get_context("fork")
    start, results = context.Event(), context.Queue()
    workers = [context.Process(target=in_a_process, args=(path, start, results)) for _ in range(8)]
    for worker in workers:
        worker.start()
    start.set()
    done = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    assert sum(done) == 30
    assert Ledger.open(path).spent == Budget(3)


def test_mutant_without_locks_is_caught(tmp_path, monkeypatch):
    """Two handles that both read before either writes: what the file lock is there to prevent."""

    def two_charges(name):
        path = tmp_path / name
        handles = [Ledger("0.1", path), Ledger("0.1", path)]
        meet = threading.Barrier(2)

        def slow(where, text):
            with contextlib.suppress(threading.BrokenBarrierError):
                meet.wait(timeout=0.3)  # both arrive only if both were let in at once
            where.write_text(text)

        with monkeypatch.context() as patch:
            patch.setattr(module, "_replace", slow)
            return two_threads(handles)

    assert two_charges("honest.json") == 1
    monkeypatch.setattr(module, "_file_lock", lambda path: contextlib.nullcontext())
    assert two_charges("mutant.json") == 2  # overspent


# The order of events


class Rows:
    """Rows that say when they are read."""

    def read(self):
        return np.array([3, 0, 1], dtype=np.int64)


def honest_release(ledger, rows):
    ledger.charge(Budget(1), "selection")
    return choose(rows.read(), eps=Fraction(1), score_range=2, mechanism="permute-and-flip")


def mutant_release(ledger, rows):
    drawn = choose(rows.read(), eps=Fraction(1), score_range=2, mechanism="permute-and-flip")
    ledger.charge(Budget(1), "selection")
    return drawn


def charged_first(release, ledger, monkeypatch):
    """Whether a release charges before it reads or draws: what any caller of a ledger must do."""
    with order_of_events(monkeypatch, rows=[(Rows, "read")]) as log:
        release(ledger, Rows())
    assert {"charge", "read", "draw"} <= set(log)
    return log[0] == "charge" and log.count("charge") == 1


def test_the_charge_comes_first(ledger, monkeypatch):
    assert charged_first(honest_release, ledger, monkeypatch)


def test_mutant_that_charges_after_releasing_is_caught(ledger, monkeypatch):
    assert not charged_first(mutant_release, ledger, monkeypatch)


def test_a_request_over_the_cap_is_refused_before_a_row_is_read(monkeypatch):
    with order_of_events(monkeypatch, rows=[(Rows, "read")]) as log, pytest.raises(BudgetError):
        honest_release(Ledger("0.5"), Rows())
    assert log == ["charge"]
    with order_of_events(monkeypatch, rows=[(Rows, "read")]) as log, pytest.raises(BudgetError):
        mutant_release(Ledger("0.5"), Rows())
    assert "draw" in log  # the mutant has drawn by then: caught


def test_spend_charges_before_it_releases(ledger, monkeypatch):
    with order_of_events(monkeypatch, rows=[(Rows, "read")]) as log:
        assert ledger.spend(TENTH, "a look", Rows().read).size == 3
    assert log == ["charge", "read"]


@pytest.mark.parametrize("call", [dpreg.dp_select, dpreg.dp_ols])
def test_the_public_calls_charge_before_a_row_is_read(call, monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, size=(500, 3)), columns=["y", "a", "b"])
    schema = dict.fromkeys("yab", (-1, 1))
    rows = [(TableSource, "total")]
    ledger = Ledger(1, tmp_path / "ledger.json")
    with order_of_events(monkeypatch, rows) as log:
        result = call("y ~ a + b", frame, eps=1, schema=schema, budget=ledger)
    assert log[:2] == ["charge", "read"]
    assert log.count("charge") == 1
    assert ledger.spent == result.spent == Budget(1)
    with order_of_events(monkeypatch, rows) as log, pytest.raises(BudgetError):
        call("y ~ a + b", frame, eps="1e-6", schema=schema, budget=ledger)
    assert log == ["charge"]
