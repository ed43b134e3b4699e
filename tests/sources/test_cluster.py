"""What sources on every cluster share; `test_dask.py` and `test_spark.py` run the engines."""

import pickle

import numpy as np
import pytest

from dpreg.columns import Unbounded
from dpreg.errors import DataError
from dpreg.sources.base import added
from dpreg.sources.cluster import ClusterSource, Finished


def test_a_partition_is_told_of_once_however_often_it_is_reported():
    told = []
    finished = Finished(told.append)
    finished.report([0, 1])
    finished.report([1])
    finished.report([1, 2])
    assert told == [2, 1]
    finished.close(5)
    finished.report([3])
    assert told == [2, 1, 2]


def test_without_a_bar_nothing_is_told():
    finished = Finished(None)
    finished.report([0])
    finished.close(2)


def test_after_a_failure_the_rest_is_not_called_finished():
    told = []
    finished = Finished(told.append)
    finished.report([0])
    finished.close()
    finished.close(4)
    assert told == [1]


def count(chunks):
    """A tally: the number of rows, and the sum of x."""
    vector = np.zeros(2, dtype=object)
    for _, chunk in chunks:
        vector += [len(chunk["x"]), int(chunk["x"].sum())]
    return vector


class Made(ClusterSource):
    """A cluster of one process: its partitions are arrays, and its workers pickle what they run."""

    engine = "Made"
    names = ("x",)
    parts = 3

    def __init__(self, partitions):
        self.partitions = partitions

    def kind(self, name):
        return "numeric"

    def _together(self, sending):
        raise NotImplementedError

    def _count(self):
        return sum(map(len, self.partitions))

    def _total(self, work, positions, finished):
        vectors = []
        for place, cells in enumerate(self.partitions):
            vectors.append(pickle.loads(pickle.dumps(work.tally))([(0, {"x": cells})]))
            finished.report([place])
        return added(vectors) if vectors else None


def test_partitions_are_added_exactly():
    told = []
    large = Made([np.array([2.0**62]), np.array([2.0**62]), np.array([1.0, 2.0])])
    got = large.total({"x": Unbounded()}, count, advance=told.append)
    assert got.tolist() == [4, 2**63 + 3]
    assert sum(told) == 3
    assert large.count() == 4
    assert large.rows is None


def test_no_partition_is_the_tally_of_no_rows():
    assert Made([]).total({"x": Unbounded()}, count).tolist() == [0, 0]


def test_an_engine_that_fails_says_nothing_of_the_rows():
    class Lost(Made):
        def _total(self, work, positions, finished):
            raise RuntimeError("row 3 is Mallory")

    with pytest.raises(DataError, match="Made") as caught:
        Lost([]).total({"x": Unbounded()}, count)
    assert "Mallory" not in str(caught.value)
    assert caught.value.__cause__ is None
