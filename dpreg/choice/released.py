r"""What a choice reads of a released look, and the law of a useless term's gain.

A look at public coordinates beta = t0 + T theta released

    s = H theta + N(0, W),    theta unknown.

A choice takes theta for N(0, tau^2 I) a priori: what the looks before left over is short. W holds
the noise of H times theta, so it depends on tau, and must be averaged over the *same* prior as the
test. A producer therefore makes one `Released` for each of `priors`.

Tested in `tests/choice/test_evidence.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import chdtrc, fdtrc, gammaln

from dpreg.arrays import Floats

__all__ = ["FLAT", "Released", "gain_tail", "mixed", "priors"]

MOST_PRIOR: Final = 0.25
"""Most prior variance of theta a direction: one direction then explains a quarter of the residual.
1/4 whatever the dimension finds .85 of 9 terms fewer (`python -m benchmarks.power`, 2026-11)."""
FLAT: Final = 1.0
"""The same where little is supposed: whatever is tested has to pass with this as well."""
_POINTS: Final = 401
_REACH: Final = 12.0  # precision
"""Nodes of a quadrature, and standard deviations of log chi2 on either side that it covers."""


def priors(directions: int) -> tuple[float, float]:
    """Return the variances of theta a direction that a choice supposes, one after the other.

    With 1/d all d directions together explain about as much as the residual. The second supposes
    little: fixed effects in directions that noise hides add to a gain that is right only on average
    over the prior.
    """
    return min(MOST_PRIOR, 1 / max(directions, 1)), FLAT


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """One look's law, averaged over one prior.

    Attributes
    ----------
    start : (p,) array
        t0, the coefficients at theta = 0.
    transform : (p, d) array
        T.
    equations : (m, d) array
        H.
    left : (m,) array
        s.
    covariance : (m, m) array
        W.
    prior : float
        tau^2, that W was averaged over.
    degrees : int or None
        nu of matrix-Laplace noise: a gain is then chi2 times chi2_{2 nu} / (2 nu). None if it is
        Gaussian.
    error_degrees : float or None
        Of an error variance that was estimated with noise: gains are then F. None if it is known.
    """

    start: Floats
    transform: Floats
    equations: Floats
    left: Floats
    covariance: Floats
    prior: float
    degrees: int | None = None
    error_degrees: float | None = None


def gain_tail(gain: float, width: int, degrees: int | None, error_degrees: float | None) -> float:
    """Return the probability that a useless term of `width` columns gains more than `gain`.

    Notes
    -----
    The mean over chi2_{2 nu} is taken by the trapezoidal rule in its logarithm, where it converges
    faster than any power of the step.
    """
    nodes, weights = mixed(degrees)
    if error_degrees is None:
        return float(weights @ chdtrc(width, gain / nodes))
    return float(weights @ fdtrc(width, error_degrees, gain / nodes / width))


@lru_cache(maxsize=256)
def mixed(degrees: int | None) -> tuple[Floats, Floats]:
    """Return nodes and weights of chi2_{2 nu} / (2 nu); of 1 without degrees."""
    if degrees is None:
        return np.ones(1), np.ones(1)
    # log of a Gamma(nu) variable: mean about log nu, variance at most 1/nu + 1/nu^2.
    reach = _REACH * np.sqrt(1 / degrees + 1 / degrees**2)
    logs = np.linspace(-reach - _REACH / degrees, reach, _POINTS)
    weights = np.exp(degrees * (np.log(degrees) + logs - np.exp(logs)) - gammaln(degrees))
    return np.exp(logs), weights / weights.sum()
