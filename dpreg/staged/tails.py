r"""What lies beyond a look's clips, told by released sums of squares.

With s^2 the variance of normal residuals whose mean square at the narrow cut is the released one,
and e a residual cut at the wider cut, the *excess* and the *skew* are

    D = (E[e^2] - s^2) / s^2,    A = E[e |e|] / s^2.

Normal residuals have D = 0; exponential ones, counts and prices about .1, as looks find it. Only
what is cut off on one side more than on the other moves a mean: on drawn gamma, Gumbel, lognormal
and count residuals and on mixtures, cutting at k s moved it by about

    M(k) = .16 |A| exp(-rho (k - 1.7)) s,

within a third at k = 1.7, with rho from .45 (lognormal, very heavy) to 1.6 (hardly skewed), roughly
1.6 - 3.5 D. All of it moves an intercept, which is allowed twice as much, at the slowest fall, as
noise hides skew. Residuals of two values, which have A and no tails, have D below 0 and move
nothing. Where the spread s grows with a column as exp(kappa u), the slope along it moves by
kappa (M - k M') = kappa (1 + rho k) M.

How far rows lie out decides what shortening them costs. R as located leaves a share of about .1 of
the rows' squared weights out, for columns of most kinds (.05 for saturated factors, .12 at most).
What rows would lose at 1.5 times a look's radius is L, which that look releases. Taken for a power
law, the share at r R is .1 r^-a with a = log(.1/L) / log(1.5 r'), r' R the look's radius: normal
columns have a near 9, squares of skewed ones 4, lognormal ones 2.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import ndtr

from dpreg.arrays import Floats

__all__ = [
    "FURTHER",
    "NORMAL",
    "STRETCHED",
    "Heaviness",
    "heaviness",
    "kept",
    "normal_cut",
    "spared",
    "within",
]

_CUTS: Final = np.linspace(8.0, 0.8, 721)
"""Cuts k in units of sigma, for the two tables."""
_WITHIN: Final = 2 * ndtr(_CUTS) - 1
_SCATTERS: Final = (
    _WITHIN - 2 * _CUTS * np.exp(-(_CUTS**2) / 2) / math.sqrt(2 * math.pi)
) / _CUTS**2 + (1 - _WITHIN)
"""E min(Z^2, k^2) / k^2."""

_LEAST: Final = 0.02
"""The least skew that is thought possible: residuals are never quite normal."""
_UNSEEN: Final = 0.03
"""Skew that may hide beside what is likely, where an intercept is concerned: all of what is cut
off skewed residuals moves it."""
_SURE: Final = 1.5
"""So many standard deviations of its noise an outer excess must be to count."""
_USUAL: Final = 0.1
"""Outer excess that counts where noise hides it, a root mean square. It opens the cut alone, and
cuts far out moved lines of made-up designs little."""
_MOST: Final = 0.7
"""Outer excess beyond which the lines of such designs were no farther from those of all rows."""
_SHARE: Final = 0.16
_NARROW: Final = 1.7
_RATE: Final = 1.6
_HEAVIER: Final = 3.5
_SLOWEST: Final = 0.45
"""Least rho: that of lognormal residuals with a sigma of 1.2."""
_CAUTION: Final = 2.0
"""What an intercept is allowed, over M at the slowest fall. At 1, intercepts covered .77 of the
time under lognormal residuals (8 columns, 20,000 rows, eps = 1), and .89 under exponential ones."""
_LIGHT: Final = 0.1
"""D at which bounded residuals, which hardly reach a cut, are thought to have no tails: -.1."""
_CHANGE: Final = 0.3
"""kappa that clips allow for, all directions of the columns together: the spread grows by three
tenths of itself along one standard deviation. .2 to .4 is seen in wages and counts."""
_FAR: Final = 0.1
"""Share of squared weights that R as located leaves out: .05 to .12 on drawn columns, from
saturated factors to normal and lognormal ones."""
FURTHER: Final = 1.5
"""A look tells what rows would lose at so many times its radius, itself up to 1.5 R: the last one
mostly ends between 1.5 and 3 R."""
STRETCHED: Final = 0.6
"""Power of the wider cut of a typical row that counts against what cutting moves: rows far out,
which matter where a model is wrong or the spread grows, are cut sooner. On drawn tables 1 let
intervals cover .01 less of the time, 1/2 and 3/4 hardly less than with one cut for all."""
_FALLS: Final = (1.5, 9.0)
"""Least and largest a that is thought possible."""


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
    skew, skew_noise : float
        A, and the standard deviation of the noise in it.
    far, far_noise : float
        L: the share of squared weights that rows would lose at 1.5 times the look's radius; and its
        noise.
    reach : float
        r', the look's radius in units of R as located.
    """

    found: float
    noise: float
    outer: float = 0.0
    outer_noise: float = math.inf
    skew: float = 0.0
    skew_noise: float = 0.0
    far: float = 0.015
    far_noise: float = 0.0
    reach: float = 1.0

    @property
    def bent(self) -> float:
        """The square of the outer excess, as far as it is seen: see `dpreg.staged.clips`.

        It is drawn to 0 where its noise is larger than it can be: what then stands out is chance.
        """
        noise = _SURE * self.outer_noise
        if self.outer <= noise:
            return 0.0
        known = (1 - (noise / self.outer) ** 2) / (1 + (self.outer_noise / _MOST) ** 2)
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
    def fall(self) -> float:
        """The exponent a, with half of the noise where L is less."""
        far = max(self.far, self.far_noise / 2, 1e-12)
        fall = math.log(_FAR / far) / math.log(FURTHER * self.reach)
        return min(max(fall, _FALLS[0]), _FALLS[1])

    @property
    def likely_skew(self) -> float:
        """The size of A, drawn to 0 where it is hardly more than its noise."""
        known = max(0.0, 1 - (self.skew_noise / self.skew) ** 2) if self.skew else 0.0
        return abs(self.skew) * known

    @property
    def possible_skew(self) -> float:
        """The size of A that clips allow for: the likely one, and half of its noise."""
        return max(math.hypot(self.likely_skew, self.skew_noise / 2), _LEAST)

    @property
    def most_skew(self) -> float:
        """The size of A that the intercept allows for: its noise above the likely one."""
        return self.likely_skew + self.skew_noise + _UNSEEN

    def beyond(self, skew: float, cut: float) -> float:
        """Return what an intercept is allowed for a skew of this size, in units of s."""
        return _CAUTION * float(self._cut_off(skew, np.array(cut), _SLOWEST))

    def slope(self, skew: float, cut: float, directions: int) -> float:
        """Return what cutting so may move slopes by, in units of s a direction of the columns."""
        return float(self.slopes(skew, np.array(cut), directions))

    def slopes(self, skew: float, cut: Floats, directions: int) -> Floats:
        """Return the same for many cuts."""
        rate = max(_SLOWEST, _RATE - _HEAVIER * (self.likely + self.noise))
        change = _CHANGE / math.sqrt(directions)
        return np.asarray(change * (1 + rate * cut) * self._cut_off(skew, cut, rate))

    def _cut_off(self, skew: float, cut: Floats, rate: float) -> Floats:
        light = min(max(1 + (self.found + self.noise) / _LIGHT, 0.0), 1.0)
        return np.asarray(_SHARE * light * skew * np.exp(-rate * (cut - _NARROW)))

    def left(self, radius: float) -> float:
        """Return the share of squared weights that shortening to `radius` R takes from rows."""
        return float(_FAR * radius**-self.fall)


