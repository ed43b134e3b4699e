"""Any table becomes chunks of plain columns, and each cell is read on its own.

The meaning of a cell depends on the cell and on how its column is declared, never on other cells:
see `dpreg.cells` for what each kind of cell means. pandas frames and mappings of arrays now; Arrow
streams, Dask and Spark take the same `Source` protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol, runtime_checkable

from numpy.typing import NDArray

from dpreg.schema import ColumnType

__all__ = ["Kind", "Source", "as_source", "check_columns"]

Kind = Literal["numeric", "bool", "string", "category", "datetime", "object", "other"]
"""Public kind of a column, from its dtype alone.

"datetime" is dates, times, durations and periods; "other" is whatever holds neither numbers nor
labels (intervals, lists, bytes). Both are refused by `check_columns`.
"""


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
        """Column names in the table's order, repeats included; labels that are not text are left out."""

    @property
    def rows(self) -> int | None:
        """Number of rows (private under add-remove); None where only reading would tell."""

    def kind(self, name: str) -> Kind:
        """Public kind of a column. DataError where the name is absent or repeated."""

    def chunks(
        self, columns: Mapping[str, ColumnType], size: int
    ) -> Iterator[dict[str, NDArray[Any]]]:
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
    raise NotImplementedError


def check_columns(source: Source, columns: Mapping[str, ColumnType]) -> None:
    """Refuse, from public facts alone, a table that cannot be read as declared.

    Parameters
    ----------
    source : Source
    columns : mapping of str to ColumnType

    Raises
    ------
    DataError
        If a column is absent or its name repeated; if its kind is "datetime" or "other"; or if it
        is `Unbounded` and of kind "string" or "category", which need declared levels.
    """
    raise NotImplementedError
