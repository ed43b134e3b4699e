"""Searches agree with enumeration, and a complete listing never misses a model."""

from dataclasses import replace
from itertools import chain, combinations

import numpy as np
import pytest
from staged.choice.made_up import law_of, make_law, plain_space

from dpreg.selection.space import Space
from dpreg.staged.choice import certify
from dpreg.staged.choice import problem as problems
from dpreg.staged.choice import settle as settling
from dpreg.staged.choice.certify import near_best
from dpreg.staged.choice.problem import build_problem
from dpreg.staged.choice.search import search
from dpreg.staged.choice.settle import settle


def every_model(problem):
    """Criteria of all models of the space, straight from the definition."""
    units = range(problem.size)
    models = chain.from_iterable(combinations(units, r) for r in range(problem.size + 1))
    listed = {m: problem.criterion(m) for m in map(frozenset, models) if problem.allows(m)}
    return dict(sorted(listed.items(), key=lambda item: item[1]))


def gls_deviance(law, columns):
    """D_M by a least-squares solver, without the problem's own algebra."""
    lower = np.linalg.cholesky(law.covariance)
    k, g = np.linalg.solve(lower, law.k[:, columns]), np.linalg.solve(lower, law.g)
    scale = np.linalg.norm(k, axis=0)
    return float(((g - k @ (np.linalg.lstsq(k / scale, g, rcond=None)[0] / scale)) ** 2).sum())


SPACES = {
    "plain": plain_space(7),
    "max_terms": plain_space(7, max_units=2),
    "min_units": plain_space(7, min_units=3),
    "no intercept": replace(plain_space(7), keep_columns=()),
    "keep": Space(
        units=("x2", "x4", "x5", "x6", "x7"),
        unit_columns=((2,), (4,), (5,), (6,), (7,)),
        keep_columns=(0, 1, 3),
    ),
    "blocks": Space(
        units=("a", "b", "c", "d"),
        unit_columns=((1, 2, 3), (4,), (5, 6), (7,)),
        keep_columns=(0,),
    ),
    "hierarchy": Space(
        units=("a:b", "a", "b", "c", "b:c", "a:c", "a:b:c"),
        unit_columns=((4,), (1,), (2,), (3,), (5,), (6,), (7,)),
        keep_columns=(0,),
        requires=((1, 2), (), (), (), (2, 3), (1, 3), (0, 1, 2, 3, 4, 5)),
    ),
    "hierarchy, blocks, max_terms": Space(
        units=("a", "b", "a:b", "c"),
        unit_columns=((1,), (2, 3), (4, 5), (6,)),
        keep_columns=(0, 7),
        requires=((), (), (0, 1), ()),
        max_units=3,
    ),
}


@pytest.fixture(params=SPACES)
def space(request):
    return SPACES[request.param]


def laws(rng, runs=12):
    """Laws with strong, weak and no effects, from clear to drowned in noise."""
    for run in range(runs):
        truth = np.append(0.3, rng.choice([0, 0, 0.05, 0.1, 0.3], 7) * rng.choice([-1, 1], 7))
        yield make_law(
            rng,
            truth,
            correlation=[0, 0.6, 0.95][run % 3],
            noise=[1.0, 20.0, 200.0][run // 3 % 3],
            degrees=[None, 10][run % 2],
        )


def test_search_finds_what_enumeration_finds(space, rng):
    worse = 0
    for law in laws(rng, 24):
        problem = build_problem(law, space, 0.1)
        least = min(every_model(problem).values())
        found = search(problem)
        assert problem.allows(found)
        worse += problem.criterion(found) > least + 1e-6
    # A walk may stop at a model that no add, drop or swap improves: rarely.
    assert worse <= 2


def test_a_complete_listing_holds_every_model_near_the_best(space, rng):
    for law in laws(rng):
        problem = build_problem(law, space, 0.1)
        truth = every_model(problem)
        least = next(iter(truth.values()))
        for margin in (0.0, 4.6, 25.0):
            listing = near_best(problem, margin=margin)
            assert listing.complete
            near = {m for m, value in truth.items() if value <= least + margin}
            assert {m for m, _ in listing.models} == near
            assert listing.criterion == pytest.approx(least)
            assert [v for _, v in listing.models] == sorted(v for _, v in listing.models)


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())
def test_a_listing_of_models_with_and_without_units_holds_no_others(space, rng):
    problem = build_problem(make_law(rng, np.append(0.1, np.full(7, 0.1))), space, 0.1)
    every = every_model(problem)
    for unit in range(problem.size):
        inside, outside = frozenset({unit}), frozenset({(unit + 1) % problem.size})
        wanted = {m: v for m, v in every.items() if inside <= m and not outside & m}
        needs = space.requires[unit] if space.requires else ()
        if outside.intersection(needs):
            continue  # no model is left
        for margin in (0.0, 4.0, 1e9):
            listing = near_best(problem, margin=margin, forced=inside, forbidden=outside)
            assert listing.complete
            least = min(wanted.values())
            near = {m for m, v in wanted.items() if v <= least + margin + 1e-6}
            assert {m for m, _ in listing.models} == near


def test_a_poor_start_does_not_mislead_the_listing(rng):
    for law in laws(rng):
        problem = build_problem(law, plain_space(7), 0.1)
        listing = near_best(problem, start=frozenset(range(7)), margin=1.0)
        assert listing.best == next(iter(every_model(problem)))


