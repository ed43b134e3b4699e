"""Calls to be recorded where their noise enters, and what is held against each recording.

``PYTHONPATH=.:tests python -m oracles.recorded_calls`` prints the table of ``docs/recording.md``.
"""

from __future__ import annotations

import warnings
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracles import recorded_costs as costs
from oracles.recording import record

import dpreg
from dpreg.errors import DpregWarning
from dpreg.privacy.budget import Budget

ROWS = 400
SCHEMA = {"a": (-1, 1), "b": (-3, 3), "c": (0, 2), "g": ["u", "v", "w"], "y": (-4, 4), "z": (-4, 4)}
BARE = {name: how for name, how in SCHEMA.items() if name not in ("b", "c")}
DELTA = "1e-6"
RESPONSES = {"binomial": "I(1 * (z > 0))", "poisson": "I(z + 4)"}


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "a": rng.uniform(-1, 1, ROWS),
            "b": rng.normal(0, 1, ROWS),
            "c": rng.uniform(0, 2, ROWS),
            "g": rng.choice(["u", "v", "w"], ROWS),
        }
    )
    table["y"] = table["a"] + 0.3 * table["b"] + rng.normal(0, 0.2, ROWS)
    table["z"] = rng.uniform(-4, 4, ROWS)  # residuals large enough for PCPL's bound
    table["who"] = rng.integers(0, 200, ROWS)  # persons own from one row to seven or so
    return table


def _matrix() -> dict[str, tuple[str, dict[str, Any]]]:
    """Name of each cell, its call and the options that change what is bought."""
    cells: dict[str, tuple[str, dict[str, Any]]] = {}

    def cell(call: str, **options: Any) -> None:
        told = ", ".join(f"{name}={value!r}" for name, value in options.items())
        cells[f"{call}({told})"] = call, options

    for relation in ("replace-one", "add-remove"):
        for k in (1, 3):
            unit = {"neighbors": relation, "contributions": k}
            cell("select", **unit)
            cell("select", **unit, radius="private", sigma2="private", fit="share", eps=30)
            cell("select", **unit, sigma2="1/20", penalty="bic", fit=None)
            cell("select", **unit, schema="bare", draws=3, eps=6)
            cell("select", **unit, draws=40, mechanism="exponential", delta=DELTA, eps=4)
            cell("select", **unit, method="pcpl", delta=DELTA, eps=300, fit="share")
            cell("ols", **unit, method="gram")
            cell("ols", **unit, method="gram", noise="gaussian", delta=DELTA)
            cell("ols", **unit, method="gram", noise="laplace", schema="bare")
            cell("ols", **unit, method="adaptive", eps=30)
            cell("ols", **unit, method="adaptive", eps=30, delta=DELTA, noise="gaussian")
            cell("ols", **unit, method="adaptive", eps=80 * k, schema="bare")
            cell("ols", **unit, method="adaptive", eps=30, noise="matrix-laplace")
            cell("select", **unit, method="adaptive", eps=30)
            cell("select", **unit, method="adaptive", eps=30, delta=DELTA, fit=None)
            cell("select", **unit, method="adaptive", eps=30, fit="fresh")
            cell("select", **unit, method="adaptive", eps=4, delta="0.05", fit="fresh")
            cell("ols", **unit, method="objective", eps=30 * k)
            if relation == "replace-one":  # where the number of rows is public noise decides less
                cell("ols", **unit, method="objective", eps="0.5", delta=DELTA)
            cell("ols", **unit, method="adassp", delta=DELTA)
            cell("ols", **unit, method="ssp", delta=DELTA, scaling="row-norm")
            cell("glm", **unit, delta=DELTA, eps=30)
            cell("glm", **unit, delta=DELTA, schema="bare")
            cell("glm", **unit, delta=DELTA, family="poisson")
            cell("glm", **unit, eps=30, noise="matrix-laplace")
            cell("glm", **unit)
            cell("glm", **unit, family="poisson")
            cell("glm", **unit, trials="I(z + 4)", delta=DELTA, eps=30)
            family = {"family": "binomial", "eps": 30}
            cell("select", **unit, **family, fit="same")
            cell("select", **unit, **family, delta=DELTA, fit=None)
            cell("select", **unit, **family, fit="fresh")
            cell("select", **unit, **family, delta=DELTA, fit="fresh")
            cell("select", **unit, family="poisson", delta=DELTA, schema="bare", fit="same")
            cell("mean", **unit)
            cell("mean", **unit, by="g", noise="gaussian", delta=DELTA)
            cell("suffstats", **unit)
            cell("suffstats", **unit, noise="gaussian", delta=DELTA)
            cell("mean", **unit, by="g")
            cell("histogram", **unit)
            cell("histogram", **unit, by="g", bins=7, noise="gaussian", delta=DELTA)
            cell("quantile", **unit)
            cell("quantile", **unit, by="g")
            cell("aggregate", **unit)
            cell("aggregate", **unit, by="g", aggregation="winsorized", eps=60)
        owned = {"neighbors": relation, "contributions": 3, "person": "who"}
        cell("select", **owned)
        cell("select", **owned, radius="private", sigma2="private", fit="share", eps=30)
        cell("select", **owned, draws=40, mechanism="exponential", delta=DELTA, eps=4)
        cell("select", **owned, method="pcpl", delta=DELTA, eps=300, fit="share")
        cell("select", **owned, method="adaptive", schema="bare", eps=30)
        cell("select", **owned, family="binomial", fit="fresh", eps=30)
        cell("ols", **owned, method="gram")
        cell("ols", **owned, method="adaptive", eps=30, delta=DELTA, noise="gaussian")
        cell("ols", **owned, method="adaptive", eps=30)
        cell("glm", **owned, delta=DELTA)
        cell("glm", **owned, eps=30, family="poisson")
        cell("ols", **owned, method="adassp", delta=DELTA)
        cell("mean", **owned, by="g")
        cell("suffstats", **owned)
        cell("histogram", **owned)
        cell("quantile", **owned)
        cell("aggregate", **owned)
        cell("aggregate", **owned, by="g", aggregation="winsorized", eps=60)
    cell("select", person="who", form="dask")
    cell("select", engine="tree", draws=4)
    cell("select", engine="tree", mechanism="exponential", fit=None, neighbors="add-remove")
    cell("select", engine="tree", draws=30, delta=DELTA, contributions=2)
    cell("select", mechanism="laplace", units="column")
    cell("select", method="pcpl", delta=DELTA, eps=300)
    cell("select", fit="split", radius="private", delta=DELTA)
    cell("select", form="parquet")
    cell("select", form="csv", radius="private")
    cell("select", form="dask", radius="private", fit="split")
    cell("select", unsafe_seed=3)
    cell("ols", method="adassp", noise="wang", delta=DELTA, eps=1, form="parquet")
    cell("ols", method="ssp", noise="classical", delta=DELTA, eps=1, scaling="max-norm")
    cell("ols", method="gram", form="csv")
    cell("ols", method="gram", form="dask", schema="bare")
    cell("ols", method="gram", unsafe_seed=3, noise="matrix-laplace")
    cell("ols", method="objective", unsafe_seed=3, form="csv", schema="bare", eps=30)
    cell("ols", method="adaptive", form="dask", eps=30)
    cell("glm", delta=DELTA, form="dask")
    cell("glm", delta=DELTA, unsafe_seed=3, form="csv")
    cell("select", method="auto", eps=30, form="parquet")
    cell("select", method="auto", radius=1)
    cell("select", method="auto", neighbors="add-remove", eps=30)
    few = {"eps": "0.5", "delta": DELTA, "unsafe_seed": 3}  # seeded, as the count is a draw
    cell("select", method="auto", neighbors="add-remove", contributions=3, **few)
    cell("select", method="adaptive", schema="bare", eps=30)
    cell("select", method="adaptive", unsafe_seed=3, eps=30)
    cell("mean", complete=True)
    cell("mean", form="dask", by="g")
    cell("quantile", complete=True, form="csv")
    cell("histogram", form="parquet", bins=5)
    cell("aggregate", blocks=20, aggregation="mean")
    return cells


