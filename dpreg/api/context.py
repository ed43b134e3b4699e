"""What every call of a formula settles before a row is read, and the facts that results repeat.

Tested in `tests/api/test_twenty_mistakes.py`, `tests/api/test_coefficients.py` and
`tests/api/test_regression.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from dpreg.errors import ArgumentError, DataError, SchemaError, did_you_mean
from dpreg.formula.bounds import (
    bounds_sources,
    buy_bounds,
    check_table,
    open_bounds,
    with_stand_ins,
)
from dpreg.formula.design import Design, undeclared
from dpreg.formula.where import where_of
from dpreg.privacy.account import Account, Part
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.request import SHARES, Request, SelectionRequest, positive
from dpreg.results.claim import PrivacyClaim
from dpreg.results.regression import RegressionResults
from dpreg.schema import Schema
from dpreg.sources import Source, as_source
from dpreg.sources.persons import Persons
from dpreg.sources.reader import Reader, showing

__all__ = [
    "CallFacts",
    "Context",
    "check_known_rows",
    "check_schema_names",
    "every_row",
    "exclusive_groups",
    "open_table",
    "read_before",
    "released",
]

_R = TypeVar("_R", bound=RegressionResults)


@dataclass(frozen=True, slots=True)
class CallFacts:
    """Public facts of the call that a result repeats.

    Attributes
    ----------
    formula : str
        The formula of the fitted model.
    fit : {"fixed", "split", "share", "fresh", "same"}
    budget : Budget
        As typed in the call.
    rows : int or None
        n where it is public, all rows of the table.
    passes : int
        How often the rows were gone through.
    bounds : mapping of str to str
        Column to "schema" or "private".
    account : Account
    notes : tuple of str
    whole : bool
        Whether all rows of a person count; see `PrivacyClaim`.
    """

    formula: str
    fit: str
    budget: Budget
    rows: int | None
    passes: int
    bounds: Mapping[str, str]
    account: Account
    notes: tuple[str, ...] = ()
    whole: bool = False

    @property
    def claim(self) -> PrivacyClaim:
        """What the result claims, once all is drawn."""
        return replace(PrivacyClaim.of(self.account), whole=self.whole)

    def after(self, reader: Reader) -> CallFacts:
        """Return the facts, completed once the rows were read."""
        public = self.account.protection.n_is_public
        return replace(self, rows=reader.rows if public else None, passes=reader.passes)


def released(
    kind: type[_R], design: Design, columns: Sequence[int], facts: CallFacts, **fitted: Any
) -> _R:
    """Make a result of what was fitted and of the public facts that every fit repeats."""
    public = {
        "formula": facts.formula,
        "design_formula": design.formula,
        "schema": design.schema.to_dict(),
        "endog_names": design.response.name,
        "exog_names": tuple(design.columns[j].name for j in columns),
        "column_widths": np.array([design.columns[j].width for j in columns]),
        "fit": facts.fit,
        "nobs": facts.rows if facts.fit != "split" else None,
        "eps": facts.budget.eps,
        "delta": facts.budget.delta,
        "clip": design.clip,
        "center": design.center,
        "bounds": facts.bounds,
        "passes": facts.passes,
        "claim": facts.claim,
        "notes": facts.notes,
    }
    return kind(**(public | fitted))


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A call of a formula, settled from public facts; nothing is charged yet.

    Attributes
    ----------
    request : Request
    reader : Reader
    schema : Schema
        As declared; the columns of `unbounded` are missing from it.
    unbounded : tuple of str
        Columns, read as numbers, whose bounds are bought.
    build : callable
        Makes the design of a schema.
    trial : Design
        With placeholders for the bounds that are bought.
    passes : int
        Made before the first look, to buy bounds.
    share : Fraction
        The part of eps that buys them.
    """

    request: Request
    reader: Reader
    schema: Schema
    unbounded: tuple[str, ...]
    build: Callable[[Schema], Design]
    trial: Design
    passes: int
    share: Fraction

    @classmethod
    def of(
        cls,
        request: Request,
        reader: Reader,
        schema: Schema,
        formula: str,
        build: Callable[[Schema], Design],
        check: Callable[[Design, tuple[str, ...]], None] = lambda *_: None,
        shares: Mapping[str, Any] | None = None,
    ) -> Context:
        """Settle a call; what is wrong with it is refused here, whatever the rows hold.

        Parameters
        ----------
        request : Request
        reader : Reader
        schema : Schema
            As declared.
        formula : str
        build : callable
        check : callable
            Refuses a design, given the columns without bounds.
        shares : mapping, optional
            As its caller gave it.
        """
        unbounded = undeclared(formula, schema, reader.source)
        trial = with_stand_ins(build, schema, unbounded)
        check(trial, unbounded)
        public = request.protection.n_is_public
        passes = check_table(reader, trial.types, unbounded, counted=public and bool(unbounded))
        if not isinstance(request, SelectionRequest):
            check_known_rows(reader, public, columns=len(trial.columns))
        return cls(
            request=request,
            reader=reader,
            schema=schema,
            unbounded=unbounded,
            build=build,
            trial=trial,
            passes=passes,
            share=_share_of_bounds(request, shares, unbounded),
        )

    @property
    def rows(self) -> int | None:
        """How many rows there are, where that is public and known without a pass."""
        return self.reader.source.rows if self.request.protection.n_is_public else None

    @property
    def uncounted(self) -> bool:
        """Whether the number of rows is public, and only a pass tells it."""
        return self.request.protection.n_is_public and self.reader.source.rows is None

    @property
    def cost(self) -> Budget:
        """What is left of the budget beside the bounds."""
        request, share = self.request, self.share
        return Budget(request.budget.eps * (1 - share), request.budget.delta)

    def bounds(self, account: Account) -> Mapping[str, Part]:
        """Open the lines of the bounds that are bought."""
        return open_bounds(account, self.unbounded, self.share)

    def design(self, bounds: Mapping[str, Part]) -> Design:
        """Return the design, its bounds bought; after the charge."""
        bounded = buy_bounds(self.reader, self.schema, bounds)
        return self.trial if bounded is self.schema else self.build(bounded)

    def facts(
        self, design: Design, account: Account, formula: str, fit: str = "fixed"
    ) -> CallFacts:
        """Return what results repeat, before the rows are read for them."""
        bounds = bounds_sources(design.needed, self.unbounded)
        return CallFacts(formula, fit, self.request.budget, None, 0, bounds, account)


