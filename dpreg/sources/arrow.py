"""Tables that come as Arrow: pyarrow's, Polars', DuckDB's, and whatever exports a C stream.

`dpreg.sources.arrow_cells` reads their cells; here is how their rows are gone through. Record
batches are taken one at a time and cut into pieces, so memory holds what the engine has in flight
and a batch; the turning into chunks happens in the threads that tally.

An engine that fails while it is read ends the call in a `DataError` that names the engine and the
kind of failure. By then the privacy ledger has been charged: that is done before the first row is
read, and an error does not refund it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpreg.cells import Kind
from dpreg.columns import ColumnType, Unbounded
from dpreg.errors import ArgumentError, DataError
from dpreg.sources.arrow_batches import batch_pieces, guarded, guarded_batches
from dpreg.sources.arrow_cells import arrow_reader, batch_reader, kind_of_arrow
from dpreg.sources.arrow_library import pa
from dpreg.sources.base import Chunk, find_column
from dpreg.sources.local import LocalSource, Piece

__all__ = [
    "StreamSource",
    "arrow_reader",
    "batch_pieces",
    "batch_reader",
    "kind_of_arrow",
    "stream_source",
]

PART_ROWS = 1 << 18
"""Rows of a block, where an engine knows of no parts of its own."""

_ONCE = ("__next__", "read_next_batch", "read_next", "get_next")  # what streams have, not tables
_COLUMNS = ("Series", "ChunkedArray")  # which export streams, too


@dataclass(frozen=True, slots=True)
class Engine:
    """What holds a table, as far as a `StreamSource` must know.

    Attributes
    ----------
    name : str
        For messages.
    schema : pyarrow.Schema
    open : callable
        From the columns wanted, and how they are declared, to an iterator of record batches, which
        may have more columns; of a RecordBatchReader, in most cases. It fails with a `DataError`.
    rows : int or None
        Where public metadata has it.
    rereadable : bool
        Whether `open` gives the rows anew at each call.
    count : callable, optional
        Counts the rows, if that takes less than going through them.
    ordered : bool
        Whether `open` gives the rows in the same order at each call.
    mixed : bool
        Whether batches may come in other types than `schema` says, as those of several files do.
    """

    name: str
    schema: Any
    open: Callable[[Mapping[str, ColumnType]], Iterator[Any]]
    rows: int | None = None
    rereadable: bool = True
    count: Callable[[], int] | None = None
    ordered: bool = True
    mixed: bool = False


class StreamSource(LocalSource):
    """A source whose rows an engine hands over as Arrow record batches.

    Raises
    ------
    DataError
        While reading, if the engine fails, or hands over another number of rows than at the pass
        before: a stream that was exhausted, a query with a random sample in it.
    """

    __slots__ = ("_engine", "_rows", "_started")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._rows = engine.rows  # counted at the first complete pass, where the engine cannot tell
        self._started = False

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in the table's order, repeats included."""
        return tuple(self._engine.schema.names)

    @property
    def rows(self) -> int | None:
        """Number of rows (private under add-remove); None where only a pass would tell."""
        return self._engine.rows

    @property
    def parts(self) -> int | None:
        """Blocks of 262,144 rows; None where `rows` is."""
        rows = self._engine.rows
        return None if rows is None else -(-rows // PART_ROWS)

    @property
    def rereadable(self) -> bool:
        """Whether more than one pass can be made."""
        return self._engine.rereadable

    @property
    def keeps_order(self) -> bool:
        """Whether every pass gives the rows in the same order: queries do not promise it."""
        return self._engine.ordered

    def kind(self, name: str) -> Kind:
        """Return what the container calls a column. DataError where absent or repeated."""
        return kind_of_arrow(self._engine.schema.field(find_column(self.names, name)).type)

    def count(self) -> int:
        """Count the rows; by going through them, if there is no other way."""
        engine = self._engine
        if engine.rows is not None:
            return engine.rows
        if engine.count is not None:
            return int(guarded(engine.count, f"{engine.name} failed to count the rows"))
        if not engine.rereadable:
            raise DataError(f"the rows of {engine.name} cannot be counted before they are read")
        first = {name: Unbounded() for name in engine.schema.names[:1]}
        return sum(batch.num_rows for batch in self._batches(first))

    def _pieces(self, columns: Mapping[str, ColumnType], size: int) -> Iterator[Piece]:
        if self._started and not self._engine.rereadable:
            raise DataError(
                f"{self._engine.name} can be read once, and has been: give a table that stays, or "
                "a function that opens it anew"
            )
        read = types = None
        rows = 0
        for batch in self._batches(columns):
            if read is None or batch.schema != types:
                read, types = self._reader(batch.schema, columns), batch.schema
            for piece in batch_pieces(batch, read, size):
                yield replace(piece, part=rows // PART_ROWS)
                rows += piece.rows
        if self._rows not in (None, rows):
            raise DataError(
                f"{self._engine.name} handed over another number of rows than before: give a table "
                "that stays the same"
            )
        self._rows = rows

    def _batches(self, columns: Mapping[str, ColumnType]) -> Iterator[Any]:
        self._started = True
        batches = self._engine.open(columns)
        yield from guarded_batches(batches, f"{self._engine.name} failed while it was read")

    def _reader(self, schema: Any, columns: Mapping[str, ColumnType]) -> Callable[[Any], Chunk]:
        """Make sure that the rows come as the columns that were promised."""
        for name in () if self._engine.mixed else columns:
            promised = self._engine.schema.field(find_column(self.names, name)).type
            if schema.field(find_column(schema.names, name)).type != promised:
                raise DataError(
                    f"{self._engine.name} changed the type of column {name!r} since it was opened"
                )
        return batch_reader(schema, columns)


def stream_source(data: object) -> StreamSource:
    """Take an Arrow table, or anything that exports one as a C stream, as a source.

    Parameters
    ----------
    data : object with ``__arrow_c_stream__``, or pyarrow.dataset.Dataset
        Read as often as need be: pyarrow's Table, RecordBatch and Dataset, a Polars DataFrame, a
        DuckDB relation, and other objects that are no streams themselves. Read once: a
        RecordBatchReader, and whatever else has a method to read on.

    Returns
    -------
    StreamSource
        Without a row having been read, unless the engine must read some to name its columns.

    Raises
    ------
    DataError
        If the engine fails, or has a column of a type that pyarrow does not know.
    ArgumentError
        If `data` is not a table, or a Dataset of CSV or JSON files.

    Notes
    -----
    A DuckDB relation is a query, which each pass runs again, for the columns that are needed. Its
    rows come in the same order each time, save where the query leaves their order open (grouping
    in several threads): a call that must find each row again in a later pass refuses relations, and
    whatever else may run a query. It must not sample at random. While a pass runs, its connection
    is taken. How much memory it takes is DuckDB's ``memory_limit`` to say.
    """
    library = type(data).__module__.partition(".")[0]
    name = f"the {type(data).__name__}"
    if library in ("duckdb", "_duckdb") and hasattr(data, "limit"):
        return StreamSource(_duckdb(data, name))
    if library == "pyarrow" and hasattr(data, "get_fragments"):
        return StreamSource(_dataset(data, name))
    if not hasattr(data, "__arrow_c_stream__") or type(data).__name__ in _COLUMNS:
        raise ArgumentError(f"data is a {type(data).__name__}, which is not a table: give one")
    if library == "polars" and hasattr(data, "height"):
        return StreamSource(_polars(data, name))
    if library == "pyarrow" and hasattr(data, "num_rows"):
        return StreamSource(_table(data, name, int(data.num_rows)))
    return StreamSource(_stream(data, name))


def _opened(table: Callable[[], object], name: str) -> Any:
    def work() -> Any:
        stream = pa.RecordBatchReader.from_stream(table())
        stream.schema.names  # noqa: B018, which fails where they are no text
        return stream

    return guarded(
        work,
        f"{name} cannot be read as Arrow: it failed, is not a table, or has a column of a type "
        "that pyarrow does not know",
    )


def _table(data: Any, name: str, rows: int) -> Engine:
    with _opened(lambda: data, name) as stream:
        schema = stream.schema

    def opened(columns: Mapping[str, ColumnType]) -> Any:
        return _opened(lambda: data.select(list(columns)), name)

    return Engine(name, schema, opened, rows)


def _polars(data: Any, name: str) -> Engine:
    """Take a frame; its integers of 128 bits, which pyarrow has not, as what means the same.

    One integer beyond 64 bits makes them of a whole column. Labels and persons that are numbers are
    spelt by the nearest float64, as those of other wide integers are.
    """
    wide = [n for n, dtype in data.schema.items() if str(dtype) in ("Int128", "UInt128")]
    if not wide:
        return _table(data, name, int(data.height))
    import polars as pl

    def cast(columns: Mapping[str, ColumnType]) -> Any:
        return data.select(pl.col(n).cast(pl.Float64) if n in wide else pl.col(n) for n in columns)

    with _opened(lambda: cast(dict.fromkeys(data.columns, Unbounded())), name) as stream:
        schema = stream.schema
    return Engine(
        name,
        schema,
        lambda columns: _opened(lambda: cast(columns), name),
        int(data.height),
        mixed=True,
    )


def _duckdb(data: Any, name: str) -> Engine:
    with _opened(lambda: data.limit(0), name) as stream:  # an open stream takes the connection
        schema = stream.schema

    def opened(columns: Mapping[str, ColumnType]) -> Any:
        from duckdb import ColumnExpression

        return _opened(lambda: data.select(*map(ColumnExpression, columns)), name)

    return Engine(name, schema, opened, count=lambda: len(data), ordered=False)


def _dataset(data: Any, name: str) -> Engine:
    from dpreg.sources.arrow_datasets import check_formats, dataset_batches

    check_formats(data)

    def opened(columns: Mapping[str, ColumnType]) -> Iterator[Any]:
        return guarded(lambda: dataset_batches(data, list(columns)), f"{name} cannot be read")

    return Engine(name, data.schema, opened, count=data.count_rows, mixed=True)


def _stream(data: Any, name: str) -> Engine:
    """Anything else: opened once for its schema, and that stream is kept for the first pass."""
    waiting = [_opened(lambda: data, name)]

    def opened(columns: Mapping[str, ColumnType]) -> Any:
        return waiting.pop() if waiting else _opened(lambda: data, name)

    once = any(hasattr(data, method) for method in _ONCE)
    return Engine(name, waiting[0].schema, opened, rereadable=not once, ordered=False)
