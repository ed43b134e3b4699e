"""Sums over a person's rows: exact or saturated, for any number of rows in any order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpreg.errors import ArgumentError
from dpreg.sources.persons import MOST, first_rows, person_sums

INT64 = st.integers(-(2**63), 2**63 - 1)
FAR = st.sampled_from([-(2**63), -(2**63) + 1, 2**63 - 1, 2**62, -(2**62), 2**42, 2**21 - 1, -1, 0])
ROWS = st.lists(st.tuples(st.integers(0, 5), FAR | INT64 | st.integers(-9, 9)), max_size=40)


def slowly(rows, persons):
    """Add in Python's integers; move the sums into [-MOST, MOST]."""
    sums = [0] * persons
    for code, cell in rows:
        sums[code] += cell
    return [max(-MOST, min(MOST, total)) for total in sums]


def of(rows, persons):
    codes = np.array([code for code, _ in rows], dtype=np.int64)
    cells = np.array([cell for _, cell in rows], dtype=np.int64)
    return person_sums(codes, cells, persons).tolist()


@settings(deadline=None)
@given(ROWS, st.randoms())
def test_equal_python_s_sums_saturated_in_any_order(rows, random):
    expected = slowly(rows, 6)
    assert of(rows, 6) == of(sorted(rows), 6) == expected
    random.shuffle(rows)
    assert of(rows, 6) == expected


@pytest.mark.parametrize("cell", [2**63 - 1, -(2**63), 2**62, -(2**62) - 1])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 2**16])
def test_saturate_and_never_wrap(cell, rows):
    expected = max(-MOST, min(MOST, cell * rows))
    assert of([(0, cell)] * rows, 1) == [expected]
    # What leaves the range on the way and comes back is exact.
    way = [(0, cell)] * rows + [(0, -cell if cell > -(2**63) else MOST)] * rows + [(0, 5)]
    assert of(way, 1) == slowly(way, 1)


@settings(deadline=None)
@given(ROWS, ROWS)
def test_another_person_s_rows_have_no_say(mine, others):
    mine = [(0, cell) for _, cell in mine]
    others = [(code + 1, cell) for code, cell in others]
    assert of(mine + others, 7)[0] == of(mine, 7)[0]


@settings(deadline=None)
@given(ROWS, st.integers(0, 2**40))
def test_no_longer_than_the_sum_of_the_norms(rows, more):
    rows = [(code, max(cell, -MOST)) for code, cell in rows]
    norms = [(code, min(abs(cell) + more, MOST)) for code, cell in rows]
    pairs = zip(of(rows, 6), of(norms, 6), strict=True)
    assert all(abs(total) <= norm for total, norm in pairs)


def test_columns_are_summed_each_for_itself():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 30, 500)
    cells = rng.integers(-(2**62), 2**62, (500, 4))
    cells[:, 1] >>= 40
    together = person_sums(codes, cells, 40)
    assert together.shape == (40, 4)
    for place in range(4):
        assert (together[:, place] == person_sums(codes, cells[:, place], 40)).all()


def test_no_rows_and_persons_without_a_row():
    none = np.empty(0, dtype=np.int64)
    assert person_sums(none, none).tolist() == []
    assert person_sums(none, none, 2).tolist() == [0, 0]
    assert person_sums(none, np.empty((0, 3), dtype=np.int64), 2).shape == (2, 3)
    assert person_sums(np.array([3]), np.array([7])).tolist() == [0, 0, 0, 7]
    assert first_rows(none).tolist() == []
    assert first_rows(np.array([0, 0, 1, 2, 2])).tolist() == [0, 2, 3]


def test_cells_that_int64_may_not_hold_are_refused():
    with pytest.raises(ArgumentError, match="int64"):
        person_sums(np.array([0]), np.array([1], dtype=np.uint64))
    with pytest.raises(ArgumentError, match="int64"):
        person_sums(np.array([0]), np.array([1.0]))
    with pytest.raises(ArgumentError, match="each code"):
        person_sums(np.array([0]), np.array([1, 2]))
