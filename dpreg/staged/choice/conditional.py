r"""Intervals that know how the model was chosen.

An estimate b_j of the chosen model is N(beta_j, V_jj) *before* the choice. Write g = r + t l with
l the line of b_j (`dpreg.staged.choice.coefficients`): r is independent of b_j = t. Given r, the
choice and the guard are functions of t alone, so given r, and that the same model was chosen with
the same verdict about the term, b_j is a normal variable cut to

    {t : the choice from r + t l is the same model, with the same verdict about j's term}

(in the spirit of Lee, Sun, Sun and Taylor 2016, who do it for the lasso). Coverage given r is
coverage.

The set. Along the line the deviance of a model is a quadratic in t; that of the chosen model (and
of every larger one) is constant. With all models' quadratics at hand the verdict at any t is a few
comparisons. Up to `EVERY_MODEL` models all are used. In larger spaces a pool is grown: the models
near the best, with and without each term, at the estimate, at zero, at points along the line, and
again at every edge found, until an edge brings in no new model. Verdicts are read on a mesh of .02
standard errors about the estimate and zero (coarser far out), and edges between mesh points found
by bisection to 1e-9 of a standard error. A gap in the set narrower than the mesh is overlooked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from dpreg.arrays import Floats
from dpreg.staged.choice.certify import near_best
from dpreg.staged.choice.coefficients import ModelFit
from dpreg.staged.choice.guard import (
    LENIENT,
    Verdict,
    best_of_both,
    is_needed,
    lenient,
    reach_of,
)
from dpreg.staged.choice.problem import Model, Problem, Response
from dpreg.staged.choice.search import search
from dpreg.staged.choice.truncated import Truncated

__all__ = ["EVERY_MODEL", "condition"]

Bools = NDArray[np.bool_]

EVERY_MODEL: Final = 2048
"""Spaces up to this size are used whole."""
_NODES: Final = 4000
_WORK: Final = 2e6
"""The most nodes of one listing that grows the pool, and the most of nodes times squared columns: a
hundred candidates take a few hundred listings."""
_ROUNDS: Final = 6
_MESH: Final = 0.02
_AROUND: Final = 8.0
"""How far beyond the estimate and zero the line is read, in standard errors."""
_FAR: Final = 1000.0
"""How far beyond that it is read on a coarse mesh; further out nothing changes any more."""


def condition(problem: Problem, verdict: Verdict, fit: ModelFit, margin: float) -> list[Truncated]:
    """Return the conditional law of each coefficient of the chosen model.

    Parameters
    ----------
    problem : Problem
    verdict : Verdict
        Of `problem` at that margin.
    fit : ModelFit
        Of `verdict.model`.
    margin : float
        The guard's.

    Returns
    -------
    list of Truncated
        One for each of `fit.columns`. A column of keep is conditioned on the model alone, and so
        are all columns of a silent problem: its moments decide that nothing is reported.
    """
    judged = verdict.model if not problem.silent else ()
    unit_of = {c: u for u in judged for c in problem.space.unit_columns[u]}
    shared = _first_pool(problem, verdict, margin)
    out = []
    for place, column in enumerate(fit.columns):
        line = _Line(problem, verdict, fit, place, unit_of.get(column), margin, shared)
        out.append(Truncated(float(fit.estimates[place]), float(fit.se[place]), line.intervals()))
    return out


def _first_pool(problem: Problem, verdict: Verdict, margin: float) -> tuple[Model, ...]:
    """Return every model of a small space; of a large one, those near the best."""
    if problem.space.size <= EVERY_MODEL:
        rows = problem.space.models()
        return tuple(frozenset(map(int, np.flatnonzero(row))) for row in rows)
    listing = near_best(problem, margin=margin, start=verdict.model, nodes=_nodes(problem))
    subsets = [verdict.model - {u} for u in verdict.model]
    subsets = [m for m in subsets if problem.allows(m)]
    return tuple(dict.fromkeys([verdict.model, *subsets, *(m for m, _ in listing.models)]))


def _nodes(problem: Problem) -> int:
    return int(min(_NODES, max(20.0, _WORK / max(len(problem.gram), 1) ** 2)))


class _Line:
    """The choice along the line of one coefficient; t is in standard errors from the estimate."""

    def __init__(
        self,
        problem: Problem,
        verdict: Verdict,
        fit: ModelFit,
        place: int,
        unit: int | None,
        margin: float,
        pool: tuple[Model, ...],
    ) -> None:
        self.problem, self.verdict, self.unit, self.margin = problem, verdict, unit, margin
        self.estimate, self.se = float(fit.estimates[place]), float(fit.se[place])
        here, step = problem.response, self.se * fit.lines[:, place]
        along = problem.respond(step)
        self.cross = np.column_stack([here.cross, along.cross])
        both = float(problem.turned @ (problem.frame @ step))
        self.totals = np.array([[here.total, both], [both, along.total]])
        self.pool: list[Model] = []
        self.made: dict[Model, Floats] = {}
        self.whole = problem.space.size <= EVERY_MODEL
        self.quadratics = self.beside = np.zeros((0, 3))
        self.prices = np.zeros(0)
        self.without = self.smaller = np.zeros(0, dtype=np.bool_)
        self.members = np.zeros((0, problem.size), dtype=np.bool_)
        self.cheap = lenient(problem)
        self.add(pool)

    def intervals(self) -> Floats:
        """Return the set of estimates that bring the same verdict, (k, 2), in box units."""
        mesh = self._mesh()
        if not self.whole:
            self._grow(mesh)
        ends = self._edges(mesh)
        return np.asarray(self.estimate + self.se * ends)

    def _mesh(self) -> Floats:
        """Return where the verdict is read: about the estimate, about zero, and between."""
        zero = -self.estimate / self.se
        low, high = min(zero, 0.0) - _AROUND, max(zero, 0.0) + _AROUND
        if high - low > 8 * _AROUND:
            fine = [np.arange(c - 2 * _AROUND, c + 2 * _AROUND, _MESH) for c in (zero, 0.0)]
            fine.append(np.linspace(low, high, 400))
        else:
            fine = [np.arange(low, high, _MESH)]
        far = np.geomspace(_MESH, _FAR, 120)
        return np.unique(np.concatenate([*fine, low - far, high + far, [0.0]]))

    def _grow(self, mesh: Floats) -> None:
        """Add models to the pool until no edge of the set brings in a new one."""
        zero = -self.estimate / self.se
        asked: set[float] = set()
        points: Iterable[float] = [
            0.0,
            zero,
            *np.linspace(min(zero, 0) - _AROUND, max(zero, 0) + _AROUND, 9),
        ]
        for _ in range(_ROUNDS):
            fresh = [t for t in points if round(t, 3) not in asked]
            asked.update(round(t, 3) for t in fresh)
            if not self.add([m for t in fresh for m in self._listed(t)]) and not fresh:
                return
            edges = self._edges(mesh)
            points = [float(t) for t in edges[np.isfinite(edges)]]

    def _listed(self, t: float) -> list[Model]:
        """Return the models that may decide the verdict at t."""
        problem, unit = self.problem, self.unit
        response = self._response(t)
        start = search(problem, response, starts=(self.verdict.model, frozenset()))
        listing = near_best(
            problem, response, margin=self.margin, start=start, nodes=_nodes(problem)
        )
        models = [m for m, _ in listing.models[:200]]
        most = listing.criterion + self.margin
        if unit is not None and not is_needed(problem, response, unit, most):
            own, reach = frozenset({unit}), reach_of(problem) * self.margin
            rest = near_best(problem, response, margin=reach, forbidden=own, nodes=_nodes(problem))
            models += [m for m, _ in rest.models[:200]]
        if unit is not None:
            models += best_of_both(self.cheap, response, self.verdict.model, unit)
        return models

    def _response(self, t: float) -> Response:
        at = np.array([1.0, t])
        return Response(self.cross @ at, float(at @ self.totals @ at))

    def add(self, models: Iterable[Model]) -> bool:
        """Add models to the pool; whether any was new."""
        known = set(self.pool)
        new = [m for m in dict.fromkeys(models) if m not in known and self.problem.allows(m)]
        if not new:
            return False
        own = frozenset[int]() if self.unit is None else frozenset({self.unit})
        rows = np.array([self._quadratic(m) for m in new])
        beside = [self._quadratic(m | own) for m in new]
        self.pool += new
        chosen = self.verdict.model
        self.quadratics = np.vstack([self.quadratics, rows])
        self.beside = np.vstack([self.beside, beside])
        self.prices = np.append(self.prices, [self.problem.price(m) for m in new])
        self.without = np.append(self.without, [self.unit not in m for m in new])
        self.smaller = np.append(self.smaller, [m <= chosen for m in new])
        held = np.zeros((len(new), self.problem.size), dtype=np.bool_)
        for row, model in zip(held, new, strict=True):
            row[list(model)] = True
        self.members = np.vstack([self.members, held])
        return True

    def _quadratic(self, model: Model) -> Floats:
        """Return the coefficients of a model's deviance in t, (3,)."""
        if model not in self.made:
            at = self.problem.columns(model)
            left = self.totals.copy()
            if len(at):
                cross = self.cross[at]
                left -= cross.T @ cho_solve(cho_factor(self.problem.gram[np.ix_(at, at)]), cross)
            self.made[model] = np.array([left[0, 0], 2 * left[0, 1], left[1, 1]])
        return self.made[model]

    def same(self, t: Floats) -> Bools:
        """Whether the choice and the verdict at each t are those that were released, (n,)."""
        out = np.empty(len(t), dtype=np.bool_)
        for at in range(0, len(t), 256):
            out[at : at + 256] = self._same(t[at : at + 256])
        return out

    def _same(self, t: Floats) -> Bools:
        powers = np.stack([np.ones_like(t), t, t * t])
        deviance = self.quadratics @ powers
        values = deviance + self.prices[:, None]
        mine = values[self.pool.index(self.verdict.model)]
        slack = 1e-7 * max(1.0, 1e-3 * abs(self.totals[0, 0]))
        chosen = mine <= values.min(axis=0) + slack
        if self.unit is None:
            return np.asarray(chosen)
        doubtful = np.zeros(len(t), dtype=np.bool_)
        if (self.without & ~self.smaller).any():
            doubtful = self._stood_in(deviance, powers, mine) | self._leniently(deviance)
        reported = self.unit in self.verdict.reported
        return np.asarray(chosen & (doubtful != reported))

    def _stood_in(self, deviance: Floats, powers: Floats, mine: Floats) -> Bools:
        """Whether the guard's first rule doubts the unit, for each column of deviances."""
        assert self.unit is not None
        without, prices = self.without, self.prices[self.without]
        own, larger = deviance[without], ~self.smaller[without]
        costs = own + prices[:, None]
        stands = own - self.beside[without] @ powers < self.problem.prices[self.unit]
        top = costs.min(axis=0) + reach_of(self.problem) * self.margin
        stands &= larger[:, None] & (costs <= top)
        costs[~stands] = np.inf
        first, at = costs.argmin(axis=0), np.arange(len(mine))
        saved = np.maximum(prices[first] - self.problem.price(self.verdict.model), 0.0)
        return np.asarray(costs[first, at] - saved < mine + self.margin)

    def _leniently(self, deviance: Floats) -> Bools:
        """Whether the guard's second rule doubts the unit, for each column of deviances."""
        values = deviance + LENIENT * self.prices[:, None]
        outside, inside = np.flatnonzero(self.without), np.flatnonzero(~self.without)
        rival = outside[np.argmin(values[outside], axis=0)]
        best = inside[np.argmin(values[inside], axis=0)]
        at = np.arange(deviance.shape[1])
        near = values[rival, at] - values[best, at] < self.margin
        within = (self.members[rival] <= self.members[best]).all(axis=1)
        return np.asarray(near & ~within & ~self.smaller[rival])

    def _edges(self, mesh: Floats) -> Floats:
        """Return the ends of the set, (k, 2), in standard errors from the estimate."""
        inside = self.same(mesh)
        inside[np.searchsorted(mesh, 0.0)] = True  # it was released
        change = np.flatnonzero(inside[1:] != inside[:-1])
        low, high = mesh[change].copy(), mesh[change + 1].copy()
        opening = inside[change + 1]
        for _ in range(30 if len(change) else 0):
            middle = (low + high) / 2
            within = self.same(middle) == opening
            high, low = np.where(within, middle, high), np.where(within, low, middle)
        edges = np.where(opening, high, low)
        ends = ([-np.inf] if inside[0] else []) + list(edges) + ([np.inf] if inside[-1] else [])
        return np.array(ends, dtype=np.float64).reshape(-1, 2)
