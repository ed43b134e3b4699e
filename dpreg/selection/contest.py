"""What one private draw compares: integer scores, public penalties, and the range they move in.

A `Contest` is made before or between draws from public numbers and numbers already paid for. It
says how a model's canonical integer q(M) (`dpreg.selection.scoring.problem`) becomes its total
score

    S(M) = T(q(M)) + phi * (columns of M outside keep) + psi * (units of M outside keep),

all integers on one grid, and by how much such totals may move between neighbours. Both engines,
enumeration and tree, take the same contest; neither knows which method made it.

Penalised constrained profile likelihood (PCPL): Algorithm 2 of Lei et al. (2018), corrected.

Scores
------
L(M) = n log(Q(M)/n) + penalties, Q(M) = F_rho(M) + y'y the constrained residual sum of squares in
stored units. The constant -n log n is common to all models and dropped. On the score grid g, Q is
held as the integer Q_g(M) = q(M) + floor(y'y / g), kept within [1, 2**61], and L as the integer
L_h(M) = floor(n ln(Q_g(M)) / h), which is defined by Q_g and n alone and so canonical. It is
non-decreasing in q, which is what the tree sampler needs of it.

*Width.* h = 2**-23 up to n = 2**32, and twice that for every further bit of n (`profile_grid`), so
that n/h < 2**55 whatever n is: L_h <= n/h ln 2**61 < 2**55 * 42.3 < 2**61, and scores with the
charges of a contest stay within int64. n may be a noisy count that is anything: h is a function of
it, and a neighbour's scores are compared on the same grid.

Two slips of the paper
----------------------
Algorithm 2 prints L <- l* + phi |M| with l* = -(n/2) log(...), and then takes the argmin: its sign
is wrong, since a better fit has the larger l*. Section 3.2 is right (-2 l* + phi |M|) and is what
is used here. Section 5 sets r to the observed maximum of |Y|, a function of the rows that the
privacy budget does not cover. Here the bounds of the response are public, or bought
(`dpreg.privacy.ranks`).

Privacy
-------
Let D2 = k (ceil((1 + rho)^2 / g) + 2), in grid units. One row's loss lies in [0, (1 + rho)^2], so
one row changes Q by at most (1 + rho)^2 for every M at once, under both relations (a replaced row
takes away one such loss and adds another); the two floors add less than 2 grid units. Hence D2
bounds the change of every Q_g, its limits included (they are 1-Lipschitz).

1. *A lower bound on Q, bought with eps1.* Let Q* be Q_g of the model with all columns: at most
   every Q_g(M). A = Q* - D2 + (D2/eps1)(Z - log(1/(2 delta))), Z Laplace. By the Laplace mechanism
   A is eps1-DP, and P(A + D2 > Q*) = P(Z > log(1/(2 delta))) <= delta.
2. *The draw, with eps2.* Where A + D2 <= Q* and A > 0, every model has Q = Q_g(M) >= A + D2 and a
   neighbour's Q' satisfies |Q' - Q| <= D2. Under replace-one the change of n ln Q lies in
   [n ln(1 - D2/Q), n ln(1 + D2/Q)], of length n ln((Q + D2)/(Q - D2)) <= n ln(1 + 2 D2/A),
   since it falls in Q. Under add-remove all Q move the same way, by at most D2, except that the
   two floors can move a Q_g at most 2 units the other way: rows added give the length
   n ln((Q + D2)/(Q - 2)), rows removed n ln((Q + 2)/(Q - D2)); at the least Q = A + D2 both are
   at most n ln((A + D2 + 2)/A), since (A + D2)^2 - 4 >= A^2 + 2 A D2. (The paper's scale
   2G = 2 n D2/A exceeds both: ln(1 + 2x) <= 2x.) The floor to h adds 2 units at most to a range;
   2k are added.
   The range is computed from A and public numbers only, so given A the draw is eps2-DP on that
   event.
3. Together (eps1 + eps2, delta), by Proposition 2.1 of the paper. If A <= 0 all scores are set to
   zero: the draw is uniform over the space whatever the rows.

*A share of the rows.* Where j = a k of a person's rows are among those read, under replace-one the
cost is (a eps, delta), as `dpreg.privacy.budget.in_parallel` asks: the first step's sensitivity is
linear in j, and the range ln((Q + a D2)/(Q - a D2)) = 2 artanh(a D2/Q) is convex in a and zero at
a = 0, hence at most a times its value at a = 1; of the 2k units of slack, 2 <= a 2k are needed.

n is public under replace-one. Under add-remove it is replaced throughout by a public or privately
released n0: as a factor of ln Q it is then a constant, and nothing above changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import flint
import numpy as np

from dpreg.arrays import MOMENT_BITS, Bools, Ints
from dpreg.moments import Moments
from dpreg.privacy.balls import ball, ceiling, float_above
from dpreg.privacy.proofs import score_grid, score_range
from dpreg.privacy.protection import Protection, ScoreRange, VectorChange
from dpreg.selection.space import Space

LARGEST_RESIDUAL: Final = 2**61
"""The largest Q_g."""

_GRID_BITS: Final = 23
_ROWS_BITS: Final = 32
_PRECISION: Final = 128  # precision


def profile_grid(rows: int) -> Fraction:
    """Return h, the step of the score grid in units of n log Q, for n = `rows` of any size."""
    return Fraction(2) ** (max(rows.bit_length() - _ROWS_BITS, 0) - _GRID_BITS)


def residual_change(rho: Fraction, protection: Protection) -> VectorChange:
    """Return D2, the most that k rows change any Q_g, in grid units (proof: module docstring)."""
    d2 = protection.contributions * (math.ceil((1 + rho) ** 2 / score_grid(rho)) + 2)
    return VectorChange(l1=d2, l2_squared=d2**2, protection=protection)


def residual_offset(moments: Moments, rho: Fraction) -> int:
    """Return floor(y'y / g), confidential: with q(M) it makes Q_g(M)."""
    return math.floor(Fraction(moments.cells[-1][-1], 2**MOMENT_BITS) / score_grid(rho))


def residuals(q: Ints, offset: int) -> Ints:
    """Return min(q + offset, 2**61) without overflow: the Q_g that everything here is about.

    The minimum is non-decreasing and 1-Lipschitz, so D2 bounds its changes as well.
    """
    if offset < 2**61:
        return np.minimum(np.asarray(q, dtype=np.int64) + offset, LARGEST_RESIDUAL)
    whole = [min(int(value) + offset, LARGEST_RESIDUAL) for value in np.ravel(q)]
    return np.array(whole, dtype=np.int64).reshape(np.shape(q))


def lower_bound_shift(change: VectorChange, eps1: Fraction, delta: Fraction) -> int:
    """Return D2 + (D2/eps1) log(1/(2 delta)), rounded up: what A lies below the noisy Q*."""
    d2 = change.l1
    scale = float_above(d2 / eps1)  # of the noise that is really drawn
    with flint.ctx.workprec(_PRECISION):
        return max(ceiling(d2 + ball(scale) * ball(1 / (2 * delta)).log()), d2)


def profile_range(lower_bound: int, change: VectorChange, *, rows: int) -> ScoreRange:
    """Bound the range of the changes of all L_h, in steps of h, given A = `lower_bound` > 0.

    `change` is `residual_change`. The bound holds for a share of a person's rows under replace-one.
    """
    d2, replaced = change.l1, change.protection.changes == 2
    moved = 2 * d2 if replaced else d2 + 2
    with flint.ctx.workprec(_PRECISION):
        length = ball(rows / profile_grid(rows)) * ball(Fraction(moved, lower_bound)).log1p()
        width = max(ceiling(length), 0) + 2 * change.protection.contributions
    return ScoreRange(width=width, protection=change.protection, divisible=replaced)


def profile_scores(residuals: Ints, rows: int) -> Ints:
    """Return L_h of each model from its Q_g; `rows` may be any size, see the module docstring.

    Parameters
    ----------
    residuals : int64 array
        Q_g(M) = q(M) + floor(y'y / g); values below 1 count as 1.
    rows : int
        n under replace-one, n0 under add-remove.

    Returns
    -------
    int64 array of the same shape
        floor(n ln(Q_g) / h), the exact floor: float64 decides where its error bound allows, 128-bit
        balls where not (ln of an integer above 1 is irrational, so no tie can occur).
    """
    values = np.maximum(np.asarray(residuals, dtype=np.int64), 1)
    factor = float(rows / profile_grid(rows))  # below 2**55
    scaled = factor * np.log(values.astype(np.float64))
    slack = np.abs(scaled) * 2.0**-48 + factor * 2.0**-50
    low, high = np.floor(scaled - slack), np.floor(scaled + slack)
    out = low.astype(np.int64)
    for index in np.argwhere(low != high):
        out[tuple(index)] = _profile_score(int(values[tuple(index)]), rows)
    return np.asarray(out)


def _profile_score(value: int, rows: int) -> int:
    if value == 1 or rows == 0:
        return 0
    factor = rows / profile_grid(rows)
    precision = _PRECISION
    while True:
        with flint.ctx.workprec(precision):
            found = (flint.arb(value).log() * ball(factor)).floor()
            if found.is_exact():
                return int(str(found.unique_fmpz()))
        precision *= 2


LARGEST_SCORE: Final = 2**61
"""Scores and the sum of all charges stay within this, so that their sum stays within int64."""
LARGEST_RANGE: Final = 2**53
"""The largest noise scale that is drawn, in grid units."""


@dataclass(frozen=True, slots=True)
class Contest:
    """How integers become scores that a mechanism may compare.

    Attributes
    ----------
    score_range : ScoreRange
        Of all scores, in grid units.
    grid : Fraction
        The value of one grid unit, in the units in which penalties are given.
    transform : callable or None
        T, non-decreasing, from an array of q to an array of scores; None is the identity.
    phi, psi : int
        Charge per column and per unit outside ``keep``, in grid units.
    uniform : bool
        Every score is zero whatever the rows, and no penalty is charged.
    """

    score_range: ScoreRange
    grid: Fraction
    transform: Callable[[Ints], Ints] | None = None
    phi: int = 0
    psi: int = 0
    uniform: bool = False

    def priced(self, phi: Fraction, psi: Fraction, space: Space) -> Contest:
        """Return the contest with these charges, rounded to whole grid units; uniform stays so.

        A charge is capped, by a public rule, so that the charges of the largest model add up to at
        most 2**61: scores lie below 2**61 in absolute value, and no total leaves int64. A charge
        near the cap already exceeds every difference of scores.
        """
        if self.uniform:
            return self
        priced = len(space.units) + sum(len(columns) for columns in space.unit_columns)
        most = LARGEST_SCORE // max(1, priced)
        return replace(
            self, phi=min(round(phi / self.grid), most), psi=min(round(psi / self.grid), most)
        )

    def totals(self, q: Ints, models: Bools, space: Space) -> Ints:
        """Return S of each model of an enumerated space.

        Parameters
        ----------
        q : int64 array, shape (K,)
        models : bool array, shape (K, units)
        space : Space
        """
        scores = q if self.transform is None else self.transform(q)
        return np.asarray(scores + models.astype(np.int64) @ space.prices(self.phi, self.psi))


def least_squares_contest(rho: Fraction, protection: Protection) -> Contest:
    """PCLS: S = Q_R + penalties; one grid unit is g, in squared stored units of the response."""
    return Contest(score_range(rho, protection), score_grid(rho))


def profile_contest(
    lower_bound: int,
    *,
    offset: int,
    rows: int,
    rho: Fraction,
    protection: Protection,
    eps: Fraction,
) -> Contest:
    """PCPL, given the private lower bound A: S = n log Q + penalties; one unit is h.

    Parameters
    ----------
    lower_bound : int
        A of `dpreg.selection.contest`, in score grid units. At or below zero every score
        is zero, so that the draw is uniform over the space.
    offset : int
        floor(y'y / g): what turns q into Q_g. Confidential; it stays inside the transform.
    rows : int
        n under replace-one, n0 under add-remove; of any size.
    eps : Fraction
        Of one draw; where it is too small for the range, the draw is uniform as well.
    """
    grid = profile_grid(rows)
    none = ScoreRange(width=1, protection=protection)
    uniform = Contest(none, grid, np.zeros_like, uniform=True)
    if lower_bound <= 0:
        return uniform
    moved = profile_range(lower_bound, residual_change(rho, protection), rows=rows)
    # More noise than is drawn exactly, or a range beyond the mechanisms' 64 bits, which a large eps
    # could pay for: A says so, not the rows.
    if moved.width > LARGEST_SCORE or moved.width > LARGEST_RANGE * eps:
        return uniform
    return Contest(moved, grid, lambda q: profile_scores(residuals(q, offset), rows))
