"""A fitting look's bounds: neighbours searched and optimised, attained and never exceeded."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from oracles.fit_units import informations, scores
from scipy.optimize import minimize

from dpreg.privacy.proofs import (
    CELL_UNITS,
    SCORE_WEIGHTS,
    information_l2_squared,
    joint_l2_squared,
    located_l2_squared,
    located_weights,
    score_l2,
    trace_l1,
)
from dpreg.privacy.protection import Protection

REPLACE, ADD = Protection("replace-one"), Protection("add-remove")
BOTH = [REPLACE, ADD]
WEIGHTS = [Fraction(1, 20), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(3), Fraction(16)]


def shrunk(vectors):
    """Scale an array down into the unit ball, if it is outside."""
    return vectors / max(1.0, math.sqrt(np.vdot(vectors, vectors)))


def searched(change, pairs, shape, protection, seed, held=shrunk):
    """The largest change: over given pairs, and climbing from the best and from random ones."""
    generator = np.random.default_rng(seed)
    zero = np.zeros(shape)
    added = protection.neighbors == "add-remove"

    def moved(flat):
        one, other = map(held, flat.reshape(2, *shape))
        return change(one, zero if added else other)

    flat = [np.concatenate([a.ravel(), b.ravel()]) for a, b in pairs]
    flat.sort(key=moved, reverse=True)
    starts = flat[:2] + [generator.standard_normal(2 * zero.size) for _ in range(4)]
    best = max(map(moved, flat))
    for start in starts:
        found = minimize(lambda at: -moved(at), start, method="L-BFGS-B")
        best = max(best, -float(found.fun))
    return best


def joint(weight, middle):
    def change(f, h):
        apart = np.outer(f, f) - np.outer(h, h)
        last = (apart**2).sum() if middle == "matrix" else np.trace(apart) ** 2
        return float(weight) * ((f - h) ** 2).sum() + last

    return change


@pytest.mark.parametrize("columns", [1, 2, 4])
@pytest.mark.parametrize("weight", WEIGHTS, ids=str)
@pytest.mark.parametrize("middle", ["matrix", "trace"])
@pytest.mark.parametrize("protection", BOTH, ids=lambda one: one.neighbors)
def test_score_and_middle_move_by_their_bound_and_no_more(protection, middle, weight, columns):
    if weight < 1:
        with pytest.raises(AssertionError):
            joint_l2_squared(weight, middle, protection)
        return
    kinds = scores(columns, np.random.default_rng(columns))
    pairs = [(one, other) for one in kinds for other in kinds]
    found = searched(joint(weight, middle), pairs, (columns,), protection, 1)
    bound = float(joint_l2_squared(weight, middle, protection))
    assert found <= bound * (1 + 1e-9)
    line = columns == 1 and protection == REPLACE and middle == "matrix" and weight < 2
    if not line:  # one column has no two directions
        assert found > 0.99 * bound


def test_below_the_least_weight_the_trace_moves_farther():
    """Why g has to be 1 there: the bound 4 g is false below, where parts of scores lie apart."""
    weight = Fraction(4, 5)
    found = searched(in_parts(weight, "trace"), parts_of(2)[1], (2, 2), REPLACE, 2, halves)
    assert found > 1.01 * 4 * float(weight)


@pytest.mark.parametrize("columns", [1, 2, 4])
@pytest.mark.parametrize("protection", BOTH, ids=lambda one: one.neighbors)
def test_information_moves_by_its_bounds_and_no_more(protection, columns):
    def apart(one, other):
        return one.T @ one - other.T @ other

    def frobenius(one, other):
        return (apart(one, other) ** 2).sum()

    def padded(rows):
        return np.vstack([rows, np.zeros((columns - len(rows), columns))])

    kinds = [padded(rows) for rows in informations(columns, np.random.default_rng(columns))]
    pairs = [(one, other) for one in kinds for other in kinds]
    bound = float(information_l2_squared(protection))
    found = searched(frobenius, pairs, (columns, columns), protection, 3)
    assert found <= bound * (1 + 1e-9)
    if columns > 1 or protection == ADD:
        assert found > 0.99 * bound


def test_a_frobenius_limit_would_leave_the_nuclear_norm_unbounded():
    """Why limits are on the trace: d rows of squared length 1/sqrt(d)."""
    d = 16
    information = np.eye(d) / math.sqrt(d)
    assert np.linalg.norm(information) == pytest.approx(1)
    cost = np.abs(np.linalg.eigvalsh(information)).sum()
    assert cost == pytest.approx(math.sqrt(d))


def test_lengths_and_traces_of_scores():
    kinds = scores(3, np.random.default_rng(0))
    lengths = [np.linalg.norm(one - other) for one in kinds for other in kinds]
    assert max(lengths) == pytest.approx(score_l2(REPLACE, 1)) == 2
    assert max(np.linalg.norm(one) for one in kinds) == pytest.approx(score_l2(ADD, 1)) == 1
    traces = [abs(one @ one - other @ other) for one in kinds for other in [*kinds, 0 * kinds[0]]]
    assert max(traces) == pytest.approx(trace_l1(REPLACE)) == trace_l1(ADD) == 1


def in_parts(weight, middle):
    """What score, contrast and middle move by, of inner and outer parts in any directions."""

    def change(one, other):
        (a, b), (c, d) = (one / 2, other / 2)
        f, h = a + b, c + d
        moved = float(weight) * (((f - h) ** 2).sum() + ((a - b - c + d) ** 2).sum())
        if middle == "trace":
            return moved + (f @ f - h @ h) ** 2
        return moved + ((np.outer(f, f) - np.outer(h, h)) ** 2).sum()

    return change


@pytest.mark.parametrize("times", [1, 2, 3, 7])
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("protection", BOTH, ids=lambda one: one.neighbors)
def test_score_and_contrast_of_unequal_parts_move_by_their_bound_and_no_more(
    protection, columns, times
):
    def change(one, other):
        a, b = (one - other) * np.array([[1], [times]]) / (1 + times)
        return math.sqrt(((times * a + b) ** 2).sum() + ((times * a - b) ** 2).sum())

    found = searched(change, parts_of(columns)[1], (2, columns), protection, 6, halves)
    bound = float(score_l2(protection, times))
    assert 0.99 * bound < found <= bound * (1 + 1e-9)


def halves(vectors):
    return vectors / np.maximum(1.0, np.sqrt((vectors * vectors).sum(axis=1)))[:, None]


def parts_of(columns):
    """Inner and outer parts, and pairs of them."""
    kinds = scores(columns, np.random.default_rng(columns))
    both = [np.array([one, other]) for one in kinds[::3] for other in kinds[::3]]
    return both, [(one, other) for one in both[::2] for other in both]


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("weight", [one for one in WEIGHTS if one >= 1], ids=str)
@pytest.mark.parametrize("middle", ["matrix", "trace"])
@pytest.mark.parametrize("protection", BOTH, ids=lambda one: one.neighbors)
def test_the_contrast_comes_with_the_score_at_no_cost(protection, middle, weight, columns):
    """Whatever the directions of the two parts, all move as score and middle alone do."""
    change, pairs = in_parts(weight, middle), parts_of(columns)[1]
    found = searched(change, pairs, (2, columns), protection, 5, halves)
    bound = float(joint_l2_squared(weight, middle, protection))
    assert found <= bound * (1 + 1e-9)
    line = columns == 1 and protection == REPLACE and middle == "matrix" and weight < 2
    assert line or found > 0.99 * bound


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_several_units_move_so_many_times_as_much_and_a_person_is_one(neighbors):
    one, three = Protection(neighbors), Protection(neighbors, 3)
    person = Protection(neighbors, 3, "id")
    for bound, power in (
        (information_l2_squared, 2),
        (lambda whom: joint_l2_squared(Fraction(2), "matrix", whom), 2),
        (lambda whom: joint_l2_squared(Fraction(2), "trace", whom), 2),
        (lambda whom: score_l2(whom, 2), 1),
        (trace_l1, 1),
    ):
        assert bound(three) == 3**power * bound(one)
        assert bound(person) == bound(one)


def test_the_weights_leave_the_score_the_noise_it_would_have_alone():
    for middle in ("matrix", "trace"):
        weight = SCORE_WEIGHTS["replace-one"][middle]
        assert joint_l2_squared(weight, middle, REPLACE) / weight == score_l2(REPLACE, 1) ** 2
        # A lower weight would not, for what the middle then moves by itself.
        less = weight * Fraction(9, 10)
        if middle == "matrix":
            assert joint_l2_squared(less, middle, REPLACE) / less > score_l2(REPLACE, 1) ** 2
    for middle, most in (("matrix", 1.12), ("trace", 1.04)):
        weight = SCORE_WEIGHTS["add-remove"][middle]
        assert math.sqrt(joint_l2_squared(weight, middle, ADD) / weight) < most


def limited(rows):
    """Scale a person's rows (a, f) by factors of their own for both blocks until limits hold."""
    columns = float(np.linalg.norm(rows[:, :-1]))
    response = float(np.linalg.norm(rows[:, -1]))
    return rows / np.append(np.full(rows.shape[1] - 1, max(1.0, columns)), max(1.0, response))


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("protection", BOTH, ids=lambda one: one.neighbors)
def test_a_persons_rows_move_moments_no_more_than_one_row(protection, rank):
    """The corollaries on persons: whatever the rank, and one row attains them."""
    squares = located_weights(4, Fraction(1, 2))
    bound = located_l2_squared(Fraction(1, 2), Protection(protection.neighbors))
    bound = float(bound / CELL_UNITS**2)
    weights = np.zeros((4, 4))
    for cell, square in squares.items():
        weights[cell] = square

    def change(one, other):
        one, other = limited(one), limited(other)
        return (weights * (one.T @ one - other.T @ other) ** 2).sum()

    generator = np.random.default_rng(rank)
    zero, best = np.zeros((rank, 4)), 0.0

    def moved(flat):
        one, other = flat.reshape(2, rank, 4)
        return change(one, zero if protection == ADD else other)

    corner = np.zeros((2, rank, 4))
    corner[:, 0, [0, 3]] = [[1.0, 1.0], [-1.0, 1.0]]
    starts = [scale * generator.standard_normal(2 * zero.size) for scale in (1.0, 3.0) * 3]
    for start in [corner.ravel(), *starts]:
        best = max(best, moved(start))
        found = minimize(lambda at: -moved(at), start, method="L-BFGS-B")
        best = max(best, -float(found.fun))
    assert best <= bound * (1 + 1e-9)
    assert best > 0.99 * bound
