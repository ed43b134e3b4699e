"""Factors: what a formula says, joined with what the schema knows of its columns.

A factor is either a `Measure` (numbers, with the interval of each of its columns) or a `Coded`
factor (levels, one of them on each row). Both compute themselves from the cells of a chunk. Names
become columns of a type here, bounds are carried to factors, and factors that use a column of the
wrong kind are refused, all before any row is read: whatever is raised depends on formula and schema
alone.

Tested in `tests/formula/test_design.py` and `tests/formula/test_against_patsy.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from dpreg.arrays import Floats, Places
from dpreg.cells import LevelCoder
from dpreg.columns import Boolean, Categorical, Columns, ColumnType, Numeric
from dpreg.errors import FormulaError, SchemaError, shown
from dpreg.formula.expressions import (
    COMPARISONS,
    Applied,
    Cells,
    Expression,
    Interval,
    Labels,
    LevelTest,
    Literal,
    Name,
    NotFiniteError,
    Number,
    Spec,
    Spline,
    names,
)

SPLINE_TOLERANCE = 1e-9
"""How far, in widths of a spline, its argument may lie outside by rounding; it is moved inside."""


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
    """

    code: str
    columns: tuple[str, ...]
    intervals: tuple[Interval, ...]
    values: Callable[[Cells], list[Floats]]


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
    reference : int
        The place of its reference level.
    codes : callable
        Cells of a chunk to the places of the rows' levels, intp; -1 where there is none.
    """

    code: str
    columns: tuple[str, ...]
    levels: tuple[Literal, ...]
    coding: str
    reference: int
    codes: Callable[[Cells], Places]


Factor = Measure | Coded


def column_types(specs: Mapping[str, Spec], schema: Columns) -> dict[str, ColumnType]:
    """Say how every raw column is to be read.

    Parameters
    ----------
    specs : mapping of str to Spec
        Factors by their text.
    schema : mapping of str to ColumnType

    Returns
    -------
    dict of str to ColumnType
        The schema's entry; for a column that it leaves undeclared and that stands in
        ``C(x, levels=[...])``, those levels.

    Raises
    ------
    FormulaError
        If a column is neither declared nor given levels.
    """
    levels: dict[str, dict[Literal, None]] = {}
    for spec in specs.values():
        if isinstance(spec, Labels) and spec.column not in schema and spec.levels is not None:
            levels.setdefault(spec.column, {}).update(dict.fromkeys(spec.levels))
    types: dict[str, ColumnType] = {}
    for code, spec in specs.items():
        for column in names(spec):
            if column in schema:
                types[column] = schema[column]
            elif column in levels:
                found: Any = tuple(levels[column])
                truths = all(isinstance(level, bool) for level in found)
                types[column] = Boolean() if truths else Categorical(found)
            else:
                raise FormulaError(
                    f"factor {shown(code)}: {shown(column)} is not a declared column; add it to "
                    f'the schema, as in {{"x": (0, 10)}} or {{"g": ["a", "b"]}} (variables of the '
                    f"calling program are not seen)."
                )
    return types


def bind(code: str, spec: Spec, types: Columns, *, response: bool = False) -> Factor:
    """Join a factor's text with the types of its columns.

    Parameters
    ----------
    code : str
    spec : Spec
        What `dpreg.formula.syntax.read_factor` made of the text.
    types : mapping of str to ColumnType
        What `column_types` returned.
    response : bool
        Whether truths are to be the numbers 0 and 1, and not levels.

    Returns
    -------
    Measure or Coded

    Raises
    ------
    FormulaError
        If a factor uses a column of the wrong kind.
    SchemaError
        If the bounds of the columns give the factor an interval that is not finite or has no
        width.
    """
    if isinstance(spec, Labels):
        return coded_labels(code, spec, types[spec.column])
    columns = names(spec)
    if isinstance(spec, Name):
        kind = types[spec.column]
        if isinstance(kind, Categorical) or (isinstance(kind, Boolean) and not response):
            return coded_labels(code, Labels(spec.column, None, "treatment", None), kind)
    expression = bound(code, spec.operand if isinstance(spec, Spline) else spec, types)
    interval = interval_of(code, expression, types)
    if isinstance(spec, Spline):
        return _spline(code, spec, columns, expression, interval)
    if interval.lo == interval.hi:
        raise SchemaError(
            f"factor {shown(code)} is constant under the declared bounds of "
            f"{_listed(columns)}: widen the bounds or leave the factor out."
        )
    compared = isinstance(expression, Applied) and expression.symbol in COMPARISONS
    if (compared or isinstance(expression, LevelTest)) and not response:
        places = _coded(expression.values, (0.0, 1.0))
        return Coded(code, columns, (False, True), "treatment", 0, places)
    return Measure(code, columns, (interval,), lambda cells: [expression.values(cells)])


def _listed(columns: Iterable[str]) -> str:
    return ", ".join(shown(column) for column in columns)


def bound(code: str, expression: Expression, types: Columns) -> Expression:
    """Resolve tests of levels, and refuse categories where numbers belong."""
    match expression:
        case LevelTest(column, level, equal):
            return _level_test(code, column, level, equal, types[column])
        case Name(column) if isinstance(types[column], Categorical):
            raise FormulaError(
                f"factor {shown(code)}: {shown(column)} is declared with levels, not as a number; "
                f'let it stand alone, or test for a level as in g == "a".'
            )
        case Applied(
            ("==" | "!=") as symbol,
            (Name(column), Number(level)) | (Number(level), Name(column)),
        ) if isinstance(types[column], Categorical):
            return _level_test(code, column, level, symbol == "==", types[column])
        case Applied(symbol, operands):
            return Applied(symbol, tuple(bound(code, operand, types) for operand in operands))
    return expression


def _level_test(
    code: str, column: str, level: str | float, equal: bool, kind: ColumnType
) -> LevelTest:
    """Find the place of the level that a test names."""
    if not isinstance(kind, Categorical):
        raise FormulaError(
            f"factor {shown(code)}: {shown(column)} is not declared with levels, so no text can "
            f"equal it; declare its levels in the schema, or compare it with a number."
        )
    if level not in kind.levels:
        raise FormulaError(
            f"factor {shown(code)}: {shown(str(level))} is not one of the declared levels of "
            f"{shown(column)}; use a declared level, or add it to the schema."
        )
    return LevelTest(column, level, equal, list(kind.levels).index(level))


def interval_of(code: str, expression: Expression, types: Columns) -> Interval:
    """Carry the schema's bounds to a factor."""
    bounds = {}
    for column in names(expression):
        kind = types[column]
        lo, hi = (kind.lo, kind.hi) if isinstance(kind, Numeric) else (0.0, 1.0)
        bounds[column] = Interval(lo, hi)
    try:
        return expression.bounds(bounds)
    except NotFiniteError as reason:
        raise SchemaError(
            f"factor {shown(code)} is not bounded under the declared bounds of "
            f"{_listed(bounds)}: it holds {reason}. Declare bounds that keep clear of it."
        ) from None


