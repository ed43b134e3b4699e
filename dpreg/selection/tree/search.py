"""The search of one draw: a heap of nodes and leaves, taken highest bound first.

What is drawn, and why its law is exact, is in `tree`; this file holds the moves. A node is split on
a range of sizes, on a unit, or by *peeling*: its leaf on one side, all its other models on the
other. Peeling lists the largest noises of a cell one by one; it is the better move where the
bound is so near the best value that only a handful of them can matter. The choice between moves
follows a guess of the final value (`Search.guess`), which nothing else rests on.

What the heap of a search holds: nodes, which are sets of models, and leaves, single models.

Both are records of one search, changed as it learns more: a node's bounds rise when its state is
made, a leaf's when its score is refined. A search makes thousands and refines them in place, so the
fields stay open; only `dpreg.selection.tree.search` writes them. Tested with the search.

Exact draws from all 2**q models, without listing them.

Statement
---------
Let S(M) = T(q(M)) + phi (columns of M outside keep) + psi (units of M outside keep) be the integer
score of each model M of a space, T non-decreasing, and t > 0 a rational rate. `Tree.draw` returns
the model that attains

    max over M of  Z_M - t S(M),   Z_M independent, Gumbel (exponential mechanism)
                                   or standard exponential (permute-and-flip),

so that P(M) is proportional to exp(-t S(M)), or is permute-and-flip's law (McKenna & Sheldon 2020;
noisy maximum with exponential noise: Ding et al. 2021). It is the law of the engine that
enumerates, for every data set, and it is exact: there is no approximation, no iteration limit, no
timeout and no best-so-far answer, each of which would be an uncontrolled delta. Run time and memory
depend on the data.

Method
------
A* sampling (Maddison, Tarlow & Minka 2014) with the bounds of leaps and bounds (Furnival & Wilson
1974). A *node* is a cell of models (`counts`): N models, an exact integer, with a least
penalty. Its data are the largest noise v of its models, the model (*leaf*) that has it, and a
certified bound F0 <= F_rho(M) for all M of the cell (`bounds`). Then

    Z_M - t S(M) <= v - t (T(floor(F0 / g)) + least penalty)          for every M of the cell,   (1)

as q(M) = floor(F_rho(M)/g), and floor and T are monotone. Nodes are taken from a heap, highest
bound first, and split on a unit, or on a range of sizes where that pays. The search ends when the
best value found is at least every bound on the heap.

Proof that the law is that of independent noises
------------------------------------------------
The noises of a cell, given that all lie below a cap, are independent with the law of one noise
truncated at the cap. Their maximum v has F(v)^N / F(cap)^N uniform; it sits at a model uniform
over the cell; and given both, the noises of all other models are again independent, truncated at
v. (Symmetry and independence; ties have probability zero.) So: a root draws v without a cap. When
a cell is split into parts, the part that holds the leaf has maximum v at the leaf, and every
other part is a set of other models, whose noises are independent, below v: it draws its maximum
with cap v, and a uniform leaf. By induction, the v and leaf of all nodes ever made have the joint
law they would have if all Z_M had been drawn first. Which node is split next, how, and when the
search ends depend on values already known only, so the result is the argmax for that joint
draw of all Z_M: every M is either a leaf whose value was compared, or under a node whose
bound (1) is at most the best value. Leaves are evaluated lazily: a leaf waits on the heap with (1)
of its own, and its canonical score is asked for only when that comes first. QED

What would be wrong
-------------------
One root with leaves drawn by independent coins of odds exp(-t price) and noise of law
F^(sum of odds) is right for the exponential mechanism alone: under permute-and-flip the noises of
models with different penalties are not exchangeable.

Where it is slow
----------------
Work grows with the gap between a cell's bound and its good models' scores, in units of noise. It is
wide where terms are priced and hundreds of strongly correlated columns stand in for each other:
no column alone is worth its price, and yet the first one explains what all share. Then the law
itself is spread over 10**5 models and more, and a draw may take seconds or minutes. Fewer rows than
columns are not a problem (the constrained fit bounds them). The moments' matrices are small:
set OPENBLAS_NUM_THREADS=1, or threads that wait for each other cost more than they compute.

Exactness on a computer: scores, counts and coins are exact integers; noise is compared by balls of
at least 192 bits that get more bits wherever they overlap (`noise`); floats are used for
bounds that are rounded outwards, and for the order of the heap, which matters for time alone.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from flint import arb, ctx, fmpq

from dpreg.running import bar
from dpreg.selection.contest import Contest
from dpreg.selection.space import Space
from dpreg.selection.tree.bounds import Bounds, State
from dpreg.selection.tree.counts import Cell, Counts, members
from dpreg.selection.tree.noise import (
    PRECISION,
    Arrival,
    Bits,
    exponential_noise,
    gumbel_noise,
    outward,
)

if TYPE_CHECKING:
    from dpreg.selection.scoring.problem import Problem


@dataclass(slots=True, eq=False)
class Node:
    """A cell less the models already taken from it (`gone`), with its largest noise.

    `removed` are the units that no model of the cell holds: those of `state`, and others, which
    add at least `extra` to the state's bound; `lack` estimates by how much that falls short of the
    bound of a state of its own. `leaf` is the model with the noise, or -1 before it is drawn.
    """

    cell: Cell
    size: int
    gone: frozenset[int]
    noise: Arrival
    state: State
    extra: float = 0.0
    bound: float = -math.inf
    lack: float = 0.0
    score: int = 0
    removed: int = 0
    leaf: int = -1


@dataclass(slots=True, eq=False)
class Leaf:
    """A model with its noise and a lower bound on its score; `stage` counts the refinements."""

    model: int
    noise: Arrival
    bound: float
    score: int = 0
    stage: int = 0


_SLACK: Final = 2.0**-40
_REFRESH: Final = 0.3
"""Nats that a node's own state must be expected to gain before it is made."""
_PEEL: Final = 1.0
"""A node is peeled while the log of the noises that could still matter is below this."""
_BOX: Final = 0.2
"""How much a unit must gain, as a share of what halving a range of sizes gains, to go first."""


