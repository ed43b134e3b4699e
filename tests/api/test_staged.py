"""The default of dp_ols: looks where rows are enough, one release in the box where they are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf
from api.test_regression import FORMULAS, SCHEMA, table

import dpreg
from dpreg.errors import ArgumentError, BudgetError, DataError
from dpreg.looks.need import rows_needed
from dpreg.results.looks import Look
from dpreg.results.views import privacy_facts


def staged(formula="y ~ x + z", data=None, eps=1, **arguments):
    data = table() if data is None else data
    return dpreg.dp_ols(formula, data, eps, schema=SCHEMA, **arguments)


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("formula", [formula for formula in FORMULAS if formula != "y ~ 1"])
def test_tends_to_least_squares_as_the_noise_vanishes(formula, neighbors):
    data = table()
    if formula.endswith("- 1"):
        data["y"] -= 3.33  # about what such a model has no place for
    theirs = smf.ols(formula, data).fit()
    told = {"delta": 1e-6, "neighbors": neighbors, "expected_rows": 4000, "unsafe_seed": 1}
    ours = staged(formula, data, 1e6, **told)
    assert ours.method == "staged"
    assert ours.params.index.tolist() == theirs.params.index.tolist()
    scale = theirs.bse.to_numpy()
    np.testing.assert_allclose(ours.params / scale, theirs.params / scale, atol=0.25)
    np.testing.assert_allclose(ours.bse, theirs.bse, rtol=0.1)
    assert ours.scale == pytest.approx(theirs.scale, rel=0.1)
    assert ours.rsquared == pytest.approx(theirs.rsquared, abs=0.03)
    assert ours.complete_rows == pytest.approx(4000, abs=1)


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_errors_are_of_the_stated_size(delta):
    data = table(20_000)
    truth = smf.ols("y ~ x + z", data).fit().params
    runs = [staged(data=data, delta=delta, unsafe_seed=seed) for seed in range(60)]
    z = np.array([(run.params - truth) / run.bse_privacy for run in runs])
    assert 0.75 < np.sqrt((z[:, 1:] ** 2).mean()) < 1.3
    gram = staged(data=data, delta=delta, method="gram", unsafe_seed=1)
    assert np.median([run.bse.iloc[1:] / gram.bse.iloc[1:] for run in runs]) < 0.6


def test_pure_eps_is_charged_look_by_look_and_gaussian_looks_jointly():
    pure, both = staged(noise="matrix-laplace"), staged(delta=1e-6, noise="gaussian")
    assert (
        pure.budget["step"].tolist()
        == [
            "look 1",
            "look 2",
            "look 3",
            "residuals beyond the clip",
            "spread of residuals and rows",
            "total",
        ][: len(pure.budget)]
    )
    assert pure.budget["eps"].tolist()[:5] == ["0.15", "0.2", "0.56", "0.05", "0.04"]
    assert str(pure.spent) == "eps=1"
    assert (both.noise, both.noise_degrees) == ("gaussian", None)
    assert both.budget["eps"].tolist()[0] == "1"
    assert both.spent.delta == dpreg.Budget(1, "1e-6").delta


@pytest.mark.parametrize(("noise", "spent"), [("matrix-laplace", "0"), ("gaussian", "0.000001")])
def test_a_summary_shows_the_delta_that_was_spent(noise, spent):
    fit = staged(delta="1e-6", noise=noise)
    assert fit.delta == dpreg.Budget(1, "1e-6").delta
    assert fit.spent == dpreg.Budget(1, spent)
    assert dict(privacy_facts(fit))["delta"] == spent
    shown = [line.split() for line in str(fit.summary()).splitlines()]
    assert any(line[-2:] == ["delta:", spent] for line in shown if line)
    assert any(line[0] == "total" and line[-1] == spent for line in shown if line)


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_one_law_for_intervals_pvalues_and_contrasts(delta):
    fit = staged("y ~ x + z + g", delta=delta, unsafe_seed=1)
    assert (fit.noise_degrees is None) == (fit.noise == "gaussian")
    pvalues = fit.pvalues
    for name, p in pvalues.items():
        if 1e-6 < p < 1 - 1e-6:
            low, high = fit.conf_int(alpha=p).loc[name]
            assert min(abs(low), abs(high)) == pytest.approx(0, abs=2e-3 * (high - low))
    test = fit.t_test("x = 0, z = 0")
    np.testing.assert_allclose(test.pvalue, pvalues[["x", "z"]])
    np.testing.assert_allclose(test.conf_int(), fit.conf_int().loc[["x", "z"]])
    at = fit.get_prediction(table().head(3))
    wide, narrow = at.conf_int(obs=True), at.conf_int()
    assert (wide[:, 0] < narrow[:, 0]).all()
    assert (narrow[:, 1] < wide[:, 1]).all()


def test_matrix_laplace_tails_are_heavier_than_normal_ones():
    fit = staged(eps=0.5, unsafe_seed=1)
    normal = fit.params - 3.2905 * fit.bse
    assert fit.noise == "matrix-laplace"
    assert (fit.conf_int(alpha=0.001)[0] < normal).all()


def test_a_saved_result_is_the_same_number_for_number(tmp_path):
    fit = staged("y ~ x + g")
    fit.save(tmp_path / "fit.json")
    again = dpreg.load(tmp_path / "fit.json")
    assert again.to_json() == fit.to_json()
    assert again.conf_int(0.01).equals(fit.conf_int(0.01))
    assert again.pvalues.equals(fit.pvalues)
    assert str(again.summary()) == str(fit.summary())
    one, two = fit.looks[-1], again.looks[-1]
    assert isinstance(two, Look)
    assert (one.cells == two.cells).all()
    assert (two.share, two.radius, two.opened) == (one.share, one.radius, one.opened)


def test_a_saved_look_says_what_its_cells_are_sums_of(tmp_path):
    rng = np.random.default_rng(3)
    data = table(20_000)
    data["y"] = data["x"] + np.clip(2 * rng.standard_t(3, len(data)), -30, 30)
    told = {"delta": "1e-6", "noise": "gaussian", "expected_rows": len(data), "unsafe_seed": 1}
    staged(data=data, eps=10, **told).save(tmp_path / "fit.json")
    last = dpreg.load(tmp_path / "fit.json").looks[-1]
    x, z, y = (
        (data[name] - (low + high) / 2) / ((high - low) / 2)
        for name, (low, high) in ((name, SCHEMA[name]) for name in "xzy")
    )
    ones = np.ones(len(data))
    u = np.column_stack([x, z]) @ last.whitening.T + last.offset
    e = (y - np.column_stack([ones, x, z]) @ last.center) / last.width
    norm = np.sqrt(1 + np.square(u).sum(axis=1))
    c = np.minimum(1, last.radius / norm)

    def away(stretch, power):
        cut = np.minimum(stretch, last.radius / (c * norm))
        rows = np.column_stack([c, u * c[:, None], np.clip(c**power * e, -cut, cut)])
        return np.abs((last.cells - rows.T @ rows) / np.maximum(last.noise_sd, 0.05)).max()

    assert (last.stretch, last.power) == (1.5, -0.5)
    assert away(last.stretch, last.power) < 6 < away(1.0, last.power)


def test_the_summary_lists_the_looks():
    text = " ".join(str(staged("y ~ x + g", noise="matrix-laplace").summary()).split())
    for words in ("look 1 box 0.15", "look 2 located 0.2", "look 3 located 0.56", "opened"):
        assert words in text


def test_a_model_without_an_intercept_is_that_model():
    data = table()
    data["y"] -= 3.33
    fit = staged("y ~ x + z - 1", data, eps=100, unsafe_seed=1)
    theirs = smf.ols("y ~ x + z - 1", data).fit()
    assert fit.exog_names == ("x", "z")
    assert (np.abs(fit.params - theirs.params) < 4 * fit.bse_privacy + 0.2 * theirs.bse).all()
    np.testing.assert_allclose(fit.bse_sampling, theirs.bse, rtol=0.15)


def test_without_an_intercept_the_constant_is_looked_at_all_the_same():
    """Rows are centred, so that cutting skewed residuals moves no slope."""
    fit = staged("y ~ x + z - 1", eps=10)
    assert fit.exog_names == ("x", "z")
    assert all(look.cells[0, 1:].any() for look in fit.looks)


def few(rows=100):
    return table().head(rows)


def test_too_few_rows_take_one_release_and_say_so():
    fit = staged(data=few())
    assert fit.method == "gram"
    assert "need about" in fit.notes[0]
    assert "there are 100" in fit.notes[0]
    assert 'method="objective" gives nearer coefficients, without intervals.' in fit.notes[0]
    ledger = dpreg.Ledger(5)
    with pytest.raises(ArgumentError, match=r"need about .* there are 100"):
        staged(data=few(), method="staged", budget=ledger)
    assert ledger.spent.eps == 0


def test_the_need_is_a_public_rule():
    needed = rows_needed(3, 0.56, "replace-one", gaussian=False)
    for rows, method in ((int(needed), "gram"), (int(needed) + 1, "staged")):
        assert staged(data=table().head(rows)).method == method


def test_a_private_number_of_rows_is_declared_or_not_used():
    fit = staged(neighbors="add-remove")
    assert fit.method == "gram"
    assert "expected_rows" in fit.notes[0]
    fit = staged(neighbors="add-remove", expected_rows=4000, unsafe_seed=1)
    assert (fit.method, fit.nobs, fit.notes) == ("staged", None, ())
    assert staged(neighbors="add-remove", method="staged").method == "staged"
    assert staged(neighbors="add-remove", expected_rows=5).method == "gram"
    with pytest.raises(ArgumentError, match="expected_rows"):
        staged(expected_rows=0)


def test_a_stream_is_read_once_and_says_so():
    stream = pa.Table.from_pandas(table()).to_reader()
    fit = staged(data=stream)
    assert (fit.method, fit.passes) == ("gram", 1)
    assert "can be read once" in fit.notes[0]
    stream = pa.Table.from_pandas(table()).to_reader()
    with pytest.raises(DataError, match="3 times"):
        staged(data=stream, method="staged")


def test_missing_rows_contributions_and_passes():
    data = table()
    data.loc[::5, "x"] = np.nan
    fit = staged(data=data, eps=50, contributions=3, unsafe_seed=1)
    assert (fit.method, fit.passes, fit.nobs) == ("staged", 4, 4000)
    assert fit.complete_rows == pytest.approx(3200, abs=60)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"method": "staged", "noise": "knorm"}, "noise"),
        ({"noise": "gaussian"}, "delta above 0"),
        ({"method": "staged", "scaling": "max-norm"}, 'only scaling="box"'),
        ({"method": "steps"}, "method"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, says):
    with pytest.raises(ArgumentError, match=says):
        staged(**arguments)


def test_a_ledger_without_room_is_asked_before_a_row_is_read(monkeypatch):
    monkeypatch.setattr(dpreg.api.staged, "read_moments", lambda *_: pytest.fail("a row was read"))
    with pytest.raises(BudgetError):
        staged(budget=dpreg.Ledger("0.5"))


def test_weak_columns_are_named_with_the_reason():
    rng = np.random.default_rng(0)
    data = table(20_000)
    data["g"] = rng.choice(["u", "v", "w"], 20_000, p=[0.6, 0.3999, 0.0001])
    fit = staged("y ~ x + g", data, unsafe_seed=1)
    assert fit.weak["g[T.w]"] == "rare level"
    assert "g[T.w] (rare level)" in " ".join(str(fit.summary()).split())
    assert isinstance(fit.conf_int(), pd.DataFrame)
