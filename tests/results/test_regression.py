import copy
import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from statsmodels.formula import api as smf

from dpreg.errors import ArgumentError, NotReleased
from dpreg.results.base import Withheld
from dpreg.results.claim import STAMP
from dpreg.results.regression import OfFormula

WITHHELD = sorted(name for name, value in vars(OfFormula).items() if isinstance(value, Withheld))

SHARED = [
    "params", "bse", "tvalues", "pvalues", "conf_int", "cov_params", "t_test", "rsquared", "scale",
    "nobs", "df_model", "df_resid", "predict", "get_prediction", "summary", "save",
]  # fmt: skip


@pytest.fixture
def theirs(houses):
    return smf.ols("price ~ bsqft + lat + age", houses).fit(use_t=False)


@pytest.fixture
def ours(theirs, make_regression):
    """A released regression whose numbers happen to be those of a fit by statsmodels."""
    names = tuple(theirs.params.index)
    return make_regression(
        names,
        coefficients=theirs.params,
        covariance=theirs.cov_params(),
        sampling_errors=theirs.bse,
        privacy_errors=np.zeros(4),
        error_variance=theirs.scale,
        explained=theirs.rsquared,
        nobs=200,
        error_df=196.0,
        formula="price ~ bsqft + lat + age",
    )


def test_names_are_those_of_statsmodels(ours, theirs):
    for name in SHARED:
        assert hasattr(theirs, name), name
        assert hasattr(ours, name), name
    assert ours.exog_names == tuple(theirs.model.exog_names)
    assert ours.endog_names == theirs.model.endog_names


@pytest.mark.parametrize("name", ["params", "bse", "tvalues", "pvalues"])
def test_series_agree_with_statsmodels(ours, theirs, name):
    pd.testing.assert_series_equal(getattr(ours, name), getattr(theirs, name), rtol=1e-9)


def test_tables_and_scalars_agree_with_statsmodels(ours, theirs):
    pd.testing.assert_frame_equal(ours.conf_int(0.1), theirs.conf_int(0.1))
    pd.testing.assert_frame_equal(ours.cov_params(), theirs.cov_params())
    for name in ("rsquared", "scale", "nobs", "df_model", "df_resid"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name)), name


@pytest.mark.parametrize("test", ["bsqft + lat = 0.4", "bsqft = 1, lat = -0.5", [0, 1, 0, -2]])
def test_t_tests_agree_with_statsmodels(ours, theirs, test):
    mine, reference = ours.t_test(test), theirs.t_test(test)
    for name in ("effect", "sd", "statistic", "tvalue", "pvalue"):
        expected = np.ravel(getattr(reference, name))
        np.testing.assert_allclose(getattr(mine, name), expected, rtol=1e-9, err_msg=name)
    np.testing.assert_allclose(mine.conf_int(0.2), reference.conf_int(0.2))
    frame = reference.summary_frame()
    np.testing.assert_allclose(mine.summary_frame(), frame)
    assert list(mine.summary_frame().columns) == list(frame.columns)
    assert "P>|z|" in str(mine)


def test_predictions_agree_with_statsmodels(ours, theirs, houses):
    new = houses.sample(20, random_state=1)
    pd.testing.assert_series_equal(ours.predict(new), theirs.predict(new))
    pd.testing.assert_frame_equal(
        ours.get_prediction(new).summary_frame(0.1), theirs.get_prediction(new).summary_frame(0.1)
    )
    prediction, reference = ours.get_prediction(new), theirs.get_prediction(new)
    np.testing.assert_allclose(prediction.se_obs, reference.se_obs)
    np.testing.assert_allclose(
        prediction.conf_int(obs=True, alpha=0.2), reference.conf_int(obs=True, alpha=0.2)
    )


def test_predictions_from_a_formulas_own_design_agree_with_statsmodels(make_regression, houses):
    table = houses.assign(county=np.where(houses["age"] > 0, "cc", "ala"), size=houses["bsqft"] + 9)
    formula = "price ~ np.log(size) + county:lat + C(county) - 1"
    theirs = smf.ols(formula, table).fit()
    schema = {"price": (-20, 20), "size": (1, 20), "lat": (-5, 5), "county": ["ala", "cc"]}
    p = len(theirs.params)
    ours = make_regression(
        tuple(theirs.params.index),
        coefficients=theirs.params,
        covariance=theirs.cov_params(),
        design_formula=formula,
        schema=schema,
    )
    new = table.sample(9, random_state=2)
    pd.testing.assert_series_equal(ours.predict(new), theirs.predict(new))
    assert ours.df_model == p


