"""Iterative Hessian mixing (Lev, Shenfeld, Srinivasan, Ligett and Wilson 2026, arXiv 2601.07545).

In each of T rounds a fresh Gaussian sketch of k rows, S X + s N, gives a Hessian, and X' times the
residuals, cut to [-cut, cut], is released; the step solves one for the other. S X is random enough
to be private where X'X has a large least eigenvalue, which is released once; s^2 fills it up to
gamma. Privacy as in the paper: half of eps and 3/4 of delta for the T sketches and the eigenvalue
(Renyi orders of the sketch, T times, turned into (eps, delta), a third of that delta each for the
conversion, the eigenvalue and its bound), half of eps and 1/4 of delta for the T gradients, which
compose exactly. k = 6 max(d, log(4 T / rho)), rho = delta / 10, as published.

A sketch of X'X is drawn as k normal rows of that covariance, whose law is the same.
In its favour: rounds, scale of rows and cut are the best with hindsight.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from benchmarks.peers._rows import CUTS, SCALES, Rows, gdp, solve

ROUNDS = (2, 3, 5)


def settings(eps: float, delta: float) -> list[tuple[float, float, int]]:
    return [(s, c, t) for s in SCALES for c in CUTS for t in ROUNDS] if delta else []


def sketched_rows(size: int, rounds: int, delta: float) -> int:
    return int(6 * max(size, math.log(4 * rounds / (delta / 10))))


def sketch_eps(gamma: float, k: int, rounds: int, delta: float) -> float:
    """eps at delta of `rounds` sketches whose least eigenvalue is gamma, and of that eigenvalue."""
    third = delta / 3

    def at(order: float) -> float:
        a = order
        renyi = k / 2 / (a - 1) * (a * math.log1p(-1 / gamma) - math.log1p(-a / gamma))
        turned = (math.log(1 / third) + (a - 1) * math.log1p(-1 / a) - math.log(a)) / (a - 1)
        return rounds * renyi + turned

    # Orders run from 1 to gamma; in logs of order - 1, where the bound has one minimum.
    high = math.log((gamma - 1) * (1 - 1e-9))
    low = min(math.log(1e-4), high - 10)
    best = minimize_scalar(lambda t: at(1 + math.exp(t)), bounds=(low, high), method="bounded")
    return float(best.fun) + math.sqrt(2 * math.log(1.25 / third)) * math.sqrt(k) / gamma


@lru_cache(None)
def least_gamma(eps: float, delta: float, k: int, rounds: int) -> float:
    """The smallest gamma whose sketches cost at most eps."""

    def over(log: float) -> float:
        return sketch_eps(math.exp(log), k, rounds, delta) - eps

    return math.exp(brentq(over, 1e-6, math.log(1e12), xtol=1e-10)) * (1 + 1e-9)


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
    k = sketched_rows(size, rounds, delta)
    gamma = least_gamma(eps / 2, 3 * delta / 4, k, rounds)
    tau = math.sqrt(2 * math.log(max(4 / delta, 4 / (delta / 10))))
    below = gamma / math.sqrt(k) * (tau - rng.standard_normal(repeats))
    filled = np.maximum(0.0, gamma - np.maximum(0.0, ball.least - below))
    sigma = cut * math.sqrt(rounds) / gdp(eps / 2, delta / 4)
    theta, root = np.zeros((repeats, size)), np.linalg.cholesky(ball.gram + 1e-12 * np.eye(size))
    for _ in range(rounds):
        sketch = rng.standard_normal((repeats, k, size)) @ root.T
        sketch += np.sqrt(filled)[:, None, None] * rng.standard_normal((repeats, k, size))
        hessian = sketch.transpose(0, 2, 1) @ sketch / k
        noise = sigma * rng.standard_normal((repeats, size))
        theta = theta + solve(hessian, ball.gradient(theta, cut) + noise)
    return theta * ball.scale
