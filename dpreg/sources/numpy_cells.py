"""How cells of NumPy and pandas arrays are read: in bulk, always with a single cell's meaning.

Tested in `tests/sources/test_meaning.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.arrays import Floats
from dpreg.cells import LevelCoder, number, surely_whole, truth
from dpreg.columns import Boolean, Categorical, Columns, ColumnType, Numeric, PersonId, Unbounded
from dpreg.sources.persons import digests

Values: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Meaning:
    """How a column's cells are read: one by one, or many that are float64 already (NaN: missing).

    Both say the same of the same cell; None is missing in every meaning. Where `names`, cells
    name persons: floats of fewer bits are missing unless exact (`dpreg.cells.surely_whole`).
    """

    cells: Callable[[Iterable[Any]], Values]
    numbers: Callable[[Floats], Values]
    names: bool = False

    def array(self, values: NDArray[Any]) -> Values:
        """Read integers or floats of any width."""
        wide = values.astype(np.float64, copy=False)
        if self.names and values.dtype.kind == "f" and values.dtype.itemsize < wide.itemsize:
            wide = np.where(surely_whole(wide, values.dtype), wide, math.nan)
        return self.numbers(wide)

    def missing(self, rows: int) -> Values:
        """Return cells of which each is missing."""
        return np.repeat(self.cells([None]), rows)


def meaning_of(how: ColumnType) -> Meaning:
    """Return the meaning that a declaration gives to cells."""
    match how:
        case Numeric() | Unbounded():
            return Meaning(_numbers, lambda values: values)
        case Boolean():
            return Meaning(_truths, _truths_of_numbers)
        case Categorical(levels):
            coder = LevelCoder(levels)
            return Meaning(coder.cells, coder.numbers)
        case PersonId(key):
            named = partial(digests, key=key)
            return Meaning(named, partial(_each_once, cells=named), names=True)


def missing_chunk(columns: Columns, rows: int) -> dict[str, Values]:
    """Return rows of which every cell is missing."""
    return {name: meaning_of(how).missing(rows) for name, how in columns.items()}


def _numbers(cells: Iterable[Any]) -> Floats:
    return np.array([c if type(c) is float else number(c) for c in cells], dtype=np.float64)


def _truths(cells: Iterable[Any]) -> Floats:
    return np.array([truth(cell) for cell in cells], dtype=np.float64)


def _truths_of_numbers(values: Floats) -> Floats:
    return np.where((values == 0) | (values == 1), np.abs(values), math.nan)


def _each_once(values: Any, cells: Callable[[Iterable[Any]], Values]) -> Values:
    codes, different = pd.factorize(values)  # missing is -1
    return cells([*different.tolist(), None])[codes]


def read_array(array: Any, meaning: Meaning) -> Any:
    """Read a piece of a column: as the dtype allows, always with the meaning of single cells."""
    if isinstance(array.dtype, pd.SparseDtype):
        array = np.asarray(array)
    if isinstance(array, np.ndarray):
        match array.dtype.kind:
            case "b":
                return meaning.cells([False, True])[array.astype(np.intp)]
            case "M" | "m":  # NumPy would turn some into integers
                return meaning.missing(len(array))
            case "i" | "u" | "f":
                return meaning.array(array)
            case "c":
                return meaning.array(np.where(array.imag == 0, array.real, math.nan))
            case _:
                return meaning.cells(array.astype(object, copy=False))
    if isinstance(array, pd.arrays.BooleanArray):
        return meaning.cells([False, True, None])[array.to_numpy(np.int8, na_value=2)]
    if isinstance(array, pd.arrays.FloatingArray | pd.arrays.IntegerArray):
        wide = array.dtype.type if array.dtype.kind == "f" else np.float64
        return meaning.array(array.to_numpy(wide, na_value=math.nan))
    if isinstance(array.dtype, pd.StringDtype):
        return _each_once(array, meaning.cells)  # equal texts mean the same
    return meaning.cells(np.asarray(array, dtype=object))
