"""From a plan of looks to released coefficients: what decides on it, and what it gives.

Tested in `tests/api/test_select_staged.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpreg.api.coefficients import CallFacts, eps_for, exclusive_groups, released
from dpreg.errors import ArgumentError
from dpreg.formula.design import Design
from dpreg.moments import Moments, Vectors, read_moments
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.results.looks import Look
from dpreg.results.regression import RegressionResults
from dpreg.sources.reader import Reader
from dpreg.staged.coefficients import Coefficients, coefficients
from dpreg.staged.flags import Flag, flags
from dpreg.staged.law import LookLaw
from dpreg.staged.looks import Looked, Read
from dpreg.staged.plan import LOOKS, LookPlan, plan_looks

__all__ = ["box_fit", "fit_of", "looks_or_reason", "read_all", "too_few", "written"]


def looks_or_reason(
    design: Design,
    reader: Reader,
    cost: Budget,
    protection: Protection,
    *,
    method: str,
    noise: str | None,
    passes: int,
    expected_rows: int | None,
    instead: str = "gram",
    later: Fraction = Fraction(0),
    count_later: bool = False,
) -> LookPlan | str:
    """Plan the looks, or say why one look in the box does better here; from public facts alone.

    Parameters
    ----------
    design : Design
        Its bounds need not be known yet.
    reader : Reader
    cost : Budget
        What the coefficients may cost.
    protection : Protection
    method : {"auto", "staged"}
        "staged" raises where "auto" gives a reason.
    noise : {"gaussian", "matrix-laplace"}, optional
    passes : int
        Made before the first look.
    expected_rows : int, optional
        Declared by the caller; else the number of rows where it is public and the table knows it.
        Rows are never counted here: that would read them before the charge.
    instead : str
        The method that a refusal names.
    later : Fraction
        Of one more look; see `plan_looks`.
    count_later : bool
        Where the number of rows is private and nobody declared it, return the plan: the caller is
        going to count, and to ask `too_few`.
    """
    columns = len(design.columns) - 1
    wanted = passes + LOOKS + (later > 0)
    if method == "auto":
        if not reader.source.rereadable and reader.persons is None:
            return f"the rows can be read once, and looks would read them {wanted} times"
        if not columns:
            return "there are no columns to look at"
    public = protection.n_is_public
    counted = expected_rows is None and public and reader.source.rows is not None
    reader.require(wanted, counted or count_later)
    exclusive = exclusive_groups(design, range(len(design.columns)))
    plan = plan_looks(columns, cost, protection, exclusive=exclusive, noise=noise, later=later)
    rows = reader.rows if counted else expected_rows
    if rows is None:
        if method == "staged" or count_later:
            return plan
        why = "not known before they are read" if public else "private"
        return f"the number of rows is {why}, and expected_rows does not say about how many"
    short = too_few(plan, design, rows, cost, noise=noise, later=later)
    if short and method == "staged":
        raise ArgumentError(f'method="staged": {short}. Use method="{instead}", or a larger eps.')
    if short:
        return short
    return plan


def too_few(
    plan: LookPlan,
    design: Design,
    rows: int,
    cost: Budget,
    *,
    noise: str | None = None,
    later: Fraction = Fraction(0),
    counted: str = "there are",
) -> str:
    """Return why so many rows are too few for a plan, and which eps would do; empty if they do.

    Parameters
    ----------
    plan, design, cost, noise, later
        As in `looks_or_reason`.
    rows : int
        Public, declared or released.
    counted : str
        The words before the number of rows in the message.
    """
    columns, needed = plan.size - 2, plan.rows_needed
    if rows >= needed:
        return ""

    def needed_at(eps: Fraction) -> float:
        trial = plan_looks(
            columns,
            Budget(eps, cost.delta),
            plan.protection,
            exclusive=exclusive_groups(design, range(len(design.columns))),
            noise=noise,
            later=later,
        )
        return trial.rows_needed

    eps = eps_for(rows, cost.eps, needed_at)
    return (
        f"looks at {columns} columns need about {needed:,.0f} rows at this eps and "
        f"delta, and {counted} {rows:,}; with so many, eps must be about {eps:.2g}"
    )


def read_all(reader: Reader) -> Read:
    """Return what reads the rows of the looks."""

    def read(vectors: Vectors) -> Moments:
        return read_moments(reader, vectors)[0]

    return read


def fit_of(
    design: Design,
    columns: Sequence[int],
    seen: Looked,
    facts: CallFacts,
    *,
    looked_at: Sequence[int] | None = None,
    among: Sequence[int] | None = None,
    **more: Any,
) -> RegressionResults:
    """Estimate the coefficients of a model from the law of the last look.

    Parameters
    ----------
    design : Design
    columns : sequence of int
        The model's z columns.
    seen : Looked
    facts : CallFacts
        After the rows were read.
    looked_at : sequence of int, optional
        The z columns that were looked at, 0 among them; None: all.
    among : sequence of int, optional
        The z columns of a larger model, beside all of which the coefficients are wanted.
    **more
        Further fields of the result.
    """
    law, fitted = seen.law(), list(among or columns)
    places, box = box_fit(law, design, fitted, looked_at)
    explained = _rsquared(seen, law, places, box)
    box = box.of([fitted.index(j) for j in columns])
    to_user, shift = design.to_user_units(columns)
    freedom = law.count / max(law.count - len(fitted), 1.0)
    sampling = to_user @ box.sampling @ to_user.T * freedom
    privacy = to_user @ box.privacy @ to_user.T
    rows = facts.rows if facts.fit != "split" else None
    found = flags(
        law,
        box,
        [design.columns[j].name for j in columns],
        needed=seen.plan.rows_needed,
    )
    return released(
        RegressionResults,
        design,
        columns,
        facts,
        coefficients=to_user @ box.params + shift,
        covariance=sampling + privacy,
        privacy_covariance=privacy,
        sampling_errors=np.sqrt(np.maximum(np.diag(sampling), 0.0)),
        privacy_errors=np.sqrt(np.maximum(np.diag(privacy), 0.0)),
        error_variance=box.residual * freedom * design.response.width**2,
        explained=explained,
        complete_rows=seen.count,
        error_df=None if rows is None else max(seen.count - len(fitted), 1.0),
        method="staged",
        noise=seen.plan.mechanism,
        noise_degrees=law.degrees,
        among=None if among is None else len(among) - (0 in among),
        scaling="box",
        weak=_weak(design, columns, seen, found),
        notes=(*facts.notes, *(flag.text for flag in found)),
        **more,
    )


def box_fit(
    law: LookLaw,
    design: Design,
    columns: Sequence[int],
    looked_at: Sequence[int] | None = None,
) -> tuple[list[int], Coefficients]:
    """Return the places of a model's columns in a law, and their coefficients in box units.

    Parameters
    ----------
    law : LookLaw
    design, columns, looked_at
        As for `fit_of`.
    """
    places = list(columns) if looked_at is None else [list(looked_at).index(j) for j in columns]
    grouped = {j for group in exclusive_groups(design, columns) for j in group}
    levels = [place for j, place in zip(columns, places, strict=True) if j in grouped]
    return places, coefficients(law, places, levels)


def written(seen: Looked) -> tuple[Look, ...]:
    """Write the looks as results keep them."""
    return tuple(
        Look(
            mechanism=seen.plan.mechanism,
            share=share,
            radius=None if at.boxed else float(np.sqrt(at.squared_radius)),
            width=at.width,
            opened=opened,
            weight=1.0 if at.boxed else min(max(float(one.cells[0, 0]) / seen.count, 0.0), 1.0),
            cells=one.cells,
            noise_sd=one.noise_sd,
            whitening=at.whitening,
            offset=at.offset,
            center=at.shift,
        )
        for one, share, opened in zip(seen.looks, seen.plan.shares, seen.opened, strict=True)
        for at in [one.coordinates]
    )


def _rsquared(seen: Looked, law: LookLaw, columns: Sequence[int], box: Coefficients) -> float:
    """Return the explained share of variance: the columns' moments are those of the last look."""
    last, size = seen.looks[-1], seen.plan.size - 1
    rows = np.eye(size)  # (1, u) = rows (1, x)
    rows[1:, 0], rows[1:, 1:] = last.coordinates.offset, last.coordinates.whitening
    back = np.linalg.pinv(rows)
    moments = back @ last.cells[:size, :size] @ back.T / law.weight / law.count
    beta = np.zeros(size)
    beta[list(columns)] = box.params
    if 0 in columns:
        beta[0] = -float(moments[0, 1:] @ beta[1:]) / max(float(moments[0, 0]), 1e-12)
    explained = max(float(beta @ moments @ beta), 0.0)
    return explained / max(explained + box.residual, 1e-300)


def _weak(
    design: Design, columns: Sequence[int], seen: Looked, found: Sequence[Flag]
) -> dict[str, str]:
    """Name the coefficients that the noise leaves weakly determined, and why."""
    first, needed = seen.looks[0], seen.plan.rows_needed
    boxed = first.coordinates.boxed
    grouped = {j for group in exclusive_groups(design, columns) for j in group if boxed}
    weak = {}
    for place in (place for flag in found if flag.kind == "unseen" for place in flag.columns):
        j = columns[place]
        rare = j in grouped and first.cells[0, j] < needed + 2 * first.noise_sd[0, j]
        weak[design.columns[j].name] = "rare level" if rare else "hidden direction"
    return weak
