"""What Dask's workers do to keep rows of persons: read, send each person's rows together.

Rows are read before they are sent, as numbers, and Dask's shuffle brings the rows of a person
into one partition by a part of the keyed hash of the id. `dpreg.sources.persons.keep` does the
rest, as for any table: which rows of a person are kept follows from that person's rows alone, and
not from what else is in the partition, so that a partition that is computed anew is the same.

Tested in `tests/sources/test_persons.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from dpreg.cells import Kind
from dpreg.columns import ColumnType
from dpreg.sources.cluster import shielded
from dpreg.sources.persons import Persons, keep, matrix_of, unpacked
from dpreg.sources.table import TableSource

__all__ = ["OpenTable", "limited_frame"]

_ENGINE = "Dask"

_BUCKETS = 1 << 20


class OpenTable(TableSource):
    """Rows that have been found readable by what the whole table declares, whatever dtypes say."""

    __slots__ = ()

    def kind(self, name: str) -> Kind:
        """Return "numeric", whatever a partition calls the column."""
        return "numeric"


def limited_frame(data: Any, columns: Mapping[str, ColumnType], persons: Persons) -> Any:
    """Return the kept rows of a Dask DataFrame, as `ClusterSource.limited` says."""
    names = [name for name in columns if name != persons.column]
    cells = [f"c{place}" for place in range(len(names))]
    labels = ["high", "low", *cells, "bucket"]
    sent = pd.DataFrame(np.empty((0, len(labels)), dtype=np.int64), columns=labels)
    kept = pd.DataFrame(np.empty((0, len(names) + 2)), columns=[*cells, "coin", "person"])
    read = data.map_partitions(_read, columns, names, persons, meta=sent, enforce_metadata=False)
    together = read.shuffle("bucket", shuffle_method="tasks")
    return together.map_partitions(_keep, len(names), persons, meta=kept, enforce_metadata=False)


def _read(
    partition: pd.DataFrame,
    columns: Mapping[str, ColumnType],
    names: list[str],
    persons: Persons,
) -> pd.DataFrame:
    """Read a partition; hand on the bits of floats as integers, which nobody rounds."""

    def work() -> pd.DataFrame:
        source = OpenTable([(name, partition[name]) for name in columns], len(partition))
        chunks = source.chunks(columns)
        rows = [matrix_of(chunk, names, persons.column) for chunk in chunks]
        bits = np.concatenate([*rows, np.empty((0, 2 + len(names)))]).view(np.int64)
        labels = ["high", "low", *(f"c{place}" for place in range(len(names)))]
        return pd.DataFrame(bits, columns=labels).assign(bucket=bits[:, 0] & (_BUCKETS - 1))

    return shielded(_ENGINE, work)


def _keep(partition: pd.DataFrame, names: int, persons: Persons) -> pd.DataFrame:
    cells = {f"c{place}": place for place in range(names)}
    rows = partition[["high", "low", *cells]].to_numpy(np.int64)
    kept = keep(np.ascontiguousarray(rows).view(np.float64), persons.rows, persons.key)
    turned = np.ascontiguousarray(kept.T)
    return pd.DataFrame(unpacked(turned, cells, "coin", "person")).astype({"person": float})
