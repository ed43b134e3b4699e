"""Adaptive fits, from a call to its result: least squares, robust errors, marks, what is told."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf

import dpreg
from dpreg.errors import ArgumentError, BudgetError, DpregWarning
from dpreg.looks.law import NO_INTERVAL
from dpreg.privacy.budget import Budget
from dpreg.results.claim import ReleasedLook

SCHEMA = {"x": (-1, 1), "z": (0, 10), "g": ["u", "v", "w"], "o": (-1, 1), "m": (0, 12)}
ANSWERS = {
    "y": (-6, 6), "yes": (0, 1), "count": (0, 60), "of": (0, 12),
}  # fmt: skip


def table(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"x": rng.uniform(-1, 1, n), "z": rng.gamma(2, 1.5, n).clip(0, 10)})
    data["g"] = rng.choice(["u", "v", "w"], n, p=[0.5, 0.4, 0.1])
    data["o"], data["m"] = rng.uniform(-1, 1, n), rng.integers(0, 13, n)
    eta = 0.5 * data["x"] - 0.1 * data["z"] + 0.3 * (data["g"] == "w")
    data["y"] = (eta + rng.normal(size=n) * (0.3 + 0.5 * np.abs(data["x"]))).clip(-6, 6)
    chance = 1 / (1 + np.exp(-eta))
    data["yes"] = rng.binomial(1, chance)
    data["count"] = rng.poisson(np.exp(1 + eta + data["o"])).clip(0, 60)
    data["of"] = rng.binomial(data["m"], chance)
    data["rest"] = data["m"] - data["of"]
    return data


def schema():
    return SCHEMA | ANSWERS


def ols(data=None, eps=1, formula="y ~ x + z + g", **more):
    data = table() if data is None else data
    return dpreg.dp_ols(formula, data, eps, **{"schema": schema(), "method": "adaptive", **more})


def near(ours, theirs, off=0.02, part=0.06):
    """Coefficients in units of their errors, and the errors, a few percent off: M is noisy yet."""
    gap = (ours.params.to_numpy() - np.asarray(theirs.params)) / np.asarray(theirs.bse)
    np.testing.assert_allclose(gap, 0, atol=off)
    np.testing.assert_allclose(ours.bse, theirs.bse, rtol=part)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_tends_to_least_squares_and_its_robust_errors(relation):
    data = table()
    theirs = smf.ols("y ~ x + z + g", data).fit(cov_type="HC1")
    near(ols(data, 1e6, delta=1e-6, neighbors=relation, unsafe_seed=1), theirs)


def test_at_pure_eps_it_tends_to_least_squares_and_classical_errors():
    """The trace of the middle alone is released."""
    data = table()
    theirs = smf.ols("y ~ x + z + g", data).fit()
    ours = ols(data, 1e6, unsafe_seed=1)
    np.testing.assert_allclose((ours.params - theirs.params) / theirs.bse, 0, atol=0.05)
    np.testing.assert_allclose(ours.bse / theirs.bse, 1, atol=0.3)


def test_persons_are_clusters():
    rng = np.random.default_rng(3)
    data = table()
    data["who"] = rng.integers(0, 4000, len(data))
    data["y"] += (rng.normal(size=4000) * 0.5)[data["who"]]
    data["y"] = data["y"].clip(-6, 6)
    theirs = smf.ols("y ~ x + z + g", data).fit(
        cov_type="cluster", cov_kwds={"groups": data["who"]}
    )
    ours = ols(data, 1e6, delta=1e-6, person="who", unsafe_seed=1)
    near(ours, theirs)
    assert ours.nobs is None
    assert ours.complete_rows is None
    plain = ols(data, 1e6, delta=1e-6, unsafe_seed=1)
    assert ours.bse["Intercept"] > 1.2 * plain.bse["Intercept"]


GLMS = {
    "logit": ("yes ~ x + z + g", {}, sm.families.Binomial()),
    "counts": ("count ~ x + z + g", {"family": "poisson", "offset": "o"}, sm.families.Poisson()),
    "trials": ("of ~ x + z + g", {"trials": "m"}, sm.families.Binomial()),
}


@pytest.mark.parametrize("name", GLMS)
def test_families_tend_to_maximum_likelihood_and_its_robust_errors(name):
    formula, more, family = GLMS[name]
    data = table()
    ours = dpreg.dp_glm(
        formula, data, 1e6, delta=1e-6, schema=schema(), unsafe_seed=1, **more
    )  # fmt: skip
    if name == "trials":
        data = data[data["m"] > 0]
        formula = "of + rest ~ x + z + g"
    offset = data["o"] if name == "counts" else None
    theirs = smf.glm(formula, data, family=family, offset=offset).fit(cov_type="HC0")
    near(ours, theirs, off=0.25, part=0.2)


@pytest.mark.parametrize(("delta", "steps"), [("1e-6", "looks 1-"), (0, "looks 1-")])
def test_one_line_is_charged_and_all_of_it_is_spent(delta, steps):
    ledger = dpreg.Ledger(Budget(5, "1e-5"))
    ours = ols(delta=delta, budget=ledger, unsafe_seed=1)
    (line,) = ours.claim.spends
    assert line.step.startswith(steps)
    assert (line.eps, float(line.delta)) == (1, float(delta))
    assert ledger.entries[0].budget.eps == 1
    assert sum(look.share for look in ours.releases) == 1
    assert ours.passes == len(ours.releases) + (not delta)  # a minimum's rows are read twice


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_every_look_is_kept(delta, tmp_path):
    ours = ols(delta=delta, unsafe_seed=1)
    kinds = [look.kind for look in ours.releases]
    assert kinds[0] == "box"
    assert kinds[-1] == ("fitting" if delta else "minimum")
    assert set(kinds[1:-1]) == {"fitting" if delta else "locating"}
    assert all(isinstance(look, ReleasedLook) for look in ours.releases)
    last = ours.releases[-1]
    assert last.middle.shape == ((5, 5) if delta else (0, 0))
    assert last.score.shape == (5,)
    assert last.limits[0] > 0
    ours.save(tmp_path / "fit.json")
    again = dpreg.load(tmp_path / "fit.json")
    assert json.loads(again.to_json()) == json.loads(ours.to_json())
    with pytest.raises(ValueError, match="read-only"):
        last.information[0, 0] = 1.0


def test_the_count_is_the_released_one():
    ours = ols(eps=1, delta=1e-6, unsafe_seed=1)
    assert ours.complete_rows == ours.releases[0].information[0, 0]
    assert ours.complete_rows != 20_000
    assert ols(eps=1e6, delta=1e-6, unsafe_seed=1).complete_rows == pytest.approx(20_000, abs=0.1)


def test_rows_that_miss_a_value_count_for_nothing():
    data = table()
    data.loc[:999, "x"] = np.nan
    theirs = smf.ols("y ~ x + z + g", data).fit(cov_type="HC1")
    ours = ols(data, 1e6, delta=1e-6, unsafe_seed=1)
    near(ours, theirs)
    assert ours.nobs == 20_000
    assert ours.complete_rows == pytest.approx(19_000, abs=0.5)


def test_a_hidden_column_has_a_coefficient_and_no_interval():
    with pytest.warns(DpregWarning, match="Intervals may be missing"):
        ours = dpreg.dp_glm("yes ~ x + z + g", table(2000), "0.1", schema=schema(), unsafe_seed=2)
    hidden = [name for name, why in ours.weak.items() if why == NO_INTERVAL]
    assert hidden
    assert ours.params[hidden].notna().all()
    assert ours.bse[hidden].isna().all()
    assert any("Marked columns" in note for note in ours.notes)


def test_too_few_rows_are_refused_or_take_one_release_and_the_reason_is_public():
    few = table(300)
    with pytest.raises(ArgumentError, match=r"columns need about .* rows"):
        ols(few)
    assert ols(few, method="auto").method == "gram"
    other = few.assign(x=np.nan)
    assert ols(other, method="auto").notes == ols(few, method="auto").notes


def test_a_ledger_without_room_is_asked_before_a_row_is_read():
    ledger = dpreg.Ledger("0.5")
    with pytest.raises(BudgetError):
        ols(budget=ledger)
    assert not ledger.entries


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_errors_are_of_the_stated_size(delta):
    data = table()
    theirs = smf.ols("y ~ x + z + g", data).fit().params
    runs = [ols(data, 2, delta=delta, unsafe_seed=seed) for seed in range(30)]
    z = np.array([((run.params - theirs) / run.bse).to_numpy() for run in runs])
    assert np.nanmean(np.abs(z[:, 1:]) < 1.96) > 0.8
    assert np.nanmedian(np.abs(z[:, 1:])) > 0.05


@pytest.mark.parametrize("unit", [{"neighbors": "add-remove"}, {"person": "who"}])
def test_a_private_number_of_rows_raises_no_warning(unit):
    """A table that is too small for its eps, where nobody may know that it is."""
    data = table(200).assign(who=np.arange(200))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DpregWarning)
        fit = dpreg.dp_glm("yes ~ x + z", data, "0.1", schema=schema(), unsafe_seed=1, **unit)
    assert fit.nobs is None
