"""Rows bounded by a product: neighbours searched over integer rows, attained, mutants caught."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from oracles.accounts import look_of

from dpreg.errors import ArgumentError
from dpreg.privacy import look_noise
from dpreg.privacy.look_noise import product_gaussian
from dpreg.privacy.product_sensitivity import (
    STRETCH,
    product_cost,
    product_l2_squared,
    product_weights,
)
from tests.privacy.test_located_sensitivity import into_ball, moved

UNIT = 2**20
MU_SQUARED = Fraction(1, 7)
RELATIONS = ("replace-one", "add-remove")


def farthest(a, stretch=STRETCH):
    """The largest |f| that the columns' integers a leave to a residual, in exact arithmetic."""
    square = sum(x * x for x in a)
    limit = (Fraction(2**40) / stretch) ** 2
    most = UNIT if not square else min(UNIT, math.isqrt(int(limit / square)))
    assert most == UNIT or most**2 * square <= limit < (most + 1) ** 2 * square
    return most


def candidates(columns, generator, stretch=STRETCH):
    """Integer rows at the bounds: of all lengths that matter, along axes and at random."""
    axis = [1.0] + [0.0] * (columns - 1)
    directions = [axis] + [list(generator.standard_normal(columns)) for _ in range(3)]
    lengths = (1.0, float(1 / stretch), 0.9, 0.75, 0.5, 0.1, 0.0)
    rows = [[0] * (columns + 1)]
    for direction, length, sign in itertools.product(directions, lengths, (1, -1)):
        a = [sign * int(length * x) for x in into_ball(direction)]
        most = farthest(a, stretch)
        rows += [[*a, f] for f in (most, -most, most // 2, 0)]
    return rows


def worst(noise, columns, neighbors, contributions, stretch=STRETCH):
    """The largest sum of (change / scale)^2 that the search finds, a Fraction."""
    generator = np.random.default_rng(columns)
    rows = candidates(columns, generator, stretch)
    z = np.array(rows, dtype=float) / UNIT
    products = z[:, :, None] * z[:, None, :]
    weight = np.zeros(products.shape[1:])
    for places, scale in zip(noise.cells, noise.scales, strict=True):
        weight[places[0]] = (2.0**40 / scale) ** 2
    others = products if neighbors == "replace-one" else products[:1]
    sizes = np.array([((products - one) ** 2 * weight).sum((1, 2)) for one in others])
    place, row = np.unravel_index(int(sizes.argmax()), sizes.shape)
    found = [moved(noise, [rows[row]] * contributions, [rows[place]] * contributions)]
    for _ in range(20):
        pick = generator.integers(0, len(rows), (2, contributions))
        given = [] if neighbors == "add-remove" else [rows[i] for i in pick[1]]
        found.append(moved(noise, [rows[i] for i in pick[0]], given))
    return max(found)


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("columns", [1, 2, 4])
def test_no_neighbour_exceeds_the_looks_part(columns, contributions, neighbors):
    noise = product_gaussian(columns + 1, MU_SQUARED, neighbors, contributions)
    found = worst(noise, columns, neighbors, contributions)
    assert found <= MU_SQUARED
    assert found > MU_SQUARED * (1 - Fraction(1, 10**4))  # attained


MUTANTS = {
    "columns left out": Fraction(8),
    "the response left out": 1 + Fraction(1, 2),
    "one row of two": 1 + 2 + Fraction(8, 81),
    "half the scale": (8 + Fraction(25, 54)) / 4,
    "the square left out": 8 + Fraction(25, 81),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_sensitivity_that_leaves_something_out_is_caught(monkeypatch, mutant):
    assert product_l2_squared("replace-one", 1) == (8 + Fraction(25, 54)) * 2**80
    less = MUTANTS[mutant] * 2**80
    monkeypatch.setattr(look_noise, "product_l2_squared", lambda *_: less)
    noise = product_gaussian(4, MU_SQUARED, "replace-one", contributions=1)
    assert worst(noise, 3, "replace-one", 1) > MU_SQUARED * Fraction(101, 100)


@pytest.mark.parametrize("part", [Fraction(3), 1 + Fraction(3), Fraction(1)])
def test_a_part_left_out_of_one_row_is_caught(monkeypatch, part):
    monkeypatch.setattr(look_noise, "product_l2_squared", lambda *_: part * 2**80)
    noise = product_gaussian(4, MU_SQUARED, "add-remove", contributions=1)
    assert worst(noise, 3, "add-remove", 1) > MU_SQUARED * Fraction(101, 100)


def test_a_sensitivity_for_one_row_is_caught(monkeypatch):
    monkeypatch.setattr(
        look_noise, "product_l2_squared", lambda neighbors, k: k * product_l2_squared(neighbors, 1)
    )
    noise = product_gaussian(3, MU_SQUARED, "replace-one", contributions=3)
    assert worst(noise, 2, "replace-one", 3) > 2 * MU_SQUARED


@pytest.mark.parametrize("mutant", ["columns", "response", "square"])
def test_noise_that_is_not_what_the_proof_weighs_is_caught(monkeypatch, mutant):
    def weights(size, neighbors):
        found = product_weights(size, neighbors)
        last = size - 1
        touched = {
            "columns": [cell for cell in found if cell[0] < cell[1] < last],
            "response": [cell for cell in found if cell[0] < cell[1] == last],
            "square": [(last, last)],
        }[mutant]
        return found | {cell: found[cell] * (16 if mutant == "square" else 2) for cell in touched}

    monkeypatch.setattr(look_noise, "product_weights", weights)
    noise = product_gaussian(4, MU_SQUARED, "add-remove", contributions=1)
    assert worst(noise, 3, "add-remove", 1) > MU_SQUARED * Fraction(21, 20)


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_rows_that_reach_beyond_the_product_would_be_seen(neighbors):
    """The search is sharp: rows that forget the product, |a| = |f| = 1, break the bound."""
    noise = product_gaussian(3, MU_SQUARED, neighbors, contributions=1)
    assert worst(noise, 2, neighbors, 1, stretch=Fraction(1)) > MU_SQUARED * Fraction(3, 2)


def test_the_noise_of_the_equations_is_what_is_told():
    for neighbors in RELATIONS:
        noise = product_gaussian(4, MU_SQUARED, neighbors, contributions=1)
        told = product_cost(neighbors) / math.sqrt(MU_SQUARED)
        assert noise.sd[0, 3] * float(STRETCH) == pytest.approx(told, rel=1e-9)
    assert product_cost("replace-one") < 2.1  # 2 with one clip for all
    assert product_cost("add-remove") < 1.2  # sqrt(2)


def test_a_draw_uses_its_part():
    noise = product_gaussian(4, MU_SQUARED, "replace-one", contributions=1)
    part = look_of(MU_SQUARED, "gaussian")
    drawn = noise.draw(part)
    assert part.drawn
    assert all(type(cell) is int for row in drawn for cell in row)


def test_refusals():
    with pytest.raises(ArgumentError, match="neighbors"):
        product_l2_squared("swap", contributions=1)
    with pytest.raises(ArgumentError, match="contributions"):
        product_l2_squared("replace-one", 0)
    with pytest.raises(ArgumentError, match="a column and a response"):
        product_weights(1, "replace-one")


def test_the_statement_on_a_fine_grid():
    """The sum of the proof, over lengths, residuals and angles of two rows, in floats."""
    F, x, d = 1.5, 2.0, 0.5
    u = np.linspace(0, 1, 41)
    share = np.linspace(0, 1, 21)
    f = np.minimum(1, 1 / (F * np.sqrt(np.maximum(u, 1e-12))))[:, None] * share
    length, residual = (one.ravel() for one in np.broadcast_arrays(u[:, None], f))
    b = F * np.sqrt(length) * residual
    for t in np.linspace(-1, 1, 21):
        columns = np.add.outer(length**2, length**2) - 2 * np.outer(length, length) * t * t
        response = np.add.outer(b**2, b**2) + 2 * np.outer(b, b) * t
        square = np.subtract.outer(residual**2, residual**2) ** 2
        found = (columns + x * response + d * square).max()
        assert found <= 8 + 25 / 54 + 1e-12
    assert found > 8.3
