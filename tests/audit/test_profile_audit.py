"""PCPL as a whole, its lower bound drawn too: a Monte Carlo audit with exact confidence bounds.

The conditional law given the bound is audited exactly in tests/selection/test_profile.py; here both
stages run as `dp_select` runs them, on the neighbours that the proof calls worst.
"""

import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracles import neighbours
from oracles.accounts import bought, lower_bound
from oracles.bounds import residual_sensitivity
from scipy.stats import beta

from dpreg.moments import Moments
from dpreg.request import SelectionRequest
from dpreg.selection import contest, run
from dpreg.selection import contest as profile
from dpreg.selection.draws import Enumerated
from dpreg.selection.run import Preparation, prepare
from dpreg.selection.scoring.problem import Problem
from dpreg.selection.space import Space, design_of, space_of
from dpreg.sources import as_source
from dpreg.sources.reader import Reader

EPS, DELTA = 1, "0.01"
SURE = 1e-6  # chance of a false alarm, each comparison


def _tables(relation: str, changed: int, unexplained: int) -> tuple[np.ndarray, np.ndarray]:
    """The worst pair of tests/oracles/neighbours.py, among rows that no column explains."""
    pair = neighbours.proved_worst(relation, changed, 0)
    rest = np.tile([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]], (unexplained // 2, 1))
    first, second = pair.tables()
    return np.vstack([first, rest]), np.vstack([second, rest])


class _Mechanism:
    """One table and one call, prepared; `draw` runs the noisy part, bound and choice."""

    def __init__(self, rows: np.ndarray, relation: str, changed: int) -> None:
        facts = {
            **neighbours.DEFAULTS,
            "method": "pcpl",
            "delta": DELTA,
            "neighbors": relation,
            "contributions": changed,
            "max_terms": 1,
        }
        self.asked = SelectionRequest.of({**facts, "formula": neighbours.FORMULA, "eps": EPS})
        reader = Reader(as_source(neighbours.frame(rows)))
        design = design_of(self.asked, neighbours.SCHEMA)
        self.ready: Preparation = prepare(self.asked, design, reader, self.asked.account())
        self.bound = self.ready.parts["profile"].cost
        self.unit = relation, changed
        self.space: Space = space_of(self.asked, design)
        read = run.read_rows(self.asked, design, reader)
        self.moments: Moments = read.selecting
        # n0 is a release of its own and the same constant for both tables here.
        known = 400 if relation == "add-remove" else len(rows)
        self.tuning = run.Tuning(Fraction(1), None, known)
        self.problem = Problem(self.moments, Fraction(1))
        columns = self.space.columns(self.space.models())
        self.q = self.problem.scores(columns)

    def draw(self, rng: np.random.Generator) -> tuple[int, ...]:
        ready = dataclasses.replace(
            self.ready,
            parts={"profile": bought(self.bound.eps, self.bound.delta, *self.unit, rng)},
        )
        made = run.contest_of(ready, self.tuning, self.problem, self.moments)
        part = bought(ready.plan.eps_each, 0, *self.unit, rng)
        scored = SimpleNamespace(group=self.problem.group, scores=lambda _: self.q)
        return Enumerated(scored, self.space, made, ready.plan).draw(part)


def _bounds(hits: int, draws: int) -> tuple[float, float]:
    """Clopper-Pearson bounds, each at level SURE."""
    low = beta.ppf(SURE, hits, draws - hits + 1) if hits else 0.0
    high = beta.ppf(1 - SURE, hits + 1, draws - hits) if hits < draws else 1.0
    return float(low), float(high)


def _worst_excess(relation: str, changed: int, draws: int) -> float:
    """Largest certified P(S) - exp(eps) P'(S) - delta over all sets S of models."""
    worst = -np.inf
    rng = np.random.default_rng(11)
    for unexplained in (150 * changed, 600 * changed):
        pair = [_Mechanism(t, relation, changed) for t in _tables(relation, changed, unexplained)]
        counts = [_counts(mechanism, rng, draws) for mechanism in pair]
        outcomes = sorted(set(counts[0]) | set(counts[1]))
        for size in range(1, len(outcomes)):
            for chosen in itertools.combinations(outcomes, size):
                hits = [sum(count.get(o, 0) for o in chosen) for count in counts]
                for one, two in (hits, hits[::-1]):
                    excess = (
                        _bounds(one, draws)[0] - np.exp(EPS) * _bounds(two, draws)[1] - float(DELTA)
                    )
                    worst = max(worst, excess)
    return worst


def _counts(
    mechanism: _Mechanism, rng: np.random.Generator, draws: int
) -> dict[tuple[int, ...], int]:
    found: dict[tuple[int, ...], int] = {}
    for _ in range(draws):
        units = mechanism.draw(rng)
        found[units] = found.get(units, 0) + 1
    return found


@pytest.mark.parametrize("draws", [300, pytest.param(40_000, marks=pytest.mark.audit)])
@pytest.mark.parametrize(("relation", "changed"), [("replace-one", 1), ("add-remove", 3)])
def test_the_whole_mechanism_keeps_eps_and_delta(
    relation: str, changed: int, draws: int, record: Callable[..., None]
) -> None:
    excess = _worst_excess(relation, changed, draws)
    record("PCPL, whole, excess over delta", "permute-and-flip", relation, changed, draws, excess)
    assert excess <= 0


def test_mutant_a_quarter_of_the_range_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = contest.profile_range

    def quartered(*args: Any, **options: Any) -> Any:
        bound = real(*args, **options)
        return replace(bound, width=bound.width // 4)

    monkeypatch.setattr(contest, "profile_range", quartered)
    assert _worst_excess("replace-one", 1, 300) > 0.05


def test_a_bound_at_or_below_zero_draws_uniformly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "lower_bound", lambda *a, **k: 0)
    table = _tables("replace-one", 1, 600)[0]
    counts = _counts(_Mechanism(table, "replace-one", 1), np.random.default_rng(1), 900)
    assert len(counts) == 3
    assert all(abs(count - 300) < 100 for count in counts.values())


def test_the_bound_lies_below_the_residuals_but_for_delta() -> None:
    mechanism = _Mechanism(_tables("replace-one", 1, 600)[0], "replace-one", 1)
    full = mechanism.problem.score_one([1, 2])
    exact = full + profile.residual_offset(mechanism.moments, Fraction(1))
    rng = np.random.default_rng(2)
    above = sum(
        lower_bound(
            mechanism.problem,
            mechanism.moments,
            eps=Fraction(1, 5),
            delta=Fraction(DELTA),
            contributions=1,
            rng=rng,
        )
        + residual_sensitivity(Fraction(1), 1)
        > exact
        for _ in range(2000)
    )
    assert 3 < above < 50  # 20 expected
