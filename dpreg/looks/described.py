"""What of the stored columns is what: public facts of a model.

Tested in `tests/looks/test_rows.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpreg.arrays import CELL_BITS, Floats
from dpreg.errors import ArgumentError

_ONE: Final = 2.0**CELL_BITS


@dataclass(frozen=True, slots=True)
class Told:
    """Where something else stands that a row tells: its weight, or its number of trials; public.

    Attributes
    ----------
    column : int
        Index of the stored column.
    scale : (float, float)
        It is the first plus the second times its stored cell: of a weight a part of the largest.
    most : float
        The largest there is.
    whole : bool
        Whether it is rounded to an integer.
    """

    column: int
    scale: tuple[float, float]
    most: float = 1.0
    whole: bool = False

    def of(self, cells: Floats) -> Floats:
        """Return it for gridded cells (D, rows), within [0, most], each from its own cell."""
        found = cells[self.column] * (self.scale[1] / _ONE)
        found += self.scale[0]
        if self.whole:
            np.rint(found, out=found)
        return np.asarray(np.minimum(np.maximum(found, 0.0), self.most), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Described:
    """What of a design's stored columns, (1, x, y), is what; public.

    Attributes
    ----------
    columns : tuple of int
        Indices of the stored columns that have coefficients, from 1.
    offsets : tuple of int
        Those of the columns whose slopes are known.
    known : tuple of float
        These slopes, in stored units.
    response : (float, float)
        The response is the first plus the second times its stored cell.
    trials : Told, optional
        Where rows have several: the response counts successes.
    levels : tuple of int
        Those of the columns that say which level a row has, by a code of at most 1.
    weights : Told, optional
        Where rows of a linear model do not count alike.
    """

    columns: tuple[int, ...]
    offsets: tuple[int, ...] = ()
    known: tuple[float, ...] = ()
    response: tuple[float, float] = (0.0, 1.0)
    trials: Told | None = None
    levels: tuple[int, ...] = ()
    weights: Told | None = None

    def only(self, columns: tuple[int, ...]) -> Described:
        """Return what is left where others of its columns have no coefficients."""
        levels = tuple(column for column in self.levels if column in columns)
        return replace(self, columns=columns, levels=levels)

    def __post_init__(self) -> None:
        """Refuse columns that are not there."""
        both = (*self.columns, *self.offsets)
        if len(set(both)) < len(both) or min(both, default=1) < 1:
            raise ArgumentError("columns must be different indices from 1")

    @property
    def size(self) -> int:
        """d: the constant and the columns that have coefficients."""
        return len(self.columns) + 1
