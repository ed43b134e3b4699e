"""Fresh noise by a release's public law, for intervals: post-processing, nothing is spent.

Tested in `tests/estimation/test_inference.py`.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from dpreg.arrays import Floats
from dpreg.estimation.gram import NoisyGram

__all__ = ["redraw_noise"]


def redraw_noise(noisy: NoisyGram, size: int, rng: Generator) -> Floats:
    """Draw `size` fresh noise matrices by the release's public law, shape (size, d + 1, d + 1)."""
    places = [cell for cell in noisy.triangle.cells if cell != (-1, -1)]
    number = len(noisy.triangle.cells)
    sds = np.array([noisy.noise_sd[cell] for cell in places])
    shape = (size, len(places))
    if noisy.mechanism == "gaussian":
        drawn = rng.standard_normal(shape)
    elif noisy.mechanism == "laplace":
        drawn = rng.laplace(0.0, np.sqrt(0.5), shape)
    elif noisy.mechanism == "matrix-laplace":
        return _redraw_wishart(noisy, places, size, rng)
    else:
        radius = rng.gamma(number + 1, size=(size, 1)) / np.sqrt((number + 1) * (number + 2) / 3)
        drawn = radius * rng.uniform(-1.0, 1.0, shape)
    matrices = np.zeros((size, *noisy.cells.shape))
    for cell, column in zip(places, (drawn * sds).T, strict=True):
        for i, j in noisy.triangle.places(cell):
            matrices[:, i, j] = matrices[:, j, i] = column
    return matrices


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
    matrices = np.zeros_like(noise)
    for cell in places:
        first, *others = triangle.places(cell)
        for i, j in (first, *others):
            matrices[:, i, j] = matrices[:, j, i] = noise[:, first[0], first[1]]
    return matrices
