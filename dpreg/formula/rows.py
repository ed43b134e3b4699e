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
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache, reduce
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpreg.arrays import Bools, Floats, Places, to_grid
from dpreg.columns import Boolean, Categorical, Columns, Numeric
from dpreg.errors import SchemaError, shown
from dpreg.formula.expressions import Interval, NotFiniteError
from dpreg.formula.factors import Coded, Factor, Measure
from dpreg.grouped import Group, Slots

Array = NDArray[Any]

_LARGEST = 2.0**500
_FEWEST = 16
"""Columns of a group: fewer are sooner multiplied with the others, as numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What a design column is a product of.

    Attributes
    ----------
    factor : Measure or Coded
    place : int
        Which of its columns.
    interval : Interval
        Its bounds.
    levels : array or None
        For a factor of levels the column's value at each of them.
    level : int or None
        Where it is 1 at one of them and 0 at the others, which one.
    """

    factor: Factor
    place: int
    interval: Interval
    levels: Floats | None
    level: int | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the row vector z: its name, bounds and scale.

    Attributes
    ----------
    name : str
        patsy's name, such as ``county[T.cc]``.
    lo, hi : float
        Public bounds of the column in its own units.
    offset, width : float
        stored = clip((raw - offset) / width, -1, 1). The response's width includes the clip c, so
        its stored value is y / c.
    levels : bool
        Whether it is made of factors of levels alone: it has no other values than its codes.
    parts : tuple of Part
        It is their product in this order; the constant has none.
    """

    name: str
    lo: float
    hi: float
    offset: float
    width: float
    levels: bool = False
    parts: tuple[Part, ...] = field(default=(), repr=False, compare=False)


def scaled_column(name: str, parts: tuple[Part, ...], *, centered: bool) -> Column:
    """Scale a column by its bounds.

    With the intercept kept (`centered`) the bounds [lo, hi] go to [-1, 1], so a column of two
    values goes to -1 and +1. A column made of categorical factors alone, one of which has three
    levels or more, stays as it is coded, 0/1 under treatment coding: it is divided by its largest
    modulus, 1. Everything else, a product of a level and a number too, follows the rule of its
    interval. Without the intercept every column is only divided: a model without the intercept
    could not take up a shift.

    Raises
    ------
    SchemaError
        If the column is not bounded or has no width.
    """
    try:
        interval = _product(tuple(part.interval for part in parts))
    except NotFiniteError:
        raise SchemaError(
            f"column {shown(name)} is not bounded in float64 under the declared bounds; "
            f"narrow the bounds of the columns in it."
        ) from None
    coded = [part.factor for part in parts if isinstance(part.factor, Coded)]
    levels = len(coded) == len(parts)
    if centered and not (levels and any(len(factor.levels) > 2 for factor in coded)):
        offset, width = interval.lo / 2 + interval.hi / 2, interval.hi / 2 - interval.lo / 2
    else:
        offset, width = 0.0, max(abs(interval.lo), abs(interval.hi))
    if not width > 0:
        raise SchemaError(
            f"column {shown(name)} has no width under the declared bounds: widen the bounds of "
            f"the columns in it, or leave it out."
        )
    return Column(name, interval.lo, interval.hi, offset, width, levels, parts)


@lru_cache(maxsize=256)  # columns of one factor are alike
def _product(intervals: tuple[Interval, ...]) -> Interval:
    return reduce(mul, intervals)


def scaled_response(response: Measure, *, clip: Fraction, center: bool) -> Column:
    """Scale the response by its bounds, its clip included in the width.

    Raises
    ------
    SchemaError
        If it has no width, or its square could leave float64.
    """
    name = response.code
    column = scaled_column(name, (Part(response, 0, response.intervals[0], None),), centered=center)
    width = float(Fraction(column.width) * clip)
    if not 1 / _LARGEST <= width <= _LARGEST:
        raise SchemaError(
            f"response {shown(name)}: half the width of its bounds, times the clip, must lie "
            "between 2**-500 and 2**500, since variances are squares of it: give it in another "
            "unit."
        )
    return replace(column, width=width)


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
        there = column >= 0 if isinstance(kind, Categorical) else column == column
        complete &= there
        match kind:
            case Categorical():
                cells[name] = np.maximum(column, 0).astype(np.intp)
            case Numeric(lo=lo, hi=hi):
                cells[name] = np.clip(column, lo, hi) if clipped else np.array(column)
                np.copyto(cells[name], lo, where=~there)
            case Boolean():
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


def multiplied(parts: Iterable[Part], values: Mapping[str, Any]) -> Floats:
    """Compute a raw design column of factors' values, in the order in which patsy multiplies."""
    cells = ((values[part.factor.code], part) for part in parts)
    return np.asarray(
        reduce(mul, (own[p.place] if p.levels is None else p.levels[own] for own, p in cells))
    )


def scale(raw: Any, offset: Any, width: Any, out: Floats | None = None) -> Floats:
    """Return (raw - offset) / width, in `out` if given."""
    return np.asarray(np.divide(np.subtract(raw, offset, out=out), width, out=out))


# ---- groups --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class CodedColumns:
    """How rows make a group's codes and values.

    Attributes
    ----------
    group : Group
    factors : tuple of Coded
    table : array, one axis a factor
        The group's column at each combination of their levels; -1 where there is none.
    numbers : tuple of Part
        Of factors of numbers, in the order in which patsy multiplies.
    offset, width : (m,) array
        Of the group's columns.
    """

    group: Group
    factors: tuple[Coded, ...]
    table: Places
    numbers: tuple[Part, ...]
    offset: Floats
    width: Floats

    def slots(self, values: Mapping[str, Any], complete: Bools) -> Slots:
        """Make the codes and values of some rows, from their factors' values."""
        found = self.table[tuple(values[factor.code] for factor in self.factors)]
        codes = np.where(complete, found, -1)
        if not self.numbers:
            return Slots(codes, to_grid(scale(1.0, self.offset, self.width))[codes])
        raw = multiplied(self.numbers, values)
        return Slots(codes, to_grid(scale(raw, self.offset[codes], self.width[codes])))


def coded_columns(columns: Sequence[Column]) -> tuple[CodedColumns, ...]:
    """Find the groups among the columns z_0, ..., z_p of a design."""
    members: dict[tuple[tuple[str, int | None], ...], dict[tuple[int, ...], int]] = {}
    for place, column in enumerate(columns):
        parts = column.parts
        key = tuple((p.factor.code, p.place if p.level is None else None) for p in parts)
        levels = tuple(part.level for part in parts if part.level is not None)
        if levels and all(part.level is not None or part.levels is None for part in parts):
            members.setdefault(key, {}).setdefault(levels, place)
    return tuple(_made(group, columns) for group in members.values() if len(group) >= _FEWEST)


def _made(members: Mapping[tuple[int, ...], int], columns: Sequence[Column]) -> CodedColumns:
    own = [columns[place] for place in members.values()]
    parts = own[0].parts
    factors = tuple(part.factor for part in parts if isinstance(part.factor, Coded))
    numbers = tuple(part for part in parts if part.levels is None)
    sizes = [len(factor.levels) for factor in factors]
    table = np.full(math.prod(sizes), -1, dtype=np.intp)
    table[np.ravel_multi_index(np.array(list(members)).T, sizes)] = np.arange(len(members))
    offset = np.array([column.offset for column in own])
    width = np.array([column.width for column in own])
    places = np.array(list(members.values()), dtype=np.int64)
    group = Group(places, to_grid(scale(0.0, offset, width)).astype(np.int64))
    return CodedColumns(group, factors, table.reshape(sizes), numbers, offset, width)
