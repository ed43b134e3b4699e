"""Tables that a function returns, chunk by chunk.

A function that opens a table is the way to give rows that no other source can read, and to have a
stream read more than once: called anew for each pass, it returns the rows in chunks. What is
public: the names of the **first** chunk's columns, like those of any table; they are checked before
anything is charged. Where names follow from rows, as in JSON lines, let the function first give a
chunk without rows that has all columns. The names of later chunks, their kinds and the lengths of
their columns may follow from rows, so they decide nothing: a column that such a chunk lacks, or has
twice, or that is not a column at all, has only missing cells there; one that is too short has
missing cells at its end.

Tested in `tests/sources/test_opened.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from dpreg.cells import Kind
from dpreg.columns import Columns
from dpreg.errors import ArgumentError, DataError
from dpreg.sources.base import (
    Chunk,
    LocalSource,
    Piece,
    Source,
    find_column,
    guarded,
    guarded_items,
)
from dpreg.sources.numpy_cells import missing_chunk
from dpreg.sources.table import TableSource, as_series, frame_source

_FAILED = "the function given as data failed"
_WANTED = (
    "the function given as data must return a table, or an iterable of tables: pandas DataFrames, "
    "mappings of names to arrays, Arrow, Polars or DuckDB tables"
)


def _is_table(data: object) -> bool:
    return isinstance(data, pd.DataFrame | Mapping) or hasattr(data, "__arrow_c_stream__")


class OpenedSource(LocalSource):
    """A source of chunks that a function returns.

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

    Raises
    ------
    DataError
        If the function or its iterator fails: the error names the type of its exception and
        nothing else, since the text could quote a row. If it gives no chunk to take the names
        from. While rows are read (the ledger stays charged): if another number of rows comes than
        at the pass before, or the very iterator that was used up already.
    ArgumentError
        If what it returns is not an iterable of tables; while rows are read, if a chunk is none.
    """

    unit = "chunk"
    fleeting = True  # the function may run a query, and its order is not promised

    def __init__(
        self, function: Callable[[], object], as_source: Callable[[object], Source]
    ) -> None:
        self._function, self._as_source = function, as_source
        self._used: object = None
        self._rows: int | None = None  # of the first complete pass
        tables = self._tables()
        first = next((as_source(table) for table in tables), None)
        tables.close()
        if first is None:
            raise DataError(
                "the function given as data returned no chunk: let it give one without rows, so "
                "that the names of the columns are known"
            )
        self.names = first.names
        self._kinds = {name: first.kind(name) for name in first.names if _is_unique(first, name)}

    def kind(self, name: str) -> Kind:
        """Return what the first chunk calls a column. DataError where absent or repeated."""
        find_column(self.names, name)
        return self._kinds[name]

    def _pieces(self, columns: Columns, size: int) -> Iterator[Piece]:
        rows = 0
        for part, table in enumerate(self._tables()):
            loose = isinstance(table, pd.DataFrame | Mapping)
            chunk = loose_source(table) if loose else self._as_source(table)
            assert isinstance(chunk, LocalSource)  # as all are that come as one of these
            for piece in _pieces(chunk, columns, size):
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
        if _is_table(opened):
            opened = [opened]
        elif isinstance(opened, str | bytes) or not isinstance(opened, Iterable):
            raise ArgumentError(f"{_WANTED}; it returned a {type(opened).__name__}")
        tables = guarded(partial(iter, opened), _FAILED)
        for table in guarded_items(tables, _FAILED):
            if not _is_table(table):
                raise ArgumentError(f"{_WANTED}; one of its chunks is a {type(table).__name__}")
            yield table


def _pieces(chunk: LocalSource, columns: Columns, size: int) -> Iterator[Piece]:
    """Cut a chunk into pieces, with missing cells where it has no such column, or several."""
    there = {name: how for name, how in columns.items() if _is_unique(chunk, name)}
    gone = {name: how for name, how in columns.items() if name not in there}
    for piece in chunk._pieces(there, size):
        yield replace(piece, read=partial(_completed, piece, gone)) if gone else piece


def _completed(piece: Piece, gone: Columns) -> Chunk:
    return {**piece.read(), **missing_chunk(gone, piece.rows)}


def _is_unique(source: Source, name: str) -> bool:
    return source.names.count(name) == 1


def loose_source(data: pd.DataFrame | Mapping[Any, Any]) -> TableSource:
    """Take a later chunk of a table: nothing about its columns is an error, since rows may be why.

    What is no column is one of missing cells; columns that are too short are missing at their end.
    """
    if isinstance(data, pd.DataFrame):
        return frame_source(data) if data.columns.nlevels == 1 else TableSource([], len(data))
    found = [(name, as_series(name, values, loose=True)) for name, values in data.items()]
    rows = max((len(column) for _, column in found), default=0)
    return TableSource([(n, c.reindex(range(rows))) for n, c in found if isinstance(n, str)], rows)
