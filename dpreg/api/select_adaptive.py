"""`dp_select` by looks: a choice made from released numbers alone, and its coefficients.

The rows are read by the looks. The choice among terms is a function of what the last look released:
it costs nothing. Looks at the chosen columns, where they are asked for, have a share of the budget.
Linear models and families differ in their scores alone (`dpreg.api.looks`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dpreg.api.context import Context, read_before
from dpreg.api.looks import FamilyModel, LinearModel, Looks, fitted, written
from dpreg.api.selected import (
    columns_of_terms,
    columns_of_units,
    errors_of,
    hidden,
    of_choice,
)
from dpreg.choice import Choice, choose
from dpreg.errors import DataError
from dpreg.formula.bounds import announce
from dpreg.formula.design import Design
from dpreg.looks.families import Family
from dpreg.looks.loop import Seen, laws_for_choice, look, look_at_chosen, point_of_chosen
from dpreg.looks.model import Asked
from dpreg.looks.plan import Opened, fresh_share
from dpreg.looks.table import Table
from dpreg.privacy.account import Account, Part
from dpreg.privacy.budget import Budget
from dpreg.request import SelectionRequest
from dpreg.results.glm_selection import GLMSelectionResults
from dpreg.results.selection import SelectionResults
from dpreg.running import warn
from dpreg.schema import Schema
from dpreg.selection.preparation import design_of
from dpreg.selection.space import Space, build_space
from dpreg.sources.reader import Reader

if TYPE_CHECKING:
    from dpreg.privacy.ledger import Ledger

__all__ = ["ByLooks", "Chosen", "choose_by_looks", "select_family"]

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
