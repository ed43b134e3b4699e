r"""How far a row may reach in a look: A for its information, S for its score; R and tau for both.

*Fitting looks.* s is released with noise of 2 S/a a cell, so S is as small as what it cuts allows.
For any unit U = |s_i|, (U - S)+ <= (4/27) U^3/S^2, so that n rows lose at most

    (4/27) n kappa_3 (d phi)^(3/2) / S^2,    kappa_3 = E U^3 / (d phi)^(3/2),

of the score. The square of that, a constant times (d phi)^3 n^2/S^4, and of the noise, 4 d S^2/a^2,
are together least where S^3 is in proportion to phi^(3/2) n d a:

    S = sqrt(phi) (c a n d / sqrt 2)^(1/3),

c about .148 kappa_3: the one number that the width of intervals rests on (`TUNING.limit`; at chosen
columns `TUNING.fresh_limit`). S is no less than sqrt(d phi), the root mean square of |s_i|. A is
what lets the noise of H have a public share of n.

*Locating looks.* One weight serves both blocks; R and tau are fixed multiples of the located scale.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dpreg.looks.described import Described
from dpreg.looks.families import Family
from dpreg.looks.point import Point
from dpreg.looks.solve import held
from dpreg.looks.tuning import TUNING

__all__ = ["cut_score", "farthest", "fit_limits", "locating_limits"]

_MOST: Final = 2.0**10
"""Largest A, in units of d and the rows of a unit: a usual row is then 2**15 units of its grid."""


def fit_limits(
    rows: float,
    size: int,
    dispersion: float,
    information_sd: float,
    score_sd: float,
    several: int = 1,
    farthest: tuple[float, float] = (math.inf, math.inf),
    c: float = TUNING.limit,
) -> tuple[float, float]:
    """Return A and S of a fitting look.

    Parameters
    ----------
    rows : float
        Released number of rows.
    size : int
        d.
    dispersion : float
        phi.
    information_sd, score_sd : float
        Of the noise in a cell of H, in units of A (0 where none is released), and of s, in units
        of S.
    several : int
        Rows that a unit is expected to have.
    farthest : (float, float)
        What no unit exceeds (`farthest`).
    c : float
    """
    loud = math.inf
    if information_sd > 0:
        loud = TUNING.loud * rows / (2 * math.sqrt(size) * information_sd)
    A = min(max(loud, 2 * size * several), _MOST * size * several)
    a = 2 / score_sd
    heard = a / math.sqrt(1 + a / 2)
    wide = (c * heard * max(rows, 1.0) * size / math.sqrt(2)) ** (1 / 3)  # by definition
    S = math.sqrt(dispersion) * max(wide, math.sqrt(size))
    return held(min(A, farthest[0])), held(min(S, farthest[1]))


def farthest(point: Point, family: Family, described: Described) -> tuple[float, float]:
    """Return the largest trace and the longest score that a row within its bounds can have.

    Neither is a proof's: rows are limited whatever it says.
    """
    spread = np.abs(point.whitening).sum(axis=1) + np.abs(point.moved)
    squared = 1.0 + float(spread @ spread)
    middle = point.middle - float(point.slopes @ point.centre)
    away = float(np.abs(point.slopes).sum()) + sum(map(abs, described.known))
    terms = family.terms(np.clip([-math.inf, 0.0, math.inf], middle - away, middle + away))
    base, unit = described.response
    times, top = 1.0, base + abs(unit)
    if described.trials is not None:
        times = max(described.trials.most / family.cap, 1.0)
    if math.isfinite(family.limits[0]):
        top = min(top, family.cap * times)
    error = max(top - float(terms.mean[0]), times * float(terms.mean[-1]) - base + abs(unit))
    error *= float(np.max(terms.factor))
    weight = times * float(terms.weight.max()) / point.weight
    return held(weight * squared), held(error * math.sqrt(squared / point.weight))


def locating_limits(
    point: Point, *, choosing: bool = False, gaussian: bool = False
) -> tuple[float, float]:
    """Return R and tau of a locating look; `choosing` where terms are chosen from looks."""
    radius, residual = TUNING.radius, TUNING.residual
    if choosing:
        radius = TUNING.radius_choosing if gaussian else TUNING.radius_choosing_pure
        residual = TUNING.residual_choosing
    R = radius * math.sqrt(1.0 + float(point.spread.sum()))
    return held(R), held(residual * math.sqrt(point.dispersion))


def cut_score(
    rows: float, size: int, dispersion: float, limit: float, c: float = TUNING.limit
) -> float:
    """Return how much of the score a limit may cut, as a length: the bound of the module."""
    unit = size * dispersion
    return held(c * rows * unit / limit * math.sqrt(unit) / limit)