@dataclass(frozen=True, slots=True)
class TreeDraw:
    """One draw.

    Attributes
    ----------
    units : tuple of int
        Units of the model drawn, outside keep, in increasing order.
    nodes, leaves : int
        Nodes made and canonical scores computed. They depend on the rows beyond what the draw
        reveals: curator only, never part of a released result.
    """

    units: tuple[int, ...]
    nodes: int
    leaves: int


class Search:
    """One draw's heap, best leaf and counters."""

    def __init__(self, tree: Tree, bits: Bits, progress: bool) -> None:
        self.tree, self.bits = tree, bits
        self.counts, self.bounds = tree.counts, tree.bounds
        self.rate = fmpq(tree.t.numerator, tree.t.denominator)
        self.heap: list[tuple[float, int, Node | Leaf]] = []
        self.best: Leaf | None = None
        self.best_low = self.guess = -math.inf
        self.nodes = self.leaves = self.serial = 0
        self.bar = bar(unit=" nodes", shown=True) if progress else None

    def value(self, item: Node | Leaf) -> arb:
        """Return the ball of Z - t S: of a leaf, or what no model of a node exceeds."""
        return item.noise.noise - self.rate * item.score

    def push(self, item: Node | Leaf) -> None:
        """Put an item on the heap under a float at or above its bound, unless it cannot win."""
        high = outward(self.value(item))[1]
        if high > self.best_low:
            self.serial += 1
            heapq.heappush(self.heap, (-high, self.serial, item))

    def arrival(self, cap: Arrival | None, size: int) -> Arrival:
        """Draw the first arrival after `cap` among so many models."""
        return Arrival(cap, size, self.bits, self.tree.noise)

    def place(self, node: Node) -> None:
        """Bound a node and put it on the heap."""
        self.nodes += 1
        self.rate_node(node)
        self.push(node)

    def rate_node(self, node: Node) -> None:
        """Raise a node's bounds on F and S to the best that is known of it."""
        cell, view = node.cell, node.state.view
        more = cell.inside.bit_count() + cell.free.bit_count() - cell.hi  # free, but left out
        bound = view.bound + node.extra + float(view.reserve[more])
        node.bound = max(node.bound, bound - abs(bound) * _SLACK, self.bounds.floor)
        node.score = self.tree.least_score(node.bound, self.counts.penalty(cell))

    def run(self) -> TreeDraw:
        """Take items until the best value found is at least every bound left."""
        cell = self.counts.root()
        size = self.counts.size(cell)
        self.place(Node(cell, size, frozenset(), self.arrival(None, size), self.bounds.state(0)))
        while self.heap and -self.heap[0][0] > self.best_low:
            key, _, item = heapq.heappop(self.heap)
            if isinstance(item, Leaf):
                self.refine_leaf(item)
            else:
                self.take_node(item, -key)
            if self.bar is not None:
                self.bar.update(1)
                if self.heap and self.bar.n % 64 == 0:
                    self.bar.set_postfix(gap=f"{-self.heap[0][0] - self.guess:.3g} nats")
        if self.bar is not None:
            self.bar.close()
        assert self.best is not None, "the tree ended without a leaf"
        units = tuple(members(self.best.model).tolist())
        return TreeDraw(units, self.nodes, self.leaves)

    def take_node(self, node: Node, key: float) -> None:
        """Give a node its state, its leaf, and then its parts."""
        if node.lack * self.tree.nats > _REFRESH and node.size > 1:
            before = node.score
            node.state = self.bounds.state(node.removed, node.state)
            node.extra = node.lack = 0.0
            self.rate_node(node)
            if node.score > before:
                self.push(node)
                return
        if node.leaf < 0:
            node.leaf = self.counts.draw_other(node.cell, node.gone, self.bits)
            if self.counts.is_model(node.leaf):
                self.add_leaf(node)
        if node.size == 1:
            return
        if self.log_rivals(node, key) < _PEEL:
            self.peel(node)
        else:
            self.split(node)

    def log_rivals(self, node: Node, key: float) -> float:
        """Return about the log of how many noises of the node could still beat the guess."""
        surplus = key - max(self.guess, self.best_low)
        if surplus < 0:
            return -math.inf
        noise = float(node.noise.noise)
        if self.tree.mechanism != "exponential" and surplus >= noise:
            return math.inf  # exponential noise is above zero: peeling sinks a bound no further
        return math.log(node.size) - noise + min(surplus, 50.0)

    def add_leaf(self, node: Node) -> None:
        """Put a node's leaf on the heap under a bound of its own."""
        out = members(node.cell.free & ~node.leaf)
        view = node.state.view
        bound = view.bound + node.extra + float(view.weight[out].sum()) * (1 - _SLACK)
        bound = max(bound - abs(bound) * _SLACK, node.bound, self.bounds.floor)
        leaf = Leaf(node.leaf, node.noise, bound)
        leaf.score = self.tree.least_score(leaf.bound, self.counts.penalty_of(leaf.model))
        if float(self.value(leaf)) > self.guess:
            self.refine_leaf(leaf)
            self.guess = max(self.guess, float(self.value(leaf)))
        else:
            self.push(leaf)

    def refine_leaf(self, leaf: Leaf) -> None:
        """Raise a leaf's bound; at the last stage compare its canonical value with the best."""
        penalty = self.counts.penalty_of(leaf.model)
        units = members(leaf.model)
        if leaf.stage == 0:
            bound = self.bounds.of_model(units)
            leaf.stage = 1
            leaf.score = max(leaf.score, self.tree.least_score(bound, penalty))
            self.push(leaf)
            return
        columns = [*self.bounds.kept]
        for u in units.tolist():
            columns.extend(self.tree.space.unit_columns[u])
        q = self.tree.problem.score_one(columns)
        self.leaves += 1
        leaf.score = self.tree.transformed(q) + penalty
        if self.best is None or self.beats(leaf, self.best):
            self.best = leaf
            self.best_low = outward(self.value(leaf))[0]

    def beats(self, a: Leaf, b: Leaf) -> bool:
        """Whether a's value exceeds b's, certainly."""
        precision = PRECISION
        while True:
            with ctx.workprec(precision):
                if precision > PRECISION:
                    a.noise.refine(precision, self.bits)
                    b.noise.refine(precision, self.bits)
                x, y = self.value(a), self.value(b)
                if x > y:
                    return True
                if x < y:
                    return False
            precision *= 2

    def peel(self, node: Node) -> None:
        """Split into the leaf, which is on the heap, and all other models."""
        size = node.size - 1
        gone = node.gone | {node.leaf}
        noise = self.arrival(node.noise, size)
        self.place(replace(node, size=size, gone=gone, noise=noise, leaf=-1))

    def split(self, node: Node) -> None:
        """Split on the range of sizes or on a unit, whichever raises a bound more."""
        cell, counts, state = node.cell, self.counts, node.state
        unit = next((u for u in state.order if cell.free >> u & 1), -1)
        worth = float(state.expected[unit]) / self.tree.grid if unit >= 0 else -1.0
        halves = counts.halves(cell)
        rise = counts.penalty(halves[1]) - counts.penalty(cell)
        if cell.lo < cell.hi and rise > max(_BOX * worth, 0.0):
            for half in halves:
                self.child(node, half)
            return
        self.child(node, counts.with_unit(cell, unit))
        without = counts.without_unit(cell, unit)
        self.child(node, without, cell.free & ~without.free)

    def child(self, node: Node, cell: Cell, removed: int = 0) -> None:
        """Make the node of a part of the cell, `removed` newly left out of it."""
        counts = self.counts
        gone = frozenset(model for model in node.gone if counts.holds(cell, model))
        size = counts.size(cell) - len(gone)
        if size == 0:
            return
        heir = counts.holds(cell, node.leaf)
        if heir and size == 1:
            return
        leaf, noise = (node.leaf, node.noise) if heir else (-1, self.arrival(node.noise, size))
        made = replace(node, cell=cell, size=size, gone=gone, noise=noise, leaf=leaf)
        made.removed |= removed
        if removed:
            state = node.state
            for u in members(removed).tolist():
                weight = float(state.view.weight[u])
                made.extra += weight
                made.lack += max(float(state.expected[u]) - weight, 0.0)
                made.bound = max(made.bound, float(state.without[u]))
        self.place(made)


