"""plan_glm: errors near those of calls, and verdicts that calls bear out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg import plan_glm
from dpreg.errors import ArgumentError, FormulaError, SchemaError

SCHEMA = {"a": (-1, 1), "b": (0, 10), "g": ["u", "v", "w"], "y": bool, "k": (0, 20)}
FORMULA = "y ~ a + b + g"


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    a, b, g = rng.uniform(-1, 1, n), rng.uniform(0, 10, n), rng.choice(["u", "v", "w"], n)
    eta = 0.8 * a + 0.16 * (b - 5) + 0.9 * (g == "w") - 0.3
    k = np.minimum(rng.poisson(np.exp(0.5 + eta / 2)), 20)
    y = rng.random(n) < 1 / (1 + np.exp(-eta))
    return pd.DataFrame({"a": a, "b": b, "g": g, "y": y, "k": k})


@pytest.mark.parametrize(
    ("formula", "family", "mean", "eps", "delta"),
    [
        (FORMULA, "binomial", 0.5, 1, 1e-6),
        (FORMULA, "binomial", 0.5, 4, 0),
        ("k ~ a + b + g", "poisson", 2.1, 2, 1e-6),
        ("k ~ a + b + g", "poisson", 2.1, 1, 0),
    ],
)
def test_errors_are_near_those_of_a_call(formula, family, mean, eps, delta):
    told = plan_glm(
        formula, schema=SCHEMA, mean=mean, n=20_000, eps=eps, delta=delta, family=family
    )
    assert told.enough
    assert told.notes == ()
    asked = {"delta": delta, "family": family, "schema": SCHEMA}
    rows = table(20_000)
    fits = [dpreg.dp_glm(formula, rows, eps, unsafe_seed=seed, **asked) for seed in range(3)]
    seen = np.mean([fit.bse.to_numpy() for fit in fits], axis=0)
    predicted = told.errors["std err"].to_numpy()
    assert told.errors.index.tolist() == fits[0].params.index.tolist()
    assert predicted == pytest.approx(seen, rel=0.3)
    assert (told.errors["without privacy"] < told.errors["std err"]).all()
    assert (told.errors["if skewed"] > told.errors["std err"])[1:].all()
    known = plan_glm(formula, schema=SCHEMA, like=table(20_000, 9), n=20_000, eps=eps, delta=delta,
                     family=family)  # fmt: skip
    assert known.errors["std err"].to_numpy() == pytest.approx(seen, rel=0.2)
    assert "if skewed" not in known.errors


def test_the_least_n_and_eps_are_met_by_calls(monkeypatch):
    monkeypatch.setattr("dpreg.planning.rows._MORE_DRAWS", 45)  # as plans draw
    rows = plan_glm(FORMULA, schema=SCHEMA, mean=0.5, eps=1, delta=1e-6)
    assert (rows.solved, rows.enough) == ("n", True)
    assert rows.notes == ()
    fewer = plan_glm(FORMULA, schema=SCHEMA, mean=0.5, eps=1, delta=1e-6, n=int(0.7 * rows.n))
    assert fewer.notes
    plenty = table(4 * rows.n)
    asked = {"delta": 1e-6, "schema": SCHEMA}
    fits = [dpreg.dp_glm(FORMULA, plenty, 1, unsafe_seed=seed, **asked) for seed in range(5)]
    assert sum(fit.bse.notna().all() for fit in fits) >= 4
    eps = plan_glm(FORMULA, schema=SCHEMA, mean=0.5, n=rows.n, delta=1e-6)
    assert eps.solved == "eps"
    assert float(eps.eps) == pytest.approx(1, rel=0.1)


def test_too_few_rows_and_rare_outcomes_are_told_with_what_is_needed():
    few = plan_glm(FORMULA, schema=SCHEMA, mean=0.5, n=100, eps="0.05", delta=1e-6)
    assert not few.enough
    assert few.errors.loc[few.errors["mark"] == "no interval", "std err"].isna().all()
    assert few.errors["without privacy"].notna().all()
    assert "columns need about" in few.notes[0]
    assert "no interval of" in few.notes[1]
    rare = plan_glm(FORMULA, schema=SCHEMA, mean=0.001, n=20_000, eps=1, delta=1e-6)
    usual = plan_glm(FORMULA, schema=SCHEMA, mean=0.5, n=20_000, eps=1, delta=1e-6)
    assert (rare.errors["std err"] > 5 * usual.errors["std err"]).all()
    page = str(few)
    for words in ("No data were used", "none", "no interval of"):
        assert words in page
    assert "no intervals" in repr(few)
    assert "<table" in few._repr_html_()


def test_smaller_spread_makes_larger_errors():
    asked = {"schema": SCHEMA, "mean": 0.5, "n": 20_000, "eps": 1, "delta": 1e-6}
    wide, narrow = plan_glm(FORMULA, **asked), plan_glm(FORMULA, **asked, sd={"b": 0.5})
    assert narrow.errors.loc["b", "std err"] > 3 * wide.errors.loc["b", "std err"]
    added = plan_glm(FORMULA, **asked, neighbors="add-remove")
    assert added.errors.loc["a", "privacy"] < wide.errors.loc["a", "privacy"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"n": None, "eps": None}, "give n, eps or both"),
        ({"mean": 1.5}, "mean must lie"),
        ({"mean": 0}, "mean"),
        ({"sd": {"nix": 1}}, "sd names 'nix'"),
        ({"family": "gamma"}, "family"),
        ({"noise": "gaussian"}, "needs delta"),
        ({"formula": "k ~ a"}, "between 0 and 1"),
        ({"formula": "y ~ a + nix"}, "nix"),
        ({"formula": "y ~ 1"}, "beside the intercept"),
    ],
)
def test_refusals(options, says):
    asked = {"formula": FORMULA, "schema": SCHEMA, "mean": 0.5, "n": 1000, "eps": 1, **options}
    with pytest.raises((ArgumentError, FormulaError, SchemaError), match=says):
        plan_glm(asked.pop("formula"), **asked)


def test_offset_exposure_and_trials_are_planned_as_they_are_called():
    rng = np.random.default_rng(3)
    n = 20_000
    rows = table(n).assign(t=rng.uniform(1, 9, n), m=rng.integers(1, 6, n))
    rows["k"] = np.minimum(rng.poisson(rows["t"] * np.exp(0.4 * rows["a"] - 1)), 20)
    rows["s"] = rng.binomial(rows["m"], 1 / (1 + np.exp(-rows["a"])))
    schema = SCHEMA | {"t": (1, 9), "m": (1, 5), "s": (0, 5)}
    for formula, more in (
        ("k ~ a + b", {"family": dpreg.Poisson(exposure="t")}),
        ("y ~ a + b", {"offset": "np.sqrt(t)"}),
        ("s ~ a + b", {"family": dpreg.Binomial(trials="m")}),
    ):
        asked = {"eps": 1, "delta": 1e-6, "schema": schema, **more}
        told = plan_glm(formula, n=n, like=rows, **asked)
        fits = [dpreg.dp_glm(formula, rows, unsafe_seed=seed, **asked).bse for seed in range(15)]
        assert told.errors["std err"].to_numpy() == pytest.approx(np.median(fits, axis=0), rel=0.2)
        made = plan_glm(formula, n=n, mean=0.5, **asked)
        assert made.errors["std err"].notna().all()


def test_like_takes_the_place_of_what_it_tells():
    asked = {"schema": SCHEMA, "n": 5_000, "eps": 1, "delta": 1e-6}
    rows = table(2_000)
    told = plan_glm(FORMULA, like=rows, **asked)
    assert told.errors.equals(plan_glm(FORMULA, like=rows, mean=0.1, **asked).errors)
    without = rows.drop(columns="y")
    assert plan_glm(FORMULA, like=without, mean=0.5, **asked).enough
    for more in ({"like": without}, {}, {"like": rows, "sd": {"a": 0.1}}):
        with pytest.raises(ArgumentError, match=r"mean|like"):
            plan_glm(FORMULA, **asked, **more)
