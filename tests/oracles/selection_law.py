"""Exact laws of a selection over listed models, a chi-square against them, and cells to try.

Slow and plain on purpose: everything is listed, nothing is shared with the code under test but the
canonical scores of models.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from oracles.scores import penalty_counts
from scipy.stats import chi2

from dpreg.moments import accumulate
from dpreg.privacy.protection import Protection, ScoreRange
from dpreg.selection.contest import Contest, profile_scores
from dpreg.selection.scoring.problem import Problem
from dpreg.selection.space import Space

ALPHA = 1e-6


def exact_law(scores: np.ndarray, t: Fraction, mechanism: str) -> np.ndarray:
    """Softmax, or P(r) = p_r * int_0^1 prod_{i != r} (1 - u p_i) du by Gauss-Legendre."""
    p = np.exp(-float(t) * (scores - scores.min()).astype(float))
    if mechanism == "exponential":
        return p / p.sum()
    x, w = np.polynomial.legendre.leggauss(400)
    # u = 1 - (1 - s)**4 crowds the nodes where the product has not yet vanished: near u = 0.
    s = (x + 1) / 2
    u, du = s**4, 4 * s**3 * w / 2
    law = np.empty(len(p))
    for r in range(len(p)):
        others = np.delete(p, r)
        law[r] = p[r] * (np.exp(np.log1p(-u[:, None] * others).sum(axis=1)) @ du)
    assert abs(law.sum() - 1) < 1e-9
    return law


def chi_square(counts: np.ndarray, law: np.ndarray, least: float = 5.0) -> tuple[float, int]:
    """Return the p-value and the number of bins, pooled to expect at least `least` each."""
    draws = counts.sum()
    order = np.argsort(law)
    bins: list[list[float]] = [[0.0, 0.0]]
    for expected, seen in zip(law[order] * draws, counts[order], strict=True):
        if bins[-1][0] >= least:
            bins.append([0.0, 0.0])
        bins[-1][0] += expected
        bins[-1][1] += seen
    if len(bins) > 1 and bins[-1][0] < least:
        expected, seen = bins.pop()
        bins[-1][0] += expected
        bins[-1][1] += seen
    table = np.array(bins)
    statistic = ((table[:, 1] - table[:, 0]) ** 2 / table[:, 0]).sum()
    return float(chi2.sf(statistic, max(len(bins) - 1, 1))), len(bins)


FACTORS: dict[str, tuple] = {
    "p": (3, 6, 9, 12),
    "mechanism": ("exponential", "permute-and-flip"),
    "terms": ("columns", "factors"),
    "keep": ("intercept", "and one"),
    "limit": ("all", "max"),
    "hierarchy": ("none", "strong"),
    "radius": ("free", "binding"),
    "signal": ("none", "some"),
    "correlation": (0.0, 0.9),
    "method": ("PCLS", "PCPL"),
}


def covering_array(factors: Mapping[str, Sequence], seed: int = 0) -> list[dict]:
    """Cells in which every pair of levels of every two factors occurs (greedy)."""
    names = list(factors)
    rng = np.random.default_rng(seed)
    missing = {
        (a, x, b, y)
        for a, b in itertools.combinations(names, 2)
        for x in factors[a]
        for y in factors[b]
    }
    cells: list[dict] = []
    while missing:
        best, most = {}, -1
        for _ in range(60):
            cell = {name: levels[rng.integers(len(levels))] for name, levels in factors.items()}
            covered = len(missing & pairs(cell))
            if covered > most:
                best, most = cell, covered
        if most > 0:
            cells.append(best)
            missing -= pairs(best)
    return cells


def pairs(cell: Mapping) -> set[tuple]:
    return {(a, cell[a], b, cell[b]) for a, b in itertools.combinations(cell, 2)}


@dataclass
class Case:
    """One selection with all its models listed."""

    problem: Problem
    space: Space
    t: Fraction
    phi: int
    psi: int
    transform: object
    scores: np.ndarray
    models: np.ndarray

    @property
    def contest(self) -> Contest:
        """What the tree compares; how far scores move is nothing to it."""
        moved = ScoreRange(width=1, protection=Protection("replace-one"))
        return Contest(moved, Fraction(1), self.transform, self.phi, self.psi)

    def index(self) -> dict[tuple[int, ...], int]:
        return {tuple(np.flatnonzero(m).tolist()): i for i, m in enumerate(self.models)}


def make_space(p: int, *, factors: bool, keep_one: bool, limit: str, strong: bool) -> Space:
    columns = list(range(1, p + 1))
    keep = (0, columns.pop()) if keep_one else (0,)
    units: list[tuple[int, ...]] = []
    widths = itertools.cycle((1, 2, 1, 3) if factors else (1,))
    while columns:
        width = min(next(widths), len(columns))
        units.append(tuple(columns[:width]))
        del columns[:width]
    q = len(units)
    requires: tuple[tuple[int, ...], ...] = ()
    if strong and q >= 2:
        mains = max((q + 1) // 2, 1)
        requires = tuple(
            () if u < mains else tuple(sorted({u % mains, (u + 1) % mains})) for u in range(q)
        )
    most = (q + 1) // 2 if limit == "max" else None
    names = tuple(f"u{u}" for u in range(q))
    return Space(names, tuple(units), keep, most, requires)


def make_rows(n: int, p: int, correlation: float, signal: bool, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n, 1))
    z = np.sqrt(1 - correlation) * rng.standard_normal((n, p)) + np.sqrt(correlation) * shared
    x = np.clip(z / 3, -1, 1)
    y = 0.3 * rng.standard_normal(n) + 0.1
    if signal:
        y += x[:, 0] * 0.9 - x[:, p // 2] * 0.6 + 0.3 * x[:, -1]
    return np.column_stack([np.ones(n), x, np.clip(y, -1, 1)])


def make_case(cell: Mapping, seed: int, *, n: int = 80, spread: int = 5) -> Case:
    """Make the problem and space of a cell, with t such that scores span `spread` nats or so."""
    p = cell["p"]
    rows = make_rows(n, p, cell["correlation"], cell["signal"] == "some", seed)
    moments = accumulate([rows], p + 2)
    rho = Fraction(3, 10) if cell["radius"] == "binding" else Fraction(8)
    problem = Problem(moments, rho)
    space = make_space(
        p,
        factors=cell["terms"] == "factors",
        keep_one=cell["keep"] == "and one",
        limit=cell["limit"],
        strong=cell["hierarchy"] == "strong",
    )
    models = space.models()
    q = problem.scores(space.columns(models))
    transform = None
    if cell["method"] == "PCPL":
        offset = (moments.cells[-1][-1] / (problem.grid * 2**40)).__floor__()

        def transform(scores: np.ndarray) -> np.ndarray:
            return profile_scores(scores + offset, n)

        q = transform(q)
    width = max(int(q.max() - q.min()), 1)
    phi, psi = width // 30, width // 10
    columns, units = penalty_counts(space, models)
    scores = q + phi * columns + psi * units
    return Case(problem, space, Fraction(spread, width), phi, psi, transform, scores, models)
