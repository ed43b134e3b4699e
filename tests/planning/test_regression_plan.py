"""Plans of regressions against simulated releases, and against published ones."""

import re

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import dpreg
from benchmarks.replication.analyses import analyses
from benchmarks.replication.predicted import WAYS, beside, predicted
from benchmarks.replication.runs import cell
from dpreg import plan
from dpreg.errors import ArgumentError, DpregWarning
from dpreg.privacy.protection import NOISES

SCHEMA = {"y": (-4, 4), "a": (0, 10), "b": (-1, 1), "g": ["u", "v", "w"]}
FORMULA = "y ~ a + b + g"
EFFECTS = {"a": 0.1, "b": 0.05, "g[T.v]": 0.2, "g[T.w]": 0}


def _rows(n, rng):
    rows = pd.DataFrame({
        "a": rng.uniform(0, 10, n), "b": rng.uniform(-1, 1, n), "g": rng.choice(list("uvw"), n),
    })  # fmt: skip
    line = 0.1 * rows["a"] + 0.05 * rows["b"] + 0.2 * (rows["g"] == "v")
    return rows.assign(y=line - 0.5 + 0.7 * rng.standard_normal(n))


def _planned(n, eps=1, delta=1e-6, **more):
    return plan(
        EFFECTS, of="ols", sigma=0.7, n=n, eps=eps, delta=delta, formula=FORMULA, schema=SCHEMA,
        **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("n", "eps", "delta", "off"), [(4_000, 1, 1e-6, 0.15), (10_000, 1, 0, 0.15)]
)
def test_errors_are_those_that_calls_report(n, eps, delta, off):
    table = _planned(n, eps, delta).coefficients
    rng, private, exact = np.random.default_rng(5), [], []
    for seed in range(8):
        rows = _rows(n, rng)
        facts = {"schema": SCHEMA, "eps": eps, "delta": delta, "progress": False}
        private.append(dpreg.dp_ols(FORMULA, rows, **facts, unsafe_seed=seed).bse)
        exact.append(smf.ols(FORMULA, rows).fit().bse)
    names = list(EFFECTS)
    np.testing.assert_allclose(table["std err"], np.mean(private, axis=0)[_at(private, names)],
                               rtol=off)  # fmt: skip
    np.testing.assert_allclose(table["least squares"], np.mean(exact, axis=0)[_at(exact, names)],
                               rtol=0.05)  # fmt: skip


def _at(found, names):
    return [list(found[0].index).index(name) for name in names]


def test_rows_and_eps_are_the_least_with_which_each_is_significant():
    facts = {"of": "ols", "sigma": 0.2, "delta": 1e-6, "candidates": 6, "chance": 0.9}
    rows = plan({"x": 0.05, "z": 0.03, "none": 0}, eps=1, **facts)
    assert rows.solved == "n"
    assert rows.each["z"] >= 0.9 > rows.at(n=round(0.97 * rows.n)).each["z"]
    assert rows.each["none"] < 0.1
    eps = plan({"x": 0.05, "z": 0.03}, n=rows.n, **facts)
    assert eps.eps == pytest.approx(1, rel=0.03)


def test_few_rows_take_gram_and_say_what_looks_would_need():
    few = _planned(150)
    assert few.method == "gram"
    assert few.rows_needed > 150
    assert few.at(n=few.rows_needed).method == "adaptive"
    assert "Looks at the rows would need" in str(few)
    assert _planned(150, method="adaptive").method == "adaptive"
    with pytest.warns(DpregWarning, match='now method="adaptive"'):
        assert _planned(150, method="staged").method == "adaptive"


def test_a_factor_too_wide_for_looks_takes_gram_as_the_call_does(monkeypatch):
    monkeypatch.setattr("dpreg.planning.rows._DRAWS", 1)
    schema = {"y": (-4, 4), "x": (-1, 1), "g": [f"u{i}" for i in range(45)]}
    facts = {"formula": "y ~ x + g", "schema": schema}
    found = plan({"x": 0.3}, of="ols", sigma=0.7, n=100_000, eps=1, **facts)
    assert found.n > found.rows_needed
    assert found.method == "gram"
    assert 'takes "gram": g has so many levels' in str(found)
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"x": rng.uniform(-1, 1, 100_000), "g": rng.choice(schema["g"], 100_000)})
    table["y"] = np.clip(0.3 * table["x"] + rng.normal(0, 0.7, 100_000), -4, 4)
    called = dpreg.dp_ols(facts["formula"], table, 1, schema=schema, unsafe_seed=1)
    assert called.method == "gram"
    assert found.errors["std err"]["x"] / called.bse["x"] == pytest.approx(1, abs=0.2)