def _spline(
    code: str, spec: Spline, columns: tuple[str, ...], operand: Expression, interval: Interval
) -> Measure:
    """Bind a B-spline basis, whose columns lie in [0, 1] wherever it is defined."""
    slack = SPLINE_TOLERANCE * (spec.upper - spec.lower)
    if interval.lo < spec.lower - slack or interval.hi > spec.upper + slack:
        raise FormulaError(
            f"factor {shown(code)}: under the declared bounds of {_listed(columns)} its argument "
            f"reaches from {interval.lo:.6g} to {interval.hi:.6g}, outside lower_bound and "
            f"upper_bound; widen these, or narrow the bounds in the schema."
        )
    order = spec.degree + 1
    knots = np.sort(np.array([spec.lower, spec.upper] * order + list(spec.knots), dtype=np.float64))
    first = 0 if spec.include_intercept else 1
    bases = np.eye(len(knots) - order)[first:]

    def values(cells: Cells) -> list[Floats]:
        from scipy.interpolate import splev  # slow to import, and seldom needed

        x = np.asarray(operand.values(cells))
        inside = (x >= spec.lower - slack) & (x <= spec.upper + slack)
        x = np.where(inside, np.clip(x, spec.lower, spec.upper), spec.lower)
        return [np.where(inside, splev(x, (knots, own, spec.degree)), np.nan) for own in bases]

    return Measure(code, columns, (Interval(0.0, 1.0),) * len(bases), values)


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
    codes: Callable[[Cells], Any] = itemgetter(column)
    match kind:
        case Categorical(levels=declared):
            levels = declared if spec.levels is None else spec.levels
            if any(level not in declared for level in levels):
                raise FormulaError(
                    f"factor {shown(code)}: its levels are not all among the declared levels of "
                    f"{shown(column)}; use declared levels, or add to the schema."
                )
            if levels != declared:
                codes = _coded(codes, map(declared.index, levels))
        case Boolean():
            levels = (False, True) if spec.levels is None else spec.levels
            if set(levels) != {False, True}:
                raise FormulaError(
                    f"factor {shown(code)}: {shown(column)} is declared as bool; its levels can "
                    f"only be [False, True] or [True, False]."
                )
            codes = _coded(codes, map(float, levels))
        case _:
            if spec.levels is None or any(isinstance(level, str) for level in spec.levels):
                raise FormulaError(
                    f"factor {shown(code)}: {shown(column)} is declared by bounds; write levels "
                    f'as in C(x, levels=[1, 2, 3]), or declare {{"x": {{"levels": [1, 2, 3]}}}}.'
                )
            levels = spec.levels
            codes = _coded(codes, map(float, levels))
    named, reference = spec.reference, 0
    if named in levels:
        reference = levels.index(named)
    elif named is not None:
        if isinstance(named, bool) or named not in range(-len(levels), len(levels)):
            raise FormulaError(
                f"factor {shown(code)}: its reference is not one of its levels; name a level."
            )
        reference = int(named) % len(levels)
    return Coded(code, (column,), levels, spec.coding, reference, codes)


def _coded(values: Callable[[Cells], Any], levels: Iterable[float]) -> Callable[[Cells], Places]:
    """Find the place of each number among the levels."""
    coder = LevelCoder(tuple(levels))
    return lambda cells: coder.numbers(values(cells)).astype(np.intp)
