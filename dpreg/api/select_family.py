"""`dp_select` for a family: a choice among the terms of a generalised linear model.

The rows are read by the looks of `dp_glm`. The choice among terms is a function of what the last
look released: it costs nothing. One more look at the chosen columns, where it is asked for, has a
budget of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from dpreg.api.coefficients import CallFacts, exclusive_groups
from dpreg.api.glm_fit import at_fit, few_rows, glm_results, written
from dpreg.api.selected import (
    columns_of_terms,
    columns_of_units,
    errors_of,
    formula_of,
    hidden,
    of_choice,
)
from dpreg.api.staged import read_all
from dpreg.choice import Choice, choose
from dpreg.errors import ArgumentError, DpregWarning
from dpreg.families.again import locate_chosen
from dpreg.families.estimate import astray, converged, doubts_of
from dpreg.families.for_choice import family_laws
from dpreg.families.law import family_law
from dpreg.families.looks import FamilyLooked, look_at_chosen, look_at_family
from dpreg.families.model import FAMILIES, Asked, Model
from dpreg.families.plan import MOST_LOOKS, OpenFamilyLooks, plan_family
from dpreg.formula.bounds import (
    announce,
    bounds_sources,
    buy_bounds,
    check_table,
    open_bounds,
    with_stand_ins,
)
from dpreg.formula.design import Design, undeclared
from dpreg.privacy.budget import Budget
from dpreg.request import SHARES, SelectionRequest
from dpreg.results.glm import GLMResults
from dpreg.results.glm_selection import GLMSelectionResults
from dpreg.schema import Schema
from dpreg.selection.space import Space, build_space
from dpreg.sources.reader import Reader
from dpreg.staged.law import LookLaw
from dpreg.staged.plan import FRESH

if TYPE_CHECKING:
    from dpreg.privacy.ledger import Ledger

__all__ = ["select_family"]


@dataclass(frozen=True, slots=True)
class _Planned:
    """A call whose looks are open, and what it reads.

    Attributes
    ----------
    request : SelectionRequest
    family : str
    model : Model
    opened : OpenFamilyLooks
    reader : Reader
    """

    request: SelectionRequest
    family: str
    model: Model
    opened: OpenFamilyLooks
    reader: Reader

    def design(self, schema: Schema) -> Design:
        return self.model.design(schema, self.request.keep)

    def space(self, design: Design) -> Space:
        """Return the models on offer, their columns numbered as the law's: 0 the intercept."""
        columns = (0, *self.model.places(design)[0])
        place = {j: k for k, j in enumerate(columns)}
        terms = [
            replace(term, columns=tuple(place[j] for j in term.columns))
            for term in design.terms
            if term.name not in self.model.known
        ]
        return build_space(
            terms,
            tuple(design.columns[j].name for j in columns),
            keep=design.keep,
            units=self.request.units,
            max_terms=self.request.max_terms,
            hierarchy=self.request.hierarchy,
        )


