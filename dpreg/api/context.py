"""What every call of a formula settles before a row is read, and the facts that results repeat.

What every public call does around its work: account, interrupts, NumPy's warnings, record.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from typing import Any, Final, Literal, ParamSpec, TypeVar

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
from dpreg.options import Options, grouped
from dpreg.privacy.account import Account, Part
from dpreg.privacy.budget import Budget, decimal_string
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.ledger.receipts import Receipt, kept
from dpreg.privacy.protection import Protection
from dpreg.request import SHARES, Request, SelectionRequest, positive, refuse_unknown, settle_budget
from dpreg.results.claim import PrivacyClaim
from dpreg.results.record import LedgerPosition, ReleaseRecord, minute
from dpreg.results.regression import RegressionResults
from dpreg.running import restore_interrupts
from dpreg.schema import Schema
from dpreg.sources import Source, as_source
from dpreg.sources.persons import Persons
from dpreg.sources.reader import Reader, showing

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


_P = ParamSpec("_P")
_Call = TypeVar("_Call", bound=Any)
_log = logging.getLogger("dpreg.calls")

_NUMERICAL: Final[Literal["ignore", "warn"]] = "ignore"
"""What NumPy does about an overflow or an invalid value: a warning could reveal rows or noise."""
_NOT_PUBLIC: Final = ("data", "estimator", "budget", "analyst", "progress", "unsafe_seed")
"""Rows, what may hold rows, who paid, and what makes no difference to a private result."""


def recorded(call: Callable[_P, _Call]) -> Callable[_P, _Call]:
    """Wrap a public call: its result gets a release record.

    With ``analyst=`` the call's ledger is charged on that analyst's account. Python's own handling
    of Ctrl-C is put back first: Polars, where it is imported, replaces it. NumPy's numerical
    warnings are off: whether one appears would depend on rows and noise.
    """
    signature = inspect.signature(call)

    @wraps(call)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _Call:
        restore_interrupts()
        grouped(call.__name__, kwargs)
        refuse_unknown(call.__name__, signature.parameters, kwargs)
        analyst = kwargs.get("analyst")
        if analyst is not None:
            ledger = kwargs.get("budget")
            if not isinstance(ledger, Ledger):
                raise ArgumentError(
                    "analyst says on whose account the budget is charged: give budget=Ledger(...)."
                )
            kwargs["budget"] = ledger.for_analyst(analyst)  # type: ignore[arg-type]
        given = signature.bind_partial(*args, **kwargs)
        notes = settle_budget(given.arguments)
        started = now()
        with kept() as receipt, np.errstate(all=_NUMERICAL):
            result = call(*given.args, **given.kwargs)
        _log.info("%s finished", call.__name__)
        record = ReleaseRecord(
            call=call.__name__,
            when=charged_at(receipt, started),
            arguments=public_arguments(given.arguments),
            ledger=position(receipt),
        )
        if notes:
            return replace(result, record=record, notes=(*notes, *result.notes))
        return replace(result, record=record)

    return wrapped


def now() -> datetime:
    """Tell the time."""
    return datetime.now(UTC)


def charged_at(receipt: Receipt, started: datetime) -> str:
    """Return the time that a record tells: of the last charge, or of the start without one."""
    return minute(datetime.fromisoformat(receipt[-1][1].when) if receipt else started)


def position(receipt: Receipt) -> LedgerPosition | None:
    """Return where the last charge of a call stands, None where there was none."""
    if not receipt:
        return None
    facts, line = receipt[-1]
    cap, spent = facts.caps.total, line.spent
    return LedgerPosition(
        ledger=facts.identity,
        entry=line.number,
        head=str(line.position),
        cap_eps=decimal_string(cap.eps),
        cap_delta=decimal_string(cap.delta),
        spent_eps=decimal_string(spent.eps),
        spent_delta=decimal_string(spent.delta),
    )


def public_arguments(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are public and can be written down.

    Left out are tables and whatever may hold rows: `data`, an `x` that is columns and not their
    names, functions; and paths, which describe a machine. A schema is written out.
    """
    shown = {}
    for name, value in told.items():
        if name in _NOT_PUBLIC or (name == "x" and told.get("data") is None):
            continue
        if name == "schema":
            # A path would describe the machine; what the file declares is in the result.
            if isinstance(value, Mapping | Schema):
                shown[name] = Schema.from_any(value).to_dict()
            continue
        try:
            shown[name] = _plain(value)
        except TypeError:
            continue
    return shown


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, Fraction):
        return decimal_string(value)
    if isinstance(value, float | Decimal):
        return str(value)
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, Options):
        return _plain(value.told())
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    raise TypeError
