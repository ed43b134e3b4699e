"""Spark DataFrames: each partition is tallied by a task, and few further tasks add the vectors.

The executors need dpreg: install it with their Python, or send it along
(``spark.sparkContext.addPyFile``, ``spark.archives`` with a packed environment). A local master
runs the Python of the session's own, where `PYSPARK_PYTHON` says so.

Why an answer is one attempt's, partition by partition. Spark runs a task again when it failed, when
a copy of it might be faster (speculation), and when its output was lost before others could fetch
it. What makes that harmless:

1. A task hands over its rows' tally as **one** row, emitted when all its input has been read. The
   output of an attempt that failed, or came second, is discarded whole.
2. Which task adds that row next follows from the **number of the partition**, not from the vector:
   it is hashed into a slot, and an attempt that is run again keeps its number. So the output of
   every attempt goes, whole, to one and the same task. Had it been dealt out by its content, or in
   pieces (a row for each half), an output that is computed anew, with other coins, could be counted
   in two places or in none.
3. A task that adds has fetched, from each task before it, the one output that was on offer; where a
   fetch failed it is run again from nothing, and its earlier sum was never emitted. Whichever
   attempts it fetched, their vectors are whole. By induction over the stages, every sum is one
   vector for each partition under it, from one attempt; and no partition is under two tasks.

So the last task's row has each partition once, and the argument in `dpreg.sources.base` holds:
every row is counted once, under one fair coin. Which attempt it is depends on what failed and when,
not on how coins fell. Spark itself takes tasks for functions of their input and need not notice
that two attempts differ; from 4.1 on it does (checksums of shuffled rows) and runs the stages after
a differing one anew, all of them, which leaves the argument as it is.

What a partition's rows are is the plan's to say. One that gives other rows each time that it is run
(a sample without a seed) makes other tables for each pass, with this engine as with any.

Executors import this module too: `Tallies`, `Sent`, `sum_rows` and `count_rows` are what their
tasks do, and each task hands over one row.

Tested in `tests/sources/test_spark.py` and `tests/sources/test_spark_losses.py`.
"""

from __future__ import annotations

import importlib.util
import logging
import pickle
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pyspark.logger import PySparkLogger

from dpreg.cells import Kind
from dpreg.columns import Columns
from dpreg.errors import ArgumentError, DataError
from dpreg.sources.base import CHUNK_ROWS, Integers, Piece, Tally, added, find_column, tallied
from dpreg.sources.cluster import (
    ClusterSource,
    Sending,
    check_versions,
    interrupted,
    shielded,
    version_teller,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ENGINE = "Spark"
_SMALL = 1 << 15  # bytes of a vector of which one task adds those of all partitions
_WIDTH = 16  # tasks of the last stage but one, where vectors are larger
VECTORS = "slot int, vector binary"
"""Columns of a vector's row: who made it, and the vector, pickled."""
_COUNTS = "slot int, rows bigint"

_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_asked: WeakSet[Any] = WeakSet()
"""Sessions whose executors have told their version, which takes a job."""

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("byte", "short", "integer", "long", "float", "double", "decimal"), "numeric"),
    **dict.fromkeys(("string", "char", "varchar"), "string"),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz", "time"), "datetime"),
    **dict.fromkeys(("interval", "daytimeinterval", "yearmonthinterval"), "datetime"),
    "boolean": "bool",
    "void": "object",
}
"""Kinds by Spark's names of types; all other types hold neither numbers nor labels."""


