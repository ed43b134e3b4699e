"""Tables of nobody's for studies of `dp_glm`: what a cell of a grid is, and rows drawn from it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DELTA = 1e-6
CAP = 20


@dataclass(frozen=True)
class Cell:
    """One setting of a grid.

    `spread` is the standard deviation of the linear predictor, `scatter` what the variance of
    counts has beyond Poisson's, as a part of the squared mean. `x` is the columns' kind: normal,
    correlated (.8 between neighbours), skewed, or with a factor of four levels, of which the rarest
    has 2% of the rows.
    """

    family: str
    rows: int
    columns: int
    eps: float
    delta: float = DELTA
    intercept: float = -0.5
    spread: float = 1.0
    scatter: float = 0.0
    x: str = "normal"
    trials: int = 1
    offset: bool = False
    contributions: int = 1
    neighbors: str = "replace-one"

    @property
    def name(self) -> str:
        told = [self.family, f"n{self.rows}", f"p{self.columns}", f"eps{self.eps:g}"]
        told += ["pure"] if not self.delta else []
        usual = {f.name: f.default for f in fields(self)}
        short = {"intercept": "b", "spread": "sd"}
        for key, value in asdict(self).items():
            if key in ("family", "rows", "columns", "eps", "delta") or value == usual[key]:
                continue
            told.append(value if isinstance(value, str) else f"{short.get(key, key)}{value:g}")
        return " ".join(told)


@dataclass(frozen=True)
class Simulated:
    """Rows, the call that fits them, and the true coefficients.

    `design`, `response` and `offset` are for a fit without privacy.
    """

    table: pd.DataFrame
    truth: Floats
    call: dict[str, Any]
    design: Floats
    response: Floats
    offset: Floats | None

    def plain(self, family: str) -> Any:
        """Fit without privacy."""
        kind = sm.families.Binomial() if family == "binomial" else sm.families.Poisson()
        model = sm.GLM(self.response, self.design, family=kind, offset=self.offset)
        return model.fit(scale="X2" if family == "poisson" else None)


LEVELS = {"a": 0.6, "b": 0.3, "c": 0.08, "d": 0.02}


def simulated(cell: Cell, rng: np.random.Generator) -> Simulated:
    """Draw the rows of a cell."""
    p, n = cell.columns, cell.rows
    x = _columns(cell, rng)
    names = [f"x{j}" for j in range(p)]
    table = pd.DataFrame(x, columns=names)
    schema: dict[str, Any] = dict.fromkeys(names, (-1, 1))
    slopes, used = np.zeros(p), max(p // 2, 1)
    slopes[:used] = 3 / math.sqrt(used) * np.where(np.arange(used) % 2, 1, -1)
    usual = float(np.std(x @ slopes)) if cell.x != "normal" else 1.0
    slopes *= cell.spread / usual
    eta, truth = cell.intercept + x @ slopes, np.append(cell.intercept, slopes)
    design, formula = np.column_stack([np.ones(n), x]), f"y ~ {' + '.join(names)}"
    if cell.x == "factor":
        drawn = rng.choice(len(LEVELS), n, p=list(LEVELS.values()))
        effects = np.array([0.0, 0.3, -0.4, 0.5])
        table["g"], schema["g"] = np.array(list(LEVELS))[drawn], list(LEVELS)
        kinds = (drawn[:, None] == np.arange(1, len(LEVELS))).astype(float)
        design = np.column_stack([np.ones(n), kinds, x])
        truth = np.concatenate([truth[:1], effects[1:], truth[1:]])
        eta, formula = eta + effects[drawn], f"y ~ g + {' + '.join(names)}"
    call: dict[str, Any] = {"family": cell.family, "schema": schema, "delta": cell.delta}
    offset = None
    if cell.offset:
        table["years"], schema["years"] = rng.uniform(0.5, 4.0, n), (0.5, 4.0)
        offset = np.log(table["years"].to_numpy())
        eta = eta + offset
        call["offset" if cell.family == "binomial" else "exposure"] = (
            "np.log(years)" if cell.family == "binomial" else "years"
        )
    y = _response(cell, eta, rng)
    response: Floats = y.astype(float)
    schema["y"] = (0, 1 if cell.family == "binomial" else 3 * CAP if cell.scatter else CAP)
    if cell.trials > 1:
        tried = rng.integers(1, cell.trials + 1, n)
        y = rng.binomial(tried, 1 / (1 + np.exp(-eta)))
        table["tried"], schema["tried"] = tried, (1, cell.trials)
        schema["y"], call["trials"] = (0, cell.trials), "tried"
        response = np.column_stack([y, tried - y]).astype(float)
    if cell.contributions > 1:
        call["contributions"] = cell.contributions
    call |= {"neighbors": cell.neighbors, "formula": formula}
    return Simulated(table.assign(y=y), truth, call, design, response, offset)


def _columns(cell: Cell, rng: np.random.Generator) -> Floats:
    p, n = cell.columns, cell.rows
    normal = rng.standard_normal((n, p))
    if cell.x == "correlated":
        index = np.arange(p)
        normal = normal @ np.linalg.cholesky(0.8 ** np.abs(index[:, None] - index)).T
    if cell.x == "skewed":
        return np.clip(np.exp(0.7 * normal) / 4 - 1, -1, 1)
    return np.clip(normal / 3, -1, 1)


def _response(cell: Cell, eta: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    if cell.family == "binomial":
        return (rng.random(len(eta)) < 1 / (1 + np.exp(-eta))) * 1
    mean = np.exp(eta)
    if cell.scatter:
        mean = mean * rng.gamma(1 / cell.scatter, cell.scatter, len(eta))
    return rng.poisson(mean)  # cut at a cap that is hardly ever reached


COUNTS: dict[str, Any] = {"intercept": 0.7, "spread": 0.5}


def _logit() -> Iterator[Cell]:
    sizes = ((10_000, 5), (10_000, 15), (30_000, 30), (100_000, 15))
    for (rows, columns), eps in itertools.product(sizes, (1.0, 4.0)):
        yield Cell("binomial", rows, columns, eps)
    yield Cell("binomial", 10_000, 5, 0.5)
    yield Cell("binomial", 100_000, 15, 0.5)
    yield Cell("binomial", 10_000, 5, 2.0, delta=0)
    yield Cell("binomial", 100_000, 5, 1.0, delta=0)
    yield Cell("binomial", 100_000, 15, 1.0, delta=0)
    yield Cell("binomial", 10_000, 5, 1.0, intercept=-3.0)
    yield Cell("binomial", 100_000, 5, 1.0, intercept=-4.5)
    yield Cell("binomial", 30_000, 5, 4.0, intercept=-4.0)
    yield Cell("binomial", 10_000, 15, 1.0, spread=2.0)
    yield Cell("binomial", 30_000, 5, 2.0, spread=2.0)
    yield Cell("binomial", 10_000, 5, 4.0, spread=0.0)
    yield Cell("binomial", 10_000, 5, 1.0, trials=12)
    yield Cell("binomial", 30_000, 15, 2.0, trials=4)
    yield Cell("binomial", 10_000, 5, 1.0, offset=True)
    yield Cell("binomial", 10_000, 5, 1.0, x="correlated")
    yield Cell("binomial", 100_000, 15, 1.0, x="correlated")
    yield Cell("binomial", 30_000, 5, 1.0, x="skewed")
    yield Cell("binomial", 30_000, 3, 1.0, x="factor")
    yield Cell("binomial", 100_000, 3, 1.0, delta=0, x="factor")
    yield Cell("binomial", 30_000, 5, 1.0, contributions=3)
    yield Cell("binomial", 10_000, 5, 1.0, neighbors="add-remove")


def _counts() -> Iterator[Cell]:
    for rows, columns, eps in ((10_000, 5, 1.0), (10_000, 5, 4.0), (10_000, 15, 4.0)):
        yield Cell("poisson", rows, columns, eps, **COUNTS)
    yield Cell("poisson", 100_000, 15, 1.0, **COUNTS)
    yield Cell("poisson", 30_000, 30, 4.0, **COUNTS)
    yield Cell("poisson", 10_000, 5, 4.0, scatter=0.5, **COUNTS)
    yield Cell("poisson", 100_000, 5, 1.0, scatter=0.5, **COUNTS)
    yield Cell("poisson", 30_000, 5, 4.0, delta=0, **COUNTS)
    yield Cell("poisson", 100_000, 15, 4.0, delta=0, **COUNTS)
    yield Cell("poisson", 30_000, 5, 1.0, offset=True, intercept=0.0, spread=0.5)
    yield Cell("poisson", 30_000, 5, 1.0, intercept=-2.5, spread=0.5)
    yield Cell("poisson", 100_000, 5, 1.0, x="correlated", **COUNTS)
    yield Cell("poisson", 30_000, 5, 2.0, x="skewed", **COUNTS)
    yield Cell("poisson", 100_000, 3, 1.0, x="factor", **COUNTS)
    yield Cell("poisson", 100_000, 5, 1.0, contributions=3, **COUNTS)
    yield Cell("poisson", 30_000, 5, 1.0, neighbors="add-remove", **COUNTS)


COVERED = (*_logit(), *_counts())
"""The cells of coverage."""


def _choices() -> Iterator[Cell]:
    yield Cell("binomial", 10_000, 5, 0.5)
    yield Cell("binomial", 10_000, 15, 1.0, spread=0.5)
    yield Cell("binomial", 10_000, 5, 0.5, intercept=-3.0)
    yield Cell("binomial", 10_000, 5, 4.0, spread=0.0)
    yield Cell("binomial", 30_000, 15, 4.0, delta=0, spread=0.2)
    yield Cell("poisson", 30_000, 5, 1.0, intercept=0.7, spread=0.2)
    yield Cell("poisson", 100_000, 15, 1.0, intercept=0.7, spread=0.05)
    for spread in (0.05, 0.1, 0.2, 0.5):
        yield Cell("binomial", 100_000, 15, 1.0, spread=spread)


CHOICES = tuple(_choices())
"""The cells of choices."""
