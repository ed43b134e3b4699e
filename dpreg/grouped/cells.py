"""The cells of a moment matrix whose groups of columns came as codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dpreg.errors import ArgumentError
from dpreg.grouped.layout import Layout

__all__ = ["GroupedCells"]

Row = tuple[int, ...]
Integers = NDArray[np.int64] | NDArray[np.object_]


class GroupedCells(Sequence[Row]):
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
    With c a row's constant (1 where complete) and u the sums' summands, a group's column is
    z_j = rest_j c + u_j, and of two columns of one group u_j u_k = 0. Hence, with w another column,

        sum w z_j   = rest_j sum w c + sum w u_j
        sum z_j z_k = rest_j rest_k n + rest_j sum u_k + rest_k sum u_j + sum u_j u_k.
    """

    __slots__ = ("_parts", "_slot", "_vector", "layout")

    def __init__(self, layout: Layout, vector: Integers) -> None:
        if len(vector) != layout.length:
            raise ArgumentError("these moments are of other columns.")
        self.layout = layout
        self._vector = vector
        self._parts = [
            vector[start:end].reshape(shape)
            for start, end, shape in zip(
                layout.starts[:-1], layout.starts[1:], layout.shapes(), strict=True
            )
        ]
        self._slot = {
            int(place): (number, slot)
            for number, group in enumerate(layout.groups)
            for slot, place in enumerate(group.places)
        }

    @property
    def vector(self) -> Integers:
        """What is held, as `layout` says."""
        return self._vector

    def __len__(self) -> int:
        """Return D."""
        return self.layout.size

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, place: int | slice) -> Row | tuple[Row, ...]:
        """Return one row, or several."""
        if isinstance(place, slice):
            return tuple(self._row(one) for one in range(len(self))[place])
        return self._row(range(len(self))[place])

    def __eq__(self, other: object) -> bool:
        """Compare the integers."""
        if isinstance(other, GroupedCells) and self._alike(other.layout):
            return bool((self._vector == other._vector).all())
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        """Hash as the tuple of the rows."""
        return hash(tuple(self))

    def __repr__(self) -> str:
        """Show the rows, as a tuple of them is shown."""
        return repr(tuple(self))

    def plus(self, other: GroupedCells) -> GroupedCells:
        """Return the cells of both sets of rows together."""
        one, two = self._vector, other._vector
        if other.layout.length != self.layout.length:
            raise ArgumentError("moments of different columns do not add.")
        if _most(one) + _most(two) >= 2**63:
            one, two = one.astype(object), two.astype(object)
        return GroupedCells(self.layout, np.asarray(one + two))

    def times(self, count: int) -> GroupedCells:
        """Return the cells of the same rows, each seen `count` times."""
        vector = self._vector
        if _most(vector) * max(count, 1) >= 2**63:
            vector = vector.astype(object)
        return GroupedCells(self.layout, np.asarray(vector * count))

    def _alike(self, layout: Layout) -> bool:
        plain = not (layout.groups or self.layout.groups) and layout.size == self.layout.size
        return plain or layout is self.layout

    def _row(self, place: int) -> Row:
        layout = self.layout
        row = np.zeros(layout.size, dtype=object)
        found = self._slot.get(place)
        if found is None:
            at = int(np.searchsorted(layout.dense, place))
            row[layout.dense] = self._dense(at)
            for number, group in enumerate(layout.groups):
                row[group.places] = self._crossed(number, at, slice(None))
        else:
            number, slot = found
            group = layout.groups[number]
            row[layout.dense] = self._crossed(number, slice(None), slot)
            for other, one in enumerate(layout.groups):
                row[one.places] = self._within(group.rest[slot], found, other)
            sums = self._parts[2 + 2 * number]
            row[place] += int(sums[slot])
        return tuple(row.tolist())

    def _dense(self, at: int) -> Any:
        """Return a row of the columns outside groups."""
        k = len(self.layout.dense)
        columns = np.arange(k)
        low, high = np.minimum(at, columns), np.maximum(at, columns)
        return self._parts[0][low * k - low * (low + 1) // 2 + high]

    def _crossed(self, number: int, dense: Any, slots: Any) -> Any:
        """Return sums of products of a group's columns and columns outside groups."""
        rest = self.layout.groups[number].rest[slots]
        sums = self._parts[1 + 2 * number][dense, slots]
        if not np.any(rest):
            return sums
        weights = _units(self._dense(0))[dense]
        return sums.astype(object) + weights * (int(rest) if np.ndim(rest) == 0 else _exact(rest))

    def _within(self, rest: int, found: tuple[int, int], other: int) -> Any:
        """Return a group's column times the columns of a group, its own square left out."""
        number, slot = found
        own, theirs = _units(self._parts[1 + 2 * number][0, slot]), self.layout.groups[other]
        products: Any = np.zeros(len(theirs.places), dtype=object)
        if number != other:
            pair = self.layout.pairs.index((min(number, other), max(number, other)))
            block = self._parts[1 + 2 * len(self.layout.groups) + pair]
            products = block[slot] if number < other else block[:, slot]
        if not (rest or theirs.rest.any()):
            return products
        rows = _units(_units(int(self._parts[0][0])))
        sums = _units(self._parts[1 + 2 * other][0]).astype(object)
        bases = _exact(theirs.rest)
        return products.astype(object) + int(rest) * (bases * rows + sums) + bases * int(own)


def _units(sums: Any) -> Any:
    """Take out the constant's own units: its cell is 2**20."""
    return sums >> 20


def _exact(values: NDArray[np.int64]) -> NDArray[np.object_]:
    return values.astype(object)


def _most(vector: Integers) -> int:
    """Return the largest modulus."""
    return max(int(vector.max()), -int(vector.min())) if len(vector) else 0
