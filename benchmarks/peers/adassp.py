"""Adaptive sufficient-statistics perturbation (Wang 2018): published and exact constants.

The least eigenvalue of X'X is released too, as a lower bound that holds with probability, and
X'X + noise + lambda I is solved, lambda = max(0, sigma sqrt(d log(2 d^2 / rho)) - lower bound),
rho = .05. Rows have norm at most 1, |y| at most `cut` (its release scales with it).

Published: sigma = sqrt(log(6 / delta)) / (eps / 3) for each of three releases, off-diagonal noise
of variance 1/2, X'X + I in X'X's place. Its claim is the paper's; the exact price is another.
Analytic: three releases of sensitivity 1 compose exactly as one Gaussian of sqrt(3) / sigma.
In its favour: the scale of rows and the cut of the response are the best with hindsight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchmarks.peers._rows import CUTS, SCALES, Rows, gdp, solve, symmetric

RHO = 0.05


def ridge(least: float, sigma: float, size: int, delta: float, draw: np.ndarray) -> np.ndarray:
    """AdaSSP's lambda for each draw of the noise in the least eigenvalue."""
    bound = np.maximum(0.0, least + sigma * draw - sigma * math.sqrt(math.log(6 / delta)))
    return np.maximum(0.0, sigma * math.sqrt(size * math.log(2 * size**2 / RHO)) - bound)


@dataclass(frozen=True)
class AdaSSP:
    """One choice of constants."""

    published: bool

    def settings(self, eps: float, delta: float) -> list[tuple[float, float]]:
        return [(scale, cut) for scale in SCALES for cut in CUTS] if delta else []

    def fit(
        self,
        rows: Rows,
        setting: tuple[float, float],
        eps: float,
        delta: float,
        repeats: int,
        rng: np.random.Generator,
    ) -> np.ndarray:
        scale, cut = setting
        ball, size = rows.ball(scale), rows.size
        unit = np.eye(size)
        if self.published:
            sigma, off = math.sqrt(math.log(6 / delta)) * 3 / eps, math.sqrt(0.5)
        else:
            sigma, off = math.sqrt(3) / gdp(eps, delta), 1.0
        more = 1.0 if self.published else 0.0
        added = ridge(ball.least + more, sigma, size, delta, rng.standard_normal(repeats)) + more
        gram = ball.gram + sigma * symmetric(size, repeats, rng, off)
        gram = gram + added[:, None, None] * unit
        cross = ball.cross(cut) + cut * sigma * rng.standard_normal((repeats, size))
        return solve(gram, cross) * ball.scale


PUBLISHED, ANALYTIC = AdaSSP(True), AdaSSP(False)
