"""Coefficients and standard errors: against slow oracles, statsmodels, and broken releases."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import statsmodels.api as sm
from oracles.accounts import release_gram
from oracles.gram import conf_int
from oracles.gram import equation_noise as slow_noise

from dpreg.arrays import MOMENT_BITS
from dpreg.estimation import inference as drawn
from dpreg.estimation import inference as redraws
from dpreg.estimation.gram import NoisyGram
from dpreg.estimation.inference import (
    Redrawn,
    draws_for,
    equation_noise,
    fit_gram,
    noise_norm,
)
from dpreg.moments import Moments, accumulate
from dpreg.privacy.proofs import layout

DELTA = Fraction("1e-6")


def table(rows=4000, seed=0, p=3):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (rows, p))
    y = 0.1 + x @ np.linspace(0.4, -0.2, p) + rng.normal(0, 0.1, rows)
    return np.column_stack([np.ones(rows), x, np.clip(y, -1, 1)])


def noisy_of(z, eps, columns=None, **options):
    columns = range(z.shape[1] - 1) if columns is None else columns
    return release_gram(accumulate([z], z.shape[1]), columns, eps=Fraction(eps), **options)


@pytest.mark.parametrize("noise", ["gaussian", "matrix-laplace", "laplace"])
@pytest.mark.parametrize("intercept", [True, False])
def test_statsmodels_at_huge_eps(noise, intercept):
    z = table()
    columns = (0, 1, 2, 3) if intercept else (1, 2, 3)
    fit = fit_gram(noisy_of(z, "1e6", columns, delta=DELTA, noise=noise))
    x, y = z[:, list(columns)], z[:, -1]
    ols = sm.OLS(y, x).fit()
    np.testing.assert_allclose(fit.beta, ols.params, atol=1e-3)
    np.testing.assert_allclose(np.sqrt(np.diag(fit.cov)), ols.bse, rtol=1e-3)
    np.testing.assert_allclose(fit.cov, ols.cov_params(), atol=1e-3 * np.abs(fit.cov).max())
    assert fit.rsquared == pytest.approx(ols.rsquared, abs=1e-3)
    assert fit.sigma2 == pytest.approx(ols.scale, rel=1e-3)
    assert fit.df_resid == pytest.approx(ols.df_resid, abs=0.1)
    np.testing.assert_allclose(x @ fit.beta, ols.fittedvalues, atol=1e-3)
    assert not fit.ridged
    if noise == "gaussian":
        np.testing.assert_allclose(conf_int(fit), ols.conf_int(), atol=1e-3)


@pytest.mark.parametrize("columns", [(0, 1, 2, 3, 4, 5), (1, 2, 3, 4, 5), (0, 2, 3, 4)])
def test_equation_noise_against_its_definition(columns):
    """Factor columns share draws with the constant's row; the slow version goes cell by cell."""
    rng = np.random.default_rng(1)
    triangle = layout(columns, [(3, 4)])
    size = len(columns) + 1
    variance = rng.uniform(0.5, 3, size=(size, size))
    sd = np.zeros((size, size))
    per_cell = {}
    for cell, entries in zip(triangle.cells, triangle.entries, strict=True):
        if cell != (-1, -1):
            per_cell[cell] = variance[cell]
            for i, j in entries:
                sd[i, j] = sd[j, i] = variance[cell] ** 0.5
    noisy = NoisyGram(np.eye(size), sd, 1.0, 1.0, triangle, "gaussian")
    beta = rng.normal(size=size - 1)
    np.testing.assert_allclose(
        equation_noise(noisy, beta), slow_noise(triangle, per_cell, beta), rtol=1e-12
    )


@pytest.mark.parametrize("noise", ["gaussian", "matrix-laplace", "laplace"])
def test_redrawn_noise_has_the_release_law(noise):
    noisy = release_gram(
        accumulate([], 6),
        (0, 1, 2, 3),
        exclusive=[(2, 3)],
        eps=Fraction(1),
        delta=DELTA,
        noise=noise,
    )
    drawn = Redrawn.of(noisy).matrices(20_000, np.random.default_rng(2))
    np.testing.assert_allclose(drawn.std(axis=0), noisy.noise_sd, rtol=0.08)
    assert (drawn == drawn.transpose(0, 2, 1)).all()
    assert (drawn[:, 0, 2] == drawn[:, 2, 2]).all()
    nu = noise_norm(noisy.noise_sd[:4, :4] ** 2)
    norms = np.abs(np.linalg.eigvalsh(drawn[:500, :4, :4])).max(axis=1)
    assert 0.3 * nu < np.median(norms) < 1.2 * nu


