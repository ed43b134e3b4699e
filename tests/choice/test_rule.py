"""The rule: what it finds, what it groups, and that it keeps its promise."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from oracles.released_looks import both, look_of, slow_gain, space_of
from scipy.stats import chi2

from dpreg.choice.evidence import Evidence
from dpreg.choice.rule import LARGEST, LIKE, OF_GROUPS, choose, clusters


def chain(size: int, r: float) -> np.ndarray:
    """Correlations r to the power of the distance."""
    return r ** np.abs(np.subtract.outer(np.arange(size), np.arange(size)))


def copies(size: int, r: float) -> np.ndarray:
    """The first two columns are nearly one."""
    out = np.eye(size)
    out[0, 1] = out[1, 0] = r
    return out


def test_found_terms_are_those_that_slow_tests_pass():
    space = space_of([1, 1, 2, 1])
    for seed in range(20):
        laws = both(look_of(chain(5, 0.3), np.array([0, 0.3, 0, 0.2, 0.1, 0]), seed=seed))
        choice = choose(laws, space)
        for unit, columns in enumerate(space.unit_columns):
            p = max(chi2.sf(slow_gain(law, list(columns))[0], len(columns)) for law in laws)
            assert choice.levels[unit] == pytest.approx(4 * p, rel=1e-6)
            assert (unit in choice.found) == (4 * p <= 0.1)
            error = np.sqrt(slow_gain(laws[0], list(columns))[2][0, 0])
            assert choice.errors[unit] == pytest.approx(error if unit != 2 else np.nan, nan_ok=True)
        assert choice.groups == ()
        assert choice.model == choice.found


def test_a_term_must_pass_under_every_prior():
    law = look_of(np.eye(2), np.array([0, 0.4, 0]))
    blind = replace(law, covariance=1e6 * law.covariance)
    space = space_of([1, 1])
    assert choose([law, law], space).found == (0,)
    assert choose([law, blind], space).found == choose([blind, law], space).found == ()


@pytest.mark.parametrize("tables", [400, pytest.param(1_500, marks=pytest.mark.audit)])
def test_the_expected_number_of_useless_terms_is_kept(tables):
    """Half of the terms have effects, which tests of the others must not feel."""
    beta = np.array([0.2, 0.5, 0, 0, 1, 0, 0, 0.3, 0, 0.02, 0])
    space, useless, grouped = space_of([1] * 10), [], []
    for seed in range(tables):
        choice = choose(both(look_of(chain(10, 0.6), beta, seed=seed)), space, false_inclusions=0.5)
        useless.append(sum(beta[unit + 1] == 0 for unit in choice.found))
        grouped.append(sum(all(beta[u + 1] == 0 for u in group) for group in choice.groups))
    assert 0.15 < np.mean(useless) < 0.5 * (1 - OF_GROUPS) + 0.05
    assert np.mean(grouped) <= 0.5 * OF_GROUPS


def test_copies_are_one_group_and_never_with_others():
    space = space_of([1] * 4)
    for seed in range(10):
        law = look_of(copies(4, 0.9999), np.array([0, 0.5, 0, 0, 0.4]), seed=seed)
        choice = choose(both(law), space)
        assert choice.groups == ((0, 1),)
        assert choice.found == (3,)
        assert len(choice.model) == 2
        assert set(choice.model) < {0, 1, 3}


def test_of_a_group_the_likeliest_is_fitted():
    law = look_of(copies(3, 0.9), np.array([0, 0.5, 0, 0]), rows=100, exact=True)
    choice = choose(both(law), space_of([1] * 3), false_inclusions=0.01)
    assert choice.groups == ((0, 1),)
    assert choice.model == (0,)


def test_terms_and_groups_share_the_level():
    """A group is named from where its part of the level is as large as its p-value."""
    law = look_of(copies(3, 0.999), np.array([0, 0.2, 0, 0]), rows=200, exact=True)
    p = max(chi2.sf(slow_gain(one, [1, 2])[0], 2) for one in both(law))
    assert 1e-3 < p < 0.1
    for level, named in ((0.99 * p, ()), (1.01 * p, ((0, 1),))):
        choice = choose(both(law), space_of([1] * 3), false_inclusions=level / OF_GROUPS)
        assert (choice.found, choice.groups) == ((), named)
    alone = [max(chi2.sf(slow_gain(one, [c])[0], 1) for one in both(law)) for c in (1, 2, 3)]
    assert choice.levels == pytest.approx(3 * np.array(alone) / (1 - OF_GROUPS), rel=1e-6)


def test_two_that_matter_of_one_group_are_both_fitted():
    """Neither can stand for the other: what is left beside it is more than chance."""
    law = look_of(copies(20, 0.9), np.append([0, 0.6, 0.6], np.zeros(18)), rows=100, exact=True)
    choice = choose(both(law), space_of([1] * 20))
    assert (choice.found, choice.groups, choice.model) == ((), ((0, 1),), (0, 1))
    choice = choose(both(law), space_of([1] * 20, max_units=1))
    assert len(choice.model) == 1


def test_groups_of_a_found_term_go_and_the_smallest_come_first():
    """The last column is nearly a total of the others: all clusters hold it and the first."""
    total = np.eye(4)
    total[3] = [0.6, 0.6, 0.5, 0.15]
    table = total @ total.T / np.sqrt(np.outer(*[np.diag(total @ total.T)] * 2))
    law = look_of(table, np.array([0, 0.5, 0, 0, 0]), rows=120, exact=True)
    nest = ((0, 3), (0, 1, 3), (0, 1, 2, 3))
    assert clusters(Evidence(law).likeness([[1], [2], [3], [4]])) == nest
    assert choose(both(law), space_of([1] * 4)).groups == nest[:1]
    sure = look_of(table, np.array([0, 0.5, 0, 0, 0]), rows=2000, exact=True)
    choice = choose(both(sure), space_of([1] * 4))
    assert (choice.found, choice.groups) == ((0,), ())


def test_clusters_are_fixed_before_any_score():
    """Another left side, other starts: the level of groups, and so their number, stays."""
    like = [0.9, 0.6, 0.2]
    table = np.eye(3)
    table[np.triu_indices(3, 1)] = like
    table = np.maximum(table, table.T)
    assert clusters(table) == ((0, 1),)
    law = look_of(chain(6, 0.9), np.zeros(7))
    found = set()
    for seed in range(5):
        other = look_of(chain(6, 0.9), np.ones(7), seed=seed)
        one = replace(law, left=other.left, start=other.start)
        found.add(choose([one], space_of([1] * 6)).errors.tobytes())
    assert len(found) == 1


def slow_clusters(like: np.ndarray) -> set[tuple[int, ...]]:
    """Average linkage as it is defined."""
    left, made = [(u,) for u in range(len(like))], set()
    while len(left) > 1:
        pairs = {
            (a, b): np.mean([like[i, j] for i in a for j in b]) for a, b in combinations(left, 2)
        }
        a, b = max(pairs, key=pairs.__getitem__)
        if pairs[a, b] < LIKE:
            break
        left = [one for one in left if one not in (a, b)] + [a + b]
        if len(a + b) <= LARGEST:
            made.add(tuple(sorted(a + b)))
    return made


@pytest.mark.parametrize("seed", range(20))
def test_clusters_are_those_of_average_linkage(seed):
    rng = np.random.default_rng(seed)
    places = rng.uniform(size=(14, 2))
    like = np.exp(-4 * np.linalg.norm(places[:, None] - places[None], axis=2))
    found = clusters(like)
    assert set(found) == slow_clusters(like)
    assert [len(one) for one in found] == sorted(map(len, found))


def test_no_more_than_six_are_a_group():
    assert max(map(len, clusters(np.full((9, 9), 0.8) + 0.2 * np.eye(9)))) <= LARGEST
    assert clusters(np.ones((1, 1))) == clusters(np.zeros((0, 0))) == ()


def nested(**more: object):
    """a, b and a:b, which needs both."""
    return space_of([1, 1, 1], requires=((), (), (0, 1)), **more)


def test_a_term_brings_what_it_needs_and_pays_for_it():
    laws = both(look_of(np.eye(3), np.array([0, 0, 0, 0.2]), exact=True))
    choice = choose(laws, nested())
    assert choice.found == (0, 1, 2)
    assert choice.levels[2] > 1e-4
    p = max(chi2.sf(slow_gain(law, [3])[0], 1) for law in laws)
    assert choice.levels[2] == pytest.approx(9 * p, rel=1e-6)
    # a is tested with a:b, and is found at the latest when a:b brings it along.
    joint = max(chi2.sf(slow_gain(law, [1, 3])[0], 2) for law in laws)
    assert choice.levels[0] == pytest.approx(min(9 * p, 3 * joint), rel=1e-6)
    alone = (9 * p + 3 * joint) / 2  # where a:b alone passes
    assert 9 * p < alone < 3 * joint
    assert choose(laws, nested(), false_inclusions=alone).found == (0, 1, 2)


def test_there_may_be_too_little_room_for_a_term():
    laws = both(look_of(np.eye(3), np.array([0, 0, 0.5, 0.3]), exact=True))
    assert choose(laws, nested(max_units=2)).found in ((0,), (1,), (0, 1))
    assert choose(laws, nested(max_units=0)).found == ()
    most = both(look_of(np.eye(4), np.array([0, 0.3, 0.5, 0.4, 0]), exact=True))
    assert choose(most, space_of([1] * 4, max_units=2)).found == (1, 2)
    assert choose(most, space_of([1] * 4, max_units=2)).model == (1, 2)


def test_a_choice_counts_what_is_resolved():
    law = look_of(np.eye(3), np.zeros(4))
    equations = law.equations.copy()
    equations[:, 2] = 0.0
    choice = choose(both(replace(law, equations=equations)), space_of([1] * 3))
    assert (choice.resolved, choice.directions) == (3, 4)


def test_nothing_on_offer():
    assert choose([look_of(np.eye(1), np.zeros(2))], space_of([])).found == ()
