r"""List every model within a margin of the best: proof that nothing better was missed.

Units are decided one after the other, strongest first. Take a node at which some are out. A is all
the rest, with coefficients b, their covariance V (the inverse Gram matrix of A) and deviance D_A; F
is the part of A that is still undecided. A model M below the node leaves out some O in F, and

    D_M - D_A = b_O' (V_OO)^-1 b_O.

Two lower bounds of it follow.

1. It is at least max over u in O of loss_u, what dropping u alone costs: deviance only grows as
   units leave.
2. It is at least the sum over u in O of delta_u |b_u|^2, if gram - diag(delta) is positive
   semidefinite for the Gram matrix of all columns (as in Frangioni and Gentile 2006). The Gram
   matrix of A is a block of that one, so that V <= diag(1/delta) on A; so is its block V_OO, and
   inverses turn the order around.

A unit of F is either out, or in and pays its price. So the criterion is at least

    D_A + paid + max( min over t >= 0 of (t + sum of the prices with loss_u > t),
                      sum of min(price_u, delta_u |b_u|^2) ).

Nodes whose bound exceeds the best criterion by more than the margin are dropped (leaps and bounds:
Furnival and Wilson 1974). All nodes of one depth are treated together. A node is the matrix
[V_FF, b_F; b_F', -D_A]: a unit goes out by a Schur complement and in by striking its row. The same
bounds and one more settle most units of a large space beforehand (`dpreg.staged.choice.settle`);
where they leave more than `_FEW`, the space is divided by a unit and each part settled anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpreg.arrays import Floats
from dpreg.staged.choice.problem import Model, Problem, Response
from dpreg.staged.choice.search import search
from dpreg.staged.choice.settle import Rest, settle

__all__ = ["EXACT_UNITS", "Listing", "near_best", "usual_nodes"]

Bools = NDArray[np.bool_]

EXACT_UNITS: Final = 20
"""Up to so many units the listing always runs to its end: at most 2^21 nodes."""
_WORK: Final = 1e8
"""With more units it gives up, and says so, once nodes times squared columns exceed this."""
_FEW: Final = 20
"""Up to so many undecided units are decided in batches; with more the space is divided first."""
_SETTLING: Final = 20
"""What settling one part counts for, in nodes."""
_CELLS: Final = 2_000_000
"""The most matrix cells in one batch: 16 MB."""
_ROUNDING: Final = 1e-7
"""Bounds are believed up to this share of the deviance they are differences of."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The models near the best one.

    Attributes
    ----------
    models : tuple of (model, criterion)
        Best first. All models within the margin if `complete`, else those that were found.
    complete : bool
        Whether the listing ran to its end: then the first model is the best of the whole space.
    nodes : int
        How many nodes were looked at.
    """

    models: tuple[tuple[Model, float], ...]
    complete: bool
    nodes: int

    @property
    def best(self) -> Model:
        """The best model."""
        return self.models[0][0]

    @property
    def criterion(self) -> float:
        """The best model's criterion."""
        return self.models[0][1]


@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """Nodes of one depth: [V_FF, b_F; b_F', -D_A] of each, which units are in, what they paid."""

    depth: int
    matrix: Floats
    inside: Bools
    paid: Floats


def near_best(
    problem: Problem,
    response: Response | None = None,
    *,
    margin: float = 0.0,
    start: Model | None = None,
    nodes: int | None = None,
    forbidden: Model = frozenset(),
    forced: Model = frozenset(),
) -> Listing:
    """List the models whose criterion is within `margin` of the best.

    Parameters
    ----------
    problem : Problem
    response : Response, optional
        Another left-hand side than the released one.
    margin : float
    start : model, optional
        A good model, if one is known; else one is searched for.
    forbidden, forced : sets of units
        In no model listed, and in all.
    nodes : int, optional
        The most nodes; by default no limit up to `EXACT_UNITS` units, and beyond a number that
        depends on the number of columns alone (40,000 at 50 columns, 1,100 at 300).
    """
    response = problem.response if response is None else response
    if not problem.size:
        empty: Model = frozenset()
        return Listing(((empty, problem.criterion(empty, response)),), True, 0)
    if start is None:
        start = search(problem, response, forbidden=forbidden, forced=forced)
    nodes = usual_nodes(problem) if nodes is None else nodes
    known = _Known(problem, response, margin)
    known.note(_row(problem, start), None)
    parts: list[tuple[Model, Model]] = [(forced, forbidden)]
    done = 0
    while parts and done < nodes:
        inside, outside = parts.pop()
        rest = settle(problem, response, known.most, inside, outside)
        done += 1 if (inside, outside) == (forced, forbidden) else _SETTLING
        if rest.least > known.most or len(rest.inside) > problem.most:
            continue
        if len(rest.units) > _FEW:
            unit = rest.dearest
            parts += [(rest.inside | {unit}, rest.outside), (rest.inside, rest.outside | {unit})]
            continue
        plan = _Plan(known, rest)
        stack = plan.root()
        while stack and done < nodes:
            children = plan.branch(stack.pop())
            done += sum(len(child.paid) for child in children)
            stack.extend(children)
        if stack:
            parts.append((inside, outside))
    return Listing(known.listed(forced), not parts, done)


