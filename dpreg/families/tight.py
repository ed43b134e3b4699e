r"""A smaller cap for the counts of one look, where few counts come near the public one.

A row's score may reach as far as its response does from the mean, and the noise with it. Counts
above a cap C are taken as C; that moves the score by the mean excess E(y - C)+, here that of a
gamma law of the released dispersion, for normal columns. Of a few caps up to the public one the
look takes that of least

    d error(C) + CAUTION |E (y - C)+ (1, u)|^2 / wbar,

error(C) the predicted variance of a coefficient, so that what is cut off is small beside the error.
All of it follows from released numbers, and what a row may add is bounded as before.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.special import gammaincc

from dpreg.arrays import Floats
from dpreg.families.aim import Aimed, aimed
from dpreg.families.family import Poisson
from dpreg.families.locate import Fit
from dpreg.families.plan import FamilyPlan
from dpreg.families.working import light_draws

__all__ = ["excess", "tightened"]

_CAUTION: Final = 4.0
"""What is cut off counts as twice as large: the tail of counts is not known."""
_SCATTER: Final = 1.3
"""And the dispersion as so many times what was released."""
_TRIED: Final = 7


def tightened(
    plan: FamilyPlan, fit: Fit, share: Fraction, most_trials: float = 1.0
) -> tuple[Fit, Aimed]:
    """Return the fit with the cap of the next look, and that look as it is to be."""
    family = fit.family
    if not isinstance(family, Poisson):
        return fit, aimed(plan, fit, share, most_trials)
    most, sample = family.most, light_draws(len(fit.slopes))
    mean = family.moments(fit.situation(sample).eta)[0]
    rows = np.column_stack([np.ones(len(sample)), sample[:, :-1] * fit.spread])
    least = min(max(4.0 * fit.mean, 3.0), most)
    best, lowest = (fit, aimed(plan, replace(fit, family=family), share)), np.inf
    for cap in np.geomspace(most, least, _TRIED):
        tight = replace(fit, family=replace(family, cap=float(cap), declared=most))
        at = aimed(plan, tight, share)
        cut = rows.T @ excess(mean, float(cap), _SCATTER * max(fit.dispersion, 1.0)) / len(rows)
        biased = 0.0 if cap == most else float(cut @ cut) / fit.mean_weight
        error = rows.shape[1] * at.clips.error + _CAUTION * biased
        if error < lowest:
            best, lowest = (tight, at), error
    return best


def excess(mean: Floats, cap: float, scatter: float) -> Floats:
    """Return E(Y - C)+ of gamma laws of some means, their variances `scatter` times those."""
    shape, at = mean / scatter, cap / scatter
    beyond = mean * gammaincc(shape + 1, at) - cap * gammaincc(shape, at)
    return np.asarray(np.maximum(beyond, 0.0), dtype=np.float64)
