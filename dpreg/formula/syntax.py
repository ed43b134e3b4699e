"""The allowlist: what a factor of a formula may say.

A factor is an expression, ``C(...)`` or ``bs(...)``. Its text is parsed by `ast` and rebuilt from
scratch out of the nodes of `dpreg.formula.expressions`; whatever else it says is refused with its
reason and a fix. No formula text is ever compiled or evaluated, so a formula sees no variable,
builtin or attribute of Python: the environment is closed because there is none. Only the formula's
own text has a part in what is raised here; neither rows nor schema are known yet.

Tested in `tests/formula/test_check.py`.
"""

from __future__ import annotations

import ast
import itertools
import math
from contextlib import suppress
from functools import lru_cache
from typing import Final, NoReturn

import numpy as np

from dpreg.cells import number
from dpreg.errors import FormulaError, shown
from dpreg.formula.expressions import (
    COMPARISONS,
    FUNCTIONS,
    OPERATIONS,
    Applied,
    Expression,
    Labels,
    LevelTest,
    Literal,
    Name,
    Number,
    Spec,
    Spline,
)
from dpreg.paths import catalogue
from dpreg.running import silenced

MAX_LENGTH: Final = 2_000
"""Longest text of one factor, in characters."""
MAX_DEPTH: Final = 100
"""Deepest nesting of one factor."""
MAX_DEGREE: Final = 5
"""Highest degree of a spline: what FITPACK offers."""

ALLOWED: Final = (
    "a factor may hold declared columns, numbers, + - * / **, comparisons, "
    "np.log, np.log1p, np.exp, np.sqrt, np.abs, I(), Q(), C(), and bs() with literal knots and "
    "bounds"
)

_REFUSALS: Final = catalogue("refusals.toml", __package__)
_FUNCTIONS: Final = {
    name: told for names, told in _REFUSALS["functions"].items() for name in names.split()
}

_ARITHMETIC: Final = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
_COMPARED: Final = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_COMPARISONS: Final = dict(zip(_COMPARED, COMPARISONS, strict=True))


class RefusedError(Exception):
    """A reason and a fix, not yet joined with the factor's name."""


def refuse(reason: str, mend: str = ALLOWED) -> NoReturn:
    """Turn a piece of a factor away."""
    raise RefusedError(f"{reason}; {mend}")


def parsed(code: str) -> ast.expr:
    """Parse the text of a factor into a syntax tree of bounded size."""
    if len(code) > MAX_LENGTH:
        refuse(f"it is longer than {MAX_LENGTH} characters", "compute such a column beforehand")
    tree: ast.expr | None = None
    # Python's own error quotes the text, which may hold rows: it must not be the context of ours.
    with silenced(), suppress(SyntaxError, ValueError, MemoryError, RecursionError):
        tree = ast.parse(code, mode="eval").body  # Python warns of odd literals
    if tree is None:
        refuse(
            "it cannot be read as an expression",
            "put arithmetic inside I(), as in I(x > -1), name every column (there is no dot for "
            'all the others), and write Q("name") for a name that is not a plain word',
        )
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return tree
    refuse(f"it is nested more than {MAX_DEPTH} deep", "compute such a column beforehand")


def only_argument(node: ast.Call, name: str) -> ast.expr:
    """Return the one positional argument of a call."""
    if len(node.args) != 1 or node.keywords:
        refuse(f"{name}() takes one argument", f"write {name}(x)")
    return node.args[0]


