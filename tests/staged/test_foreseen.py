"""What to expect of a second look after a first one, and the shares that this settles."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.staged import foreseen as room
from dpreg.staged import minimum
from dpreg.staged.clips import open_early
from dpreg.staged.foreseen import ENOUGH, foreseen, settled
from dpreg.staged.locate import locate
from dpreg.staged.minimum import ALONE, seen_by
from dpreg.staged.plan import SHARES, plan_looks
from dpreg.staged.predict import located_rows
from dpreg.staged.released import NoisyLook, box

ROWS = 20_000
USUAL = SHARES["matrix-laplace"]


def columns(seed=0, rare=None, level=None, p=5):
    rng = np.random.default_rng(seed)
    x = np.clip(rng.standard_normal((ROWS, p)) / 4, -1, 1)
    if rare is not None:
        x[:, 0] = np.where(rng.random(ROWS) < rare, 1.0, -1.0)
    if level is not None:
        x[:, 1] = rng.random(ROWS) < level
        x[:, 2] = (1 - x[:, 1]) * (rng.random(ROWS) < 0.5)
    return x, np.clip(x @ np.full(p, 0.2) + rng.standard_normal(ROWS) / 8, -1, 1)


def planned(p=5, eps=1, levels=(), neighbors="replace-one"):
    groups = [tuple(j + 1 for j in levels)] if levels else []
    return plan_looks(p, Budget(eps), Protection(neighbors), exclusive=groups, alone=True)


def looked_at(x, y, plan, rng=None, rows=ROWS):
    """The first look at these rows as if they were so many; with its noise if there is an rng."""
    z = np.column_stack([np.ones(len(x)), x, y])
    noise, cells = plan.box_noise(), z.T @ z * rows / len(x)
    if rng is not None:
        cells = cells + np.array(noise.simulate(rng), dtype=float) / 2.0**40
    first = NoisyLook(cells, noise.sd, box(x.shape[1]), noise.degrees, rows)
    levels = [j - 1 for group in plan.triangle.groups for j in group]
    return first, locate(first, levels=levels), levels


def second_noise(located, plan):
    at = open_early(located, plan.unit(1))
    units = np.append(np.full(plan.size - 1, math.sqrt(at.squared_radius)), 1.0)
    noise = plan.located_noise(1, located.expected_square * at.squared_radius)
    return at, noise.sd * np.outer(units, units)


def expected(x, y, plan, rng=None, rows=ROWS):
    first, located, levels = looked_at(x, y, plan, rng, rows)
    return foreseen(first, located, *second_noise(located, plan), levels)


def test_shares_that_a_first_look_settles_have_its_own_and_the_sum_in_common():
    assert ALONE[0] == USUAL[0]
    assert sum(ALONE) == sum(USUAL)
    assert ALONE[1] > USUAL[1]


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_a_rare_value_leaves_the_usual_shares_and_many_rows_do_not(neighbors):
    found = {}
    for rare in (None, 0.3, 0.005):
        x, y = columns(rare=rare)
        plan = planned(neighbors=neighbors)
        first, located, _ = looked_at(x, y, plan)
        found[rare] = settled(plan, first, located)
        whole = sum(found[rare].strengths) + plan.tail_strength + plan.squares_strength
        assert whole == 1
        assert found[rare].strengths[0] == plan.strengths[0]
    assert found[None] == found[0.3] == plan
    assert not found[0.005].alone
    assert found[0.005].shares == found[0.005].strengths == USUAL
    usual = plan_looks(5, Budget(1), Protection(neighbors))
    for place in (1, 2):  # and noise as that of three looks
        told, own = (one.located_noise(place, 0.1).sd for one in (usual, found[0.005]))
        assert np.array_equal(told, own)


def test_half_of_eps_has_half_of_the_shares():
    x, y = columns(rare=0.005)
    plan = planned(eps=Fraction(1, 2))
    first, located, _ = looked_at(x, y, plan)
    assert settled(plan, first, located).strengths == tuple(share / 2 for share in USUAL)


def test_rows_that_cannot_be_held_leave_the_usual_shares(monkeypatch):
    x, y = columns()
    plan = planned()
    first, located, _ = looked_at(x, y, plan)
    assert settled(plan, first, located).alone
    monkeypatch.setattr(minimum, "_MOST_CELLS", ROWS * plan.size - 1)
    assert not settled(plan, first, located).alone


def test_what_is_expected_grows_with_rows_and_falls_with_rarity():
    x, y = columns()
    by_rows = [expected(x, y, planned(), rows=rows) for rows in (5_000, 20_000, 80_000)]
    assert by_rows == sorted(by_rows)
    assert by_rows[0] < 2 < by_rows[1]
    rare = [expected(*columns(rare=share), planned()) for share in (0.003, 0.01, 0.03, 0.3)]
    assert rare == sorted(rare)
    assert rare[1] < ENOUGH < rare[3]
    told = [expected(*columns(level=share), planned(levels=(1, 2))) for share in (0.003, 0.03, 0.3)]
    assert told == sorted(told)
    assert told[0] < ENOUGH < told[2]


def test_what_is_expected_is_half_of_what_a_second_look_sees_of_such_columns():
    """Directions may be shorter than columns: these are not."""
    for seed, (rare, rows) in enumerate([(None, 20_000), (None, 60_000), (0.1, 60_000)]):
        x, y = columns(seed, rare)
        plan = planned()
        first, located, levels = looked_at(x, y, plan, rows=rows)
        at, sd = second_noise(located, plan)
        z = located_rows(x, y, at)
        second = NoisyLook(z.T @ z * rows / len(x), sd, at, first.degrees, rows)
        told = seen_by(second, locate(second, located))
        assert 0.3 < foreseen(first, located, at, sd, levels) / told < 0.75


def test_noise_hides_neither_usual_columns_nor_rare_values():
    """Of the first looks at 20,000 rows, where the noise is near the variance of a column."""
    rng, plan = np.random.default_rng(3), planned(8)
    usual = [expected(*columns(one, p=8), plan, rng) >= ENOUGH for one in range(40)]
    rare = [expected(*columns(one, rare=0.005, p=8), plan, rng) >= ENOUGH for one in range(40)]
    assert sum(usual) >= 38
    assert sum(rare) <= 6


def test_variances_are_told_by_what_columns_are():
    x, y = columns(rare=0.1, level=0.2)
    first, located, levels = looked_at(x, y, planned(levels=(1, 2)), rows=10**9)
    found = room._variances(first, located, levels)
    assert found == pytest.approx(x.var(axis=0), rel=0.02)


def test_a_model_without_columns_is_settled():
    plan = planned(0)
    first, located, _ = looked_at(np.zeros((ROWS, 0)), np.linspace(-1, 1, ROWS), plan)
    assert settled(plan, first, located).alone
