"""Predicted errors, against simulated releases of rows that are as assumed."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.staged.plan import plan_looks
from dpreg.staged.predict import predict_fit
from tests.oracles.staged_looks import simulate

ROWS = 4096
"""Made-up rows: they leave an error of a percent or two in the prediction."""


def made_up(columns, rsquared=0.5, correlation=0.0, spread=0.25, response_spread=0.25):
    """Make rows whose moments are those asked for: any two columns have this correlation, and all
    have an equal share of R^2. Values are cut at the bounds."""
    rng = np.random.default_rng(17)
    drawn = rng.standard_normal((ROWS, columns + 1))
    drawn -= drawn.mean(axis=0)
    drawn = np.linalg.qr(drawn)[0] * math.sqrt(ROWS)
    wanted = np.full((columns, columns), correlation) + (1 - correlation) * np.eye(columns)
    x = drawn[:, :columns] @ np.linalg.cholesky(wanted).T
    total = math.sqrt(float(wanted.sum())) if columns else 1.0
    y = math.sqrt(rsquared) * x.sum(axis=1) / total if columns else np.zeros(ROWS)
    y = y + math.sqrt(1 - rsquared) * drawn[:, columns]
    return np.clip(spread * x, -1, 1), np.clip(response_spread * y, -1, 1)


def predicted(plan, rows, **moments):
    return predict_fit(plan, *made_up(plan.size - 2, **moments), rows)


def typical(covariance):
    """Root mean square of the slopes' standard errors."""
    return float(np.sqrt(np.diag(covariance)[1:].mean()))


def slope_error(plan, rows, **moments):
    return typical(predicted(plan, rows, **moments).fit.covariance)


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
    expected = slope_error(plan, n, rsquared=0.5, spread=0.25, response_spread=0.2)
    rng = np.random.default_rng(8)
    claimed, errors = [], []
    for _ in range(60):
        x = np.clip(rng.standard_normal((n, p)) / 4, -1, 1)
        slopes = np.full(p, 0.8 * np.sqrt(0.5 / p))
        y = np.clip(x @ slopes + rng.normal(0, 0.2 * np.sqrt(0.5), n), -1, 1)
        fit = simulate(x, y, plan, rng)
        claimed.append(typical(fit.covariance))
        errors.append(fit.params[1:] - slopes)
    assert expected == pytest.approx(np.median(claimed), rel=0.12)
    assert expected == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=0.2)


def test_more_of_anything_good_predicts_smaller_errors():
    base = slope_error(planned(5, "1"), 10_000)
    assert slope_error(planned(5, "2"), 10_000) < base
    assert slope_error(planned(5, "1", "1e-6"), 10_000) < base
    assert slope_error(planned(5, "1"), 20_000) < base
    assert slope_error(planned(5, "1"), 10_000, rsquared=0.9) < base
    assert slope_error(planned(5, "1", neighbors="add-remove"), 10_000) < base
    assert slope_error(planned(5, "1", contributions=3), 10_000) > base
    assert slope_error(planned(5, "1"), 10_000, correlation=0.5) > base
    assert predicted(planned(5, "1"), 100).seen < 1


def test_with_many_rows_privacy_costs_nearly_nothing():
    found = predicted(planned(5, "4", "1e-6"), 10_000_000)
    assert typical(found.fit.covariance) < 1.1 * typical(found.least_squares)
    assert found.fit.covariance == pytest.approx(found.fit.sampling + found.fit.privacy)
