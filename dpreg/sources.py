"""Any table becomes chunks of plain columns, and each cell is read on its own.

The meaning of a cell depends on the cell and on how its column is declared, never on other cells:
`dpreg.cells` says what each kind of cell means. pandas frames and mappings of arrays now; Arrow
streams, Dask and Spark are to take the same `Source` protocol.

Names count as public facts, and for undeclared columns dtypes do: they decide whether a column is
one of numbers. Where dtypes were inferred from the rows (a list, a CSV file), declaring the column
in the schema is what makes its reading independent of the inference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.cells import Kind, LevelCoder, kind_of, number, truth
from dpreg.columns import Boolean, Categorical, ColumnType, Numeric, Unbounded
from dpreg.errors import ArgumentError, DataError

__all__ = ["Kind", "Source", "TableSource", "as_source", "check_columns"]

Values: TypeAlias = NDArray[Any]

# pandas arrays that turn themselves into float64, cell by cell.
_NULLABLE = (
    pd.arrays.ArrowExtensionArray,
    pd.arrays.FloatingArray,
    pd.arrays.IntegerArray,
)


@runtime_checkable
class Source(Protocol):
    """A table whose rows can be read in chunks, as often as needed.

    Names and kinds are public and known before any row is read. Rows are confidential: a source's
    repr shows names and kinds only, and a source cannot be pickled.

    An implementation must give every row the same values whatever the chunk size, the engine, or
    the other rows; it must raise and warn on public facts only, in `chunks` itself and not in the
    iterator it returns. Chunks may come in any order and of any size from 1 to `size`. A source on
    a cluster reads each partition as a source of its own, where the partition is.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in the table's order, repeats included; labels not of text are left out."""

    @property
    def rows(self) -> int | None:
        """Number of rows (private under add-remove); None where only reading would tell."""

    def kind(self, name: str) -> Kind:
        """Public kind of a column. DataError where the name is absent or repeated."""

    def chunks(self, columns: Mapping[str, ColumnType], size: int) -> Iterator[dict[str, Values]]:
        """Read some columns, chunk by chunk.

        Parameters
        ----------
        columns : mapping of str to ColumnType
            What to read, and how: the schema's entry, or `Unbounded()` for a numeric column that
            the schema leaves undeclared.
        size : int
            Largest number of rows in a chunk.

        Returns
        -------
        iterator of dict
            One array per column, all of the chunk's length. `Numeric` and `Unbounded`: float64,
            NaN where missing, infinities kept, not clipped. `Boolean`: float64 0/1, NaN where
            missing. `Categorical`: int32 codes into its levels, -1 where missing or undeclared.
            The arrays may be views of the table: do not write into them. A table of no rows gives
            no chunk.

        Raises
        ------
        DataError
            As `check_columns` says; before a row is read.
        """


def as_source(data: object) -> Source:
    """Take a table as a `Source`.

    Parameters
    ----------
    data : pandas.DataFrame, mapping of str to one-dimensional arrays or lists, or Source
        Arrays and Series in a mapping keep their dtype (an index is disregarded); lists and tuples
        become object columns, so that no dtype is inferred from their cells.

    Returns
    -------
    Source

    Raises
    ------
    DataError
        If the table has column labels of several levels, or columns of different lengths.
    ArgumentError
        If `data` is none of these.
    """
    if isinstance(data, pd.DataFrame):
        if data.columns.nlevels > 1:
            raise DataError("the table's column labels have several levels: flatten them first")
        # Copy-on-write: later changes to the caller's frame do not reach these.
        columns = [(label, data.iloc[:, place]) for place, label in enumerate(data.columns)]
        return TableSource([(str(n), c) for n, c in columns if isinstance(n, str)], len(data))
    if isinstance(data, Mapping):
        series = [(_label(name), _as_series(name, values)) for name, values in data.items()]
        lengths = {len(column) for _, column in series}
        if len(lengths) > 1:
            raise DataError("the table's columns have different lengths")
        return TableSource(series, lengths.pop() if lengths else 0)
    if isinstance(data, Source):
        return data
    raise ArgumentError(
        f"data is a {type(data).__name__}: give a pandas DataFrame or a mapping of names to arrays"
    )


def check_columns(source: Source, columns: Mapping[str, ColumnType]) -> None:
    """Refuse, from public facts alone, a table that cannot be read as declared.

    Parameters
    ----------
    source : Source
    columns : mapping of str to ColumnType

    Raises
    ------
    DataError
        If a column is absent or its name repeated; or if it is `Unbounded`, that is undeclared, and
        its kind is not one of numbers.

    Notes
    -----
    A *declared* column is read cell by cell whatever its dtype: dates in a column of numbers are
    missing cells. To refuse the dtype would tell of the rows wherever it was inferred from them: a
    list of dates is a column of dates until one row of it is a number.
    """
    for name, declared in columns.items():
        if not isinstance(declared, ColumnType):
            raise ArgumentError(f"column {name!r} is to be read as no known type of column")
        kind = source.kind(name)
        if not isinstance(declared, Unbounded):
            continue
        if kind == "datetime":
            raise DataError(
                f"column {name!r} holds dates or times: make a number of it (days since a fixed "
                "date, say), or leave it out"
            )
        if kind == "other":
            raise DataError(f"column {name!r} holds neither numbers nor labels: leave it out")
        if kind in ("string", "category"):
            raise DataError(
                f"column {name!r} holds {'text' if kind == 'string' else 'labels'} and the schema "
                f'does not declare it: add {name!r}: ["level", ...] to the schema, or '
                f"{name!r}: (lowest, highest) if it denotes numbers"
            )


