"""Private gradient descent, all rows in each step (Bassily et al. 2014; Brown et al. 2024).

Each row's gradient is shortened to norm `cut`, the sum is released T times with Gaussian noise.
T Gaussian releases compose exactly: sigma = cut sqrt(T) / mu, mu exact at (eps, delta).
In its favour: steps, cut and rate are the best with hindsight, the rate in units of the exact
1 / |X'X|, for which nothing is charged; and so is whether the second half of the path is averaged.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.peers._rows import Rows, gdp

STEPS, CUTS = (8, 25, 80), (0.15, 0.5)


def settings(eps: float, delta: float) -> list[tuple[int, float, float, bool]]:
    found = [(t, c, r, m) for t in STEPS for c in CUTS for r in (0.5, 1.5) for m in (False, True)]
    return found if delta else []


def fit(
    rows: Rows,
    setting: tuple[int, float, float, bool],
    eps: float,
    delta: float,
    repeats: int,
    rng: np.random.Generator,
) -> np.ndarray:
    steps, cut, rate, averaged = setting
    x, y = rows.x, rows.y
    norms = np.sqrt(np.einsum("ij,ij->i", x, x))[:, None]
    rate = rate / float(np.linalg.eigvalsh(rows.ball(1.0).gram)[-1]) / rows.size
    sigma = cut * math.sqrt(steps) / gdp(eps, delta)
    theta, total = np.zeros((repeats, rows.size)), 0.0
    for step in range(steps):
        residual = y[:, None] - x @ theta.T
        # A gradient x r of norm |x| |r| is shortened where r is beyond cut / |x|.
        kept = np.clip(residual, -cut / norms, cut / norms)
        noise = sigma * rng.standard_normal(theta.shape)
        theta = theta + rate * ((x.T @ kept).T + noise)
        if step >= steps // 2:
            total = total + theta
    return total / (steps - steps // 2) if averaged else theta
