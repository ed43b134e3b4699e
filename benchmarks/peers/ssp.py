"""Sufficient-statistics perturbation (Vu and Slavkovic 2009), with Gaussian noise.

X'X + noise and X'y + noise, solved. Rows have norm at most 1 and |y| at most `cut`: with y / cut
the pair of releases is one Gaussian release of sensitivity sqrt(2) (symmetric matrix, its upper
triangle: |xx'|^2 at most 1; x'y: at most 1), so sigma = sqrt(2) / mu, mu exact at (eps, delta).
In its favour: the scale of rows and the cut of the response are the best with hindsight.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.peers._rows import CUTS, SCALES, Rows, gdp, solve, symmetric


def settings(eps: float, delta: float) -> list[tuple[float, float]]:
    return [(scale, cut) for scale in SCALES for cut in CUTS] if delta else []


def fit(
    rows: Rows,
    setting: tuple[float, float],
    eps: float,
    delta: float,
    repeats: int,
    rng: np.random.Generator,
) -> np.ndarray:
    scale, cut = setting
    ball, size = rows.ball(scale), rows.size
    sigma = math.sqrt(2) / gdp(eps, delta)
    gram = ball.gram + sigma * symmetric(size, repeats, rng)
    cross = ball.cross(cut) + cut * sigma * rng.standard_normal((repeats, size))
    return solve(gram, cross) * ball.scale
