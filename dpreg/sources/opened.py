"""A function that opens a table: called anew for each pass, it returns the rows in chunks.

The way to give rows that no other source can read, and to have a stream read more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import pandas as pd

from dpreg.cells import Kind
from dpreg.columns import Boolean, ColumnType
from dpreg.errors import ArgumentError, DataError
from dpreg.sources.arrow_batches import guarded, guarded_batches
from dpreg.sources.base import Source, find_column
from dpreg.sources.local import LocalSource, Piece

__all__ = ["OpenedSource", "opened_source"]

_FAILED = "the function given as data failed"
_WANTED = (
    "the function given as data must return a table, or an iterable of tables: pandas DataFrames, "
    "mappings of names to arrays, Arrow, Polars or DuckDB tables"
)

_TABLES = (pd.DataFrame, Mapping)
_STREAM = "__arrow_c_stream__"


def opened_source(
    function: Callable[[], object], as_source: Callable[[object], Source]
) -> OpenedSource:
    """Take a function that returns the chunks of a table as a source.

    Parameters
    ----------
    function : callable without arguments
        Returns an iterable of tables (a generator, most often): pandas DataFrames, mappings, or
        anything with ``__arrow_c_stream__``; or one such table. Each call must open the rows anew:
        it is called **once here, for the first chunk's names and kinds**, and once for each pass.
        Chunks may have any number of rows. Each must be a table of its own: while the next is asked
        for, some of its rows may still be being read in other threads.
    as_source : callable
        `dpreg.sources.as_source`, which takes each chunk.

    Returns
    -------
    OpenedSource

    Raises
    ------
    DataError
        If the function fails: the error names the type of its exception and nothing else, since
        the text could quote a row. If it gives no chunk to take the names from.
    ArgumentError
        If what it returns is not an iterable of tables.
    """
    return OpenedSource(function, as_source)


class OpenedSource(LocalSource):
    """A source of chunks that a function returns.

    Raises
    ------
    DataError
        While rows are read (the ledger stays charged): if the function or its iterator fails; if a
        chunk lacks a column that is read (cells are read one by one, whatever a chunk's dtypes); if
        another number of rows comes than at the pass before, or the very iterator that was used up
        already.
    """

    __slots__ = ("_as_source", "_function", "_rows", "_used")

    def __init__(
        self, function: Callable[[], object], as_source: Callable[[object], Source]
    ) -> None:
        self._function, self._as_source = function, as_source
        self._used: object = None
        self._rows: int | None = None  # of the first complete pass
        chunks = self._chunks()
        first = next(chunks, None)
        chunks.close()
        if first is None:
            raise DataError(
                "the function given as data returned no chunk: let it give one without rows, so "
                "that the names of the columns are known"
            )
        self._names = first.names
        self._kinds = {name: first.kind(name) for name in first.names if _is_unique(first, name)}

    @property
    def names(self) -> tuple[str, ...]:
        """Column names of the first chunk, repeats included."""
        return self._names

    @property
    def rows(self) -> None:
        """Not known before a pass."""
        return None

    @property
    def unit(self) -> str:
        """What one part is called."""
        return "chunk"

    @property
    def keeps_order(self) -> bool:
        """Not promised: the function may run a query."""
        return False

    def kind(self, name: str) -> Kind:
        """Return what the first chunk calls a column. DataError where absent or repeated."""
        find_column(self._names, name)
        return self._kinds[name]

    def count(self) -> int:
        """Count the rows by calling the function once more."""
        return sum(_rows(chunk) for chunk in self._chunks())

    def _pieces(self, columns: Mapping[str, ColumnType], size: int) -> Iterator[Piece]:
        rows = 0
        for part, chunk in enumerate(self._chunks()):
            for name in columns:  # what a chunk calls a column has no say: see dpreg.sources.public
                find_column(chunk.names, name)
            for piece in chunk._pieces(columns, size):
                yield replace(piece, part=part)
                rows += piece.rows
        if self._rows not in (None, rows):
            raise DataError(
                "the function given as data returned another number of rows than at the pass "
                "before: let it open the same table at each call"
            )
        self._rows = rows

    def _chunks(self) -> Generator[LocalSource]:
        """Call the function; each table that it gives, as a source."""
        opened = guarded(self._function, _FAILED)
        if hasattr(opened, "__next__"):
            if opened is self._used:
                raise DataError(
                    "the function given as data returned the same iterator again, which has been "
                    "used up: let it make a new one at each call"
                )
            self._used = opened
        if isinstance(opened, _TABLES) or hasattr(opened, _STREAM):
            opened = [opened]
        elif isinstance(opened, str | bytes) or not isinstance(opened, Iterable):
            raise ArgumentError(f"{_WANTED}; it returned a {type(opened).__name__}")
        tables = guarded(partial(iter, opened), _FAILED)
        for table in guarded_batches(tables, _FAILED):
            yield self._chunk(table)

    def _chunk(self, table: object) -> LocalSource:
        if isinstance(table, _TABLES) or hasattr(table, _STREAM):
            source = self._as_source(table)
            if isinstance(source, LocalSource):
                return source
        raise ArgumentError(f"{_WANTED}; one of its chunks is a {type(table).__name__}")


def _rows(chunk: LocalSource) -> int:
    if chunk.rows is not None:
        return chunk.rows
    if chunk.rereadable:
        return chunk.count()
    name = chunk.names[0]
    return sum(len(read[name]) for read in chunk.chunks({name: Boolean()}))


def _is_unique(source: LocalSource, name: str) -> bool:
    return source.names.count(name) == 1
