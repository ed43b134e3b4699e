"""BinAgg (Lin, Slavkovic and Bhoomireddy 2025, arXiv 2510.16974): least squares on noisy bins.

A private tree halves the box of the columns along its widest side while noisy, biased counts stay
above theta (PrivTree, Zhang, Xiao and Xie 2016); its leaves are bins. Counts c, sums s of columns
and t of the response are released for each; bins with fewer than two rows go. Sums regressed with
weights 1 / c, less what the noise in s adds to s'Ws, give coefficients; the sandwich over bins
their errors. mu^2 is shared out as in the paper, (1, 3, 3, 3) for tree, c, s and t.

Published: noise of sd bound_j / mu_s in column j's sum. That pays for one column: one row moves d
sums at once, by sqrt(d) in these units. Its claim is the paper's. Exact: sqrt(d) times that noise.
Intercept, which the paper leaves out: a column of ones, whose sum is c.
The paper divides s'Ws by K in M, and not in the estimator; what noise adds to s'Ws is the sum of
w_k D_k, and that is taken off in both.
In its favour: theta and the shares are the best with hindsight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from benchmarks.peers._rows import Rows, gdp

THETAS, SHARES = (0.0, 20.0), ((1, 3, 3, 3), (2, 3, 3, 3), (1, 2, 4, 4))
Setting = tuple[float, tuple[int, int, int, int]]


def leaves(
    x: np.ndarray, eps: float, theta: float, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Bins as (rows inside, farthest corner in each column) of columns in [-1, 1]."""
    rate, size = 3 / eps, x.shape[1]
    step = rate * math.log(2)
    found, open_ = [], [(np.arange(len(x)), -np.ones(size), np.ones(size), 0)]
    while open_:
        rows, lower, upper, depth = open_.pop()
        score = max(len(rows) - step * depth, theta - step) + rng.laplace(0, rate)
        if score <= theta or depth > 24 * size:
            found.append((rows, np.maximum(np.abs(lower), np.abs(upper))))
            continue
        side = int(np.argmax(upper - lower))
        middle = (lower[side] + upper[side]) / 2
        right = x[rows, side] >= middle
        for part, bound, edge in ((~right, upper, 1), (right, lower, 0)):
            moved = bound.copy()
            moved[side] = middle
            corners = (lower, moved) if edge else (moved, upper)
            open_.append((rows[part], *corners, depth + 1))
    return found


@dataclass(frozen=True)
class BinAgg:
    """One price of the sums of columns."""

    published: bool

    def settings(self, eps: float, delta: float) -> list[Setting]:
        return [(theta, shares) for theta in THETAS for shares in SHARES] if delta else []

    def released(
        self,
        rows: Rows,
        setting: Setting,
        eps: float,
        delta: float,
        repeats: int,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        found = [self._once(rows, setting, eps, delta, rng) for _ in range(repeats)]
        return np.array([f[0] for f in found]), np.array([f[1] for f in found])

    def _once(
        self, rows: Rows, setting: Setting, eps: float, delta: float, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        theta, shares = setting
        parts = gdp(eps, delta) * np.array(shares) / math.sqrt(sum(s * s for s in shares))
        mu_tree, mu_count, mu_x, mu_y = parts
        x, y, size = rows.x[:, 1:], rows.y, rows.size
        pure = float(norm.logcdf(mu_tree / 2) - norm.logcdf(-mu_tree / 2))
        bins = leaves(x, pure, theta, rng)
        count = np.rint([len(r) for r, _ in bins] + rng.standard_normal(len(bins)) / mu_count)
        kept = [place for place in range(len(bins)) if count[place] >= 2]
        nothing = np.full(size, np.nan)
        if len(kept) <= size:
            return nothing, nothing
        wide = 1.0 if self.published else math.sqrt(size - 1)
        sd = wide * np.array([bins[k][1] for k in kept]) / mu_x
        s = np.array([x[bins[k][0]].sum(axis=0) for k in kept]) + sd * rng.standard_normal(sd.shape)
        t = np.array([y[bins[k][0]].sum() for k in kept]) + rng.standard_normal(len(kept)) / mu_y
        s, w = np.column_stack([count[kept], s]), 1 / count[kept]
        noise = np.column_stack([np.zeros(len(kept)), sd**2])
        moments = (s * w[:, None]).T @ s - np.diag(w @ noise)
        beta = np.linalg.solve(moments, (s * w[:, None]).T @ t)
        scores = w[:, None] * (s * (t - s @ beta)[:, None] + noise * beta)
        inverse = np.linalg.inv(moments)
        spread = scores.T @ scores * len(kept) / (len(kept) - size)
        return beta, np.sqrt(np.diag(inverse @ spread @ inverse))

    def fit(
        self,
        rows: Rows,
        setting: Setting,
        eps: float,
        delta: float,
        repeats: int,
        rng: np.random.Generator,
    ) -> np.ndarray:
        return self.released(rows, setting, eps, delta, repeats, rng)[0]


PUBLISHED, EXACT = BinAgg(True), BinAgg(False)
