"""What looks at moments cost a person, from the scales of their noise alone.

A row of the box is (1, x, y) with all cells in [-1, 1]. A located unit is (a, f) with |a| <= 1 and
|f| <= 1 in stored units. `oracles.recorded_fits` adds them up, with fitting looks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from oracles.recorded_steps import Asked, Cost
from oracles.recording import UNIT, Draw, moment_changes


def wishart(draw: Draw, asked: Asked, columns: int, step: str, *, located: bool = False) -> Cost:
    """Adding zz' to a Wishart of D + 1 degrees costs z'C^-1 z/2; a replaced row moves both."""
    assert draw.mechanism == "matrix-laplace"
    assert len(draw.widths) == columns + 2
    inverse = 1 / (np.array(draw.widths) * UNIT)
    norm = inverse[:-1].max() + inverse[-1] if located else inverse.sum()
    return Cost(step, (draw,), (asked.k * asked.rows * norm / 2,))


def _pools(draws: Iterator[Draw], size: int) -> list[Draw]:
    """Take the draws of one Gaussian look: they fill the upper triangle."""
    pools: list[Draw] = []
    while sum(pool.size for pool in pools) < size * (size + 1) // 2:
        pools.append(next(draws))
        assert pools[-1].mechanism == "gaussian"
    assert sum(pool.size for pool in pools) == size * (size + 1) // 2
    return pools


def _box(pools: list[Draw], asked: Asked, columns: int) -> float:
    """The more often the response is in a cell the smaller the noise."""
    changes, touches = moment_changes(columns, asked.rows)
    ordered = sorted(pools, key=lambda pool: pool.scale, reverse=True)
    if len(ordered) == 1:
        ordered *= 3
    scales = np.array([ordered[i].scale for i in touches]) * UNIT
    return float(((changes / scales) ** 2).sum(axis=1).max())


def _located(pools: list[Draw], asked: Asked, columns: int) -> float:
    """Cells off the diagonal have 1/sqrt(2) of the noise of those on it; two directions suffice."""
    size = columns + 1
    if not columns:
        return _constant(pools, asked)
    off = next(p for p in pools if p.size >= size * (size - 1) // 2 and p.scale == pools[0].scale)
    diagonal = off.scale * math.sqrt(2)
    rest = [p.scale for p in pools if p is not off and abs(p.scale / diagonal - 1) > 1e-9]
    last = max(rest, default=diagonal)
    mixed = min(rest, default=off.scale)
    scale = np.full((size + 1, size + 1), off.scale)
    np.fill_diagonal(scale, diagonal)
    scale[:-1, -1] = scale[-1, :-1] = mixed
    scale[-1, -1] = last
    upper = np.triu_indices(size + 1)
    turns = np.linspace(0, math.pi, 721)

    def rows(sign: float) -> np.ndarray:
        z = np.zeros((len(turns), size + 1))
        z[:, 0], z[:, 1], z[:, -1] = np.cos(turns), np.sin(turns), sign
        products = z[:, upper[0]] * z[:, upper[1]]
        return products / (scale[upper] * UNIT)

    first, second = rows(1.0), rows(-1.0)
    if asked.rows == 1:
        return float((first**2).sum(axis=1).max())
    return float(max(((one - second) ** 2).sum(axis=1).max() for one in first[::8]))


def _constant(pools: list[Draw], asked: Asked) -> float:
    """A weight a and a residual f: cells s, s/sqrt(2 g) and s/g, the middle one that of a f."""
    scales = [pool.scale for pool in pools for _ in range(pool.size)]
    wrong = [abs(math.prod(scales) / scale**3 - 2) for scale in scales]
    mixed = scales.pop(int(np.argmin(wrong)))
    scale = np.array([min(scales), mixed, max(scales)]) * UNIT
    a, f = np.meshgrid(np.linspace(0, 1, 33), np.linspace(-1, 1, 65))
    rows = np.column_stack([(a * a).ravel(), (a * f).ravel(), (f * f).ravel()]) / scale
    if asked.rows == 1:
        return float((rows**2).sum(axis=1).max())
    return float(max(((one - rows) ** 2).sum(axis=1).max() for one in rows))
