r"""What lies beyond a cut of the residuals, told by released sums of squares at two cuts.

With s^2 the variance of normal residuals whose mean square at the narrow cut is the released one,
the *excess* is

    D = (E[min(e, wide)^2] - s^2) / s^2:

0 for normal residuals; about .2 for exponential ones, for counts and for prices, cut at 1.7 s and
3 s. What is cut off at k s moves means by at most E[max(|e| - k s, 0)], which beyond that of normal
residuals was

    .4 D exp(-.6 max(k - 2, 0)) s

on drawn exponential, lognormal, count and price residuals, within a factor of 1.7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import ndtr

__all__ = ["NORMAL", "Heaviness", "beyond", "heaviness", "kept", "normal_cut"]

_CUTS: Final = np.linspace(8.0, 0.8, 721)
"""Cuts k in units of sigma, for the two tables."""
_WITHIN: Final = 2 * ndtr(_CUTS) - 1
_SCATTERS: Final = (
    _WITHIN - 2 * _CUTS * np.exp(-(_CUTS**2) / 2) / math.sqrt(2 * math.pi)
) / _CUTS**2 + (1 - _WITHIN)
"""E min(Z^2, k^2) / k^2."""

_LEAST: Final = 0.02
"""The least excess that is thought possible: residuals are never quite normal."""
_UNSEEN: Final = 0.06
"""Excess that may hide beside what is likely, where an intercept is concerned: all of what is cut
off skewed residuals moves it."""
_SURE: Final = 1.5
"""So many standard deviations of its noise an outer excess must be to count."""
_USUAL: Final = 0.3
"""Outer excess of made-up designs whose models were a little wrong, a root mean square."""
_MOST: Final = 0.7
"""Outer excess beyond which the lines of such designs were no farther from those of all rows."""
_SHARE: Final = 0.4
_FALL: Final = 0.6
_FULL: Final = 2.0


@dataclass(frozen=True, slots=True)
class Heaviness:
    """What an earlier look released of the residuals: how heavy their tails are, and where.

    Parameters
    ----------
    found : float
        The excess D as released: it may be negative.
    noise : float
        The standard deviation of the noise in it.
    outer : float
        The *outer excess*: mean square of residuals of rows that the look shortened, over that of
        all rows, less 1. It is 0 where the spread is equal; where the model is wrong, residuals are
        larger far out.
    outer_noise : float
        The standard deviation of the noise in it; infinite where nothing was released.
    """

    found: float
    noise: float
    outer: float = 0.0
    outer_noise: float = math.inf

    @property
    def bent(self) -> float:
        """The square of the outer excess, as far as it is seen: see `dpreg.staged.clips`."""
        noise = _SURE * self.outer_noise
        if self.outer <= noise:
            return 0.0
        known = 1 - (noise / self.outer) ** 2
        return min(known * self.outer, _MOST) ** 2

    @property
    def perhaps_bent(self) -> float:
        """The same, with its usual size where the noise hides it."""
        unknown = 1 / (1 + (_MOST / max(_SURE * self.outer_noise, 1e-12)) ** 2)
        return self.bent + unknown * _USUAL**2

    @property
    def likely(self) -> float:
        """D drawn to 0 where it is hardly more than its noise."""
        known = max(0.0, 1 - (self.noise / self.found) ** 2) if self.found > 0 else 0.0
        return self.found * known

    @property
    def possible(self) -> float:
        """D that clips allow for: at least its noise, and never 0."""
        return max(self.found, self.noise, _LEAST)

    @property
    def most(self) -> float:
        """D that the intercept allows for: a standard deviation above the likely one."""
        return self.likely + self.noise + _UNSEEN


NORMAL: Final = Heaviness(0.0, 0.0, 0.0, 0.0)


def heaviness(narrow: float, narrow_sd: float, wide: float, wide_sd: float) -> Heaviness:
    """Compare mean squares of residuals at two cuts, all in units of the squared narrow cut.

    Parameters
    ----------
    narrow, wide : float
        Mean squares of a row's residual, each cut at its own width.
    narrow_sd, wide_sd : float
        Standard deviations of their noise.
    """
    normal = normal_cut(max(narrow, narrow_sd)) ** -2
    return Heaviness((wide - normal) / normal, math.hypot(wide_sd, narrow_sd) / normal)


def beyond(excess: float, cut: float) -> float:
    """Return how far cutting at `cut` times s may move a mean, in units of s (see the module)."""
    return _SHARE * excess * math.exp(-_FALL * max(cut - _FULL, 0.0))


def normal_cut(scatter: float) -> float:
    """Return k: normal residuals cut at k sigma have the mean square `scatter`, in cuts squared."""
    return float(np.interp(scatter, _SCATTERS, _CUTS))


def kept(scatter: float) -> float:
    """Return the share of normal residuals within the cut, whose cut mean square is `scatter`.

    Where theta moves a residual, its cut value moves only if it is not cut: the expected slope of
    cut residuals on the columns is theta times this share.
    """
    return float(np.interp(scatter, _SCATTERS, _WITHIN))
