"""What of the stored columns is what: public facts of a model.

Tested in `tests/looks/test_rows.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError
from dpreg.grouped import CELL_BITS

__all__ = ["Described", "Trials", "Weights"]

_ONE: Final = 2.0**CELL_BITS


@dataclass(frozen=True, slots=True)
class Trials:
    """Where the number of a row's trials stands; public.

    Attributes
    ----------
    column : int
        Index of the stored column.
    scale : (float, float)
        The number is the first plus the second times its stored cell, rounded to an integer.
    most : float
        The largest number.
    """

    column: int
    scale: tuple[float, float]
    most: float

    def of(self, cells: Floats) -> Floats:
        """Return the numbers of gridded cells (D, rows), each from its own cell."""
        found = cells[self.column] * (self.scale[1] / _ONE)
        found += self.scale[0]
        np.rint(found, out=found)
        return np.asarray(np.minimum(np.maximum(found, 0.0), self.most), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Weights:
    """Where a row's weight stands, as a part of the largest one; public.

    Attributes
    ----------
    column : int
        Index of the stored column.
    scale : (float, float)
        The weight is the first plus the second times its stored cell.
    """

    column: int
    scale: tuple[float, float]

    def of(self, cells: Floats) -> Floats:
        """Return the weights of gridded cells (D, rows), in [0, 1], each from its own cell."""
        found = cells[self.column] * (self.scale[1] / _ONE)
        found += self.scale[0]
        return np.asarray(np.minimum(np.maximum(found, 0.0), 1.0), dtype=np.float64)


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
    trials : Trials, optional
        Where rows have several: the response counts successes.
    levels : tuple of int
        Those of the columns that say which level a row has, by a code of at most 1.
    weights : Weights, optional
        Where rows of a linear model do not count alike.
    """

    columns: tuple[int, ...]
    offsets: tuple[int, ...] = ()
    known: tuple[float, ...] = ()
    response: tuple[float, float] = (0.0, 1.0)
    trials: Trials | None = None
    levels: tuple[int, ...] = ()
    weights: Weights | None = None

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
