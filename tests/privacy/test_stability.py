"""A bound that was proved for something else than what is drawn stops the draw."""

import ast
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from oracles.accounts import bought

import dpreg
from dpreg.estimation import blocks as aggregate
from dpreg.estimation import sums
from dpreg.estimation.histogram import count_change
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.privacy.mechanisms.choice import draw_index
from dpreg.privacy.noise import fit_noise
from dpreg.privacy.proofs import score_range
from dpreg.privacy.protection import (
    AccountError,
    Protection,
    ScoreRange,
    Stability,
    Transformation,
    VectorChange,
)
from dpreg.privacy.ranks import RANK_UNIT, fixed_range, rank_range
from dpreg.selection.contest import profile_range, residual_change

REPLACE, ADD = Protection("replace-one"), Protection("add-remove")
THREE = Protection("replace-one", 3)
SCORES = np.array([3, 1, 2])
ONE = Fraction(1)


@pytest.mark.parametrize(
    ("proved", "protects"),
    [
        (REPLACE, ADD),
        (ADD, REPLACE),
        (REPLACE, THREE),
        (THREE, REPLACE),
        (Protection("replace-one", 1, "id"), REPLACE),
    ],
)
@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential", "laplace"])
def test_scores_are_drawn_by_a_bound_for_the_calls_own_neighbours(proved, protects, mechanism):
    part = bought(1, 0, protects.neighbors, protects.contributions)
    with pytest.raises(AccountError, match="with a bound for"):
        draw_index(SCORES, score_range(ONE, proved), part, mechanism)
    assert part.state == "handed out"
    assert draw_index(SCORES, score_range(ONE, protects), part, mechanism) in (0, 1, 2)


@pytest.mark.parametrize("proved", [ADD, THREE])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_numbers_are_drawn_by_a_bound_for_the_calls_own_neighbours(proved, mechanism):
    cost = Budget(1, "1e-6")
    noise = fit_noise(mechanism, count_change(proved), cells=3, cost=cost)
    with pytest.raises(AccountError, match="with a bound for"):
        noise.draw(3, bought(noise.cost.eps, noise.cost.delta))


def test_a_bound_in_the_units_of_one_mechanism_serves_no_other():
    scores, numbers = score_range(ONE, REPLACE), count_change(REPLACE)
    with pytest.raises(AccountError, match="by gaussian, but the bound is for permute"):
        bought(1, "1e-6").draw("gaussian", scores)
    with pytest.raises(AccountError, match="by exponential, but the bound is for laplace"):
        bought(1).draw("exponential", numbers)


