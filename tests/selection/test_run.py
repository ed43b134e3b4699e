"""The stages between a checked call and a drawn model: groups of rows, tuning, penalties."""

from fractions import Fraction

import numpy as np
import pytest

from dpreg import moments
from dpreg.moments import accumulate, accumulate_groups


def _blocks(rng: np.random.Generator, sizes: list[int]) -> list[np.ndarray]:
    return [rng.uniform(-1.2, 1.2, size=(size, 4)) for size in sizes]


def test_groups_are_exact_and_add_up() -> None:
    rng = np.random.default_rng(0)
    blocks = _blocks(rng, [5, 9000, 1, 20_000])
    labels = [rng.integers(7, size=len(block)) for block in blocks]
    groups = accumulate_groups(zip(blocks, labels, strict=True), 4, 7)
    rows, marks = np.concatenate(blocks), np.concatenate(labels)
    for group, found in enumerate(groups):
        assert found == accumulate([rows[marks == group]], 4)
    assert sum(groups, moments.Moments.zero(4)) == accumulate(blocks, 4)


def test_an_empty_group_has_zero_moments() -> None:
    block = np.ones((3, 4))
    groups = accumulate_groups([(block, np.array([2, 2, 2]))], 4, 4)
    assert [group.rows for group in groups] == [0, 0, 3, 0]
    assert groups[0] == moments.Moments.zero(4)


def test_groups_flush_before_int64_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments, "_FLUSH_BLOCKS", 2)
    block = np.ones((8192, 4))
    labels = np.arange(8192) % 2
    groups = accumulate_groups(((block, labels) for _ in range(9)), 4, 2)
    assert groups[0].cells[0][0] == 9 * 4096 * 2**moments.MOMENT_BITS
    assert Fraction(groups[1].cells[3][1], 2**moments.MOMENT_BITS) == 9 * 4096
