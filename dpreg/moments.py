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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpreg.columns import ColumnType
from dpreg.errors import ArgumentError
from dpreg.privacy.budget import ALL_ROWS
from dpreg.privacy.mechanisms import Coins, groups_of_coins
from dpreg.sources import Chunk, Integers
from dpreg.sources.persons import COIN
from dpreg.sources.reader import Reader

__all__ = [
    "CELL_BITS",
    "MOMENT_BITS",
    "Moments",
    "Vectors",
    "accumulate",
    "accumulate_groups",
    "pack",
    "read_moments",
    "to_grid",
    "unpack",
]

CELL_BITS = 20
"""A stored cell is an integer in units of 2**-CELL_BITS."""
MOMENT_BITS = 2 * CELL_BITS
"""A moment is an integer in units of 2**-MOMENT_BITS."""

_BLOCK_ROWS = 8192  # 2**13 products of at most 2**40 stay within float64's 2**53 integers
_FLUSH_BLOCKS = 512  # 2**9 blocks of at most 2**53 stay within int64


@dataclass(frozen=True, slots=True)
class Moments:
    """The exact second moments of a set of rows; moments of disjoint sets add.

    Attributes
    ----------
    rows : int
        Rows seen, complete or not. Private under add-remove.
    cells : tuple of tuples of int
        sum_i z_i z_i', D x D and symmetric, in units of 2**-40; index 0 is the constant, the last
        one the response. ``cells[0][0]`` counts the complete rows (times 2**40).
    group : str
        Which rows these are, as the budget table names them: "all", or a group that coins chose.
        Moments of two different groups together are of "all", the label that asks most.
    """

    rows: int
    cells: tuple[tuple[int, ...], ...]
    group: str = ALL_ROWS

    @classmethod
    def zero(cls, D: int) -> Moments:
        """Return the moments of no rows at all."""
        return cls(0, tuple((0,) * D for _ in range(D)))

    @property
    def size(self) -> int:
        """D: the constant, the p design columns and the response."""
        return len(self.cells)

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both sets of rows together."""
        if not isinstance(other, Moments):
            return NotImplemented
        if other.size != self.size:
            raise ArgumentError(f"moments of {self.size} and {other.size} columns do not add.")
        cells = tuple(
            tuple(a + b for a, b in zip(mine, theirs, strict=True))
            for mine, theirs in zip(self.cells, other.cells, strict=True)
        )
        group = self.group if self.group == other.group else ALL_ROWS
        return Moments(self.rows + other.rows, cells, group)

    def __mul__(self, times: int) -> Moments:
        """Return the moments of the same rows seen `times` times over."""
        if not isinstance(times, int) or isinstance(times, bool) or times < 0:
            return NotImplemented
        cells = tuple(tuple(a * times for a in r) for r in self.cells)
        return Moments(self.rows * times, cells, self.group)

    __rmul__ = __mul__

    def gram(self, columns: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return sum x x' over the given z columns, in units of 2**-40."""
        return tuple(tuple(self.cells[i][j] for j in columns) for i in columns)

    def cross(self, columns: Sequence[int]) -> tuple[int, ...]:
        """Return sum x y over the given z columns, in units of 2**-40."""
        return tuple(self.cells[i][-1] for i in columns)

    def as_float(self) -> NDArray[np.float64]:
        """D x D, each cell correctly rounded to float64, in units of 1."""
        size = self.size
        flat = [float(cell) for row in self.cells for cell in row]
        return np.array(flat, dtype=np.float64).reshape(size, size) * 2.0**-MOMENT_BITS


def pack(parts: Iterable[Moments]) -> Integers:
    """Write moments as one vector of integers, which adds as they do: counts and triangles."""
    flat: list[int] = []
    for part in parts:
        flat.append(part.rows)
        flat += [cell for i, row in enumerate(part.cells) for cell in row[i:]]
    return np.array(flat, dtype=object)


def unpack(vector: Integers, D: int) -> tuple[Moments, ...]:
    """Read moments of D columns off the vector that `pack` wrote."""
    parts = []
    upper = np.triu_indices(D)
    for rows, *triangle in vector.reshape(-1, 1 + len(upper[0])):
        cells = np.empty((D, D), dtype=object)
        cells[upper] = cells.T[upper] = triangle
        parts.append(Moments(int(rows), tuple(tuple(int(cell) for cell in row) for row in cells)))
    return tuple(parts)


class Vectors(Protocol):
    """What makes a row vector of each row, from public facts: a `Design`, for one.

    It is pickled and sent where the rows are.
    """

    @property
    def types(self) -> Mapping[str, ColumnType]:
        """What is read, and how."""

    @property
    def size(self) -> int:
        """D, the cells of a row vector."""

    def block(self, chunk: Chunk, /) -> NDArray[np.float64]:
        """Make the vectors of some rows, (rows, D), each from its own row alone.

        The array is fresh: who asked for it may write to it.
        """


