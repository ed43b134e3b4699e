"""PrivacyUnbiased (Evans and King 2023): noise in every cell, its bias taken off afterwards.

A row's cells, response and all, are in [-1, 1], so another row in its place moves them by at most
2 sqrt(p + 1): each cell gets Gaussian noise of that sd over mu. Noise of variance s^2 in columns Z
adds n s^2 to the diagonal of Z'Z, which is taken off. Errors are the sandwich of the corrected
equations; the package simulates them instead, which agrees where both are small.
There is nothing to tune. The noisy table serves any number of analyses, which no other peer's
answer does.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.peers._rows import Rows, gdp


def settings(eps: float, delta: float) -> list[None]:
    return [None] if delta else []


def released(
    rows: Rows, setting: None, eps: float, delta: float, repeats: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    sd = 2 * math.sqrt(rows.size) / gdp(eps, delta)
    found = []
    for _ in range(repeats):
        z = rows.x + sd * rng.standard_normal(rows.x.shape)
        z[:, 0] = 1.0
        y = rows.y + sd * rng.standard_normal(len(rows.y))
        added = np.diag([0.0, *[sd**2] * (rows.size - 1)])
        inverse = np.linalg.inv(z.T @ z - len(y) * added)
        beta = inverse @ z.T @ y
        scores = z * (y - z @ beta)[:, None] + added @ beta
        errors = np.sqrt(np.diag(inverse @ (scores.T @ scores) @ inverse))
        found.append((beta, errors))
    return np.array([f[0] for f in found]), np.array([f[1] for f in found])


def fit(
    rows: Rows, setting: None, eps: float, delta: float, repeats: int, rng: np.random.Generator
) -> np.ndarray:
    return released(rows, setting, eps, delta, repeats, rng)[0]
