"""dp_glm: against statsmodels as the noise vanishes, refusals, views and saved results."""

from __future__ import annotations

import dataclasses
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf

import dpreg
from dpreg.errors import (
    ArgumentError,
    BudgetError,
    DataError,
    DpregWarning,
    FormulaError,
    NotReleased,
    SchemaError,
)
from dpreg.results.base import from_json
from dpreg.results.glm import GLMResults
from dpreg.results.saved import fields_of
from dpreg.sources import as_source

SCHEMA = {
    "x": (-1, 1),
    "w": (0, 10),
    "g": ["u", "v", "w"],
    "yes": bool,
    "word": ["no", "yes"],
    "y": (0, 1),
    "o": (-2, 2),
    "days": (1, 30),
}


def table(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(
        {
            "x": rng.uniform(-1, 1, n),
            "w": rng.uniform(0, 10, n),
            "g": rng.choice(["u", "v", "w"], n),
            "o": rng.uniform(-2, 2, n),
            "days": rng.integers(1, 31, n).astype(float),
        }
    )
    eta = -0.5 + 1.2 * data["x"] + 0.1 * data["w"] - 0.8 * (data["g"] == "v")
    data["y"] = (rng.random(n) < 1 / (1 + np.exp(-eta))) * 1
    data["yes"] = data["y"] == 1
    data["word"] = np.where(data["yes"], "yes", "no")
    return data


def glm(formula="y ~ x + w + g", data=None, eps=1, **more):
    data = table() if data is None else data
    return dpreg.dp_glm(formula, data, eps, **{"delta": 1e-6, "schema": SCHEMA, **more})


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("formula", ["y ~ x + w + g", "y ~ x * g", "y ~ I(x**2) + np.log1p(w)"])
def test_tends_to_statsmodels_as_the_noise_vanishes(formula, neighbors):
    data = table(30_000)
    theirs = smf.glm(formula, data, family=sm.families.Binomial()).fit(cov_type="HC0")
    ours = glm(formula, data, 1e6, neighbors=neighbors, unsafe_seed=1)
    assert ours.params.index.tolist() == theirs.params.index.tolist()
    assert (np.abs(ours.params - theirs.params) < 0.005 * theirs.bse).all()
    np.testing.assert_allclose(ours.predict(data), theirs.predict(data), atol=8e-4)
    linear = theirs.predict(data, which="linear")
    np.testing.assert_allclose(ours.predict(data, which="linear"), linear, atol=5e-3)
    assert ours.scale == theirs.scale == 1
    assert (ours.family, ours.link, ours.converged) == ("binomial", "logit", True)
    assert ours.df_model == theirs.df_model


@pytest.mark.parametrize("formula", ["y ~ x + w + g", "y ~ x * g", "y ~ I(x**2) + np.log1p(w)"])
def test_errors_tend_to_robust_ones_as_the_noise_vanishes(formula):
    data = table(30_000)
    theirs = smf.glm(formula, data, family=sm.families.Binomial()).fit(cov_type="HC0")
    ours = glm(formula, data, 1e6, unsafe_seed=1)
    np.testing.assert_allclose(ours.bse, theirs.bse, rtol=0.005)
    np.testing.assert_allclose(ours.tvalues, theirs.tvalues, rtol=0.005, atol=0.005)


def test_pure_eps_is_charged_and_spent():
    ledger = dpreg.Ledger(1)
    data = table(20_000)
    theirs = smf.glm("y ~ x + w", data, family=sm.families.Binomial()).fit()
    fit = glm("y ~ x + w", data, delta=0, budget=ledger, unsafe_seed=1)
    assert (fit.noise, fit.noise_degrees) == ("matrix-laplace", 2)
    assert fit.spent == ledger.spent == dpreg.Budget(1)
    assert fit.budget["mechanism"].tolist()[0] == "matrix-laplace"
    assert (np.abs(fit.params - theirs.params) < 6 * fit.bse).all()
    p = fit.pvalues["w"]
    assert min(abs(fit.conf_int(p).loc["w"])) == pytest.approx(0, abs=1e-3)
    exact = glm("y ~ x + w", data, 1e6, delta=0, unsafe_seed=1)
    assert (np.abs(exact.params - theirs.params) < 0.08 * theirs.bse).all()


@pytest.mark.parametrize("response", ["yes", "word", "I(1 * yes)"])
def test_two_levels_and_truths_are_zeros_and_ones(response):
    plain = glm(unsafe_seed=4)
    same = glm(f"{response} ~ x + w + g", unsafe_seed=4)
    np.testing.assert_array_equal(plain.coefficients, same.coefficients)
    assert same.endog_names == response
    assert same.success == ("yes" if response == "word" else None)
    pd.testing.assert_series_equal(plain.predict(table(20)), same.predict(table(20)))


def test_an_undeclared_response_lies_between_0_and_1():
    schema = {name: how for name, how in SCHEMA.items() if name != "y"}
    assert glm(schema=schema, unsafe_seed=4) == glm(unsafe_seed=4, schema={**schema, "y": (0, 1)})


def test_an_offset_is_added_with_coefficient_1():
    data = table(20_000)
    rng = np.random.default_rng(3)
    eta = -0.5 + data["x"] + data["o"]
    data["y"] = (rng.random(len(data)) < 1 / (1 + np.exp(-eta))) * 1
    ours = glm("y ~ x + w", data, 1e5, offset="o", unsafe_seed=1)
    family = sm.families.Binomial()
    theirs = smf.glm("y ~ x + w", data, family=family, offset=data["o"]).fit()
    assert ours.params.index.tolist() == ["Intercept", "x", "w"]
    np.testing.assert_allclose(ours.params, theirs.params, atol=2e-3)
    np.testing.assert_allclose(ours.bse, theirs.bse, rtol=0.05)
    known = theirs.predict(data, offset=data["o"])
    np.testing.assert_allclose(ours.predict(data), known, atol=1e-3)
    assert ours.offset == "o"
    again = from_json(ours.to_json())
    pd.testing.assert_series_equal(again.predict(data), ours.predict(data))
    shifted = glm("y ~ x + w", data, 1e5, offset="I(o / 2 + np.log(days))", unsafe_seed=1)
    half = data["o"] / 2 + np.log(data["days"])
    theirs = smf.glm("y ~ x + w", data, family=family, offset=half).fit()
    np.testing.assert_allclose(shifted.params, theirs.params, atol=0.02)


def test_errors_are_of_the_stated_size():
    data = table(20_000)
    truth = smf.glm("y ~ x + w", data, family=sm.families.Binomial()).fit().params
    runs = [glm("y ~ x + w", data, unsafe_seed=seed) for seed in range(40)]
    z = np.array([(run.params - truth) / run.bse_privacy for run in runs])
    assert 0.8 < np.sqrt((z**2).mean()) < 1.25


def test_predictions_have_intervals_through_the_link():
    fit, rows = glm("y ~ x + w", table(20_000), unsafe_seed=1), table(5)
    mean, linear = fit.get_prediction(rows), fit.get_prediction(rows, which="linear")
    frame = mean.summary_frame(0.1)
    assert list(frame) == ["mean", "mean_se", "mean_ci_lower", "mean_ci_upper"]
    assert (
        (frame["mean_ci_lower"] < frame["mean"]) & (frame["mean"] < frame["mean_ci_upper"])
    ).all()
    expit = 1 / (1 + np.exp(-linear.conf_int(0.1)))
    np.testing.assert_allclose(mean.conf_int(0.1), expit)
    np.testing.assert_allclose(mean.se, linear.se * frame["mean"] * (1 - frame["mean"]))
    assert list(linear.summary_frame()) == ["linpred", "linpred_se", "ci_lower", "ci_upper"]
    with pytest.raises(ArgumentError, match="which"):
        fit.predict(rows, which="response")
    with pytest.raises(NotReleased, match="table of your own"):
        fit.predict()


def test_ratios_and_the_summary():
    fit = glm(data=table(20_000), unsafe_seed=1)
    ratios = fit.ratios()
    np.testing.assert_allclose(ratios["odds ratio"], np.exp(fit.params))
    np.testing.assert_allclose(ratios[[0, 1]], np.exp(fit.conf_int()))
    text = str(fit.summary(ratios=True, full=True))
    for part in ("Private binomial regression: y", "odds ratio", "look 2", "Converged", "logit"):
        assert part in text
    assert "odds ratio" not in str(fit)
    assert "linear model" not in text
    assert "NOT PRIVATE" in text
    contrast = fit.t_test("x = 0")
    assert contrast.pvalue[0] == pytest.approx(fit.pvalues["x"])


def test_where_no_intervals_are_earned_there_are_none():
    ledger = dpreg.Ledger(dpreg.Budget(1, "1e-6"))
    message = r"4 columns need about [\d,]+ rows .* the table has 300\..* Intervals may be missing"
    with pytest.warns(DpregWarning, match=message) as told:
        fit = glm(data=table(300), eps="0.1", budget=ledger, unsafe_seed=1)
    eps = float(re.search(r"use eps >= (\d+(\.\d+)?)", str(told[0].message))[1])
    assert glm(data=table(300), eps=1.1 * eps).spent.eps > 0.1  # without a warning
    assert (fit.marks == "too few rows to say").all()
    assert fit.bse.isna().all()
    assert fit.conf_int().isna().all(axis=None)
    assert np.isfinite(fit.params).all()
    assert "too few" in str(fit)
    assert dict(fit.summary(full=True).blocks[3].right)["Intervals"] == "none"
    assert fit.ratios()["odds ratio"].notna().all()
    assert "odds ratio" in str(fit.summary(ratios=True))


def test_what_a_release_cannot_have_says_why():
    fit = glm()
    for name in ("deviance", "null_deviance", "llf", "aic", "pearson_chi2", "mu", "resid_response"):
        with pytest.raises(NotReleased, match=name):
            getattr(fit, name)
    with pytest.raises(NotReleased, match="linear models"):
        _ = fit.rsquared


PUBLIC = [
    name
    for name in dir(
        sm.GLM([0.0, 1, 1, 0], [[1.0, 2], [1, 3], [1, 1], [1, 2.5]], sm.families.Binomial()).fit()
    )
    if not name.startswith("_")
]


def test_each_name_of_statsmodels_gives_a_value_or_its_reason():
    fit = glm(eps=5)
    assert len(PUBLIC) > 50
    for name in PUBLIC:
        try:
            told = repr(getattr(fit, name))
        except NotReleased as reason:
            told = str(reason)
        assert told != "None"
        assert "residual sum of squares" not in told


def test_the_law_of_pure_noise_is_told():
    data = table(20_000)
    fits = [glm("y ~ x + w", data, 2, delta=d) for d in (0, 1e-6)]
    pages = [" ".join(str(fit.summary(full=True)).split()) for fit in fits]
    assert ["heavier than normal" in page for page in pages] == [True, False]


def test_a_saved_result_is_the_same(tmp_path):
    fit = glm(offset="o")
    assert set(fields_of(GLMResults)) == {f.name for f in dataclasses.fields(GLMResults)}
    fit.save(tmp_path / "fit.json")
    assert dpreg.load(tmp_path / "fit.json") == fit
    assert pickle.loads(pickle.dumps(fit)) == fit
    assert str(dpreg.load(tmp_path / "fit.json")) == str(fit)
    with pytest.raises(ArgumentError, match="link"):
        GLMResults.from_json(fit.to_json().replace('"link": "logit"', '"link": "probit"'))


def test_the_price_is_what_was_asked():
    ledger = dpreg.Ledger(dpreg.Budget(2, "1e-5"))
    fit = glm(eps=1, budget=ledger)
    assert fit.spent == dpreg.Budget(1, "1e-6") == ledger.spent
    assert 3 <= fit.passes == len(fit.releases) <= 5
    assert sum(look.share for look in fit.releases) == 1
    with pytest.raises(BudgetError):
        glm(eps=2, budget=ledger)


def test_bounds_left_out_are_bought():
    schema = {name: how for name, how in SCHEMA.items() if name != "w"}
    with pytest.warns(dpreg.errors.DpregWarning, match="leaves out w"):
        fit = glm("y ~ x + w", eps=5, schema=schema)
    assert fit.bounds == {"y": "schema", "x": "schema", "w": "private"}
    assert fit.spent.eps == 5


@pytest.mark.parametrize(
    ("more", "error", "match"),
    [
        ({"delta": 0, "noise": "gaussian"}, ArgumentError, "delta above 0"),
        ({"noise": "laplace"}, ArgumentError, "noise"),
        ({"family": "gamma"}, ArgumentError, "family"),
        ({"formula": "y ~ x - 1"}, FormulaError, "intercept"),
        ({"formula": "y ~ 1"}, FormulaError, "beside the intercept"),
        ({"formula": "w ~ x"}, SchemaError, "between 0 and 1"),
        ({"formula": "g ~ x"}, SchemaError, "3 declared levels"),
        ({"formula": "I(w / 5) ~ x"}, SchemaError, "between 0 and 1"),
        ({"exposure": "days"}, ArgumentError, "exposure"),
        ({"response_cap": 3}, ArgumentError, "response_cap"),
        ({"response_cap": 3, "family": "poisson"}, ArgumentError, "leaves out"),
        ({"formula": "v ~ x", "family": "poisson"}, ArgumentError, "give response_cap"),
        (
            {"formula": "v ~ x", "family": "poisson", "response_cap": 0},
            ArgumentError,
            "response_cap",
        ),
        *(
            (
                {"formula": "v ~ x", "family": "poisson", "response_cap": cap},
                SchemaError,
                "upper bound",
            )
            for cap in ("1e-60", "1e60")
        ),
        ({"formula": "o ~ x", "family": "poisson"}, SchemaError, "must be a count"),
        ({"formula": "g ~ x", "family": "poisson"}, SchemaError, "must be a count"),
        ({"offset": "x"}, ArgumentError, "not a term of the formula"),
        ({"offset": "g"}, ArgumentError, "one column of numbers"),
        ({"offset": "o + days"}, ArgumentError, "one column or expression"),
        ({"offset": "nowhere"}, FormulaError, "nowhere"),
        ({"offset": "I(150 * o)"}, SchemaError, "keep it within 100"),
        ({"offset": "I(o - 150)"}, SchemaError, "keep it within 100"),
        ({"offset": "o", "family": "poisson", "exposure": "days"}, ArgumentError, "not both"),
        ({"shares": {"bounds": 0.2}}, ArgumentError, "does not need"),
        ({"shares": {"count": 0.2}}, ArgumentError, "bounds"),
        ({"shares": 0.2}, ArgumentError, "must be a mapping"),
        ({"eps": -1}, ArgumentError, "eps"),
    ],
)
def test_what_cannot_be_done_is_refused_before_the_charge(more, error, match):
    ledger = dpreg.Ledger(dpreg.Budget(5, "1e-5"))
    with pytest.raises(error, match=match):
        glm(**{"formula": "y ~ x + w", "budget": ledger, **more})
    assert ledger.spent == dpreg.Budget(0)


def counts(n=20_000, seed=0, spread=0.0):
    """Counts of days of exposure; with `spread`, more scattered than Poisson's."""
    data = table(n, seed)
    rng = np.random.default_rng([seed, 1])
    rate = np.exp(-2.5 + 0.8 * data["x"] + 0.08 * data["w"] + np.log(data["days"]))
    if spread:
        rate = rate * rng.gamma(1 / spread, spread, n)
    data["v"] = np.minimum(rng.poisson(rate), 12)
    return data


@pytest.mark.parametrize("offset", [None, "o"])
def test_counts_tend_to_maximum_likelihood_and_its_robust_errors(offset):
    """Also where the offset goes with the columns, so that the first fit is far off."""
    rng = np.random.default_rng(0)
    data = table(30_000)
    data["o"] = 0.5 * data["x"] + rng.uniform(-0.5, 0.5, len(data))
    data["v"] = rng.poisson(np.exp(0.3 + 0.8 * data["x"] - 0.1 * data["w"] + data["o"]))
    known = None if offset is None else data["o"]
    model = smf.glm("v ~ x + w", data, family=sm.families.Poisson(), offset=known)
    theirs = model.fit(cov_type="HC0")
    schema = {**SCHEMA, "v": (0, 60)}
    ours = glm(
        "v ~ x + w", data, 1e6, family="poisson", schema=schema, offset=offset, unsafe_seed=1
    )
    assert (np.abs(ours.params - theirs.params) < 0.005 * theirs.bse).all()
    np.testing.assert_allclose(ours.bse, theirs.bse, rtol=0.005)


def test_rare_levels_do_not_touch_the_errors_of_others():
    data = table(20_000)
    data["g"] = np.where(np.arange(len(data)) < 3, "w", np.where(data["g"] == "w", "v", data["g"]))
    schema = {**SCHEMA, "g": ["u", "v"]}
    ratios, marks = [], []
    for seed in range(8):
        with_it = glm("y ~ x + w + g", data, unsafe_seed=seed)
        marks.append(with_it.marks["g[T.w]"])
        without = glm("y ~ x + w + g", data, schema=schema, unsafe_seed=seed)
        ratios.append(with_it.bse[["x", "w"]] / without.bse[["x", "w"]])
    assert np.median(ratios) < 2
    assert marks.count("too few rows to say") >= 7


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_a_dispersion_that_noise_hides_is_no_number(delta):
    data = counts(200)
    told = {"family": "quasipoisson", "response_cap": 12, "exposure": "days", "delta": delta}
    with pytest.warns(DpregWarning, match="need about"):
        few = glm("v ~ x + w", data, "0.1", unsafe_seed=1, **told)
    assert np.isnan(few.scale)
    assert from_json(few.to_json()) == few
    assert "not released" in str(few.summary(full=True))
    many = glm("v ~ x + w", counts(20_000), 4, unsafe_seed=1, **told)
    assert many.scale == pytest.approx(1, rel=0.3)


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_counts_tend_to_statsmodels_as_the_noise_vanishes(neighbors):
    data = counts(30_000, spread=0.7)
    family = sm.families.Poisson()
    theirs = smf.glm("v ~ x + w", data, family=family, exposure=data["days"]).fit(scale="X2")
    given = {"family": "quasipoisson", "response_cap": 12, "exposure": "days"}
    ours = glm("v ~ x + w", data, 1e6, neighbors=neighbors, unsafe_seed=1, **given)
    np.testing.assert_allclose(ours.params, theirs.params, atol=2e-3)
    # The spread of these counts grows with their mean, and far rows count more in ours.
    np.testing.assert_allclose(ours.scale, theirs.scale, rtol=0.2)
    np.testing.assert_allclose(ours.bse, theirs.bse, rtol=0.15)
    np.testing.assert_allclose(
        ours.predict(data), theirs.predict(data, exposure=data["days"]), rtol=2e-3
    )
    plain = glm("v ~ x + w", data, 1e6, unsafe_seed=2, **{**given, "family": "poisson"})
    assert plain.scale == 1
    np.testing.assert_allclose(plain.bse, ours.bse, rtol=0.02)
    assert (ours.link, ours.offset) == ("log", "np.log(days)")
    assert "rate ratio" in str(ours.summary(ratios=True))


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_intervals_of_counts_hold(spread):
    many = counts(200_000, 99, spread)
    family = sm.families.Poisson()
    truth = smf.glm("v ~ x + w", many, family=family, exposure=many["days"]).fit().params.to_numpy()
    schema = {**SCHEMA, "v": (0, 12)}
    inside = []
    for seed in range(40):
        data = counts(8000, seed, spread)
        fit = glm(
            "v ~ x + w",
            data,
            2,
            family="poisson",
            exposure="days",
            schema=schema,
            unsafe_seed=seed,
        )
        low, high = fit.conf_int().to_numpy().T
        inside.append((low < truth) & (truth < high))
    assert np.mean(inside) > 0.88


@pytest.mark.parametrize("offset", ["o - w", "o + w", "o - 1", "o:w", "x"])
def test_an_offset_is_one_term_and_no_sum_of_terms(offset):
    with pytest.raises(ArgumentError, match="offset must be one column"):
        glm("y ~ x + w", offset=offset)


def test_an_offset_needs_declared_bounds():
    schema = {name: how for name, how in SCHEMA.items() if name != "o"}
    with pytest.raises(SchemaError, match="offset"):
        glm("y ~ x + w", schema=schema, offset="o")


def test_rows_are_read_several_times():
    rows = pa.Table.from_pandas(table(50))
    with pytest.raises(DataError, match="once"):
        glm(data=as_source(rows.to_reader(), hold=False))


def test_a_person_may_own_rows():
    data = table(3000)
    data["id"] = np.arange(3000) // 3
    fit = glm(data=data, person="id", contributions=2, eps=5)
    assert fit.nobs is None
    assert "at most 2 rows were used" in fit.privacy


def test_a_stream_of_persons_is_kept_for_all_looks_and_for_bounds_unless_it_may_not_be():
    data = table(3000).assign(id=np.arange(3000) // 3)
    schema = {name: how for name, how in SCHEMA.items() if name != "w"}
    stream = pa.Table.from_pandas(data).to_reader
    ledger = dpreg.Ledger(dpreg.Budget(9, "1e-5"))
    with pytest.raises(DataError, match="bounds have to be bought"):
        glm(data=as_source(stream(), hold=False), person="id", schema=schema, budget=ledger)
    assert ledger.spent.eps == 0
    told = {"person": "id", "unsafe_seed": 1}
    for given in (stream(), as_source(stream(), hold=False)):
        assert glm(data=given, **told).params.equals(glm(data=data, **told).params)
    with pytest.warns(DpregWarning, match="leaves out w"):
        bought = [glm(data=given, schema=schema, **told).params for given in (stream(), data)]
    assert bought[0].equals(bought[1])


def test_few_rows_are_looked_at_and_told_before_the_charge():
    messages = []
    for data in (table(400), table(400).assign(y=1), table(400).assign(x=np.nan)):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            fit = glm(data=data, eps="0.01", delta=0)
        messages.append([str(one.message) for one in told])
        assert fit.method == "adaptive"
        assert np.isfinite(fit.params).all()
        assert fit.predict(table(5)).between(0, 1).all()
    assert messages[0] == messages[1] == messages[2]
    assert re.search(r"columns need about [\d,]+ rows.*has 400\.", messages[0][0])
