r"""How far the scores of counts should reach: least predicted error, a wrong law included.

A row's cap follows from S (`dpreg.families.counts`). What it takes off is added back on average,
which the law of counts may get wrong. A look takes the S of least

    error(S) + |b(S)|^2 / wbar,    b = E omega (x where the dispersion is SCATTER times as large
                                                - (1 - CAUTION) x) (1, u),

in the units of the information that is left. All of it follows from released numbers, and what a
row may add is bounded as before.

Tested in `tests/families/test_counts.py`.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.families.counts import CountLaw, capped
from dpreg.families.working import Situation, Tried, limits, row_limits

__all__ = ["SCATTER", "tried_caps"]

_CAUTION: Final = 0.05
"""Part of what is added back that the law may get wrong even where its dispersion is right."""
SCATTER: Final = 1.1
"""And the dispersion may be so many times what was released."""
_USUAL: Final = 0.9
"""Quantile of the standard deviations of rows' scores."""
_TIMES: Final = (0.7, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.5, 7.5, 10.0)
"""Multiples of it that are tried for S."""
_LARGEST: Final = (1.01, 1.15)
"""And of the largest score that there can be."""
_KEPT: Final = 0.9
"""Part of the score's slope that caps have to leave, however loud the noise is."""
_STEP: Final = 0.05


def tried_caps(at: Situation, law: CountLaw, doubted: CountLaw) -> Tried:
    """Return what rows' own caps leave of the scores.

    Parameters
    ----------
    at : Situation
    law, doubted : CountLaw
        Of the released dispersion, and of SCATTER times that.
    """
    most, wbar, length = at.family.cap, at.mean_weight, at.length
    mean, weight = at.family.moments(at.eta)
    phi, root = max(at.dispersion, 1.0), np.sqrt(length)
    norms = weight / wbar * length
    usual = float(np.quantile(np.sqrt(phi * mean / wbar * length), _USUAL))
    farthest = np.maximum(mean, most - mean) * root / math.sqrt(wbar)
    tops = limits(farthest, _LARGEST)
    wanted = [usual * t for t in _TIMES if usual * t < tops[0]]
    S, A = np.append(wanted, tops)[:, None], row_limits(norms)[None, :]
    bound = S * math.sqrt(wbar)
    caps, taken = capped(law.excess, most, at.eta, mean, np.maximum(bound / root, mean))
    omega = np.minimum((bound / (mean * root))[:, None], (A[..., None] / norms))
    np.minimum(omega, 1.0, out=omega)
    slope = _kept(law, at, caps, _STEP) - _kept(law, at, caps, -_STEP)
    left = (slope / (2 * _STEP) / weight * norms)[:, None]
    varied = (law.variance.of(at.eta, caps) * mean / phi / wbar * length)[:, None]
    information = (omega * norms).mean(axis=-1) / at.size
    second = (omega * left).mean(axis=-1) / at.size
    fourth = (omega * omega * varied).mean(axis=-1) / at.size
    apart = doubted.excess.of(at.eta, caps) * mean - (1 - _CAUTION) * taken
    wrong = (omega * apart[:, None]) @ at.rows / len(mean)
    biased = (wrong * wrong).sum(axis=-1) / wbar / second**2
    biased[(second < _KEPT * information) & (S[-1] > S)] = np.inf
    whole = float(norms.mean()) / at.size
    return Tried(S, A, second, fourth, information, biased, whole)


def _kept(law: CountLaw, at: Situation, caps: Floats, step: float) -> Floats:
    mean = at.family.moments(at.eta + step)[0]
    return np.asarray(mean - law.excess.of(at.eta + step, caps) * mean)
