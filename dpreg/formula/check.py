"""The allowlist: what a factor of a formula may say.

A factor's text is parsed by `ast` and rebuilt from scratch out of the nodes of
`dpreg.formula.expressions`. What has no node is refused with its reason and a mend. No formula text
is ever compiled or evaluated, so a formula sees no variable, builtin or attribute of Python: the
environment is closed because there is none. Only the formula's own text has a part in what is
raised here; neither rows nor schema are known yet.
"""

from __future__ import annotations

import ast
import itertools
import math
import warnings
from dataclasses import dataclass
from typing import Final, NoReturn

import numpy as np

from dpreg.errors import FormulaError
from dpreg.formula.expressions import (
    ARITHMETIC,
    FUNCTIONS,
    Arithmetic,
    Comparison,
    Expression,
    Function,
    LevelTest,
    Name,
    Negation,
    Number,
)
from dpreg.formula.refusals import (
    ALLOWED,
    ARITHMETIC_MENDS,
    function_refusal,
    node_refusal,
)

__all__ = ["Labels", "Spec", "Spline", "Values", "read_factor", "shown"]

MAX_LENGTH: Final = 2_000
"""Longest text of one factor, in characters."""
MAX_DEPTH: Final = 100
"""Deepest nesting of one factor."""
MAX_DEGREE: Final = 5
"""Highest degree of a spline: what FITPACK offers."""

_ARITHMETIC: Final[dict[type[ast.operator], str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "**",
}
_COMPARISONS: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}

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


def shown(text: str, most: int = 80) -> str:
    """Quote a piece of formula text for a message, cut where it is long."""
    return repr(text if len(text) <= most else text[: most - 3] + "...")


class _RefusedError(Exception):
    """A reason and a mend, not yet joined with the factor's name."""


def _refuse(reason: str, mend: str) -> NoReturn:
    raise _RefusedError(f"{reason}; {mend}")


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
        return _factor(_parsed(code))
    except _RefusedError as refused:
        raise FormulaError(f"factor {shown(code)}: {refused}.") from None


