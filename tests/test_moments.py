"""Moments are the exact integer sums, whatever the order, chunking and threads."""

import hashlib
import os
import subprocess
import sys
from fractions import Fraction
from itertools import repeat

import numpy as np
import pytest
from oracles.l1_ball import times
from oracles.labelled import accumulate_groups

from dpreg import grouped as room
from dpreg import moments
from dpreg.arrays import MOMENT_BITS
from dpreg.errors import ArgumentError
from dpreg.grouped import CodedRows, Layout
from dpreg.moments import Moments, _MomentTally, accumulate
from dpreg.privacy.mechanisms.coins import Coins
from dpreg.sources.persons import COIN


def exact(z):
    """Sum z z' in Python integers, cell by cell."""
    cells = [
        [0 if np.isnan(v) else int(np.rint(min(max(v, -1.0), 1.0) * 2.0**20)) for v in row.tolist()]
        for row in z
    ]
    size = z.shape[1]
    return tuple(tuple(sum(r[i] * r[j] for r in cells) for j in range(size)) for i in range(size))


def sample(rows, size, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1.0, 1.0, (rows, size))
    z[:, 0] = 1.0
    return z


def test_equals_the_sum_in_integers_with_hostile_cells():
    z = sample(300, 5)
    z[3] = [1.0, np.nan, np.inf, -np.inf, 1e308]
    z[4] = [1.0, -0.0, 5e-324, 2.0**-21, -3 * 2.0**-21]
    z[5] = 0.0
    before = z.copy()
    got = accumulate([z], 5)
    assert got == Moments(300, exact(z))
    np.testing.assert_array_equal(z, before)


@pytest.mark.parametrize("chunk", [1, 7, 1000, 8192, 8193, 20_000, 50_000])
def test_same_for_every_chunk_size_and_row_order(chunk):
    z = sample(30_000, 6)
    reference = accumulate([z], 6)
    rows = z if chunk > 1 else z[:2000]
    shuffled = np.random.default_rng(1).permutation(rows)
    blocks = (shuffled[i : i + chunk] for i in range(0, len(shuffled), chunk))
    assert accumulate(blocks, 6) == (reference if chunk > 1 else accumulate([rows], 6))


def test_memory_layout_and_precision_of_blocks_do_not_matter():
    z = np.rint(sample(500, 4) * 64) / 64
    reference = accumulate([z], 4)
    assert accumulate([np.asfortranarray(z)], 4) == reference
    assert accumulate([z[::-1]], 4) == reference
    assert accumulate([z.astype(np.float32)], 4) == reference


THREADS = """
import hashlib, numpy as np
from dpreg.moments import accumulate
z = np.random.default_rng(5).uniform(-1, 1, (60_000, 15))
print(hashlib.sha256(repr(tuple(accumulate([z], 15).cells)).encode()).hexdigest())
"""


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_same_for_every_number_of_threads(threads):
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, str(threads))
    ran = subprocess.run(
        [sys.executable, "-c", THREADS], env=environment, capture_output=True, text=True, check=True
    )
    z = np.random.default_rng(5).uniform(-1, 1, (60_000, 15))
    here = hashlib.sha256(repr(tuple(accumulate([z], 15).cells)).encode()).hexdigest()
    assert ran.stdout.strip() == here


def extremes():
    """Return one full block of cells of +-1, with the largest moments there can be."""
    z = np.ones((8192, 3))
    z[:, 2] = -1.0
    return z


def beyond_int64():
    """Accumulate more rows than int64 could hold the moments of: over 2**23."""
    return accumulate(repeat(extremes(), 1025), 3)


def check_beyond_int64():
    top = 1025 * 8192 * 2**40
    assert top > 2**63
    expected = ((top, top, -top), (top, top, -top), (-top, -top, top))
    assert beyond_int64() == Moments(1025 * 8192, expected)


def test_right_beyond_int64():
    check_beyond_int64()


def test_mutant_int64_without_a_flush_is_caught(monkeypatch):
    monkeypatch.setattr(room, "_MOST_ROWS", 10**13)
    with pytest.raises(AssertionError):
        check_beyond_int64()


def check_large_blocks_are_exact():
    z = extremes().repeat(8, axis=0)
    z[-1] = 2.0**-20  # odd cells: lost if a partial sum passes 2**53
    assert accumulate([z], 3) == accumulate(np.split(z, 64), 3)


