"""Tables in memory: pandas frames and mappings of names to arrays, and how their cells are read.

Cells are read in bulk, always with a single cell's meaning (`dpreg.cells`).

Tested in `tests/sources/test_table.py` and `tests/sources/test_meaning.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.arrays import Floats
from dpreg.cells import Kind, LevelCoder, kind_of, number, surely_whole, truth
from dpreg.columns import Boolean, Categorical, Columns, ColumnType, Numeric, PersonId, Unbounded
from dpreg.errors import ArgumentError, DataError
from dpreg.sources.base import PART_ROWS, Chunk, LocalSource, Piece, find_column, slices
from dpreg.sources.persons import digests

Values: TypeAlias = NDArray[Any]


def frame_source(data: pd.DataFrame) -> TableSource:
    """Take a frame's columns."""
    if data.columns.nlevels > 1:
        raise DataError("the table's column labels have several levels: flatten them first")
    # Copy-on-write: later changes to the caller's frame do not reach these.
    names = [(place, str(n)) for place, n in enumerate(data.columns) if isinstance(n, str)]
    return TableSource([(name, data.iloc[:, place]) for place, name in names], len(data))


def mapping_source(data: Mapping[Any, Any]) -> TableSource:
    """Take a mapping of names to arrays, Series, lists or tuples of one length."""
    if not all(isinstance(name, str) for name in data):
        raise ArgumentError("data: the names of a mapping's columns must be text")
    series = [(name, as_series(name, values)) for name, values in data.items()]
    lengths = {len(column) for _, column in series}
    if len(lengths) > 1:
        raise DataError("the table's columns have different lengths")
    return TableSource(series, lengths.pop() if lengths else 0)


class TableSource(LocalSource):
    """A source held in memory, one pandas Series a column; its parts are of 262,144 rows."""

    __slots__ = ("_columns",)  # so that `vars` shows no row

    def __init__(self, columns: list[tuple[str, pd.Series[Any]]], rows: int) -> None:
        self.names = tuple(name for name, _ in columns)
        self.rows = rows
        self.parts = -(-rows // PART_ROWS)
        self._columns = [column for _, column in columns]

    def kind(self, name: str) -> Kind:
        """Return what the container calls a column. DataError where absent or repeated."""
        dtype = self._columns[find_column(self.names, name)].dtype
        if isinstance(dtype, pd.ArrowDtype):
            from dpreg.sources.arrow_cells import kind_of_arrow

            return kind_of_arrow(dtype.pyarrow_dtype)
        return kind_of(dtype)

    def _pieces(self, columns: Columns, size: int) -> Iterator[Piece]:
        arrays = {name: _held(self._columns[find_column(self.names, name)]) for name in columns}
        readers = {name: array_reader(array, columns[name]) for name, array in arrays.items()}

        def read(part: slice) -> Chunk:
            return {name: reader(part) for name, reader in readers.items()}

        for part in slices(max(map(len, arrays.values()), default=0), size):
            yield Piece(part.stop - part.start, partial(read, part), part.start // PART_ROWS)


def _missing(rows: int) -> pd.Series[Any]:
    return pd.Series(np.full(rows, None, dtype=object), dtype=object)


def as_series(name: str, values: object, loose: bool = False) -> pd.Series[Any]:
    """Make a column of one value of a mapping, without looking at its cells.

    Where `loose`, what is no column is one of missing cells.
    """
    if isinstance(values, list | tuple):
        cells = np.empty(len(values), dtype=object)
        for place, cell in enumerate(values):
            cells[place] = cell
        return pd.Series(cells, dtype=object)
    if isinstance(values, pd.Series):
        return values.reset_index(drop=True)
    if isinstance(values, pd.Index) and values.nlevels == 1:
        return values.to_series().reset_index(drop=True)
    if isinstance(values, pd.api.extensions.ExtensionArray) and values.ndim == 1:
        return pd.Series(values, dtype=values.dtype)
    if type(values) is np.ndarray and values.ndim == 1:
        match values.dtype.kind:
            case "b" | "i" | "u" | "f" | "c" | "O":
                return pd.Series(values, dtype=values.dtype)
            case "U" | "T":  # in Python's storage: Arrow's would raise on text that is not UTF-8
                text = pd.StringDtype("python", na_value=math.nan)
                return pd.Series(values.astype(object), dtype=text)
            case "S" | "V":  # never read: bytes and records are no cells; one makes all of them so
                return _missing(len(values))
            case "M" | "m":  # never read; pandas would raise on dates beyond its range
                return pd.Series(np.full(len(values), "NaT", dtype=f"{values.dtype.kind}8[s]"))
    if loose:
        return _missing(len(values) if isinstance(values, np.ndarray) and values.ndim else 0)
    raise ArgumentError(
        f"data: column {name!r} must be a list or a one-dimensional array of numbers or text"
    )


def array_reader(array: Any, how: ColumnType) -> Callable[[slice], Values]:
    """Make the function that reads a range of an array's cells.

    Parameters
    ----------
    array : ndarray or pandas ExtensionArray
    how : ColumnType
    """
    meaning = meaning_of(how)
    if isinstance(array, pd.Categorical):
        # Each category on its own, used or not; code -1 looks up the last entry, None. Read in
        # bulk: to take one out raises where it is a time that Python has not.
        categories = array_reader(_held(array.categories), how)(slice(None))
        table = np.concatenate([categories, meaning.missing(1)])
        return lambda part: table[array.codes[part]]
    if isinstance(array, pd.arrays.ArrowExtensionArray):
        return _arrow_reader(array, how)
    return lambda part: read_array(array[part], meaning)


def _held(cells: pd.Series[Any] | pd.Index[Any]) -> Any:
    """Return the array that holds a column's cells."""
    return cells.to_numpy() if isinstance(cells.dtype, np.dtype) else cells.array


def _arrow_reader(array: Any, how: ColumnType) -> Callable[[slice], Values]:
    """Read what pandas holds as Arrow by way of Arrow: pandas raises on nulls among some of it."""
    from dpreg.sources.arrow_cells import arrow_reader

    chunked = array.__arrow_array__()
    read = arrow_reader(chunked.type, how)

    def ranged(part: slice) -> Values:
        pieces = [read(piece) for piece in chunked[part].iterchunks()]
        return np.concatenate(pieces or [meaning_of(how).cells([])])

    return ranged


# ---- what cells mean ---------------------------------------------------------------------------


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
    if (
        isinstance(array, pd.arrays.FloatingArray | pd.arrays.IntegerArray)
        and array.dtype.kind in "iuf"
    ):
        wide = array.dtype.type if array.dtype.kind == "f" else np.float64
        return meaning.array(array.to_numpy(wide, na_value=math.nan))
    if isinstance(array.dtype, pd.StringDtype):
        codes, different = array.factorize()  # equal texts mean the same; missing is -1
        return meaning.cells([*different, None])[codes]
    return meaning.cells(np.asarray(array, dtype=object))
