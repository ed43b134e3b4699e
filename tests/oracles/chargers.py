"""What processes of their own do to a ledger: they charge it, at a signal, and tell of it."""

import os
import signal
import time

import numpy as np
from oracles.forks import FORK

from dpreg.errors import BudgetError, LedgerError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger

TENTH = Budget("0.1")


def some(place, charges, start, results, witness=None):
    """Charge so many times; tell of the heads."""
    ledger = Ledger.open(place, witness=witness, timeout=120)
    start.wait()
    heads = []
    for _ in range(charges):
        try:
            heads.append(ledger.charge(TENTH, "a share").head)
        except LedgerError:
            raise  # the cap is the only reason
        except BudgetError:
            pass
    results.put(heads)


def until_full(ledger):
    """Charge until the cap refuses; return how often."""
    done = 0
    while True:
        try:
            ledger.charge(TENTH, "a share")
        except BudgetError:
            return done
        done += 1


def all_until_full(path, start, results):
    """Open a ledger and charge it until the cap refuses; tell how often."""
    ledger = Ledger(3, path)
    start.wait()
    results.put(until_full(ledger))


def once_each(path, times, results):
    """Charge 1 so many times, as far as the cap allows; tell of the heads."""
    ledger, heads = Ledger.open(path), []
    for number in range(times):
        try:
            heads.append(ledger.charge(Budget(1), f"other {number}").head)
        except LedgerError:
            raise
        except BudgetError:
            pass
    results.put(heads)
    return ledger


def ended_without_closing(path, times, results):
    """Do the same, and end as a process does that is killed."""
    ledger = once_each(path, times, results)
    results.close()
    results.join_thread()
    os._exit(0 if ledger.entries else 1)


def endless(place, told, witness=None):
    """Charge without end; write each head to a pipe."""
    ledger = Ledger.open(place, witness=witness, timeout=120)
    while True:
        os.write(told, ledger.charge(TENTH, "a share").head.encode() + b"\n")


def killed(place, times, witness=None):
    """Kill a charging process again and again, wherever it is; return the heads it told of."""
    rng = np.random.default_rng(0)
    heads = []
    for _ in range(times):
        end, start = os.pipe()
        process = FORK.Process(target=endless, args=(place, start, witness))
        process.start()
        os.close(start)
        first = os.read(end, 4096)
        time.sleep(rng.uniform(0, 0.02))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with os.fdopen(end, "rb") as rest:
            heads += [line.decode() for line in (first + rest.read()).split(b"\n") if line]
    return heads
