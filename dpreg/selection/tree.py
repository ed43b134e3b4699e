r"""Exact draws from all 2**q models, without listing them.

Statement
---------
Let S(M) = T(q(M)) + phi (columns of M outside keep) + psi (units of M outside keep) be the integer
score of each model M of a space, T non-decreasing, and t > 0 a rational rate. `draw` returns the
model that attains

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
1974). A *node* is a cell of models (`tree_counts`): N models, an exact integer, with a least
penalty. Its data are the largest noise v of its models, the model (*leaf*) that has it, and a
certified bound F0 <= F_rho(M) for all M of the cell (`tree_bounds`). Then

    Z_M - t S(M) <= v - t (T(floor(F0 / g)) + least penalty)          for every M of the cell,   (1)

as q(M) = floor(F_rho(M)/g), and floor and T are monotone. Nodes are taken from a heap, highest
bound first, and split on a unit or on a range of sizes; models are thus sorted into strata of equal
penalty where that pays. The search ends when the best value found is at least every bound on
the heap.

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

The tempting shortcut, one root with leaves drawn by independent coins of odds exp(-t price), is
right for the exponential mechanism alone: under permute-and-flip the noises of models with
different penalties are not exchangeable.

Exactness on a computer: scores, counts and coins are exact integers; noise is compared by balls of
at least 192 bits that get more bits wherever they overlap (`tree_noise`); floats are used for
bounds that are rounded outwards, and for the order of the heap, which matters for time alone.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import NDArray

from dpreg.errors import ArgumentError
from dpreg.moments import MOMENT_BITS
from dpreg.selection.space import Space
from dpreg.selection.tree_bounds import Bounds, State
from dpreg.selection.tree_counts import Cell, Counts, members
from dpreg.selection.tree_noise import (
    PRECISION,
    Arrival,
    Bits,
    exponential_noise,
    gumbel_noise,
    outward,
)

if TYPE_CHECKING:
    from dpreg.selection.scores import Problem

__all__ = ["Tree", "TreeDraw", "draw"]

Transform = Callable[[NDArray[np.int64]], NDArray[np.int64]]

_SLACK: Final = 2.0**-40
REFRESH = 0.3
PEEL = 1.0
BOX = 0.2
_NOISE: Final = {"exponential": gumbel_noise, "permute-and-flip": exponential_noise}


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
    max_precision : int
        Most bits that a comparison of noise took. Curator only.
    """

    units: tuple[int, ...]
    nodes: int
    leaves: int
    max_precision: int


class _Node:
    """A cell less the models already taken from it (`gone`), with its largest noise.

    `removed` are the units that no model of the cell holds: those of `state`, and others, which
    add at least `extra` to the state's bound; `lack` estimates by how much that falls short of the
    bound of a state of its own.
    """

    __slots__ = (
        *("at", "bound", "cell", "drawn", "extra", "gone", "lack", "leaf"),
        *("noise", "removed", "score", "size", "state"),
    )

    def __init__(
        self, cell: Cell, size: int, gone: tuple[int, ...], noise: Arrival, state: State
    ) -> None:
        self.cell = cell
        self.size = size
        self.gone = gone
        self.noise = noise
        self.state = state
        self.bound = -math.inf
        self.extra: tuple[float, ...] = (0.0,) * len(state.views)
        self.lack = 0.0
        self.score = 0
        self.removed = 0
        self.leaf = -1
        self.drawn = False
        self.at = 0


class _Leaf:
    """A model with its noise and a lower bound on its score; `stage` counts the refinements."""

    __slots__ = ("beta", "bound", "model", "noise", "score", "stage")

    def __init__(self, model: int, noise: Arrival, bound: float) -> None:
        self.model = model
        self.noise = noise
        self.bound = bound
        self.score = 0
        self.stage = 0
        self.beta: NDArray[np.float64] | None = None


