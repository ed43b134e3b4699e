r"""The price of a term: how large a penalty keeps useless terms out of a noisy selection.

A useless term lowers the score by nothing, or nearly so; noise alone lets it in. `penalty="auto"`
charges each unit outside ``keep`` once, psi, so that the expected number of useless units in the
drawn model is at most alpha (`false_inclusions`).

Setting
-------
q useless units, true terms so strong that they are always in. A model with s useless units then
scores psi s above the best, and there are C(q, s) of them. With x = t psi, t the mechanism's rate
per score unit, models of s units have the value s x - E (permute-and-flip, E exponential), s x - G
(exponential, G Gumbel) or s x + Z (Laplace), and the least value wins. Let H be the probability
that the noise part of a value lies above y, h its density. The expected number of useless units is

    U(x) = int sum_s s C(q, s) h(v - s x) / H(v - s x) exp(sum_s C(q, s) log H(v - s x)) dv.

- exponential: the q units enter as independent coins of odds exp(-x), so U(x) = q / (1 + exp(x)).
  psi = log(q / alpha) / t makes it alpha / (1 + alpha / q), a little below alpha.
- permute-and-flip: H(y) = 1 - exp(y) for y < 0, else 0. One useless unit beats none with
  probability exp(-x) / 2, whence the first approximation x = log(q / (2 alpha)).
- Laplace: H(y) = exp(-y) / 2 for y > 0, else 1 - exp(y) / 2. One useless unit beats none with
  probability (2 + x) exp(-x) / 4, whence q (2 + x) exp(-x) = 4 alpha as a first approximation.

The first approximations sum over single units. For permute-and-flip they forget the pairs and
triples (U is 1.13 alpha at alpha = 0.1, 1.4 alpha at 0.3), for Laplace that q rivals compete with
each other (0.5 to 0.9 alpha). So for these two U(x) = alpha is solved numerically. U falls from q/2
at x = 0; where alpha >= q/2 no charge is needed. All of this is public: q, alpha and t are.

A useless term does lower the score a little in a sample, by about sigma^2 per column, and is let in
a little more often for it: by the factor exp(t sigma^2) per column. BIC's penalty, added where
sigma^2 is known, is there for that part.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaln

from dpreg.errors import ArgumentError
from dpreg.privacy.mechanisms import MECHANISMS

__all__ = ["expected_useless_units", "useless_term_penalty"]

_REACH: Final = 45.0  # exp(-45) is nothing beside any alpha
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def useless_term_penalty(
    units: int, false_inclusions: Fraction, rate: Fraction, mechanism: str
) -> Fraction:
    """Return psi: the charge per unit that keeps the expected useless units at alpha or below.

    Parameters
    ----------
    units : int
        q, the number of units outside ``keep``: all are taken for useless, the worst case.
    false_inclusions : Fraction
        alpha, positive.
    rate : Fraction
        t, the mechanism's rate per score unit (`dpreg.privacy.mechanisms.effective_t`).
    mechanism : {"permute-and-flip", "exponential", "laplace"}

    Returns
    -------
    Fraction
        In score units; 0 where alpha is at least half the number of units.
    """
    if mechanism not in MECHANISMS:
        raise ArgumentError(f"mechanism must be one of {MECHANISMS}, got {mechanism!r}")
    if not false_inclusions > 0:
        raise ArgumentError("false_inclusions must be positive")
    if units < 0 or not rate > 0:
        raise ArgumentError("units must not be negative and rate must be positive")
    return Fraction(_charge(units, float(false_inclusions), mechanism)) / rate


@lru_cache(maxsize=256)
def _charge(units: int, alpha: float, mechanism: str) -> float:
    """Return x = t psi with U(x) <= alpha, and not much less."""
    if alpha >= units / 2:
        return 0.0
    if mechanism == "exponential":
        return max(0.0, math.log(units / alpha))

    def excess(x: float) -> float:
        return math.log(expected_useless_units(x, units, mechanism) / alpha)

    high = math.log(units / alpha) + 1.0
    while excess(high) > 0:
        high += 1.0
    low = high
    while low > 1e-3 and excess(low) <= 0:
        high, low = low, low / 2
    if excess(low) <= 0:
        return low
    return float(brentq(excess, low, high, xtol=1e-9)) + 1e-8


def expected_useless_units(x: float, units: int, mechanism: str) -> float:
    """Return U(x), the expected number of useless units drawn when each costs x noise scales.

    Parameters
    ----------
    x : float
        t psi, at least 0.
    units : int
        q.
    mechanism : {"permute-and-flip", "exponential", "laplace"}
    """
    if mechanism == "exponential":
        return units / (1 + math.exp(x))
    sizes = np.arange(_largest_size(x, units) + 1)
    log_count = gammaln(units + 1) - gammaln(sizes + 1) - gammaln(units - sizes + 1)
    v, weights = _nodes(x, units, mechanism)
    log_h, log_above = _log_law(v - x * sizes[:, None], mechanism)
    log_none_lower = np.exp(log_count) @ log_above
    wins = np.exp(log_count[1:, None] + log_h[1:] - log_above[1:] + log_none_lower)
    return float(sizes[1:] @ wins @ weights)


def _largest_size(x: float, units: int) -> int:
    """Return a size beyond which models have no chance: a binomial's mean and forty deviations."""
    mean = units / (1 + math.exp(x))
    return min(units, math.ceil(mean + 40 * math.sqrt(mean) + 40))


def _nodes(x: float, units: int, mechanism: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights over the winner's value, panels ending at the first kinks."""
    low = -_REACH - units * math.log1p(math.exp(-x))
    high = 0.0 if mechanism == "permute-and-flip" else _REACH
    kinks = x * np.arange(60) if x > 0.02 else np.zeros(1)
    edges = np.unique(np.concatenate([np.linspace(low, high, 1 + math.ceil(high - low)), kinks]))
    edges = edges[edges <= high]
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + _NODES)).ravel(), (half * _WEIGHTS).ravel()


def _log_law(
    y: NDArray[np.float64], mechanism: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log h(y) and log H(y): density of a value's noise part, and chance to lie above."""
    if mechanism == "permute-and-flip":
        return y, np.log(-np.expm1(y))
    above = np.where(y > 0, -math.log(2) - y, np.log1p(-0.5 * np.exp(np.minimum(y, 0.0))))
    return -math.log(2) - np.abs(y), above
