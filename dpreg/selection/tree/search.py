"""The search of one draw: a heap of nodes and leaves, taken highest bound first.

What is drawn, and why its law is exact, is in `tree`; this file holds the moves. A node is split on
a range of sizes, on a unit, or by *peeling*: its leaf on one side, all its other models on the
other. Peeling lists the largest noises of a cell one by one; it is the better move where the
bound is so near the best value that only a handful of them can matter. The choice between moves
follows a guess of the final value (`Search.guess`), which nothing else rests on.

Tested in `tests/selection/tree/test_sampler.py`.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from flint import arb, ctx, fmpq

from dpreg.running import bar
from dpreg.selection.tree.counts import Cell, members
from dpreg.selection.tree.nodes import Leaf, Node
from dpreg.selection.tree.noise import PRECISION, Arrival, Bits, gumbel_noise, outward
from dpreg.selection.tree.weights import Weights, excess

if TYPE_CHECKING:
    from dpreg.selection.tree.sampler import Tree

__all__ = ["Search", "TreeDraw"]

_SLACK: Final = 2.0**-40
_REFRESH: Final = 0.3
"""Nats that a node's own state must be expected to gain before it is made."""
_PEEL: Final = 1.0
"""A node is peeled while the log of the noises that could still matter is below this."""
_SHARP: Final = 0.2
"""Nats that the best split on a unit must gain where models are weighted; else a node is peeled,"""
_PEELED: Final = 1000
"""unless as many models are gone already."""
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
        self.weights = tree.counts if isinstance(tree.counts, Weights) else None
        self.rate = arb(fmpq(tree.t.numerator, tree.t.denominator))
        self.heap: list[tuple[float, int, Node | Leaf]] = []
        self.best: Leaf | None = None
        self.best_low = self.guess = -math.inf
        self.nats = tree.nats
        self.nodes = self.leaves = self.serial = 0
        self.bar = bar(unit=" nodes", shown=True) if progress else None

    def value(self, leaf: Leaf) -> arb:
        """Return the ball of Z - t S."""
        noise = leaf.noise
        if self.weights is None:
            return noise.noise - self.rate * leaf.score
        return self.tree.noise(noise.ball * leaf.weight) - self.rate * leaf.score

    def ceiling(self, node: Node) -> float:
        """Return a float at or above the value of every model of the node."""
        if self.weights is None:
            return outward(node.noise.noise - self.rate * node.score)[1]
        low, high = outward(node.noise.noise)  # -ln of the arrival
        top = high - node.level
        if self.tree.mechanism != "exponential":
            top += excess(node.most - low)
        return top + (abs(high) + abs(node.level) + 1.0) * _SLACK

    def push(self, item: Node | Leaf) -> None:
        """Put an item on the heap under a float at or above its bound, unless it cannot win."""
        high = outward(self.value(item))[1] if isinstance(item, Leaf) else self.ceiling(item)
        if high > self.best_low:
            self.serial += 1
            heapq.heappush(self.heap, (-high, self.serial, item))

    def arrival(self, cap: Arrival | None, size: int) -> Arrival:
        """Draw the first arrival after `cap` among models of this count or weight."""
        law = self.tree.noise if self.weights is None else gumbel_noise
        return Arrival(cap, size, self.bits, law)

    def is_single(self, node: Node) -> bool:
        """Whether a node's leaf is all it holds."""
        return node.size == 1 if self.weights is None else node.cell.free == 0

    def must_leave_out(self, cell: Cell) -> int:
        """Return how many of the free units every model of the cell lacks, at least."""
        most = min(sum(cell.hi), self.counts.limits[1])
        return max(cell.inside.bit_count() + cell.free.bit_count() - most, 0)

    def place(self, node: Node) -> None:
        """Bound a node and put it on the heap."""
        self.nodes += 1
        self.rate_node(node)
        self.push(node)

    def rate_node(self, node: Node) -> None:
        """Raise a node's bounds on F and S, or its level, to the best that is known of it."""
        views = zip(node.state.views, node.extra, strict=True)
        if self.weights is not None:
            grid, cell = self.tree.grid, node.cell
            for view, extra in views:
                bound = view.bound + extra - grid
                level = self.weights.level(cell, bound, view.weight, self.nats)
                node.level = max(node.level, level)
            if self.tree.mechanism != "exponential":
                if node.heaviest is None:
                    node.heaviest = self.weights.heaviest(cell)
                node.most = node.heaviest.most(node.gone)
            return
        more = self.must_leave_out(node.cell)
        bound = max(view.bound + extra + float(view.reserve[more]) for view, extra in views)
        node.bound = max(node.bound, bound - abs(bound) * _SLACK, self.bounds.floor)
        node.score = self.tree.least_score(node.bound, self.counts.penalty(node.cell.lo))

    def run(self) -> TreeDraw:
        """Take items until the best value found is at least every bound left."""
        cell = self.tree.root
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
        if self.best is None:
            raise AssertionError("the tree ended without a leaf")
        units = tuple(members(self.best.model).tolist())
        return TreeDraw(units, self.nodes, self.leaves)

    def take_node(self, node: Node, key: float) -> None:
        """Give a node its state, its leaf, and then its parts."""
        if node.lack * self.nats > _REFRESH and not self.is_single(node):
            before = node.score, node.level
            node.state = self.bounds.state(node.removed, node.state)
            node.extra = (0.0,) * len(node.state.views)
            node.lack = 0.0
            node.at = 0
            self.rate_node(node)
            if (node.score, node.level) > before:
                self.push(node)
                return
        if not node.drawn:
            node.drawn = True
            node.leaf = self.counts.draw_other(node.cell, node.gone, self.bits)
            if self.counts.is_model(node.leaf):
                self.add_leaf(node)
        if self.is_single(node):
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
        if self.tree.mechanism != "exponential":
            # Exponential noise is never below zero: peeling cannot sink a bound any further.
            floor = noise if self.weights is None else key - node.most + node.level
            if surplus >= floor:
                return math.inf
        return math.log(node.size) - noise + min(surplus, 50.0)

    def add_leaf(self, node: Node) -> None:
        """Put a node's leaf on the heap under a bound of its own."""
        out = members(node.cell.free & ~node.leaf)
        bound = max(
            view.bound + extra + float(view.weight[out].sum()) * (1 - _SLACK)
            for view, extra in zip(node.state.views, node.extra, strict=True)
        )
        weight = self.counts.weight(node.leaf)
        bound = max(bound - abs(bound) * _SLACK, node.bound, self.bounds.floor)
        leaf = Leaf(node.leaf, weight, node.noise, bound)
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
            bound, leaf.beta = self.bounds.of_model(units)
            leaf.stage = 1
            leaf.score = max(leaf.score, self.tree.least_score(bound, penalty))
            self.push(leaf)
            return
        columns = [*self.bounds.kept]
        for u in units.tolist():
            columns.extend(self.tree.space.unit_columns[u])
        q = self.tree.problem.score_one(columns, leaf.beta)
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
                    t = self.tree.t
                    self.rate = arb(fmpq(t.numerator, t.denominator))
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
        size = node.size - self.counts.weight(node.leaf)
        if size == 0:
            return
        gone = node.gone | {node.leaf}
        rest = Node(node.cell, size, gone, self.arrival(node.noise, size), node.state)
        rest.bound, rest.extra, rest.lack = node.bound, node.extra, node.lack
        rest.level, rest.heaviest = node.level, node.heaviest
        rest.removed, rest.at = node.removed, node.at
        self.place(rest)

    def split(self, node: Node) -> None:
        """Split on the range of a class or on a unit, whichever raises a bound more."""
        cell, counts, state = node.cell, self.counts, node.state
        if self.weights is not None:
            unit, rise = self.weights.sharpest(cell, state, self.nats)
            if rise < _SHARP and len(node.gone) < _PEELED:
                self.peel(node)
                return
        else:
            while node.at < len(state.order) and not cell.free >> state.order[node.at] & 1:
                node.at += 1
            unit = state.order[node.at] if node.at < len(state.order) else -1
            worth = float(state.expected[unit]) / self.tree.grid if unit >= 0 else -1.0
            widest, rise = -1, 0
            for c, (a, b) in enumerate(zip(cell.lo, cell.hi, strict=True)):
                step = counts.prices[c] * ((a + b) // 2 + 1 - a) if b > a else 0
                if step > rise:
                    widest, rise = c, step
            if widest >= 0 and rise > _BOX * worth:
                for half in counts.halves(cell, widest):
                    self.child(node, half)
                return
        self.child(node, counts.with_unit(cell, unit))
        without = counts.without_unit(cell, unit)
        self.child(node, without, cell.free & ~without.free)

    def child(self, node: Node, cell: Cell, removed: int = 0) -> None:
        """Make the node of a part of the cell, `removed` newly left out of it."""
        counts = self.counts
        gone = frozenset(model for model in node.gone if counts.holds(cell, model))
        size = counts.size(cell) - sum(counts.weight(model) for model in gone)
        if size == 0:
            return
        heir = counts.holds(cell, node.leaf)
        noise = node.noise if heir else self.arrival(node.noise, size)
        made = Node(cell, size, gone, noise, node.state)
        if heir and self.is_single(made):
            return
        made.level = node.level
        if heir:
            made.leaf, made.drawn = node.leaf, True
        made.bound, made.extra, made.lack = node.bound, node.extra, node.lack
        made.removed, made.at = node.removed | removed, node.at
        if removed:
            state = node.state
            for u in members(removed).tolist():
                weights = [float(view.weight[u]) for view in state.views]
                made.extra = tuple(a + b for a, b in zip(made.extra, weights, strict=True))
                made.lack += max(float(state.expected[u]) - weights[-1], 0.0)
                made.bound = max(made.bound, float(state.without[u]))
        self.place(made)
