import numpy as np
import pytest
from scipy import stats
from statsmodels.formula import api as smf

from dpreg.errors import ArgumentError
from dpreg.results import inference
from dpreg.results.saved import read_only


def _normal_pvalues(z):
    return inference.pvalues(z, np.ones(len(z)), np.zeros(len(z)), None)


@pytest.fixture
def fitted(houses):
    return smf.ols("price ~ bsqft + lat + age", houses).fit(use_t=False)


def test_errors_z_p_and_intervals_are_those_of_statsmodels(fitted):
    params, cov = fitted.params.to_numpy(), fitted.cov_params().to_numpy()
    errors = inference.root(inference.variances(cov, np.eye(4)))
    z = inference.z_values(params, errors)
    np.testing.assert_allclose(errors, fitted.bse, rtol=1e-12)
    np.testing.assert_allclose(z, fitted.tvalues, rtol=1e-12)
    np.testing.assert_allclose(_normal_pvalues(z), fitted.pvalues, rtol=1e-10)
    for alpha in (0.01, 0.05, 0.5):
        ours = inference.normal_intervals(params, errors, alpha)
        np.testing.assert_allclose(ours, fitted.conf_int(alpha), rtol=1e-12)
        half = inference.quantiles(errors**2, np.zeros(4), None, alpha)
        np.testing.assert_allclose(params + half, fitted.conf_int(alpha)[1], rtol=1e-12)


def test_far_tails_keep_their_digits():
    z = np.array([0.0, 8.0, -30.0])
    np.testing.assert_allclose(_normal_pvalues(z), 2 * stats.norm.sf(abs(z)), rtol=1e-12)


def test_zero_and_negative_variances_neither_raise_nor_warn():
    errors = inference.root(np.array([-1.0, 0.0, 4.0, np.nan]))
    np.testing.assert_array_equal(errors, [np.nan, 0, 2, np.nan])
    z = inference.z_values(np.array([1.0, 1.0, 1.0, 1.0]), errors)
    np.testing.assert_array_equal(z, [np.nan, np.inf, 0.5, np.nan])
    assert np.isnan(inference.z_values(np.zeros(1), np.zeros(1))[0])


def test_drawn_intervals_are_those_of_each_combination():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(500, 3))
    rows = rng.normal(size=(2500, 3))  # more than one block
    rows[7] = np.nan
    estimates = rows.sum(axis=1)
    ours = inference.drawn_intervals(estimates, draws, rows, 0.1)
    for i in (0, 1023, 1024, 2499):
        low, high = np.quantile(draws @ rows[i], [0.05, 0.95], method="weibull")
        np.testing.assert_allclose(
            ours[i], [min(low, estimates[i]), max(high, estimates[i])], rtol=1e-12
        )
    assert np.isnan(ours[7]).all()


def test_intervals_of_observations_are_those_of_statsmodels(fitted, houses):
    frame = fitted.get_prediction(houses[:9]).summary_frame(alpha=0.1)
    limits = frame[["mean_ci_lower", "mean_ci_upper"]].to_numpy()
    mean = frame["mean"].to_numpy()
    ours = inference.observation_intervals(mean, limits, fitted.scale, 0.1)
    np.testing.assert_allclose(ours, frame[["obs_ci_lower", "obs_ci_upper"]], rtol=1e-10)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 2, float("nan")])
def test_levels_outside_zero_and_one_are_refused(alpha):
    with pytest.raises(ArgumentError, match="alpha"):
        inference.level(alpha)


def test_read_only_keeps_what_nobody_else_may_write_to():
    source = np.eye(2)
    source.setflags(write=False)
    assert read_only(source, 2, "covariance") is source
    assert not np.shares_memory(read_only(source[:], 2, "covariance"), source)
    writeable = np.eye(2)
    assert not np.shares_memory(read_only(writeable, 2, "covariance"), writeable)


def test_read_only_copies_and_refuses_writes():
    source = [[1.0, 2.0]]
    array = read_only(source, 2, "covariance")
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 3
    with pytest.raises(ArgumentError, match="covariance must have 2"):
        read_only([1.0], 2, "covariance")
