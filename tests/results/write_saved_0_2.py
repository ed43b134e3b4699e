"""Writes ``saved-0.2``: every kind of result of dpreg 0.2, from tables that are drawn here.

The results were written by the wheel of 0.2, which is built again from its commit (6a0ced8) by

    git worktree add --detach ../dpreg-0.2 6a0ced8
    pip wheel --no-deps --no-build-isolation --wheel-dir ../keep ../dpreg-0.2
    pip install --no-deps --target ../keep/site ../keep/dpreg-0.2.0-py3-none-any.whl

(the last two leave an editable install alone), and were then told to write:

    PYTHONPATH=../keep/site python tests/results/write_saved_0_2.py

With ``--said`` the results that lie there are loaded by the dpreg that is installed, and only what
they say and predict is written anew: for a page that is to change its words, never its numbers.

Each call has ``unsafe_seed``: nothing in these files is private, and no row describes anyone.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpreg
from dpreg.results.base import from_json

FOLDER = Path(__file__).parent / "saved-0.2"
DELTA = "1e-6"
SCHEMA: dict[str, Any] = {
    "a": (-3, 3),
    "b": (-3, 3),
    "c": (-3, 3),
    "twin": (-4, 4),
    "long": (0, 60),
    "g": ["u", "v", "w"],
    "town": [f"t{i}" for i in range(9)],
    "y": (-10, 10),
    "won": bool,
    "times": (0, 40),
    "hours": (0.5, 4),
    "tries": (0, 6),
    "hits": (0, 6),
}


def drawn(rows: int, seed: int = 0) -> pd.DataFrame:
    """Draw a table with a response of every kind, a rare level, and two columns that are twins."""
    rng = np.random.default_rng(seed)
    a, b, c = np.clip(rng.normal(size=(3, rows)), -3, 3)
    g = rng.choice(["u", "v", "w"], rows, p=[0.6, 0.38, 0.02])
    town = rng.integers(0, 9, rows)
    hours, tries = rng.uniform(0.5, 4, rows), rng.integers(0, 7, rows)
    line = 0.8 * a - 0.5 * b + 0.6 * (g == "v")
    chance = 1 / (1 + np.exp(-line))
    return pd.DataFrame(
        {
            "a": a,
            "b": b,
            "c": c,
            "twin": np.clip(a + 0.15 * rng.normal(size=rows), -4, 4),
            "long": rng.gamma(1.5, 6, rows).clip(0, 60),
            "g": g,
            "town": [f"t{i}" for i in town],
            "y": np.clip(1 + line + rng.normal(size=rows), -10, 10),
            "won": rng.random(rows) < chance,
            "times": rng.poisson(hours * np.exp(0.4 * line)).clip(0, 40),
            "hours": hours,
            "tries": tries,
            "hits": rng.binomial(tries, chance),
            "who": [f"p{i}" for i in rng.integers(0, rows // 2 + 1, rows)],
        }
    )


def _centres(block: pd.DataFrame) -> list[float]:
    """An estimator of a block."""
    return [float(block["a"].mean()), float(block["b"].median())]


Call = Callable[[], Any]
CALLS: dict[str, Call] = {}
"""Every call by its name, which is its file's."""


def _call(name: str, function: str, *given: Any, rows: int = 8000, **options: Any) -> None:
    def call() -> Any:
        told = {"schema": SCHEMA, "unsafe_seed": 1, **options}
        head, *rest = given
        return getattr(dpreg, function)(head, *rest, drawn(rows), **told)

    assert name not in CALLS
    CALLS[name] = call


def _without(column: str) -> dict[str, Any]:
    return {name: how for name, how in SCHEMA.items() if name != column}


def _ols(name: str, formula: str = "y ~ a + b + c + g", **options: Any) -> None:
    _call(f"ols-{name}", "dp_ols", formula, **{"eps": 2, **options})


def _glm(name: str, formula: str, **options: Any) -> None:
    _call(f"glm-{name}", "dp_glm", formula, **{"eps": 4, **options})


def _select(name: str, formula: str = "y ~ a + b + c + g", **options: Any) -> None:
    _call(f"select-{name}", "dp_select", formula, **{"eps": 3, **options})


