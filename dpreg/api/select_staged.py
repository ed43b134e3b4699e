"""`dp_select` by looks: from a public rule to a choice that is made of released numbers alone.

The rows are read by the looks. The choice among terms, its doubts, its stability and the
coefficients given the choice are functions of what the last look released: they cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from dpreg.api.coefficients import CallFacts
from dpreg.api.selected import columns_of_terms, columns_of_units, formula_of, named
from dpreg.api.staged import fit_of, looks_of, looks_or_reason, written
from dpreg.errors import ArgumentError
from dpreg.formula.bounds import (
    announce,
    bounds_sources,
    buy_bounds,
    check_table,
    open_bounds,
    with_stand_ins,
)
from dpreg.formula.design import undeclared
from dpreg.privacy.account import Account, Part
from dpreg.privacy.budget import Budget
from dpreg.request import SHARES, SelectionRequest
from dpreg.results.selection import SelectionResults
from dpreg.schema import Schema
from dpreg.selection.preparation import design_of, space_of
from dpreg.sources.reader import Reader
from dpreg.staged.choice.choose import choose, conditional_fit
from dpreg.staged.plan import OpenLooks

if TYPE_CHECKING:
    from dpreg.privacy.ledger import Ledger

__all__ = ["StagedCall", "route", "select_staged"]


@dataclass(frozen=True, slots=True)
class StagedCall:
    """What a staged selection settles before a row is read.

    Attributes
    ----------
    schema : Schema
        As declared; the columns of `unbounded` are missing from it.
    unbounded : tuple of str
        Columns, read as numbers, whose bounds are bought.
    account : Account
        Every step's line is open, and nothing is charged yet.
    bounds : mapping of str to Part
    opened : OpenLooks
    """

    schema: Schema
    unbounded: tuple[str, ...]
    account: Account
    bounds: Mapping[str, Part]
    opened: OpenLooks


def route(
    request: SelectionRequest, schema: Schema, reader: Reader
) -> tuple[SelectionRequest, StagedCall | None, tuple[str, ...]]:
    """Settle the method of a selection from public facts, and open a staged one.

    Parameters
    ----------
    request : SelectionRequest
    schema : Schema
    reader : Reader

    Returns
    -------
    request : SelectionRequest
        Its method is no longer "auto".
    staged : StagedCall or None
        None for the paper's methods.
    notes : tuple of str
        Why "auto" took one of these.
    """
    if request.method not in ("auto", "staged"):
        return request, None, ()
    planned = _reason(request) or _planned(request, schema, reader)
    if isinstance(planned, str):
        return _by_the_paper(request, planned)
    announce(planned.bounds, stacklevel=4)
    fit = "same" if request.fit == "auto" else request.fit
    return replace(request, method="staged", fit=fit), planned, ()


def select_staged(
    request: SelectionRequest, staged: StagedCall, reader: Reader, ledger: Ledger | None
) -> SelectionResults:
    """Charge, look at the rows, choose terms, and fit the chosen ones.

    Parameters
    ----------
    request : SelectionRequest
        With ``method="staged"``.
    staged : StagedCall
        Of this request, from `route`.
    reader : Reader
    ledger : Ledger or None
    """
    account, public = staged.account, request.protection.n_is_public
    account.charge(ledger, f"dp_select: {request.formula}")
    design = design_of(request, buy_bounds(reader, staged.schema, staged.bounds))
    space = space_of(request, design)
    seen = looks_of(design, reader, staged.opened, public=public)
    law, alpha = seen.law(), float(request.false_inclusions)
    choice, problem, verdict = choose(law, space, false_inclusions=alpha)
    columns = columns_of_units(space, verdict.model)
    facts = CallFacts(
        formula=formula_of(design, columns),
        fit=request.fit or "fixed",
        budget=request.budget,
        rows=reader.rows if public else None,
        passes=reader.passes,
        bounds=bounds_sources(design.needed, staged.unbounded),
        account=account,
    )
    regression = None
    if request.fit == "same" and columns:
        units = design.to_user_units(columns)
        given = conditional_fit(law, problem, verdict, alpha, units=units)
        regression = fit_of(design, columns, seen, facts, conditional=given.laws)
    chosen = named(design, space, verdict.reported)
    return SelectionResults(
        formula=design.formula,
        schema=design.schema.to_dict(),
        response=design.response.name,
        candidates=space.units,
        kept=design.keep,
        columns=columns_of_terms(design, space, request.units),
        models=(chosen,),
        chosen=chosen,
        selected_formula=formula_of(design, columns_of_units(space, verdict.reported)),
        n_models=space.size,
        nobs=facts.rows,
        passes=facts.passes,
        method="staged",
        mechanism=seen.plan.mechanism,
        engine="search",
        units=request.units,
        hierarchy=request.hierarchy,
        max_terms=request.max_terms,
        eps=request.budget.eps,
        delta=request.budget.delta,
        radius=None,
        radius_source="none",
        clip=request.clip,
        center=design.center,
        penalty="auto",
        phi=None,
        psi=None,
        sigma2=None,
        bounds=facts.bounds,
        claim=facts.claim,
        notes=choice.notes,
        best=named(design, space, verdict.model),
        alternatives=choice.alternatives,
        chosen_again=choice.stability,
        certified=choice.certified,
        looks=written(seen),
        regression=regression,
    )


def _reason(request: SelectionRequest) -> str:
    """Return why the arguments alone send "auto" to the paper's method; empty if they do not."""
    if request.method == "staged":
        return ""
    if request.papers:
        return f"{', '.join(request.papers)} can be given to it alone"
    if request.fit in ("split", "share"):
        return f'fit="{request.fit}" can be asked of it alone'
    return ""


def _planned(request: SelectionRequest, schema: Schema, reader: Reader) -> StagedCall | str:
    """Open the account of a staged selection, or say why there is none; charges nothing."""
    unbounded = undeclared(request.formula, schema, reader.source)
    trial = with_stand_ins(partial(design_of, request), schema, unbounded)
    space_of(request, trial)
    if request.method == "staged" and len(trial.columns) < 2:
        raise ArgumentError('method="staged" needs columns to look at: use method="pcls".')
    counted = request.protection.n_is_public and bool(unbounded)
    passes = check_table(reader, trial.types, unbounded, counted=counted)
    if "bounds" in request.shares and not unbounded:
        raise ArgumentError("shares names bounds, which this call does not need.")
    share = request.shares.get("bounds", SHARES["bounds"]) if unbounded else Fraction(0)
    plan = looks_or_reason(
        trial,
        reader,
        Budget(request.budget.eps * (1 - share), request.budget.delta),
        request.protection,
        method=request.method,
        noise=None,
        passes=passes,
        expected_rows=request.expected_rows,
        instead="pcls",
    )
    if isinstance(plan, str):
        return plan
    account = request.account()
    bounds = open_bounds(account, unbounded, share)
    return StagedCall(schema, unbounded, account, bounds, plan.open(account))


def _by_the_paper(
    request: SelectionRequest, reason: str
) -> tuple[SelectionRequest, None, tuple[str, ...]]:
    """Turn to PCLS, and say why; where the radius is not given, say what it may do."""
    fit = request.fit
    notes = [f'method="pcls": {reason}.']
    if fit in ("auto", "same"):
        fit = "split"
        notes[0] += ' Coefficients are those of other rows than selected the terms (fit="split").'
    if request.radius_source == "default":
        notes.append(
            "The radius is the default: where moduli of scaled coefficients add up to more, strong "
            "terms shut each other out."
        )
    return replace(request, method="pcls", fit=fit), None, tuple(notes)