class Tree:
    """The sampler for one problem, space and penalty; made once, drawn from any number of times.

    Parameters
    ----------
    problem : scores.Problem
        Canonical integer scores of models for given exact moments.
    space : Space
        Units, keep, limits and hierarchy.
    mechanism : {"exponential", "permute-and-flip"}
    t : Fraction
        Rate per integer unit of score, positive.
    phi_int, psi_int : int
        Price of a column and of a unit outside keep, in integer units of score; not negative.
    transform : callable, optional
        T, non-decreasing, int64 array to int64 array; None is the identity.
    """

    def __init__(
        self,
        problem: Problem,
        space: Space,
        *,
        mechanism: str,
        t: Fraction,
        phi_int: int = 0,
        psi_int: int = 0,
        transform: Transform | None = None,
    ) -> None:
        if mechanism not in _NOISE:
            raise ArgumentError(
                f"the tree draws from 'exponential' and 'permute-and-flip'; got {mechanism!r}. "
                "Laplace noise needs every model listed: use engine='enumerate'."
            )
        if t <= 0:
            raise ArgumentError(f"t must be positive; got {t}.")
        if phi_int < 0 or psi_int < 0:
            raise ArgumentError("phi_int and psi_int must not be negative.")
        self._problem = problem
        self._space = space
        self._noise = _NOISE[mechanism]
        self._t = Fraction(t)
        self._transform = transform
        self.counts = Counts(space, phi_int, psi_int)
        self.root = self.counts.root()
        if self.counts.size(self.root) == 0:
            raise ArgumentError("the space holds no model: min_units exceeds what it can reach.")
        gram, cross = _moments(problem)
        self._grid = float(problem.grid)
        self.bounds = Bounds(gram, cross, problem.rho, space)
        start = self.bounds.state(0).bound
        span = 2.0**24 * self._grid
        rise = self.least_score(start + span, 0) - self.least_score(start, 0)
        self.nats = float(t) * rise / span
        self.bounds.unit = 1.0 / self.nats if self.nats else math.inf

    def least_score(self, bound: float, penalty: int) -> int:
        """Return T(floor(bound / g)) + penalty; g is a power of two, so the division is exact."""
        q = math.floor(bound / self._grid)
        if self._transform is not None:
            q = int(self._transform(np.array([q], dtype=np.int64))[0])
        return q + penalty

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
            search = _Search(self, Bits() if bits is None else bits, progress)
            return search.run()


