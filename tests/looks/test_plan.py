"""What looks may cost: all parts are the whole, and what is drawn is what was promised."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from oracles.tagged_noise import tagged
from scipy.special import ndtr

from dpreg.looks import plan as module
from dpreg.looks.plan import MOST_PASSES, plan_looks
from dpreg.looks.tuning import TUNING
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.privacy.look_noise import FitNoise, fit_cells
from dpreg.privacy.protection import AccountError, Protection

WHO = {
    f"{relation}, {k}" + (", persons" if person else ""): Protection(relation, k, person)
    for relation in ("replace-one", "add-remove")
    for k, person in ((1, None), (3, None), (2, "who"))
}
OF = pytest.mark.parametrize("who", WHO.values(), ids=WHO)
COST = {"gaussian": Budget(1, "1e-6"), "pure": Budget(1, 0)}
NOISE = pytest.mark.parametrize("noise", COST)


def noises(plan, made):
    """Every noise on a path with so many looks between the first and the last, with its share."""
    yield plan.box_noise(), plan.shares()[0]
    left = 1 - plan.shares()[0]
    for share in plan.shares()[1:][:made]:
        left -= share
        if plan.gaussian:
            yield plan.fit_noise(share, last=False), share
        else:
            yield plan.locating_noise(share, 1.0), share
    yield plan.fit_noise(left, last=True), left


def cells_of(noise):
    return fit_cells(noise.columns, noise.middle)


def paths(plan):
    return range(1, len(plan.shares()[1:]) + 1) if plan.gaussian else [len(plan.shares()[1:])]


@OF
@NOISE
def test_parts_on_every_path_are_the_whole_exactly(noise, who):
    plan = plan_looks(4, COST[noise], who)
    assert plan.mechanism == ("gaussian" if noise == "gaussian" else "matrix-laplace")
    for made in paths(plan):
        found = list(noises(plan, made))
        assert sum(share for _, share in found) == 1
        assert all(share > 0 for _, share in found)
        assert sum(one.strength for one, _ in found) == plan.strength
        for one, share in found:
            assert one.strength == plan.strength * share
    if noise == "pure":
        assert plan.strength == 1


@pytest.mark.parametrize("eps", ["0.1", 1, 20])
@pytest.mark.parametrize("delta", ["1e-9", "1e-6", "0.01", "0.4"])
def test_gaussian_looks_are_worth_no_more_than_their_delta(eps, delta):
    """Of one normal number of the same ratio, whose delta is known (Balle and Wang 2018)."""
    plan = plan_looks(4, Budget(eps, delta), WHO["replace-one, 1"], chooses=True)
    mu, eps = math.sqrt(plan.strength), float(eps)
    whole = ndtr(mu / 2 - eps / mu) - math.exp(eps) * ndtr(-mu / 2 - eps / mu)
    assert 0.99 * float(delta) < whole <= float(delta) * (1 + 1e-9)


@OF
@NOISE
@pytest.mark.parametrize("path", [1, 2, 3])
def test_the_line_is_used_up_by_what_is_drawn(noise, path, who, monkeypatch):
    """With the parts of an account that was charged, and no more than that."""
    told = tagged(monkeypatch)
    plan = plan_looks(3, COST[noise], who, others=1)
    if path not in paths(plan):
        return
    account = Account(who, plan.cost, np.random.default_rng(0))
    opened = plan.open(account)
    account.charge(None, "a test")
    some = list(noises(plan, path))
    for place, (one, share) in enumerate(some):
        one.draw(opened.part(share, last=place == len(some) - 1))
    assert told.draws >= len(some)
    with pytest.raises(AccountError):
        some[0][0].draw(opened.part(plan.shares()[0]))


@OF
@NOISE
def test_noise_of_a_larger_part_is_refused(noise, who):
    plan = plan_looks(3, COST[noise], who)
    for one, share in noises(plan, paths(plan)[-1]):
        account = Account(who, plan.cost, np.random.default_rng(0))
        opened = plan.open(account)
        account.charge(None, "a test")
        with pytest.raises(AccountError, match="less noise than was charged"):
            one.draw(opened.part(share - Fraction(1, 1000)))


@OF
@pytest.mark.parametrize("exclusive", [(), [(2, 3, 4)]])
@pytest.mark.parametrize("others", [0, 2])
def test_every_cell_that_is_drawn_pays_for_its_grid(others, exclusive, who, monkeypatch):
    asked = []

    def ratio(eps, delta, cells):
        asked.append(cells)
        return 1 / 8

    monkeypatch.setattr(module, "looks_ratio", ratio)
    plan = plan_looks(5, COST["gaussian"], who, others=others, exclusive=exclusive)
    assert plan.strength == Fraction(1, 64)
    for made in paths(plan):
        drawn = 0
        for one, _ in noises(plan, made):
            drawn += cells_of(one) if isinstance(one, FitNoise) else len(one.scales)
        assert drawn <= asked[0]


@pytest.mark.parametrize("noise", COST)
def test_rows_that_a_person_may_own_cost_and_persons_rows_do_not(noise):
    def scales(who):
        for one, _ in noises(plan_looks(3, COST[noise], who), 1):
            yield float(np.max(one.sd)) if not isinstance(one, FitNoise) else one.score_sd

    rows = [list(scales(Protection("replace-one", k))) for k in (1, 3)]
    np.testing.assert_allclose(rows[1], 3 * np.array(rows[0]), rtol=1e-6)
    persons = [list(scales(Protection("replace-one", k, "who"))) for k in (1, 3)]
    assert persons[0] == persons[1]


@OF
def test_a_last_look_releases_the_middle_and_early_ones_its_trace(who):
    plan = plan_looks(3, COST["gaussian"], who)
    assert plan.fit_noise(Fraction(1, 10), last=False).middle == "trace"
    last = plan.fit_noise(Fraction(1, 10), last=True)
    assert (last.middle, plan.degrees) == ("matrix", None)
    pure = plan_looks(3, COST["pure"], who)
    assert not pure.fit_noise(Fraction(1, 10), last=True).information_scales
    assert pure.degrees == 2
    assert pure.protection == who
    assert max(plan.most, pure.most) == MOST_PASSES


def test_noise_that_was_asked_for_is_taken():
    who = WHO["replace-one, 1"]
    asked = plan_looks(3, COST["gaussian"], who, noise="matrix-laplace")
    assert (asked.gaussian, asked.cost) == (False, Budget(1, 0))
    assert plan_looks(3, COST["pure"], who).mechanism == "matrix-laplace"


@NOISE
def test_the_need_falls_with_eps_and_rises_with_columns_and_rows_a_person(noise):
    def need(columns=4, eps=1, k=1, person=None):
        cost = Budget(eps, COST[noise].delta)
        return plan_looks(columns, cost, Protection("replace-one", k, person)).rows_needed

    assert need(eps=2) < 0.6 * need()
    assert need(columns=8) > 1.5 * need()
    assert need(k=3) == pytest.approx(3 * need())
    assert need(k=3, person="who") == need()


@pytest.mark.parametrize("later", [Fraction(0), Fraction(1, 5)])
def test_cells_of_a_choice_count_on_every_path(later, monkeypatch):
    """Each look in between, the last, and two at as many chosen columns."""
    asked = []
    honest = module.looks_ratio

    def noted(eps, delta, cells):
        asked.append(cells)
        return honest(eps, delta, cells)

    monkeypatch.setattr(module, "looks_ratio", noted)
    who = Protection("replace-one", 1)
    plan = plan_looks(4, Budget(1, "1e-6"), who, chooses=True, later=later)
    located = (len(plan.shares()[1:]) + 1) * len(plan.locating_noise(Fraction(1, 10), 1.0).cells)
    chosen = plan.at_chosen(4)
    fits = [cells_of(chosen.fit_noise(Fraction(1, 10), last=last)) for last in (False, True)]
    box = 6 * 7 // 2
    assert asked == [box + located + (sum(fits) if later else 0)]


@OF
@pytest.mark.parametrize("last", [False, True])
def test_the_information_gets_the_share_that_leaves_room_for_usual_rows(who, last):
    plan, share = plan_looks(8, COST["gaussian"], who), Fraction(1, 2)
    least = plan.fit_noise(share, last=last)
    assert plan.fit_noise(share, 1e9, last=last) == least
    assert plan.fit_noise(share, -1.0, last=last).shares[0] == pytest.approx(
        TUNING.information_most
    )

    def norm(noise):
        return 2 * math.sqrt(9) * 2 * 9 * plan.several * noise.information_sd

    rows = 0.8 * norm(least) / TUNING.loud
    found = plan.fit_noise(share, rows, last=last)
    assert least.shares[0] < found.shares[0] < TUNING.information_most
    assert norm(found) == pytest.approx(TUNING.loud * rows, rel=0.01)
    assert found.strength == least.strength
    assert not plan.fit_noise(share, rows, last=last, carried=True).information_scales


@OF
def test_early_looks_get_what_their_information_needs_beyond_all_of_it(who):
    plan = plan_looks(8, COST["gaussian"], who)
    usual = plan.shares()[1]
    assert plan.early(usual, 1e9) == usual
    assert plan.early(usual, 1.0) == Fraction(1, TUNING.looks + 3)

    noise = plan.fit_noise(usual, 1e9, last=False)
    norm = 2 * math.sqrt(9) * 2 * 9 * plan.several * noise.information_sd
    alone = norm * math.sqrt(TUNING.information_early) / TUNING.loud
    for rows in (1.01 * alone, 0.6 * alone):
        grown = float(plan.early(usual, rows) / usual)
        assert grown == pytest.approx(max(alone / rows, 1.0), rel=0.01)
