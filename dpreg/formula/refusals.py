"""What the allowlist refuses: for each piece of syntax a reason, and a way around it.

Tested in `tests/formula/test_check.py`.
"""

from __future__ import annotations

import ast
from typing import Final

__all__ = ["ALLOWED", "ARITHMETIC_MENDS", "function_refusal", "node_refusal"]

ALLOWED: Final = (
    "a factor may hold declared columns, numbers, + - * / **, comparisons, "
    "np.log, np.log1p, np.exp, np.sqrt, np.abs, I(), Q(), C(), and bs() with literal knots and "
    "bounds"
)

_BEFOREHAND: Final = "compute such a column beforehand and declare its bounds"
_SCALED: Final = "write the column itself: dpreg scales every column by its declared bounds"
_SPLINE: Final = (
    "write bs(x, knots=[2, 5], lower_bound=0, upper_bound=9) with public numbers instead"
)

ARITHMETIC_MENDS: Final[dict[type[ast.operator], tuple[str, str]]] = {
    ast.Mod: ("the remainder % is not offered", _BEFOREHAND),
    ast.FloorDiv: ("the whole division // is not offered", _BEFOREHAND),
    ast.MatMult: ("the matrix product @ mixes rows", "write products of columns with *"),
    ast.BitAnd: ("& is not offered", "multiply comparisons: (x > 1) * (z < 2)"),
    ast.BitOr: ("| is not offered", "compare a sum of comparisons: (x > 1) + (z < 2) > 0"),
    ast.BitXor: ("^ is not offered", "write ** for a power"),
    ast.LShift: ("<< is not offered", "write * 2 ** k"),
    ast.RShift: (">> is not offered", "write / 2 ** k"),
}

_STATEFUL: Final = "{name} learns from all the rows"
_FUNCTIONS: Final[dict[str, tuple[str, str]]] = {
    **dict.fromkeys(("center", "standardize", "scale", "demean"), (_STATEFUL, _SCALED)),
    **dict.fromkeys(("cr", "cc", "te", "ns", "s"), (_STATEFUL, _SPLINE)),
    "bs": ("bs() inside another expression is not offered", "let it stand alone as a factor"),
    "C": ("C() inside another expression is not offered", "let it stand alone as a factor"),
    "poly": ("{name} learns from all the rows", "write powers: x + I(x**2)"),
    **dict.fromkeys(
        ("max", "min", "sum", "mean", "median", "std", "var", "sort", "rank", "cumsum", "diff"),
        (
            "{name} looks across rows, and a row may be read on its own only",
            "use a public number in its place, or " + _BEFOREHAND,
        ),
    ),
    **{
        name: ("{name} is not known by that name", f"write np.{name}(x)")
        for name in ("log", "log1p", "exp", "sqrt")
    },
    "abs": ("{name} is not known by that name", "write np.abs(x)"),
}

_NODES: Final[dict[type[ast.expr], tuple[str, str]]] = {
    ast.Attribute: ("it reaches for an attribute", ALLOWED),
    ast.Subscript: (
        "it picks rows or items by index, and a row may be read on its own only",
        "write the column itself",
    ),
    ast.Lambda: ("it defines a function", ALLOWED),
    ast.NamedExpr: ("it assigns a name", "write the expression in full where it is needed"),
    ast.JoinedStr: ("it formats a text", 'write Q("name") with a literal name'),
    ast.IfExp: ("it branches", "multiply by a comparison: (x > 1) * z"),
    ast.BoolOp: ("`and` and `or` are not offered", "multiply comparisons: (x > 1) * (z < 2)"),
    ast.UnaryOp: ("`not` and ~ are not offered", "turn the comparison around"),
    ast.Starred: ("it unpacks arguments", ALLOWED),
}


def function_refusal(function: ast.expr) -> tuple[str, str]:
    """Say why a call is refused, and what to write instead.

    Parameters
    ----------
    function : ast.expr
        What stands before the opening bracket.

    Returns
    -------
    reason, mend : str
    """
    match function:
        case ast.Name(id=name):
            shown = known = name
        case ast.Attribute(value=ast.Name(id=owner), attr=known):
            shown = f"{owner}.{known}"
            if owner == "np" and known in ("log10", "log2"):
                return f"{shown} is not offered", "write np.log(x) / np.log(10), or the like"
            if owner not in ("np", "numpy", "math"):
                return "it calls a method of a column", ALLOWED
        case _:
            return "it calls something that has no plain name", ALLOWED
    reason, mend = _FUNCTIONS.get(known, ("the function {name} is not offered", ALLOWED))
    return reason.format(name=shown[:60]), mend


def node_refusal(node: ast.expr) -> tuple[str, str]:
    """Say why a piece of syntax is refused, and what to write instead.

    Parameters
    ----------
    node : ast.expr

    Returns
    -------
    reason, mend : str
    """
    return _NODES.get(type(node), (f"it holds Python's {type(node).__name__}", ALLOWED))
