"""Centred moments, and the coordinates in which their noise is no larger than what they hold.

Post-processing of released numbers: `dpreg.families.locate` says what for.

Tested in `tests/families/test_looks.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.staged.locate import centred_at

__all__ = ["Whitened", "centred", "whitened"]

_FLOOR: Final = 0.5
_RESOLVED: Final = 2.0
_LEAST: Final = 0.1
_EXPECTED: Final = 30.0
"""Coefficients are expected to be at least so many times smaller, as squares, than they may be."""


@dataclass(frozen=True, slots=True, eq=False)
class Whitened:
    """What centred moments say: the rule of both kinds of looks.

    `explained` is the mean square of what the slopes predict, and `missing` what noise alone would
    give of it.
    """

    whitening: Floats
    slopes: Floats
    spread: Floats
    explained: float
    missing: float
    signal: float

    @property
    def seen(self) -> float:
        """The part of the slopes that stands out of their noise, by James and Stein's rule."""
        return max(1 - self.missing / max(self.explained, 1e-300), 0.0)


def whitened(
    moments: Floats,
    variances: Floats,
    expected: float | None,
    sampling: float,
    most: float = math.inf,
) -> Whitened:
    """Whiten the columns of centred moments of (x, y), and fit y by a ridge.

    Parameters
    ----------
    moments, variances : (p + 1, p + 1) arrays
        Per row, and of the noise in them.
    expected : float or None
        Expected |theta|^2, where an earlier look gives it; the ridge then has the prior variance
        of largest likelihood. None: columns explain all of the response at most.
    sampling : float
        phi / n.
    most : float
        Without `expected`: what columns explain at most, if that is known otherwise.
    """
    p = len(moments) - 1
    if not p:
        return Whitened(np.zeros((0, 0)), np.zeros(0), np.zeros(0), 0.0, 0.0, 0.0)
    norm = max(2 * math.sqrt(float(variances[:p, :p].sum(axis=1).max())), 1e-12)
    values, vectors = np.linalg.eigh(moments[:p, :p])
    positive = np.maximum(values, 0.0)
    least = np.maximum(values, _LEAST * norm)
    turned = vectors.T @ moments[:p, p]
    if expected is None:
        total = max(float(moments[p, p]), 2 * math.sqrt(variances[p, p]), 1e-12)
        squared = min(total, most) * p / max(float(least.sum()), 1e-12)
        kappa = p * (variances[:p, p].mean() + variances[:p, :p].mean() * squared) / squared
        bare = values[0] >= _RESOLVED * norm and most == math.inf
        kappas = np.full(p, 0.0 if bare else kappa)
    else:
        noise = variances[:p, p].mean() + 2 * expected * variances[:p, :p].mean()
        kappas = np.full(p, noise / _prior(least, turned, noise, sampling, expected / p))
    shrunk = least / (least**2 + kappas)
    slopes = vectors @ (shrunk * turned)
    noise_along = variances @ np.append(slopes, -1.0) ** 2
    squares = shrunk**2 * (vectors.T**2 @ noise_along[:p])
    floored = positive + _FLOOR * norm
    return Whitened(
        whitening=(vectors / np.sqrt(floored)).T,
        slopes=slopes,
        spread=np.sqrt(positive / floored),
        explained=float((positive * (shrunk * turned) ** 2).sum()),
        missing=float((positive * squares).sum()),
        signal=float((floored * squares).sum()),
    )


def _prior(values: Floats, turned: Floats, noise: float, sampling: float, expected: float) -> float:
    """Return the prior variance of a coefficient that makes the released score most likely."""
    low = min(max(expected / _EXPECTED, 1e-12), 1.0)
    tried = np.exp(np.linspace(math.log(low), 0.0, 60))
    variance = values**2 * tried[:, None] + noise + sampling * values
    likelihood = -0.5 * (np.log(variance) + turned**2 / variance).sum(axis=1)
    return float(tried[int(np.argmax(likelihood))])


def centred(cells: Floats, noise_sd: Floats, count: float) -> tuple[Floats, Floats, Floats]:
    """Return means, centred moments per row, and the variances of the noise in these."""
    means = cells[0, 1:] / count
    return means, *centred_at(means, cells, noise_sd, count)