@dataclass(frozen=True, slots=True)
class _MomentTally:
    """Adds up the moments of each group of rows; see `dpreg.sources.Tally`.

    Both halves of a split, and all blocks of a private radius, come from one reading of a row: its
    coin is tossed where it is read, and every attempt of a cluster's task hands over the moments of
    all groups as one vector. Rows that come with their person's coin go by that.
    """

    vectors: Vectors
    coins: Coins | None

    def __call__(self, chunks: Iterable[tuple[int, Chunk]]) -> Integers:
        coins, size = self.coins, self.vectors.size
        if coins is None:
            blocks = ((self.vectors.block(chunk), None) for _, chunk in chunks)
            return pack(_summed(blocks, size, 1, fresh=True))
        labelled = self._labelled(chunks, coins)
        return pack(_summed(labelled, size, coins.groups, fresh=True))

    def _labelled(
        self, chunks: Iterable[tuple[int, Chunk]], coins: Coins
    ) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
        for start, chunk in chunks:
            block = self.vectors.block(chunk)
            if COIN in chunk:
                yield block, groups_of_coins(chunk[COIN], coins.groups)
            else:
                yield block, coins.labels(start, len(block))


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
        Usually a `Design`.
    coins : Coins, optional
        None puts all rows into one group.
    names : sequence of str
        What the budget table calls the rows of each group, taken in turn.

    Returns
    -------
    tuple of Moments, one a group
    """
    ordered = coins is not None and coins.key is not None and reader.persons is None
    tally = _MomentTally(vectors, coins)
    vector = reader.total(vectors.types, tally, "moments", positions=ordered)
    parts = unpack(vector, vectors.size)
    reader.learn(sum(part.rows for part in parts))
    return tuple(replace(part, group=name) for part, name in zip(parts, cycle(names), strict=False))


def accumulate(blocks: Iterable[NDArray[np.float64]], D: int) -> Moments:
    """Sum z z' exactly over blocks of scaled rows.

    Parameters
    ----------
    blocks : iterable of (rows, D) float64 arrays
        Rows z = (1, x, y) in stored units; a row that counts for nothing is all zero. Blocks may
        have any number of rows; they are not changed.
    D : int
        Cells of a row.

    Returns
    -------
    Moments
        Bit-identical over row order, chunk sizes and threads; see the module's docstring.
    """
    return accumulate_groups(((block, None) for block in blocks), D, 1)[0]


def accumulate_groups(
    blocks: Iterable[tuple[NDArray[np.float64], NDArray[np.int64] | None]], D: int, groups: int
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
    return _summed(blocks, D, groups, fresh=False)


def _summed(
    blocks: Iterable[tuple[NDArray[np.float64], NDArray[np.int64] | None]],
    D: int,
    groups: int,
    *,
    fresh: bool,
) -> tuple[Moments, ...]:
    """As `accumulate_groups`; blocks that are `fresh` are written to, which saves memory."""
    total: NDArray[np.object_] = np.zeros((groups, D, D), dtype=object)
    partial = np.zeros((groups, D, D), dtype=np.int64)
    rows = np.zeros(groups, dtype=np.int64)
    pending = 0
    for block, labels in _split(blocks, D):
        cells = to_grid(block, out=block if fresh else None)
        if labels is None:
            partial[0] += (cells.T @ cells).astype(np.int64)
            rows[0] += len(cells)
        else:
            rows += np.bincount(labels, minlength=groups)
            for group, product in enumerate(_products(cells, labels, groups)):
                partial[group] += product.astype(np.int64)
        pending += 1
        if pending >= _FLUSH_BLOCKS:
            total += partial.astype(object)
            partial[:] = 0
            pending = 0
    total += partial.astype(object)
    return tuple(
        Moments(int(count), tuple(tuple(int(cell) for cell in row) for row in cells))
        for count, cells in zip(rows, total, strict=True)
    )


def _products(
    cells: NDArray[np.float64], labels: NDArray[np.int64], groups: int
) -> Iterable[NDArray[np.float64]]:
    """Return z'z of each group's rows of a block: exact, as the module says."""
    if groups == 2:  # gathering one group's rows is enough: the difference of integers is exact
        second = np.take(cells.T, np.flatnonzero(labels), axis=1)
        product = second @ second.T
        return cells.T @ cells - product, product
    ends = np.cumsum(np.bincount(labels, minlength=groups))[:-1]
    parts = np.split(cells[np.argsort(labels, kind="stable")], ends)
    return (part.T @ part for part in parts)


def _split(
    blocks: Iterable[tuple[NDArray[np.float64], NDArray[np.int64] | None]], D: int
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64] | None]]:
    """Cut incoming blocks to at most 8192 rows."""
    for block, labels in blocks:
        if block.ndim != 2 or block.shape[1] != D:
            raise ArgumentError(f"blocks must have {D} columns; got the shape {block.shape}.")
        for start in range(0, len(block), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            yield block[rows], None if labels is None else labels[rows]


def to_grid(
    block: NDArray[np.float64], out: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Clip to [-1, 1] and round to whole units of 2**-20, into `out`; a NaN counts as zero."""
    cells: NDArray[np.float64] = np.clip(block, -1.0, 1.0, out=out, dtype=np.float64)
    cells *= 2.0**CELL_BITS
    np.rint(cells, out=cells)
    np.copyto(cells, 0.0, where=np.isnan(cells))
    return cells
