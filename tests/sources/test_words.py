import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpreg.sources.words import add, pack, unpack

EDGES = [
    sign * (1 << bits) + step
    for bits in (0, 31, 32, 33, 62, 63, 64, 95, 96, 200)
    for sign in (1, -1)
    for step in (-1, 0, 1)
]
integers = st.one_of(st.sampled_from(EDGES), st.integers(-(2**130), 2**130), st.integers(-9, 9))


def vector(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@given(st.lists(integers, max_size=6))
def test_packing_keeps_every_integer(values):
    assert list(unpack(pack(vector(values)))) == values


@given(
    st.integers(0, 4).flatmap(
        lambda n: st.lists(st.lists(integers, min_size=n, max_size=n), min_size=1, max_size=9)
    )
)
def test_sums_are_exact(rows):
    total = unpack(add(pack(vector(row)) for row in rows))
    assert list(total) == [sum(entries) for entries in zip(*rows, strict=True)]
    assert all(type(entry) is int for entry in total)


@given(st.lists(st.lists(integers, min_size=2, max_size=2), min_size=2, max_size=9), st.data())
def test_a_tree_of_sums_is_the_sum(rows, data):
    cut = data.draw(st.integers(1, len(rows) - 1))
    halves = [add(pack(vector(row)) for row in part) for part in (rows[:cut], rows[cut:])]
    assert list(unpack(add(halves))) == list(unpack(add(pack(vector(row)) for row in rows)))


@pytest.mark.parametrize("values", [[2**63 - 1, -(2**63), 0, -1], []])
def test_int64_packs_like_its_integers(values):
    plain = np.array(values, dtype=np.int64)
    assert (pack(plain) == pack(vector(values))).all()
    assert list(unpack(add([pack(plain)] * 3))) == [3 * value for value in values]


def test_counts_take_eight_bytes_an_entry():
    assert pack(np.arange(1000)).nbytes == 8000
    assert add([pack(np.arange(1000))] * 50).nbytes == 8000
