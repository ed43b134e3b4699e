"""Exact moments of rows in which wide factors stand as codes, never as columns of 0 and 1.

All columns of a *group* but one are the same number on every row that is complete: the scaled
value of a raw 0. The code names the one that is not. A factor's 0/1 columns are such a group, and
so are the products of a factor's columns and a number. `Layout` says which columns of a row vector
are given by a code, `Sums` adds up such rows, and `GroupedCells` is what comes out: the same
integers as those of dense rows, without most of their zeros.

Statement. `Sums` returns, for each set of rows, the integers that `Layout` lays out, exactly,
whatever the order of the rows, the BLAS, its number of threads and its order of summation.

Proof. A cell is an integer of at most 2**20 in modulus, held exactly by a float64; what a named
cell has more than the rest of its column is one of at most 2**21. *Columns outside groups*: a
product of two cells is at most 2**40, and the sum of at most 8192 = 2**13 of them, in any order and
in any grouping, never leaves [-2**53, 2**53], where every integer is a float64: no operation of a
block's product rounds, fused or not. *Groups*: a product is at most 2**42 and is added in int64,
which holds what comes of at most 2**20 rows (at most 2**62), and is emptied into Python's integers
before it takes more. Sums of integers do not depend on their order. QED

Tested in `tests/grouped/test_cells.py`, `tests/grouped/test_sums.py` and `tests/test_moments.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from dpreg.arrays import CELL_BITS, Floats, Ints, Objects, Places
from dpreg.columns import Columns
from dpreg.sources import Chunk, Integers
from dpreg.sources.base import added


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Columns of which a row's code names one.

    Attributes
    ----------
    places : (m,) array
        Their indices into the row vector.
    rest : (m,) array
        The cell of each column, in units of 2**-20, on complete rows whose code names another.
    """

    places: Ints
    rest: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """A group on some rows.

    Attributes
    ----------
    codes : (rows,) array
        Which of the group's columns; -1 where none, and on incomplete rows.
    values : (rows,) array
        Cell of the named column, on the grid; of no meaning where none is named.
    """

    codes: Places
    values: Floats


