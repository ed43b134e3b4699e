"""The law of a released look, against draws of the noise it claims."""

from dataclasses import replace

import numpy as np
import pytest

from dpreg.choice import Evidence, priors
from dpreg.staged import coefficients as module
from dpreg.staged import law as law_module
from dpreg.staged import reference
from dpreg.staged.coefficients import coefficients
from dpreg.staged.for_choice import laws_for_choice
from dpreg.staged.law import equation_noise, law
from dpreg.staged.predict import located_rows
from dpreg.staged.released import Coordinates, NoisyLook, Tail, box
from dpreg.staged.tails import NORMAL, Heaviness


def located(p, rng):
    turn = rng.standard_normal((p, p))
    return Coordinates(turn, rng.standard_normal(p), 0.3, rng.standard_normal(p), 0.7, 2.0 * p)


def draw(sd, degrees, scales, rng, size):
    if degrees is None:
        noise = np.triu(rng.standard_normal((size, *sd.shape)) * sd)
        return noise + np.triu(noise, 1).transpose(0, 2, 1)
    g = rng.standard_normal((2, size, degrees, len(scales))) * np.sqrt(scales)
    both = np.einsum("ksij,ksil->ksjl", g, g)
    return both[0] - both[1]


def spreads(degrees, size):
    scales = np.append(np.full(size, 2.0), 0.7)
    if degrees is None:
        sd = 3.0 / np.outer(np.append(np.ones(size), 1.5), np.append(np.ones(size), 1.5))
        sd[np.diag_indices(size + 1)] *= np.sqrt(2)
        return sd, scales
    variances = 2 * degrees * np.outer(scales, scales)
    return np.sqrt(variances + np.diag(np.diag(variances))), scales


@pytest.mark.parametrize("degrees", [None, 6])
def test_the_equations_noise_is_that_of_drawn_matrices(degrees):
    rng = np.random.default_rng(0)
    sd, scales = spreads(degrees, 4)
    theta = np.array([0.3, -1.0, 0.2, 0.6])
    drawn = draw(sd, degrees, scales, rng, 200_000) @ np.append(theta, -1.0)
    claimed = equation_noise(sd**2, theta, np.zeros((4, 4)))
    seen = np.cov(drawn[:, :4], rowvar=False)
    scale = np.sqrt(np.outer(np.diag(claimed), np.diag(claimed)))
    assert np.abs((seen - claimed) / scale).max() < 0.02


def test_without_noise_the_coefficients_are_least_squares(monkeypatch):
    monkeypatch.setattr(module, "_NEAR", 1e12)  # nothing but the look
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (500, 3))
    y = 0.1 + x @ [0.3, -0.2, 0.1] + rng.normal(0, 0.1, 500)
    at = located(3, rng)
    z = np.column_stack([np.ones(500), x @ at.whitening.T + at.offset,
                         (y - at.intercept - x @ at.slopes) / at.width])  # fmt: skip
    look = NoisyLook(z.T @ z, np.full((5, 5), 1e-9), at, None, 500)
    tail = Tail(float(z[:, -1].sum()) / 9, float((z[:, -1] ** 2).sum()) / 81, 1e-9, 1e-9, 9 * 0.7)
    released = law(look, tail=tail)
    fit = coefficients(released)
    full = np.column_stack([np.ones(500), x])
    expected, rss = np.linalg.lstsq(full, y, rcond=None)[:2]
    assert fit.params == pytest.approx(expected, abs=1e-8)
    assert fit.residual == pytest.approx(rss[0] / 500, rel=1e-3)  # theta is a posterior mean
    assert fit.covariance == pytest.approx(fit.residual * np.linalg.inv(full.T @ full), rel=1e-4)
    part, two = coefficients(released, [1, 3]), full[:, [1, 3]]
    left = float(np.linalg.lstsq(two, y, rcond=None)[1][0]) / 500
    assert part.residual == pytest.approx(left, rel=3e-3)
    assert part.covariance == pytest.approx(left * np.linalg.inv(two.T @ two), rel=5e-3)
    assert part.params == pytest.approx(np.linalg.lstsq(two, y, rcond=None)[0], abs=1e-7)


@pytest.mark.parametrize("degrees", [None, 6])
def test_the_law_covers_under_its_own_noise(degrees):
    """Noise of a quarter of the least eigenvalue: intervals of every coefficient hold 95%."""
    rng = np.random.default_rng(2)
    n, runs = 1_000, 2_000
    x = rng.uniform(-1, 1, (n, 3))
    truth = np.array([0.1, 0.3, -0.2, 0.1])
    sd, scales = spreads(degrees, 4)
    drawn = draw(sd, degrees, scales, rng, runs)
    hits = np.zeros(4)
    for noise in drawn:
        z = np.column_stack([np.ones(n), x, truth[0] + x @ truth[1:] + rng.normal(0, 0.2, n)])
        look = NoisyLook(z.T @ z + noise, sd, box(3), degrees, n)
        fit = coefficients(law(look))
        half = reference.quantiles(np.diag(fit.sampling), np.diag(fit.privacy), degrees, 0.05)
        hits += np.abs(fit.params - truth) <= half
    assert np.abs(hits / runs - 0.95).max() < 0.02  # four standard errors


