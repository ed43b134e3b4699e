"""The peers of dp_glm: without noise they are the fit, and what a row moves is within bounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import statsmodels.api as sm

from benchmarks.peers.glm import GLM_PEERS, functional, gradient, objective
from benchmarks.peers.glm._rows import GLMRows, mean
from benchmarks.peers.glm.objective import objective as perturbed

CAPS = {"binomial": 1.0, "poisson": 20.0}
LOUD = 1e7
"""An eps at which noise is nothing."""


def rows(family, n=4000, size=None):
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(n), np.clip(rng.standard_normal((n, 2)) / 3, -1, 1)])
    mu = mean(x @ [0.2, 0.8, -0.5], family)
    y = rng.random(n) < mu if family == "binomial" else rng.poisson(mu)
    return GLMRows(x, np.minimum(y * 1.0, CAPS[family]), family, CAPS[family], size or n)


def fitted(made):
    kind = sm.families.Binomial() if made.family == "binomial" else sm.families.Poisson()
    return sm.GLM(made.y, made.x, family=kind).fit().params


@pytest.mark.parametrize("family", list(CAPS))
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_without_noise_objective_perturbation_is_the_fit(family, delta):
    made = rows(family)
    found = objective.fit(made, (1.0, 0.4, 1.0), LOUD, delta, 2, np.random.default_rng(0))
    np.testing.assert_allclose(found, np.tile(fitted(made), (2, 1)), atol=0.02)


@pytest.mark.parametrize("family", list(CAPS))
def test_without_noise_gradient_descent_is_the_fit(family):
    made = rows(family)
    found = gradient.fit(made, (300, 30.0, 3.0), LOUD, 1e-6, 1, np.random.default_rng(0))
    np.testing.assert_allclose(found[0], fitted(made), atol=0.02)


def test_without_noise_the_functional_mechanism_is_near_the_fit():
    made = rows("binomial")
    for delta in (0.0, 1e-6):
        found = functional.fit(made, (0.0, 0.0), LOUD, delta, 1, np.random.default_rng(0))
        np.testing.assert_allclose(found[0], fitted(made), atol=0.1)  # Taylor's polynomial bends


def moved(family, cap, a, norm):
    """The most that a replaced row moves the coefficients by, over corners of the box."""
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    corners = np.column_stack([np.ones(len(corners)), corners])
    sides = [
        functional.coefficients(corners, np.full(len(corners), y), family, a) for y in (0.0, cap)
    ]
    every = np.concatenate(sides)
    return max(norm(one - other) for one in every for other in every)


@pytest.mark.parametrize(("family", "a"), [("binomial", 0.0), ("poisson", 0.0), ("poisson", 0.5)])
def test_the_functional_mechanisms_sensitivity_holds_at_the_corners(family, a):
    cap = CAPS[family]
    laplace = functional.sensitivity(4, family, cap, a, 0.0)
    gaussian = functional.sensitivity(4, family, cap, a, 1e-6)
    first, second = (
        moved(family, cap, a, lambda v: np.abs(v).sum()),
        moved(family, cap, a, np.linalg.norm),
    )
    assert 0.3 * laplace < first <= laplace
    assert 0.3 * gaussian < second <= gaussian
    # A third of the scale, or a square that is left out, would be caught.
    assert first > laplace / 3.3
    assert second > gaussian / 3.3


def test_the_papers_sensitivity_for_yes_no_is_larger():
    for d in (2, 6, 16, 31):
        ours = functional.sensitivity(d, "binomial", 1.0, 0.0, 0.0)
        assert ours == pytest.approx(d + d**2 / 4)
        assert ours <= d**2 / 4 + 3 * d


def test_the_gradient_of_the_perturbed_objective_is_right():
    made = rows("poisson", 200)
    noise, at = np.array([0.1, -0.2, 0.05]), np.array([1.5, 1.0, -2.0])
    args = (made.x, made.y, "poisson", 1.2, noise, 0.3)
    _, slope = perturbed(at, *args)
    steps = np.eye(3) * 1e-6
    wanted = [(perturbed(at + h, *args)[0] - perturbed(at - h, *args)[0]) / 2e-6 for h in steps]
    np.testing.assert_allclose(slope, wanted, rtol=1e-5)


def test_a_part_of_the_rows_has_the_noise_of_all():
    made = rows("binomial", 5000)
    part = made.part(500, np.random.default_rng(0))
    assert (len(part.x), part.size) == (500, 5000)
    assert made.part(5000, np.random.default_rng(0)) is made
    for name in ("dp-gd", "functional", "objective"):
        peer = GLM_PEERS[name]
        setting = peer.settings("binomial", 1.0, 1e-6)[0]
        spread = [
            np.std(peer.fit(one, setting, 0.5, 1e-6, 40, np.random.default_rng(1)), axis=0).mean()
            for one in (part, made)
        ]
        assert 0.5 < spread[0] / spread[1] < 2, name
