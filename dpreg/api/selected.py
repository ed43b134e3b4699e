"""What results of every selection hold, and how they name terms, columns and models.

Tested in `tests/api/test_select_adaptive.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dpreg.api.context import CallFacts
from dpreg.choice import Choice
from dpreg.formula.design import Design
from dpreg.request import SelectionRequest
from dpreg.selection.space import Space

__all__ = [
    "columns_of_terms",
    "columns_of_units",
    "errors_of",
    "hidden",
    "named",
    "of_call",
    "of_choice",
]


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
