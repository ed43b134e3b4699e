"""What Spark's tasks do: tally a partition, add vectors, count rows; each hands over one row.

The executors import this module. Why handing over one row matters: `dpreg.sources.spark`.

Tested in `tests/sources/test_spark_losses.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from dpreg.columns import ColumnType
from dpreg.errors import DataError
from dpreg.sources.base import Chunk
from dpreg.sources.cluster import PartitionTally, shielded
from dpreg.sources.local import CHUNK_ROWS
from dpreg.sources.words import Words, add

__all__ = [
    "COUNTS",
    "ENGINE",
    "VECTORS",
    "Tallies",
    "chunks_of",
    "count_rows",
    "sum_rows",
    "unpacked",
]

ENGINE = "Spark"
VECTORS = "slot int, words int, entries binary"
"""Columns of a packed vector's row: who made it, its words an entry, all its words."""
COUNTS = "slot int, rows bigint"
"""Columns of a count's row."""


@dataclass(frozen=True, slots=True)
class Tallies:
    """The function of a pass for ``mapInArrow``: one row for a partition that has rows.

    Attributes
    ----------
    work : PartitionTally
    counts : dict of int to int, or None
        Rows of each partition, by its number, where places in the whole table are needed.
    done : pyspark.Accumulator or None
        Collects the numbers of the partitions that are done.
    """

    work: PartitionTally
    counts: dict[int, int] | None
    done: Any

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Tally a partition that comes in record batches."""
        words = shielded(ENGINE, lambda: self._words(batches))
        if self.done is not None:
            self.done.add({slot()})
        if words is not None:
            yield row_of(words)

    def _words(self, batches: Iterator[Any]) -> Words | None:
        counts = self.counts
        start = 0 if counts is None else sum(n for place, n in counts.items() if place < slot())
        rows = 0

        def chunks() -> Iterator[Chunk]:
            nonlocal rows
            for chunk in chunks_of(batches, self.work.columns):
                rows += len(next(iter(chunk.values())))
                yield chunk

        words = self.work.of(chunks(), start)
        if counts is not None and rows != counts.get(slot(), 0):
            raise DataError("a partition has other rows than before: put the table in order")
        return words if rows else None


def chunks_of(batches: Iterable[Any], columns: Mapping[str, ColumnType]) -> Iterator[Chunk]:
    """Read record batches of these columns, in their order."""
    import pyarrow as pa

    from dpreg.sources.arrow_cells import batch_reader

    read = None
    for batch in batches:
        if read is None:
            fields = zip(batch.schema, columns, strict=True)
            read = batch_reader(pa.schema([f.with_name(name) for f, name in fields]), columns)
        for first in range(0, batch.num_rows, CHUNK_ROWS):
            with np.errstate(all="ignore"):  # no warning may tell of a cell
                chunk = read(batch.slice(first, CHUNK_ROWS))
            yield chunk


def sum_rows(batches: Iterator[Any]) -> Iterator[Any]:
    """Add vectors: one row, or none where none came."""
    vectors = (
        unpacked(words.as_py(), entries.as_py())
        for batch in batches
        for words, entries in zip(batch.column(1), batch.column(2), strict=True)
    )
    for first in vectors:
        yield row_of(add(chain([first], vectors)))


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


def row_of(words: Words) -> Any:
    import pyarrow as pa

    return pa.record_batch(
        {
            "slot": pa.array([slot()], pa.int32()),
            "words": pa.array([len(words)], pa.int32()),
            "entries": pa.array([words.astype("<u4").tobytes()], pa.binary()),
        }
    )


def unpacked(words: int, entries: bytes) -> Words:
    """Return the vector of a row."""
    flat = np.frombuffer(entries, dtype="<u4").astype(np.uint32, copy=False)
    return flat.reshape(words, -1)
