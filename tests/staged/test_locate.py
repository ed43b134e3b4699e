"""Locating a look: where the noise is small, statistics of the rows; where it is large, bounded."""

import numpy as np
import pytest

from dpreg.staged.locate import centred, locate, noise_unit
from dpreg.staged.predict import located_rows
from dpreg.staged.released import NoisyLook, box


def table(n=4_000, p=3, seed=0):
    rng = np.random.default_rng(seed)
    x = np.clip(rng.standard_normal((n, p)) @ np.triu(np.full((p, p), 0.2)) + 0.1, -1, 1)
    y = np.clip(0.2 + x @ np.linspace(0.3, -0.1, p) + rng.normal(0, 0.05, n), -1, 1)
    return x, y


def seen(x, y, at, sd):
    z = located_rows(x, y, at)
    return NoisyLook(z.T @ z, np.full((z.shape[1],) * 2, sd), at, None, len(x))


def test_without_noise_rows_are_whitened_and_the_response_is_a_residual():
    x, y = table()
    found = locate(seen(x, y, box(3), 1e-9))
    at = found.coordinates
    u = x @ at.whitening.T + at.offset
    assert u.mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-6)
    assert np.cov(u.T, bias=True) == pytest.approx(np.eye(3), abs=1e-4)
    full = np.column_stack([np.ones(len(x)), x])
    beta, rss = np.linalg.lstsq(full, y, rcond=None)[:2]
    assert at.shift == pytest.approx(beta, abs=1e-6)
    assert found.residual == pytest.approx(rss[0] / len(x), rel=1e-3)
    assert at.width == pytest.approx(1.7 * np.sqrt(rss[0] / len(x)), rel=1e-3)
    assert at.squared_radius == pytest.approx(4.0, rel=1e-3)


def test_locating_twice_composes_to_the_map_of_the_box():
    """A look at rows in the first coordinates finds the same fit again, written for the box."""
    x, y = table()
    first = locate(seen(x, y, box(3), 20.0))
    again = locate(seen(x, y, first.coordinates, 1e-9))
    at = again.coordinates
    z = located_rows(x, y, first.coordinates)
    inner = centred(seen(x, y, first.coordinates, 1e-9))
    weighted = z[:, 1:4] - z[:, :1] * inner.means[:3]
    u = z[:, :1] * (x @ at.whitening.T + at.offset)
    whiten = np.linalg.lstsq(weighted, u, rcond=None)[0]
    assert weighted @ whiten == pytest.approx(u, abs=1e-8)
    assert (u.T @ u) / inner.count == pytest.approx(np.eye(3), abs=1e-4)


def test_the_noise_of_centred_moments_is_that_of_drawn_ones():
    x, y = table(400)
    rng = np.random.default_rng(5)
    exact = seen(x, y, box(3), 0.5)
    drawn = []
    for _ in range(4_000):
        noise = np.triu(rng.standard_normal((5, 5)) * 0.5)
        cells = exact.cells + noise + np.triu(noise, 1).T
        look = NoisyLook(cells, exact.noise_sd, exact.coordinates, None, None)
        drawn.append(centred(look).moments)
    claimed = np.sqrt(centred(exact).variances)
    off = ~np.eye(4, dtype=bool)
    assert np.std(drawn, axis=0)[off] == pytest.approx(claimed[off], rel=0.12)
    assert (np.std(drawn, axis=0) < 2.1 * claimed).all()  # a mean counts twice in a variance


@pytest.mark.parametrize("sd", [1.0, 1e3, 1e6])
def test_noise_widens_the_cut_and_never_breaks_a_rule(sd):
    x, y = table(500)
    rng = np.random.default_rng(6)
    exact = seen(x, y, box(3), sd)
    quiet = locate(seen(x, y, box(3), 1e-9))
    for _ in range(50):
        noise = np.triu(rng.standard_normal((5, 5)) * sd)
        cells = exact.cells + noise + np.triu(noise, 1).T
        found = locate(NoisyLook(cells, exact.noise_sd, exact.coordinates, None, 500))
        at = found.coordinates
        assert np.isfinite(at.transform).all()
        assert 1.0 <= at.squared_radius <= 4.0
        assert found.residual > 0.5 * quiet.residual
        assert np.linalg.norm(at.whitening, 2) <= 1 / np.sqrt(0.5 * found.noise_norm) * (1 + 1e-9)


def test_the_noise_unit_is_that_of_balanced_looks():
    """sd of a cell of sum c u e at R = 1, gamma = 1 or alpha = 1/2, from the noises' own rules."""
    from fractions import Fraction

    from dpreg.privacy.look_noise import located_gaussian, located_matrix_laplace

    for neighbors in ("replace-one", "add-remove"):
        gaussian = located_gaussian(5, Fraction(1), Fraction(1, 4), neighbors, 1)
        assert gaussian.sd[0, 4] == pytest.approx(noise_unit(0.5, neighbors, None), rel=1e-6)
        laplace = located_matrix_laplace(
            5, Fraction(1, 2), Fraction(1, 2), neighbors, contributions=1
        )
        assert laplace.sd[0, 4] == pytest.approx(noise_unit(0.5, neighbors, 6), rel=1e-6)


def rare(n=20_000, share=0.01, seed=0):
    rng = np.random.default_rng(seed)
    x = np.clip(rng.standard_normal((n, 3)) / 4, -1, 1)
    x[:, 1] = np.where(rng.random(n) < share, 1.0, -1.0)
    return x, 0.3 * x[:, 0] + 0.1 * x[:, 1] + rng.normal(0, 0.1, n)


@pytest.mark.parametrize("factor", [False, True])
def test_rows_of_a_rare_level_stay_near_and_others_where_they_were(factor):
    x, y = rare()
    if factor:
        x[:, 1] = (x[:, 1] + 1) / 2
    first = locate(seen(x, y, box(3), 1e-6), levels=[1] if factor else [])
    assert (first.lengths > 0).tolist() == [False, True, False]
    at = first.coordinates
    u = x @ at.whitening.T + at.offset
    square = 1 + (u**2).sum(axis=1)
    level = x[:, 1] == 1
    assert square[level].mean() < 2.0 * 4 + 4  # whitened they were at about 1/share = 100
    assert (u**2).sum(axis=1).mean() + 1 == pytest.approx(at.squared_radius, rel=1e-6)
    assert np.cov(u.T, bias=True) == pytest.approx(first.spread, abs=1e-6)
    along = np.abs(np.linalg.eigvalsh(np.cov(u.T, bias=True)))
    assert along[1:] == pytest.approx([1, 1], rel=1e-4)
    again = locate(seen(x, y, at, 1e-6), first)
    v = x @ again.coordinates.whitening.T + again.coordinates.offset
    assert (v[level] ** 2).sum(axis=1).mean() < 2.0 * 4 + 4


def test_columns_of_many_values_are_whitened_as_before():
    x, y = table()
    first = locate(seen(x, y, box(3), 20.0))
    assert not first.lengths.any()