def test_a_page_a_table_and_a_sentence():
    found = _planned(5_000)
    assert list(found.coefficients.index) == list(EFFECTS)
    assert found.coefficients["std err"].to_numpy() == pytest.approx(
        np.hypot(found.coefficients["sampling error"], found.coefficients["privacy noise"])
    )
    for words in (
        "Overlap",
        "Same decision",
        "least",
        "No data were used",
        "adaptive",
        "skewed",
    ):
        assert words in str(found)
    assert repr(found).startswith("<RegressionPlan: n=5,000, eps=1, adaptive: overlap 0.")
    assert "<table" in found._repr_html_()
    assert 0 < found.same <= 1


@pytest.mark.parametrize("n", [2, 10, 10**12, 10**18])
@pytest.mark.parametrize("eps", ["1e-9", 1e9])
def test_no_size_breaks_it(n, eps):
    plan = _planned(n, eps, 0)
    found = plan.coefficients
    shown = found["mark"] != "no interval"
    assert np.isfinite(found.loc[shown, ["std err", "least squares", "width"]]).all(axis=None)
    assert plan.enough == shown.all()
    assert str(plan)


def test_what_noise_hides_is_said_to_have_no_interval():
    narrow = _planned(400, 0.05, 0, sd={"b": 1e-5}, method="adaptive")
    assert narrow.coefficients.loc["b", "mark"] == "no interval"
    assert not narrow.enough
    assert re.search(r"no interval of [^:]*\bb\b", " ".join(str(narrow).split()))
    assert "Intervals: none" in " ".join(str(narrow).split())


def test_without_like_a_plan_gives_a_range():
    made = _planned(5_000).coefficients
    assert (made["std err if skewed"] > 1.5 * made["std err"]).all()
    rows = _rows(5_000, np.random.default_rng(1))
    known = _planned(5_000, like=rows)
    assert "std err if skewed" not in known.coefficients
    assert "if skewed" in " ".join(str(_planned(5_000)).split())
    assert "skewed" not in str(known)


def test_a_plan_is_near_what_a_published_analysis_measures():
    """The page's promise, on a small part of it: within .1 in overlap and in decisions."""
    analysis = next(a for a in analyses(real_data=False, with_r=False) if a.name == "wages, 10,000")
    lines = cell(analysis, 2.0, 1e-6, runs=6, peer_runs=0)
    plans = pd.concat([predicted(analysis, 2.0, 1e-6, way) for way in WAYS])
    found = beside(lines, plans)
    for way in WAYS:
        gaps = (found[way] - found["measured"]).abs()
        assert float(gaps["overlap"].iloc[0]) < 0.1, found
        assert float(gaps["decision"].iloc[0]) < 0.1, found


@pytest.mark.parametrize("method", ["objective", "ssp"])
def test_a_method_without_errors_is_not_planned(method):
    with pytest.raises(ArgumentError, match="method must be one of 'auto', 'adaptive', 'gram'"):
        _planned(2_000, method=method)


def test_a_methods_own_noise_is_planned():
    errors = {
        noise: _planned(2_000, method=dpreg.Gram(noise=noise)).coefficients["std err"]
        for noise in (*NOISES, None)
    }
    assert not errors["gaussian"].equals(errors["laplace"])
    # The call's own rule takes the one with the least expected error, by a public rule.
    assert any(errors[None].equals(errors[noise]) for noise in NOISES)
    assert _planned(2_000, method=dpreg.Auto(noise="laplace")).method == "gram"
    with pytest.raises(ArgumentError, match="noise"):
        _planned(2_000, method=dpreg.Adaptive(noise="laplace"))
