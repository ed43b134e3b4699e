"""Expressions: formula text to a closed tree of nodes, or a refusal.

A factor's text is parsed by `ast` and rebuilt from scratch out of the nodes of
`dpreg.formula.expressions`. No formula text is ever compiled or evaluated, so a formula sees no
variable, builtin or attribute of Python: the environment is closed because there is none.

Tested in `tests/formula/test_check.py`.
"""

from __future__ import annotations

import ast
import math
from contextlib import suppress
from typing import Final, NoReturn

import numpy as np

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
from dpreg.formula.refusals import ARITHMETIC_MENDS, function_refusal, node_refusal
from dpreg.running import silenced

__all__ = ["RefusedError", "is_call", "only_argument", "parsed", "read_expression", "refuse"]

MAX_LENGTH: Final = 2_000
"""Longest text of one factor, in characters."""
MAX_DEPTH: Final = 100
"""Deepest nesting of one factor."""

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


class RefusedError(Exception):
    """A reason and a fix, not yet joined with the factor's name."""


def refuse(reason: str, mend: str) -> NoReturn:
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


def is_call(node: ast.expr, name: str) -> bool:
    """Say whether a node is a call of a plain name."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def only_argument(node: ast.expr, name: str) -> ast.expr:
    """Return the one positional argument of a call."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        refuse(f"{name}() takes one argument", f"write {name}(x)")
    return node.args[0]


def read_expression(node: ast.expr) -> Expression:
    """Rebuild a numeric expression out of the allowed nodes."""
    match node:
        case ast.Constant(value=value):
            return Number(_number(value))
        case ast.Name(id=name):
            return Name(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = read_expression(operand)
            return Number(-inner.value) if isinstance(inner, Number) else Negation(inner)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return read_expression(operand)
        case ast.BinOp(left=left, op=op, right=right):
            symbol = _ARITHMETIC.get(type(op))
            if symbol is None:
                refuse(*ARITHMETIC_MENDS[type(op)])
            return _arithmetic(symbol, read_expression(left), read_expression(right))
        case ast.Compare():
            return _comparison(node)
        case ast.Call():
            return _call(node)
    refuse(*node_refusal(node))


def _number(value: object) -> float:
    """Take a literal number; refuse every other literal."""
    if isinstance(value, str):
        refuse(
            "it holds a text where a number or a column belongs",
            'text may stand in Q("column"), in levels=[...], and in a test such as g == "a"',
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse("it holds a constant that is not a plain number", "write numbers such as 2 or 0.5")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    return _finite(number)


def _finite(number: float) -> float:
    if not math.isfinite(number):
        refuse("it holds a constant that is not finite in float64", "write a smaller number")
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
    return Comparison(symbol, left, right)


def _call(node: ast.Call) -> Expression:
    """Read ``I(x)``, ``Q("name")`` or ``np.f(x)``; refuse every other call by its name."""
    match node.func:
        case ast.Name(id="I"):
            return read_expression(only_argument(node, "I"))
        case ast.Name(id="Q"):
            argument = only_argument(node, "Q")
            if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
                refuse("Q() takes a column's name as a literal text", 'write Q("name")')
            return Name(argument.value)
        case ast.Attribute(value=ast.Name(id="np"), attr=name) if name in FUNCTIONS:
            inner = read_expression(only_argument(node, f"np.{name}"))
            if isinstance(inner, Number):
                with np.errstate(all="ignore"):
                    return Number(_finite(float(FUNCTIONS[name][0](inner.value))))
            return Function(name, inner)
    refuse(*function_refusal(node.func))
