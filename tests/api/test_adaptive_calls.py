"""The default of dp_ols: looks where rows are enough, and one release where they are not."""

from __future__ import annotations

import re

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf
from api.test_regression import FORMULAS, SCHEMA, table

import dpreg
from dpreg.errors import ArgumentError, BudgetError, DataError, DpregWarning
from dpreg.looks.plan import plan_looks
from dpreg.privacy.protection import Protection
from dpreg.results.claim import ReleasedLook
from dpreg.sources import as_source


def adaptive(formula="y ~ x + z", data=None, eps=1, **arguments):
    data = table() if data is None else data
    return dpreg.dp_ols(formula, data, eps, schema=SCHEMA, **arguments)


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("formula", [formula for formula in FORMULAS if formula != "y ~ 1"])
def test_tends_to_least_squares_as_the_noise_vanishes(formula, neighbors):
    data = table()
    if formula.endswith("- 1"):
        data["y"] -= 3.33  # about what such a model has no place for
    theirs = smf.ols(formula, data).fit(cov_type="HC1")
    told = {"delta": 1e-6, "neighbors": neighbors, "unsafe_seed": 1}
    ours = adaptive(formula, data, 1e6, **told)
    assert ours.method == "adaptive"
    assert ours.params.index.tolist() == theirs.params.index.tolist()
    scale = theirs.bse.to_numpy()
    np.testing.assert_allclose(ours.params / scale, theirs.params / scale, atol=0.005)
    np.testing.assert_allclose(ours.bse, theirs.bse, rtol=0.005)
    assert ours.scale == pytest.approx(theirs.scale, rel=0.05)
    assert ours.rsquared == pytest.approx(theirs.rsquared, abs=0.03)
    assert ours.complete_rows == pytest.approx(4000, abs=1)


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_errors_are_of_the_stated_size(delta):
    data = table(20_000)
    truth = smf.ols("y ~ x + z", data).fit().params
    runs = [adaptive(data=data, delta=delta, unsafe_seed=seed) for seed in range(60)]
    z = np.array([(run.params - truth) / run.bse_privacy for run in runs])
    assert 0.65 < np.sqrt((z[:, 1:] ** 2).mean()) < 1.3  # the bound on what limits cut is wide
    gram = adaptive(data=data, delta=delta, method="gram", unsafe_seed=1)
    assert np.median([run.bse.iloc[1:] / gram.bse.iloc[1:] for run in runs]) < 0.9


def test_pure_eps_is_charged_look_by_look_and_gaussian_looks_jointly():
    pure, both = adaptive(noise="matrix-laplace"), adaptive(delta=1e-6, noise="gaussian")
    assert pure.budget["step"].tolist() == ["looks 1-4"]
    assert pure.budget["eps"].tolist() == ["1"]
    assert str(pure.spent) == "eps=1"
    assert sum(look.share for look in pure.releases) == 1
    assert (both.noise, both.noise_degrees) == ("gaussian", None)
    assert both.budget["eps"].tolist()[0] == "1"
    assert both.spent.delta == dpreg.Budget(1, "1e-6").delta


@pytest.mark.parametrize(("noise", "spent"), [("matrix-laplace", "0"), ("gaussian", "0.000001")])
def test_a_summary_shows_the_delta_that_was_spent(noise, spent):
    fit = adaptive(delta="1e-6", noise=noise)
    assert fit.delta == dpreg.Budget(1, "1e-6").delta
    assert fit.spent == dpreg.Budget(1, spent)
    shown = [line.split() for line in str(fit.summary(full=True)).splitlines()]
    assert any(line[-2:] == ["delta:", spent] for line in shown if line)
    assert any(line[0] == "total" and line[-1] == spent for line in shown if line)


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_one_law_for_intervals_pvalues_and_contrasts(delta):
    fit = adaptive("y ~ x + z + g", delta=delta, unsafe_seed=1)
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
    fit = adaptive(eps=0.5, unsafe_seed=1)
    normal = fit.params - 3.2905 * fit.bse
    assert fit.noise == "matrix-laplace"
    assert (fit.conf_int(alpha=0.001)[0] < normal).all()


