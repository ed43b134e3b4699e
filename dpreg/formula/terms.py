"""The one file that talks to patsy: a formula's terms, and how their factors are coded.

patsy parses the formula, expands it to terms and picks full-rank or reduced codings. It evaluates
nothing and sees no row: factors are their texts here, and what is known of them comes from the
schema.

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
from patsy.eval import EvalFactor
from patsy.parse_formula import parse_formula
from patsy.redundancy import pick_contrasts_for_term

from dpreg.errors import FormulaError, shown
from dpreg.formula.expressions import Interval, Spec
from dpreg.formula.factors import Factor, Measure
from dpreg.formula.rows import Part
from dpreg.formula.syntax import read_factor
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

    `specs` holds what each of them says, the response first.
    """

    response: str
    terms: tuple[tuple[str, ...], ...]
    intercept: bool
    specs: Mapping[str, Spec]


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


@lru_cache(maxsize=16)  # a call reads its formula several times
def read_terms(formula: str) -> FormulaTerms:
    """Take a two-sided formula apart and read every factor, without evaluating any of it.

    What a minus takes out of the formula is read too, though not used: ``y ~ x - x.mean()`` means
    something else to patsy than to its author.

    Parameters
    ----------
    formula : str

    Returns
    -------
    FormulaTerms

    Raises
    ------
    FormulaError
        If patsy cannot parse it, it is too large, it does not have exactly one response, or a
        factor holds anything that the allowlist does not.
    """
    if not isinstance(formula, str):
        raise FormulaError('the formula must be a text such as "y ~ x + g".')
    if len(formula) > MAX_LENGTH:
        raise FormulaError(f"the formula is longer than {MAX_LENGTH} characters; shorten it.")
    described, large, reason = None, False, ""
    try:
        with silenced():  # Python warns of odd literals
            tree = parse_formula(formula)
            added = _taken_off(tree)
            large = _most_terms(tree) + len(added) > MAX_TERMS
            described = None if large else desc.ModelDesc.from_formula(tree)
    except Exception as error:  # whatever it is, it is of the formula: nothing else is known
        said = str(error).partition("\n")[0] if isinstance(error, patsy.PatsyError) else ""
        reason = f" ({said})" if said else ""
    # Raised out here: patsy's own error quotes the formula.
    if large:
        raise FormulaError(
            f"the formula expands to more than {MAX_TERMS} terms; leave interactions out."
        )
    if described is None:
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
    right = dict.fromkeys([*described.rhs_termlist, *(desc.Term([EvalFactor(x)]) for x in added)])
    if not right:
        raise FormulaError(f"formula {shown(formula)} has no terms; add one on the right of ~.")
    terms = tuple(tuple(f.name() for f in term.factors) for term in right if term != desc.INTERCEPT)
    if any(len(term) > MAX_ORDER for term in terms):
        raise FormulaError(f"the formula has an interaction of more than {MAX_ORDER} factors.")
    for code in _factors(tree):
        read_factor(code)
    response = left[0].factors[0].name()
    specs = {code: read_factor(code) for term in ((response,), *terms) for code in term}
    return FormulaTerms(response, terms, desc.INTERCEPT in right, specs)


def _taken_off(tree: Any) -> list[str]:
    """Take the plain factors that end a sum off a parse tree, since patsy descends by recursion."""
    added = []
    node = tree.args[-1]
    while node.type == "+" and len(node.args) == 2 and node.args[1].type == "PYTHON_EXPR":
        added.append(node.args[1].token.extra)
        tree.args[-1] = node = node.args[0]
    return added[::-1]


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


