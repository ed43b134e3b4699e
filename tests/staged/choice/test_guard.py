"""The guard leaves out what a rival model could explain as well."""

import numpy as np
import pytest
from staged.choice.made_up import law_of, make_law, plain_space
from staged.choice.test_certify import SPACES, laws

from dpreg.staged.choice import guard as guards
from dpreg.staged.choice.certify import near_best
from dpreg.staged.choice.guard import guard_margin, judge
from dpreg.staged.choice.problem import build_problem

MARGIN = guard_margin(0.1)


@pytest.fixture(params=SPACES)
def space(request):
    return SPACES[request.param]


def by_definition(problem, margin):
    """Reported terms, from all models."""
    listing = near_best(problem, margin=1e9)
    assert listing.complete
    cost = dict(listing.models)
    best, least = listing.models[0]
    cheap = {m: v - 0.75 * problem.price(m) for m, v in cost.items()}
    reported = set()
    for k in best:
        without = [m for m, _ in listing.models if k not in m]
        near = [m for m in without if cost[m] <= cost[without[0]] + 3 * margin]
        stand_ins = [m for m in near if not m <= best and problem.criterion(m | {k}) > cost[m]]
        free = needed = True
        if stand_ins:
            saved = max(0.0, problem.price(stand_ins[0]) - problem.price(best))
            free = cost[stand_ins[0]] - saved >= least + margin
        if without:
            most = min((m for m in cheap if k in m), key=cheap.__getitem__)
            fewest = min(without, key=cheap.__getitem__)
            needed = fewest <= most or fewest <= best or cheap[fewest] >= cheap[most] + margin
        if free and needed:
            reported.add(k)
    return best, reported


def test_the_margin_is_twice_log_one_over_alpha():
    assert guard_margin(0.1) == pytest.approx(2 * np.log(10))
    assert guard_margin(1.0) == guard_margin(3.0) == 0.0