def test_a_row_with_a_missing_value_predicts_missing(ours, houses):
    new = houses.iloc[5:8].copy()
    new.iloc[1, 0] = np.nan
    predicted = ours.predict(new)
    assert list(predicted.index) == [5, 6, 7]
    assert list(predicted.isna()) == [False, True, False]
    assert ours.get_prediction(new).summary_frame().isna().all(axis=1).tolist() == [
        False,
        True,
        False,
    ]


def test_bootstrap_draws_give_intervals_of_every_combination(make_regression, houses):
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(400, 2)) ** 3
    ours = make_regression(
        ("Intercept", "lat"),
        interval_method="bootstrap",
        interval_draws=draws,
    )
    np.testing.assert_allclose(
        ours.conf_int(0.1), np.quantile(draws, [0.05, 0.95], axis=0, method="weibull").T
    )
    combined = ours.t_test("Intercept - 2 * lat").conf_int(0.1)
    np.testing.assert_allclose(
        combined[0], np.quantile(draws @ [1, -2], [0.05, 0.95], method="weibull")
    )
    rows = np.column_stack([np.ones(3), houses["lat"][:3]])
    np.testing.assert_allclose(
        ours.get_prediction(houses[:3]).conf_int(alpha=0.1),
        np.quantile(draws @ rows.T, [0.05, 0.95], axis=0, method="weibull").T,
    )


@pytest.mark.parametrize("name", WITHHELD)
def test_what_is_withheld_says_why(ours, make_selection, name):
    for result in (ours, make_selection(), make_selection(fitted=True)):
        assert not hasattr(result, name)
        with pytest.raises(NotReleased, match=f"^{name} is not released: .{{20,}}\\.$"):
            getattr(result, name)


def test_withheld_names_are_real_names_of_statsmodels(theirs):
    for name in set(WITHHELD) - {"influence"}:
        assert hasattr(theirs, name), name


def test_what_the_method_or_relation_cannot_give_is_not_released(make_regression):
    bare = make_regression(error_variance=None, explained=None, nobs=None, error_df=None)
    assert bare.nobs is None
    for name in ("rsquared", "scale", "df_resid"):
        with pytest.raises(NotReleased, match=f"{name} is not released"):
            getattr(bare, name)
    with pytest.raises(NotReleased, match="table of your own"):
        bare.predict()
    assert "n:                 private" in " ".join(str(bare).split("   ")) or "private" in str(
        bare
    )


def test_fields_that_do_not_fit_together_are_refused(make_regression):
    for changes, match in [
        ({"coefficients": [1.0]}, "coefficients"),
        ({"covariance": np.eye(3)}, "covariance"),
        ({"covariance": np.ones((2, 4))}, "4 x 4"),
        ({"interval_method": "exact"}, "interval_method"),
        ({"interval_method": "bootstrap"}, "interval_draws"),
        ({"interval_draws": np.ones((2, 4))}, "interval_draws"),
        ({"eps": float("nan")}, "eps"),
    ]:
        with pytest.raises(ArgumentError, match=match):
            make_regression(**changes)


def test_a_result_cannot_be_changed(make_regression):
    result = make_regression()
    with pytest.raises(AttributeError):
        result.formula = "y ~ x"
    with pytest.raises((AttributeError, TypeError)):
        result.anything = 1
    with pytest.raises(ValueError, match="read-only"):
        result.covariance[0, 0] = 0
    params, covariance = result.params, result.cov_params()
    params.iloc[0] = covariance.iloc[0, 0] = 99
    assert result.params.iloc[0] != 99
    assert result.cov_params().iloc[0, 0] != 99
    assert copy.deepcopy(result) is result


def test_pickle_holds_the_json(ours):
    data = pickle.dumps(ours)
    assert pickle.loads(data) == ours
    assert ours.to_json().encode()[:200] in data


def test_every_frame_of_a_seeded_result_is_stamped(make_regression, houses):
    result = make_regression(("Intercept", "lat"), seeded=True)
    frames = [
        result.params, result.bse, result.bse_sampling, result.bse_privacy, result.tvalues,
        result.pvalues, result.conf_int(), result.cov_params(), result.budget,
        result.predict(houses), result.get_prediction(houses).summary_frame(),
        result.t_test("lat").summary_frame(),
    ]  # fmt: skip
    for frame in frames:
        assert frame.attrs["privacy"] == STAMP
    assert str(result.t_test("lat")).count(STAMP) == 2
    assert make_regression().params.attrs == {}


def test_public_methods_are_documented(ours):
    for name, value in inspect.getmembers(type(ours)):
        if not name.startswith("_") and (callable(value) or isinstance(value, property)):
            assert inspect.getdoc(value), name