def open_table(
    request: Request, data: Any, schema: Any, progress: bool | None, where: str | None = None
) -> tuple[Reader, Schema]:
    """Return the reader of a table and its schema, checked against each other."""
    showing(progress)
    persons = Persons.of(request.protection, request.seed)
    known = Schema.from_any(schema)
    reader = Reader(as_source(data), progress, persons, where_of(where, known))
    check_schema_names(known, reader.source)
    return reader, known


def _share_of_bounds(
    request: Request, shares: Mapping[str, Any] | None, unbounded: tuple[str, ...]
) -> Fraction:
    """Return the part of eps that buys the bounds of undeclared columns."""
    if isinstance(request, SelectionRequest):
        if "bounds" in request.shares and not unbounded:
            raise ArgumentError("shares names bounds, which this call does not need.")
        return request.shares.get("bounds", SHARES["bounds"]) if unbounded else Fraction(0)
    given = dict(shares or {})
    share = positive(given.pop("bounds", SHARES["bounds"]), "shares['bounds']")
    if given or (shares and not unbounded):
        raise ArgumentError("shares may name 'bounds', where the schema leaves some out.")
    if share >= 1:
        raise ArgumentError("shares['bounds'] must be below 1: the coefficients need the rest.")
    return share if unbounded else Fraction(0)


def check_schema_names(schema: Schema, source: Source) -> None:
    """Refuse a schema that seems to misspell a column of the table.

    One codebook may serve many tables: a schema may declare columns that this one lacks.

    Raises
    ------
    SchemaError
        If a key that no column has is spelt nearly like a column which no key declares.
    """
    names = source.names
    undeclared = [name for name in names if name not in schema]
    for name in schema:
        if name not in names and (near := did_you_mean(name, undeclared, "")):
            raise SchemaError(
                f"the schema declares {name!r}, and the table has no column {name!r}{near}"
            )


def check_known_rows(reader: Reader, n_is_public: bool, *, columns: int | None = None) -> None:
    """Refuse a table with too few rows, where their number is public and known without a pass.

    Parameters
    ----------
    reader : Reader
    n_is_public : bool
    columns : int, optional
        The columns of a least-squares fit, the constant included; None where nothing is fitted.

    Raises
    ------
    DataError
        If there are no rows.
    ArgumentError
        If there are fewer rows than columns.
    """
    rows = reader.source.rows if n_is_public else None
    if rows == 0:
        raise DataError("the table has no rows: nothing can be estimated from it.")
    if rows is not None and columns is not None and rows < columns:
        raise ArgumentError(
            f"{rows:,} rows cannot determine {columns:,} coefficients: use fewer terms, or choose "
            "some of them with dp_select."
        )


def exclusive_groups(design: Design, columns: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the groups of the model's 0/1 columns that belong to one factor."""
    chosen = set(columns)
    groups = [
        tuple(j for j in term.columns if j in chosen) for term in design.terms if term.exclusive
    ]
    return [group for group in groups if len(group) > 1]


def every_row(reader: Reader, design: Design, protection: Protection) -> Reader:
    """Return the reader for looks: of persons it brings all rows, as sums are limited."""
    if reader.persons is None or protection.capped:
        return reader
    return reader.every_row(design.types)


def read_before(reader: Reader, passes: int) -> str:
    """Return why looks cannot bring all rows of a person; empty if they can.

    Rows that were brought together for bounds are some of each person's: looks bring them together
    once more.
    """
    if reader.persons is None or not passes:
        return ""
    reader.hold()
    if reader.rereadable:
        return ""
    return "the rows can be read once, and bounds have to be bought of them"