def test_a_saved_result_is_the_same_number_for_number(tmp_path):
    fit = adaptive("y ~ x + g")
    fit.save(tmp_path / "fit.json")
    again = dpreg.load(tmp_path / "fit.json")
    assert again.to_json() == fit.to_json()
    assert again.conf_int(0.01).equals(fit.conf_int(0.01))
    assert again.pvalues.equals(fit.pvalues)
    assert str(again.summary(full=True)) == str(fit.summary(full=True))
    one, two = fit.releases[-1], again.releases[-1]
    assert isinstance(two, ReleasedLook)
    assert (one.information == two.information).all()
    assert (two.share, two.kind, two.limits) == (one.share, "minimum", one.limits)


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_a_saved_look_says_what_it_is_a_sum_of(tmp_path, delta):
    """What the formula of `ReleasedLook` gives, on rows that no limit reaches."""
    rng = np.random.default_rng(3)
    data = table(20_000)
    data["y"] = data["x"] / 4 + rng.uniform(-1, 1, len(data))
    adaptive(data=data, eps=1000, delta=delta, unsafe_seed=1).save(tmp_path / "fit.json")
    last = dpreg.load(tmp_path / "fit.json").releases[-1]
    x, z, y = (
        (data[name] - (low + high) / 2) / ((high - low) / 2)
        for name, (low, high) in ((name, SCHEMA[name]) for name in "xzy")
    )
    ones = np.ones(len(data))
    v = np.column_stack([ones, np.column_stack([x, z]) @ last.whitening.T + last.offset])
    e = y - np.column_stack([ones, x, z]) @ last.center
    score, information = v.T @ e, v.T @ v
    assert np.abs(last.score - score).max() < 6 * last.score_sd + 1e-6 * np.abs(v).sum()
    # At pure eps the information is that of the look before, at limits nearer by.
    apart = 12 * last.information_sd + 0.01 if delta else 0.01 * len(data)
    assert np.abs(last.information - information).max() < apart
    if last.middle.size:
        middle = (v * e.to_numpy()[:, None] ** 2).T @ v
        assert np.abs(last.middle - middle).max() < 12 * last.middle_sd + 0.01


def test_a_model_without_an_intercept_is_that_model():
    data = table()
    data["y"] -= 3.33
    fit = adaptive("y ~ x + z - 1", data, eps=100, unsafe_seed=1)
    theirs = smf.ols("y ~ x + z - 1", data).fit()
    assert fit.exog_names == ("x", "z")
    assert (np.abs(fit.params - theirs.params) < 4 * fit.bse_privacy + 0.2 * theirs.bse).all()
    np.testing.assert_allclose(fit.bse_sampling, theirs.bse, rtol=0.15)


def few(rows=100):
    return table().head(rows)


def test_too_few_rows_take_one_release_and_say_so():
    fit = adaptive(data=few())
    assert fit.method == "gram"
    assert "need about" in fit.notes[0]
    assert "the table has 100." in fit.notes[0]
    assert fit.notes[0].endswith(".")
    assert ".." not in fit.notes[0]
    ledger = dpreg.Ledger(5)
    with pytest.raises(ArgumentError, match=r"need about .* the table has 100\."):
        adaptive(data=few(), method="adaptive", budget=ledger)
    assert ledger.spent.eps == 0


def test_the_need_is_a_public_rule():
    needed = plan_looks(2, dpreg.Budget(1), Protection("replace-one")).rows_needed
    for rows, method in ((int(needed), "gram"), (int(needed) + 1, "adaptive")):
        assert adaptive(data=table().head(rows)).method == method


def test_the_eps_that_a_refusal_names_will_do():
    eps = float(re.search(r"use eps >= (\d+(\.\d+)?)", adaptive(data=few()).notes[0])[1])
    assert adaptive(data=few(), eps=1.05 * eps).method == "adaptive"
    assert adaptive(data=few(), eps=0.95 * eps).method == "gram"


def test_a_private_number_of_rows_is_counted_by_the_first_look():
    fit = adaptive(neighbors="add-remove", unsafe_seed=1)
    assert (fit.method, fit.nobs, fit.notes) == ("adaptive", None, ())
    assert fit.complete_rows == pytest.approx(4000, abs=400)


def test_the_old_name_of_the_method_is_told_the_new_one():
    with pytest.warns(DpregWarning, match='method="staged" is now method="adaptive"'):
        old = adaptive(method="staged", unsafe_seed=1)
    assert old == adaptive(method="adaptive", unsafe_seed=1)


def test_a_stream_serves_for_all_looks_unless_it_may_not_be_held():
    rows = pa.Table.from_pandas(table())
    fit = adaptive(data=rows.to_reader())
    assert (fit.method, fit.passes) == ("adaptive", 5)
    fit = adaptive(data=as_source(rows.to_reader(), hold=False))
    assert (fit.method, fit.passes) == ("gram", 1)
    assert "can be read once, and may not be held" in fit.notes[0]
    with pytest.raises(DataError, match="4 times"):
        adaptive(data=as_source(rows.to_reader(), hold=False), method="adaptive")


def test_rows_that_others_read_are_not_held_for_a_minimum():
    fit = adaptive(data=dd.from_pandas(table(), npartitions=2))
    assert ([look.kind for look in fit.releases][-1], fit.passes) == ("fitting", 4)
    assert adaptive().releases[-1].kind == "minimum"


