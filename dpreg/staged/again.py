r"""Where to look once more, at the columns of a chosen model: post-processing of released numbers.

The last look's law gives the moments of all columns in the box, and coefficients b of the model
with their covariance V. For the chosen columns let m be their means and S their centred moments,
with noise of about N (the size of the noise in the look's own coordinates, taken back to the box).
The new coordinates whiten them as `dpreg.staged.locate` does,

    L (S + N/2) L' = 1,    R^2 = 1 + tr((S + N/2)^-1 S),    tau = 1.7 omega,

omega^2 the model's residual variance and what the error of b adds to it. From there clips are
opened as for the last of the looks before (`dpreg.staged.clips`): further, as few columns leave
little noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from dpreg.arrays import Floats
from dpreg.staged.coefficients import coefficients
from dpreg.staged.law import LookLaw
from dpreg.staged.locate import CUT, Located
from dpreg.staged.released import Coordinates

__all__ = ["Spread", "column_mass", "locate_again", "spread_at"]

_LEAST: Final = 1e-9
"""Least centred moment of a column, in box units: whitening stays finite."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How some columns lie, as a law knows it.

    Attributes
    ----------
    means : (k,) array
    moments, noise : (k, k) arrays
        Centred moments, and about the noise in them.
    floored : (k, k) array
        Moments and half of the noise: a direction that is not seen has some length.
    whitening : (k, k) array
        L with L floored L' = 1.
    """

    means: Floats
    moments: Floats
    noise: Floats
    floored: Floats
    whitening: Floats


def spread_at(law: LookLaw, columns: Sequence[int], size: float) -> Spread:
    """Return how columns lie, with noise of `size` in the law's own coordinates."""
    at = list(columns)
    mass = column_mass(law)
    means = np.clip(law.moments[0, at] / mass, -1.0, 1.0)
    moments = law.moments[np.ix_(at, at)] / mass - np.outer(means, means)
    values, vectors = np.linalg.eigh((moments + moments.T) / 2)
    moments = (vectors * np.maximum(values, 0.0)) @ vectors.T
    noise = size * (law.located.T @ law.located)[np.ix_(at, at)]
    floored = moments + noise / 2 + _LEAST * np.eye(len(at))
    whitening = np.zeros((0, 0))
    if at:
        lower = cholesky(floored, lower=True)
        whitening = solve_triangular(lower, np.eye(len(at)), lower=True)
    return Spread(means, moments, noise, floored, whitening)


def column_mass(law: LookLaw) -> float:
    """Return the moment of the constant, kept from zero."""
    return max(float(law.moments[0, 0]), _LEAST)


def locate_again(law: LookLaw, columns: Sequence[int], width: float) -> Located:
    """Return the coordinates for one more look at the columns of a model.

    Parameters
    ----------
    law : LookLaw
    columns : sequence of int
        Stored columns, from 1, ascending; the constant is always looked at.
    width : float
        tau of the look that `law` is of.
    """
    at = list(columns)
    fit = coefficients(law, [0, *at])
    seen = spread_at(law, at, law.noise_norm * width**2 / (law.count * law.weight))
    means, moments, whitening = seen.means, seen.moments, seen.whitening
    error = fit.covariance[1:, 1:]
    residual = max(fit.residual + float((moments * error).sum()), 1e-12)
    tau = CUT * math.sqrt(residual)
    return Located(
        coordinates=Coordinates(
            whitening=whitening,
            offset=-whitening @ means,
            intercept=float(fit.params[0]),
            slopes=fit.params[1:],
            width=tau,
            squared_radius=1.0 + float(np.trace(whitening @ moments @ whitening.T)),
        ),
        count=law.count,
        residual=residual,
        expected_square=float((seen.floored * error).sum()) / tau**2 + 1.0 / law.count,
        eigenvalues=np.asarray(np.linalg.eigvalsh(moments), dtype=np.float64),
        noise_norm=float(np.trace(seen.noise)) / max(len(at), 1),
        lengths=np.zeros(len(at)),
        spread=whitening @ moments @ whitening.T,
    )
