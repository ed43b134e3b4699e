"""From a formula and a schema to a design, before any row is read.

The order of things: patsy parses (`terms`), the allowlist reads every factor (`check`), factors are
bound to the schema's types and bounds (`factors`, `intervals`), patsy codes the terms, and the
bounds of each column fix its scale (`columns`). What comes out, a `Design` (`matrix`), reads rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, reduce
from operator import mul
from typing import Final

from dpreg.cells import Kind
from dpreg.columns import Declaration
from dpreg.errors import FormulaError, SchemaError, did_you_mean, shown
from dpreg.formula.bind import bind, column_types, columns_of, levels_tested
from dpreg.formula.check import Labels, Spec, read_factor
from dpreg.formula.columns import (
    INTERCEPT,
    Column,
    Term,
    resolve_keep,
    scaled_column,
    scaled_response,
)
from dpreg.formula.factors import Coded, Factor, Measure
from dpreg.formula.groups import coded_columns, layout_of_columns
from dpreg.formula.intervals import Interval, NotFiniteError
from dpreg.formula.matrix import Design
from dpreg.formula.rows import Product
from dpreg.formula.straight import short_way
from dpreg.formula.terms import CodedTerm, FormulaTerms, code_terms, read_terms
from dpreg.schema import Schema
from dpreg.sources import Source

__all__ = ["Column", "Design", "Term", "build_design", "resolve_keep", "undeclared"]

# Messages do not say whether a table holds its text as codes or as characters.
_HOLDS: Final[Mapping[Kind, str]] = {
    "string": "holds text or labels",
    "category": "holds text or labels",
    "datetime": "holds dates or times",
    "other": "holds neither numbers nor labels",
}


def build_design(
    formula: str,
    schema: Schema | Mapping[str, object],
    *,
    keep: Iterable[str] = (INTERCEPT,),
    clip: Fraction = Fraction(1),
    center: bool = True,
) -> Design:
    """Build the design of a formula from the schema alone.

    Parameters
    ----------
    formula : str
        Two-sided, in patsy's language, its factors within `dpreg.formula.refusals.ALLOWED`.
    schema : Schema
        Bounds or levels of every raw column in the formula.
    keep : iterable of str
        Terms in every model. With "Intercept" among them columns are mapped affinely to [-1, 1],
        else only divided by their largest modulus.
    clip : Fraction
        c in (0, 1]: the scaled response is clipped to [-c, c] and stored as y / c.
    center : bool
        Whether to centre the response at the middle of its bounds. It is never centred where the
        intercept is not kept: a model without one would be a model of the response less that
        middle, and predict something else than it says.

    Returns
    -------
    Design

    Raises
    ------
    FormulaError
        If the formula holds anything that the allowlist does not, or an undeclared column.
    SchemaError
        If the schema's bounds, carried through the formula, are not finite or have no width.
    ArgumentError
        If `keep` names no term of the formula.
    """
    schema = Schema.from_any(schema)
    parsed, specs = _read(formula)
    types = column_types(specs, schema)
    factors = {
        code: bind(code, spec, types, response=code == parsed.response)
        for code, spec in specs.items()
    }
    response = factors[parsed.response]
    if not isinstance(response, Measure) or len(response.intervals) != 1:
        raise FormulaError(
            f"response {shown(parsed.response)} is not one column of numbers; a two-level response "
            f"can be written as a number, as in I(1 * flag)."
        )
    regressors = {code: factors[code] for term in parsed.terms for code in term}
    coded = code_terms(parsed, regressors)
    terms = _numbered(parsed, coded)
    kept = resolve_keep(terms, keep)
    affine = INTERCEPT in kept
    centered = center and affine  # else a model without an intercept would be one of y - middle
    columns = [Column(INTERCEPT, INTERCEPT, 1.0, 1.0, 0.0, 1.0)]
    for term in coded:
        for column in term.columns:
            counts = _levels(column, regressors)
            scaled = scaled_column(
                column.name,
                term.name,
                _product_interval(column, regressors),
                centered=affine,
                indicator=0 not in counts and max(counts) > 2,
            )
            columns.append(replace(scaled, levels=0 not in counts))
    terms = [
        replace(
            term, exclusive=term.exclusive and all(columns[i].offset == 0 for i in term.columns)
        )
        for term in terms
    ]
    products = tuple(column for term in coded for column in term.columns)
    groups = coded_columns(products, columns[1:], regressors)
    scaled = scaled_response(parsed.response, response.intervals[0], clip=clip, center=centered)
    return Design(
        formula=formula,
        schema=schema,
        keep=kept,
        clip=clip,
        center=centered,
        response=scaled,
        columns=tuple(columns),
        terms=tuple(terms),
        needed=tuple(types),
        types=types,
        _factors=regressors,
        _response=response,
        layout=layout_of_columns(len(columns) + 1, groups),
        _products=products,
        _groups=groups,
        _short=short_way(products, columns[1:], regressors, (response, scaled), types),
        _rebuilt=_rebuilt,
    )


def _rebuilt(
    formula: str,
    schema: dict[str, Declaration],
    keep: tuple[str, ...],
    clip: Fraction,
    center: bool,
) -> Design:
    """Build a pickled design again from the arguments that it kept."""
    return build_design(formula, Schema(schema), keep=keep, clip=clip, center=center)


def undeclared(formula: str, schema: Schema, source: Source) -> tuple[str, ...]:
    """List the columns that the formula reads and the schema does not declare.

    Each is read as numbers, whatever the table calls it: `dpreg.sources.base`. Their bounds have
    to come from elsewhere (a private estimate) before a design can be built.

    Parameters
    ----------
    formula : str
    schema : Schema
    source : Source
        Its column names are looked at, never its rows, and its kinds to refuse columns that hold no
        numbers.

    Returns
    -------
    tuple of str
        In the order of the formula, the response first.

    Raises
    ------
    FormulaError
        As `build_design`; if a column is neither declared nor in the table; if the response stands
        on the right-hand side too.
    SchemaError
        If a column is used as labels, or the table says that it holds some: its levels have to be
        declared; the message says how.
    """
    parsed, specs = _read(formula)
    _check_response(parsed, specs)
    found: dict[str, None] = {}
    for code, spec in specs.items():
        for column in columns_of(spec):
            if column in schema or (isinstance(spec, Labels) and spec.levels is not None):
                continue
            if column not in source.names:
                near = did_you_mean(
                    column,
                    [*source.names, *schema],
                    " (variables of the calling program are not seen).",
                )
                raise FormulaError(
                    f"factor {shown(code)}: {shown(column)} is neither a declared column nor one "
                    f"of the table's{near}"
                )
            if isinstance(spec, Labels) or column in levels_tested(spec):
                raise _needs_levels(column, "is used as labels")
            if source.kind(column) in _HOLDS:
                raise _needs_levels(column, _HOLDS[source.kind(column)])
            found[column] = None
    return tuple(found)


def _needs_levels(column: str, why: str) -> SchemaError:
    return SchemaError(
        f"column {shown(column)} {why} and is undeclared; declare its levels in the schema, as in "
        f'{{{shown(column)}: {{"levels": ["a", "b"]}}}}, or bool.'
    )


def _read(formula: str) -> tuple[FormulaTerms, dict[str, Spec]]:
    """Take a formula apart and check every factor, the response first.

    What a minus takes out of the formula is checked too, though not used: ``y ~ x - x.mean()``
    means something else to patsy than to its author.
    """
    parsed = read_terms(formula)
    for code in parsed.mentioned:
        read_factor(code)
    codes = dict.fromkeys([parsed.response, *(code for term in parsed.terms for code in term)])
    return parsed, {code: read_factor(code) for code in codes}


def _check_response(parsed: FormulaTerms, specs: Mapping[str, Spec]) -> None:
    """Refuse a formula that explains the response by itself."""
    response = columns_of(specs[parsed.response])
    for code in (code for term in parsed.terms for code in term):
        if both := [column for column in columns_of(specs[code]) if column in response]:
            raise FormulaError(
                f"factor {shown(code)}: {shown(both[0])} is the response, so it cannot stand on "
                "the right-hand side too; leave it out there."
            )


def _numbered(parsed: FormulaTerms, coded: Sequence[CodedTerm]) -> list[Term]:
    """Give the terms their places in z."""
    terms = [Term(INTERCEPT, (0,), (), exclusive=False)] if parsed.intercept else []
    first = 1
    for term in coded:
        places = tuple(range(first, first + len(term.columns)))
        terms.append(Term(term.name, places, term.factors, term.exclusive))
        first += len(places)
    names = [term.name for term in terms]
    if len(set(names)) < len(names):
        raise FormulaError("two terms have the same name; rename a column called Intercept.")
    return terms


def _levels(column: Product, factors: Mapping[str, Factor]) -> list[int]:
    """Return how many levels each factor of a column has, 0 where it has none."""
    own = (factors[code] for code, _, _ in column.parts)
    return [len(factor.levels) if isinstance(factor, Coded) else 0 for factor in own]


def _product_interval(column: Product, factors: Mapping[str, Factor]) -> Interval:
    """Multiply the intervals of a column's parts."""
    parts = []
    for code, place, levels in column.parts:
        factor = factors[code]
        if levels is not None:
            parts.append(Interval(float(levels.min()), float(levels.max())))
        elif isinstance(factor, Measure):
            parts.append(factor.intervals[place])
    try:
        return _product(tuple(parts))
    except NotFiniteError:
        raise SchemaError(
            f"column {shown(column.name)} is not bounded in float64 under the declared bounds; "
            f"narrow the bounds of the columns in it."
        ) from None


@lru_cache(maxsize=256)  # columns of one factor are alike
def _product(parts: tuple[Interval, ...]) -> Interval:
    return reduce(mul, parts, Interval(1.0, 1.0))