NORMAL: Final = Heaviness(0.0, 0.0, 0.0, 0.0)
"""Residuals and columns of which nothing was released."""


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


def normal_cut(scatter: float) -> float:
    """Return k: normal residuals cut at k sigma have the mean square `scatter`, in cuts squared."""
    return float(np.interp(scatter, _SCATTERS, _CUTS))


def kept(scatter: float) -> float:
    """Return the share of normal residuals within the cut, whose cut mean square is `scatter`.

    Where theta moves a residual, its cut value moves only if it is not cut: the expected slope of
    cut residuals on the columns is theta times this share.
    """
    return float(np.interp(scatter, _SCATTERS, _WITHIN))


def within(cuts: Floats) -> Floats:
    """Return the share of normal residuals within cuts, in units of sigma."""
    return np.asarray(2 * ndtr(cuts) - 1)


def spared(cuts: Floats) -> Floats:
    """Return the sampling variance of a mean of cut normal residuals, over that of whole ones.

    E min(Z^2, k^2) / P(|Z| < k)^2: cut residuals vary less, and move less with the mean.
    """
    cuts = np.minimum(cuts, _CUTS[0])
    scatter = np.interp(-cuts, -_CUTS, _SCATTERS) * cuts**2
    return np.asarray(scatter / within(cuts) ** 2)