MATRIX = _matrix()


def table_in(form: str, folder: Path) -> Any:
    rows = frame()
    if form == "parquet":
        rows.to_parquet(folder / "rows.parquet")
        return str(folder / "rows.parquet")
    if form == "csv":
        rows.to_csv(folder / "rows.csv", index=False)
        return str(folder / "rows.csv")
    if form == "dask":
        import dask.dataframe as dd

        return dd.from_pandas(rows, npartitions=3)
    return rows


def run(call: str, options: dict[str, Any], ledger: dpreg.Ledger, folder: Path) -> Any:
    """Make the call that a cell names."""
    asked = dict(options)
    data = table_in(asked.pop("form", "pandas"), folder)
    schema = BARE if asked.pop("schema", "") == "bare" else SCHEMA
    common = {"schema": schema, "budget": ledger, "eps": asked.pop("eps", 3), **asked}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpregWarning)  # poor bounds
        match call:
            case "select":
                if isinstance(common.get("sigma2"), str) and "/" in common["sigma2"]:
                    common["sigma2"] = Fraction(common["sigma2"])
                response = "z" if common.get("method") == "pcpl" else "y"
                response = RESPONSES.get(common.get("family"), response)
                asked = common if "family" in common else {"method": "pcls", **common}
                return dpreg.dp_select(f"{response} ~ a + b + c", data, **asked)
            case "ols":
                return dpreg.dp_ols("y ~ a + b + c", data, **{"method": "gram", **common})
            case "glm":
                response = RESPONSES[common.get("family", "binomial")]
                response = "I(y + 4)" if "trials" in common else response
                return dpreg.dp_glm(f"{response} ~ a + b + c", data, **common)
            case "mean":
                return dpreg.dp_mean(["a", "b"], data, **common)
            case "suffstats":
                return dpreg.dp_suffstats("b", data, **common)
            case "histogram":
                return dpreg.dp_histogram("b", data, **common)
            case "quantile":
                return dpreg.dp_quantile(["a", "b"], [0.25, 0.5], data, **{**common, "eps": 60})
            case _:
                return dpreg.sample_aggregate(
                    lambda block: [block["a"].mean(), block["b"].mean()],
                    data,
                    bounds=[(-1, 1), (-3, 3)],
                    **common,
                )


