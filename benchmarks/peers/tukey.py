"""TukeyEM (Amin, Joseph, Ribero and Vassilvitskii 2022, arXiv 2208.07353).

Rows are dealt out at random to m groups, each is fitted by least squares, and a point that is deep
among the m fits is drawn. Depth is approximate Tukey depth, the least over coordinates, so all
points of depth i or more fill a box. Half of eps tests that the boxes of the data are far from
unsafe ones (propose, test, release); if they are not, there is no answer, here a row of NaN. The
other half draws a depth from m / 4 on, in proportion to its shell's volume times e^(eps depth / 2),
and then a point of the shell. One row touches one fit.

No bounds are needed: the law of the answer moves with any linear change of columns.
Published: the authors' program draws the test's noise at scale eps / 2, not 2 / eps, and weighs the
faces of a shell by the wrong box; both are as in the paper here.
In its favour: m is the best with hindsight, and errors are taken over the answers alone.
It gives no errors.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.peers._rows import Rows

MODELS = (400, 700, 1000, 1250, 1500, 1750, 2000)


def settings(eps: float, delta: float) -> list[int]:
    return list(MODELS) if delta else []


def fit(
    rows: Rows, setting: int, eps: float, delta: float, repeats: int, rng: np.random.Generator
) -> np.ndarray:
    if setting * rows.size > len(rows.y):
        return np.full((repeats, rows.size), np.nan)
    fits = (models(rows, setting, rng) for _ in range(repeats))
    return np.array([deep(each, eps, delta, rng) for each in fits])


def models(rows: Rows, m: int, rng: np.random.Generator) -> np.ndarray:
    """Least squares of m random groups of rows."""
    each = len(rows.y) // m
    taken = rng.permutation(len(rows.y))[: m * each].reshape(m, each)
    q, r = np.linalg.qr(rows.x[taken])
    cross = np.einsum("mij,mi->mj", q, rows.y[taken])
    return np.linalg.solve(r + 1e-12 * np.eye(rows.size), cross[..., None])[..., 0]


def deep(fits: np.ndarray, eps: float, delta: float, rng: np.random.Generator) -> np.ndarray:
    """Draw a deep point among the fits, or NaN where the test fails."""
    ordered = np.sort(fits, axis=0)
    half, depths = eps / 2, (len(fits) + 1) // 2
    lower, upper = ordered[:depths], ordered[::-1][:depths]
    with np.errstate(divide="ignore"):
        volumes = np.log(np.maximum(upper - lower, 0)).sum(axis=1)
    least = len(fits) // 4
    far = distance(volumes, half, delta, least)
    if far + rng.laplace(0, 1 / half) <= math.log(1 / (2 * delta)) / half:
        return np.full(fits.shape[1], np.nan)
    inside, outside = volumes[least:], volumes[least - 1 : -1]
    with np.errstate(divide="ignore"):
        shells = outside + np.log(-np.expm1(np.minimum(inside - outside, 0)))
    weights = shells + half * np.arange(len(shells))
    place = least - 1 + int(np.argmax(weights + rng.gumbel(size=len(weights))))
    return in_shell(lower[place : place + 2], upper[place : place + 2], rng)


def distance(volumes: np.ndarray, eps: float, delta: float, t: int) -> int:
    """Lower bound on the rows to be changed before the draw from depth t on is unsafe; 0 at least.

    `volumes[i]` is the log volume of depth i + 1 or more. k rows are safe if for some g > 0 the
    volume at depth t - k - 1 is at most delta e^(g eps / 2 - eps) / 8 times that at t + k + g + 1.
    """
    threshold = math.log(delta / 8) - eps

    def safe(k: int) -> bool:
        inner = volumes[t + k + 1 : -1]
        gained = volumes[t - k - 2] - inner - eps / 2 * np.arange(1, len(inner) + 1)
        return bool(len(inner)) and bool(np.min(gained) <= threshold)

    low, high = -1, t - 2
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if safe(middle) else (low, middle - 1)
    return max(low, 0)


def in_shell(lower: np.ndarray, upper: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A uniform point of the box lower[0], upper[0] outside the box lower[1], upper[1].

    The shell is cut into parts: in part j coordinate j lies in the shell, those before it in the
    inner box, those after it anywhere.
    """
    width = upper - lower
    shell = width[0] - width[1]
    with np.errstate(divide="ignore"):
        logs, hollow = np.log(width), np.log(shell)
    inner = np.concatenate([[0.0], np.cumsum(logs[1])[:-1]])
    outer = np.concatenate([np.cumsum(logs[0][::-1])[::-1][1:], [0.0]])
    part = int(np.argmax(inner + hollow + outer + rng.gumbel(size=len(shell))))
    box = (np.arange(len(shell)) < part).astype(int)
    place = np.arange(len(shell))
    point = rng.uniform(lower[box, place], upper[box, place])
    at = rng.uniform(0, shell[part])
    left = lower[1, part] - lower[0, part]
    point[part] = lower[0, part] + at if at < left else upper[1, part] + at - left
    return np.asarray(point)