def test_the_formula_predicts_the_spread_and_ignoring_the_noise_does_not():
    """Many releases of one table: the privacy part is the variance over releases."""
    moments = accumulate([table(20_000)], 5)
    rng = np.random.default_rng(3)
    fits = [
        fit_gram(
            release_gram(moments, range(4), eps=Fraction(1), delta=DELTA, noise="gaussian", rng=rng)
        )
        for _ in range(600)
    ]
    spread = np.var([fit.beta for fit in fits], axis=0)
    told = np.mean([np.diag(fit.privacy.whole) for fit in fits], axis=0)
    np.testing.assert_allclose(spread, told, rtol=0.25)
    naive = np.mean([np.diag(fit.sampling.whole) for fit in fits], axis=0)
    assert (spread > 1.5 * naive).any()


def test_sigma2_is_unbiased_and_its_correction_is_needed():
    """The mean-zero part of the noise, known to this test, is taken off to see the bias alone."""
    z = table(3000, p=5)
    moments = accumulate([z], 7)
    exact = moments.as_float()
    ols = sm.OLS(z[:, -1], z[:, :-1]).fit()
    extended = np.append(ols.params, -1.0)
    rng = np.random.default_rng(4)
    found, plain = [], []
    for _ in range(300):
        noisy = release_gram(
            moments, range(6), eps=Fraction(3), delta=DELTA, noise="gaussian", rng=rng
        )
        fit = fit_gram(noisy)
        assert not fit.ridged
        bracket = extended @ (noisy.cells - exact) @ extended
        raw = noisy.cells[6, 6] - noisy.cells[:6, 6] @ fit.beta
        plain.append((raw - bracket) / fit.df_resid)
        found.append(plain[-1] + fit.sigma2 - raw / fit.df_resid)
    error = np.std(plain) / 300**0.5
    floored = np.mean(found) - ols.scale
    assert abs(floored) < 0.02 * ols.scale + 4 * error
    assert np.mean(plain) < ols.scale - 8 * error


def test_ridge_rule_and_bootstrap():
    noisy = noisy_of(table(200, p=6), "0.5", rng=np.random.default_rng(5))
    fit = fit_gram(noisy)
    assert fit.ridged
    assert fit.ridge > 0
    assert fit.draws is not None
    assert fit.draws.shape == (2000, 7)
    assert np.isfinite(fit.draws).all()
    assert (np.abs(fit.beta) < 3).all()
    again = fit_gram(noisy)
    np.testing.assert_array_equal(fit.draws, again.draws)  # post-processing, so repeatable
    interval = conf_int(fit, 0.1)
    assert (interval[:, 0] < interval[:, 1]).all()
    total = np.cov(fit.draws, rowvar=False)
    np.testing.assert_allclose(np.diag(total), np.diag(fit.cov), rtol=0.2)


def test_a_ridge_leaves_the_mean_of_the_response_where_it_was_released():
    """Slopes are drawn towards zero, the intercept is not: the fit passes through the means."""
    z = table(400, p=6)
    z[:, -1] = np.clip(z[:, -1] + 0.5, -1, 1)
    noisy = noisy_of(z, "0.5", rng=np.random.default_rng(5))
    fit = fit_gram(noisy)
    assert fit.ridged
    means = np.clip(noisy.cells[0, 1:-1] / fit.nobs, -1, 1)
    at_means = fit.beta[0] + means @ fit.beta[1:]
    assert at_means == pytest.approx(noisy.cells[0, -1] / fit.nobs)


def test_collinear_columns_are_flagged_even_at_huge_eps():
    z = table(2000)
    z[:, 2] = z[:, 1]
    fit = fit_gram(noisy_of(z, "1e6", delta=DELTA))
    assert fit.ridged
    assert fit.beta[1] + fit.beta[2] == pytest.approx(
        0.4, abs=0.03
    )  # the first column's effect, shared out


@pytest.mark.parametrize("scale", [0.0, -1.0, 1e-300, 1e12, -1e12])
@pytest.mark.parametrize("columns", [(0, 1, 2), (1, 2), ()])
def test_no_released_value_raises(scale, columns):
    noisy = release_gram(accumulate([], 4), columns, eps=Fraction(1), rng=np.random.default_rng(6))
    broken = replace(noisy, cells=noisy.cells * scale, count=noisy.count * scale)
    for rows in (None, 0, 10):
        fit = fit_gram(broken, rows=rows, draws=50)
        assert np.isfinite(fit.beta).all()
        assert np.isfinite(fit.cov).all()
        assert fit.sigma2 > 0
        assert 0 <= fit.rsquared <= 1
        assert fit.df_resid >= 1


