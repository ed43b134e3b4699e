"""One law for intervals and p-values of estimates with draws, also where a fit is ridged."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.accounts import release_gram
from oracles.gram import conf_int
from scipy.stats import laplace, norm

from dpreg.estimation import inference as drawn
from dpreg.estimation.inference import fit_gram
from dpreg.moments import accumulate


def few_rows(rng):
    """Rows (1, x, y) of three columns, too few for the noise of a small eps."""
    rows = int(rng.integers(30, 300))
    x = rng.uniform(-1, 1, (rows, 3))
    y = 0.1 + x @ [0.4, 0.1, 0.0] + rng.normal(0, 0.1, rows)
    return np.column_stack([np.ones(rows), x, np.clip(y, -1, 1)])


LEVELS = (0.0001, 0.001, 0.009, 0.01, 0.05, 0.1, 0.5, 0.9)


@given(
    draws=st.lists(st.integers(-4, 4), min_size=1, max_size=30),
    estimate=st.integers(-6, 6),
    value=st.integers(-6, 6),
    alpha=st.floats(0.001, 0.999),
)
def test_a_value_lies_in_the_interval_where_its_p_value_is_alpha_or_more(
    draws, estimate, value, alpha
):
    column = np.array(draws, dtype=float)[:, None]
    at, wanted = np.array([float(estimate)]), np.array([float(value)])
    ((low, high),) = drawn.intervals(at, column, alpha)
    (p,) = drawn.pvalues(at, column, wanted)
    assert low <= estimate <= high
    if p > alpha + 1e-9:
        assert low - 1e-9 <= value <= high + 1e-9
    if p < alpha - 1e-9:
        assert not low + 1e-9 < value < high - 1e-9


def test_intervals_are_never_inside_the_quantiles():
    draws = np.random.default_rng(0).normal(size=(2000, 3))
    for alpha in (0.01, 0.05, 0.5):
        low, high = np.quantile(draws, [alpha / 2, 1 - alpha / 2], axis=0, method="weibull")
        found = drawn.intervals(np.array([0.0, -9.0, 9.0]), draws, alpha)
        np.testing.assert_allclose(found[:, 0], [low[0], -9.0, low[2]], rtol=1e-12)
        np.testing.assert_allclose(found[:, 1], [high[0], high[1], 9.0], rtol=1e-12)


@given(draws=st.lists(st.integers(-9, 9), min_size=1, max_size=30), estimate=st.integers(-12, 12))
def test_draws_of_both_sides_reach_as_far_below_the_estimate_as_above(draws, estimate):
    given = np.array(draws, dtype=float)
    there = np.sort(given)
    found = drawn.both_sides(float(estimate), given)
    least_first = np.sort(found)
    for place, (low, high) in enumerate(zip(there, there[::-1], strict=True)):
        if place < len(there) // 2:  # the pair of Q(p) and Q(1 - p)
            reach = max(high - estimate, estimate - low)
            assert estimate - least_first[place] == reach == least_first[-1 - place] - estimate
    if len(there) % 2:
        assert least_first[len(there) // 2] == there[len(there) // 2]
    assert (np.diff(found[np.argsort(given)]) >= 0).all()
    at = np.array([float(estimate)])
    for alpha in (0.01, 0.1, 0.5, 0.9):
        if not 1 <= alpha / 2 * (len(given) + 1) <= len(given) // 2:
            continue  # no quantile, but the law's tail or a number between the two in the middle
        ((low, high),) = drawn.intervals(at, given[:, None], alpha)
        ((lower, higher),) = drawn.intervals(at, found[:, None], alpha)
        assert lower <= low + 1e-9
        assert high - 1e-9 <= higher


@pytest.mark.parametrize("law", [norm, laplace])
def test_far_tails_err_on_the_side_of_caution(law):
    """Draws at exact quantiles; a tail of a normal or Laplace law is at most the one given."""
    column = law.ppf(np.arange(1, 2000) / 2000)[:, None]
    for z in (3.0, 4.0, 6.0, 9.0):
        far = law.isf(norm.sf(z))
        (p,) = drawn.pvalues(np.zeros(1), column, np.array([far]))
        assert 2 * norm.sf(z) <= p * (1 + 1e-9)
        assert p < 0.01
    (near,) = drawn.pvalues(np.zeros(1), column, np.array([law.isf(0.02)]))
    assert near == pytest.approx(0.04, rel=1e-3)


@pytest.mark.parametrize("fits", [500, pytest.param(2_000, marks=pytest.mark.audit)])
def test_ridged_fits_never_contradict_themselves(fits):
    """The estimate lies in its interval, and 0 lies outside exactly where p is below alpha."""
    rng = np.random.default_rng(7)
    ridged, outside = 0, 0
    for _ in range(fits):
        z = few_rows(rng)
        eps = Fraction(str(rng.choice(["0.05", "0.2", "0.5"])))
        noisy = release_gram(accumulate([z], 5), range(4), eps=eps, rng=rng)
        fit = fit_gram(noisy, draws=199)
        ridged += fit.ridged
        zero = np.zeros(len(fit.beta))
        p = drawn.pvalues(fit.beta, fit.draws, zero)
        at_estimate = drawn.pvalues(fit.beta, fit.draws, fit.beta)
        assert (at_estimate == 1).all()
        low, high = np.quantile(fit.draws, [0.025, 0.975], axis=0, method="weibull")
        outside += int(((fit.beta < low) | (fit.beta > high)).any())
        for alpha in LEVELS:
            ends = conf_int(fit, alpha)
            assert (ends[:, 0] <= fit.beta).all()
            assert (fit.beta <= ends[:, 1]).all()
            holds = (ends[:, 0] <= 0) & (ends[:, 1] >= 0)
            near = np.abs(p - alpha) < 1e-9
            assert (holds == (p >= alpha))[~near].all()
    assert ridged > 0.95 * fits
    assert outside > 0.0075 * fits, "the quantiles alone would have left estimates outside"
