"""dp_select for families: what is found, charged, refused before the charge, and shown."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf

import dpreg
from dpreg.errors import ArgumentError, BudgetError, DpregWarning, FormulaError, NotReleased
from dpreg.looks.tuning import TUNING
from dpreg.results.base import from_json
from dpreg.results.glm import GLMResults
from dpreg.results.report import report_html
from dpreg.results.selection import GLMSelectionResults

SCHEMA = {
    "a": (-1, 1),
    "b": (-1, 1),
    "c": (-1, 1),
    "copy": (-1, 1),
    "g": ["u", "v", "w"],
    "o": (0, 4),
    "days": (1, 30),
    "y": (0, 1),
    "word": ["no", "yes"],
    "visits": (0, 30),
}
RIGHT = "g + a + b + c"
TRUTH = {"Intercept": -0.5, "g[T.v]": 0.0, "g[T.w]": 1.0, "a": 1.5, "b": -1.0}


def table(rows: int = 20_000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, b, c = rng.uniform(-1, 1, (3, rows))
    g, days = rng.choice(["u", "v", "w"], rows), rng.integers(1, 31, rows).astype(float)
    o = rng.uniform(0, 4, rows)
    eta = -0.5 + 1.5 * a - b + 1.0 * (g == "w")
    y = (rng.random(rows) < 1 / (1 + np.exp(-eta))) * 1
    visits = rng.poisson(np.exp(0.3 + eta / 2))
    copy = np.clip(a + rng.normal(0, 0.001, rows), -1, 1)
    word = np.where(y == 1, "yes", "no")
    return pd.DataFrame(
        {"a": a, "b": b, "c": c, "copy": copy, "g": g, "o": o, "days": days}
    ).assign(y=y, word=word, visits=visits)


def select(formula=f"y ~ {RIGHT}", data=None, eps=2, **more):
    data = table() if data is None else data
    arguments = {"family": "binomial", "delta": 1e-6, "schema": SCHEMA, **more}
    return dpreg.dp_select(formula, data, eps, **arguments)


# ---- what is found ----


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"delta": 0, "eps": 4},
        {"neighbors": "add-remove"},
        {"contributions": 3, "eps": 6},
        {"fit": None},
        {"fit": "fresh"},
        {"formula": f"word ~ {RIGHT}"},
        {"formula": f"visits ~ {RIGHT}", "family": "poisson"},
        {"formula": f"visits ~ {RIGHT}", "family": "quasipoisson", "delta": 0, "eps": 6},
    ],
)
def test_the_terms_of_a_clear_model_are_found(options):
    options = {"formula": f"y ~ {RIGHT}", **options}
    result = select(false_inclusions="1e-4", unsafe_seed=5, **options)
    assert result.selected == ["Intercept", "g", "a", "b"]
    response = options["formula"].partition(" ~")[0]
    assert result.selected_formula == f"{response} ~ g + a + b"
    assert result.best == tuple(result.selected)
    assert result.alternatives == ()
    assert result.level["a"] < 1e-4 < 0.01 < result.level["c"]
    assert 0 < result.level_errors["c"] < 1
    assert result.selection_frequencies.to_dict() == {"g": 1.0, "a": 1.0, "b": 1.0, "c": 0.0}
    assert result.family == options.get("family", "binomial")
    assert (result.regression is None) == (options.get("fit", "") is None)


@pytest.mark.parametrize("fit", ["same", "fresh"])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_intervals_hold_the_truth(fit, delta):
    missed = 0
    for seed in range(5):
        result = select(
            data=table(seed=seed),
            delta=delta,
            false_inclusions="1e-4",
            fit=fit,
            eps=4 if delta else 8,
            unsafe_seed=seed,
        )
        assert result.regression.fit == fit
        assert result.regression.among == (5 if fit == "same" else None)
        ends = result.conf_int(0.005 if fit == "same" else 0.001)
        assert list(ends.index) == list(TRUTH)
        missed += sum(not ends.loc[k, 0] <= v <= ends.loc[k, 1] for k, v in TRUTH.items())
    assert missed <= 1


@pytest.mark.parametrize("fit", ["same", "fresh"])
def test_coefficients_tend_to_those_without_privacy_as_the_noise_vanishes(fit):
    """Those of a look of their own: of the chosen model; of the one that chose: beside all."""
    data = table()
    result = select(eps=1e6, fit=fit, data=data, unsafe_seed=1)
    formula = result.formula if fit == "same" else result.selected_formula
    theirs = smf.glm(formula, data, family=sm.families.Binomial()).fit()
    params, bse = (one[result.params.index] for one in (theirs.params, theirs.bse))
    # The look that chose is narrow: rows far out count less, whatever eps is.
    near = {"same": 2.0, "fresh": 0.05}[fit]
    np.testing.assert_allclose(result.regression.coefficients, params, atol=near * bse.min())
    np.testing.assert_allclose(result.bse, bse, rtol=max(near / 10, 0.05))
    assert 1 < result.level_errors["a"] / theirs.bse["a"] < 1.6
    assert set(result.regression.marks) == {"narrow" if fit == "same" else "above noise"}


def test_one_more_look_has_fresh_errors_of_the_stated_size():
    data, gaps = table(), []
    for seed in range(20):
        fit = select(data=data, fit="fresh", false_inclusions="1e-4", unsafe_seed=seed).regression
        theirs = smf.glm("y ~ g + a + b", data, family=sm.families.Binomial()).fit()
        gaps.append((fit.coefficients - theirs.params) / fit.bse_privacy)
    # Errors also hold what limits may have cut: they are rather too large.
    assert 0.6 < np.sqrt(np.mean(np.square(gaps))) < 1.3


def test_a_copy_is_in_a_group_and_never_dropped():
    result = select("y ~ a + b + copy", unsafe_seed=1)
    assert not {"a", "copy"} & set(result.selected)
    assert result.alternatives == (("a", "copy"),)
    (fitted,) = {"a", "copy"} & set(result.best)
    assert fitted in result.params.index
    assert "One of: {a, copy}" in " ".join(str(result.summary(full=True)).split())


def test_hierarchy_units_max_terms_and_keep():
    data = table()
    rng = np.random.default_rng(1)
    eta = -0.5 + data["a"] + data["b"] + 2 * data["a"] * data["c"]
    data["y"] = (rng.random(len(data)) < 1 / (1 + np.exp(-eta))) * 1
    tied = select("y ~ b + a:c + a + c", data, hierarchy="strong", unsafe_seed=2)
    assert {"a", "c", "a:c"} <= set(tied.best)
    by_column = select(units="column", unsafe_seed=3)
    assert by_column.selected == ["Intercept", "g[T.w]", "a", "b"]
    assert by_column.columns["g[T.w]"] == ("g[T.w]",)
    assert select(max_terms=1, unsafe_seed=3).best == ("Intercept", "a")
    assert "c" in select(keep=("Intercept", "c"), unsafe_seed=3).selected


def test_an_offset_is_in_every_model_and_no_candidate():
    data = table()
    rng = np.random.default_rng(7)
    data["visits"] = rng.poisson(data["days"] * np.exp(-2 + 0.5 * data["a"]))
    rates = select(
        "visits ~ b * c + a", data, family="poisson", exposure="days", unsafe_seed=1, eps=8
    )
    assert set(rates.candidates) == {"b", "c", "a", "b:c"}
    assert "np.log(days)" not in rates.columns
    assert rates.selected_formula == "visits ~ a"
    assert rates.params["a"] == pytest.approx(0.5, abs=0.1)
    theirs = rates.predict(data, which="linear") - np.log(data["days"])
    expected = rates.regression.coefficients @ [np.ones(len(data)), data["a"]]
    np.testing.assert_allclose(theirs, expected, atol=1e-9)


def test_a_choice_without_a_fit_keeps_its_offset_and_trials_when_saved():
    data = table()
    asked = {"family": "poisson", "eps": 8, "fit": None, "unsafe_seed": 1}
    rates = select("visits ~ a + b", data, exposure="days", **asked)
    assert (rates.offset, rates.trials) == ("np.log(days)", None)
    again = from_json(rates.to_json())
    assert again == rates
    assert again.offset == "np.log(days)"
    shares = select("y ~ a", data.assign(m=3, y=1), trials="m", fit=None, eps=8,
                    schema={**SCHEMA, "m": (1, 5), "y": (0, 5)})  # fmt: skip
    assert from_json(shares.to_json()).trials == "m"
    # Files of this format that were written before.
    older = json.loads(rates.to_json())
    for later in ("offset", "trials", "levels", "choice_errors", "false_inclusions"):
        del older[later]
    assert from_json(json.dumps(older)).offset is None


def test_nothing_is_found_in_noise():
    data = table()
    data["y"] = np.random.default_rng(1).integers(0, 2, len(data))
    for fit in ("same", "fresh"):
        result = select(data=data, fit=fit, false_inclusions="1e-3", unsafe_seed=4)
        assert result.selected == ["Intercept"]
        assert result.selected_formula == "y ~ 1"
        assert list(result.params.index) == ["Intercept"]
        assert abs(result.params["Intercept"]) < 0.15
        assert any("No candidate was selected" in remark for remark in result.remarks)


def test_few_rows_are_announced_and_nothing_is_found_among_them():
    with pytest.warns(DpregWarning, match="Terms may be missed"):
        result = select(data=table(500), eps="0.5", unsafe_seed=1)
    assert result.selected == ["Intercept"]
    assert any("The noise hides" in note for note in result.notes)


def test_a_fit_that_has_not_settled_says_so(monkeypatch):
    assert select(unsafe_seed=2).converged
    monkeypatch.setattr("dpreg.looks.model.TUNING", replace(TUNING, longest=2e-4))
    result = select(unsafe_seed=2)
    assert not result.converged
    assert any("had not settled" in note for note in result.notes)


def test_rare_events_and_little_eps_do_not_choose_useless_terms():
    useless = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        data = pd.DataFrame(rng.uniform(-1, 1, (10_000, 4)), columns=list("abcd"))
        data["y"] = (rng.random(10_000) < 1 / (1 + np.exp(3 - 2 * data["a"]))) * 1
        schema = {**dict.fromkeys("abcd", (-1, 1)), "y": (0, 1)}
        result = select("y ~ a + b + c + d", data, "0.3", schema=schema, unsafe_seed=seed, fit=None)
        useless.append(len({"b", "c", "d"} & set(result.selected)))
    assert sum(useless) <= 4


# ---- what is charged ----


def test_the_choice_costs_nothing_beside_the_looks():
    ledger = dpreg.Ledger(dpreg.Budget(20, "1e-4"))
    same = select(fit="same", budget=ledger)
    assert same.budget["step"].tolist() == ["looks 1-4"]
    assert str(ledger.spent) == "eps=2, delta=0.000001"
    fresh = select(delta=0, fit="fresh", shares={"fit": "0.25"}, budget=ledger)
    assert fresh.budget[["step", "eps"]].to_numpy().tolist()[0] == ["looks 1-5", "2"]
    assert ledger.spent == dpreg.Budget(4, "0.000001")
    with pytest.raises(BudgetError):
        select(eps=100, budget=ledger)
    assert sum(look.share for look in fresh.releases) == pytest.approx(0.75)
    assert sum(look.share for look in fresh.regression.releases) == pytest.approx(0.25)


def test_bounds_that_are_bought_take_their_share():
    partly = {name: how for name, how in SCHEMA.items() if name != "a"}
    with pytest.warns(DpregWarning, match="leaves out a"):
        result = select(schema=partly, eps=4, shares={"bounds": "0.25"}, fit=None)
    assert result.budget["eps"].tolist() == ["1", "3"]
    assert result.bounds["a"] == "private"


# ---- what is refused, before a row is read ----


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"family": "gamma"}, "family"),
        ({"family": None, "offset": "o"}, "offset needs family="),
        ({"family": None, "response_cap": 3}, "response_cap needs family="),
        ({"method": "pcls"}, 'method="pcls" is for linear models'),
        ({"method": "pcpl"}, 'method="pcpl" is for linear models'),
        ({"method": dpreg.PCLS(radius=2)}, 'method="pcls" is for linear models'),
        ({"draws": 3}, 'method="pcls" is for linear models'),
        ({"shares": {"count": "0.1"}}, "shares"),
        ({"shares": {"bounds": "0.1"}}, "shares names bounds"),
        ({"fit": "same", "shares": {"fit": "0.1"}}, "shares"),
        ({"fit": "share"}, 'fit="share" belongs to linear models'),
        ({"fit": "split"}, 'looks fit the chosen terms by fit="fresh"'),
        ({"clip": "0.5"}, "clip and center"),
        ({"center": False}, "clip and center"),
        ({"keep": ("a",)}, "the intercept is in every model"),
        ({"keep": ("Intercept", "nix")}, "is not a term"),
        ({"offset": "a"}, "offset must be one column"),
        ({"exposure": "days"}, "exposure belongs to Poisson"),
        ({"response_cap": 3}, "response_cap belongs to Poisson"),
        ({"formula": "visits ~ a"}, "must lie between 0 and 1"),
        ({"formula": "y ~ a + b - 1", "keep": ()}, "the intercept is in every model"),
        ({"formula": "y ~ a + b - 1"}, "needs an intercept"),
        ({"formula": "y ~ 1"}, "needs a column beside the intercept"),
        ({"hierarchy": "strong", "formula": "y ~ a + a:b"}, "lacks b"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_charged(options, says, monkeypatch):
    ledger = dpreg.Ledger(10)
    monkeypatch.setattr("dpreg.api.select.look", None)
    with pytest.raises((ArgumentError, FormulaError, dpreg.errors.SchemaError), match=says):
        select(budget=ledger, **options)
    assert not ledger.entries


# ---- what is shown ----


def test_views_and_saved_results(tmp_path):
    result = select(fit="same", unsafe_seed=3)
    assert isinstance(result, GLMSelectionResults)
    assert isinstance(result.regression, GLMResults)
    again = from_json(result.to_json())
    assert again == result
    assert isinstance(again, GLMSelectionResults)
    assert json.loads(result.to_json())["kind"] == "glm-selection"
    pd.testing.assert_frame_equal(again.ratios(0.1), result.ratios(0.1))
    assert result.ratios().columns[0] == "odds ratio"
    rows = table(5)
    with pytest.raises(NotReleased, match="get_prediction is not released"):
        result.get_prediction(rows)
    with pytest.raises(NotReleased, match="predict is not released"):
        result.predict(rows)
    fresh = select(fit="fresh", unsafe_seed=3)
    mean, linear = fresh.predict(rows), fresh.predict(rows, which="linear")
    np.testing.assert_allclose(mean, 1 / (1 + np.exp(-linear)))
    frame = fresh.get_prediction(rows).summary_frame()
    assert (frame["mean_ci_lower"] < frame["mean_ci_upper"]).all()
    page = " ".join(str(result.summary(ratios=True, full=True)).split())
    for words in ("binomial regression: y", "for the choice among 5", "odds ratio", "level"):
        assert words in page
    assert "linear model" not in page
    assert "sampling and cut" not in page
    assert "sampling privacy" in page
    report = report_html(result)
    assert "right. Privacy does not rest on it." in report
    assert "linear model" not in report
    renamed = str(result.summary(xname=["one", "two", "three", "four", "five"], yname="told"))
    assert "told" in renamed
    assert "five" in renamed
    with pytest.raises(NotReleased, match="cov_params"):
        result.cov_params()
    with pytest.raises(NotReleased):
        _ = result.rsquared
    with pytest.raises(NotReleased, match="fit=None"):
        select(fit=None, unsafe_seed=3).ratios()


def test_pictures_are_in_units_of_the_linear_predictor():
    pytest.importorskip("matplotlib")
    axes = select(unsafe_seed=3).plot()
    assert "log odds of y" in axes.get_xlabel()
    counts = select(f"visits ~ {RIGHT}", family="poisson", unsafe_seed=3)
    assert "logarithms of the mean of visits" in counts.plot().get_xlabel()
    assert "frequencies" not in counts.plot("frequencies").get_xlabel()


@pytest.mark.parametrize("private", [{"neighbors": "add-remove"}, {"person": "who"}])
def test_a_private_number_of_rows_is_not_told_and_warns_of_nothing(private, tmp_path):
    few = table(40).assign(who=[f"p{j}" for j in range(40)])
    few.to_csv(tmp_path / "few.csv", index=False)
    for data in (few, tmp_path / "few.csv"):
        result = select(data=data, unsafe_seed=1, **private)  # a warning would be an error
        assert result.nobs is None
        assert result.regression is None or result.regression.nobs is None
        with pytest.warns(DpregWarning, match="Terms may be missed"):
            assert select(data=data, unsafe_seed=1).nobs == 40
