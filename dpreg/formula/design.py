"""From a formula and a schema to a design, before any row is read, and from rows to its columns.

The order of things: patsy parses (`terms`), the allowlist reads every factor (`syntax`), factors
are bound to the schema's types and bounds (`factors`, `expressions`), patsy codes the terms, and
the bounds of each column fix its scale. What comes out, a `Design`, knows public facts alone;
`Design.block` then does to each row that is read what depends on that row alone (`rows`).

Tested in `tests/formula/test_design.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.arrays import Bools, Floats, to_grid
from dpreg.cells import Kind
from dpreg.columns import Columns
from dpreg.errors import ArgumentError, FormulaError, SchemaError, did_you_mean, shown
from dpreg.formula.expressions import Labels, names
from dpreg.formula.factors import Coded, Factor, Measure, bind, column_types
from dpreg.formula.rows import (
    CodedColumns,
    Column,
    clean_cells,
    coded_columns,
    factor_values,
    multiplied,
    scale,
    scaled_column,
    scaled_response,
)
from dpreg.formula.terms import INTERCEPT, Term, code_terms, read_terms
from dpreg.grouped import CodedRows, Layout
from dpreg.schema import Schema
from dpreg.sources import LocalSource, Source, as_source

# Messages do not say whether a table holds its text as codes or as characters.
_HOLDS: Final[Mapping[Kind, str]] = {
    "string": "holds text or labels",
    "category": "holds text or labels",
    "datetime": "holds dates or times",
    "other": "holds neither numbers nor labels",
}


@dataclass(frozen=True, slots=True, repr=False)
class Design:
    """The scaled columns of a formula: public facts, and the way from rows to them.

    The row vector of a complete row is z = (1, x_1, ..., x_p, y), every cell in [-1, 1]; of any
    other row it is 0. Holds no row and nothing computed from rows; pickling keeps the arguments of
    `build_design` and builds it again.

    Attributes
    ----------
    formula : str
        The formula as it was typed.
    schema : Schema
        Bounds and levels of the raw columns.
    keep : tuple of str
        Terms kept in every model.
    clip : Fraction
        c: the scaled response is clipped to [-c, c].
    center : bool
        Whether the response is centred at the middle of its bounds.
    response : Column
        Its width includes `clip`.
    columns : tuple of Column
        Index j is index j of z; ``columns[0]`` is the constant, named "Intercept".
    terms : tuple of Term
        "Intercept" first, where the formula has it.
    needed : tuple of str
        Raw columns read, the response's first.
    types : mapping of str to ColumnType
        How each of them is read.
    has_intercept : bool
        Whether the formula has an intercept.
    size : int
        D: the cells of a row vector.
    layout : Layout
        Which columns `coded` leaves as codes.
    """

    formula: str
    schema: Schema
    keep: tuple[str, ...]
    clip: Fraction
    center: bool
    response: Column
    columns: tuple[Column, ...]
    terms: tuple[Term, ...]
    needed: tuple[str, ...]
    types: Columns = field(compare=False)
    has_intercept: bool = field(compare=False)
    size: int = field(compare=False)
    _factors: Mapping[str, Factor] = field(compare=False)
    layout: Layout = field(compare=False)
    _groups: tuple[CodedColumns, ...] = field(compare=False)

    def levels_of(self, term: str) -> tuple[str, ...] | None:
        """Return the levels of a term that is one factor of levels, as patsy writes them."""
        factor = self._factors.get(term)
        return None if not isinstance(factor, Coded) else tuple(str(x) for x in factor.levels)

    def __repr__(self) -> str:
        """Show public facts only."""
        return (
            f"<Design {shown(self.formula, 200)}: {len(self.columns) - 1} columns "
            f"in {len(self.terms)} terms>"
        )

    def __reduce__(self) -> tuple[Callable[..., Design], tuple[Any, ...]]:
        """Keep the arguments only: what they make can be made again."""
        build = partial(build_design, keep=self.keep, clip=self.clip, center=self.center)
        return build, (self.formula, self.schema)

    def block(self, chunk: Mapping[str, NDArray[Any]]) -> Floats:
        """Make scaled row vectors of some rows, each from its own row alone.

        Parameters
        ----------
        chunk : mapping of str to array
            The columns of `types`, as a source reads them.

        Returns
        -------
        ndarray, shape (rows, D), float64, Fortran order
            Stored units, not yet on the grid.
        """
        rows, _, _ = self._vectors(chunk, range(self.size))
        return np.clip(rows, -1.0, 1.0, out=rows).T

    def cells(self, chunk: Mapping[str, NDArray[Any]]) -> Floats:
        """Make the same vectors on their grid."""
        rows, _, _ = self._vectors(chunk, range(self.size))
        return to_grid(rows, out=rows).T

    def coded(self, chunk: Mapping[str, NDArray[Any]]) -> CodedRows:
        """Make them with wide factors left as codes: see `layout`."""
        rows, values, complete = self._vectors(chunk, self.layout.dense)
        with np.errstate(all="ignore"):
            slots = tuple(one.slots(values, complete) for one in self._groups)
        return CodedRows(to_grid(rows, out=rows).T, slots)

    def _vectors(
        self, chunk: Mapping[str, NDArray[Any]], places: Iterable[int]
    ) -> tuple[Floats, dict[str, Any], Bools]:
        """Make some cells of row vectors, (cells, rows), not yet clipped.

        The values of all factors follow, and which rows are complete.
        """
        columns = (*self.columns, self.response)
        with np.errstate(all="ignore"):
            cells, complete = clean_cells(chunk, self.types, clipped=True)
            values = factor_values(self._factors.values(), cells, complete)
            _, *stored = (columns[place] for place in places)
            out = np.empty((1 + len(stored), len(complete)))
            out[0] = 1.0
            for row, column in zip(out[1:], stored, strict=True):
                scale(multiplied(column.parts, values), column.offset, column.width, row)
            out[:, ~complete] = 0.0
        return out, values, complete

    def matrix(self, frame: object, columns: Sequence[int]) -> pd.DataFrame:
        """Compute raw design columns of new rows, for prediction.

        Cells are read as in fitting, but numbers are **not** clipped to the schema's bounds: a
        prediction extrapolates as `lm`'s does. A spline has no value outside its own bounds.

        Parameters
        ----------
        frame : pandas.DataFrame, or whatever `dpreg.sources.as_source` takes
        columns : sequence of int
            Indices into z.

        Returns
        -------
        pandas.DataFrame
            One column for each index, in the columns' own units, on the frame's index; a row is NaN
            where a cell that these columns need is missing, undeclared or without a finite value.
        """
        assert set(columns) <= set(range(len(self.columns)))
        chosen = [self.columns[j] for j in columns]
        parts = [part for column in chosen for part in column.parts]
        factors = {part.factor.code: part.factor for part in parts}
        needed = dict.fromkeys(name for factor in factors.values() for name in factor.columns)
        types = {name: self.types[name] for name in needed}
        index = frame.index if isinstance(frame, pd.DataFrame) else None
        source = as_source(frame)
        if not isinstance(source, LocalSource):
            raise ArgumentError("newdata must be a table of this process, such as a DataFrame")
        rows = source.count()
        raw, start = np.ones((rows, len(chosen))), 0
        with np.errstate(all="ignore"):
            for chunk in source.chunks(types, max(1, rows)) if types else ():
                cells, complete = clean_cells(chunk, types, clipped=False)
                values = factor_values(factors.values(), cells, complete)
                out = raw[start : start + len(complete)]
                for place, column in enumerate(chosen):
                    if column.parts:
                        out[:, place] = multiplied(column.parts, values)
                out[~complete] = np.nan
                start += len(complete)
        return pd.DataFrame(raw, index=index, columns=[column.name for column in chosen])

    def to_user_units(self, columns: Sequence[int]) -> tuple[Floats, Floats]:
        """Map stored coefficients to coefficients of the columns' own units.

        With stored x_j = (X_j - o_j) / w_j and y = (Y - o) / w, the model y = b_0 + sum b_j x_j is
        Y = (o + w b_0 - sum w b_j o_j / w_j) + sum (w b_j / w_j) X_j.

        Parameters
        ----------
        columns : sequence of int
            Indices into z of the model's columns; 0 is the intercept.

        Returns
        -------
        T : ndarray, shape (m, m)
        t0 : ndarray, shape (m,)
            ``beta_user = T @ beta_stored + t0``. Covariances map as T C T'. A model without the
            intercept says nothing of o: its coefficients are those of Y - o, o being
            ``response.offset``, and t0 is 0.

        Raises
        ------
        ArgumentError
            If a column is shifted by the design and the model has no intercept to take it up.
        """
        factors, first, shift = self.factors_to_user_units(columns)
        matrix = np.diag(factors)
        if 0 in columns:
            matrix[list(columns).index(0)] = first
        return matrix, shift

    def factors_to_user_units(self, columns: Sequence[int]) -> tuple[Floats, Floats, Floats]:
        """Return T of `to_user_units` as its diagonal and the intercept's row, and t0.

        Of a model without the intercept the row is the first one. T of a factor of thousands of
        levels would take more memory than all that is released of it.
        """
        assert set(columns) <= set(range(len(self.columns)))
        factors = np.array([self.response.width / self.columns[j].width for j in columns])
        offsets = np.array([self.columns[j].offset for j in columns])
        first, shift = np.zeros(len(columns)), np.zeros(len(columns))
        row = list(columns).index(0) if 0 in columns else 0
        if 0 in columns:
            first[:] = -offsets * factors
            shift[row] = self.response.offset
        elif (offsets != 0).any():
            raise ArgumentError(
                "these columns are centred: a model of them needs column 0 as well."
            )
        first[row : row + 1] = factors[row : row + 1]
        return factors, first, shift


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
        Two-sided, in patsy's language, its factors within `dpreg.formula.syntax.ALLOWED`.
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
    parsed = read_terms(formula)
    types = column_types(parsed.specs, schema)
    factors = {
        code: bind(code, spec, types, response=code == parsed.response)
        for code, spec in parsed.specs.items()
    }
    response = factors[parsed.response]
    if not isinstance(response, Measure) or len(response.intervals) != 1:
        raise FormulaError(
            f"response {shown(parsed.response)} is not one column of numbers; a two-level response "
            f"can be written as a number, as in I(1 * flag)."
        )
    terms, products = code_terms(parsed, factors)
    kept = resolve_keep(terms, keep)
    affine = INTERCEPT in kept
    centered = center and affine  # else a model without an intercept would be one of y - middle
    columns = [Column(INTERCEPT, 1.0, 1.0, 0.0, 1.0)]
    columns += [scaled_column(name, parts, centered=affine) for name, parts in products.items()]
    unshifted = {j for j, column in enumerate(columns) if column.offset == 0}
    terms = [replace(t, exclusive=t.exclusive and unshifted.issuperset(t.columns)) for t in terms]
    groups = coded_columns(columns)
    scaled = scaled_response(response, clip=clip, center=centered)
    size = len(columns) + 1
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
        has_intercept=parsed.intercept,
        size=size,
        _factors=factors,
        layout=Layout(size, tuple(one.group for one in groups)),
        _groups=groups,
    )


def resolve_keep(terms: Sequence[Term], keep: Iterable[str]) -> tuple[str, ...]:
    """Find the terms that are kept in every model.

    Parameters
    ----------
    terms : sequence of Term
    keep : iterable of str
        Names of terms; the factors of an interaction may stand in any order. "Intercept" is passed
        over where the formula has no intercept, since it is the default.

    Returns
    -------
    tuple of str
        Their names, in the order of `terms`.

    Raises
    ------
    ArgumentError
        If a name is not a term of the formula; the message lists those that are.
    """
    by_name = {term.name: term.name for term in terms}
    by_factors = {frozenset(term.factors): term.name for term in terms if term.factors}
    found = set()
    for name in keep:
        known = by_name.get(name) or by_factors.get(frozenset(name.split(":")))
        if known is not None:
            found.add(known)
        elif name != INTERCEPT:
            listed = f"; the terms are {', '.join(shown(term.name) for term in terms)}."
            near = did_you_mean(name, by_name, listed)
            raise ArgumentError(f"keep: {shown(name)} is not a term{near}")
    return tuple(term.name for term in terms if term.name in found)


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
    parsed = read_terms(formula)
    response = names(parsed.specs[parsed.response])
    for code in (code for term in parsed.terms for code in term):
        if both := [column for column in names(parsed.specs[code]) if column in response]:
            raise FormulaError(
                f"factor {shown(code)}: {shown(both[0])} is the response, so it cannot stand on "
                "the right-hand side too; leave it out there."
            )
    found: dict[str, None] = {}
    for code, spec in parsed.specs.items():
        labels = names(spec, labels=True)
        for column in names(spec):
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
            why = "is used as labels" if column in labels else _HOLDS.get(source.kind(column))
            if why:
                raise SchemaError(
                    f"column {shown(column)} {why} and is undeclared; declare its levels in the "
                    f'schema, as in {{{shown(column)}: {{"levels": ["a", "b"]}}}}, or bool.'
                )
            found[column] = None
    return tuple(found)
