"""Analytic calibration: Balle and Wang's equation, OpenDP's own numbers, and the discrete proof."""

import math
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.stats import norm

from dpreg.errors import ArgumentError
from dpreg.privacy.gaussian import (
    analytic_delta,
    analytic_epsilon,
    analytic_ratio,
    discrete_holds,
    discrete_sigma,
)
from dpreg.privacy.mechanisms.additive import contrib

BUDGETS = [("1", "1e-6"), ("0.3", "1e-6"), ("0.01", "1e-9"), ("5", "1e-5"), ("20", "1e-10")]


def equation(ratio, eps):
    """Balle and Wang's left side, by SciPy's normal tails."""
    eps = float(eps)
    tail = math.exp(eps + norm.logcdf(-ratio / 2 - eps / ratio))
    return norm.cdf(ratio / 2 - eps / ratio) - tail


@pytest.mark.parametrize(("eps", "delta"), BUDGETS)
def test_the_equation_holds_with_equality(eps, delta):
    eps, delta = Fraction(eps), Fraction(delta)
    ratio = analytic_ratio(eps, delta)
    assert equation(ratio, eps) == pytest.approx(float(delta), rel=1e-8)  # SciPy's cancellation
    assert abs(analytic_delta(ratio, eps) / float(delta) - 1) < 1e-10
    assert analytic_delta(ratio, eps) <= delta
    assert analytic_delta(math.nextafter(ratio, math.inf), eps) > delta
    assert analytic_epsilon(ratio, delta) == pytest.approx(float(eps), rel=1e-10)


@pytest.mark.parametrize(("eps", "delta"), [*BUDGETS, ("1000000", "1e-6")])
def test_the_discrete_scale_is_the_continuous_one_to_1e_10(eps, delta):
    eps, delta = Fraction(eps), Fraction(delta)
    sensitivity = 17 * 2**40
    sigma = discrete_sigma(sensitivity**2, 153, eps, delta, largest_weight=5)
    assert sigma * analytic_ratio(eps, delta) / sensitivity == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize(("eps", "delta"), [("2", "1e-2"), ("1", "1e-6")])
def test_a_coarse_grid_pays_for_its_coarseness(eps, delta):
    """Where the grid is felt the proof asks for more noise, and the exact curve agrees."""
    eps, delta = Fraction(eps), Fraction(delta)
    sigma = discrete_sigma(20**2, 1, eps, delta)
    assert sigma >= 20 / analytic_ratio(eps, delta)
    k = np.arange(-4000, 4001)
    law = np.exp(-(k**2) / (2 * sigma**2))
    law /= law.sum()
    moved = np.roll(law, 20)
    assert np.maximum(law - math.exp(float(eps)) * moved, 0).sum() <= float(delta)


def test_half_the_noise_would_be_seen():
    """The check of the test above is able to fail: at sigma/2 the exact delta is over."""
    sigma = discrete_sigma(20**2, 1, Fraction(1), Fraction("1e-6")) / 2
    k = np.arange(-4000, 4001)
    law = np.exp(-(k**2) / (2 * sigma**2))
    law /= law.sum()
    assert np.maximum(law - math.e * np.roll(law, 20), 0).sum() > 1e-5


@pytest.mark.parametrize(("eps", "delta"), BUDGETS)
def test_sigma_is_at_most_opendps_and_rho_equal(eps, delta):
    sensitivity = 1000
    ours = sensitivity / analytic_ratio(Fraction(eps), Fraction(delta))
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    with contrib():
        noise = dp.m.make_gaussian(*space, scale=ours)
        profile = dp.c.make_zCDP_to_approxDP(noise).map(sensitivity)
    assert profile.epsilon(float(delta)) >= float(eps)  # OpenDP would ask for more noise
    assert noise.map(sensitivity) == pytest.approx(sensitivity**2 / (2 * ours**2), rel=1e-12)


def test_without_a_change_nothing_is_spent():
    assert analytic_delta(0.0, Fraction(1)) == 0.0
    assert analytic_epsilon(1e-9, Fraction("0.1")) == 0.0


@pytest.mark.parametrize(("eps", "delta"), [("0", "1e-6"), ("1", "0"), ("1", "1")])
def test_budgets_that_buy_no_gaussian_are_refused(eps, delta):
    with pytest.raises(ArgumentError):
        analytic_ratio(Fraction(eps), Fraction(delta))
    with pytest.raises(ArgumentError):
        analytic_epsilon(1.0, Fraction(0))


@pytest.mark.parametrize("eps", [27, 60, 160, 308, 400])
@pytest.mark.parametrize("delta", ["1e-6", "1e-60", "0.5"])
def test_a_huge_eps_costs_no_more_than_the_largest_that_balls_can_tell(eps, delta):
    eps, delta = Fraction(10) ** eps, Fraction(delta)
    ratio = analytic_ratio(eps, delta)
    assert ratio == pytest.approx(math.sqrt(2 * min(eps, 2**90)), rel=1e-3)
    assert analytic_delta(ratio, eps) <= delta
    assert analytic_delta(2 * ratio, eps) > delta
    assert 3 <= discrete_sigma(20**2, 5, eps, delta, largest_weight=3) < 10


@pytest.mark.parametrize("delta", ["1e-45", "1e-100"])
@pytest.mark.parametrize("eps", ["1e-30", "1e-200"])
def test_the_calibration_holds_at_tiny_numbers(eps, delta):
    eps, delta = Fraction(eps), Fraction(delta)
    ratio = analytic_ratio(eps, delta)
    assert analytic_delta(ratio, eps) <= delta
    assert analytic_delta(2 * ratio, eps) > delta


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("eps", [Fraction(1, 20), Fraction(1), Fraction(30)])
@pytest.mark.parametrize("unit", [4, 1000, 2**40])
def test_some_of_a_person_s_rows_cost_their_part_of_eps(k, eps, unit):
    """What `in_parallel` says of halves of the rows, for the discrete law and every j."""
    delta, cells = Fraction("1e-6"), 15
    sigma = discrete_sigma((k * unit) ** 2, k * cells, eps, delta)

    def proved(scale, rows):
        scale = Fraction(scale)
        ratio_squared = (rows * unit) ** 2 / scale**2
        return scale >= 1 and discrete_holds(ratio_squared, cells, eps * rows / k, delta, scale)

    for j in range(1, k + 1):
        assert proved(sigma, j)
        assert not proved(sigma * j / (4 * k), j)
