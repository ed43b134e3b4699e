"""Vectors are added exactly, in int64 where that holds their sum."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpreg.sources.base import added

EDGES = [
    sign * (1 << bits) + step
    for bits in (0, 31, 32, 33, 62, 63, 64, 95, 96, 200)
    for sign in (1, -1)
    for step in (-1, 0, 1)
]
integers = st.one_of(st.sampled_from(EDGES), st.integers(-(2**130), 2**130), st.integers(-9, 9))


def vector(values):
    """As a tally makes it: in int64 where that holds every entry, and in some other cases not."""
    if values and all(-(2**63) <= value < 2**63 for value in values) and values[0] % 2:
        return np.array(values, dtype=np.int64)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@given(
    st.integers(0, 4).flatmap(
        lambda n: st.lists(st.lists(integers, min_size=n, max_size=n), min_size=1, max_size=9)
    )
)
def test_sums_are_exact(rows):
    total = added(vector(row) for row in rows)
    assert total.tolist() == [sum(entries) for entries in zip(*rows, strict=True)]


@given(st.lists(st.lists(integers, min_size=2, max_size=2), min_size=2, max_size=9), st.data())
def test_a_tree_of_sums_is_the_sum(rows, data):
    cut = data.draw(st.integers(1, len(rows) - 1))
    halves = [added(vector(row) for row in part) for part in (rows[:cut], rows[cut:])]
    assert added(halves).tolist() == added(vector(row) for row in rows).tolist()


def test_counts_take_eight_bytes_an_entry():
    assert added([np.arange(1000)] * 50).nbytes == 8000
    assert added([np.array([2**62])] * 2).tolist() == [2**63]
