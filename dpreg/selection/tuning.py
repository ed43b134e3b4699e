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

The first approximations sum over single units. For permute-and-flip they leave out the pairs and
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

import flint
import numpy as np
from scipy.special import expit, gammaln

from dpreg.arrays import Floats, Ints
from dpreg.errors import ArgumentError, shown
from dpreg.privacy.mechanisms import MECHANISMS
from dpreg.selection.quadrature import panels

__all__ = ["charges", "expected_useless_units", "useless_term_penalty"]

_REACH: Final = 45.0  # precision: below the winner's likely values; exp(-45) is negligible
_FEW: Final = 6.0  # precision: exp(-exp(6) / 2) is negligible beside any alpha
_ORDER: Final = 12  # precision


def charges(
    penalty: Fraction | str,
    *,
    unit: Fraction,
    rows: float | None,
    sigma2: Fraction | None,
    units: int,
    false_inclusions: Fraction,
    rate: Fraction,
    mechanism: str,
) -> tuple[Fraction, Fraction]:
    """Return (phi, psi), what a column and a unit outside ``keep`` are charged.

    Parameters
    ----------
    penalty : Fraction, "auto" or "bic"
        A number is phi, as in the paper. "auto" is psi, the price of the privacy noise, and BIC's
        phi as well where sigma2 is known; "bic" is the latter alone.
    unit : Fraction
        What one unit of a score is worth in the units in which a number is given.
    rows, sigma2 : number or None
        For BIC's phi, sigma2 log n: public, or bought.
    units : int
        Units outside ``keep``.
    false_inclusions, rate, mechanism
        As for `useless_term_penalty`.
    """
    if isinstance(penalty, Fraction):
        return penalty / unit, Fraction(0)
    phi = psi = Fraction(0)
    if rows is not None and sigma2 is not None:
        phi = sigma2 * Fraction(float(flint.arb(max(rows, 1)).log()))
    if penalty == "auto" and units:
        psi = useless_term_penalty(units, false_inclusions, rate, mechanism)
    return phi, psi


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
        raise ArgumentError(f"mechanism must be one of {MECHANISMS}, got {shown(mechanism)}")
    if not false_inclusions > 0:
        raise ArgumentError("false_inclusions must be positive")
    if units < 0 or not rate > 0:
        raise ArgumentError("units must not be negative and rate must be positive")
    if 2 * false_inclusions >= units:
        return Fraction(0)
    return Fraction(_charge(units, float(false_inclusions), mechanism)) / rate


@lru_cache(maxsize=256)
def _charge(units: int, alpha: float, mechanism: str) -> float:
    """Return x = t psi with U(x) <= alpha < units / 2, and not much less."""
    if mechanism == "exponential":
        return max(0.0, math.log(units / alpha))
    from scipy.optimize import brentq  # slow to import, and seldom needed

    def excess(x: float) -> float:
        return math.log(expected_useless_units(x, units, mechanism) / alpha)

    high = math.log(units / alpha) + 1.0
    while excess(high) > 0:
        high += 1.0
    low = high
    while low > 1e-3 and excess(low) <= 0:  # precision
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
        return units * float(expit(-x))
    sizes = _sizes(x, units)
    log_count = gammaln(units + 1) - gammaln(sizes + 1) - gammaln(units - sizes + 1)
    v, weights = _nodes(x, units, mechanism)
    y = v - x * sizes[:, None]
    log_above = -np.exp(_log_loss(y, mechanism))
    with np.errstate(over="ignore"):  # where a better model is certain
        log_none_lower = -np.exp(log_count[:, None] + _log_loss(y, mechanism)).sum(axis=0)
    log_odds = log_count[:, None] + _log_density(y, mechanism) - log_above
    return float(sizes @ np.exp(log_odds + log_none_lower) @ weights)


def _sizes(x: float, units: int) -> Ints:
    """Return the sizes of models that have a chance: near a binomial's mean.

    Chernoff: it lies further off than that with a chance below exp(-70).
    """
    mean = units * float(expit(-x))
    reach = 12 * math.sqrt(mean) + 40  # precision
    return np.arange(max(0, math.floor(mean - reach)), min(units, math.ceil(mean + reach)) + 1)


def _nodes(x: float, units: int, mechanism: str) -> tuple[Floats, Floats]:
    """Return nodes and weights over the winner's value, panels ending at the first kinks.

    Let Z = (1 + exp(-x))^q, the sum of exp(-s x) over all models. Some model's value lies below v
    with a chance of at most Z exp(v); for v <= 0 none does with a chance of at most
    exp(-Z exp(v) / 2), as log H(y) <= -exp(y) / 2 there. So the winner's value is near -log Z, or,
    where Z is small, anywhere up to 0 or, with Laplace noise, a few units beyond x.
    """
    middle = -units * math.log1p(math.exp(-x))
    low = middle - _REACH
    if middle < -_FEW:
        high = middle + _FEW
    else:
        high = 0.0 if mechanism == "permute-and-flip" else x + _REACH
    kinks = x * np.arange(60) if x > 0.02 else np.zeros(1)  # precision
    edges = np.unique(np.concatenate([np.linspace(low, high, 1 + math.ceil(high - low)), kinks]))
    edges = edges[edges <= high]
    return panels(edges, _ORDER)


def _log_density(y: Floats, mechanism: str) -> Floats:
    """Return log h(y), h the density of a value's noise part (y < 0 for permute-and-flip)."""
    return y if mechanism == "permute-and-flip" else -math.log(2) - np.abs(y)


def _log_loss(y: Floats, mechanism: str) -> Floats:
    """Return log(-log H(y)), H the chance that a value's noise part lies above y.

    Far down, 1 - H is below float64's resolution at 1, and yet counts times the number of models:
    -log(1 - u) is u there, to a part of u / 2.
    """
    log_u = y if mechanism == "permute-and-flip" else np.minimum(y, 0.0) - math.log(2)
    loss = -np.log1p(-np.exp(log_u))
    if mechanism == "laplace":
        loss = np.where(y > 0, math.log(2) + y, loss)
    near = log_u > -37  # precision
    return np.where(near, np.log(np.where(near, loss, 1.0)), log_u)
