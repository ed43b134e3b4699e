"""What happens to rows: cells are cleaned, factors computed, columns multiplied and scaled.

Each function does to a row what depends on that row alone. Nothing here raises or warns on a value
(callers hold `numpy.errstate`): a cell without a legal value marks its row as incomplete, and the
caller blanks such rows at the end.

Groups
------
A column that is 0 but at one level of each factor of levels in it (treatment coding, full or
reduced, times any numbers) belongs to a group: on each row the factors' levels say which one of the
group's columns is not 0, and rows come with codes. See `dpreg.grouped`.

Tested in `tests/formula/test_design.py`, `tests/formula/test_leaks.py` and
`tests/formula/test_groups.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpreg.arrays import Bools, Floats, Places, to_grid
from dpreg.columns import Boolean, Categorical, Columns, Numeric
from dpreg.errors import SchemaError, shown
from dpreg.formula.expressions import Interval
from dpreg.formula.factors import Coded, Factor, Measure
from dpreg.grouped import Group, Slots

Array = NDArray[Any]
Values = Mapping[str, Any]
"""Factors' values by their text: a list of columns, or the places of levels."""

_LARGEST = 2.0**500
_FEWEST = 16
"""Columns of a group: fewer are sooner multiplied with the others, as numbers."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the row vector z: its name, bounds and scale.

    Attributes
    ----------
    name : str
        patsy's name, such as ``county[T.cc]``.
    term : str
        Name of the term it belongs to.
    lo, hi : float
        Public bounds of the column in its own units.
    offset, width : float
        stored = clip((raw - offset) / width, -1, 1). The response's width includes the clip c, so
        its stored value is y / c.
    levels : bool
        Whether it is made of factors of levels alone: it has no other values than its codes.
    """

    name: str
    term: str
    lo: float
    hi: float
    offset: float
    width: float
    levels: bool = False


def scaled_column(
    name: str, term: str, interval: Interval, *, centered: bool, indicator: bool
) -> Column:
    """Scale a column by its bounds.

    With the intercept kept (`centered`) the bounds [lo, hi] go to [-1, 1], so a column of two
    values goes to -1 and +1. A column made of categorical factors alone, one of which has three
    levels or more (`indicator`), stays as it is coded, 0/1 under treatment coding: it is divided
    by its largest modulus, 1. Everything else, a product of a level and a number too, follows the
    rule of its interval. Without the intercept every column is only divided: a model without the
    intercept could not take up a shift.

    Raises
    ------
    SchemaError
        If the column has no width.
    """
    if centered and not indicator:
        offset, width = interval.lo / 2 + interval.hi / 2, interval.hi / 2 - interval.lo / 2
    else:
        offset, width = 0.0, max(abs(interval.lo), abs(interval.hi))
    if not width > 0:
        raise SchemaError(
            f"column {shown(name)} has no width under the declared bounds: widen the bounds of "
            f"the columns in it, or leave it out."
        )
    return Column(name, term, interval.lo, interval.hi, offset, width)


def scaled_response(name: str, interval: Interval, *, clip: Fraction, center: bool) -> Column:
    """Scale the response by its bounds, its clip included in the width.

    Raises
    ------
    SchemaError
        If it has no width, or its square could leave float64.
    """
    column = scaled_column(name, name, interval, centered=center, indicator=False)
    width = float(Fraction(column.width) * clip)
    if not width > 0:
        raise SchemaError(
            f"response {shown(name)} times the clip has no width in float64: widen its bounds."
        )
    if not 1 / _LARGEST <= width <= _LARGEST:
        raise SchemaError(
            f"response {shown(name)}: half the width of its bounds must lie between 2**-500 and "
            "2**500, since variances are squares of it: give it in another unit."
        )
    return Column(name, name, column.lo, column.hi, column.offset, width)


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
    parts: tuple[tuple[str, int, Floats | None], ...]


def clean_cells(
    chunk: Mapping[str, Array], types: Columns, *, clipped: bool
) -> tuple[dict[str, Array], Bools]:
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
    factors: Iterable[Factor], cells: Mapping[str, Array], complete: Bools
) -> dict[str, Any]:
    """Compute factors on cleaned cells; rows where one has no value are struck from `complete`.

    Returns
    -------
    dict of str to list of ndarray, or ndarray of intp
        A factor's columns, or the places of its levels (0 where it has none).
    """
    values: dict[str, Any] = {}
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


