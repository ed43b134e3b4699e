from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.accounts import paid, plan_sums

from dpreg.errors import ArgumentError
from dpreg.estimation import sums
from dpreg.estimation.sums import GRID_ONE

HALF = Fraction(1, 2)


def planned(**changes):
    fields = {
        "degree": 2,
        "grouped": False,
        "eps": Fraction(1),
        "delta": Fraction(0),
        "neighbors": "replace-one",
        "contributions": 1,
    }
    return plan_sums(changes.pop("columns", 1), changes.pop("groups", 1), **(fields | changes))


def test_sums_are_exact_in_any_order_and_chunks():
    rng = np.random.default_rng(0)
    grid = sums.to_grid(rng.normal(size=(1_000, 2)), -2.0, 2.0)
    grid[::7, 1] = np.nan
    labels = rng.integers(-1, 3, 1_000)
    whole = sums.accumulate([(grid, labels)], 2, 3)
    order = rng.permutation(1_000)
    parts = np.array_split(order, 13)
    assert (sums.accumulate([(grid[i], labels[i]) for i in parts], 2, 3) == whole).all()
    kept = (labels == 1) & ~np.isnan(grid).any(axis=1)
    assert whole[1, 0] == kept.sum()
    assert whole[1, 3] == sum(int(u) ** 2 for u in grid[kept, 0])


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=20))
def test_every_float_has_a_place_on_the_grid(values):
    grid = sums.to_grid(np.array(values), -1.5, 4.0)
    there = ~np.isnan(values)
    assert (np.abs(grid[there]) <= GRID_ONE).all()
    assert (grid[there] == np.rint(grid[there])).all()
    assert np.isnan(grid[~there]).all()


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_the_stated_covariance_is_the_noise(neighbors, grouped, delta):
    noise = "laplace" if delta == "0" else "gaussian"
    coding, fitted = planned(
        columns=2, neighbors=neighbors, grouped=grouped, delta=Fraction(delta), noise=noise
    )
    rng = np.random.default_rng(1)
    exact = [0] * 5
    if grouped:  # one release of many groups, which its bound covers together
        drawn = sums.release([exact] * 4_000, coding, fitted, part=paid(fitted, rng))
    else:
        drawn = [
            one
            for _ in range(4_000)
            for one in sums.release([exact], coding, fitted, part=paid(fitted, rng))
        ]
    triples = np.array([(one.count, one.sums[0], one.squares[0]) for one in drawn])
    stated = drawn[0].noise
    scale = np.sqrt(np.outer(np.diag(stated), np.diag(stated)))
    np.testing.assert_allclose(np.cov(triples.T) / scale, stated / scale, atol=0.12)


def test_noise_of_the_sum_as_the_docstring_says():
    """Variances 8, 4 and 16 in units of (k/eps)^2; squares and count do not change them."""
    for (neighbors, grouped), variance in {
        ("replace-one", False): 8,
        ("add-remove", False): 4,
        ("replace-one", True): 16,
        ("add-remove", True): 4,
    }.items():
        for degree in (1, 2):
            coding, fitted = planned(
                neighbors=neighbors, grouped=grouped, degree=degree, contributions=3, eps=HALF
            )
            (one,) = sums.release([[0] * 3], coding, fitted, part=paid(fitted))
            assert one.noise[1, 1] == pytest.approx(variance * 36)


def test_gaussian_noise_is_taken_where_it_is_less_and_delta_is_left_otherwise():
    assert planned(columns=1, delta=Fraction(1, 10**6))[1].mechanism == "laplace"
    _, many = planned(columns=30, delta=Fraction(1, 10**6))
    assert (many.mechanism, many.cost.delta) == ("gaussian", Fraction(1, 10**6))
    assert planned(delta=Fraction(1, 10**6))[1].cost.delta == 0
    with pytest.raises(ArgumentError, match="delta"):
        planned(noise="gaussian")


def test_private_noise_is_drawn_without_a_seed():
    coding, fitted = planned()
    empty = [[0] * 3]
    draws = {sums.release(empty, coding, fitted, part=paid(fitted))[0].count for _ in range(5)}
    assert len(draws) == 5


def test_squares_of_more_rows_than_int64_holds_are_exact():
    """A chunk of 2**23 rows at a bound once wrapped around, and with it one row's influence."""
    rows = 2**23 + 5
    ends = np.full((rows, 1), float(GRID_ONE))
    (found,) = sums.accumulate([(ends, np.zeros(rows, dtype=np.int64))], 1, 1)
    assert found.tolist() == [rows, rows * GRID_ONE, rows * GRID_ONE**2]
