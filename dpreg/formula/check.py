"""The allowlist: what a factor of a formula may say.

A factor is an expression (`dpreg.formula.syntax`), ``C(...)`` or ``bs(...)``. Whatever else it says
is refused with its reason and a fix. Only the formula's own text has a part in what is raised
here; neither rows nor schema are known yet.
"""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from dpreg.errors import FormulaError, shown
from dpreg.formula.expressions import Expression, Name, Number
from dpreg.formula.refusals import ALLOWED
from dpreg.formula.syntax import (
    RefusedError,
    is_call,
    only_argument,
    parsed,
    read_expression,
    refuse,
)

__all__ = ["Labels", "Spec", "Spline", "Values", "read_factor"]

MAX_DEGREE: Final = 5
"""Highest degree of a spline: what FITPACK offers."""

Literal = str | bool | int | float


@dataclass(frozen=True, slots=True)
class Values:
    """A factor that is an expression: a column, arithmetic, a function, a comparison."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Labels:
    """``C(column, contrast, levels=[...])``.

    `levels` is None where the schema's list stands; `reference` is None for the first level.
    `coding` is "treatment" or "sum".
    """

    column: str
    levels: tuple[Literal, ...] | None
    coding: str
    reference: Literal | None


@dataclass(frozen=True, slots=True)
class Spline:
    """``bs(x, knots=[...], lower_bound=..., upper_bound=...)`` with every constant literal."""

    operand: Expression
    knots: tuple[float, ...]
    degree: int
    include_intercept: bool
    lower: float
    upper: float


Spec = Values | Labels | Spline
"""What a factor's text says, before the schema is known."""


@lru_cache(maxsize=4096)  # a call reads its formula several times
def read_factor(code: str) -> Spec:
    """Read one factor of a formula.

    Parameters
    ----------
    code : str
        The factor's text, as it stands in the formula.

    Returns
    -------
    Values, Labels or Spline

    Raises
    ------
    FormulaError
        If the text holds anything but the allowlist of `dpreg.formula.refusals.ALLOWED`. The
        message names the factor, the reason and what to write instead.
    """
    try:
        return _factor(parsed(code))
    except RefusedError as refused:
        raise FormulaError(f"factor {shown(code)}: {refused}.") from None


def _factor(node: ast.expr) -> Spec:
    """Tell the three kinds of factor apart."""
    while is_call(node, "I"):
        node = only_argument(node, "I")
    if is_call(node, "C"):
        return _labels(node)
    if is_call(node, "bs"):
        return _spline(node)
    expression = read_expression(node)
    if isinstance(expression, Number):
        refuse("it reads no column", "leave it out, or write 1 or 0 for the intercept")
    return Values(expression)


def _labels(node: ast.expr) -> Labels:
    """Read ``C(column[, contrast][, levels])``."""
    given = _arguments(node, "C", ("data", "contrast", "levels"))
    column = read_expression(given["data"]) if "data" in given else None
    if not isinstance(column, Name):
        refuse("C() takes one raw column", "write C(g), or C(x, levels=[1, 2, 3])")
    levels = None
    if "levels" in given:
        levels = _literals(given["levels"], "levels")
        if len(levels) < 2 or len(set(levels)) < len(levels):
            refuse("levels needs two different levels at least", 'write levels=["a", "b"]')
    coding, reference = _contrast(given.get("contrast"))
    return Labels(column.column, levels, coding, reference)


def _contrast(node: ast.expr | None) -> tuple[str, Literal | None]:
    """Read ``Treatment``, ``Treatment(reference=...)`` or ``Sum``."""
    if node is None:
        return "treatment", None
    if isinstance(node, ast.Name) and node.id in ("Treatment", "Sum"):
        return node.id.lower(), None
    if is_call(node, "Sum") and not _arguments(node, "Sum", ()):
        return "sum", None
    if is_call(node, "Treatment"):
        given = _arguments(node, "Treatment", ("reference",))
        return "treatment", _literal(given["reference"]) if given else None
    refuse("its contrast is not one that dpreg offers", "write Treatment(reference=...) or Sum")