@dataclass(frozen=True, slots=True, eq=False)
class CodedRows:
    """Some rows: the columns outside groups, (rows, k), and each group's codes."""

    dense: Floats
    slots: tuple[Slots, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where the moments of coded rows lie in a vector of integers. Public.

    The vector holds, in this order: the upper triangle of the k columns outside groups, row by row;
    for each group its sums with each of those columns, m x k, and its sums of squares, m; for each
    pair of groups their sums of products, m1 x m2. Sums of a group are of what the named cells have
    more than `rest`.

    Attributes
    ----------
    size : int
        D, the cells of a row vector.
    groups : tuple of Group
        None of which has the first column, the constant, or the last, the response.
    dense : (k,) array
        Indices of the columns outside groups.
    """

    size: int
    groups: tuple[Group, ...] = ()
    dense: Ints = field(init=False)
    pairs: tuple[tuple[int, int], ...] = field(init=False)
    shapes: tuple[tuple[int, ...], ...] = field(init=False)
    starts: tuple[int, ...] = field(init=False)
    length: int = field(init=False)

    def __post_init__(self) -> None:
        """Lay out the parts one after the other."""
        grouped = [place for group in self.groups for place in group.places.tolist()]
        dense = np.setdiff1d(np.arange(self.size), grouped)
        k, widths = len(dense), [len(group.places) for group in self.groups]
        pairs = tuple(combinations(range(len(widths)), 2))
        shapes: list[tuple[int, ...]] = [(k * (k + 1) // 2,)]
        for m in widths:
            shapes += [(m, k), (m,)]
        shapes += [(widths[one], widths[other]) for one, other in pairs]
        starts = np.cumsum([0, *(np.prod(shape, dtype=int) for shape in shapes)]).tolist()
        object.__setattr__(self, "dense", dense)
        object.__setattr__(self, "pairs", pairs)
        object.__setattr__(self, "shapes", tuple(shapes))
        object.__setattr__(self, "starts", tuple(starts))
        object.__setattr__(self, "length", starts[-1])

    def parts(self, vectors: Integers) -> list[NDArray[Any]]:
        """Return views of the parts of a vector, or of several below each other."""
        ends = zip(self.starts, self.starts[1:], self.shapes, strict=False)
        return [
            vectors[..., start:end].reshape(*vectors.shape[:-1], *shape)
            for start, end, shape in ends
        ]


# ---- what makes rows -----------------------------------------------------------------------------


class CodedVectors(Protocol):
    """What makes row vectors, from public facts: a `Design`, for one. It is sent to the rows."""

    @property
    def types(self) -> Columns:
        """What is read, and how."""

    @property
    def size(self) -> int:
        """D, the cells of a row vector."""

    @property
    def layout(self) -> Layout:
        """Which columns are given by codes, and where the moments lie in a pass's vector."""

    def coded(self, chunk: Chunk, /) -> CodedRows:
        """Make the vectors of some rows, each from its own row alone, on their grid.

        It is `dpreg.arrays.to_grid` of cells in [-1, 1]. The arrays are fresh.
        """


class Vectors(CodedVectors, Protocol):
    """Vectors that can be written out."""

    def cells(self, chunk: Chunk, /) -> Floats:
        """Make the same cells of all columns, (rows, D). The array is fresh."""


# ---- cells ---------------------------------------------------------------------------------------


class GroupedCells(Sequence[tuple[int, ...]]):
    """A symmetric matrix of exact integers, read row by row: a sequence of D tuples of D integers.

    Equal to the tuple of its rows. Only what `Layout` asks for is held, so that a factor of
    thousands of levels takes no room for the products of its columns with each other.

    Parameters
    ----------
    layout : Layout
    vector : ndarray of int64 or of object
        As `layout` says.

    Notes
    -----
    With c a row's constant (1 where complete) each column is z_j = rest_j c + u_j: rest_j is 0
    outside groups, u_j is what the sums are of, and u_j u_k = 0 for two columns of one group. Hence

        sum z_j z_k = rest_j rest_k n + rest_j sum u_k + rest_k sum u_j + sum u_j u_k.
    """

    __slots__ = ("_parts", "_rest", "_slot", "layout", "vector")

    def __init__(self, layout: Layout, vector: Integers) -> None:
        assert len(vector) == layout.length
        self.layout = layout
        self.vector = vector
        self._parts = layout.parts(vector)
        self._rest = np.zeros(layout.size, dtype=object)
        self._slot: dict[int, tuple[int, int]] = {}
        for number, group in enumerate(layout.groups):
            self._rest[group.places] = group.rest
            self._slot |= {
                place: (number, slot) for slot, place in enumerate(group.places.tolist())
            }

    def __len__(self) -> int:
        """Return D."""
        return self.layout.size

    def __getitem__(self, place: Any) -> Any:
        """Return one row, or several."""
        found = range(self.layout.size)[place]
        if not isinstance(found, int):
            return tuple(self[one] for one in found)
        row = self._sums(found)
        if self._rest.any():
            sums = self._sums(0) >> CELL_BITS  # the constant's cell is 2**20
            rest, own = self._rest[found], sums[found]
            row = row + rest * (self._rest * (sums[0] >> CELL_BITS) + sums) + self._rest * own
        return tuple(row.tolist())

    def __eq__(self, other: object) -> bool:
        """Compare the integers."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __add__(self, other: GroupedCells) -> GroupedCells:
        """Return the cells of both sets of rows together, of one layout."""
        own, others = self.layout, other.layout
        assert (own.size, own.groups) == (others.size, others.groups)
        return GroupedCells(self.layout, added([self.vector, other.vector]))

    def _sums(self, place: int) -> Objects:
        """Return sum u_j u_k of one column j and every k."""
        layout, groups = self.layout, self.layout.groups
        row = np.zeros(layout.size, dtype=object)
        found = self._slot.get(place)
        if found is None:
            k, columns = len(layout.dense), np.arange(len(layout.dense))
            at = int(np.searchsorted(layout.dense, place))
            low, high = np.minimum(at, columns), np.maximum(at, columns)
            row[layout.dense] = self._parts[0][low * k - low * (low + 1) // 2 + high]
            for number, group in enumerate(groups):
                row[group.places] = self._parts[1 + 2 * number][:, at]
            return row
        own, slot = found
        row[layout.dense] = self._parts[1 + 2 * own][slot]
        row[place] = int(self._parts[2 + 2 * own][slot])
        for (one, other), table in zip(
            layout.pairs, self._parts[1 + 2 * len(groups) :], strict=True
        ):
            if own == one:
                row[groups[other].places] = table[slot]
            elif own == other:
                row[groups[one].places] = table[:, slot]
        return row


# ---- sums ----------------------------------------------------------------------------------------

BLOCK_ROWS = 8192  # 2**13 products of at most 2**40 stay within float64's 2**53 integers
_MOST_ROWS = 1 << 20  # 2**20 products of at most 2**42 stay within int64


class Sums:
    """Adds up the moments of coded rows, exactly.

    Parameters
    ----------
    layout : Layout
    sets : int
        How many sets of rows are summed separately.

    Attributes
    ----------
    rows : (sets,) array
        How many rows each set has.
    """

    def __init__(self, layout: Layout, sets: int) -> None:
        self.rows = np.zeros(sets, dtype=np.int64)
        self._layout = layout
        self._flat = np.flatnonzero(np.triu(np.ones((len(layout.dense),) * 2)))
        self._partial = np.zeros((sets, layout.length), dtype=np.int64)
        self._total: Objects | None = None
        self._pending = 0

    def add(self, coded: CodedRows, labels: Ints | None = None) -> None:
        """Add some rows, at most 2**20.

        Parameters
        ----------
        coded : CodedRows
            On the grid.
        labels : (rows,) array, optional
            The set of each row; None puts all into the first.
        """
        rows, width = coded.dense.shape
        assert width == len(self._layout.dense)
        if self._pending + rows > _MOST_ROWS:
            self._flush()
        self._pending += rows
        for start in range(0, rows, BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            cells = coded.dense[block]
            parts = [cells] if labels is None else _by_set(cells, labels[block], len(self.rows))
            for one, part in enumerate(parts):
                self.rows[one] += len(part)
                products = (part.T @ part).ravel()[self._flat].astype(np.int64)
                self._partial[one, : len(products)] += products
        if coded.slots:
            first = np.zeros(rows, dtype=np.int64) if labels is None else labels
            self._add_groups(coded, first)

    def vectors(self) -> list[Integers]:
        """Return the vector of each set, as `Layout` lays it out."""
        return [*(self._partial if self._total is None else self._total + self._partial)]

    def _add_groups(self, coded: CodedRows, first: Ints) -> None:
        """Add what the groups of columns have a share in; `first` is the set of each row."""
        layout, dense = self._layout, coded.dense.astype(np.int64, order="C")
        sums = iter(layout.parts(self._partial)[1:])
        named: list[tuple[Places, Ints]] = []  # a cell's column, and what it has more than the rest
        for group, slot in zip(layout.groups, coded.slots, strict=True):
            cross, squares, width = next(sums), next(sums), len(group.places)
            codes = np.maximum(slot.codes, 0)
            more = np.where(slot.codes < 0, 0, slot.values.astype(np.int64) - group.rest[codes])
            # Adds each row, times what its cell has more, to the sums of its set and column.
            entries = more, first * width + codes, np.arange(len(codes) + 1)
            found = csc_array(entries, shape=(len(self.rows) * width, len(codes)))
            cross += (found @ dense).reshape(cross.shape)
            squares += (found @ more).reshape(squares.shape)
            named.append((codes, more))
        flat, begins = self._partial.reshape(-1), layout.starts[1 + 2 * len(named) :]
        for (one, other), begin in zip(layout.pairs, begins, strict=False):
            (left, more), (right, times) = named[one], named[other]
            at = left * len(layout.groups[other].places) + right
            np.add.at(flat, first * layout.length + begin + at, more * times)

    def _flush(self) -> None:
        """Empty int64 into Python's integers."""
        self._total = self._partial.astype(object) + (0 if self._total is None else self._total)
        self._partial[:], self._pending = 0, 0


def _by_set(cells: Floats, labels: Ints, sets: int) -> Iterable[Floats]:
    """Return the rows of each set."""
    ends = np.cumsum(np.bincount(labels, minlength=sets))[:-1]
    return np.split(cells[np.argsort(labels, kind="stable")], ends)
