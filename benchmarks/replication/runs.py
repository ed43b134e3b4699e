"""Run an analysis: once without privacy, many times with it, and with the peers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf

import dpreg
from benchmarks.peers import PEERS
from benchmarks.peers._rows import Rows
from benchmarks.replication.analyses import Analysis
from benchmarks.replication.measures import compare
from dpreg.formula.design import build_design

DELTAS, EPS = (0.0, 1e-6), (0.5, 1.0, 2.0, 4.0)


def exact(analysis: Analysis, data: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Least squares on the rows as they are, and its design matrix."""
    fit = smf.ols(analysis.formula, data).fit()
    ends = fit.conf_int()
    table = pd.DataFrame({
        "estimate": fit.params, "se": fit.bse, "low": ends[0], "high": ends[1], "p": fit.pvalues,
    })  # fmt: skip
    return table, pd.DataFrame(fit.model.exog, columns=table.index).assign(_y=fit.model.endog)


def private(
    analysis: Analysis, data: pd.DataFrame, eps: float, delta: float, method: str, seed: int
) -> tuple[pd.DataFrame, bool]:
    """dpreg's table, and whether it flags a coefficient."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dpreg.dp_ols(
            analysis.formula, data, eps=eps, delta=delta, schema=analysis.schema, method=method,
            progress=False, unsafe_seed=seed,
        )  # fmt: skip
    ends = fit.conf_int()
    table = pd.DataFrame({
        "estimate": fit.params, "se": fit.bse, "low": ends[0], "high": ends[1], "p": fit.pvalues,
    })  # fmt: skip
    return table, bool(getattr(fit, "weak", None))


class Boxed:
    """The rows as the peers take them: columns and response in [-1, 1] by public bounds."""

    def __init__(self, analysis: Analysis, matrix: pd.DataFrame) -> None:
        design = build_design(analysis.formula, analysis.schema)
        limits = {column.name: (column.lo, column.hi) for column in design.columns[1:]}
        self.names = [name for name in matrix.columns if name != "_y"]
        self.constant = self.names.index("Intercept")
        pairs = [limits.get(name, (0.0, 2.0)) for name in self.names]
        self.middle = np.array([(low + high) / 2 for low, high in pairs])
        self.half = np.array([(high - low) / 2 for low, high in pairs])
        self.middle[self.constant], self.half[self.constant] = 0.0, 1.0
        y = design.response
        self.y_middle, self.y_half = (y.lo + y.hi) / 2, (y.hi - y.lo) / 2
        x = (matrix[self.names].to_numpy() - self.middle) / self.half
        response = (matrix["_y"].to_numpy() - self.y_middle) / self.y_half
        self.rows = Rows(np.clip(x, -1, 1), np.clip(response, -1, 1))

    def own_units(self, theta: np.ndarray) -> np.ndarray:
        """Coefficients of the rows as they were."""
        slopes = self.y_half * theta / self.half
        found = slopes.copy()
        found[:, self.constant] += self.y_middle - slopes @ self.middle
        return found


def peers(
    analysis: Analysis, matrix: pd.DataFrame, table: pd.DataFrame, eps: float, delta: float,
    repeats: int,
) -> Iterator[tuple[str, pd.DataFrame]]:  # fmt: skip
    """Each peer's comparison at the setting that is best here, with hindsight; no intervals.

    0.1's release (`method="gram"`), the only other one with intervals, is run beside them.
    """
    boxed = Boxed(analysis, matrix)
    for name, peer in PEERS.items():
        best = None
        for setting in peer.settings(eps, delta):
            rng = np.random.default_rng(1)
            found = boxed.own_units(peer.fit(boxed.rows, setting, eps, delta, repeats, rng))
            bias = np.abs((found - table["estimate"].to_numpy()) / table["se"].to_numpy())
            if best is None or np.median(bias) < best[0]:
                best = (float(np.median(bias)), found)
        if best is None:
            continue  # it needs a delta, or is not installed
        for theta in best[1]:
            blank = dict.fromkeys(("se", "low", "high", "p"), np.nan)
            yield name, compare(table, pd.DataFrame({"estimate": theta, **blank}, table.index))


def cell(analysis: Analysis, eps: float, delta: float, runs: int, peer_runs: int) -> pd.DataFrame:
    """All comparisons of one analysis at one budget, a line for each coefficient and run."""
    data = analysis.read()
    table, matrix = exact(analysis, data)
    lines = []
    for method, count in (("auto", runs), ("gram", peer_runs)):
        for seed in range(count):
            found, weak = private(analysis, data, eps, delta, method, 1 + seed)
            lines.append(compare(table, found).assign(method=method, run=seed, weak=weak))
    for place, (name, found) in enumerate(
        peers(analysis, matrix, table, eps, delta, peer_runs) if peer_runs else ()
    ):
        lines.append(found.assign(method=name, run=place, weak=False))
    whole = pd.concat(lines).rename_axis("coefficient").reset_index()
    return whole.assign(analysis=analysis.name, n=len(data), p=len(table), eps=eps, delta=delta)
