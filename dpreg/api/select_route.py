"""Which method a selection takes: a public rule, or a count of the rows, noisy where n is private.

"auto" looks at the rows where there are enough of them, and takes "pcls" otherwise. Under
add-remove, and with persons, the number of rows is private: a share of eps buys a noisy count
first; a public number that only a pass would tell, as of a CSV file, is counted and costs nothing.
Both ways are opened before the charge, at all that is left, and what is charged covers either; the
count then decides which of them draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from dpreg.api.adaptive import looks_or_reason
from dpreg.api.coefficients import exclusive_groups
from dpreg.errors import ArgumentError
from dpreg.formula.bounds import announce, check_table, open_bounds, with_stand_ins
from dpreg.formula.design import Design, undeclared
from dpreg.looks.need import too_few
from dpreg.looks.plan import LookPlan, Opened, fresh_share, plan_looks
from dpreg.privacy.account import Account, Part
from dpreg.privacy.budget import Budget, decimal_string
from dpreg.request import SHARES, SelectionRequest
from dpreg.schema import Schema
from dpreg.selection.estimates import noisy_rows
from dpreg.selection.preparation import Preparation, design_of, prepare, space_of
from dpreg.sources.reader import Reader

if TYPE_CHECKING:
    from dpreg.privacy.ledger import Ledger

__all__ = ["AdaptiveCall", "Route", "Way", "route"]


@dataclass(frozen=True, slots=True)
class AdaptiveCall:
    """What a selection by looks settles before a row is read.

    Attributes
    ----------
    design : Design
        With placeholders for the bounds that are bought.
    schema : Schema
        As declared; the columns of `unbounded` are missing from it.
    unbounded : tuple of str
        Columns, read as numbers, whose bounds are bought.
    bounds : mapping of str to Part
    opened : Opened
    cost : Budget
        Of the looks.
    """

    design: Design
    schema: Schema
    unbounded: tuple[str, ...]
    bounds: Mapping[str, Part]
    opened: Opened
    cost: Budget


@dataclass(frozen=True, slots=True)
class Way:
    """One way to select: one of the two fields is None.

    Attributes
    ----------
    request : SelectionRequest
        Its method is not "auto", and its budget that of the whole call.
    account : Account
        Its lines.
    adaptive : AdaptiveCall or None
    paper : Preparation or None
    notes : tuple of str
    """

    request: SelectionRequest
    account: Account
    adaptive: AdaptiveCall | None
    paper: Preparation | None
    notes: tuple[str, ...] = ()

    @property
    def preparation(self) -> Preparation:
        """What the paper's method settled; only where this way is its."""
        assert self.paper is not None
        return self.paper


@dataclass(frozen=True, slots=True)
class Route:
    """The way that a call takes, or two of them and the count that decides.

    Attributes
    ----------
    account : Account
        Of the whole call, not yet charged.
    way : Way
        The only one, or that of looks.
    otherwise : Way or None
        Where the count finds too few rows.
    asked : SelectionRequest or None
        As the caller put it; where a count decides.
    count : Part or None
        Of a private number of rows.
    """

    account: Account
    way: Way
    otherwise: Way | None = None
    asked: SelectionRequest | None = None
    count: Part | None = None

    def charge(self, ledger: Ledger | None, label: str) -> None:
        """Announce bounds that are bought, and charge the whole."""
        if self.way.adaptive is not None:
            announce(self.way.adaptive.bounds, stacklevel=4)
        elif self.way.paper is not None:
            announce(self.way.paper.parts.bounds, stacklevel=4)
        self.account.charge(ledger, label)

    def decided(self, reader: Reader) -> Way:
        """Return the way to go, after the charge; counts the rows where that decides."""
        call = self.way.adaptive
        if self.otherwise is None or self.asked is None or call is None:
            return self.way
        rows, has, bought = reader.rows, "has", ""
        if self.count is not None:
            rows = noisy_rows(rows, self.count)
            bought = f"(counted with noise, at eps = {decimal_string(self.count.cost.eps)})"
            has = f"has {bought} about"
        short = too_few(_planned_at(call), call.cost, rows, has)
        if short:
            self.account.take(self.otherwise.account)
            return replace(self.otherwise, notes=_notes_of_paper(self.asked, short))
        self.account.take(self.way.account)
        if not bought:
            return self.way
        told = f"The number of rows is private. Looks were taken for about {rows:,} {bought}."
        return replace(self.way, notes=(told,))


def route(request: SelectionRequest, schema: Schema, reader: Reader) -> Route:
    """Settle the method of a selection, from public facts, and open all that it may draw.

    Parameters
    ----------
    request : SelectionRequest
    schema : Schema
    reader : Reader
    """
    if request.method not in ("auto", "adaptive"):
        return _by_the_paper(request, schema, reader, ())
    public = request.protection.n_is_public
    known = public and reader.source.rows is not None
    counts = request.method == "auto" and not known
    share = SHARES["count"] if counts and not public else Fraction(0)
    planned = _reason(request) or _planned(request, schema, reader, share)
    if isinstance(planned, str):
        method, fit = "pcls", _fit_of_paper(request)
        notes = _notes_of_paper(request, planned)
        return _by_the_paper(replace(request, method=method, fit=fit), schema, reader, notes)
    adaptive_request = replace(request, method="adaptive", fit=_fit(request))
    if not counts:
        account = request.account()
        return Route(account, Way(adaptive_request, account, _opened(planned, account), None))
    return _either(request, adaptive_request, planned, schema, reader, share)