def read_expression(node: ast.expr) -> Expression:
    """Rebuild a numeric expression out of the allowed nodes."""
    match node:
        case ast.Constant(value=str()):
            refuse(
                "it holds a text where a number or a column belongs",
                'text may stand in Q("column"), in levels=[...], and in a test such as g == "a"',
            )
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return Number(_finite(number(value)))
        case ast.Constant():
            refuse(
                "it holds a constant that is not a plain number", "write numbers such as 2 or 0.5"
            )
        case ast.Name(id=name):
            return Name(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _applied("negative", read_expression(operand))
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return read_expression(operand)
        case ast.BinOp(left=left, op=op, right=right):
            symbol = _ARITHMETIC.get(type(op))
            if symbol is None:
                refuse(*_REFUSALS["operators"][type(op).__name__])
            return _applied(symbol, read_expression(left), read_expression(right))
        case ast.Compare():
            return _comparison(node)
        case ast.Call(func=ast.Name(id="I")):
            return read_expression(only_argument(node, "I"))
        case ast.Call(func=ast.Name(id="Q")):
            argument = only_argument(node, "Q")
            if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
                refuse("Q() takes a column's name as a literal text", 'write Q("name")')
            return Name(argument.value)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=name)) if name in FUNCTIONS:
            return _applied(name, read_expression(only_argument(node, f"np.{name}")))
        case ast.Call(func=function):
            refuse(*_function_refusal(function))
    kind = type(node).__name__
    refuse(*_REFUSALS["nodes"].get(kind, [f"it holds Python's {kind}"]))


def _finite(value: float) -> float:
    if not math.isfinite(value):
        refuse("it holds a constant that is not finite in float64", "write a smaller number")
    return value


def _applied(symbol: str, *operands: Expression) -> Expression:
    """Join operands; of constants, compute the result at once."""
    constants = [np.float64(one.value) for one in operands if isinstance(one, Number)]
    if len(constants) < len(operands):
        return Applied(symbol, operands)
    with np.errstate(all="ignore"):
        return Number(_finite(float(OPERATIONS[symbol][0](*constants))))


def _comparison(node: ast.Compare) -> Expression:
    """Read a comparison of two expressions, or of a category with one of its levels."""
    if len(node.ops) != 1:
        refuse("it chains comparisons", "write (0 < x) * (x < 9) for 0 < x < 9")
    symbol = _COMPARISONS.get(type(node.ops[0]))
    if symbol is None:
        refuse(
            "it holds a test with `in` or `is`",
            'add up tests such as (g == "a") + (g == "b")',
        )
    sides = (node.left, node.comparators[0])
    for side, other in (sides, sides[::-1]):
        if isinstance(side, ast.Constant) and isinstance(side.value, str):
            column = read_expression(other)
            if symbol not in ("==", "!=") or not isinstance(column, Name):
                refuse(
                    "it compares a text with something other than one column by == or !=",
                    'write g == "a" for a column g with declared levels',
                )
            return LevelTest(column.column, side.value, symbol == "==")
    left, right = read_expression(sides[0]), read_expression(sides[1])
    if isinstance(left, Number) and isinstance(right, Number):
        refuse("it compares two constants", "compare a column with a number")
    return Applied(symbol, (left, right))


def _function_refusal(function: ast.expr) -> list[str]:
    """Say why a call is refused, and what to write instead.

    Parameters
    ----------
    function : ast.expr
        What stands before the opening bracket.

    Returns
    -------
    list of str
        As `refuse` takes them.
    """
    match function:
        case ast.Name(id=name):
            shown = known = name
        case ast.Attribute(value=ast.Name(id=owner), attr=known):
            shown = f"{owner}.{known}"
            if owner == "np" and known in ("log10", "log2"):
                return [f"{shown} is not offered", "write np.log(x) / np.log(10), or the like"]
            if owner not in ("np", "numpy", "math"):
                return ["it calls a method of a column"]
        case _:
            return ["it calls something that has no plain name"]
    told = _FUNCTIONS.get(known, ["the function {name} is not offered"])
    return [text.format(name=shown[:60], plain=known) for text in told]


@lru_cache(maxsize=4096)  # a factor may stand in many terms
def read_factor(code: str) -> Spec:
    """Read one factor of a formula.

    Parameters
    ----------
    code : str
        The factor's text, as it stands in the formula.

    Returns
    -------
    Expression, Labels or Spline

    Raises
    ------
    FormulaError
        If the text holds anything but the allowlist of `dpreg.formula.syntax.ALLOWED`. The
        message names the factor, the reason and what to write instead.
    """
    try:
        return _factor(parsed(code))
    except RefusedError as refused:
        raise FormulaError(f"factor {shown(code)}: {refused}.") from None


