"""Dask DataFrames: each partition is tallied by a worker, and a tree of tasks adds the vectors.

Whatever scheduler is active runs it: threads, processes, a distributed cluster.

Why an answer is one attempt's, partition by partition. The graph of a pass is a tree. Its leaves
are the tasks that tally one partition each; every other task adds the vectors of at most `_FAN_IN`
tasks below it; **every vector has one consumer**, and keys hold a random name of the pass, so that
no other pass, past or under way, can offer its vectors for ours or ask for them. By induction from
the leaves, whatever a task returns, in whichever attempt, is the sum of one vector for each
partition below it, each from one attempt, whole: a leaf has read its partition once, and an
addition takes one value of each of its inputs. When a worker is lost, Dask computes anew what it
held and somebody still waits for. A vector computed anew replaces one that its consumer has not
used, or that a consumer used which is run anew itself, and whose earlier sum is lost or dropped
with it. So the root is the sum of exactly one attempt of each partition, and the argument in
`dpreg.sources.base` holds: every row is counted once, under one fair coin. Which attempt it is
depends on what failed and when, not on how coins fell.

Two things would break this, and are what the random names and the single tree are for. Dask takes
tasks of one key for one value. A tally that tosses coins is not a function of its input, so a key
made of the input, as ``map_partitions`` makes it, would let a later pass be served with an earlier
one's vector. And were a vector read by two tasks (one for each half of the rows, say), one of them
could be served before a worker is lost and the other after: a row could be in both halves.

Tested in `tests/sources/test_dask.py`.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
import pandas as pd
from dask.base import compute
from dask.delayed import delayed

from dpreg.cells import Kind, kind_of
from dpreg.columns import Columns
from dpreg.errors import ArgumentError
from dpreg.sources.base import (
    CHUNK_ROWS,
    Integers,
    Piece,
    Tally,
    added,
    find_column,
    placed,
    tallied,
)
from dpreg.sources.cluster import ClusterSource, Sending, check_versions, shielded, version_teller
from dpreg.sources.table import TableSource, frame_source

_ENGINE = "Dask"
_FAN_IN = 8
"""Vectors that a task adds: what a worker holds at a time, and the depth of the tree."""


def dask_source(data: Any) -> DaskSource:
    """Take a Dask DataFrame.

    Raises
    ------
    ArgumentError
        If it is another collection of Dask's.
    DataError
        If its column labels have several levels, or workers have another version of dpreg.
    """
    if not isinstance(getattr(data, "_meta", None), pd.DataFrame):
        raise ArgumentError(
            f"data is a {type(data).__name__} of Dask: give a Dask DataFrame, made by "
            "dask.dataframe.from_delayed or .to_dask_dataframe()"
        )
    if "distributed" in sys.modules:  # the cluster that would compute, if there is one, is asked
        from dask.base import get_scheduler
        from distributed import Client

        client = getattr(get_scheduler(), "__self__", None)  # type: ignore[no-untyped-call]
        if isinstance(client, Client) and not client.asynchronous:
            check_versions(_ENGINE, lambda: client.run(version_teller()).values())
    return DaskSource(data)


class DaskSource(ClusterSource):
    """A source whose rows are the partitions of a Dask DataFrame.

    Names and kinds are those that the frame declares (its ``_meta``), known before anything is
    computed. A partition of other dtypes is read cell by cell, like any other, since what a cell
    means is not its column's dtype to say. Dask turns a column of objects into text as it loads it
    (``dataframe.convert-string``), which fails on a cell that UTF-8 cannot hold. Where a frame has
    been loaded and nothing else was done to it but choosing columns, cells are read as they were
    before that; else they are those of Dask's partitions, where True among text is "True", and a
    step of the frame's own plan that fails on a cell ends the pass: ``data.persist()`` finds out
    before anything is charged. Dask's workers write such a failure to their logs, cells and all,
    and so to this process's logs where they are its threads. No message of dpreg's repeats it.

    The order of the rows, which seeded runs follow, is that of the partitions; they must come out
    the same each time that they are computed.
    """

    __slots__ = ("_data",)
    engine = _ENGINE

    def __init__(self, data: Any) -> None:
        self.names = frame_source(data._meta).names
        self.parts = int(data.npartitions)
        self._data = data

    def kind(self, name: str) -> Kind:
        """Return what the container calls a column. DataError where absent or repeated."""
        find_column(self.names, name)
        return kind_of(self._data._meta.dtypes[name])

    def _together(self, sending: Sending) -> DaskSource:
        frame = _as_loaded(self._data)[list(sending.columns)]
        sent = pd.DataFrame(np.empty((0, len(sending.labels))), columns=sending.labels)
        read = frame.map_partitions(_sent, sending, meta=sent, enforce_metadata=False)
        return DaskSource(read.shuffle(sending.labels[0], shuffle_method="tasks"))

    def count(self) -> int:
        """Count the rows where they are."""
        return shielded(_ENGINE, lambda: len(self._data))

    def _total(self, columns: Columns, tally: Tally, positions: bool) -> Integers:
        run = uuid.uuid4().hex
        partitions = _as_loaded(self._data)[list(columns)].to_delayed()
        starts = [0] * len(partitions)
        if positions:
            measure = delayed(len, name=f"dpreg-rows-{run}", pure=False)
            lengths = compute(*map(measure, partitions))  # type: ignore[no-untyped-call]
            starts = [0, *accumulate(lengths)]
        work = delayed(
            partial(_tallied, columns, tally), name=f"dpreg-work-{run}", pure=False, traverse=False
        )
        leaves = [
            work(partition, start, dask_key_name=f"dpreg-tally-{run}-{place}")
            for place, (partition, start) in enumerate(zip(partitions, starts, strict=False))
        ]
        return _tree(leaves, run).compute()  # type: ignore[no-any-return]


def _as_loaded(data: Any) -> Any:
    """Undo Dask's conversion of objects to text, where it is the last thing done but choosing."""
    return type(data)(_unconverted(data.expr))


