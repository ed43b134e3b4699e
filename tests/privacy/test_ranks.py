from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from oracles.accounts import choose_rank
from oracles.bounds import of_scores, rank_range
from oracles.mechanism_laws import permute_and_flip, worst_log_ratio

from dpreg.columns import MOST_EPS
from dpreg.privacy.mechanisms.choice import noise_scale
from dpreg.privacy.ranks import RANK_UNIT, cell_counts, rank_scores

CANDIDATES = np.array([0.0, 1.0, 2.0, 3.0])
VALUES = (0.0, 0.5, 1.0, 2.5, 3.0)
SHARES = [RANK_UNIT // 4, RANK_UNIT // 2, RANK_UNIT * 9 // 10]


def scores_of(values, share):
    cells = cell_counts(np.array(values, dtype=float), CANDIDATES)
    return rank_scores(cells, share * int(cells.sum()), RANK_UNIT)


def tables(size):
    return list(combinations_with_replacement(VALUES, size))


def neighbours(neighbors, size=4):
    """Pairs of small tables, one row apart; under replace-one a value may be missing."""
    if neighbors == "add-remove":
        return [(t, (*t, v)) for t in tables(size) for v in VALUES]
    changes = list(product([(v,) for v in VALUES] + [()], repeat=2))
    return [(t + old, t + new) for t in tables(size - 1) for old, new in changes]


def spread(first, second):
    change = second - first
    return int(change.max() - change.min())


def worst(neighbors, share):
    return max(spread(scores_of(a, share), scores_of(b, share)) for a, b in neighbours(neighbors))


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_no_neighbours_change_scores_by_more(neighbors, share):
    assert worst(neighbors, share) <= rank_range(share, neighbors, 1)


def test_the_ranges_are_reached():
    half = RANK_UNIT // 2
    assert worst("replace-one", half) == rank_range(half, "replace-one", 1)
    assert worst("add-remove", half) == rank_range(half, "add-remove", 1)


def test_mutants_are_caught():
    """Half the range, or a range of 1 for any quantile, would be broken by some neighbours."""
    for neighbors, share in product(["replace-one", "add-remove"], SHARES):
        assert worst(neighbors, share) > rank_range(share, neighbors, 1) // 2
    assert worst("add-remove", SHARES[-1]) > RANK_UNIT


@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_exact_laws_of_neighbours_differ_by_at_most_eps(neighbors, contributions):
    eps, worst_seen = Fraction(1), 0.0
    for share in SHARES:
        b = noise_scale(eps, rank_range(share, neighbors, contributions), "permute-and-flip")
        for a, z in neighbours(neighbors)[::5]:
            moved = (a * contributions, z * contributions)  # a person's rows move together
            laws = []
            for values in moved:
                scores = scores_of(values, share).tolist()
                laws.append(permute_and_flip([(s - min(scores)) / b for s in scores]))
            worst_seen = max(worst_seen, worst_log_ratio(*laws))
    assert 0.5 < worst_seen <= 1.0 + 1e-9


@pytest.mark.parametrize("share", SHARES)
def test_rows_that_move_between_groups_cost_eps_together(share):
    """A replaced row leaves one group and joins another: the two losses add up to at most eps."""
    reach = rank_range(share, "replace-one", 1, grouped=True)
    leaving = worst("add-remove", share)
    inside = max(
        spread(scores_of((*t, v), share), scores_of((*t, u), share))
        for t in tables(3)
        for v, u in product(VALUES, repeat=2)
    )
    assert 2 * leaving <= reach
    assert inside <= reach
    assert 2 * leaving > rank_range(share, "replace-one", 1) or share == RANK_UNIT // 2


def test_a_candidate_is_chosen_near_the_rank():
    rng = np.random.default_rng(0)
    grid = np.linspace(0, 1, 1001)
    cells = cell_counts(rng.random(5_000), grid)
    drawn = [
        grid[
            choose_rank(
                cells, RANK_UNIT // 4, eps=Fraction(1), bound=of_scores(2 * RANK_UNIT), rng=r
            )
        ]
        for r in (rng, None, None)
    ]
    np.testing.assert_allclose(drawn, 0.25, atol=0.03)


def test_atoms_on_the_grid_are_found_exactly():
    cells = cell_counts(np.full(1_000, 2.0), CANDIDATES)
    assert choose_rank(cells, RANK_UNIT // 2, eps=Fraction(1), bound=of_scores(2 * RANK_UNIT)) == 2


def test_values_beyond_the_last_candidate_lie_in_no_cell():
    assert cell_counts(np.array([-1.0, 3.0, 3.1, np.nan]), CANDIDATES).tolist() == [1, 0, 0, 1]


def test_the_largest_eps_chooses_and_overflows_nowhere():
    cells = cell_counts(np.array([0.0, 2.0, 2.0]), CANDIDATES)
    for width in (1, 2 * RANK_UNIT):
        assert choose_rank(cells, RANK_UNIT // 2, eps=MOST_EPS, bound=of_scores(width)) == 2
