"""A queue's file that somebody wrote rubbish into, or whose disk takes no more: nobody is charged
twice, nothing passes a cap, and nothing but a LedgerError comes out."""

import errno
import os
import random
import sqlite3
import struct
import sys
import time

import pytest
from oracles.forks import FORK, answers
from oracles.queues import TENTH, Line, asks, labels

from dpreg.errors import BudgetError, LedgerError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger, guard, locks, queue, store, together, transactions
from dpreg.privacy.ledger.postgres import LostConnection
from dpreg.privacy.ledger.queue import Queue, Turn
from dpreg.privacy.ledger.slots import PLACES, Slots, _place
from dpreg.privacy.ledger.sqlite import SqliteDatabase

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the queue is Linux's")
FIELDS = {"bell": 8, "length": 16, "note": 24, "replied": 32, "answer": 40}
HELD = "held by another process; nothing was charged: try again"


@pytest.fixture
def path(tmp_path):
    Ledger(5, tmp_path / "ledger.db").close()
    return tmp_path / "ledger.db"


def put(path, place, *numbers):
    file = os.open(f"{path}-queue", os.O_RDWR | os.O_CREAT)
    os.pwrite(file, struct.pack(f"<{len(numbers)}Q", *numbers), place)
    os.close(file)


@pytest.mark.parametrize("since", ["serving", "telling"])
def test_a_disk_that_is_full_from_now_on_loses_and_doubles_nothing(path, monkeypatch, since):
    """A disk that copies on write has no room even for what is there: the answers of a batch."""
    full, write = FORK.Value("i", 0), os.pwrite

    def pwrite(file, content, place):
        if full.value:
            raise OSError(errno.ENOSPC, "no space left on device")
        return write(file, content, place)

    def then(honest):
        def step(*given):
            full.value = 1
            return honest(*given)

        return step

    monkeypatch.setattr("dpreg.privacy.ledger.slots.os.pwrite", pwrite)
    if since == "serving":
        monkeypatch.setattr(together, "_those_behind", then(together._those_behind))
    else:
        monkeypatch.setattr(Turn, "tell", then(Turn.tell))
    with Line(path) as line:
        for number in range(5):
            line.add(f"charge {number}")
    told = line.told()
    assert sorted(labels(path)) == [f"charge {number}" for number in range(5)]
    heads = {entry.what: entry.head for entry in Ledger.open(path).entries}
    assert told == heads


def test_who_cannot_mark_that_it_serves_itself_is_served_by_nobody_else(path, monkeypatch):
    monkeypatch.setattr(Slots, "withdraw", lambda *_: False)
    with Line(path) as line:
        other = Queue(path)
        assert other.is_waiting(line.turn._ticket)
        line.turn.keep()
        assert not other.is_waiting(line.turn._ticket)
        with other.turn(time.monotonic() + 60, b"message") as turn:
            assert not turn.withdraw()  # it is not certain that nobody has begun to
        other.close()


