"""The l1-ball minimum in exact rationals: the last tier of the scores, which always ends.

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
from math import lcm

from flint import fmpq, fmpz_mat

__all__ = ["BallMinimum", "ball_minimum"]

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
    if solved is None or min(solved.weights) <= 0:
        corral = [ball.best_vertex()]
        solved = ball.affine(corral)
    if solved is None:  # one vertex alone is always a corral
        raise AssertionError("a single vertex is affinely independent")
    weights, value = list(solved.weights), solved.value
    while (entering := ball.violator(corral, weights)) is not None:
        corral.append(entering)
        weights.append(fmpq(0))
        while True:
            solved = ball.affine(corral)
            if solved is None:
                raise AssertionError("a corral and its violator are affinely independent")
            if min(solved.weights) > 0:
                weights, value = list(solved.weights), solved.value
                break
            step = min(w / (w - a) for w, a in zip(weights, solved.weights, strict=True) if a <= 0)
            moved = [w + step * (a - w) for w, a in zip(weights, solved.weights, strict=True)]
            keep = [i for i, w in enumerate(moved) if w > 0]
            corral = [corral[i] for i in keep]
            weights = [moved[i] for i in keep]
    beta = [Fraction(0)] * k
    for (j, sign), weight in zip(corral, weights, strict=True):
        beta[j] += sign * rho * Fraction(int(weight.p), int(weight.q))
    scale = Fraction(rho.numerator, rho.denominator**2)
    return BallMinimum(Fraction(int(value.p), int(value.q)) * scale, tuple(beta))


@dataclass(frozen=True, slots=True)
class _Affine:
    weights: tuple[fmpq, ...]
    value: fmpq


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

    def affine(self, corral: Sequence[Vertex]) -> _Affine | None:
        """Solve the bordered system; None where the points are affinely dependent."""
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
        return _Affine(tuple(entries[:m]), entries[m])

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
