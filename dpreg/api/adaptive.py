"""From looks to released coefficients of any family: what decides on looks, what they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from dpreg.api.coefficients import CallFacts, exclusive_groups, released
from dpreg.errors import ArgumentError, DataError
from dpreg.formula.design import Design
from dpreg.looks.estimates import estimates
from dpreg.looks.locate import explained
from dpreg.looks.loop import Seen
from dpreg.looks.model import Model
from dpreg.looks.need import too_few
from dpreg.looks.plan import LookPlan, plan_looks
from dpreg.looks.tuning import TUNING
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.results.glm import GLMResults
from dpreg.results.looks import ReleasedLook
from dpreg.results.regression import RegressionResults
from dpreg.sources.reader import Reader

__all__ = [
    "every_row",
    "family_results",
    "linear_results",
    "looks_or_reason",
    "read_before",
    "written",
]

_WIDE: Final = 400  # work: columns beyond which "auto" does not look to choose
_MARKED: Final = (
    "Marked columns: 'wide' where much of the interval is a guess at what the release does not "
    "show; no interval where the noise hides the column."
)


def every_row(reader: Reader, design: Design, protection: Protection) -> Reader:
    """Return the reader for looks: of persons it brings all rows, as sums are limited."""
    if reader.persons is None or protection.capped:
        return reader
    return reader.every_row(design.types)


def read_before(reader: Reader, passes: int) -> str:
    """Return why looks cannot bring all rows of a person; empty if they can.

    Rows that were brought together for bounds are some of each person's: looks bring them together
    once more.
    """
    if reader.persons is None or not passes:
        return ""
    reader.hold()
    if reader.rereadable:
        return ""
    return "the rows can be read once, and bounds have to be bought of them"


def looks_or_reason(
    design: Design,
    reader: Reader,
    cost: Budget,
    protection: Protection,
    *,
    method: str,
    noise: str | None,
    passes: int,
    rows: int | None = None,
    chooses: bool = False,
    later: Fraction = Fraction(0),
) -> LookPlan | str:
    """Plan the looks, or say why a single one does better here; from public facts alone.

    Parameters
    ----------
    design : Design
        Its bounds need not be known yet.
    reader : Reader
    cost : Budget
        What the coefficients may cost.
    protection : Protection
    method : {"auto", "adaptive"}
        "adaptive" raises where "auto" gives a reason.
    noise : {"gaussian", "matrix-laplace"}, optional
    passes : int
        Made before the first look.
    rows : int, optional
        How many there are, or about how many, where that is public.
    chooses, later
        As for `plan_looks`.
    """
    columns = len(design.columns) - 1

    def planned(cost: Budget) -> LookPlan:
        return plan_looks(
            columns,
            cost,
            protection,
            exclusive=exclusive_groups(design, range(columns + 1)),
            noise=noise,
            chooses=chooses,
            later=later,
        )

    plan, instead = planned(cost), "pcls" if chooses else "gram"
    wanted = passes + plan.most
    once = read_before(reader, passes)
    if once and method == "adaptive":
        raise DataError(
            f'method="adaptive": {once}. Declare the bounds, or give a table that stays.'
        )
    if method == "auto":
        if once:
            return once
        if reader.persons is None and not reader.rereadable:
            return "the rows can be read once, and may not be held for looks"
        if not columns:
            return "there are no columns to look at"
        if chooses and columns > _WIDE:
            return f"looks at {columns:,} columns would take minutes"
    short = "" if rows is None else too_few(planned, cost, rows)
    if short and method == "adaptive":
        raise ArgumentError(f'method="adaptive": {short} Use method="{instead}", or a larger eps.')
    if not short:
        reader.require(wanted)
    return short or plan


def written(seen: Seen) -> tuple[ReleasedLook, ...]:
    """Write the looks as results keep them."""
    size = len(seen.box.cells) - 2
    first = ReleasedLook(
        kind="box",
        mechanism=seen.plan.mechanism,
        share=seen.plan.box_share,
        limits=(),
        information=seen.box.cells,
        information_sd=float(np.max(seen.box.noise_sd)),
        score=np.zeros(0),
        score_sd=0.0,
        middle=np.zeros((0, 0)),
        middle_sd=0.0,
        trace=0.0,
        whitening=np.eye(size),
        offset=np.zeros(size),
        center=np.zeros(size + 1),
        weight=1.0,
    )
    later = (
        ReleasedLook(
            kind="locating" if one.together else "fitting",
            mechanism=seen.plan.mechanism,
            share=Fraction(one.share).limit_denominator(1000),
            limits=one.limits,
            information=one.information,
            information_sd=one.information_sd,
            score=one.score,
            score_sd=one.score_sd,
            middle=np.zeros((0, 0)) if one.middle is None else one.middle,
            middle_sd=one.middle_sd,
            trace=one.trace,
            whitening=one.point.whitening,
            offset=one.point.moved,
            center=one.point.shift,
            weight=one.point.weight,
        )
        for one in seen.releases
    )
    return (first, *later)


def _own(seen: Seen, facts: CallFacts) -> tuple[ReleasedLook, ...]:
    """Return a fit's own looks: after a choice those at the chosen columns, if there are any."""
    if facts.fit == "same":
        return ()
    return written(seen)[facts.fit == "fresh" :]


