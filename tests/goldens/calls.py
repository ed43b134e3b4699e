"""Seeded calls whose law is to stay: their numbers and their pages are goldens.

Looks (``method="staged"`` and families) are left out: they are to change.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pandas as pd
from oracles.spelled import spelled
from results.write_saved_0_2 import SCHEMA
from results.write_saved_0_2 import drawn as drawn_anew

import dpreg

DELTA = "1e-6"
ROWS = 4000
CASES: dict[str, Callable[[], Any]] = {}
"""Calls by name; what they return is a released result."""


@cache
def drawn(rows: int) -> pd.DataFrame:
    """Draw a table once; no call changes it."""
    return drawn_anew(rows)


def _add(name: str, function: str, *given: Any, rows: int = ROWS, **options: Any) -> None:
    def call() -> Any:
        head, *rest = given
        told = {"schema": SCHEMA, "unsafe_seed": 1, **options}
        return getattr(dpreg, function)(head, *rest, drawn(rows), **spelled(function, told))

    assert name not in CASES, name
    CASES[name] = call


def _select(name: str, formula: str = "y ~ a + b + c + g", **options: Any) -> None:
    told = {"eps": 3, "method": "pcls", "fit": None, **options}
    _add(f"select {name}", "dp_select", formula, **told)


def _ols(name: str, formula: str = "y ~ a + b + c + g", **options: Any) -> None:
    _add(f"ols {name}", "dp_ols", formula, **{"eps": 2, "method": "gram", **options})


def _without(column: str) -> dict[str, Any]:
    return {name: how for name, how in SCHEMA.items() if name != column}


def _trimmed(block: pd.DataFrame) -> list[float]:
    """An estimator of a block."""
    return [float(block["a"].mean()), float(block["long"].clip(upper=30).mean())]


WIDE = "y ~ (a + b + c + twin + long + hours + times + tries)**2"
RELATIONS = {
    "replace-one": {"neighbors": "replace-one"},
    "add-remove": {"neighbors": "add-remove"},
    "three rows": {"contributions": 3, "eps": 9},
    "persons": {"contributions": 3, "person": "who", "eps": 9},
}

for _relation, _told in RELATIONS.items():
    _select(f"pcls, {_relation}", **{"eps": 3, "fit": "split", **_told})
    _ols(f"gram, {_relation}", **_told)
    _add(f"mean, {_relation}", "dp_mean", ["a", "long"], **{"eps": 1, **_told})
    _add(f"quantile, {_relation}", "dp_quantile", "long", [0.1, 0.5], **{"eps": 2, **_told})
    _add(f"histogram, {_relation}", "dp_histogram", "long", **{"eps": 1, **_told})
    _add(
        f"aggregate, {_relation}",
        "sample_aggregate",
        _trimmed,
        **{"eps": 9, "bounds": [(-3, 3), (0, 30)], "blocks": 40, **_told},
    )

for _mechanism in ("permute-and-flip", "exponential", "laplace"):
    _select(f"pcls, {_mechanism}", mechanism=_mechanism)
    _select(f"pcpl, {_mechanism}", method="pcpl", mechanism=_mechanism, delta=DELTA, eps=60)
    if _mechanism != "laplace":
        _select(f"tree, {_mechanism}", WIDE, mechanism=_mechanism, engine="tree", eps=40)
_select("pcls, share", fit="share", sigma2="private", eps=6)
_select("pcls, bought", schema=_without("b"), radius="private", sigma2="0.05", eps=6)
_select("pcls, bic and no centre", penalty="bic", sigma2="private", keep=(), center=False)
_select("pcls, a penalty", penalty="1e-3", radius="0.25", max_terms=2, clip="0.5")
_select("pcls, columns", "y ~ a * g + b", units="column", hierarchy="strong", eps=20)
_select("pcls, draws", draws=30, delta=DELTA, mechanism="exponential", eps=20)
_select("tree, draws by column", WIDE, engine="tree", draws=5, units="column", eps=100)
_select("tree, strong hierarchy", WIDE, engine="tree", hierarchy="strong", max_terms=6, eps=60)
_select("tree, split", WIDE, engine="tree", fit="split", neighbors="add-remove", eps=60)
_select("pcpl, split", method="pcpl", delta=DELTA, fit="split", eps=60)

for _noise in ("laplace", "matrix-laplace"):
    _ols(f"gram, {_noise}", noise=_noise)
_ols("gram, gaussian", noise="gaussian", delta=DELTA)
_ols("gram, bought", schema=_without("b"), shares={"bounds": "0.2"})
_ols("gram, transformed", "y ~ np.log(hours) * a + I(b**2) - 1")
_ols("gram, no centre, clipped", center=False, clip="0.5")
_ols("gram, few rows", "y ~ a", rows=300, eps=1)
_ols("gram, levels", "y ~ a + town", delta=DELTA)
_ols("gram, levels without an intercept", "y ~ town - 1", neighbors="add-remove")
for _scaling in ("box", "row-norm", "row-norm-xy", "max-norm"):
    _ols(f"ssp, {_scaling}", method="ssp", scaling=_scaling, delta=DELTA)
    _ols(f"adassp, {_scaling}", method="adassp", scaling=_scaling, delta=DELTA)
for _method, _noise in (("ssp", "classical"), ("adassp", "wang"), ("adassp", "classical")):
    _ols(f"{_method}, {_noise}", method=_method, noise=_noise, delta=DELTA, eps="0.5")

_add("mean, gaussian by g", "dp_mean", ["a", "b"], eps=1, delta=DELTA, noise="gaussian", by="g")
_add("mean, complete", "dp_mean", ["a", "b"], eps=1, complete=True)
for _family, _column in (
    ("gaussian", "a"),
    ("bernoulli", "won"),
    ("poisson", "times"),
    ("exponential", "long"),
):
    _add(f"suffstats, {_family}", "dp_suffstats", _column, eps=1, family=_family)
_add("suffstats, gaussian noise", "dp_suffstats", "a", eps=1, delta=DELTA, by="g")
_add("quantile, by g", "dp_quantile", ["a"], 0.5, eps=6, by="g")
_add("quantile, alpha", "dp_quantile", ["a", "b"], 0.9, eps=6, alpha=0.5, complete=True)
_add("histogram, bins", "dp_histogram", "a", eps=1, bins=7)
_add("histogram, by g", "dp_histogram", "a", eps=3, by="g", delta=DELTA, noise="gaussian", bins=5)
_add("aggregate, winsorized", "sample_aggregate", _trimmed, eps=60, bounds=[(-3, 3), (0, 30)])
_add(
    "aggregate, by g",
    "sample_aggregate",
    _trimmed,
    eps=60,
    bounds=[(-3, 3), (0, 30)],
    by="g",
    aggregation="mean",
    correct_bias=False,
)


def _study(**options: Any) -> Any:
    told = {"schema": SCHEMA, "eps": ("0.5", 5), "draws": 30, **options}
    told = spelled("selection_study", told)
    return dpreg.selection_study("y ~ a + b + c + g", drawn(ROWS), **told)


STUDIES: dict[str, Callable[[], Any]] = {
    "study of pcls": lambda: _study(mechanism=("permute-and-flip", "laplace")),
    "study of radii": lambda: _study(radius=("0.5", 2), penalty=("bic", 0), sigma2="0.05"),
    "the paper's simulation": lambda: dpreg.simulation_study(
        [1, 0, 0.5, 0], n=(100, 1000), datasets=20, radius=(1, 2.5), eps=(1, 10), empty=True
    ),
}
"""Calls whose results are the curator's, or simulated: printed, and never released."""
