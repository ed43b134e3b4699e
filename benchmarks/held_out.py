"""R-squared of held-out rows: what `dp_select` chose and fitted beside least squares.

    python -m benchmarks.held_out [--delta 0 1e-6] [--fits fresh same split all] [--splits 15]
        [--data kc_house randhie] [--bounds declared four eight registry]

King County and randhie, eps = 1, whole calls with seeded noise. A fifth of the rows is held out.
Least squares fits all candidates to the other rows, without privacy; R-squared compares with the
mean of the held-out rows. "all" is `dp_ols` with all candidates. Shown besides: by how much least
squares falls short where it is given the terms that were chosen, and nothing else; and the same
comparison among rows cut at the bounds that the schema declares, where a release cuts them too.

King County's bounds may be wider: prices up to four million, or eight, or what a registry of sales
would state, with lots and living areas that hold every house.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf

import dpreg
from benchmarks._power_cells import REAL
from benchmarks._regression_cells import load
from dpreg.columns import Numeric
from dpreg.datasets import Dataset
from dpreg.results.regression import RegressionResults
from dpreg.results.selection import SelectionResults
from dpreg.schema import Schema

EPS = 1
Released = RegressionResults | SelectionResults
BOUNDS: dict[str, dict[str, tuple[float, float]]] = {
    "declared": {},
    "four": {"price": (0, 4_000_000)},
    "eight": {"price": (0, 8_000_000)},
    "registry": {
        "price": (0, 8_000_000),
        "sqft_living": (0, 15_000),
        "sqft_lot": (0, 2_000_000),
    },
}
"""In place of the declared ones, King County's columns."""


def rsquared(y: pd.Series, predicted: pd.Series) -> float:
    """Return one less the mean square of what is left, over the variance of the response."""
    return float(1 - np.square(y - predicted).mean() / np.square(y - y.mean()).mean())


def within_bounds(found: Dataset, rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows whose numbers are cut at the declared bounds."""
    cut = rows.copy()
    for name in cut.columns.intersection(list(found.schema)):
        column = found.schema[name]
        if isinstance(column, Numeric):
            cut[name] = cut[name].clip(column.lo, column.hi)
    return cut


def released(found: Dataset, train: pd.DataFrame, fit: str, delta: float, seed: int) -> Released:
    """Choose and fit by a whole call; "all" fits all candidates."""
    call = dpreg.dp_ols if fit == "all" else partial(dpreg.dp_select, fit=fit)
    return call(
        found.formula,
        train,
        eps=EPS,
        delta=str(delta),
        schema=found.schema,
        progress=False,
        unsafe_seed=seed,
    )


def with_bounds(found: Dataset, kind: str) -> Dataset:
    """Return the data set with other bounds declared."""
    own = {name: found.schema[name] for name in found.schema}
    return replace(found, schema=Schema.from_any(own | BOUNDS[kind]))


def shortfalls(found: Dataset, fit: str, delta: float, splits: int) -> np.ndarray:
    """Return R-squared of least squares, and what other fits fall short of it by, (splits, 5).

    These are the released one, that of least squares given the released one's terms, and that of
    least squares fitted to rows within their bounds. The last number is by how much the released
    one falls short of the latter where the rows to be predicted are within their bounds, too.
    """
    response, rows = found.formula.split("~")[0].strip(), found.data
    out = []
    for split in range(splits):
        order = np.random.default_rng([split, 5]).permutation(len(rows))
        held = rows.iloc[order[: len(rows) // 5]]
        train = rows.iloc[order[len(rows) // 5 :]].reset_index(drop=True)
        y = held[response].astype(float)
        best = rsquared(y, smf.ols(found.formula, train).fit().predict(held))
        own = released(found, train, fit, delta, split)
        formula = found.formula if fit == "all" else own.regression.formula
        given = rsquared(y, smf.ols(formula, train).fit().predict(held))
        inner = smf.ols(found.formula, within_bounds(found, train)).fit()
        bounded = within_bounds(found, held)
        near = bounded[response].astype(float)
        out.append(
            (
                best,
                best - rsquared(y, own.predict(held)),
                best - given,
                best - rsquared(y, inner.predict(held)),
                rsquared(near, inner.predict(bounded)) - rsquared(near, own.predict(bounded)),
            )
        )
    return np.array(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delta", nargs="+", type=float, default=[0.0, 1e-6])
    parser.add_argument("--fits", nargs="+", default=["fresh", "all"])
    parser.add_argument("--splits", type=int, default=15)
    parser.add_argument("--data", nargs="+", choices=tuple(REAL), default=list(REAL))
    parser.add_argument("--bounds", nargs="+", choices=tuple(BOUNDS), default=["declared"])
    arguments = parser.parse_args()
    for name, kind in product(arguments.data, arguments.bounds):
        title = REAL[name] + (f", bounds {kind}" if BOUNDS[kind] else "")
        found = with_bounds(load(name), kind) if BOUNDS[kind] else load(name)
        for delta in arguments.delta:
            for fit in arguments.fits:
                table = shortfalls(found, fit, delta, arguments.splits)
                best, short, given, inner, bounded = table.T
                error = short.std(ddof=1) / len(short) ** 0.5
                print(
                    f"{title}, delta {delta:g}, {fit}: least squares {best.mean():.4f}, short by "
                    f"{short.mean():.4f} (standard error {error:.4f}, median "
                    f"{np.median(short):.4f}, most {short.max():.4f}); least squares of the same "
                    f"terms by {given.mean():.4f}, of rows within bounds by {inner.mean():.4f}; "
                    f"among such rows short by {bounded.mean():.4f} (median "
                    f"{np.median(bounded):.4f})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
