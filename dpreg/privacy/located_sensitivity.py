r"""How much one person's rows can move the moments of located rows, with proofs.

A *located* row is z = (w, e): w the row's columns in coordinates that earlier looks fixed, shrunk
into a ball |w| <= R, and e its residual in units of its clip, |e| <= 1. An incomplete row is zero.

Integers
--------
What is stored is t = (a, f): a_i is w_i/R in units of 2**-20, truncated towards zero (and lowered
further where need be) so that

    sum_i a_i^2 <= 2**40  as integers,      |f| <= 2**20.

The moments M = sum t t' are integers in units of 2**-40. All bounds below follow from these two
integer inequalities alone; how w, R and e came about does not matter.

The response's weight
---------------------
g > 0 is public, and z_g = (a, sqrt(g) f). A cell (i, j) of M gets noise of scale s/sqrt(h_ij):

    h_ii = 1,   h_ij = 2 (i < j),   h_iy = 2 g,   h_yy = g^2,

each distinct cell being released once. Between neighbours sum over i <= j of h_ij Delta_ij^2 is the
squared Frobenius norm of the change of sum z_g z_g': it counts each off-diagonal cell twice. So
s = D/ratio is a Gaussian mechanism of that ratio, D the sensitivity in the Frobenius norm.

*Statement.* In integer units, for every g > 0 and k rows a person,

    D^2 <= 2 k^2 (1 + g)^2 2**80 under replace-one,
    D^2 <=   k^2 (1 + g)^2 2**80 under add-remove.

*Proof.* |z_g|^2 = |a|^2 + g f^2 <= (1 + g) 2**40. One row added: |z z'|_F = |z|^2. One replaced:

    |z z' - v v'|_F^2 = |z|^4 + |v|^4 - 2 (z'v)^2 <= 2 (1 + g)^2 2**80,

which holds for incomplete rows too. k rows: the triangle inequality, row by row.

*Attained*, for g <= 1 and two columns or more: z = (a, 2**20) and v = (b, -2**20) with
|a| = |b| = 2**20, a'b = g 2**40, so that z_g'v_g = 0. k identical rows replaced by k identical rows
move M by k times as much: the norm costs k, not sqrt(k).

Persons
-------
A unit may be all rows of one person, shrunk by one factor and truncated, so that as integers

    u = sum |a|^2 <= 2**40,      r = sum f^2 <= 2**40      over the person's rows.

*Statement.* Then the bounds above hold with k = 1, however many rows the person owns. So does every
bound on a norm, or another convex function, of the change that one row makes, if it is proved for
all real rows (a, f) whose |a|^2 and f^2 obey public limits, alone or together: for units whose u
and r obey the same.

*Proof.* A unit moves M by Z = sum t t', which is positive semidefinite; u and r are the traces of
its two diagonal blocks. For given u and r all such Z form a compact convex set, and a convex
function on it is largest at an extreme point. That has rank 1 or 0: on the range of a Z of higher
rank the symmetric matrices have three dimensions or more, so that one of them, not zero, has both
traces 0, and a little of it can be added to Z as well as taken away. At rank 1 Z = t t' for a row
with |a|^2 = u and f^2 = r, which is within the limits. Under replace-one take the old unit first,
given the new one, and then the new one. QED

Which g
-------
The error of the normal equations is (noise cells) (theta, -1), theta the coefficients of the stored
columns: per equation s^2/(2 g) + (s^2/2) |theta|^2 and a diagonal term. With s proportional to
1 + g, (1 + g)^2 (1/g + b) is least, b being the expected |theta|^2, where 2 b g^2 + g = 1:

    g = (sqrt(1 + 8 b) - 1)/(4 b) = 2/(1 + sqrt(1 + 8 b)),   in (0, 1].

In the units of w: with B = |theta|^2 there, b = R^2 B, and gamma = R^2 g weighs e beside w. As any
g > 0 is valid, g may be rounded, and the guess b may be wrong.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from dpreg.errors import ArgumentError
from dpreg.privacy.gram_sensitivity import CELL_UNITS
from dpreg.privacy.protection import Protection

__all__ = ["located_l2_squared", "located_weights", "response_weight"]

_WEIGHT_UNITS: Final = 2**20


def response_weight(signal: float) -> Fraction:
    """Return g, the response's weight in a located Gaussian look.

    Parameters
    ----------
    signal : float
        b, the squared length of the coefficients that is expected: R^2 times that in units of w
        and of the clip. Public, or read off earlier looks; at least 0.

    Returns
    -------
    Fraction
        2/(1 + sqrt(1 + 8 b)), in units of 2**-20, in (0, 1].
    """
    if not 0 <= signal < math.inf:
        raise ArgumentError(f"signal must be finite and at least 0, got {signal}")
    wanted = 2 / (1 + math.sqrt(1 + 8 * min(signal, 1e30)))
    return Fraction(max(round(wanted * _WEIGHT_UNITS), 1), _WEIGHT_UNITS)


def located_l2_squared(weight: Fraction, protection: Protection) -> Fraction:
    """Return D^2, the squared Frobenius sensitivity of weighted located rows (see the module).

    Parameters
    ----------
    weight : Fraction
        g, above 0.
    protection : Protection
        k is its `contributions`.

    Returns
    -------
    Fraction
        In squared integer units: moments are integers over 2**40.
    """
    if weight <= 0:
        raise ArgumentError(f"the response's weight must be positive, got {weight}")
    k = protection.contributions
    return protection.changes * (k * (1 + Fraction(weight)) * CELL_UNITS) ** 2


def located_weights(size: int, weight: Fraction) -> dict[tuple[int, int], Fraction]:
    """Return h_ij, each released cell's squared weight, (i, j) with i <= j, the response last."""
    last, weight = size - 1, Fraction(weight)
    own, beside, square = (Fraction(1), Fraction(2)), 2 * weight, weight**2
    return {
        (i, j): own[i < j] if j < last else beside if i < last else square
        for i in range(size)
        for j in range(i, size)
    }