def spark_source(data: Any) -> SparkSource:
    """Take a Spark DataFrame, of a session in this process or of Spark Connect.

    Raises
    ------
    ArgumentError
        If it is something else of PySpark's, or a stream without an end; or if pyarrow is missing.
    DataError
        If executors have another version of dpreg.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise ArgumentError(
            "Spark brings rows to Python through pyarrow, which is not installed: "
            "pip install 'dpreg[spark]', on the executors too"
        )
    from pyspark.sql import DataFrame

    if not isinstance(data, DataFrame):
        raise ArgumentError(
            f"data is a {type(data).__name__} of PySpark: give a pyspark.sql.DataFrame "
            "(pandas on Spark: data.to_spark())"
        )
    if data.isStreaming:
        raise ArgumentError("data is a stream without an end: give a DataFrame that is read once")
    session = data.sparkSession
    if not _is_remote(session) and session not in _asked:  # Spark Connect tells nothing of them
        check_versions(_ENGINE, lambda: _of_executors(session.sparkContext))
        _asked.add(session)
    return SparkSource(data)


def _is_remote(one: Any) -> bool:
    return type(one).__module__.startswith("pyspark.sql.connect")


def _of_executors(context: Any) -> list[str]:
    tasks, version = context.defaultParallelism, version_teller()
    found: list[str] = context.parallelize(range(tasks), tasks).map(lambda _: version()).collect()
    return found


class SparkSource(ClusterSource):
    """A source whose rows are the partitions of a Spark DataFrame.

    Names and kinds are those of its schema, known before any job is run; only the columns that a
    pass reads are asked for. Columns of kinds that cannot be read are not sent either: all their
    cells are missing.

    The order of the rows, which seeded runs follow, is that of the partitions, and within them the
    one in which Spark delivers rows. It has to be the same in each job: files, a table made of
    local data, a persisted frame are in order; what has been shuffled (joined, grouped) comes in
    another order each time, unless sorted by a key without ties. A partition that has another
    number of rows than when it was counted ends the pass.

    Spark packs files into partitions by size, the largest first, where dpreg's own reader goes by
    their names: a seeded run over the same files tosses its coins for other rows here than there.
    Exact moments of all rows, and the law of what is released, are the same.

    What goes wrong in the plan itself (a function of the user's that raises, a cast that fails) is
    written to the logs of Spark's executors, rows and all, by Spark: before dpreg hears of it, and
    whether dpreg is there or not. No message of dpreg's repeats it, and while dpreg
    waits, PySpark's own loggers in this process do not print it.
    """

    __slots__ = ("_data",)
    engine = _ENGINE

    def __init__(self, data: DataFrame) -> None:
        fields = data.schema.fields
        self._data = data
        self.names = tuple(field.name for field in fields)
        self._kinds = tuple(_KINDS.get(field.dataType.typeName(), "other") for field in fields)

    def kind(self, name: str) -> Kind:
        """Return what the container calls a column. DataError where absent or repeated."""
        return self._kinds[find_column(self.names, name)]

    def _together(self, sending: Sending) -> SparkSource:
        """Send rows on: how many tasks they go to is ``spark.sql.shuffle.partitions``.

        Spark may join partitions made by such a repartition, but splits none.
        """
        kinds = ", ".join(f"{label} double" for label in sending.labels)
        read = self._selected(sending.columns).mapInArrow(_Sent(sending), kinds)
        return SparkSource(read.repartition(sending.labels[0]))

    def count(self) -> int:
        """Count the rows where they are."""
        with _unlogged():
            return shielded(_ENGINE, lambda: int(self._data.count()))

    def _total(self, columns: Columns, tally: Tally, positions: bool) -> Integers | None:
        frame = self._selected(columns)
        with _unlogged(), _cancelled(frame):
            counts = _counted(frame) if positions else None
            sums = frame.mapInArrow(Tallies(columns, tally, counts), VECTORS)
            for width in _widths(tally):
                # Each row goes, whole, to a task that its slot decides.
                dealt = sums.repartition(*(() if width is None else (width,)), "slot")
                sums = dealt.mapInArrow(sum_rows, VECTORS)
            rows = sums.collect()
        return added(pickle.loads(row["vector"]) for row in rows) if rows else None

    def _selected(self, columns: Columns) -> DataFrame:
        """Take the columns to be read, in their order, by place: names may need quoting."""
        from pyspark.sql.functions import lit

        plain = self._data.toDF(*(f"c{place}" for place in range(len(self.names))))
        chosen = []
        for name in columns:
            unread = self.kind(name) in ("datetime", "other")
            label = f"c{find_column(self.names, name)}"
            chosen.append(lit(None).cast("double").alias(label) if unread else plain[label])
        return plain.select(*chosen)


def _counted(frame: DataFrame) -> dict[int, int]:
    return {row["slot"]: row["rows"] for row in frame.mapInArrow(count_rows, _COUNTS).collect()}


def _widths(tally: Tally) -> tuple[int | None, ...]:
    """Return the numbers of tasks of the stages that add; None is for Spark to choose.

    Where vectors are small, one task adds those of all partitions. Otherwise Spark's own number of
    tasks (which it fits to what there is to be shuffled) adds some each, a few tasks add these
    sums, and one the rest: no task, and not the driver, is sent many vectors.
    """
    return (1,) if tally(()).nbytes <= _SMALL else (None, _WIDTH, 1)


# ---- what tasks do -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tallies:
    """The function of a pass for ``mapInArrow``: one row for a partition that has rows.

    Attributes
    ----------
    columns : mapping of str to ColumnType
    tally : Tally
    counts : dict of int to int, or None
        Rows of each partition, by its number, where places in the whole table are needed.
    """

    columns: Columns
    tally: Tally
    counts: dict[int, int] | None

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Tally a partition that comes in record batches."""
        vector = shielded(_ENGINE, lambda: self._vector(batches))
        if vector is not None:
            yield row_of(vector)

    def _vector(self, batches: Iterator[Any]) -> Integers | None:
        counts = self.counts
        start = 0 if counts is None else sum(n for place, n in counts.items() if place < slot())
        rows = 0

        def placed() -> Iterator[tuple[int, Piece]]:
            nonlocal rows
            for piece in _pieces(batches, self.columns):
                yield start + rows, piece
                rows += piece.rows

        vector = tallied(self.tally, placed())
        if counts is not None and rows != counts.get(slot(), 0):
            raise DataError("a partition has other rows than before: put the table in order")
        return vector if rows else None


@dataclass(frozen=True, slots=True)
class _Sent:
    """Reads record batches, and writes their rows as they are sent."""

    sending: Sending

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        read = (self.sending(piece.chunk()) for piece in _pieces(batches, self.sending.columns))
        while (cells := shielded(_ENGINE, lambda: next(read, None))) is not None:
            yield pa.record_batch(cells)


def _pieces(batches: Iterable[Any], columns: Columns) -> Iterator[Piece]:
    """Cut record batches of these columns, in their order."""
    import pyarrow as pa

    from dpreg.sources.arrow import batch_pieces

    named = (pa.RecordBatch.from_arrays(batch.columns, [*columns]) for batch in batches)
    return batch_pieces(((0, batch) for batch in named), columns, CHUNK_ROWS)


def sum_rows(batches: Iterator[Any]) -> Iterator[Any]:
    """Add vectors: one row, or none where none came."""
    total: Integers | None = None
    for batch in batches:
        for cell in batch.column(1):
            vector = pickle.loads(cell.as_py())
            total = vector if total is None else added([total, vector])
    if total is not None:
        yield row_of(total)


def count_rows(batches: Iterator[Any]) -> Iterator[Any]:
    """Count a partition's rows."""
    import pyarrow as pa

    rows = sum(batch.num_rows for batch in batches)
    yield pa.record_batch({"slot": pa.array([slot()], pa.int32()), "rows": pa.array([rows])})


def slot() -> int:
    """Return the number of this task's partition, which another attempt has too."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None  # in a task there is one
    return context.partitionId()


def row_of(vector: Integers) -> Any:
    """Return the row of a vector."""
    import pyarrow as pa

    entries = pa.array([pickle.dumps(vector)], pa.binary())
    return pa.record_batch({"slot": pa.array([slot()], pa.int32()), "vector": entries})


# ---- what the caller sees meanwhile --------------------------------------------------------------


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep PySpark from logging, on this thread, what a plan's failure says: it quotes cells."""
    thread = threading.get_ident()

    def elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != thread

    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(elsewhere)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(elsewhere)


@contextmanager
def _cancelled(frame: DataFrame) -> Iterator[None]:
    """End the jobs of a frame on an interrupt."""
    session, tag = frame.sparkSession, f"dpreg-{uuid.uuid4().hex}"
    put: Callable[[str], object] = session.addTag
    cancel: Callable[[str], object] = session.interruptTag
    remove: Callable[[str], object] = session.removeTag
    if not _is_remote(frame):  # a session's tags are forgotten with the connection that breaks
        context = session.sparkContext
        put, cancel, remove = context.addJobTag, context.cancelJobsWithTag, context.removeJobTag
    put(tag)
    try:
        yield
    except BaseException as error:
        if interrupted(error):
            cancel(tag)
        raise
    finally:
        remove(tag)
