"""Charges that one process makes for several: each once, each checked alone, in order.

Processes stop where a test tells them to: at a gate that lies between two steps of the one that
holds the ledger.
"""

import contextlib
import gc
import itertools
import json
import os
import signal
import sqlite3
import sys
import time
import weakref
from fractions import Fraction

import pytest
from oracles.forks import FORK
from oracles.queues import TENTH, Line, asks, labels

from dpreg.errors import BudgetError, LedgerError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger, charging, queue, together
from dpreg.privacy.ledger.chain import Position
from dpreg.privacy.ledger.charging import Request
from dpreg.privacy.ledger.queue import Queue, Turn
from dpreg.privacy.ledger.slots import PLACES, Slot, Slots
from dpreg.privacy.ledger.sqlite import SqliteDatabase

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the queue is Linux's")


@pytest.fixture
def path(tmp_path):
    Ledger(5, tmp_path / "ledger.db").close()
    return tmp_path / "ledger.db"


def counting(monkeypatch):
    """Count how often the ledger's lock is taken, in all processes."""
    count = FORK.Value("i", 0)
    honest = SqliteDatabase.locked

    def locked(database, deadline):
        with count.get_lock():
            count.value += 1
        return honest(database, deadline)

    monkeypatch.setattr(SqliteDatabase, "locked", locked)
    return count


def test_one_transaction_makes_the_charges_of_all_who_wait_in_their_order(path, monkeypatch):
    count = counting(monkeypatch)
    with Line(path) as line:
        for number in range(8):
            line.add(f"charge {number}")
    told = line.told()
    assert labels(path) == [f"charge {number}" for number in range(8)]
    assert count.value == 1
    heads = [entry.head for entry in Ledger.open(path).entries]
    assert [told[f"charge {number}"] for number in range(8)] == heads


def test_bells_wake_those_who_were_served_and_the_next(path, monkeypatch):
    monkeypatch.setattr(queue, "_LONG", 1000)  # nobody looks by itself within the test
    monkeypatch.setattr(together, "_MOST", 2)
    with Line(path) as line:
        for number in range(6):
            line.add(f"charge {number}", timeout=1000)  # else it looks when its time is over
    line.told()
    assert labels(path) == [f"charge {number}" for number in range(6)]


def test_each_is_checked_as_if_it_had_come_alone(tmp_path):
    path = tmp_path / "ledger.db"
    Ledger("0.6", path, analyst_cap={"ada": "0.2", "bob": "0.3"}).close()
    with Line(path) as line:
        line.add("first", analyst="ada")
        line.add("second", analyst="ada")
        line.add("third", analyst="ada")  # beyond ada's
        line.add("stranger", analyst="eve")
        line.add("nobody")
        line.add("large", analyst="bob", cost=Budget("0.5"))
        line.add("small", analyst="bob", cost=Budget("0.2"))
        line.add("larger", analyst="bob", cost=Budget("0.2"))
    told = line.told()
    assert labels(path) == ["first", "second", "small"]
    assert str(told["third"]) == "third asks for eps=0.1, but only eps=0 of ada's eps=0.2 is left"
    assert "not one of the analysts" in str(told["stranger"])
    assert "say who asks" in str(told["nobody"])
    assert "large asks for eps=0.5, but only" in str(told["large"])
    assert "larger asks for eps=0.2, but only eps=0.1 of bob's" in str(told["larger"])


def test_a_message_that_is_too_long_waits_for_its_own_turn(path, monkeypatch):
    count = counting(monkeypatch)
    long = "long " * 1000
    with Line(path) as line:
        for what in ("before", long, "after"):
            line.add(what)
    line.told()
    assert labels(path) == ["before", long, "after"]
    assert count.value == 2  # the long one serves who is behind it


def test_a_message_of_another_ledger_or_none_is_left_to_its_sender(path, monkeypatch):
    count = counting(monkeypatch)
    monkeypatch.setattr(together, "_message", lambda *_: b'["another", 1]')
    with Line(path) as line:
        line.add("one")
        line.add("two")
    line.told()
    assert labels(path) == ["one", "two"]
    assert count.value == 2


def test_who_saw_a_later_state_is_refused_and_holds_nobody_up(path):
    with Line(path) as line:
        line.add("before")
        line.add("from the future", seen=Position(7, "0" * 64))
        line.add("after")
    told = line.told()
    assert labels(path) == ["before", "after"]
    assert "rolled back" in str(told["from the future"])


def dies(at, monkeypatch):
    """Let the first process that comes to a step of serving be killed there."""
    once = FORK.Value("i", 0)

    def fatal(*_):
        with once.get_lock():
            once.value += 1
            first = once.value == 1
        if first:
            os.kill(os.getpid(), signal.SIGKILL)

    if at == "before the commit":
        honest = together._those_behind

        def serve(*given):
            answers = honest(*given)
            fatal()
            return answers

        monkeypatch.setattr(together, "_those_behind", serve)
    else:
        tell = Turn.tell

        def told(turn, answers):
            fatal()
            tell(turn, answers)

        monkeypatch.setattr(Turn, "tell", told)


