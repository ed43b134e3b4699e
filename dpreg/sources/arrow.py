"""Tables that come as Arrow: pyarrow's, Polars', DuckDB's, streams, datasets, Parquet files.

`dpreg.sources.arrow_cells` reads their cells; here is how their rows are gone through. Record
batches are taken one at a time and cut into pieces, so memory holds what the engine has in flight
and a batch; the turning into chunks happens in the threads that tally.

An engine that fails while it is read ends the call in a `DataError` that names the engine and the
kind of failure. By then the privacy ledger has been charged: that is done before the first row is
read, and an error does not refund it.

Tested in `tests/sources/test_arrow.py` and `tests/sources/test_files.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dpreg.cells import Kind
from dpreg.columns import Categorical, Columns
from dpreg.errors import ArgumentError, DataError
from dpreg.paths import Stamp, check_same, stamp
from dpreg.sources.arrow_cells import batch_reader, kind_of_arrow, pa
from dpreg.sources.base import (
    PART_ROWS,
    LocalSource,
    Piece,
    find_column,
    guarded,
    guarded_items,
)

_ONCE = ("__next__", "read_next_batch", "read_next", "get_next")  # what streams have, not tables
_COLUMNS = ("Series", "ChunkedArray")  # which export streams, too

_BUFFER = 1 << 18  # bytes read ahead in each column
_BUFFERS = 1 << 25  # and in all of them together, where they are more than a hundred or so
_LEAST_BUFFER = 1 << 14
_DECODED = 1 << 15  # rows decoded at a time, or as many as a chunk of many columns has
_LEAST_DECODED = 1 << 12


def batch_pieces(
    batches: Iterable[tuple[int, Any]], columns: Columns, size: int
) -> Iterator[Piece]:
    """Cut record batches, which may differ in their types, into pieces.

    Parameters
    ----------
    batches : iterable of (int, pyarrow.RecordBatch)
        With the part that it belongs to, as in `Piece`.
    columns : mapping of str to ColumnType
    size : int
        Most rows of a piece.
    """
    read = schema = None
    for part, batch in batches:
        if read is None or batch.schema != schema:
            read, schema = batch_reader(batch.schema, columns), batch.schema
        for start in range(0, batch.num_rows, size):
            rows = batch.slice(start, size)
            yield Piece(rows.num_rows, partial(read, rows), part)


# ---- what hands over a table, or a stream --------------------------------------------------------


class StreamSource(LocalSource):
    """A source whose rows an engine hands over as Arrow record batches.

    Parameters
    ----------
    name : str
        Of what holds the table, for messages.
    schema : pyarrow.Schema
        Batches may come in other types, at a later pass or from another file: each is read by its
        own.
    opened : callable
        From the columns wanted to an iterator of record batches, which may have more columns; of a
        RecordBatchReader, in most cases. It fails with a `DataError`.
    rows : int, optional
        Where public metadata has it.
    rereadable : bool
        Whether `opened` gives the rows anew at each call.
    counted : callable, optional
        Counts the rows, if that takes less than going through them.
    ordered : bool
        Whether `opened` gives the rows in the same order at each call: queries do not promise it.

    Raises
    ------
    DataError
        While reading, if the engine fails, or hands over another number of rows than at the pass
        before: a stream that was exhausted, a query with a random sample in it.
    """

    def __init__(
        self,
        name: str,
        schema: Any,
        opened: Callable[[Sequence[str]], Iterator[Any]],
        rows: int | None = None,
        *,
        rereadable: bool = True,
        counted: Callable[[], int] | None = None,
        ordered: bool = True,
    ) -> None:
        self.names = tuple(schema.names)
        self.rows = rows
        self.parts = None if rows is None else -(-rows // PART_ROWS)
        self.rereadable = rereadable
        self.fleeting = not (rereadable and ordered)
        self._name, self._schema, self._opened, self._counted = name, schema, opened, counted
        self._rows = rows  # counted at the first complete pass, where the engine cannot tell
        self._started = False

    def kind(self, name: str) -> Kind:
        """Return what the container calls a column. DataError where absent or repeated."""
        return kind_of_arrow(self._schema.field(find_column(self.names, name)).type)

    def count(self) -> int:
        """Count the rows; by going through them, if there is no other way."""
        if self._counted is not None:
            return int(guarded(self._counted, f"{self._name} failed to count the rows"))
        if self.rows is None and not self.rereadable:
            raise DataError(f"the rows of {self._name} cannot be counted before they are read")
        return super().count()

    def _pieces(self, columns: Columns, size: int) -> Iterator[Piece]:
        if self._started and not self.rereadable:
            raise DataError(
                f"{self._name} can be read once, and has been: give a table that stays, or "
                "a function that opens it anew"
            )
        self._started = True
        opened = self._opened([*columns] or self.names[:1])
        batches = guarded_items(opened, f"{self._name} failed while it was read")
        rows = 0
        for piece in batch_pieces(((0, batch) for batch in batches), columns, size):
            yield replace(piece, part=rows // PART_ROWS)
            rows += piece.rows
        if self._rows not in (None, rows):
            raise DataError(
                f"{self._name} handed over another number of rows than before: give a table "
                "that stays the same"
            )
        self._rows = rows


def stream_source(data: Any) -> StreamSource:
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
        return _duckdb(data, name)
    if library == "pyarrow" and hasattr(data, "get_fragments"):
        return _dataset(data, name)
    if not hasattr(data, "__arrow_c_stream__") or type(data).__name__ in _COLUMNS:
        raise ArgumentError(f"data is a {type(data).__name__}, which is not a table: give one")
    if library == "polars" and hasattr(data, "height"):
        return _table(_narrowed(data), name, int(data.height))
    if library == "pyarrow" and hasattr(data, "num_rows"):
        return _table(data, name, int(data.num_rows))
    return _stream(data, name)


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


def _table(data: Any, name: str, rows: int) -> StreamSource:
    with _opened(lambda: data, name) as stream:
        schema = stream.schema

    def opened(names: Sequence[str]) -> Any:
        return _opened(lambda: data.select(list(names)), name)

    return StreamSource(name, schema, opened, rows)


def _narrowed(data: Any) -> Any:
    """Return a Polars frame; its integers of 128 bits, which pyarrow has not, as float64.

    One integer beyond 64 bits makes them of a whole column. They mean the same: labels and persons
    that are numbers are spelt by the nearest float64, as those of other wide integers are.
    """
    wide = [n for n, dtype in data.schema.items() if str(dtype) in ("Int128", "UInt128")]
    if not wide:
        return data
    import polars as pl

    return data.with_columns(pl.col(wide).cast(pl.Float64))


def _duckdb(data: Any, name: str) -> StreamSource:
    with _opened(lambda: data.limit(0), name) as stream:  # an open stream takes the connection
        schema = stream.schema

    def opened(names: Sequence[str]) -> Any:
        from duckdb import ColumnExpression

        return _opened(lambda: data.select(*map(ColumnExpression, names)), name)

    return StreamSource(name, schema, opened, counted=lambda: len(data), ordered=False)


def _stream(data: Any, name: str) -> StreamSource:
    """Anything else: opened once for its schema, and that stream is kept for the first pass."""
    waiting = [_opened(lambda: data, name)]

    def opened(names: Sequence[str]) -> Any:
        return waiting.pop() if waiting else _opened(lambda: data, name)

    once = any(hasattr(data, method) for method in _ONCE)
    return StreamSource(name, waiting[0].schema, opened, rereadable=not once, ordered=False)


# ---- datasets of pyarrow -------------------------------------------------------------------------
#
# A whole dataset is read in the types of its first file, and one cell of another file that cannot
# be turned into them ends the pass. So files are read one by one, each in its own types.


def _dataset(data: Any, name: str) -> StreamSource:
    check_formats(data)

    def opened(names: Sequence[str]) -> Iterator[Any]:
        return guarded(lambda: _dataset_batches(data, names), f"{name} cannot be read")

    return StreamSource(name, data.schema, opened, counted=data.count_rows)


def check_formats(data: Any) -> None:
    """Refuse a dataset that has files of text, filtered or not.

    Arrow's CSV reader stops at a row with too many or too few cells, and a quote that is never
    closed takes other rows with it; its JSON reader stops at a line that it cannot parse. No single
    row may decide whether a call ends in an error. dpreg's own CSV reader takes paths.

    Raises
    ------
    ArgumentError
    """
    for part in getattr(data, "children", ()):
        check_formats(part)
    found = getattr(getattr(data, "format", None), "default_extname", "parquet")
    if found in ("csv", "json"):
        raise ArgumentError(
            f"data is a pyarrow.dataset with {found.upper()} files, of which a single row could "
            "end the call after the charge: give the paths of CSV files (data.files), or Parquet "
            "files"
        )


def _dataset_batches(data: Any, names: Sequence[str]) -> Iterator[Any]:
    """Open a dataset and return its record batches, which may differ in their types.

    Parameters
    ----------
    data : pyarrow.dataset.Dataset
        One with a filter is read as a whole, in its own types: it does not tell of its files.
    names : sequence of str
        Each a name that the dataset has once.
    """
    # Arrow's defaults keep hundreds of megabytes in flight.
    options: dict[str, Any] = {"batch_readahead": 1, "fragment_readahead": 0}
    options |= {"columns": list(names), "batch_size": _DECODED}
    try:
        fragments = iter(data.get_fragments())
    except ValueError:
        return iter(data.to_batches(**options, **_buffered(data)))
    return (
        batch
        for part in fragments
        for batch in part.to_batches(_types(part, data.schema, names), **options, **_buffered(part))
    )


def _buffered(data: Any) -> dict[str, Any]:
    from pyarrow import dataset

    if not isinstance(getattr(data, "format", None), dataset.ParquetFileFormat):
        return {}
    scan = dataset.ParquetFragmentScanOptions(
        use_buffered_stream=True, buffer_size=_BUFFER, pre_buffer=False
    )
    return {"fragment_scan_options": scan}


def _types(part: Any, schema: Any, names: Sequence[str]) -> Any:
    """Return the types to read a file's columns in.

    What the file lacks, the dataset knows from the names of folders, or it is missing.
    """
    own = part.physical_schema
    fields = []
    for name in names:
        places = own.get_all_field_indices(name)
        fields.append(own.field(places[0]) if len(places) == 1 else schema.field(name))
    return pa.schema(fields)


# ---- Parquet files -------------------------------------------------------------------------------
#
# Only the needed columns are opened. Pages are decoded as their rows are asked for, from a small
# buffer for each column, so memory does not grow with the row groups: Arrow's dataset scanner,
# which decodes whole row groups ahead, took three to five times the memory and was no faster beside
# a tally. Decoding is one thread's at a time, and leaves the others to convert and to tally.


@dataclass(frozen=True, slots=True)
class _File:
    """What a footer says."""

    path: str
    stamp: Stamp
    schema: Any  # pyarrow.Schema
    metadata: Any  # pyarrow.parquet.FileMetaData


class ParquetSource(LocalSource):
    """A source of Parquet files of the same columns, one after the other.

    Names are those of the first file; rows are known from the footers; parts are row groups.

    Parameters
    ----------
    paths : sequence of str
        At least one.

    Raises
    ------
    DataError
        If a footer cannot be read. While rows are read, if a file is damaged, or not what it was
        when it was opened: the ledger stays charged.
    """

    unit = "row group"

    def __init__(self, paths: Sequence[str]) -> None:
        self._files = tuple(_footer(path) for path in paths)
        self.names = tuple(self._files[0].schema.names)
        self.rows = sum(file.metadata.num_rows for file in self._files)
        self.parts = sum(file.metadata.num_row_groups for file in self._files)

    def kind(self, name: str) -> Kind:
        """Return what the files call a column; "object" where they differ and some may be numbers.

        Writers infer a column's type from its cells, in each file anew. What they made of it has
        no say in how a declared column is read. A file that calls it "object" has no say either.

        Raises
        ------
        DataError
            Where the name is absent or repeated, or a later file lacks it.
        """
        find_column(self.names, name)
        first = self._files[0].path
        known: dict[Kind, None] = {}
        for file in self._files:
            if file.schema.names.count(name) != 1:
                raise DataError(f"{first} has a column {name!r} and {file.path} has not")
            known[kind_of_arrow(file.schema.field(name).type)] = None
        known.pop("object", None)
        if len(known) == 1 or (known and not {"numeric", "bool"} & set(known)):
            return next(iter(known))
        return "object"

    def _pieces(self, columns: Columns, size: int) -> Iterator[Piece]:
        before = 0
        for file in self._files:
            yield from batch_pieces(_file_batches(file, columns, size, before), columns, size)
            before += file.metadata.num_row_groups


def _footer(path: str) -> _File:
    def work() -> _File:
        first = stamp(path)
        with _parquet_file(path, [], 1) as file:
            return _File(path, first, file.schema_arrow, file.metadata)

    return guarded(work, _failed(path))


def _parquet_file(path: str, labels: list[str], columns: int) -> Any:
    from pyarrow.parquet import ParquetFile

    return ParquetFile(
        path,
        read_dictionary=labels,
        buffer_size=max(_LEAST_BUFFER, min(_BUFFER, _BUFFERS // columns)),
        pre_buffer=False,
        page_checksum_verification=True,  # where the writer left any
    )


def _failed(path: str) -> str:
    return f"{path} cannot be read as Parquet: it is damaged, cut short, or something else"


def _file_batches(
    known: _File, columns: Columns, size: int, before: int
) -> Iterator[tuple[int, Any]]:
    failed = _failed(known.path)
    check_same(known.path, known.stamp)
    # Text that stands for levels is looked up once for each entry of a dictionary.
    levels = [name for name, how in columns.items() if isinstance(how, Categorical)]
    labels = [n for n in levels if kind_of_arrow(known.schema.field(n).type) == "string"]
    file = guarded(lambda: _parquet_file(known.path, labels, len(columns)), failed)
    try:
        if not file.metadata.equals(known.metadata):
            raise DataError(f"{known.path} has changed since it was opened")
        decoded = max(_LEAST_DECODED, min(_DECODED, size))
        for group in range(known.metadata.num_row_groups):
            rows = 0
            batches = file.iter_batches(decoded, [group], list(columns), use_threads=False)
            for batch in guarded_items(batches, failed):
                yield before + group, batch
                rows += batch.num_rows
            if rows != known.metadata.row_group(group).num_rows:
                raise DataError(f"{failed} (rows are missing)")
    finally:
        file.close()
