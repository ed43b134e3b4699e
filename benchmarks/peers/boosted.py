"""Boosted AdaSSP (Tang, Aydore, Kearns, Rho, Roth, Wang, Wang and Wu 2023).

The matrix of AdaSSP, noise and ridge, is released once; then in each of T rounds X' times the
residuals, cut to [-cut, cut], is released and solved for a step. T + 2 Gaussian releases of
sensitivity 1 (X'X, its least eigenvalue, T gradients) compose exactly: sigma = sqrt(T + 2) / mu.
In its favour: rounds, scale of rows and cut are the best with hindsight.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.peers._rows import CUTS, SCALES, Rows, gdp, solve, symmetric
from benchmarks.peers.adassp import ridge

ROUNDS = (1, 3, 10)


def settings(eps: float, delta: float) -> list[tuple[float, float, int]]:
    return [(s, c, t) for s in SCALES for c in CUTS for t in ROUNDS] if delta else []


def fit(
    rows: Rows,
    setting: tuple[float, float, int],
    eps: float,
    delta: float,
    repeats: int,
    rng: np.random.Generator,
) -> np.ndarray:
    scale, cut, rounds = setting
    ball, size = rows.ball(scale), rows.size
    sigma = math.sqrt(rounds + 2) / gdp(eps, delta)
    added = ridge(ball.least, sigma, size, delta, rng.standard_normal(repeats))
    gram = ball.gram + sigma * symmetric(size, repeats, rng)
    gram = gram + added[:, None, None] * np.eye(size)
    theta = np.zeros((repeats, size))
    for _ in range(rounds):
        noise = cut * sigma * rng.standard_normal((repeats, size))
        theta = theta + solve(gram, ball.gradient(theta, cut) + noise)
    return theta * ball.scale
