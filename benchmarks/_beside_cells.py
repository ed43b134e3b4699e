"""The cells of `benchmarks.beside`: data, budgets and bounds that other papers chose.

Bounds are literals that follow from what a column is; none is computed from rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from benchmarks._holds_tables import SOURCES
from benchmarks.peers._rows import Rows, gdp

LN3 = math.log(3)


@dataclass(frozen=True)
class Drawn:
    """Columns and response of a sample, and the slopes that generated it, where known."""

    x: np.ndarray
    y: np.ndarray
    slopes: np.ndarray | None = None


@dataclass(frozen=True)
class Cell:
    """Data at a budget, with the bounds that are declared: of columns, and last of the response."""

    name: str
    whose: str
    eps: float
    delta: float
    draw: Callable[[np.random.Generator], Drawn]
    bounds: tuple[tuple[float, float], ...]
    choice: bool = False


@dataclass(frozen=True)
class Sample:
    """One sample of a cell, in its own units and in the box [-1, 1] that peers see."""

    cell: Cell
    drawn: Drawn

    @property
    def names(self) -> list[str]:
        return [f"x{j}" for j in range(1, self.drawn.x.shape[1] + 1)]

    @property
    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(self.drawn.x, columns=self.names).assign(y=self.drawn.y)

    @property
    def schema(self) -> dict[str, tuple[float, float]]:
        return dict(zip([*self.names, "y"], self.cell.bounds, strict=True))

    @property
    def design(self) -> np.ndarray:
        return np.column_stack([np.ones(len(self.drawn.y)), self.drawn.x])

    def rows(self) -> Rows:
        middle, half = self._box()
        cells = np.clip((np.column_stack([self.drawn.x, self.drawn.y]) - middle) / half, -1, 1)
        return Rows(np.column_stack([np.ones(len(cells)), cells[:, :-1]]), cells[:, -1])

    def unboxed(self, found: np.ndarray) -> np.ndarray:
        """Coefficients of the box, in the columns' own units."""
        middle, half = self._box()
        slopes = found[:, 1:] * half[-1] / half[:-1]
        constant = middle[-1] + half[-1] * found[:, 0] - slopes @ middle[:-1]
        return np.column_stack([constant, slopes])

    def unboxed_errors(self, errors: np.ndarray) -> np.ndarray:
        """Errors of slopes, in the columns' own units."""
        half = self._box()[1]
        return np.asarray(errors[:, 1:] * half[-1] / half[:-1])

    def _box(self) -> tuple[np.ndarray, np.ndarray]:
        ends = np.array(self.cell.bounds, dtype=float)
        return ends.mean(axis=1), (ends[:, 1] - ends[:, 0]) / 2


def made(columns: int, useful: int = 10) -> Callable[[np.random.Generator], Drawn]:
    """scikit-learn's `make_regression(22000, columns, n_informative=useful, noise=10)`, its law."""

    def draw(rng: np.random.Generator) -> Drawn:
        x = rng.standard_normal((22_000, columns))
        slopes = np.where(np.arange(columns) < useful, 100 * rng.random(columns), 0.0)
        return Drawn(x, x @ slopes + 10 * rng.standard_normal(len(x)), slopes)

    return draw


def isotropic(columns: int) -> Callable[[np.random.Generator], Drawn]:
    """2,000 rows a column, standard normal; slopes of length 1, residuals of sd 1."""

    def draw(rng: np.random.Generator) -> Drawn:
        x = rng.standard_normal((2_000 * columns, columns))
        slopes = rng.standard_normal(columns)
        slopes /= np.linalg.norm(slopes)
        return Drawn(x, x @ slopes + rng.standard_normal(len(x)), slopes)

    return draw


def uniform(n: int, columns: int) -> Callable[[np.random.Generator], Drawn]:
    """BinAgg's simulation: columns uniform on [0, 1], slopes on [1, 2], residuals of sd 1."""

    def draw(rng: np.random.Generator) -> Drawn:
        x, slopes = rng.random((n, columns)), rng.uniform(1, 2, columns)
        return Drawn(x, x @ slopes + rng.standard_normal(n), slopes)

    return draw


CODES = {
    "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
    "color": ["J", "I", "H", "G", "F", "E", "D"],
    "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
}
SIZES = {
    "carat": (0, 6), "cut": (1, 5), "color": (1, 7), "clarity": (1, 8), "depth": (40, 80),
    "table": (40, 100), "x": (0, 12), "y": (0, 12), "z": (0, 12), "price": (0, 20_000),
}  # fmt: skip


def diamonds(rng: np.random.Generator) -> Drawn:
    """All 53,940, grades as numbers (as TukeyEM's paper has them); always the same rows."""
    table = SOURCES["diamonds"].read()
    for column, levels in CODES.items():
        table[column] = table[column].map({level: k + 1 for k, level in enumerate(levels)})
    inside = np.clip(table[list(SIZES)].to_numpy(float), *np.array(list(SIZES.values()), float).T)
    return Drawn(inside[:, :-1], inside[:, -1])


def at_mu(mu: float, delta: float) -> float:
    """The eps at which N(mu, 1) against N(0, 1) is (eps, delta) close."""
    return float(brentq(lambda eps: gdp(eps, delta) - mu, 1e-3, 100))


def cells() -> list[Cell]:
    wide, amin = ((-5.0, 5.0),), "TukeyEM, KT"
    found = [
        Cell("make_regression(22000, 10)", amin, LN3, 1e-5, made(10), wide * 10 + ((-1e3, 1e3),)),
        Cell(
            "10 useful of 30 columns", amin, LN3, 1e-5, made(30), wide * 30 + ((-1e3, 1e3),), True
        ),
        Cell("diamonds, 9 columns", amin, LN3, 1e-5, diamonds, tuple(SIZES.values())),
        Cell("isotropic, n = 20,000", "ISSP", 1.0, 1e-6, isotropic(10), wide * 10 + ((-8, 8),)),
    ]
    for n in (500, 1_000, 5_000):
        delta = n**-1.1
        box = ((0.0, 1.0),) * 5 + ((0.0, 7.0),)
        found.append(
            Cell(f"uniform, n = {n:,}", "BinAgg", at_mu(1, delta), delta, uniform(n, 5), box)
        )
    return found
