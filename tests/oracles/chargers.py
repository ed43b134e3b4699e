"""What processes of their own do to a ledger: they charge it, at a signal, and tell of it."""

import time

from dpreg.errors import BudgetError, LedgerError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger

TENTH = Budget("0.1")


def some(place, charges, start, results):
    """Charge so many times; tell of the heads and of all waits in seconds."""
    ledger = Ledger.open(place, timeout=120)
    start.wait()
    heads, waits = [], []
    for _ in range(charges):
        began = time.perf_counter()
        try:
            heads.append(ledger.charge(TENTH, "a share").head)
        except LedgerError:
            raise  # the cap is the only reason
        except BudgetError:
            pass
        waits.append(time.perf_counter() - began)
    results.put((heads, waits))


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
