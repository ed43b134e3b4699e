"""A function that opens a table: called anew for each pass, it returns the rows in chunks.

The way to give rows that no other source can read, and to have a stream read more than once.

What is public: the names of the **first** chunk's columns, like those of any table; they are
checked before anything is charged. Where names follow from rows, as in JSON lines, let the function
first give a chunk without rows that has all columns. The names of later chunks, their kinds and the
lengths of their columns may follow from rows, so they decide nothing: a column that such a chunk
lacks, or has twice, or that is not a column at all, has only missing cells there; one that is too
short has missing cells at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from dpreg.cells import Kind
from dpreg.columns import ColumnType
from dpreg.errors import ArgumentError, DataError
from dpreg.sources.arrow_batches import guarded, guarded_batches
from dpreg.sources.base import Chunk, Source, find_column
from dpreg.sources.local import CHUNK_ROWS, LocalSource, Piece
from dpreg.sources.meaning import missing_chunk
from dpreg.sources.table import loose_source

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
        While rows are read (the ledger stays charged): if the function or its iterator fails; if
        another number of rows comes than at the pass before, or the very iterator that was used up
        already.
    ArgumentError
        While rows are read: if a chunk is not a table.
    """

    __slots__ = ("_as_source", "_function", "_rows", "_used")

    def __init__(
        self, function: Callable[[], object], as_source: Callable[[object], Source]
    ) -> None:
        self._function, self._as_source = function, as_source
        self._used: object = None
        self._rows: int | None = None  # of the first complete pass
        tables = self._tables()
        first = next((self._as_source(table) for table in tables), None)
        tables.close()
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
        return sum(_rows(self._chunk(table)) for table in self._tables())

    def _pieces(self, columns: Mapping[str, ColumnType], size: int) -> Iterator[Piece]:
        rows = 0
        for part, table in enumerate(self._tables()):
            for piece in _pieces(self._chunk(table), columns, size):
                yield replace(piece, part=part)
                rows += piece.rows
        if self._rows not in (None, rows):
            raise DataError(
                "the function given as data returned another number of rows than at the pass "
                "before: let it open the same table at each call"
            )
        self._rows = rows

    def _tables(self) -> Generator[Any]:
        """Call the function; each table that it gives."""
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
            if not (isinstance(table, _TABLES) or hasattr(table, _STREAM)):
                raise ArgumentError(f"{_WANTED}; one of its chunks is a {type(table).__name__}")
            yield table

    def _chunk(self, table: Any) -> LocalSource:
        source = loose_source(table) if isinstance(table, _TABLES) else self._as_source(table)
        assert isinstance(source, LocalSource)  # as all are that come as one of these
        return source


def _pieces(chunk: LocalSource, columns: Mapping[str, ColumnType], size: int) -> Iterator[Piece]:
    """Cut a chunk into pieces, with missing cells where it has no such column, or several."""
    there = {name: how for name, how in columns.items() if _is_unique(chunk, name)}
    gone = {name: how for name, how in columns.items() if name not in there}
    if there:
        for piece in chunk._pieces(there, size):
            yield replace(piece, read=partial(_completed, piece, gone)) if gone else piece
        return
    rows = _rows(chunk)
    for start in range(0, rows, size):
        part = min(size, rows - start)
        yield Piece(part, partial(missing_chunk, columns, part), 0)


def _completed(piece: Piece, gone: Mapping[str, ColumnType]) -> Chunk:
    return {**piece.read(), **missing_chunk(gone, piece.rows)}


def _rows(chunk: LocalSource) -> int:
    if chunk.rows is not None:
        return chunk.rows
    if chunk.rereadable:
        return chunk.count()
    return sum(piece.rows for piece in chunk._pieces({}, CHUNK_ROWS))  # of no column


def _is_unique(source: Source, name: str) -> bool:
    return source.names.count(name) == 1