def _unconverted(expr: Any) -> Any:
    match type(expr).__name__:
        case "Projection":
            return type(expr)(_unconverted(expr.frame), *expr.operands[1:])
        case "ArrowStringConversion":
            return _unconverted(expr.frame)
        case "FromPandas":
            return expr.substitute_parameters({"pyarrow_strings_enabled": False})
    return expr


def _tree(nodes: Sequence[Any], run: str) -> Any:
    """Add the vectors of tasks in groups, the sums again, until one task is left."""
    plus = delayed(_add, name=f"dpreg-plus-{run}", pure=False)
    level = 0
    while len(nodes) > 1:
        level += 1
        groups = [nodes[first : first + _FAN_IN] for first in range(0, len(nodes), _FAN_IN)]
        nodes = [
            plus(*group, dask_key_name=f"dpreg-add-{run}-{level}-{place}")
            for place, group in enumerate(groups)
        ]
    return nodes[0]


def _add(*vectors: Integers) -> Integers:
    return added(vectors)


def _tallied(columns: Columns, tally: Tally, partition: pd.DataFrame, start: int) -> Integers:
    """Tally a partition: the task of a leaf."""
    pieces = placed(_pieces(partition, columns), start=start)
    return shielded(_ENGINE, lambda: tallied(tally, pieces))


def _pieces(partition: pd.DataFrame, columns: Columns) -> Iterator[Piece]:
    """Cut a partition: it is readable by what the whole table declares, whatever dtypes say."""
    source = TableSource([(name, partition[name]) for name in columns], len(partition))
    return source._pieces(columns, CHUNK_ROWS)


def _sent(partition: pd.DataFrame, sending: Sending) -> pd.DataFrame:
    """Read a partition, and write its rows as they are sent."""

    def work() -> pd.DataFrame:
        none = dict.fromkeys(sending.labels, np.empty(0))
        parts = [none, *(sending(piece.chunk()) for piece in _pieces(partition, sending.columns))]
        return pd.DataFrame({n: np.concatenate([one[n] for one in parts]) for n in sending.labels})

    return shielded(_ENGINE, work)
