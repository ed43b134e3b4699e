"""Integer scores of models, canonical by definition.

**Definition.** With the exact integer moments G, b (units of 2**-40), a set of columns M, a radius
rho and the grid g = score_grid(rho), all exact numbers,

    F_rho(M) = min over beta supported on M, |beta|_1 <= rho, of  beta' G beta - 2 b' beta
    q(M)     = max(floor(F_rho(M) / g), -2**61)

(y'y is dropped: a shift common to all models). q is the floor of an exactly defined real number, so
it depends on the moments, the model and the radius and on nothing else: no order of evaluation,
batch, thread, warm start, library or machine. F is non-increasing in M (a larger set minimises over
more), and floor is monotone, so q is too.

**How.** Tier 1: float64 candidates for all models at once, each with a proved interval around F
(`FloatForm`); where the floors of both ends agree, that is q. Tier 2: for those left, one in a
thousand at a million rows, exact rational optimisation (`ball_minimum`), which always ends and
decides ties. Which one decides changes the time taken alone. Candidates are never trusted: a wrong
one only sends its model to the next tier.

**Width.** F_rho >= -y'y, so q reaches -2**61 only from 2**36 rows on; there it stays, for any more
rows. The limit moves no change of q beyond its bounds: the changes of `score_range` lie in an
interval that holds 0 (beta = 0 costs a row nothing), and the limit moves each change towards 0.

No value of the data raises or warns.

Proved intervals around the minimum over the l1 ball, for candidates of any quality.

For F(beta) = beta' G beta - 2 b' beta, a set of columns M, and any beta supported on M, with
r = G beta - b:

    lower bound   -beta' G beta - 2 rho max_{j in M} |r_j|  <=  min F  <=  F(t beta)

for t = min(1, rho / |beta|_1). Proof. The upper bound: t beta lies in the ball. The lower one: for
x in the ball, F(x) >= F(beta) + 2 r'(x - beta) by convexity, r'x >= -rho max |r_j| by Hoelder, and
F(beta) - 2 r'beta = -beta' G beta. Their difference, for beta in the ball, is the Frank-Wolfe gap
2 [r'beta + rho max |r_j|]. QED. Beta need be neither optimal nor feasible.

Besides, -y'y <= min F <= 0, since F + y'y is a sum of squares and F(0) = 0: so perfect fits, which
small tables have by the thousand, are decided though they are exact ties.

`FloatForm.interval` evaluates both ends in float64 and rounds outwards, in whole units: cells of
2**-40.

The l1-ball minimum in exact rationals: the last tier of the scores, which always ends.

Problem, in integers: minimise F(beta) = beta' G beta - 2 b' beta over |beta|_1 <= rho, where
G = X'X and b = X'y for some rows X, y (so that G is positive semidefinite and b in its range).

The ball is the convex hull of its 2k vertices +-rho e_j, so that F + y'y is the squared distance
from the origin to the polytope spanned by the points P_v = y - rho X v, v = +-e_j: a
minimum-norm-point problem. Wolfe's algorithm (Math. Programming 11, 1976) solves it in finitely
many steps, and here every step is taken in exact rationals.

A *corral* is a set S of vertices whose points are affinely independent and whose affine minimiser
(the point of smallest norm in their affine hull) has all weights positive. With the vertices'
form Q_uv = rho^2 u'Gv - rho b'(u + v) (the Gram matrix of the points less y'y, which shifts every
entry and so changes no minimiser), the affine minimiser solves the bordered system

    Q_S lambda = f 1,   1'lambda = 1,   and then F = lambda' Q_S lambda = f.

Major step: let beta be the affine minimiser of the corral. If the Frank-Wolfe gap
(G beta - b)'beta + rho ||G beta - b||_inf is exactly zero, beta is optimal (convexity: F(x) >=
F(beta) + 2 (G beta - b)'(x - beta) >= F(beta) - 2 gap). Otherwise the vertex that attains the
maximum joins with weight zero. Minor steps: solve for the affine minimiser of the set; if all its
weights are positive it is the new corral; if not, move towards it until the first weights reach
zero, drop those vertices, and repeat.

**Termination.** (1) The joining point is affinely independent of the corral: every point Z of the
corral's affine hull has Z'P = |P|^2, P being its minimiser, and the joining point has Z'P < |P|^2.
So every bordered system met is nonsingular (subsets of affinely independent sets are too). (2) In
the first minor step the joining vertex gets a positive weight (else the minimum would not fall
below |P|^2, although the joining point is strictly downhill), and all others start positive, so
that the step has positive length and the value falls strictly; later minor steps never raise it.
(3) Each minor step drops at least one vertex and one vertex alone is a corral, so minor steps are
at most |S|. (4) The value at the start of a major step is a function of the corral, and it falls
strictly: no corral comes twice, and there are finitely many. No iteration limit is needed, and
none is set. Degenerate and singular cases, duplicates and constant columns are all covered: nothing
above asks G to be regular. QED
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, lcm
from typing import Final

import numpy as np
from flint import fmpq, fmpz_mat

from dpreg.arrays import MOMENT_BITS, Bools, Floats, Ints
from dpreg.moments import Moments
from dpreg.privacy.balls import float_above, float_below
from dpreg.privacy.proofs import score_grid
from dpreg.selection.scoring.candidates import Candidates, solve, vertex_signs

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


Vertex = tuple[int, int]
"""(position j, sign s): the vertex s rho e_j of the ball."""


@dataclass(frozen=True, slots=True)
class BallMinimum:
    """The exact minimum F, in the units of G, and one beta that attains it."""

    value: Fraction
    beta: tuple[Fraction, ...]


def ball_minimum(
    gram: Sequence[Sequence[int]],
    cross: Sequence[int],
    rho: Fraction,
    start: Sequence[Vertex] = (),
) -> BallMinimum:
    """Minimise beta' G beta - 2 b' beta over |beta|_1 <= rho, exactly.

    Parameters
    ----------
    gram, cross : integers, k x k and k
        G = X'X and b = X'y of some rows, in any common unit.
    rho : Fraction
        Radius, positive.
    start : vertices, optional
        A guess of the optimal corral. It changes the time taken, never the value.

    Returns
    -------
    BallMinimum
        The value does not depend on `start`; beta may, where several attain the minimum.
    """
    k = len(cross)
    if k == 0:
        return BallMinimum(Fraction(0), ())
    ball = _Ball(gram, cross, rho)
    corral = list(dict.fromkeys(start))
    solved = ball.affine(corral) if corral else None
    if solved is None or min(solved[0]) <= 0:
        corral = [ball.best_vertex()]
        solved = ball.affine(corral)
    assert solved is not None, "a single vertex is affinely independent"
    weights, value = solved
    while (entering := ball.violator(corral, weights)) is not None:
        corral.append(entering)
        weights.append(fmpq(0))
        while True:
            solved = ball.affine(corral)
            assert solved is not None, "a corral and its violator are affinely independent"
            aim, value = solved
            if min(aim) > 0:
                weights = aim
                break
            step = min(w / (w - a) for w, a in zip(weights, aim, strict=True) if a <= 0)
            moved = [w + step * (a - w) for w, a in zip(weights, aim, strict=True)]
            keep = [i for i, w in enumerate(moved) if w > 0]
            corral = [corral[i] for i in keep]
            weights = [moved[i] for i in keep]
    beta = [Fraction(0)] * k
    for (j, sign), weight in zip(corral, weights, strict=True):
        beta[j] += sign * rho * Fraction(int(weight.p), int(weight.q))
    scale = Fraction(rho.numerator, rho.denominator**2)
    return BallMinimum(Fraction(int(value.p), int(value.q)) * scale, tuple(beta))


class _Ball:
    """The form Q over vertices, scaled by denominator(rho)^2 / numerator(rho) to be whole."""

    def __init__(self, gram: Sequence[Sequence[int]], cross: Sequence[int], rho: Fraction) -> None:
        self.gram = [[rho.numerator * g for g in row] for row in gram]
        self.cross = [rho.denominator * b for b in cross]
        self.matrix = fmpz_mat(self.gram)

    def best_vertex(self) -> Vertex:
        """Return the vertex of lowest value, the first one of equals."""
        lowest = min(range(len(self.cross)), key=lambda j: self.gram[j][j] - 2 * abs(self.cross[j]))
        return lowest, (1 if self.cross[lowest] >= 0 else -1)

    def affine(self, corral: Sequence[Vertex]) -> tuple[list[fmpq], fmpq] | None:
        """Solve the bordered system for lambda and f; None for affinely dependent points."""
        m = len(corral)
        rows = [
            [s * t * self.gram[i][j] - s * self.cross[i] - t * self.cross[j] for j, t in corral]
            + [-1]
            for i, s in corral
        ]
        rows.append([1] * m + [0])
        right = fmpz_mat([[0]] * m + [[1]])
        try:
            solution = fmpz_mat(rows).solve(right)
        except ZeroDivisionError:
            return None
        entries = solution.entries()
        return entries[:m], entries[m]

    def violator(self, corral: Sequence[Vertex], weights: Sequence[fmpq]) -> Vertex | None:
        """Return the vertex furthest downhill, the first one of equals; None at the optimum."""
        k = len(self.cross)
        denominator = lcm(*(int(w.q) for w in weights))
        point = [0] * k  # beta / rho * denominator
        for (j, sign), w in zip(corral, weights, strict=True):
            point[j] += sign * int(w.p) * (denominator // int(w.q))
        product = (self.matrix * fmpz_mat(k, 1, point)).entries()
        slope = [int(g) - denominator * b for g, b in zip(product, self.cross, strict=True)]
        j = max(range(k), key=lambda i: abs(slope[i]))
        gap = sum(x * r for x, r in zip(point, slope, strict=True)) + denominator * abs(slope[j])
        if gap == 0:
            return None
        return j, (-1 if slope[j] > 0 else 1)


_BATCH = 1 << 14  # models in memory at once


class Problem:
    """Scores of models for given moments and radius.

    Parameters
    ----------
    moments : Moments
        Of rows z = (1, x_1..x_p, y): a Gram matrix, as `accumulate` makes them.
    rho : Fraction
        The radius in stored units, R / c; between 2**-64 and 2**64, which float64 holds with room.
    """

    def __init__(self, moments: Moments, rho: Fraction) -> None:
        self.group = moments.group
        self.rho = rho
        self.grid = score_grid(rho)
        self.width = moments.size - 1
        self._gram = [list(row[:-1]) for row in moments.cells[:-1]]
        self._cross = [row[-1] for row in moments.cells[:-1]]
        self._unit = self.grid * (1 << MOMENT_BITS)  # of a score, in cells; a power of two
        self._per_unit = float(1 / self._unit)
        self._floats = FloatForm(
            np.array(self._gram, dtype=np.float64).reshape(self.width, self.width),
            np.array(self._cross, dtype=np.float64),
            moments.cells[-1][-1],
            rho,
        )

    def moments(self) -> tuple[Floats, Floats]:
        """Return X'X and X'y in units of 1, each cell correctly rounded to float64."""
        scale = 2.0**-MOMENT_BITS
        return self._floats.gram * scale, self._floats.cross * scale

    def scores(self, columns: Bools) -> Ints:
        """Return q(M) for each row of `columns`, bool (K, p + 1): int64 (K,)."""
        scores = np.zeros(len(columns), dtype=np.int64)
        for start in range(0, len(columns), _BATCH):
            batch = columns[start : start + _BATCH]
            found = solve(self._floats.gram, self._floats.cross, float(self.rho), batch)
            lower, upper = self._floats.interval(found.beta, batch)
            low = np.maximum(np.floor(lower * self._per_unit), LEAST_SCORE)
            high = np.maximum(np.floor(upper * self._per_unit), LEAST_SCORE)
            sure: Bools = low == high
            some = np.where(sure, high, 0.0).astype(np.int64)
            for row in np.flatnonzero(~sure).tolist():
                some[row] = self._exact(batch[row], found, row)
            scores[start : start + _BATCH] = some
        return scores

    def score_one(self, columns: Sequence[int]) -> int:
        """Return q(M) of the model of these z columns."""
        return int(self.scores(np.isin(np.arange(self.width), columns)[None])[0])

    def _exact(self, columns: Bools, found: Candidates, row: int) -> int:
        members = np.flatnonzero(columns).tolist()
        place = {c: i for i, c in enumerate(members)}
        minimum = ball_minimum(
            [[self._gram[i][j] for j in members] for i in members],
            [self._cross[i] for i in members],
            self.rho,
            [(place[j], sign) for j, sign in vertex_signs(found, row)],
        )
        return max(floor(minimum.value / self._unit), LEAST_SCORE)
