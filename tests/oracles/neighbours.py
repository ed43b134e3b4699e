"""Neighbouring tables and the exact law of a selection on them, through dpreg's own pipeline.

A search starts from tables that proofs say are worst, and from random ones, and climbs: rows are
changed as long as the range of the changes of the scores grows. Cells lie at, inside and outside
their declared bounds, or are missing, so that a forgotten clip shows.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pandas as pd

from dpreg.formula.design import Design
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.privacy.mechanisms.choice import effective_t
from dpreg.request import SelectionRequest
from dpreg.schema import Schema
from dpreg.selection import run
from dpreg.selection.probabilities import log_probabilities
from dpreg.selection.run import Preparation, prepare
from dpreg.selection.scoring.problem import Problem
from dpreg.selection.space import Space, design_of, space_of
from dpreg.sources import as_source
from dpreg.sources.reader import Reader

FORMULA = "y ~ a + b - 1"
MECHANISMS = ("permute-and-flip", "exponential", "laplace")
RELATIONS = ("replace-one", "add-remove")
SCHEMA = Schema({"a": (-1, 1), "b": (-1, 1), "y": (-1, 1)})
CORNERS = np.array([-4.0, -1.0, -0.5, 0.0, 0.5, 1.0, 4.0, np.nan])
DEFAULTS = {
    "delta": 0,
    "method": "pcls",
    "mechanism": "auto",
    "neighbors": "replace-one",
    "contributions": 1,
    "units": "term",
    "keep": (),
    "max_terms": None,
    "hierarchy": "none",
    "radius": 1,
    "clip": 1,
    "center": True,
    "penalty": 0,
    "sigma2": None,
    "false_inclusions": "0.1",
    "shares": None,
    "draws": 1,
    "fit": None,
    "engine": "enumerate",
    "unsafe_seed": None,
}


@dataclasses.dataclass(frozen=True)
class Scored:
    """What a mechanism compares on one table: integer scores and the range it is told."""

    scores: np.ndarray
    score_range: int

    def law(self, eps: Fraction, mechanism: str) -> np.ndarray:
        rate = effective_t(eps, self.score_range, mechanism)
        return log_probabilities(self.scores, rate, mechanism)


def frame(rows: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(np.asarray(rows, dtype=float).reshape(-1, 3), columns=["a", "b", "y"])


@functools.cache
def _public_facts(
    changes: tuple[tuple[str, object], ...], rows: int
) -> tuple[SelectionRequest, Preparation, Account, Design, Space]:
    """All that does not depend on cells, for one call; made once."""
    arguments = dict(changes)
    asked = SelectionRequest.of({**DEFAULTS, **arguments})
    design = design_of(asked, SCHEMA)
    account, reader = asked.account(), Reader(as_source(frame(np.zeros((rows, 3)))))
    preparation = prepare(asked, design, reader, account)
    return asked, preparation, account, design, space_of(asked, design)


def scored(rows: np.ndarray, formula: str = FORMULA, eps: object = 1, **changes: object) -> Scored:
    """Run dpreg's own stages on a table of columns a, b, y, up to the draw."""
    reader = Reader(as_source(frame(rows)))
    call = tuple(sorted({"formula": formula, "eps": eps, **changes}.items()))
    asked, preparation, account, design, space = _public_facts(call, len(rows))
    if account.total != Budget(preparation.plan.cost.eps):  # parts are drawn from once
        asked, preparation, account, design, space = _public_facts.__wrapped__(call, len(rows))
    if not account.charged:
        account.charge(None, "a test")
    read = run.read_rows(asked, design, reader)
    tuning = run.tune(preparation, design, read)
    problem = Problem(read.selecting, tuning.rho)
    contest = run.contest_of(preparation, tuning, problem, read.selecting)
    priced = contest.priced(*run.penalties(preparation, tuning, contest, space), space)
    models = space.models()
    q = problem.scores(space.columns(models))
    return Scored(priced.totals(q, models, space), contest.score_range.width)


def range_of_changes(one: Scored, two: Scored) -> int:
    change = [int(b) - int(a) for a, b in zip(one.scores, two.scores, strict=True)]
    return max(change) - min(change)


def worst_ratio(one: Scored, two: Scored, eps: Fraction, mechanism: str) -> float:
    """Largest |log P(M) - log P'(M)| over the models, as a multiple of eps."""
    laws = one.law(eps, mechanism), two.law(eps, mechanism)
    both = np.isfinite(laws[0]) & np.isfinite(laws[1])
    return float(np.abs(laws[0][both] - laws[1][both]).max()) / float(eps)


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two neighbouring tables: common rows, and the rows that differ."""

    common: np.ndarray
    first: np.ndarray
    second: np.ndarray

    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        return np.vstack([self.common, self.first]), np.vstack([self.common, self.second])


def proved_worst(relation: str, changed: int, gap: int = 330) -> Pair:
    """Two models' losses change places; one of them is far behind and so hardly ever drawn.

    The first rows hold both coefficients at the edge of the ball; `gap` rows favour b. A changed
    row costs a model with coefficient 1 either (1 + rho)^2 - y^2 or -y^2.
    """
    hold = np.tile([0.5, 0.5, 1.0], (40 * changed, 1))
    favour = np.tile([0.0, 0.5, 1.0], (gap * changed, 1))
    for_a = np.tile([4.0, -4.0, 4.0], (changed, 1))
    for_b = np.tile([-4.0, 4.0, 4.0], (changed, 1))
    none = np.empty((0, 3))
    return Pair(np.vstack([hold, favour]), for_a, none if relation == "add-remove" else for_b)


def random_pair(rng: np.random.Generator, relation: str, changed: int) -> Pair:
    common = rng.choice(CORNERS, size=(int(rng.integers(0, 9)), 3))
    first = rng.choice(CORNERS, size=(changed, 3))
    second = rng.choice(CORNERS, size=(changed, 3))
    return Pair(common, first, second[:0] if relation == "add-remove" else second)


def _moved(pair: Pair, rng: np.random.Generator) -> Pair:
    """Change one cell of the rows that differ, or of the common rows."""
    names = [name for name in ("common", "first", "second") if len(getattr(pair, name))]
    name = names[int(rng.integers(len(names)))]
    rows = getattr(pair, name).copy()
    rows[int(rng.integers(len(rows))), int(rng.integers(3))] = rng.choice(CORNERS)
    return dataclasses.replace(pair, **{name: rows})


def search(
    rng: np.random.Generator, relation: str, changed: int, pairs: int
) -> Iterator[tuple[Scored, Scored]]:
    """Score `pairs` pairs: proved ones first, then random ones, each climbed for a while."""
    facts = {"neighbors": relation, "contributions": changed}
    single, both = {**facts, "max_terms": 1}, {**facts, "formula": "y ~ a + b"}
    left = pairs
    for gap in (0, 30, 330)[:left]:
        tables = proved_worst(relation, changed, gap).tables()
        yield scored(tables[0], **single), scored(tables[1], **single)
        left -= 1
    while left > 0:
        best, height = random_pair(rng, relation, changed), -1.0
        wanted = (single, both)[int(rng.integers(2))]
        for _ in range(min(left, 12)):
            pair = best if height < 0 else _moved(best, rng)
            one, two = (scored(table, **wanted) for table in pair.tables())
            found = range_of_changes(one, two) / one.score_range
            if found >= height:
                best, height = pair, found
            left -= 1
            yield one, two
