"""Looks: what is drawn is what is charged, and the rows enter through their noisy moments alone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from oracles.bounds import anything
from oracles.design_rows import blocks

from dpreg.formula.design import build_design
from dpreg.looks.need import rows_needed
from dpreg.moments import read_moments
from dpreg.privacy.account import Account, AccountError
from dpreg.privacy.budget import Budget
from dpreg.privacy.look_noise import GaussianLook, MatrixLaplaceLook
from dpreg.privacy.looks import looks_ratio
from dpreg.privacy.protection import Protection
from dpreg.privacy.tail_noise import TailNoise
from dpreg.schema import Schema
from dpreg.sources import as_source
from dpreg.sources.reader import Reader
from dpreg.staged.looks import look
from dpreg.staged.opened import open_looks
from dpreg.staged.plan import LOOKS, NOISES, SHARES, SQUARES, TAIL, plan_looks
from dpreg.staged.rows import LocatedRows

ONE_ROW = Protection("replace-one")
BOUNDS = Schema({"y": (-4, 4), "x": (-3, 3), "z": (-3, 3), "g": ["a", "b", "c"]})
DESIGN = build_design("y ~ x + z + g", BOUNDS)


def frame(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, n))
    g = rng.choice(["a", "b", "c"], n)
    y = 0.5 * x - 0.3 * z + 0.4 * (g == "c") + 0.5 * rng.normal(size=n)
    return pd.DataFrame({"y": y, "x": x, "z": z, "g": g})


PURE = Budget(1)


def looked(cost=PURE, protection=ONE_ROW, noise=None, seed=None, data=None, seen=None, rows=None):
    rng = None if seed is None else np.random.default_rng(seed)
    account = Account(protection, cost, rng)
    plan = plan_looks(4, cost, protection, exclusive=[(1, 2)], noise=noise)
    opened = open_looks(plan, account)
    account.charge(None, "a call")
    reader = Reader(as_source(frame() if data is None else data), False)

    def read(vectors):
        if seen is not None:
            seen.append(vectors)
        moments = read_moments(reader, vectors)[0]
        return moments if rows is None else replace(moments, rows=rows)

    return look(read, DESIGN, opened, public=protection.n_is_public), account


PLANS = [("gaussian", Budget(1, "1e-6")), ("matrix-laplace", Budget(1))]


@pytest.mark.parametrize(("noise", "cost"), PLANS)
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("k", [1, 3])
def test_the_plan_spends_the_whole_and_no_more(noise, cost, neighbors, k):
    plan = plan_looks(4, cost, Protection(neighbors, k), exclusive=[(1, 2)], noise=noise)
    spent = sum(plan.strengths, plan.tail_strength + plan.squares_strength)
    if noise == "gaussian":
        cells = len(plan.triangle.cells) + 2 * 21 + 7
        assert spent == Fraction(looks_ratio(cost.eps, cost.delta, cells)) ** 2
    else:
        assert spent == cost.eps
    assert sum(SHARES[noise], TAIL + SQUARES) == 1
    assert len(SHARES[noise]) == LOOKS
    assert plan.cost == cost
    noises = [plan.box_noise(), *(plan.located_noise(look, 0.5) for look in (1, 2))]
    drawn = [one.mu_squared if noise == "gaussian" else one.eps for one in noises]
    assert tuple(drawn) == plan.strengths
    assert plan.tail_noise(2**19).strength == plan.tail_strength
    assert plan.squares_noise().strength == plan.squares_strength
    assert all(one.neighbors == neighbors and one.contributions == k for one in noises)


@pytest.mark.parametrize(
    ("later", "split"), [(Fraction(0), False), (Fraction(2, 5), False), (Fraction(0), True)]
)
def test_mu_squared_is_proved_for_every_cell_that_is_drawn(later, split):
    cost = Budget(1, "1e-6")
    plan = plan_looks(
        4, cost, ONE_ROW, exclusive=[(1, 2)], noise="gaussian", later=later, split=split
    )
    noises = [plan.box_noise(), plan.located_noise(1, 0.5), plan.located_noise(2, 0.5)]
    tails = [plan.tail_noise(2**19), plan.squares_noise()]
    if later or split:
        again = plan.at_chosen(4)
        noises.append(again.located_noise(0, 0.5))
        tails.append(again.tail_noise(2**19))
    cells = sum(len(one.cells) for one in noises) + sum(len(one.scales) for one in tails)
    whole = Fraction(looks_ratio(cost.eps, cost.delta, cells)) ** 2
    assert max(plan.looking, plan.later) <= whole
    assert split or plan.looking + plan.later <= whole


def test_a_private_number_of_rows_is_not_used():
    """Told of one row only, looks under add-remove release what they release anyway."""
    private = Protection("add-remove")
    (told, _), (true, _) = (looked(protection=private, seed=5, rows=rows) for rows in (1, None))
    for one, other in zip(told.looks, true.looks, strict=True):
        np.testing.assert_array_equal(one.cells, other.cells)
        assert one.rows is None
    assert told.located.count == true.located.count
    public, _ = looked(seed=5, rows=1)
    assert public.located.count < 100 < told.located.count


@pytest.mark.parametrize(("noise", "cost"), PLANS)
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_rows_needed_are_those_of_the_noise_that_is_drawn(noise, cost, neighbors):
    plan = plan_looks(6, cost, Protection(neighbors, 2), noise=noise)
    d = 7
    sd = plan.located_noise(2, 0.0).sd[:d, :d] * d
    assert plan.rows_needed == pytest.approx(2 * np.sqrt((sd**2).sum(axis=1).max()), rel=1e-6)
    unit = {"gaussian": True, "matrix-laplace": False}[noise]
    assert plan.rows_needed == rows_needed(d, plan.strength(2), neighbors, gaussian=unit)


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("columns", [1, 3, 5, 60])
@pytest.mark.parametrize("delta", ["1e-6", "1e-9", "1e-14"])
def test_gaussian_noise_is_taken_up_to_half_as_much_again_as_the_other(neighbors, columns, delta):
    plans = {
        noise: plan_looks(columns, Budget(1, delta), Protection(neighbors), noise=noise)
        for noise in (None, *NOISES)
    }
    unit = {noise: plan.unit(LOOKS - 1) for noise, plan in plans.items()}
    assert unit["gaussian"] != unit["matrix-laplace"]
    larger = unit["gaussian"] > 1.5 * unit["matrix-laplace"]
    assert plans[None].mechanism == ("matrix-laplace" if larger else "gaussian")


def test_the_choice_between_noises():
    def taken(columns, delta, neighbors):
        return plan_looks(columns, Budget(1, delta), Protection(neighbors)).mechanism

    assert taken(1, "1e-6", "replace-one") == taken(1, "1e-6", "add-remove") == "gaussian"
    assert taken(1, "1e-9", "add-remove") == taken(60, 0, "replace-one") == "matrix-laplace"
    assert taken(60, "1e-9", "add-remove") == "gaussian"


@pytest.mark.parametrize(("noise", "cost"), PLANS)
def test_what_is_released_is_the_exact_moments_and_the_noise(noise, cost, monkeypatch):
    """With the noise taken away, cells are sums over the rows in the look's own coordinates."""
    kinds = {"gaussian": GaussianLook, "matrix-laplace": MatrixLaplaceLook}
    charge = {"gaussian": lambda part: part.look, "matrix-laplace": lambda part: part.draw}

    def silent(self, part, rows="all"):
        charge[noise](part)(self.mechanism, anything(), rows)
        return tuple((0,) * self.size for _ in range(self.size))

    def no_tail(self, part, rows="all"):
        charge[noise](part)(self.mechanism, anything(), rows)
        return (0,) * len(self.scales)

    monkeypatch.setattr(kinds[noise], "draw", silent)
    monkeypatch.setattr(TailNoise, "draw", no_tail)
    found, _ = looked(cost, noise=noise)
    rows = np.concatenate(list(blocks(DESIGN, as_source(frame()))))
    for at, one in zip((each.coordinates for each in found.looks), found.looks, strict=True):
        x, y = rows[:, 1:-1], rows[:, -1]
        u, e = x @ at.whitening.T + at.offset, (y - at.intercept - x @ at.slopes) / at.width
        norm = np.sqrt(1 + (u**2).sum(axis=1))
        c = np.ones(len(x)) if at.boxed else np.minimum(1, np.sqrt(at.squared_radius) / norm)
        z = np.column_stack([c, c[:, None] * u, np.clip(c * e, -1, 1)])
        np.testing.assert_allclose(one.cells, z.T @ z, atol=0.05)
    t = np.clip(c * e * at.width / found.tail.width, -1, 1)
    assert found.tail.total == pytest.approx((c * t).sum(), abs=0.01)
    assert found.tail.squares == pytest.approx((t * t).sum(), abs=0.01)
    leverage = float((np.square(c * norm * z[:, -1])).sum())
    assert found.tail.leverage == pytest.approx(leverage, rel=1e-4)


