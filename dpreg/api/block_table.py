"""What blocks are taken from: lists, arrays, or declared columns of a table, brought here once.

*Statement.* What the estimator gets of one block is a function of that block's rows, of the schema
and of the type of `data`: so one person's rows change the values of the blocks that they are in,
and no others. `dpreg.estimation.aggregate` rests on this.

*Proof.* Only declared columns are taken from a table, a frame or a mapping. Each cell is read on
its own, as declared (`dpreg.cells`); a column's type follows from its declaration; categories are
the schema's levels; the frame that blocks are taken from is made here, without ``attrs``, and its
labels are 0, 1, 2, ... in every block. A Series comes as float64, or as `schema` declares its name.
An array comes as float64, cell by cell; an item of a list is handed over as it is.

The container's own types would not do: pandas turns a column of integers into one of floats, or of
objects, as soon as one cell is missing, and a category that a single row has is listed in every
block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.api.context import check_schema_names
from dpreg.api.inputs import group_codes, grouping
from dpreg.errors import ArgumentError
from dpreg.estimation.blocks import Rows, rows_of
from dpreg.formula.where import Where, where_of
from dpreg.schema import Boolean, Categorical, ColumnType, Schema, Unbounded
from dpreg.sources import LocalSource, as_source
from dpreg.sources.base import find_column
from dpreg.sources.persons import COIN, Persons
from dpreg.sources.reader import Reader, showing
from dpreg.sources.table import mapping_source

__all__ = ["BlockTable", "Groups", "block_table"]

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
    by_person : bool
        Whether they are the kept rows of persons, who have coins.
    tested : bool
        Whether rows that fail a test are in no block.
    """

    groups: Groups
    by_person: bool = False
    tested: bool = False

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

    def coins(self) -> NDArray[np.float64] | None:
        """Return the coins of the persons whose rows they are, where that is known."""
        return None


def block_table(
    data: Any,
    by: Any = None,
    schema: Any = None,
    progress: bool | None = None,
    persons: Persons | None = None,
    where: str | None = None,
) -> BlockTable:
    """Settle from public facts what blocks are taken from; read no row.

    Parameters
    ----------
    data : array, list, Series; or what `dpreg.sources.as_source` takes
        Of the latter those that this process can read: blocks are DataFrames of the columns that
        `schema` declares.
    by : str or None
        A column whose levels `schema` declares.
    schema : what `Schema.from_any` takes
    progress : bool or None
        As for `Reader`.
    persons : Persons or None
        Whose rows they are: a column of a table.
    where : str or None
        As for `where_of`: rows that fail are in no group, and so in no block.

    Raises
    ------
    ArgumentError, SchemaError, DataError
    """
    showing(progress)
    declared = Schema.from_any(schema)
    if by is not None and not isinstance(by, str):
        raise ArgumentError("by must be the name of a column of the data.")
    if isinstance(data, np.ndarray | list | pd.Series) and by is not None:
        raise ArgumentError("by must be the name of a column of a DataFrame, mapping or table.")
    if isinstance(data, np.ndarray | list | pd.Series) and persons is not None:
        raise ArgumentError("person must be the name of a column of a DataFrame, mapping or table.")
    if isinstance(data, np.ndarray | list | pd.Series) and where is not None:
        raise ArgumentError("where tests columns of a DataFrame, mapping or table.")
    if isinstance(data, np.ndarray | list):
        return _Held(data, declared)
    if isinstance(data, pd.Series):
        return _of_series(data, declared, progress)
    source = None if _is_spread(data) else as_source(data)
    if not isinstance(source, LocalSource):
        raise ArgumentError(
            f"data is a {type(data).__name__}, whose rows are spread over a cluster, and an "
            "estimator needs a block's rows together. Bring the columns that it needs here, by "
            ".compute() of a Dask or .toPandas() of a Spark DataFrame; or call dp_mean, "
            "dp_quantile, dp_histogram or dp_suffstats, which add up where the rows are."
        )
    if not declared:
        raise ArgumentError(
            "schema must declare the columns that the estimator is to get of this table: what is "
            "inferred from rows would make a block's value depend on other blocks."
        )
    check_schema_names(declared, source)
    test, names = where_of(where, declared), {*source.names}
    wanted = {*(() if test is None else test.columns), *(() if by is None else (by,))}
    columns: dict[str, ColumnType] = {
        name: how for name, how in declared.items() if name in names | wanted
    }
    if not columns:
        find_column(source.names, next(iter(declared)))
    return _Brought(source, columns, Groups.of(by, declared), progress, persons, test)


