"""Which engine draws, and that a draw costs its part; `tree/test_sampler.py` tests the law."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from oracles.accounts import bought

from dpreg.errors import ArgumentError
from dpreg.moments import accumulate
from dpreg.privacy.account import AccountError
from dpreg.privacy.budget import Budget
from dpreg.privacy.composition import plan_draws
from dpreg.privacy.mechanisms import choice
from dpreg.privacy.mechanisms.choice import effective_t
from dpreg.privacy.protection import Protection
from dpreg.selection.contest import least_squares_contest
from dpreg.selection.draws import ENGINES, LARGEST_LIST, Enumerated, choose_engine
from dpreg.selection.scoring.problem import Problem
from dpreg.selection.space import Space

RHO = Fraction(1)


def space(units: int) -> Space:
    return Space(tuple(f"x{j}" for j in range(units)), tuple((j + 1,) for j in range(units)), (0,))


def problem(units: int = 3, rows: int = 400) -> Problem:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (rows, units))
    return Problem(accumulate([np.column_stack([np.ones(rows), x, 0.8 * x[:, 0]])], units + 2), RHO)


@pytest.mark.parametrize(
    ("engine", "units", "mechanism", "chosen"),
    [
        ("auto", 14, "permute-and-flip", "enumerate"),
        ("auto", 15, "permute-and-flip", "tree"),
        ("auto", 15, "laplace", "enumerate"),
        ("enumerate", 20, "exponential", "enumerate"),
        ("tree", 2, "exponential", "tree"),
    ],
)
def test_the_engine_follows_from_public_facts(engine, units, mechanism, chosen):
    assert choose_engine(engine, space(units), mechanism) == chosen


def test_what_no_engine_can_draw_is_refused_with_the_mend():
    with pytest.raises(ArgumentError, match="permute-and-flip"):
        choose_engine("tree", space(3), "laplace")
    with pytest.raises(ArgumentError, match=rf"at most {LARGEST_LIST} are listed.*engine=.tree"):
        choose_engine("enumerate", space(21), "permute-and-flip")
    with pytest.raises(ArgumentError, match="max_terms"):
        choose_engine("auto", space(21), "laplace")


def models(engine: str, eps: Fraction, units: int = 3):
    contest = least_squares_contest(RHO, Protection("replace-one"))
    plan = plan_draws(1, Budget(eps), mechanism="permute-and-flip", contributions=1)
    return ENGINES[engine](problem(units), space(units), contest, plan), contest


def test_the_list_holds_every_model_and_its_score():
    listed, _ = models("enumerate", Fraction(1))
    assert isinstance(listed, Enumerated)
    assert listed.models.shape == (8, 3)
    exact = problem()
    for model, q in zip(listed.models, listed.scores, strict=True):
        assert q == exact.score_one([0, *(np.flatnonzero(model) + 1)])


def test_the_tree_is_made_for_the_rate_of_one_draw():
    searched, contest = models("tree", Fraction(1, 3))
    assert searched.tree.t == effective_t(
        Fraction(1, 3), contest.score_range.width, "permute-and-flip"
    )


@pytest.mark.parametrize("engine", ["enumerate", "tree"])
def test_with_eps_enough_the_best_model_is_drawn(engine):
    priced = replace(least_squares_contest(RHO, Protection("replace-one")), psi=2**20)
    plan = plan_draws(1, Budget(10**4), mechanism="permute-and-flip", contributions=1)
    made = ENGINES[engine](problem(), space(3), priced, plan)
    part = bought(10**4)
    assert made.draw(part) == (0,)


def test_a_hopeless_eps_draws_anything():
    made, _ = models("enumerate", Fraction(1, 10**6))
    rng = np.random.default_rng(1)
    drawn = Counter(made.draw(bought("1e-6", rng=rng)) for _ in range(200))
    assert len(drawn) == 8


def test_a_list_is_drawn_at_the_eps_of_its_part(monkeypatch):
    seen = []
    monkeypatch.setattr(choice, "choose", lambda scores, **how: (seen.append(how), 0)[1])
    made, contest = models("enumerate", Fraction(1))
    made.draw(bought("0.25"))
    assert (seen[0]["eps"], seen[0]["mechanism"]) == (Fraction(1, 4), "permute-and-flip")
    assert seen[0]["score_range"] == contest.score_range.width


def test_a_tree_made_for_another_rate_draws_nothing():
    tree, _ = models("tree", Fraction(1))
    with pytest.raises(AccountError, match="another rate"):
        tree.draw(bought("0.5"))


def test_a_part_pays_for_one_draw():
    made, _ = models("enumerate", Fraction(1))
    part = bought(1)
    made.draw(part)
    with pytest.raises(AccountError):
        made.draw(part)
