"""`dp_select`: private choice of the variables of a model, from a formula to a result.

Read downwards: the arguments become a `SelectionRequest`; a selector, looks or the paper's method,
is settled from public facts and opens its lines (`dpreg.api.select`); the ledger is charged;
the selector reads the rows, draws, and makes the result.

What results of every selection hold, and how they name terms, columns and models.

`dp_select` by looks: a choice made from released numbers alone, and its coefficients.

The rows are read by the looks. The choice among terms is a function of what the last look released:
it costs nothing. Looks at the chosen columns, where they are asked for, have a share of the budget.
Linear models and families differ in their scores alone (`dpreg.api.looks`).

Which method a selection takes: a public rule, or a count of the rows, noisy where n is private.

"auto" looks at the rows where there are enough of them, and takes "pcls" otherwise. Under
add-remove, and with persons, the number of rows is private: a share of eps buys a noisy count
first; a public number that only a pass would tell, as of a CSV file, is counted and costs nothing.
Both ways are opened before the charge, at all that is left, and what is charged covers either; the
count then decides which of them draws.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dpreg.api.context import (
    CallFacts,
    Context,
    check_known_rows,
    open_table,
    read_before,
    recorded,
)
from dpreg.api.looks import FamilyModel, LinearModel, Looks, fitted, formula_of, written
from dpreg.api.moments import joint_fit
from dpreg.choice import Choice, choose
from dpreg.errors import ArgumentError, DataError
from dpreg.formula.bounds import announce, bounds_sources, buy_bounds
from dpreg.formula.design import Design
from dpreg.looks.chosen import laws_for_choice, point_of_chosen
from dpreg.looks.families import Family
from dpreg.looks.loop import Seen, look, look_at_chosen
from dpreg.looks.model import Asked, family_asked
from dpreg.looks.plan import Opened, fresh_share
from dpreg.looks.table import Table as LookTable
from dpreg.options import Amount, FamilyLike, MethodLike, SchemaLike, Table, unpacked
from dpreg.privacy.account import Account, Part
from dpreg.privacy.budget import Budget, decimal_string
from dpreg.request import SHARES, SelectionRequest
from dpreg.results.glm_selection import GLMSelectionResults
from dpreg.results.regression import RegressionResults
from dpreg.results.selection import SelectionResults
from dpreg.running import warn
from dpreg.schema import Schema
from dpreg.selection import run
from dpreg.selection.estimates import noisy_rows
from dpreg.selection.preparation import Preparation, design_of, prepare, space_of
from dpreg.selection.space import Space, build_space
from dpreg.sources.reader import Reader, showing

if TYPE_CHECKING:
    from dpreg.privacy.ledger import Ledger


def columns_of_units(space: Space, units: Iterable[int]) -> list[int]:
    """Return the z columns of a model: those of keep and of its units."""
    return sorted((*space.keep_columns, *(c for u in units for c in space.unit_columns[u])))


def columns_of_terms(design: Design, space: Space, units: str) -> dict[str, tuple[str, ...]]:
    """Name the design columns of every term or, where `units` is "column", of every unit."""
    columns = {
        term.name: tuple(design.columns[j].name for j in term.columns) for term in design.terms
    }
    if units == "column":
        kept = {name: columns[name] for name in design.keep}
        columns = kept | {unit: (unit,) for unit in space.units}
    return columns


def named(design: Design, space: Space, units: Iterable[int]) -> tuple[str, ...]:
    """Name a model: kept terms first, then its units in the order of the formula."""
    return design.keep + tuple(space.units[unit] for unit in sorted(units))


def of_call(
    request: SelectionRequest,
    design: Design,
    space: Space,
    facts: CallFacts,
    reported: Iterable[int],
) -> dict[str, Any]:
    """Return the fields that every selection has; `reported` are units of the space."""
    return {
        "schema": design.schema.to_dict(),
        "candidates": space.units,
        "kept": design.keep,
        "reported": named(design, space, reported),
        "n_models": space.size,
        "nobs": facts.rows,
        "passes": facts.passes,
        "units": request.units,
        "hierarchy": request.hierarchy,
        "max_terms": request.max_terms,
        "eps": request.budget.eps,
        "delta": request.budget.delta,
        "clip": request.clip,
        "center": design.center,
        "bounds": facts.bounds,
        "claim": facts.claim,
    }


def of_choice(
    request: SelectionRequest, design: Design, space: Space, facts: CallFacts, choice: Choice
) -> dict[str, Any]:
    """Return the fields that every selection by looks has."""
    fields = of_call(request, design, space, facts, choice.found)
    return fields | {
        "models": (fields["reported"],),
        "method": "adaptive",
        "engine": "tests",
        "radius": None,
        "radius_source": "none",
        "penalty": "auto",
        "phi": None,
        "psi": None,
        "sigma2": None,
        "alternatives": tuple(tuple(space.units[u] for u in group) for group in choice.groups),
        "levels": dict(zip(space.units, map(float, choice.levels), strict=True)),
        "best": named(design, space, choice.model),
        "false_inclusions": float(request.false_inclusions),
    }


def errors_of(choice: Choice, space: Space, units: Sequence[float]) -> dict[str, float]:
    """Return the standard errors of a choice, each in units of its column, where there are any.

    Parameters
    ----------
    choice : Choice
    space : Space
    units : sequence of float
        For each column of the space what a coefficient of the stored column is multiplied by.
    """
    return {
        name: float(error * units[columns[0]])
        for name, columns, error in zip(space.units, space.unit_columns, choice.errors, strict=True)
        if np.isfinite(error)
    }


def hidden(choice: Choice) -> tuple[str, ...]:
    """Say how much of the columns the noise hides from a choice."""
    unseen = choice.directions - choice.resolved
    if not unseen:
        return ()
    return (
        f"The noise hides {unseen} of {choice.directions} directions of the columns: terms along "
        "them may be missing, and where strong effects lie along them false_inclusions is not "
        "promised. It takes more rows, or a larger eps.",
    )


_MOVING: Final = (
    "The fit had not settled when terms were chosen: false_inclusions is not promised. It takes "
    "more rows, or a larger eps."
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What looks chose, all of it released.

    Attributes
    ----------
    seen : Seen
    choice : Choice
    places : tuple of int
        Of the chosen model among the columns that were looked at, 0 the constant.
    later : Seen or None
        Looks at these columns.
    """

    seen: Seen
    choice: Choice
    places: tuple[int, ...]
    later: Seen | None

    @property
    def later_places(self) -> tuple[int, ...]:
        """Where the chosen columns stand among those of the later looks."""
        looked = (0, *(place for place in self.places if place))
        return tuple(map(looked.index, self.places))


