"""Every public name of a fitted statsmodels OLS result gives a value, or NotReleased with why."""

import inspect

import numpy as np
import pandas as pd
import pytest
from statsmodels.formula import api as smf
from statsmodels.iolib.summary2 import summary_col

import dpreg
from dpreg.errors import NotReleased
from dpreg.results.contrast import WaldTest
from dpreg.results.regression import RegressionResults
from dpreg.results.selection import SelectionResults

SCHEMA = {"y": (-6, 6), "a": (-3, 3), "b": (-3, 3), "g": ["u", "v", "w"]}
CALL = {"formula": "y ~ a + b + g", "schema": SCHEMA, "unsafe_seed": 5}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.uniform(-3, 3, (4000, 2)), columns=["a", "b"])
    frame["g"] = rng.choice(["u", "v", "w"], 4000)
    frame["y"] = 1 + frame["a"] - (frame["g"] == "v") + rng.normal(0, 0.5, 4000)
    return frame


@pytest.fixture(scope="module")
def theirs(rows):
    return smf.ols("y ~ a + b + g", rows).fit(use_t=False)


PUBLIC = [
    name
    for name in dir(smf.ols("y ~ a", pd.DataFrame({"y": [1.0, 2, 4], "a": [1.0, 2, 3]})).fit())
    if not name.startswith("_")
]

CALLS = {
    "gram": lambda rows: dpreg.dp_ols(data=rows, eps=1000, method="gram", **CALL),
    "gram-matrix-laplace": lambda rows: dpreg.dp_ols(
        data=rows, eps=1000, method=dpreg.Gram(noise="matrix-laplace"), **CALL
    ),
    "gram-ridged": lambda rows: dpreg.dp_ols(
        data=rows, eps="0.05", method=dpreg.Gram(noise="laplace"), **CALL
    ),
    "gram-private-n": lambda rows: dpreg.dp_ols(
        data=rows, eps=1000, method="gram", neighbors="add-remove", **CALL
    ),
    "adaptive": lambda rows: dpreg.dp_ols(data=rows, eps=1000, method="adaptive", **CALL),
    "adaptive-gaussian": lambda rows: dpreg.dp_ols(
        data=rows, eps=1000, delta=1e-6, method="adaptive", **CALL
    ),
    "adassp": lambda rows: dpreg.dp_ols(data=rows, eps=1000, delta=1e-6, method="adassp", **CALL),
    "objective": lambda rows: dpreg.dp_ols(data=rows, eps=1000, method="objective", **CALL),
    "select-same": lambda rows: dpreg.dp_select(data=rows, eps=1000, method="adaptive", **CALL),
    "select-split": lambda rows: dpreg.dp_select(
        data=rows, eps=1000, method="pcls", fit="split", **CALL
    ),
    "select-share": lambda rows: dpreg.dp_select(
        data=rows, eps=1000, method="pcls", fit="share", **CALL
    ),
    "select-none": lambda rows: dpreg.dp_select(
        data=rows, eps=1000, method="pcls", fit=None, **CALL
    ),
}


@pytest.fixture(scope="module", params=list(CALLS))
def ours(request, rows):
    return CALLS[request.param](rows)


@pytest.mark.parametrize("name", PUBLIC)
def test_each_name_gives_a_value_or_its_reason(ours, name):
    try:
        assert getattr(ours, name) is not None or name == "nobs"
    except NotReleased as reason:
        text = str(reason)
        assert text.startswith(f"{name} ")
        assert len(text) > len(name) + 30, "the reason is missing"
        assert text.endswith(".")


def kind_of(result):
    if isinstance(result, SelectionResults):
        if result.regression is None:
            return "select-none"
        return "given the choice" if result.regression.conditional else "select"
    return "fixed"


TESTS = ("t_test", "t_test_pairwise", "wald_test", "wald_test_terms")
CANNOT = {
    "given the choice": ("cov_params", "get_prediction", *TESTS),
    "select-none": ("conf_int", "cov_params", "get_prediction", "predict", "summary2", *TESTS),
}

ARGUMENTS = {
    "conf_int": ((), {"alpha": 0.1, "cols": [0, 1]}),
    "t_test": (("a = 0",), {}),
    "t_test_pairwise": (("g",), {}),
    "wald_test": (("a = 3 * Intercept = 0",), {}),
    "summary": ((), {"yname": "Y", "title": "A title"}),
    "summary2": ((), {"yname": "Y", "title": "A title"}),
}