class TableSource:
    """A source held in memory, one pandas Series a column."""

    __slots__ = ("_columns", "_rows")

    def __init__(self, columns: list[tuple[str, pd.Series[Any]]], rows: int) -> None:
        self._columns = tuple(columns)
        self._rows = rows

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in the table's order, repeats included; labels not of text are left out."""
        return tuple(name for name, _ in self._columns)

    @property
    def rows(self) -> int:
        """Number of rows; private under add-remove."""
        return self._rows

    def kind(self, name: str) -> Kind:
        """Public kind of a column. DataError where the name is absent or repeated."""
        return kind_of(self._find(name).dtype)

    def chunks(self, columns: Mapping[str, ColumnType], size: int) -> Iterator[dict[str, Values]]:
        """Read some columns, chunk by chunk; see `Source.chunks`."""
        if size < 1:
            raise ArgumentError("size, the number of rows in a chunk, must be a positive integer")
        check_columns(self, columns)
        readers = {name: _reader(self._find(name), how) for name, how in columns.items()}
        return _iterate(readers, self._rows, size)

    def _find(self, name: str) -> pd.Series[Any]:
        found = [column for known, column in self._columns if known == name]
        if not found:
            raise DataError(f"the table has no column {name!r}; it has {', '.join(self.names)}")
        if len(found) > 1:
            raise DataError(f"the table has several columns named {name!r}: keep or rename one")
        return found[0]

    def __repr__(self) -> str:
        """Show names and kinds, and nothing of the rows, not even how many."""
        kinds = (f"{name}: {kind_of(column.dtype)}" for name, column in self._columns)
        return f"Source({', '.join(kinds)})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be pickled or copied."""
        raise DataError("a source holds confidential rows and is not pickled: pickle the results")


def _label(name: object) -> str:
    if not isinstance(name, str):
        raise ArgumentError("data: the names of a mapping's columns must be text")
    return name


def _iterate(
    readers: Mapping[str, Callable[[slice], Values]], rows: int, size: int
) -> Iterator[dict[str, Values]]:
    for start in range(0, rows, size):
        part = slice(start, min(start + size, rows))
        with np.errstate(all="ignore"):  # no warning may tell of a cell
            chunk = {name: read(part) for name, read in readers.items()}
        yield chunk


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
            case "U" | "T":  # in Python's storage: Arrow's would raise on text that is no UTF-8
                text = pd.StringDtype("python", na_value=math.nan)
                return pd.Series(values.astype(object), dtype=text)
            case "M" | "m":  # never read; pandas would raise on dates beyond its range
                return pd.Series(np.full(len(values), "NaT", dtype=f"{values.dtype.kind}8[s]"))
    raise ArgumentError(
        f"data: column {name!r} must be a list or a one-dimensional array of numbers or text"
    )


@dataclass(frozen=True, slots=True)
class _Meaning:
    """How a column's cells are read: one by one, or many that are float64 already (NaN: missing).

    Both say the same of the same cell; None is missing in every meaning.
    """

    cells: Callable[[Iterable[Any]], Values]
    numbers: Callable[[NDArray[np.float64]], Values]


def _meaning(how: ColumnType) -> _Meaning:
    match how:
        case Numeric() | Unbounded():
            return _Meaning(_numbers, lambda values: values)
        case Boolean():
            return _Meaning(_truths, _truths_of_numbers)
        case Categorical(levels):
            coder = LevelCoder(levels)
            return _Meaning(coder.cells, coder.numbers)


def _numbers(cells: Iterable[Any]) -> NDArray[np.float64]:
    return np.array([c if type(c) is float else number(c) for c in cells], dtype=np.float64)


def _truths(cells: Iterable[Any]) -> NDArray[np.float64]:
    return np.array([truth(cell) for cell in cells], dtype=np.float64)


def _truths_of_numbers(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where((values == 0) | (values == 1), np.abs(values), math.nan)


def _reader(column: pd.Series[Any], how: ColumnType) -> Callable[[slice], Values]:
    """Make the function that reads a range of a column's rows."""
    meaning = _meaning(how)
    array: Any = column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array
    if isinstance(array, pd.Categorical):
        # Each category on its own, used or not; code -1 looks up the last entry, None.
        table = meaning.cells([*array.categories, None])
        return lambda part: table[array.codes[part]]
    return lambda part: _read(array[part], meaning)


def _read(array: Any, meaning: _Meaning) -> Any:
    """Read a piece of a column: as the dtype allows, always with the meaning of single cells."""
    if isinstance(array.dtype, pd.SparseDtype):
        array = np.asarray(array)
    if isinstance(array, np.ndarray):
        match array.dtype.kind:
            case "b":
                return meaning.cells([False, True])[array.astype(np.intp)]
            case "M" | "m":  # NumPy would turn some into integers
                return np.repeat(meaning.cells([None]), len(array))
            case "i" | "u" | "f":
                return meaning.numbers(array.astype(np.float64, copy=False))
            case "c":
                real = array.real.astype(np.float64)
                return meaning.numbers(np.where(array.imag == 0, real, math.nan))
            case _:
                return meaning.cells(array.astype(object, copy=False))
    if isinstance(array, pd.arrays.BooleanArray):
        return meaning.cells([False, True, None])[array.to_numpy(np.int8, na_value=2)]
    if isinstance(array, _NULLABLE) and array.dtype.kind in "iuf":
        return meaning.numbers(array.to_numpy(np.float64, na_value=math.nan))
    if isinstance(array.dtype, pd.StringDtype):
        codes, different = array.factorize()  # equal texts mean the same; missing is -1
        return meaning.cells([*different, None])[codes]
    return meaning.cells(np.asarray(array, dtype=object))
