"""A term's price is the stated quantile of what a useless term gains."""

import numpy as np
import pytest
from scipy.stats import chi2

from dpreg.staged.choice.prices import gain_tail, prices, term_price


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("level", [0.1, 0.01, 0.002])
def test_gaussian_prices_are_quantiles_of_chi2(width, level):
    assert term_price(width, level, None) == pytest.approx(chi2.isf(level, width))


@pytest.mark.parametrize("degrees", [3, 11, 52, 400])
@pytest.mark.parametrize("width", [1, 4])
def test_matrix_laplace_tail_agrees_with_simulation(width, degrees, rng):
    level = 0.01
    draws = 400_000
    gains = rng.chisquare(width, draws) * rng.chisquare(2 * degrees, draws) / (2 * degrees)
    share = (gains > term_price(width, level, degrees)).mean()
    # Four standard errors of a share of .01 among the draws.
    assert share == pytest.approx(level, abs=4 * np.sqrt(level / draws))


def test_one_column_tail_agrees_with_its_closed_form():
    # chi2_1 times chi2_4 / 4, nu = 2, is the square of a Laplace-like variable whose tail is
    # known: N(0, G/2)^2 with G a Gamma(2) has P(> x) = (1 + r/2) exp(-r), r = sqrt(4 x).
    for x in (0.5, 3.0, 20.0):
        r = np.sqrt(4 * x)
        assert gain_tail(x, 1, 2) == pytest.approx((1 + r / 2) * np.exp(-r), rel=1e-9)


def test_many_degrees_are_gaussian():
    assert term_price(2, 0.01, 100_000) == pytest.approx(term_price(2, 0.01, None), rel=1e-3)


def test_the_level_is_shared_among_the_terms():
    # A mutant that prices every term at alpha fails here.
    found = prices([1, 1, 3, 1], 0.1, None)
    assert found == pytest.approx(chi2.isf(0.1 / 4, [1, 1, 3, 1]))
    assert prices([], 0.1, None).shape == (0,)
    assert prices([1], 1.0, 7) == pytest.approx([0.0])


def test_useless_terms_are_found_at_the_stated_rate(rng):
    q, runs = 10, 40_000
    gains = rng.chisquare(1, (runs, q))
    found = (gains > prices([1] * q, 0.1, None)).sum(axis=1).mean()
    assert found == pytest.approx(0.1, abs=4 * np.sqrt(0.1 / runs))
