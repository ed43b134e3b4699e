"""Attack the claimed ranges with neighbours, in Fractions: never exceeded, and nearly reached."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.bounds import score_range
from oracles.scores import quadratic_scores
from oracles.sign_patterns import integer_scores, minimum

from dpreg.errors import ArgumentError
from dpreg.moments import Moments, accumulate
from dpreg.privacy import proofs as sensitivity
from dpreg.privacy.proofs import loss_range, score_grid
from dpreg.privacy.protection import NEIGHBORS, Protection

RADII = (Fraction(1, 10), Fraction(1, 3), Fraction(1), Fraction(2), Fraction(29, 5))
ONE = Fraction(1)


def corners(width, constant):
    """Every row at a corner of [-1, 1]^p x [-1, 1], and the row of zeros (an incomplete one)."""
    free = width - constant
    rows = [
        (ONE,) * constant + tuple(map(Fraction, row)) for row in product((-1, 1), repeat=free + 1)
    ]
    return [*rows, (Fraction(0),) * (width + 1)]


def spread(before, after):
    changes = [b - a for a, b in zip(before, after, strict=True)]
    return max(changes) - min(changes)


def attack(pairs, width, rho):
    """The largest range of score changes over pairs of data sets."""
    grid = score_grid(rho)
    return max(
        spread(integer_scores(a, width, rho, grid), integer_scores(b, width, rho, grid))
        for a, b in pairs
    )


def neighbours(base, width, constant, neighbors, k, rng, tries):
    """Pairs that differ in up to k rows: corners and rows inside, at most `tries`."""
    rows = corners(width, constant)
    inside = [Fraction(v, 2) for v in range(-2, 3)]

    def draw():
        if rng.random() < 0.7:
            return rows[rng.integers(len(rows))]
        free = tuple(inside[rng.integers(5)] for _ in range(width + 1 - constant))
        return (ONE,) * constant + free

    for _ in range(tries):
        old = [(draw(), 1) for _ in range(k)]
        new = [(draw(), 1) for _ in range(k)]
        if neighbors == "replace-one":
            yield base + old, base + new
        else:
            yield base, base + new


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("rho", RADII)
def test_random_neighbours_never_exceed_the_claim(neighbors, k, rho):
    rng = np.random.default_rng([k, rho.numerator, len(neighbors)])
    claim = score_range(rho, neighbors, k)
    for width, constant in ((1, 0), (2, 0), (2, 1)):
        for base_rows in (0, 1, 2, 5):
            rows = corners(width, constant)
            base = [(rows[rng.integers(len(rows))], 1) for _ in range(base_rows)]
            pairs = neighbours(base, width, constant, neighbors, k, rng, 12)
            assert attack(pairs, width, rho) <= claim


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("rho", [Fraction(1, 3), Fraction(1), Fraction(2)])
def test_every_pair_of_corners_of_the_smallest_data_sets(neighbors, rho):
    """n = 0 and 1 (add-remove) and n = 1 and 2 (replace-one), one column, all corners."""
    rows = corners(1, 0)
    pairs = []
    for kept in [[], *([(row, 1)] for row in rows)]:
        for old, new in product(rows, rows):
            if neighbors == "replace-one":
                pairs.append(([*kept, (old, 1)], [*kept, (new, 1)]))
            else:
                pairs.append((kept, [*kept, (new, 1)]))
    assert attack(pairs, 1, rho) <= score_range(rho, neighbors, 1)


def worst_pair(rho, neighbors, k, copies=10**7):
    """Rows that hold beta_1 = beta_2 = rho, and k rows that two models see at opposite ends.

    The first model has t = -rho for the row, the second t = min(rho, 1) = y: there the row's loss
    is largest and least.
    """
    lean = min(ONE, 1 / rho)
    base = [((lean, lean, ONE), copies)]
    row = (-ONE, lean, ONE)
    turned = (lean, -ONE, ONE)
    if neighbors == "replace-one":
        return [*base, (turned, k)], [*base, (row, k)]
    return base, [*base, (row, k)]


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("rho", RADII)
def test_the_claim_is_nearly_reached(neighbors, k, rho):
    reached = attack([worst_pair(rho, neighbors, k)], 2, rho)
    claim = score_range(rho, neighbors, k)
    assert reached <= claim
    assert reached >= 0.999 * claim


def floor_pairs(neighbors="add-remove", rho=Fraction(1, 6)):
    """Pairs whose loss changes reach w and whose floors fall badly: only the slack covers them.

    The two models' losses of the new row are 13/36 and -11/36, neither a multiple of the grid: one
    change is rounded up and one down, and their distance exceeds ceil(w/g), for those bases whose
    remainders are large for the first model and small for the second. The sweep meets some.
    """
    inner = (ONE, Fraction(3, 4), ONE)
    for copies, more in product(range(1, 10), range(9)):
        base = [((ONE, ONE, ONE), 100 + more), (inner, copies)]
        new = (-ONE, ONE, ONE)
        if neighbors == "replace-one":
            yield [*base, ((ONE, -ONE, ONE), 1)], [*base, (new, 1)]
        else:
            yield base, [*base, (new, 1)]


@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_floors_stay_within_the_slack(neighbors):
    rho = Fraction(1, 6)
    assert attack(floor_pairs(neighbors), 2, rho) <= score_range(rho, neighbors, 1)


@given(
    st.fractions(min_value=Fraction(1, 100), max_value=100),
    st.fractions(min_value=-1, max_value=1),
    st.fractions(min_value=-1, max_value=1),
    st.fractions(min_value=-1, max_value=1),
)
def test_loss_range_bounds_the_loss_of_one_row(rho, y, u, v):
    def loss(t):
        return t * t - 2 * y * t

    assert loss(u * rho) - loss(v * rho) <= loss_range(rho)


@given(st.fractions(min_value=Fraction(1, 1000), max_value=1000))
def test_the_grid_is_the_power_of_two_that_the_range_asks_for(rho):
    w, g = loss_range(rho), score_grid(rho)
    assert w / 2**25 < g <= w / 2**24
    assert (g.numerator & (g.numerator - 1)) == 0
    assert (g.denominator & (g.denominator - 1)) == 0


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("rho", RADII)
def test_the_claim_is_linear_in_the_rows_of_a_person(neighbors, rho):
    # So that j of k rows cost j / k of eps: parallel composition over halves rests on it.
    one = score_range(rho, neighbors, 1)
    assert [score_range(rho, neighbors, k) for k in (1, 2, 3, 10)] == [
        one,
        2 * one,
        3 * one,
        10 * one,
    ]


def test_the_claim_is_at_least_the_contract_of_the_rooms():
    for rho, k in product(RADII, (1, 3)):
        ratio = loss_range(rho) / score_grid(rho)
        assert score_range(rho, "replace-one", k) >= -(-2 * k * ratio // 1) + 2
        assert score_range(rho, "add-remove", k) >= -(-k * ratio // 1) + 2
        assert score_range(rho, "replace-one", k) <= 2 * k * ratio + 3 * k


# The scores that dpreg computes, from rows to integers


def computed_scores(rows, p, rho):
    """q of all 2^p models of the columns 1..p, the constant in each, by dpreg's own path."""
    rows = np.asarray(rows, dtype=np.float64).reshape(-1, p + 2)
    columns = np.array([(1, *model) for model in product((0, 1), repeat=p)], dtype=bool)
    return quadratic_scores(accumulate([rows], p + 2), columns, rho)


