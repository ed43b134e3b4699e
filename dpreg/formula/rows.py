"""What happens to rows: cells are cleaned, factors computed, columns multiplied and scaled.

Each function does to a row what depends on that row alone. Nothing here raises or warns on a value
(callers hold `numpy.errstate`): a cell without a legal value marks its row as incomplete, and the
caller blanks such rows at the end.

Tested in `tests/formula/test_design.py` and `tests/formula/test_leaks.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpreg.formula.columns import Column
from dpreg.formula.factors import Factor, Measure
from dpreg.schema import Boolean, Categorical, ColumnType, Numeric

__all__ = [
    "Mask",
    "Product",
    "clean_cells",
    "factor_values",
    "multiplied",
    "scale",
    "scaled_by",
    "store",
]

Array = NDArray[Any]
Float = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Product:
    """One design column as a product of parts.

    Attributes
    ----------
    name : str
        patsy's name.
    parts : tuple of (str, int, array or None)
        Factor, which of its columns, and for a factor of levels the value at each level. The
        column is their product in this order.
    """

    name: str
    parts: tuple[tuple[str, int, Float | None], ...]


def clean_cells(
    chunk: Mapping[str, Array], types: Mapping[str, ColumnType], *, clipped: bool
) -> tuple[dict[str, Array], Mask]:
    """Replace missing and undeclared cells by a legal value and note their rows.

    Parameters
    ----------
    chunk : mapping of str to ndarray
        As a `dpreg.sources.Source` gives it, one column at least. Not written to.
    types : mapping of str to ColumnType
        Those to clean.
    clipped : bool
        Whether to clip numbers to their bounds.

    Returns
    -------
    cells : dict of str to ndarray
        float64, and intp codes for categories.
    complete : ndarray of bool
        False for the rows that held such a cell.
    """
    complete = np.ones(len(next(iter(chunk.values()))), dtype=np.bool_)
    cells: dict[str, Array] = {}
    for name, kind in types.items():
        column = chunk[name]
        match kind:
            case Categorical():
                complete &= column >= 0
                cells[name] = np.maximum(column, 0).astype(np.intp)
            case Numeric(lo=lo, hi=hi) if clipped:
                there = column == column
                complete &= there
                cells[name] = np.clip(column, lo, hi)
                np.copyto(cells[name], lo, where=~there)
            case Numeric(lo=lo):
                complete &= column == column
                cells[name] = np.where(column == column, column, lo)
            case Boolean():
                complete &= column == column
                cells[name] = np.fmax(column, 0.0)
    return cells, complete


def factor_values(
    factors: Iterable[Factor], cells: Mapping[str, Array], complete: Mask
) -> dict[str, list[Float] | NDArray[np.intp]]:
    """Compute factors on cleaned cells; rows where one has no value are struck from `complete`.

    Returns
    -------
    dict of str to list of ndarray, or ndarray of intp
        A factor's columns, or the places of its levels (0 where it has none).
    """
    values: dict[str, list[Float] | NDArray[np.intp]] = {}
    for factor in factors:
        if isinstance(factor, Measure):
            columns = factor.values(cells)
            for column in columns:
                complete &= np.isfinite(column)
            values[factor.code] = columns
        else:
            codes = factor.codes(cells)
            complete &= codes >= 0
            values[factor.code] = np.maximum(codes, 0)
    return values


def _part(
    part: tuple[str, int, Float | None], values: Mapping[str, list[Float] | NDArray[np.intp]]
) -> Float:
    code, place, levels = part
    value = values[code]
    if isinstance(value, list):
        return value[place]
    assert levels is not None
    return levels[value]


def multiplied(product: Product, values: Mapping[str, list[Float] | NDArray[np.intp]]) -> Float:
    """Compute a raw design column, in the order in which patsy multiplies."""
    result = _part(product.parts[0], values)
    for part in product.parts[1:]:
        result = result * _part(part, values)
    return result


def scale(raw: Float, column: Column, out: Float) -> None:
    """Write clip((raw - offset) / width, -1, 1) to `out`; NaN stays NaN."""
    scaled_by(raw, column.offset, column.width, out)


def scaled_by(raw: Float, offset: float | Float, width: float | Float, out: Float) -> None:
    """Do as `scale`, with an offset and a width for each of the numbers."""
    np.subtract(raw, offset, out=out)
    np.divide(out, width, out=out)
    np.clip(out, -1.0, 1.0, out=out)


def store(
    product: Product,
    values: Mapping[str, list[Float] | NDArray[np.intp]],
    column: Column,
    out: Float,
) -> None:
    """Write a scaled design column to `out`.

    A factor of levels on its own is scaled level by level: the same numbers, sooner.
    """
    code, _, levels = product.parts[0]
    codes = values[code]
    if len(product.parts) == 1 and levels is not None and not isinstance(codes, list):
        table = np.empty_like(levels)
        scale(levels, column, table)
        np.take(table, codes, out=out, mode="clip")
    else:
        scale(multiplied(product, values), column, out)
