"""The least noise that ISSP can add (Brown, Hayase, Hopkins, Kong, Liu, Oh, Perdomo, Smith 2024).

Insufficient-statistics perturbation (arXiv 2404.15409) removes rows of large leverage or residual
by a rule that one row hardly moves, and adds to least squares of the rest noise shaped like
(X'X)^-1. The paper could not be read here beyond its first page, so its constants are not known to
us and **this is a floor, not the method**: nobody could run it. Two tables that both pass the rule,
apart by a row of leverage L and residual r, have fits apart by r sqrt(L) in the norm of X'X; so no
noise N(0, s^2 (X'X)^-1) that is (eps, delta)-private there has s below r sqrt(L) / mu.

Charged nothing: the test that the rule is stable, the weights, and n large enough for the paper's
constants. L and r are the largest of the rows kept, as if they were known; the share of rows kept
is the best with hindsight. It gives no errors.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.peers._rows import Rows, gdp

KEPT = (1.0, 0.999, 0.99, 0.97)


def settings(eps: float, delta: float) -> list[float]:
    return list(KEPT) if delta else []


def fit(
    rows: Rows, setting: float, eps: float, delta: float, repeats: int, rng: np.random.Generator
) -> np.ndarray:
    x, y = rows.x, rows.y
    q, _ = np.linalg.qr(x)
    leverage = np.einsum("ij,ij->i", q, q)
    x, y = (each[leverage <= np.quantile(leverage, setting)] for each in (x, y))
    residual = np.abs(y - x @ np.linalg.lstsq(x, y, rcond=None)[0])
    x, y = (each[residual <= np.quantile(residual, setting)] for each in (x, y))
    q, r = np.linalg.qr(x)
    theta = np.linalg.solve(r, q.T @ y)
    least = np.abs(y - x @ theta).max() * math.sqrt(np.einsum("ij,ij->i", q, q).max())
    noise = rng.standard_normal((repeats, rows.size)) * least / gdp(eps, delta)
    return theta + np.linalg.solve(r, noise.T).T
