"""Which columns of a row vector a code stands for, and rows that come with such codes.

All columns of a *group* but one are the same number on every row that is complete: the scaled
value of a raw 0. The code names the one that is not. A factor's 0/1 columns are such a group, and
so are the products of a factor's columns and a number.

Tested in `tests/grouped/test_sums.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

__all__ = ["CodedRows", "Group", "Layout", "Slots", "plain_layout"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Columns of which a row's code names one.

    Attributes
    ----------
    places : (m,) array
        Their indices into the row vector.
    rest : (m,) array
        The cell of each column, in units of 2**-20, on complete rows whose code names another.
    steps : (m,) array or None
        What the named column's cell has more than that, where it is the same on every row; None
        where each row brings a value of its own.
    """

    places: Integers
    rest: Integers
    steps: Integers | None


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """A group on some rows.

    Attributes
    ----------
    codes : (rows,) array
        Which of the group's columns; -1 where none, and on incomplete rows.
    values : (rows,) array or None
        Stored cell of the named column, not yet on the grid; None where the group has `steps`.
    """

    codes: NDArray[np.intp]
    values: NDArray[np.float64] | None


@dataclass(frozen=True, slots=True, eq=False)
class CodedRows:
    """Some rows: the columns outside groups, (rows, k), and each group's codes."""

    dense: NDArray[np.float64]
    slots: tuple[Slots, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where the moments of coded rows lie in a vector of integers. Public.

    The vector holds, in this order: the upper triangle of the k columns outside groups, row by row;
    for each group its sums with each of those columns, k x m, and its sums of squares, m; for each
    pair of groups their sums of products, m1 x m2. Sums of a group are of what the named cells have
    more than `rest`.

    Attributes
    ----------
    size : int
        D, the cells of a row vector.
    dense : (k,) array
        Indices of the columns outside groups: the constant first, the response last.
    groups : tuple of Group
    """

    size: int
    dense: Integers
    groups: tuple[Group, ...]
    pairs: tuple[tuple[int, int], ...] = field(init=False)
    starts: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Lay out the parts one after the other."""
        object.__setattr__(self, "pairs", tuple(combinations(range(len(self.groups)), 2)))
        lengths = [np.prod(shape, dtype=int) for shape in self.shapes()]
        object.__setattr__(self, "starts", tuple(np.cumsum([0, *lengths]).tolist()))

    def shapes(self) -> Iterator[tuple[int, ...]]:
        """Yield the shape of each part of the vector, in its order."""
        k = len(self.dense)
        yield (k * (k + 1) // 2,)
        widths = [len(group.places) for group in self.groups]
        for m in widths:
            yield (k, m)
            yield (m,)
        for one, other in self.pairs:
            yield (widths[one], widths[other])

    @property
    def length(self) -> int:
        """Entries of the vector."""
        return self.starts[-1]


def plain_layout(size: int) -> Layout:
    """Return the layout of rows without groups: one upper triangle."""
    return Layout(size, np.arange(size), ())
