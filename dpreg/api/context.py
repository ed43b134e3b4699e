"""What every public call does around its work, and settles before a row is read.

Read downwards: `recorded` takes a call's arguments, has them answered, and writes the record;
`open_table` opens the table; a `Context` is a call of a formula, settled from public facts; and
`answered` tries the ways in which a call can be answered, charges, and lets one of them read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Literal, ParamSpec, TypeAlias, TypeVar

import numpy as np

from dpreg.api.arguments import page_of, signature_of
from dpreg.errors import ArgumentError, DataError, SchemaError
from dpreg.formula import bounds
from dpreg.formula.design import Design, undeclared
from dpreg.formula.where import where_of
from dpreg.options import Options
from dpreg.privacy.account import Account, Part
from dpreg.privacy.budget import Budget, decimal_string
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.ledger.handle import Receipt, kept
from dpreg.privacy.ranks import PASSES
from dpreg.request import (
    SHARES,
    Arguments,
    FormulaRequest,
    Request,
    SelectionRequest,
    declared,
    settle_budget,
)
from dpreg.results.claim import LedgerPosition, PrivacyClaim, ReleaseRecord
from dpreg.results.notes import worded
from dpreg.results.regression import RegressionResults
from dpreg.running import restore_interrupts
from dpreg.schema import Schema, misspelt
from dpreg.selection.draws import noisy_rows
from dpreg.sources import Source, as_source
from dpreg.sources.persons import Persons
from dpreg.sources.reader import Reader, showing

_P = ParamSpec("_P")
_Result = TypeVar("_Result")
_Fit = TypeVar("_Fit", bound=RegressionResults)
_log = logging.getLogger("dpreg.calls")

_NUMERICAL: Final[Literal["ignore", "warn"]] = "ignore"
"""What NumPy does about an overflow or an invalid value: a warning could reveal rows or noise."""
_NOT_PUBLIC: Final = ("data", "estimator", "budget", "analyst", "progress", "unsafe_seed")
"""Rows, what may hold rows, who paid, and what makes no difference to a private result."""


def recorded(
    answer: Callable[[Arguments], Any], others: type
) -> Callable[[Callable[_P, _Result]], Callable[_P, _Result]]:
    """Make a public call of its signature and page, which `answer` answers, and record it.

    `others` says which arguments of `dpreg.api.arguments` it has.

    With ``analyst=`` the call's ledger is charged on that analyst's account. Python's own handling
    of Ctrl-C is put back first: Polars, where it is imported, replaces it. NumPy's numerical
    warnings are off: whether one appears would depend on rows and noise.
    """

    def run(name: str, told: dict[str, Any], defaults: dict[str, Any]) -> Any:
        restore_interrupts()
        if (analyst := told.get("analyst")) is not None:
            if not isinstance(ledger := told.get("budget"), Ledger):
                raise ArgumentError(
                    "analyst says on whose account the budget is charged: give budget=Ledger(...)."
                )
            told["budget"] = ledger.for_analyst(analyst)
        notes = settle_budget(told)
        started = now()
        with kept() as receipt, np.errstate(all=_NUMERICAL):
            result = answer(defaults | told)
        _log.info("%s finished", name)
        record = record_of(name, told, receipt, started)
        noted = {"notes": (*notes, *result.notes)} if notes else {}
        return replace(result, record=record, **noted)

    def made(call: Callable[_P, _Result]) -> Callable[_P, _Result]:
        call.__signature__ = signature_of(call, others)  # type: ignore[attr-defined]
        call.__doc__ = page_of(call, others)
        return declared(run)(call)

    return made


def now() -> datetime:
    """Tell the time."""
    return datetime.now(UTC)


def record_of(
    call: str, told: Mapping[str, Any], receipt: Receipt, started: datetime
) -> ReleaseRecord:
    """Write down a call by its public arguments, and where its last charge stands.

    Its time is that of the charge, or of the start without one, cut to the minute.
    """
    when, position = started, None
    if receipt:
        facts, line = receipt[-1]
        when = datetime.fromisoformat(line.when)
        cap, spent = facts.caps.total, line.spent
        position = LedgerPosition(
            ledger=facts.identity,
            entry=line.number,
            head=str(line.position),
            cap_eps=decimal_string(cap.eps),
            cap_delta=decimal_string(cap.delta),
            spent_eps=decimal_string(spent.eps),
            spent_delta=decimal_string(spent.delta),
        )
    minute = when.astimezone(UTC).isoformat(timespec="minutes")
    return ReleaseRecord(call=call, when=minute, arguments=public_arguments(told), ledger=position)


def public_arguments(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are public and can be written down.

    Left out are tables and whatever may hold rows: `data`, an `x` that is columns and not their
    names, functions; and paths, which describe a machine. A schema is written out.
    """
    shown = {}
    for name, value in told.items():
        if name in _NOT_PUBLIC or (name == "x" and told.get("data") is None):
            continue
        if name != "schema":
            with suppress(TypeError):
                shown[name] = _plain(value)
        elif isinstance(value, Mapping):
            # A path would describe the machine; what the file declares is in the result.
            shown[name] = Schema.from_any(value).to_dict()
    return shown