def test_what_the_noise_hides_stays_at_the_fit_that_located_it():
    rng = np.random.default_rng(4)
    sd, at = np.full((5, 5), 1e6), located(3, rng)
    drawn = np.triu(rng.standard_normal((5, 5)) * sd)
    fit = coefficients(law(NoisyLook(drawn + np.triu(drawn, 1).T, sd, at, None, 500)))
    theta = np.linalg.solve(at.transform, fit.params - at.shift)
    spread = np.linalg.solve(at.transform, np.linalg.solve(at.transform, fit.covariance).T)
    assert (np.diag(spread) > theta**2).all()


def test_the_weak_equations_are_d_more_rows():
    """Least squares on the look's equations and d more, theta_j = 0 with variance 1."""
    rng = np.random.default_rng(5)
    n = 50
    at = Coordinates(np.eye(2), np.zeros(2), 0.0, np.zeros(2), 1.0, 100.0)
    z = np.column_stack([np.ones(n), rng.uniform(-1, 1, (n, 2)), rng.uniform(-1, 1, n)])
    released = law(NoisyLook(z.T @ z, np.full((4, 4), 1e-9), at, None, n), tail=None)
    fit = coefficients(released)
    weight = np.linalg.inv(released.covariance)
    k = released.k
    expected = np.linalg.solve(k.T @ weight @ k + np.eye(3), k.T @ weight @ released.g)
    assert fit.params == pytest.approx(expected, rel=1e-5)


def drawn_law(rng):
    """A law whose wide cut cuts nothing more, and whose leverage is anything."""
    z = np.column_stack([np.ones(400), rng.uniform(-1, 1, (400, 2))])
    at = Coordinates(np.eye(1), np.zeros(1), 0.0, np.zeros(1), 0.5, 100.0)
    squares = float((z[:, -1] ** 2).sum())
    tail = Tail(0.0, squares / 9, 1.0, 1.0, 1.5, rng.uniform(1, 2) * squares, 30.0)
    return law(NoisyLook(z.T @ z, np.full((3, 3), 1.0), at, None, 400), tail=tail)


def at_width(width, skew):
    """A law of residuals of two values, whose spread is told to be skewed."""
    x = np.linspace(-1, 1, 4_000)
    at = Coordinates(np.eye(1), np.zeros(1), 0.0, np.zeros(1), width, 100.0)
    e = np.where(np.arange(4_000) % 10 < 7, -0.3, 0.7) / width
    z = np.column_stack([np.ones(4_000), x, np.clip(e, -1, 1)])
    square = float(z[:, -1] @ z[:, -1])
    heavy = Heaviness(0.2, 0.01, skew=skew, skew_noise=0.01)
    tail = Tail(float(z[:, -1].sum()), square, 1.0, 1.0, width, square, 30.0, heavy)
    return coefficients(law(NoisyLook(z.T @ z, np.full((3, 3), 1.0), at, None, 4_000), tail=tail))


def test_a_cut_that_no_residual_reaches_is_allowed_nothing_for_skew():
    widest = at_width(1.0, 0.7)  # of a box whose fit is 0: no residual is larger
    assert widest.errors == pytest.approx(at_width(1.0, 0.0).errors)
    assert (at_width(0.9, 0.7).errors > 1.5 * at_width(0.9, 0.0).errors).any()


def negative_directions(build):
    rng = np.random.default_rng(6)
    return sum(np.linalg.eigvalsh(build(rng).sampling)[0] < -1e-6 for _ in range(200))


def test_the_covariance_has_no_negative_direction():
    assert negative_directions(drawn_law) == 0


def test_a_wide_cut_that_forgets_the_leverage_is_seen(monkeypatch):
    monkeypatch.setattr(law_module, "_wide_variance", lambda beyond, n, _: beyond.full * n)
    assert negative_directions(drawn_law) > 50


def test_no_released_value_raises():
    rng = np.random.default_rng(3)
    sd = np.full((5, 5), 1.0)
    for cells in (np.zeros((5, 5)), -np.eye(5), np.full((5, 5), 1e12), rng.normal(size=(5, 5))):
        look = NoisyLook((cells + cells.T) / 2, sd, located(3, rng), 6, None)
        fit = coefficients(law(look))
        assert np.isfinite(fit.params).all()
        assert np.isfinite(fit.covariance).all()


def rare(rng, n=5_000, few=2):
    """A 0/1 column that `few` rows have, in a look whose noise hides it."""
    x = rng.uniform(-1, 1, (n, 3))
    x[:, 0] = np.arange(n) < few
    y = np.clip(0.1 + x @ [0.8, -0.2, 0.1] + rng.normal(0, 0.1, n), -1, 1)
    sd = np.full((5, 5), 6.0)
    noise = np.triu(rng.standard_normal((5, 5)) * sd)
    z = np.column_stack([np.ones(n), x, y])
    return law(NoisyLook(z.T @ z + noise + np.triu(noise, 1).T, sd, box(3), None, n))


