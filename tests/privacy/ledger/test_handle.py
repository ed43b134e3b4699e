import contextlib
import copy
import os
import pickle
import sqlite3
import threading
from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from oracles import chargers
from oracles.events import order_of_events
from oracles.forks import CLEAN, answers

import dpreg
from dpreg.errors import BudgetError, LedgerError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger, sqlite
from dpreg.privacy.ledger import chain as store
from dpreg.privacy.mechanisms.choice import choose
from dpreg.sources.table import TableSource

TENTH = Budget("0.1")


def test_fifty_charges_of_a_tenth_make_five_and_not_one_more_fits(ledger):
    for number in range(50):
        ledger.charge(TENTH, f"charge {number}")
    assert ledger.spent == Budget(5)
    assert ledger.remaining == Budget(0, "1e-6")
    assert len(ledger.entries) == 50
    with pytest.raises(BudgetError, match=r"only eps=0 of eps=5 is left"):
        ledger.charge(Budget("1e-300"), "one more")
    assert ledger.spent == Budget(5)
    ledger.charge(Budget(0), "free of charge")


def test_delta_is_capped_too(ledger):
    ledger.charge(Budget(1, "0.0000006"), "first")
    with pytest.raises(BudgetError):
        ledger.charge(Budget(1, "0.0000005"), "second")


def test_thirds_are_exact(tmp_path):
    ledger = Ledger(1, tmp_path / "thirds.db")
    for _ in range(3):
        ledger.charge(Budget(Fraction(1, 3)), "a third")
    assert Ledger.open(ledger.path).remaining == Budget(0)


def test_a_charge_is_on_disk_and_a_second_handle_sees_it(place):
    first, second = Ledger(1, place), Ledger(1, place)
    first.charge(TENTH, "by the first")
    assert second.spent == TENTH
    assert [entry.what for entry in Ledger.open(place).entries] == ["by the first"]
    assert first.head == second.head == Ledger.open(place, read_only=True).head


def test_pickles_are_handles_on_the_same_account(place):
    ledger = Ledger(1, place)
    ledger.charge(TENTH, "before")
    twin = pickle.loads(pickle.dumps(ledger.for_analyst("ann")))
    twin.charge(Budget("0.9"), "by the twin")
    assert ledger.entries[-1].analyst == "ann"
    with pytest.raises(BudgetError):
        ledger.charge(TENTH, "too much")


def test_the_cap_cannot_be_assigned(ledger):
    for name in ("cap", "caps", "spent", "anything"):
        with pytest.raises(AttributeError):
            setattr(ledger, name, Budget(100))


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


@pytest.mark.parametrize("text", ["", "{}", "x" * 4096, '{"dpreg_ledger": 1}'])
def test_a_damaged_file_stops_all_charges(tmp_path, text):
    path = tmp_path / "ledger.db"
    path.write_text(text)
    said = "damaged|is not a ledger; a ledger of dpreg 0.1 must be migrated with dpreg 0.2 first"
    with pytest.raises(LedgerError, match=said):
        Ledger(1, path)
    with pytest.raises(LedgerError, match=said):
        Ledger.open(path)
    assert path.read_text() == text


def test_another_cap_and_a_lost_file_are_refused(tmp_path):
    ledger = Ledger(1, tmp_path / "ledger.db")
    with pytest.raises(BudgetError, match="cap"):
        Ledger(2, ledger.path)
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger.open(tmp_path / "elsewhere.db")
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger(1, tmp_path / "elsewhere.db", read_only=True)
    assert not (tmp_path / "elsewhere.db").exists()
    ledger.charge(TENTH, "once")
    ledger.path.unlink()
    with pytest.raises(LedgerError, match="gone"):
        ledger.charge(TENTH, "twice")


def test_read_only_handles_charge_nothing(place):
    Ledger(1, place).charge(TENTH, "once")
    reader = Ledger.open(place, read_only=True)
    assert reader.spent == TENTH
    for handle in (reader, pickle.loads(pickle.dumps(reader))):
        with pytest.raises(LedgerError, match="for reading"):
            handle.charge(TENTH, "twice")
    assert reader.verify().entries == 1


# Caps of analysts and periods


