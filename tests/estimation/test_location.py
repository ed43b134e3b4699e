"""Locations: rounded once, exact from there on, and the way back with the same numbers."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from dpreg.errors import ArgumentError
from dpreg.estimation.objective import LARGEST_RADIUS, LARGEST_REACH, LEAST_TAU, Form, Location


def arguments(rng, p, size=1.0):
    whitening = rng.normal(size=(p, p)) * size
    return {
        "whitening": whitening,
        "offset": -whitening @ rng.uniform(-0.9, 0.9, p),
        "slopes": rng.normal(size=p) / p,
        "intercept": 0.3,
        "tau": 0.21,
        "radius": 3.7,
    }


@pytest.mark.parametrize("p", [1, 4, 30])
@pytest.mark.parametrize("size", [1e-6, 1.0, 7e3, 1e12])
def test_every_partial_sum_of_a_form_is_a_float64(p, size):
    location = Location.on_grid(**arguments(np.random.default_rng(p), p, size))
    for form in (*location.forms, location.response):
        total = abs(form.constant) + sum(map(abs, form.slopes))
        assert total * 2**20 <= 2**53
        assert total > 2**31 or form.shift == 52, "the grid is as fine as it may be"


def test_a_form_with_larger_integers_is_refused():
    Form(0, 2**32, (-(2**32),))
    with pytest.raises(ArgumentError, match=r"2\*\*33"):
        Form(0, 2**32, (-(2**32), 1))


@pytest.mark.parametrize("p", [1, 5, 20])
def test_rounding_moves_nothing_that_matters(p):
    given = arguments(np.random.default_rng(p), p)
    location = Location.on_grid(**given)
    np.testing.assert_allclose(location.whitening, given["whitening"], atol=1e-8)
    np.testing.assert_allclose(location.offset, given["offset"], atol=1e-8)
    np.testing.assert_allclose(location.slopes, given["slopes"], atol=1e-8)
    assert location.intercept == pytest.approx(0.3, abs=1e-8)
    assert location.tau == 0.21
    asked = min(3.7, location.largest_norm)
    assert asked * (1 - 2**-10) <= location.radius <= asked


def test_coefficients_go_back_with_the_rounded_numbers():
    """e/tau = theta_0 + theta'u at every x, exactly the y that beta predicts."""
    rng = np.random.default_rng(3)
    location = Location.on_grid(**arguments(rng, 4))
    theta = rng.normal(size=5)
    beta = location.shift + location.matrix @ theta
    x = rng.uniform(-1, 1, (50, 4))
    u = x @ location.whitening.T + location.offset
    residual = location.tau * (theta[0] + u @ theta[1:])
    predicted = location.intercept + x @ location.slopes + residual
    np.testing.assert_allclose(beta[0] + x @ beta[1:], predicted, rtol=1e-12)


def test_limits_hold_whatever_is_asked_for():
    p = 3
    wild = Location.on_grid(
        whitening=np.array([[1e300, 1e299, 0.0], [0.0, 0.0, 0.0], [1e-300, 0.0, 1.0]]),
        offset=[1e301, 5.0, -7.0],
        slopes=[1e30, 0.0, 1.0],
        intercept=-1e30,
        tau=1e-300,
        radius=1e300,
    )
    reach = np.abs(wild.whitening).sum(axis=1)
    assert (reach <= LARGEST_REACH).all()
    assert (np.abs(wild.offset) <= reach).all()
    assert wild.whitening[0, 0] == pytest.approx(LARGEST_REACH / 1.1)
    assert abs(wild.intercept) + np.abs(wild.slopes).sum() <= LARGEST_REACH
    assert wild.tau == LEAST_TAU
    assert wild.radius == LARGEST_RADIUS
    assert wild.with_clips(radius=0.0, tau=1e9).radius == 1.0
    assert wild.with_clips(radius=0.0, tau=1e300).tau == wild.largest_residual
    assert wild.size == p


def test_clips_open_no_further_than_the_corners_of_the_box():
    location = Location.on_grid(**arguments(np.random.default_rng(5), 2)).with_clips(
        radius=1e9, tau=1e9
    )
    corners = np.array([(a, b) for a in (-1, 1) for b in (-1, 1)])
    u = corners @ location.whitening.T + location.offset
    assert location.largest_norm >= max(math.hypot(1, *row) for row in u)
    e = np.array([y - location.intercept - corners @ location.slopes for y in (-1, 1)])
    assert location.largest_residual == pytest.approx(np.abs(e).max())
    assert location.tau == location.largest_residual
    assert location.radius == pytest.approx(location.largest_norm, rel=2e-3)


@pytest.mark.parametrize("name", ["offset", "whitening", "slopes", "intercept", "tau", "radius"])
def test_what_is_not_finite_is_refused(name):
    given = arguments(np.random.default_rng(6), 2)
    given[name] = np.full_like(np.asarray(given[name], dtype=float), np.nan)
    with pytest.raises(ArgumentError, match=f"{name} must be finite"):
        Location.on_grid(**given)


def test_a_location_is_a_value():
    location = Location.on_grid(**arguments(np.random.default_rng(7), 2))
    assert pickle.loads(pickle.dumps(location)) == location
    assert hash(location) == hash(pickle.loads(pickle.dumps(location)))