_NOISE: Final = {"exponential": gumbel_noise, "permute-and-flip": exponential_noise}


class Tree:
    """The sampler for one problem, space and penalty; made once, drawn from any number of times.

    Parameters
    ----------
    problem : scores.Problem
        Canonical integer scores of models for given exact moments.
    space : Space
        Units, keep, limits and hierarchy.
    contest : Contest
        T, and the price of a column and of a unit outside keep, which are not negative.
    mechanism : {"exponential", "permute-and-flip"}
    t : Fraction
        Rate per integer unit of score, positive.
    """

    def __init__(
        self, problem: Problem, space: Space, contest: Contest, *, mechanism: str, t: Fraction
    ) -> None:
        self.problem = problem
        self.space = space
        self.mechanism = mechanism
        self.noise = _NOISE[mechanism]
        self.t = t
        self.transform = contest.transform
        self.counts = Counts(space, contest.phi, contest.psi)
        gram, cross = problem.moments()
        self.grid = float(problem.grid)
        self.bounds = Bounds(gram, cross, problem.rho, space)
        start = self.bounds.base
        span = 2.0**24 * self.grid
        rise = self.least_score(start + span, 0) - self.least_score(start, 0)
        self.nats = float(t) * rise / span
        # About one nat is worth a constrained fit. (Speed alone: no bound's truth depends on it.)
        self.bounds.unit = 1.0 / self.nats if self.nats else math.inf

    def least_score(self, bound: float, penalty: int) -> int:
        """Return T(floor(bound / g)) + penalty; g is a power of two, so the division is exact."""
        return self.transformed(math.floor(bound / self.grid)) + penalty

    def transformed(self, q: int) -> int:
        """Return T(q)."""
        if self.transform is None:
            return q
        # A score is within n 2**25 grid units of 0; a bound that ignores the radius need not be.
        kept = min(max(q, -(2**62)), 2**62)
        return int(self.transform(np.array([kept], dtype=np.int64))[0])

    def draw(self, bits: Bits | None = None, *, progress: bool = False) -> TreeDraw:
        """Draw one model; see the module docstring.

        Parameters
        ----------
        bits : Bits, optional
            Source of randomness; the operating system's entropy if None.
        progress : bool
            Show nodes and the gap between the best bound and the best value on stderr. For the
            curator's eyes: both depend on the rows.
        """
        self.bounds.forget()
        with ctx.workprec(PRECISION):
            return Search(self, Bits() if bits is None else bits, progress).run()