def multiplied(product: Product, values: Values) -> Floats:
    """Compute a raw design column, in the order in which patsy multiplies."""
    result: Any = None
    for code, place, levels in product.parts:
        part = values[code][place] if levels is None else levels[values[code]]
        result = part if result is None else result * part
    return np.asarray(result)


def scale(raw: Floats, offset: float | Floats, width: float | Floats, out: Floats) -> None:
    """Write clip((raw - offset) / width, -1, 1) to `out`; NaN stays NaN."""
    np.subtract(raw, offset, out=out)
    np.divide(out, width, out=out)
    np.clip(out, -1.0, 1.0, out=out)


# ---- groups --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class CodedColumns:
    """How rows make a group's codes and values.

    Attributes
    ----------
    group : Group
    factors : tuple of str
        Factors of levels.
    table : array, one axis a factor
        The group's column at each combination of their levels; -1 where there is none.
    numbers : tuple of (str, int)
        Factors of numbers, and which of their columns, in the order in which patsy multiplies.
    offset, width : (m,) array
        Of the group's columns.
    """

    group: Group
    factors: tuple[str, ...]
    table: Places
    numbers: tuple[tuple[str, int], ...]
    offset: Floats
    width: Floats

    def slots(self, values: Mapping[str, Any], complete: Bools) -> Slots:
        """Make the codes and values of some rows, from their factors' values."""
        found = self.table[tuple(values[code] for code in self.factors)]
        codes = np.where(complete, found, -1)
        if not self.numbers:
            return Slots(codes, None)
        parts = tuple((code, place, None) for code, place in self.numbers)
        raw = multiplied(Product("", parts), values)
        stored = np.empty(len(codes))
        scale(raw, self.offset[codes], self.width[codes], stored)
        return Slots(codes, stored)


def coded_columns(
    products: Sequence[Product], columns: Sequence[Column], factors: Mapping[str, Factor]
) -> tuple[CodedColumns, ...]:
    """Find the groups among a design's columns.

    Parameters
    ----------
    products, columns : sequences of Product and Column
        Of z_1, ..., z_p.
    factors : mapping of str to Factor
    """
    members: dict[tuple[tuple[str, int | None], ...], dict[tuple[int, ...], int]] = {}
    for place, product in enumerate(products, 1):
        parts: list[tuple[str, int | None]] = []
        levels: list[int] = []
        for code, own, indicator in product.parts:
            if indicator is None:
                parts.append((code, own))
                continue
            parts.append((code, None))
            levels.append(_only_level(indicator))
        if levels and min(levels) >= 0:
            members.setdefault(tuple(parts), {}).setdefault(tuple(levels), place)
    return tuple(
        _made(key, group, columns, factors)
        for key, group in members.items()
        if len(group) >= _FEWEST
    )


def _only_level(indicator: Floats) -> int:
    """Return the one level at which a column is 1 and not 0; -1 where it is not such a column."""
    level = int(indicator.argmax())
    return level if indicator[level] == 1 and np.count_nonzero(indicator) == 1 else -1


def _made(
    parts: tuple[tuple[str, int | None], ...],
    members: Mapping[tuple[int, ...], int],
    columns: Sequence[Column],
    factors: Mapping[str, Factor],
) -> CodedColumns:
    labels = tuple(code for code, place in parts if place is None)
    numbers = tuple((code, place) for code, place in parts if place is not None)
    sizes = [len(one.levels) for one in map(factors.get, labels) if isinstance(one, Coded)]
    table = np.full(math.prod(sizes), -1, dtype=np.intp)
    table[np.ravel_multi_index(np.array(list(members)).T, sizes)] = np.arange(len(members))
    places = np.array(list(members.values()), dtype=np.int64)
    own = [columns[place - 1] for place in places]
    offset = np.array([column.offset for column in own])
    width = np.array([column.width for column in own])
    rest, named = np.empty(len(own)), np.empty(len(own))
    scale(np.zeros(len(own)), offset, width, rest)
    scale(np.ones(len(own)), offset, width, named)
    cells = to_grid(rest).astype(np.int64)
    steps = None if numbers else to_grid(named).astype(np.int64) - cells
    group = Group(places, cells, steps)
    return CodedColumns(group, labels, table.reshape(sizes), numbers, offset, width)