def usual_nodes(problem: Problem) -> int:
    """Return the most nodes of a listing, if no other number is asked for."""
    exact = problem.size <= EXACT_UNITS
    return 2 ** (EXACT_UNITS + 2) if exact else int(_WORK / len(problem.gram) ** 2)


class _Known:
    """The best models so far."""

    def __init__(self, problem: Problem, response: Response, margin: float) -> None:
        self.problem, self.response, self.margin = problem, response, margin
        self.rounding = _ROUNDING * max(1.0, 1e-3 * abs(response.total))
        self.best = np.inf
        self.found: list[tuple[Model, float]] = []

    @property
    def most(self) -> float:
        """Models of a larger criterion are not asked for."""
        return self.best + self.margin + self.rounding

    def note(self, inside: Bools, values: Floats | None) -> None:
        """Remember models within the margin."""
        near = np.arange(len(inside))
        if values is not None:
            near = np.flatnonzero(values <= self.most)
        for row in near:
            model = frozenset(map(int, np.flatnonzero(inside[row])))
            if not self.problem.allows(model):
                continue
            rough = -np.inf if values is None else float(values[row])
            # What could be the best is computed afresh, by the search's own arithmetic.
            exact = rough <= self.best + self.rounding
            value = self.problem.criterion(model, self.response) if exact else rough
            self.best = min(self.best, value)
            self.found.append((model, value))

    def listed(self, least: Model) -> tuple[tuple[Model, float], ...]:
        """Return the models within the margin, best first, each once; `least` always counts."""
        self.note(_row(self.problem, least), None)
        top = self.best + self.margin
        near = {model: value for model, value in self.found if value <= top}
        return tuple(sorted(near.items(), key=lambda item: (item[1], sorted(item[0]))))


