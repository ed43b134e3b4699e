from fractions import Fraction

import numpy as np
import pytest

from dpreg.estimation.quantile import GRID_CELLS, candidate_grid, private_quantile
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


def test_an_atom_is_found_exactly():
    x = np.repeat([3.0, 7.0, 20.0], [200, 600, 200])
    for _ in range(5):
        one = found(x, RANK_UNIT // 2, 0.0, 100.0)
        assert (one.estimate.value, one.lower, one.upper) == (7.0, 7.0, 7.0)
        assert one.estimate.sampling == 0.0


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("share", [RANK_UNIT // 10, RANK_UNIT // 2])
def test_errors_are_those_of_the_law(share, neighbors):
    rng = np.random.default_rng(share)
    n, a = 10_000, share / RANK_UNIT
    many = [found(rng.random(n), share, neighbors=neighbors, rng=rng) for _ in range(150)]
    sampling = np.mean([one.estimate.sampling for one in many])
    assert sampling == pytest.approx(np.sqrt(a * (1 - a) / n), rel=0.1)
    covered = [one.lower <= a <= one.upper for one in many]
    assert np.mean(covered) >= 0.88


def test_few_or_no_values_give_the_widest_interval_and_no_error():
    for x in ([], [0.5], [0.2, 0.9]):
        one = found(np.array(x), RANK_UNIT // 2)
        assert 0 <= one.lower <= one.estimate.value <= one.upper <= 1


def test_contributions_and_groups_widen():
    x = np.random.default_rng(0).random(5_000)
    wide = [
        np.mean([found(x, RANK_UNIT // 2, **o).estimate.privacy for _ in range(10)])
        for o in ({}, {"contributions": 3}, {"grouped": True, "contributions": 6})
    ]
    assert wide == sorted(wide)
