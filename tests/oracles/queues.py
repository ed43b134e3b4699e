"""A queue whose first place a test holds, and processes behind it that charge the ledger."""

import os
import time

from oracles.forks import FORK, answers

from dpreg.errors import BudgetError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger, store
from dpreg.privacy.ledger.queue import Queue
from dpreg.privacy.ledger.slots import Slots

TENTH = Budget("0.1")


def asks(path, what, answers, *, cost=TENTH, analyst=None, timeout=60, seen=None):
    """Start a process that charges; `answers` gets its label and the entry or the error."""

    def inside():
        try:
            ledger = Ledger.open(path, timeout=60)
            ledger._timeout = timeout  # for the wait alone: a busy machine may be slow to open
            ledger._seen = ledger._seen if seen is None else seen
            answers.put((what, ledger.charge(cost, what, analyst=analyst).head))
        except BudgetError as fault:
            answers.put((what, fault))

    process = FORK.Process(target=inside)
    process.start()
    return process


def drawn(path):
    """How many tickets have been drawn, the message of the last one posted."""
    file = os.open(f"{path}-queue", os.O_RDONLY)
    try:
        slots = Slots(file)
        given = slots.given
        return given - (slots.of(given) is None)
    finally:
        os.close(file)


def until(count, path):
    deadline = time.monotonic() + 30
    while drawn(path) < count:
        assert time.monotonic() < deadline
        time.sleep(0.005)


class Line:
    """A queue whose first place this process holds, and the charges of others behind it."""

    def __init__(self, path):
        self.path, self.answers, self.processes = path, FORK.Queue(), []
        self.queue = Queue(path)
        self.place = self.queue.turn(time.monotonic() + 60)

    def __enter__(self):
        self.turn = self.place.__enter__()
        self.count = drawn(self.path)
        return self

    def add(self, what, **options):
        self.processes.append(asks(self.path, what, self.answers, **options))
        self.count += 1
        until(self.count, self.path)

    def __exit__(self, *fault):
        self.place.__exit__(*fault)
        self.queue.close()

    def told(self, count=None):
        found = dict(answers(self.answers, self.processes, count))
        for process in self.processes:
            process.join()
        return found


def labels(path):
    with Ledger.open(path)._reading() as run:
        lines = list(store.lines(run))
    assert Ledger.open(path).verify().entries == len(lines)
    return [line.what for line in lines]
