"""From a plan of looks to released coefficients: what decides on it, and what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpreg.api.coefficients import CallFacts, exclusive_groups, released
from dpreg.errors import ArgumentError
from dpreg.formula.design import Design
from dpreg.moments import read_moments
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.results.looks import Look
from dpreg.results.regression import RegressionResults
from dpreg.sources.reader import Reader
from dpreg.staged.coefficients import Coefficients, coefficients
from dpreg.staged.flags import Flag, flags
from dpreg.staged.law import LookLaw
from dpreg.staged.looks import Looked, look
from dpreg.staged.plan import SHARES, LookPlan, OpenLooks, plan_looks

__all__ = ["fit_of", "looks_of", "looks_or_reason", "staged_fit", "written"]

Array = NDArray[np.float64]

_LARGEST_EPS: Final = 1e6
"""Beyond this the eps that few rows need is only told roughly."""


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
        Declared by the caller; else the number of rows where it is public.
    instead : str
        The method that a refusal names.
    """
    columns = len(design.columns) - 1
    wanted = passes + len(SHARES)
    if method == "auto":
        if not reader.source.rereadable and reader.persons is None:
            return f"the rows can be read once, and looks would read them {wanted} times"
        if not columns:
            return "there are no columns to look at"
    counted = expected_rows is None and protection.n_is_public
    reader.require(wanted, counted)
    exclusive = exclusive_groups(design, range(len(design.columns)))
    plan = plan_looks(columns, cost, protection, exclusive=exclusive, noise=noise)
    rows = reader.rows if counted else expected_rows
    if rows is None:
        if method == "staged":
            return plan
        return "the number of rows is private, and expected_rows does not say about how many"
    if rows < plan.rows_needed:
        short = (
            f"looks at {columns} columns need about {plan.rows_needed:,.0f} rows at this eps and "
            f"delta, and there are {rows:,}; with so many, eps must be about "
            f"{_eps_needed(plan, rows, cost, exclusive, noise):.2g}"
        )
        if method == "staged":
            raise ArgumentError(
                f'method="staged": {short}. Use method="{instead}", or a larger eps.'
            )
        return short
    return plan


def _eps_needed(
    plan: LookPlan, rows: int, cost: Budget, exclusive: Sequence[Sequence[int]], noise: str | None
) -> float:
    """Return about the eps, beside the same delta, at which so many rows are enough."""
    columns, eps = plan.size - 2, float(cost.eps)
    for _ in range(6):  # the need falls about like 1/eps: a few steps meet it
        eps *= max(plan.rows_needed, 1.0) / max(rows, 1)
        if eps > _LARGEST_EPS:
            break
        whole = Budget(Fraction(eps), cost.delta)
        plan = plan_looks(columns, whole, plan.protection, exclusive=exclusive, noise=noise)
    return eps


def looks_of(design: Design, reader: Reader, opened: OpenLooks, *, public: bool) -> Looked:
    """Look at all rows as often as planned; `public` says whether their number is."""
    return look(
        lambda vectors: read_moments(reader, vectors)[0],
        design,
        opened,
        public=public,
    )


def staged_fit(
    design: Design,
    columns: Sequence[int],
    reader: Reader,
    opened: OpenLooks,
    facts: CallFacts,
) -> RegressionResults:
    """Look at the rows, and estimate coefficients from the law of the last look.

    Parameters
    ----------
    design : Design
    columns : sequence of int
        The model's z columns.
    reader : Reader
    opened : OpenLooks
        Of the call's account, charged.
    facts : CallFacts
        Its rows and passes are filled in here.
    """
    public = facts.account.protection.n_is_public
    seen = looks_of(design, reader, opened, public=public)
    facts = facts.after(reader.rows if public else None, reader.passes)
    return fit_of(design, columns, seen, facts, looks=written(seen))


def fit_of(
    design: Design,
    columns: Sequence[int],
    seen: Looked,
    facts: CallFacts,
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
    **more
        Further fields of the result.
    """
    law = seen.law()
    box = coefficients(law, columns)
    to_user, shift = design.to_user_units(columns)
    freedom = law.count / max(law.count - len(columns), 1.0)
    sampling = to_user @ box.sampling @ to_user.T * freedom
    privacy = to_user @ box.privacy @ to_user.T
    rows = facts.rows
    found = flags(
        law,
        box,
        [design.columns[j].name for j in columns],
        needed=seen.plan.rows_needed,
    )
    return released(
        design,
        columns,
        facts,
        coefficients=to_user @ box.params + shift,
        covariance=sampling + privacy,
        privacy_covariance=privacy,
        se_sampling=np.sqrt(np.maximum(np.diag(sampling), 0.0)),
        se_privacy=np.sqrt(np.maximum(np.diag(privacy), 0.0)),
        residual_variance=box.residual * freedom * design.response.width**2,
        r_squared=_rsquared(seen, law, columns, box),
        nobs=rows,
        complete_rows=seen.count,
        residual_df=None if rows is None else max(seen.count - len(columns), 1.0),
        method="staged",
        noise=seen.plan.mechanism,
        noise_degrees=law.degrees,
        scaling="box",
        weak=_weak(design, columns, seen, found),
        column_widths=np.array([design.columns[j].width for j in columns]),
        notes=(*facts.notes, *(flag.text for flag in found)),
        **more,
    )


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
    grouped = {j for group in exclusive_groups(design, columns) for j in group}
    weak = {}
    for place in (place for flag in found if flag.kind == "unseen" for place in flag.columns):
        j = columns[place]
        rare = j in grouped and first.cells[0, j] < needed + 2 * first.noise_sd[0, j]
        weak[design.columns[j].name] = "rare level" if rare else "hidden direction"
    return weak
