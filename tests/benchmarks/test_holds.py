"""`benchmarks.holds` holds intervals against the right thing, and counts right."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf

from benchmarks._holds_case import HALVES, Case, Scaled, scaled
from benchmarks._holds_fit import Fit, by_calls, by_function, engine
from benchmarks._holds_plain import Plain, plain_fit
from benchmarks._holds_real import _table
from benchmarks._holds_score import averages, missed, score
from benchmarks.holds import all_cases, run

CASES = all_cases()
BOUNDS = {"x": (0, 4), "g": ["a", "b"], "y": (-3, 9)}


def rows(rng, family="linear"):
    x = rng.uniform(-1, 6, 400)  # some beyond the bounds
    g = rng.choice(["a", "b"], 400)
    eta = 0.3 * x - 0.5 * (g == "b")
    y = {
        "linear": eta + rng.standard_normal(400),
        "logit": (rng.random(400) < 1 / (1 + np.exp(-eta))) * 1.0,
        "poisson": rng.poisson(np.exp(eta)) * 1.0,
    }[family]
    data = pd.DataFrame({"x": x, "g": g, "y": y, "who": np.arange(400) // 4})
    data.loc[3, "x"] = np.nan
    return data


def case(family="linear", **more):
    bounds = BOUNDS | {"y": {"linear": (-3, 9), "logit": (0, 1), "poisson": (0, 4)}[family]}
    formula = "y ~ x + I(x ** 2) + g"
    made = Case(name=f"test_{family}", half="tuning", table="drawn", formula=formula, family=family,
                schema=bounds, frame=lambda rng: rows(rng, family), drawn=True)  # fmt: skip
    return replace(made, **more)


@pytest.mark.parametrize("family", ["linear", "logit", "poisson"])
def test_what_is_held_is_the_fit_on_rows_cut_at_their_bounds(family):
    asked = case(family, person="who")
    made = scaled(asked, 2)
    data = asked.rows(2).dropna()
    for name in ("x", "y"):
        data[name] = data[name].clip(*asked.schema[name])
    kinds = {"linear": sm.families.Gaussian, "logit": sm.families.Binomial,
             "poisson": sm.families.Poisson}  # fmt: skip
    model = smf.glm(asked.formula, data, family=kinds[family]())
    theirs, clustered = model.fit(), model.fit(cov_type="cluster", cov_kwds={"groups": data["who"]})
    np.testing.assert_allclose(
        made.target * made.factors, theirs.params[list(made.names)], rtol=1e-6
    )
    robust = model.fit(cov_type="HC0").bse[list(made.names)] * math.sqrt(399 / 395)
    np.testing.assert_allclose(
        np.sqrt(np.diag(made.plain.hc))[1:] * made.factors, robust, rtol=1e-5
    )
    ours = made.errors * made.factors  # statsmodels corrects for few rows, too
    np.testing.assert_allclose(ours, clustered.bse[list(made.names)], rtol=0.01)
    assert np.abs(made.x).max() <= 1
    assert made.persons is not None
    assert made.persons.max() == 99


def test_a_call_and_its_scaled_rows_speak_of_the_same_numbers():
    asked = case(frame=lambda rng: pd.concat([rows(rng) for _ in range(20)], ignore_index=True))
    made = scaled(asked)
    exact = by_calls(asked, made, 0, 1e6, 1e-6)
    np.testing.assert_allclose(exact.estimate, made.target, atol=0.02)
    user = smf.ols(asked.formula, asked.rows(0).assign(
        x=lambda d: d["x"].clip(0, 4), y=lambda d: d["y"].clip(-3, 9))).fit()  # fmt: skip
    np.testing.assert_allclose(
        exact.estimate * made.factors, user.params[list(made.names)], atol=0.05
    )


def exact_function(family, x, y, cap, eps, delta, rng, persons):
    assert (family, cap, eps, delta) == ("logit", 1.0, 2.0, 0.0)
    assert persons is not None
    plain = plain_fit(family, x, y, persons)
    errors = np.sqrt(np.diag(plain.hc))
    return {"params": plain.params, "se": errors, "marks": [None, "", "wide", None]}


def test_a_function_of_arrays_is_an_engine():
    asked = case("logit", person="who")
    made = scaled(asked)
    found = by_function(f"{__name__}:exact_function")(asked, made, 0, 2.0, 0.0)
    np.testing.assert_allclose(found.estimate, made.target)
    assert found.marks == ("", "wide", "")
    assert engine("calls") is by_calls


def made_by_hand():
    plain = Plain(np.zeros(3), np.diag([1.0, 1.0, 4.0]), None)
    empty = np.zeros((5, 2))
    target = np.array([1.0, -2.0])
    return Scaled(("a", "b"), empty, np.zeros(5), 1.0, np.ones(2), None, plain, target)


def test_a_score_counts_what_holds_what_is_marked_and_what_is_absent():
    made, z = made_by_hand(), 1.959964
    low, high = np.array([0.0, -1.9]), np.array([2 * z, -1.9 + 4 * z])
    first = Fit((low + high) / 2, low, high, ("", ""))  # a holds, b does not; both of width 1
    second = replace(first, marks=("", "wide"))
    third = Fit.nothing(2, "few rows")
    found = score(case(), 1, 0, [(made, first), (made, second), (made, third)])
    assert found.held == 0.5
    assert found.held_unmarked == pytest.approx(2 / 3)
    assert found.least == 0
    assert found.width == pytest.approx(1)
    assert found.absent == pytest.approx(1 / 3)
    assert found.marked == pytest.approx(1 / 6)
    assert found.why == {"few rows": 1}
    assert found.error == pytest.approx(np.median([z - 1, (0.1 + 2 * z) / 2]))


def test_a_wrong_sign_is_one_where_z_is_beyond_two():
    made = made_by_hand()
    off = Fit(np.array([-1.0, 1.0]), np.array([-1.5, -1.0]), np.array([-0.5, 3.0]), ("", ""))
    assert score(case(), 1, 0, [(made, off)]).signs == 1.0
    right = replace(off, estimate=np.array([1.0, 1.0]), low=np.array([0.5, -1.0]),
                    high=np.array([1.5, 3.0]))  # fmt: skip
    assert score(case(), 1, 0, [(made, right)]).signs == 0.0


def test_averages_are_over_cases_and_goals_are_of_large_real_tables():
    made = made_by_hand()
    z = 1.959964
    target, half = made.target, np.array([z, 2 * z])
    good = Fit(target, target - half, target + half, ("", ""))
    bad = replace(good, low=good.low + 10, high=good.high + 10)
    one = replace(score(case(), 1, 1e-6, [(made, good)]), kind="real", n=9_000)
    other = replace(score(case(), 1, 1e-6, [(made, bad)]), kind="real", n=9_000)
    small = replace(other, n=7_000)
    found = averages([one, one, one, other, small])
    assert found["real, n >= 8,000"]["held"] == 0.75
    assert found["real, n >= 8,000"]["cases_below_.8"] == 0.25
    assert found["real, fewer rows"]["held"] == 0
    assert len(missed(found, 1, 1e-6)) == 3  # held, held_unmarked, and spoilt cases
    assert missed(averages([one, small]), 1, 1e-6) == []


def test_halves_share_no_table_and_cases_are_enough():
    tables = {half: {c.table for c in CASES.values() if c.half == half} for half in HALVES}
    assert tables["tuning"] & tables["held-out"] == {"drawn"}
    real = [c for c in CASES.values() if not c.drawn]
    assert len(real) >= 30
    assert {c.family for c in real} == {"linear", "logit", "poisson"}


@pytest.mark.parametrize("name", [c.name for c in CASES.values() if c.drawn and c.truth])
def test_drawn_tables_have_the_coefficients_that_they_are_said_to_have(name):
    asked = CASES[name]
    made = scaled(asked, 77)
    z = (made.plain.params[1:] - made.target) / made.errors
    assert np.abs(z).max() < 4
    frame = asked.rows(77)
    for column, declared in asked.schema.items():
        if isinstance(declared, tuple):
            assert frame[column].between(*declared).all()


def test_a_case_whose_table_is_not_here_is_named(monkeypatch):
    monkeypatch.setenv("DPREG_DATA", "")
    _table.cache_clear()
    assert run(("prostate", "calls", 1, 1.0, 1e-6)) == "prostate: DatasetError (prostate)"


def test_rows_of_a_run_come_from_its_seed():
    asked = CASES["normal"]
    assert asked.rows(1).equals(asked.rows(1))
    assert not asked.rows(1).equals(asked.rows(2))
