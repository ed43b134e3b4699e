"""One release of a model with a wide factor: in the user's units, and when a call takes it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import dpreg
from dpreg.api import moments
from dpreg.errors import ArgumentError

LEVELS = 120
SCHEMA = {
    "y": (-5, 5),
    "x": (0, 4),
    "g": {"levels": list(range(LEVELS))},
    "h": ["u", "v", "w"],
}


def table(rows=30_000):
    rng = np.random.default_rng(0)
    g, x = rng.integers(0, LEVELS, rows), rng.uniform(0, 4, rows)
    h = rng.choice(["u", "v", "w"], rows)
    y = 0.5 * x + np.linspace(-1, 1, LEVELS)[g] + (h == "w") + rng.normal(0, 0.3, rows)
    return pd.DataFrame({"y": y.clip(-5, 5), "x": x, "g": g, "h": h})


@pytest.mark.parametrize("formula", ["y ~ x + g + h", "y ~ g + h + x", "y ~ x + g - 1", "y ~ g"])
def test_least_squares_at_huge_eps(formula):
    data = table(6000)
    fit = dpreg.dp_ols(formula, data, 1e6, schema=SCHEMA, method="gram", unsafe_seed=1)
    ols = smf.ols(formula.replace("g", "C(g)"), data).fit()
    names = [name.replace("C(g)", "g") for name in ols.params.index]
    assert list(fit.params.index) == names
    np.testing.assert_allclose(fit.params, ols.params, atol=2e-3)
    np.testing.assert_allclose(fit.bse, ols.bse, rtol=5e-3)
    np.testing.assert_allclose(fit.cov_params(), ols.cov_params(), atol=1e-5)
    assert fit.scale == pytest.approx(ols.scale, rel=5e-3)


def test_auto_looks_once_at_a_wide_factor_and_says_why():
    fit = dpreg.dp_ols("y ~ x + g", table(), 1, delta=1e-6, schema=SCHEMA, unsafe_seed=1)
    assert fit.method == "gram"
    assert any("g has so many levels" in note for note in fit.notes)
    assert fit.passes == 1


def test_the_rule_is_of_levels_and_delta_alone():
    narrow = SCHEMA | {"g": {"levels": list(range(60))}}
    data = table().query("g < 60")
    with_delta = dpreg.dp_ols("y ~ g", data, 100, delta=1e-6, schema=narrow, unsafe_seed=1)
    assert with_delta.method == "adaptive"
    assert dpreg.dp_ols("y ~ g", data, 100, schema=narrow, unsafe_seed=1).method == "gram"


def test_looks_are_made_where_it_is_asked_for():
    with pytest.raises(ArgumentError, match="119 columns need about"):
        dpreg.dp_ols("y ~ g", table(300), 1, schema=SCHEMA, method="adaptive")


def test_intervals_hold_the_truth():
    fit = dpreg.dp_ols("y ~ x + g", table(), 2, schema=SCHEMA, unsafe_seed=3)
    low, high = fit.conf_int().T.to_numpy()
    levels = [name.startswith("g[") for name in fit.params.index]
    truth = np.linspace(-1, 1, LEVELS)[1:] + 1
    assert ((low[levels] <= truth) & (truth <= high[levels])).mean() > 0.85
    assert low[-1] <= 0.5 <= high[-1]


def test_too_many_columns_to_choose_among_are_refused_before_the_charge():
    ledger = dpreg.Ledger(1)
    schema = SCHEMA | {"g": {"levels": list(range(2001))}}
    for method in ("auto", "pcls"):
        with pytest.raises(ArgumentError, match=r"2,002 columns, 2,000 of them g's.* dp_ols"):
            dpreg.dp_select("y ~ x + g", table(50), 1, schema=schema, method=method, budget=ledger)
    assert ledger.spent.eps == 0


def test_a_factor_of_ten_levels_is_solved_level_by_level(monkeypatch):
    """Its coefficients are closer to the truth than those of all columns as one matrix."""
    levels, rows = 10, 20_000
    schema = {"y": (-6, 6), "x": (-4, 4), "g": {"levels": list(range(levels))}}
    ratios = []
    for seed in range(11):
        rng = np.random.default_rng(seed)
        g, x, effects = rng.integers(0, levels, rows), rng.normal(size=rows), rng.normal(0, 0.5, 10)
        y = 0.5 * x + effects[g] + rng.normal(size=rows)
        data = pd.DataFrame({"y": y, "x": x, "g": g})
        errors = []
        for wide in (moments.TUNING.levels, levels):
            with monkeypatch.context() as patch:
                patch.setattr(moments, "TUNING", replace(moments.TUNING, levels=wide))
                fit = dpreg.dp_ols(
                    "y ~ g + x", data, 1, schema=schema, method="gram", unsafe_seed=seed
                )
            found = fit.params[[f"g[T.{level}]" for level in range(1, levels)]]
            errors.append(np.linalg.norm(found - (effects[1:] - effects[0])))
        ratios.append(errors[0] / errors[1])
    assert np.median(ratios) < 0.9
