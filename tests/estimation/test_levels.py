"""Models with a wide factor: against statsmodels, over repeated releases, and without the mends."""

from fractions import Fraction

import numpy as np
import pytest
import statsmodels.api as sm
from oracles.accounts import release_gram

from dpreg.estimation import inference as drawn
from dpreg.estimation import levels as module
from dpreg.estimation.levels import fit_levels, hidden_levels
from dpreg.moments import accumulate

DELTA = Fraction("1e-6")


def table(rows, levels, seed=0, between=0.0, sd=0.1):
    """Rows (1, x, w, levels 1.., y), and the coefficients of the columns."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, levels, rows)
    means = rng.uniform(-0.2, 0.2, levels)
    x = np.clip(rng.uniform(-0.5, 0.5, (rows, 2)) + between * np.sign(means)[level, None], -1, 1)
    y = x @ [0.3, -0.2] + means[level] + rng.normal(0, sd, rows)
    dummies = (level[:, None] == np.arange(1, levels)).astype(float)
    z = np.column_stack([np.ones(rows), x, dummies, np.clip(y, -1, 1)])
    return z, np.concatenate([means[:1], [0.3, -0.2], means[1:] - means[0]])


def fit(moments, levels, eps, intercept=True, **options):
    group = tuple(range(3, 2 + levels))
    if not intercept:
        places = [j - 1 for j in group]
        columns = (1, 2, *group)
        noisy = release_gram(moments, columns, exclusive=[group], eps=Fraction(eps), **options)
        return fit_levels(noisy, places), noisy, places
    rest = 2 + levels
    columns, group = (0, 1, 2, *group, rest), (*group, rest)
    noisy = release_gram(
        moments, columns, exclusive=[group], eps=Fraction(eps), rest_of=group[:-1], **options
    )
    return fit_levels(noisy, group), noisy, list(group)


@pytest.mark.parametrize("noise", ["gaussian", "matrix-laplace", "laplace"])
@pytest.mark.parametrize("intercept", [True, False])
def test_statsmodels_at_huge_eps(noise, intercept):
    z, _ = table(6000, 6)
    moments = accumulate([z], z.shape[1])
    found, _, _ = fit(moments, 6, "1e6", intercept, delta=DELTA, noise=noise)
    x = z[:, :-1] if intercept else z[:, 1:-1]
    ols = sm.OLS(z[:, -1], x).fit()
    np.testing.assert_allclose(found.beta, ols.params, atol=1e-3)
    np.testing.assert_allclose(np.sqrt(np.diag(found.cov)), ols.bse, rtol=2e-3)
    np.testing.assert_allclose(found.cov, ols.cov_params(), atol=1e-3 * np.abs(found.cov).max())
    np.testing.assert_allclose(found.errors[0], ols.bse, rtol=2e-3)
    if intercept:
        assert found.rsquared == pytest.approx(ols.rsquared, abs=1e-3)
    assert found.sigma2 == pytest.approx(ols.scale, rel=2e-3)
    assert found.df_resid == pytest.approx(ols.df_resid, abs=0.1)
    assert not found.ridged
    np.testing.assert_allclose(
        drawn.intervals(found.beta, found.draws, 0.05), ols.conf_int(), atol=0.3 * ols.bse.max()
    )


def releases(number, rows=20_000, levels=150, eps=1, between=0.1, **options):
    """Release and fit fresh tables: errors of the slopes, and which intervals hold the truth."""
    errors, held, told = [], [], []
    for seed in range(number):
        z, truth = table(rows, levels, seed, between, sd=0.05)
        rng = np.random.default_rng(1000 + seed)
        found, _, _ = fit(accumulate([z], z.shape[1]), levels, eps, rng=rng, **options)
        low, high = drawn.intervals(found.beta, found.draws, 0.05).T
        held.append((low <= truth) & (truth <= high))
        errors.append((found.beta - truth)[1:3])
        told.append(np.sqrt(np.diag(found.cov))[1:3])
    return np.array(errors), np.array(held), np.array(told)


@pytest.mark.parametrize("options", [{}, {"noise": "gaussian", "delta": DELTA}])
def test_intervals_hold_the_truth_and_slopes_are_not_drawn_away(options):
    errors, held, told = releases(24, **options)
    assert held[:, 1:3].mean() > 0.85  # 48 intervals of two slopes
    assert held[:, 3:].mean() > 0.9
    assert np.abs(errors.mean(axis=0) / errors.std(axis=0) * np.sqrt(24)).max() < 5
    assert 0.5 < np.sqrt((errors**2).mean()) / told.mean() < 1.6


def test_without_its_correction_slopes_are_drawn_away(monkeypatch):
    """The squares of the noise in 150 levels: what `times` takes out."""
    reduced = module._Released.reduced
    monkeypatch.setattr(
        module._Released, "reduced", lambda self, *cells: reduced(self, *cells[:2], 0)
    )
    errors, held, _ = releases(24)
    far = np.abs(errors.mean(axis=0) / errors.std(axis=0) * np.sqrt(24)).max()
    assert far > 6
    assert held[:, 1:3].mean() < 0.85


def test_the_level_left_out_is_as_well_known_as_the_others():
    """From differences its noise would be that of all sixty."""
    z, _ = table(20_000, 60)
    moments = accumulate([z], z.shape[1])
    rng = np.random.default_rng(0)
    found = [fit(moments, 60, 1, rng=rng)[0].beta[0] for _ in range(40)]
    told = fit(moments, 60, 1, rng=rng)[0].errors[1][0]
    assert 0.6 < np.std(found) / told < 1.5


def test_the_same_release_has_the_same_intervals():
    z, _ = table(3000, 25)
    _, noisy, places = fit(accumulate([z], z.shape[1]), 25, 1)
    one, two = fit_levels(noisy, places), fit_levels(noisy, places)
    assert (one.draws == two.draws).all()


def test_a_covariance_is_the_same_in_parts(monkeypatch):
    z, _ = table(3000, 25)
    found, *_ = fit(accumulate([z], z.shape[1]), 25, 1, rng=np.random.default_rng(2))
    whole = found.cov
    assert not whole.flags.writeable
    monkeypatch.setattr(drawn, "_ROWS_AT_ONCE", 7)
    np.testing.assert_allclose(found.cov, whole, rtol=1e-12, atol=1e-12 * whole.max())


def test_no_matrix_of_all_levels_is_taken_apart(monkeypatch):
    sizes = []
    whole = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda a: sizes.append(a.shape[-1]) or whole(a))
    z, _ = table(5000, 200)
    found, _, _ = fit(accumulate([z], z.shape[1]), 200, 1)
    assert set(sizes) == {2}
    assert found.draws.shape[1] == len(found.beta) == 202


@pytest.mark.parametrize("eps", ["0.001", "0.05"])
@pytest.mark.parametrize("noise", ["gaussian", "matrix-laplace", "laplace"])
def test_noise_alone_gives_numbers(eps, noise):
    z, _ = table(300, 30)
    moments = accumulate([z], z.shape[1])
    found, noisy, places = fit(
        moments, 30, eps, delta=DELTA, noise=noise, rng=np.random.default_rng(1)
    )
    for numbers in (found.beta, found.cov, found.draws, found.errors[0], found.errors[1]):
        assert np.isfinite(numbers).all()
    assert np.linalg.eigvalsh(found.cov)[0] > -1e-8 * np.abs(found.cov).max()
    assert found.ridged
    assert 0 <= found.rsquared <= 1
    assert len(hidden_levels(noisy, places)) > 15


def test_levels_without_rows_are_named():
    z, _ = table(60_000, 30)
    z[z[:, 3] == 1] = 0.0
    _, noisy, places = fit(accumulate([z], z.shape[1]), 30, 1)
    assert hidden_levels(noisy, places) == [3]


def test_user_units_map_everything_alike():
    """Against a dense map."""
    z, _ = table(4000, 25)
    found, _, _ = fit(accumulate([z], z.shape[1]), 25, 1)
    size = len(found.beta)
    factors, first = np.linspace(1, 3, size), np.zeros(size)
    first[:3] = factors[0], -0.7, 0.4
    shift = np.zeros(size)
    shift[0] = 2.0
    t = np.diag(factors)
    t[0] = first
    mapped = found.in_user_units(factors, first, shift, response_width=3.0)
    np.testing.assert_allclose(mapped.beta, t @ found.beta + shift)
    np.testing.assert_allclose(mapped.cov, t @ found.cov @ t.T, atol=1e-12)
    np.testing.assert_allclose(mapped.draws, found.draws @ t.T + shift)
    assert mapped.sigma2 == found.sigma2 * 9