@pytest.mark.parametrize("nodes", [None, 1])
def test_reports_are_those_of_the_definition(rng, nodes):
    differ = 0
    for run in range(20):
        truth = np.append(0.1, rng.choice([0, 0, 0.1, 0.2], 7))
        law = make_law(rng, truth, correlation=[0.5, 0.9][run % 2], noise=[10, 60][run // 2 % 2])
        problem = build_problem(law, plain_space(7), 0.1)
        verdict = judge(problem, MARGIN, nodes=nodes)
        best, reported = by_definition(problem, MARGIN)
        assert verdict.certified or nodes
        if verdict.certified:
            assert (verdict.model, verdict.reported) == (best, reported)
        differ += (verdict.model, verdict.reported) != (best, reported)
        assert {a.unit for a in verdict.alternatives} == verdict.model - verdict.reported
        for a in verdict.alternatives:
            assert all(entering and not entering & verdict.model for entering in a.instead)
            assert 0 <= a.gap < MARGIN
    # Without the listing a search has to find the rivals: it may miss one.
    assert differ <= (0 if nodes is None else 1)


def test_reports_are_those_of_the_definition_in_spaces_of_all_kinds(space, rng):
    doubted = 0
    for law in laws(rng, 9):
        problem = build_problem(law, space, 0.1)
        verdict = judge(problem, MARGIN)
        if not problem.silent:
            assert (verdict.model, verdict.reported) == by_definition(problem, MARGIN)
            doubted += len(verdict.alternatives)
    assert doubted > 0


def test_where_every_model_holds_a_term_nothing_stands_for_it(rng):
    law = make_law(rng, np.array([0, 0.05, 0.05, 0.0]), correlation=0.9, noise=20.0)
    problem = build_problem(law, plain_space(3, min_units=3), 0.1)
    assert judge(problem, 1e3).reported == {0, 1, 2}


def test_a_copy_is_named_as_an_alternative(rng):
    x = rng.standard_normal((3000, 4))
    x = np.column_stack([np.ones(3000), x, x[:, 0] + 0.02 * rng.standard_normal(3000)])
    law = law_of(rng, x, np.array([0, 0.3, 0.3, 0, 0, 0]), noise=5.0)
    verdict = judge(build_problem(law, plain_space(5), 0.1), MARGIN)
    (ambiguous,) = verdict.alternatives
    assert {ambiguous.unit, *ambiguous.instead[0]} == {0, 4}
    assert verdict.reported == {1}
    assert verdict.certified


def proxy_law(rng):
    """One column that nearly is the sum of two others, which carry the effects."""
    x = rng.standard_normal((4000, 5))
    x = np.column_stack([np.ones(4000), x, x[:, 0] + x[:, 1] + 0.15 * rng.standard_normal(4000)])
    return law_of(rng, x, np.array([0, 0.1, 0.1, 0, 0, 0, 0]), noise=30.0)


def single_swaps(problem, best, margin):
    """Return what a guard by single swaps would report."""
    least = problem.criterion(best)
    outside = set(range(problem.size)) - best
    return {
        k
        for k in best
        if all(problem.criterion(best - {k} | {u}) >= least + margin for u in outside)
    }


def test_one_proxy_that_stands_for_two_terms_is_a_rival(rng):
    caught = useless = mutant_useless = 0
    for _ in range(40):
        problem = build_problem(proxy_law(rng), plain_space(6), 0.1)
        verdict = judge(problem, MARGIN)
        alone = single_swaps(problem, verdict.model, MARGIN)
        caught += bool(alone - verdict.reported)
        useless += 5 in verdict.reported
        mutant_useless += 5 in alone
    assert caught > 0
    assert useless <= 2 < mutant_useless


def test_another_term_with_an_effect_is_no_stand_in(rng):
    """Seven uncorrelated terms near the price: a swap costs little, none takes another's place.

    The mutant, which takes every such swap for a reason to doubt, reports half as many.
    """
    found = useless = swaps = 0
    for _ in range(12):
        x = np.column_stack([np.ones(4000), rng.standard_normal((4000, 10))])
        truth = np.append(np.zeros(4), np.full(7, 0.048))
        problem = build_problem(law_of(rng, x, truth, noise=10.0), plain_space(10), 0.1)
        verdict = judge(problem, MARGIN)
        found += len(verdict.reported - {0, 1, 2})
        useless += len(verdict.reported & {0, 1, 2})
        swaps += len(single_swaps(problem, verdict.model, MARGIN))
    assert useless <= 2  # .36 expected
    assert found > 1.3 * swaps


@pytest.mark.parametrize("nodes", [None, 40])
def test_a_useless_sum_of_weak_terms_is_seldom_reported(rng, nodes):
    """One column sums eight weak terms: fewer would not, and each alone is not worth its price."""
    reported = chosen = 0
    for _ in range(40):
        x = rng.standard_normal((4000, 9))
        total = x[:, :8].sum(axis=1) / 8**0.5 + 0.5 * rng.standard_normal(4000)
        x = np.column_stack([np.ones(4000), x, total])
        truth = np.append(0.0, np.append(np.full(8, 0.045), [0.0, 0.0]))
        problem = build_problem(law_of(rng, x, truth, noise=20.0), plain_space(10), 0.1)
        verdict = judge(problem, MARGIN, nodes=nodes)
        chosen += 9 in verdict.model
        reported += 9 in verdict.reported
    assert chosen >= 20
    assert reported <= 4


def test_dropping_a_term_is_no_rival(rng):
    # A weak term beside useless ones: the smaller model is near, and is what the price has judged.
    law = make_law(rng, np.array([0, 0.3, 0.08, 0, 0]), correlation=0.0, noise=1.0)
    problem = build_problem(law, plain_space(4), 0.1)
    verdict = judge(problem, 1e3)
    assert problem.criterion(verdict.model - {1}) - verdict.criterion < 1e3
    assert all(entering for a in verdict.alternatives for entering in a.instead)


def test_the_search_without_a_proof_starts_anew_from_a_better_model(rng):
    law = make_law(rng, np.append(0, np.full(7, 0.1)), noise=20.0)
    problem = build_problem(law, plain_space(7), 0.1)
    poor = near_best(problem, margin=1e9).models[-1][0]
    listing = guards.Listing(((poor, problem.criterion(poor)),), False, 1)
    improved = guards._look_further(problem, problem.response, listing)
    assert improved.criterion == pytest.approx(near_best(problem).criterion)


def test_walks_of_the_second_rule_end_at_the_best_models(rng):
    """In chains of columns a walk alone ends early: each also starts from where the other ended."""
    index = np.arange(8)
    root = np.linalg.cholesky(0.8 ** np.abs(index[:, None] - index))
    truth = np.append(0.0, np.where(index % 2, 0.0, 0.1))
    missed = 0
    for _ in range(25):
        x = np.column_stack([np.ones(1500), rng.standard_normal((1500, 8)) @ root.T])
        problem = build_problem(law_of(rng, x, truth, noise=25.0), plain_space(8), 0.1)
        cheap, model = guards.lenient(problem), near_best(problem).best
        every = near_best(cheap, margin=1e9).models
        for unit in model:
            found = guards.best_of_both(cheap, cheap.response, model, unit)
            for own, inside in zip(found, (True, False), strict=True):
                least = min(value for other, value in every if (unit in other) == inside)
                missed += cheap.criterion(own) > least + 1e-6
    assert missed <= 1
