"""Private gradient descent, all rows in each step (Bassily et al. 2014), accounted exactly.

Each row's gradient (mu - y) x is shortened to norm `cut` times a unit of the family, the sum is
released T times with Gaussian noise. T Gaussian releases compose exactly: a replaced row moves a
sum by at most 2 cut, so sigma = 2 cut sqrt(T) / mu, mu exact at (eps, delta). Batches instead of
all rows (DP-SGD) would save time, not noise.
In its favour: steps, cut and rate are the best with hindsight.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from benchmarks.peers._rows import gdp
from benchmarks.peers.glm._rows import GLMRows, mean

STEPS, CUTS, RATES = (30, 100, 300), (0.3, 1.0, 3.0), (0.1, 0.3, 1.0, 3.0, 10.0)
UNIT = {"binomial": 1.0, "poisson": 3.0}


def settings(family: str, eps: float, delta: float) -> list[tuple[float, ...]]:
    return list(itertools.product(STEPS, CUTS, RATES)) if delta else []


def fit(
    rows: GLMRows,
    setting: tuple[float, ...],
    eps: float,
    delta: float,
    repeats: int,
    rng: np.random.Generator,
) -> np.ndarray:
    steps, cut, rate = int(setting[0]), setting[1], setting[2]
    unit = UNIT[rows.family]
    x, y, limit = rows.x, rows.y[:, None], cut * unit
    farthest = (limit / np.sqrt(np.einsum("ij,ij->i", x, x)))[:, None]
    sigma = 2 * limit * math.sqrt(steps) / gdp(eps, delta)
    theta = np.zeros((repeats, rows.columns))
    for _ in range(steps):
        # (mu - y) x has norm |mu - y| |x|: it is shortened where mu - y is beyond limit / |x|.
        left = np.clip(mean(x @ theta.T, rows.family) - y, -farthest, farthest)
        noise = sigma * rng.standard_normal(theta.shape)
        theta = theta - rate / unit * ((x.T @ left).T / len(x) + noise / rows.size)
    return theta
