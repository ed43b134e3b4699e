"""What a charge costs beside a bare commit of SQLite's, from an empty ledger to 100,000 entries.

    python -m benchmarks.ledger [ENTRIES]

Ratios to commits of one line of the same size, made in the same folder in turn with the charges.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

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


def charges(ledger: Ledger, bare: sqlite3.Connection, times: int) -> tuple[float, float]:
    """Median seconds of a charge and of a bare commit, taken in turn."""
    ours, theirs = [], []
    for _ in range(times):
        start = time.perf_counter()
        ledger.charge(COST, "dp_mean: income")
        middle = time.perf_counter()
        bare.execute("BEGIN IMMEDIATE")
        bare.execute("INSERT INTO line (what) VALUES (?)", ("x" * 500,))
        bare.execute("COMMIT")
        ours.append(middle - start)
        theirs.append(time.perf_counter() - middle)
    return float(np.median(ours)), float(np.median(theirs))


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
        bare.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
