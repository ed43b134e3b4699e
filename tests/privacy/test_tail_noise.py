"""The tail's three cells: bounds attained by some neighbours and exceeded by none."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from dpreg.privacy import tail_noise as module
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.privacy.tail_noise import (
    SQUARES,
    squares_l2_squared,
    squares_noise,
    squares_reach,
    squares_sd,
    tail_l1,
    tail_l2_squared,
    tail_noise,
    tail_sd,
)


def rows():
    """(a, b, l) of rows at the corners and along the edge of what is possible, and no row."""
    s = np.linspace(0, 1, 41)
    signs = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    leverages = (0.0, 0.3, 1.0)
    return [(float(sign * t), float(t * t), v) for t in s for sign in signs for v in leverages]


def moves(neighbors):
    others = rows() if neighbors == "replace-one" else [(0.0, 0.0, 0.0)]
    for one, other in itertools.product(rows(), others):
        yield tuple(abs(x - y) for x, y in zip(one, other, strict=True))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_the_bounds_are_attained_and_never_exceeded(neighbors, k):
    protection = Protection(neighbors, k)
    squared = max(x * x + y * y + z * z / 4 for x, y, z in moves(neighbors)) * k * k
    total = max(x + y + z / 4 for x, y, z in moves(neighbors)) * k
    assert squared == pytest.approx(float(tail_l2_squared(protection)))
    assert total == pytest.approx(float(tail_l1(protection)))


def worst_ratio(noise, neighbors):
    """The largest ratio of a move to its noise, in the cells' integer units."""
    units = np.array([noise_weight * 2.0**20, 2.0**40, 2.0**40])
    scaled = np.array(list(moves(neighbors))) * units / noise.scales
    if noise.mechanism == "gaussian":
        scaled = scaled**2
    return float(scaled.sum(axis=1).max())


noise_weight = 300_000


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_the_noise_is_as_large_as_its_part_of_the_budget_asks(neighbors, gaussian):
    strength, protection = Fraction(1, 50), Protection(neighbors)
    noise = tail_noise(strength, protection, noise_weight, gaussian=gaussian)
    worst = worst_ratio(noise, neighbors)
    assert worst == pytest.approx(float(strength), rel=1e-3)
    assert worst <= strength * (1 + 1e-12)
    units = (noise_weight * 2.0**20, 2.0**40)
    expected = tail_sd(strength, protection, gaussian=gaussian)
    for sd, unit in zip(noise.sds[:2], units, strict=True):
        assert sd / unit == pytest.approx(expected, rel=1e-6)
    assert noise.sds[2] / noise.sds[1] == pytest.approx(2 if gaussian else 4, rel=1e-6)


@pytest.mark.parametrize("gaussian", [True, False])
def test_mutants_are_caught(monkeypatch, gaussian):
    strength = Fraction(1, 50)
    for name, half in (("tail_l1", Fraction(5, 4)), ("tail_l2_squared", Fraction(17, 8))):
        monkeypatch.setattr(module, name, lambda _, half=half: half)
    noise = tail_noise(strength, Protection("replace-one"), noise_weight, gaussian=gaussian)
    assert worst_ratio(noise, "replace-one") > 1.5 * strength


@pytest.mark.parametrize("gaussian", [True, False])
def test_a_leverage_that_is_drawn_for_nothing_is_caught(monkeypatch, gaussian):
    strength = Fraction(1, 50)
    monkeypatch.setattr(
        module, "_LEVERAGE", {"gaussian": Fraction(1, 2), "laplace": Fraction(1, 2)}
    )
    noise = tail_noise(strength, Protection("replace-one"), noise_weight, gaussian=gaussian)
    assert worst_ratio(noise, "replace-one") > 1.2 * strength


