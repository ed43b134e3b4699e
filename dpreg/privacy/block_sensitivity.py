r"""How much one person's rows can move an information matrix and a score, with proofs.

A row of a generalised linear model adds two blocks to what a look releases,

    H_i = a v v'    (its part of the Fisher information),
    s_i = b v       (its part of the score),

with one and the same direction v, |v| = 1, and a third number, the square of b: sum b^2 is the
middle of the sandwich.

Integers
--------
What is stored is t = (k, f, q): k the row's columns and f its residual, in units of 2**-20, and q a
bound on |k f|. The blocks are H = sum k k', s = sum k f and Q = sum q^2. For a public integer
S <= 2**40 every row keeps, as integers,

    sum_i k_i^2 <= 2**40,    ceil(|k|) |f| <= S,    0 <= q <= 2**20.

So a = |k|^2 <= A = 2**40 and |b| = |k| |f| <= S, and all below follows from that alone. An
incomplete row is zero.

Weights
-------
g > 0 and h >= 0 are public. A cell gets noise of scale sigma/sqrt(weight), with the weights

    1 on the diagonal of H,  2 off it (i < j, released once),  g in s,  h for Q.

Between neighbours the weighted sum of squares is |dH|_F^2 + g |ds|^2 + h dQ^2.

*Statement.* With x = g S^2 / A^2, for k rows a person,

    |dH|_F^2 + g |ds|^2 <= k^2 A^2 max(1 + 4 x, 2 + 2 x + x^2/2)    for x <= 2 and
                        <= k^2 A^2 (1 + 4 x)                        for x > 2, under replace-one,
    |dH|_F^2 + g |ds|^2 <= k^2 (A^2 + g S^2)                        under add-remove,
    dQ^2 <= k^2 2**80                                               under both.

*Proof.* Add-remove: |a v v'|_F = a and |b v| = |b|. Replace-one: with t = v'w for the two rows
(a, b, v) and (a', b', w), the left side is

    a^2 + a'^2 - 2 a a' t^2 + g (b^2 + b'^2 - 2 b b' t),

convex in (a, a') and in (b, b'), as |t| <= 1. So it is largest at corners: b, b' = +-S, where
opposite signs and t >= 0 do best (a change of sign of b' and t changes nothing else), and
(a, a') in {(A, A), (A, 0), (0, 0)}. At (A, 0) it is A^2 + 2 g S^2 (1 + t), at most A^2 (1 + 4 x);
(0, 0) is less. At (A, A) it is 2 A^2 (1 - t^2) + 2 g S^2 (1 + t), largest over [0, 1] at
t = x/2 where x <= 2, with 2 + 2 x + x^2/2 in units of A^2; else at t = 1, with 4 x. Q: q^2 is
between 0 and 2**40 before and after. k rows: the triangle inequality in the weighted norm. QED

*Attained*: by the corners of the proof where two directions can be had, and k identical rows
replaced by k identical rows move k times as much.
"""

from __future__ import annotations

from fractions import Fraction

from dpreg.errors import ArgumentError
from dpreg.privacy.gram_sensitivity import CELL_UNITS
from dpreg.privacy.protection import check_contributions, check_neighbors

__all__ = ["blocks_l2_squared", "blocks_weights", "score_sensitivity"]


def blocks_l2_squared(limit: int, weight: Fraction, neighbors: str, contributions: int) -> Fraction:
    """Return the largest |dH|_F^2 + g |ds|^2 between neighbours (see the module).

    Parameters
    ----------
    limit : int
        S, in units of 2**-40, from 1 to 2**40.
    weight : Fraction
        g, above 0.
    neighbors : {"replace-one", "add-remove"}
    contributions : int
        k, the rows that one person may own.

    Returns
    -------
    Fraction
        In squared units of 2**-40.
    """
    check_neighbors(neighbors)
    _check_limit(limit)
    if weight <= 0:
        raise ArgumentError(f"the score's weight must be positive, got {weight}")
    x = Fraction(weight) * Fraction(limit, CELL_UNITS) ** 2
    if neighbors == "replace-one":
        most = 1 + 4 * x
        if x <= 2:
            most = max(most, 2 + 2 * x + x * x / 2)
    else:
        most = 1 + x
    return most * (check_contributions(contributions) * CELL_UNITS) ** 2


def score_sensitivity(limit: int, neighbors: str, contributions: int) -> int:
    """Return the largest |ds| between neighbours: 2 k S under replace-one, k S under add-remove."""
    check_neighbors(neighbors)
    _check_limit(limit)
    return (2 if neighbors == "replace-one" else 1) * check_contributions(contributions) * limit


def blocks_weights(
    size: int, weight: Fraction, middle: Fraction
) -> dict[tuple[int, int], Fraction]:
    """Return each released cell's weight: (i, j) with i <= j, s in the last column, Q in its end.

    Parameters
    ----------
    size : int
        D: the columns, and one place more.
    weight, middle : Fraction
        g and h.
    """
    last = size - 1
    weights: dict[tuple[int, int], Fraction] = {}
    for i in range(last):
        weights |= {(i, j): Fraction(1 if i == j else 2) for j in range(i, last)}
        weights[i, last] = Fraction(weight)
    weights[last, last] = Fraction(middle)
    return weights


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= CELL_UNITS:
        raise ArgumentError("the score's limit must lie between 1 and 2**40 units")
