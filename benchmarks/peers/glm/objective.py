"""Objective perturbation (Chaudhuri et al. 2011; Kifer, Smith and Thakurta 2012).

The minimiser of sum of losses + Delta |theta|^2 / 2 + b'theta is released. Rows have norm at most 1
and |y - mu| is at most `slope`: 1 for yes/no; for counts mu stays at a public largest mean, beyond
which the loss is a straight line, and the slope is the larger of that and the cap. The loss bends
by at most `bend` along a row: 1/4, or the largest mean.

A replaced row moves the gradient by at most 2 slope. The determinants of the two Jacobians differ
by at most 1 + bend / Delta: each is the common part's, times between 1 and that. Its log costs
share * eps; the rest pays for b, as for a linear model (`benchmarks.peers.objective`).
In its favour: scale of rows, share and largest mean are the best with hindsight, and the minimum
is exact.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import minimize

from benchmarks.peers.glm._rows import GLMRows, mean, potential
from benchmarks.peers.objective import perturbation

SCALES, SHARES, MEANS = (1.0, 1.6, 2.6), (0.1, 0.4), (0.3, 1.0)


def settings(family: str, eps: float, delta: float) -> list[tuple[float, ...]]:
    means = MEANS if family == "poisson" else (1.0,)
    return [(s, k, m) for s in SCALES for k in SHARES for m in means]


def fit(
    rows: GLMRows,
    setting: tuple[float, ...],
    eps: float,
    delta: float,
    repeats: int,
    rng: np.random.Generator,
) -> np.ndarray:
    scale, share, part = setting
    counts = rows.family == "poisson"
    top = part * rows.cap if counts else 1.0
    slope, bend = (max(top, rows.cap), top) if counts else (1.0, 0.25)
    by = scale / math.sqrt(rows.columns)
    norms = by * np.sqrt(np.einsum("ij,ij->i", rows.x, rows.x))
    x = rows.x * (by * np.minimum(1.0, 1.0 / norms))[:, None]
    unit, b = perturbation(rows.columns, (1.0, 2 * slope, share), eps, delta, repeats, rng)
    # There a row bends the loss by at most 1: `unit` is Delta for that.
    args = (x, rows.y, rows.family, math.log(top) if counts else math.inf)
    found, start = [], np.zeros(rows.columns)
    for noise in b:
        scaled = (noise / rows.size, unit * bend / rows.size)
        start = minimize(objective, start, (*args, *scaled), jac=True, method="L-BFGS-B").x
        found.append(start * by)
    return np.array(found)


def objective(
    theta: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    family: str,
    last: float,
    noise: np.ndarray,
    penalty: float,
) -> tuple[float, Any]:
    """The perturbed objective over n, and its gradient; beyond `last` the loss is straight."""
    eta = x @ theta
    held = np.minimum(eta, last)
    mu = mean(held, family)
    value = (potential(held, family) + mu * (eta - held) - y * eta).mean()
    value += noise @ theta + penalty / 2 * theta @ theta
    return float(value), x.T @ (mu - y) / len(x) + noise + penalty * theta
