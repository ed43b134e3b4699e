"""What blocks are taken of: data that are here, or declared columns of a table, brought here once.

An estimator needs a block's rows together, so tables that the other calls only go through are
brought into this process. A column comes as its declaration says, and undeclared ones do not come:
a dtype inferred from the rows would make what the estimator gets of one block, and so its value,
depend on rows of other blocks (a column of integers is one of floats as soon as one cell is
missing).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.api.inputs import group_codes, grouping
from dpreg.errors import ArgumentError, DataError
from dpreg.estimation.blocks import Rows, rows_of
from dpreg.schema import Boolean, Categorical, ColumnType, Schema
from dpreg.sources import LocalSource, TableSource, as_source, check_columns
from dpreg.sources.reader import Reader, showing
from dpreg.sources.table import frame_source, mapping_source

__all__ = ["BlockTable", "Groups", "block_table"]

_PLAIN: Final = (pd.DataFrame, pd.Series, np.ndarray, list, Mapping)
_CLUSTERS: Final = ("dask", "dask_expr", "pyspark")


@dataclass(frozen=True, slots=True)
class Groups:
    """The column that groups the rows, if any: public facts."""

    name: str | None = None
    how: ColumnType | None = None
    levels: tuple[str, ...] = ()

    @classmethod
    def of(cls, by: str | None, schema: Schema) -> Groups:
        """Take the column's levels from the schema."""
        return cls() if by is None else cls(by, *grouping(by, schema))

    @property
    def lines(self) -> int:
        """Number of groups; 1 without a column."""
        return max(len(self.levels), 1)


class BlockTable(ABC):
    """Rows of which blocks are taken.

    Attributes
    ----------
    groups : Groups
    """

    groups: Groups

    @property
    @abstractmethod
    def passes(self) -> int:
        """How often the rows were gone through, once the call is done."""

    @abstractmethod
    def count(self) -> int | None:
        """Count the rows before they are read; None where only reading them tells."""

    @abstractmethod
    def read(self) -> int:
        """Have the rows here, and return their number."""

    @property
    @abstractmethod
    def rows(self) -> Rows:
        """The rows, once they are here."""

    @abstractmethod
    def labels(self) -> NDArray[np.int64]:
        """Return each row's group: -1 for none, 0 without grouping."""


def block_table(
    data: Any, by: Any = None, schema: Any = None, progress: bool | None = None
) -> BlockTable:
    """Settle from public facts what blocks are taken of; read no row.

    Parameters
    ----------
    data : DataFrame, Series, array, list, mapping; or what `dpreg.sources.as_source` takes
        The former are here, and blocks are of their type. Of the latter those that this process
        can read.
    by : str or None
        A column whose levels `schema` declares.
    schema : what `Schema.from_any` takes
        Of a table: its columns that are read.
    progress : bool or None
        As for `Reader`.

    Raises
    ------
    ArgumentError, SchemaError, DataError
    """
    showing(progress)
    declared = Schema.from_any(schema)
    if by is not None and not isinstance(by, str):
        raise ArgumentError("by must be the name of a column of the data.")
    if isinstance(data, _PLAIN):
        return _Held(data, by, declared)
    source = None if _is_spread(data) else as_source(data)
    if not isinstance(source, LocalSource):
        raise ArgumentError(
            f"data is a {type(data).__name__}, whose rows are spread over a cluster, and an "
            "estimator needs a block's rows together. Bring the columns that it needs here, by "
            ".compute() of a Dask or .toPandas() of a Spark DataFrame; or call dp_mean, "
            "dp_quantile, dp_histogram or dp_suffstats, which add up where the rows are."
        )
    return _Brought(source, by, declared, progress)


def _is_spread(data: object) -> bool:
    return type(data).__module__.partition(".")[0] in _CLUSTERS


