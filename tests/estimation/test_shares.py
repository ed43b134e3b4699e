"""Intervals of shares hold where few rows are in a bin, or nearly all."""

import numpy as np
import pytest
from scipy.stats import binom

from dpreg.estimation.sums import centred_shares, share_errors
from dpreg.results.inference import share_intervals


def test_two_rows_of_each_kind_are_added():
    shares = np.array([0.0, 0.5, 1.0, -0.2])
    np.testing.assert_allclose(centred_shares(shares, 16.0), [0.1, 0.5, 0.9, 0.1])
    np.testing.assert_allclose(share_errors(shares, 16.0) ** 2 * 20, [0.09, 0.25, 0.09, 0.09])


@pytest.mark.parametrize("rows", [30, 1000, 100_000])
@pytest.mark.parametrize("expected", [0.1, 0.5, 1, 2, 5, 10])
def test_exact_coverage_without_noise(rows, expected):
    """Of every count, by its own probability. The plain interval covers .42 of two rows in 1000."""
    share, counts = expected / rows, np.arange(rows + 1)
    shares, total = counts / rows, np.full(rows + 1, float(rows))
    limits = share_intervals(shares, total, share_errors(shares, total), 0.05)
    assert ((limits >= 0) & (limits <= 1)).all()
    inside = (limits[:, 0] <= share) & (share <= limits[:, 1])
    assert binom.pmf(counts, rows, share)[inside].sum() > 0.93
