r"""Sensitivity of located rows whose residual may reach farther, the nearer the row lies.

Rows are those of `dpreg.privacy.located_sensitivity`, with one bound more. A row is t = (a, f), a
the columns' integers and f the residual's; F >= 1 is public, and

    sum_i a_i^2 <= 2**40,      |f| <= 2**20,      F |a| |f| <= 2**40.

The residual is stored in units of F clips: a row at the edge of the ball keeps it up to one clip,
as there, and a row at 1/F of the radius up to F clips. What the coefficients are estimated from is
sum a f, and no row's part of it is larger than with one clip for all.

Statement
---------
Let F = 3/2, q = 1/F^2 = 4/9, d = 1/2, and x = 2 under replace-one and 3 under add-remove. A cell
(i, j) of M = sum t t' gets noise of scale s/sqrt(h_ij),

    h_ii = 1,   h_ij = 2 (i < j),   h_iy = x F^2,   h_yy = d.

Between neighbours the sum over i <= j of h_ij Delta_ij^2 is at most D^2, for k rows a person,

    D^2 = k^2 (4 x + (1 + d) (1 - q)^2) 2**80 under replace-one,
    D^2 = k^2 (1 + x + d q^2) 2**80           under add-remove,

so that s = D/ratio is a Gaussian mechanism of that ratio.

*Proof.* In units of one, a row moves three blocks by a a', F f a and f^2. Let |a|^2 = u, and
b = F |a| |f|, so that b <= min(1, F sqrt(u)). An incomplete row is zero. The sum is that of the
squared norms of the blocks' changes, the second x and the third d times.

*One row added*: u^2 + x b^2 + d f^4 grows in |f|; let it be as large as it can. Where u <= q that
is 1, and the sum grows in u. Where u >= q, b = 1 and f^2 = q/u, and u^2 + d q^2/u^2 is convex in
u^2: at most 1 + d q^2, of u = 1, or q^2 + d, of u = q, which is less.

*One replaced*: let the directions of the two rows have the product -t. Turning a row round, a to -a
and f to -f, changes nothing; so let f and f' be at least 0. The sum is

    u^2 + u'^2 - 2 u u' t^2 + x (b^2 + b'^2 + 2 b b' t) + d (f^2 - f'^2)^2

and does not fall if t < 0 becomes -t; so let t >= 0.

1. If u < 2 d/(x F^2) = 2/9, then b^2 < 1/2, and the sum is less than
   (2/9)^2 + 1 + 2 (1 + sqrt(1/2))^2 + 1/2 < 7.4. The same holds for u'. Else, go on.
2. The derivative in f is at least 2 f (x F^2 u - 2 d f'^2) >= 0: let f, and f', be as large as they
   can.
3. Where u <= q, f = 1 and b = F sqrt(u), and the derivative in r = sqrt(u) is
   4 r^3 - 4 r u' t^2 + 2 x F^2 r + 2 x F b' t >= 2 r (x F^2 - 2) > 0: let u, and u', be at least q.
4. Now b = b' = 1 and f^2 = q/u. The derivative in t is 2 x - 4 u u' t >= 0: let t = 1. What is
   left, (u - u')^2 + 4 x + d q^2 (1/u - 1/u')^2, grows with the larger of u and u' and falls with
   the other: it is largest at 1 and q, where it is 4 x + (1 + d) (1 - q)^2 = 8.46.

k rows: the triangle inequality. QED

*Attained* under add-remove by |a| = 1 and |f| = 1/F; under replace-one by it and by the row with
-a/F and f = 1. k such rows move M by k times as much.

*Persons.* With sums over a person's rows, u = sum |a|^2 <= 2**40, r = sum f^2 <= 2**40 and
F^2 u r <= 2**80, the bounds hold with k = 1: `dpreg.privacy.located_sensitivity`, "Persons".

What it buys: the noise of a cell of sum a f, in clips, has the variance D^2/x, and the clip can be
shorter by nearly F at the same cuts of most rows. These x leave the moments of the columns about
as much noise as one clip for all does. d gives the mean square of residuals, a single number, a
small part.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from dpreg.errors import ArgumentError
from dpreg.privacy.gram_sensitivity import CELL_UNITS
from dpreg.privacy.protection import check_contributions, check_neighbors

__all__ = ["STRETCH", "product_cost", "product_l2_squared", "product_weights"]

STRETCH: Final = Fraction(3, 2)
"""F. At 2 and 3 least squares was met no better on forty kinds of drawn tables, and intervals held
less often: residuals far out are then cut much sooner than others. The proof is for this F."""

_RESPONSE: Final = {"replace-one": Fraction(2), "add-remove": Fraction(3)}
"""x."""
_SQUARE: Final = Fraction(1, 2)
"""d."""


def product_l2_squared(neighbors: str, contributions: int) -> Fraction:
    """Return D^2, the squared weighted sensitivity (see the module).

    Parameters
    ----------
    neighbors : {"replace-one", "add-remove"}
    contributions : int
        k, the rows that one person may own.

    Returns
    -------
    Fraction
        In squared integer units: moments are integers over 2**40.
    """
    check_neighbors(neighbors)
    response, near = _RESPONSE[neighbors], 1 / STRETCH**2
    if neighbors == "replace-one":
        row = 4 * response + (1 + _SQUARE) * (1 - near) ** 2
    else:
        row = 1 + response + _SQUARE * near**2
    return row * (check_contributions(contributions) * CELL_UNITS) ** 2


def product_cost(neighbors: str) -> float:
    """Return D / sqrt(x) for one row a person: the noise of sum a f, in clips, at ratio 1."""
    squared = product_l2_squared(neighbors, 1) / CELL_UNITS**2
    return math.sqrt(squared / _RESPONSE[neighbors])


def product_weights(size: int, neighbors: str) -> dict[tuple[int, int], Fraction]:
    """Return h_ij, each released cell's squared weight, (i, j) with i <= j, the response last."""
    check_neighbors(neighbors)
    if size < 2:
        raise ArgumentError(f"located rows have a column and a response, got {size} places")
    last, columns = size - 1, (Fraction(1), Fraction(2))
    squares = {(i, j): columns[i < j] for i in range(last) for j in range(i, last)}
    squares |= {(i, last): _RESPONSE[neighbors] * STRETCH**2 for i in range(last)}
    return squares | {(last, last): _SQUARE}
