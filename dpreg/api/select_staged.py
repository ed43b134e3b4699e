"""`dp_select` by looks: a choice made from released numbers alone, and its coefficients.

The rows are read by the looks. The choice among terms is a function of what the last look released:
it costs nothing. One more look at the chosen columns, where it is asked for, has a budget of its
own.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpreg.api.coefficients import CallFacts
from dpreg.api.select_route import StagedCall, Way
from dpreg.api.selected import (
    columns_of_terms,
    columns_of_units,
    errors_of,
    formula_of,
    hidden,
    of_choice,
)
from dpreg.api.staged import fit_of, read_all, written
from dpreg.choice import choose
from dpreg.formula.bounds import bounds_sources, buy_bounds
from dpreg.formula.design import Design
from dpreg.privacy.account import Account
from dpreg.results.selection import SelectionResults
from dpreg.selection.preparation import design_of, space_of
from dpreg.sources.reader import Reader
from dpreg.staged.again import locate_again
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
    read = read_all(reader)
    seen = look(read, design, staged.opened, public=public, choosing=request.fit != "same")
    choice = choose(seen.for_choice(), space, false_inclusions=float(request.false_inclusions))
    columns = columns_of_units(space, choice.model)
    later = None
    if request.fit == "fresh":
        later = _look_again(read, design, staged, seen, columns, public=public)
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
        whole = columns_of_units(space, range(len(space.units)))
        regression = fit_of(design, columns, seen, facts, among=whole)
    elif later is not None:
        regression = fit_of(
            design, columns, later, facts, looked_at=_looked_at(columns), looks=written(later)
        )
    return SelectionResults(
        **of_choice(request, design, space, facts, choice),
        formula=design.formula,
        response=design.response.name,
        columns=columns_of_terms(design, space, request.units),
        selected_formula=formula_of(design, columns_of_units(space, choice.found)),
        mechanism=seen.plan.mechanism,
        choice_errors=errors_of(
            choice, space, [design.response.width / c.width for c in design.columns]
        ),
        notes=(*way.notes, *hidden(choice)),
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


def _looked_at(columns: Sequence[int]) -> tuple[int, ...]:
    return (0, *(j for j in columns if j))
