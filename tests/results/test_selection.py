import pickle

import numpy as np
import pandas as pd
import pytest

from dpreg.errors import ArgumentError, NotReleased
from dpreg.results.claim import STAMP

MODELS = [("Intercept", "lat"), ("Intercept", "bsqft", "lat"), ("Intercept", "lat"), ("Intercept",)]


def test_frequencies_are_shares_of_the_released_draws(make_selection):
    result = make_selection(models=MODELS, reported=MODELS[0])
    pd.testing.assert_series_equal(
        result.selection_frequencies, pd.Series({"bsqft": 0.25, "lat": 0.75, "county": 0.0})
    )
    np.testing.assert_allclose(result.frequency_errors, [np.sqrt(3) / 8, np.sqrt(3) / 8, 0])
    assert result.draws == 4


def test_one_draw_has_frequencies_of_zero_and_one_and_no_errors(make_selection):
    result = make_selection(models=MODELS[:1], reported=MODELS[0])
    assert result.selection_frequencies.to_dict() == {"bsqft": 0, "lat": 1, "county": 0}
    assert result.frequency_errors.isna().all()
    assert result.selected == ["Intercept", "lat"]
    assert result.exog_names == ["Intercept", "lat"]


def test_coefficients_are_those_of_the_regression(make_selection):
    result = make_selection(fitted=True)
    fit = result.regression
    for name in ("params", "bse", "tvalues", "pvalues"):
        pd.testing.assert_series_equal(getattr(result, name), getattr(fit, name))
    for name in ("rsquared", "scale", "df_model", "df_resid"):
        assert getattr(result, name) == getattr(fit, name)
    pd.testing.assert_frame_equal(result.conf_int(0.1), fit.conf_int(0.1))
    pd.testing.assert_frame_equal(result.cov_params(), fit.cov_params())
    assert result.t_test("lat").pvalue == fit.t_test("lat").pvalue
    assert result.exog_names == list(fit.exog_names)


def test_predictions_are_those_of_the_regression(make_selection, make_regression):
    fit = make_regression(("Intercept", "lat"))
    result = make_selection(regression=fit)
    table = pd.DataFrame({"lat": [1.0, 2.0]}, index=["x", "y"])
    pd.testing.assert_series_equal(result.predict(table), fit.predict(table))
    assert list(result.predict(table).index) == ["x", "y"]
    assert len(result.get_prediction(table).se_mean) == 2


@pytest.mark.parametrize(
    "name", ["params", "bse", "tvalues", "pvalues", "rsquared", "scale", "df_model", "df_resid"]
)
def test_without_a_fit_coefficients_say_what_to_do(make_selection, name):
    result = make_selection()
    assert not hasattr(result, name)
    with pytest.raises(NotReleased, match=f"^{name} is not released.*fit=None.*dp_ols"):
        getattr(result, name)


@pytest.mark.parametrize("name", ["conf_int", "cov_params", "predict", "get_prediction"])
def test_without_a_fit_methods_say_what_to_do(make_selection, name):
    with pytest.raises(NotReleased, match=name):
        getattr(make_selection(), name)()
    with pytest.raises(NotReleased, match="t_test"):
        make_selection().t_test("lat")


def test_fields_that_do_not_fit_together_are_refused(make_selection):
    for changes, match in [
        ({"models": []}, "at least one"),
        ({"reported": ("lat",)}, "one of the released"),
        ({"models": [("age",)], "reported": ("age",)}, "neither kept nor candidates: age"),
        ({"kept": ("Intercept", "lat")}, "twice"),
        ({"clip": "one"}, "clip"),
    ]:
        with pytest.raises(ArgumentError, match=match):
            make_selection(**changes)


def test_budget_is_exact_text_and_spent_its_total(make_selection):
    result = make_selection(fitted=True)
    assert list(result.budget["eps"]) == ["0.1", "0.9", "0.9"]
    assert result.spent.eps == 1
    assert result.neighbors == "replace-one"
    assert result.contributions == 1
    assert not result.seeded


def test_frames_and_repr_of_a_seeded_result_are_stamped(make_selection):
    result = make_selection(fitted=True, seeded=True, draws=3)
    for frame in (
        result.selection_frequencies, result.frequency_errors, result.budget, result.params,
        result.conf_int(),
    ):  # fmt: skip
        assert frame.attrs["privacy"] == STAMP
    assert STAMP in repr(result)
    assert STAMP in result.privacy
    assert result.to_dict()["stamp"] == STAMP
    assert STAMP not in repr(make_selection())


def test_integers_and_fractions_stay_exact(make_selection):
    result = make_selection(radius=2, psi=3, n_models=2**300)
    assert pickle.loads(pickle.dumps(result)).n_models == 2**300
    assert result.to_dict()["radius"] == "2"
    assert result.to_dict()["phi"] == "1/3"


def test_a_selection_has_the_public_names_of_its_fit(make_selection):
    result = make_selection(fitted=True)
    for name in ("bse_sampling", "bse_privacy", "noise_share"):
        pd.testing.assert_series_equal(getattr(result, name), getattr(result.regression, name))
    assert result.cov_kwds == result.regression.cov_kwds
    assert not hasattr(result, "coefficients")  # a field of the fit alone
