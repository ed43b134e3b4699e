r"""The functional mechanism (Zhang, Zhang, Xiao, Yang and Winslett 2012), Taylor order 2.

The loss b(eta) - y eta is replaced by its Taylor polynomial of order 2 at a public point a,

    b(a) + b'(a) (eta - a) + b''(a) (eta - a)^2 / 2 - y eta,    eta = x'theta,

a polynomial in theta: of theta_j it has (b'(a) - a b''(a) - y) x_j, of theta_j theta_k
b''(a) x_j x_k, of theta_j^2 b''(a) x_j^2 / 2. The coefficients, summed over rows, are released with
Laplace noise of scale Delta / eps, and what they make is minimised.

Sensitivity. A row's coefficients have an absolute sum of at most c |x|_1 + b''(a) |x|_1^2 / 2, c
the largest |b'(a) - a b''(a) - y| over y in [0, cap]; |x_j| <= 1, so |x|_1 <= d. A replaced row
moves the sum by at most twice that (theorem 1 of the paper; for yes/no at a = 0 it is d + d^2/4,
where the paper allows d^2/4 + 3 d):

    Delta = 2 (c d + b''(a) d^2 / 2).

With delta > 0 the noise is Gaussian, in its favour: a row's coefficients have a squared norm of at
most c^2 d + b''(a)^2 (d/4 + d (d - 1)/2), so a replaced one moves them by at most twice the root.

The released quadratic may have no minimum. As in the paper, lambda is added to its diagonal, a
multiple of the noise's standard deviation, and directions that are still not convex are left out.
In its favour: the multiple, and for counts the point a, are the best with hindsight.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.peers._rows import gdp
from benchmarks.peers.glm._rows import GLMRows

RIDGES, POINTS = (0.0, 1.0, 4.0), (-0.5, 0.0, 0.5, 1.0)


def settings(family: str, eps: float, delta: float) -> list[tuple[float, ...]]:
    points = POINTS if family == "poisson" else (0.0,)
    return [(ridge, point) for ridge in RIDGES for point in points]


def polynomial(family: str, a: float) -> tuple[float, float]:
    """b'(a) - a b''(a), and b''(a)."""
    if family == "binomial":
        first = 1 / (1 + math.exp(-a))
        second = first * (1 - first)
    else:
        first = second = math.exp(a)
    return first - a * second, second


def coefficients(x: np.ndarray, y: np.ndarray, family: str, a: float) -> np.ndarray:
    """A row's coefficients: of theta_j, then of theta_j theta_k, j <= k; one line a row."""
    linear, second = polynomial(family, a)
    upper = np.triu_indices(x.shape[1])
    products = second * x[:, upper[0]] * x[:, upper[1]]
    return np.column_stack(
        [(linear - y)[:, None] * x, np.where(upper[0] == upper[1], 0.5, 1.0) * products]
    )


def sensitivity(size: int, family: str, cap: float, a: float, delta: float) -> float:
    """What a replaced row may move: in L1 at delta = 0, else in L2."""
    linear, second = polynomial(family, a)
    c = max(abs(linear), abs(linear - cap))
    if not delta:
        return 2 * (c * size + second * size**2 / 2)
    return 2 * math.sqrt(c**2 * size + second**2 * (size / 4 + size * (size - 1) / 2))


def fit(
    rows: GLMRows,
    setting: tuple[float, ...],
    eps: float,
    delta: float,
    repeats: int,
    rng: np.random.Generator,
) -> np.ndarray:
    (ridge, a), d = setting, rows.columns
    upper = np.triu_indices(d)
    moved = sensitivity(d, rows.family, rows.cap, a, delta)
    linear, second = polynomial(rows.family, a)
    times = rows.size / len(rows.x)
    g = times * (linear * rows.x.sum(axis=0) - rows.x.T @ rows.y)
    q = times * second * (rows.x.T @ rows.x)
    found = []
    for _ in range(repeats):
        size = d + len(upper[0])
        if delta:
            noise, sd = moved / gdp(eps, delta) * rng.standard_normal(size), moved / gdp(eps, delta)
        else:
            noise, sd = rng.laplace(0, moved / eps, size), math.sqrt(2) * moved / eps
        h = np.zeros((d, d))
        h[upper] = noise[d:]
        values, vectors = np.linalg.eigh(q + h + h.T + ridge * sd * np.eye(d))
        kept = vectors[:, values > 1e-9 * rows.size]
        found.append(-kept @ ((kept.T @ (g + noise[:d])) / values[values > 1e-9 * rows.size]))
    return np.array(found)
