"""Located rows' sensitivity: neighbours searched over integer rows, attained, mutants caught."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from dpreg.privacy import proofs
from dpreg.privacy.look_noise import located_gaussian
from dpreg.privacy.proofs import located_l2_squared, located_weights, response_weight
from dpreg.privacy.protection import Protection

UNIT = 2**20
MU_SQUARED = Fraction(1, 7)
RELATIONS = ("replace-one", "add-remove")
WEIGHTS = (Fraction(1), Fraction(1, 2), Fraction(3, 50))


def into_ball(direction):
    """Integers along a direction, truncated towards zero until their squares sum to 2**40."""
    length = math.sqrt(sum(x * x for x in direction)) or 1.0
    a = [int(x / length * UNIT) for x in direction]
    while sum(x * x for x in a) > UNIT**2:
        k = max(range(len(a)), key=lambda i: abs(a[i]))
        a[k] -= 1 if a[k] > 0 else -1
    return a


def candidates(columns, weight, generator):
    """Integer rows (a, f): the corners that matter, and random ones on and in the ball."""
    axis = [1.0] + [0.0] * (columns - 1)
    tilted = [float(weight), math.sqrt(max(1 - float(weight) ** 2, 0))] + [0.0] * (columns - 2)
    directions = [axis, [-x for x in axis]]
    if columns > 1:
        directions += [tilted, [-x for x in tilted], [0.0, 1.0] + [0.0] * (columns - 2)]
    directions += [list(generator.standard_normal(columns)) for _ in range(6)]
    rows = [[*into_ball(d), f] for d in directions for f in (UNIT, -UNIT, 0, UNIT // 3)]
    rows += [[int(x * generator.uniform()) for x in row] for row in rows[:8]]
    return [[0] * (columns + 1), *rows]


def moved(noise, taken, given):
    """Sum of (change / scale)^2 over the cells that are drawn, exactly."""
    total = Fraction(0)
    for places, scale in zip(noise.cells, noise.scales, strict=True):
        i, j = places[0]
        change = sum(v[i] * v[j] for v in given) - sum(z[i] * z[j] for z in taken)
        total += Fraction(change) ** 2 / Fraction(scale) ** 2
    return total


def worst(noise, columns, weight, neighbors, contributions, seed=1):
    """The largest (change / scale)^2 that the search finds, a Fraction."""
    rows = candidates(columns, weight, np.random.default_rng(seed))
    nobody = rows[0]
    pairs = (
        itertools.product(rows, rows)
        if neighbors == "replace-one"
        else [(row, nobody) for row in rows]
    )
    best = max(
        pairs, key=lambda pair: float(moved(noise, [pair[0]], [pair[1]]))
    )  # one row, then as many as a person owns
    found = [moved(noise, [best[0]] * contributions, [best[1]] * contributions)]
    generator = np.random.default_rng(seed + 1)
    for _ in range(40):
        pick = generator.integers(0, len(rows), (2, contributions))
        given = [] if neighbors == "add-remove" else [rows[i] for i in pick[1]]
        found.append(moved(noise, [rows[i] for i in pick[0]], given))
    return max(found)


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("columns", [1, 2, 4])
def test_no_neighbour_exceeds_the_looks_part(columns, weight, contributions, neighbors):
    noise = located_gaussian(columns + 1, weight, MU_SQUARED, Protection(neighbors, contributions))
    found = worst(noise, columns, weight, neighbors, contributions)
    assert found <= MU_SQUARED
    if columns > 1 or neighbors == "add-remove" or weight == 1:
        assert found > MU_SQUARED * (1 - Fraction(1, 10**4))  # attained


def mutant_norm(weight, protection):
    return located_l2_squared(weight, protection) / (1 + weight) ** 2


def mutant_root(weight, protection):
    one = Protection(protection.neighbors)
    return located_l2_squared(weight, one) * protection.contributions


def mutant_relation(weight, protection):
    return located_l2_squared(weight, Protection("add-remove", protection.contributions))


def mutant_half(weight, protection):
    return located_l2_squared(weight, protection) / 4


@pytest.mark.parametrize("mutant", [mutant_norm, mutant_root, mutant_relation, mutant_half])
def test_a_sensitivity_that_leaves_something_out_is_caught(monkeypatch, mutant):
    """The weight left out of the norm; sqrt(k) rows; one row of two; half the scale."""
    monkeypatch.setattr(proofs, "located_l2_squared", mutant)
    noise = located_gaussian(4, Fraction(1, 2), MU_SQUARED, Protection("replace-one", 3))
    assert worst(noise, 3, Fraction(1, 2), "replace-one", 3) > MU_SQUARED * Fraction(11, 10)


def mutant_response(size, weight):
    return located_weights(size, Fraction(1))


def mutant_diagonal(size, weight):
    return {
        cell: 2 * square if cell[0] == cell[1] else square
        for cell, square in located_weights(size, weight).items()
    }


def mutant_square(size, weight):
    squares = located_weights(size, weight)
    return squares | {(size - 1, size - 1): Fraction(weight)}


@pytest.mark.parametrize("mutant", [mutant_response, mutant_diagonal, mutant_square])
def test_noise_that_is_not_what_the_norm_weighs_is_caught(monkeypatch, mutant):
    monkeypatch.setattr(proofs, "located_weights", mutant)
    weight = Fraction(1, 2)
    noise = located_gaussian(4, weight, MU_SQUARED, Protection("add-remove"))
    assert worst(noise, 3, weight, "add-remove", 1) > MU_SQUARED * Fraction(11, 10)


def test_rows_outside_the_ball_would_be_seen():
    """The search's scale is exact: one unit beyond the bound is found out."""
    noise = located_gaussian(2, Fraction(1), MU_SQUARED, Protection("add-remove"))
    assert moved(noise, [[UNIT, UNIT]], []) > MU_SQUARED * (1 - Fraction(1, 10**12))
    assert moved(noise, [[UNIT + 1, UNIT]], []) > MU_SQUARED


@pytest.mark.parametrize("signal", [0.0, 0.01, 0.7, 5.0, 300.0])
def test_the_weight_has_the_least_expected_error(signal):
    best = minimize_scalar(
        lambda u: 2 * math.log1p(math.exp(u)) + math.log(math.exp(-u) + signal),
        bounds=(-12.0, 3.0),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert float(response_weight(signal)) == pytest.approx(math.exp(best.x), rel=1e-4)


def test_the_weight_is_in_its_range_and_refusals():
    assert response_weight(0.0) == 1
    assert 0 < response_weight(1e300) < Fraction(1, 10**5)
    with pytest.raises(AssertionError):
        located_l2_squared(Fraction(0), Protection("replace-one"))
