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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.api.context import check_schema_names
from dpreg.api.inputs import group_codes, grouping
from dpreg.columns import Boolean, Categorical, ColumnType, Unbounded
from dpreg.errors import ArgumentError
from dpreg.estimation.blocks import Rows, rows_of
from dpreg.formula.where import Where, where_of
from dpreg.schema import Schema
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


class BlockTable:
    """Rows of which blocks are taken: a list's, an array's, or columns that are brought here.

    Blocks of columns are DataFrames, or Series where `one` column was given as such.

    Attributes
    ----------
    groups : Groups
    by_person : bool
        Whether they are the kept rows of persons, who have coins.
    tested : bool
        Whether rows that fail a test are in no block.
    """

    def __init__(
        self,
        held: Rows | None,
        reader: Reader | None = None,
        columns: Mapping[str, ColumnType] | None = None,
        groups: Groups | None = None,
        where: Where | None = None,
        *,
        one: bool = False,
    ) -> None:
        self._held, self._reader, self._where, self._one = held, reader, where, one
        self._columns = dict(columns or {})
        self._categories = {
            name: pd.CategoricalDtype(list(how.levels))
            for name, how in self._columns.items()
            if isinstance(how, Categorical)
        }
        self.groups = groups or Groups()
        self.by_person = reader is not None and reader.persons is not None
        self.tested = where is not None
        if reader is not None:
            reader.settle(self._columns)
            reader.require(1)
        self._labels = np.zeros(0 if held is None else held.count, dtype=np.int64)
        self._coins: NDArray[np.float64] | None = None

    @property
    def passes(self) -> int:
        """How often the rows were gone through, once the call is done."""
        return 1 if self._reader is None else self._reader.passes

    def count(self) -> int | None:
        """Count the rows before they are read; None where only reading them tells."""
        if self._reader is None:
            return self.rows.count
        source = self._reader.source
        return None if source.rows is None and not source.rereadable else self._reader.rows

    @property
    def rows(self) -> Rows:
        """The rows, once they are here."""
        assert self._held is not None
        return self._held

    def labels(self) -> NDArray[np.int64]:
        """Return each row's group: -1 for none, 0 without grouping."""
        return self._labels

    def coins(self) -> NDArray[np.float64] | None:
        """Return the coins of the persons whose rows they are, where that is known."""
        return self._coins

    def read(self) -> int:
        """Have the rows here, and return their number."""
        if self._reader is None:
            return self.rows.count
        parts: dict[str, list[NDArray[Any]]] = {name: [] for name in self._columns}
        coins: list[NDArray[np.float64]] = [np.zeros(0)]
        passing: list[NDArray[np.bool_]] = [np.zeros(0, dtype=np.bool_)]
        for chunk in self._reader.chunks(self._columns, "rows"):
            for name in self._columns:
                parts[name].append(chunk[name])
            if self._where is not None:
                passing.append(self._where.passes(chunk))
            if self.by_person:
                coins.append(chunk[COIN])
        # Concatenated even where there is one: a chunk may be a view of the caller's table.
        cells = {
            name: np.concatenate([np.zeros(0, _cell_type(self._columns[name])), *parts.pop(name)])
            for name in self._columns
        }
        frame = pd.DataFrame({name: self._column(name, values) for name, values in cells.items()})
        self._held = rows_of(frame.iloc[:, 0] if self._one else frame)
        if self.by_person:
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
    if isinstance(data, np.ndarray | list | pd.Series):
        _check_without_columns(by, persons, where)
    if isinstance(data, np.ndarray | list):
        if declared:
            raise ArgumentError(
                f"data is {'a list' if isinstance(data, list) else 'an array'}, whose items are "
                "rows without columns, and schema declares columns: leave schema out; or give a "
                "DataFrame or mapping, or for several files a glob, a folder, or a tuple of paths."
            )
        return BlockTable(rows_of(data))
    if isinstance(data, pd.Series):
        name = data.name if isinstance(data.name, str) else "x"
        held = Reader(mapping_source({name: data}), progress)
        return BlockTable(None, held, {name: declared.get(name, Unbounded())}, one=True)
    spread = type(data).__module__.partition(".")[0] in _CLUSTERS
    source = None if spread else as_source(data)
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
    reader = Reader(source, progress, persons)
    return BlockTable(None, reader, columns, Groups.of(by, declared), test)


def _check_without_columns(by: object, persons: object, where: object) -> None:
    """Refuse what names columns of rows that have none."""
    for name, given in (("by", by), ("person", persons)):
        if given is not None:
            raise ArgumentError(
                f"{name} must be the name of a column of a DataFrame, mapping or table."
            )
    if where is not None:
        raise ArgumentError("where tests columns of a DataFrame, mapping or table.")


def _cell_type(how: ColumnType) -> type[np.generic]:
    """Return the dtype in which chunks hold a column's cells."""
    return np.int32 if isinstance(how, Categorical) else np.float64