class _Plan:
    """What is left to decide, in which order, and the diagonal delta."""

    def __init__(self, known: _Known, rest: Rest) -> None:
        problem = known.problem
        self.known, self.problem, self.rest = known, problem, rest
        ends = np.cumsum([0, *(_width(problem, u) for u in rest.units)])
        places = {u: np.arange(ends[i], ends[i + 1]) for i, u in enumerate(rest.units)}
        self.order = _topological(problem, rest, places)
        self.widths = [_width(problem, u) for u in self.order]
        columns = [places[u] for u in self.order]
        self.at = np.concatenate(columns) if columns else np.zeros(0, dtype=np.intp)
        self.delta = rest.delta[self.at]
        self.prices = problem.prices[self.order]

    def root(self) -> list[_Nodes]:
        """Return the one node in which nothing is decided but what is settled."""
        inside = _row(self.problem, self.rest.inside)
        paid = np.array([self.problem.price(self.rest.inside)])
        if not self.order:
            self.known.note(inside, paid + self.rest.deviance)
            return []
        c = len(self.at)
        matrix = np.empty((1, c + 1, c + 1))
        matrix[0, :c, :c] = self.rest.inverse[np.ix_(self.at, self.at)]
        matrix[0, :c, c] = matrix[0, c, :c] = self.rest.slopes[self.at]
        matrix[0, c, c] = -self.rest.deviance
        return [_Nodes(0, matrix, inside, paid)]

    def branch(self, nodes: _Nodes) -> list[_Nodes]:
        """Decide one more unit: leave it out, or take it in."""
        unit, depth = self.order[nodes.depth], nodes.depth + 1
        width = self.widths[nodes.depth]
        rows, rest = nodes.matrix[:, :width, width:], nodes.matrix[:, width:, width:]
        block = nodes.matrix[:, :width, :width]
        solved = rows / block if width == 1 else np.linalg.solve(block, rows)
        out = rest - rows.transpose(0, 2, 1) @ solved
        left = _Nodes(depth, out, nodes.inside, nodes.paid)

        may = nodes.inside.sum(axis=1) < self.problem.most
        if self.problem.space.requires:
            may &= nodes.inside[:, list(self.problem.space.requires[unit])].all(axis=1)
        inside = nodes.inside[may].copy()
        inside[:, unit] = True
        right = _Nodes(depth, rest[may], inside, nodes.paid[may] + self.problem.prices[unit])
        if depth == len(self.order):
            for leaf in (left, right):
                self.known.note(leaf.inside, leaf.paid - leaf.matrix[:, 0, 0])
            return []
        # Both in one batch: a node more costs little, a batch more costs a round of calls.
        both = (np.concatenate(pair) for pair in zip(_parts(left), _parts(right), strict=True))
        return self._kept(_Nodes(depth, *both))

    def _kept(self, nodes: _Nodes) -> list[_Nodes]:
        """Drop the nodes whose bound is too high; split the rest into batches."""
        if not len(nodes.paid):
            return []
        c = nodes.matrix.shape[1]
        step = max(1, _CELLS // (c * c))
        kept = []
        for at in range(0, len(nodes.paid), step):
            part = slice(at, at + step)
            bound = self._bound(nodes.depth, nodes.matrix[part]) + nodes.paid[part]
            ok = bound <= self.known.most
            if ok.any():
                kept.append(
                    _Nodes(
                        nodes.depth,
                        nodes.matrix[part][ok],
                        nodes.inside[part][ok],
                        nodes.paid[part][ok],
                    )
                )
        return kept

    def _bound(self, depth: int, matrix: Floats) -> Floats:
        """Return, for each node, a lower bound of the criterion less what is paid."""
        c = matrix.shape[1] - 1
        slopes, widths, prices = matrix[:, :c, c], self.widths[depth:], self.prices[depth:]
        squares = slopes**2 * self.delta[-c:]
        if c == len(widths):
            loss = slopes**2 / np.einsum("nii->ni", matrix)[:, :c]
        else:
            starts = np.cumsum([0, *widths])
            squares = np.add.reduceat(squares, starts[:-1], axis=1)
            loss = np.empty((len(matrix), len(widths)))
            for i in range(len(widths)):
                block = slice(starts[i], starts[i + 1])
                side = slopes[:, block, None]
                loss[:, i] = (side * np.linalg.solve(matrix[:, block, block], side)).sum(
                    axis=(1, 2)
                )
        shared = np.minimum(squares, prices).sum(axis=1)
        ranked = np.argsort(loss, axis=1)
        sorted_loss = np.take_along_axis(loss, ranked, axis=1)
        dear = np.cumsum(prices[ranked][:, ::-1], axis=1)[:, ::-1]
        ends = np.zeros((len(matrix), 1))
        largest = (np.hstack([ends, sorted_loss]) + np.hstack([dear, ends])).min(axis=1)
        return np.asarray(np.maximum(shared, largest) - matrix[:, c, c])


def _parts(nodes: _Nodes) -> tuple[Floats, Bools, Floats]:
    return nodes.matrix, nodes.inside, nodes.paid


def _width(problem: Problem, unit: int) -> int:
    return int(problem.slices[unit].stop - problem.slices[unit].start)


def _row(problem: Problem, model: Model) -> Bools:
    """Return a model as one row of truth values, (1, q)."""
    return np.array([[u in model for u in range(problem.size)]])


def _topological(problem: Problem, rest: Rest, places: dict[int, NDArray[np.intp]]) -> list[int]:
    """Order the undecided units by what they explain, each after those that it needs."""
    losses = {}
    for unit, at in places.items():
        slopes = rest.slopes[at]
        losses[unit] = float(slopes @ np.linalg.solve(rest.inverse[np.ix_(at, at)], slopes))
    needs = problem.space.requires
    order: list[int] = []
    for unit in sorted(rest.units, key=lambda u: -losses[u]):
        wanted = sorted(needs[unit], key=lambda u: len(needs[u])) if needs else []
        order.extend(u for u in [*wanted, unit] if u in places and u not in order)
    return order
