"""A table and tallies for tests of sources, plain and exact, and tallies that die on the way.

They are pickled to workers that import this module, so a worker's path must have `tests` in it.
"""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dpreg.columns import Boolean, Categorical, Numeric, Unbounded
from dpreg.privacy.mechanisms.coins import Coins
from dpreg.sources import as_source
from dpreg.sources.base import CHUNK_ROWS

COLUMNS = {
    "x": Numeric(-1, 1),
    "whole": Unbounded(),
    "gone": Unbounded(),
    "truth": Boolean(),
    "text": Categorical(["a", "b"]),
    "label": Categorical(["u", "v", "w"]),
    "code": Categorical([1, 2, 3]),
}
ROWS = 500


def table(rows=ROWS):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "unused": "secret",
            "x": rng.normal(size=rows),
            "whole": rng.integers(-9, 9, rows),
            "gone": pd.array(rng.integers(0, 2, rows), dtype="Int64"),
            "truth": rng.integers(0, 2, rows).astype(bool),
            "text": rng.choice(["a", "b", "c"], rows),
            "label": pd.Categorical(rng.choice(["u", "w", "x"], rows)),
            "code": rng.integers(0, 4, rows),
        }
    )
    frame.loc[::7, "x"] = np.nan
    frame.loc[3::5, ["gone", "text", "label"]] = None
    return frame


@dataclass(frozen=True)
class Sums:
    """Rows, missing cells, products of numbers on the grid, level counts: one row of it a group."""

    numbers: tuple[str, ...]
    factors: tuple[tuple[str, int], ...]
    coins: Coins | None = None
    scale: int = 1

    @classmethod
    def of(cls, columns, coins=None, scale=1):
        factors = {n: len(c.levels) for n, c in columns.items() if isinstance(c, Categorical)}
        numbers = tuple(name for name in columns if name not in factors)
        return cls(numbers, tuple(factors.items()), coins, scale)

    @property
    def groups(self):
        return 1 if self.coins is None else self.coins.groups

    def __call__(self, chunks):
        length = 1 + len(self.numbers) * (1 + len(self.numbers))
        length += sum(levels + 1 for _, levels in self.factors)
        total = np.zeros((self.groups, length), dtype=object)
        for start, chunk in chunks:
            rows = len(next(iter(chunk.values())))
            assert 0 < rows <= CHUNK_ROWS
            group = np.zeros(rows, int) if self.coins is None else self.coins.labels(start, rows)
            for g in range(self.groups):
                total[g] += self._of({n: v[group == g] for n, v in chunk.items()})
        return total.ravel()

    def _of(self, chunk):
        cells = [len(next(iter(chunk.values())))]
        grid = []
        for name in self.numbers:
            assert chunk[name].dtype == np.float64
            cells.append(int(np.isnan(chunk[name]).sum()))
            grid.append(np.rint(np.nan_to_num(chunk[name]) * 2**20).astype(np.int64))
        cells += [int(a @ b) * self.scale for a in grid for b in grid]
        for name, levels in self.factors:
            assert chunk[name].dtype == np.int32
            cells += np.bincount(chunk[name] + 1, minlength=levels + 1).tolist()
        return np.array(cells, dtype=object)


@dataclass(frozen=True)
class Exact:
    """Adds up each column's cells bit by bit: sums of their float64's bits, missing ones alike."""

    names: tuple[str, ...]

    def __call__(self, chunks):
        total = np.zeros(len(self.names), dtype=object)
        for _, chunk in chunks:
            for place, name in enumerate(self.names):
                bits = np.where(np.isnan(chunk[name]), np.nan, chunk[name]).view(np.int64)
                total[place] += sum(map(int, bits))
        return total


@dataclass(frozen=True)
class Wide:
    """A vector of many entries, each the number of rows."""

    length: int

    def __call__(self, chunks):
        rows = sum(len(next(iter(chunk.values()))) for _, chunk in chunks)
        return np.full(self.length, rows, dtype=np.int64)


def check_halves(total):
    """Each row is in one half: the halves of a pass with secure coins add up to all rows."""
    frame = table()
    whole = as_source(frame).total(COLUMNS, Sums.of(COLUMNS))
    halves = total(frame, Sums.of(COLUMNS, Coins(2))).reshape(2, -1)
    assert list(halves.sum(axis=0)) == list(whole)
    assert 0 < halves[0, 0] < ROWS  # both halves have rows, but for 2**-499


@dataclass(frozen=True)
class Mixed:
    """A mutant: what it hands over comes from two attempts, one for each half of the vector."""

    tally: object

    def __call__(self, chunks):
        chunks = list(chunks)
        first, again = self.tally(chunks), self.tally(chunks)
        half = len(first) // 2
        return np.concatenate([first[:half], again[half:]])


_finished = 0


@dataclass(frozen=True)
class Killed:
    """Kills its own process, once for all, in the midst of a partition, when some are done."""

    tally: object
    flag: Path
    parent: int
    after: int

    def __call__(self, chunks):
        global _finished
        vector = self.tally(chunks)
        if os.getpid() != self.parent and _finished >= self.after and claim(self.flag):
            os.kill(os.getpid(), signal.SIGKILL)
        _finished += 1
        return vector


@dataclass(frozen=True)
class FailsFirst:
    """Raises in the first attempt of a Spark task, when all of its rows have been read."""

    tally: object
    partitions: frozenset[int]

    def __call__(self, chunks):
        vector = self.tally(chunks)
        from pyspark import TaskContext

        context = TaskContext.get()
        if context and context.partitionId() in self.partitions and not context.attemptNumber():
            raise RuntimeError("the first attempt fails")
        return vector


@dataclass(frozen=True)
class Leaks:
    """Raises with what it sees, or with another error that it is given."""

    name: str
    kind: type[BaseException] = ValueError

    def __call__(self, chunks):
        for _, chunk in chunks:
            raise self.kind(f"secret {chunk[self.name][0]}")
        return np.zeros(1, dtype=np.int64)


def claim(flag):
    """Whether this is the first call for a file."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