def code_terms(
    parsed: FormulaTerms, factors: Mapping[str, Factor]
) -> tuple[list[Term], dict[str, tuple[Part, ...]]]:
    """Code the terms of a formula: which columns each has, and of what they are products.

    Terms of the same numbers stand together, those without numbers first, and among them those of
    fewer factors first. That is patsy's order, and so are the columns' names.

    Parameters
    ----------
    parsed : FormulaTerms
    factors : mapping of str to Measure or Coded
        By their texts: those of the terms, and others that are passed over.

    Returns
    -------
    terms : list of Term
        The intercept first; exclusive as they are coded, not yet as they are stored.
    columns : dict of str to tuple of Part
        z_1, ..., z_p by their names.

    Raises
    ------
    FormulaError
        If there would be too many columns, or two of one name.
    """
    widths = {
        code: len(factor.intervals if isinstance(factor, Measure) else factor.levels)
        for code, factor in factors.items()
    }
    if sum(math.prod(widths[code] for code in codes) for codes in parsed.terms) > MAX_COLUMNS:
        raise FormulaError(f"the design would have more than {MAX_COLUMNS} columns.")
    numbers = {
        codes: frozenset(code for code in codes if isinstance(factors[code], Measure))
        for codes in (((), *parsed.terms) if parsed.intercept else parsed.terms)
    }
    nothing: frozenset[str] = frozenset()
    spanned: dict[frozenset[str], set[Any]] = {one: set() for one in (nothing, *numbers.values())}
    order = {one: place for place, one in enumerate(spanned)}
    terms: list[Term] = []
    columns: list[tuple[str, tuple[Part, ...]]] = []
    for codes in sorted(numbers, key=lambda codes: (order[numbers[codes]], len(codes))):
        own = numbers[codes]
        codings = pick_contrasts_for_term(desc.Term(codes), own, spanned[own])
        if not codes:
            terms.append(Term(INTERCEPT, (0,), (), exclusive=False))
            continue
        made = [one for coding in codings for one in _products(codes, coding, factors)]
        places = tuple(range(len(columns) + 1, len(columns) + 1 + len(made)))
        indicators = all(part.level is not None for _, parts in made for part in parts)
        exclusive = indicators and len(codings) == 1 and len(made) > 1
        terms.append(Term(":".join(codes), places, codes, exclusive))
        columns += made
    named = dict(columns)
    if len(named) < len(columns) or INTERCEPT in named:
        raise FormulaError(
            "two columns of the design would have the same name; rename a level or a column."
        )
    if (INTERCEPT,) in parsed.terms:
        raise FormulaError("two terms have the same name; rename a column called Intercept.")
    return terms, named


def _products(
    codes: Sequence[str], coding: Mapping[str, bool], factors: Mapping[str, Factor]
) -> Iterator[tuple[str, tuple[Part, ...]]]:
    """Yield a subterm's columns by name: products of its factors', the first factor's fastest.

    `coding` says which factors of levels it has, and whether with all of their levels.
    """
    own = [code for code in codes if code in coding or isinstance(factors[code], Measure)]
    choices = [_coded(factors[code], coding.get(code)) for code in own]
    for chosen in itertools.product(*reversed(choices)):
        names, parts = zip(*reversed(chosen), strict=True)
        yield ":".join(names), parts


def _coded(factor: Factor, full: bool | None) -> list[tuple[str, Part]]:
    """Return the columns of a factor by name; those of levels `full`, or less the reference."""
    if isinstance(factor, Measure):
        parts = [Part(factor, j, own, None) for j, own in enumerate(factor.intervals)]
        suffixes = [f"[{part.place}]" for part in parts] if len(parts) > 1 else [""]
    elif factor.coding == "sum":
        summed, levels = patsy.Sum(), list(factor.levels)
        coding = (summed.code_with_intercept if full else summed.code_without_intercept)(levels)
        values = np.array(coding.matrix, dtype=np.float64, order="F").T
        suffixes = coding.column_suffixes
        parts = [
            Part(factor, j, Interval(float(column.min()), float(column.max())), column)
            for j, column in enumerate(values)
        ]
    else:
        # Columns of one 1 each are pieces of one line: thousands of levels take no room for zeros.
        size, prefix, between = len(factor.levels), "" if full else "T.", Interval(0.0, 1.0)
        line = np.zeros(2 * size - 1)
        line[size - 1] = 1.0
        named = [j for j in range(size) if full or j != factor.reference]
        spelt = [level if isinstance(level, str) else repr(level) for level in factor.levels]
        suffixes = [f"[{prefix}{spelt[j]}]" for j in named]
        parts = [Part(factor, j, between, line[size - 1 - j :][:size], level=j) for j in named]
    return [(factor.code + suffix, part) for suffix, part in zip(suffixes, parts, strict=True)]
