"""`dp_select`: private choice of the variables of a model, from a formula to a result.

Read downwards: the arguments become a `SelectionRequest`; a selector, looks or the paper's method,
is settled from public facts and opens its lines; the ledger is charged; the selector reads the
rows, draws, and makes the result (`dpreg.api.context.answered`).

"auto" looks at the rows where there are enough of them, and takes "pcls" otherwise. Under
add-remove, and with persons, the number of rows is private: a share of eps buys a noisy count
first. By looks the choice among terms is a function of what the last look released: it costs
nothing. Looks at the chosen columns, where they are asked for, have a share of the budget. Linear
models and families differ in their scores alone (`dpreg.api.looks`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Unpack

import numpy as np

from dpreg.api.arguments import OfFormula
from dpreg.api.context import (
    Context,
    Facts,
    Opened,
    Way,
    answered,
    check_known_rows,
    open_table,
    recorded,
    released,
)
from dpreg.api.looks import Looks, fitted, formula_of, written
from dpreg.api.moments import joint_fit
from dpreg.choice import Choice, choose
from dpreg.errors import ArgumentError
from dpreg.formula.design import Design
from dpreg.looks.families import Family
from dpreg.looks.loop import Seen, laws_for_choice, look, look_at_chosen, point_of_chosen
from dpreg.looks.model import FamilyModel, LinearModel, LookedModel, family_asked, looked_at
from dpreg.looks.plan import fresh_share
from dpreg.looks.table import Table as LookTable
from dpreg.options import Amount, FamilyLike, MethodLike, Table, unpacked
from dpreg.privacy.account import Account
from dpreg.request import SHARES, Arguments, SelectionRequest
from dpreg.results.notes import worded
from dpreg.results.regression import RegressionResults
from dpreg.results.selection import GLMSelectionResults, SelectionResults
from dpreg.schema import Schema
from dpreg.selection import run
from dpreg.selection.space import Space, design_of, space_of
from dpreg.sources.reader import Reader, showing


def _select(call: Arguments) -> Any:
    """Answer `dp_select`: by looks, or by the paper's method."""
    call = unpacked(call)
    request = SelectionRequest.of(call)
    asked, ledger = family_asked(request, call), call["budget"]
    opened = reader, known = open_table(request, call)
    check_known_rows(reader, request.protection.n_is_public)
    if asked is not None:
        known, read = asked.model(request.formula, known)
        looks = ByLooks.of(request, (reader, known), read)
        return answered("dp_select", (looks,), ledger)
    if request.method == "adaptive":
        return answered("dp_select", (ByLooks.of(request, opened),), ledger)
    shown = showing(call["progress"])
    if request.method in ("pcls", "pcpl"):
        context = Context.of(request, opened, request.formula, partial(design_of, request))
        paper = ByPaper(context=context, request=request, shown=shown, asked=request.fit)
        return answered("dp_select", (paper,), ledger)
    share = Fraction(0) if request.protection.n_is_public else SHARES["count"]
    looks = ByLooks.of(request, opened, counted=share)
    pcls, context = request.as_pcls(), looks.context
    paper = ByPaper(context=context, request=pcls, shown=shown, asked=request.fit)
    return answered("dp_select", (looks, paper), ledger, share)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByLooks(Looks):
    """A selection by looks: a `dpreg.api.context.Way`.

    Attributes
    ----------
    request : SelectionRequest
        With what "auto" means here.
    """

    request: SelectionRequest
    chooses: ClassVar[bool] = True

    @classmethod
    def of(
        cls,
        request: SelectionRequest,
        opened: tuple[Reader, Schema],
        model: LookedModel | None = None,
        counted: Fraction = Fraction(0),
    ) -> ByLooks:
        """Settle a selection; `counted` is the part of eps that a count of the rows takes."""
        asked, later, because = request.method == "adaptive", Fraction(0), ""
        fit = "fresh" if request.fit == "auto" else request.fit
        if not asked and request.papers:
            because = f"only it takes {', '.join(request.papers)}"
        elif fit == "share":
            because = 'only it takes fit="share"'
        if fit == "fresh":
            later = request.shares.get("fit", fresh_share(request.budget.delta))
        if isinstance(model, FamilyModel):
            build = partial(model.design, keep=request.keep)
            check = partial(model.check, call="dp_select")
            context = Context.of(request, opened, model.formula, build, check)
        else:
            build = partial(design_of, request)
            context = Context.of(request, opened, request.formula, build, counted=counted)
        by_looks = cls(
            context=context,
            model=model or LinearModel(),
            asked=asked,
            later=later,
            because=because,
            request=replace(request, fit=fit),
        )
        space_of(request, context.trial, by_looks.model.known)  # refuses what has no models
        if asked and len(context.trial.columns) < 2:
            raise ArgumentError('method="adaptive" needs columns to look at: use method="pcls".')
        return by_looks

    def answer(self, opened: Opened, account: Account, notes: tuple[str, ...]) -> SelectionResults:
        """Look at the rows, choose terms, and fit the chosen ones."""
        request, model = self.request, self.model
        design, table = self.table(opened)
        space, family = space_of(request, design, model.known), model.family(design)
        found = choose_by_looks(table, family, space, float(request.false_inclusions))
        columns, choice = looked_at(model, design), found.choice
        response, unit = model.response_of(design)
        chosen = [columns[place] for place in found.places]
        facts = self.context.facts(table.reader, design, account)
        facts |= {"formula": formula_of(design, chosen, response), "fit": request.fit or "fixed"}
        regression = None
        if request.fit == "same" and found.places:
            among = columns_of_units(space, range(len(space.units)))
            regression = fitted(
                model, design, chosen, found.seen, facts, places=found.places, among=among
            )
        elif found.later is not None:
            looked = (0, *(place for place in found.places if place))
            places = tuple(map(looked.index, found.places))
            regression = fitted(model, design, chosen, found.later, facts, places=places)
        fields = _fields(request, design, space, facts, choice.found, model.known)
        reported = [columns[place] for place in columns_of_units(space, choice.found)]
        names, first = space.units, [columns[own[0]] for own in space.unit_columns]
        errors = {
            name: float(error * (unit / design.columns[j].width))
            for name, j, error in zip(names, first, choice.errors, strict=True)
            if np.isfinite(error)
        }
        every = choice.directions
        hidden = worded("hidden-directions", unseen=every - choice.resolved, all=every)
        fields |= {
            "response": response,
            "selected_formula": formula_of(design, reported, response),
            "models": (fields["reported"],),
            "method": "adaptive",
            "mechanism": table.plan.mechanism,
            "engine": "tests",
            "alternatives": tuple(tuple(names[u] for u in group) for group in choice.groups),
            "levels": dict(zip(names, map(float, choice.levels), strict=True)),
            "best": named(design, space, choice.model),
            "false_inclusions": float(request.false_inclusions),
            "choice_errors": errors,
            "notes": (*notes, *([hidden] if choice.resolved < choice.directions else [])),
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
                "notes": (*fields["notes"], *[worded("still-moving")] * (not settled)),
                "family": family.name,
                "link": family.link,
                "converged": settled,
                "offset": model.offset,
                "trials": model.trials,
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ByPaper(Way):
    """A selection by PCLS or PCPL: a `dpreg.api.context.Way`.

    Attributes
    ----------
    request : SelectionRequest
        With what "auto" means here.
    shown : bool
        Whether bars are shown.
    asked : str or None
        The way of fitting that was asked for.
    """

    request: SelectionRequest
    shown: bool
    asked: str | None

    def open(self, account: Account) -> Opened:
        """Refuse what cannot be done, and open the lines."""
        context, request = self.context, replace(self.request, budget=account.budget)
        bounds = context.bounds(account)
        return bounds, run.prepare(request, context.trial, context.reader, account, tuple(bounds))

    def answer(self, opened: Opened, account: Account, notes: tuple[str, ...]) -> SelectionResults:
        """Read the rows, draw models, and fit the one that is drawn most often."""
        request, reader, prepared = self.request, self.context.reader, opened[1]
        design = self.context.design(opened[0])
        space = space_of(request, design)
        rows = run.read_rows(request, design, reader, account.rng)
        tuning = run.tune(prepared, design, rows)
        selection = run.select(prepared, tuning, space, rows.selecting, progress=self.shown)
        drawn = Counter(selection.models).most_common(1)[0][0]
        columns = columns_of_units(space, drawn)
        fit, formula, regression = None, formula_of(design, columns, design.response.name), None
        if rows.fitting is not None:
            fit = joint_fit(design, columns, rows.fitting, rows.n, prepared.parts["fit"])
        facts = self.context.facts(reader, design, account)
        if fit is not None:
            nobs = None if request.fit == "split" else rows.n
            fit |= {"formula": formula, "fit": request.fit, "nobs": nobs}
            regression = released(RegressionResults, design, columns, facts, **fit)
        clip = request.clip
        squared = clip**2 if request.method == "pcls" else 1
        return SelectionResults(
            **_fields(request, design, space, facts, drawn),
            models=tuple(named(design, space, units) for units in selection.models),
            selected_formula=formula,
            method=request.method,
            mechanism=prepared.plan.mechanism,
            engine=prepared.engine,
            radius=tuning.rho * clip,
            radius_source=request.radius_source,
            penalty=request.penalty if isinstance(request.penalty, str) else "given",
            phi=selection.phi * squared,
            psi=selection.psi * squared,
            sigma2=None if tuning.sigma2 is None else tuning.sigma2 * clip**2,
            notes=notes,
            regression=regression,
        )

    def noted(self, reason: str) -> tuple[str, ...]:
        """Say why PCLS was taken; where the radius is not given, say what it may do.

        Without coefficients the result's remarks say it.
        """
        fit, reason = self.request.fit, reason.rstrip(".")
        note = worded("way", method="pcls", reason=reason)
        if fit != self.asked:
            note += worded(f"way-fits-{fit}")
        if self.request.radius_source != "default" or fit is None:
            return (note,)
        return note, worded("radius-by-default")


def _fields(
    request: SelectionRequest,
    design: Design,
    space: Space,
    facts: Facts,
    reported: Iterable[int],
    known: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the fields that every selection has.

    `reported` are units of the space, `known` terms without coefficients.
    """
    terms = (term for term in design.terms if term.name not in known)
    columns = {t.name: tuple(design.columns[j].name for j in t.columns) for t in terms}
    if request.units == "column":  # each unit is one
        columns = {name: columns[name] for name in design.keep}
        columns |= {unit: (unit,) for unit in space.units}
    public = {name: value for name, value in facts.items() if name not in ("fit", "notes")}
    return public | {
        "formula": design.formula,
        "response": design.response.name,
        "columns": columns,
        "candidates": space.units,
        "kept": design.keep,
        "reported": named(design, space, reported),
        "n_models": space.size,
        "units": request.units,
        "hierarchy": request.hierarchy,
        "max_terms": request.max_terms,
    }


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
    later = None
    if opened.plan.later and not places:
        opened.nothing_chosen()
    elif opened.plan.later:
        at = [place for place in places if place]
        described = table.described.only(tuple(table.described.columns[place - 1] for place in at))
        own = replace(table, described=described, opened=opened.at_chosen(len(at)))
        later = look_at_chosen(own, seen, point_of_chosen(seen, at), [0, *at])
    return Chosen(seen, choice, places, later)


def columns_of_units(space: Space, units: Iterable[int]) -> list[int]:
    """Return the z columns of a model: those of keep and of its units."""
    return sorted((*space.keep_columns, *(c for u in units for c in space.unit_columns[u])))


def named(design: Design, space: Space, units: Iterable[int]) -> tuple[str, ...]:
    """Name a model: kept terms first, then its units in the order of the formula."""
    return design.keep + tuple(space.units[unit] for unit in sorted(units))


@recorded(_select, OfFormula)
def dp_select(
    formula: str,
    data: Table,
    eps: Amount,
    *,
    delta: Amount = 0,
    family: FamilyLike | None = None,
    offset: str | None = None,
    method: MethodLike = "auto",
    units: str = "term",
    keep: Iterable[str] = ("Intercept",),
    max_terms: int | None = None,
    hierarchy: str = "none",
    false_inclusions: Amount = 0.1,
    fit: str | None = "auto",
    **others: Unpack[OfFormula],
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
