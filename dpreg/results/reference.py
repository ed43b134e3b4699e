r"""The reference law of a released coefficient: one law for intervals, p-values and quantiles.

A combination r'beta of the estimates errs by a sampling part, normal by the central limit theorem,
and a privacy part that is known: r'H N (theta, -1), N the noise. Gaussian noise makes it normal.
Matrix-Laplace noise N = W1 - W2, independent Wisharts with nu degrees of freedom, makes it

    sum_k (x_k y_k - x'_k y'_k),    k = 1..nu,    x = r'H g_k and y = (theta, -1)'g_k normal:

given the y it is normal, and where x and y are uncorrelated its variance is proportional to
chi2_{2 nu}. The GLS estimate has them all but uncorrelated, so that with a and b the two variances

    error ~ N(0, a + b V),    V ~ chi2_{2 nu} / (2 nu):

a normal mixture, of excess kurtosis (3/nu) (b/(a+b))^2. Mean over V by its N midpoint quantiles:

    P(|error| > t) = mean_i 2 Phi(-t / sqrt(a + b V_i)),    V_i the (i - 1/2)/N quantile.

In R: ``v <- qchisq((1:256 - .5)/256, 2*nu)/(2*nu); mean(2*pnorm(-t/sqrt(a + b*v)))``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import chdtri, ndtr, ndtri

from dpreg.arrays import Floats

__all__ = ["mixing", "pvalues", "quantiles"]

_NODES: Final = 256
"""Midpoints: at nu = 5 a p-value of .05 is off by a part in a thousand, one of 1e-4 by a tenth."""
_HALVINGS: Final = 60


@lru_cache(maxsize=64)
def _midpoints(degrees: int) -> tuple[float, ...]:
    upper = 1 - (np.arange(_NODES) + 0.5) / _NODES
    return tuple(chdtri(2.0 * degrees, upper) / (2.0 * degrees))


def mixing(degrees: int | None) -> Floats:
    """Return the midpoints V_i of the privacy part's mixing law; 1 alone for Gaussian noise."""
    return np.ones(1) if degrees is None else np.array(_midpoints(degrees))


def _scales(sampling: Floats, privacy: Floats, degrees: int | None) -> Floats:
    variances = np.asarray(sampling)[..., None] + np.asarray(privacy)[..., None] * mixing(degrees)
    return np.sqrt(np.maximum(variances, 0.0))


def pvalues(errors: Floats, sampling: Floats, privacy: Floats, degrees: int | None) -> Floats:
    """Return P(|error| > |errors|), two-sided, elementwise.

    Parameters
    ----------
    errors : array
        Estimate less hypothesis.
    sampling, privacy : arrays of the same shape
        The two variances.
    degrees : int or None
        nu of matrix-Laplace noise; None for Gaussian noise.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.abs(errors)[..., None] / _scales(sampling, privacy, degrees)
    return np.asarray(2 * ndtr(-z).mean(axis=-1))


def quantiles(sampling: Floats, privacy: Floats, degrees: int | None, alpha: float) -> Floats:
    """Return half-widths t with P(|error| > t) = alpha, elementwise."""
    scales = _scales(sampling, privacy, degrees)
    normal = float(-ndtri(alpha / 2))
    if degrees is None:
        return np.asarray(normal * scales[..., 0])
    low, high = normal * scales.min(axis=-1), normal * scales.max(axis=-1)
    scales = np.where(scales > 0, scales, np.finfo(float).tiny)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = 2 * ndtr(-middle[..., None] / scales).mean(axis=-1) > alpha
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray((low + high) / 2)