@dataclass(frozen=True, slots=True)
class _Planned:
    """A call by looks before its account is opened."""

    design: Design
    schema: Schema
    unbounded: tuple[str, ...]
    share: Fraction
    plan: LookPlan
    cost: Budget


def _either(
    request: SelectionRequest,
    adaptive_request: SelectionRequest,
    planned: _Planned,
    schema: Schema,
    reader: Reader,
    share: Fraction,
) -> Route:
    """Open the count, where it is bought, and both ways to select at what it leaves of eps."""
    account = request.account()
    whole = request.budget
    count = None
    if share:
        count = account.line("number of rows", "laplace", Budget(whole.eps * share))
    rest = Budget(whole.eps * (1 - share), whole.delta)
    looks, paper = (Account(request.protection, rest, account.rng) for _ in range(2))
    way = Way(adaptive_request, looks, _opened(planned, looks), None)
    fallen = replace(request, method="pcls", fit=_fit_of_paper(request), budget=rest)
    prepared = prepare(fallen, schema, reader, paper)
    otherwise = Way(replace(fallen, budget=whole), paper, None, prepared)
    account.either(looks, paper)
    return Route(account, way, otherwise, request, count)


def _by_the_paper(
    request: SelectionRequest, schema: Schema, reader: Reader, notes: tuple[str, ...]
) -> Route:
    prepared = prepare(request, schema, reader)
    return Route(prepared.account, Way(request, prepared.account, None, prepared, notes))


def _opened(planned: _Planned, account: Account) -> AdaptiveCall:
    bounds = open_bounds(account, planned.unbounded, planned.share)
    return AdaptiveCall(
        planned.design,
        planned.schema,
        planned.unbounded,
        bounds,
        planned.plan.open(account),
        planned.cost,
    )


def _planned_at(call: AdaptiveCall) -> Callable[..., LookPlan]:
    """Return what plans the looks of a call at another cost."""
    plan, design = call.opened.plan, call.design
    columns = len(design.columns) - 1
    return partial(
        plan_looks,
        columns,
        protection=plan.protection,
        exclusive=exclusive_groups(design, range(columns + 1)),
        chooses=True,
        later=plan.later,
    )


def _reason(request: SelectionRequest) -> str:
    """Return why the arguments alone send "auto" to the paper's method; empty if they do not."""
    if request.method == "adaptive":
        return ""
    if request.papers:
        return f"only it takes {', '.join(request.papers)}"
    if request.fit == "share":
        return 'only it takes fit="share"'
    return ""


def _planned(
    request: SelectionRequest, schema: Schema, reader: Reader, counted_at: Fraction
) -> _Planned | str:
    """Plan the looks of a selection by looks, or say why there are none; opens and charges nothing.

    `counted_at` is the share of eps that a count of the rows takes before.
    """
    unbounded = undeclared(request.formula, schema, reader.source)
    trial = with_stand_ins(partial(design_of, request), schema, unbounded)
    space_of(request, trial)
    if request.method == "adaptive" and len(trial.columns) < 2:
        raise ArgumentError('method="adaptive" needs columns to look at: use method="pcls".')
    counted = request.protection.n_is_public and bool(unbounded)
    passes = check_table(reader, trial.types, unbounded, counted=counted)
    if "bounds" in request.shares and not unbounded:
        raise ArgumentError("shares names bounds, which this call does not need.")
    share = request.shares.get("bounds", SHARES["bounds"]) if unbounded else Fraction(0)
    later = Fraction(0)
    if _fit(request) == "fresh":
        later = request.shares.get("fit", fresh_share(request.budget.delta))
    cost = Budget(request.budget.eps * (1 - counted_at) * (1 - share), request.budget.delta)
    public = request.protection.n_is_public
    plan = looks_or_reason(
        trial,
        reader,
        cost,
        request.protection,
        method=request.method,
        noise=None,
        passes=passes + (counted_at > 0),
        rows=reader.source.rows if public else None,
        chooses=True,
        later=later,
    )
    if isinstance(plan, str):
        return plan
    return _Planned(trial, schema, unbounded, share, plan, cost)


def _fit(request: SelectionRequest) -> str | None:
    """Return how looks fit: their default where the caller named no way."""
    return "fresh" if request.fit == "auto" else request.fit


def _fit_of_paper(request: SelectionRequest) -> str | None:
    """Return the paper's way of fitting that is nearest to the one asked for."""
    usual = {"auto": "split", "same": "split", "fresh": "share"}
    return usual.get(request.fit, request.fit) if request.fit else None


def _notes_of_paper(request: SelectionRequest, reason: str) -> tuple[str, ...]:
    """Say why PCLS was taken; where the radius is not given, say what it may do.

    Without coefficients the result's remarks say it.
    """
    note = f'method="pcls": {reason.rstrip(".")}.'
    fit = _fit_of_paper(request)
    if fit != request.fit:
        note += {
            "split": ' Coefficients come from rows that did not select the terms (fit="split").',
            "share": ' Coefficients come from the same rows, with a share of eps (fit="share").',
        }[str(fit)]
    if request.radius_source != "default" or fit is None:
        return (note,)
    return note, (
        "The radius is the default: where moduli of scaled coefficients add up to more, strong "
        "terms shut each other out."
    )
