"""Coefficients of few rows: what is charged, what each step sees of a row, and where it ends."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from dpreg.estimation import few
from dpreg.estimation.few import few_fit, open_few, scales_of
from dpreg.formula.design import build_design
from dpreg.moments import read_moments
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.privacy.noise import OBJECTIVE, PARTS, SumsNoise
from dpreg.privacy.protection import Protection
from dpreg.schema import Schema
from dpreg.sources import as_source
from dpreg.sources.reader import Reader

BOUNDS = Schema({"y": (-4, 4), "x": (-3, 3), "z": (-3, 3), "g": ["a", "b", "c"]})
DESIGN = build_design("y ~ x + z + g", BOUNDS)
GROUPS = [(1, 2)]
STEPS = ["number and size of rows", "first coefficients", "spread of residuals", "coefficients"]
CENTRED = [STEPS[0], "middle of the columns", *STEPS[1:]]


def frame(n=800, seed=0):
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, n))
    g = rng.choice(["a", "b", "c"], n)
    y = 0.4 + 0.5 * x - 0.3 * z + 0.4 * (g == "c") + 0.5 * rng.normal(size=n)
    data = pd.DataFrame({"y": y, "x": x + 0.4, "z": z, "g": g})
    data.loc[data.index[7:8], "x"] = np.nan
    return data


def account_of(eps=1, neighbors="replace-one", k=1, seed=None):
    rng = None if seed is None else np.random.default_rng(seed)
    return Account(Protection(neighbors, k), Budget(eps), rng)


def fitted(data, account, design=DESIGN, groups=GROUPS, seen=None):
    opened = open_few(account, account.budget.eps)
    account.charge(None, "a call")
    reader = Reader(as_source(data), False)

    held = few._held

    def hold(*told):
        found = held(*told)
        if seen is not None:
            seen.append(found)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few, "_held", hold)
        return few_fit(reader, design, groups, opened)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_steps_cost_all_of_eps_together_and_each_is_drawn(neighbors, k):
    account = account_of(5, neighbors, k)
    fitted(frame(2000), account)
    table = account.table()
    assert [spend.step for spend in table.spends] == CENTRED
    assert [spend.eps for spend in table.spends] == [
        5 * Fraction(share, 100) for share in (8, 8, 30, 5, 49)
    ]
    assert table.total == Budget(5)


def test_columns_are_not_centred_where_noise_would_move_them_and_the_rest_goes_on():
    account = account_of(Fraction(1, 2))
    fitted(frame(300), account)
    spends = account.table().spends
    assert [spend.step for spend in spends] == STEPS
    assert spends[-1].eps == Fraction(1, 2) * Fraction(57, 100)
    assert [spend.note for spend in spends] == [f"share 0.{s}" for s in ("08", "3", "05", "57")]


def reference(data):
    """The two minima without noise, from the formulas of the module."""
    kept = data.dropna()
    levels = [(kept["g"] == g).to_numpy(float) for g in ("b", "c")]
    numbers = kept[["x", "z"]].to_numpy().T / 3
    assert [column.name for column in DESIGN.columns[1:]] == ["g[T.b]", "g[T.c]", "x", "z"]
    x = np.column_stack([*levels, *np.clip(numbers, -1, 1)])
    y = np.clip(kept["y"].to_numpy() / 4, -1, 1)
    m, n, d = x.mean(axis=0), len(y), x.shape[1] + 1
    s, reach = np.sqrt((x**2).mean() - (m**2).mean()), np.sqrt(1.2 * d)
    u = np.column_stack([np.ones(n), (x - m) / s])
    length = np.linalg.norm(u, axis=1)
    weight = np.minimum(1, reach**2 / length**2)

    def least(e, limit):
        cut = limit / (weight * length)

        def loss(t):
            left = np.abs(e - u @ t)
            return weight @ np.where(left <= cut, left**2 / 2, cut * left - cut**2 / 2)

        return minimize(loss, np.zeros(d), method="BFGS", options={"gtol": 1e-10}).x

    e = (y - y.mean()) / y.std()
    first = least(e, 0.7 * reach)
    left = e - u @ first
    omega = np.sqrt(np.minimum(left**2, 9).mean())
    t = y.std() * (first + omega * least(left / omega, 9.0 * reach))  # at much eps nothing is cut
    return np.append(y.mean() + t[0] - m @ t[1:] / s, t[1:] / s), omega


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_with_little_noise_it_is_the_two_minima_and_least_squares(neighbors):
    data = frame()
    seen = []
    found = fitted(data, account_of(10**6, neighbors), seen=seen)
    expected, omega = reference(data)
    assert found[0] == pytest.approx(expected, abs=2e-4)
    assert found[1] == pytest.approx(len(data) - 1, abs=0.01)
    (first, around), (_, second) = seen
    assert second.dispersion / around.dispersion == pytest.approx(omega**2, rel=2e-3)
    assert first.radius == pytest.approx(np.sqrt(1.2 * second.size))


def test_no_room_is_paid_for_that_no_row_can_need():
    """Columns at the ends of their bounds reach no farther than they usually do."""
    rng = np.random.default_rng(3)
    ends = pd.DataFrame(rng.choice([-1.0, 1.0], (4000, 3)), columns=["y", "x", "z"])
    seen = []
    design = build_design("y ~ x + z", {"y": (-1, 1), "x": (-1, 1), "z": (-1, 1)})
    fitted(ends, account_of(10**6), design, [], seen)
    assert [held.radius for held, _ in seen] == pytest.approx([np.sqrt(3)] * 2, rel=0.02)


def test_cuts_widen_with_the_rows_and_the_budget():
    def cut(eps, count):
        account = account_of(eps)
        part = account.line("coefficients", OBJECTIVE, Budget(eps))
        return few._cut(6, 2.7, count, part)

    found = [cut(eps, count) for eps, count in ((1, 100), (1, 1000), (1, 10**4), (4, 10**4))]
    assert found[0] == pytest.approx(few._CUTS[0])
    assert found == sorted(set(found))


def test_a_row_gives_to_the_spread_what_it_alone_decides(monkeypatch):
    """The released sum of all rows is that of each on its own, and no part leaves [0, 1]."""
    seen, sums = [], []
    fitted(frame(400), account_of(4, seed=1), seen=seen)
    monkeypatch.setattr(SumsNoise, "released", lambda _, exact, part: sums.append(exact[0]) or [1])
    (held, _), moved = seen[0], np.array([0.3, -2.0, 5.0, 0.4, -0.7])
    part = account_of(1).line("spread", "discrete laplace", Budget(1))

    def spread(rows):
        one = dataclasses.replace(held, x=held.x[rows], y=held.y[rows])
        few._spread(one, moved, part, 400.0)
        return sums[-1]

    each = [spread([row]) for row in range(len(held.y))]
    assert spread(slice(None)) == sum(each)
    assert spread(slice(None, None, -1)) == sum(each)
    assert min(each) >= 0
    assert max(each) == PARTS  # far residuals are cut
    u = held.x / held.x[:, :1]
    e = (held.y / held.x[:, 0] - u @ moved) * 0.7 * held.radius
    assert each == pytest.approx(np.minimum(e**2 / 9, 1) * PARTS, abs=2)


def scales(data, eps=1, neighbors="replace-one", seed=1, rows=None):
    account = account_of(eps, neighbors, seed=seed)
    opened = open_few(account, account.budget.eps)
    account.charge(None, "a call")
    (moments,) = read_moments(Reader(as_source(data), False), DESIGN)
    point, count = scales_of(moments, GROUPS, opened, rows)
    return SimpleNamespace(
        count=count,
        middle=point.centre,
        spread=1 / point.whitening[0, 0],
        response_middle=point.middle,
        response_spread=np.sqrt(point.dispersion),
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [1, 2, 30])
def test_scales_stay_above_their_noise_and_in_the_box_however_few_rows_there_are(n, seed):
    found = scales(frame(n), Fraction(1, 10), seed=seed, rows=n)
    assert 1 <= found.count <= max(n, 1)
    assert (found.middle == 0).all()
    assert abs(found.response_middle) <= 1
    assert found.spread == 1.0
    assert found.response_spread == 1.0
    hidden = scales(frame(n), Fraction(1, 10), "add-remove", seed)
    assert hidden.count >= np.sqrt(2) * 8 / 0.008 * 0.999


def test_scales_are_those_of_the_complete_rows():
    data = frame(5000)
    data.loc[::3, "z"] = np.nan
    found = scales(data, 10**6, rows=len(data))
    kept = data.dropna()
    assert found.count == pytest.approx(len(kept), abs=0.01)
    assert found.response_middle == pytest.approx(kept["y"].mean() / 4, abs=1e-3)
    assert found.response_spread == pytest.approx(kept["y"].std() / 4, rel=5e-3)
    assert found.middle[2] == pytest.approx(kept["x"].clip(-3, 3).mean() / 3, abs=1e-3)


def test_means_are_shrunk_by_their_noise():
    means = np.array([0.3, -0.1, 0.2])
    assert few._shrunk(means, 1e-9) == pytest.approx(means)
    assert few._shrunk(means, 1.0) == pytest.approx([0, 0, 0])
    assert np.abs(few._shrunk(means, 0.1)).max() < 0.3
    assert np.abs(few._shrunk(np.array([40.0]), 0.1)).max() <= 1


def test_chunks_change_no_bit():
    data = frame(900)
    parts = [data.iloc[:100], data.iloc[100:101], data.iloc[101:]]
    whole = fitted(data, account_of(3, "add-remove", seed=4))
    by_parts = fitted(lambda: iter(parts), account_of(3, "add-remove", seed=4))
    assert np.array_equal(whole[0], by_parts[0])


def test_scales_follow_from_what_was_released(monkeypatch):
    """Another table with the same released sums has the same scales."""
    told = [500.0, 40.0, 30.0, 300.0]
    monkeypatch.setattr(
        SumsNoise, "released", lambda self, exact, part, rows: told[: len(exact)] if part else []
    )
    one, other = (scales(frame(500, seed=seed), 100, rows=500) for seed in (0, 9))
    assert (one.spread, one.response_spread) == (other.spread, other.response_spread)
    assert one.response_spread == pytest.approx(np.sqrt(30 / 500 - one.response_middle**2), rel=0.1)
