"""The data of `benchmarks.regression`: real sets, and rows drawn with a correlation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import patsy

from benchmarks._uci import load_uci
from dpreg import datasets
from dpreg.datasets import Dataset

REAL = ("airfoil", "bike", "concrete", "elevators", "kc_house", "randhie", "prostate")
SIZES, ROWS, CORRELATIONS = (5, 15, 30), (1_000, 10_000, 100_000, 1_000_000), (0.0, 0.5, 0.9)


@dataclass(frozen=True)
class Sample:
    """Rows (1, x) in the box to fit and to predict."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


@dataclass(frozen=True)
class Design:
    """One data set: a real one, or p columns, n rows and a correlation."""

    name: str
    real: bool
    n: int
    p: int
    correlation: float = 0.0

    def samples(self, count: int, seed: int) -> Iterator[Sample]:
        rng = np.random.default_rng([seed, self.n, self.p, round(10 * self.correlation)])
        if self.real:
            x, y = boxed(load(self.name))
            for _ in range(count):
                order = rng.permutation(len(y))
                test, train = order[: len(y) // 5], order[len(y) // 5 :]
                yield Sample(x[train], y[train], x[test], y[test])
            return
        for _ in range(count):
            held = min(self.n, 20_000)
            x, y = self._draw(self.n + held, rng)
            yield Sample(x[held:], y[held:], x[:held], y[:held])

    def _draw(self, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Normal columns with correlation r^|i-j|, R^2 = .5, box at 4 and 5 standard deviations."""
        index = np.arange(self.p)
        covariance = self.correlation ** np.abs(index[:, None] - index)
        beta = np.tile([1.0, -0.7, 0.4, 0.2, 0.0], 6)[: self.p]
        beta = beta / np.sqrt(2 * beta @ covariance @ beta)
        x = rng.standard_normal((size, self.p)) @ np.linalg.cholesky(covariance).T
        y = x @ beta + np.sqrt(0.5) * rng.standard_normal(size)
        x = np.column_stack([np.ones(size), np.clip(x / 4, -1, 1)])
        return x, np.clip(y / 5, -1, 1)


def load(name: str) -> Dataset:
    if name == "randhie":
        found = datasets.load_randhie()
        columns = [c for c in found.data.columns if c != "mdvis"]
        return Dataset(found.data, found.schema, f"mdvis ~ {' + '.join(columns)}", found.source)
    if name in ("kc_house", "prostate"):
        return getattr(datasets, f"load_{name}")()
    return load_uci(name)


def boxed(found: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Rows (1, x) and the response, each mapped to [-1, 1] by its public bounds and cut there."""
    y, x = patsy.dmatrices(found.formula, found.data, return_type="dataframe")

    def box(name: str, values: np.ndarray) -> np.ndarray:
        low, high = found.schema[name].lo, found.schema[name].hi
        return np.clip((2 * values - low - high) / (high - low), -1, 1)

    columns = [box(c, x[c].to_numpy(float)) for c in x.columns if c != "Intercept"]
    return np.column_stack([np.ones(len(x)), *columns]), box(y.columns[0], y.iloc[:, 0].to_numpy())


def designs(most: int) -> list[Design]:
    """All sets with at most `most` rows to fit."""
    found = []
    for name in REAL:
        x, _ = boxed(load(name))
        found.append(Design(name, True, len(x) - len(x) // 5, x.shape[1] - 1))
    found += [
        Design(f"p={p} n={n:,} r={r:g}", False, n, p, r)
        for n in ROWS for p in SIZES for r in CORRELATIONS
    ]  # fmt: skip
    return [d for d in found if d.n <= most]