def _parsed(code: str) -> ast.expr:
    """Parse the text of a factor into a syntax tree of bounded size."""
    if len(code) > MAX_LENGTH:
        _refuse(f"it is longer than {MAX_LENGTH} characters", "compute such a column beforehand")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's remarks on odd literals
            tree = ast.parse(code, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        _refuse(
            "it cannot be read as an expression",
            "put arithmetic inside I(), as in I(x > -1), name every column (there is no dot for all "
            'the others), and write Q("name") for a name that is not a plain word',
        )
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return tree
    _refuse(f"it is nested more than {MAX_DEPTH} deep", "compute such a column beforehand")


def _factor(node: ast.expr) -> Spec:
    """Tell the three kinds of factor apart."""
    while _calls(node, "I"):
        node = _only_argument(node, "I")
    if _calls(node, "C"):
        return _labels(node)
    if _calls(node, "bs"):
        return _spline(node)
    expression = _expression(node)
    if isinstance(expression, Number):
        _refuse("it reads no column", "leave it out, or write 1 or 0 for the intercept")
    return Values(expression)


def _calls(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _only_argument(node: ast.expr, name: str) -> ast.expr:
    """Return the one positional argument of a call."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        _refuse(f"{name}() takes one argument", f"write {name}(x)")
    return node.args[0]


def _expression(node: ast.expr) -> Expression:
    """Rebuild a numeric expression out of the allowed nodes."""
    match node:
        case ast.Constant(value=value):
            return Number(_number(value))
        case ast.Name(id=name):
            return Name(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _expression(operand)
            return Number(-inner.value) if isinstance(inner, Number) else Negation(inner)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _expression(operand)
        case ast.BinOp(left=left, op=op, right=right):
            symbol = _ARITHMETIC.get(type(op))
            if symbol is None:
                _refuse(*ARITHMETIC_MENDS[type(op)])
            return _arithmetic(symbol, _expression(left), _expression(right))
        case ast.Compare():
            return _comparison(node)
        case ast.Call():
            return _call(node)
    _refuse(*node_refusal(node))


def _number(value: object) -> float:
    """Take a literal number; refuse every other literal."""
    if isinstance(value, str):
        _refuse(
            "it holds a text where a number or a column belongs",
            'text may stand in Q("column"), in levels=[...], and in a test such as g == "a"',
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse("it holds a constant that is not a plain number", "write numbers such as 2 or 0.5")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    return _finite(number)


def _finite(number: float) -> float:
    if not math.isfinite(number):
        _refuse("it holds a constant that is not finite in float64", "write a smaller number")
    return number


def _arithmetic(symbol: str, left: Expression, right: Expression) -> Expression:
    """Join two operands; of two constants, compute the result at once."""
    if isinstance(left, Number) and isinstance(right, Number):
        with np.errstate(all="ignore"):
            folded = ARITHMETIC[symbol](np.float64(left.value), np.float64(right.value))
        return Number(_finite(float(folded)))
    return Arithmetic(symbol, left, right)


def _comparison(node: ast.Compare) -> Expression:
    """Read a comparison of two expressions, or of a category with one of its levels."""
    if len(node.ops) != 1:
        _refuse("it chains comparisons", "write (0 < x) * (x < 9) for 0 < x < 9")
    symbol = _COMPARISONS.get(type(node.ops[0]))
    if symbol is None:
        _refuse(
            "it holds a test with `in` or `is`",
            'add up tests such as (g == "a") + (g == "b")',
        )
    sides = (node.left, node.comparators[0])
    for side, other in (sides, sides[::-1]):
        if isinstance(side, ast.Constant) and isinstance(side.value, str):
            column = _expression(other)
            if symbol not in ("==", "!=") or not isinstance(column, Name):
                _refuse(
                    "it compares a text with something other than one column by == or !=",
                    'write g == "a" for a column g with declared levels',
                )
            return LevelTest(column.column, side.value, symbol == "==")
    left, right = _expression(sides[0]), _expression(sides[1])
    if isinstance(left, Number) and isinstance(right, Number):
        _refuse("it compares two constants", "compare a column with a number")
    return Comparison(symbol, left, right)


def _call(node: ast.Call) -> Expression:
    """Read ``I(x)``, ``Q("name")`` or ``np.f(x)``; refuse every other call by its name."""
    match node.func:
        case ast.Name(id="I"):
            return _expression(_only_argument(node, "I"))
        case ast.Name(id="Q"):
            argument = _only_argument(node, "Q")
            if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
                _refuse("Q() takes a column's name as a literal text", 'write Q("name")')
            return Name(argument.value)
        case ast.Attribute(value=ast.Name(id="np"), attr=name) if name in FUNCTIONS:
            inner = _expression(_only_argument(node, f"np.{name}"))
            if isinstance(inner, Number):
                with np.errstate(all="ignore"):
                    return Number(_finite(float(FUNCTIONS[name][0](inner.value))))
            return Function(name, inner)
    _refuse(*function_refusal(node.func))


def _labels(node: ast.expr) -> Labels:
    """Read ``C(column[, contrast][, levels])``."""
    given = _arguments(node, "C", ("data", "contrast", "levels"))
    column = _expression(given["data"]) if "data" in given else None
    if not isinstance(column, Name):
        _refuse("C() takes one raw column", "write C(g), or C(x, levels=[1, 2, 3])")
    levels = None
    if "levels" in given:
        levels = _literals(given["levels"], "levels")
        if len(levels) < 2 or len(set(levels)) < len(levels):
            _refuse("levels needs two different levels at least", 'write levels=["a", "b"]')
    coding, reference = _contrast(given.get("contrast"))
    return Labels(column.column, levels, coding, reference)


def _contrast(node: ast.expr | None) -> tuple[str, Literal | None]:
    """Read ``Treatment``, ``Treatment(reference=...)`` or ``Sum``."""
    if node is None:
        return "treatment", None
    if isinstance(node, ast.Name) and node.id in ("Treatment", "Sum"):
        return node.id.lower(), None
    if _calls(node, "Sum") and not _arguments(node, "Sum", ()):
        return "sum", None
    if _calls(node, "Treatment"):
        given = _arguments(node, "Treatment", ("reference",))
        return "treatment", _literal(given["reference"]) if given else None
    _refuse("its contrast is not one that dpreg offers", "write Treatment(reference=...) or Sum")


def _spline(node: ast.expr) -> Spline:
    """Read ``bs()``; whatever is not literal would have to be learnt from the rows."""
    mend = "write bs(x, knots=[2, 5], degree=3, lower_bound=0, upper_bound=9) with public numbers"
    options = ("knots", "degree", "include_intercept", "lower_bound", "upper_bound")
    if isinstance(node, ast.Call) and (
        len(node.args) > 1 or any(word.arg == "df" for word in node.keywords)
    ):
        _refuse("bs() with df takes its knots from the rows", mend)
    given = _arguments(node, "bs", ("x", *options))
    missing = [name for name in ("x", "knots", "lower_bound", "upper_bound") if name not in given]
    if missing:
        _refuse(f"bs() without {' and '.join(missing)} would take them from the rows", mend)
    if not isinstance(given["knots"], ast.List | ast.Tuple):
        _refuse("knots is not a literal list", mend)
    knots = tuple(sorted(_constant(item, mend) for item in given["knots"].elts))
    lower, upper = (_constant(given[name], mend) for name in ("lower_bound", "upper_bound"))
    walls = (lower, *knots, upper)
    if any(not a < b for a, b in itertools.pairwise(walls)):
        _refuse("its knots are not different numbers inside its bounds", mend)
    degree = _constant(given["degree"], mend) if "degree" in given else 3.0
    if not (degree.is_integer() and 0 <= degree <= MAX_DEGREE):
        _refuse(f"its degree is not a whole number from 0 to {MAX_DEGREE}", mend)
    intercept = False
    if "include_intercept" in given:
        flag = _literal(given["include_intercept"])
        if not isinstance(flag, bool):
            _refuse("include_intercept is not True or False", mend)
        intercept = flag
    if not knots and degree == 0 and not intercept:
        _refuse("it has no columns", mend)
    operand = _expression(given["x"])
    if isinstance(operand, Number):
        _refuse("it reads no column", mend)
    return Spline(operand, knots, int(degree), intercept, lower, upper)


def _constant(node: ast.expr, mend: str) -> float:
    """Read an expression that has to be a constant."""
    expression = _expression(node)
    if not isinstance(expression, Number):
        _refuse("its knots, degree and bounds have to be literal numbers", mend)
    return expression.value


def _arguments(node: ast.expr, name: str, allowed: tuple[str, ...]) -> dict[str, ast.expr]:
    """Match the arguments of a call to names, without stars, repeats or strangers."""
    if not isinstance(node, ast.Call):
        _refuse(f"{name} is not called", f"write {name}(...)")
    mend = f"it takes {', '.join(allowed) or 'no arguments'}"
    if len(node.args) > len(allowed) or any(isinstance(a, ast.Starred) for a in node.args):
        _refuse(f"{name}() has an argument that dpreg does not offer", mend)
    given = dict(zip(allowed, node.args, strict=False))
    for word in node.keywords:
        if word.arg is None or word.arg not in allowed or word.arg in given:
            _refuse(f"{name}() has an argument that dpreg does not offer", mend)
        given[word.arg] = word.value
    return given


def _literals(node: ast.expr, name: str) -> tuple[Literal, ...]:
    if not isinstance(node, ast.List | ast.Tuple):
        _refuse(f"{name} is not a literal list", f'write {name}=["a", "b"]')
    return tuple(_literal(item) for item in node.elts)


def _literal(node: ast.expr) -> Literal:
    """Read one literal text, truth or number; whole floats become integers, as in a schema."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bool):
        return node.value
    expression = _expression(node)
    if not isinstance(expression, Number):
        _refuse("it holds a variable where a literal belongs", f"write it out: {ALLOWED}")
    return int(expression.value) if expression.value.is_integer() else expression.value
