"""Proved intervals around the minimum over the l1 ball, for candidates of any quality.

For F(beta) = beta' G beta - 2 b' beta, a set of columns M, and any beta supported on M, with
r = G beta - b:

    lower bound   -beta' G beta - 2 rho max_{j in M} |r_j|  <=  min F  <=  F(t beta)

for t = min(1, rho / |beta|_1). Proof. The upper bound: t beta lies in the ball. The lower one: for
x in the ball, F(x) >= F(beta) + 2 r'(x - beta) by convexity, r'x >= -rho max |r_j| by Hoelder, and
F(beta) - 2 r'beta = -beta' G beta. Their difference, for beta in the ball, is the Frank-Wolfe gap
2 [r'beta + rho max |r_j|]. QED. Beta need be neither optimal nor feasible.

Besides, -y'y <= min F <= 0, since F + y'y is a sum of squares and F(0) = 0: so perfect fits, which
small tables have by the thousand, are decided though they are exact ties.

`float_interval` evaluates both ends in float64 and rounds outwards; `integer_interval` evaluates
them exactly, for beta on a dyadic grid. Both work in whole units: cells of 2**-40.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Final

import numpy as np
from flint import fmpz_mat

from dpreg.arrays import Bools, Floats, Ints, Objects, Places
from dpreg.privacy.balls import float_above, float_below
from dpreg.selection.scoring.constrained import Candidates, correct

__all__ = ["LEAST_SCORE", "FloatForm", "IntegerForm"]


LEAST_SCORE: Final = -(2**61)
"""No score is lower; see `dpreg.selection.scoring.problem`."""

_UNIT_ROUNDOFF = 2.0**-53


class FloatForm:
    r"""G and b rounded to float64, with bounds on all that rounding does.

    Error bound. Let u = 2**-53, g_m = m u / (1 - m u), P columns. Cells are whole numbers rounded
    once, so |G~ - G| <= u |G|, and a dot product of length P in any order, fused or not, is
    wrong by at most g_P of the sum of moduli (Higham, Accuracy and Stability, §3.1). With
    A = |G~| |beta| and c = (P + 10) u * 1.01, which exceeds g_{P + 8} for P < 10**6:

        |r~ - r|      <= c (A + |b|)                     (two roundings and one sum of P + 1)
        |q~ - q|      <= 2 c |beta|'A,        q = beta' G beta
        |l~ - l|      <= 2 c |beta|'|b|,      l = b' beta

    A and the other sums of moduli are themselves computed to a factor 1 +- g_{P+3}, and combining
    the parts rounds a few more times: both are covered by the spare units in c and by doubling the
    parts' errors where the ends are put together. Where beta leaves the ball by a share `excess`,
    |F(t beta) - F(beta)| <= 2 (1 - t)(q + |l|), 1 - t <= excess. Nothing underflows or overflows:
    coefficients below 2**-200 are zero, none is above 2 rho (`constrained.tidy`), and cells are
    whole numbers. A zero problem (b = 0, beta = 0) has the exact interval [0, 0].
    """

    def __init__(self, gram: Floats, cross: Floats, square: int, rho: Fraction) -> None:
        self.gram, self.cross = gram, cross
        self.least = float_below(Fraction(-square))
        self.abs_gram, self.abs_cross = np.abs(gram), np.abs(cross)
        self.slack = (len(cross) + 10) * _UNIT_ROUNDOFF * 1.01
        self.rho = float(rho)
        self.rho_low, self.rho_high = float_below(rho), float_above(rho)

    def interval(self, beta: Floats, columns: Bools) -> tuple[Floats, Floats]:
        """Return lower and upper bounds (K,) of min F for each row of beta and columns (K, P)."""
        c = self.slack
        size = np.abs(beta)
        image = beta @ self.gram
        spread = size @ self.abs_gram
        slope = np.abs(image - self.cross) + c * (spread + self.abs_cross)
        steepest = np.where(columns, slope, 0.0).max(axis=1, initial=0.0)
        quadratic = np.einsum("ij,ij->i", beta, image)
        linear = beta @ self.cross
        quadratic_error = 2.0 * c * np.einsum("ij,ij->i", size, spread)
        linear_error = 2.0 * c * (size @ self.abs_cross)
        reach = 2.0 * self.rho_high * steepest
        excess = np.maximum(size.sum(axis=1) * (1.0 + c) / self.rho_low - 1.0, 0.0)
        excess = np.where(excess > 0.0, excess + c, 0.0)
        lower = -quadratic - reach - 2.0 * (quadratic_error + c * reach)
        heights = np.abs(quadratic) + quadratic_error + np.abs(linear) + linear_error
        outside = 2.0 * excess * heights  # 2 (1 - t)(q + |l|) >= |F(t beta) - F(beta)|
        upper = quadratic - 2.0 * linear + 2.0 * (quadratic_error + 2.0 * linear_error + outside)
        return np.maximum(lower, self.least), np.minimum(upper, 0.0)


@dataclass(frozen=True, slots=True)
class Refined:
    """What the integer form decided: `decided` (K,) bool, and the scores where it did."""

    decided: Bools
    scores: Ints


class IntegerForm:
    """G, b and rho as integers; candidates as integers over a dyadic grid of the ball.

    beta = rho B / 2**m with integers B, |B|_1 <= 2**m: in the ball, exactly. With rho = r / d and
    the integer slopes H = r G B - d 2**m b, the two ends are, exactly,

        min F  in  r / (d 2**m)**2 * [V - W, V],
        V = B'H - d 2**m b'B,     W = 2 (B'H + 2**m max_{j in M} |H_j|).

    m is the largest cell's bits and the width's together: rounding the true solution to the grid
    then leaves W below about 2**-10 grid units of the score, so that about one model in 1,000
    stays undecided. Vertices of the ball, and solutions on the dyadic grid, have W = 0: exact ties
    of that kind are decided here.
    """

    def __init__(
        self, gram: list[list[int]], cross: list[int], square: int, rho: Fraction, unit: Fraction
    ) -> None:
        width = len(cross)
        largest = max((gram[j][j] for j in range(width)), default=0)
        self.bits = max(56, largest.bit_length() + width.bit_length() - 2)
        self.top = 1 << self.bits
        self.gram = fmpz_mat(width, width, [rho.numerator * g for row in gram for g in row])
        self.cross = np.array([rho.denominator * self.top * b for b in cross], dtype=object)
        self.float_gram = np.array(gram, dtype=np.float64).reshape(width, width)
        self.slope_unit = rho.numerator * self.top
        divisor = unit * Fraction((rho.denominator * self.top) ** 2, rho.numerator)
        self.multiple, self.divisor = divisor.denominator, divisor.numerator
        self.least = max(floor(-square / unit), LEAST_SCORE)
        self.rho = float(rho)

    def decide(self, found: Candidates, columns: Bools, rounds: int = 3) -> Refined:
        """Refine candidates by Newton steps with exact slopes until their floors are certain."""
        count = len(columns)
        decided = np.zeros(count, dtype=np.bool_)
        scores = np.zeros(count, dtype=np.int64)
        left = np.arange(count)
        share = np.clip(found.beta / self.rho, -1.0, 1.0)
        points = np.rint(share * 2.0**50).astype(np.int64).astype(object) * (1 << (self.bits - 50))
        for turn in range(rounds + 1):
            self._into_ball(points)
            slopes = self._slopes(points)
            inside, low, high = self._floors(points, slopes, columns[left])
            sure = inside & (low == high)
            decided[left[sure]] = True
            scores[left[sure]] = low[sure]
            left, points, slopes = left[~sure], points[~sure], slopes[~sure]
            if left.size == 0 or turn == rounds:
                break
            step = self._newton_step(points, slopes, found, left)
            step = np.rint(np.clip(step, -1.0, 1.0) * 2.0**self.bits)
            points = points + _integers(step)
        return Refined(decided, scores)

    def _newton_step(
        self, points: Objects, slopes: Objects, found: Candidates, rows: Places
    ) -> Floats:
        """Return a step in beta / rho from the exact slopes, for the candidates' active columns.

        On the surface the slopes are near -mu s; mu s is taken off exactly, before rounding, so
        that a step is as accurate as what is left and not as mu.
        """
        active, signs, binding = found.active[rows], found.signs[rows], found.binding[rows]
        missing = ((self.top - np.abs(points).sum(axis=1)) / self.top).astype(np.float64)
        whole = signs.astype(np.int64).astype(object)
        sizes = np.maximum(active.sum(axis=1), 1).astype(object)
        mu = np.where(binding, -(whole * slopes).sum(axis=1) // sizes, 0)
        rest = ((slopes + whole * mu[:, None]) / self.slope_unit).astype(np.float64)
        return correct(self.float_gram, rest, missing, active, signs, binding)

    def _slopes(self, points: Objects) -> Objects:
        count, width = points.shape
        product = fmpz_mat(count, width, points.ravel().tolist()) * self.gram
        entries = np.array([int(e) for e in product.entries()], dtype=object)
        return np.asarray(entries.reshape(count, width) - self.cross)

    def _into_ball(self, points: Objects) -> None:
        """Take what exceeds the ball off the largest coefficient, where it is large enough."""
        sizes = np.abs(points)
        excess = np.maximum(sizes.sum(axis=1) - self.top, 0)
        for row in np.flatnonzero(excess):
            largest = int(sizes[row].argmax())
            if sizes[row, largest] >= excess[row]:
                points[row, largest] -= int(np.sign(points[row, largest])) * excess[row]

    def _floors(
        self, points: Objects, slopes: Objects, columns: Bools
    ) -> tuple[Bools, Objects, Objects]:
        """Return (in the ball, floor of the lower end, floor of the upper end)."""
        inside = np.abs(points).sum(axis=1) <= self.top
        along = (points * slopes).sum(axis=1)
        value = along - points @ self.cross
        steepest = np.where(columns, np.abs(slopes), 0).max(axis=1, initial=0)
        gap = 2 * (along + self.top * steepest)
        high = np.maximum(value * self.multiple // self.divisor, self.least)
        low = np.maximum((value - gap) * self.multiple // self.divisor, self.least)
        return inside.astype(np.bool_), low, high


def _integers(values: Floats) -> Objects:
    """Whole floats of any size as Python integers."""
    small = np.abs(values) < 2.0**62
    out = np.where(small, values, 0.0).astype(np.int64).astype(object)
    if not small.all():
        out[~small] = [int(v) for v in values[~small]]
    return out
