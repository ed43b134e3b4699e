r"""How far the scores of counts should reach: least predicted error, a wrong law included.

A row's cap follows from S (`dpreg.families.counts`). What it takes off is added back on average,
which the law of counts may get wrong. A look takes the S of least

    error(S) + |b(S)|^2 / wbar,    b = E omega (x where the dispersion is SCATTER times as large
                                                - (1 - CAUTION) x) (1, u),

with more caution for quasi-Poisson counts, whose law beyond the variance is not stated,

in the units of the information that is left. Where the noise is many times the sampling error,
Poisson counts may have low caps, which take off up to a quarter of what the scores say. What that
may get wrong is told from the look itself (`dpreg.families.recount`). All of it follows from
released numbers, and what a row may add is bounded as before.

Tested in `tests/families/test_counts.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.families.counts import CountLaw, capped
from dpreg.families.family import Poisson
from dpreg.families.omega import row_weights
from dpreg.families.working import Clips, Situation, Tried, limits, row_limits

__all__ = ["doubted_scatter", "for_light", "tried_caps"]

_CAUTION: Final = (0.05, 0.3)
"""Part of what is added back that the law may get wrong even where its dispersion is right; the
second where the caller states no law: the tails of such counts may be heavier."""
_SCATTER: Final = (1.1, 2.0)
"""And the dispersion may be so many times what was released."""
_USUAL: Final = 0.9
"""Quantile of the standard deviations of rows' scores."""
_TIMES: Final = (0.7, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.5, 7.5, 10.0)
"""Multiples of it that are tried for S."""
_LARGEST: Final = (1.01, 1.15)
"""And of the largest score that there can be."""
_KEPT: Final = 0.9
"""Part of the score's slope that caps have to leave, if they are not low."""
_LEAST_KEPT: Final = (0.75, 0.9)
"""Part that low ones have to leave; the second where the caller states no law: none are low."""
_STEP: Final = 0.05


def doubted_scatter(family: Poisson, scatter: float) -> float:
    """Return the dispersion that counts may have where `scatter` was released."""
    return _SCATTER[family.quasi] * scatter


def tried_caps(at: Situation, law: CountLaw, doubted: CountLaw) -> Tried:
    """Return what rows' own caps leave of the scores.

    Parameters
    ----------
    at : Situation
    law, doubted : CountLaw
        Of the released dispersion, and of `doubted_scatter`.
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
    left = _left(at, law, S, A)
    caution = _CAUTION[at.family.quasi]
    apart = doubted.excess.of(at.eta, left.caps) * mean - (1 - caution) * left.taken
    wrong = (left.omega * apart[:, None]) @ at.rows / len(mean)
    biased = (wrong * wrong).sum(axis=-1) / wbar / left.second**2
    kept = np.where(S[-1] > S, left.second / left.information, 1.0)
    biased[kept < _LEAST_KEPT[at.family.quasi]] = np.inf
    whole = float(norms.mean()) / at.size
    low = kept < _KEPT
    return Tried(S, A, left.second, left.fourth, left.information, biased, whole, low)


def for_light(clips: Clips, at: Situation, law: CountLaw) -> Clips:
    """Return chosen clips with what they leave of rows with lighter tails, as most columns have."""
    left = _left(at, law, np.full((1, 1), clips.score), np.full((1, 1), clips.information))
    second, fourth = float(left.second[0, 0]), float(left.fourth[0, 0])
    information = float(left.information[0, 0])
    return replace(clips, efficiency=fourth / information, slope=second / information)


@dataclass(frozen=True, slots=True, eq=False)
class _Left:
    """What caps leave, (S, A), and of each row, (S, rows) and (S, A, rows)."""

    information: Floats
    second: Floats
    fourth: Floats
    caps: Floats
    taken: Floats
    omega: Floats


def _left(at: Situation, law: CountLaw, S: Floats, A: Floats) -> _Left:
    wbar, length, size = at.mean_weight, at.length, at.size
    mean, weight = at.family.moments(at.eta)
    root, norms = np.sqrt(length), weight / wbar * length
    bound = S * math.sqrt(wbar)
    reach = np.maximum(bound / root, mean)
    caps, taken = capped(law.excess, at.family.cap, at.eta, mean, reach)
    omega = row_weights(bound[:, None], mean * root, A[..., None], norms)
    slope = (_kept(law, at, caps, _STEP) - _kept(law, at, caps, -_STEP)) / (2 * _STEP)
    varied = law.variance.of(at.eta, caps) * mean / max(at.dispersion, 1.0)
    return _Left(
        information=(omega * norms).mean(axis=-1) / size,
        second=(omega * (slope / wbar * length)[:, None]).mean(axis=-1) / size,
        fourth=(omega * omega * (varied / wbar * length)[:, None]).mean(axis=-1) / size,
        caps=caps,
        taken=taken,
        omega=omega,
    )


def _kept(law: CountLaw, at: Situation, caps: Floats, step: float) -> Floats:
    mean = at.family.moments(at.eta + step)[0]
    return np.asarray(mean - law.excess.of(at.eta + step, caps) * mean)