@pytest.mark.parametrize("gaussian", [True, False])
def test_draws_have_the_stated_spread(gaussian):
    noise = tail_noise(Fraction(1, 4), Protection("replace-one"), 2**20, gaussian=gaussian)
    rng = np.random.default_rng(0)
    drawn = np.array([noise.simulate(rng) for _ in range(4000)], dtype=float)
    np.testing.assert_allclose(drawn.std(axis=0), noise.sds, rtol=0.06)


def test_it_is_drawn_once_and_as_charged():
    account = Account(Protection("replace-one"), Budget(1))
    part = account.line("tail", "discrete laplace", Budget("0.5"))
    account.charge(None, "a call")
    fitted = tail_noise(Fraction(1, 2), Protection("add-remove"), 2**20, gaussian=False)
    with pytest.raises(RuntimeError, match="a bound for add-remove"):
        fitted.draw(part)
    dear = tail_noise(Fraction(3, 4), Protection("replace-one"), 2**20, gaussian=False)
    with pytest.raises(RuntimeError, match="less noise than was charged"):
        dear.draw(part)
    with pytest.raises(RuntimeError, match="drawn from before"):
        tail_noise(Fraction(1, 2), Protection("replace-one"), 2**20, gaussian=False).draw(part)


def square_rows():
    """(b+, b-, o, l) in units of one: at the corners of what a row may hold, and on the way."""
    shares = (0.0, 0.3, 1.0)
    found = []
    for above, taken, far in itertools.product(shares, shares, shares):
        if above + taken <= 1:
            found += [(above, 0.0, taken, far), (0.0, above, taken, far)]
    return found


def square_moves(neighbors):
    nobody = [(0.0,) * 4]
    for one, other in itertools.product(
        square_rows(), square_rows() if neighbors == "replace-one" else nobody
    ):
        yield tuple(abs(x - y) for x, y in zip(one, other, strict=True))


def spent_by_squares(noise, neighbors, k):
    ratios = np.array([*square_moves(neighbors)]) * k * 2.0**40 / noise.scales
    return float((ratios**2 if noise.mechanism == "gaussian" else ratios).sum(axis=1).max())


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_four_squares_move_by_as_much_as_stated(neighbors, k, gaussian):
    strength, protection = Fraction(1, 50), Protection(neighbors, k)
    assert max(map(sum, square_moves(neighbors))) * k == squares_reach(protection)
    squared = max(sum(x * x for x in move) for move in square_moves(neighbors)) * k * k
    assert squared == squares_l2_squared(protection)
    noise = squares_noise(strength, protection, gaussian=gaussian)
    spent = spent_by_squares(noise, neighbors, k)
    assert spent == pytest.approx(float(strength), rel=1e-6)
    assert spent <= strength * (1 + 1e-12)
    expected = squares_sd(strength, protection, gaussian=gaussian)
    assert np.array(noise.sds) / 2.0**40 == pytest.approx(expected, rel=1e-6)
    assert len(noise.simulate(np.random.default_rng(0))) == SQUARES


@pytest.mark.parametrize("gaussian", [True, False])
def test_squares_with_half_their_noise_are_caught(monkeypatch, gaussian):
    honest = module.squares_reach
    monkeypatch.setattr(module, "squares_reach", lambda who: honest(who) / 2)
    noise = squares_noise(Fraction(1, 50), Protection("replace-one"), gaussian=gaussian)
    assert spent_by_squares(noise, "replace-one", 1) > Fraction(1, 50) * 1.9


@pytest.mark.parametrize("gaussian", [True, False])
def test_squares_whose_reach_forgets_one_of_them_are_caught(monkeypatch, gaussian):
    """As if what rows lose of their weight moved nothing."""
    honest = module.squares_reach
    monkeypatch.setattr(module, "squares_reach", lambda who: honest(who) - 1)
    noise = squares_noise(Fraction(1, 50), Protection("add-remove"), gaussian=gaussian)
    assert spent_by_squares(noise, "add-remove", 1) > Fraction(1, 50) * 1.3
