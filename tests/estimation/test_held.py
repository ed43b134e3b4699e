"""Held rows and the minimum over them: each row its own, densities between neighbours, accounts."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from flint import arb, ctx
from oracles.minima import worst
from scipy.optimize import minimize

from dpreg.api.looks import can_hold
from dpreg.estimation.objective import Location, hold_located, weighted
from dpreg.formula.design import build_design
from dpreg.looks import minimum
from dpreg.looks.minimum import Objective, released_minimum
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.privacy.noise import OBJECTIVE, objective_noise
from dpreg.privacy.protection import Protection
from dpreg.schema import Schema
from dpreg.sources import as_source
from dpreg.sources.reader import Reader

BOUNDS = Schema({"y": (-4, 4), "x": (-3, 3), "z": (-3, 3)})
DESIGN = build_design("y ~ x + z", BOUNDS)
AT = Location.on_grid(
    whitening=np.array([[2.9, 0.4], [-0.3, 3.7]]),
    offset=np.array([0.2, -0.6]),
    slopes=np.array([0.31, -0.22]),
    intercept=0.07,
    tau=0.17,
    radius=1.8,
)
LIMIT = 1.3
SIGNS = list(itertools.product((-1.0, 1.0), repeat=2))


def frame(n=500, seed=0):
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, n))
    data = pd.DataFrame({"y": 0.5 * x - 0.3 * z + rng.normal(size=n), "x": x, "z": z})
    data.loc[7, "x"] = np.nan
    return data


def held_from(data, at=AT, limit=LIMIT):
    return hold_located(Reader(as_source(data), False), DESIGN, at, limit)


def reference(data, at=AT, limit=LIMIT):
    """(1, u), e, w and the cut of each complete row, from the formulas of the module."""
    kept = data.dropna()
    x = np.clip(kept[["x", "z"]].to_numpy() / 3, -1, 1)
    y = np.clip(kept["y"].to_numpy() / 4, -1, 1)
    u = x @ at.whitening.T + at.offset
    rows = np.column_stack([np.ones(len(u)), u])
    constant, slopes = at.response.floats
    e = (y + constant + x @ slopes[:-1]) / at.tau
    length = np.linalg.norm(rows, axis=1)
    weight = np.minimum(1, at.radius**2 / length**2)
    return rows, e, weight, limit / (weight * length)


def test_rows_have_the_losses_that_the_module_says():
    data = frame()
    found = held_from(data)
    rows, e, weight, cut = reference(data)
    assert len(found.y) == len(data) - 1  # one is incomplete
    assert np.allclose(found.x * cut[:, None], rows, atol=2e-5)  # cells are on a grid
    assert np.allclose(found.y * cut, e, atol=2e-5)
    assert np.allclose(found.weights, weight * cut**2, rtol=1e-4)
    assert (weight < 1).any()
    assert (weight == 1).any()


def test_a_row_is_the_same_wherever_it_stands():
    data = frame(400)
    whole = held_from(data)
    order = np.random.default_rng(3).permutation(len(data))
    moved = held_from(data.iloc[order])
    kept = np.flatnonzero(data.notna().all(axis=1).to_numpy()[order])
    place = np.cumsum(data.notna().all(axis=1).to_numpy()) - 1
    for one, other in ((whole.x, moved.x), (whole.weights, moved.weights)):
        assert np.array_equal(other, one[place[order[kept]]])
    single = held_from(data.iloc[[11]])
    assert np.array_equal(single.y, whole.y[place[[11]]])


def test_no_row_pulls_or_bends_by_more_than_its_limits():
    rng = np.random.default_rng(1)
    located = rng.standard_normal((3, 4000)) * np.exp(rng.uniform(-3, 6, 4000))
    made = weighted(located, AT, LIMIT)
    length = np.linalg.norm(made.x, axis=1)
    spare = 1 + 2.0**-40
    pull, bend = made.weights * length, made.weights * length**2
    assert pull.max() <= LIMIT * spare
    assert bend.max() <= AT.radius**2 * spare
    assert pull.min() >= LIMIT / spare  # all rows may pull as far as any
    assert bend.max() >= AT.radius**2 / spare


def _tables(k):
    """Objectives of a few common rows and of each of several choices of a person's k rows."""
    rng = np.random.default_rng(5)
    common = rng.standard_normal((3, 3)) * [[1.0], [1.0], [0.2]]
    lengths = (0.0, math.sqrt(AT.radius**2 - 1), 40.0)
    rows = [np.array([a * r, b * r]) / math.sqrt(2) for a, b in SIGNS for r in lengths]
    own = [np.append(u, e) for u in rows for e in (-1e6, -LIMIT / AT.radius, 0.0, 1e6)]
    each = [np.tile(one[:, None], (1, k)) for one in own] + [np.zeros((3, 0))]
    return [weighted(np.hstack([common, one]), AT, LIMIT) for one in each]


