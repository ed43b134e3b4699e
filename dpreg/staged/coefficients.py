r"""Coefficients from the law of the last look: generalised least squares, for any set of columns.

From g = K beta + N(0, W), with beta zero outside the columns M of the model,

    beta = V K_M' W^-1 g,    V = (K_M' W^-1 K_M)^-1,

and V splits into what sampling and what privacy contribute by the two parts of W. What is unknown
of a factor level that the noise hides counts as privacy, and is no more than the box leaves. For
the estimates, d weak equations are added, theta = 0 with variance 1 in the look's coordinates; V is
without them, so that intervals of what the noise hides are as wide as it leaves them. Coefficients
of a subset are those of the best linear prediction with these columns alone.

Tested in `tests/staged/test_law.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.staged.law import LookLaw, solved

__all__ = ["Coefficients", "coefficients"]

_TINY: Final = 1e-12
"""Relative ridge that keeps a solve off singularity; far below any noise."""
_RESOLVED: Final = 4.0
"""Signal over noise, a ratio of squares, at which a direction of the columns counts as seen: an
eigenvalue of A of about nu."""
_NEAR: Final = 1.0
"""Variance of theta, a direction, before the last look: the look cuts residuals at tau of the fit
that located it. Where it sees a direction this weighs less than one row of n; where it sees
nothing, the earlier fit stands instead of a quotient of noises."""
_LEVEL: Final = 4 / 3
"""Variance of a factor level's coefficient before any look. Rows of a level and of the base have
responses in [-1, 1]: their means differ by at most 2, and a uniform law on [-2, 2] has this
variance. It counts where a level is so rare that the looks do not see it at all."""
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
        sigma2, in squared units of the response; with what columns that are left out explain.
    count : float
        Released number of complete rows.
    degrees : int or None
        For `dpreg.staged.reference`: of the noise's mixing law; None where it is Gaussian.
    unresolved : (m,) array
        Share of each coefficient's variance that comes from directions in which the released
        moments of the columns are hardly more than noise.
    """

    params: Floats
    sampling: Floats
    privacy: Floats
    residual: float
    count: float
    degrees: int | None
    unresolved: Floats

    @property
    def covariance(self) -> Floats:
        """Sampling and privacy together, (m, m)."""
        return np.asarray(self.sampling + self.privacy)

    @property
    def errors(self) -> Floats:
        """Standard errors, (m,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def of(self, places: Sequence[int]) -> Coefficients:
        """Return a part of the coefficients, as they are beside the others."""
        at, block = list(places), np.ix_(places, places)
        return replace(
            self,
            params=self.params[at],
            sampling=self.sampling[block],
            privacy=self.privacy[block],
            unresolved=self.unresolved[at],
        )


def coefficients(
    released: LookLaw, columns: Sequence[int] | None = None, levels: Sequence[int] = ()
) -> Coefficients:
    """Return the coefficients of the columns, by generalised least squares.

    Parameters
    ----------
    released : LookLaw
    columns : sequence of int, optional
        Places in 0..d-1, 0 the intercept; None: all of them.
    levels : sequence of int
        Those of them that are 0/1 columns of factors: see `_LEVEL`.
    """
    size = released.k.shape[1]
    chosen = list(range(size)) if columns is None else list(columns)
    k = released.k[:, chosen]
    weighted = solved(released.covariance, k)
    near = released.located[:, chosen]
    noise = released.map_noise[np.ix_(chosen, chosen)]
    precision = k.T @ weighted
    bounded = np.diag(np.isin(chosen, levels) / _LEVEL)
    shrunk, _ = _inverted(precision + near.T @ near / _NEAR + bounded, noise)
    params = shrunk @ (weighted.T @ released.g + near.T @ released.center / _NEAR)
    inverse, unresolved = _inverted(precision, noise, bounded)
    to_params = inverse @ weighted.T
    sampling = to_params @ released.sampling @ to_params.T
    privacy = to_params @ released.privacy @ to_params.T + inverse @ bounded @ inverse
    residual = released.residual
    if len(chosen) < size:
        residual += _left_out(released, chosen, params, sampling + privacy)
    return Coefficients(
        params=params,
        sampling=sampling * (residual / released.residual if released.residual > 0 else 1.0),
        privacy=privacy,
        residual=residual,
        count=released.count,
        degrees=released.degrees,
        unresolved=unresolved,
    )


def _left_out(
    released: LookLaw, chosen: Sequence[int], params: Floats, covariance: Floats
) -> float:
    """Return the mean square of what the columns that are left out explain, less its own noise."""
    full = coefficients(released)
    gap, noise = full.params.copy(), full.covariance
    gap[list(chosen)] -= params
    noise[np.ix_(chosen, chosen)] -= covariance
    explained = float(gap @ released.moments @ gap) - float((released.moments * noise).sum())
    return max(explained, 0.0)


def _inverted(
    precision: Floats, noise: Floats, bounded: Floats | float = 0.0
) -> tuple[Floats, Floats]:
    """Return (precision + bounded)^-1, and how much of its diagonal lies in directions of noise.

    With X'(precision + bounded)X = 1 and X'(noise - precision / 4)X = diag(f), variance j is
    sum_i X_ji^2; direction i counts as noise where f_i is positive: its signal over noise is below
    `_RESOLVED`.
    """
    whole = precision + bounded
    scale = np.sqrt(np.maximum(np.diag(whole), _NOTHING))
    both = np.outer(scale, scale)
    values, vectors = np.linalg.eigh((whole + whole.T) / 2 / both)
    roots = vectors / np.sqrt(np.maximum(values, _TINY))
    left = (noise - precision / _RESOLVED) / both
    shares, turn = np.linalg.eigh(roots.T @ ((left + left.T) / 2) @ roots)
    squares = (roots @ turn) ** 2
    weak = squares[:, shares > 0].sum(axis=1) / squares.sum(axis=1)
    return roots @ roots.T / both, weak
