"""The one file that talks to patsy: a formula's terms, and how their factors are coded.

patsy parses the formula, orders its terms, picks full-rank or reduced codings and names columns. It
evaluates nothing: factors go in as objects of our own, whose types and levels come from the schema,
and patsy looks at one made-up row of each, never at a table.

Tested in `tests/formula/test_against_patsy.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import patsy
from patsy import desc
from patsy.categorical import C
from patsy.contrasts import ContrastMatrix
from patsy.eval import EvalEnvironment
from patsy.parse_formula import parse_formula

from dpreg.arrays import Floats
from dpreg.errors import FormulaError, shown
from dpreg.formula.factors import Factor, Measure
from dpreg.formula.rows import Product
from dpreg.running import silenced

INTERCEPT: Final = "Intercept"
"""Name of the constant term, as patsy spells it."""
MAX_LENGTH: Final = 100_000
"""Longest formula, in characters."""
MAX_TERMS: Final = 10_000
"""Most terms that a formula may expand to, counted before it is expanded."""
MAX_COLUMNS: Final = 10_000
"""Most columns that a design may have, counted before it is built."""
MAX_ORDER: Final = 10
"""Most factors in one interaction."""


@dataclass(frozen=True, slots=True)
class FormulaTerms:
    """A formula taken apart: factors are their texts, as patsy spaces them.

    `mentioned` holds every factor in the text, those too that a minus takes out of the terms.
    """

    response: str
    terms: tuple[tuple[str, ...], ...]
    intercept: bool
    mentioned: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """One term of the formula.

    Attributes
    ----------
    name : str
        patsy's name, such as ``a:b``.
    columns : tuple of int
        Its indices into z; the intercept's is (0,).
    factors : tuple of str
        Names of its factors; none for the intercept. A term belongs below another under strong
        hierarchy when its factors are a subset of the other's.
    exclusive : bool
        True where its columns, two or more, are stored as 0/1 and at most one of them is not zero
        on any row.
    """

    name: str
    columns: tuple[int, ...]
    factors: tuple[str, ...]
    exclusive: bool


def read_terms(formula: str) -> FormulaTerms:
    """Take a two-sided formula apart, without evaluating any of it.

    Parameters
    ----------
    formula : str

    Returns
    -------
    FormulaTerms

    Raises
    ------
    FormulaError
        If patsy cannot parse it, it is too large, or it does not have exactly one response.
    """
    if not isinstance(formula, str):
        raise FormulaError('the formula must be a text such as "y ~ x + g".')
    if len(formula) > MAX_LENGTH:
        raise FormulaError(f"the formula is longer than {MAX_LENGTH} characters; shorten it.")
    return _taken_apart(formula)


@lru_cache(maxsize=16)  # a call reads its formula several times
def _taken_apart(formula: str) -> FormulaTerms:
    try:
        with silenced():  # Python warns of odd literals
            tree = _balanced(parse_formula(formula))
            if _most_terms(tree) > MAX_TERMS:
                raise FormulaError(
                    f"the formula expands to more than {MAX_TERMS} terms; leave interactions out."
                )
            described = desc.ModelDesc.from_formula(tree)
    except FormulaError:
        raise
    except (
        Exception
    ) as error:  # whatever patsy stumbles over is in the formula: nothing else is known
        said = str(error).partition("\n")[0] if isinstance(error, patsy.PatsyError) else ""
        reason, described = f" ({said})" if said else "", None
    if described is None:  # raised here: patsy's own error quotes the formula
        raise FormulaError(
            f"formula {shown(formula)} cannot be parsed{reason}; write it as in "
            f'"y ~ x + g + x:g", with arithmetic inside I().'
        )
    left = described.lhs_termlist
    if len(left) != 1 or len(left[0].factors) != 1:
        raise FormulaError(
            f"formula {shown(formula)} must have one response on the left of ~, as in "
            f'"y ~ x" or "np.log(y) ~ x"; put arithmetic inside I().'
        )
    right = described.rhs_termlist
    if not right:
        raise FormulaError(f"formula {shown(formula)} has no terms; add one on the right of ~.")
    terms = tuple(tuple(f.name() for f in term.factors) for term in right if term != desc.INTERCEPT)
    if any(len(term) > MAX_ORDER for term in terms):
        raise FormulaError(f"the formula has an interaction of more than {MAX_ORDER} factors.")
    mentioned = tuple(dict.fromkeys(_factors(tree)))
    return FormulaTerms(left[0].factors[0].name(), terms, desc.INTERCEPT in right, mentioned)


def _factors(node: Any) -> Iterator[str]:
    """Yield the text of every factor in a parse tree."""
    if node.type == "PYTHON_EXPR":
        yield node.token.extra
    for argument in node.args:
        yield from _factors(argument)


def _most_terms(node: Any) -> int:
    """Count the terms that a parse tree expands to at most, without expanding it."""
    counts = [_most_terms(argument) for argument in node.args]
    if node.type == "**" and len(counts) == 2:
        digits = str(node.args[1].token.extra)
        power = min(counts[0], int(digits)) if digits.isdigit() and len(digits) < 9 else counts[0]
        total = 0
        for order in range(1, power + 1):
            total += math.comb(counts[0], order)
            if total > MAX_TERMS:
                break
        return total
    if node.type in (":", "*") and len(counts) == 2:
        return counts[0] * counts[1] + (sum(counts) if node.type == "*" else 0)
    return max(1, sum(counts))


def _balanced(tree: Any) -> Any:
    """Turn a long sum of plain factors into a shallow tree, since patsy descends by recursion.

    ``((1 + a) + b) + c`` becomes ``1 + (a + (b + c))``, the bracket halved again and again: sums of
    plain factors are associative. All that stands before them stays as it is.
    """
    if tree.type != "~" or len(tree.args) != 2:
        return tree
    node, leaves = tree.args[1], []
    while node.type == "+" and len(node.args) == 2 and node.args[1].type == "PYTHON_EXPR":
        leaves.append(node)
        node = node.args[0]
    if not leaves:
        return tree

    def joined(pluses: Sequence[Any]) -> Any:
        if len(pluses) == 1:
            return pluses[0].args[1]
        half = len(pluses) // 2
        plus = pluses[half]
        return type(plus)(
            plus.type, plus.token, [joined(pluses[:half]), joined(pluses[half:])], plus.origin
        )

    leaves.reverse()
    first = leaves[0]
    right = type(first)(first.type, first.token, [node, joined(leaves)], first.origin)
    return type(tree)(tree.type, tree.token, [tree.args[0], right], tree.origin)


class _SchemaFactor:
    """A factor as patsy's protocol wants it; its one made-up row shows type, levels and coding."""

    origin = None

    def __init__(self, factor: Factor) -> None:
        self.factor = factor

    def name(self) -> str:
        return self.factor.code

    def memorize_passes_needed(self, state: object, eval_env: object) -> int:
        return 0

    def eval(self, state: object, data: object) -> Any:
        factor = self.factor
        if isinstance(factor, Measure):
            return np.zeros((1, len(factor.intervals)))
        coding = patsy.Sum() if factor.coding == "sum" else _Treatment(factor.reference)
        return C([factor.levels[0]], contrast=coding, levels=list(factor.levels))


