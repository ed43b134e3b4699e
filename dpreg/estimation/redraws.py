"""Fresh noise by a release's public law, for intervals: post-processing, nothing is spent.

Tested in `tests/estimation/test_inference.py`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.random import Generator

from dpreg.arrays import Floats
from dpreg.estimation.gram import NoisyGram

__all__ = ["draw_truth", "draws_for", "redraw_noise", "standard_noise"]


_CELLS_AT_ONCE: Final = 2_000_000
"""Redrawn cells in memory at once."""
_MOST_DRAWS: Final = 2000
_LEAST_DRAWS: Final = 200
"""So few still give intervals at 99%: their ends are the extreme draws."""
_FULL_DRAWS_TO: Final = 80
"""Columns up to which most draws are made; the cost of one grows with their cube."""


def draws_for(columns: int) -> int:
    """Return how many draws a model's intervals are made of: 2000, down to 200 for wide models.

    Ends of intervals are order statistics at Weibull's positions, so that coverage does not depend
    on the number of draws; with fewer of them the ends themselves vary more.
    """
    whole = _MOST_DRAWS * _FULL_DRAWS_TO**3 // max(columns, 1) ** 3
    return max(_LEAST_DRAWS, min(_MOST_DRAWS, whole))


def draw_truth(
    noisy: NoisyGram, least: float, sigma2: float, draws: int, rng: Generator
) -> tuple[Floats, Floats, Floats | None]:
    """Draw coefficients that the release is compatible with: (given the noise alone, sampling).

    Eigenvalues are folded to at least `least`; see `dpreg.estimation.inference`. The third is the
    sampling error's covariance, where draws are few: sigma2 times the mean of the inverses, which
    is its mean given the noise. (A covariance of few draws would not have full rank.)
    """
    size = len(noisy.columns)
    step = max(1, _CELLS_AT_ONCE // (size + 1) ** 2)
    error = np.zeros((size, size)) if draws < _MOST_DRAWS and size > _FULL_DRAWS_TO else None
    parts: list[Floats] = []
    for start in range(0, draws, step):
        number = min(step, draws - start)
        matrices = noisy.cells - redraw_noise(noisy, number, rng)
        values, vectors = np.linalg.eigh(matrices[:, :size, :size])
        values = np.maximum(np.abs(values), least)
        turned = np.einsum("kji,kj->ki", vectors, matrices[:, :size, size]) / values
        errors = rng.standard_normal((number, size)) * np.sqrt(sigma2 / values)
        parts.append(np.einsum("kij,skj->ski", vectors, np.stack([turned, errors])))
        if error is not None:
            beside = np.swapaxes(vectors / np.sqrt(values)[:, None, :], 0, 1).reshape(size, -1)
            error += sigma2 / draws * (beside @ beside.T)
    back = np.concatenate(parts, axis=1)
    return back[0], back[1], error


def redraw_noise(noisy: NoisyGram, size: int, rng: Generator) -> Floats:
    """Draw `size` fresh noise matrices by the release's public law, shape (size, d + 1, d + 1)."""
    places = [cell for cell in noisy.triangle.cells if cell != (-1, -1)]
    number = len(noisy.triangle.cells)
    sds = np.array([noisy.noise_sd[cell] for cell in places])
    if noisy.mechanism == "matrix-laplace":
        return _redraw_wishart(noisy, places, size, rng)
    drawn = standard_noise(noisy.mechanism, (size, len(places)), rng, number)
    filled = [noisy.triangle.places(cell) for cell in places]
    own = np.repeat(np.arange(len(places)), [len(entries) for entries in filled])
    i, j = np.array([entry for entries in filled for entry in entries]).reshape(-1, 2).T
    matrices = np.zeros((size, *noisy.cells.shape))
    matrices[:, i, j] = matrices[:, j, i] = (drawn * sds)[:, own]
    return matrices


def standard_noise(
    mechanism: str, shape: tuple[int, int], rng: Generator, cells: int | None = None
) -> Floats:
    """Draw noise of variance 1 in some cells of a release, many times over, shape (times, cells).

    Parameters
    ----------
    mechanism : str
        Matrix-Laplace noise has no law of single cells here; in many columns it is near a normal
        one (its excess kurtosis is 3 over the columns), which is what is drawn.
    shape : (int, int)
    rng : Generator
    cells : int, optional
        How many the release has, where these are not all.
    """
    if mechanism == "laplace":
        return rng.laplace(0.0, np.sqrt(0.5), shape)
    if mechanism == "knorm":
        number = shape[1] if cells is None else cells
        radius = rng.gamma(number + 1, size=(shape[0], 1))
        box: Floats = rng.uniform(-1.0, 1.0, shape)
        return np.asarray(radius / np.sqrt((number + 1) * (number + 2) / 3) * box)
    return rng.standard_normal(shape)


def _redraw_wishart(
    noisy: NoisyGram, places: list[tuple[int, int]], size: int, rng: Generator
) -> Floats:
    """Draw matrix-Laplace noise in the released cells, by its joint law.

    N_ij = sqrt(c_i c_j) (X_ij + X_ji), X = P'M, P and M standard normal with nu = D + 1 rows; see
    `dpreg.privacy.mechanisms.wishart`. The D places hold the constant, in the model or not.
    """
    triangle, last = noisy.triangle, len(noisy.columns)
    ahead = 0 if triangle.intercept else 1
    nu = last + ahead + 2
    response = noisy.noise_sd[last, last] / np.sqrt(4 * nu)
    column = noisy.noise_sd[0, last] ** 2 / (2 * nu * response) if last else 0.0
    scales = np.append(np.full(last, column), response)
    p, m = rng.standard_normal((2, size, nu, last + 1))
    product = np.swapaxes(p, 1, 2) @ m
    noise: Floats = np.sqrt(np.outer(scales, scales)) * (product + np.swapaxes(product, 1, 2))
    if len(places) == (last + 1) * (last + 2) // 2:  # every cell was released, each on its own
        return noise
    matrices = np.zeros_like(noise)
    for cell in places:
        first, *others = triangle.places(cell)
        for i, j in (first, *others):
            matrices[:, i, j] = matrices[:, j, i] = noise[:, first[0], first[1]]
    return matrices
