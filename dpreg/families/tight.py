r"""A smaller cap for the counts of one look, where few counts come near the public one.

A row's score may reach as far as its response does from the mean, and the noise with it. Counts
above a cap C are taken as C, which moves the score by the mean excess E(y - C)+. That is added back
once the score is released (`restored`): the excess of a negative binomial law of the released
dispersion, for normal columns. What stays is what that law gets wrong. Of a few caps up to the
public one the look takes that of least

    error(C) + |b(C)|^2 / wbar,    b = (the excess where the dispersion is SCATTER times as large)
                                       - (1 - CAUTION) (the excess),

error(C) the predicted variance of a coefficient: what may stay mostly lies in one direction, in
which it has to be small beside the error.
All of it follows from released numbers, and what a row may add is bounded as before.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.special import betainc, gammainc, gammaincc

from dpreg.arrays import Floats
from dpreg.families.aim import Aimed, aimed
from dpreg.families.family import Poisson
from dpreg.families.locate import Fit
from dpreg.families.location import FamilyLocation
from dpreg.families.plan import FamilyPlan
from dpreg.families.working import light_draws

__all__ = ["excess", "restored", "tightened"]

_CAUTION: Final = 0.15
"""Part of what is added back that the law may get wrong even where its dispersion is right."""
_SCATTER: Final = 1.3
"""And the dispersion may be so many times what was released."""
_TRIED: Final = 9
_POINTS: Final = 128
_POISSON: Final = 1.02
"""Dispersion up to which counts are taken for Poisson's."""
_LEAST: Final = 2.5
"""Caps that are tried are so many times the mean at least."""
_COUNTED: Final = 100
"""Caps up to which responses are summed one by one; beyond, they are taken as continuous."""


def tightened(
    plan: FamilyPlan, fit: Fit, share: Fraction, most_trials: float = 1.0
) -> tuple[Fit, Aimed]:
    """Return the fit with the cap of the next look, and that look as it is to be."""
    family = fit.family
    if not isinstance(family, Poisson):
        return fit, aimed(plan, fit, share, most_trials)
    most, (rows, mean) = family.most, _placed(fit)
    least = min(max(_LEAST * fit.mean, 3.0), most)
    best, lowest = (fit, aimed(plan, replace(fit, family=family), share)), np.inf
    for cap in np.geomspace(most, least, _TRIED):
        tight = replace(fit, family=replace(family, cap=float(cap), declared=most))
        at = aimed(plan, tight, share)
        biased = 0.0
        if cap < most:
            apart = excess(mean, float(cap), _SCATTER * max(fit.dispersion, 1.0))
            apart -= (1 - _CAUTION) * excess(mean, float(cap), fit.dispersion)
            cut = rows.T @ apart / len(rows)
            biased = float(cut @ cut) / fit.mean_weight
        error = at.clips.error + biased
        if error < lowest:
            best, lowest = (tight, at), error
    return best


def restored(fit: Fit, location: FamilyLocation, cells: Floats) -> Floats:
    """Return a look's cells with what its cap cut off the score added back, on average.

    Parameters
    ----------
    fit : Fit
        That the look was at.
    location : FamilyLocation
        Of the look.
    cells : (d + 1, d + 1) array
        Released: the score in the last column and row.
    """
    family = fit.family
    if not isinstance(family, Poisson) or family.cap == family.most:
        return cells
    (rows, mean), wbar = _placed(fit), location.mean_weight
    square = np.einsum("ij,ij->i", rows, rows)
    reach = np.maximum(mean, family.cap - mean) * np.sqrt(square)
    omega = np.minimum(location.score * math.sqrt(wbar) / reach, 1.0)
    omega = np.minimum(omega, location.information * wbar / (mean * square))
    above = omega * excess(mean, family.cap, fit.dispersion)
    cut = rows.T @ above / len(rows) * fit.rows / math.sqrt(wbar)
    whole, size = cells.copy(), len(cut)
    whole[:size, size] += cut
    whole[size, :size] += cut
    return whole


def _placed(fit: Fit) -> tuple[Floats, Floats]:
    """Return normal rows (1, u) and their means, placed where the mean of all is the released one.

    Once columns are centred in the information's weights, which grow with the mean, most rows lie
    below the centre: by the variance of the predictor, if columns are normal.
    """
    sample = light_draws(len(fit.slopes))
    mean = fit.family.moments(fit.situation(sample).eta)[0]
    variance = fit.predicted_variance
    below = min(max(math.log(float(mean.mean()) / fit.mean_weight), 0.0), variance)
    u = sample[:, :-1] * fit.spread - below / max(variance, 1e-12) * fit.spread**2 * fit.along
    return np.column_stack([np.ones(len(u)), u]), mean * math.exp(-below)


def excess(mean: Floats, cap: float, scatter: float) -> Floats:
    """Return E(Y - C)+ of counts of some means, their variances `scatter` times those.

    Of Poisson's law, or the negative binomial one; beyond small caps of gamma's. It is worked out
    at some of the means, and taken for straight between them.
    """
    at = np.linspace(math.sqrt(float(mean.min())), math.sqrt(float(mean.max())), _POINTS) ** 2
    return np.asarray(np.interp(mean, at, _excess(at, cap, scatter)), dtype=np.float64)


def _excess(mean: Floats, cap: float, scatter: float) -> Floats:
    if cap > _COUNTED:
        shape, at = mean / scatter, cap / scatter
        found = mean * gammaincc(shape + 1, at) - cap * gammaincc(shape, at)
        return np.asarray(np.maximum(found, 0.0), dtype=np.float64)
    whole = math.floor(cap)
    counts, held = np.arange(whole + 1)[:, None], np.maximum(mean, 1e-12)
    if scatter <= _POISSON:
        above = gammainc(counts + 1.0, held)
    else:
        above = betainc(counts + 1.0, held / (scatter - 1), 1 - 1 / scatter)
    kept = above[:whole].sum(axis=0) + (cap - whole) * above[whole]
    return np.asarray(np.maximum(mean - kept, 0.0), dtype=np.float64)
