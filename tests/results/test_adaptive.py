"""Marks, kinds of errors, and pages of adaptive fits."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.errors import ArgumentError, NotReleased
from dpreg.results import tables as views
from dpreg.results.report import report_html
from dpreg.results.summary import Facts

SCHEMA = {"x": (-1, 1), "g": ["u", "v", "w"], "y": (-5, 5), "b": (0, 1)}
LOUD = "wide: the fit without privacy may differ by more"
HIDDEN = "too few rows to say"


def drawn(rows=20_000):
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.uniform(-1, 1, rows), "id": np.arange(rows) // 4})
    data["g"] = rng.choice(["u", "v", "w"], rows)
    data["y"] = (data["x"] + rng.normal(0, 1, rows)).clip(-5, 5)
    data["b"] = (rng.random(rows) < 0.5).astype(int)
    return data


def ols(**more):
    told = {"eps": 2, "delta": "1e-6", "schema": SCHEMA, "unsafe_seed": 1}
    return dpreg.dp_ols("y ~ x + g", drawn(), **{**told, **more})


def glm(**more):
    told = {"eps": 2, "delta": "1e-6", "schema": SCHEMA, "unsafe_seed": 1}
    return dpreg.dp_glm("b ~ x + g", drawn(), **{**told, **more})


def without(fit, *names):
    """Hide coefficients of a fit as `dpreg.api.adaptive` does."""
    found = {}
    hidden = [fit.exog_names.index(name) for name in names]
    for name in ("covariance", "privacy_covariance"):
        found[name] = getattr(fit, name).copy()
        found[name][hidden, :] = np.nan
        found[name][:, hidden] = np.nan
    for name in ("sampling_errors", "privacy_errors"):
        found[name] = getattr(fit, name).copy()
        found[name][hidden] = np.nan
    return replace(fit, **found, weak=dict.fromkeys(names, HIDDEN))


@pytest.mark.parametrize("call", [ols, glm])
def test_every_coefficient_has_a_mark(call):
    fit = replace(call(), weak={"x": LOUD, "g[T.v]": HIDDEN})
    assert fit.marks.to_dict() == {
        "Intercept": "above noise",
        "x": "wide",
        "g[T.v]": "too few rows to say",
        "g[T.w]": "above noise",
    }
    line = "; ".join([f"x: {LOUD}", f"g[T.v]: {HIDDEN}"])
    page = fit.summary(full=True)
    assert f"Marked: {line}" in " ".join(page.as_text().split())
    for text in (page.as_html(), page.as_latex(), page.as_csv(), report_html(fit)):
        assert HIDDEN in text
    assert "Marked" not in replace(fit, weak={}).summary(full=True).as_text()
    screen = " ".join(str(fit).split())
    assert f"w = {LOUD}" in screen
    assert f"? = {HIDDEN}" in screen
    assert type(fit).from_json(fit.to_json()).marks.equals(fit.marks)


def test_other_methods_have_no_marks():
    with pytest.raises(NotReleased, match='marks belongs to method="adaptive"; this was "gram"'):
        _ = ols(method="gram").marks


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("call", [ols, glm])
def test_a_hidden_coefficient_takes_no_interval_from_the_others(call, delta):
    whole = call(delta=delta)
    fit = without(whole, "g[T.w]")
    seen = ["Intercept", "x", "g[T.v]"]
    for name in ("pvalues", "bse"):
        pd.testing.assert_series_equal(getattr(fit, name)[seen], getattr(whole, name)[seen])
        assert np.isnan(getattr(fit, name)["g[T.w]"])
    pd.testing.assert_frame_equal(fit.conf_int().loc[seen], whole.conf_int().loc[seen])
    assert fit.conf_int().loc["g[T.w]"].isna().all()
    assert fit.t_test("x = g[T.v]").pvalue == whole.t_test("x = g[T.v]").pvalue
    assert np.isnan(fit.t_test("x = g[T.w]").pvalue).all()
    assert fit.wald_test("x = 0, g[T.v] = 0").pvalue == whole.wald_test("x = 0, g[T.v] = 0").pvalue
    assert np.isnan(fit.wald_test("x = 0, g[T.w] = 0").pvalue)
    rows = pd.DataFrame({"x": [0.5, 0.5], "g": ["v", "w"]})
    assert np.isfinite(fit.get_prediction(rows).conf_int()).all(axis=1).tolist() == [True, False]
    assert np.isfinite(fit.predict(rows)).all()


@pytest.mark.parametrize("call", [ols, glm])
def test_errors_are_robust_and_clustered_by_person(call):
    rows, persons = call(), call(person="id")
    assert (rows.cov_type, persons.cov_type) == ("HC", "cluster")
    assert "rows' scores" in rows.cov_kwds["description"]
    assert "persons' scores" in persons.cov_kwds["description"]
    assert dict(table_of(rows))["Intervals"] == "robust"
    assert dict(table_of(persons))["Intervals"] == "robust, clustered"
    for fit, unit in ((rows, "where rows are"), (persons, "where persons are")):
        text = " ".join(str(fit.summary(full=True)).split())
        assert f"independent {unit.split()[1]}. Errors are robust" in " ".join(str(fit).split())
        assert f"{unit} independent" in text
        assert "one residual variance" not in text
        assert f"{unit} independent" in report_html(fit)
        assert ("clustered by person" in text) == (fit is persons)


def table_of(fit):
    facts = next(block for block in fit.summary(full=True).blocks if isinstance(block, Facts))
    return [*facts.left, *facts.right]


def test_gram_is_not_robust():
    assert ols(method="gram").cov_type == "nonrobust"
    assert "one residual variance" in " ".join(str(ols(method="gram")).split())


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("call", [ols, glm])
def test_the_summary_has_a_line_for_each_look(call, delta):
    fit = call(delta=delta)
    (grid,) = views.looks(fit.releases, family=False)
    assert [row[0] for row in grid.rows] == [f"look {i + 1}" for i in range(len(fit.releases))]
    first = f"{float(fit.releases[0].share):.2g}"
    assert grid.rows[0] == ("look 1", "on the unit scale", first, "", "")
    last, row = fit.releases[-1], grid.rows[-1]
    least = not delta
    assert last.kind == ("minimum" if least else "fitting")
    assert row[1] == ("to fit, by a minimum" if least else "to fit")
    assert row[3:] == tuple(f"{limit:.3g}" for limit in last.limits)
    text = str(fit.summary(full=True))
    for line in grid.rows:
        assert any(shown.split() == " ".join(line).split() for shown in text.splitlines())
    assert views.looks((), family=False) == []


@pytest.mark.parametrize("call", [ols, glm])
def test_the_claim_says_that_all_rows_of_a_person_were_summed(call):
    fit = call(person="id")
    assert fit.claim.whole
    assert "all rows with one value of 'id', however many: they were summed" in fit.privacy
    assert "(all rows, replace-one)" in " ".join(str(fit).split())
    text = " ".join(str(fit.summary(full=True)).split())
    assert "Contributions: all" in text
    assert "whose rows were all summed" in report_html(fit)
    again = type(fit).from_json(fit.to_json())
    assert (again, again.claim) == (fit, fit.claim)
    assert "whole" not in json.loads(call().to_json())["claim"]
    with pytest.raises(ArgumentError, match="whole needs the person"):
        replace(call().claim, whole=True)


def test_a_method_that_takes_so_many_rows_of_a_person_says_so():
    fit = ols(method="gram", person="id", contributions=2)
    assert not fit.claim.whole
    assert "at most 2 rows were used" in fit.privacy
