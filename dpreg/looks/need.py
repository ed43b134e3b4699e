r"""How many rows an adaptive release needs: a rule of public numbers alone, before any charge.

The last look whitens its rows, so that sum c^2 (1, u)(1, u)' is about n times the identity where
all d directions are seen; then R^2 = d. They stand out from the noise where n exceeds nu, twice the
root of the largest row sum of the noise's variances. With the two blocks balanced (the response as
heavy as all columns together), f = sqrt(2) and q = 1 under replace-one, f = 1 and q = 2 under
add-remove, and diagonal cells with sqrt(2) times the sd of the others:

    Gaussian:        a cell has sd sqrt(2) d f / mu,
                     nu = 2 sqrt(2) d sqrt(d + 1) f / mu,
    matrix-Laplace:  c = 2 d / (q eps), a cell has sd sqrt(2 (d + 2)) c,
                     nu = 4 d sqrt(2 (d + 2) (d + 1)) / (q eps),

mu or eps that of the look, over the rows of one person. Below nu the columns are noise to most
directions, and another method is better.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from dpreg.errors import ArgumentError
from dpreg.privacy.budget import Budget

if TYPE_CHECKING:
    from dpreg.looks.plan import LookPlan

__all__ = ["eps_for", "rows_needed", "too_few"]

_LARGEST_EPS: Final = 1e6  # work
_NEAR: Final = 1e-4  # precision


def rows_needed(columns: int, strength: float, neighbors: str, *, gaussian: bool) -> float:
    """Return nu of the last look: with fewer complete rows most directions stay unseen.

    Parameters
    ----------
    columns : int
        d, with the intercept.
    strength : float
        mu of the last look (Gaussian) or its eps (matrix-Laplace), over the rows of one person.
    neighbors : {"replace-one", "add-remove"}
    gaussian : bool
    """
    if columns < 1:
        raise ArgumentError(f"a model needs at least one column, got {columns}")
    replaced = neighbors == "replace-one"
    if gaussian:
        nu = 2 * math.sqrt(2 * (columns + 1)) * columns * (math.sqrt(2) if replaced else 1.0)
    else:
        nu = 4 * columns * math.sqrt(2.0 * (columns + 2) * (columns + 1)) / (1 if replaced else 2)
    return nu / strength


def too_few(planned: Callable[..., LookPlan], cost: Budget, rows: int, has: str = "has") -> str:
    """Return why so many rows are too few for looks, and which eps would do; empty if they do."""

    def needed_at(eps: Fraction) -> float:
        return planned(cost=Budget(eps, cost.delta)).rows_needed

    needed = needed_at(cost.eps)
    if rows >= needed:
        return ""
    columns = planned(cost=cost).columns - 1
    eps = eps_for(rows, cost.eps, needed_at)
    return (
        f"{columns} columns need about {needed:,.0f} rows at this budget; the table {has} "
        f"{rows:,}. With {rows:,} rows use eps >= {eps:.2g}."
    )


def eps_for(rows: int, eps: Fraction, needed_at: Callable[[Fraction], float]) -> float:
    """Return roughly the eps at which so many rows would do.

    Parameters
    ----------
    rows : int
    eps : Fraction
        At which they do not.
    needed_at : callable
        How many rows an eps needs: about in proportion to 1/eps, so that a few steps meet it.
    """
    found = float(eps)
    for _ in range(40):
        ratio = max(needed_at(Fraction(found)), 1.0) / max(rows, 1)
        found *= ratio
        if found > _LARGEST_EPS or abs(ratio - 1) < _NEAR:
            break
    return found