def test_user_units_are_an_affine_map():
    """Fitting raw columns directly equals mapping the stored fit."""
    z = table(3000, p=2)
    raw = np.column_stack([z[:, 0], 5 + 2 * z[:, 1], -1 + 0.5 * z[:, 2]])
    y = 40 + 10 * z[:, -1]
    fit = fit_gram(noisy_of(z, "1e7", delta=DELTA))
    factors, first = np.array([10.0, 10 / 2, 10 / 0.5]), np.array([10.0, -5 * 10 / 2, 1 * 10 / 0.5])
    shift = np.array([40.0, 0.0, 0.0])
    user = fit.in_user_units(factors, first, shift, response_width=10.0)
    ols = sm.OLS(y, raw).fit()
    np.testing.assert_allclose(user.beta, ols.params, rtol=1e-3)
    np.testing.assert_allclose(np.sqrt(np.diag(user.cov)), ols.bse, rtol=1e-3)
    assert user.sigma2 == pytest.approx(ols.scale, rel=1e-3)
    assert user.rsquared == fit.rsquared
    np.testing.assert_allclose(
        user.sampling.whole + user.privacy.whole, user.cov, rtol=1e-9, atol=1e-15
    )
    ridged = fit_gram(noisy_of(table(200, p=2), "0.1", rng=np.random.default_rng(7)), draws=50)
    mapped = ridged.in_user_units(factors, first, shift)
    transform = np.vstack([first, np.diag(factors)[1:]])
    np.testing.assert_allclose(mapped.draws[3], transform @ ridged.draws[3] + shift)


def test_public_rows_bound_the_count():
    noisy = replace(noisy_of(table(500), "1"), count=600.0)
    assert fit_gram(noisy, rows=500).nobs == 500
    assert fit_gram(noisy).nobs == 600


def test_wide_models_make_fewer_draws():
    assert [draws_for(columns) for columns in (0, 1, 80, 100, 300, 5000)] == [
        2000, 2000, 2000, 1024, 200, 200,
    ]  # fmt: skip


def coverage_of_few_draws(draws):
    """Slopes of unridged fits under pure noise, whose intervals are quantiles of draws."""
    rng, truth = np.random.default_rng(11), np.linspace(0.4, -0.2, 5)
    inside = []
    for seed in range(250):
        noisy = noisy_of(table(2000, seed, p=5), "40", noise="matrix-laplace", rng=rng)
        fit = fit_gram(noisy, draws=draws)
        assert not fit.ridged
        low, high = conf_int(fit)[1:].T
        inside.append(((low <= truth) & (truth <= high)).mean())
    return np.mean(inside)


def test_few_draws_cover_as_often_as_many():
    assert coverage_of_few_draws(40) == pytest.approx(0.95, abs=0.02)


def test_mutant_quantiles_that_forget_how_few_draws_there_are_are_caught(monkeypatch):
    def linear(draws, tail):
        return np.quantile(draws, tail, axis=0)

    monkeypatch.setattr(drawn, "_quantile", linear)
    assert coverage_of_few_draws(40) < 0.93


def test_few_draws_give_a_covariance_of_full_rank_and_the_same_size(monkeypatch):
    noisy = noisy_of(table(2000, p=20), "1", rng=np.random.default_rng(5))
    many = fit_gram(noisy)
    monkeypatch.setattr(redraws, "_FULL_DRAWS_TO", 0)
    few = fit_gram(noisy, draws=15)
    assert many.ridged
    assert few.draws.shape == (15, 21)
    assert np.linalg.eigvalsh(few.sampling.whole)[0] > 0
    ratios = np.diag(few.sampling.whole) / np.diag(many.sampling.whole)
    assert np.median(ratios) == pytest.approx(1, abs=0.3)
    assert np.abs(np.log(ratios)).max() < np.log(4)


def times_the_constant_is_held(releases=12, columns=100, rows=80_000):
    """Releases with so much noise that all slopes are drawn to zero, and the constant is .1."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(releases):
        truth = np.append(0.1, rng.normal(0, 0.3 / np.sqrt(columns), columns - 1))
        x = rng.normal(0, 1 / 3, (10 * columns, columns - 1)).clip(-1, 1)
        y = 0.1 + x @ truth[1:] + rng.normal(0, 0.15, len(x))
        z = np.column_stack([np.ones(len(x)), x, y])
        moments = np.rint(z.T @ z * (rows / len(z)) * 2**20)
        cells = tuple(tuple(int(cell) << (MOMENT_BITS - 20) for cell in row) for row in moments)
        noisy = release_gram(
            Moments(rows, cells), range(columns), eps=Fraction(1), rng=rng, noise="matrix-laplace"
        )
        fit = fit_gram(noisy, rows=rows, draws=200)
        assert fit.ridged
        low, high = conf_int(fit, 0.05)[0]
        assert high - low < 0.5  # it says something
        held += low <= 0.1 <= high
    return held


def test_the_constant_of_a_wide_ridged_fit_is_in_its_interval():
    assert times_the_constant_is_held() >= 11


def test_mutant_draws_of_the_constant_on_one_side_are_caught(monkeypatch):
    monkeypatch.setattr(drawn, "both_sides", lambda estimate, draws: draws)
    assert times_the_constant_is_held() < 8
