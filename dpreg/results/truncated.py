r"""A normal estimate that was seen only because it fell into a known set.

T ~ N(beta, s^2) given that T lies in a union of intervals. The conditional distribution function
at the estimate falls as beta grows (the family is an exponential one with a monotone likelihood
ratio, whatever the set). So the beta at which it is 1/2 is median-unbiased, and those at which it
is 1 - level/2 and level/2 are the ends of an equal-tailed interval (Lee, Sun, Sun and Taylor 2016,
Theorem 5.2 and Lemma A.1). Estimate, interval and p-value come from the one function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import log_ndtr

from dpreg.arrays import Floats

__all__ = ["Truncated"]

_FARTHEST: Final = 128.0  # precision
"""Ends farther than this many standard errors from the estimate are infinite."""


@dataclass(frozen=True, slots=True, eq=False)
class Truncated:
    """An estimate, its standard error, and the set that it had to lie in.

    Parameters
    ----------
    estimate, se : float
    intervals : (k, 2) array
        Lower and upper ends, ascending, apart, possibly infinite; the estimate lies in one.
    """

    estimate: float
    se: float
    intervals: Floats

    @property
    def free(self) -> bool:
        """Whether every value would have been seen."""
        return bool(np.isneginf(self.intervals[0, 0]) and np.isposinf(self.intervals[0, 1]))

    def below(self, beta: float) -> float:
        """Return P(T <= estimate | T in the set) at a true value."""
        lower, upper = self.intervals.T
        parts = _log_mass((lower - beta) / self.se, (upper - beta) / self.se)
        cut = np.minimum(upper, self.estimate)
        under = _log_mass((lower - beta) / self.se, (cut - beta) / self.se)
        under = np.where(cut > lower, under, -np.inf)
        top = parts.max()
        whole = np.exp(parts - top).sum()
        return float(min(np.exp(under - top).sum() / whole, 1.0))

    def solve(self, probability: float) -> float:
        """Return the beta at which `below` is the probability; infinite if none is in reach."""
        from scipy.optimize import brentq  # slow to import, and seldom needed

        reach = 1.0
        while reach <= _FARTHEST:
            low, high = self.estimate - reach * self.se, self.estimate + reach * self.se
            at_low, at_high = self.below(low), self.below(high)
            if at_low >= probability >= at_high:
                return float(
                    brentq(lambda b: self.below(b) - probability, low, high, xtol=1e-9 * self.se)
                )
            reach *= 2.0
        return -np.inf if at_low < probability else np.inf

    def center(self) -> float:
        """Return the median-unbiased estimate."""
        return self.estimate if self.free else self.solve(0.5)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the equal-tailed interval that misses the truth with probability `level`."""
        return self.solve(1 - level / 2), self.solve(level / 2)

    def p_value(self, beta: float = 0.0) -> float:
        """Return the two-sided p-value of a true value."""
        below = self.below(beta)
        return min(1.0, 2 * min(below, 1 - below))


def _log_mass(low: Floats, high: Floats) -> Floats:
    """Return log of the normal probability of each [low, high], exact far out in either tail."""
    flip = low > 0
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    top, bottom = log_ndtr(b), log_ndtr(a)
    with np.errstate(invalid="ignore", divide="ignore"):
        out = top + np.log1p(-np.exp(np.minimum(bottom - top, 0.0)))
    return np.where(np.isneginf(top) | (b <= a), -np.inf, out)
