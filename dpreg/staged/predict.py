"""What staged looks say before there are any data: for planning a choice.

The looks are gone through on rows that stand for those to come, made up or public, scaled up to n
rows. No noise is drawn; but all rules between looks allow for it as they do in a call, and the law
of the last look says how large the errors will be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dpreg.arrays import Floats
from dpreg.choice.released import Released
from dpreg.staged.clips import (
    Sums,
    allowed,
    heaviness_of,
    open_clips,
    open_early,
    wide_cut,
)
from dpreg.staged.coefficients import Coefficients, coefficients
from dpreg.staged.for_choice import laws_for_choice
from dpreg.staged.law import LookLaw, law
from dpreg.staged.locate import locate
from dpreg.staged.plan import LookPlan
from dpreg.staged.released import Coordinates, NoisyLook, Tail, box
from dpreg.staged.tails import FURTHER, NORMAL

__all__ = ["PredictedFit", "located_rows", "predict_fit", "predict_one_look", "spread_sums"]


@dataclass(frozen=True, slots=True, eq=False)
class PredictedFit:
    """What a staged release is expected to show, in box units.

    Parameters
    ----------
    law : LookLaw
        Of the last look, its noise at zero.
    fit : Coefficients
        Of all columns.
    least_squares : (d, d) array
        The covariance of least squares without privacy.
    for_choice : tuple of Released
        The law as a choice among terms reads it, where terms are to be chosen.
    """

    law: LookLaw
    fit: Coefficients
    least_squares: Floats
    for_choice: tuple[Released, ...] = ()

    @property
    def seen(self) -> float:
        """Least eigenvalue of the last look's moments over the noise in them."""
        return float(self.law.eigenvalues[0]) / self.law.noise_norm


def predict_fit(
    plan: LookPlan,
    x: Floats,
    y: Floats,
    rows: float,
    *,
    choosing: bool = False,
    narrow: bool = True,
) -> PredictedFit:
    """Go through the looks at made-up rows that stand for `rows` rows, without drawing noise.

    Parameters
    ----------
    plan : LookPlan
    x, y : (m, p) and (m,) arrays
        In the box [-1, 1]; each stands for rows / m rows.
    rows : float
    choosing : bool
        Whether terms are to be chosen.
    narrow : bool
        Whether the last look is only for that; see `dpreg.staged.looks.look`.
    """
    scale = rows / len(x)
    at = box(plan.size - 2)
    look = _expected(x, y, at, plan.box_noise().sd, plan.degrees, scale)
    located = locate(look)
    count, last, tails = located.count, len(plan.shares) - 1, NORMAL
    tail_sd = plan.tail_sd
    for place in range(1, last + 1):
        if place == last:
            unit, gaussian = plan.unit(place), plan.gaussian
            narrow = narrow and choosing
            at = open_clips(located, unit, tails, 1.0, choosing=narrow, gaussian=gaussian)
        else:
            at = open_early(located, plan.unit(place))
        signal = located.expected_square * at.squared_radius
        units = np.append(np.full(plan.size - 1, math.sqrt(at.squared_radius)), 1.0)
        sd = plan.located_noise(place, signal).sd * np.outer(units, units)
        look = _expected(x, y, at, sd, plan.degrees, scale)
        if place < last:
            wide = wide_cut(located, at, plan.squares_sd, squares=True)
            above, below, outer, far = (scale * one for one in spread_sums(x, y, at, wide))
            sums = above, below, outer, far
            tails = heaviness_of(look, sums, plan.squares_sd, wide, count, located)
            located = locate(look, located)
    wide = wide_cut(located, at, tail_sd)
    z = located_rows(x, y, replace(at, width=wide))
    squares = scale * float(np.square(z[:, -1]).sum())
    total = scale * float(z[:, 0] @ z[:, -1])
    tail = Tail(total, squares, tail_sd, tail_sd, wide, heaviness=None if choosing else tails)
    tail = replace(tail, bent=allowed(located, at, tails, 1.0))
    released = law(look, count, tail)
    fit, plain = coefficients(released), _least_squares(x, y) / scale
    laws = laws_for_choice(look, count, tail) if choosing else ()
    return PredictedFit(released, fit, plain, laws)


def predict_one_look(plan: LookPlan, x: Floats, y: Floats, rows: float) -> PredictedFit:
    """Predict one look in the box that costs as much as all looks of a plan: ``method="gram"``.

    Parameters
    ----------
    plan, x, y, rows
        As for `predict_fit`.
    """
    scale = rows / len(x)
    whole = replace(plan, strengths=(plan.looking,), shares=(Fraction(1),))
    look = _expected(x, y, box(plan.size - 2), whole.box_noise().sd, plan.degrees, scale)
    released = law(look)
    return PredictedFit(released, coefficients(released), _least_squares(x, y) / scale)


def _least_squares(x: Floats, y: Floats) -> Floats:
    """Return the covariance of least squares with an intercept, (p + 1, p + 1)."""
    design = np.column_stack([np.ones(len(x)), x])
    found = np.linalg.lstsq(design, y, rcond=None)[0]
    residual = float(np.square(y - design @ found).mean())
    return np.asarray(residual * np.linalg.pinv(design.T @ design))


def located_rows(
    x: Floats, y: Floats, at: Coordinates, stretch: float = 1.0, power: float = 1.0
) -> Floats:
    """Return z of rows (x, y) in floats, shape (rows, p + 2): for predictions and simulations.

    What a call releases is made by `dpreg.staged.rows`, in integers.
    """
    if at.boxed:
        return np.column_stack([np.ones(len(x)), x, y])
    u = x @ at.whitening.T + at.offset
    e = (y - at.intercept - x @ at.slopes) / at.width
    share = at.squared_radius / (1 + np.einsum("ij,ij->i", u, u))
    c, cut = np.minimum(1.0, np.sqrt(share)), np.clip(np.sqrt(share), 1.0, stretch)
    return np.column_stack([c, u * c[:, None], np.clip(c**power * e, -cut, cut)])


def spread_sums(x: Floats, y: Floats, at: Coordinates, wide: float) -> Sums:
    """Return what a second look releases of its residuals' spread, in floats, for predictions.

    With f the residual cut at `wide`, in its units, and c a row's weight: the sums of (c f)^2 of
    positive and of negative f, of (1 - c^2) f^2, and of 1 - c'^2, c' the weight farther out. What a
    call releases is made by `dpreg.staged.rows`, in integers.
    """
    residual = np.clip((y - at.intercept - x @ at.slopes) / wide, -1, 1)
    u = x @ at.whitening.T + at.offset
    share = at.squared_radius / (1 + np.einsum("ij,ij->i", u, u))
    weight, square = np.minimum(share, 1.0), residual**2
    above = float((weight * square)[residual > 0].sum())
    below = float((weight * square)[residual < 0].sum())
    far = float((1 - np.minimum(FURTHER**2 * share, 1.0)).sum())
    return above, below, float(((1 - weight) * square).sum()), far


def _expected(
    x: Floats, y: Floats, at: Coordinates, sd: Floats, degrees: int | None, scale: float
) -> NoisyLook:
    z = located_rows(x, y, at)
    return NoisyLook(scale * z.T @ z, sd, at, degrees, None)
