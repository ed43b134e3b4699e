"""A saved formula in R's words: its terms, and the R text of each of their variables.

R keeps its own words for a formula that was typed in R. A result that a file brings has Python's
alone, and what each variable says is written in R's here, from its syntax tree.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from patsy import ModelDesc

from dpreg.errors import FormulaError
from dpreg.formula.expressions import FUNCTIONS
from dpreg.results.claim import ReleaseRecord
from dpreg.results.glm import GLMResults
from dpreg.results.selection import GLMSelectionResults

__all__ = ["added_in_r", "call_in_r", "in_r"]

_OPERATORS: Final[dict[type[ast.AST], str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "^",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


def in_r(formula: str) -> dict[str, Any]:
    """Take a formula apart.

    Parameters
    ----------
    formula : str
        As Python's results hold it.

    Returns
    -------
    dict
        ``response``, its code; ``terms``, the codes of each term's variables by the term's name;
        ``texts``, the R text of each variable by its code.

    Raises
    ------
    FormulaError
        If a variable has no words in R.
    """
    read = ModelDesc.from_formula(formula)
    (response,) = read.lhs_termlist
    terms = {term.name(): tuple(f.name() for f in term.factors) for term in read.rhs_termlist}
    codes = {code for codes in terms.values() for code in codes} | {response.name()}
    return {
        "response": response.name(),
        "terms": terms,
        "texts": {code: _variable(code) for code in sorted(codes)},
    }


def added_in_r(result: GLMResults | GLMSelectionResults) -> dict[str, Any]:
    """Return what the design of a family's model has beside the terms of its formula.

    That is the R text of the ``offset`` and of the ``trials``.
    """
    told: dict[str, Any] = {}
    if result.trials is not None:
        told["trials"] = _variable(result.trials)
    if result.offset is not None:
        told["offset"] = _variable(result.offset)
    return told


def call_in_r(record: ReleaseRecord, *, model: bool) -> str:
    """Write the call that made a result, from its record.

    Rows, schema, formula and estimator are names, to be given anew.
    """
    told = dict(record.arguments)
    if isinstance(family := told.get("family"), Mapping):
        told |= {"family": family["name"], "response_cap": family.get("response_cap")}
    first = ["formula"] if model else ["estimator"] * (record.call == "sample_aggregate")
    first = [f"{name} = {name}" for name in first]
    if not model and told.get("x") is not None:
        first.append(f"x = {_value(told['x'])}")
    last = ["schema = schema"] if model or told.get("schema") is not None else []
    apart = {"formula", "x", "schema", "keep", "offset", "exposure", "trials"}
    others = [f"{name} = {_value(value)}" for name, value in told.items() if name not in apart]
    return f"{record.call}({', '.join([*first, 'data = data', *others, *last])})"


def _value(value: Any) -> str:
    """Write what a call was given; a record has exact numbers as text."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str() if not re.fullmatch(r"-?[0-9.]+(e[-+]?[0-9]+)?", value):
            return json.dumps(value, ensure_ascii=False)
        case Mapping():
            return f"list({', '.join(f'{_name(k)} = {_value(v)}' for k, v in value.items())})"
        case list() | tuple():
            flat = not any(isinstance(item, Mapping | list | tuple) for item in value)
            return f"{'c' if flat else 'list'}({', '.join(map(_value, value))})"
    return str(value)


def _variable(code: str) -> str:
    return _text(ast.parse(code, mode="eval").body, code)


def _text(node: ast.expr, code: str) -> str:
    def inside(part: ast.expr) -> str:
        return _text(part, code)

    match node:
        case ast.Name(name):
            return _name(name)
        case ast.Constant(bool() as truth):
            return "TRUE" if truth else "FALSE"
        case ast.Constant(int() | float() as number):
            return repr(number)
        case ast.Constant(str() as text):
            return json.dumps(text, ensure_ascii=False)
        case ast.UnaryOp(ast.USub(), operand):
            return f"(-{inside(operand)})"
        case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
            return f"({inside(left)} {_OPERATORS[type(operator)]} {inside(right)})"
        case ast.Compare(left, [operator], [right]) if type(operator) in _OPERATORS:
            return f"({inside(left)} {_OPERATORS[type(operator)]} {inside(right)})"
        case ast.List([item]) | ast.Tuple([item]):
            return inside(item)
        case ast.List(items) | ast.Tuple(items):
            return f"c({', '.join(map(inside, items))})"
        case ast.Call(ast.Name("Q"), [ast.Constant(str() as name)], []):
            return _name(name)
        case ast.Call(ast.Name("I"), [inner], []):
            return f"I({_bare(inside(inner))})"
        case ast.Call(ast.Name("C"), [column], keywords) if _only(keywords, {"levels"}):
            return f"factor({', '.join([inside(column), *_given(keywords, code)])})"
        case ast.Call(ast.Name("bs"), [column], keywords):
            return _spline(inside(column), {k.arg: inside(k.value) for k in keywords}, code)
        case ast.Call(ast.Attribute(ast.Name("np" | "numpy"), name) | ast.Name(name), [inner], []):
            if name in FUNCTIONS:
                return f"{name}({_bare(inside(inner))})"
    _refuse(code)


def _spline(column: str, given: dict[str | None, str], code: str) -> str:
    low, high = given.pop("lower_bound", None), given.pop("upper_bound", None)
    words = {"knots": "knots", "degree": "degree", "include_intercept": "intercept"}
    if low is None or high is None or not given.keys() <= words.keys():
        _refuse(code)
    for name, text in {"degree": "3", "include_intercept": "FALSE"}.items():
        if given.get(name) == text:  # as R's own bs() has it
            del given[name]
    listed = [f"{words[name]} = {text}" for name, text in given.items() if name is not None]
    return f"bs({', '.join([column, *listed, f'Boundary.knots = c({low}, {high})'])})"


def _given(keywords: list[ast.keyword], code: str) -> list[str]:
    return [f"{keyword.arg} = {_text(keyword.value, code)}" for keyword in keywords]


def _only(keywords: list[ast.keyword], known: set[str]) -> bool:
    return all(keyword.arg in known for keyword in keywords)


def _bare(text: str) -> str:
    """Leave out brackets around a whole text: arithmetic is always written with them."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and place < len(text) - 1:
            return text
    return text[1:-1] if text.startswith("(") else text


def _name(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"


def _refuse(code: str) -> NoReturn:
    raise FormulaError(f"the term {code} of this result has no words in R: load it in Python")
