"""Predicted errors, against simulated releases of rows that are as assumed."""

from fractions import Fraction

import numpy as np
import pytest

from dpreg.errors import ArgumentError
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.staged.plan import plan_looks
from dpreg.staged.predict import predict_errors
from tests.oracles.staged_looks import simulate


def planned(p, eps, delta="0", neighbors="replace-one", contributions=1):
    return plan_looks(
        p, Budget(Fraction(eps), Fraction(delta)), Protection(neighbors, contributions)
    )


@pytest.mark.parametrize(
    ("p", "n", "eps", "delta"),
    [(4, 6_000, "1", "0"), (4, 6_000, "1", "1e-6"), (8, 20_000, "1/2", "1e-6")],
)
def test_the_prediction_is_what_simulated_calls_report(p, n, eps, delta):
    plan = planned(p, eps, delta)
    predicted = predict_errors(plan, n, rsquared=0.5, spread=0.25, response_spread=0.2)
    rng = np.random.default_rng(8)
    claimed, errors = [], []
    for _ in range(60):
        x = np.clip(rng.standard_normal((n, p)) / 4, -1, 1)
        slopes = np.full(p, 0.8 * np.sqrt(0.5 / p))
        y = np.clip(x @ slopes + rng.normal(0, 0.2 * np.sqrt(0.5), n), -1, 1)
        fit = simulate(x, y, plan, rng)
        claimed.append(np.sqrt(np.diag(fit.covariance)[1:].mean()))
        errors.append(fit.params[1:] - slopes)
    assert predicted.slope == pytest.approx(np.median(claimed), rel=0.12)
    assert predicted.slope == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=0.2)


def test_more_of_anything_good_predicts_smaller_errors():
    base = predict_errors(planned(5, "1"), 10_000).slope
    assert predict_errors(planned(5, "2"), 10_000).slope < base
    assert predict_errors(planned(5, "1", "1e-6"), 10_000).slope < base
    assert predict_errors(planned(5, "1"), 20_000).slope < base
    assert predict_errors(planned(5, "1"), 10_000, rsquared=0.9).slope < base
    assert predict_errors(planned(5, "1", neighbors="add-remove"), 10_000).slope < base
    assert predict_errors(planned(5, "1", contributions=3), 10_000).slope > base
    assert predict_errors(planned(5, "1"), 10_000, correlation=0.5).slope > base
    assert predict_errors(planned(5, "1"), 100).seen < 1


def test_with_many_rows_privacy_costs_nearly_nothing():
    found = predict_errors(planned(5, "4", "1e-6"), 10_000_000)
    assert found.slope < 1.1 * found.least_squares
    assert found.slope**2 == pytest.approx(found.sampling**2 + found.privacy**2)


def test_impossible_assumptions_are_refused():
    for wrong in (
        {"rsquared": 1.0},
        {"correlation": -0.1},
        {"spread": 0.0},
        {"response_spread": 0},
    ):
        with pytest.raises(ArgumentError, match="must be"):
            predict_errors(planned(3, "1"), 1_000, **wrong)
    with pytest.raises(ArgumentError, match="rows"):
        predict_errors(planned(3, "1"), 0)