@pytest.mark.parametrize("value", [1 << 40, 1 << 62, 1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("field", FIELDS)
def test_garbled_slots_harm_nobody(path, field, value):
    with Line(path) as line:
        for number in range(3):
            line.add(f"charge {number}")
        middle = line.count - 1
        put(path, _place(middle) + FIELDS[field], value)
    told = line.told()
    assert sorted(labels(path)) == [f"charge {number}" for number in range(3)]
    assert told == {entry.what: entry.head for entry in Ledger.open(path).entries}


@pytest.mark.parametrize("value", [1 << 40, 1 << 63])
def test_an_answer_of_any_size_harms_nobody(path, monkeypatch, value):
    honest = Slots.answer
    monkeypatch.setattr(Slots, "answer", lambda self, ticket, _, reply=b"": (
        honest(self, ticket, value, reply)
    ))  # fmt: skip
    with Line(path) as line:
        for number in range(3):
            line.add(f"charge {number}")
    told = line.told()
    assert sorted(labels(path)) == [f"charge {number}" for number in range(3)]
    assert told == {entry.what: entry.head for entry in Ledger.open(path).entries}


def test_a_garbled_length_of_a_reply_harms_nobody(path):
    with Line(path) as line:
        line.add("one")
        put(path, _place(line.count) + FIELDS["replied"], (1 << 64) - 1, (1 << 64) - 1)
    assert line.told() == {"one": Ledger.open(path).entries[0].head}


@pytest.mark.parametrize("counters", [(0, 1 << 40), (1 << 45, 0), (1 << 63, 5), (7, (1 << 64) - 1)])
def test_garbled_counters_hold_nobody_up(path, counters):
    with Line(path) as line:
        line.add("one")
        line.add("two")
        put(path, 0, *counters)
        start = time.monotonic()
        late = asks(path, "three", line.answers)
        line.processes.append(late)
        while not locks.first_held(line.queue._file, (1 << 40) + line.count + 1, 1 << 60):
            assert late.exitcode is None or not late.exitcode
            if late.exitcode == 0:
                break  # it was first where the counter said that all others had been served
            assert time.monotonic() < start + 30
            time.sleep(0.01)
    line.told()
    assert time.monotonic() < start + 30
    assert sorted(labels(path)) == ["one", "three", "two"]
    Ledger.open(path).charge(TENTH, "afterwards")


def test_a_file_of_rubbish_harms_nobody(tmp_path):
    path, cap = tmp_path / "ledger.db", 40
    Ledger(cap * TENTH, path).close()
    results, stop = FORK.Queue(), FORK.Event()

    def charges(number):
        ledger, heads = Ledger.open(path, timeout=60), []
        ledger._timeout = 2
        for again in range(20):
            try:
                heads.append(ledger.charge(TENTH, f"{number}, {again}").head)
            except BudgetError:
                continue
        results.put(heads)

    def garbles():
        rng = random.Random(0)
        file = os.open(f"{path}-queue", os.O_RDWR | os.O_CREAT)
        while not stop.is_set():
            ticket = Slots(file).given + rng.randrange(-2, 3)
            place = rng.choice([0, 8, *(_place(ticket) + field for field in range(0, 56, 8))])
            length = rng.choice([1, 8, 8, 200])
            os.pwrite(file, rng.randbytes(length), place + rng.randrange(8 // length + 1))
            time.sleep(0.001)

    processes = [FORK.Process(target=charges, args=(number,)) for number in range(4)]
    vandal = FORK.Process(target=garbles)
    vandal.start()
    for process in processes:
        process.start()
    told = answers(results, processes)
    stop.set()
    for process in (*processes, vandal):
        process.join()
        assert process.exitcode == 0
    ledger = Ledger.open(path)
    assert {head for heads in told for head in heads} <= {entry.head for entry in ledger.entries}
    assert ledger.cap.covers(ledger.verify().spent)


@pytest.mark.parametrize(
    "message",
    [
        '["ID", "0:HASH", "1/1", "0/1", "", "a\\ud800", "", ""]',
        '["ID", "0:HASH", "1/1", "0/1", "", "", "\\u0000", ""]',
        f'["ID", "0:HASH", "1/{1 << 6000}", "0/1", "", "", "", ""]',
    ],
    ids=["half a character", "null", "too many digits"],
)
def test_a_message_that_could_not_be_stored_or_told_is_left_alone(path, message):
    facts = Ledger.open(path)._facts
    asked = message.replace("ID", facts.identity).replace("HASH", "0" * 64)
    assert together._read(asked.encode(), facts) is None
    honest = asked.replace("a\\ud800", "a").replace("\\u0000", "u").replace(str(1 << 6000), "2")
    assert together._read(honest.encode(), facts) is not None


# Locks that are not there


def test_a_file_system_without_locks_of_open_files_has_no_queue(path, monkeypatch):
    def refuses(*_):
        raise OSError(errno.EOPNOTSUPP, "operation not supported")

    monkeypatch.setattr(locks.fcntl, "fcntl", refuses)
    ledger = Ledger.open(path)
    assert ledger.charge(TENTH, "alone").number == 1
    assert ledger.charge(TENTH, "alone").number == 2


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (sqlite3.SQLITE_IOERR_LOCK, "no locks"),
        (sqlite3.SQLITE_IOERR_RDLOCK, "no locks"),
        (sqlite3.SQLITE_IOERR_SHMLOCK, "no locks"),
        (sqlite3.SQLITE_IOERR_SHMMAP, "no locks"),
        (sqlite3.SQLITE_IOERR_FSYNC, "the disk failed"),
    ],
)
def test_a_file_system_without_locks_is_named(code, told):
    fault = sqlite3.OperationalError("disk I/O error")
    fault.sqlite_errorcode = code
    with pytest.raises(LedgerError, match=told), transactions.as_ledger_errors():
        raise fault


def test_a_folder_that_cannot_be_locked_is_a_clear_error(tmp_path, monkeypatch):
    def refuses(*_):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("fcntl.flock", refuses)
    with pytest.raises(LedgerError, match="no locks available"):
        guard.take_flock(0, time.monotonic(), "held")
    with pytest.raises(LedgerError, match="no locks available"):
        Ledger(1, tmp_path / "ledger.db")


# What is certain, and what is not


def test_who_cannot_read_what_it_was_answered_does_not_say_that_nothing_was_charged(
    path, monkeypatch
):
    """The ledger is held when a process that was charged by another looks for its line."""

    def held(*_):
        raise LedgerError(HELD)

    monkeypatch.setattr(SqliteDatabase, "glancing", held)
    with Line(path) as line:
        line.add("serves")
        line.add("served")
    fault = line.told()["served"]
    assert labels(path) == ["serves", "served"]
    assert "may or may not have been written" in str(fault)
    assert "held by another process" in str(fault)
    assert "nothing was charged" not in str(fault)


def test_who_cannot_look_whether_it_was_charged_does_not_say_that_it_was_not(path, monkeypatch):
    """Whoever began to serve was killed before it told; looking for the line fails."""

    def full(*_):
        raise LedgerError("the disk is full: nothing was charged")

    monkeypatch.setattr(store, "find", full)
    with Line(path) as line:
        line.add("one")
        put(path, _place(line.count) + FIELDS["note"], 1)
    fault = line.told()["one"]
    assert "may or may not have been written" in str(fault)
    assert "nothing was charged" not in str(fault)


@pytest.mark.parametrize("lost", [True, False])
def test_what_fails_after_a_lost_connection_is_not_certain(lost):
    class Server:
        calls = 0

        def writing(self, deadline):
            self.calls += 1
            if lost and self.calls == 1:
                raise LostConnection("gone")
            raise LedgerError(HELD)

    ledger = Ledger(1)
    request = ledger._request(TENTH, "x", "", None)
    with pytest.raises(LedgerError) as caught:
        together.charge(Server(), ledger._facts, ledger._seen, request, time.monotonic() + 60)
    assert ("nothing was charged" in str(caught.value)) is not lost
    assert ("may or may not have been written" in str(caught.value)) is lost


def test_a_place_whose_slot_is_taken_waits_without_one(path, monkeypatch):
    """So many wait that a slot's owner is still there: it is not written over."""
    monkeypatch.setattr(queue, "_LONG", 1000)
    with Line(path) as line:
        first = line.turn._ticket
        line.queue.slots.given = first + PLACES - 1
        line.processes.append(asks(path, "beyond", line.answers))
        deadline = time.monotonic() + 30
        while line.queue.slots.given < first + PLACES:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.05)
        assert line.queue.slots.owner(first) == first
        left = time.monotonic()
    assert line.told() == {"beyond": Ledger.open(path).entries[0].head}
    assert time.monotonic() - left < 30  # and not when its time is over


def test_a_number_that_was_drawn_and_given_up_is_not_drawn_again(path, monkeypatch):
    """The counter moves on between a look at it and the lock: the number was another's."""
    with Line(path) as line:
        first, seen = line.turn._ticket, []
        honest = locks.try_lock

        def late(file, byte):
            if not seen:
                line.queue.slots.given = first + 3  # others came and went meanwhile
            seen.append(byte - (1 << 40))
            return honest(file, byte)

        monkeypatch.setattr("dpreg.privacy.ledger.queue.try_lock", late)
        other = Queue(path)
        assert other._ticket(other._file, b"") == (first + 4, True)
        assert seen == [first + 1, first + 4]
        assert not line.queue.is_waiting(first + 1)
        assert line.queue.is_waiting(first + 4)
        other.close()
    assert Budget(0) == Ledger.open(path).spent


def test_a_counter_that_was_raised_is_not_counted_up_to(path, monkeypatch):
    looks, honest = [], Queue.is_waiting

    def counts(one, ticket):
        looks.append(ticket)
        assert len(looks) < 3 * PLACES
        return honest(one, ticket)

    monkeypatch.setattr(Queue, "is_waiting", counts)
    with Line(path) as line:
        line.queue.slots.given = line.turn._ticket + (1 << 40)
        assert list(line.turn.behind(9)) == []
    assert looks


def test_the_first_of_those_who_wait_is_found(tmp_path):
    files = [os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT) for _ in range(4)]
    assert all(locks.try_lock(file, byte) for file, byte in zip(files, (9, 5, 7), strict=False))
    assert locks.first_held(files[3], 4, 100) == 5
    assert locks.first_held(files[3], 6, 100) == 7
    assert locks.first_held(files[3], 6, 1) is None
    assert locks.first_held(files[3], 10, 100) is None
    assert locks.is_free(files[3], 1, 4)
    assert not locks.is_free(files[3], 1, 5)
    assert not locks.try_lock(files[3], 7)
    locks.unlock(files[2], 7)
    assert locks.try_lock(files[3], 7)
    for file in files:
        os.close(file)


def test_who_leaves_wakes_the_first_who_is_still_to_be_served(path):
    """Not one who was served, and has not left yet."""
    queues = [Queue(path) for _ in range(3)]
    (first, _), (second, _), _ = (one._ticket(one._file, b"x") for one in queues)
    queues[0].slots.served = second
    queues[0].leave(first, {}, wake=True)
    assert [bool(one._listening.poll(0)) for one in queues] == [False, False, True]
    for one in queues:
        one.close()
