"""How much one person's rows can move the scores: pure functions, each with its proof.

All arithmetic is in Fractions and integers. Rows are in stored units: the m columns of a row lie
in [-1, 1] and so does the response; the radius is rho, so |beta|_1 <= rho.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from dpreg.errors import ArgumentError
from dpreg.privacy.protection import Protection
from dpreg.privacy.stability import ScoreRange

__all__ = ["loss_range", "score_grid", "score_range"]

GRID_BITS: Final = 24
"""The score grid g is the power of two in (2**-25 w, 2**-24 w], w the range of one row's loss."""

ROUNDING_SLACK: Final = 2
"""Grid units added per changed row for rounding by floor; see `score_range`."""


def loss_range(rho: Fraction) -> Fraction:
    r"""Return w, the range of one row's loss over every model and every coefficient vector.

    Statement
    ---------
    For one row with |x_j| <= 1 and |y| <= 1, and |beta|_1 <= rho, put t = x'beta, so that
    |t| <= rho. The row adds l(t) = t^2 - 2 y t to F_rho (y^2 is common to all models and
    dropped). Then max l - min l <= w with w = (1 + rho)^2 if rho >= 1, else w = 4 rho.

    Proof
    -----
    l is convex in t with its vertex at t = y. Its largest value on [-rho, rho] is at an end:
    rho^2 + 2 |y| rho. If |y| <= rho its least value is -y^2, and the range is
    (rho + |y|)^2, increasing in |y|: at most (1 + rho)^2 if rho >= 1, at most (2 rho)^2 <= 4 rho
    if rho < 1. If |y| > rho (so rho < 1) the least value is at the other end,
    rho^2 - 2 |y| rho, and the range is 4 |y| rho <= 4 rho. Attained at |y| = 1: tight.

    Parameters
    ----------
    rho : Fraction
        Radius in stored units, R / c; positive.

    Returns
    -------
    Fraction
    """
    if not rho > 0:
        raise ArgumentError("the radius must be positive")
    return (1 + rho) ** 2 if rho >= 1 else 4 * rho


def score_grid(rho: Fraction) -> Fraction:
    """Return g, the power of two with 2**-25 w < g <= 2**-24 w; scores are floor(F / g)."""
    w = loss_range(rho)
    shift = w.numerator.bit_length() - w.denominator.bit_length()
    grid = Fraction(2) ** shift
    if grid > w:
        grid /= 2
    return grid / 2**GRID_BITS


def score_range(rho: Fraction, protection: Protection) -> ScoreRange:
    r"""Bound the range of the changes of all integer scores between neighbours.

    Statement
    ---------
    Let q(M) = floor(F_rho(M) / g) on a data set and q'(M) on a neighbour. Then
    max_M (q'(M) - q(M)) - min_M (q'(M) - q(M)) <= k (ceil(2 w / g) + 2) under replace-one and
    <= k (ceil(w / g) + 2) under add-remove, k = `contributions`. Adding public integers (the
    penalties) to the scores of both changes nothing.

    Proof
    -----
    *One row added.* Let a <= b bound the new row's loss l over all |beta|_1 <= rho, b - a <= w
    (`loss_range`; a and b depend on the row, not on the model). F(M) is a minimum of
    f(beta) over beta supported on M, and f' = f + l, so F(M) + a <= F'(M) <= F(M) + b: the change
    of F is in [a, b] for every M at once. That a itself is unknown does not matter: it is a shift
    common to all models.
    *One row removed.* The same with the two data sets exchanged: changes in [-b, -a].
    *One row replaced.* Remove x, add z: changes in [a_z - b_x, b_z - a_x], of length
    (b_z - a_z) + (b_x - a_x) <= 2w.
    A row that became incomplete, or of an undeclared level, is the zero row: l = 0, a = b = 0.

    *k rows.* Under add-remove k rows are added to or removed from one data set (never exchanged;
    some of both would be a chain of add and remove steps, still k in all). Under replace-one
    up to k of the n rows change their values: k replacements in a chain, each with its own pair
    (old row, new row), hence k times 2w. Ranges add along a chain: the range of a sum is at most
    the sum of the ranges.

    *Floor.* If F' = F + d then floor(F'/g) - floor(F/g) is floor(d/g) or ceil(d/g). With
    d in [u, v], v - u <= W, the integer changes lie in [floor(u/g), ceil(v/g)], whose length is
    an integer below W/g + 2, so at most ceil(W/g) + 1. One unit would do; a second is kept in
    reserve (2^-25 of the whole, at most).

    *Why linear in k.* Each step of the chain passes through a real data set with its own integer
    scores, so the ranges of the k steps add up exactly as they stand. ceil(2 k w / g) + 2 would be
    true as well, but j of the k rows must cost at most j/k of eps where the rows are divided
    between two releases (`dpreg.privacy.budget.in_parallel`), and only the linear form gives that.

    Parameters
    ----------
    rho : Fraction
        Radius in stored units.
    protection : Protection

    Returns
    -------
    ScoreRange
        In units of the grid g of `score_grid`.
    """
    ratio = protection.changes * loss_range(rho) / score_grid(rho)
    one = math.ceil(ratio) + ROUNDING_SLACK
    return ScoreRange(width=protection.contributions * one, protection=protection)