def _plain(value: Any) -> Any:
    """Return an argument as records take it, which write fractions; TypeError for any other."""
    if value is None or isinstance(value, bool | str | int | Fraction):
        return value
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


Facts: TypeAlias = dict[str, Any]
"""Fields of a result that repeat public facts of its call."""


def released(
    kind: type[_Fit], design: Design, columns: Sequence[int], facts: Facts, **fitted: Any
) -> _Fit:
    """Make a result of what was fitted and of the public facts that every fit repeats."""
    public = {
        "design_formula": design.formula,
        "endog_names": design.response.name,
        "exog_names": tuple(design.columns[j].name for j in columns),
        "column_widths": np.array([design.columns[j].width for j in columns]),
    }
    return kind(**(facts | public | fitted))


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A call of a formula, settled from public facts; nothing is charged yet.

    Attributes
    ----------
    request : FormulaRequest
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
        Made before the first look, to buy bounds and to count rows with noise.
    share : Fraction
        The part of eps that buys bounds.
    cost : Budget
        What the bounds, and a noisy number of rows, leave of the budget.
    """

    request: FormulaRequest
    reader: Reader
    schema: Schema
    unbounded: tuple[str, ...]
    build: Callable[[Schema], Design]
    trial: Design
    passes: int
    share: Fraction
    cost: Budget

    @classmethod
    def of(
        cls,
        request: FormulaRequest,
        opened: tuple[Reader, Schema],
        formula: str,
        build: Callable[[Schema], Design],
        check: Callable[[Design, tuple[str, ...]], None] | None = None,
        counted: Fraction = Fraction(0),
    ) -> Context:
        """Settle a call; what is wrong with it is refused here, whatever the rows hold.

        Parameters
        ----------
        request : FormulaRequest
        opened : (Reader, Schema)
            From `open_table`.
        formula : str
        build : callable
            As in the class.
        check : callable, optional
            Refuses a design, given the columns without bounds.
        counted : Fraction
            The part of eps that a noisy number of rows takes first.
        """
        (reader, schema), budget = opened, request.budget
        unbounded = undeclared(formula, schema, reader.source)
        trial = bounds.with_stand_ins(build, schema, unbounded)
        if check is not None:
            check(trial, unbounded)
        public = request.protection.n_is_public
        passes = PASSES if unbounded else 0
        reader.settle(trial.types)
        reader.require(passes + 1, counts=public and unbounded != ())
        if not isinstance(request, SelectionRequest):
            check_known_rows(reader, public, columns=len(trial.columns))
        if "bounds" in request.shares and not unbounded:
            raise ArgumentError("shares names bounds, which this call does not need.")
        share = request.shares.get("bounds", SHARES["bounds"]) if unbounded else Fraction(0)
        return cls(
            request=request,
            reader=reader,
            schema=schema,
            unbounded=unbounded,
            build=build,
            trial=trial,
            passes=passes + (counted > 0),
            share=share,
            cost=Budget(budget.eps * (1 - counted) * (1 - share), budget.delta),
        )

    def bounds(self, account: Account) -> Mapping[str, Part]:
        """Open the lines of the bounds that are bought."""
        return bounds.open_bounds(account, self.unbounded, self.share)

    def design(self, bought: Mapping[str, Part]) -> Design:
        """Return the design, its bounds bought; after the charge."""
        bounded = bounds.buy_bounds(self.reader, self.schema, bought)
        return self.trial if bounded is self.schema else self.build(bounded)

    def facts(
        self, reader: Reader, design: Design, account: Account, notes: tuple[str, ...] = ()
    ) -> Facts:
        """Return what every result of a formula repeats, once all is drawn.

        Parameters
        ----------
        reader : Reader
            Which the rows were read by: all rows of a person count, or some.
        design, account
        notes : tuple of str
            Of the way that was taken.
        """
        request, unbounded = self.request, self.unbounded
        whole = reader.persons is not None and reader.persons.rows is None
        return {
            "formula": request.formula,
            "fit": "fixed",
            "schema": design.schema.to_dict(),
            "bounds": {x: "private" if x in unbounded else "schema" for x in design.needed},
            "clip": design.clip,
            "center": design.center,
            "nobs": reader.rows if request.protection.n_is_public else None,
            "passes": reader.passes,
            "eps": request.budget.eps,
            "delta": request.budget.delta,
            "claim": PrivacyClaim.of(account, whole=whole),
            "notes": (*notes, *request.remarks),
        }


Opened: TypeAlias = tuple[Mapping[str, Part], Any]
"""The lines of the bounds that a way buys, and whatever else it opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to answer a call: an estimator of a fixed formula, or a selector.

    Attributes
    ----------
    context : Context
    """

    context: Context

    def refuses(self, rows: int | None, has: str = "has") -> str:
        """Return why this is not the way; "" if it is.

        Parameters
        ----------
        rows : int or None
            How many there are, where that is public, or about how many.
        has : str
            How the table has them.

        Raises
        ------
        ArgumentError, DataError
            Where the caller asked for this one alone.
        """
        return ""

    def open(self, account: Account) -> Opened:
        """Open its lines."""
        raise NotImplementedError

    def announce(self, rows: int | None) -> None:
        """Warn of what it will not do well, before the charge."""

    def answer(self, opened: Opened, account: Account, notes: tuple[str, ...]) -> Any:
        """Read the rows, release and make the result, after the charge."""
        raise NotImplementedError

    def noted(self, reason: str) -> tuple[str, ...]:
        """Say that this way was taken, and why the one before it was not."""
        return ()


def answered(
    call: str, ways: Sequence[Way], ledger: Ledger | None, count: Fraction = Fraction(0)
) -> Any:
    """Answer a call in the first of its ways that is not refused.

    Where two are possible and the number of rows decides, it is counted after the charge: without
    noise where it is public and only a pass tells it, else for a share of eps. Both ways are opened
    before the charge, at all that is left, and what is charged covers either.

    Parameters
    ----------
    call : str
        Its name, for the ledger's entry.
    ways : sequence of Way
        One or two, in the order in which they are tried.
    ledger : Ledger or None
    count : Fraction
        The part of eps that buys a private number of rows, where it decides.
    """
    request, reader = ways[0].context.request, ways[0].context.reader
    label, account = f"{call}: {request.formula}", request.account()
    public = request.protection.n_is_public
    rows = reader.source.rows if public else None
    reason = ways[0].refuses(rows)
    way = ways[bool(reason)]
    decides = not reason and len(ways) > 1 and rows is None
    if not decides or not (count or public):
        opened = way.open(account)
        bounds.announce(opened[0])
        way.announce(rows)
        account.charge(ledger, label)
        return way.answer(opened, account, way.noted(reason) if reason else ())
    whole, counted = request.budget, None
    if count:
        counted = account.line("number of rows", "laplace", Budget(whole.eps * count))
    rest = Budget(whole.eps * (1 - count), whole.delta)
    accounts = [Account(request.protection, rest, account.rng) for _ in ways]
    both = [one.open(own) for one, own in zip(ways, accounts, strict=True)]
    account.either(*accounts)
    bounds.announce(both[0][0])
    account.charge(ledger, label)
    found, has = reader.rows, "has"
    notes: tuple[str, ...] = ()
    if counted is not None:
        found = noisy_rows(found, counted)
        bought = f"(counted with noise, at eps = {decimal_string(counted.cost.eps)})"
        has = f"has {bought} about"
        notes = (worded("rows-bought", rows=found, bought=bought),)
    reason = way.refuses(found, has)
    place = int(bool(reason))
    account.take(accounts[place])
    ways[place].announce(found)
    return ways[place].answer(both[place], account, ways[1].noted(reason) if reason else notes)


def open_table(
    request: Request, call: Arguments, source: Source | None = None
) -> tuple[Reader, Schema]:
    """Return the reader of a call's table and its schema, checked against each other.

    The table is `source`, or the call's `data`.
    """
    showing(call["progress"])
    known = Schema.from_any(call["schema"])
    persons = Persons.of(request.protection, request.seed)
    source = as_source(call["data"]) if source is None else source
    test = None if call["where"] is None else where_of(call["where"], known)
    reader = Reader(source, call["progress"], persons, test)
    check_schema_names(known, source.names)
    return reader, known


def check_schema_names(schema: Schema, names: Sequence[str]) -> None:
    """Refuse a schema that seems to misspell one of a table's column names.

    One codebook may serve many tables: a schema may declare columns that this one lacks.

    Raises
    ------
    SchemaError
        If a key that no column has is spelt nearly like a column which no key declares.
    """
    for name, told in misspelt(schema, names):
        raise SchemaError(f"the schema declares {name!r}, and {told}")


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
