from fractions import Fraction

import numpy as np
import pytest
from oracles.accounts import private_quantile
from scipy import stats
from scipy.special import ndtri

from dpreg.errors import ArgumentError
from dpreg.estimation import histogram as quantile
from dpreg.estimation.histogram import GRID_CELLS, candidate_grid
from dpreg.privacy.protection import Protection
from dpreg.privacy.ranks import RANK_UNIT, cell_counts


def found(x, share, lo=0.0, hi=1.0, **options):
    grid = candidate_grid(lo, hi)
    cells = cell_counts(np.clip(x, lo, hi), grid)
    fields = {
        "count": float(len(x)),
        "eps": Fraction(1),
        "alpha": 0.05,
        "neighbors": "replace-one",
        "contributions": 1,
    }
    return private_quantile(cells, grid, share, **(fields | options))


def test_whole_numbers_are_candidates_where_bounds_are_whole():
    for lo, hi in ((0.0, 100.0), (-3.0, 4.0), (0.0, 65_536.0), (0.0, 1.0)):
        grid = candidate_grid(lo, hi)
        assert np.isin(np.arange(lo, hi + 1), grid).all()
        assert GRID_CELLS / 2 <= grid.size - 1 <= GRID_CELLS
    assert candidate_grid(0.1, 0.7).size == GRID_CELLS + 1
    assert candidate_grid(0.0, 1e9).size == GRID_CELLS + 1


def test_an_atom_is_found_exactly_and_its_interval_is_its_cell():
    x = np.repeat([3.0, 7.0, 20.0], [200, 600, 200])
    for _ in range(5):
        one = found(x, RANK_UNIT // 2, 0.0, 100.0)
        assert (one.estimate.value, one.upper) == (7.0, 7.0)
        assert 7.0 - one.lower == pytest.approx(1 / 512)


HEAPS = {
    "two heaps far apart": ([3.0, 20.0], [0.48, 0.52], 0.5, 20.0),
    "a thin heap at the median": ([3.0, 7.0, 20.0], [0.46, 0.08, 0.46], 0.5, 7.0),
    "years of education": ([8.0, 12.0, 14.0, 16.0], [0.07, 0.42, 0.18, 0.33], 0.5, 14.0),
    "many zeros": ([0.0, 1.0, 2.0], [0.88, 0.1, 0.02], 0.9, 1.0),
    "between grid points": ([10.1, 100 / 3, 80.3], [0.2, 0.6, 0.2], 0.5, 100 / 3),
}  # fmt: skip


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("n", [300, 1_000, 10_000])
@pytest.mark.parametrize("heaps", HEAPS.values(), ids=HEAPS)
def test_intervals_cover_on_heaped_data(heaps, n, neighbors):
    """Ends were once pulled into gaps, where candidates are many, and covered as little as .02."""
    values, chances, q, truth = heaps
    rng = np.random.default_rng(n)
    runs = [
        found(
            rng.choice(values, n, p=chances),
            round(q * RANK_UNIT),
            0.0,
            100.0,
            neighbors=neighbors,
            rng=rng,
        )
        for _ in range(60)
    ]
    assert np.mean([one.lower <= truth <= one.upper for one in runs]) >= 0.93


def test_an_end_that_trusts_laplace_s_law_would_not_cover(monkeypatch):
    """The test above is able to fail: without the term for the number of candidates it does."""
    monkeypatch.setattr(quantile.math, "log", lambda x: 0.0)
    with pytest.raises(AssertionError):
        test_intervals_cover_on_heaped_data(HEAPS["two heaps far apart"], 300, "replace-one")


@pytest.mark.parametrize(
    ("deviation", "scale"), [(10, 3), (3, 10), (0, 2), (1e6, 1e-9), (1e-3, 50)]
)
@pytest.mark.parametrize("chance", [0.4, 0.025, 1e-6])
def test_the_margin_is_a_quantile_of_normal_plus_exponential(deviation, scale, chance):
    d = quantile._tail(deviation, scale, chance)
    if deviation == 0:
        assert d == pytest.approx(-scale * np.log(chance))
    elif scale < 1e-6 * deviation:
        assert d == pytest.approx(-deviation * ndtri(chance))
    else:
        law = stats.exponnorm(scale / deviation, loc=0, scale=deviation)
        assert d == pytest.approx(law.isf(chance), rel=1e-4)


def test_candidates_of_an_end_are_few_and_reach_the_bound():
    for furthest in (0, 1, 7, 8, 9, 100, 65_535, 65_536):
        steps = quantile._distances(furthest)
        assert steps[0] == 0
        assert steps[-1] == furthest
        assert (np.diff(steps) > 0).all()
        assert steps.size <= 8 * 15
        assert (np.diff(steps) <= np.maximum(steps[:-1] / 8, 1)).all()


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("share", [RANK_UNIT // 10, RANK_UNIT // 2])
def test_errors_are_those_of_the_law_and_intervals_cover(share, neighbors):
    rng = np.random.default_rng(share)
    n, a = 10_000, share / RANK_UNIT
    many = [found(rng.random(n), share, neighbors=neighbors, rng=rng) for _ in range(150)]
    usual = np.sqrt(a * (1 - a) / n)
    # Ends are rounded outwards, by an eighth of their distance at most.
    assert usual <= np.mean([one.estimate.sampling for one in many]) <= 1.15 * usual
    error = np.std([one.estimate.value for one in many])
    stated = np.mean([np.hypot(one.estimate.sampling, one.estimate.privacy) for one in many])
    assert 0.8 * stated <= error <= 1.2 * stated
    covered = [one.lower <= a <= one.upper for one in many]
    assert np.mean(covered) >= 0.95


def test_where_no_rank_is_far_enough_out_the_end_is_the_bound():
    for x in ([], [0.5], [0.2, 0.9], np.full(20, 0.5)):
        one = found(np.array(x), RANK_UNIT // 2)
        assert (one.lower, one.upper) == (0.0, 1.0)
        assert np.isfinite([one.estimate.sampling, one.estimate.privacy]).all()
    high = found(np.full(100, 0.5), RANK_UNIT * 9 // 10)
    assert (high.upper, high.lower > 0) == (1.0, True)


def test_contributions_and_groups_widen():
    x = np.random.default_rng(0).random(5_000)
    wide = [
        np.mean([found(x, RANK_UNIT // 2, **o).estimate.privacy for _ in range(10)])
        for o in ({}, {"contributions": 3}, {"grouped": True, "contributions": 6})
    ]
    assert wide == sorted(wide)


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("share", [1, RANK_UNIT // 2, RANK_UNIT - 1])
def test_an_eps_that_passes_the_check_is_enough(neighbors, share):
    """The check is made before a ledger is charged; what it lets through must not raise later."""
    x = np.array([0.2, 0.5, 0.9])
    for eps in (Fraction(1, 10**9), Fraction(1, 10**10)):
        quantile.check_eps(eps, Protection(neighbors))
        found(x, share, eps=eps, neighbors=neighbors)
    for call in (
        lambda e, n: quantile.check_eps(e, Protection(n)),
        lambda e, n: found(x, share, eps=e, neighbors=n),
    ):
        with pytest.raises(ArgumentError, match="eps is too small"):
            call(Fraction(1, 10**12), neighbors)
