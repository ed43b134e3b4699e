"""What an R formula says of one variable, or a test of rows, in patsy's language.

R's own `terms()` reads the operators of a formula; here each variable of the result is translated:
a column, or an expression such as ``log(x)``. R sends it as a tree: ``{"name": column}``,
``{"value": what is written out}`` or ``{"call": function, "arguments": trees}``, each argument with
its name under "as". What has no translation that reads one row at a time is refused, with its name
and why.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from dpreg.errors import ArgumentError, DpregError, FormulaError, shown
from dpreg_bridge.words import shortest

__all__ = ["codes", "row_test"]

Tree = dict[str, Any]

_FUNCTIONS: Final = frozenset({"log", "log1p", "exp", "sqrt", "abs"})
_COMPARISONS: Final = frozenset({"<", "<=", ">", ">=", "==", "!="})
_OPERATORS: Final = {sign: sign for sign in ("+", "-", "*", "/", *_COMPARISONS)} | {"^": "**"}
_RESERVED: Final = frozenset(
    {*keyword.kwlist, *keyword.softkwlist, "type", "C", "I", "Q", "bs", "np", "numpy", "Intercept"}
)

_ACROSS: Final = "it is computed across rows, and a private fit may read each row on its own only; "
_PUBLIC_BREAKS: Final = "write public breaks: cut(x, c(0, 10, 20))"
_BY_COLUMN: Final = "is not offered; compute such a column beforehand and declare its bounds"
_REFUSALS: Final[dict[str, str]] = {
    "poly": _ACROSS + "write poly(x, 2, raw = TRUE), or powers: x + I(x^2)",
    "ns": _ACROSS + "write bs(x, knots = c(2, 5), Boundary.knots = c(0, 9)) with public numbers",
    "s": _ACROSS + "write bs() with public knots",
    "cut": "it makes labels, and stands by itself: write y ~ cut(x, c(0, 10, 20))",
    "ordered": "polynomial contrasts are not offered; write the column itself and declare its "
    "levels in order, or make a number of it",
    "C": "other contrasts are not offered; factors have treatment contrasts, the first level first",
    "ifelse": "conditions are not offered; multiply by a comparison: I((x > 1) * z)",
    "%%": f"the remainder {_BY_COLUMN}",
    "%/%": f"whole division {_BY_COLUMN}",
    "!": "turn the comparison around",
    "$": "name the column alone: it is looked up in data",
    "cbind": "a response is one column of numbers",
    ":": "a sequence is not offered",
    "relevel": "declare the levels in the schema with the reference level first",
    **dict.fromkeys(
        ("scale", "center"),
        _ACROSS + "write the column itself: dpreg scales by the declared bounds",
    ),
    **dict.fromkeys(("[", "[["), "it picks rows by index; write the column itself"),
    **dict.fromkeys(("&", "&&"), "write a product of comparisons: I((x > 1) * (z < 2))"),
    **dict.fromkeys(("|", "||"), "write I((x > 1) + (z < 2) > 0)"),
    **dict.fromkeys(
        (
            *("mean", "median", "sd", "var", "min", "max", "sum", "rank", "cumsum"),
            *("diff", "lag", "ave", "quantile"),
        ),
        _ACROSS + "put a public number in its place, or compute the column beforehand",
    ),
}


def codes(variables: list[Tree], known: Any, truth: bool = False) -> tuple[str, ...]:
    """Translate variables of a formula; each has R's label under "shown" and its "tree".

    With `truth` the first is a response that may be a comparison, which becomes a number.
    """
    names = {known} if isinstance(known, str) else {*(known or ())}
    found: list[str] = []
    for one in variables:
        reader = _Reader(names, FormulaError, f"term {shown(one['shown'])}: ")
        code = reader.variable(one["tree"], one["shown"])
        if truth and not found and _core(one["tree"]).get("call") in _COMPARISONS:
            code = f"I(1 * ({code[2:-1]}))"
        found.append(code)
    return tuple(found)


def row_test(tree: Tree) -> str:
    """Translate a test of the columns of a row; dpreg says which it does not know."""
    return _Reader(_Anything(), ArgumentError, "subset: ").test(tree)


class _Anything:
    def __contains__(self, _: object) -> bool:
        return True


def _core(tree: Tree) -> Tree:
    while tree.get("call") in ("I", "("):
        (tree,) = tree["arguments"]
    return tree


def _name(name: str) -> str:
    """Write a column's name so that patsy takes it for one."""
    plain = re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) and name not in _RESERVED
    return name if plain else f"Q({_text(name)})"


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _number(number: float) -> str:
    return shortest(float(number)) if math.isfinite(number) else "nan"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the columns that are `known`; `error`, whose text begins with `place`, refuses."""

    known: Container[str]
    error: Callable[[str], DpregError]
    place: str

    def refuse(self, reason: str) -> NoReturn:
        raise self.error(f"{self.place}{reason}.")

    def variable(self, tree: Tree, label: str) -> str:
        """Translate what stands between ``+``, ``:`` and ``~``."""
        match tree.get("call"):
            case None:
                return self.expression(tree)
            case "I":
                return f"I({self.expression(tree)})"
            case "factor" | "as.factor":
                return self.labels(tree)
            case "bs":
                return self.spline(tree)
            case "cut":
                return self.bins(tree, label)
            case name:
                code = self.expression(tree)
                # patsy gives operators outside I() a meaning of its own.
                return code if name in _FUNCTIONS and code.startswith("np.") else f"I({code})"

    def expression(self, tree: Tree) -> str:
        match tree:
            case {"name": str(name)}:
                return self.column(name)
            case {"value": str(text)}:
                return _text(text)
            case {"value": value} if _is_number(value):
                return _number(value)
            case {"call": "(", "arguments": [inner]}:
                return f"({self.expression(inner)})"
            case {"call": "I", "arguments": [inner]}:
                return self.expression(inner)
            case {"call": sign, "arguments": [inner]} if sign in _OPERATORS:
                return f"{_OPERATORS[sign]}{self.expression(inner)}"
            case {"call": sign, "arguments": [left, right]} if sign in _OPERATORS:
                return f"{self.expression(left)} {_OPERATORS[sign]} {self.expression(right)}"
            case {"call": "log", "arguments": [inner, base]}:
                if not _is_number(base.get("value")):
                    self.refuse("the base of log() must be a number")
                return f"(np.log({self.expression(inner)}) / np.log({_number(base['value'])}))"
            case {"call": "log2" | "log10" as name, "arguments": [inner]}:
                return f"(np.log({self.expression(inner)}) / np.log({name[3:]}))"
            case {"call": name, "arguments": [inner]} if name in _FUNCTIONS:
                return f"np.{name}({self.expression(inner)})"
            case {"call": ""}:
                self.refuse("it calls something that has no plain name")
            case {"call": name} if name in _FUNCTIONS or name in ("I", "log2", "log10"):
                self.refuse(f"{name}() takes one argument here")
            case {"call": name}:
                self.refuse(
                    _REFUSALS.get(name)
                    or f"the function {name}() is not offered; a term may hold columns, numbers, "
                    "+ - * / ^, comparisons, log, log2, log10, log1p, exp, sqrt, abs, I(), "
                    "factor(), cut() with public breaks, poly() with raw = TRUE, and bs() with "
                    "public knots"
                )
        self.refuse("it holds what is not a number, text or column")

    def test(self, tree: Tree) -> str:
        match tree:
            case {"value": bool(value)}:
                return str(value)
            case {"name": str(name)}:
                return _name(name)
            case {"call": "&" | "&&" | "|" | "||" as sign, "arguments": [left, right]}:
                return f"({self.test(left)}) {'and' if '&' in sign else 'or'} ({self.test(right)})"
            case {"call": "(", "arguments": [inner]}:
                return f"({self.test(inner)})"
            case {"call": "!", "arguments": [inner]}:
                return f"not ({self.test(inner)})"
            case {"call": "%in%", "arguments": [left, right]}:
                return f"{self.plain(left)} in {self.listed(right, 'what follows %in%')}"
            case {"call": "==" | "!=" as sign, "arguments": [left, right]}:
                return f"{self.plain(left)} {sign} {self.plain(right)}"
        return self.plain(tree)

    def plain(self, tree: Tree) -> str:
        value = tree.get("value")
        return str(value) if isinstance(value, bool) else self.expression(tree)

    def column(self, name: str) -> str:
        if name not in self.known:
            if name in ("T", "F", "pi"):
                self.refuse(f"write the number in place of {name}")
            self.refuse(
                f"{shown(name)} is not a column of data (variables outside data are not seen)"
            )
        return _name(name)

    def labels(self, tree: Tree) -> str:
        """Translate ``factor(g)`` or ``factor(g, levels = c("a", "b"))``."""
        given = self.matched(
            tree, ("x", "levels"), "factor() takes a column and, if need be, levels"
        )
        if "name" not in given.get("x", {}):
            self.refuse("factor() takes a column")
        column = self.column(given["x"]["name"])
        if "levels" not in given:
            return f"C({column})"
        return f"C({column}, levels={self.listed(given['levels'], 'levels')})"

    def spline(self, tree: Tree) -> str:
        """Translate ``bs(x, knots = c(2, 5), Boundary.knots = c(0, 9))``."""
        known = ("x", "df", "knots", "degree", "intercept", "Boundary.knots")
        given = self.matched(tree, known, "bs() has an argument that is not known")
        if "df" in given or "Boundary.knots" not in given:
            self.refuse(
                "bs() finds knots and bounds in the rows unless they are public; write "
                "bs(x, knots = c(2, 5), Boundary.knots = c(0, 9)) with public numbers, or leave "
                "out Boundary.knots where the schema declares the bounds of x"
            )
        bounds = self.literal(given["Boundary.knots"], "Boundary.knots")
        if len(bounds) != 2:
            self.refuse("Boundary.knots must be two numbers")
        intercept = given.get("intercept", {"value": False}).get("value")
        if not isinstance(intercept, bool):
            self.refuse("intercept must be TRUE or FALSE")
        (degree,) = self.literal(given.get("degree", {"value": 3}), "degree")
        knots = self.listed(given["knots"], "knots") if "knots" in given else "[]"
        return (
            f"bs({self.expression(given['x'])}, knots={knots}, degree={_number(degree)}, "
            f"include_intercept={intercept}, lower_bound={_number(bounds[0])}, "
            f"upper_bound={_number(bounds[1])})"
        )

    def bins(self, tree: Tree, label: str) -> str:
        """Check ``cut(x, breaks)``, which R makes a column of, by the label as its name."""
        known = ("x", "breaks", "labels", "include.lowest", "right", "dig.lab", "ordered_result")
        given = self.matched(tree, known, "cut() has an argument that is not known")
        if "name" not in given.get("x", {}):
            self.refuse("cut() takes a column")
        self.column(given["x"]["name"])
        if "breaks" not in given:
            self.refuse("cut() needs breaks, written out: cut(x, c(0, 10, 20))")
        for name, one in given.items():
            if name not in ("x", "breaks") and not isinstance(one.get("value"), bool):
                self.literal(one, name)
        breaks = self.literal(given["breaks"], "breaks")
        if len(set(breaks)) < max(len(breaks), 2) or not all(map(_is_number, breaks)):
            self.refuse(f"{_ACROSS}bins would be laid over the range of the rows; {_PUBLIC_BREAKS}")
        if len(breaks) < 3:
            self.refuse("cut() needs three breaks at least, for two bins")
        if given.get("labels", {}).get("value") is False:
            self.refuse("labels = FALSE makes numbers of bins; leave it out")
        if given.get("ordered_result", {}).get("value") is True:
            self.refuse(_REFUSALS["ordered"])
        return _name(label)

    def matched(self, tree: Tree, known: tuple[str, ...], otherwise: str) -> dict[str, Tree]:
        """Give arguments their names as R does: by the name or its beginning, else in order."""
        given: dict[str, Tree] = {}
        for one in (one for one in tree["arguments"] if one["as"]):
            meant = [name for name in known if name.startswith(one["as"])]
            meant = [one["as"]] if one["as"] in known else meant
            if len(meant) != 1 or meant[0] in given:
                self.refuse(otherwise)
            given[meant[0]] = one
        free = [name for name in known if name not in given]
        rest = [one for one in tree["arguments"] if not one["as"]]
        if len(rest) > len(free):
            self.refuse(otherwise)
        return given | dict(zip(free, rest, strict=False))

    def literal(self, tree: Tree, what: str) -> list[Any]:
        """Return numbers or texts that are written in the formula: 2, -1, "a", c(1, 2), 1:3."""
        match tree:
            case {"value": list(values)}:
                return values
            case {"value": value} if value is not None and not isinstance(value, bool):
                return [value]
            case {"call": "c" | "(", "arguments": parts}:
                return [value for part in parts for value in self.literal(part, what)]
            case {"call": "-", "arguments": [inner]}:
                return [-value for value in self.literal(inner, what) if _is_number(value)]
            case {"call": ":", "arguments": [first, last]}:
                (low,), (high,) = self.literal(first, what), self.literal(last, what)
                step = 1 if high >= low else -1
                return [low + step * j for j in range(math.floor(abs(high - low)) + 1)]
        self.refuse(f"{what} must be written out, such as c(1, 2)")

    def listed(self, tree: Tree, what: str) -> str:
        values = self.literal(tree, what)
        return f"[{', '.join(_text(v) if isinstance(v, str) else _number(v) for v in values)}]"
