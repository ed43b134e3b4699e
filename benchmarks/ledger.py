"""What a charge costs beside a bare commit of SQLite's, from an empty ledger to 100,000 entries.

    python -m benchmarks.ledger [ENTRIES]

Ratios to commits of one line of the same size, made in the same folder in turn with the charges.
Then what 64 processes wait that charge at once, in commits made alone before and after them: half
of the charges are beyond the cap, and refused.
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
from dpreg.privacy.ledger import Ledger, store
from dpreg.privacy.ledger.chain import NOTHING, Line

COST = Budget("1e-9")


def fill(ledger: Ledger, upto: int) -> None:
    """Write lines as charges write them, in one transaction: 100,000 commits take too long."""
    with ledger._database.writing(time.monotonic() + 60) as run:
        last = store.last(run)
        for _ in range(upto - (0 if last is None else last.number)):
            number = 1 if last is None else last.number + 1
            spent = COST if last is None else last.spent + COST
            previous = ledger._facts.genesis.digest if last is None else last.digest
            names = ("0" * 32, "dp_mean: income", "2026-01-01T00:00:00+00:00", "", "ann", "", "")
            last = Line.made(number, names, (COST, spent, spent, NOTHING), previous)
            store.write(run, last)


def commit(bare: sqlite3.Connection) -> float:
    """Seconds of one bare commit."""
    start = time.perf_counter()
    bare.execute("BEGIN IMMEDIATE")
    bare.execute("INSERT INTO line (what) VALUES (?)", ("x" * 500,))
    bare.execute("COMMIT")
    return time.perf_counter() - start


def charges(ledger: Ledger, bare: sqlite3.Connection, times: int) -> tuple[float, float]:
    """Median seconds of a charge and of a bare commit, taken in turn."""
    ours, theirs = [], []
    for _ in range(times):
        start = time.perf_counter()
        ledger.charge(COST, "dp_mean: income")
        ours.append(time.perf_counter() - start)
        theirs.append(commit(bare))
    return float(np.median(ours)), float(np.median(theirs))


def customer(path: Path, times: int, start: Any, told: Any) -> None:
    """Charge again and again; tell how long each took."""
    ledger, seconds = Ledger.open(path, timeout=300), []
    start.wait()
    for _ in range(times):
        began = time.perf_counter()
        with suppress(BudgetError):  # beyond the cap
            ledger.charge(COST, "dp_mean: income")
        seconds.append(time.perf_counter() - began)
    told.put(seconds)


def rush(path: Path, bare: sqlite3.Connection, processes: int = 64, times: int = 50) -> None:
    """Let processes charge at once twice what the cap allows; print their waits."""
    context = multiprocessing.get_context("fork")
    Ledger(COST * (processes * times // 2), path)
    start, told = context.Event(), context.Queue()
    given = (path, times, start, told)
    crowd = [context.Process(target=customer, args=given) for _ in range(processes)]
    for one in crowd:
        one.start()
    alone = [commit(bare) for _ in range(200)]
    began = time.perf_counter()
    start.set()
    waits = np.concatenate([told.get() for _ in crowd])
    rate = processes * times / (time.perf_counter() - began)
    for one in crowd:
        one.join()
    one = float(np.median(alone + [commit(bare) for _ in range(200)]))
    middle, late = np.quantile(waits, [0.5, 0.99])
    print(
        f"{processes} processes: {rate:,.0f} charges a second, median {1e3 * middle:.0f} ms, p99 "
        f"{1e3 * late:.0f} ms; a commit {1e3 * one:.2f} ms, p99 {late / one:.0f} of them"
    )


def main(most: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(1, Path(folder, "ledger.db"), analyst_cap=1).for_analyst("ann")
        bare = sqlite3.connect(Path(folder, "bare.db"), isolation_level=None)
        bare.execute("PRAGMA journal_mode = WAL")
        bare.execute("PRAGMA synchronous = FULL")
        bare.execute("CREATE TABLE line (number INTEGER PRIMARY KEY, what TEXT)")
        print(f"{'entries':>8} {'charge, ms':>11} {'commit, ms':>11} {'ratio':>6} {'a second':>9}")
        for entries in [0, *(most // 10**k for k in (3, 2, 1, 0))]:
            fill(ledger, entries)
            ledger.charge(COST, "warm")
            ours, theirs = charges(ledger, bare, 200)
            told = f"{1e3 * ours:>11.2f} {1e3 * theirs:>11.2f} {ours / theirs:>6.2f}"
            print(f"{entries:>8,} {told} {1 / ours:>9.0f}")
        if sys.platform == "linux":
            rush(Path(folder, "rush.db"), bare)
        bare.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
