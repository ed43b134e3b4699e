"""The tree's law, by chi-square against exact probabilities, over all pairs of circumstances."""

import numpy as np
import pytest
from oracles.selection_law import (
    ALPHA,
    FACTORS,
    chi_square,
    covering_array,
    exact_law,
    make_case,
    pairs,
)

from dpreg.privacy.mechanisms.choice import choose, effective_t
from dpreg.selection.tree.noise import Bits
from dpreg.selection.tree.search import Tree

CELLS = covering_array(FACTORS)
DRAWS = 20_000


def test_every_pair_of_levels_occurs_in_at_most_30_cells() -> None:
    wanted = set().union(
        *(pairs({a: x, b: y}) for a in FACTORS for b in FACTORS if list(FACTORS).index(a)
          < list(FACTORS).index(b) for x in FACTORS[a] for y in FACTORS[b])
    )  # fmt: skip
    assert wanted == set().union(*map(pairs, CELLS))
    assert len(CELLS) <= 30


@pytest.mark.audit
@pytest.mark.parametrize("number", range(len(CELLS)))
def test_draws_follow_the_exact_law(number: int) -> None:
    cell = CELLS[number]
    case = make_case(cell, seed=number)
    sampler = Tree(case.problem, case.space, case.contest, mechanism=cell["mechanism"], t=case.t)
    index = case.index()
    counts = np.zeros(len(case.models))
    bits = Bits(np.random.default_rng(number))
    for _ in range(DRAWS):
        counts[index[sampler.draw(bits).units]] += 1
    p_value, bins = chi_square(counts, exact_law(case.scores, case.t, cell["mechanism"]))
    assert bins > 1 or len(case.models) == 1
    assert p_value > ALPHA


@pytest.mark.audit
@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_both_engines_draw_alike(mechanism: str) -> None:
    """OpenDP over the listed models and the tree: two samples, one law."""
    cell = {name: levels[0] for name, levels in FACTORS.items()} | {"p": 6, "signal": "some"}
    case = make_case(cell, seed=99)
    range_ = int(1 / case.t) * 2
    eps = range_ * case.t
    t = effective_t(eps, range_, mechanism)
    sampler = Tree(case.problem, case.space, case.contest, mechanism=mechanism, t=t)
    index = case.index()
    ours, theirs = np.zeros(len(case.models)), np.zeros(len(case.models))
    for _ in range(DRAWS):
        ours[index[sampler.draw().units]] += 1
        theirs[choose(case.scores, eps=eps, score_range=range_, mechanism=mechanism)] += 1
    law = exact_law(case.scores, t, mechanism)
    assert chi_square(ours, law)[0] > ALPHA
    assert chi_square(theirs, law)[0] > ALPHA
    # Given the pooled counts, the difference has variance ours + theirs in each bin.
    both = ours + theirs
    some = both >= 10
    statistic = ((ours - theirs)[some] ** 2 / both[some]).sum()
    degrees = int(some.sum()) - 1
    assert statistic < degrees + 6 * np.sqrt(2 * degrees)