def killed(path):
    with Line(path) as line:
        for number in range(6):
            line.add(f"charge {number}")
    told = line.told(5)
    assert "charge 0" not in told
    return told


@pytest.mark.parametrize("at", ["before the commit", "after the commit"])
def test_each_charge_is_made_once_though_who_serves_is_killed(path, monkeypatch, at):
    dies(at, monkeypatch)
    told = killed(path)
    made = [f"charge {number}" for number in range(at == "before the commit", 6)]
    assert labels(path) == made
    heads = {entry.what: entry.head for entry in Ledger.open(path).entries}
    assert all(heads[what] == head for what, head in told.items())


def test_mutant_that_leaves_no_note_charges_twice(path, monkeypatch):
    dies("after the commit", monkeypatch)
    monkeypatch.setattr(Turn, "take", lambda *_: True)
    killed(path)
    assert len(labels(path)) > 6


def gives_up(path):
    """Let one give up while its turn is far; return what it and the ledger say."""
    with Line(path) as line:
        line.add("patient")
        line.add("hasty", timeout=0.3)
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        what, fault = line.answers.get(timeout=60)
        assert what == "hasty"
        blocker.execute("ROLLBACK")
        blocker.close()
    return line, fault


def test_who_gives_up_is_not_charged_afterwards(path):
    line, fault = gives_up(path)
    assert "nothing was charged" in str(fault)
    line.told(1)
    assert labels(path) == ["patient"]


@pytest.mark.parametrize("withdraws", [True, False])
def test_a_place_that_is_given_up_while_its_ticket_is_held(path, monkeypatch, withdraws):
    """The moment between giving up and leaving; without the mark it would be served there."""
    if not withdraws:
        monkeypatch.setattr(Slots, "withdraw", lambda *_: None)
    gate, leaving, held, done = (FORK.Event() for _ in range(4))
    honest = Queue.leave

    def blocks():
        with Ledger.open(path)._database.locked(time.monotonic() + 30):
            held.set()
            done.wait(60)

    def slow(queue, ticket, served, *, wake):
        if not served and not wake:
            leaving.set()
            gate.wait(60)
        honest(queue, ticket, served, wake=wake)

    monkeypatch.setattr(Queue, "leave", slow)
    with Line(path) as line:
        line.add("patient")
        holder = FORK.Process(target=blocks)
        holder.start()
        assert held.wait(60)
        line.add("hasty", timeout=0.2)
        assert leaving.wait(60)
        done.set()
        holder.join()
    told = line.answers.get(timeout=60)
    assert told[0] == "patient"
    gate.set()
    assert isinstance(line.told(1)["hasty"], LedgerError)
    assert labels(path) == (["patient"] if withdraws else ["patient", "hasty"])


def test_who_gives_up_while_being_served_is_told_that_it_may_be_charged(path, monkeypatch):
    gate = FORK.Event()
    honest = together._those_behind

    def slow(book, turn):
        answers = honest(book, turn)
        gate.wait(60)
        return answers

    monkeypatch.setattr(together, "_those_behind", slow)
    with Line(path) as line:
        line.add("patient")
        line.add("hasty", timeout=3)  # long enough to be taken before it gives up
    what, fault = line.answers.get(timeout=60)
    assert what == "hasty"
    assert "may or may not have been written" in str(fault)
    gate.set()
    line.told(1)
    assert labels(path) == ["patient", "hasty"]


def test_who_comes_while_others_are_served_is_served_with_them_once(path):
    with Line(path) as line:
        behind = line.turn.behind(9)
        labels_of = []
        for what in ("before", "meanwhile", "too late"):
            line.add(what)
            labels_of += [json.loads(other.message)[5] for other in itertools.islice(behind, 1)]
        assert labels_of == ["before", "meanwhile"]
    line.told()
    assert labels(path) == ["before", "meanwhile", "too late"]


def test_nobody_sees_a_ticket_before_its_message_and_its_lock(path, monkeypatch):
    seen, honest = [], Slots.post

    def post(slots, ticket, bell, message):
        seen.append((slots.given, ticket))
        with contextlib.closing(Queue(path)) as other:
            assert other.is_waiting(ticket)
        honest(slots, ticket, bell, message)

    monkeypatch.setattr(Slots, "post", post)
    ledger = Ledger.open(path)
    ledger.charge(TENTH, "first")
    ledger.charge(TENTH, "second")
    assert seen == [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"[" * 1900,
        b"1",
        b'["ID", "0:HASH", "1/0", "0/1", "", "", "", ""]',
        b'["ID", "0:HASH", "-1/1", "0/1", "", "", "", ""]',
        b'["ID", "0:HASH", "1/1", "1/1", "", "", "", ""]',
        b'["ID", "0:HASH", 1, "0/1", "", "", "", ""]',
        b'["ID", "0:HASH", "1/1", "0/1", "", "", ""]',
        b'["ID", 7, "1/1", "0/1", "", "", "", ""]',
    ],
)
def test_a_message_that_nobody_sends_is_left_alone(path, message):
    facts = Ledger.open(path)._facts
    message = message.replace(b"ID", facts.identity.encode()).replace(b"HASH", b"0" * 64)
    assert together._read(message, facts) is None


