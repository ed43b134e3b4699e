"""The private radius on real data: what it chooses, and what that does to a selection."""

from fractions import Fraction

import numpy as np
import pytest
from oracles.accounts import private_radius
from oracles.neighbours import DEFAULTS

import dpreg
from dpreg.moments import Moments, accumulate
from dpreg.privacy.mechanisms.choice import effective_t
from dpreg.privacy.ranks import cell_counts, rank_scores
from dpreg.request import SelectionRequest
from dpreg.schema import Schema
from dpreg.selection import run
from dpreg.selection.draws import RADII, block_norms, radius_blocks
from dpreg.selection.probabilities import selection_probabilities
from dpreg.selection.run import prepare
from dpreg.selection.scoring.problem import Problem
from dpreg.selection.space import design_of, space_of
from dpreg.sources import as_source
from dpreg.sources.reader import Reader


def _chance_of_both(houses: dpreg.datasets.Dataset, eps: str, radius: Fraction) -> float:
    """Exact probability that grade and sqft_living are both selected."""
    facts = {**DEFAULTS, "keep": ("Intercept",), "penalty": "auto", "radius": radius}
    asked = SelectionRequest.of({"formula": houses.formula, "eps": eps, **facts})
    reader = Reader(as_source(houses.data))
    design = design_of(asked, Schema.from_any(houses.schema))
    ready = prepare(asked, design, reader, asked.account())
    space = space_of(asked, design)
    rows = run.read_rows(asked, design, reader)
    tuning = run.tune(ready, design, rows)
    problem = Problem(rows.selecting, tuning.rho)
    contest = run.contest_of(ready, tuning, problem, rows.selecting)
    priced = contest.priced(*run.penalties(ready, tuning, contest, space), space)
    models = space.models()
    scores = priced.totals(problem.scores(space.columns(models)), models, space)
    rate = effective_t(ready.plan.eps_each, priced.score_range.width, ready.plan.mechanism)
    law = selection_probabilities(scores, rate, ready.plan.mechanism)
    both = models[:, [space.units.index("grade"), space.units.index("sqft_living")]].all(axis=1)
    return float(law[both].sum())


def _law_of_radius(houses: dpreg.datasets.Dataset, eps: Fraction) -> dict[Fraction, float]:
    """Exact law of the private radius, given one assignment of rows to blocks."""
    facts = {**DEFAULTS, "keep": ("Intercept",), "radius": "private"}
    asked = SelectionRequest.of({"formula": houses.formula, "eps": 1, **facts})
    reader = Reader(as_source(houses.data))
    design = design_of(asked, Schema.from_any(houses.schema))
    prepare(asked, design, reader, asked.account())
    blocks = run.read_rows(asked, design, reader, np.random.default_rng(3)).blocks
    assert len(blocks) == 200
    norms = block_norms(blocks, range(len(design.columns)), 1.0)
    radii = np.array([float(radius) for radius in RADII])
    scores = rank_scores(cell_counts(norms, radii), 100)
    law = selection_probabilities(
        scores, effective_t(eps, 2, "permute-and-flip"), "permute-and-flip"
    )
    ends = (RADII[0], *RADII[:-1])
    return {end: float(law[[e == end for e in ends]].sum()) for end in set(ends)}


@pytest.mark.usefixtures("data_folder")
def test_it_brings_grade_and_living_space_back_together_in_king_county() -> None:
    houses = dpreg.datasets.load_kc_house()
    before = _chance_of_both(houses, "1", Fraction(1))
    law = _law_of_radius(houses, Fraction(1, 10))
    after = sum(
        chance * _chance_of_both(houses, "0.9", radius)
        for radius, chance in law.items()
        if chance > 1e-3
    )
    assert before < 0.02
    assert after > 0.6


def test_the_scores_move_within_twice_the_contributions() -> None:
    rng = np.random.default_rng(0)
    radii = np.array([float(radius) for radius in RADII])
    for _ in range(200):
        norms = rng.lognormal(0.5, 1, size=int(rng.integers(1, 30)))
        for k in (1, 3):
            moved = norms.copy()
            moved[:k] = rng.choice([0.0, 1.3, 1e9], size=len(moved[:k]))
            target = round(len(norms) / 2)
            change = rank_scores(cell_counts(moved, radii), target) - rank_scores(
                cell_counts(norms, radii), target
            )
            assert change.max() - change.min() <= 2 * k


def test_blocks_without_rows_or_of_full_dependence_have_a_value() -> None:
    zero = accumulate([], 4)
    same = Moments(9, tuple((9 << 40,) * 4 for _ in range(4)))
    norms = block_norms([zero, same], [0, 1, 2], default=1.0)
    assert norms[0] == 1.0
    assert norms[1] == pytest.approx(27 / 28)


def test_the_number_of_blocks_is_public() -> None:
    assert radius_blocks(None, 12) == 200
    assert radius_blocks(21_613, 13) == 200
    assert radius_blocks(1000, 10) == 20
    assert radius_blocks(0, 3) == 1


def test_an_even_spread_gives_some_radius_of_the_grid() -> None:
    norms = np.full(200, 2.2)
    drawn = {
        private_radius(norms, eps=Fraction(1), contributions=1, rng=np.random.default_rng(seed))
        for seed in range(20)
    }
    assert drawn == {Fraction(2)}