class _Indicators(ContrastMatrix):  # type: ignore[misc]
    """A coding in columns of one 1 each, which takes no room for its zeros."""

    def __init__(self, levels: Sequence[Any], ones: Sequence[int], prefix: str) -> None:
        names = [levels[one] for one in ones]
        suffixes = [f"[{prefix}{name if isinstance(name, str) else repr(name)}]" for name in names]
        # patsy looks at its shape alone.
        super().__init__(np.broadcast_to(np.nan, (len(levels), len(ones))), suffixes)
        self.ones = ones
        self._line = np.zeros(2 * len(levels) - 1)
        self._line[len(levels) - 1] = 1.0

    def column(self, place: int) -> Floats:
        """Return the value of a column at each level."""
        levels = (len(self._line) + 1) // 2
        start = levels - 1 - self.ones[place]
        return self._line[start : start + levels]


class _Treatment:
    """`patsy.Treatment`, for thousands of levels."""

    def __init__(self, reference: Any) -> None:
        self.reference = reference

    def code_with_intercept(self, levels: list[Any]) -> ContrastMatrix:
        return _Indicators(levels, range(len(levels)), "")

    def code_without_intercept(self, levels: list[Any]) -> ContrastMatrix:
        reference = self.reference
        if reference is None:
            left_out = 0
        elif reference in levels:
            left_out = levels.index(reference)
        else:
            left_out = range(len(levels))[reference]  # a place, as `factors` has checked
        return _Indicators(levels, [j for j in range(len(levels)) if j != left_out], "T.")


