"""plan_glm: errors near those of calls, and verdicts that calls bear out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg import plan_glm
from dpreg.errors import ArgumentError, DpregWarning, FormulaError, SchemaError

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
    ],
)
def test_errors_are_near_those_of_a_call(formula, family, mean, eps, delta):
    told = plan_glm(
        formula, schema=SCHEMA, mean=mean, n=20_000, eps=eps, delta=delta, family=family
    )
    assert told.enough
    assert len(told.notes) == (not delta)  # pure eps may end in coefficients alone
    asked = {"delta": delta, "family": family, "schema": SCHEMA}
    rows = table(20_000)
    fits = [dpreg.dp_glm(formula, rows, eps, unsafe_seed=seed, **asked) for seed in range(3)]
    seen = np.mean([fit.bse.to_numpy() for fit in fits], axis=0)
    predicted = told.errors["std err"].to_numpy()
    assert told.errors.index.tolist() == fits[0].params.index.tolist()
    ratio = predicted[1:] / seen[1:]
    assert 0.7 < np.exp(np.log(ratio).mean()) < 1.4
    assert (told.errors["without privacy"] <= told.errors["sampling"] * 1.05).all()


def test_the_least_n_and_eps_are_met_by_calls():
    rows = plan_glm(FORMULA, schema=SCHEMA, mean=0.5, eps=1, delta=1e-6)
    assert (rows.solved, rows.enough) == ("n", True)
    assert not plan_glm(
        FORMULA, schema=SCHEMA, mean=0.5, eps=1, delta=1e-6, n=int(0.9 * rows.n)
    ).enough
    plenty = table(4 * rows.n)
    asked = {"delta": 1e-6, "schema": SCHEMA}
    fits = [dpreg.dp_glm(FORMULA, plenty, 1, unsafe_seed=seed, **asked) for seed in range(5)]
    assert sum(fit.bse.notna().all() for fit in fits) >= 4
    eps = plan_glm(FORMULA, schema=SCHEMA, mean=0.5, n=rows.n, delta=1e-6)
    assert eps.solved == "eps"
    assert float(eps.eps) == pytest.approx(1, rel=0.1)


def test_too_few_rows_and_rare_outcomes_are_told_with_what_is_needed():
    few = plan_glm(FORMULA, schema=SCHEMA, mean=0.5, n=300, eps="0.5", delta=1e-6)
    assert not few.enough
    assert few.errors["std err"].isna().all()
    assert few.errors["without privacy"].notna().all()
    assert "too few" in few.notes[0]
    rare = plan_glm(FORMULA, schema=SCHEMA, mean=0.001, n=20_000, eps=1, delta=1e-6)
    assert not rare.enough
    assert "rare" in rare.notes[0]
    more = plan_glm(FORMULA, schema=SCHEMA, mean=0.001, eps=1, delta=1e-6)
    assert more.n > 50_000
    page = str(few)
    for words in ("No data were used", "none", "too few"):
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


def test_coefficients_alone_are_foretold():
    asked = {"schema": SCHEMA, "mean": 0.5, "n": 400, "eps": 2}
    few = plan_glm(FORMULA, **asked)
    assert (few.enough, few.mechanism) == (False, "objective perturbation")
    assert "too few" in few.notes[0]
    assert "objective perturbation" in few.notes[1]
    with pytest.warns(DpregWarning, match="too few"):
        assert dpreg.dp_glm(FORMULA, table(400), 2, schema=SCHEMA).method == "objective"
    looked = plan_glm(FORMULA, **asked, noise="matrix-laplace")
    assert looked.mechanism == "matrix-laplace"
    assert plan_glm(FORMULA, **{**asked, "n": 20_000, "eps": 4}).mechanism == "matrix-laplace"


def test_that_enough_rows_may_still_give_coefficients_alone_is_foretold():
    asked = {"schema": SCHEMA, "mean": 0.5, "eps": 2}
    needed = plan_glm(FORMULA, **asked).n
    just, plenty = (plan_glm(FORMULA, **asked, n=rows) for rows in (needed, 2 * needed))
    for told in (just, plenty):
        assert told.enough
        assert "may still release coefficients alone, without intervals" in told.notes[-1]
    assert "the noise would hide a direction" in just.notes[-1]
    assert "the noise would hide a direction" not in plenty.notes[-1]
    # A wide column whose rows all lie near each other: the noise hides it.
    narrow = table(needed).assign(b=lambda rows: 5 + (rows["b"] - 5) / 50)
    fits = [dpreg.dp_glm(FORMULA, narrow, 2, schema=SCHEMA, unsafe_seed=seed) for seed in range(3)]
    assert sum("after two looks" in " ".join(fit.notes) for fit in fits) >= 2
    for other in ({"noise": "matrix-laplace"}, {"delta": 1e-6}, {"neighbors": "add-remove"}):
        assert plan_glm(FORMULA, **asked, **other, n=2 * needed).notes == ()