def hostile_rows(rng, rows, p):
    """Complete rows at corners, near them or inside, and incomplete ones (zeros)."""
    cells = rng.choice([-1.0, 1.0], size=(rows, p + 2))
    inside = rng.random(rows) < 0.3
    cells[inside] = rng.uniform(-1, 1, size=(int(inside.sum()), p + 2))
    cells[:, 0] = 1.0
    cells[rng.random(rows) < 0.1] = 0.0
    return cells


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("rho", [Fraction(1, 3), Fraction(1), Fraction(5, 2)])
def test_computed_scores_never_exceed_the_claim(neighbors, k, rho):
    rng = np.random.default_rng([7, k, rho.numerator])
    claim = score_range(rho, neighbors, k)
    for p, n in product((1, 3, 5), (0, 1, 2, 12)):
        for _ in range(4):
            base, old, new = (hostile_rows(rng, rows, p) for rows in (n, k, k))
            if neighbors == "add-remove":
                old = old[:0]
            before = computed_scores(np.concatenate([base, old]), p, rho)
            after = computed_scores(np.concatenate([base, new]), p, rho)
            assert int(np.ptp(after - before)) <= claim


@pytest.mark.parametrize("neighbors", NEIGHBORS)
@pytest.mark.parametrize("rho", [Fraction(1, 3), Fraction(1), Fraction(5, 2)])
def test_computed_scores_nearly_reach_the_claim(neighbors, rho):
    lean = float(min(ONE, 1 / rho))
    base = np.tile([0.0, lean, lean, 1.0], (40_000, 1))
    one, turned = [0.0, -1.0, lean, 1.0], [0.0, lean, -1.0, 1.0]
    more = [turned] if neighbors == "replace-one" else np.empty((0, 4))
    before = computed_scores(np.concatenate([base, more]), 2, rho)
    after = computed_scores(np.concatenate([base, [one]]), 2, rho)
    claim = score_range(rho, neighbors, 1)
    assert 0.95 * claim <= int(np.ptp(after - before)) <= claim