def test_missing_rows_contributions_and_passes():
    data = table()
    data.loc[::5, "x"] = np.nan
    fit = adaptive(data=data, eps=50, contributions=3, unsafe_seed=1)
    assert (fit.method, fit.passes, fit.nobs) == ("adaptive", 5, 4000)
    assert fit.complete_rows == pytest.approx(3200, abs=60)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"method": "adaptive", "noise": "knorm"}, "noise"),
        ({"noise": "gaussian"}, "delta above 0"),
        ({"method": "adaptive", "scaling": "max-norm"}, '"adaptive" has no scaling'),
        ({"method": "steps"}, "method"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, says):
    with pytest.raises(ArgumentError, match=says):
        adaptive(**arguments)


def test_a_ledger_without_room_is_asked_before_a_row_is_read(monkeypatch):
    monkeypatch.setattr(dpreg.looks.table, "read_moments", lambda *_: pytest.fail("a row was read"))
    with pytest.raises(BudgetError):
        adaptive(budget=dpreg.Ledger("0.5"))


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_a_level_of_hardly_any_rows_is_marked(delta):
    rng = np.random.default_rng(0)
    data = table(20_000)
    data["g"] = rng.choice(["u", "v", "w"], 20_000, p=[0.6, 0.3999, 0.0001])
    fit = adaptive("y ~ x + g", data, delta=delta, unsafe_seed=1)
    assert fit.marks["g[T.w]"] in ("wide", "too few rows to say")
    assert fit.marks["x"] == "above noise"
    assert f"g[T.w]: {fit.marks['g[T.w]']}" in " ".join(str(fit.summary(full=True)).split())
    low, high = fit.conf_int().loc["g[T.w]"]
    assert np.isnan(low) == (fit.marks["g[T.w]"] == "too few rows to say")
    assert not high - low < 3


@pytest.mark.parametrize("share", [0.0001, 0.001, 0.01])
def test_rare_levels_do_not_touch_the_errors_of_others(share):
    ratios = []
    for seed in range(8):
        rng, data = np.random.default_rng(seed), table(20_000)
        data["g"] = rng.choice(["u", "v", "w"], 20_000, p=[0.6, 0.4 - share, share])
        told = {"delta": 1e-6, "unsafe_seed": seed}
        with_it = adaptive("y ~ x + g", data, **told)
        schema = {**SCHEMA, "g": ["u", "v"]}
        without = dpreg.dp_ols("y ~ x + g", data, 1, schema=schema, **told)
        ratios.append(with_it.bse["x"] / without.bse["x"])
    assert np.median(ratios) < 1.6


def test_intervals_hold_least_squares_of_a_wrong_model():
    """A square left out, errors that fan out: robust errors, and the fit without privacy held."""
    schema, inside, ratios = {"x": (-3, 3), "y": (-20, 20)}, [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-3, 3, 20_000)
        y = x + 0.5 * x**2 + rng.normal(size=len(x)) * (0.2 + np.abs(x))
        data = pd.DataFrame({"x": x, "y": y.clip(-20, 20)})
        theirs = smf.ols("y ~ x", data).fit(cov_type="HC1")
        fit = dpreg.dp_ols("y ~ x", data, 1, delta=1e-6, schema=schema, unsafe_seed=seed)
        low, high = fit.conf_int().loc["x"]
        inside.append(low < theirs.params["x"] < high)
        ratios.append(fit.bse_sampling["x"] / theirs.bse["x"])
        assert fit.bse["x"] > theirs.bse["x"]
    assert np.mean(inside) >= 0.85
    assert np.median(ratios) == pytest.approx(1, abs=0.15)
    assert min(ratios) > 0.6  # a release may limit scores by half of what the fit is made of


def test_all_rows_of_a_person_count_and_errors_are_clustered():
    rng = np.random.default_rng(5)
    owner = np.repeat(np.arange(8_000), 5)
    x = np.repeat(rng.uniform(-10, 10, 8_000), 5)
    shared = np.repeat(rng.normal(size=8_000), 5)
    data = pd.DataFrame({"x": x, "y": x / 4 + shared + rng.normal(size=len(x)), "owner": owner})
    schema = {"x": (-10, 10), "y": (-8, 8)}
    told = {"delta": 1e-6, "schema": schema, "unsafe_seed": 1}
    theirs = smf.ols("y ~ x", data).fit(cov_type="cluster", cov_kwds={"groups": owner})
    fit = dpreg.dp_ols("y ~ x", data, 1000, person="owner", **told)
    assert (fit.method, fit.cov_type, fit.nobs) == ("adaptive", "cluster", None)
    np.testing.assert_allclose(fit.params, theirs.params, atol=0.01)
    np.testing.assert_allclose(fit.bse, theirs.bse, rtol=0.1)
    rows = smf.ols("y ~ x", data).fit(cov_type="HC1")
    assert rows.bse["x"] < 0.7 * fit.bse["x"]
