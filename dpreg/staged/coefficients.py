r"""Coefficients from the law of the last look: generalised least squares, for any set of columns.

From g = K beta + N(0, W), with beta zero outside the columns M of the model,

    beta = V K_M' W^-1 g,    V = (K_M' W^-1 K_M)^-1,

and V splits into what sampling and what privacy contribute by the two parts of W. Coefficients of a
subset are those of the best linear prediction with these columns alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpreg.staged.law import LookLaw, solved

__all__ = ["Coefficients", "coefficients"]

Array = NDArray[np.float64]

_TINY: Final = 1e-12
"""Relative ridge that keeps a solve off singularity; far below any noise."""
_NOTHING: Final = 1e-200
"""Precision of a coefficient of which nothing is known: large, finite standard errors."""


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """Estimates for m columns with their uncertainty, in box units or, mapped, in the user's.

    Parameters
    ----------
    params : (m,) array
    sampling, privacy : (m, m) arrays
        Covariance from sampling, and from the noise.
    residual : float
        sigma2, in squared units of the response.
    count : float
        Released number of complete rows.
    degrees : int or None
        For `dpreg.staged.reference`: of the noise's mixing law; None where it is Gaussian.
    unresolved : (m,) array
        Share of each coefficient's variance that comes from directions whose eigenvalue is below
        twice the noise's norm.
    """

    params: Array
    sampling: Array
    privacy: Array
    residual: float
    count: float
    degrees: int | None
    unresolved: Array

    @property
    def covariance(self) -> Array:
        """Sampling and privacy together, (m, m)."""
        return np.asarray(self.sampling + self.privacy)

    @property
    def errors(self) -> Array:
        """Standard errors, (m,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))


def coefficients(released: LookLaw, columns: Sequence[int] | None = None) -> Coefficients:
    """Return the coefficients of the columns, by generalised least squares.

    Parameters
    ----------
    released : LookLaw
    columns : sequence of int, optional
        Places in 0..d-1, 0 the intercept; None: all of them.
    """
    size = released.k.shape[1]
    chosen = list(range(size)) if columns is None else list(columns)
    k = released.k[:, chosen]
    weighted = solved(released.covariance, k)
    precision = k.T @ weighted
    scale = np.sqrt(np.maximum(np.diag(precision), _NOTHING))
    scaled = precision / np.outer(scale, scale)
    values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
    values = np.maximum(values, _TINY)
    inverse = ((vectors / values) @ vectors.T) / np.outer(scale, scale)
    map_ = inverse @ weighted.T
    return Coefficients(
        params=map_ @ released.g,
        sampling=map_ @ released.sampling @ map_.T,
        privacy=map_ @ released.privacy @ map_.T,
        residual=released.residual,
        count=released.count,
        degrees=released.degrees,
        unresolved=np.zeros(len(chosen)),
    )