def test_a_level_that_is_not_seen_is_weak_and_harms_no_other_column():
    rng = np.random.default_rng(12)
    truth, hits, weak, widest = np.array([0.1, 0.8, -0.2, 0.1]), np.zeros(4), np.zeros((2, 4)), []
    for _ in range(200):
        found = rare(rng)
        fit, loose = coefficients(found, levels=[1]), coefficients(found)
        weak += [fit.unresolved > 0.2, loose.unresolved > 0.2]
        assert (fit.errors <= loose.errors * (1 + 1e-9)).all()
        assert 0.3 < fit.errors[1] < 1.2
        assert fit.errors[2:].max() < 0.03
        hits += np.abs(fit.params - truth) <= 1.96 * fit.errors
        widest.append(loose.errors[2] / fit.errors[2])
    assert (hits / 200 > 0.9).all()
    assert weak[0, 1] > 190
    assert (weak[0, 2:] < 0.8 * weak[1, 2:]).all()
    assert max(widest) > 10  # what the level's direction does to others where it has no bound


def test_a_level_that_is_seen_is_left_alone():
    rng = np.random.default_rng(13)
    found = rare(rng, few=2_500)
    free, told = coefficients(found), coefficients(found, levels=[1])
    assert told.params == pytest.approx(free.params, abs=0.1 * free.errors.min())
    assert told.errors == pytest.approx(free.errors, rel=1e-3)


def by_a_product(rng, power, n=4_000, p=4):
    """A look with hardly any noise, R opened by 1.25, located off the truth by a tenth."""
    x = rng.standard_normal((n, p))
    y = np.full(p, 0.1) @ x.T + rng.standard_normal(n)
    at = Coordinates(np.eye(p), np.zeros(p), 0.0, np.zeros(p), 1.7, 1.25**2 * (p + 1))
    z, sd = located_rows(x, y, at, 1.5, power), np.full((p + 2, p + 2), 1e-3)
    wide = located_rows(x, y, replace(at, width=6.0), power=power)[:, -1]
    spread = float(np.square(z[:, :-1]).sum(axis=1) @ z[:, -1] ** 2)
    tail = Tail(float(z[:, 0] @ wide), float(wide @ wide), 1e-3, 1e-3, 6.0, spread, 1e-3, NORMAL)
    released = law(NoisyLook(z.T @ z, sd, at, None, n, 1.5, power), n, tail)
    return coefficients(released), float((z[:, 0] ** 2).mean())


@pytest.mark.parametrize("power", [1.0, -0.5])
def test_a_stretched_look_finds_the_line_and_says_how_it_errs(power):
    """With -1/2 rows far out count more in its equations than in the released moments."""
    rng = np.random.default_rng(8)
    fits, weights = zip(*(by_a_product(rng, power) for _ in range(300)), strict=True)
    assert 0.9 < np.mean(weights) < 0.98  # rows are shortened
    found = np.array([fit.params[1:] for fit in fits])
    own = np.sqrt(np.mean([np.diag(fit.covariance)[1:] for fit in fits]))
    assert np.abs(found.mean(axis=0) - 0.1).mean() < 0.05 * 0.1
    assert found.std(axis=0).mean() == pytest.approx(own, rel=0.06)
    assert np.mean([fit.residual for fit in fits]) == pytest.approx(1.0, abs=0.03)


def test_a_choice_reads_the_law_in_the_coordinates_of_the_look_and_over_its_own_priors():
    rng = np.random.default_rng(31)
    x, beta = rng.uniform(-1, 1, (4_000, 3)), np.array([0.1, 0.4, 0.0, -0.2])
    y = beta[0] + x @ beta[1:] + 0.3 * rng.standard_normal(4_000)
    at = replace(located(3, rng), intercept=0.05, slopes=np.array([0.3, 0.1, -0.1]))
    z = located_rows(x, y, at)
    sd = np.full((5, 5), 60.0)
    look = NoisyLook(z.T @ z, sd, at, None, 4_000)
    laws = laws_for_choice(look, 4_000.0, None)
    assert tuple(one.prior for one in laws) == priors(4)
    for one in laws:
        own = law(look, 4_000.0, None, one.prior)
        np.testing.assert_allclose(one.covariance, own.covariance)
        np.testing.assert_allclose(one.equations @ np.linalg.inv(one.transform), own.k, atol=1e-6)
        np.testing.assert_allclose(one.left + own.k @ one.start, own.g, atol=1e-6)
    assert np.trace(laws[1].covariance) > 1.1 * np.trace(laws[0].covariance)
    evidence = Evidence(laws[0])
    assert evidence.p([1]) < 1e-6
    assert evidence.p([2]) > 1e-3