def test_every_cap_holds_at_once(place):
    ledger = Ledger(1, place, analyst_cap="0.5", period_cap="0.7")
    with pytest.raises(BudgetError, match="say who asks"):
        ledger.charge(TENTH, "nobody's")
    ann, bob = ledger.for_analyst("ann"), Ledger.open(place, analyst="bob")
    ann.charge(Budget("0.5"), "hers")
    with pytest.raises(BudgetError, match=r"only eps=0 of ann's eps=0\.5 is left"):
        ann.charge(TENTH, "too much for her")
    with pytest.raises(BudgetError, match=r"only eps=0\.2 of the eps=0\.7 for 20.* is left"):
        bob.charge(Budget("0.3"), "too much for the month")
    entry = bob.charge(Budget("0.2"), "his")
    assert (entry.analyst, entry.number, entry.head) == ("bob", 2, ledger.head)
    assert ledger.spent == Budget("0.7")
    assert ledger.verify(entry.head).entries == 2


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (Budget(1, "1e-6"), r"only delta=5e-7 of delta=0\.000001 is left"),
        (Budget(9, "1e-7"), r"only eps=8 of eps=10 is left"),
        (Budget(9, "1e-6"), r"only eps=8, delta=5e-7 of eps=10, delta=0\.000001 is left"),
    ],
)
def test_a_refusal_names_what_is_short(asked, told):
    ledger = Ledger(Budget(10, "1e-6"))
    ledger.charge(Budget(2, "5e-7"), "before")
    with pytest.raises(BudgetError, match=told):
        ledger.charge(asked, "this")


def test_an_account_has_the_period_s_cap_that_was_given(place):
    Ledger(2, place, period_cap=1, period="quarter")
    assert Ledger(2, place).caps.period == Budget(1)
    for given in ({"period_cap": 2, "period": "quarter"}, {"period_cap": 1}):
        with pytest.raises(BudgetError, match="another cap for a period"):
            Ledger(2, place, **given)


def test_a_new_period_has_its_cap_anew_and_the_account_has_not(monkeypatch):
    ledger = Ledger(1, period_cap="0.6", period="quarter")
    times = iter([datetime(2026, 9, 30, 23, 59, tzinfo=UTC), datetime(2026, 10, 1, tzinfo=UTC)])
    monkeypatch.setattr(type(ledger._book.database), "now", lambda self, run: next(times))
    assert ledger.charge(Budget("0.6"), "in the third").period == "2026-Q3"
    with pytest.raises(BudgetError, match=r"only eps=0\.4 of eps=1 is left"):
        ledger.charge(Budget("0.6"), "in the fourth")


def test_only_named_analysts_charge(place):
    ledger = Ledger(2, place, analyst_cap={"ann": 1, "bob": "0.25"})
    with pytest.raises(BudgetError, match="'eve' is not one of"):
        ledger.charge(TENTH, "hers", analyst="eve")
    with pytest.raises(BudgetError, match=r"bob's eps=0\.25"):
        ledger.charge(Budget("0.3"), "his", analyst="bob")
    ledger.charge(Budget(1), "hers", analyst="ann")
    assert Ledger(2, place, analyst_cap={"bob": "0.25", "ann": 1}).spent == Budget(1)
    with pytest.raises(BudgetError, match="other caps for its analysts"):
        Ledger(2, place, analyst_cap=2)


def test_mutant_that_forgets_the_analyst_is_caught(monkeypatch):
    def overspends():
        ledger = Ledger(1, analyst_cap="0.1")
        ledger.charge(TENTH, "one", analyst="ann")
        try:
            ledger.charge(TENTH, "two", analyst="ann")
        except BudgetError:
            return False
        return True

    assert not overspends()
    honest = store.last
    monkeypatch.setattr(store, "last", lambda run, *which: None if which else honest(run))
    assert overspends()


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 201, 7, "\ud800"])
def test_bad_names_of_analysts_are_refused(ledger, name):
    with pytest.raises(BudgetError, match="analyst"):
        ledger.charge(TENTH, "x", analyst=name)
    assert ledger.entries == ()


def test_a_charge_without_a_unit_does_not_let_another_unit_in(ledger):
    ledger.charge(TENTH, "a release", "replace-one, 1 row a person")
    ledger.charge(TENTH, "something of nobody's")
    with pytest.raises(BudgetError, match="such epsilons do not add up"):
        ledger.charge(TENTH, "another release", "add-remove, 1 row a person")


@pytest.mark.parametrize("unit", ["half a \ud800", "nothing \0", "two\nlines"])
def test_bad_units_are_refused(ledger, unit):
    for call in (ledger.charge, ledger.check):
        with pytest.raises(BudgetError, match="unit must not hold"):
            call(TENTH, "x", unit)
    assert ledger.charge(TENTH, "x", "one row, a person's").number == 1


def test_labels_may_hold_anything(ledger):
    assert ledger.charge(TENTH, "a\0b\ud800\n").what == r"a\x00b\ud800\n"
    assert ledger.verify().entries == 1