def choose_by_looks(table: LookTable, family: Family, space: Space, most: float) -> Chosen:
    """Look at a table, choose terms, and look at the chosen columns where a share was kept.

    Parameters
    ----------
    table : Table
    family : Family
    space : Space
        Its columns are those that are looked at: 0 is the constant.
    most : float
        `false_inclusions`.
    """
    seen, opened = look(table, family), table.opened
    choice = choose(laws_for_choice(seen), space, false_inclusions=most)
    places = tuple(columns_of_units(space, choice.model))
    if not opened.plan.later:
        return Chosen(seen, choice, places, None)
    if not places:
        opened.nothing_chosen()
        return Chosen(seen, choice, places, None)
    at = [place for place in places if place]
    columns = tuple(table.described.columns[place - 1] for place in at)
    own = replace(
        table,
        described=table.described.only(columns),
        opened=opened.at_chosen(len(columns)),
    )
    return Chosen(
        seen, choice, places, look_at_chosen(own, seen, point_of_chosen(seen, at), [0, *at])
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ByLooks:
    """A selection by looks, settled from public facts; a selector as `dpreg.api.select` takes one.

    Attributes
    ----------
    request : SelectionRequest
    context : Context
    looks : Looks
    """

    request: SelectionRequest
    context: Context
    looks: Looks

    @classmethod
    def of(
        cls,
        request: SelectionRequest,
        reader: Reader,
        schema: Schema,
        model: LinearModel | FamilyModel | None = None,
        counted_at: Fraction = Fraction(0),
    ) -> ByLooks:
        """Settle a selection; `counted_at` is the part of eps that a count of the rows takes."""
        formula, build, check = request.formula, partial(design_of, request), _unchecked
        if isinstance(model, FamilyModel):
            formula, build = model.model.formula, partial(model.model.design, keep=request.keep)
            check = partial(model.model.check, family=model.name, call="dp_select")
        context = Context.of(request, reader, schema, formula, build, check)
        later = Fraction(0)
        if request.fit in ("auto", "fresh"):
            later = request.shares.get("fit", fresh_share(request.budget.delta))
        looks = Looks(
            context=context,
            model=model or LinearModel(),
            cost=_cost(request, counted_at, context.share),
            passes=context.passes + (counted_at > 0),
            asked=request.method == "adaptive",
            chooses=True,
            later=later,
        )
        by_looks = cls(request=request, context=context, looks=looks)
        by_looks.space(context.trial)
        return by_looks

    def space(self, design: Design) -> Space:
        """Return the models on offer, their columns numbered as they are looked at."""
        columns = self.looks.model.columns(design)
        place = {j: k for k, j in enumerate(columns)}
        terms = [
            replace(term, columns=tuple(place[j] for j in term.columns))
            for term in design.terms
            if term.name not in self.looks.model.known
        ]
        return build_space(
            terms,
            tuple(design.columns[j].name for j in columns),
            keep=design.keep,
            units=self.request.units,
            max_terms=self.request.max_terms,
            hierarchy=self.request.hierarchy,
        )

    def open(self, account: Account) -> tuple[Mapping[str, Part], Opened]:
        """Open the lines of the bounds and of the looks."""
        return self.context.bounds(account), self.looks.plan().open(account)

    def choose(
        self,
        opened: tuple[Mapping[str, Part], Opened],
        account: Account,
        notes: tuple[str, ...],
    ) -> SelectionResults:
        """Look at the rows, choose terms, and fit the chosen ones.

        Parameters
        ----------
        opened : (mapping of str to Part, Opened)
        account : Account
            Of the whole call, charged.
        notes : tuple of str
        """
        request, model = self.request, self.looks.model
        design = self.context.design(opened[0])
        table = self.looks.table(design, opened[1])
        space, family = self.space(design), model.family(design)
        found = choose_by_looks(table, family, space, float(request.false_inclusions))
        columns = model.columns(design)
        chosen = [columns[place] for place in found.places]
        facts = self.context.facts(
            design, account, model.formula(design, chosen), request.fit or "fixed"
        ).after(table.reader)
        regression = None
        if request.fit == "same" and found.places:
            whole = columns_of_units(space, range(len(space.units)))
            regression = fitted(
                model, design, chosen, found.seen, facts, places=found.places, among=whole
            )
        elif found.later is not None:
            places = found.later_places
            regression = fitted(model, design, chosen, found.later, facts, places=places)
        facts = replace(facts, whole=table.plan.whole)
        choice = found.choice
        reported = [columns[place] for place in columns_of_units(space, choice.found)]
        named = columns_of_terms(design, space, request.units)
        units = [model.unit(design) / design.columns[j].width for j in columns]
        fields: dict[str, Any] = of_choice(request, design, space, facts, choice) | {
            "formula": design.formula,
            "response": design.response.name,
            "columns": {name: at for name, at in named.items() if name not in model.known},
            "selected_formula": model.formula(design, reported),
            "mechanism": table.plan.mechanism,
            "choice_errors": errors_of(choice, space, units),
            "notes": (*notes, *hidden(choice)),
            "releases": written(found.seen),
            "regression": regression,
        }
        if not isinstance(model, FamilyModel):
            return SelectionResults(**fields)
        settled = model.settled(found.seen)
        return GLMSelectionResults(
            **fields
            | {
                "formula": request.formula,
                "response": model.model.response,
                "notes": (*fields["notes"], *[_MOVING] * (not settled)),
                "family": family.name,
                "link": family.link,
                "converged": settled,
                "offset": model.model.offset,
                "trials": model.model.trials,
            }
        )


def _cost(request: SelectionRequest, counted_at: Fraction, share: Fraction) -> Budget:
    """Return what a count of the rows and the bounds leave of the budget."""
    return Budget(request.budget.eps * (1 - counted_at) * (1 - share), request.budget.delta)


def _unchecked(*_: Any) -> None:
    """Refuse no design."""


def select_family(
    request: SelectionRequest, asked: Asked, schema: Schema, reader: Reader, budget: Ledger | None
) -> SelectionResults:
    """Choose among the terms of a generalised linear model: looks are the only way.

    Parameters
    ----------
    request : SelectionRequest
    asked : Asked
    schema : Schema
        As declared.
    reader : Reader
    budget : Ledger or None
        Charged before a row is read.
    """
    if request.fit == "auto":
        request = replace(request, fit="fresh")
    known, read = asked.model(request.formula, schema)
    by_looks = ByLooks.of(request, reader, known, FamilyModel(read, asked.family))
    context, looks = by_looks.context, by_looks.looks
    reader.require(context.passes + looks.plan().most)
    if once := read_before(reader, context.passes):
        raise DataError(f"data: {once}. Declare the bounds, or give a table that stays.")
    account = request.account()
    opened = by_looks.open(account)
    announce(opened[0])
    if context.rows is not None:
        _warn(looks.too_few(context.rows))
    account.charge(budget, f"dp_select: {request.formula}")
    if context.uncounted:
        _warn(looks.too_few(reader.rows))
    return by_looks.choose(opened, account, ())


def _warn(few: str) -> None:
    if few:
        warn(f"{few} Terms may be missed.")


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


@recorded
def dp_select(
    formula: str,
    data: Table,
    eps: Amount,
    *,
    delta: Amount = 0,
    schema: SchemaLike = None,
    where: str | None = None,
    family: FamilyLike | None = None,
    offset: str | None = None,
    method: MethodLike = "auto",
    neighbors: str = "replace-one",
    contributions: int | None = None,
    person: str | None = None,
    units: str = "term",
    keep: Iterable[str] = ("Intercept",),
    max_terms: int | None = None,
    hierarchy: str = "none",
    false_inclusions: Amount = 0.1,
    shares: Mapping[str, Amount] | None = None,
    fit: str | None = "auto",
    budget: Ledger | None = None,
    analyst: str | None = None,
    progress: bool | None = None,
    unsafe_seed: int | None = None,
) -> SelectionResults:
    """Choose the variables of a linear or generalised linear model with differential privacy.

    Every number in the result is either public, or drawn by a private mechanism and charged to a
    budget: the result may be published.

    Parameters
    ----------
    formula : str
        Two-sided, in patsy's language; row-wise functions only (`np.log`, `I`, `C`, `bs` with
        literal knots, ...).
    data : table
        The confidential rows: a pandas DataFrame or a mapping, the path or glob of Parquet or CSV
        files, anything that speaks Arrow, a function that returns chunks, a Dask or Spark
        DataFrame; see `dpreg.sources.as_source`. A row with a missing or undeclared value is left
        out.
    eps : number or decimal string
        The most that the whole call may cost; a decimal is taken exactly as typed.
    delta : number or decimal string, default 0
        Looks spend it where Gaussian noise is the smaller; the paper's methods spend it on "pcpl",
        on several draws and on coefficients.
    schema : mapping, Schema or path to a TOML or JSON file, optional
        Bounds of numeric columns, levels of categorical ones: public facts, never taken from the
        rows. Bounds of numeric columns that it leaves out are bought from a share of eps.
    where : str, optional
        Which rows the call is about, as a test of declared columns: ``"age >= 18 and g == 'a'"``,
        ``"g in ['a', 'b'] or not flag"``. Other rows are excluded, and how many pass is
        private (`dpreg.formula.where`).
    family : {"binomial", "poisson", "quasipoisson"} or object, optional
        A name or an object, as for `dp_glm`; None is a linear model. A family is looked at as by
        `dp_glm`, which says what responses there are; terms are chosen from what the last look
        released, at no further cost. There "adaptive" is the only method, and the arguments that
        belong to linear models or to the paper's methods are refused.
    offset : str, optional
        With a family; as for `dp_glm`. It is in every model.
    method : {"auto", "adaptive", "pcls", "pcpl"} or object
        A name, or an object that has options as well: `dpreg.Auto`, `dpreg.Adaptive`, `dpreg.PCLS`,
        `dpreg.PCPL`.
        "adaptive" looks at the rows as `dp_ols` does, and tests each term beside all others by what
        the last look released: it finds more with enough rows, needs no radius, and names groups of
        terms that it cannot tell apart.
        "pcls" is penalised constrained least squares (Algorithm 1 of Lei et al.), "pcpl" profile
        likelihood (Algorithm 2), which needs delta and no knowledge of the residual variance.
        "auto" takes "adaptive" where a public rule finds enough rows and "pcls" otherwise; a note
        says why, and what "adaptive" would need. Where the number of rows is private ("add-remove",
        or `person`), "auto" first buys a noisy count with .02 of eps; the dearer of the two ways to
        go on is charged beforehand. A public number that only a pass would tell (a CSV file) is
        counted after the charge, which covers either way. Rows that can be read only once, and what
        only the paper's methods have (their `shares`, ``fit="share"``), mean "pcls" under "auto".
    neighbors : {"replace-one", "add-remove"}
        Tables are neighbours when one person's rows are replaced (n is public), or added or removed
        (n is private).
    contributions : int, optional
        The most rows that one person may own, 1 if it is left out. With `person` the most that are
        used, drawn at random: "adaptive" uses all unless it is given.
    person : str, optional
        The column that says whose row it is. "adaptive" sums all rows of a person before it limits
        them; the paper's methods use at most `contributions` rows of each, drawn at random. The
        claim holds for everybody, however many rows they own, and the number of rows is then
        private under both relations. Ids that are numbers are one person if
        they agree in 15 digits: put a letter before ids of more digits. See
        `dpreg.sources.persons`.
    units : {"term", "column"}
        Whether whole terms enter and leave a model, or single design columns.
    keep : tuple of str
        Terms in every model.
    max_terms : int, optional
        The most units outside `keep`.
    hierarchy : {"none", "strong"}
        "strong": an interaction only with its main effects.
    false_inclusions : number
        The expected number of useless terms under ``penalty="auto"`` and, with "adaptive", the
        level of all tests together: at most about so many useless terms are selected on average,
        and groups of useless terms named, whatever else has an effect.
    shares : mapping, optional
        Parts of eps for the steps bought on the way: "bounds", "radius", "sigma2", "count",
        "profile", "fit". Defaults: `dpreg.request.SHARES`. "adaptive" has "bounds" and, with
        ``fit="fresh"``, "fit" (.2, or .15 for a linear model without delta).
    fit : {"auto", "same", "fresh", "split", "share", None}
        Coefficients of the chosen model. With "adaptive": "fresh" spends a share of the budget on
        looks at the chosen columns, as `dp_ols` makes them; "same" takes them from the look that
        chose, beside all candidates and with intervals that allow for as many, and marks them as
        narrow: rows far from the rest count less there. With the paper's methods: "split" fits
        the other half, "share" the same rows with a share of eps. None fits nothing. "auto" is
        "fresh" with "adaptive", and "split" with the paper's.
    budget : Ledger, optional
        An account to charge, before a row is read.
    analyst : str, optional
        Whose share of the account is charged, where the ledger has caps for analysts.
    progress : bool, optional
        Show bars on stderr while rows are read and trees searched, for the curator's eyes only;
        default where stderr is a terminal.
    unsafe_seed : int, optional
        Makes the result reproducible and **not private**; every view of it says so.

    Returns
    -------
    SelectionResults
        With a family `GLMSelectionResults`.

    Raises
    ------
    ArgumentError, FormulaError, SchemaError, DataError, BudgetError
        From public facts alone and before anything is charged or read, except a DataError raised
        when the data source fails: what was charged then stays charged.

    Notes
    -----
    "adaptive" chooses terms from rows and residuals that are limited narrowly, to find more. Where
    residuals are skewed, a column on which only their spread depends can be chosen, too: its
    interval by the "fresh" looks, whose limits are wide, then tends to hold 0.

    The total cost is eps (and delta), as `result.budget` lists it; the proofs are beside the code
    in `dpreg.privacy` and `dpreg.selection`.

    References
    ----------
    Lei, J., Charest, A.-S., Slavkovic, A., Smith, A. and Fienberg, S. (2018). Differentially
    private model selection with penalized and constrained likelihood. JRSS-A 181, 609-633.

    Examples
    --------
    >>> import dpreg
    >>> rand = dpreg.datasets.load_randhie()
    >>> result = dpreg.dp_select("mdvis ~ disea + lpi", rand.data, eps=10, schema=rand.schema)
    >>> result.method, result.selected, str(result.spent)
    ('adaptive', ['Intercept', 'disea', 'lpi'], 'eps=10')
    """
    call = unpacked(locals())
    request = SelectionRequest.of(call)
    asked, shown = family_asked(request, call), showing(progress)
    reader, known = open_table(request, data, schema, progress, where)
    check_known_rows(reader, request.protection.n_is_public)
    if asked is not None:
        return select_family(request, asked, known, reader, budget)
    routed = route(request, known, reader, shown)
    announce(routed.way.bounds)
    routed.account.charge(budget, f"dp_select: {formula}")
    way, notes = routed.decided(reader)
    return way.choose(routed.account, notes)