def test_blocks_larger_than_8192_rows_are_split():
    check_large_blocks_are_exact()


def test_mutant_large_blocks_are_caught(monkeypatch):
    monkeypatch.setattr(room, "BLOCK_ROWS", 2**17)
    monkeypatch.setattr(moments, "BLOCK_ROWS", 2**17)
    with pytest.raises(AssertionError):
        check_large_blocks_are_exact()


def test_hundred_million_rows_by_adding_equal_chunks():
    z = sample(8000, 4)
    once = accumulate([z], 4)
    chunk = accumulate(repeat(z, 125), 4)  # a million rows, summed
    assert chunk == times(once, 125)
    total = sum(repeat(chunk, 100), accumulate([], 4))
    assert total.rows == 10**8
    assert total == times(once, 12_500)
    assert total.cells == tuple(tuple(12_500 * c for c in row) for row in exact(z))


def test_moments_are_values():
    z = sample(20, 3)
    whole, empty = accumulate([z], 3), accumulate([], 3)
    assert empty == accumulate([np.empty((0, 3))], 3)
    assert whole + empty == whole
    assert accumulate([z[:7]], 3) + accumulate([z[7:]], 3) == whole
    np.testing.assert_allclose(whole.as_float(), z.T @ z, rtol=0, atol=1e-4)
    assert whole.as_float()[0, 0] == 20.0
    assert all(type(c) is int for row in whole.cells for c in row)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(AssertionError):
        accumulate([np.zeros((4, 2))], 3)
    with pytest.raises(ArgumentError, match="do not add"):
        accumulate([], 2) + accumulate([], 3)


# ---- groups of rows ----


def _blocks(rng, sizes):
    return [rng.uniform(-1.2, 1.2, size=(size, 4)) for size in sizes]


def test_groups_are_exact_and_add_up():
    rng = np.random.default_rng(0)
    blocks = _blocks(rng, [5, 9000, 1, 20_000])
    labels = [rng.integers(7, size=len(block)) for block in blocks]
    groups = accumulate_groups(zip(blocks, labels, strict=True), 4, 7)
    rows, marks = np.concatenate(blocks), np.concatenate(labels)
    for group, found in enumerate(groups):
        assert found == accumulate([rows[marks == group]], 4)
    assert sum(groups, accumulate([], 4)) == accumulate(blocks, 4)


def test_an_empty_group_has_zero_moments():
    block = np.ones((3, 4))
    groups = accumulate_groups([(block, np.array([2, 2, 2]))], 4, 4)
    assert [group.rows for group in groups] == [0, 0, 3, 0]
    assert groups[0] == accumulate([], 4)


def test_groups_flush_before_int64_is_full(monkeypatch):
    monkeypatch.setattr(room, "_MOST_ROWS", 2 * 8192)
    block = np.ones((8192, 4))
    labels = np.arange(8192) % 2
    groups = accumulate_groups(((block, labels) for _ in range(9)), 4, 2)
    assert groups[0].cells[0][0] == 9 * 4096 * 2**MOMENT_BITS
    assert Fraction(groups[1].cells[3][1], 2**MOMENT_BITS) == 9 * 4096


def test_sums_of_different_groups_are_of_all_rows():
    cells = accumulate([np.ones((1, 2))], 2).cells
    one, two = (Moments(1, cells, group) for group in ("half 1", "half 2"))
    assert (one + two).group == "all"
    assert (one + one).group == "half 1"


class Plain:
    """Rows (1, 0, 0)."""

    size = 3
    layout = Layout(3)

    def coded(self, chunk):
        return CodedRows(np.tile([1.0, 0.0, 0.0], (len(chunk["x"]), 1)), ())


@pytest.mark.parametrize("by_person", [False, True])
def test_a_column_decides_the_halves_only_where_it_holds_the_coins_of_persons(by_person):
    tally = _MomentTally(Plain(), Coins(2), by_person)
    found = tally([(0, {"x": np.zeros(1000), COIN: np.zeros(1000)})])
    first, second = (int(half[0]) for half in found.reshape(2, -1))
    assert first + second == 1000
    assert (second == 0) == by_person