class _Held(BlockTable):
    """Data of the caller's own type; the column of the groups is read from them."""

    def __init__(self, data: Any, by: str | None, schema: Schema) -> None:
        if isinstance(data, list) and schema and by is None:
            raise ArgumentError(
                "data is a list, whose items are rows without columns, and schema declares "
                "columns: leave schema out; or, for several files, give a glob, a folder, or a "
                "tuple of paths."
            )
        self._rows = rows_of(data)
        self._source = None if by is None else _grouped_source(data, by)
        self.groups = Groups.of(by, schema)
        if self._source is not None:
            check_columns(self._source, self._how)

    @property
    def passes(self) -> int:
        return 1

    def count(self) -> int:
        return self._rows.count

    def read(self) -> int:
        return self._rows.count

    @property
    def rows(self) -> Rows:
        return self._rows

    @property
    def _how(self) -> dict[str, ColumnType]:
        name, how = self.groups.name, self.groups.how
        return {} if name is None or how is None else {name: how}

    def labels(self) -> NDArray[np.int64]:
        rows = self._rows.count
        if self._source is None:
            return np.zeros(rows, dtype=np.int64)
        chunks = self._source.chunks(self._how, max(rows, 1))
        codes = [group_codes(column) for chunk in chunks for column in chunk.values()]
        return np.concatenate([np.zeros(0, dtype=np.int64), *codes])


def _grouped_source(data: Any, by: str) -> TableSource:
    if isinstance(data, pd.DataFrame):
        return frame_source(data)
    if not isinstance(data, Mapping):
        raise ArgumentError("by must be the name of a column of a DataFrame, mapping or table.")
    if by not in data:
        raise DataError(f"data has no column {by!r}.")
    return mapping_source({by: data[by]})


class _Brought(BlockTable):
    """All declared columns of a table; blocks are DataFrames."""

    def __init__(
        self, source: LocalSource, by: str | None, schema: Schema, progress: bool | None
    ) -> None:
        if not schema:
            raise ArgumentError(
                "schema must declare the columns that the estimator is to get of this table: what "
                "is inferred from rows would make a block's value depend on other blocks."
            )
        self._columns: dict[str, ColumnType] = dict(schema)
        self._categories = {
            name: pd.CategoricalDtype(list(how.levels))
            for name, how in self._columns.items()
            if isinstance(how, Categorical)
        }
        self.groups = Groups.of(by, schema)
        check_columns(source, self._columns)
        self._reader = Reader(source, progress)
        self._reader.require(1)
        self._rows: Rows | None = None
        self._labels = np.zeros(0, dtype=np.int64)

    @property
    def passes(self) -> int:
        return self._reader.passes

    def count(self) -> int | None:
        source = self._reader.source
        if source.rows is None and not source.rereadable:
            return None
        return self._reader.rows

    def read(self) -> int:
        parts: dict[str, list[NDArray[Any]]] = {name: [] for name in self._columns}
        for chunk in self._reader.chunks(self._columns, "rows"):
            for name, values in chunk.items():
                parts[name].append(values)
        # Concatenated even where there is one: a chunk may be a view of the caller's table.
        cells = {
            name: np.concatenate([np.zeros(0, _cell_type(self._columns[name])), *parts.pop(name)])
            for name in self._columns
        }
        frame = pd.DataFrame({name: self._column(name, values) for name, values in cells.items()})
        self._rows = rows_of(frame)
        self._labels = (
            np.zeros(len(frame), dtype=np.int64)
            if self.groups.name is None
            else group_codes(cells[self.groups.name])
        )
        return len(frame)

    def _column(self, name: str, cells: NDArray[Any]) -> Any:
        match self._columns[name]:
            case Categorical():
                return pd.Categorical.from_codes(cells, dtype=self._categories[name])
            case Boolean():
                return pd.arrays.BooleanArray(cells == 1, np.isnan(cells))
            case _:
                return cells

    @property
    def rows(self) -> Rows:
        assert self._rows is not None
        return self._rows

    def labels(self) -> NDArray[np.int64]:
        return self._labels


def _cell_type(how: ColumnType) -> type[np.generic]:
    """Return the dtype in which chunks hold a column's cells."""
    return np.int32 if isinstance(how, Categorical) else np.float64
