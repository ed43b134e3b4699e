r"""What a term has to explain before it is worth a place in the model.

If a term of df columns has no effect, its gain in deviance is chi2_df where the noise is Gaussian.
Under matrix-Laplace noise of nu degrees of freedom the gain is the product of a chi2_df and an
independent chi2_{2 nu} / (2 nu). The price is the upper alpha/q quantile of that law, so that q
useless terms tried one by one give at most alpha useless finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, chdtri, gammaln

__all__ = ["gain_tail", "prices", "term_price"]

_POINTS: Final = 401
_REACH: Final = 12.0
"""Standard deviations of log chi2 on either side that the quadrature covers."""


def prices(
    widths: Sequence[int], false_inclusions: float, degrees: int | None
) -> NDArray[np.float64]:
    """Return each term's price.

    Parameters
    ----------
    widths : sequence of int
        Columns of each of the q terms on offer.
    false_inclusions : float
        alpha: the expected number of useless terms, if no term has an effect.
    degrees : int or None
        nu, the degrees of freedom of each Wishart of matrix-Laplace noise; None for Gaussian noise.

    Returns
    -------
    (q,) array
    """
    level = min(false_inclusions / max(len(widths), 1), 1.0)
    return np.array([term_price(width, level, degrees) for width in widths], dtype=np.float64)


@lru_cache(maxsize=4096)
def term_price(width: int, level: float, degrees: int | None) -> float:
    """Return the upper `level` quantile of the gain of a useless term of `width` columns."""
    if level >= 1.0:
        return 0.0
    gaussian = float(chdtri(width, level))
    if degrees is None:
        return gaussian
    from scipy.optimize import brentq  # slow to import, and seldom needed

    top = gaussian
    while gain_tail(top, width, degrees) > level:
        top *= 2.0
    return float(brentq(lambda x: gain_tail(x, width, degrees) - level, 0.0, top, xtol=1e-10))


def gain_tail(gain: float, width: int, degrees: int | None) -> float:
    """Return the probability that a useless term of `width` columns gains more than `gain`.

    Notes
    -----
    The mean over chi2_{2 nu} is taken by the trapezoidal rule in its logarithm. That integrand is
    smooth and falls off on both sides, where the rule converges faster than any power of the step.
    """
    if degrees is None:
        return float(chdtrc(width, gain))
    nodes, weights = _mixing(degrees)
    return float(weights @ chdtrc(width, gain / nodes))


@lru_cache(maxsize=256)
def _mixing(degrees: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights of chi2_{2 nu} / (2 nu)."""
    # log of a Gamma(nu) variable: mean about log nu, variance at most 1/nu + 1/nu^2.
    reach = _REACH * np.sqrt(1 / degrees + 1 / degrees**2)
    logs = np.linspace(-reach - _REACH / degrees, reach, _POINTS)
    density = degrees * (np.log(degrees) + logs - np.exp(logs)) - gammaln(degrees)
    weights = np.exp(density)
    return np.exp(logs), weights / weights.sum()