def _of_series(data: pd.Series[Any], schema: Schema, progress: bool | None) -> BlockTable:
    name = data.name if isinstance(data.name, str) else "x"
    how: ColumnType = schema.get(name, Unbounded())
    source = mapping_source({name: data})
    return _Brought(source, {name: how}, Groups(), progress, one=True)


def _is_spread(data: object) -> bool:
    return type(data).__module__.partition(".")[0] in _CLUSTERS


class _Held(BlockTable):
    """A list or an array, whose items or rows are not columns of a table."""

    def __init__(self, data: Any, schema: Schema) -> None:
        if schema:
            raise ArgumentError(
                f"data is {'a list' if isinstance(data, list) else 'an array'}, whose items are "
                "rows without columns, and schema declares columns: leave schema out; or give a "
                "DataFrame or mapping, or for several files a glob, a folder, or a tuple of paths."
            )
        self._rows = rows_of(data)
        self.groups = Groups()

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

    def labels(self) -> NDArray[np.int64]:
        return np.zeros(self._rows.count, dtype=np.int64)


class _Brought(BlockTable):
    """Columns of a table; blocks are DataFrames, or Series where `one` column was given as such."""

    def __init__(
        self,
        source: LocalSource,
        columns: dict[str, ColumnType],
        groups: Groups,
        progress: bool | None,
        persons: Persons | None = None,
        where: Where | None = None,
        *,
        one: bool = False,
    ) -> None:
        self._columns = columns
        self._where = where
        self._one = one
        self._categories = {
            name: pd.CategoricalDtype(list(how.levels))
            for name, how in self._columns.items()
            if isinstance(how, Categorical)
        }
        self.groups = groups
        self.by_person = persons is not None
        self.tested = where is not None
        self._reader = Reader(source, progress, persons)
        self._reader.settle(self._columns)
        self._reader.require(1)
        self._rows: Rows | None = None
        self._labels = np.zeros(0, dtype=np.int64)
        self._coins: NDArray[np.float64] | None = None

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
        coins: list[NDArray[np.float64]] = [np.zeros(0)]
        passing: list[NDArray[np.bool_]] = [np.zeros(0, dtype=np.bool_)]
        for chunk in self._reader.chunks(self._columns, "rows"):
            for name in self._columns:
                parts[name].append(chunk[name])
            if self._where is not None:
                passing.append(self._where.passes(chunk))
            if self._reader.persons is not None:
                coins.append(chunk[COIN])
        # Concatenated even where there is one: a chunk may be a view of the caller's table.
        cells = {
            name: np.concatenate([np.zeros(0, _cell_type(self._columns[name])), *parts.pop(name)])
            for name in self._columns
        }
        frame = pd.DataFrame({name: self._column(name, values) for name, values in cells.items()})
        self._rows = rows_of(frame.iloc[:, 0] if self._one else frame)
        if self._reader.persons is not None:
            self._coins = np.concatenate(coins)
        self._labels = (
            np.zeros(len(frame), dtype=np.int64)
            if self.groups.name is None
            else group_codes(cells[self.groups.name])
        )
        if self._where is not None:
            self._labels[~np.concatenate(passing)] = -1
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

    def coins(self) -> NDArray[np.float64] | None:
        return self._coins


def _cell_type(how: ColumnType) -> type[np.generic]:
    """Return the dtype in which chunks hold a column's cells."""
    return np.int32 if isinstance(how, Categorical) else np.float64
