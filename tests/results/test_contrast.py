"""Combinations of coefficients; `test_regression.py` holds them against statsmodels."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import dpreg
from dpreg.results.claim import STAMP
from dpreg.results.contrast import Contrast, Prediction
from dpreg.results.glm import GLMPrediction

ROWS = np.array([[1.0, -1.0], [2.0, 0.0]])
PARAMS = np.array([3.0, 1.0])
COVARIANCE = np.array([[4.0, 1.0], [1.0, 9.0]])


def combined(make_regression, draws=None, target=(0.0, 0.0), known=(0.0, 0.0), **changes):
    """Return two combinations of a fit of two coefficients."""
    drawn = {} if draws is None else {"interval_method": "bootstrap", "interval_draws": draws}
    numbers = {"coefficients": PARAMS, "covariance": COVARIANCE, **drawn, **changes}
    fit = make_regression(("Intercept", "lat"), **numbers)
    return Contrast(ROWS, fit, np.array(target), np.array(known))


def test_estimates_and_errors_are_those_of_linear_algebra(make_regression):
    found = combined(make_regression)
    assert found.effect.tolist() == [2.0, 6.0]
    np.testing.assert_allclose(found.sd, np.sqrt([4 - 2 + 9, 16]))
    half = norm.ppf(0.95) * np.sqrt([11, 16])
    np.testing.assert_allclose(
        found.conf_int(0.1), [[2 - half[0], 2 + half[0]], [6 - half[1], 6 + half[1]]]
    )


def test_intervals_are_quantiles_of_draws_where_there_are_any(make_regression):
    draws = np.random.default_rng(0).normal(size=(999, 2)) + PARAMS
    values = np.sort(draws @ ROWS[0])
    intervals = combined(make_regression, draws).conf_int(0.1)
    np.testing.assert_allclose(intervals[0], values[[49, 949]])


def test_p_values_are_those_of_the_intervals_law(make_regression):
    """0 lies in the interval of level 1 - alpha exactly where its p-value is at least alpha."""
    draws = np.random.default_rng(0).normal(size=(999, 2)) ** 3 + 2 * PARAMS
    found = combined(make_regression, draws)
    for each, alpha in enumerate(found.pvalue):
        for below in (True, False):
            low, high = found.conf_int(alpha * (0.999 if below else 1.001))[each]
            assert (low <= 0 <= high) == below
    assert (combined(make_regression, draws, found.effect).pvalue == 1).all()


@pytest.mark.parametrize("drawn", [False, True])
def test_what_is_known_moves_estimates_and_intervals_and_no_error(make_regression, drawn):
    draws = np.random.default_rng(0).normal(size=(999, 2)) + PARAMS if drawn else None
    found, known = combined(make_regression, draws), np.array([5.0, -1.0])
    moved = combined(make_regression, draws, known=known)
    np.testing.assert_allclose(moved.effect, found.effect + known)
    np.testing.assert_allclose(moved.conf_int(0.1), found.conf_int(0.1) + known[:, None])
    np.testing.assert_allclose(moved.sd, found.sd)
    np.testing.assert_allclose(moved.pvalue, combined(make_regression, draws, -known).pvalue)


def test_a_contrast_is_tested_against_its_target(make_regression):
    contrast = combined(make_regression, target=(2.0, 0.0))
    np.testing.assert_allclose(contrast.statistic, [0.0, 1.5])
    np.testing.assert_allclose(contrast.tvalue, contrast.statistic)
    np.testing.assert_allclose(contrast.pvalue, [1.0, 2 * norm.sf(1.5)])
    assert contrast.effect.tolist() == [2.0, 6.0]


def test_frames_and_pages_carry_the_stamp(make_claim, make_regression):
    contrast = combined(make_regression, claim=make_claim(seeded=True))
    assert contrast.summary_frame().attrs["privacy"] == STAMP
    assert STAMP in str(contrast)
    assert STAMP not in str(combined(make_regression))


def test_a_new_observation_varies_about_its_mean(make_regression):
    index = pd.Index(["p", "q"])
    predicted = Prediction(combined(make_regression, error_variance=5.0), index)
    np.testing.assert_allclose(predicted.se_mean, np.sqrt([11, 16]))
    np.testing.assert_allclose(predicted.se_obs, np.sqrt([16, 21]))
    frame = predicted.summary_frame(alpha=0.1)
    assert frame.index.equals(index)
    half = norm.ppf(0.95) * np.sqrt(16)
    assert frame["obs_ci_upper"].iloc[0] == pytest.approx(2 + half)
    assert (frame["obs_ci_lower"] < frame["mean_ci_lower"]).all()


def test_predictions_show_the_stamp_and_nothing_of_the_table(make_claim, make_regression):
    index = pd.Index(["p7", "q7"])
    for seeded in (False, True):
        found = combined(make_regression, claim=make_claim(seeded=seeded))
        for shown in (repr, str):
            for predicted in (Prediction(found, index), GLMPrediction(found, index, "mean")):
                assert (STAMP in shown(predicted)) == seeded
                assert "7" not in shown(predicted)
                assert "0x" not in shown(predicted)


def test_pairs_that_noise_hides_are_not_told_apart():
    """A p-value that nobody has was taken for one of 0 by the correction."""
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"g": rng.choice(["a", "b"], 20000), "y": rng.uniform(0, 1, 20000)})
    data.loc[:2, "g"] = "c"
    data["y"] = np.where(data["g"] == "b", data["y"], data["y"] ** 2)
    schema = {"y": (0, 1), "g": ["a", "b", "c"]}
    fit = dpreg.dp_ols("y ~ g", data, 1, delta=1e-6, schema=schema, unsafe_seed=1)
    for method in ("hs", "bonferroni", "fdr_bh"):
        pairs = fit.t_test_pairwise("g", method=method).result_frame
        assert pairs[f"reject-{method}"].tolist() == [True, False, False]
        assert pairs[f"pvalue-{method}"].isna().tolist() == [False, True, True]
