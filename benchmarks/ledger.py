"""What a charge costs beside a bare commit of SQLite's, from an empty ledger to 100,000 entries.

    python -m benchmarks.ledger [ENTRIES]

A bare commit is of one line of the same size, as durable, on a connection that stays open, in turn
with the charges. Then how many charges 64 processes make that all charge at once: half of them are
beyond the cap, and refused.
"""

from __future__ import annotations

import multiprocessing
import sqlite3
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from dpreg.errors import BudgetError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.ledger import chain as store
from dpreg.privacy.ledger.chain import NOTHING, Line

COST = Budget("1e-9")


def fill(ledger: Ledger, upto: int) -> None:
    """Write lines as charges write them, in one transaction: 100,000 commits take too long."""
    book = ledger._book
    with book.database.writing(time.monotonic() + 60) as run:
        last = book.last(run)
        for _ in range(upto - last.number):
            spent = last.spent + COST
            names = ("0" * 32, "dp_mean: income", "2026-01-01T00:00:00+00:00", "", "ann", "", "")
            sums = (COST, spent, spent, NOTHING)
            last = Line(last.number + 1, *names, *sums, last.digest).sealed()
            store.write(run, last)


def charge(ledger: Ledger) -> float:
    """Seconds of a charge."""
    start = time.perf_counter()
    ledger.charge(COST, "dp_mean: income")
    return time.perf_counter() - start


def commit(bare: sqlite3.Connection) -> float:
    """Seconds of one bare commit."""
    start = time.perf_counter()
    bare.execute("BEGIN IMMEDIATE")
    bare.execute("INSERT INTO line (what) VALUES (?)", ("x" * 500,))
    bare.execute("COMMIT")
    return time.perf_counter() - start


def customer(path: Path, times: int, start: Any, told: Any) -> None:
    """Charge again and again."""
    ledger = Ledger.open(path, timeout=300)
    start.wait()
    for _ in range(times):
        with suppress(BudgetError):  # beyond the cap
            ledger.charge(COST, "dp_mean: income")
    told.put(times)


def rush(path: Path, processes: int = 64, times: int = 50) -> None:
    """Let processes charge at once twice what the cap allows."""
    context = multiprocessing.get_context("fork")
    Ledger(COST * (processes * times // 2), path)
    start, told = context.Event(), context.Queue()
    given = (path, times, start, told)
    crowd = [context.Process(target=customer, args=given) for _ in range(processes)]
    for one in crowd:
        one.start()
    time.sleep(1)
    began = time.perf_counter()
    start.set()
    done = sum(told.get() for _ in crowd)
    print(f"{processes} processes: {done / (time.perf_counter() - began):,.0f} charges a second")
    for one in crowd:
        one.join()


def main(most: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        alone = Ledger(1, place / "ledger.db", analyst_cap=1).for_analyst("ann")
        watched = Ledger(1, place / "watched.db", witness=place / "witness.db")
        bare = sqlite3.connect(place / "bare.db", isolation_level=None)
        bare.execute("PRAGMA journal_mode = WAL")
        bare.execute("PRAGMA synchronous = FULL")
        bare.execute("CREATE TABLE line (number INTEGER PRIMARY KEY, what TEXT)")
        print(f"{'entries':>8} {'charge, ms':>11} {'watched, ms':>12} {'commit, ms':>11}")
        for entries in [0, *(most // 10**k for k in (3, 2, 1, 0))]:
            fill(alone, entries)
            rounds = [(charge(alone), charge(watched), commit(bare)) for _ in range(100)]
            one, two, three = 1e3 * np.median(rounds, axis=0)
            print(f"{entries:>8,} {one:>11.1f} {two:>12.1f} {three:>11.1f}")
        bare.close()
        if sys.platform == "linux":
            rush(place / "rush.db")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
