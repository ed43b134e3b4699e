"""Exact integer moments of the scaled rows: all that selection and fitting ever read.

A row is z = (1, x_1..x_p, y) with cells in [-1, 1]. Each cell is rounded to the grid 2**-20, and
the moments sum_i z_i z_i' are computed **exactly**, as integers in units of 2**-40.

They do not depend on the order of the rows or the sizes of the chunks: `dpreg.grouped` proves it.

Nothing here raises, warns or branches on a value: a NaN counts as a zero cell, infinities as +-1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from dpreg.arrays import MOMENT_BITS, Floats, to_grid
from dpreg.errors import ArgumentError
from dpreg.grouped import BLOCK_ROWS, CodedRows, CodedVectors, GroupedCells, Layout, Sums
from dpreg.privacy.budget import ALL_ROWS
from dpreg.privacy.mechanisms.coins import Coins, groups_of_coins
from dpreg.sources import Chunk, Integers
from dpreg.sources.base import slices
from dpreg.sources.persons import COIN
from dpreg.sources.reader import Reader

_BLOCK_CELLS = 5 << 18  # of many columns fewer rows are taken at a time: they are slower to fetch
_LEAST_ROWS = 1 << 10
_ROWS_OF_LEVEL = 16  # that are summed by codes while one level is added to its sums


@dataclass(frozen=True, slots=True)
class Moments:
    """The exact second moments of a set of rows; moments of disjoint sets of one pass add.

    Attributes
    ----------
    rows : int
        Rows seen, complete or not. Private under add-remove.
    cells : sequence of tuples of int
        sum_i z_i z_i', D x D and symmetric, in units of 2**-40; index 0 is the constant, the last
        one the response. ``cells[0][0]`` counts the complete rows (times 2**40). Usually
        `GroupedCells`, which makes a row when it is asked for.
    group : str
        Which rows these are, as the budget table names them: "all", or a group that coins chose.
        Moments of two different groups together are of "all", the label that asks most.
    """

    rows: int
    cells: Sequence[tuple[int, ...]]
    group: str = ALL_ROWS

    @property
    def size(self) -> int:
        """D: the constant, the p design columns and the response."""
        return len(self.cells)

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both sets of rows together."""
        if other.size != self.size:
            raise ArgumentError(f"moments of {self.size} and {other.size} columns do not add.")
        group = self.group if self.group == other.group else ALL_ROWS
        assert isinstance(self.cells, GroupedCells)
        assert isinstance(other.cells, GroupedCells)
        return Moments(self.rows + other.rows, self.cells + other.cells, group)

    def as_float(self) -> Floats:
        """D x D, each cell correctly rounded to float64, in units of 1."""
        found = np.empty((self.size, self.size))
        for place, row in enumerate(self.cells):
            found[place] = row
        return found * 2.0**-MOMENT_BITS


@dataclass(frozen=True, slots=True)
class _MomentTally:
    """Adds up the moments of each group of rows; see `dpreg.sources.base.Tally`.

    Both halves of a split, and all blocks of a private radius, come from one reading of a row: its
    coin is tossed where it is read, and every attempt of a cluster's task hands over the moments
    of all groups as one vector. With `by_person` rows come with their person's coin and use that.
    """

    vectors: CodedVectors
    coins: Coins | None
    by_person: bool

    def __call__(self, chunks: Iterable[tuple[int, Chunk]]) -> Integers:
        layout = self.vectors.layout
        sums = Sums(layout, 1 if self.coins is None else self.coins.groups)
        # So many rows at a time stay in the cache until they are summed; but the sums that they go
        # to are as large as the groups are.
        step = max(_LEAST_ROWS, min(BLOCK_ROWS, _BLOCK_CELLS // len(layout.dense)))
        step = max(step, _ROWS_OF_LEVEL * sum(len(group.places) for group in layout.groups))
        for start, chunk in chunks:
            rows = len(next(iter(chunk.values())))
            labels = None
            if self.coins is not None and self.by_person:
                labels = groups_of_coins(chunk[COIN], self.coins.groups)
            elif self.coins is not None:
                labels = self.coins.labels(start, rows)
            for part in slices(rows, step):
                found = self.vectors.coded({name: column[part] for name, column in chunk.items()})
                sums.add(found, None if labels is None else labels[part])
        parts = zip(sums.rows[:, None], sums.vectors(), strict=True)
        return np.concatenate([part for both in parts for part in both])


def read_moments(
    reader: Reader,
    vectors: CodedVectors,
    coins: Coins | None = None,
    names: Sequence[str] = (ALL_ROWS,),
) -> tuple[Moments, ...]:
    """Read all rows once: the exact moments of the groups that the coins send them to.

    Parameters
    ----------
    reader : Reader
    vectors : CodedVectors
    coins : Coins, optional
        None puts all rows into one group.
    names : sequence of str
        What the budget table calls the rows of each group, taken in turn.

    Returns
    -------
    tuple of Moments, one a group
    """
    ordered = coins is not None and coins.key is not None and reader.persons is None
    tally = _MomentTally(vectors, coins, reader.persons is not None)
    vector = reader.total(vectors.types, tally, "moments", positions=ordered)
    layout = vectors.layout
    parts: Iterable[Integers] = vector.reshape(-1, 1 + layout.length)
    found = tuple(
        Moments(int(part[0]), GroupedCells(layout, part[1:]), name)
        for part, name in zip(parts, cycle(names), strict=False)
    )
    reader.counted = sum(part.rows for part in found)
    return found


def accumulate(blocks: Iterable[Floats], D: int) -> Moments:
    """Sum z z' exactly over blocks of scaled rows.

    Parameters
    ----------
    blocks : iterable of (rows, D) float64 arrays
        Rows z = (1, x, y) in stored units; a row that is excluded is all zero. Blocks may
        have any number of rows; they are not changed.
    D : int
        Cells of a row.
    """
    layout = Layout(D)
    sums = Sums(layout, 1)
    for block in blocks:
        for part in slices(len(block), BLOCK_ROWS):
            sums.add(CodedRows(to_grid(block[part]), ()))
    (vector,) = sums.vectors()
    return Moments(int(sums.rows[0]), GroupedCells(layout, vector))
