"""DPrivStats 0.1.0 (CRAN, 2026): `dp_lm`, as its files have it. **Not private here.**

Least squares plus Gaussian noise of sensitivity max |x| (width of y) / least eigenvalue of X'X. All
three are exact functions of the rows; the package calls the columns public, and its cut at the
observed range cuts nothing. Intervals add that noise to sigma^2 (X'X)^-1, with the exact X'X.
It is measured as what its own claim allows: other tables must have the same columns. Its results
also keep the rows (`model`, and residuals of the exact response).
"""

from __future__ import annotations

import numpy as np

from benchmarks.peers._rows import Rows, gdp


def settings(eps: float, delta: float) -> list[None]:
    return [None] if delta else []


def released(
    rows: Rows, setting: None, eps: float, delta: float, repeats: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    x, y = rows.x, np.clip(rows.y, -1, 1)
    gram = x.T @ x
    longest = float(np.sqrt(np.einsum("ij,ij->i", x, x).max()))
    sd = longest * 2 / float(np.linalg.eigvalsh(gram)[0]) / gdp(eps, delta)
    inverse = np.linalg.inv(gram)
    beta = inverse @ x.T @ y + sd * rng.standard_normal((repeats, rows.size))
    variance = np.square(y - beta @ x.T).sum(axis=1) / (len(y) - rows.size)
    return beta, np.sqrt(variance[:, None] * np.diag(inverse) + sd**2)


def fit(
    rows: Rows, setting: None, eps: float, delta: float, repeats: int, rng: np.random.Generator
) -> np.ndarray:
    return released(rows, setting, eps, delta, repeats, rng)[0]
