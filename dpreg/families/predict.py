r"""What the last look at a family would say, before there are any data: for planning a choice.

The looks are gone through with made-up rows: normal columns of a given spread, a predictor of a
given mean and spread. No noise is drawn, but clips and noise are chosen by the rules of a call, and
`dpreg.families.estimate` reads the expected look as it reads a released one: errors, and whether
intervals are earned at all.

Tested in `tests/planning/test_glm_choice.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from dpreg.arrays import Floats
from dpreg.families.aim import aimed
from dpreg.families.family import Family
from dpreg.families.locate import Fit, Offsets
from dpreg.families.looks import FamilyLook, FamilyLooked
from dpreg.families.plan import FIRST, MORE, SECOND, FamilyPlan
from dpreg.families.weighted import weighted_rows
from dpreg.families.working import light_draws

__all__ = ["Supposed", "expected_again", "expected_looks"]

_RESTLESS: Final = 0.06
"""Change of the predictor that a last look is taken to ask for at least: what a fit at rest may do
without does not hold in every draw."""
_START: Final = 0.3
"""Mean square of what the start lacks, in units of the residual's: about what the box leaves."""


@dataclass(frozen=True, slots=True, eq=False)
class Supposed:
    """What is taken for true.

    Attributes
    ----------
    covariance : (p, p) array
        Of the stored columns, whose means are taken for 0.
    mean : float
        Of the response.
    spread : float
        Standard deviation of the linear predictor, all columns having an equal part in it.
    dispersion : float
        phi.
    slopes : (p,) array, optional
        Of the stored columns; they take the place of `spread`.
    """

    covariance: Floats
    mean: float
    spread: float
    dispersion: float
    slopes: Floats | None = None


def expected_looks(
    family: Family, plan: FamilyPlan, rows: float, supposed: Supposed
) -> tuple[FamilyLooked, Floats]:
    """Go through the looks of a call without noise.

    Parameters
    ----------
    family : Family
    plan : FamilyPlan
    rows : float
        Complete rows.
    supposed : Supposed

    Returns
    -------
    FamilyLooked
        Of the last look alone, as it is expected.
    (d,) array
        Standard errors without privacy, in stored units.
    """
    fit = _true(family, rows, supposed)
    left, share, moved = 1 - FIRST, SECOND, _START
    for place, (more, still) in enumerate(zip(MORE, plan.moved_at_most(family), strict=True)):
        fit = _nearer(fit, aimed(plan, fit, share).clips.error)
        left, moved = left - share, fit.misfit * fit.dispersion / fit.mean_weight
        if moved <= still or place == len(MORE) - 1:
            break
        share = more
    return _looked(plan, *_expected(plan, fit, left, moved))


def expected_again(
    family: Family, seen: FamilyLooked, plan: FamilyPlan, rows: float, supposed: Supposed
) -> tuple[FamilyLooked, Floats]:
    """Go through one more look, at chosen columns; `supposed` is of these.

    Parameters and returns are as for `expected_looks`; `seen` are the looks before, and `plan` is
    of the one more.
    """
    before = seen.looks[-1].clips.error
    fit = _nearer(_true(family, rows, supposed), before)
    moved = fit.misfit * fit.dispersion / fit.mean_weight
    return _looked(plan, *_expected(plan, fit, Fraction(1), moved))


def _looked(plan: FamilyPlan, look: FamilyLook, plain: Floats) -> tuple[FamilyLooked, Floats]:
    box = np.zeros_like(look.cells)
    return FamilyLooked(plan, box, box, (look,), look.fit), plain


def _nearer(fit: Fit, error: float) -> Fit:
    """Return the fit after a look that left each coefficient such an error."""
    d = len(fit.slopes) + 1
    missing, signal = d * error / fit.dispersion, d * (error + fit.dispersion / fit.rows)
    return replace(fit, misfit=min(missing, fit.misfit), signal=min(signal, fit.signal))


def _true(family: Family, rows: float, supposed: Supposed) -> Fit:
    """Return the fit that the working law takes for the truth."""
    p = len(supposed.covariance)
    lower = cholesky(supposed.covariance, lower=True)
    whitening = solve_triangular(lower, np.eye(p), lower=True)
    along = np.full(p, supposed.spread / np.sqrt(p))
    if supposed.slopes is not None:
        along = lower.T @ supposed.slopes
    middle = family.centre(supposed.mean, float(along @ along))
    fit = Fit(
        family=family,
        whitening=whitening,
        center=np.zeros(p),
        intercept=middle,
        slopes=whitening.T @ along,
        offsets=Offsets(np.zeros(0)),
        mean_weight=1.0,
        dispersion=supposed.dispersion,
        spread=np.ones(p),
        misfit=_START,
        signal=_START,
        rows=rows,
        mean=supposed.mean,
    )
    weight = float(family.moments(fit.situation().eta)[1].mean())
    return replace(fit, mean_weight=weight)


def _expected(
    plan: FamilyPlan, fit: Fit, share: Fraction, moved: float
) -> tuple[FamilyLook, Floats]:
    """Return a look without noise that expects it, and the errors that rows alone would leave."""
    at, size = aimed(plan, fit, share), len(fit.slopes) + 1
    cells = np.zeros((size + 1, size + 1))
    sd, moved = at.noise.sd * at.units, max(moved, _RESTLESS)
    look = FamilyLook(at.location, at.clips, cells, sd, share, fit, moved, at.law)
    law = weighted_rows(fit, at.location, at.law, light_draws(size - 1))
    wbar, scale = at.location.mean_weight, fit.rows / len(law.rows)
    weight, varied = law.weight / wbar, law.variance / wbar
    lengths = np.einsum("ij,ij->i", law.rows, law.rows)
    cells[:size, :size] = scale * law.rows.T @ (law.rows * (law.omega * weight)[:, None])
    cells[size, size] = scale * fit.dispersion * float((law.omega**2 * varied * lengths).sum())
    whole = scale * law.rows.T @ (law.rows * weight[:, None])
    back = at.location.transform
    plain = fit.dispersion * np.diag(back @ np.linalg.inv(whole) @ back.T)
    return look, np.sqrt(plain)
