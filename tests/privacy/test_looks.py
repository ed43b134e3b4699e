"""The lemma of adaptive looks: its ratio, its scales, and the exact delta of small cases."""

import math
from fractions import Fraction

import numpy as np
import pytest
from oracles.look_laws import two_look_delta
from scipy.stats import norm

from dpreg.errors import ArgumentError
from dpreg.privacy import gaussian as looks
from dpreg.privacy.gaussian import (
    LARGEST_RATIO,
    LEAST_SCALE,
    analytic_ratio,
    discrete_sigma,
    looks_ratio,
)
from dpreg.privacy.look_noise import look_scale, weighted_scale

EPS, DELTA, FLOOR = Fraction(1), Fraction("1e-3"), 24.0


def holds(ratio, eps, delta, cells, floor):
    """The lemma's inequality in floats."""
    reach = math.sqrt(2 * math.log(2 * cells / delta) + 100) + ratio
    eta = (reach**2 + 1) / (8 * floor**2)
    eps0, delta0 = eps - 2 * cells * eta, math.exp(-cells * eta) * delta
    above = norm.cdf(ratio / 2 - eps0 / ratio)
    return eps0 > 0 and above - math.exp(eps0) * norm.cdf(-ratio / 2 - eps0 / ratio) <= delta0


@pytest.mark.parametrize(("cells", "floor"), [(1, 20.0), (2, 24.0), (30, 200.0)])
def test_the_ratio_is_the_largest_that_the_lemma_allows(cells, floor):
    ratio = looks_ratio(EPS, DELTA, cells, floor)
    assert holds(ratio * (1 - 1e-9), 1.0, 1e-3, cells, floor)
    assert not holds(ratio * (1 + 1e-9), 1.0, 1e-3, cells, floor)
    assert ratio < analytic_ratio(EPS, DELTA)


@pytest.mark.parametrize(("eps", "delta"), [("1", "1e-6"), ("0.01", "1e-9"), ("8", "1e-5")])
def test_on_the_grid_of_moments_the_lemma_costs_nothing(eps, delta):
    eps, delta = Fraction(eps), Fraction(delta)
    ratio = looks_ratio(eps, delta, 1500)
    assert ratio == pytest.approx(analytic_ratio(eps, delta), rel=1e-9)
    assert ratio < analytic_ratio(eps, delta)


def test_one_look_is_the_mechanism_of_one_release():
    sensitivity = 17 * 2**40
    ratio = looks_ratio(EPS, DELTA, 153)
    ours = look_scale(sensitivity**2, Fraction(ratio) ** 2)
    assert ours == pytest.approx(discrete_sigma(sensitivity**2, 153, EPS, DELTA), rel=1e-12)


def second_look(branch, rest):
    """A second look whose query's shift and share of mu^2 follow from the first look's value."""

    def plan(values):
        shift = np.where(branch(values), 30, 9)
        part = np.where(branch(values), rest, rest * 0.4)
        return shift, shift / np.sqrt(part)

    return plan


BRANCHES = {
    "larger": lambda v: v > 0,
    "far": lambda v: np.abs(v) > 60,
    "parity": lambda v: v % 2 == 0,
    "always": lambda v: v == v,
}


def worst_delta(mu_squared, share, eps=1.0):
    """The largest exact delta of two looks that keep the lemma's conditions, over the branches."""
    first = 25 / math.sqrt(share * mu_squared)
    rest = (1 - share) * mu_squared
    return max(
        two_look_delta(eps, (sign * 25, first), second_look(branch, rest))
        for branch in BRANCHES.values()
        for sign in (1, -1)
    )


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_two_adaptive_looks_keep_their_delta(share):
    ratio = looks_ratio(EPS, DELTA, 2, FLOOR)
    assert 9 / (ratio * math.sqrt(1 - share)) >= FLOOR  # the smallest scale that is used
    found = worst_delta(ratio**2, share)
    assert found <= DELTA
    assert found > 0.05 * DELTA  # the coarse grid's allowance is all that is given away


