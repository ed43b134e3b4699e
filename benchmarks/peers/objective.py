"""Objective perturbation (Chaudhuri et al. 2011; Kifer, Smith and Thakurta 2012).

The minimiser of sum of losses + Delta |theta|^2 / 2 + b'theta is released, the loss Huber's with
slope at most `cut`: rows of norm at most 1 have gradients of norm at most cut and a Hessian of rank
one with an eigenvalue of at most 1.

The determinants of the Jacobians with and without a row differ by at most 1 + 1 / Delta, whose log
costs share * eps; the rest pays for b.

delta = 0: b has density proportional to exp(-(1 - share) eps |b| / cut).
delta > 0: b is Gaussian, at twice the Gaussian curve (Redberg, Koskela and Wang 2023, theorem 1),
for the range in which their first case holds.
In its favour: scale of rows, cut and share are the best with hindsight, the minimum is exact.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.peers._rows import SCALES, Rows, gdp

CUTS, SHARES, ITERATIONS = (0.15, 0.5), (0.1, 0.4), 40


def settings(eps: float, delta: float) -> list[tuple[float, float, float]]:
    return [(s, c, k) for s in SCALES for c in CUTS for k in SHARES]


def perturbation(
    size: int,
    setting: tuple[float, float, float],
    eps: float,
    delta: float,
    repeats: int,
    rng: np.random.Generator,
) -> tuple[float, np.ndarray]:
    """Delta, and b for each repeat."""
    _, cut, share = setting
    left, penalty = (1 - share) * eps, 1 / math.expm1(min(share * eps, 700.0))
    b = rng.standard_normal((repeats, size))
    if not delta:
        lengths = rng.gamma(size, cut / left, (repeats, 1))
        return penalty, b * lengths / np.linalg.norm(b, axis=1, keepdims=True)
    mu = min(gdp(left, delta / 2), math.sqrt(2 * left))
    return penalty, b * cut / mu


def fit(
    rows: Rows,
    setting: tuple[float, float, float],
    eps: float,
    delta: float,
    repeats: int,
    rng: np.random.Generator,
) -> np.ndarray:
    scale, cut, _ = setting
    ball, size = rows.ball(scale), rows.size
    penalty, b = perturbation(size, setting, eps, delta, repeats, rng)
    inverse = np.linalg.inv(ball.gram + penalty * np.eye(size))
    theta = (ball.x.T @ ball.y - b) @ inverse
    # The Hessian is nowhere above X'X + Delta: each step lowers the objective.
    for _ in range(ITERATIONS):
        step = (ball.gradient(theta, cut) - penalty * theta - b) @ inverse
        theta = theta + step
        if np.abs(step).max() < 1e-6 * max(np.abs(theta).max(), 1e-3):
            break
    return theta * ball.scale
