"""Locations: rounded once, exact from there on, and the way back with the same numbers."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from dpreg.errors import ArgumentError
from dpreg.estimation.objective import LARGEST_RADIUS, LEAST_TAU, Form, Location
from dpreg.looks.coordinates import LARGEST_REACH


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


def largest_norm(location):
    """Bound |(1, u)| over the box."""
    return math.hypot(1.0, *(form.reach for form in location.forms))


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
    constant, slopes = location.response.floats
    np.testing.assert_allclose(-slopes[:-1], given["slopes"], atol=1e-8)
    assert -constant == pytest.approx(0.3, abs=1e-8)
    assert location.tau == 0.21
    asked = min(3.7, largest_norm(location))
    assert asked * (1 - 2**-10) <= location.radius <= asked


def test_coefficients_go_back_with_the_rounded_numbers():
    """e/tau = theta_0 + theta'u at every x, exactly the y that beta predicts."""
    rng = np.random.default_rng(3)
    location = Location.on_grid(**arguments(rng, 4))
    theta = rng.normal(size=5)
    beta = location.carried(theta)
    x = rng.uniform(-1, 1, (50, 4))
    u = x @ location.whitening.T + location.offset
    residual = location.tau * (theta[0] + u @ theta[1:])
    constant, slopes = location.response.floats
    predicted = residual - constant - x @ slopes[:-1]
    np.testing.assert_allclose(beta[0] + x @ beta[1:], predicted, rtol=1e-12)


def test_limits_hold_whatever_is_asked_for():
    p = 3
    wild = Location.on_grid(
        whitening=np.array([[1e300, 1e299, 0.0], [0.0, 0.0, 0.0], [1e-300, 0.0, 1.0]]),
        offset=np.array([1e301, 5.0, -7.0]),
        slopes=np.array([1e30, 0.0, 1.0]),
        intercept=-1e30,
        tau=1e-300,
        radius=1e300,
    )
    reach = np.abs(wild.whitening).sum(axis=1)
    assert (reach <= LARGEST_REACH).all()
    assert (np.abs(wild.offset) <= reach).all()
    assert wild.whitening[0, 0] == pytest.approx(LARGEST_REACH / 1.1)
    assert wild.response.reach <= LARGEST_REACH + 1
    assert wild.tau == LEAST_TAU
    assert wild.radius == LARGEST_RADIUS
    wide = Location.on_grid(
        **arguments(np.random.default_rng(p), p) | {"radius": 0.0, "tau": 1e300}
    )
    assert wide.radius == 1.0
    assert wide.tau == wide.response.reach


def test_clips_open_no_further_than_the_corners_of_the_box():
    given = arguments(np.random.default_rng(5), 2)
    location = Location.on_grid(**given | {"radius": 1e9, "tau": 1e9})
    corners = np.array([(a, b) for a in (-1, 1) for b in (-1, 1)])
    u = corners @ location.whitening.T + location.offset
    assert largest_norm(location) >= max(math.hypot(1, *row) for row in u)
    constant, slopes = location.response.floats
    e = np.array([y + constant + corners @ slopes[:-1] for y in (-1, 1)])
    assert location.tau == location.response.reach == pytest.approx(np.abs(e).max())
    assert location.radius == pytest.approx(largest_norm(location), rel=2e-3)


def test_a_location_is_a_value():
    location = Location.on_grid(**arguments(np.random.default_rng(7), 2))
    assert pickle.loads(pickle.dumps(location)) == location
    assert hash(location) == hash(pickle.loads(pickle.dumps(location)))
