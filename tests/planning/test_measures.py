"""Closed forms of overlap, power and decisions against draws."""

import numpy as np
import pytest

from benchmarks.replication.measures import overlap
from dpreg.planning.chances import measures
from dpreg.results.inference import mixing, quantiles

BETA = np.array([0.0, 1.0, 2.0, 3.0, -2.5])
EXACT = np.array([1.0, 1.0, 1.0, 0.5, 4.0])
SAMPLING = EXACT * np.array([1.0, 1.05, 1.1, 1.2, 1.0])
PRIVACY = np.array([0.1, 0.5, 1.0, 4.0, 2.0])


@pytest.mark.parametrize("degrees", [None, 6])
def test_they_are_what_draws_give(degrees):
    found = measures(BETA, EXACT, SAMPLING, PRIVACY, degrees)
    rng, runs = np.random.default_rng(2), 100_000
    first = BETA + rng.standard_normal((runs, 5)) * np.sqrt(EXACT)
    mixed = np.ones((runs, 5)) if degrees is None else rng.choice(mixing(degrees), (runs, 5))
    second = first + rng.standard_normal((runs, 5)) * np.sqrt(SAMPLING - EXACT + PRIVACY * mixed)
    half = 1.959964 * np.sqrt(EXACT)
    private = quantiles(SAMPLING, PRIVACY, degrees, 0.05)
    np.testing.assert_allclose(found["width"], private / half, rtol=1e-6)
    for j in range(5):
        ends = [
            np.column_stack([b[:, j] - h[j], b[:, j] + h[j]])
            for b, h in ((first, half), (second, private))
        ]
        assert found["overlap"][j] == pytest.approx(overlap(*ends).mean(), abs=0.003)
    both = [np.abs(b) > h for b, h in ((first, half), (second, private))]
    np.testing.assert_allclose(found["least squares power"], both[0].mean(axis=0), atol=0.006)
    np.testing.assert_allclose(found["power"], both[1].mean(axis=0), atol=0.006)
    same = (both[0] == both[1]).mean(axis=0)
    np.testing.assert_allclose(found["same decision"], same, atol=0.006)


def test_without_noise_both_tables_are_one():
    found = measures(BETA, EXACT, EXACT, np.zeros(5), None)
    for values in (found["width"], found["overlap"], found["same decision"]):
        np.testing.assert_allclose(values, 1.0, atol=0.005)
    np.testing.assert_allclose(found["power"], found["least squares power"])
