"""Factors, as they stand once the schema is known: numbers or levels, computed row by row.

A factor is either a `Measure` (numbers, with the interval of each of its columns) or a `Coded`
factor (levels, one of them on each row). Both compute themselves from the cells of a chunk.
Whatever is raised here depends on formula and schema alone.

Tested in `tests/formula/test_against_patsy.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpreg.errors import FormulaError, shown
from dpreg.formula.check import Labels, Literal
from dpreg.formula.expressions import Cells, Expression
from dpreg.formula.intervals import Interval
from dpreg.schema import Boolean, Categorical, ColumnType

__all__ = ["Coded", "Factor", "Measure", "coded_labels", "truth_places"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A factor of numbers.

    Attributes
    ----------
    code : str
        The factor's text, which is its name.
    columns : tuple of str
        Raw columns that it reads.
    intervals : tuple of Interval
        Bounds of each of its columns: one, or as many as a spline has.
    values : callable
        Cells of a chunk to one float64 array a column; NaN or infinite where it has no value.
    plain : bool
        Whether it is a raw column as it stands.
    """

    code: str
    columns: tuple[str, ...]
    intervals: tuple[Interval, ...]
    values: Callable[[Cells], list[NDArray[np.float64]]]
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Coded:
    """A factor of levels.

    Attributes
    ----------
    code : str
        The factor's text, which is its name.
    columns : tuple of str
        Raw columns that it reads.
    levels : tuple
        Its levels in their order.
    coding : str
        "treatment" or "sum".
    reference : object
        The reference level, or its place; None for the first.
    codes : callable
        Cells of a chunk to the places of the rows' levels, intp; -1 where there is none.
    """

    code: str
    columns: tuple[str, ...]
    levels: tuple[Literal, ...]
    coding: str
    reference: Literal | None
    codes: Callable[[Cells], NDArray[np.intp]]


Factor = Measure | Coded


def truth_places(truth: Expression) -> Callable[[Cells], NDArray[np.intp]]:
    """Compute the level places of a truth: 0 for false, 1 for true, -1 where it is NaN."""

    def codes(cells: Cells) -> NDArray[np.intp]:
        values = truth.values(cells)
        known = values == values
        return np.where(known, values == 1.0, -1).astype(np.intp)

    return codes


def coded_labels(code: str, spec: Labels, kind: ColumnType) -> Coded:
    """Bind a factor of levels to its column.

    Parameters
    ----------
    code : str
    spec : Labels
    kind : ColumnType
        How the column is declared. Where it is by bounds, a cell is clipped to them before it is
        looked up among the levels, as everywhere else.

    Returns
    -------
    Coded

    Raises
    ------
    FormulaError
        If its levels or its reference are not the column's.
    """
    column = spec.column
    levels: tuple[Literal, ...]
    match kind:
        case Categorical(levels=declared):
            levels = declared if spec.levels is None else spec.levels
            if any(level not in declared for level in levels):
                raise FormulaError(
                    f"factor {shown(code)}: its levels are not all among the declared levels of "
                    f"{shown(column)}; use declared levels, or add to the schema."
                )
            if levels == declared:
                codes = _stored_codes(column)
            else:
                places = {level: place for place, level in enumerate(levels)}
                codes = _recoded(column, [places.get(level, -1) for level in declared])
        case Boolean():
            levels = (False, True) if spec.levels is None else spec.levels
            if set(levels) != {False, True}:
                raise FormulaError(
                    f"factor {shown(code)}: {shown(column)} is declared as bool; its levels can "
                    f"only be [False, True] or [True, False]."
                )
            codes = _matched(column, tuple(float(level) for level in levels))
        case _:
            if spec.levels is None or any(isinstance(level, str) for level in spec.levels):
                raise FormulaError(
                    f"factor {shown(code)}: {shown(column)} is declared by bounds; write levels "
                    f'as in C(x, levels=[1, 2, 3]), or declare {{"x": {{"levels": [1, 2, 3]}}}}.'
                )
            levels = spec.levels
            codes = _matched(column, tuple(float(level) for level in levels))
    reference = spec.reference
    if reference is not None and reference not in levels:
        place = isinstance(reference, int) and not isinstance(reference, bool)
        if not (place and -len(levels) <= int(reference) < len(levels)):
            raise FormulaError(
                f"factor {shown(code)}: its reference is not one of its levels; name a level."
            )
    return Coded(code, (column,), levels, spec.coding, reference, codes)


def _stored_codes(column: str) -> Callable[[Cells], NDArray[np.intp]]:
    return lambda cells: cells[column]


def _recoded(column: str, places: list[int]) -> Callable[[Cells], NDArray[np.intp]]:
    table = np.array(places, dtype=np.intp)
    return lambda cells: table[cells[column]]


def _matched(column: str, levels: tuple[float, ...]) -> Callable[[Cells], NDArray[np.intp]]:
    """Level places of a column of numbers: where a cell equals a level."""

    def codes(cells: Cells) -> NDArray[np.intp]:
        values = cells[column]
        places = np.full(len(values), -1, dtype=np.intp)
        for place, level in enumerate(levels):
            places[values == level] = place
        return places

    return codes
