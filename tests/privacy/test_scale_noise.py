"""Noise of sums: bounds attained by some neighbours and exceeded by none."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from oracles.accounts import bought

from dpreg.privacy import noise as module
from dpreg.privacy.noise import PARTS, means_noise, part_noise, scales_noise
from dpreg.privacy.protection import AccountError, Protection

BOTH = ("replace-one", "add-remove")
EPS = Fraction(1, 12)
SIDE = np.linspace(-1, 1, 21)


def sizes(p):
    """Cells (1, y, y^2, sum of squares) of complete rows, and of an incomplete one."""
    squares = sorted({0.0, 0.3, p / 2, float(p)})
    return [(1.0, y, y * y, s) for y in SIDE for s in squares] + [(0.0,) * 4]


def columns(p, groups):
    """Rows at the corners: singles at their bounds, at most one column of a group at 1."""
    grouped = {j for group in groups for j in group}
    singles = [[(j, v) for v in (-1.0, 0.0, 1.0)] for j in range(p) if j not in grouped]
    levels = [[(j, 1.0) for j in group] + [(group[0], 0.0)] for group in groups]
    for chosen in itertools.product(*singles, *levels):
        row = [0.0] * p
        for j, value in chosen:
            row[j] = value
        yield tuple(row)


def spent(noise, rows, neighbors, k=1):
    """The most that k rows' moves cost, by the scale of the noise: the log ratio of its law."""
    rows = np.array(rows)
    nothing = np.zeros_like(rows[:1])
    others = rows if neighbors == "replace-one" else nothing
    unit = np.array(noise.weights) * noise.units / noise.noise.scale
    return k * max(float((np.abs(rows - other) @ unit).max()) for other in others)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("p", [1, 2, 7])
@pytest.mark.parametrize("neighbors", BOTH)
def test_sizes_cost_what_is_charged_and_no_more(neighbors, p, k):
    noise = scales_noise(p, EPS, Protection(neighbors, k))
    assert spent(noise, sizes(p), neighbors, k) == pytest.approx(float(EPS), rel=1e-9)
    assert spent(noise, sizes(p), neighbors, k) <= EPS * (1 + Fraction(1, 10**12))


def test_without_columns_their_cell_is_empty_and_the_others_have_noise():
    noise = scales_noise(0, EPS, Protection("replace-one"))
    assert spent(noise, [row for row in sizes(1) if row[3] == 0], "replace-one") < EPS


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("groups", [(), ((1, 2),), ((0, 1), (2, 3, 4))])
@pytest.mark.parametrize("neighbors", BOTH)
def test_sums_of_columns_cost_what_is_charged_and_no_more(neighbors, groups, k):
    noise = means_noise(5, groups, EPS, Protection(neighbors, k))
    rows = [*columns(5, groups), (0.0,) * 5]
    assert spent(noise, rows, neighbors, k) == pytest.approx(float(EPS), rel=1e-9)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("neighbors", BOTH)
def test_a_sum_of_parts_costs_what_is_charged_and_no_more(neighbors, k):
    noise = part_noise(EPS, Protection(neighbors, k))
    assert noise.units == PARTS
    assert spent(noise, [[0.0], [0.4], [1.0]], neighbors, k) == pytest.approx(float(EPS), rel=1e-9)


def test_less_noise_would_be_caught(monkeypatch):
    who = Protection("replace-one")
    monkeypatch.setattr(module, "_ROW", (0, 2, 2))
    assert spent(scales_noise(3, EPS, who), sizes(3), "replace-one") > 1.05 * EPS
    apart = means_noise(5, (), EPS, Protection("add-remove"))
    assert spent(apart, list(columns(5, ())), "replace-one") == pytest.approx(2 * float(EPS))


def test_noise_is_that_of_the_part_it_was_fitted_to():
    noise = scales_noise(2, EPS, Protection("add-remove"))
    with pytest.raises(AccountError, match="with a bound for add-remove"):
        noise.released((0,) * 4, bought(EPS))
    with pytest.raises(AccountError, match="less noise than was charged"):
        noise.released((0,) * 4, bought(EPS / 2, 0, "add-remove"))


def test_what_is_released_is_in_units_of_one_with_the_stated_spread():
    noise = scales_noise(3, Fraction(1), Protection("replace-one"))
    told = []
    for seed in range(3000):
        part = bought(1, rng=np.random.default_rng(seed))
        told.append(noise.released((7 * 2**40, -5 * 2**40, 3 * 2**40, 2**40), part))
    found = np.array(told)
    sds = np.array(noise.sds)
    assert np.abs(found.mean(axis=0) - [7, -5, 3, 1]).max() < 4 * sds.max() / math.sqrt(3000)
    np.testing.assert_allclose(found.std(axis=0), sds, rtol=0.08)
    assert sds[0] == pytest.approx(math.sqrt(2) * 8)
    assert sds[3] == pytest.approx(math.sqrt(2) * 8 * 3 / 3)  # 8 p / 3 of a sum of up to p
