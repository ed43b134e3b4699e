r"""After two looks at pure eps: further looks, or coefficients alone from where these two have led.

Looks earn intervals where the information stands out of its noise, and often that is known only
after two of them. Where it will not, what is left of eps buys the minimum of a perturbed objective
(`dpreg.privacy.objective`) over the rows (1, u), u = L (x - m), in the coordinates that these looks
found, starting from the fit that they moved to. There columns are nearly uncorrelated and of one
size, so that noise of equal size in all directions does the least harm.

*Statement.* Let the look at the box be eps_1-DP, the next one eps_2-DP whatever the first one
released, and eps_3 what is left. Then the whole is (eps_1 + eps_2 + eps_3)-DP.

*Proof.* All releases are discrete. Let o_1 and o_2 be values of the two looks. What follows (looks
that take eps_3 together, or the minimum, and of that L, m, R, t0, G and c) is a function of o_1
and o_2 and of public facts: given them it is fixed. Given them u is a function of the row alone, so
that the conditions of `dpreg.privacy.objective` hold, with constants that are chosen before a row
is read again: the minimum is eps_3-DP. So are the looks. Of any two neighbours the probabilities of
(o_1, o_2, o_3) are products of three factors, which differ by exp(eps_1), exp(eps_2) and exp(eps_3)
at most. QED

The constants were chosen on simulated tables alone.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from dpreg.families.aim import aimed
from dpreg.families.family import Family
from dpreg.families.locate import Fit
from dpreg.families.plan import FIRST, SECOND, FamilyPlan, OpenFamilyLooks
from dpreg.families.point import PointFit, released_minimum
from dpreg.privacy.account import Account, Part
from dpreg.privacy.objective import DRAWN, OBJECTIVE
from dpreg.staged.objective import HeldRows

__all__ = ["AT_FIT", "LEFT", "SURE", "at_fit", "located", "rest", "stops"]

AT_FIT: Final = (
    "No intervals are given: after two looks none were in sight, as rows are too few, the noise "
    "would hide a direction of the columns, or the fit was far from the rows. All that was left of "
    "eps went into one release of coefficients, by objective perturbation. They are nearer than "
    "those of more looks, but come without errors. Intervals need more rows, a larger eps, or "
    "fewer columns."
)
LEFT: Final = 1 - FIRST - SECOND
"""Share of eps that two looks leave."""
_NOTE: Final = "2 looks; what they left went into the coefficients"
SURE: Final = 2.0
"""With so many times the rows that intervals need, looks go on whatever is still hidden: narrow
columns that two looks hide have been seen to earn intervals by the last one."""
_SEEN: Final = 1.0
"""Looks go on where the last one is expected to have at least this least eigenvalue of the
information, over the norm of its noise."""
_LACKS: Final = {False: 0.35, True: 0.15}
"""Mean square of what the predictor is expected to lack, beyond which looks have seldom come to
rest; True is for counts."""
_CUT: Final = 5.0
"""Counts are cut at so many of their standard deviations, as released, beyond their mean."""
_REACH: Final = 1.2
"""R^2 beside the expected squared length of (1, u)."""


def stops(plan: FamilyPlan, rows: int, fit: Fit) -> bool:
    """Return whether looks stop here, after the second: by released and public numbers alone.

    Parameters
    ----------
    plan : FamilyPlan
    rows : int
        The public number of rows.
    fit : Fit
        What the second look moved to.
    """
    lacking = fit.misfit * fit.dispersion / fit.mean_weight
    if rows < plan.rows_needed or lacking > _LACKS[fit.family.dispersed]:
        return True
    if rows >= SURE * plan.rows_needed:
        return False
    ahead, d = aimed(plan, fit, LEFT), plan.size
    variances = (ahead.noise.sd * ahead.units)[:d, :d] ** 2
    norm = 2 * float(np.sqrt(variances.sum(axis=1).max()))
    return fit.rows * float((fit.spread**2).min(initial=1.0)) < _SEEN * norm


def rest(account: Account, opened: OpenFamilyLooks) -> Part:
    """Take what two looks left, as a step of its own in the budget table."""
    line = opened.line
    part = account.release(line, "coefficients", OBJECTIVE, line.left, by=(DRAWN,), after=True)
    line.note = _NOTE
    return part


def at_fit(rows: HeldRows, family: Family, fit: Fit, part: Part, table_rows: int) -> PointFit:
    """Release coefficients, starting from the fit of two looks.

    Parameters
    ----------
    rows : HeldRows
        In stored units.
    family : Family
    fit : Fit
    part : Part
        Of `rest`.
    table_rows : int
        The public number of rows.
    """
    top = fit.mean + _CUT * math.sqrt(max(fit.dispersion, 1.0) * fit.mean)
    top = min(max(top, 1.0), family.cap)
    reach_squared = _REACH * (1 + float((fit.spread**2).sum()))
    centre = np.append(fit.middle - fit.offsets.mean, fit.along)
    held = located(rows, fit)
    found = released_minimum(held, family.dispersed, top, reach_squared, centre, part, table_rows)
    slopes = fit.whitening.T @ found[1:]
    params = np.append(found[0] - fit.center @ slopes, slopes)
    return PointFit(params, fit.rows)


def located(rows: HeldRows, fit: Fit) -> HeldRows:
    """Return the rows (1, u): by single operations, so that a row has the same bits anywhere."""
    found = np.ones_like(rows.x)
    for place, weights in enumerate(fit.whitening, start=1):
        column = np.zeros(len(found))
        for j, weight in enumerate(weights):
            column += weight * (rows.x[:, j + 1] - fit.center[j])
        found[:, place] = column
    return replace(rows, x=found)
