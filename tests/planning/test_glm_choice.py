"""plan(family=): chances near those of calls, and the plan of dp_glm under the same name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.errors import ArgumentError
from dpreg.planning import Plan, RegressionPlan

NAMES = [f"x{j}" for j in range(6)]
SCHEMA = {**dict.fromkeys(NAMES, (-1, 1)), "g": ["u", "v", "w"], "y": bool, "k": (0, 20)}
RIGHT = " + ".join(NAMES)
TOLD = {"schema": SCHEMA, "mean": 0.5, "n": 5_000, "eps": 1, "delta": 1e-6}
EFFECTS = {"x0": 0.6, "x1": -0.3}


def table(n, seed, counts=False):
    rng = np.random.default_rng(seed)
    made = pd.DataFrame(rng.uniform(-1, 1, (n, len(NAMES))), columns=NAMES)
    made = made.assign(g="u", y=True, k=0)
    eta = 0.6 * made["x0"] - 0.3 * made["x1"]
    if counts:
        return made.assign(k=np.minimum(rng.poisson(np.exp(0.7 + eta)), 20))
    return made.assign(y=rng.random(n) < 1 / (1 + np.exp(-eta)))


@pytest.mark.parametrize(
    ("family", "response", "mean", "eps"),
    [("binomial", "y", 0.5, 1.0), ("poisson", "k", 2.1, 2.0)],
)
def test_chances_are_near_those_of_calls(family, response, mean, eps):
    formula = f"{response} ~ {RIGHT}"
    asked = {"family": family, "schema": SCHEMA, "delta": 1e-6}
    planned = dpreg.plan(EFFECTS, formula=formula, mean=mean, n=5_000, eps=eps, **asked)
    assert isinstance(planned, Plan)
    assert planned.each.index.tolist() == ["x0", "x1"]
    assert planned.each["x0"] >= planned.each["x1"]
    runs, found = 30, np.zeros(2)
    for seed in range(runs):
        rows = table(5_000, seed, counts=family == "poisson")
        chosen = dpreg.dp_select(formula, rows, eps, unsafe_seed=seed, fit=None, **asked).selected
        found += [name in chosen for name in EFFECTS]
    # fit=None leaves the choice the whole budget, as "same" does.
    whole = dpreg.plan(EFFECTS, formula=formula, mean=mean, n=5_000, eps=eps, fit=None, **asked)
    assert whole.found >= planned.found
    assert found / runs == pytest.approx(whole.each.to_numpy(), abs=0.25)


def test_errors_are_near_those_of_the_chosen_fit():
    planned = dpreg.plan(EFFECTS, family="binomial", formula=f"y ~ {RIGHT}", **{**TOLD, "eps": 4})
    assert planned.enough
    assert planned.errors.index.tolist() == ["Intercept", "x0", "x1"]
    asked = {"family": "binomial", "schema": SCHEMA, "delta": 1e-6}
    fits = [
        dpreg.dp_select(
            f"y ~ {RIGHT}", table(5_000, seed), 4, unsafe_seed=seed, false_inclusions=0.01, **asked
        )
        for seed in range(3)
    ]
    right = [fit for fit in fits if list(fit.selected) == ["Intercept", "x0", "x1"]]
    assert len(right) >= 2
    seen = np.mean([fit.regression.bse.to_numpy() for fit in right], axis=0)
    assert planned.errors["std err"].to_numpy() == pytest.approx(seen, rel=0.15)


def test_the_plan_of_a_regression_is_that_of_plan_glm():
    named = dpreg.plan(family="binomial", of="glm", formula=f"y ~ {RIGHT}", **TOLD)
    own = dpreg.plan_glm(f"y ~ {RIGHT}", **TOLD)
    assert isinstance(named, RegressionPlan)
    assert str(named) == str(own)
    least = dpreg.plan(
        family="poisson", of="glm", formula=f"k ~ {RIGHT}", **{**TOLD, "mean": 2, "n": None}
    )
    assert least.solved == "n"
    assert least.enough


def test_the_least_n_and_eps_reach_the_chance():
    asked = {**TOLD, "family": "binomial", "formula": f"y ~ {RIGHT} + g"}
    rows = dpreg.plan({"x0": 0.3, "g[T.w]": 0.5}, **{**asked, "n": None})
    assert rows.solved == "n"
    assert rows.found >= 0.8
    assert rows.each.index.tolist() == ["g", "x0"]
    fewer = dpreg.plan({"x0": 0.3, "g[T.w]": 0.5}, **{**asked, "n": int(0.9 * rows.n)})
    assert fewer.found < 0.8 or not fewer.enough
    eps = dpreg.plan({"x0": 0.3, "g[T.w]": 0.5}, **{**asked, "n": rows.n, "eps": None})
    assert eps.solved == "eps"
    assert float(eps.eps) == pytest.approx(1, rel=0.2)
    whole = dpreg.plan({"x0": 0.3, "g[T.w]": 0.5}, **{**asked, "n": rows.n}, fit=None)
    assert whole.found > rows.found


def test_what_is_not_earned_is_told():
    few = dpreg.plan(EFFECTS, family="binomial", formula=f"y ~ {RIGHT}", **{**TOLD, "n": 120})
    assert not few.enough
    assert "the table has 120" in few.notes[0]
    assert "Terms may be missed" in few.notes[0]
    page = str(few)
    for words in ("No data were used", "not of all", "chance of"):
        assert words in page
    assert "n=120" in repr(few)
    assert "<table" in few._repr_html_()
    kept = dpreg.plan(
        {"x1": -0.3}, family="binomial", formula=f"y ~ {RIGHT}", keep=("Intercept", "x0"), **TOLD
    )
    assert kept.errors.index.tolist() == ["Intercept", "x0", "x1"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"of": "ols"}, "of must be one of"),
        ({"sigma": 1}, "family= has no sigma"),
        ({"like": pd.DataFrame()}, "no like"),
        ({"method": "pcls"}, "method"),
        ({"mean": None}, "needs mean"),
        ({"schema": None}, "needs schema"),
        ({"effects": None}, "needs effects"),
        ({"effects": 0.3}, "mapping"),
        ({"effects": {"nix": 0.3}}, "nix"),
        ({"of": "glm"}, 'of="glm" has no effects'),
        ({"spread": 1}, "has no spread"),
        ({"keep": ("x0",)}, "Intercept"),
        ({"chance": 1}, "chance"),
        ({"fit": "share"}, "fit"),
        ({"n": None, "eps": None}, "give n, eps or both"),
        ({"family": None}, "without family= has no mean"),
        ({"family": "gamma"}, "family"),
    ],
)
def test_refusals(options, says):
    asked = {**TOLD, "formula": f"y ~ {RIGHT}", "family": "binomial", "effects": EFFECTS, **options}
    with pytest.raises(ArgumentError, match=says):
        dpreg.plan(asked.pop("effects"), **asked)


@pytest.mark.parametrize("given", [{}, {"effects": 0.3}])
def test_a_linear_plan_asks_for_effects_and_sigma(given):
    with pytest.raises(ArgumentError, match="needs"):
        dpreg.plan(given.get("effects"), n=100, eps=1)
