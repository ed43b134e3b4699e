"""Releases that only choose, many from one drawn data set, and their verdicts many at a time.

Two things make it quick. The first look's moments are the same for every release from one data set.
And in small spaces all models of all releases are fitted at once, where dpreg's walk and proof fit
them one by one. `tests/benchmarks/test_power.py` holds laws against those of whole calls, and
verdicts against `dpreg.staged.choice.guard.judge`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks._staged_rows import Rows, Setting, looks
from dpreg.selection.space import Space
from dpreg.staged.choice.guard import LENIENT, guard_margin, judge, reach_of
from dpreg.staged.choice.problem import Problem, build_problem
from dpreg.staged.law import LookLaw

__all__ = ["Decision", "choosing_law", "deviances", "verdicts"]

ALPHA = 0.1
_LISTED = 10
"""Up to so many units all models are fitted."""
_BATCH = 100
"""Releases whose models are fitted at once."""


def choosing_law(rows: Rows, setting: Setting, rng: np.random.Generator) -> LookLaw:
    """Release three looks and a tail; return the law that terms are chosen from."""
    return looks(rows, setting, len(rows), rng, choosing=True, last=True).choosing()


@dataclass(frozen=True)
class Decision:
    """The chosen units and those of them that are reported."""

    model: frozenset[int]
    reported: frozenset[int]
    certified: bool = True


def verdicts(laws: list[LookLaw], space: Space) -> list[Decision]:
    """Return what the choice says about each law."""
    problems = [build_problem(one, space, ALPHA) for one in laws]
    margin = guard_margin(ALPHA)
    small = space.size <= 2**_LISTED and all(p.simple for p in problems)
    if not small or space.min_units or space.max_units is not None:
        found = [judge(problem, margin) for problem in problems]
        return [Decision(v.model, v.reported, v.certified) for v in found]
    out = []
    for at in range(0, len(problems), _BATCH):
        out += _listed(problems[at : at + _BATCH], margin)
    return out


def deviances(problems: list[Problem]) -> np.ndarray:
    """Return the deviance of every model, (problems, 2^q); unit 0 is the number's highest bit.

    Unit after unit is decided: out strikes its row and column, in takes a Schur complement.
    """
    q = problems[0].size
    nodes = np.empty((len(problems), 1, q + 1, q + 1))
    for node, problem in zip(nodes[:, 0], problems, strict=True):
        node[:q, :q], node[q, q] = problem.gram, problem.response.total
        node[:q, q] = node[q, :q] = problem.response.cross
    for _ in range(q):
        row, rest = nodes[..., 0, 1:], nodes[..., 1:, 1:]
        within = rest - (row / nodes[..., :1, 0])[..., :, None] * row[..., None, :]
        b, k, c = rest.shape[:3]
        nodes = np.stack([rest, within], axis=2).reshape(b, 2 * k, c, c)
    return np.asarray(nodes[:, :, 0, 0])


def _listed(problems: list[Problem], margin: float) -> list[Decision]:
    """Apply the guard's two rules to the deviances of all models."""
    q, reach = problems[0].size, reach_of(problems[0])
    held = (np.arange(2**q)[:, None] >> np.arange(q)[::-1]) & 1 > 0
    deviance = deviances(problems)
    prices = np.array([held @ problem.prices for problem in problems])
    values = deviance + prices
    cheap = deviance + LENIENT * prices
    at = np.arange(len(problems))
    best = values.argmin(axis=1)
    least, chosen = values[at, best], held[best]
    within = ~(held[None] & ~chosen[:, None]).any(axis=2)  # models that add nothing to the chosen
    reported = chosen.copy()
    for unit in range(q):
        without = ~held[:, unit]
        beside = deviance[:, np.arange(2**q) | 1 << (q - 1 - unit)]  # with the unit added
        costs = np.where(without, values, np.inf)
        stands = deviance - beside < np.array([p.prices[unit] for p in problems])[:, None]
        stands &= ~within & (costs <= costs.min(axis=1)[:, None] + reach * margin)
        stood = np.where(stands, costs, np.inf)
        first = stood.argmin(axis=1)
        saved = np.maximum(0.0, prices[at, first] - prices[at, best])
        doubted = stood[at, first] - saved < least + margin
        rival = np.where(without, cheap, np.inf).argmin(axis=1)
        other = np.where(without, np.inf, cheap).argmin(axis=1)
        second = cheap[at, rival] - cheap[at, other] < margin
        second &= (held[rival] & ~held[other]).any(axis=1) & ~within[at, rival]
        reported[:, unit] &= ~(doubted | second)
    reported &= ~np.array([problem.silent for problem in problems])[:, None]
    return [
        Decision(frozenset(map(int, np.flatnonzero(m))), frozenset(map(int, np.flatnonzero(r))))
        for m, r in zip(chosen, reported, strict=True)
    ]
