"""Bad calls, by the words that name what is wrong with them; what each is told is a golden.

Only refusals that stay, in dpreg's own words: what the looks refuse is to change with them, and
what Python's or patsy's parsers say changes with their versions.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from goldens.calls import SCHEMA, drawn
from oracles.spelled import spelled

import dpreg
from dpreg.privacy.ledger import Ledger
from dpreg.results.base import from_json

Bad = Callable[[Ledger], Any]
CASES: dict[str, Bad] = {}
"""Calls that must be refused, each given a ledger that must stay as it was."""


@functools.cache
def table(rows: int = 300) -> pd.DataFrame:
    return drawn(rows).assign(day=pd.Timestamp("2024-01-31"))


def _bad(name: str, call: Bad) -> None:
    assert name not in CASES, name
    CASES[name] = call


def _calls(kind: str, call: Callable[..., Any], cases: Mapping[str, dict[str, Any]]) -> None:
    for name, options in cases.items():
        _bad(f"{kind}: {name}", functools.partial(_charged, call, options))


def _charged(call: Callable[..., Any], options: dict[str, Any], ledger: Ledger) -> Any:
    return call(**{"budget": ledger, **options})


def ols(formula: Any = "y ~ a + b + g", data: Any = None, eps: Any = 1, **options: Any) -> Any:
    told = {"schema": SCHEMA, "method": "gram", **options}
    told = spelled("dp_ols", told)
    return dpreg.dp_ols(formula, table() if data is None else data, eps, **told)


def select(formula: Any = "y ~ a + b + g", data: Any = None, eps: Any = 1, **options: Any) -> Any:
    told = {"schema": SCHEMA, "method": "pcls", **options}
    told = spelled("dp_select", told)
    return dpreg.dp_select(formula, table() if data is None else data, eps, **told)


def _one(function: str) -> Callable[..., Any]:
    def call(x: Any = "a", data: Any = None, eps: Any = 1, **options: Any) -> Any:
        told = {"schema": SCHEMA, **options}
        rows = table() if data is None else data
        return getattr(dpreg, function)(x, rows, eps=eps, **told)

    return call


def _quantile(q: Any = 0.5, x: Any = "a", **options: Any) -> Any:
    return dpreg.dp_quantile(x, q, table(), **{"eps": 1, "schema": SCHEMA, **options})


def _mean_of(block: pd.DataFrame) -> float:
    return float(block["a"].mean())


def _aggregate(estimator: Any = _mean_of, **options: Any) -> Any:
    told = {"eps": 10, "bounds": (-3, 3), "schema": SCHEMA, **options}
    return dpreg.sample_aggregate(estimator, table(), **told)


def but(**changes: Any) -> dict[str, Any]:
    return {**SCHEMA, **changes}


EVERY: dict[str, dict[str, Any]] = {
    "eps of nothing": {"eps": 0},
    "eps below nothing": {"eps": -1},
    "eps that is text": {"eps": "much"},
    "eps not a number": {"eps": float("nan")},
    "eps without end": {"eps": float("inf")},
    "eps that is true": {"eps": True},
    "another relation": {"neighbors": "add"},
    "no contributions": {"contributions": 0},
    "contributions of a half": {"contributions": 1.5},
    "a budget that is a number": {"budget": 3},
    "a seed below nothing": {"unsafe_seed": -1},
    "a seed that is text": {"unsafe_seed": "one"},
    "a person that is no column": {"person": "nobody"},
    "a schema that is a list": {"schema": ["a"]},
    "a schema's key that is no column": {"schema": but(dayy=(0, 1))},
    "bounds the wrong way round": {"schema": but(a=(3, -3))},
    "bounds that are one": {"schema": but(a=(3, 3))},
    "bounds of text": {"schema": but(a=["0", "1"])},
    "a bound that is None": {"schema": but(a=(None, 1))},
    "levels that repeat": {"schema": but(g=["u", "v", "u"])},
    "more than the ledger holds": {"eps": 50},
    "an analyst that is empty": {"analyst": ""},
}
"""What every call refuses in one way."""

FITS: dict[str, dict[str, Any]] = {
    "delta of one": {"delta": 1},
    "delta below nothing": {"delta": "-1e-6"},
    "no formula": {"formula": 3},
    "one side": {"formula": "~ a"},
    "a name that is no column": {"formula": "y ~ aa"},
    "a variable of the program": {"formula": "y ~ np.log(my_constant)"},
    "a function of the column": {"formula": "y ~ center(a)"},
    "a function nobody knows": {"formula": "y ~ secret(a)"},
    "the response on the right": {"formula": "y ~ a + y"},
    "two responses": {"formula": "y + a ~ b"},
    "dates": {"formula": "y ~ day"},
    "a response of text": {"formula": "g ~ a"},
    "no bounded transform": {"formula": "y ~ np.log(a)"},
    "no rows": {"data": table(300).head(0)},
    "a table that is a list": {"data": [1, 2]},
    "a file that is none": {"data": "no-such-file.csv"},
    "a column that is twice there": {"data": pd.concat([table(), table()[["a"]]], axis=1)},
    "clip of nothing": {"clip": 0},
    "clip of more than all": {"clip": 2},
    "centre that is text": {"center": "yes"},
    "shares of what is not bought": {"shares": {"bounds": "0.1"}},
}

SELECT: dict[str, dict[str, Any]] = {
    "another mechanism": {"mechanism": "gumbel"},
    "another engine": {"engine": "greedy"},
    "another hierarchy": {"hierarchy": "weak"},
    "other units": {"units": "row"},
    "a kept term that is none": {"keep": ("Intercept", "aa")},
    "kept as text": {"keep": "a"},
    "fewer than no terms": {"max_terms": -1},
    "a radius of nothing": {"radius": 0},
    "a penalty that is text": {"penalty": "aic"},
    "a penalty below nothing": {"penalty": -1},
    "sigma2 of nothing": {"sigma2": 0},
    "no draws": {"draws": 0},
    "too many draws for eps": {"draws": 10**9},
    "false inclusions of nothing": {"false_inclusions": 0},
    "another fit": {"fit": "again"},
    "laplace over a tree": {"mechanism": "laplace", "engine": "tree"},
    "pcpl without delta": {"method": "pcpl"},
    "an offset without a family": {"offset": "a"},
    "a share of what is not done": {"shares": {"sigma2": "0.1"}},
    "shares of more than all": {"schema": {"y": (-10, 10)}, "shares": {"bounds": 2}},
    "a schema without levels": {"schema": {"y": (-10, 10)}},
}

OLS: dict[str, dict[str, Any]] = {
    "gaussian without delta": {"noise": "gaussian"},
    "ssp without delta": {"method": "ssp"},
    "a scaling that gram has not": {"scaling": "row-norm"},
    "constants that ssp has not": {"method": "ssp", "delta": "1e-6", "noise": "laplace"},
    "a noise that gram had": {"method": "gram", "noise": "knorm"},
    "Wang's constants for ssp": {"method": "ssp", "delta": "1e-6", "noise": "wang"},
    "constants that promise too much": {
        **{"method": "adassp", "delta": "0.1", "noise": "classical"},
        "eps": 20,
    },
    "fewer rows than coefficients": {"data": table(4)},
}

COLUMNS: dict[str, dict[str, Any]] = {
    "a column that is none": {"x": "aa"},
    "no column": {"x": []},
    "a column twice": {"x": ["a", "a"]},
    "a factor": {"x": "g"},
    "no bounds": {"x": "a", "schema": None},
    "bounds of a column that is none": {"bounds": {"aa": (0, 1)}},
    "three bounds": {"bounds": (0, 1, 2)},
    "groups without levels": {"by": "a"},
    "groups of no column": {"by": "nobody"},
}

_calls("dp_ols", ols, {**EVERY, **FITS, **OLS})
_calls("dp_select", select, {**EVERY, **FITS, **SELECT})
_calls("dp_mean", _one("dp_mean"), {**EVERY, **COLUMNS, "noise nobody knows": {"noise": "knorm"}})
_calls(
    "dp_suffstats",
    _one("dp_suffstats"),
    {**EVERY, "another family": {"family": "gamma"}},
)
_calls(
    "dp_quantile",
    _quantile,
    {
        **EVERY,
        "q beyond one": {"q": 1.5},
        "q that is nothing": {"q": []},
        "alpha of one": {"alpha": 1},
        "a column that is none": {"x": "aa"},
    },
)
_calls(
    "dp_histogram",
    _one("dp_histogram"),
    {
        **EVERY,
        "no bins": {"bins": 0},
        "bins of text": {"bins": "many"},
        "too many bins": {"bins": 10**9},
        "edges that fall": {"bins": [0, 2, 1]},
        "a width that takes all": {"width_share": 1},
        "gaussian without delta": {"noise": "gaussian"},
    },
)
_calls(
    "sample_aggregate",
    _aggregate,
    {
        **EVERY,
        "no estimator": {"estimator": 3},
        "no bounds": {"bounds": None},
        "no blocks": {"blocks": 0},
        "more blocks than rows": {"blocks": 10**6},
        "another aggregation": {"aggregation": "median"},
        "a timeout of nothing": {"timeout": 0},
    },
)

_bad("schema: a date", lambda _: dpreg.Schema({"day": (datetime.date(2020, 1, 1), 3)}))
_bad("schema: one level", lambda _: dpreg.Schema({"g": []}))
_bad("schema: a name of nothing", lambda _: dpreg.Schema({"": (0, 1)}))
_bad("schema: numbers for names", lambda _: dpreg.Schema.skeleton(pd.DataFrame({0: [1.0]})))
_bad("budget: eps below nothing", lambda _: dpreg.Budget(-1))
_bad("budget: delta of one", lambda _: dpreg.Budget(1, 1))
_bad("budget: text", lambda _: dpreg.Budget("one"))
_bad("load: no file", lambda _: dpreg.load("no-such-result.json"))
_bad("load: no result", lambda _: from_json("{}"))
_bad("load: a newer format", lambda _: from_json('{"dpreg": "99.1", "kind": "regression"}'))
_bad("load: another kind", lambda _: from_json('{"dpreg": "0.2", "kind": "forest"}'))
_bad("load: a damaged result", lambda _: from_json('{"dpreg": "0.2", "kind": "regression"}'))
_bad("report: no result", lambda _: dpreg.write_report(3, "report.html"))  # type: ignore[arg-type]
_bad("study: not the rows", lambda _: dpreg.selection_study("y ~ a", None, schema=SCHEMA))
_bad("simulation: no effects", lambda _: dpreg.simulation_study(np.array([])))
