"""`dp_select` by looks: a choice made from released numbers alone, and its coefficients.

The rows are read by the looks. The choice among terms is a function of what the last look released:
it costs nothing. Looks at the chosen columns, where they are asked for, have a share of the budget.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpreg.api.adaptive import every_row, linear_results, written
from dpreg.api.coefficients import CallFacts
from dpreg.api.select_route import AdaptiveCall, Way
from dpreg.api.selected import (
    columns_of_terms,
    columns_of_units,
    errors_of,
    formula_of,
    hidden,
    of_choice,
)
from dpreg.choice import Choice, choose
from dpreg.formula.bounds import bounds_sources, buy_bounds
from dpreg.looks.chosen import laws_for_choice, point_of_chosen
from dpreg.looks.described import Described
from dpreg.looks.families import Family, Linear
from dpreg.looks.loop import Seen, look, look_at_chosen
from dpreg.looks.table import Table
from dpreg.privacy.account import Account
from dpreg.results.selection import SelectionResults
from dpreg.selection.preparation import design_of, space_of
from dpreg.selection.space import Space
from dpreg.sources.reader import Reader

__all__ = ["Chosen", "choose_by_looks", "select_adaptive"]


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


def choose_by_looks(table: Table, family: Family, space: Space, most: float) -> Chosen:
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


def select_adaptive(
    way: Way, call: AdaptiveCall, reader: Reader, account: Account, progress: bool | None
) -> SelectionResults:
    """Look at the rows, choose terms, and fit the chosen ones.

    Parameters
    ----------
    way : Way
    call : AdaptiveCall
        Of this way.
    reader : Reader
    account : Account
        Of the whole call, charged.
    progress : bool or None
        As the caller of `dp_select` said.
    """
    request, public = way.request, way.request.protection.n_is_public
    design = design_of(request, buy_bounds(reader, call.schema, call.bounds))
    reader = every_row(reader, design, request.protection)
    space = space_of(request, design)
    described = Described(tuple(range(1, len(design.columns))), levels=design.levels)
    table = Table(reader, design, described, call.opened)
    found = choose_by_looks(table, Linear(), space, float(request.false_inclusions))
    facts = CallFacts(
        formula=formula_of(design, found.places),
        fit=request.fit or "fixed",
        budget=request.budget,
        rows=reader.rows if public else None,
        passes=reader.passes,
        bounds=bounds_sources(design.needed, call.unbounded),
        account=account,
    )
    regression = None
    if request.fit == "same" and found.places:
        whole = columns_of_units(space, range(len(space.units)))
        regression = linear_results(design, found.places, found.seen, facts, among=whole)
    elif found.later is not None:
        places = found.later_places
        regression = linear_results(design, found.places, found.later, facts, places=places)
    facts = replace(facts, whole=table.plan.whole)
    return SelectionResults(
        **of_choice(request, design, space, facts, found.choice),
        formula=design.formula,
        response=design.response.name,
        columns=columns_of_terms(design, space, request.units),
        selected_formula=formula_of(design, columns_of_units(space, found.choice.found)),
        mechanism=table.plan.mechanism,
        choice_errors=errors_of(
            found.choice, space, [design.response.width / c.width for c in design.columns]
        ),
        notes=(*way.notes, *hidden(found.choice)),
        releases=written(found.seen),
        regression=regression,
    )
