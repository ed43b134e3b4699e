"""What sources on every cluster share; `test_dask.py` and `test_spark.py` run the engines."""

import pickle

import numpy as np
import pytest

from dpreg.columns import Unbounded
from dpreg.errors import DataError
from dpreg.sources.base import added
from dpreg.sources.cluster import ClusterSource


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

    def count(self):
        return sum(map(len, self.partitions))

    def _total(self, columns, tally, positions):
        vectors = []
        for cells in self.partitions:
            vectors.append(pickle.loads(pickle.dumps(tally))([(0, {"x": cells})]))
        return added(vectors) if vectors else None


def test_partitions_are_added_exactly():
    told = []
    large = Made([np.array([2.0**62]), np.array([2.0**62]), np.array([1.0, 2.0])])
    got = large.total({"x": Unbounded()}, count, advance=told.append)
    assert got.tolist() == [4, 2**63 + 3]
    assert told == [3]
    assert large.count() == 4
    assert large.rows is None


def test_no_partition_is_the_tally_of_no_rows():
    assert Made([]).total({"x": Unbounded()}, count).tolist() == [0, 0]


def test_an_engine_that_fails_says_nothing_of_the_rows():
    class Lost(Made):
        def _total(self, columns, tally, positions):
            raise RuntimeError("row 3 is Mallory")

    with pytest.raises(DataError, match="Made") as caught:
        Lost([]).total({"x": Unbounded()}, count)
    assert "Mallory" not in str(caught.value)
    assert caught.value.__cause__ is None
