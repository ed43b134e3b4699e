"""The looks of a call: who is told what, in which order, and what is spent on every path."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from oracles.look_rows import KINDS
from oracles.tagged_noise import tagged

from dpreg.looks import loop
from dpreg.looks import plan as looks
from dpreg.looks.locate import combined, farthest, fit_limits, locating_limits
from dpreg.looks.loop import look
from dpreg.looks.plan import plan_looks
from dpreg.looks.tuning import TUNING
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection

from .test_table import table_of

WHO = Protection("replace-one")


class Listening:
    """Rows that note what is asked of them."""

    def __init__(self, table):
        self.table, self.asked = table, []

    @property
    def plan(self):
        return self.table.plan

    @property
    def described(self):
        return self.table.described

    def box(self):
        self.asked.append(("box", self.plan.shares()[0], None, None))
        return self.table.box()

    def fitting(self, point, family, limits, share, noise, *, last, **more):
        told = (point, noise, more["before"])
        self.asked.append(("last" if last else "fitting", share, limits, told))
        return self.table.fitting(point, family, limits, share, noise, last=last, **more)

    def minimum(self, point, family, limits, share, noise, count, *, before, places=None):
        self.asked.append(("minimum", share, limits, (point, noise, before, count, places)))
        return self.table.minimum(
            point, family, limits, share, noise, count, before=before, places=places
        )

    def locating(self, point, family, limits, share, signal):
        self.asked.append(("locating", share, limits, (point, None, signal)))
        return self.table.locating(point, family, limits, share, signal)


def rows_of(n, delta, name="linear", seed=0, *, eps=1, who=WHO, **more):
    rng = np.random.default_rng(seed)
    kind, p = KINDS[name], 3
    z = np.column_stack([np.ones(n), np.clip(rng.normal(size=(n, p)) * 0.3, -1, 1), np.zeros(n)])
    eta = z[:, 1 : p + 1] @ [0.5, -0.3, 0.2]
    if name == "linear":
        z[:, -1] = np.clip(eta + rng.normal(size=n) * 0.1, -1, 1)
    else:
        z[:, -1] = 2 * rng.binomial(1, 1 / (1 + np.exp(-4 * eta))) - 1
    plan = plan_looks(p, Budget(eps, delta), who, **more)
    return Listening(table_of(z, kind, plan, p)), kind.family


def checked(rows, seen):
    """What holds on every path."""
    kinds = [kind for kind, *_ in rows.asked]
    assert kinds[0] == "box"
    assert kinds[-1] == "last"
    assert kinds.count("last") == 1
    assert sum(share for _, share, *_ in rows.asked) == 1
    assert len(rows.asked) <= rows.plan.most
    assert len(seen.releases) == len(rows.asked) - 1
    assert seen.rows == pytest.approx(max(seen.box.cells[0, 0], 1.0))
    return kinds


@pytest.mark.parametrize("n", [1_000, 60_000])
@pytest.mark.parametrize("name", ["linear", "logit"])
def test_gaussian_looks_are_as_many_as_the_plan_says(name, n, monkeypatch):
    tagged(monkeypatch)
    rows, family = rows_of(n, "1e-6", name)
    seen = look(rows, family)
    assert checked(rows, seen) == ["box", *["fitting"] * len(rows.plan.shares()[1:]), "last"]
    usual = rows.plan.shares()[1]
    early = rows.plan.early(usual, seen.rows)
    assert (early > usual) == (n < 10_000)
    assert rows.asked[-1][1] == 1 - rows.plan.shares()[0] - 3 * early
    for kind, share, limits, (point, noise, before) in rows.asked[1:]:
        last = kind == "last"
        assert last or share == early
        assert noise == rows.plan.fit_noise(share, seen.rows, last=last)
        expected = fit_limits(
            seen.rows, point.size, point.dispersion, noise.information_sd, noise.score_sd, 1,
            farthest(point, family, rows.described), before=seen.releases[-2] if last else None,
        )  # fmt: skip
        assert limits == expected
        assert before is None
    assert seen.releases[-1].middle is not None
    assert seen.releases[0].middle is None


def test_persons_may_reach_farther_than_a_row(monkeypatch):
    tagged(monkeypatch)
    honest, told = loop.fit_limits, []
    monkeypatch.setattr(
        loop, "fit_limits", lambda *args, **more: told.append(args[6]) or honest(*args, **more)
    )
    for who in (WHO, Protection("replace-one", 2, "who")):
        rows, family = rows_of(500, "1e-6", who=who)
        look(rows, family)
        assert all(np.isinf(reach) == (who is not WHO) for reach in told[-1])


@pytest.mark.parametrize(
    ("name", "who", "several"),
    [("linear", WHO, 2), ("logit", WHO, 1), ("linear", Protection("replace-one", 2, "who"), 1)],
)
def test_information_is_that_of_looks_in_which_rows_weigh_the_same(name, who, several, monkeypatch):
    tagged(monkeypatch)
    both = []
    monkeypatch.setattr(
        loop, "combined", lambda *of: both.append((of, combined(*of))) or both[0][1]
    )
    rows, family = rows_of(20_000, "0", name, who=who)
    seen = look(rows, family)
    told = seen.releases[-2]
    if several == 2:
        ((of, told),) = both
        assert all(one is other for one, other in zip(of, seen.releases[:-1], strict=True))
    assert rows.asked[-1][3][2] is told
    assert len(both) == several - 1


@pytest.mark.parametrize("name", ["linear", "logit"])
def test_pure_looks_locate_and_carry_their_information(name, monkeypatch):
    tagged(monkeypatch)
    rows, family = rows_of(20_000, "0", name)
    seen = look(rows, family)
    kinds = checked(rows, seen)
    assert kinds == ["box", *["locating"] * len(rows.plan.shares()[1:]), "last"]
    for (kind, share, limits, (point, _, signal)), early in zip(
        rows.asked[1:-1], rows.plan.shares()[1:], strict=True
    ):
        assert (kind, share) == ("locating", early)
        assert limits == locating_limits(point)
        assert signal > 0
    point, noise, _ = rows.asked[-1][3]
    assert rows.asked[-1][2] == fit_limits(
        seen.rows, point.size, point.dispersion, noise.information_sd, noise.score_sd, 1,
        farthest(point, family, rows.described), limit=TUNING.limit_wide,
    )  # fmt: skip
    assert rows.asked[-1][1] == 1 - rows.plan.shares()[0] - sum(rows.plan.shares()[1:], Fraction(0))


@pytest.mark.parametrize("held", [True, False])
def test_the_last_pure_look_takes_a_minimum_of_rows_at_hand(held, monkeypatch):
    both = []
    monkeypatch.setattr(loop, "combined", lambda *of: both.append(combined(*of)) or both[0])
    rows, family = rows_of(20_000, "0", holds=True, eps=4)
    plan = rows.plan
    if not held:
        monkeypatch.setattr(looks, "_MOST_CELLS", 70_000)
    seen = look(rows, family)
    _, share, limits, (point, noise, before, *more) = rows.asked[-1]
    assert [one for one, *_ in rows.asked] == [
        "box", "locating", "locating", "minimum" if held else "last",
    ]  # fmt: skip
    first, early = Fraction(15, 100), Fraction(15, 100) if held else Fraction(1, 5)
    assert [one for _, one, *_ in rows.asked] == [first, early, early, 1 - first - 2 * early]
    assert noise == (plan.minimum_noise(share) if held else plan.fit_noise(share, last=True))
    assert before is both[0]
    assert seen.releases[-1].minimum == held
    assert limits == fit_limits(
        seen.rows, point.size, point.dispersion, noise.information_sd, noise.score_sd, 1,
        farthest(point, family, rows.described),
        limit=TUNING.limit_minimum if held else TUNING.limit_wide,
        squared=1 + float(point.spread.sum()) if held else None,
    )  # fmt: skip
    if held:
        assert more == [seen.rows, None]
        reach = farthest(seen.releases[-1].point, family, rows.described)
        cuts = limits[1] < reach[1] or 2 * limits[0] < reach[0]
        assert seen.releases[-1].cuts == cuts


def test_where_weights_follow_the_fit_information_is_that_of_a_look_at_the_minimum(monkeypatch):
    rows, family = rows_of(20_000, "0", "logit", holds=True, eps=4)
    seen = look(rows, family)
    parts = [Fraction(15, 100), Fraction(20, 100), Fraction(35, 100) + Fraction(15, 100)]
    kinds = ["box", "locating", "minimum", "locating"]
    assert [one for one, *_ in rows.asked] == kinds
    assert [one for _, one, *_ in rows.asked] == [*parts, Fraction(15, 100)]
    assert sum(one for _, one, *_ in rows.asked) == 1
    first, there, last = seen.releases
    assert rows.asked[2][3][1] == rows.plan.minimum_noise(parts[2])
    at = rows.asked[3][3][0]
    np.testing.assert_allclose(at.slopes, last.point.slopes)
    assert at.weight != last.point.weight  # it is of the fit, and so are weights
    assert (first.together, there.together, last.together) == (True, True, False)
    assert last.minimum
    np.testing.assert_allclose(
        last.information * last.point.weight, there.information * at.weight, rtol=1e-6
    )
    assert last.information_sd * last.point.weight == pytest.approx(
        there.information_sd * at.weight
    )
    assert last.carried is None
    assert last.degrees == there.degrees


def test_where_terms_are_chosen_no_look_waits_for_a_minimum():
    rows, family = rows_of(20_000, "0", "logit", holds=True, eps=4, chooses=True)
    look(rows, family)
    assert [one for one, *_ in rows.asked] == ["box", *["locating"] * 3]
    assert sum(one for _, one, *_ in rows.asked) == 1


@pytest.mark.parametrize(
    ("delta", "who"), [("1e-6", WHO), ("0", Protection("replace-one", 2, "who"))]
)
def test_persons_and_gaussian_looks_take_no_minimum(delta, who, monkeypatch):
    tagged(monkeypatch)
    rows, family = rows_of(2_000, delta, who=who, holds=True)
    seen = look(rows, family)
    assert rows.asked[-1][0] == "last"
    assert not any(one.minimum for one in seen.releases)


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_each_look_is_taken_where_the_one_before_said(delta, monkeypatch):
    tagged(monkeypatch)
    told = []
    honest = loop.advance

    def advance(*args, **more):
        found = honest(*args, **more)
        told.append((args, more, found[0]))
        return found

    monkeypatch.setattr(loop, "advance", advance)
    rows, family = rows_of(20_000, delta)
    seen = look(rows, family)
    for place, (args, more, point) in enumerate(told):
        assert args[0] is seen.releases[place]
        assert args[2] == seen.rows
        assert more == {"first": place == 0 and delta != "0"}
        assert rows.asked[place + 2][3][0] is point
