"""Fits of some rows, of weighted rows, with an offset, and the errors that may be asked for."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import dpreg
from dpreg.errors import ArgumentError, DpregError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger

SCHEMA = {
    "y": (-20, 40), "x": (0, 10), "g": ["a", "b"], "w": (0, 5), "z": (-3, 3), "op": ["in", "bay"],
    "won": (0, 1),
}  # fmt: skip
TEST = "op == 'in'"
GIVEN = {"delta": 1e-6, "schema": SCHEMA}


def rows(n=12000, seed=0):
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"x": rng.uniform(0, 10, n), "g": rng.choice(["a", "b"], n)})
    data["w"] = rng.choice([0.2, 1, 5], n, p=[0.5, 0.3, 0.2])
    data["z"] = rng.normal(0, 1, n).clip(-3, 3)
    data["op"] = rng.choice(["in", "bay"], n)
    curve = 0.1 * (data["x"] - 5) ** 2 * (data["w"] > 2)
    inside = np.where(data["op"] == "in", 0.5, -0.5)
    data["y"] = 1 + inside * data["x"] + curve + (data["g"] == "b") + data["z"]
    data["y"] += rng.normal(0, 1, n) * (1 + data["x"] / 10)
    data["won"] = (rng.random(n) < 1 / (1 + np.exp(-inside * (data["x"] - 5)))) * 1.0
    data["who"] = np.arange(n) // 2
    return data


CALLS = {
    "ols": lambda d, **o: dpreg.dp_ols("y ~ x + g", d, **GIVEN, **o),
    "gram": lambda d, **o: dpreg.dp_ols("y ~ x + g", d, method="gram", **GIVEN, **o),
    "objective": lambda d, **o: dpreg.dp_ols("y ~ x", d, schema=SCHEMA, method="objective", **o),
    "glm": lambda d, **o: dpreg.dp_glm("won ~ x", d, **GIVEN, **o),
    "select": lambda d, **o: dpreg.dp_select("y ~ x + g + z", d, **GIVEN, **o).regression,
    "pcls": lambda d, **o: (
        dpreg.dp_select("y ~ x + g", d, schema=SCHEMA, method="pcls", **o).regression
    ),
    "family": lambda d, **o: (
        dpreg.dp_select("won ~ x", d, family="binomial", **GIVEN, **o).regression
    ),
}
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@each_call
def test_a_fit_of_some_rows_is_that_of_a_table_of_them(call):
    data = rows()
    inside = call(data, eps=1e4, where=TEST, unsafe_seed=1)
    beforehand = call(data[data["op"] == "in"], eps=1e4, unsafe_seed=1)
    assert np.allclose(inside.params, beforehand.params, atol=0.15)
    assert inside.nobs == len(data) or inside.fit == "split"
    assert abs(inside.params["x"] - call(data, eps=1e4, unsafe_seed=1).params.get("x", 0)) > 0.2


@pytest.mark.parametrize("name", ["ols", "glm"])
def test_all_rows_of_persons_are_tested_one_by_one(name):
    data = rows()
    inside = CALLS[name](data, eps=1e4, where=TEST, person="who", unsafe_seed=1)
    beforehand = CALLS[name](data[data["op"] == "in"], eps=1e4, person="who", unsafe_seed=1)
    assert np.allclose(inside.params, beforehand.params, atol=0.15)
    assert inside.nobs is None


@each_call
def test_a_test_is_refused_before_the_charge(call):
    ledger = Ledger(Budget(9, "1e-3"))
    with pytest.raises(ArgumentError, match="not one of the declared levels"):
        call(rows(), eps=1, where="op == 'out'", budget=ledger)
    assert ledger.spent == Budget(0)


def test_weights_and_an_offset_are_those_of_statsmodels_and_errors_are_robust():
    data = rows()
    exact = smf.wls("I(y - z) ~ x * g", data, weights=data["w"]).fit(cov_type="HC0")
    call = {**GIVEN, "weights": "w", "offset": "z", "unsafe_seed": 2}
    near = dpreg.dp_ols("y ~ x * g", data, 1e5, **call)
    assert np.allclose(near.params, exact.params[near.params.index], atol=0.01)
    assert np.allclose(near.bse, exact.bse[near.params.index], rtol=0.2)
    assert list(near.params.index) == ["Intercept", "g[T.b]", "x", "x:g[T.b]"]
    assert np.isnan(near.rsquared)
    assert any("weighted by w" in note for note in near.notes)
    fitted = exact.predict(data.head(3))
    assert np.allclose(near.predict(data.head(3)), fitted, atol=0.02)
    held = [
        (ci[0] <= exact.params[ci.index]) & (exact.params[ci.index] <= ci[1])
        for ci in (
            dpreg.dp_ols("y ~ x * g", data, 1, **{**call, "unsafe_seed": s}).conf_int()
            for s in range(12)
        )
    ]
    assert np.mean(held) > 0.85


def test_weights_beyond_the_cap_count_as_it_and_rows_without_weight_for_nothing():
    data = rows()
    call = {**GIVEN, "weights": "w", "unsafe_seed": 3}
    capped = dpreg.dp_ols("y ~ x", data, 1e5, **{**call, "schema": {**SCHEMA, "w": (0, 1)}})
    exact = smf.wls("y ~ x", data, weights=data["w"].clip(0, 1)).fit()
    assert np.allclose(capped.params, exact.params, atol=0.02)
    data.loc[data["op"] == "bay", "w"] = 0.0
    none = dpreg.dp_ols("y ~ x", data, 1e5, **call)
    exact = smf.wls("y ~ x", data, weights=data["w"]).fit()
    assert np.allclose(none.params, exact.params, atol=0.02)
    clustered = dpreg.dp_ols("y ~ x", data, 1e5, person="who", **call)
    assert np.allclose(clustered.params, exact.params, atol=0.05)
    assert clustered.cov_type == "cluster"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"weights": "w", "schema": {**SCHEMA, "w": (-1, 5)}}, "from 0 up to a cap"),
        ({"weights": "w", "schema": {k: v for k, v in SCHEMA.items() if k != "w"}}, "a cap"),
        ({"weights": "x"}, "weights must be one column or expression that is not a term"),
        ({"weights": "g"}, "weights: declare bounds"),
        ({"weights": rows(9)["w"]}, "weights must be"),
        ({"weights": "w", "method": "gram"}, "weights need looks"),
        ({"offset": "x"}, "offset must be one column or expression that is not a term"),
        ({"offset": "nobody"}, "nobody"),
        ({"offset": [52311.25]}, "offset must be"),
        ({"cov_type": "HC1"}, "White's, without a correction"),
        ({"cov_type": "HAC"}, "not released"),
        ({"cov_type": "cluster"}, 'give person= for "cluster"'),
        ({"cov_type": "HC", "person": "who"}, 'leave person out for "HC"'),
        ({"cov_type": "HC", "method": "gram"}, '"nonrobust"'),
        ({"cov_type": "HC", "method": "objective"}, "coefficients alone"),
    ],
)
def test_what_cannot_be_had_is_refused_before_the_charge_with_the_reason(given, said):
    ledger = Ledger(Budget(9, "1e-3"))
    formula = "y ~ z" if str(given.get("weights")) == "g" else "y ~ x"
    with pytest.raises(DpregError, match=said) as caught:
        dpreg.dp_ols(formula, rows(), 1, budget=ledger, **{**GIVEN, **given})
    assert "52311" not in str(caught.value)
    assert ledger.spent == Budget(0)


def test_the_errors_that_are_asked_for_are_those_that_are_given():
    data = rows()
    assert dpreg.dp_ols("y ~ x", data, 1, cov_type="HC", **GIVEN).cov_type == "HC"
    gram = dpreg.dp_ols("y ~ x", data, 1, cov_type="nonrobust", **GIVEN)
    assert gram.method == "gram"
    assert gram.cov_type == "nonrobust"
    clustered = dpreg.dp_ols("y ~ x", data, 1, cov_type="cluster", person="who", **GIVEN)
    assert clustered.cov_type == "cluster"
