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

from dpreg.errors import ArgumentError

__all__ = ["rows_needed"]


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
