"""Noisy Newton with a private sandwich (Avella-Medina, Bradshaw and Loh 2023, arXiv 2103.11003).

Huber's loss with Mallows' weights w = min(1, 1 / |x|^2): a row's gradient w psi(r) x has norm at
most c, its Hessian w x x' 1{|r| <= c} norm at most 1. Each of K steps releases both sums; at the
last point the Hessian and the sum of w^2 psi^2 x x' (norm at most c^2) are released once more.
2 K + 2 Gaussian releases compose exactly: each has sd (c, 1 or c^2) sqrt(2 K + 2) / mu. Errors are
those of M^-1 (Q + noise of the last gradient) M^-1, eigenvalues of M and Q raised to their noise.

Newton's step finds the minimum only from near it. In the first half of the steps the Hessian is
replaced by its bound, w x x' min(1, c / |r|), with which each step lowers the loss.

Of the paper itself only the abstract could be read here; releases, price, sandwich and its
correction are those of the authors' published program for a known scale, for add-remove neighbours.
There the scale of residuals may be estimated, too, in the same steps. In its favour that scale, the
scale of rows and K are the best with hindsight instead; and far steps, which the program lacks.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.peers._rows import Rows, gdp, solve, symmetric

SCALES, CUTS, STEPS = (1.0, 2.6, 4.0), (0.5, 0.15, 0.05, 0.02), (4, 8, 12)


def settings(eps: float, delta: float) -> list[tuple[float, float, int]]:
    return [(s, c, k) for s in SCALES for c in CUTS for k in STEPS] if delta else []


def raised(matrices: np.ndarray, least: float) -> np.ndarray:
    """Eigenvalues below `least` raised to it."""
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.maximum(values, least)[:, None, :]) @ vectors.transpose(0, 2, 1)


def released(
    rows: Rows,
    setting: tuple[float, float, int],
    eps: float,
    delta: float,
    repeats: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    scale, cut, steps = setting
    by, size = scale / math.sqrt(rows.size), rows.size
    x, y = rows.x * by, rows.y
    weight = np.minimum(1, 1 / np.maximum(np.einsum("ij,ij->i", x, x), 1e-12))
    sd = math.sqrt(2 * steps + 2) / gdp(eps, delta)
    floor = 2 * sd * math.sqrt(size)

    def hessian(theta: np.ndarray, far: bool) -> np.ndarray:
        beyond = np.abs(y[:, None] - x @ theta.T) / cut
        curved = np.minimum(1, 1 / np.maximum(beyond, 1e-12)) if far else beyond <= 1
        exact = np.array([(x * (each * weight)[:, None]).T @ x for each in curved.T])
        return raised(exact + sd * symmetric(size, repeats, rng), floor)

    theta = np.zeros((repeats, size))
    for step in range(steps):
        residual = np.clip(y[:, None] - x @ theta.T, -cut, cut) * weight[:, None]
        noise = cut * sd * rng.standard_normal((repeats, size))
        theta = theta + solve(hessian(theta, step < steps // 2), (x.T @ residual).T + noise)
    residual = np.clip(y[:, None] - x @ theta.T, -cut, cut) * weight[:, None]
    spread = np.array([(x * each[:, None] ** 2).T @ x for each in residual.T])
    spread = raised(spread + cut**2 * sd * symmetric(size, repeats, rng), 0.0)
    inverse = np.linalg.inv(hessian(theta, far=False))
    covariance = inverse @ (spread + (cut * sd) ** 2 * np.eye(size)) @ inverse
    return theta * by, np.sqrt(np.einsum("rii->ri", covariance)) * by


def fit(
    rows: Rows,
    setting: tuple[float, float, int],
    eps: float,
    delta: float,
    repeats: int,
    rng: np.random.Generator,
) -> np.ndarray:
    return released(rows, setting, eps, delta, repeats, rng)[0]
