r"""How near a private coefficient will come to the one it stands for: closed forms, no data.

Let b0 be the least squares estimate, with standard error s0 and the 5% interval b0 +- h0. The
private one is b1 = b0 + d with the interval b1 +- h1. The error d is independent of b0, N(0, t^2):
the privacy noise, and the little that cutting rows costs. Then

overlap (Karr, Kohnen, Oganian, Reiter and Sanil 2006)
    The common length is min(2 h0, 2 h1, h0 + h1 - |d|), at least 0. With
    G(c) = E max(c - |d|, 0) = c (2 Phi(c/t) - 1) - 2 t (phi(0) - phi(c/t)), its mean is
    G(h0 + h1) - G(|h0 - h1|), and the overlap is half of it times (1/(2 h0) + 1/(2 h1)).
power
    P(|b0| > h0) and P(|b1| > h1) at the coefficient beta: b0 ~ N(beta, s0^2).
same decision
    P(both significant) + P(neither): the mean over b0, at its quantiles, of what is left.

Matrix-Laplace noise makes t^2 = a + b V with V a mixing law (`dpreg.results.inference`): all of the
above is a mean over V.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import ndtr, ndtri

from dpreg.arrays import Floats
from dpreg.results.inference import mixing, quantiles

__all__ = ["LEVEL", "Measures", "measures"]

LEVEL: Final = 0.05  # by definition
"""At which decisions are made, and one less the confidence of intervals."""
_POINTS: Final = 512
_FAR: Final = 40.0  # precision
_TINY: Final = 1e-9
"""Least spread of d beside a half-width: quotients stay finite where nothing is added."""
_DENSITY: Final = 1 / np.sqrt(2 * np.pi)


@dataclass(frozen=True, slots=True, eq=False)
class Measures:
    """Of m coefficients; arrays of shape (m,).

    Attributes
    ----------
    width : array
        Length of the private interval over that of least squares.
    overlap : array
        Expected overlap of both.
    power, power_exact : array
        Chance that the private estimate, and that of least squares, is significant.
    same : array
        Chance that both are, or neither is.
    """

    width: Floats
    overlap: Floats
    power: Floats
    power_exact: Floats
    same: Floats


def measures(
    beta: Floats, exact: Floats, sampling: Floats, privacy: Floats, degrees: int | None
) -> Measures:
    """Predict the measures of coefficients.

    Parameters
    ----------
    beta : (m,) array
        True coefficients.
    exact, sampling, privacy : (m,) arrays
        Variances: of least squares, and the two parts of the private estimate's.
    degrees : int or None
        As in `dpreg.results.inference`.
    """
    own = np.sqrt(exact)
    half = -float(ndtri(LEVEL / 2)) * own
    private = quantiles(sampling, privacy, degrees, LEVEL)
    more = np.maximum(sampling - exact, 0.0)
    scales = np.sqrt(more[:, None] + privacy[:, None] * mixing(degrees))
    common = _mean_excess(half + private, scales) - _mean_excess(np.abs(half - private), scales)
    points = own[:, None] * ndtri((np.arange(_POINTS) + 0.5) / _POINTS) + beta[:, None]
    found = np.stack(
        [_beyond(points, private, scales[:, place]) for place in range(scales.shape[1])]
    ).mean(axis=0)
    # Quantiles of b0 are too coarse for its own power, which has a closed form.
    power_exact = ndtr((-half - beta) / own) + ndtr((beta - half) / own)
    whole = np.sqrt(own[:, None] ** 2 + scales**2)
    ends = [(-private - beta)[:, None] / whole, (beta - private)[:, None] / whole]
    decided = np.where(np.abs(points) > half[:, None], found, 1 - found)
    return Measures(
        width=private / half,
        overlap=common / 2 * (0.5 / half + 0.5 / private),
        power=(ndtr(ends[0]) + ndtr(ends[1])).mean(axis=1),
        power_exact=power_exact,
        same=decided.mean(axis=1),
    )


def _mean_excess(reach: Floats, scales: Floats) -> Floats:
    """Return the mean over d, and over the scales, of max(reach - |d|, 0)."""
    unit = np.maximum(scales, _TINY * np.maximum(reach, np.finfo(float).tiny)[:, None])
    c = reach[:, None] / unit
    inner = c * (2 * ndtr(c) - 1) - 2 * _DENSITY * (1 - np.exp(-(np.minimum(c, _FAR) ** 2) / 2))
    return np.asarray((unit * inner).mean(axis=1))


def _beyond(centers: Floats, reach: Floats, scale: Floats) -> Floats:
    """Return P(|b1| > reach) given b0 at each of the centers, (m, points)."""
    unit = np.maximum(scale, _TINY * reach)[:, None]
    return np.asarray(
        ndtr((-reach[:, None] - centers) / unit) + ndtr((centers - reach[:, None]) / unit)
    )
