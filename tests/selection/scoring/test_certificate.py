"""The intervals hold the exact minimum, for candidates of any quality."""

from fractions import Fraction

import numpy as np
import pytest
from oracles.l1_ball import RADII, random_moments

from dpreg.arrays import MOMENT_BITS
from dpreg.moments import Moments
from dpreg.selection.scoring.candidates import Candidates, solve, tidy
from dpreg.selection.scoring.problem import FloatForm, IntegerForm, ball_minimum, score_grid


def arrays(moments):
    width = moments.size - 1
    return moments.gram(range(width)), moments.cross(range(width))


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
        moments = random_moments(rng, 1 + seed % 6) * times
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


def decided(moments, rho, guess, rounds):
    """Let the integer form alone work on a guess; return (decided, score, exact score)."""
    gram, cross = arrays(moments)
    width = len(cross)
    unit = score_grid(rho) * 2**MOMENT_BITS
    form = IntegerForm([list(row) for row in gram], list(cross), moments.cells[-1][-1], rho, unit)
    refined = form.decide(guess, np.ones((1, width), dtype=bool), rounds)
    exact = ball_minimum(gram, cross, rho).value / unit
    return bool(refined.decided[0]), int(refined.scores[0]), exact.numerator // exact.denominator


@pytest.mark.parametrize("seed", range(60))
def test_integers_are_right_wherever_they_decide(seed):
    rng = np.random.default_rng(seed)
    moments = random_moments(rng, 1 + seed % 6) * int(rng.choice([1, 10**4, 10**7]))
    rho = RADII[seed % len(RADII)]
    gram, cross = (np.array(a, dtype=float) for a in arrays(moments))
    width = len(cross)
    good = solve(gram, cross, float(rho), np.ones((1, width), dtype=bool))
    absurd = Candidates(
        rng.normal(size=(1, width)) * 10.0 ** rng.integers(-3, 4),
        rng.random((1, width)) < 0.5,
        rng.choice([-1.0, 0.0, 1.0], (1, width)),
        rng.random(1) < 0.5,
    )
    for guess in (good, absurd):
        for rounds in (0, 1, 3):
            sure, score, exact = decided(moments, rho, guess, rounds)
            assert not sure or score == exact


def test_integers_decide_regular_problems_of_any_size():
    rng = np.random.default_rng(3)
    z = rng.integers(-(2**20), 2**20, (500, 7)).astype(object)
    z[:, 0] = 2**20
    moments = Moments(500, tuple(tuple(row) for row in (z.T @ z).tolist()))
    for times in (1, 10**4, 10**8):
        for rho in RADII:
            gram, cross = (np.array(a, dtype=float) for a in arrays(moments * times))
            good = solve(gram, cross, float(rho), np.ones((1, 6), dtype=bool))
            sure, score, exact = decided(moments * times, rho, good, 3)
            assert sure
            assert score == exact


@pytest.mark.parametrize("square", [0, 1, 2**53 + 1, 2**53 + 3, 2**70 - 1])
def test_the_least_value_is_rounded_downwards(square):
    form = FloatForm(np.zeros((1, 1)), np.zeros(1), square, Fraction(1))
    assert Fraction(form.least) <= -square
    assert Fraction(form.least) >= -square * (1 + Fraction(1, 2**52))