COSTS = {
    "select": costs.selection,
    "ols": costs.regression,
    "glm": costs.family,
    "mean": costs.sums,
    "suffstats": costs.sums,
    "histogram": costs.histogram,
    "quantile": costs.quantiles,
    "aggregate": costs.aggregated,
}


def recorded(cell: str, patch: pytest.MonkeyPatch, folder: Path) -> str:
    """Run a cell, hold what was drawn against its budget table, its ledger and its claim.

    Returns the cell's row of the table.
    """
    call, options = MATRIX[cell]
    tape, ledger = record(patch), dpreg.Ledger(Budget(10**6, "0.5"))
    result = run(call, options, ledger, folder)
    relation, k = options.get("neighbors", "replace-one"), options.get("contributions", 1)
    extra = {"x": ["a", "b"], "q": [0.25, 0.5]} if call == "quantile" else {}
    found = COSTS[call](tape, costs.Asked(relation, k, {**options, **extra}), result)
    spends = list(result.claim.spends)
    assert [one.step for one in found] == [spend.step for spend in spends]
    for one, spend in zip(found, spends, strict=True):
        one.check(spend)
    assert sum(len(one.draws) for one in found) >= len(found)
    claim = result.claim
    person = options.get("person")
    assert (claim.neighbors, claim.contributions, claim.person) == (relation, k, person)
    assert claim.seeded == ("unsafe_seed" in options)
    asked = Budget(60 if call == "quantile" else options.get("eps", 3), options.get("delta", 0))
    # Persons who are named have all their rows in one half.
    whole = composed(spends, 1 if person else k)
    assert whole == (result.spent.eps, result.spent.delta)
    assert whole[0] == asked.eps
    assert whole[1] <= asked.delta
    (entry,) = ledger.entries
    assert (entry.budget.eps, entry.budget.delta) == whole
    owned = f"all rows of one {person!r}" if person else f"{k} row"
    assert entry.unit.startswith(f"{relation}, {owned}")
    return line(cell, found, result)


def composed(spends: list[Any], k: int) -> tuple[Fraction, Fraction]:
    """Add up what read the same rows; of two halves take the larger, but both deltas if k > 1."""
    by_rows: dict[str, list[Any]] = {}
    for spend in spends:
        by_rows.setdefault(spend.rows, []).append(spend)
    whole = by_rows.pop("all", [])
    eps = [sum(s.eps for s in group) for group in by_rows.values()]
    delta = [sum(s.delta for s in group) for group in by_rows.values()]
    halves = (max(delta, default=0)) if k == 1 else sum(delta)
    return (
        sum((s.eps for s in whole), Fraction(0)) + max(eps, default=0),
        sum((s.delta for s in whole), Fraction(0)) + halves,
    )


def line(cell: str, found: list[costs.Cost], result: Any) -> str:
    """Write a cell's row of the table: public facts, the same in every run."""
    call = MATRIX[cell][0]
    steps = []
    for one, spend in zip(found, result.claim.spends, strict=True):
        # The noise of a selected model's coefficients depends on how many columns were drawn.
        drawn = Counter(draw.mechanism for draw in one.draws)
        if call == "select" and one.step == "coefficients":
            drawn = Counter([spend.mechanism])
        if "looks" in one.step and (call == "select" or spend.mechanism == "gaussian"):
            # How many there are follows from the noise.
            drawn = Counter({spend.mechanism: 1})
        how = ", ".join(f"{n} x {name}" if n > 1 else name for name, n in sorted(drawn.items()))
        rows = "" if spend.rows == "all" else f", {spend.rows}"
        steps.append(f"{one.step}: {how}, {spend.budget}{rows}")
    return f"| `{cell}` | {'; '.join(steps)} | {result.spent} |"


def markdown() -> str:
    """Return the matrix as a markdown table."""
    import tempfile

    rows = [
        "| call | what was drawn, at what cost, and from which rows if not all | spent |",
        "|---|---|---|",
    ]
    for cell in MATRIX:
        with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
            rows.append(recorded(cell, patch, Path(folder)))
    return "\n".join(rows)


if __name__ == "__main__":
    print(markdown())
