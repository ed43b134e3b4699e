"""Sums over rows that come with codes: exact, and the same as those of dense rows.

Statement. `GroupSums` returns, for each set of rows, the integers that `dpreg.grouped.layout` lays
out, exactly.

Proof. Cells are integers of at most 2**20 in modulus, what a named cell has more than the rest of
its column at most 2**21. A summand is a product of two such numbers, at most 2**42 in modulus, and
int64 holds the sum of 2**20 of them (at most 2**62). Where all rows of a group have the same
`steps` what is summed is the other factor alone, at most 2**20 in modulus: a float64 holds the sum
of 2**20 of these (at most 2**40) and each sum on the way. The steps are multiplied in at the end,
in Python's integers where there are more than 2**20 rows. Sums that are not such counts are added
to Python's integers at least every 2**20 rows. Sums of integers do not depend on their order. QED
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dpreg.grouped.layout import Layout, Slots

__all__ = ["GroupSums"]

_MOST_ROWS = 1 << 20  # 2**20 products of at most 2**42 stay within int64


class GroupSums:
    """Adds up the part of the moments that the groups of columns have a share in.

    Parameters
    ----------
    layout : Layout
    sets : int
        How many sets of rows are summed separately.
    """

    def __init__(self, layout: Layout, sets: int) -> None:
        self._layout = layout
        self._sets = sets
        self._rows = self._pending = 0
        self._partial = self._zeros(np.int64)
        self._total: list[NDArray[Any]] | None = None

    def add(
        self,
        cells: NDArray[np.float64],
        slots: Sequence[Slots],
        labels: NDArray[np.int64] | None = None,
    ) -> None:
        """Add some rows, at most 2**20.

        Parameters
        ----------
        cells : (rows, k) array
            The columns outside groups, whole numbers of 2**-20.
        slots : sequence of Slots
            Each group on these rows, values in whole numbers of 2**-20.
        labels : (rows,) array, optional
            The set of each row; None puts all into the first.
        """
        rows = len(cells)
        if self._pending + rows > _MOST_ROWS:
            self._flush()
        first = np.zeros(rows, dtype=np.int64) if labels is None else labels
        chosen = [self._chosen(number, one) for number, one in enumerate(slots)]
        sums = iter(self._partial)
        for group, slot, (places, codes, values) in zip(
            self._layout.groups, slots, chosen, strict=True
        ):
            cross, squares = next(sums), next(sums)
            width = len(group.places)
            if group.steps is not None:
                none = self._sets * width
                _add_cells(cross, np.where(slot.codes < 0, none, first * width + slot.codes), cells)
                continue
            found = _selection(first[places] * width + codes, values, self._sets * width)
            cross += (found @ cells[places].astype(np.int64)).reshape(cross.shape)
            squares += (found @ values).reshape(squares.shape)
        for one, other in self._layout.pairs:
            table = next(sums)
            _add_pairs(table, rows, first, chosen[one], chosen[other])
        self._pending += rows
        self._rows += rows

    def vectors(self, triangles: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the vector of each set, as `Layout` lays it out.

        Parameters
        ----------
        triangles : sequence of arrays
            The upper triangle of each set's columns outside groups.
        """
        if self._total is not None:
            self._flush()
        sums = self._partial if self._total is None else self._total
        if self._rows > _MOST_ROWS:
            sums = [one.astype(object) for one in sums]
        groups = self._layout.groups
        for number, group in enumerate(groups):
            if group.steps is not None:
                cross = sums[2 * number]
                counts = cross[:, :, 0] >> 20
                sums[2 * number + 1] = counts * group.steps**2
                sums[2 * number] = cross * group.steps[:, None]
        for place, (one, other) in enumerate(self._layout.pairs, 2 * len(groups)):
            for steps, axis in ((groups[one].steps, 1), (groups[other].steps, 2)):
                if steps is not None:
                    shape = [1, 1, 1]
                    shape[axis] = -1
                    sums[place] = sums[place] * steps.reshape(shape)
        vectors = []
        for row, triangle in enumerate(triangles):
            parts = [triangle]
            for number in range(len(groups)):
                parts += [sums[2 * number][row].T.ravel(), sums[2 * number + 1][row]]
            parts += [table[row].ravel() for table in sums[2 * len(groups) :]]
            vectors.append(np.concatenate(parts))
        return vectors

    def _zeros(self, dtype: Any) -> list[NDArray[Any]]:
        k, groups = len(self._layout.dense), self._layout.groups
        shapes: list[tuple[int, ...]] = []
        for group in groups:
            shapes += [(self._sets, len(group.places), k), (self._sets, len(group.places))]
        for one, other in self._layout.pairs:
            shapes.append((self._sets, len(groups[one].places), len(groups[other].places)))
        return [np.zeros(shape, dtype=dtype) for shape in shapes]

    def _chosen(self, number: int, slots: Slots) -> tuple[Any, Any, Any]:
        """Return the rows on which a group has a named column: places, codes, values above rest."""
        places = np.flatnonzero(slots.codes >= 0)
        codes = slots.codes[places]
        if slots.values is None:
            return places, codes, np.ones(len(places), dtype=np.int64)
        values = slots.values[places].astype(np.int64)
        return places, codes, values - self._layout.groups[number].rest[codes]

    def _flush(self) -> None:
        if all(group.steps is not None for group in self._layout.groups):
            self._pending = 0  # counts and sums of cells: int64 holds those of 2**42 rows
            return
        if self._total is None:
            self._total = self._zeros(object)
        for total, partial in zip(self._total, self._partial, strict=True):
            total += partial.astype(object)
            partial[:] = 0
        self._pending = 0


def _add_cells(cross: Any, places: Any, cells: NDArray[np.float64]) -> None:
    """Add each row's cells to the sums of its set and code; `places` past the last add nothing."""
    sums = cross.reshape(-1, cross.shape[-1])
    for column, cell in zip(sums.T, cells.T, strict=True):
        column += np.bincount(places, cell, len(sums) + 1)[:-1].astype(np.int64)


def _selection(rows: Any, values: Any, height: int) -> Any:
    """Return the matrix that adds each of its columns, times its value, to one of its rows."""
    count = len(rows)
    # csr of the transpose, read as csc: one entry a row, so that nothing has to be sorted.
    by_row = csr_array((values, rows, np.arange(count + 1)), shape=(count, height))
    return by_row.T


def _add_pairs(table: Any, rows: int, first: Any, one: Any, other: Any) -> None:
    """Add products of two groups' values where both have a named column."""
    _, height, width = table.shape
    (places, codes, values), (places2, codes2, values2) = one, other
    code = np.full(rows, -1)
    value = np.zeros(rows, dtype=np.int64)
    code[places2], value[places2] = codes2, values2
    there = code[places] >= 0
    places, codes, values = places[there], codes[there], values[there]
    flat = ((first[places] * height) + codes) * width + code[places]
    np.add.at(table.reshape(-1), flat, values * value[places])
