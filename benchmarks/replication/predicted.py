"""What `dpreg.plan` would have said of these analyses, beside what their runs measured.

Two ways to plan: "facts", from the numbers that a paper reports (coefficients, their standard
errors, the residual's), which give each column's deviation given the others; and "like", from rows
of the same kind, here the table itself, which only a benchmark may do.
"""

from __future__ import annotations

import pandas as pd
import statsmodels.formula.api as smf

import dpreg
from benchmarks.replication.analyses import Analysis

WAYS = ("facts", "like")


def predicted(analysis: Analysis, eps: float, delta: float, way: str) -> pd.DataFrame:
    """Plan an analysis: a line for each coefficient but the intercept."""
    data = analysis.read()
    fit = smf.ols(analysis.formula, data).fit()
    sigma = float(fit.mse_resid) ** 0.5
    names = [name for name in fit.params.index if name != "Intercept"]
    if way == "facts":
        size = len(fit.model.endog) ** 0.5
        known = {"sd": {name: sigma / (float(fit.bse[name]) * size) for name in names}}
    else:
        known = {"like": data}
    plan = dpreg.plan(
        {name: float(fit.params[name]) for name in names}, of="ols", sigma=sigma, n=len(data),
        eps=eps, delta=delta, formula=analysis.formula, schema=analysis.schema, **known,
    )  # fmt: skip
    found = plan.coefficients.rename_axis("coefficient").reset_index()
    return found.assign(analysis=analysis.name, eps=eps, delta=delta, method=plan.method, way=way)


def beside(lines: pd.DataFrame, plans: pd.DataFrame) -> pd.DataFrame:
    """Overlap, decisions and width of each analysis and budget, predicted beside measured."""
    keys = ["delta", "eps", "analysis"]
    ours = lines[(lines["method"] == "auto") & (lines["coefficient"] != "Intercept")]
    measured = ours.groupby(keys).agg(
        overlap=("overlap", "mean"), decision=("decision", "mean"), width=("width", "median")
    )
    parts = {"measured": measured}
    plans = plans.assign(delta=plans["delta"].astype(float), eps=plans["eps"].astype(float))
    for way, found in plans.groupby("way"):
        parts[str(way)] = found.groupby(keys).agg(
            overlap=("overlap", "mean"),
            decision=("same decision", "mean"),
            width=("width", "median"),
        )
    return pd.concat(parts, axis=1).dropna()