@pytest.mark.parametrize(("noise", "cost"), PLANS)
def test_stated_noise_is_the_spread_over_draws(noise, cost):
    """Cells of the first look, whose coordinates are always the same, around the exact moments."""
    reader = Reader(as_source(frame()), False)
    exact = read_moments(reader, DESIGN)[0].as_float()
    runs = [looked(cost, noise=noise, seed=seed)[0].looks[0] for seed in range(300)]
    z = np.array([(one.cells - exact) / np.maximum(one.noise_sd, 1e-12) for one in runs])
    drawn = runs[0].noise_sd > 0
    spread = np.sqrt((z**2).mean(axis=0))[drawn]
    assert spread.min() > 0.75
    assert spread.max() < 1.3
    assert np.sqrt((z[:, drawn] ** 2).mean()) == pytest.approx(1, abs=0.06)


def test_later_looks_are_located_by_released_numbers_alone():
    """Two tables whose first releases agree are looked at in the same coordinates."""
    seen, again = [], []
    looked(seed=5, seen=seen)
    looked(seed=5, seen=again)
    assert seen[1].location == again[1].location
    other = []
    looked(seed=5, data=frame(seed=9), seen=other)
    assert other[1].location != seen[1].location
    assert [type(one) for one in seen] == [type(DESIGN), LocatedRows, LocatedRows]
    assert all(one.wide >= one.location.tau for one in seen[1:])


