"""Places: a point on grids, with the same numbers there and back."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from oracles.look_rows import KINDS, point_of

from dpreg.errors import ArgumentError
from dpreg.looks.coordinates import place_of
from dpreg.looks.families import Linear


@pytest.mark.parametrize("far", [1e-3, 1.0, 1e8])
@pytest.mark.parametrize("p", [1, 4])
def test_coefficients_go_back_with_the_rounded_numbers(p, far):
    """Eta + v'theta/sqrt(wbar) at every x is what beta predicts, whatever was rounded."""
    rng = np.random.default_rng(p)
    point = point_of(rng, KINDS["linear"], p, far=far)
    place, at = place_of(point, Linear(), information=3.0, score=2.0)
    theta = rng.normal(size=p + 1)
    beta = at.shift + at.transform @ theta
    x = rng.uniform(-1, 1, (50, p))
    eta = place.predictor.floats[0] + x @ place.predictor.floats[1]
    u = np.column_stack([form.floats[0] + x @ form.floats[1] for form in place.forms])
    expected = eta + (theta[0] + u @ theta[1:]) / np.sqrt(point.weight)
    np.testing.assert_allclose(beta[0] + x @ beta[1:], expected, rtol=1e-9)
    np.testing.assert_allclose(at.moved, [form.floats[0] for form in place.forms])
    assert (place.weight, place.information, place.score) == (point.weight, 3.0, 2.0)
    assert not place.together


def test_offsets_are_known_slopes_after_the_columns():
    rng = np.random.default_rng(2)
    point = point_of(rng, KINDS["counts"], 3)
    place, at = place_of(
        point, KINDS["counts"].family, known=(0.5, -2.0), information=1.0, score=1.0
    )
    np.testing.assert_allclose(place.predictor.floats[1][:3], point.slopes, atol=1e-8)
    np.testing.assert_allclose(place.predictor.floats[1][3:], [0.5, -2.0], atol=1e-8)
    assert len(place.forms) == 3
    assert len(at.slopes) == 3


@pytest.mark.parametrize("name", ["information", "score"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, 1e-200])
def test_a_limit_that_limits_nothing_is_refused(name, value):
    """Rows at it would be no integers, and no noise would fit them."""
    point = point_of(np.random.default_rng(3), KINDS["linear"], 2)
    limits = {"information": 1.0, "score": 1.0}
    limits[name] = value
    with pytest.raises(ArgumentError, match="weight and limits"):
        place_of(point, Linear(), **limits)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_whatever_was_released_the_next_look_has_a_place(value):
    """An error here would come after the charge."""
    whole = point_of(np.random.default_rng(4), KINDS["linear"], 2)
    for name in ("centre", "whitening", "slopes", "spread", "sure", "middle"):
        broken = np.full_like(getattr(whole, name), value)
        point = replace(whole, **{name: broken if broken.ndim else float(broken)})
        place, at = place_of(point, Linear(), information=3.0, score=2.0)
        numbers = (at.centre, at.whitening, at.slopes, at.middle, at.spread, at.sure, at.moved)
        assert all(np.isfinite(one).all() for one in numbers), name
        assert all(np.isfinite(form.floats[1]).all() for form in place.forms)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, 1e-200])
def test_a_weight_that_is_none_never_reaches_rows(value):
    point = point_of(np.random.default_rng(3), KINDS["linear"], 2)
    try:
        place, _ = place_of(replace(point, weight=value), Linear(), information=1.0, score=1.0)
    except ArgumentError:
        return
    assert 1e-100 <= place.weight <= 1e100


def test_a_place_is_a_value():
    point = point_of(np.random.default_rng(4), KINDS["logit"], 2)
    place, _ = place_of(point, KINDS["logit"].family, information=1.0, score=2.0, together=True)
    assert pickle.loads(pickle.dumps(place)) == place
    assert place.together