def _spline(node: ast.expr) -> Spline:
    """Read ``bs()``; whatever is not literal would have to be learnt from the rows."""
    mend = "write bs(x, knots=[2, 5], degree=3, lower_bound=0, upper_bound=9) with public numbers"
    options = ("knots", "degree", "include_intercept", "lower_bound", "upper_bound")
    if isinstance(node, ast.Call) and (
        len(node.args) > 1 or any(word.arg == "df" for word in node.keywords)
    ):
        refuse("bs() with df takes its knots from the rows", mend)
    given = _arguments(node, "bs", ("x", *options))
    missing = [name for name in ("x", "knots", "lower_bound", "upper_bound") if name not in given]
    if missing:
        refuse(f"bs() without {' and '.join(missing)} would take them from the rows", mend)
    if not isinstance(given["knots"], ast.List | ast.Tuple):
        refuse("knots is not a literal list", mend)
    knots = tuple(sorted(_constant(item, mend) for item in given["knots"].elts))
    lower, upper = (_constant(given[name], mend) for name in ("lower_bound", "upper_bound"))
    walls = (lower, *knots, upper)
    if any(not a < b for a, b in itertools.pairwise(walls)):
        refuse("its knots are not different numbers inside its bounds", mend)
    degree = _constant(given["degree"], mend) if "degree" in given else 3.0
    if not (degree.is_integer() and 0 <= degree <= MAX_DEGREE):
        refuse(f"its degree is not a whole number from 0 to {MAX_DEGREE}", mend)
    intercept = False
    if "include_intercept" in given:
        flag = _literal(given["include_intercept"])
        if not isinstance(flag, bool):
            refuse("include_intercept is not True or False", mend)
        intercept = flag
    if not knots and degree == 0 and not intercept:
        refuse("it has no columns", mend)
    operand = read_expression(given["x"])
    if isinstance(operand, Number):
        refuse("it reads no column", mend)
    return Spline(operand, knots, int(degree), intercept, lower, upper)


def _constant(node: ast.expr, mend: str) -> float:
    """Read an expression that has to be a constant."""
    expression = read_expression(node)
    if not isinstance(expression, Number):
        refuse("its knots, degree and bounds have to be literal numbers", mend)
    return expression.value


def _arguments(node: ast.expr, name: str, allowed: tuple[str, ...]) -> dict[str, ast.expr]:
    """Match the arguments of a call to names; no stars, no repeated or unknown ones."""
    if not isinstance(node, ast.Call):
        refuse(f"{name} is not called", f"write {name}(...)")
    mend = f"it takes {', '.join(allowed) or 'no arguments'}"
    if len(node.args) > len(allowed) or any(isinstance(a, ast.Starred) for a in node.args):
        refuse(f"{name}() has an argument that dpreg does not offer", mend)
    given = dict(zip(allowed, node.args, strict=False))
    for word in node.keywords:
        if word.arg is None or word.arg not in allowed or word.arg in given:
            refuse(f"{name}() has an argument that dpreg does not offer", mend)
        given[word.arg] = word.value
    return given


def _literals(node: ast.expr, name: str) -> tuple[Literal, ...]:
    if not isinstance(node, ast.List | ast.Tuple):
        refuse(f"{name} is not a literal list", f'write {name}=["a", "b"]')
    return tuple(_literal(item) for item in node.elts)


def _literal(node: ast.expr) -> Literal:
    """Read one literal text, truth or number; whole floats become integers, as in a schema."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bool):
        return node.value
    expression = read_expression(node)
    if not isinstance(expression, Number):
        refuse("it holds a variable where a literal belongs", f"write it out: {ALLOWED}")
    return int(expression.value) if expression.value.is_integer() else expression.value
