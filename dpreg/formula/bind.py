"""Binding: what a formula says, joined with what the schema knows of its columns.

Here names become columns of a type, bounds are carried to factors, and factors that use a column of
the wrong kind are refused, all before any row is read.

Tested in `tests/formula/test_design.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpreg.errors import FormulaError, SchemaError, shown
from dpreg.formula.check import Labels, Literal, Spec, Spline, Values
from dpreg.formula.expressions import (
    Arithmetic,
    Cells,
    Comparison,
    Expression,
    Function,
    LevelTest,
    Name,
    Negation,
    Number,
    names,
)
from dpreg.formula.factors import Coded, Factor, Measure, coded_labels, truth_places
from dpreg.formula.intervals import Interval, NotFiniteError
from dpreg.schema import Boolean, Categorical, ColumnType, Numeric

__all__ = ["bind", "column_types", "columns_of", "levels_tested"]

Types = Mapping[str, ColumnType]

SPLINE_TOLERANCE = 1e-9
"""How far, in widths of a spline, its argument may lie outside by rounding; it is moved inside."""


def columns_of(spec: Spec) -> tuple[str, ...]:
    """List the raw columns that a factor reads, each once, in the order written."""
    if isinstance(spec, Labels):
        return (spec.column,)
    return tuple(dict.fromkeys(names(_expression_of(spec))))


def levels_tested(spec: Spec) -> set[str]:
    """Name the raw columns that a factor compares with a text, so that they must have levels."""
    found: set[str] = set()
    pending = [] if isinstance(spec, Labels) else [_expression_of(spec)]
    while pending:
        node = pending.pop()
        if isinstance(node, LevelTest):
            found.add(node.column)
        pending.extend(node.operands)
    return found


def _expression_of(spec: Spline | Values) -> Expression:
    return spec.operand if isinstance(spec, Spline) else spec.expression


def column_types(specs: Mapping[str, Spec], schema: Types) -> dict[str, ColumnType]:
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
        for column in columns_of(spec):
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


def bind(code: str, spec: Spec, types: Types, *, response: bool = False) -> Factor:
    """Join a factor's text with the types of its columns.

    Parameters
    ----------
    code : str
    spec : Spec
        What `dpreg.formula.check.read_factor` made of the text.
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
    columns = columns_of(spec)
    if isinstance(spec, Spline):
        return _spline(code, spec, columns, types)
    if isinstance(spec.expression, Name):
        column = spec.expression.column
        truths = isinstance(types[column], Boolean)
        if isinstance(types[column], Categorical) or (truths and not response):
            return coded_labels(code, Labels(column, None, "treatment", None), types[column])
    expression = bound(code, spec.expression, types)
    interval = interval_of(code, expression, types)
    if interval.is_point:
        raise SchemaError(
            f"factor {shown(code)} is constant under the declared bounds of "
            f"{_listed(columns)}: widen the bounds or leave the factor out."
        )
    if isinstance(expression, Comparison | LevelTest) and not response:
        return Coded(code, columns, (False, True), "treatment", None, truth_places(expression))
    plain = isinstance(expression, Name) and isinstance(types[expression.column], Numeric)
    return Measure(code, columns, (interval,), lambda cells: [expression.values(cells)], plain)


def _listed(columns: Iterable[str]) -> str:
    return ", ".join(shown(column) for column in columns)


def bound(code: str, expression: Expression, types: Types) -> Expression:
    """Resolve tests of levels, and refuse categories where numbers belong."""
    match expression:
        case LevelTest(column=column, level=level, equal=equal):
            return _level_test(code, column, level, equal, types[column])
        case Comparison(symbol=symbol, left=left, right=right):
            for name, other in ((left, right), (right, left)):
                if isinstance(name, Name) and isinstance(types[name.column], Categorical):
                    if isinstance(other, Number) and symbol in ("==", "!="):
                        equal = symbol == "=="
                        column = name.column
                        return _level_test(code, column, other.value, equal, types[column])
                    raise _not_numbers(code, name.column)
            return replace(
                expression, left=bound(code, left, types), right=bound(code, right, types)
            )
        case Arithmetic(left=left, right=right):
            return replace(
                expression, left=bound(code, left, types), right=bound(code, right, types)
            )
        case Negation(operand=operand) | Function(operand=operand):
            return replace(expression, operand=bound(code, operand, types))
        case Name(column=column) if isinstance(types[column], Categorical):
            raise _not_numbers(code, column)
    return expression


def _not_numbers(code: str, column: str) -> FormulaError:
    return FormulaError(
        f"factor {shown(code)}: {shown(column)} is declared with levels, not as a number; let it "
        f'stand alone, or test for a level as in g == "a".'
    )


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


def interval_of(code: str, expression: Expression, types: Types) -> Interval:
    """Carry the schema's bounds to a factor."""
    columns = dict.fromkeys(names(expression))
    bounds = {}
    for column in columns:
        kind = types[column]
        truth = Interval(0.0, 1.0)
        bounds[column] = Interval(kind.lo, kind.hi) if isinstance(kind, Numeric) else truth
    try:
        return expression.bounds(bounds)
    except NotFiniteError as reason:
        raise SchemaError(
            f"factor {shown(code)} is not bounded under the declared bounds of "
            f"{_listed(columns)}: it holds {reason}. Declare bounds that keep clear of it."
        ) from None


def _spline(code: str, spec: Spline, columns: tuple[str, ...], types: Types) -> Measure:
    """Bind a B-spline basis, whose columns lie in [0, 1] wherever it is defined."""
    operand = bound(code, spec.operand, types)
    interval = interval_of(code, operand, types)
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

    def values(cells: Cells) -> list[NDArray[np.float64]]:
        from scipy.interpolate import splev  # slow to import, and seldom needed

        x = np.asarray(operand.values(cells))
        inside = (x >= spec.lower - slack) & (x <= spec.upper + slack)
        x = np.where(inside, np.clip(x, spec.lower, spec.upper), spec.lower)
        found = []
        for basis in bases:
            column = np.asarray(splev(x, (knots, basis, spec.degree)), dtype=np.float64)
            column[~inside] = np.nan
            found.append(column)
        return found

    return Measure(code, columns, (Interval(0.0, 1.0),) * len(bases), values)
