"""The intervals hold the exact minimum, for candidates of any quality."""

from fractions import Fraction

import numpy as np
import pytest
from oracles.l1_ball import RADII, parts, random_moments
from oracles.l1_ball import times as repeated

from dpreg.selection.scoring.candidates import solve, tidy
from dpreg.selection.scoring.problem import FloatForm, ball_minimum


def arrays(moments):
    width = moments.size - 1
    return parts(moments, range(width))


def candidates(rng, gram, cross, rho, width, count):
    """Good, nearly good, infeasible, sparse and absurd candidates."""
    best = solve(gram, cross, rho, np.ones((1, width), dtype=bool)).beta
    noise = rng.normal(size=(count, width)) * 10.0 ** rng.uniform(-18, 1, (count, 1))
    beta = best + rho * noise
    beta[::3] = (rho * noise)[::3]
    beta[1::5] *= 1.0 + 10.0 ** rng.uniform(-17, -1, (len(beta[1::5]), 1))
    return tidy(np.vstack([best, beta, np.zeros((1, width))]), rho)


def check_floats_hold_the_minimum(seeds, times=1):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        moments = repeated(random_moments(rng, 1 + seed % 6), times)
        rho = RADII[seed % len(RADII)] * Fraction(1, 1 + seed % 3)
        gram, cross = arrays(moments)
        width = len(cross)
        value = ball_minimum(gram, cross, rho).value
        form = FloatForm(
            np.array(gram, dtype=float), np.array(cross, dtype=float), moments.cells[-1][-1], rho
        )
        beta = candidates(rng, form.gram, form.cross, float(rho), width, 20)
        lower, upper = form.interval(beta, np.ones(beta.shape, dtype=bool))
        for low, high in zip(lower.tolist(), upper.tolist(), strict=True):
            assert Fraction(low) <= value <= Fraction(high)


@pytest.mark.parametrize("times", [1, 999_983, 10**9 + 7])
def test_floats_hold_the_minimum(times):
    check_floats_hold_the_minimum(range(150), times)


def test_mutant_no_allowance_for_rounding_is_caught(monkeypatch):
    born = FloatForm.__init__

    def careless(self, gram, cross, square, rho):
        born(self, gram, cross, square, rho)
        self.slack = 0.0

    monkeypatch.setattr(FloatForm, "__init__", careless)
    with pytest.raises(AssertionError):
        check_floats_hold_the_minimum(range(150), 999_983)


def test_floats_are_tight_at_nearly_every_solution():
    """A ball that is met at a degenerate corner, or fewer rows than columns, may spoil a few."""
    rng = np.random.default_rng(0)
    tight = []
    for _ in range(100):
        moments = random_moments(rng, 5)
        gram, cross = (np.array(a, dtype=float) for a in arrays(moments))
        for rho in RADII:
            form = FloatForm(gram, cross, moments.cells[-1][-1], rho)
            columns = np.ones((1, 6), dtype=bool)
            lower, upper = form.interval(solve(gram, cross, float(rho), columns).beta, columns)
            scale = gram.max() * float(rho) ** 2 + np.abs(cross).max() * float(rho)
            tight.append(upper[0] - lower[0] <= 1e-13 * scale)
    assert np.mean(tight) > 0.95


def test_a_zero_problem_has_a_point_for_an_interval():
    form = FloatForm(np.ones((2, 2)), np.zeros(2), 4, Fraction(1))
    lower, upper = form.interval(np.zeros((1, 2)), np.ones((1, 2), dtype=bool))
    assert lower[0] == upper[0] == 0.0
