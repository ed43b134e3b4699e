"""The reference law against draws, and intervals against p-values."""

import numpy as np
import pytest
from scipy.stats import norm

from dpreg.results import inference as reference


def test_gaussian_noise_gives_the_normal_law():
    one = np.array([2.0])
    assert reference.quantiles(one, one, None, 0.05) == pytest.approx(2 * norm.isf(0.025))
    assert reference.pvalues(np.array([-3.0]), one, one, None) == pytest.approx(2 * norm.sf(1.5))


@pytest.mark.parametrize("degrees", [5, 12])
def test_a_coefficient_under_matrix_laplace_noise_has_the_mixture_law(degrees):
    """r'N t for r uncorrelated with t, plus a normal part, drawn directly."""
    rng = np.random.default_rng(4)
    number = 400_000
    x = rng.standard_normal((2, number, degrees))
    y = rng.standard_normal((2, number, degrees))
    signed = (x * y).sum(axis=2)
    error = signed[0] - signed[1] + rng.standard_normal(number) * 2.0
    privacy = np.array([2.0 * degrees])
    for level in (0.2, 0.05, 0.01, 0.001):
        half = reference.quantiles(np.array([4.0]), privacy, degrees, level)[0]
        seen = float((np.abs(error) > half).mean())
        assert abs(seen - level) < 4.5 * np.sqrt(level / number)


@pytest.mark.parametrize("degrees", [None, 5, 40])
def test_an_interval_ends_where_the_p_value_is_alpha(degrees):
    sampling, privacy = np.array([0.0, 1.0, 1e-12, 3.0]), np.array([2.0, 1e-9, 1.0, 3.0])
    for level in (0.5, 0.05, 1e-4):
        half = reference.quantiles(sampling, privacy, degrees, level)
        assert reference.pvalues(half, sampling, privacy, degrees) == pytest.approx(level, rel=1e-6)


def test_midpoints_are_accurate_in_the_tail():
    """Against the same mean over 100,000 midpoints."""
    from scipy.special import chdtri

    grid = chdtri(10.0, 1 - (np.arange(100_000) + 0.5) / 100_000) / 10.0
    for at, tolerance in ((2.0, 1e-3), (5.0, 0.1)):
        dense = float(2 * norm.sf(at / np.sqrt(grid)).mean())
        found = reference.pvalues(np.array([at]), np.zeros(1), np.ones(1), 5)[0]
        assert found == pytest.approx(dense, rel=tolerance)