_ols("looks-delta", delta=DELTA, method="staged")
_ols("looks-pure", method="staged", rows=20_000)
_ols("looks-laplace", method="staged", noise="matrix-laplace", rows=20_000)
_ols("looks-add-remove", delta=DELTA, neighbors="add-remove", expected_rows=8000)
_ols("looks-weak", "y ~ a + b + c + twin + g", method="staged", rows=1500, eps="0.7")
_ols("looks-tails", "long ~ a * g + b + I(c**2)", delta=DELTA, method="staged")
_ols("looks-person", delta=DELTA, method="staged", person="who", contributions=3, eps=6)
_ols("looks-bought", schema=_without("b"), delta=DELTA, method="staged", eps=4)
_ols("objective", method="objective", rows=500)
_ols("gram-delta", "y ~ a + b", method="gram", delta=DELTA)
_ols("gram-knorm", "y ~ a", method="gram", noise="knorm")
_ols("gram-laplace", "y ~ a", method="gram", noise="laplace")
_ols("gram-matrix-laplace", "y ~ a", method="gram", noise="matrix-laplace")
_ols("gram-person", "y ~ a", method="gram", person="who", contributions=2, neighbors="add-remove")
_ols("gram-levels", "y ~ town", delta=DELTA, method="gram")
_ols("gram-few", "y ~ g", method="gram", rows=200, eps="0.5")
_ols("ssp", method="ssp", delta=DELTA, scaling="row-norm")
_ols("adassp", method="adassp", delta=DELTA)

_glm("binomial-delta", "won ~ a + b + c + g", delta=DELTA)
_glm("binomial-pure", "won ~ a + b + c", rows=20_000)
_glm("binomial-alone", "won ~ a + b + c", rows=400, eps="4.5")
_glm("binomial-moving", "won ~ a + b + c", rows=600, eps="4.5")
_glm("poisson-alone", "times ~ a + b + c", family="poisson", rows=300, eps=2)
_glm("few-pure", "won ~ a + b + c", rows=300, eps=2)
_glm("binomial-offset", "won ~ a + b", delta=DELTA, offset="I(c / 4)")
_glm("binomial-trials", "hits ~ a + b", delta=DELTA, trials="tries")
_glm("poisson-delta", "times ~ a + b + g", delta=DELTA, family="poisson")
_glm(
    "poisson-cap",
    "times ~ a",
    delta=DELTA,
    family="poisson",
    response_cap=30,
    schema=_without("times"),
)
_glm("poisson-pure", "times ~ a + b", family="poisson", rows=20_000)
_glm("poisson-exposure", "times ~ a + b", delta=DELTA, family="poisson", exposure="hours")
_glm("quasipoisson", "times ~ a + b + c", delta=DELTA, family="quasipoisson")
_glm("few", "won ~ a + b + c + g", delta=DELTA, rows=400, eps="0.5")

for _fit in ("same", "fresh", "split", None):
    _select(f"looks-delta-{_fit}", method="staged", delta=DELTA, fit=_fit)
    _select(f"looks-pure-{_fit}", method="staged", fit=_fit, rows=20_000)
    _select(f"binomial-{_fit}", "won ~ a + b + c", family="binomial", delta=DELTA, fit=_fit)
_select("binomial-pure", "won ~ a + b + c", family="binomial", rows=20_000, eps=6)
_select("poisson", "times ~ a + b + c", family="poisson", delta=DELTA, exposure="hours")
_select("looks-twins", "y ~ a + b + c + twin", method="staged", delta=DELTA, eps=1)
_select("looks-column", "y ~ a * b + g", method="staged", delta=DELTA, units="column", eps=6)
_select("looks-hierarchy", "y ~ a * b + g", method="staged", delta=DELTA, hierarchy="strong")
_select("pcls-split", "y ~ a + b + c", method="pcls", fit="split", radius="private")
_select("pcls-share", "y ~ a + c", method="pcls", fit="share", sigma2="private", eps=6)
_select("pcls-none", method="pcls", fit=None, mechanism="exponential", keep=())
_select("pcls-draws", method="pcls", draws=12, delta=DELTA, eps=20, neighbors="add-remove")
_select("pcls-tree", method="pcls", engine="tree", draws=4, units="column", fit=None, eps=30)
_select("pcpl", "y ~ a + c", method="pcpl", delta=DELTA, eps=60)

