"""From looks at a family to released coefficients, in the user's units.

Tested in `tests/api/test_glm.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpreg.api.coefficients import CallFacts, eps_for, released
from dpreg.families.estimate import estimate
from dpreg.families.family import Family
from dpreg.families.looks import FamilyLook, FamilyLooked
from dpreg.families.model import Model
from dpreg.families.plan import FamilyPlan
from dpreg.formula.design import Design
from dpreg.privacy.budget import Budget
from dpreg.results.glm import GLMResults
from dpreg.results.looks import Look

__all__ = ["at_fit", "few_rows", "glm_results", "written"]


def few_rows(
    planned: Callable[..., FamilyPlan],
    cost: Budget,
    rows: int,
    then: str = "The call gives coefficients alone.",
) -> str | None:
    """Say, from public numbers, that so many rows are too few for intervals; None where not.

    Parameters
    ----------
    planned : callable
        Makes the plan of looks that may have a `cost`.
    cost : Budget
    rows : int
    then : str
        What the call will do.
    """

    def needed_at(eps: Fraction) -> float:
        trial = planned(cost=Budget(eps, cost.delta))
        return trial.rows_needed

    needed = needed_at(cost.eps)
    if rows >= needed:
        return None
    eps = eps_for(rows, cost.eps, needed_at)
    return (
        f"{rows:,} rows are too few for intervals at this budget: about {needed:,.0f} would do, or "
        f"an eps of about {eps:.2g}. {then}"
    )


def glm_results(
    model: Model,
    design: Design,
    seen: FamilyLooked,
    facts: CallFacts,
    *,
    columns: Sequence[int] | None = None,
    beside_all: bool = False,
    looks: Sequence[Look] = (),
) -> GLMResults:
    """Make the result of what the looks released, in the user's units.

    Parameters
    ----------
    model, design, seen, facts
    columns : sequence of int, optional
        The stored columns of the result, 0 first; default: all that have coefficients.
    beside_all : bool
        Whether they are a part of those that were looked at, and wanted beside all the others.
    looks : sequence of Look
        As the result keeps them.
    """
    whole = (0, *model.places(design)[0])
    chosen = whole if columns is None else tuple(columns)
    fitted = whole if beside_all else chosen
    found = estimate(seen, [design.columns[j].name for j in fitted])
    if beside_all:
        found = found.of([fitted.index(j) for j in chosen])
    names = tuple(design.columns[j].name for j in chosen)
    transform, shift = model.to_user_units(design, chosen)
    sampling = transform @ found.sampling @ transform.T
    privacy = transform @ found.privacy @ transform.T
    rows = facts.rows if facts.fit != "split" else None
    return _results(
        model,
        design,
        seen.fit.family,
        chosen,
        facts,
        coefficients=transform @ found.params + shift,
        covariance=sampling + privacy,
        privacy_covariance=privacy,
        sampling_errors=np.sqrt(np.maximum(np.diag(sampling), 0.0)),
        privacy_errors=np.sqrt(np.maximum(np.diag(privacy), 0.0)),
        error_variance=found.dispersion,
        complete_rows=found.count,
        error_df=None if rows is None else max(found.count - len(fitted), 1.0),
        method="staged",
        noise=seen.plan.mechanism,
        noise_degrees=seen.plan.degrees,
        looks=tuple(looks),
        weak={names[place]: "hidden direction" for place in found.weak},
        among=len(fitted) - 1 if beside_all else None,
        notes=(*facts.notes, *found.notes),
        converged=found.converged,
    )


def _results(
    model: Model,
    design: Design,
    family: Family,
    columns: Sequence[int],
    facts: CallFacts,
    **fitted: Any,
) -> GLMResults:
    """Make a result of what was fitted and of what all fits of the model have in common."""
    offsets = model.places(design)[1]
    return released(
        GLMResults,
        design,
        columns,
        facts,
        design_formula=model.formula,
        endog_names=model.response,
        explained=None,
        scaling="box",
        family=family.name,
        link=family.link,
        offset=None if not offsets else design.columns[offsets[0]].name,
        success=model.success,
        trials=model.trials,
        **fitted,
    )


def written(seen: FamilyLooked) -> tuple[Look, ...]:
    """Write the looks as results keep them, that at the box first."""
    size = len(seen.box) - 2
    first = Look(
        mechanism=seen.plan.mechanism,
        share=seen.first_share,
        radius=None,
        width=1.0,
        opened=False,
        weight=1.0,
        cells=seen.box,
        noise_sd=seen.box_sd,
        whitening=np.eye(size),
        offset=np.zeros(size),
        center=np.zeros(size + 1),
    )
    return first, *(at_fit(look, seen.plan) for look in seen.looks)


def at_fit(look: FamilyLook, plan: FamilyPlan) -> Look:
    """Write one look at a fit."""
    return Look(
        mechanism=plan.mechanism,
        share=plan.part_of_whole(look.share),
        radius=float(np.sqrt(look.location.information)),
        width=look.location.score,
        opened=False,
        weight=min(max(float(look.cells[0, 0]) / look.fit.rows, 0.0), 3.0),
        cells=look.cells,
        noise_sd=look.noise_sd,
        whitening=look.location.whitening,
        offset=look.location.offset,
        center=look.location.shift,
    )
