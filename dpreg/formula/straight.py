"""Columns of numbers that stand in the formula as they are: a short way from the table to a row.

Most columns of a long table are numbers with bounds, scaled so that the bounds go to -1 and 1. For
them the clip to the bounds can be left to the grid, which clips every cell to [-1, 1].

Statement. For a `Straight` column and every cell x of the table but NaN, `to_grid` makes of
(x - offset)/width the same number, bit for bit, as of what `clean_cells` and `scale` make of x.

Proof. In floating point h(x) = (x - offset)/width never falls as x grows, and neither does the
grid's g(h) = rint(2**20 clip(h, -1, 1)). Between the bounds lo and hi both ways are g(h(x)), since
the clip of `scale` is the grid's own. Beyond them the long way gives g(h(lo)) or g(h(hi)), which
are -2**20 and 2**20: `straight` takes no other column. For x < lo, infinite or not, g(h(x)) is at
most g(h(lo)), and no less than -2**20; likewise above hi. QED
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpreg.formula.columns import Column
from dpreg.formula.factors import Factor, Measure
from dpreg.formula.rows import Product
from dpreg.grouped.grid import to_grid
from dpreg.schema import ColumnType, Numeric

__all__ = ["ShortWay", "Straight", "short_way"]


@dataclass(frozen=True, slots=True)
class Straight:
    """A column of the row vector that is a raw column, shifted and divided.

    Attributes
    ----------
    raw : str
        The raw column.
    offset, width : float
    """

    raw: str
    offset: float
    width: float

    def store(self, cells: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Write the scaled cells, not clipped; NaN stays NaN."""
        if self.offset:
            cells = np.subtract(cells, self.offset, out=out)
        np.divide(cells, self.width, out=out)


@dataclass(frozen=True, slots=True)
class ShortWay:
    """Which columns of a design take the fast path, and what the others still need.

    Attributes
    ----------
    columns : mapping of int to Straight
        By their index into z.
    types : mapping of str to ColumnType
        Raw columns that have to be cleaned for the others.
    factors : tuple of Factor
        Factors that have to be computed for the others, the response's left out.
    """

    columns: Mapping[int, Straight]
    types: Mapping[str, ColumnType]
    factors: tuple[Factor, ...]


def short_way(
    products: Iterable[Product],
    columns: Iterable[Column],
    factors: Mapping[str, Factor],
    response: tuple[Factor, Column],
    types: Mapping[str, ColumnType],
) -> ShortWay:
    """Find the columns of a design that take the fast path.

    Parameters
    ----------
    products, columns : iterables of Product and Column
        Of z_1, ..., z_p.
    factors : mapping of str to Factor
        All that the products have parts of.
    response : (Factor, Column)
    types : mapping of str to ColumnType
        How each raw column is read.
    """
    found: dict[int, Straight] = {}
    needed: dict[str, Factor] = {}
    last = 0
    for last, (product, column) in enumerate(zip(products, columns, strict=True), 1):
        alone = factors[product.parts[0][0]] if len(product.parts) == 1 else None
        straight = None if alone is None else _straight(alone, column, types)
        if straight is None:
            needed |= {code: factors[code] for code, _, _ in product.parts}
        else:
            found[last] = straight
    straight = _straight(*response, types)
    if straight is not None:
        found[last + 1] = straight
    computed = [*needed.values(), *([response[0]] if straight is None else [])]
    raw = {name for factor in computed for name in factor.columns}
    cleaned = {name: kind for name, kind in types.items() if name in raw}
    return ShortWay(found, cleaned, tuple(needed.values()))


def _straight(factor: Factor, column: Column, types: Mapping[str, ColumnType]) -> Straight | None:
    """Return how a column takes the fast path, where it may: see the module."""
    if not isinstance(factor, Measure) or not factor.plain:
        return None
    (raw,) = factor.columns
    kind = types[raw]
    if not isinstance(kind, Numeric):
        return None
    found = Straight(raw, column.offset, column.width)
    ends = np.empty(2)
    with np.errstate(all="ignore"):
        found.store(np.array([kind.lo, kind.hi]), ends)
        top = to_grid(np.ones(1))[0]
        return found if to_grid(ends).tolist() == [-top, top] else None
