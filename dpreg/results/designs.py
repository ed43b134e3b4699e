"""The design of a fitted model, built again from formula and schema: for predictions and terms.

A result holds formula and schema, which are public, and never a row. From them its design is built
whenever it is needed.

Tested in `tests/results/test_regression.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpreg.errors import ArgumentError, NotReleased, shown
from dpreg.formula.design import build_design

if TYPE_CHECKING:
    import pandas as pd

    from dpreg.formula.design import Design
    from dpreg.results.regression import RegressionResults

__all__ = ["design_rows", "levels_of", "term_places"]


def design_rows(
    fit: RegressionResults, exog: pd.DataFrame | None, names: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return raw design columns, by default the model's, for the rows of the analyst's table."""
    if exog is None:
        raise NotReleased("fitted values are not released: give predict() a table of your own.")
    design = _design(fit)
    place = {column.name: j for j, column in enumerate(design.columns)}
    wanted = fit.exog_names if names is None else names
    if not place.keys() >= set(wanted):
        raise ArgumentError("exog_names are not columns of the design of this formula")
    return design.matrix(exog, [place[name] for name in wanted])


def term_places(fit: RegressionResults) -> dict[str, tuple[int, ...]]:
    """Return each term's places in `exog_names`, in the order of the formula."""
    design, places = _design(fit), {name: j for j, name in enumerate(fit.exog_names)}
    found = {}
    for term in design.terms:
        names = [design.columns[j].name for j in term.columns]
        if here := tuple(places[name] for name in names if name in places):
            found[term.name] = here
    return found


def levels_of(fit: RegressionResults, term: str) -> tuple[str, ...]:
    """Return the levels of a factor of the model, in their declared order."""
    levels = _design(fit).levels_of(term)
    if levels is None or term not in term_places(fit):
        listed = ", ".join(repr(name) for name in term_places(fit))
        raise ArgumentError(
            f"term_name must be a factor with levels; got {shown(term)}. The terms are {listed}."
        )
    return levels


def _design(fit: RegressionResults) -> Design:
    formula = fit.design_formula or fit.formula
    return build_design(formula, fit.schema, keep=(), clip=fit.clip, center=fit.center)