def test_a_message_says_what_is_asked_exactly(path):
    facts = Ledger.open(path)._facts
    cost = Budget(Fraction(1, 3), "1e-30")
    request, seen = Request.made(cost, "a mean", "a row", "ada"), Position(3, "0" * 64)
    assert together._read(together._message(facts, seen, request), facts) == (request, seen)


def test_slots_belong_to_one_ticket_and_say_so(tmp_path):
    file = os.open(tmp_path / "queue", os.O_RDWR | os.O_CREAT)
    slots = Slots(file)
    assert (slots.given, slots.served, slots.of(1)) == (0, 0, None)
    slots.post(1, 9, b"message")
    slots.note(1, 3)
    slots.answer(1, 4, b"reply")
    slots.withdraw(1)
    found = slots.of(1)
    assert (found.bell, found.note, found.answer, found.withdrawn) == (9, 3, 4, True)
    assert slots.posted(1) == (found, b"message")
    assert slots.reply(1, found.replied) == b"reply"
    other = 1 + PLACES  # takes the place over
    slots.post(other, 8, b"x" * 5000)
    assert slots.of(1) is None is slots.posted(1)
    assert slots.of(other) == Slot(8, 0, 0, 0, 0, False)
    slots.answer(other, 5, b"x" * 5000)
    assert slots.of(other) == Slot(8, 0, 0, 0, 5, False)
    slots.given, slots.served = 5, 8  # a machine that stopped may keep one of two counters
    assert slots.given == 8
    os.close(file)


@pytest.mark.parametrize("reply", [b"", b"0" * 32 + b" because"])
def test_who_is_refused_by_another_finds_out_why_where_it_is_not_told(tmp_path, monkeypatch, reply):
    path = tmp_path / "ledger.db"
    Ledger("0.1", path).close()
    honest = Slots.answer
    monkeypatch.setattr(Slots, "answer", lambda slots, *told: honest(slots, *told[:2], reply))
    with Line(path) as line:
        line.add("first")
        line.add("second")
    assert "second asks for eps=0.1, but only eps=0 of" in str(line.told()["second"])
    assert labels(path) == ["first"]


def test_who_is_refused_by_another_takes_its_word_and_looks_up_nothing(tmp_path, monkeypatch):
    path = tmp_path / "ledger.db"
    Ledger("0.1", path).close()
    monkeypatch.delattr(charging, "fitting")
    with Line(path) as line:
        line.add("first")
        line.add("second")
    assert "second asks for eps=0.1, but only eps=0 of" in str(line.told()["second"])


def test_a_refusal_keeps_no_ledger_open(tmp_path):
    ledger = Ledger("0.1", tmp_path / "ledger.db")
    kept = weakref.ref(ledger._database)
    gc.disable()
    try:
        with contextlib.suppress(BudgetError):
            ledger.charge(Budget(1), "too much")
        del ledger
        assert kept() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("number", [1, 99])
def test_an_answer_that_the_book_does_not_bear_out_is_not_believed(path, monkeypatch, number):
    once = FORK.Value("i", 0)
    honest = together._those_behind

    def serve(book, turn):
        with once.get_lock():
            once.value += 1
            first = once.value == 1
        if not first:
            return honest(book, turn)
        return {other.ticket: (number, b"") for other in turn.behind(9)}

    monkeypatch.setattr(together, "_those_behind", serve)
    with Line(path) as line:
        line.add("serves")
        line.add("served")
    told = line.told()
    assert labels(path) == ["serves", "served"]
    assert told["served"] == Ledger.open(path).entries[1].head


@pytest.mark.parametrize("fails", ["post", "given"])
def test_a_disk_that_takes_no_ticket_or_no_message_holds_nobody_up(path, monkeypatch, fails):
    def full(*_):
        raise OSError(28, "no space")

    if fails == "post":
        monkeypatch.setattr(Slots, "post", full)
    else:
        monkeypatch.setattr(Slots, "given", property(lambda _: 0, full))
    processes = [asks(path, f"charge {number}", FORK.Queue()) for number in range(3)]
    for process in processes:
        process.join(30)
        assert process.exitcode == 0
    assert sorted(labels(path)) == ["charge 0", "charge 1", "charge 2"]
