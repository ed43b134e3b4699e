r"""The law of the last look: weak equations for the coefficients, never an inverse.

With A, h, s the noisy blocks of the look's cells and theta the true coefficients in its
coordinates, h = A theta + (noise): exactly,

    h - A theta = sum c (1, u) error + (E_full (theta, -1))_{1..d} (up to sign),

so that in box coordinates, beta = t0 + T theta,

    g = K beta + N(0, W),    K = A T^-1,    g = h + K t0,    W = sigma2 A+ + C.

A+ is A without negative eigenvalues; C is the covariance of the noise times (theta, -1), averaged
over a posterior of theta whose prior has variance 1/4 a direction (one that explains as much as
the residual, since tau = 2 omega). Directions that the noise hides stay in as weak equations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpreg.staged.released import NoisyLook

__all__ = ["LookLaw", "law", "solved"]

Array = NDArray[np.float64]

_PRIOR: Final = 0.25
"""Prior variance of theta a direction: at tau = 2 omega it explains as much as the residual."""
_ROUNDS: Final = 4
"""Rounds of posterior and residual variance; the fourth changes both by under a percent."""


@dataclass(frozen=True, slots=True, eq=False)
class LookLaw:
    """g = K beta + N(0, W), q equations for the d coefficients in box units, intercept first.

    Parameters
    ----------
    g : (q,) array
    k : (q, d) array
    sampling, privacy : (q, q) arrays
        The two parts of W, positive semidefinite.
    residual : float
        sigma2: the residual variance, in squared box units of the response.
    count : float
        Released number of complete rows.
    weight : float
        Mean squared weight of a row: 1 where no row was shortened.
    theta : (d,) array
        Posterior mean in the look's coordinates.
    eigenvalues : (d,) array
        Of A, ascending; `noise_norm` is the size of the noise in them.
    noise_norm : float
    degrees : int or None
        As in `NoisyLook`.
    """

    g: Array
    k: Array
    sampling: Array
    privacy: Array
    residual: float
    count: float
    weight: float
    theta: Array
    eigenvalues: Array
    noise_norm: float
    degrees: int | None

    @property
    def covariance(self) -> Array:
        """W, (q, q)."""
        return np.asarray(self.sampling + self.privacy)


def law(look: NoisyLook, count: float | None = None, expected_square: float = 0.0) -> LookLaw:
    """Return the law of a released look; raises on no released value.

    Parameters
    ----------
    look : NoisyLook
    count : float, optional
        The number of complete rows that an earlier look released.
    expected_square : float
        The predicted |theta|^2 (`Located.expected_square`), where the rounds start.
    """
    size, variances = look.size, look.noise_sd**2
    a, h = look.cells[:size, :size], look.cells[:size, size]
    rows = look.count(count) if count is None else max(count, size + 1.0)
    weights = min(max(float(look.cells[0, 0]), 0.2 * rows), rows)
    total_noise = 2 * float(look.noise_sd[size, size])
    total = max(float(look.cells[size, size]), total_noise / 2)
    values, vectors = np.linalg.eigh(a)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    theta, spread = np.zeros(size), np.eye(size) * max(expected_square / size, _PRIOR)
    scatter = total / weights
    sampling = privacy = positive
    for _ in range(_ROUNDS):
        privacy = equation_noise(variances, theta, spread)
        sampling = scatter * positive
        weighted = solved(sampling + privacy, np.column_stack([a, h]))
        precision = a @ weighted[:, :size]
        spread = _posterior(precision)
        theta = spread @ (a @ weighted[:, size])
        extended = np.append(theta, -1.0)
        noise = float(np.sqrt(extended**2 @ variances @ extended**2))
        left = float(extended @ look.cells @ extended)
        scatter = max(min(max(left, noise / 2), total), 1e-12) / weights
    to_box = look.coordinates
    k = np.asarray(np.linalg.solve(to_box.transform.T, a.T).T, dtype=np.float64)
    return LookLaw(
        g=h + k @ to_box.shift,
        k=k,
        sampling=scatter * positive,
        privacy=privacy,
        residual=scatter * to_box.width**2,
        count=rows,
        weight=weights / rows,
        theta=theta,
        eigenvalues=values,
        noise_norm=look.noise_norm,
        degrees=look.degrees,
    )


def equation_noise(variances: Array, theta: Array, spread: Array) -> Array:
    """Return C, (d, d): Cov((E (theta, -1))_{1..d}) averaged over theta ~ (theta, spread).

    Cells are independent or uncorrelated: cell (i, j) moves entry i by theta_j and entry j by
    theta_i, cell (i, i) entry i by theta_i.
    """
    size = len(theta)
    products = np.outer(theta, theta) + spread
    noise = np.asarray(variances[:size, :size] * products)
    np.fill_diagonal(noise, variances[:size] @ np.append(np.diag(products), 1.0))
    return noise


def solved(covariance: Array, right: Array) -> Array:
    """Solve with a symmetric covariance, kept off singularity by a share of 1e-12."""
    size = len(covariance)
    ridge = max(1e-12 * float(np.trace(covariance)) / size, 1e-200)
    return np.asarray(np.linalg.solve(covariance + ridge * np.eye(size), right), dtype=np.float64)


def _posterior(precision: Array) -> Array:
    """Return (precision + prior)^-1; its eigenvalues are at most the prior's variance."""
    values, vectors = np.linalg.eigh((precision + precision.T) / 2)
    return np.asarray((vectors / (np.maximum(values, 0.0) + 1 / _PRIOR)) @ vectors.T)
