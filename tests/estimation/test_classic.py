from fractions import Fraction

import numpy as np
import pytest
from oracles.accounts import paid, plan_sums

from dpreg.estimation import sums
from dpreg.estimation.sums import (
    FAMILIES,
    family_estimates,
    mean_estimates,
    sufficient_statistics,
)

SILENT = np.zeros((3, 3))


def exact(x, lo, hi, degree=2):
    """Sums of x as if released without noise."""
    grid = sums.to_grid(np.asarray(x, dtype=float)[:, None], lo, hi)
    (one,) = sums.accumulate([(grid, np.zeros(len(x), dtype=np.int64))], 1, 1)
    count, total, square = one.astype(float)
    squares = np.array([square]) / 2.0**40 if degree == 2 else np.zeros(0)
    return sums.NoisySums(count, np.array([total]) / 2.0**20, squares, SILENT)


def test_without_noise_mean_and_error_are_the_usual_ones():
    x = np.random.default_rng(0).normal(3, 1, 5_000)
    (one,) = mean_estimates(exact(x, -5, 10), [(-5, 10)], 5_000)
    assert one.value == pytest.approx(x.mean(), abs=1e-5)
    assert one.sampling == pytest.approx(x.std() / np.sqrt(5_000), rel=1e-4)
    assert one.privacy == 0


@pytest.mark.parametrize(
    ("family", "bounds", "x", "estimates", "errors"),
    [
        ("gaussian", (-9, 15), [1.0, 2.0, 6.0], [3.0, 14 / 3], [1.2472, 3.8103]),
        ("bernoulli", (0, 1), [1, 0, 0, 1, 0], [0.4], [(20 / 81 / 9) ** 0.5]),
        ("poisson", (0, 30), [3, 1, 5], [3.0], [1.0]),
        ("exponential", (0, 30), [1.0, 3.0], [0.5], [0.5 / 2**0.5]),
    ],
)  # fmt: skip
def test_without_noise_families_are_maximum_likelihood(family, bounds, x, estimates, errors):
    degree = FAMILIES[family].degree
    released = exact(x, *bounds, degree)
    found = family_estimates(family, released, [bounds], None)
    assert len(found) == len(FAMILIES[family].parameters)
    np.testing.assert_allclose([one.value for one in found], estimates, rtol=1e-4)
    np.testing.assert_allclose([one.sampling for one in found], errors, rtol=1e-4)
    told = sufficient_statistics(released, [bounds])
    expected = [len(x), np.sum(x), np.sum(np.square(x))][: degree + 1]
    np.testing.assert_allclose(told, expected, rtol=1e-4)


@pytest.mark.parametrize("family", [*FAMILIES, None])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_stated_noise_is_the_spread_over_draws_of_one_table(family, neighbors):
    rng = np.random.default_rng(1)
    x = {"bernoulli": rng.random(4_000) < 0.3, "poisson": rng.poisson(4, 4_000)}.get(
        family, rng.gamma(8, 0.5, 4_000)
    )
    bounds = (0.0, 1.0) if family == "bernoulli" else (0.0, 16.0)
    degree = FAMILIES[family].degree if family else 2
    coding, fitted = plan_sums(
        1, 1, degree=degree, grouped=False, eps=Fraction(1, 4), delta=Fraction(0),
        neighbors=neighbors, contributions=1,
    )  # fmt: skip
    grid = sums.to_grid(np.asarray(x, dtype=float)[:, None], *bounds)
    exact_sums = sums.accumulate([(grid, np.zeros(4_000, dtype=np.int64))], 1, 1)
    drawn = []
    for _ in range(2_000):
        (one,) = sums.release(exact_sums, coding, fitted, part=paid(fitted, rng))
        scale = [bounds]
        drawn.append(
            family_estimates(family, one, scale, None)
            if family
            else mean_estimates(one, scale, None)
        )
    values = np.array([[e.value for e in line] for line in drawn])
    stated = np.array([[e.privacy for e in line] for line in drawn]).mean(axis=0)
    np.testing.assert_allclose(values.std(axis=0), stated, rtol=0.1)


@pytest.mark.parametrize("family", [*FAMILIES, None])
@pytest.mark.parametrize("count", [-1e6, -1.0, 0.0, 0.4, 3.0, 1e9])
@pytest.mark.parametrize("size", [-1e9, -2.0, 0.0, 2.0, 1e9])
def test_whatever_the_noise_estimates_are_finite_and_possible(family, count, size):
    noise = np.diag([14.0, 8.0, 30.0])
    released = sums.NoisySums(count, np.array([size]), np.array([-size]), noise)
    scale = [(0.0, 1.0)]
    for rows in (None, 0, 10):
        found = (
            family_estimates(family, released, scale, rows)
            if family
            else mean_estimates(released, scale, rows)
        )
        for one in found:
            assert np.isfinite([one.value, one.sampling, one.privacy]).all()
            assert one.sampling >= 0
            assert one.privacy >= 0
        if family is None:
            assert 0 <= found[0].value <= 1


@pytest.mark.parametrize("bounds", [(0.0, 1e-200), (0.0, 2e-323), (0.0, 1e-160), (0.0, 1e300)])
@pytest.mark.parametrize("family", ["poisson", "exponential"])
@pytest.mark.parametrize("size", [-9.0, 2.0, 9.0])
def test_bounds_of_any_size_overflow_nowhere(family, bounds, size):
    released = sums.NoisySums(10.0, np.array([size]), np.array([3.0]), np.diag([14.0, 8.0, 30.0]))
    for one in family_estimates(family, released, [bounds], 10):
        assert np.isfinite([one.value, one.sampling, one.privacy]).all()


def test_a_variance_that_float64_cannot_hold_lies_outside_the_support():
    widest = (FAMILIES["gaussian"].lowest, FAMILIES["gaussian"].highest)
    released = sums.NoisySums(1e9, np.array([1e9]), np.array([1e9]), np.diag([14.0, 8.0, 30.0]))
    for one in family_estimates("gaussian", released, [widest], None):
        assert np.isfinite([one.value, one.sampling, one.privacy]).all()
    assert np.isfinite(sufficient_statistics(released, [widest])).all()
