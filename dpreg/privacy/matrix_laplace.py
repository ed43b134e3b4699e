r"""Matrix-Laplace noise: the difference of two Wishart matrices, for moments at pure eps.

Setting
-------
A row is an integer vector t of D places, the response last; the release is M = sum t t', symmetric,
in units of 2**-40. Public integer bounds hold for every row: the columns' squares sum to at most
n 2**40, the response's square is at most 2**40. For located rows n = 1 (see
`dpreg.privacy.located_sensitivity`); for rows on the unit scale n is the number of columns, the 0/1
columns of one factor counting as one.

The noise is N = W1 - W2, independent Wisharts with nu = D + 1 degrees of freedom and the same scale
matrix C = diag(c_1..c_D): W = sum of nu terms x x', x normal with covariance C. What is released
is floor(M + N), cell by cell, each distinct cell once.

*Statement.* If t'C^-1 t <= h for every row, the release is (k h)-DP under replace-one and
(k h / 2)-DP under add-remove for k rows a person. With

    c_w >= k n 2**40 / ((1 - a) q eps),   c_y >= k 2**40 / (a q eps),   0 < a < 1,

q = 1 under replace-one and 2 under add-remove, it is eps-DP.

*Proof.* With D + 1 degrees of freedom the Wishart density, in general proportional to
det(X)^((nu - D - 1)/2) exp(-tr(C^-1 X)/2), is f(X) proportional to exp(-tr(C^-1 X)/2) on the cone
of positive semidefinite matrices. For a row t, W + t t' has density f(X - t t'), which is
exp(t'C^-1 t/2) f(X) where X - t t' is positive semidefinite and 0 elsewhere. As X is in the cone
where X - t t' is, that is at most exp(h/2) f(X) everywhere: the support only shrinks.

Let M' be M with rows u_1..u_i added and v_1..v_j taken away. Then

    M' + W1 - W2 = M + (W1 + sum u u') - (W2 + sum v v'),

and the joint density of the two brackets is at most exp((i + j) h/2) times that of (W1, W2). M +
(first) - (second) is a function of the pair, so P'(S) <= exp((i + j) h/2) P(S) for every S, and the
same with M and M' exchanged. Under replace-one i = j <= k, under add-remove i + j <= k.
h = (1 - a) q eps/k + a q eps/k = q eps/k for the scales above. M is an integer matrix, so
floor(M + N) = M + floor(N) is a function of M + N. QED

*Persons.* All of the above holds for units that move M by any positive semidefinite integer matrix
T in place of t t', of whatever rank, with tr(C^-1 T) for t'C^-1 t: what is used of t t' is that X
is in the cone where X - t t' is. So all rows of one person are one unit, k = 1, if their columns'
squares sum to at most n 2**40, all rows together, and their responses' to at most 2**40. A limit on
the Frobenius norm of T would not do: of rank d the trace may be sqrt(d) times as large.

j of the k rows cost j/k of eps: the statement is linear in k. Zero rows cost nothing. A single
Wishart is not enough: its support moves both ways. Fewer than D + 1 degrees of freedom give a
density that is unbounded at the cone's edge. For D = 1, N is Laplace of scale 2c. The bound is
attained in the limit: the density of N falls as exp(-|C^-1/2 N C^-1/2|_*/2), |.|_* the nuclear
norm, and for u and v with u'C^-1 v = 0 the nuclear norm of the change is u'C^-1 u + v'C^-1 v.

Its law
-------
Var N_ij = 2 nu c_i c_j, Var N_ii = 4 nu c_i^2; the cells are uncorrelated and not independent. As
N_ij is a sum of 2 nu independent products of two normals, its excess kurtosis is 3/nu, that of N_ii
6/nu. For a fixed vector theta and directions v_1..v_df with v_a'C theta = 0 and v_a'C v_b = 1 or 0
(b = a or not),

    sum_a (v_a' N theta)^2 / (2 nu theta'C theta)   has the law of   chi2_df chi2_(2 nu) / (2 nu),

the two independent: given all x'theta, the v_a' N theta are independent normals of variance
sum (x'theta)^2 over the 2 nu terms x. Floors shift a cell by half a unit of 2**-40 on average.

Which a
-------
The error of the normal equations, N (theta, -1), has per equation a variance proportional to
c_w (c_y + B c_w) with B = |theta|^2, hence to 1/(a (1 - a)) + b/(1 - a)^2 with b = n B, least where
(1 - a)(1 - 2 a) = 2 b a^2, that is at a = 2/(3 + sqrt(1 + 8 b)). Any a in (0, 1) is valid.

References
----------
Anderson, T. W. (2003). An Introduction to Multivariate Statistical Analysis, chapter 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError
from dpreg.privacy.gram_sensitivity import CELL_UNITS
from dpreg.privacy.protection import Protection
from dpreg.privacy.scales import check_eps, check_scales

__all__ = [
    "degrees",
    "matrix_laplace_scales",
    "matrix_laplace_variance",
    "response_share",
]

_SHARE_UNITS: Final = 2**10


def degrees(size: int) -> int:
    """Return nu = D + 1, the degrees of freedom of each Wishart; the proof needs just these."""
    return size + 1


def response_share(signal: float) -> Fraction:
    """Return a, the response's share of a row's norm (see the module).

    Parameters
    ----------
    signal : float
        b = n |theta|^2 as expected for the stored columns: public, or read off earlier looks.

    Returns
    -------
    Fraction
        In units of 2**-10, in (0, 1/2].
    """
    if not 0 <= signal < math.inf:
        raise ArgumentError(f"signal must be finite and at least 0, got {signal}")
    wanted = 2 / (3 + math.sqrt(1 + 8 * min(signal, 1e30)))
    return Fraction(max(round(wanted * _SHARE_UNITS), 1), _SHARE_UNITS)


def matrix_laplace_scales(
    size: int,
    eps: Fraction,
    share: Fraction,
    protection: Protection,
    *,
    squared_norm: int = 1,
) -> tuple[int, ...]:
    """Return the scales c_1..c_D, in units of 2**-40, rounded upwards to integers.

    Parameters
    ----------
    size : int
        D, the places of a row, the response among them (last).
    eps : Fraction
        What the look costs.
    share : Fraction
        a in (0, 1), from `response_share`.
    protection : Protection
        k is its `contributions`.
    squared_norm : int
        n: the columns' squares sum to at most this, in stored units.

    Raises
    ------
    ArgumentError
        For arguments out of range, and for an eps so small that a scale leaves 2**200.
    """
    check_eps(eps)
    if not 0 < share < 1:
        raise ArgumentError(f"the response's share must lie between 0 and 1, got {share}")
    if size < 1 or squared_norm < 0:
        raise ArgumentError("a row has at least one place, and its squared norm is not negative")
    unit = protection.contributions * protection.changes * CELL_UNITS / (2 * Fraction(eps))
    columns, response = math.ceil(squared_norm * unit / (1 - share)), math.ceil(unit / share)
    check_scales(columns, response)
    return (max(columns, 1),) * (size - 1) + (response,)


def matrix_laplace_variance(scales: Sequence[int]) -> Floats:
    """Return the (D, D) variances of the cells of N, in squared units of 2**-40."""
    c = np.array([float(scale) for scale in scales])
    variance: Floats = 2.0 * degrees(len(c)) * np.outer(c, c)
    variance[np.diag_indices(len(c))] *= 2.0
    return variance