def select_family(
    request: SelectionRequest,
    asked: Asked,
    schema: Schema,
    reader: Reader,
    budget: Ledger | None,
) -> GLMSelectionResults:
    """Look at the rows, choose terms, and fit the chosen ones.

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
    known, model = asked.model(request.formula, schema)
    unbounded = undeclared(model.formula, known, reader.source)
    trial = with_stand_ins(partial(model.design, keep=request.keep), known, unbounded)
    model.check(trial, unbounded, asked.family, call="dp_select")
    public = request.protection.n_is_public
    passes = check_table(reader, trial.types, unbounded, counted=public and bool(unbounded))
    reader.require(passes + MOST_LOOKS + (request.fit == "fresh"), public)
    if "bounds" in request.shares and not unbounded:
        raise ArgumentError("shares names bounds, which this call does not need.")
    share = request.shares.get("bounds", SHARES["bounds"]) if unbounded else Fraction(0)
    columns, offsets = model.places(trial)
    planned = partial(
        plan_family,
        len(columns),
        protection=request.protection,
        offsets=len(offsets) + (model.trials is not None),
        exclusive=exclusive_groups(trial, range(len(trial.columns))),
        later=request.shares.get("fit", FRESH) if request.fit == "fresh" else Fraction(0),
    )
    cost = Budget(request.budget.eps * (1 - share), request.budget.delta)
    account = request.account()
    bounds = open_bounds(account, unbounded, share)
    call = _Planned(request, asked.family, model, planned(cost=cost).open(account), reader)
    call.space(trial)
    announce(bounds, stacklevel=4)
    rows = request.expected_rows or (reader.rows if public else None)
    if rows is not None and (few := few_rows(planned, cost, rows, "Terms may be missed.")):
        warnings.warn(few, DpregWarning, stacklevel=4)
    account.charge(budget, f"dp_select: {request.formula}")
    design = call.design(buy_bounds(reader, known, bounds))
    facts = CallFacts(
        formula=request.formula,
        fit=request.fit or "fixed",
        budget=request.budget,
        rows=None,
        passes=0,
        bounds=bounds_sources(design.needed, unbounded),
        account=account,
    )
    return _released(call, design, facts)


def _released(call: _Planned, design: Design, facts: CallFacts) -> GLMSelectionResults:
    """Read, choose and fit, once all is charged."""
    request, model, plan = call.request, call.model, call.opened.plan
    public = request.protection.n_is_public
    read = read_all(call.reader)
    columns, offsets = model.places(design)
    response = design.response.offset, design.response.width
    seen = look_at_family(
        read,
        design,
        FAMILIES[call.family](design),
        call.opened,
        response=response,
        columns=columns,
        offsets=offsets,
        known=[design.columns[j].width for j in offsets],
        trials=model.trials_of(design),
        public=public,
    )
    law, space = family_law(seen.looks[-1], plan.degrees), call.space(design)
    laws = family_laws(seen.looks[-1], plan.degrees)
    choice = choose(laws, space, false_inclusions=float(request.false_inclusions))
    places = columns_of_units(space, choice.model)
    chosen = [(0, *columns)[place] for place in places]
    later = None
    if call.opened.later is not None:
        later = look_at_chosen(
            read,
            design,
            seen,
            locate_chosen(seen, law, places[1:]),
            call.opened.at_chosen(len(chosen) - 1),
            response=response,
            columns=chosen[1:],
            offsets=offsets,
            trials=model.trials_of(design),
        )
    facts = facts.after(call.reader.rows if public else None, call.reader.passes)
    facts = replace(facts, formula=_formula(model, design, chosen))
    regression = None
    if later is not None:
        looks = [at_fit(look, later.plan) for look in later.looks]
        regression = glm_results(model, design, later, facts, columns=chosen, looks=looks)
    elif request.fit == "same":
        regression = glm_results(model, design, seen, facts, columns=chosen, beside_all=True)
    told = _Told(seen, law, choice, regression)
    return _results(call, design, space, told, facts)


@dataclass(frozen=True, slots=True)
class _Told:
    """What was learned from the rows, all of it released."""

    seen: FamilyLooked
    law: LookLaw
    choice: Choice
    regression: GLMResults | None


def _results(
    call: _Planned, design: Design, space: Space, told: _Told, facts: CallFacts
) -> GLMSelectionResults:
    request, model, seen, choice = call.request, call.model, told.seen, told.choice
    if astray(seen):
        choice = replace(choice, found=(), groups=())
    columns = (0, *model.places(design)[0])
    at = [columns[place] for place in columns_of_units(space, choice.found)]
    family = seen.fit.family
    return GLMSelectionResults(
        **of_choice(request, design, space, facts, choice),
        formula=request.formula,
        response=model.response,
        columns=_columns(call, design, space),
        selected_formula=_formula(model, design, at),
        mechanism=seen.plan.mechanism,
        notes=_notes(told),
        choice_errors=errors_of(choice, space, [1 / design.columns[j].width for j in columns]),
        looks=written(seen),
        regression=told.regression,
        family=family.name,
        link=family.link,
        converged=converged(seen),
        offset=model.offset,
        trials=model.trials,
    )


def _notes(told: _Told) -> tuple[str, ...]:
    """Return the notes on the choice."""
    notes = list(hidden(told.choice))
    for doubt in doubts_of(told.seen, told.law):
        notes.append(f"{doubt} The same holds for the choice: false_inclusions is not promised.")
    if astray(told.seen):
        notes.append(
            "No candidate is reported: the noise has thrown the fit off. The terms that the tests "
            "would have found are in `best`."
        )
    return tuple(notes)


def _columns(call: _Planned, design: Design, space: Space) -> dict[str, tuple[str, ...]]:
    """Name the design columns of every term or unit, without offset and trials."""
    named_columns = columns_of_terms(design, space, call.request.units)
    return {name: at for name, at in named_columns.items() if name not in call.model.known}


def _formula(model: Model, design: Design, columns: Sequence[int]) -> str:
    """Write the formula of a model as a caller of `dp_glm` would, without the offset."""
    right = formula_of(design, columns).partition("~")[2]
    return f"{model.response} ~{right}"
