"""UDP: censored means of fits on parts, corrected (Evans, King, Schwenzfeier and Thakurta 2023).

Rows are dealt out to P parts, each is fitted by least squares. For each coefficient the fits are
cut at +-Lambda and their mean is released, the share a cut on the side of its sign, and the mean of
the parts' variances. Where more than a tenth were cut, the fits are taken as normal and the pair
(mean, share) is solved for their centre; errors come from simulating that pair. Otherwise the mean
stands, its variance the released one and that of the noise. Above .6 there is no answer.

One row moves one fit: a mean by 2 Lambda / P, a share by 1 / P. mu^2 goes to coefficients equally,
and of each half to the mean and a quarter to share and variance, releases that compose exactly. As
in the authors' program; its bootstrap within parts, which only smooths, and the correction on both
sides at once are left out.
In its favour: Lambda is set for each coefficient from the exact fits, and it and P by hindsight.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import norm

from benchmarks.peers._rows import Rows, gdp

PARTS, REACHES = (20, 50, 150, 400), (0.5, 1.5, 3.0)
_DRAWS, _LITTLE, _MOST = 400, 0.1, 0.6


def settings(eps: float, delta: float) -> list[tuple[int, float]]:
    return [(parts, reach) for parts in PARTS for reach in REACHES] if delta else []


def corrected(mean: np.ndarray, share: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, ...]:
    """Centre and spread of normal fits with that mean after a cut above at `bound`, share a."""
    at = norm.isf(share)
    spread = np.maximum(bound - mean, 0) / ((1 - share) * at + norm.pdf(at))
    return bound - spread * at, spread


def released(
    rows: Rows,
    setting: tuple[int, float],
    eps: float,
    delta: float,
    repeats: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    parts, reach = setting
    if 2 * parts * rows.size > len(rows.y):
        nothing = np.full((repeats, rows.size), np.nan)
        return nothing, nothing
    found = [_once(rows, parts, reach, gdp(eps, delta), rng) for _ in range(repeats)]
    return np.array([f[0] for f in found]), np.array([f[1] for f in found])


def _once(
    rows: Rows, parts: int, reach: float, mu: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    size, each = rows.size, len(rows.y) // parts
    taken = rng.permutation(len(rows.y))[: parts * each].reshape(parts, each)
    q, r = np.linalg.qr(rows.x[taken])
    y = rows.y[taken]
    r = r + 1e-9 * np.eye(size)
    fits = np.linalg.solve(r, np.einsum("mij,mi->mj", q, y)[..., None])[..., 0]
    residual = y - np.einsum("mij,mj->mi", rows.x[taken], fits)
    inverse = np.linalg.inv(r)
    spread = np.square(residual).sum(axis=1) / (each - size)
    variances = spread[:, None] * np.square(inverse).sum(axis=2) / parts
    bound = np.abs(fits.mean(axis=0)) + reach * fits.std(axis=0)
    mu_mean, mu_rest = mu / math.sqrt(2 * size), mu / math.sqrt(4 * size)
    noise = 2 * bound / parts / mu_mean
    mean = np.clip(fits, -bound, bound).mean(axis=0) + noise * rng.standard_normal(size)
    sign = np.where(mean < 0, -1.0, 1.0)
    exact = (sign * fits > bound).mean(axis=0)
    share = exact + rng.standard_normal(size) / parts / mu_rest
    widest = variances.max(axis=0)
    variance = variances.mean(axis=0) + widest / parts / mu_rest * rng.standard_normal(size)
    theta, error = mean.copy(), np.sqrt(np.clip(variance, 0, widest) + noise**2)
    cut = (share > _LITTLE) & (share <= _MOST)
    if cut.any():
        theta[cut], error[cut] = _cut(
            sign[cut] * mean[cut], share[cut], bound[cut], noise[cut], parts, mu_rest, rng
        )
        theta[cut] *= sign[cut]
    theta[share > _MOST] = error[share > _MOST] = np.nan
    return theta, error


def _cut(
    mean: np.ndarray,
    share: np.ndarray,
    bound: np.ndarray,
    noise: np.ndarray,
    parts: int,
    mu: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """The corrected centre, and its error by drawing mean and share again."""
    centre, spread = corrected(mean, share, bound)
    fits = centre + spread * rng.standard_normal((_DRAWS, parts, len(mean)))
    again = np.minimum(fits, bound).mean(axis=1) + noise * rng.standard_normal((_DRAWS, len(mean)))
    shares = (fits > bound).mean(axis=1) + rng.standard_normal((_DRAWS, len(mean))) / parts / mu
    drawn = corrected(again, np.clip(shares, _LITTLE, 0.9), bound)[0]
    return centre, drawn.std(axis=0)


def fit(
    rows: Rows,
    setting: tuple[int, float],
    eps: float,
    delta: float,
    repeats: int,
    rng: np.random.Generator,
) -> np.ndarray:
    return released(rows, setting, eps, delta, repeats, rng)[0]