def linear_results(
    design: Design,
    columns: Sequence[int],
    seen: Seen,
    facts: CallFacts,
    *,
    places: Sequence[int] | None = None,
    among: Sequence[int] | None = None,
    **more: Any,
) -> RegressionResults:
    """Make the result of a linear model.

    Parameters
    ----------
    design : Design
    columns : sequence of int
        The model's z columns.
    seen : Seen
    facts : CallFacts
        After the rows were read.
    places : sequence of int, optional
        Where they stand among those that were looked at; None: all were.
    among : sequence of int, optional
        The places of a larger model, beside all of which they are wanted.
    **more
        Further fields of the result.
    """
    names = [design.columns[j].name for j in columns]
    at = list(columns) if places is None else list(places)
    found = estimates(seen, at, names, design.to_user_units(columns), among=among)
    width = design.response.width
    variance = found.residual_variance
    share = explained(seen.releases[-1], seen.rows)
    if 0 not in columns:  # without a constant R-squared is about 0, not about the mean
        share = max(float(seen.box.cells[-1, -1]) / max(seen.rows, 1.0) - variance, 0.0)
    return released(
        RegressionResults,
        design,
        columns,
        replace(facts, whole=seen.plan.whole),
        **found.fields,
        error_variance=variance * width**2,
        explained=share / (share + variance),
        complete_rows=None if seen.plan.persons else seen.rows,
        error_df=None if facts.rows is None else max(seen.rows - len(columns), 1.0),
        method="adaptive",
        noise=seen.plan.mechanism,
        noise_degrees=seen.plan.degrees,
        scaling="box",
        releases=_own(seen, facts),
        among=None if among is None else len(among) - (0 in among),
        notes=(*facts.notes, *([_MARKED] if found.marks and among is None else [])),
        **more,
    )


def family_results(
    model: Model,
    design: Design,
    seen: Seen,
    facts: CallFacts,
    *,
    columns: Sequence[int] | None = None,
    places: Sequence[int] | None = None,
    among: Sequence[int] | None = None,
    **more: Any,
) -> GLMResults:
    """Make the result of a generalised linear model; arguments as for a linear one."""
    chosen = (0, *model.places(design)[0]) if columns is None else tuple(columns)
    at = list(range(len(chosen))) if places is None else list(places)
    names = [design.columns[j].name for j in chosen]
    found = estimates(seen, at, names, model.to_user_units(design, chosen), among=among)
    offsets = model.places(design)[1]
    quasi = bool(getattr(seen.family, "quasi", False))
    dispersion = found.law.dispersion if found.law.shown else float("nan")
    return released(
        GLMResults,
        design,
        chosen,
        replace(facts, whole=seen.plan.whole),
        design_formula=model.formula,
        endog_names=model.response,
        **found.fields,
        error_variance=dispersion if quasi else 1.0,
        explained=None,
        complete_rows=None if seen.plan.persons else seen.rows,
        error_df=None if facts.rows is None else max(seen.rows - len(chosen), 1.0),
        method="adaptive",
        noise=seen.plan.mechanism,
        noise_degrees=seen.plan.degrees,
        scaling="box",
        releases=_own(seen, facts),
        family=seen.family.name,
        link=seen.family.link,
        offset=None if not offsets else design.columns[offsets[0]].name,
        success=model.success,
        trials=model.trials,
        among=None if among is None else len(among) - 1,
        notes=(*facts.notes, *([_MARKED] if found.marks and among is None else [])),
        converged=found.found.step < TUNING.longest / 2,
        **more,
    )
