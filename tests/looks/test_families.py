"""Families: means, weights and factors against scipy, and how far a response may lie."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm
from flint import arb, ctx
from scipy.special import expit
from scipy.stats import norm

from dpreg.looks.families import Binomial, Linear, Poisson

ALL = [Linear(), Binomial(), Binomial(7.5), Poisson(20.0), Poisson(3e5, quasi=True), Poisson(0.25)]
IDS = [f"{family.name} {family.cap:g}" for family in ALL]
THEIRS = {
    "gaussian": sm.families.Gaussian(),
    "binomial": sm.families.Binomial(),
    "poisson": sm.families.Poisson(),
    "quasipoisson": sm.families.Poisson(),
}
FAMILY = pytest.mark.parametrize("family", ALL, ids=IDS)


@FAMILY
def test_terms_are_those_of_the_family(family):
    """Weight = slope^2/variance and factor = slope/variance, with statsmodels' link."""
    low, high = (max(-5.0, family.limits[0]), min(5.0, family.limits[1]))
    eta = np.linspace(low, high, 60)[1:-1]
    own, theirs = family.terms(eta), THEIRS[family.name]
    times = family.cap if family.name == "binomial" else 1.0
    mean = theirs.link.inverse(eta)
    slope, variance = 1 / theirs.link.deriv(mean), theirs.variance(mean)
    np.testing.assert_allclose(own.mean, times * mean, rtol=1e-12)
    np.testing.assert_allclose(own.weight, times * slope**2 / variance, rtol=1e-10)
    np.testing.assert_allclose(own.factor, slope / variance, rtol=1e-10)


@FAMILY
def test_predictors_beyond_the_limits_are_the_limits(family):
    low, high = family.limits
    if math.isinf(low):
        assert family.name == "gaussian"
        return
    found = family.terms(np.array([low - 3, low, high, high + 1e6]))
    assert found.mean[2] == found.mean[3]
    assert found.mean[0] == pytest.approx(found.mean[1], rel=1e-12)
    assert found.weight[0] == found.weight[1]
    assert found.mean.max() <= family.cap * (1 + 1e-12)
    assert (found.weight > 0).all()
    if family.name == "binomial":
        assert found.mean[3] / family.cap == pytest.approx(expit(high))


@FAMILY
def test_a_number_has_the_same_bits_wherever_it_stands(family):
    eta = np.random.default_rng(0).normal(size=257) * 6
    whole = family.terms(eta)
    for start in range(0, 257, 13):
        for size in (1, 2, 3, 5, 8):
            some = family.terms(eta[start : start + size])
            for name in ("mean", "weight"):
                own = getattr(whole, name)[start : start + size]
                assert getattr(some, name).tobytes() == own.tobytes()


@FAMILY
def test_the_predictor_of_a_mean_gives_that_mean(family):
    for share in (0.01, 0.2, 0.7):
        mean = share * family.cap
        found = family.terms(np.array([family.predictor(mean)])).mean[0]
        assert found == pytest.approx(mean, rel=1e-9)
    for mean in (-1.0, 0.0, 2 * family.cap):
        assert math.isfinite(family.predictor(mean))


@FAMILY
@pytest.mark.parametrize("sd", [0.3, 1.5])
def test_the_centre_of_normal_predictors_gives_the_mean(family, sd):
    """Of predictors away from the limits, which cut them."""
    mean = family.cap * 0.03
    middle = family.centre(mean, sd**2)
    x = np.linspace(-7, 7, 4001)
    density = norm.pdf(x) * (x[1] - x[0])
    found = float(density @ family.terms(middle + sd * x).mean)
    assert found == pytest.approx(mean, rel=0.25 if family.name == "binomial" else 0.03)


def test_only_two_valued_responses_are_limited_blindly():
    assert [family.blind for family in ALL] == [False, True, True, False, False, False]
    assert [family.dispersed for family in ALL] == [True, False, False, True, True, True]
    assert [family.ratio for family in ALL[:4]] == [None, "odds ratio", "odds ratio", "rate ratio"]


def test_slopes_fall_where_predictors_explain_much():
    assert Linear().slope(0.3, 0.5) == 1.0
    assert Binomial().slope(0.5, 0.0) == 0.25
    assert 0.35 * 0.25 <= Binomial().slope(0.5, 0.2) < 0.25
    assert Poisson(20.0).slope(3.0, 1.0) == 3.0


@FAMILY
def test_a_mean_is_followed_in_a_straight_line_from_where_it_is_too_steep(family):
    """In floats within the bound of the module of what balls of many digits say."""
    eta = np.concatenate([np.linspace(-40, 40, 401), [-1e3, -1e-9, 0.0, 1e-9, 1e3]])
    for at in (-1.5, 0.3, 20.0):
        bend = family.bend(math.exp(at))
        made = family.followed(eta, bend)
        slack = family.rounding * bend * (1 + np.abs(eta)) + 2.0**-1000
        with ctx.workprec(200):
            balls = [family.ball(arb(float(one)), bend) for one in eta]
            for ball, found, most in zip(balls, made.mean, slack, strict=True):
                assert abs(ball - float(found)) <= float(most)
        order = np.argsort(eta)
        rise, run = np.diff(made.mean[order]), np.diff(eta[order])
        assert (rise >= -2 * most).all()
        assert (rise <= bend * run * (1 + 1e-9) + 1e-12 * (1 + made.mean.max())).all()
        inside = (eta > max(family.limits[0], -40)) & (eta < min(at, family.limits[1]))
        if family.name == "binomial":
            inside &= np.abs(eta) < 13
        usual = family.terms(eta[inside])
        trials = family.cap if family.name == "binomial" else 1.0
        np.testing.assert_allclose(made.mean[inside] * trials, usual.mean, rtol=1e-9)
        assert (made.weight <= bend * (1 + 1e-12)).all()


def test_a_bend_is_the_steepest_a_mean_is():
    assert Binomial(7.5).bend(3.0) == 0.25
    assert Linear().bend(-2.0) == 1.0
    assert Poisson(20.0).bend(3.0) == 3.0
    assert Poisson(20.0).bend(700.0) == 20.0
    assert Poisson(20.0).bend(1e-30) == pytest.approx(20.0 * 2.0**-20)