def code_terms(
    parsed: FormulaTerms, factors: Mapping[str, Factor]
) -> tuple[list[Term], tuple[Product, ...]]:
    """Code the terms of a formula: which columns each has, and of what they are products.

    Parameters
    ----------
    parsed : FormulaTerms
    factors : mapping of str to Measure or Coded
        The factors on the right of ``~`` by their texts.

    Returns
    -------
    terms : list of Term
        In patsy's order, the intercept first.
    products : tuple of Product
        Of z_1, ..., z_p.

    Raises
    ------
    FormulaError
        If there would be too many columns, or two of one name.
    """
    if sum(math.prod(_width(factors[f]) for f in term) for term in parsed.terms) > MAX_COLUMNS:
        raise FormulaError(f"the design would have more than {MAX_COLUMNS} columns.")
    wrapped = {code: _SchemaFactor(factor) for code, factor in factors.items()}
    known = [desc.Term([wrapped[code] for code in term]) for term in parsed.terms]
    if parsed.intercept:
        known.insert(0, desc.INTERCEPT)
    closed = EvalEnvironment([{}])
    try:
        (info,) = patsy.design_matrix_builders([known], lambda: iter([{}]), closed)
    except ValueError:
        raise FormulaError(
            "two columns of the design would have the same name; rename a level or a column."
        ) from None
    column_names = iter(info.column_names)
    terms: list[Term] = []
    products: list[Product] = []
    for term, subterms in info.term_codings.items():
        columns = [
            Product(name, parts)
            for subterm in subterms
            for parts, name in zip(_products(subterm, factors), column_names, strict=False)
        ]
        if term == desc.INTERCEPT:
            terms.append(Term(INTERCEPT, (0,), (), exclusive=False))
            continue
        places = tuple(range(len(products) + 1, len(products) + 1 + len(columns)))
        codes = tuple(factor.name() for factor in term.factors)
        exclusive = len(subterms) == 1 and len(columns) > 1 and _exclusive(subterms[0])
        terms.append(Term(term.name(), places, codes, exclusive))
        products += columns
    if len({term.name for term in terms}) < len(terms):
        raise FormulaError("two terms have the same name; rename a column called Intercept.")
    return terms, tuple(products)


def _width(factor: Factor) -> int:
    return len(factor.intervals) if isinstance(factor, Measure) else len(factor.levels)


def _products(
    subterm: Any, factors: Mapping[str, Factor]
) -> Iterator[tuple[tuple[str, int, Floats | None], ...]]:
    """Yield the parts of each column of a subterm, the first factor's columns running fastest."""
    choices: list[list[tuple[str, int, Floats | None]]] = []
    for factor in subterm.factors:
        code, coding = factor.name(), subterm.contrast_matrices.get(factor)
        columns: list[Floats | None]
        if coding is None:
            columns = [None] * _width(factors[code])
        elif isinstance(coding, _Indicators):
            columns = [coding.column(place) for place in range(len(coding.ones))]
        else:
            columns = [*np.array(coding.matrix, dtype=np.float64, order="F").T]
        choices.append([(code, place, column) for place, column in enumerate(columns)])
    for product in itertools.product(*reversed(choices)):
        yield product[::-1]


def _exclusive(subterm: Any) -> bool:
    """Whether a subterm's columns are 0/1 with at most one that is not zero."""
    codings = (subterm.contrast_matrices.get(factor) for factor in subterm.factors)
    return all(isinstance(coding, _Indicators) for coding in codings)
