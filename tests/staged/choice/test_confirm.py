"""A term that a later look finds much less of is named."""

import numpy as np
import pytest
from staged.choice.made_up import plain_space

from dpreg.selection.space import Space
from dpreg.staged.choice.coefficients import ModelFit
from dpreg.staged.choice.confirm import FADED, faded, lost


def fit_of(columns, estimates, covariance):
    return ModelFit(columns, np.array(estimates), covariance, np.zeros((1, len(columns))))


def test_one_column_has_lost_the_standardised_difference():
    z = lost(np.array([-0.3]), np.array([[0.01]]), np.array([-0.1]), np.array([[0.03]]))
    assert z == pytest.approx(0.2 / 0.2)
    grown = lost(np.array([-0.3]), np.array([[0.01]]), np.array([-0.5]), np.array([[0.03]]))
    assert grown == pytest.approx(-1)


def test_what_is_lost_does_not_depend_on_how_a_block_is_coded(rng):
    b, later = rng.standard_normal((2, 3))
    root, other = rng.standard_normal((2, 3, 5))
    v, w = root @ root.T, other @ other.T
    turn = rng.standard_normal((3, 3))
    own = lost(b, v, later, w)
    assert lost(turn @ b, turn @ v @ turn.T, turn @ later, turn @ w @ turn.T) == pytest.approx(own)


def test_independent_looks_at_the_same_effect_have_a_standard_normal_difference(rng):
    v, w = np.diag([0.04, 0.01]), np.array([[0.02, 0.01], [0.01, 0.03]])
    z = [
        lost(
            np.ones(2) + rng.multivariate_normal(np.zeros(2), v) * 0.1,
            v * 0.01,
            np.ones(2) + rng.multivariate_normal(np.zeros(2), w) * 0.1,
            w * 0.01,
        )
        for _ in range(2000)
    ]
    assert abs(np.mean(z)) < 0.15
    assert np.std(z) == pytest.approx(1, abs=0.1)


def test_a_column_without_any_variance_or_estimate_has_lost_nothing():
    zero = np.zeros((1, 1))
    assert lost(np.zeros(1), zero, np.zeros(1), zero) == 0.0


def test_only_reported_terms_that_shrink_are_named():
    space = plain_space(3)
    fit = fit_of((0, 1, 3), [5.0, 0.4, 0.4], 0.01 * np.eye(3))
    far = (FADED + 0.1) * np.sqrt(0.02)
    later = np.array([-5.0, 0.4 - far, 0.4 - far])
    assert faded(space, fit, later, 0.01 * np.eye(3), {0, 2}) == (0, 2)
    assert faded(space, fit, later, 0.01 * np.eye(3), {2}) == (2,)
    near = np.array([5.0, 0.4 - 0.9 * far, 0.4 + far])
    assert faded(space, fit, near, 0.01 * np.eye(3), {0, 2}) == ()


def test_a_factor_is_named_as_a_whole():
    space = Space(("x", "f"), ((1,), (2, 3)), (0,))
    fit = fit_of((0, 2, 3), [0.0, 0.3, -0.3], 0.01 * np.eye(3))
    assert faded(space, fit, np.zeros(3), 0.01 * np.eye(3), {1}) == (1,)
    assert faded(space, fit, np.array([0, 0.3, -0.3]), 0.01 * np.eye(3), {1}) == ()
