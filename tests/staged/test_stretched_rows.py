"""Rows whose residual may reach farther, the nearer they lie: their own, and within the product."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest

from dpreg.errors import ArgumentError
from dpreg.moments import to_grid
from dpreg.staged import rows as module
from dpreg.staged.rows import LocatedRows
from tests.staged.test_rows import (
    ONE,
    WILD,
    Stored,
    chunk,
    corners,
    on_the_sphere,
    some_location,
    some_rows,
)

POWERS = (1.0, -0.5)


def stretched_rows(location, z, stretch=1.5, wide=None, power=-0.5):
    rows = LocatedRows(Stored(np.shape(z)[1]), location, wide=wide, stretch=stretch, power=power)
    return rows, rows.block(chunk(z))


def hold_the_product(out, places, stretch):
    """The residual's integer times the length of the columns', exactly."""
    whole = out * ONE
    assert (whole == np.rint(whole)).all()
    limit = (Fraction(ONE**2) / Fraction(stretch)) ** 2
    for row in whole:
        square = sum(int(k) ** 2 for k in row[: places - 1])
        assert square <= ONE**2
        assert square * int(row[places - 1]) ** 2 <= limit
    assert np.abs(out).max(initial=0) <= 1


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("seed", range(6))
def test_residuals_that_reach_farther_are_what_the_formula_says(seed, power):
    rng = np.random.default_rng(seed)
    z = some_rows(rng, 800, 3)
    location = some_location(rng, 3, size=2.0, radius=2.5, tau=0.2)
    _, out = stretched_rows(location, z, wide=0.9, power=power)
    cells = to_grid(z.copy()) / ONE
    u = cells[:, 1:4] @ location.whitening.T + location.offset
    e = cells[:, 4] - location.intercept - cells[:, 1:4] @ location.slopes
    norm = np.sqrt(1 + (u**2).sum(axis=1))
    c = np.minimum(1, location.radius / norm)
    cut = np.minimum(1.5, location.radius / (c * norm))
    weighted = c**power * e * (cells[:, 0] > 0)
    residual = np.clip(weighted / location.tau, -cut, cut)
    np.testing.assert_allclose(1.5 * out[:, 4], residual, atol=1e-5)
    lengths = c * norm / location.radius * np.abs(residual)
    np.testing.assert_allclose(out[:, 6], lengths, atol=1e-5)
    np.testing.assert_allclose(out[:, 5], np.clip(weighted / 0.9, -1, 1), atol=1e-5)
    assert 0.1 < (c < 0.9).mean() < 0.95  # rows of both kinds
    assert 0.01 < (np.abs(residual) > 1.01).mean() < 0.9  # farther than one clip
    plain = LocatedRows(Stored(5), location, wide=0.9).block(chunk(z))
    same = [0, 1, 2, 3, 5] if power == 1 else [0, 1, 2, 3]
    assert out[:, same].tobytes() == plain[:, same].tobytes()


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_rows_with_a_stretch_are_their_own_and_hold_the_product(seed):
    rng = np.random.default_rng(seed)
    p, n = int(rng.integers(1, 6)), 60
    z, location = some_rows(rng, n, p), some_location(rng, p)
    z[rng.random(n) < 0.2, 1:] = rng.choice([-1, 1, 0, 2.0**-20, np.nan], p + 1)
    stretch = (1.5, 2.0, 3.0)[seed % 3]
    rows, out = stretched_rows(location, z, stretch, power=POWERS[seed % 2])
    hold_the_product(out, p + 2, stretch)
    for j in range(0, n, 7):
        assert rows.block(chunk(z[j : j + 1])).tobytes() == out[j : j + 1].tobytes()
    shuffled = rng.permutation(n)
    assert rows.block(chunk(z[shuffled])).tobytes() == out[shuffled].tobytes()
    assert pickle.loads(pickle.dumps(rows)) == rows


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("case", range(len(WILD)))
def test_the_product_holds_in_integers_at_the_corners(case, power):
    location = some_location(np.random.default_rng(case), 2, **WILD[case])
    _, out = stretched_rows(location, corners(location, 2), wide=location.tau, power=power)
    hold_the_product(out, 4, 1.5)


def nearly_on_the_product():
    location, z = on_the_sphere()
    lengths = np.random.default_rng(4).uniform(0.5, 1, (len(z), 1))
    return location, np.column_stack([z[:, :1], z[:, 1:3] * lengths, np.ones(len(z))])


@pytest.mark.parametrize("mutant", ["no product", "length rounded down", "one more", "whole"])
def test_a_product_that_is_forgotten_is_caught(monkeypatch, mutant):
    location, z = nearly_on_the_product()
    location = location.with_clips(radius=4.0, tau=0.1)
    _, out = stretched_rows(location, z)
    hold_the_product(out, 4, 1.5)
    honest = module._reach
    broken = {
        "no product": lambda squares, stretch: np.full(len(squares), float(ONE)),
        "length rounded down": lambda squares, stretch: np.minimum(
            np.floor(ONE**2 / stretch / np.floor(np.sqrt(squares) - 1)), ONE
        ),
        "one more": lambda squares, stretch: np.minimum(honest(squares, stretch) + 1, ONE),
        "whole": lambda squares, stretch: honest(squares, 1.0),
    }[mutant]
    monkeypatch.setattr(module, "_reach", broken)
    _, out = stretched_rows(location, z)
    with pytest.raises(AssertionError):
        hold_the_product(out, 4, 1.5)


@pytest.mark.parametrize("stretch", [0.9, 17.0, float("nan")])
def test_a_stretch_out_of_range_is_refused(stretch):
    location = some_location(np.random.default_rng(0), 1)
    with pytest.raises(ArgumentError, match="the stretch must be from 1 to 16"):
        LocatedRows(Stored(3), location, stretch=stretch)


@pytest.mark.parametrize("power", [0.5, 0.0, -1.0, float("nan")])
def test_a_power_that_is_not_proved_is_refused(power):
    location = some_location(np.random.default_rng(0), 1)
    with pytest.raises(ArgumentError, match=r"the power must be 1 or -0\.5"):
        LocatedRows(Stored(3), location, power=power)
