"""The guard leaves out what a rival model could explain as well."""

import numpy as np
import pytest
from staged.choice.made_up import law_of, make_law, plain_space

from dpreg.staged.choice import guard as guards
from dpreg.staged.choice.certify import near_best
from dpreg.staged.choice.guard import guard_margin, judge
from dpreg.staged.choice.problem import build_problem

MARGIN = guard_margin(0.1)


def by_definition(problem, margin):
    """Reported terms, from all models."""
    listing = near_best(problem, margin=1e9)
    assert listing.complete
    best, least = listing.models[0]
    reported = set()
    for k in best:
        without = [(m, v) for m, v in listing.models if k not in m]
        far = all(v >= least + margin for m, v in without if not m <= best)
        rival, value = without[0]
        saved = max(0.0, problem.price(rival) - problem.price(best))
        cheap = {m: v - 0.75 * problem.price(m) for m, v in listing.models}
        most = min((m for m in cheap if k in m), key=cheap.__getitem__)
        least_without = min((m for m in cheap if k not in m), key=cheap.__getitem__)
        needed = least_without <= most or least_without <= best
        needed |= cheap[least_without] >= cheap[most] + margin
        if far and needed and (rival <= best or value - saved >= least + margin):
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
    """Return what a guard by single swaps would report: the mutant."""
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
        assert verdict.reported <= alone
        caught += verdict.reported < alone
        useless += 5 in verdict.reported
        mutant_useless += 5 in alone
    assert caught > 0
    assert useless <= 2 < mutant_useless


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
    improved = guards._look_further(problem, problem.response, listing, MARGIN)
    assert improved.criterion == pytest.approx(near_best(problem).criterion)


def test_walks_of_the_third_rule_end_at_the_best_models(rng):
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
