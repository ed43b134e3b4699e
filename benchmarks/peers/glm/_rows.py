"""What the peers share: rows in the box, their loss, and fewer rows that stand for all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

MOST = math.log(1e3)
"""Predictors of counts are kept below this."""


@dataclass(frozen=True)
class GLMRows:
    """Rows (1, x) in the box, and responses from 0 to `cap`.

    `size` is the number of rows that noise is for: more than there are where a part of the rows
    stands for all, which is how settings are tried.
    """

    x: np.ndarray
    y: np.ndarray
    family: str
    cap: float
    size: int

    @property
    def columns(self) -> int:
        return self.x.shape[1]

    def part(self, most: int, rng: np.random.Generator) -> GLMRows:
        """Fewer rows, drawn at random, with the noise of all of them."""
        if len(self.x) <= most:
            return self
        at = rng.choice(len(self.x), most, replace=False)
        return GLMRows(self.x[at], self.y[at], self.family, self.cap, self.size)


def mean(eta: np.ndarray, family: str) -> np.ndarray:
    if family == "binomial":
        return 1 / (1 + np.exp(-np.clip(eta, -30, 30)))
    return np.exp(np.clip(eta, -30, MOST))


def potential(eta: np.ndarray, family: str) -> np.ndarray:
    """b(eta), whose derivative is the mean."""
    if family == "binomial":
        return np.logaddexp(0, eta)
    return np.exp(np.clip(eta, -30, MOST)) * np.where(eta > MOST, 1 + eta - MOST, 1)


def loss(eta: np.ndarray, y: np.ndarray, family: str) -> np.ndarray:
    """Half the deviance of rows, but for what y alone makes of it."""
    return potential(eta, family) - y * eta
