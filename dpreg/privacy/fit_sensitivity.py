r"""How much one unit can move what a fitting look releases, with proofs.

A *unit* is one row; or, where the call names persons, all rows of one person, summed before they
are limited. To a fitting look unit i brings integers: rows k whose products are summed, H_i =
sum k k', with tr H_i <= 2**40, and a score f_i with |f_i|^2 <= 2**40. Nothing else is asked of
them. H_i is positive semidefinite, of any rank. A unit that is excluded is zero.

Released are, over all units and in units of 2**-40, the information H = sum H_i, the score
s = 2**20 sum f_i, and the middle: the matrix M = sum f_i f_i', or its trace t = sum |f_i|^2.
Below, units of one: tr H_i <= 1 and |f_i| <= 1.

Units
-----
*Statement.* Where persons are named (`dpreg.sources.persons`) neighbours differ by one unit, which
is replaced under replace-one and added or removed under add-remove, however many rows the person
owns and `contributions` keeps. Else they differ by up to k = `contributions` units.
*Proof.* A person's unit is a function of that person's kept rows, and these of that person's rows
alone. A person all of whose rows are excluded is a zero unit. QED

With k units every bound below is k times as large, in whatever norm: the triangle inequality, unit
by unit. j of the k units move it by j/k of that.

Gaussian noise
--------------
A cell gets noise of scale sigma/sqrt(weight), each distinct cell once. Weights of a symmetric
matrix are 1 on the diagonal and 2 off it, so that the weighted sum of squares is the squared
Frobenius norm, which counts each off-diagonal cell twice. The score has the weight g, the trace 1.

*Statement (information).* |dH|_F^2 <= 2 under replace-one, 1 under add-remove.
*Proof.* Eigenvalues are at least 0 and sum to at most 1: |H_i|_F <= tr H_i <= 1. One replaced:
|H_i - H_j|_F^2 = |H_i|_F^2 + |H_j|_F^2 - 2 tr(H_i H_j), and the trace of a product of two positive
semidefinite matrices is at least 0. QED

*Statement (score and middle together).* For every g > 0, and for the trace g >= 1/2,

    g |ds|^2 + |dM|_F^2 <= (2 + g)^2/2 where g <= 2 and 4 g where g >= 2,  under replace-one,
    g |ds|^2 + dt^2     <= 4 g                                             under replace-one,
    either              <= g + 1                                           under add-remove.

*Proof.* Add-remove: |f f'|_F = |f|^2 <= 1. Replace-one, f by h: let p = f - h and q = f + h,
P = |p|^2 and Q = |q|^2. Then P + Q = 2 u with u = |f|^2 + |h|^2 <= 2, and p'q = |f|^2 - |h|^2,
which is at most 2 - u in modulus, as the larger of the two squares is at most 1.

Matrix: f f' - h h' = (p q' + q p')/2 has the squared norm (P Q + (p'q)^2)/2, so that the left side
is at most g P + P (2 u - P)/2 + (2 - u)^2/2. That is convex in u, which lies between P/2 and 2. At
u = 2 it is g P + 2 P - P^2/2 with P <= 4: largest at P = 2 + g where g <= 2, else at P = 4, as
stated. At u = P/2 it is g P + (2 - P/2)^2/2, convex in P: at most 2 or 4 g, which are no more.

Trace: let a = |f| + |h| and b = ||f| - |h||, so that a + b = 2 max(|f|, |h|) <= 2. The left side is
at most g a^2 + a^2 b^2 <= (2 - b)^2 (g + b^2), whose derivative in b is
2 (2 - b)(2 b - 2 b^2 - g), and 2 b - 2 b^2 <= 1/2 <= g: largest at b = 0. QED

All are attained: by orthogonal H_i of rank one; by unit vectors f and h with f'h = -g/2, or -1
where g >= 2 and for the trace; and by k times the same unit replaced by k times the same other.

*The score's weight.* Under replace-one g = 2 for the matrix and 1/2 for the trace: the score gets
the noise that it would have alone, 2/mu, and the middle comes free. Under add-remove both move
most at once, and what the middle gets the score loses: g = 4 gives the matrix a fifth of mu^2, and
the score 1.12 times the noise that it would have alone; g = 16 the trace, a single number that is
needed to a few percent, a seventeenth, and 1.03 times.

The tail
--------
*Statement.* q = sum max(|f_i|^2 - 1/4, 0) moves by at most 3/4 under either relation.
*Proof.* What one unit counts for lies in [0, 3/4] before and after. QED

Pure eps
--------
*Statement.* In Euclidean length s moves by at most 2 under replace-one and by 1 under add-remove;
t moves by at most 1 under both; and H, and M as well, by positive semidefinite matrices whose
traces sum to at most 2 and 1: one that is added and one that is taken away, or either.
*Proof.* |f - h| <= |f| + |h|. |f|^2 is in [0, 1] before and after. tr f f' = |f|^2 <= 1. QED

Matrix-Laplace noise of scale C = c I costs sum tr(C^-1 H_i)/2 over the units that are added or
taken away: the proof in `dpreg.privacy.matrix_laplace` for t t' holds word for word for any
positive semidefinite H_i, with tr(C^-1 H_i) for t'C^-1 t. So it is the trace that has to be
limited. A limit on the Frobenius norm would not do: d orthogonal rows of squared length 1/sqrt(d)
have a Frobenius norm of 1, a trace of sqrt(d), and cost sqrt(d) times as much.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from dpreg.errors import ArgumentError, shown
from dpreg.privacy.protection import Protection

__all__ = [
    "MIDDLES",
    "check_middle",
    "information_l2_squared",
    "joint_l2_squared",
    "nuclear_norm",
    "score_l2",
    "score_weight",
    "tail_change",
    "trace_l1",
]

MIDDLES: Final = ("matrix", "trace")
"""What of the middle a look may release."""

_FREE: Final = {"matrix": Fraction(2), "trace": Fraction(1, 2)}
"""g under replace-one."""
_ADDED: Final = {"matrix": Fraction(4), "trace": Fraction(16)}
"""g under add-remove."""


def check_middle(middle: str) -> str:
    """Return `middle` if it names one, else raise ArgumentError."""
    if middle not in MIDDLES:
        raise ArgumentError(f"the middle must be one of {MIDDLES}, got {shown(middle)}")
    return middle


def score_weight(protection: Protection, middle: str) -> Fraction:
    """Return g, the score's weight beside the middle's (see the module)."""
    weights = _FREE if protection.neighbors == "replace-one" else _ADDED
    return weights[check_middle(middle)]


def information_l2_squared(protection: Protection) -> Fraction:
    """Return the largest |dH|_F^2 between neighbours, in units of one."""
    return Fraction(protection.changes * protection.sums.contributions**2)


def joint_l2_squared(weight: Fraction, middle: str, protection: Protection) -> Fraction:
    """Return the largest g |ds|^2 + |dM|_F^2, or g |ds|^2 + dt^2, between neighbours.

    Parameters
    ----------
    weight : Fraction
        g, above 0; for the trace under replace-one at least 1/2.
    middle : {"matrix", "trace"}
    protection : Protection

    Returns
    -------
    Fraction
        In units of one.
    """
    check_middle(middle)
    replaced = protection.neighbors == "replace-one"
    least = Fraction(1, 2) if replaced and middle == "trace" else Fraction(0)
    if weight <= 0 or weight < least:
        raise ArgumentError(f"no bound is proved at a score's weight of {weight}")
    if not replaced:
        unit = weight + 1
    elif middle == "matrix" and weight <= 2:
        unit = (2 + weight) ** 2 / 2
    else:
        unit = 4 * weight
    return unit * protection.sums.contributions**2


def score_l2(protection: Protection) -> int:
    """Return the largest |ds| between neighbours, in units of one."""
    return protection.changes * protection.sums.contributions


def trace_l1(protection: Protection) -> int:
    """Return the largest |dt| between neighbours, in units of one."""
    return protection.sums.contributions


def tail_change(protection: Protection) -> Fraction:
    """Return the largest |dq| between neighbours, in units of one."""
    return Fraction(3, 4) * protection.sums.contributions


def nuclear_norm(protection: Protection) -> int:
    """Return the most that traces of units added and taken away sum to, in units of one."""
    return protection.changes * protection.sums.contributions
