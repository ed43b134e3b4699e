"""The exact rational solver: right, always ending, whatever it starts from."""

from fractions import Fraction

import numpy as np
import pytest
from oracles.l1_ball import RADII, enumerate_faces, parts, random_moments

from dpreg.selection.scoring.problem import ball_minimum


@pytest.mark.parametrize("seed", range(60))
def test_equals_the_minimum_over_all_faces(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 4))
    gram, cross = parts(random_moments(rng, p), range(p + 1))
    for rho in RADII[:: 1 + seed % 3]:
        got = ball_minimum(gram, cross, rho)
        assert got.value == enumerate_faces(gram, cross, rho)
        square = sum(
            gram[i][j] * got.beta[i] * got.beta[j] for i in range(p + 1) for j in range(p + 1)
        )
        linear = sum(b * x for b, x in zip(cross, got.beta, strict=True))
        assert square - 2 * linear == got.value
        assert sum(abs(x) for x in got.beta) <= rho


@pytest.mark.parametrize("seed", range(20))
def test_a_start_never_changes_the_value(seed):
    rng = np.random.default_rng(seed)
    gram, cross = parts(random_moments(rng, 6), range(7))
    for rho in RADII:
        value = ball_minimum(gram, cross, rho).value
        for _ in range(4):
            columns = rng.permutation(7)[: rng.integers(1, 8)]
            start = [(int(j), int(rng.choice([-1, 1]))) for j in columns]
            assert ball_minimum(gram, cross, rho, start).value == value
            both = [*start, (start[0][0], -start[0][1])]
            assert ball_minimum(gram, cross, rho, both).value == value


def test_no_columns_and_no_rows():
    assert ball_minimum([], [], Fraction(1)).value == 0
    assert ball_minimum([[0, 0], [0, 0]], [0, 0], Fraction(1)).value == 0


def test_many_columns_all_alike():
    gram = [[4] * 40 for _ in range(40)]
    assert ball_minimum(gram, [3] * 40, Fraction(1)).value == Fraction(-9, 4)
    assert ball_minimum(gram, [-3] * 40, Fraction(1, 2)).value == 1 - 3


def test_fifty_correlated_columns():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(200, 1))
    z = np.clip(
        np.hstack([np.ones((200, 1)), 0.3 * common + 0.1 * rng.normal(size=(200, 51))]), -1, 1
    )
    whole = np.rint(z * 2**20).astype(np.int64).astype(object)
    moments = (whole.T @ whole).tolist()
    gram, cross = [row[:-1] for row in moments[:-1]], [row[-1] for row in moments[:-1]]
    full = ball_minimum(gram, cross, Fraction(1)).value
    some = ball_minimum([row[:30] for row in gram[:30]], cross[:30], Fraction(1)).value
    assert full < some < 0