def _factor(node: ast.expr) -> Spec:
    """Tell the three kinds of factor apart."""
    match node:
        case ast.Call(func=ast.Name(id="I")):
            return _factor(only_argument(node, "I"))
        case ast.Call(func=ast.Name(id="C")):
            return _labels(node)
        case ast.Call(func=ast.Name(id="bs")):
            return _spline(node)
    expression = read_expression(node)
    if isinstance(expression, Number):
        refuse("it reads no column", "leave it out, or write 1 or 0 for the intercept")
    return expression


def _labels(node: ast.Call) -> Labels:
    """Read ``C(column[, contrast][, levels])``."""
    given = _arguments(node, "C", ("data", "contrast", "levels"))
    column = read_expression(given["data"]) if "data" in given else None
    if not isinstance(column, Name):
        refuse("C() takes one raw column", "write C(g), or C(x, levels=[1, 2, 3])")
    levels = None
    if "levels" in given:
        if not isinstance(given["levels"], ast.List | ast.Tuple):
            refuse("levels is not a literal list", 'write levels=["a", "b"]')
        levels = tuple(_literal(item) for item in given["levels"].elts)
        if len(levels) < 2 or len(set(levels)) < len(levels):
            refuse("levels needs two different levels at least", 'write levels=["a", "b"]')
    coding, reference = _contrast(given.get("contrast"))
    return Labels(column.column, levels, coding, reference)


def _contrast(node: ast.expr | None) -> tuple[str, Literal | None]:
    """Read ``Treatment``, ``Treatment(reference=...)`` or ``Sum``."""
    match node:
        case None:
            return "treatment", None
        case ast.Name(id="Treatment" | "Sum" as name):
            return name.lower(), None
        case ast.Call(func=ast.Name(id="Sum")):
            _arguments(node, "Sum", ())
            return "sum", None
        case ast.Call(func=ast.Name(id="Treatment")):
            given = _arguments(node, "Treatment", ("reference",))
            return "treatment", _literal(given["reference"]) if given else None
    refuse("its contrast is not one that dpreg offers", "write Treatment(reference=...) or Sum")


def _spline(node: ast.Call) -> Spline:
    """Read ``bs()``; whatever is not literal would have to be learnt from the rows."""
    mend = "write bs(x, knots=[2, 5], degree=3, lower_bound=0, upper_bound=9) with public numbers"
    options = ("knots", "degree", "include_intercept", "lower_bound", "upper_bound")
    if len(node.args) > 1 or any(word.arg == "df" for word in node.keywords):
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
    intercept = _literal(given["include_intercept"]) if "include_intercept" in given else False
    if not isinstance(intercept, bool):
        refuse("include_intercept is not True or False", mend)
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


def _arguments(node: ast.Call, name: str, allowed: tuple[str, ...]) -> dict[str, ast.expr]:
    """Match the arguments of a call to names; no stars, no repeated or unknown ones."""
    mend = f"it takes {', '.join(allowed) or 'no arguments'}"
    told = [*zip(allowed, node.args, strict=False), *((w.arg, w.value) for w in node.keywords)]
    given = {word: value for word, value in told if word in allowed}
    starred = any(isinstance(value, ast.Starred) for value in given.values())
    if starred or len(given) < len(node.args) + len(node.keywords):
        refuse(f"{name}() has an argument that dpreg does not offer", mend)
    return given


def _literal(node: ast.expr) -> Literal:
    """Read one literal text, truth or number; whole floats become integers, as in a schema."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bool):
        return node.value
    expression = read_expression(node)
    if not isinstance(expression, Number):
        refuse("it holds a variable where a literal belongs", f"write it out: {ALLOWED}")
    return int(expression.value) if expression.value.is_integer() else expression.value