@pytest.mark.parametrize(
    "name",
    [
        "conf_int", "cov_params", "get_prediction", "predict", "remove_data", "summary", "summary2",
        "t_test", "t_test_pairwise", "wald_test", "wald_test_terms",
    ],
)  # fmt: skip
def test_each_method_answers_or_gives_its_reason(ours, rows, name):
    args, options = ARGUMENTS.get(name, ((), {}))
    if name in ("predict", "get_prediction"):
        args = (rows.head(3),)
    if name in CANNOT.get(kind_of(ours), ()):
        with pytest.raises(NotReleased, match=f"^{name} is not released: .{{30}}"):
            getattr(ours, name)(*args, **options)
        return
    found = getattr(ours, name)(*args, **options)
    if name.startswith("summary"):
        assert "A title" in str(found)
    elif name != "remove_data":
        assert str(found)


def test_numbers_are_those_of_statsmodels_where_the_noise_is_small(rows, theirs):
    fit = CALLS["gram"](rows)
    for name in ("rsquared_adj", "mse_resid", "k_constant"):
        assert getattr(fit, name) == pytest.approx(getattr(theirs, name), rel=2e-3)
    for constraint in ("a = 1, b = 0", "g[T.v] = g[T.w] = 0", "b = 0"):
        mine, their = fit.wald_test(constraint), theirs.wald_test(constraint, scalar=True)
        assert mine.df_constraints == their.df_denom
        assert mine.pvalue == pytest.approx(float(their.pvalue), rel=0.2, abs=0.02)
    ours, other = fit.wald_test_terms(), theirs.wald_test_terms(scalar=True)
    assert list(ours.table.index) == list(other.table.index)
    assert list(ours.summary_frame().columns) == list(other.summary_frame().columns)
    np.testing.assert_allclose(ours.table["statistic"], other.table["statistic"], rtol=0.05, atol=1)
    pairs, expected = fit.t_test_pairwise("g"), theirs.t_test_pairwise("g").result_frame
    assert list(pairs.result_frame.index) == list(expected.index)
    np.testing.assert_allclose(pairs.result_frame["coef"], expected["coef"], atol=0.01)
    assert list(pairs.result_frame["reject-hs"]) == list(expected["reject-hs"])


def test_one_constraint_has_the_p_value_of_its_t_test(ours):
    if kind_of(ours) in CANNOT:
        with pytest.raises(NotReleased):
            ours.wald_test("a = 0")
        return
    single = ours.wald_test("a - 2 * Intercept = 0.5")
    assert isinstance(single, WaldTest)
    np.testing.assert_equal(single.pvalue, float(ours.t_test("a - 2 * Intercept = 0.5").pvalue[0]))


def test_summary_col_prints_released_results(rows):
    fits = [CALLS["gram"](rows), CALLS["adaptive"](rows), CALLS["select-split"](rows)]
    text = str(summary_col(fits, stars=True, include_r2=True, model_names=["one", "two", "three"]))
    for word in ("one", "two", "three", "a ", "g[T.v]", "R-squared"):
        assert word in text


def test_the_model_is_names_alone(rows):
    fit = CALLS["gram"](rows)
    assert fit.model.exog_names == list(fit.exog_names)
    assert (fit.model.endog_names, fit.model.formula) == ("y", CALL["formula"])
    for name in ("endog", "exog", "data", "fit"):
        with pytest.raises(NotReleased, match=f"^{name} is not released"):
            getattr(fit.model, name)


def test_signatures_have_the_names_of_statsmodels(theirs):
    for name in ("summary", "summary2", "t_test_pairwise"):
        mine = inspect.signature(getattr(RegressionResults, name))
        known = inspect.signature(getattr(theirs, name))
        strange = set(mine.parameters) - set(known.parameters) - {"self", "full", "ratios"}
        assert not strange, strange


@pytest.mark.parametrize("coding", ["g", "C(g, Sum)", "C(g, Treatment(reference='v'))", "0 + g"])
def test_pairs_of_levels_do_not_depend_on_the_coding(rows, coding):
    fit = dpreg.dp_ols(f"y ~ {coding}", rows, eps=1e5, schema=SCHEMA, method="gram", unsafe_seed=1)
    pairs = fit.t_test_pairwise(coding.removeprefix("0 + "))
    assert list(pairs.contrast_labels) == ["v-u", "w-u", "w-v"]
    means = rows.groupby("g")["y"].mean()
    np.testing.assert_allclose(
        pairs.result_frame["coef"],
        [means["v"] - means["u"], means["w"] - means["u"], means["w"] - means["v"]],
        atol=0.01,
    )
