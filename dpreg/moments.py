"""Exact integer moments of the scaled rows: all that selection and fitting ever read.

A row is z = (1, x_1..x_p, y) with cells in [-1, 1]. Each cell is rounded to the grid 2**-20, and
the moments sum_i z_i z_i' are computed **exactly**, as integers in units of 2**-40.

Statement. `accumulate` returns the exact integer sums, whatever the order of the rows, the sizes
of the chunks, the BLAS, its number of threads and its order of summation.

Proof. A gridded cell is an integer in [-2**20, 2**20], held exactly by a float64. A product of two
is an integer of at most 2**40, and the sum of at most 8192 = 2**13 of them, in any order and in
any grouping, never leaves [-2**53, 2**53], where every integer is a float64: no operation of the
block's product rounds, fused or not. A block's product is therefore the exact integer matrix; it
is added in int64, which holds 512 = 2**9 blocks (|sum| <= 2**62 < 2**63), and flushed to Python
integers at least that often. Integer addition is associative and commutative, so nothing else of
the input's order or chunking is left in the result. QED

Nothing here raises, warns or branches on a value: a NaN counts as a zero cell, infinities as +-1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle

import numpy as np

from dpreg.arrays import MOMENT_BITS, Floats, Ints, Objects, to_grid
from dpreg.errors import ArgumentError
from dpreg.grouped import (
    CodedRows,
    CodedVectors,
    GroupedCells,
    GroupSums,
    Layout,
    Vectors,
    layout_of,
    plain_layout,
)
from dpreg.privacy.budget import ALL_ROWS
from dpreg.privacy.mechanisms.coins import Coins, groups_of_coins
from dpreg.sources import Chunk, Integers
from dpreg.sources.persons import COIN
from dpreg.sources.reader import Reader

_BLOCK_ROWS = 8192  # 2**13 products of at most 2**40 stay within float64's 2**53 integers
_FLUSH_BLOCKS = 512  # 2**9 blocks of at most 2**53 stay within int64
_BLOCK_CELLS = 5 << 18  # of many columns fewer rows are taken at a time: they are slower to fetch
_LEAST_ROWS = 1 << 10
_ROWS_OF_LEVEL = 16  # that are summed by codes while one level is added to its sums


@dataclass(frozen=True, slots=True)
class Moments:
    """The exact second moments of a set of rows; moments of disjoint sets add.

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
        own = self.cells
        cells = own if isinstance(own, GroupedCells) else GroupedCells.of(own)
        return Moments(self.rows + other.rows, cells + other.cells, group)

    def as_float(self) -> Floats:
        """D x D, each cell correctly rounded to float64, in units of 1."""
        found = np.empty((self.size, self.size))
        for place, row in enumerate(self.cells):
            found[place] = row
        return found * 2.0**-MOMENT_BITS


def unpack(vector: Integers, layout: Layout) -> tuple[Moments, ...]:
    """Read the moments of each group of rows off the vector that a pass added up."""
    return tuple(
        Moments(int(part[0]), GroupedCells(layout, part[1:]))
        for part in vector.reshape(-1, 1 + layout.length)
    )