def test_groups_that_share_a_cost_need_a_bound_for_all_of_them():
    alone = rank_range(RANK_UNIT // 4, REPLACE)
    together = rank_range(RANK_UNIT // 4, REPLACE, grouped=True)
    one, two = bought(1).across(2)
    with pytest.raises(AccountError, match="for one group of rows, but pays for several"):
        one.draw("permute-and-flip", alone)
    assert one.draw("permute-and-flip", together) == two.draw("permute-and-flip", together)
    # A part of one such part is no less one of several, and a single group is as good as none.
    inner = bought(1).across(2)[0].split([ONE])[0]
    with pytest.raises(AccountError, match="pays for several"):
        inner.draw("permute-and-flip", alone)
    (only,) = bought(1).across(1)
    only.draw("permute-and-flip", alone)
    # Under add-remove a row is in one group or in none.
    bought(1, 0, "add-remove").across(2)[0].draw("permute-and-flip", rank_range(7, ADD))


def test_numbers_of_a_single_group_do_not_pay_for_several():
    noise = fit_noise("laplace", count_change(REPLACE, single=True), cells=1, cost=Budget(1))
    with pytest.raises(AccountError, match="pays for several"):
        noise.draw(1, bought(1).across(3)[0])


def half(protection):
    account = Account(protection, Budget(1))
    part = account.line("a step", "private choices", account.budget, rows="half 1")
    account.charge(None, "a test")
    return part


@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("person", [None, "id"])
def test_a_half_needs_a_bound_that_can_be_divided(contributions, person):
    """PCPL's scores under add-remove: j of k rows may move them by more than j/k of the range."""
    protection = Protection("add-remove", contributions, person)
    bound = profile_range(2**40, residual_change(ONE, protection), rows=100)
    part = half(protection)
    if contributions > 1 and person is None:
        with pytest.raises(AccountError, match="for some of a person's rows"):
            part.draw("exponential", bound, "half 1")
        part.draw("exponential", score_range(ONE, protection), "half 1")
    else:
        part.draw("exponential", bound, "half 1")
    replaced = Protection("replace-one", contributions, person)
    half(replaced).draw(
        "exponential", profile_range(2**40, residual_change(ONE, replaced), rows=100), "half 1"
    )


def test_a_bound_on_persons_sums_holds_however_many_rows_they_own():
    call, summed = Protection("replace-one", 5, "id"), Protection("replace-one", 1, "id")

    def objection(proved, protects, *, summed):
        bound = Stability(protection=proved, summed=summed)
        return bound.objection("gaussian", protects, joint=False, divided=True)

    for proved in (call, summed, Protection("replace-one", 2, "id")):
        assert objection(proved, call, summed=True) is None
        assert objection(proved, Protection("replace-one", 1, "id"), summed=True) is None
        for other in (
            Protection("replace-one", 5),
            Protection("add-remove", 5, "id"),
            Protection("replace-one", 5, "other"),
        ):
            assert "with a bound for" in objection(proved, other, summed=True)
    # A limit on each row is no limit on their sum.
    assert "with a bound for" in objection(summed, call, summed=False)
    assert "with a bound for" in objection(REPLACE, call, summed=True)
    assert "with a bound for" in objection(REPLACE, THREE, summed=True)


def test_a_transformation_carries_a_bound_back():
    changes = aggregate.block_changes(Protection("add-remove", 3))
    assert changes.after == Protection("replace-one", 3)
    bound = changes.then(fixed_range(changes.after))
    assert bound.protection == changes.before
    assert bound.width == 6 * RANK_UNIT
    part = bought(1, 0, "add-remove", 3).across(2)[1]
    part.draw("permute-and-flip", bound)
    with pytest.raises(AccountError, match="with a bound for replace-one, 3 rows"):
        bought(1, 0, "add-remove", 3).draw("permute-and-flip", fixed_range(changes.after))


@pytest.mark.parametrize("wrong", [REPLACE, Protection("add-remove", 3)])
def test_a_bound_for_other_outputs_is_not_carried_back(wrong):
    changes = aggregate.block_changes(Protection("add-remove", 3))
    with pytest.raises(AccountError, match="follows a step whose outputs are neighbours by"):
        changes.then(rank_range(RANK_UNIT // 2, wrong))


@pytest.mark.parametrize(
    ("protection", "groups", "grouped", "moved"),
    [
        (ADD, 1, False, 1),
        (THREE, 1, False, 3),
        (THREE, 4, True, 6),
        (Protection("add-remove", 3), 4, True, 3),
        (Protection("replace-one", 3, "id"), 1, False, 1),
        (Protection("replace-one", 3, "id"), 4, True, 4),
        (Protection("replace-one", 1, "id"), 4, True, 2),
    ],
)
def test_block_values_that_a_person_changes(protection, groups, grouped, moved):
    changes = aggregate.block_changes(protection, groups, grouped=grouped)
    assert changes == Transformation(protection, Protection("replace-one", moved), joint=True)


def test_averages_over_blocks_are_drawn_for_the_rows_of_a_person():
    changes = aggregate.block_changes(THREE)
    coded, noise = aggregate.plan_averages(1, 1, Budget(1), changes)
    assert noise.bound.protection == THREE
    coding, fitted = sums.plan(
        1, 1, degree=2, grouped=False, cost=Budget(1), protection=THREE, complete=True
    )
    assert (coding, fitted.scale) == (coded, noise.scale)


PROVERS = {
    "ScoreRange": {
        "privacy/proofs.py:score_range",
        "privacy/ranks.py:rank_range",
        "privacy/ranks.py:fixed_range",
        "privacy/ranks.py:search_ranges",
        "selection/contest.py:profile_range",
        "selection/contest.py:profile_contest",  # scores that are all zero
    },
    "VectorChange": {
        "estimation/sums.py:sensitivity",
        "estimation/histogram.py:count_change",
        "privacy/noise.py:_fitted",
        "selection/contest.py:residual_change",
        "selection/draws.py:noisy_rows",
    },
    "Stability": {
        "estimation/gram.py:_gaussian_plan",
        "estimation/gram.py:_laplace_plan",
        "estimation/gram.py:_matrix_laplace_plan",
        "estimation/perturbed.py:release_sums",
        "privacy/look_noise.py:_use",
        "privacy/noise.py:_use",
    },
    "Transformation": {
        "estimation/blocks.py:block_changes",
        "selection/draws.py:norm_changes",
    },
}
"""The functions that make a bound, each with its proof in its module: there are no others."""


def test_only_what_proves_a_bound_makes_one():
    assert set(PROVERS) == {
        one.__name__ for one in (ScoreRange, VectorChange, Stability, Transformation)
    }
    root, found = Path(dpreg.__file__).parent, {name: set() for name in PROVERS}
    for path in root.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                for call in ast.walk(function):
                    made = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
                    if made and call.func.id in found:
                        where = f"{path.relative_to(root).as_posix()}:{function.name}"
                        found[call.func.id].add(where)
    assert found == PROVERS


def test_nothing_but_the_draw_itself_names_an_eps_and_a_range():
    """`choose` takes both loose; no call of dpreg reaches it but by a part and a bound."""
    root = Path(dpreg.__file__).parent
    callers = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and any(keyword.arg == "score_range" for keyword in node.keywords)
    }
    assert callers == {"privacy/mechanisms/choice.py"}
