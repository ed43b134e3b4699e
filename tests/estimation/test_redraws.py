"""Draws of the truth in wide models, several from one matrix, against one matrix a draw."""

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import kstest

from dpreg.estimation import inference as redraws
from dpreg.estimation.gram import NoisyGram
from dpreg.estimation.inference import draw_truth
from dpreg.privacy.proofs import layout

ALPHA = 1e-6
SIZE = 6
ROWS = 1000.0


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setattr(redraws, "_FULL_DRAWS_TO", 0)


def release(noise, mechanism="matrix-laplace", groups=(), columns=range(SIZE)):
    """A made-up release whose noise has a standard deviation of `noise` off the diagonal."""
    triangle = layout(columns, groups)
    size = len(triangle.columns)
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(int(ROWS)), rng.uniform(-1, 1, (int(ROWS), size - 1))])
    y = x @ np.array([1.5, *np.linspace(0.4, 0.1, size - 1)]) + rng.normal(size=len(x)) / 4
    rows = np.column_stack([x, y])
    sds = np.full((size + 1, size + 1), noise)
    sds[size] = sds[:, size] = noise / 2
    sds[np.diag_indices(size + 1)] *= np.sqrt(2)
    return NoisyGram(
        cells=rows.T @ rows,
        noise_sd=sds,
        count=ROWS,
        count_sd=noise,
        triangle=triangle,
        mechanism=mechanism,
    )


def one_a_draw(monkeypatch, *arguments, **options):
    with monkeypatch.context() as patch:
        patch.setattr(redraws, "_turns", lambda noisy: False)
        return draw_truth(*arguments, **options)


def p_value(monkeypatch, noise, seed=0):
    """The least p-value of coefficients and a sum of them: both ways draw the same law."""
    noisy, least, rng = release(noise), noise / 4, np.random.default_rng(seed)
    drawn = draw_truth(noisy, least, 2.0, 20_000, rng)
    alone = one_a_draw(monkeypatch, noisy, least, 2.0, 2000, rng)
    found = []
    for some, others in zip(drawn[:2], alone[:2], strict=True):
        some = some[::10]  # those from one matrix are not quite independent
        sums = (some.sum(axis=1), others.sum(axis=1))
        found += [kstest(*pair).pvalue for pair in [*zip(some.T, others.T, strict=True), sums]]
    return min(found)


@pytest.mark.parametrize("noise", [5.0, 150.0, 1e4])
def test_both_ways_draw_the_same_law(monkeypatch, noise):
    assert p_value(monkeypatch, noise) > ALPHA


@pytest.mark.parametrize("noise", [5.0, 150.0, 1e4])
def test_all_draws_from_one_matrix_have_the_same_law(noise):
    drawn, errors, _ = draw_truth(release(noise), noise / 4, 2.0, 20_000, np.random.default_rng(1))
    for numbers in (drawn, errors):
        places = [numbers[place::10] for place in (0, 3, 9)]
        for other in places[1:]:
            found = [kstest(*p).pvalue for p in zip(places[0].T, other.T, strict=True)]
            assert min(found) > ALPHA


@pytest.mark.parametrize("share", [0.0, 2.0])
def test_a_diagonal_of_another_size_is_caught(monkeypatch, share):
    monkeypatch.setattr(redraws, "ndtri", lambda shares: share * ndtri(shares))
    assert p_value(monkeypatch, 5.0) < ALPHA


def test_the_mean_of_the_inverses_is_the_same(monkeypatch):
    for noise in (5.0, 150.0, 1e4):
        noisy, rng = release(noise), np.random.default_rng(5)
        monkeypatch.setattr(redraws, "_INVERSES", 1999)
        *_, turned = draw_truth(noisy, noise / 4, 2.0, 1999, rng)
        *_, alone = one_a_draw(monkeypatch, noisy, noise / 4, 2.0, 1999, rng)
        scale = np.sqrt(np.outer(np.diag(alone), np.diag(alone)))
        assert np.abs((turned - alone) / scale).max() < 0.15
        assert np.linalg.eigvalsh(turned)[0] > 0
    *_, missing = draw_truth(noisy, 1.0, 2.0, 16, rng, covariance=False)
    assert missing is None


def spread_of_means(runs=150):
    """How much the mean of the intercept's 200 draws varies, as a ratio to independent draws'."""
    noisy = release(5.0)
    means, variances = [], []
    for seed in range(runs):
        drawn, *_ = draw_truth(noisy, 1.0, 0.1, 200, np.random.default_rng(seed))
        means.append(drawn.mean(axis=0))
        variances.append(drawn.var(axis=0))
    return (np.var(means, axis=0) / np.mean(variances, axis=0) * 200).max()


def test_strata_make_up_for_draws_from_one_matrix():
    assert spread_of_means() < 2


def test_a_mutant_without_strata_is_caught(monkeypatch):
    def unordered(shares):
        return redraws.np.sqrt(1) * np.random.default_rng(int(shares.sum() * 1e9)).normal(
            size=shares.shape
        )

    monkeypatch.setattr(redraws, "ndtri", unordered)
    assert spread_of_means() > 2.5


def test_only_noise_that_looks_alike_from_any_direction_goes_this_way():
    assert redraws._turns(release(1.0))
    assert redraws._turns(release(1.0, columns=range(1, SIZE)))
    assert redraws._turns(release(1.0, "gaussian"))
    assert not redraws._turns(release(1.0, "laplace"))
    assert not redraws._turns(release(1.0, groups=[(2, 3)]))
    assert not redraws._turns(release(1.0, groups=[(2, 3)], columns=range(1, SIZE)))


def test_gaussian_noise_is_drawn_with_no_less_than_it_has(monkeypatch):
    """Its diagonal has once the variance: what is drawn spreads a little more, never less."""
    noisy = release(20.0, "gaussian")
    np.fill_diagonal(noisy.noise_sd, noisy.noise_sd[0, 1])
    rng = np.random.default_rng(2)
    turned, *_ = draw_truth(noisy, 5.0, 2.0, 40_000, rng)
    alone, *_ = one_a_draw(monkeypatch, noisy, 5.0, 2.0, 8000, rng)
    ratio = turned.var(axis=0) / alone.var(axis=0)
    assert (ratio > 0.93).all()
    assert (ratio < 2).all()