def test_mutant_rows_not_clipped_is_caught():
    base = np.tile([0.0, 1.0, 1.0, 1.0], (4000, 1))
    outside = np.array([[0.0, -3.0, 1.0, 3.0]])
    gram = [[int(v) << 40 for v in row] for row in (base.T @ base + outside.T @ outside)]
    unclipped = Moments(4001, tuple(map(tuple, gram)))
    columns = np.array([(1, *model) for model in product((0, 1), repeat=2)], dtype=bool)
    before = computed_scores(base, 2, ONE)
    change = quadratic_scores(unclipped, columns, ONE) - before
    claim = score_range(ONE, "add-remove", 1)
    assert int(np.ptp(change)) > claim
    clipped = computed_scores(np.concatenate([base, outside]), 2, ONE) - before
    assert int(np.ptp(clipped)) <= claim


@pytest.mark.parametrize(
    ("rho", "neighbors", "k"),
    [
        (ONE, "swap", 1),
        (ONE, "add-remove", 0),
        (ONE, "add-remove", True),
        (ONE, "add-remove", 1.5),
    ],
)
def test_bad_arguments_are_refused(rho, neighbors, k):
    with pytest.raises(ArgumentError):
        score_range(rho, neighbors, k)


def test_mutant_one_bound_used_twice_is_caught(monkeypatch):
    # The largest loss for both ends: what a library did that used its lower bound twice.
    monkeypatch.setattr(sensitivity, "loss_range", lambda rho: rho**2 + 2 * rho)
    rho = Fraction(2)
    grid = score_grid(rho)  # the mutant's own grid is of no matter: compare in units of F
    before, after = worst_pair(rho, "add-remove", 1)
    changes = [
        float(b - a)
        for a, b in zip(
            integer_scores(before, 2, rho, grid), integer_scores(after, 2, rho, grid), strict=True
        )
    ]
    assert max(changes) - min(changes) > score_range(rho, "add-remove", 1)


def test_mutant_relations_swapped_is_caught(monkeypatch):
    reached = attack([worst_pair(ONE, "replace-one", 1)], 2, ONE)
    assert reached <= score_range(ONE, "replace-one", 1)
    honest = Protection.changes.fget
    monkeypatch.setattr(Protection, "changes", property(lambda self: 3 - honest(self)))
    assert reached > score_range(ONE, "replace-one", 1)


def test_mutant_contributions_forgotten_is_caught():
    reached = attack([worst_pair(ONE, "add-remove", 3)], 2, ONE)
    assert reached > score_range(ONE, "add-remove", 1)


def test_mutant_slack_dropped_is_caught(monkeypatch):
    rho = Fraction(1, 6)
    reached = attack(floor_pairs(), 2, rho)
    assert reached <= score_range(rho, "add-remove", 1)
    monkeypatch.setattr(sensitivity, "ROUNDING_SLACK", 0)
    assert reached > score_range(rho, "add-remove", 1)


def test_the_oracle_knows_a_plain_case():
    # One column, G = 2, b = 1: beta = 1/2 inside the ball, at its edge for rho = 1/4.
    gram, cross = [[Fraction(2)]], [ONE]
    assert minimum(gram, cross, (0,), ONE) == Fraction(-1, 2)
    assert minimum(gram, cross, (0,), Fraction(1, 4)) == Fraction(-3, 8)
    assert minimum(gram, cross, (), ONE) == 0