class _Search:
    """One draw's heap, best leaf and counters."""

    def __init__(self, tree: Tree, bits: Bits, progress: bool) -> None:
        self.tree, self.bits = tree, bits
        self.counts, self.bounds = tree.counts, tree.bounds
        self.rate = arb(fmpq(tree._t.numerator, tree._t.denominator))
        self.heap: list[tuple[float, int, _Node | _Leaf]] = []
        self.best: _Leaf | None = None
        self.best_low = self.guess = -math.inf
        self.nats = tree.nats
        self.nodes = self.leaves = self.serial = 0
        self.precision = PRECISION
        self.bar = _progress_bar() if progress else None

    def value(self, noise: Arrival, score: int) -> arb:
        return noise.noise - self.rate * score

    def push(self, item: _Node | _Leaf) -> None:
        """Put an item on the heap under a float at or above its bound, unless it cannot win."""
        high = outward(self.value(item.noise, item.score))[1]
        if high > self.best_low:
            self.serial += 1
            heapq.heappush(self.heap, (-high, self.serial, item))

    def must_leave_out(self, cell: Cell) -> int:
        most = min(sum(cell.hi), self.counts.limits[1])
        return max(cell.inside.bit_count() + cell.free.bit_count() - most, 0)

    def place(self, node: _Node) -> None:
        """Bound a node and put it on the heap."""
        self.nodes += 1
        self.rate_node(node)
        self.push(node)

    def rate_node(self, node: _Node) -> None:
        more = self.must_leave_out(node.cell)
        bound = max(
            view.bound + extra + float(view.reserve[more])
            for view, extra in zip(node.state.views, node.extra, strict=True)
        )
        node.bound = max(node.bound, bound - abs(bound) * _SLACK, self.bounds.floor)
        node.score = self.tree.least_score(node.bound, self.counts.penalty(node.cell.lo))

    def run(self) -> TreeDraw:
        cell = self.tree.root
        size = self.counts.size(cell)
        noise = Arrival(None, size, self.bits, self.tree._noise)
        self.place(_Node(cell, size, (), noise, self.bounds.state(0)))
        while self.heap and -self.heap[0][0] > self.best_low:
            key, _, item = heapq.heappop(self.heap)
            if isinstance(item, _Leaf):
                self.refine_leaf(item)
            else:
                self.take_node(item, -key)
            if self.bar is not None:
                self.bar.update(1)
        if self.bar is not None:
            self.bar.close()
        if self.best is None:
            raise AssertionError("the tree ended without a leaf")
        units = tuple(members(self.best.model).tolist())
        return TreeDraw(units, self.nodes, self.leaves, self.precision)

    def take_node(self, node: _Node, key: float) -> None:
        if node.lack * self.nats > REFRESH and node.size > 1:
            before = node.score
            node.state = self.bounds.state(node.removed, node.state)
            node.extra = (0.0,) * len(node.state.views)
            node.lack = 0.0
            node.at = 0
            self.rate_node(node)
            if node.score > before:
                self.push(node)
                return
        if not node.drawn:
            node.drawn = True
            node.leaf = self.counts.draw(node.cell, self.bits)
            while node.leaf in node.gone:
                node.leaf = self.counts.draw(node.cell, self.bits)
            if self.counts.is_model(node.leaf):
                self.add_leaf(node)
        if node.size == 1:
            return
        surplus = key - max(self.guess, self.best_low)
        log_rivals = math.log(node.size) - float(node.noise.noise) + min(surplus, 50.0)
        if surplus < 0 or log_rivals < PEEL:
            self.peel(node)
        else:
            self.split(node)

    def add_leaf(self, node: _Node) -> None:
        out = members(node.cell.free & ~node.leaf)
        bound = max(
            view.bound + extra + float(view.weight[out].sum()) * (1 - _SLACK)
            for view, extra in zip(node.state.views, node.extra, strict=True)
        )
        leaf = _Leaf(node.leaf, node.noise, max(bound - abs(bound) * _SLACK, node.bound))
        leaf.score = self.tree.least_score(leaf.bound, self.counts.penalty_of(leaf.model))
        if float(self.value(leaf.noise, leaf.score)) > self.guess:
            self.refine_leaf(leaf)
            self.guess = max(self.guess, float(self.value(leaf.noise, leaf.score)))
        else:
            self.push(leaf)

    def refine_leaf(self, leaf: _Leaf) -> None:
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
            columns.extend(self.tree._space.unit_columns[u])
        q = self.tree._problem.score_one(columns, leaf.beta)
        self.leaves += 1
        if self.tree._transform is not None:
            q = int(self.tree._transform(np.array([q], dtype=np.int64))[0])
        leaf.score = q + penalty
        if self.best is None or self.beats(leaf, self.best):
            self.best = leaf
            self.best_low = outward(self.value(leaf.noise, leaf.score))[0]

    def beats(self, a: _Leaf, b: _Leaf) -> bool:
        """Whether a's value exceeds b's, certainly."""
        precision = PRECISION
        while True:
            with ctx.workprec(precision):
                if precision > PRECISION:
                    t = self.tree._t
                    self.rate = arb(fmpq(t.numerator, t.denominator))
                    a.noise.refine(precision, self.bits)
                    b.noise.refine(precision, self.bits)
                x, y = self.value(a.noise, a.score), self.value(b.noise, b.score)
                if x > y:
                    return True
                if x < y:
                    return False
            precision *= 2
            self.precision = max(self.precision, precision)

    def peel(self, node: _Node) -> None:
        """Split into the leaf, which is on the heap, and all other models."""
        noise = Arrival(node.noise, node.size - 1, self.bits, self.tree._noise)
        rest = _Node(node.cell, node.size - 1, (*node.gone, node.leaf), noise, node.state)
        rest.bound, rest.extra, rest.lack = node.bound, node.extra, node.lack
        rest.removed, rest.at = node.removed, node.at
        self.place(rest)

    def split(self, node: _Node) -> None:
        """Split on the range of a class or on a unit, whichever raises a bound more."""
        cell, counts, state = node.cell, self.counts, node.state
        while node.at < len(state.order) and not cell.free >> state.order[node.at] & 1:
            node.at += 1
        unit = state.order[node.at] if node.at < len(state.order) else -1
        worth = float(state.expected[unit]) / self.tree._grid if unit >= 0 else -1.0
        widest, gain = -1, 0
        for c, (a, b) in enumerate(zip(cell.lo, cell.hi, strict=True)):
            rise = counts.prices[c] * ((a + b) // 2 + 1 - a) if b > a else 0
            if rise > gain:
                widest, gain = c, rise
        if widest >= 0 and gain > BOX * worth:
            for half in counts.halves(cell, widest):
                self.child(node, half)
            return
        self.child(node, counts.with_unit(cell, unit))
        without = counts.without_unit(cell, unit)
        self.child(node, without, cell.free & ~without.free)

    def child(self, node: _Node, cell: Cell, removed: int = 0) -> None:
        """Make the node of a part of the cell, `removed` newly left out of it."""
        counts = self.counts
        gone = tuple(model for model in node.gone if counts.holds(cell, model))
        size = counts.size(cell) - len(gone)
        heir = counts.holds(cell, node.leaf)
        if size == 0 or (heir and size == 1):
            return
        noise = node.noise if heir else Arrival(node.noise, size, self.bits, self.tree._noise)
        made = _Node(cell, size, gone, noise, node.state)
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


def draw(
    problem: Problem,
    space: Space,
    *,
    mechanism: str,
    t: Fraction,
    phi_int: int,
    psi_int: int,
    transform: Transform | None = None,
    bits: np.random.Generator | None = None,
    progress: bool = False,
) -> TreeDraw:
    """Draw one model of the space; see `Tree` for the arguments.

    Parameters
    ----------
    bits : numpy Generator, optional
        For seeded runs, which are never private. None: the operating system's entropy.
    progress : bool
        A progress bar on stderr, for the curator's eyes.
    """
    tree = Tree(
        problem,
        space,
        mechanism=mechanism,
        t=t,
        phi_int=phi_int,
        psi_int=psi_int,
        transform=transform,
    )
    return tree.draw(Bits(bits), progress=progress)


def _moments(problem: Problem) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    form = problem._floats
    return form.gram * 2.0**-MOMENT_BITS, form.cross * 2.0**-MOMENT_BITS


def _progress_bar() -> Any:
    from tqdm import tqdm

    return tqdm(unit=" nodes")