@pytest.mark.parametrize(("noise", "cost"), PLANS)
def test_every_part_is_drawn_once(noise, cost):
    _, account = looked(cost, noise=noise)
    table = account.table()
    assert table.total == cost
    account = Account(ONE_ROW, cost)
    opened = open_looks(plan_looks(4, cost, ONE_ROW, noise=noise), account)
    account.charge(None, "a call")
    with pytest.raises(AccountError):
        account.table()
    reader = Reader(as_source(frame()), False)
    look(lambda vectors: read_moments(reader, vectors)[0], DESIGN, opened)
    with pytest.raises(AccountError):
        look(lambda vectors: read_moments(reader, vectors)[0], DESIGN, opened)


def test_noise_for_others_than_are_protected_is_not_drawn():
    account = Account(Protection("add-remove"), Budget(1))
    opened = open_looks(plan_looks(4, Budget(1), ONE_ROW), account)
    account.charge(None, "a call")
    reader = Reader(as_source(frame()), False)
    with pytest.raises(RuntimeError, match="with a bound for"):
        look(lambda v: read_moments(reader, v)[0], DESIGN, opened)


def test_the_wider_cut_stays_within_the_box():
    found, _ = looked(Budget(10**6))
    last = found.looks[-1].coordinates
    farthest = 1 + abs(last.intercept) + np.abs(last.slopes).sum()
    assert last.width <= found.tail.width <= farthest * (1 + 1e-9)
    assert found.count == pytest.approx(3000, abs=1)


@pytest.mark.parametrize(
    ("noise", "stretch"), [("gaussian", 1.25), ("gaussian", 2.0), ("matrix-laplace", 1.5)]
)
def test_no_noise_is_made_for_a_stretch_that_it_is_not_proved_for(noise, stretch):
    plan = plan_looks(4, Budget(4, "1e-6"), ONE_ROW, noise=noise)
    with pytest.raises(AccountError, match="no noise is proved for rows with a stretch"):
        plan.located_noise(2, 0.1, stretch)