_call("mean", "dp_mean", ["a", "long"], eps=1)
_call("mean-by", "dp_mean", ["a"], eps=2, delta=DELTA, noise="gaussian", by="g")
_call("suffstats-gaussian", "dp_suffstats", "a", eps=1)
_call("suffstats-bernoulli", "dp_suffstats", "won", eps=1, family="bernoulli")
_call("suffstats-poisson", "dp_suffstats", "times", eps=1, family="poisson")
_call("suffstats-exponential", "dp_suffstats", "long", eps=1, family="exponential")
_call("quantile", "dp_quantile", ["a", "long"], [0.25, 0.5], eps=4)
_call("quantile-by", "dp_quantile", ["long"], 0.5, eps=4, by="g", neighbors="add-remove")
_call("histogram", "dp_histogram", "long", eps=1)
_call("histogram-by", "dp_histogram", "a", eps=2, delta=DELTA, bins=6, by="g", noise="gaussian")
_call("aggregate", "sample_aggregate", _centres, eps=4, bounds=[(-3, 3), (-3, 3)], blocks=50)
_call(
    "aggregate-by",
    "sample_aggregate",
    _centres,
    eps=60,
    bounds=[(-3, 3), (-3, 3)],
    by="g",
    aggregation="winsorized",
)


ROWS = pd.DataFrame(
    {
        "a": [0.0, 1.5, -2.0],
        "b": [0.5, -1.0, 2.5],
        "c": [-0.5, 0.0, 3.0],
        "twin": [0.1, 1.4, -2.2],
        "g": ["u", "v", "w"],
        "town": ["t0", "t3", "t8"],
        "hours": [1.0, 2.0, 0.5],
        "tries": [1, 2, 3],
    }
)
"""What is predicted for."""


def said(result: Any) -> dict[str, Any]:
    """Return what is held against a loaded result: what it predicts, and its intervals."""
    told: dict[str, Any] = {}
    for name, ask in {
        "params": lambda: result.params,
        "bse": lambda: result.bse,
        "intervals": lambda: result.conf_int(),
        "predictions": lambda: result.predict(ROWS),
        "errors": lambda: result.get_prediction(ROWS).summary_frame(),
    }.items():
        try:
            told[name] = np.asarray(ask(), dtype=float).round(9).tolist()
        except (dpreg.errors.DpregError, AttributeError) as refusal:
            told[name] = type(refusal).__name__
    return told


def saved(name: str) -> Any:
    """Load a result; files are packed, as draws of intervals are long."""
    return from_json(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()).decode())


def charge_ledger() -> dict[str, Any]:
    """Write a ledger with caps of every kind and some charges; return what it is to verify as."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        ledger = dpreg.Ledger(
            dpreg.Budget(10, "1e-5"), path, analyst_cap={"ann": 4, "ben": 3}, period_cap=9
        )
        for name, eps in (("ann", "0.1"), ("ben", "1/3"), ("ann", "2.5")):
            ledger.charge(dpreg.Budget(Fraction(eps)), f"a mean for {name}", analyst=name)
        told = {"head": ledger.head, "spent": str(ledger.spent), "identity": ledger.identity}
        ledger.close()
        (FOLDER / "ledger.db.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    return told


def write(*, anew: bool) -> None:
    """Write every result, or with `anew` False only what the saved ones say."""
    FOLDER.mkdir(exist_ok=True)
    if anew:
        for name, call in CALLS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", dpreg.errors.DpregWarning)
                text = call().to_json()
            (FOLDER / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        (FOLDER / "ledger.json").write_text(json.dumps(charge_ledger()) + "\n")
    answers = {}
    for name in sorted(CALLS):
        result = saved(name)
        (FOLDER / f"{name}.txt").write_text(f"{result.summary()}\n")
        answers[name] = said(result)
    lines = [f"{json.dumps(name)}: {json.dumps(told)}" for name, told in answers.items()]
    (FOLDER / "said.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write(anew="--said" not in sys.argv[1:])