def test_deviances_are_those_of_generalised_least_squares(space, rng):
    law = make_law(rng, np.append(0.3, rng.standard_normal(7) / 5))
    problem = build_problem(law, space, 0.1)
    for model in list(every_model(problem))[:20]:
        columns = [*space.keep_columns, *(c for u in model for c in space.unit_columns[u])]
        assert problem.deviance(model) == pytest.approx(
            gls_deviance(law, columns), rel=1e-6, abs=1e-5
        )


def test_many_deviances_at_once_are_those_one_by_one(space, rng, monkeypatch):
    monkeypatch.setattr(problems, "_CELLS", 40)  # several parts of each size
    problem = build_problem(next(laws(rng)), space, 0.1)
    models = [frozenset[int](), *every_model(problem)]
    want = [problem.deviance(model) for model in models]
    assert problem.deviances(models, problem.response) == pytest.approx(want, rel=1e-9)


def test_columns_that_repeat_each_other_are_told_apart_by_price_alone(rng):
    x = np.column_stack([np.ones(500), rng.standard_normal((500, 3))])
    x = np.column_stack([x, x[:, 1], x[:, 1] + 1e-9 * rng.standard_normal(500), np.ones(500)])
    law = law_of(rng, x, np.array([0, 0.5, 0.2, 0, 0, 0, 0]), noise=1e-6)
    problem = build_problem(law, plain_space(6), 0.1)
    listing = near_best(problem)
    assert listing.complete
    assert len(listing.best & {0, 3, 4}) == 1
    assert 1 in listing.best
    assert 5 not in listing.best  # a second constant explains nothing beside the first


def test_a_listing_that_ran_out_of_nodes_says_so(rng):
    truth = np.append(0, np.tile([0.06, 0.0, 0.0], 8))
    problem = build_problem(make_law(rng, truth, correlation=0.9, noise=30), plain_space(24), 0.1)
    short = near_best(problem, margin=4.6, nodes=3)
    assert not short.complete
    assert short.nodes >= 3
    assert short.criterion >= near_best(problem, margin=4.6).criterion - 1e-9


def test_a_bound_that_overstates_is_caught(rng, monkeypatch):
    # The mutant takes the diagonal share twice as large as the Gram matrix allows.
    init = certify._Plan.__init__

    def overstated(self, *arguments):
        init(self, *arguments)
        self.delta = 4 * self.delta

    monkeypatch.setattr(certify._Plan, "__init__", overstated)
    missed = 0
    for law in laws(rng, 24):
        problem = build_problem(law, plain_space(7), 0.1)
        least = next(iter(every_model(problem).values()))
        near = {m for m, v in every_model(problem).items() if v <= least + 4.6}
        missed += near != {m for m, _ in near_best(problem, margin=4.6).models}
    assert missed > 0


def near_by_enumeration(problem, margin):
    models = every_model(problem)
    least = next(iter(models.values()))
    return {m for m, value in models.items() if value <= least + margin}


def test_a_space_that_is_divided_is_listed_whole(space, rng, monkeypatch):
    monkeypatch.setattr(certify, "_FEW", 1)
    for law in laws(rng, 24):
        problem = build_problem(law, space, 0.1)
        for margin in (0.0, 4.6, 25.0):
            listing = near_best(problem, margin=margin)
            assert listing.complete
            assert {m for m, _ in listing.models} == near_by_enumeration(problem, margin)


def test_what_is_settled_is_so_in_every_model_that_is_asked_for(space, rng):
    settled = 0
    for law in laws(rng, 24):
        problem = build_problem(law, space, 0.1)
        near = near_by_enumeration(problem, 4.6)
        most = max(problem.criterion(m) for m in near)
        rest = settle(problem, problem.response, most + 1e-6)
        settled += len(rest.inside | rest.outside)
        assert all(m >= rest.inside and not m & rest.outside for m in near)
        assert rest.least <= min(problem.criterion(m) for m in near) + 1e-6
    assert settled > 24


@pytest.mark.parametrize("bound", ["gains", "delta"])
def test_settling_by_a_bound_that_overstates_is_caught(rng, monkeypatch, bound):
    rest = settling._rest

    def overstated(*arguments):
        found = rest(*arguments)
        factor = 0.3 if bound == "gains" else 4.0
        return replace(found, **{bound: factor * getattr(found, bound)})

    monkeypatch.setattr(settling, "_rest", overstated)
    monkeypatch.setattr(certify, "_FEW", 1)
    missed = 0
    for law in laws(rng, 24):
        problem = build_problem(law, plain_space(7), 0.1)
        found = {m for m, _ in near_best(problem, margin=4.6).models}
        missed += found != near_by_enumeration(problem, 4.6)
    assert missed > 0


def test_a_hundred_candidates_are_certified_in_one_part(rng):
    truth = np.append(0.1, np.where(np.arange(100) < 5, 0.3, 0.0))
    problem = build_problem(make_law(rng, truth, noise=1.0), plain_space(100), 0.1)
    listing = near_best(problem, margin=4.6)
    assert listing.complete
    assert listing.best == frozenset(range(5))
    assert listing.nodes < 1000
