"""The peers of the benchmarks: with eps without bound each is the fit that it perturbs."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from benchmarks.peers import PEERS, adassp, boosted, gradient, hessian, objective, ssp
from benchmarks.peers._rows import Rows, gdp, symmetric

HUGE, DELTA = 1e9, 1e-6


@pytest.fixture(scope="module")
def rows() -> Rows:
    rng = np.random.default_rng(1)
    x = np.column_stack([np.ones(2000), rng.uniform(-1, 1, (2000, 3))])
    return Rows(x, x @ [0.1, 0.2, -0.1, 0.05] + rng.uniform(-0.1, 0.1, 2000))


@pytest.fixture(scope="module")
def exact(rows):
    return np.linalg.lstsq(rows.x, rows.y, rcond=None)[0]


@pytest.mark.parametrize(
    ("peer", "setting", "eps"),
    [
        (ssp, (1.0, 1.0), HUGE),
        (adassp.ANALYTIC, (1.0, 1.0), HUGE),
        (boosted, (1.0, 1.0, 3), HUGE),
        # Sketches keep an error of their own, which rounds shrink.
        (hessian, (1.0, 1.0, 12), 1e7),
        (gradient, (4000, 9.0, 1.0, False), HUGE),
        (objective, (1.0, 9.0, 0.1), HUGE),
    ],
)
def test_without_privacy_every_peer_is_ols(rows, exact, peer, setting, eps):
    found = peer.fit(rows, setting, eps, DELTA, 2, np.random.default_rng(2))
    np.testing.assert_allclose(found, np.tile(exact, (2, 1)), atol=5e-4)


def test_without_privacy_published_adassp_is_a_ridge_of_one(rows):
    found = adassp.PUBLISHED.fit(rows, (1.0, 1.0), HUGE, DELTA, 1, np.random.default_rng(3))[0]
    ball = rows.ball(1.0)
    ridge = np.linalg.solve(ball.gram + np.eye(4), ball.x.T @ ball.y) * ball.scale
    np.testing.assert_allclose(found, ridge, atol=1e-6)


def test_objective_perturbation_finds_the_minimum_of_its_objective(rows):
    setting, eps = (1.0, 0.15, 0.3), 1.0
    theta = objective.fit(rows, setting, eps, DELTA, 1, np.random.default_rng(4))[0]
    penalty, b = objective.perturbation(4, setting, eps, DELTA, 1, np.random.default_rng(4))
    ball, cut = rows.ball(1.0), setting[1]

    def value(at):
        r = np.abs(ball.y - ball.x @ at)
        huber = np.where(r <= cut, r**2 / 2, cut * r - cut**2 / 2)
        return huber.sum() + penalty * at @ at / 2 + b[0] @ at

    best = minimize(value, theta / ball.scale, method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(theta / ball.scale, best.x, atol=1e-4)


def test_objective_perturbation_without_delta_draws_gamma_lengths():
    eps, cut, size = 2.0, 0.5, 3
    penalty, b = objective.perturbation(
        size, (1.0, cut, 0.5), eps, 0.0, 40_000, np.random.default_rng(5)
    )
    assert math.log1p(1 / penalty) == pytest.approx(0.5 * eps)
    lengths = np.linalg.norm(b, axis=1)
    assert lengths.mean() == pytest.approx(size * 2 * cut / eps, rel=0.02)
    assert lengths.var() == pytest.approx(size * (2 * cut / eps) ** 2, rel=0.05)


@pytest.mark.parametrize("eps", [0.1, 1.0, 8.0])
def test_the_accountant_is_the_exact_gaussian_curve(eps):
    mu = gdp(eps, DELTA)
    spent = norm.cdf(mu / 2 - eps / mu) - math.exp(eps) * norm.cdf(-mu / 2 - eps / mu)
    assert spent == pytest.approx(DELTA, rel=1e-6)


def test_hessian_mixing_spends_its_half_on_sketches():
    k = hessian.sketched_rows(4, 3, DELTA)
    gamma = hessian.least_gamma(0.5, DELTA, k, 3)
    assert hessian.sketch_eps(gamma, k, 3, DELTA) == pytest.approx(0.5, rel=1e-4)
    assert hessian.sketch_eps(0.9 * gamma, k, 3, DELTA) > 0.5


def test_rows_in_the_ball_are_weighted_and_keep_the_model(rows):
    for scale in (1.0, 2.6):
        ball = rows.ball(scale)
        assert np.linalg.norm(ball.x, axis=1).max() <= 1 + 1e-12
        slopes = np.linalg.lstsq(ball.x, rows.x @ np.ones(4) * (ball.x[:, 0] / ball.scale),
                                 rcond=None)[0]  # fmt: skip
        np.testing.assert_allclose(slopes * ball.scale, np.ones(4))


def test_noise_matrices_are_symmetric_with_the_variance_asked_for():
    drawn = symmetric(3, 20_000, np.random.default_rng(6), off=0.5)
    np.testing.assert_array_equal(drawn, drawn.transpose(0, 2, 1))
    np.testing.assert_allclose(drawn.var(axis=0), 0.25 + 0.75 * np.eye(3), rtol=0.06)


@pytest.mark.parametrize("name", sorted(set(PEERS) - {"diffprivlib"}))
def test_no_peer_but_objective_perturbation_runs_without_delta(name):
    assert bool(PEERS[name].settings(1.0, 0.0)) == (name == "objective")
    assert PEERS[name].settings(1.0, DELTA)
