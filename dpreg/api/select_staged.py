"""`dp_select` by looks: a choice made from released numbers alone, and its coefficients.

The rows are read by the looks. The choice among terms, its doubts, its stability and the
coefficients given the choice are functions of what the last look released: they cost nothing. One
more look at the chosen columns, where it is asked for, has a budget of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpreg.api.coefficients import CallFacts
from dpreg.api.select_route import StagedCall, Way
from dpreg.api.selected import columns_of_terms, columns_of_units, formula_of, named, of_choice
from dpreg.api.staged import box_fit, fit_of, reads_of, written
from dpreg.formula.bounds import bounds_sources, buy_bounds
from dpreg.formula.design import Design
from dpreg.privacy.account import Account
from dpreg.results.regression import RegressionResults
from dpreg.results.selection import SelectionResults
from dpreg.selection.preparation import design_of, space_of
from dpreg.selection.space import Space
from dpreg.sources.reader import Reader
from dpreg.staged.again import locate_again
from dpreg.staged.choice.choose import choose, conditional_laws
from dpreg.staged.choice.coefficients import ModelFit, fit_model
from dpreg.staged.choice.confirm import faded
from dpreg.staged.choice.problem import Model
from dpreg.staged.looks import Looked, Read, look, look_at
from dpreg.staged.tails import NORMAL

__all__ = ["select_staged"]


def select_staged(
    way: Way, staged: StagedCall, reader: Reader, account: Account
) -> SelectionResults:
    """Look at the rows, choose terms, and fit the chosen ones.

    Parameters
    ----------
    way : Way
    staged : StagedCall
        Of this way.
    reader : Reader
    account : Account
        Of the whole call, charged.
    """
    request, public = way.request, way.request.protection.n_is_public
    design = design_of(request, buy_bounds(reader, staged.schema, staged.bounds))
    space = space_of(request, design)
    halves = staged.opened.plan.split
    read, again = reads_of(reader, account.rng, split=halves)
    known = public and not halves
    narrow = request.fit != "same"
    seen = look(read, design, staged.opened, public=known, choosing=narrow)
    law, alpha = seen.law(choosing=narrow), float(request.false_inclusions)
    choice, problem, verdict = choose(law, space, false_inclusions=alpha)
    columns = columns_of_units(space, verdict.model)
    later = None
    if request.fit in ("fresh", "split"):
        later = _look_again(again, design, staged, seen, columns, public=known)
    facts = CallFacts(
        formula=formula_of(design, columns),
        fit=request.fit or "fixed",
        budget=request.budget,
        rows=reader.rows if public else None,
        passes=reader.passes,
        bounds=bounds_sources(design.needed, staged.unbounded),
        account=account,
    )
    regression, doubts = None, tuple[str, ...]()
    if request.fit == "same" and columns:
        units = design.to_user_units(columns)
        given = conditional_laws(law, problem, verdict, alpha, units=units)
        regression = fit_of(design, columns, seen, facts, conditional=given)
    elif later is not None:
        regression = _fresh_fit(design, columns, later, facts)
        first = fit_model(law, problem, verdict.model)
        doubts = _faded(space, design, first, later, verdict.reported)
    return SelectionResults(
        **of_choice(request, design, space, facts, choice, verdict.reported),
        formula=design.formula,
        response=design.response.name,
        columns=columns_of_terms(design, space, request.units),
        selected_formula=formula_of(design, columns_of_units(space, verdict.reported)),
        mechanism=seen.plan.mechanism,
        notes=(*way.notes, *choice.notes, *doubts),
        best=named(design, space, verdict.model),
        alternatives=choice.alternatives,
        looks=written(seen),
        regression=regression,
    )


def _look_again(
    read: Read,
    design: Design,
    staged: StagedCall,
    seen: Looked,
    columns: list[int],
    *,
    public: bool,
) -> Looked | None:
    """Look once more, at the chosen columns; None where the chosen model has none at all."""
    if not columns:
        staged.opened.nothing_chosen()
        return None
    at = tuple(j for j in columns if j)
    located = locate_again(seen.law(), at, seen.looks[-1].coordinates.width)
    opened, tails = staged.opened.at_chosen(len(at)), seen.tail.heaviness or NORMAL
    return look_at(read, design, opened, located, tails=tails, columns=at, public=public)


def _fresh_fit(
    design: Design, columns: list[int], later: Looked, facts: CallFacts
) -> RegressionResults:
    return fit_of(
        design, columns, later, facts, looked_at=_looked_at(columns), looks=written(later)
    )


def _looked_at(columns: Sequence[int]) -> tuple[int, ...]:
    return (0, *(j for j in columns if j))


def _faded(
    space: Space, design: Design, fit: ModelFit, later: Looked, reported: Model
) -> tuple[str, ...]:
    """Name the reported terms that the later look finds to be much smaller, as it is released."""
    _, second = box_fit(later.law(), design, fit.columns, _looked_at(fit.columns))
    units = faded(space, fit, second.params, second.covariance, reported)
    if not units:
        return ()
    named = ", ".join(space.units[unit] for unit in units)
    return (
        f"Chosen, but much smaller in the look that fits the chosen terms: {named}. That look has "
        "noise of its own and cuts residuals farther out: a term may have been chosen by chance, "
        "or because only the spread of the residuals depends on it.",
    )
