"""What Spark's tasks do to keep at most k rows a person: read, and keep within groups.

Rows are read before they are sent, and Spark's own group-by brings together the rows of each of
many groups of persons, made by a part of the keyed hash of the id. `dpreg.sources.persons.keep`
does the rest, as for any table: which rows of a person are kept follows from that person's rows
alone, so that a task that is run again keeps the same.
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

_GROUPS = 1 << 10


def limited_frame(frame: Any, columns: Mapping[str, ColumnType], persons: Persons) -> Any:
    """Return the kept rows of a Spark DataFrame of these columns, as `ClusterSource.limited` says.

    Tasks hold a group's rows at a time, a thousandth of the persons.
    """
    names = tuple(name for name in columns if name != persons.column)
    cells = [f"c{place}" for place in range(len(names))]
    sent = ", ".join(
        ["bucket bigint", "high bigint", "low bigint", *(f"{c} bigint" for c in cells)]
    )
    kept = ", ".join([*(f"{cell} double" for cell in cells), "coin double"])
    read = frame.mapInArrow(_Read(dict(columns), names, persons), sent)
    return read.groupBy("bucket").applyInArrow(_Keep(persons), kept)


@dataclass(frozen=True, slots=True)
class _Read:
    """Reads record batches; hands on the bits of floats as integers, which nobody rounds."""

    columns: dict[str, ColumnType]
    names: tuple[str, ...]
    persons: Persons

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        labels = ["bucket", "high", "low", *(f"c{place}" for place in range(len(self.names)))]
        read = chunks_of(batches, self.columns)
        while True:
            chunk = shielded(ENGINE, lambda: next(read, None))
            if chunk is None:
                return
            bits = matrix_of(chunk, self.names, self.persons.column).view(np.int64)
            bucket = bits[:, 0] & (_GROUPS - 1)
            cells = [bucket, *bits.T]
            yield pa.record_batch([pa.array(np.ascontiguousarray(c)) for c in cells], labels)


@dataclass(frozen=True, slots=True)
class _Keep:
    """Keeps rows of a group of persons."""

    persons: Persons

    def __call__(self, table: Any) -> Any:
        import pyarrow as pa

        names = table.schema.names[1:]
        columns = [table.column(name).to_numpy() for name in names]
        rows = np.column_stack(columns).astype(np.int64).view(np.float64)
        kept = keep(rows, self.persons.rows, self.persons.key)
        return pa.table(dict(unpacked(kept, names[2:], "coin")))