def test_sums_that_would_grow_without_end_are_refused(ledger):
    ledger.charge(Budget(Fraction(1, 3**800)), "odd")
    ledger.charge(Budget(Fraction(1, 5**500)), "odder")
    with pytest.raises(BudgetError, match="too many digits"):
        ledger.charge(Budget(Fraction(1, 7**800)), "oddest")
    assert len(ledger.entries) == 2


def test_a_charge_is_logged_under_dpreg(ledger, caplog):
    with caplog.at_level("INFO", logger="dpreg"):
        ledger.charge(TENTH, "dp_mean: age")
    assert caplog.messages == ["charged eps=0.1 for dp_mean: age: entry 1"]


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


def two_threads(handles):
    start, done = threading.Barrier(2), []

    def work(handle):
        start.wait()
        done.append(chargers.until_full(handle))

    threads = [threading.Thread(target=work, args=(handle,)) for handle in handles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done)


def test_two_threads_never_overspend(tmp_path):
    shared = Ledger(3)
    assert two_threads([shared, shared]) == 30
    path = tmp_path / "ledger.db"
    assert two_threads([Ledger(3, path), Ledger(3, path)]) == 30
    assert Ledger.open(path).spent == Budget(3)


def test_eight_processes_never_overspend(tmp_path):
    path = tmp_path / "ledger.db"
    Ledger(3, path)
    start, results = CLEAN.Event(), CLEAN.Queue()
    workers = [
        CLEAN.Process(target=chargers.all_until_full, args=(path, start, results)) for _ in range(8)
    ]
    for worker in workers:
        worker.start()
    start.set()
    done = answers(results, workers)
    for worker in workers:
        worker.join()
    assert sum(done) == 30
    assert Ledger.open(path).spent == Budget(3)


def test_mutant_without_a_transaction_is_caught(tmp_path, monkeypatch):
    """Two handles that both read before either writes: what the lock is there to prevent."""

    def most_inside(path, patience):
        handles = [Ledger("0.1", path), Ledger("0.1", path)]
        meet, met = threading.Barrier(2), []
        honest = store.write

        def slow(run, line):
            with contextlib.suppress(threading.BrokenBarrierError):
                meet.wait(patience)  # both arrive only if both were let in at once
                met.append(1)
            honest(run, line)

        with monkeypatch.context() as patch:
            patch.setattr(store, "write", slow)
            assert two_threads(handles) == 1  # the table's key is the second line of defence
        return len(met)

    @contextlib.contextmanager
    def autocommit(connection, *_):
        def run(statement, values=()):
            try:
                return connection.execute(statement, values).fetchall()
            except sqlite3.IntegrityError:
                raise LedgerError("the key") from None

        yield run

    assert most_inside(tmp_path / "honest.db", 0.3) == 0
    Ledger("0.1", tmp_path / "mutant.db")
    monkeypatch.setattr(sqlite, "transaction", autocommit)
    assert most_inside(tmp_path / "mutant.db", 30) == 2


def test_a_charge_beside_a_reader_of_the_same_handle_is_no_alarm(tmp_path, monkeypatch):
    ledger, honest = Ledger(1, tmp_path / "ledger.db"), store.last

    def last(run, *which):
        found = honest(run, *which)
        monkeypatch.undo()
        thread = threading.Thread(target=ledger.charge, args=(TENTH, "beside"))
        thread.start()
        thread.join()
        return found

    monkeypatch.setattr(store, "last", last)
    assert ledger.spent == Budget(0)
    assert ledger.spent == TENTH


def test_what_a_handle_saw_is_not_forgotten_for_what_it_saw_before(tmp_path):
    ledger = Ledger(1, tmp_path / "ledger.db")
    ledger.charge(TENTH, "one")
    with ledger._reading() as (_, earlier):
        ledger.charge(TENTH, "two")
    ledger._saw(earlier)
    with contextlib.closing(sqlite3.connect(ledger.path)) as connection, connection:
        connection.execute("DELETE FROM dpreg_entries WHERE number = 2")
    with pytest.raises(LedgerError, match="it has 1 entries and had 2"):
        ledger.charge(TENTH, "again")


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
    ledger = Ledger(1, tmp_path / "ledger.db")
    with order_of_events(monkeypatch, rows) as log:
        result = call("y ~ a + b", frame, eps=1, schema=schema, budget=ledger)
    assert log[:2] == ["charge", "read"]
    assert log.count("charge") == 1
    assert ledger.spent == result.spent == Budget(1)
    with order_of_events(monkeypatch, rows) as log, pytest.raises(BudgetError):
        call("y ~ a + b", frame, eps="1e-6", schema=schema, budget=ledger)
    assert log == ["charge"]