def _fitted(k, neighbors, eps=Fraction(2)):
    who = Protection(neighbors, k)
    return objective_noise(3, LIMIT / AT.radius, 1.0, AT.radius**2, 4, eps, who)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_neighbours_at_the_corners_have_minima_of_about_the_same_law(k, neighbors):
    noise = _fitted(k, neighbors)
    most = float(noise.eps * noise.shares[0])
    found = worst(_tables(k), noise, neighbors)
    assert found <= most * (1 + 1e-9)
    assert found >= 0.8 * most  # the corners are attacked, not somewhere inside
    less = dataclasses.replace(noise, scale=noise.scale // 2)
    assert worst(_tables(k), less, neighbors) > most


def test_the_noise_of_added_rows_would_be_too_little_for_replaced_ones():
    noise = _fitted(1, "add-remove")
    assert worst(_tables(1), noise, "replace-one") > float(noise.eps * noise.shares[0])


def _objective(n=700, d=4, seed=2, scale=1.0):
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.standard_normal((n, d - 1))]) * scale
    y = rng.standard_normal(n) * 2
    b = [Fraction(round(cell * 2**30), 2**30) for cell in 5 * rng.standard_normal(d)]
    return Objective(x, y, rng.uniform(0.1, 1, n), AT.radius, LIMIT, Fraction(7, 3), b)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 700])
@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_what_floats_tell_of_a_gradient_is_never_too_little(n, scale):
    at = _objective(n, scale=scale)
    found = minimum._searched(at, 1e-300)
    rng = np.random.default_rng(4)
    for t in (found, *(found + 10.0**-p * rng.standard_normal(4) / scale for p in (15, 9, 1))):
        with ctx.workprec(300):
            true = minimum._length(at.ball([arb(float(cell)) for cell in t]))
            assert bool(true <= arb(at.near(t)))
    assert at.near(found) <= 1e-9 * scale * max(n, 10)


def test_ball_arithmetic_decides_where_floats_cannot(monkeypatch):
    at = _objective()
    near = minimum.minimum(at, Fraction(1, 10**6), Fraction(0), 80)
    asked, honest = [], Objective.ball
    monkeypatch.setattr(Objective, "ball", lambda self, t: asked.append(t) or honest(self, t))
    assert minimum.minimum(at, Fraction(1, 10**6), Fraction(0), 80) == near
    assert not asked
    nearer = minimum.minimum(at, Fraction(1, 10**24), Fraction(0), 80)
    assert asked
    assert np.abs([(a - b) / 2.0**80 for a, b in zip(near, nearer, strict=True)]).max() < 1e-9
    found = minimum.minimum(at, Fraction(1, 10**24), Fraction(0), 160)
    with ctx.workprec(600):
        left = minimum._length(honest(at, [arb(cell) * arb((1, -160)) for cell in found]))
        assert bool(left <= 1.01e-24)


def _part(eps, who=None):
    account = Account(who or Protection("replace-one"), Budget(eps), np.random.default_rng(1))
    part = account.line("coefficients", OBJECTIVE, Budget(eps))
    account.charge(None, "test")
    return account, part


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_with_little_noise_the_minimum_is_that_of_the_losses(neighbors):
    data = frame(600)
    made = held_from(data)
    account, part = _part(10**5, Protection(neighbors))
    t, penalty, scale = released_minimum(made, part, len(data))
    rows, e, weight, cut = reference(data)

    def loss(at):
        left = np.abs(e - rows @ at)
        huber = np.where(left <= cut, left**2 / 2, cut * left - cut**2 / 2)
        return float(weight @ huber)

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-9}).x
    assert np.abs(t - best).max() < 1e-3
    assert penalty < 1e-3
    told = (2 if neighbors == "replace-one" else 1) * LIMIT / (0.89 * 10**5)
    assert scale == pytest.approx(told, rel=1e-3)
    assert account.table().total == Budget(10**5)


def test_what_is_released_has_the_score_that_was_drawn():
    """D t + b is the score at t: over many draws D t errs by noise of b's size."""
    made, eps = held_from(frame(3000, seed=6)), 2
    rows, e, weight, cut = reference(frame(3000, seed=6))
    left = []
    for seed in range(300):
        account = Account(Protection("replace-one"), Budget(eps), np.random.default_rng(seed))
        part = account.line("coefficients", OBJECTIVE, Budget(eps))
        account.charge(None, "test")
        t, penalty, scale = released_minimum(made, part, 3000)
        score = rows.T @ (weight * np.clip(e - rows @ t, -cut, cut))
        left.append(score - penalty * t)
    sd = scale * math.sqrt(4)
    assert np.std(left, axis=0) == pytest.approx([sd] * 3, rel=0.2)


def test_only_rows_that_are_read_here_are_held(tmp_path):
    data = frame(50)
    data.to_parquet(tmp_path / "rows.parquet")
    for source in (as_source(data), as_source(tmp_path / "rows.parquet")):
        assert can_hold(Reader(source, False))
        assert not can_hold(SimpleNamespace(source=source, persons=object()))
    assert not can_hold(SimpleNamespace(source=object(), persons=None))


def test_nothing_shows_rows():
    made = held_from(frame(20))
    for shown in (repr(made), str(made), repr(dataclasses.replace(made, penalty=Fraction(1)))):
        assert "array" not in shown
        assert len(shown) < 200