def test_adaptive_looks_at_the_whole_ratio_attain_the_curve():
    """Without the grid's allowance the exact delta is Balle and Wang's: the lemma is not slack."""
    found = worst_delta(analytic_ratio(EPS, DELTA) ** 2, 0.5)
    assert found == pytest.approx(float(DELTA), rel=0.02)


@pytest.mark.parametrize("factor", [2.0, 4.0])
def test_a_mutant_that_gives_each_look_the_whole_or_half_the_noise_is_caught(factor):
    ratio = looks_ratio(EPS, DELTA, 2, FLOOR)
    assert worst_delta(factor * ratio**2, 0.5) > 2 * DELTA


def test_scales_are_rounded_upwards():
    generator = np.random.default_rng(5)
    for _ in range(300):
        squared = int(generator.integers(1, 2**60)) * 2 ** int(generator.integers(0, 150))
        mu_squared = Fraction(float(generator.uniform(1e-6, 1))) ** 2
        scale = look_scale(squared, mu_squared)
        assert Fraction(scale) ** 2 * mu_squared >= squared
        if scale > LEAST_SCALE:
            below = Fraction(math.nextafter(scale, 0.0)) ** 2 * mu_squared
            assert below <= squared * (1 + Fraction(1, 2**51))
        weight = Fraction(int(generator.integers(1, 2**20)), 2**20)
        assert Fraction(weighted_scale(scale, weight)) ** 2 * weight >= Fraction(scale) ** 2


def test_no_scale_is_below_the_floor():
    assert look_scale(1, Fraction(1)) == LEAST_SCALE
    assert weighted_scale(2.0**29, 4) == LEAST_SCALE


def test_a_huge_eps_uses_no_more_than_the_largest_ratio():
    """At this ratio OpenDP's integers saturate further out than K scales."""
    assert looks_ratio(Fraction(10**9), Fraction("1e-6"), 500) == LARGEST_RATIO
    assert looks_ratio(Fraction(10) ** 300, Fraction("1e-400"), 500) == LARGEST_RATIO
    reach = math.sqrt(2 * (math.log(2 * 10**6) + 400 * math.log(10)) + 100) + LARGEST_RATIO
    assert reach < 2**11


@pytest.mark.parametrize("eps", ["1e-300", "1e-12"])
def test_tiny_budgets_are_served(eps):
    """Where the grid is felt at all, by the largest scale that a float can hold and the proof."""
    ratio = looks_ratio(Fraction(eps), Fraction("1e-9"), 100, 2.0**200 if eps == "1e-12" else 1e300)
    assert 0 < ratio <= analytic_ratio(Fraction(eps), Fraction("1e-9"))


def test_what_cannot_be_proved_is_refused():
    with pytest.raises(ArgumentError, match="too small to prove 100 discrete cells"):
        looks_ratio(Fraction("0.1"), Fraction("1e-6"), 100, 1.0)
    with pytest.raises(ArgumentError, match="scales of at least 1"):
        looks_ratio(EPS, DELTA, 3, 0.5)
    with pytest.raises(ArgumentError, match="one cell"):
        looks_ratio(EPS, DELTA, 0)
    with pytest.raises(ArgumentError, match="part of mu"):
        look_scale(1, Fraction(0))
    with pytest.raises(ArgumentError, match="weight must be positive"):
        weighted_scale(1.0, 0)
    with pytest.raises(ArgumentError, match="leave float64"):
        look_scale(1, Fraction(1, 10**700))


def test_a_ratio_without_the_correction_is_caught(monkeypatch):
    """The mutant: the discrete noise taken for a normal one."""
    honest = looks_ratio(EPS, DELTA, 2, FLOOR)
    monkeypatch.setattr(looks, "discrete_holds", lambda *_: True)
    looks.looks_ratio.cache_clear()
    try:
        mutant = looks_ratio(EPS, DELTA, 2, FLOOR)
    finally:
        looks.looks_ratio.cache_clear()
    assert not holds(mutant, 1.0, 1e-3, 2, FLOOR)
    assert holds(honest * (1 - 1e-9), 1.0, 1e-3, 2, FLOOR)
