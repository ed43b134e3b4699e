"""Losses of a yes/no and of counts, of bounded slope and bend: what a perturbed objective may sum.

yes/no:  l = log(1 + exp(eta)) - y eta,         |l'| <= 1,    0 <= l'' <= 1/4,
counts:  l' = exp(min(eta, a)) - min(y, top),   |l'| <= top,  0 <= l'' <= top, a = log(top).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpreg.arrays import Floats


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss of the predictor; see the module.

    Parameters
    ----------
    counts : bool
    top : float
        Of counts: what responses and means are cut at; else 1.
    """

    counts: bool
    top: float = 1.0

    @property
    def slope(self) -> float:
        """Bound on |l'|."""
        return self.top

    @property
    def bend(self) -> float:
        """Bound on l''."""
        return self.top if self.counts else 0.25

    @property
    def last(self) -> float:
        """A: where the mean of counts stays."""
        return float(np.log(self.top))

    def derivatives(self, eta: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return l' and l''."""
        if self.counts:
            mean = np.exp(np.minimum(eta, self.last))
            return mean - y, np.where(eta < self.last, mean, 0.0)
        mean = 1 / (1 + np.exp(-np.clip(eta, -700, 700)))
        return mean - y, mean * (1 - mean)


def omega(x: Floats, reach_squared: float) -> Floats:
    """Return weights of rows x, (n,), with which none pulls farther than R."""
    return np.minimum(1.0, reach_squared / np.square(x).sum(axis=1))


@dataclass(frozen=True, slots=True)
class Summed:
    """The weighted losses of rows (1, x) with offsets, and the penalty: J without b."""

    x: Floats
    y: Floats
    known: Floats
    weights: Floats
    loss: Loss
    penalty: float

    def gradient(self, t: Floats) -> Floats:
        """Return the gradient, (d,)."""
        first, _ = self.loss.derivatives(self.x @ t + self.known, self.y)
        return self.x.T @ (self.weights * first) + self.penalty * t

    def curvature(self, t: Floats) -> Floats:
        """Return the second derivatives, (d, d)."""
        _, second = self.loss.derivatives(self.x @ t + self.known, self.y)
        return self.x.T @ (self.x * (self.weights * second)[:, None]) + self.penalty * np.eye(
            len(t)
        )
