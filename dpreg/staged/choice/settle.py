r"""Settle units that every good model has, and those that none has, before models are listed.

A is all units that are not settled to be out, I those settled to be in, F the rest of A. Projecting
the columns of I out leaves the Gram matrix S of F and its products c with the response. D_I and D_A
are the deviances of I and of A, V the inverse of S, b = V c, paid the prices of I. A model has I
and some part U of F, and leaves out O = F - U. Its deviance is, from below and from above,

    D_I - c_U' (S_UU)^-1 c_U    =    D_A + b_O' (V_OO)^-1 b_O.

1. With S >= lam diag(S), lam the least eigenvalue of S scaled to unit length, S_UU >= lam
   diag(S_UU), and inverses turn the order around: c_U' (S_UU)^-1 c_U is at most the sum over U of
   gain_u = c_u^2 / (lam S_uu). So the model costs at least D_I + paid + sum over U of
   (price_u - gain_u). It is the better bound where most of F is of no use.
2. `dpreg.staged.choice.certify` proves that b_O' (V_OO)^-1 b_O is at least the largest loss_u of O,
   and at least the sum over O of delta_u |b_u|^2. So the model costs at least D_A + paid + the sum
   over F of min(price_u, delta_u |b_u|^2). It is the better bound where most of F is needed.

(For a unit of several columns gain_u and the squares are sums over these.) Both bounds are sums
over units: with u in, or out, the other possibility of u is struck from its sum. Where that brings
a bound above what is asked for, u is settled the other way. Each round makes S smaller and lam
larger, and the bounds closer. With a hierarchy, what is out takes along what needs it, and what is
in what it needs.

Tested in `tests/staged/choice/test_certify.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpreg.arrays import Floats
from dpreg.staged.choice.problem import Model, Problem, Response

__all__ = ["Rest", "settle"]

_SAFE: Final = 0.999
"""Share of lam and of the largest delta that is used: rounding takes far less from them."""
_LEAST: Final = 1e-12
"""Least lam: below it columns repeat each other, and gains are no bound worth having."""


@dataclass(frozen=True, slots=True, eq=False)
class Rest:
    """What is left to decide.

    Attributes
    ----------
    units : tuple of int
        F, ascending.
    inside, outside : sets of units
        Settled.
    inverse : (c, c) array
        V, of the columns of F in order.
    slopes : (c,) array
        b.
    deviance : float
        D_A.
    delta : (c,) array
    gains : (c,) array
        gain, column by column.
    without : float
        D_I.
    least : float
        No model of this part costs less.
    dearest : int
        The unit of F with the largest gain.
    """

    units: tuple[int, ...]
    inside: Model
    outside: Model
    inverse: Floats
    slopes: Floats
    deviance: float
    delta: Floats
    gains: Floats
    without: float
    least: float = -np.inf
    dearest: int = -1


def settle(
    problem: Problem,
    response: Response,
    most: float,
    inside: Model = frozenset(),
    outside: Model = frozenset(),
) -> Rest:
    """Settle what can be, where only models of a criterion up to `most` are asked for.

    Parameters
    ----------
    problem : Problem
    response : Response
    most : float
    inside, outside : sets of units
        Those of the part of the space that is looked at.
    """
    inside, outside = _with_needed(problem, inside), _with_needing(problem, outside)
    while True:
        rest = _rest(problem, response, inside, outside)
        paid = problem.price(inside)
        if not rest.units:
            return replace(rest, least=rest.deviance + paid)
        squares, gains, losses = _by_unit(problem, rest)
        prices = problem.prices[list(rest.units)]
        above, below = rest.without + paid, rest.deviance + paid
        forward, backward = np.minimum(prices - gains, 0.0), np.minimum(prices, squares)
        first, second = above + float(forward.sum()), below + float(backward.sum())
        dearest = rest.units[int(np.argmax(gains))]
        rest = replace(rest, least=max(first, second, below), dearest=dearest)
        if rest.least > most:
            return rest
        dear = np.maximum(first + prices - gains - forward, second + prices - backward) > most
        missed = np.maximum(first - forward, second + squares - backward)
        missed = np.maximum(missed, below + losses) > most
        # Where both are true no model of this part is asked for; one of them shows it as well.
        out = _with_needing(problem, _where(rest, dear)) - inside
        into = _with_needed(problem, _where(rest, missed & ~dear)) - outside - out
        if not out - outside and not into - inside:
            return rest
        inside, outside = inside | into, outside | out


def _rest(problem: Problem, response: Response, inside: Model, outside: Model) -> Rest:
    """Project out what is in, and leave out what is out."""
    units = tuple(u for u in range(problem.size) if u not in inside and u not in outside)
    at, kept = problem.columns(units), problem.columns(inside)
    gram, cross, without = problem.gram[np.ix_(at, at)], response.cross[at], response.total
    if len(kept):
        beside = np.column_stack([problem.gram[np.ix_(kept, at)], response.cross[kept]])
        solved = np.linalg.solve(problem.gram[np.ix_(kept, kept)], beside)
        gram = gram - beside[:, :-1].T @ solved[:, :-1]
        cross = cross - beside[:, :-1].T @ solved[:, -1]
        without -= float(beside[:, -1] @ solved[:, -1])
    if not units:
        none = np.zeros(0)
        return Rest(units, inside, outside, np.zeros((0, 0)), none, without, none, none, without)
    inverse = np.linalg.inv(gram)
    inverse = (inverse + inverse.T) / 2
    slopes = inverse @ cross
    least, _ = _ends(gram)
    _, top = _ends(inverse)
    return Rest(
        units=units,
        inside=inside,
        outside=outside,
        inverse=inverse,
        slopes=slopes,
        deviance=without - float(slopes @ cross),
        delta=_SAFE / (top * np.diag(inverse)),
        gains=cross**2 / (max(_SAFE * least, _LEAST) * np.diag(gram)),
        without=without,
    )


def _ends(matrix: Floats) -> tuple[float, float]:
    """Return the least and the largest eigenvalue of a matrix scaled to unit diagonal."""
    sd = np.sqrt(np.diag(matrix))
    values = np.linalg.eigvalsh(matrix / np.outer(sd, sd))
    return float(values[0]), float(values[-1])


def _by_unit(problem: Problem, rest: Rest) -> tuple[Floats, Floats, Floats]:
    """Return, (F,) each: sums of delta |b|^2, sums of gains, and what dropping a unit costs."""
    squares = rest.slopes**2 * rest.delta
    if len(squares) == len(rest.units):
        return squares, rest.gains, np.asarray(rest.slopes**2 / np.diag(rest.inverse))
    ends = np.cumsum([0, *(problem.slices[u].stop - problem.slices[u].start for u in rest.units)])
    losses = np.empty(len(rest.units))
    for i, (low, high) in enumerate(pairwise(ends)):
        slopes = rest.slopes[low:high]
        losses[i] = slopes @ np.linalg.solve(rest.inverse[low:high, low:high], slopes)
    starts = ends[:-1]
    return np.add.reduceat(squares, starts), np.add.reduceat(rest.gains, starts), losses


def _where(rest: Rest, chosen: NDArray[np.bool_]) -> Model:
    return frozenset(unit for unit, own in zip(rest.units, chosen, strict=True) if own)


def _with_needing(problem: Problem, units: Model) -> Model:
    """Add the units that need any of these."""
    needs = problem.space.requires
    if not needs:
        return units
    return units | {u for u in range(problem.size) if units.intersection(needs[u])}


def _with_needed(problem: Problem, units: Model) -> Model:
    """Add the units that any of these needs."""
    needs = problem.space.requires
    return units.union(*(needs[u] for u in units)) if needs else units
