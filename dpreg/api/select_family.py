"""`dp_select` for a family: a choice among the terms of a generalised linear model.

The looks, the choice and the looks at chosen columns are those of a linear model
(`dpreg.api.select_adaptive`), at the family's scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Final

from dpreg.api.adaptive import every_row, family_results, read_before, written
from dpreg.api.coefficients import CallFacts, exclusive_groups
from dpreg.api.select_adaptive import Chosen, choose_by_looks
from dpreg.api.selected import (
    columns_of_terms,
    columns_of_units,
    errors_of,
    formula_of,
    hidden,
    of_choice,
)
from dpreg.errors import ArgumentError, DataError, DpregWarning
from dpreg.formula.bounds import (
    announce,
    bounds_sources,
    buy_bounds,
    check_table,
    open_bounds,
    with_stand_ins,
)
from dpreg.formula.design import Design, undeclared
from dpreg.looks.families import family_of
from dpreg.looks.locate import advance
from dpreg.looks.model import Asked, Model
from dpreg.looks.need import too_few
from dpreg.looks.plan import Opened, fresh_share, plan_looks
from dpreg.looks.table import Table
from dpreg.looks.tuning import TUNING
from dpreg.privacy.budget import Budget
from dpreg.request import SHARES, SelectionRequest
from dpreg.results.glm_selection import GLMSelectionResults
from dpreg.schema import Schema
from dpreg.selection.space import Space, build_space
from dpreg.sources.reader import Reader

if TYPE_CHECKING:
    from dpreg.privacy.ledger import Ledger

__all__ = ["select_family"]

_MOVING: Final = (
    "The fit had not settled when terms were chosen: false_inclusions is not promised. It takes "
    "more rows, or a larger eps."
)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call whose looks are open.

    Attributes
    ----------
    request : SelectionRequest
    family : str
    model : Model
    opened : Opened
    """

    request: SelectionRequest
    family: str
    model: Model
    opened: Opened

    def space(self, design: Design) -> Space:
        """Return the models on offer, their columns numbered as they are looked at."""
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
    progress: bool | None,
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
    progress : bool or None
    """
    if request.fit == "auto":
        request = replace(request, fit="fresh")
    known, model = asked.model(request.formula, schema)
    unbounded = undeclared(model.formula, known, reader.source)
    trial = with_stand_ins(partial(model.design, keep=request.keep), known, unbounded)
    model.check(trial, unbounded, asked.family, call="dp_select")
    public, delta = request.protection.n_is_public, request.budget.delta
    passes = check_table(reader, trial.types, unbounded, counted=public and bool(unbounded))
    if "bounds" in request.shares and not unbounded:
        raise ArgumentError("shares names bounds, which this call does not need.")
    share = request.shares.get("bounds", SHARES["bounds"]) if unbounded else Fraction(0)
    columns, offsets = model.places(trial)
    fresh = request.shares.get("fit", fresh_share(delta))
    planned = partial(
        plan_looks,
        len(columns),
        protection=request.protection,
        others=len(offsets) + (model.trials is not None),
        exclusive=exclusive_groups(trial, range(len(trial.columns))),
        chooses=True,
        later=fresh if request.fit == "fresh" else Fraction(0),
    )
    cost = Budget(request.budget.eps * (1 - share), delta)
    plan, account = planned(cost=cost), request.account()
    reader.require(passes + plan.most)
    if once := read_before(reader, passes):
        raise DataError(f"data: {once}. Declare the bounds, or give a table that stays.")
    bounds = open_bounds(account, unbounded, share)
    call = _Call(request, asked.family, model, plan.open(account))
    call.space(trial)
    announce(bounds, stacklevel=4)
    rows = reader.source.rows if public else None
    if rows is not None:
        _warn(too_few(planned, cost, rows))
    account.charge(budget, f"dp_select: {request.formula}")
    if public and rows is None:
        _warn(too_few(planned, cost, reader.rows))
    design = model.design(buy_bounds(reader, known, bounds), request.keep)
    reader = every_row(reader, design, request.protection)
    table = Table(reader, design, model.described(design), call.opened)
    space, most = call.space(design), float(request.false_inclusions)
    found = choose_by_looks(table, family_of(call.family, design.response.hi), space, most)
    facts = CallFacts(
        formula="",
        fit=request.fit or "fixed",
        budget=request.budget,
        rows=reader.rows if public else None,
        passes=reader.passes,
        bounds=bounds_sources(design.needed, unbounded),
        account=account,
    )
    return _results(call, design, space, found, facts)


def _warn(few: str) -> None:
    if few:
        warnings.warn(f"{few} Terms may be missed.", DpregWarning, stacklevel=5)


def _results(
    call: _Call, design: Design, space: Space, found: Chosen, facts: CallFacts
) -> GLMSelectionResults:
    request, model, choice, seen = call.request, call.model, found.choice, found.seen
    columns = (0, *model.places(design)[0])
    chosen = [columns[place] for place in found.places]
    facts = replace(facts, formula=_formula(model, design, chosen))
    regression = None
    if found.later is not None:
        places = found.later_places
        regression = family_results(
            model, design, found.later, facts, columns=chosen, places=places
        )
    elif request.fit == "same":
        whole = range(len(columns))
        regression = family_results(
            model, design, seen, facts, columns=chosen, places=found.places, among=whole
        )
    reported = [columns[place] for place in columns_of_units(space, choice.found)]
    _, moved = advance(seen.releases[-1], seen.family, seen.rows, first=False)
    settled = moved.step * seen.releases[-1].point.dispersion < (TUNING.longest / 2) ** 2
    facts = replace(facts, whole=seen.plan.whole)
    return GLMSelectionResults(
        **of_choice(request, design, space, facts, choice),
        formula=request.formula,
        response=model.response,
        columns=_columns(call, design, space),
        selected_formula=_formula(model, design, reported),
        mechanism=seen.plan.mechanism,
        notes=(*hidden(choice), *[_MOVING] * (not settled)),
        choice_errors=errors_of(choice, space, [1 / design.columns[j].width for j in columns]),
        releases=written(seen),
        regression=regression,
        family=seen.family.name,
        link=seen.family.link,
        converged=settled,
        offset=model.offset,
        trials=model.trials,
    )


def _columns(call: _Call, design: Design, space: Space) -> dict[str, tuple[str, ...]]:
    """Name the design columns of every term or unit, without offset and trials."""
    named_columns = columns_of_terms(design, space, call.request.units)
    return {name: at for name, at in named_columns.items() if name not in call.model.known}


def _formula(model: Model, design: Design, columns: Sequence[int]) -> str:
    """Write the formula of a model as a caller of `dp_glm` would, without the offset."""
    right = formula_of(design, columns).partition("~")[2]
    return f"{model.response} ~{right}"