@dataclass(frozen=True, slots=True)
class _MomentTally:
    """Adds up the moments of each group of rows; see `dpreg.sources.Tally`.

    Both halves of a split, and all blocks of a private radius, come from one reading of a row: its
    coin is tossed where it is read, and every attempt of a cluster's task hands over the moments
    of all groups as one vector. With `by_person` rows come with their person's coin and use that.
    """

    vectors: Vectors
    coins: Coins | None
    by_person: bool

    def __call__(self, chunks: Iterable[tuple[int, Chunk]]) -> Integers:
        groups = 1 if self.coins is None else self.coins.groups
        layout = layout_of(self.vectors)
        sums = GroupSums(layout, groups)
        triangles, rows = _summed(self._cells(chunks, sums), len(layout.dense), groups)
        vectors = sums.vectors(triangles)
        parts = zip(rows[:, None], vectors, strict=True)
        return np.concatenate([part for both in parts for part in both])

    def _cells(
        self, chunks: Iterable[tuple[int, Chunk]], sums: GroupSums
    ) -> Iterator[tuple[Floats, Ints | None]]:
        """Put rows on the grid; what stands as codes goes to `sums`, the rest on."""
        step = self._step()
        for start, chunk in chunks:
            rows = len(next(iter(chunk.values())))
            labels = self._labels(start, chunk, rows)
            for part in (slice(at, at + step) for at in range(0, rows, step)):
                found = self._coded({name: column[part] for name, column in chunk.items()})
                for slots in found.slots:
                    if slots.values is not None:
                        to_grid(slots.values, out=slots.values)
                cells = to_grid(found.dense, out=found.dense)
                some = None if labels is None else labels[part]
                if found.slots:
                    sums.add(cells, found.slots, some)
                yield cells, some

    def _step(self) -> int:
        """Return how many rows of a chunk to take, so that they stay in the cache until summed."""
        layout = layout_of(self.vectors)
        step = max(_LEAST_ROWS, min(_BLOCK_ROWS, _BLOCK_CELLS // len(layout.dense)))
        # Each part's sums are as large as the groups are.
        return max(step, _ROWS_OF_LEVEL * sum(len(group.places) for group in layout.groups))

    def _coded(self, chunk: Chunk) -> CodedRows:
        """Make rows of a chunk."""
        vectors = self.vectors
        if isinstance(vectors, CodedVectors):
            return vectors.coded(chunk)
        return CodedRows(vectors.block(chunk), ())

    def _labels(self, start: int, chunk: Chunk, rows: int) -> Ints | None:
        if self.coins is None:
            return None
        if self.by_person:
            return groups_of_coins(chunk[COIN], self.coins.groups)
        return self.coins.labels(start, rows)


def read_moments(
    reader: Reader,
    vectors: Vectors,
    coins: Coins | None = None,
    names: Sequence[str] = (ALL_ROWS,),
) -> tuple[Moments, ...]:
    """Read all rows once: the exact moments of the groups that the coins send them to.

    Parameters
    ----------
    reader : Reader
    vectors : Vectors
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
    parts = unpack(vector, layout_of(vectors))
    reader.learn(sum(part.rows for part in parts))
    return tuple(replace(part, group=name) for part, name in zip(parts, cycle(names), strict=False))


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
    return accumulate_groups(((block, None) for block in blocks), D, 1)[0]


def accumulate_groups(
    blocks: Iterable[tuple[Floats, Ints | None]], D: int, groups: int
) -> tuple[Moments, ...]:
    """Sum z z' exactly and separately over groups of rows, in one pass.

    Parameters
    ----------
    blocks : iterable of (block, labels)
        A block as for `accumulate`, and the group in 0 .. groups - 1 of each of its rows; None
        puts all of them into group 0.
    D : int
        Cells of a row.
    groups : int
        How many groups.

    Returns
    -------
    tuple of Moments, one a group
    """
    layout = plain_layout(D)
    cells = ((to_grid(block), labels) for block, labels in _split(blocks, D))
    triangles, rows = _summed(cells, D, groups)
    return tuple(
        Moments(int(count), GroupedCells(layout, triangle))
        for count, triangle in zip(rows, triangles, strict=True)
    )


def _summed(
    blocks: Iterable[tuple[Floats, Ints | None]], D: int, groups: int
) -> tuple[list[Integers], Ints]:
    """Sum cells on the grid: the upper triangle of each group, and its number of rows."""
    flat = np.ravel_multi_index(np.triu_indices(D), (D, D))
    total: Objects | None = None
    partial = np.zeros((groups, len(flat)), dtype=np.int64)
    rows = np.zeros(groups, dtype=np.int64)
    pending = 0
    for cells, labels in _split(blocks, D):
        if labels is None:
            partial[0] += (cells.T @ cells).ravel()[flat].astype(np.int64)
            rows[0] += len(cells)
        else:
            rows += np.bincount(labels, minlength=groups)
            for group, product in enumerate(_products(cells, labels, groups)):
                partial[group] += product.ravel()[flat].astype(np.int64)
        pending += 1
        if pending >= _FLUSH_BLOCKS:
            total = partial.astype(object) + (0 if total is None else total)
            partial[:] = 0
            pending = 0
    return [*(partial if total is None else total + partial)], rows


def _products(cells: Floats, labels: Ints, groups: int) -> Iterable[Floats]:
    """Return z'z of each group's rows of a block: exact, as the module says."""
    ends = np.cumsum(np.bincount(labels, minlength=groups))[:-1]
    parts = np.split(cells[np.argsort(labels, kind="stable")], ends)
    return (part.T @ part for part in parts)


def _split(
    blocks: Iterable[tuple[Floats, Ints | None]], D: int
) -> Iterator[tuple[Floats, Ints | None]]:
    """Cut incoming blocks to at most 8192 rows."""
    for block, labels in blocks:
        assert block.shape[1] == D
        for start in range(0, len(block), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            yield block[rows], None if labels is None else labels[rows]
