from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.accounts import count_noise, paid
from oracles.bounds import count_sensitivity

from dpreg.estimation import histogram
from dpreg.estimation.histogram import (
    choose_bins,
    count_cells,
    fine_bins,
    project,
    release_counts,
)

ONE, NONE = Fraction(1), Fraction(0)


def stacked(rows, bins=3, groups=2):
    """Counts over groups and bins, and the left-out rows, as the release stacks them."""
    places = np.array([place for place, _ in rows], dtype=np.int64)
    labels = np.array([label for _, label in rows], dtype=np.int64)
    counts, left = count_cells([(places, labels)], bins, groups)
    return np.append(counts.ravel(), left)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_k_rows_change_counts_by_no_more_and_by_as_much(neighbors, k):
    l1, l2_squared = count_sensitivity(neighbors, k)
    kinds = list(product([-1, 0, 1, 2], [-1, 0, 1]))
    common = [(1, 0), (2, 1), (-1, 0)]
    worst, squared = 0, 0
    for old, new in product(kinds, repeat=2):
        first = stacked(common + ([old] * k if neighbors == "replace-one" else []))
        change = np.abs(stacked(common + [new] * k) - first)
        if neighbors == "add-remove":
            change = change[:-1]  # the bin of left-out rows is released where n is public
        worst, squared = max(worst, change.sum()), max(squared, (change**2).sum())
    assert (worst, squared) == (l1, l2_squared)
    other = {"replace-one": "add-remove", "add-remove": "replace-one"}[neighbors]
    if neighbors == "replace-one":
        assert worst > count_sensitivity(other, k)[0]  # the mutant: the other relation's noise
    if k > 1:
        assert worst > count_sensitivity(neighbors, 1)[0]  # the mutant: contributions forgotten


def test_noise_does_not_depend_on_the_number_of_bins():
    options = {"eps": ONE, "delta": NONE, "neighbors": "replace-one", "contributions": 3}
    assert count_noise(2, **options).scale == count_noise(2_000, **options).scale == 6
    gaussian = count_noise(10, **(options | {"delta": Fraction(1, 100), "contributions": 20}))
    assert gaussian.mechanism in ("laplace", "gaussian")
    assert (
        count_noise(10, noise="gaussian", **(options | {"delta": Fraction(1, 100)})).cost.delta > 0
    )


@pytest.mark.parametrize(
    ("rows", "complete"), [(2_000, False), (2_000, True), (None, False)], ids=str
)
def test_errors_of_shares_are_those_of_the_noise(rows, complete):
    counts = np.array([[1_000, 500, 300, 200]])
    left = 0
    noise = count_noise(
        5, eps=Fraction(1, 20), delta=NONE, contributions=1,
        neighbors="add-remove" if rows is None else "replace-one",
    )  # fmt: skip
    rng = np.random.default_rng(0)
    drawn = [
        release_counts(counts, left, noise, rows=rows, complete=complete, part=paid(noise, rng))[0]
        for _ in range(3_000)
    ]
    shares = np.array([one.shares for one in drawn])
    stated = np.sqrt(np.mean([one.privacy**2 for one in drawn], axis=0))
    np.testing.assert_allclose(shares.std(axis=0), stated, rtol=0.1)
    np.testing.assert_allclose(shares.mean(axis=0), counts[0] / 2_000, atol=0.01)


def test_left_out_rows_lower_the_total():
    counts, left = np.array([[600, 300]]), 100
    noise = count_noise(3, eps=Fraction(10), delta=NONE, neighbors="replace-one", contributions=1)
    totals = [
        release_counts(counts, left, noise, rows=1_000, part=paid(noise))[0].total
        for _ in range(20)
    ]
    assert np.mean(totals) == pytest.approx(900, abs=2)
    one = release_counts(counts, left, noise, rows=1_000, complete=True, part=paid(noise))[0]
    assert one.total == 1_000


def test_bins_are_chosen_near_the_best_of_an_exact_search():
    """Against the oracle that knows the density: E ISE = d/n - (1 + 1/n) d sum p^2 + int f^2."""
    rng = np.random.default_rng(3)
    n = 200_000
    x = rng.beta(2, 5, n)
    size = fine_bins(n, Fraction(1, 5))
    counts = np.bincount((x * size).astype(int), minlength=size)
    noisy = counts + rng.laplace(0, 10, size)
    chosen = choose_bins(noisy, n, 200.0, 12.5)
    from scipy.stats import beta

    def error(d):
        p = np.diff(beta(2, 5).cdf(np.linspace(0, 1, d + 1)))
        return d / n - d * (1 + 1 / n) * (p @ p)

    best = min(range(10, 400), key=error)
    flat = -float(np.mean(beta(2, 5).pdf((np.arange(10**5) + 0.5) / 10**5) ** 2))
    assert size % chosen == 0
    assert error(chosen) - flat < 1.25 * (error(best) - flat)


def test_flat_data_get_few_bins():
    rng = np.random.default_rng(4)
    fine = rng.multinomial(100_000, np.full(360, 1 / 360)) + rng.laplace(0, 10, 360)
    assert choose_bins(fine, 100_000, 200.0, 12.5) <= 12


def test_the_fine_grid_grows_like_the_cube_root():
    sizes = [fine_bins(n, Fraction(1, 5)) for n in (1, 10**3, 10**4, 10**5, 10**6, 10**9)]
    assert sizes == sorted(sizes)
    assert sizes[3] / sizes[2] == pytest.approx(10 ** (1 / 3), rel=0.2)
    assert fine_bins(10**6, Fraction(1, 500)) < fine_bins(10**6, Fraction(1, 5))
    assert sizes[-1] == histogram.LARGEST_FINE


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=12))
def test_the_projection_is_the_nearest_point_of_the_simplex(shares):
    shares = np.array(shares)
    found = project(shares)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    # Optimality: moving mass from a positive coordinate to any other does not come nearer.
    slack = shares - found
    assert (slack[found > 1e-9] >= slack.max() - 1e-9).all()


def test_shares_that_are_all_noise_are_projected_as_well():
    """At eps = 1e-20 the least excess was lost to rounding, and an IndexError came out."""
    for huge in (1e15, 1e17, 1e40, 1e80):
        for shares in ([huge], [huge, -huge, 3.0], [-huge, -huge * 1.5]):
            found = project(np.array(shares))
            assert found.min() >= 0
            assert found.sum() == pytest.approx(1)
    assert project(np.array([1e17, 5.0])).tolist() == [1.0, 0.0]


def test_a_huge_eps_overflows_nowhere():
    assert fine_bins(10**6, Fraction(10**390)) == fine_bins(10**6, Fraction(1, 5))
