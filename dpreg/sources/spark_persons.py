"""What Spark's tasks do to keep rows of persons: read, send each person's rows together.

Rows are read before they are sent, as numbers, and Spark's repartition by the keyed hash of the id
brings the rows of a person to one task: Spark may join partitions made so, but splits none.
`dpreg.sources.persons.keep` does the rest, as for any table: which rows of a person are kept
follows from that person's rows alone, so that a task that is run again keeps the same.

Tested in `tests/sources/test_persons.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpreg.columns import ColumnType
from dpreg.sources.cluster import shielded
from dpreg.sources.persons import Persons, keep, matrix_of, unpacked
from dpreg.sources.spark_tasks import ENGINE, chunks_of

__all__ = ["limited_frame"]


def limited_frame(frame: Any, columns: Mapping[str, ColumnType], persons: Persons) -> Any:
    """Return the kept rows of a Spark DataFrame of these columns, as `ClusterSource.limited` says.

    A task holds the rows that it is sent, of the columns that the call uses; how many tasks there
    are is the session's to say (``spark.sql.shuffle.partitions``).
    """
    names = tuple(name for name in columns if name != persons.column)
    cells = [f"c{place}" for place in range(len(names))]
    sent = ", ".join(["high bigint", "low bigint", *(f"{cell} bigint" for cell in cells)])
    kept = ", ".join([*(f"{cell} double" for cell in cells), "coin double", "person double"])
    read = frame.mapInArrow(_Read(dict(columns), names, persons), sent)
    return read.repartition("high").mapInArrow(_Keep(len(names), persons), kept)


@dataclass(frozen=True, slots=True)
class _Read:
    """Reads record batches; hands on the bits of floats as integers, which nobody rounds."""

    columns: dict[str, ColumnType]
    names: tuple[str, ...]
    persons: Persons

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        labels = ["high", "low", *(f"c{place}" for place in range(len(self.names)))]
        read = chunks_of(batches, self.columns)
        while True:
            chunk = shielded(ENGINE, lambda: next(read, None))
            if chunk is None:
                return
            bits = matrix_of(chunk, self.names, self.persons.column).view(np.int64)
            columns = [pa.array(np.ascontiguousarray(column)) for column in bits.T]
            yield pa.record_batch(columns, labels)


@dataclass(frozen=True, slots=True)
class _Keep:
    """Keeps rows of the persons of one partition."""

    columns: int
    persons: Persons

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        parts = [np.column_stack([c.to_numpy() for c in batch.columns]) for batch in batches]
        bits = np.concatenate([*parts, np.empty((0, 2 + self.columns), dtype=np.int64)])
        kept = keep(bits.view(np.float64), self.persons.rows, self.persons.key)
        cells = {f"c{place}": place for place in range(self.columns)}
        found = unpacked(np.ascontiguousarray(kept.T), cells, "coin", "person")
        yield pa.record_batch(found | {"person": found["person"].astype(np.float64)})
