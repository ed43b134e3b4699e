"""What the peers share: rows in a ball, and Gaussian accounting."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

SCALES = (1.0, 1.6, 2.6)
CUTS = (1.0, 0.3)


@lru_cache(None)
def gdp(eps: float, delta: float) -> float:
    """The largest mu at which N(mu, 1) against N(0, 1) is (eps, delta) close (Balle, Wang 2018)."""

    def over(mu: float) -> float:
        second = math.exp(eps + norm.logcdf(-eps / mu - mu / 2))
        return float(norm.cdf(mu / 2 - eps / mu) - second - delta)

    return float(brentq(over, 1e-9, 2 * math.sqrt(eps) + eps + 60))


@dataclass(frozen=True)
class Ball:
    """Rows of norm at most 1: `scale` times the rows in the box, longer ones shortened.

    A row that is too long is multiplied, response and all, by what makes it fit: a weight, which
    leaves the model true.
    """

    x: np.ndarray
    y: np.ndarray
    scale: float
    gram: np.ndarray
    least: float

    def cross(self, cut: float) -> np.ndarray:
        return self.x.T @ np.clip(self.y, -cut, cut)

    def gradient(self, theta: np.ndarray, cut: float) -> np.ndarray:
        """X' times residuals cut to [-cut, cut], for each row of theta."""
        return (self.x.T @ np.clip(self.y[:, None] - self.x @ theta.T, -cut, cut)).T


@dataclass(frozen=True)
class Rows:
    """Rows (1, x) in the box, and the response in [-1, 1]."""

    x: np.ndarray
    y: np.ndarray
    _balls: dict[float, Ball] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int:
        return self.x.shape[1]

    def ball(self, scale: float) -> Ball:
        """Rows times scale / sqrt(d), whose norm is at most `scale` before any is shortened."""
        if scale not in self._balls:
            by = scale / math.sqrt(self.size)
            norms = by * np.sqrt(np.einsum("ij,ij->i", self.x, self.x))
            weight = np.minimum(1.0, 1.0 / np.maximum(norms, 1e-12))
            x = self.x * (by * weight)[:, None]
            gram = x.T @ x
            least = float(np.linalg.eigvalsh(gram)[0])
            self._balls[scale] = Ball(x, self.y * weight, by, gram, least)
        return self._balls[scale]


def symmetric(size: int, repeats: int, rng: np.random.Generator, off: float = 1.0) -> np.ndarray:
    """Standard normal symmetric matrices, `off` the standard deviation off the diagonal."""
    drawn = rng.standard_normal((repeats, size, size))
    upper = np.triu(drawn, 1) * off
    index = np.arange(size)
    out = upper + upper.transpose(0, 2, 1)
    out[:, index, index] = drawn[:, index, index]
    return out


def solve(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Solve one system for each repeat."""
    return np.linalg.solve(matrices, vectors[..., None])[..., 0]
