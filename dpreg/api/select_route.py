"""Which method a selection takes: a public rule, or a count of the rows, noisy where n is private.

"auto" looks at the rows where there are enough of them, and takes "pcls" otherwise. Under
add-remove, and with persons, the number of rows is private: a share of eps buys a noisy count
first; a public number that only a pass would tell, as of a CSV file, is counted and costs nothing.
Both ways are opened before the charge, at all that is left, and what is charged covers either; the
count then decides which of them draws.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpreg.api.context import CallFacts
from dpreg.api.looks import formula_of
from dpreg.api.moments import joint_fit
from dpreg.api.select_adaptive import ByLooks
from dpreg.api.selected import columns_of_terms, columns_of_units, named, of_call
from dpreg.errors import ArgumentError
from dpreg.formula.bounds import bounds_sources, buy_bounds
from dpreg.formula.design import Design
from dpreg.privacy.account import Account, Part
from dpreg.privacy.budget import Budget, decimal_string
from dpreg.request import SHARES, SelectionRequest
from dpreg.results.regression import RegressionResults
from dpreg.results.selection import SelectionResults
from dpreg.schema import Schema
from dpreg.selection import run
from dpreg.selection.draws import noisy_rows
from dpreg.selection.run import Preparation, design_of, prepare, space_of
from dpreg.selection.space import Space
from dpreg.sources.reader import Reader

__all__ = ["ByPaper", "Route", "Way", "route"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ByPaper:
    """A selection by PCLS or PCPL: a selector as `ByLooks` is one.

    Attributes
    ----------
    request : SelectionRequest
    reader : Reader
    schema : Schema
        As declared.
    shown : bool
        Whether bars are shown.
    whole : Budget
        Of the whole call, a count included.
    """

    request: SelectionRequest
    reader: Reader
    schema: Schema
    shown: bool
    whole: Budget

    def open(self, account: Account) -> Preparation:
        """Refuse what cannot be done, and open the lines."""
        return prepare(self.request, self.schema, self.reader, account)

    def choose(
        self, opened: Preparation, account: Account, notes: tuple[str, ...]
    ) -> SelectionResults:
        """Read the rows, draw models, and fit the one that is drawn most often.

        Parameters
        ----------
        opened : Preparation
        account : Account
            Of the whole call, charged.
        notes : tuple of str
        """
        request, parts, reader = replace(self.request, budget=self.whole), opened.parts, self.reader
        bounded = buy_bounds(reader, opened.schema, parts.bounds)
        design = design_of(request, bounded)
        space = space_of(request, design)
        rows = run.read_rows(request, design, reader, account.rng)
        tuning = run.tune(request, parts, design, rows)
        selection = run.select(request, opened, tuning, space, rows.selecting, progress=self.shown)
        drawn = Counter(selection.models).most_common(1)[0][0]
        columns = columns_of_units(space, drawn)
        facts = CallFacts(
            formula=formula_of(design, columns),
            fit=request.fit or "fixed",
            budget=self.whole,
            rows=rows.n,
            passes=reader.passes,
            bounds=bounds_sources(design.needed, opened.unbounded),
            account=account,
            notes=notes,
        )
        regression = None
        if rows.fitting is not None and parts.fit is not None:
            unremarked = replace(facts, notes=())
            regression = joint_fit(design, columns, rows.fitting, unremarked, parts.fit)
        return _results(request, opened, design, space, tuning, selection, drawn, facts, regression)


def _results(
    request: SelectionRequest,
    preparation: Preparation,
    design: Design,
    space: Space,
    tuning: run.Tuning,
    selection: run.Selection,
    drawn: tuple[int, ...],
    facts: CallFacts,
    regression: RegressionResults | None,
) -> SelectionResults:
    clip = request.clip
    squared = clip**2 if request.method == "pcls" else 1
    return SelectionResults(
        **of_call(request, design, space, facts, drawn),
        formula=design.formula,
        response=design.response.name,
        columns=columns_of_terms(design, space, request.units),
        models=tuple(named(design, space, units) for units in selection.models),
        selected_formula=facts.formula,
        method=request.method,
        mechanism=preparation.draws.mechanism,
        engine=preparation.engine,
        radius=tuning.rho * clip,
        radius_source=request.radius_source,
        penalty=request.penalty if isinstance(request.penalty, str) else "given",
        phi=selection.phi * squared,
        psi=selection.psi * squared,
        sigma2=None if tuning.sigma2 is None else tuning.sigma2 * clip**2,
        notes=facts.notes,
        regression=regression,
    )


@dataclass(frozen=True, slots=True)
class Way:
    """One way to select, its lines open in an account.

    Attributes
    ----------
    selector : ByLooks or ByPaper
    account : Account
    opened : object
        What the selector opened there.
    """

    selector: ByLooks | ByPaper
    account: Account
    opened: Any

    @classmethod
    def of(cls, selector: ByLooks | ByPaper, account: Account) -> Way:
        """Open a way."""
        return cls(selector, account, selector.open(account))

    @property
    def bounds(self) -> Mapping[str, Part]:
        """The lines of the bounds that are bought."""
        opened = self.opened
        return opened.parts.bounds if isinstance(opened, Preparation) else opened[0]

    def choose(self, account: Account, notes: tuple[str, ...]) -> SelectionResults:
        """Select, after the charge, by the account of the whole call."""
        return self.selector.choose(self.opened, account, notes)


@dataclass(frozen=True, slots=True)
class Route:
    """The way that a call takes, or two of them and the count that decides.

    Attributes
    ----------
    asked : SelectionRequest
        As the caller put it.
    account : Account
        Of the whole call, not yet charged.
    way : Way
        The only one, or that of looks.
    otherwise : Way or None
        Where the count finds too few rows.
    count : Part or None
        Of a private number of rows.
    notes : tuple of str
    """

    asked: SelectionRequest
    account: Account
    way: Way
    otherwise: Way | None = None
    count: Part | None = None
    notes: tuple[str, ...] = ()

    def decided(self, reader: Reader) -> tuple[Way, tuple[str, ...]]:
        """Return the way to go, after the charge; counts the rows where that decides."""
        by_looks = self.way.selector
        if self.otherwise is None or not isinstance(by_looks, ByLooks):
            return self.way, self.notes
        rows, has, bought = reader.rows, "has", ""
        if self.count is not None:
            rows = noisy_rows(rows, self.count)
            bought = f"(counted with noise, at eps = {decimal_string(self.count.cost.eps)})"
            has = f"has {bought} about"
        short = by_looks.looks.too_few(rows, has)
        if short:
            self.account.take(self.otherwise.account)
            return self.otherwise, _notes_of_paper(self.asked, short)
        self.account.take(self.way.account)
        if not bought:
            return self.way, ()
        told = f"The number of rows is private. Looks were taken for about {rows:,} {bought}."
        return self.way, (told,)


def route(request: SelectionRequest, schema: Schema, reader: Reader, shown: bool) -> Route:
    """Settle the method of a selection, from public facts, and open all that it may draw.

    Parameters
    ----------
    request : SelectionRequest
    schema : Schema
    reader : Reader
    shown : bool
        Whether bars are shown.
    """
    account, whole = request.account(), request.budget
    paper = ByPaper(request=request, reader=reader, schema=schema, shown=shown, whole=whole)
    if request.method not in ("auto", "adaptive"):
        return Route(request, account, Way.of(paper, account))
    public = request.protection.n_is_public
    known = public and reader.source.rows is not None
    counts = request.method == "auto" and not known
    share = SHARES["count"] if counts and not public else Fraction(0)
    reason, by_looks = _reason(request), None
    if not reason:
        by_looks = ByLooks.of(request, reader, schema, counted_at=share)
        if request.method == "adaptive" and len(by_looks.context.trial.columns) < 2:
            raise ArgumentError('method="adaptive" needs columns to look at: use method="pcls".')
        reason = by_looks.looks.refuses(by_looks.context.rows)
    fallen = replace(request, method="pcls", fit=_fit_of_paper(request))
    paper = replace(paper, request=fallen)
    if by_looks is None or reason:
        notes = _notes_of_paper(request, reason)
        return Route(request, account, Way.of(paper, account), notes=notes)
    asked = replace(
        request, method="adaptive", fit="fresh" if request.fit == "auto" else request.fit
    )
    by_looks = replace(by_looks, request=asked)
    if not counts:
        return Route(request, account, Way.of(by_looks, account))
    count = None
    if share:
        count = account.line("number of rows", "laplace", Budget(whole.eps * share))
    rest = Budget(whole.eps * (1 - share), whole.delta)
    looks, other = (Account(request.protection, rest, account.rng) for _ in range(2))
    way = Way.of(by_looks, looks)
    otherwise = Way.of(replace(paper, request=replace(fallen, budget=rest)), other)
    account.either(looks, other)
    return Route(request, account, way, otherwise, count)


def _reason(request: SelectionRequest) -> str:
    """Return why the arguments alone send "auto" to the paper's method; empty if they do not."""
    if request.method == "adaptive":
        return ""
    if request.papers:
        return f"only it takes {', '.join(request.papers)}"
    if request.fit == "share":
        return 'only it takes fit="share"'
    return ""


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
