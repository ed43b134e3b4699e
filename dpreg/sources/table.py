"""Tables in memory: pandas frames, and mappings of names to arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from dpreg.cells import Kind, kind_of
from dpreg.columns import ColumnType
from dpreg.errors import ArgumentError, DataError
from dpreg.sources.array_cells import array_reader
from dpreg.sources.base import find_column
from dpreg.sources.local import LocalSource, Piece

__all__ = ["TableSource", "frame_source", "loose_source", "mapping_source"]

_PART_ROWS = 1 << 18


def frame_source(data: pd.DataFrame) -> TableSource:
    """Take a frame's columns."""
    if data.columns.nlevels > 1:
        raise DataError("the table's column labels have several levels: flatten them first")
    # Copy-on-write: later changes to the caller's frame do not reach these.
    columns = [(label, data.iloc[:, place]) for place, label in enumerate(data.columns)]
    return TableSource([(str(n), c) for n, c in columns if isinstance(n, str)], len(data))


def mapping_source(data: Mapping[Any, Any]) -> TableSource:
    """Take a mapping of names to arrays, Series, lists or tuples of one length."""
    series = [(_label(name), _as_series(name, values)) for name, values in data.items()]
    lengths = {len(column) for _, column in series}
    if len(lengths) > 1:
        raise DataError("the table's columns have different lengths")
    return TableSource(series, lengths.pop() if lengths else 0)


def loose_source(data: pd.DataFrame | Mapping[Any, Any]) -> TableSource:
    """Take a later chunk of a table: nothing about its columns is an error, since rows may be why.

    What is no column is one of missing cells; columns that are too short are missing at their end.
    """
    if isinstance(data, pd.DataFrame):
        return frame_source(data) if data.columns.nlevels == 1 else TableSource([], len(data))
    found = [(name, _loose_series(name, values)) for name, values in data.items()]
    rows = max((len(column) for _, column in found), default=0)
    return TableSource(
        [
            (name, column if len(column) == rows else column.reindex(range(rows)))
            for name, column in found
            if isinstance(name, str)
        ],
        rows,
    )


def _loose_series(name: Any, values: object) -> pd.Series[Any]:
    try:
        return _as_series(name, values)
    except ArgumentError:
        rows = len(values) if isinstance(values, np.ndarray) and values.ndim else 0
        return pd.Series(np.full(rows, None, dtype=object), dtype=object)


class TableSource(LocalSource):
    """A source held in memory, one pandas Series a column."""

    __slots__ = ("_columns", "_names", "_rows")

    def __init__(self, columns: list[tuple[str, pd.Series[Any]]], rows: int) -> None:
        self._columns = tuple(columns)
        self._names = tuple(name for name, _ in columns)
        self._rows = rows

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in the table's order, repeats included; labels not of text are left out."""
        return self._names

    @property
    def rows(self) -> int:
        """Number of rows; private under add-remove."""
        return self._rows

    @property
    def parts(self) -> int:
        """Blocks of 262,144 rows."""
        return -(-self._rows // _PART_ROWS)

    def kind(self, name: str) -> Kind:
        """Return what the container calls a column. DataError where absent or repeated."""
        dtype = self._find(name).dtype
        if isinstance(dtype, pd.ArrowDtype):
            from dpreg.sources.arrow_cells import kind_of_arrow

            return kind_of_arrow(dtype.pyarrow_dtype)
        return kind_of(dtype)

    def count(self) -> int:
        """Return `rows`."""
        return self._rows

    def _pieces(self, columns: Mapping[str, ColumnType], size: int) -> Iterator[Piece]:
        readers = {name: array_reader(_array(self._find(name)), columns[name]) for name in columns}

        def read(part: slice) -> dict[str, Any]:
            return {name: reader(part) for name, reader in readers.items()}

        for start in range(0, self._rows, size):
            part = slice(start, min(start + size, self._rows))
            yield Piece(part.stop - start, partial(read, part), start // _PART_ROWS)

    def _find(self, name: str) -> pd.Series[Any]:
        return self._columns[find_column(self.names, name)][1]


def _array(column: pd.Series[Any]) -> Any:
    return column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array


def _label(name: object) -> str:
    if not isinstance(name, str):
        raise ArgumentError("data: the names of a mapping's columns must be text")
    return name


def _as_series(name: str, values: object) -> pd.Series[Any]:
    """Make a column of one value of a mapping, without looking at its cells."""
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
                return pd.Series(np.full(len(values), None, dtype=object), dtype=object)
            case "M" | "m":  # never read; pandas would raise on dates beyond its range
                return pd.Series(np.full(len(values), "NaT", dtype=f"{values.dtype.kind}8[s]"))
    raise ArgumentError(
        f"data: column {name!r} must be a list or a one-dimensional array of numbers or text"
    )
