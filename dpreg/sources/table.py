"""Tables in memory: pandas frames and mappings of names to arrays.

Tested in `tests/sources/test_table.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dpreg.cells import Kind, kind_of
from dpreg.columns import Columns, ColumnType
from dpreg.errors import ArgumentError, DataError
from dpreg.sources.base import PART_ROWS, Chunk, LocalSource, Piece, find_column, slices
from dpreg.sources.numpy_cells import Values, meaning_of, read_array


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
    rows: int

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
        readers = {
            name: array_reader(self._columns[find_column(self.names, name)], how)
            for name, how in columns.items()
        }

        def read(part: slice) -> Chunk:
            return {name: reader(part) for name, reader in readers.items()}

        for part in slices(self.rows, size):
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


def array_reader(cells: Any, how: ColumnType) -> Callable[[slice], Values]:
    """Make the function that reads a range of a column's cells.

    Parameters
    ----------
    cells : Series, Index, ndarray or pandas ExtensionArray
    how : ColumnType
    """
    array = getattr(cells, "array", cells)  # of a Series or an Index
    if isinstance(cells.dtype, np.dtype):
        array = np.asarray(cells)
    meaning = meaning_of(how)
    if isinstance(array, pd.Categorical):
        # Each category on its own, used or not; code -1 looks up the last entry, None. Read in
        # bulk: to take one out raises where it is a time that Python has not.
        categories = array_reader(array.categories, how)(slice(None))
        table = np.concatenate([categories, meaning.missing(1)])
        return lambda part: table[array.codes[part]]
    if isinstance(array, pd.arrays.ArrowExtensionArray):
        return _arrow_reader(array, how)
    return lambda part: read_array(array[part], meaning)


def _arrow_reader(array: Any, how: ColumnType) -> Callable[[slice], Values]:
    """Read what pandas holds as Arrow by way of Arrow: pandas raises on nulls among some of it."""
    from dpreg.sources.arrow_cells import arrow_reader

    chunked = array.__arrow_array__()
    read = arrow_reader(chunked.type, how)

    def ranged(part: slice) -> Values:
        pieces = [read(piece) for piece in chunked[part].iterchunks()]
        return np.concatenate(pieces or [meaning_of(how).cells([])])

    return ranged
