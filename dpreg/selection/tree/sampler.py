r"""Exact draws from all 2**q models, without listing them.

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

Two ways to count
-----------------
Uniform strata (`counts`): N is a number of models; cells are split by penalty too. They serve
every space and every T. Weights (`weights`): models carry integer weights near exp(-t S(M)),
the same proof holds for the arrivals divided by the weights, and leaves are then nearly final
draws. They serve spaces without limits of size and T the identity, and are taken where the bound
that they are made from is sharp (`Tree._looseness`). The law is the same; tests force either.

The tempting shortcut, one root with leaves drawn by independent coins of odds exp(-t price) and
noise of law F^(sum of odds), is right for the exponential mechanism alone: under permute-and-flip
the noises of models with different penalties are not exchangeable.

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

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from flint import ctx

from dpreg.arrays import Ints
from dpreg.errors import ArgumentError
from dpreg.selection.space import Space
from dpreg.selection.tree.bounds import Bounds
from dpreg.selection.tree.counts import Counts, members
from dpreg.selection.tree.noise import PRECISION, Bits, exponential_noise, gumbel_noise
from dpreg.selection.tree.search import Search, TreeDraw
from dpreg.selection.tree.weights import Weights

if TYPE_CHECKING:
    from dpreg.selection.scoring.problem import Problem

__all__ = ["Tree", "TreeDraw"]

Transform = Callable[[Ints], Ints]

_LOOSE: Final = 8.0
_PROBES: Final = 7
_NOISE: Final = {"exponential": gumbel_noise, "permute-and-flip": exponential_noise}


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
        self.problem = problem
        self.space = space
        self.mechanism = mechanism
        self.noise = _NOISE[mechanism]
        self.t = Fraction(t)
        self.transform = transform
        self.counts = counts = Counts(space, phi_int, psi_int)
        self.root = self.counts.root()
        # Closed sets exist of every size, so phantoms do not matter here.
        if self.counts.size(self.root) == 0:
            raise ArgumentError("the space holds no model: min_units exceeds what it can reach.")
        gram, cross = problem.moments()
        self.grid = float(problem.grid)
        self.bounds = Bounds(gram, cross, problem.rho, space)
        start = self.bounds.base
        span = 2.0**24 * self.grid
        rise = self.least_score(start + span, 0) - self.least_score(start, 0)
        self.nats = float(t) * rise / span
        # About one nat is worth a constrained fit. (Speed alone: no bound's truth depends on it.)
        self.bounds.unit = 1.0 / self.nats if self.nats else math.inf
        if transform is None and counts.limits == (0, counts.units) and counts.units:
            worth = self.nats * self.bounds.state(0).views[-1].weight
            weights = Weights(space, phi_int, psi_int, worth, float(t))
            if self._looseness(weights) <= _LOOSE:
                self.counts = weights
                self.root = weights.root()

    def _looseness(self, weights: Weights) -> float:
        """Return how many nats the root's separable bound lies below likely models (low quantile).

        It is what weights are made from. Where it misses much, strata of uniform weight do better;
        both have the same law. The probes are the same each time, so that a seeded draw repeats.
        """
        view = self.bounds.state(0).views[-1]
        bits, missed = Bits.fixed(), []
        for _ in range(_PROBES):
            model = weights.draw(weights.root(), bits)
            out = members(((1 << weights.units) - 1) & ~model)
            bound = self.bounds.of_model(members(model))[0]
            missed.append(self.nats * (bound - view.bound - float(view.weight[out].sum())))
        return sorted(missed)[1]

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
            search = Search(self, Bits() if bits is None else bits, progress)
            return search.run()
