"""Combinations of coefficients; `test_regression.py` holds them against statsmodels."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import dpreg
from dpreg.results.claim import STAMP
from dpreg.results.contrast import Combinations, Contrast, Prediction
from dpreg.results.glm import GLMPrediction

ROWS = np.array([[1.0, -1.0], [2.0, 0.0]])
PARAMS = np.array([3.0, 1.0])
COVARIANCE = np.array([[4.0, 1.0], [1.0, 9.0]])


def combined(make_regression, draws=None):
    """Return two combinations of a fit of two coefficients."""
    drawn = {} if draws is None else {"interval_method": "bootstrap", "interval_draws": draws}
    numbers = {"coefficients": PARAMS, "covariance": COVARIANCE, **drawn}
    return Combinations(ROWS, make_regression(("Intercept", "lat"), **numbers))


def test_estimates_and_errors_are_those_of_linear_algebra(make_regression):
    found = combined(make_regression)
    assert found.estimates().tolist() == [2.0, 6.0]
    np.testing.assert_allclose(found.errors(), np.sqrt([4 - 2 + 9, 16]))
    half = norm.ppf(0.95) * np.sqrt([11, 16])
    np.testing.assert_allclose(
        found.intervals(0.1), [[2 - half[0], 2 + half[0]], [6 - half[1], 6 + half[1]]]
    )


def test_intervals_are_quantiles_of_draws_where_there_are_any(make_regression):
    draws = np.random.default_rng(0).normal(size=(999, 2)) + PARAMS
    values = np.sort(draws @ ROWS[0])
    intervals = combined(make_regression, draws).intervals(0.1)
    np.testing.assert_allclose(intervals[0], values[[49, 949]])


def test_p_values_are_those_of_the_intervals_law(make_regression):
    """0 lies in the interval of level 1 - alpha exactly where its p-value is at least alpha."""
    draws = np.random.default_rng(0).normal(size=(999, 2)) ** 3 + 2 * PARAMS
    found = combined(make_regression, draws)
    p = found.pvalues(np.zeros(2))
    for each, alpha in enumerate(p):
        for below in (True, False):
            low, high = found.intervals(alpha * (0.999 if below else 1.001))[each]
            assert (low <= 0 <= high) == below
    assert (found.pvalues(found.estimates()) == 1).all()


def test_a_contrast_is_tested_against_its_target(make_claim, make_regression):
    contrast = Contrast(combined(make_regression), np.array([2.0, 0.0]), make_claim())
    np.testing.assert_allclose(contrast.statistic, [0.0, 1.5])
    np.testing.assert_allclose(contrast.tvalue, contrast.statistic)
    np.testing.assert_allclose(contrast.pvalue, [1.0, 2 * norm.sf(1.5)])
    assert contrast.effect.tolist() == [2.0, 6.0]


def test_frames_and_pages_carry_the_stamp(make_claim, make_regression):
    found = combined(make_regression)
    contrast = Contrast(found, np.zeros(2), make_claim(seeded=True))
    assert contrast.summary_frame().attrs["privacy"] == STAMP
    assert STAMP in str(contrast)
    assert STAMP not in str(Contrast(found, np.zeros(2), make_claim()))


def test_a_new_observation_varies_about_its_mean(make_claim, make_regression):
    index = pd.Index(["p", "q"])
    predicted = Prediction(combined(make_regression), index, 5.0, make_claim())
    np.testing.assert_allclose(predicted.se_mean, np.sqrt([11, 16]))
    np.testing.assert_allclose(predicted.se_obs, np.sqrt([16, 21]))
    frame = predicted.summary_frame(alpha=0.1)
    assert frame.index.equals(index)
    half = norm.ppf(0.95) * np.sqrt(16)
    assert frame["obs_ci_upper"].iloc[0] == pytest.approx(2 + half)
    assert (frame["obs_ci_lower"] < frame["mean_ci_lower"]).all()


def test_predictions_show_the_stamp_and_nothing_of_the_table(make_claim, make_regression):
    rows, index, found = np.zeros(2), pd.Index(["p7", "q7"]), combined(make_regression)
    for seeded in (False, True):
        claim = make_claim(seeded=seeded)
        glm = GLMPrediction(found, rows, index, "log", "mean", claim)
        for shown in (repr, str):
            for predicted in (Prediction(found, index, 5.0, claim), glm):
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
