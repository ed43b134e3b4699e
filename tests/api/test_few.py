"""`dp_ols(method="objective")`: what it gives, what it says, and what it refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf

import dpreg
from dpreg.api import moments as few
from dpreg.errors import ArgumentError, BudgetError, DataError, DpregWarning, NotReleased
from dpreg.sources import as_source

SCHEMA = {"y": (-5, 5), "x": (-4, 4), "z": (-4, 4), "g": ["a", "b", "c"]}
FORMULA = "y ~ x + z + g"


def table(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, n))
    g = rng.choice(["a", "b", "c"], n)
    y = 0.5 * x - 0.3 * z + 0.5 * (g == "b") + rng.normal(size=n)
    return pd.DataFrame({"y": y, "x": x, "z": z, "g": g})


def fitted(data=None, eps=1, formula=FORMULA, **arguments):
    data = table() if data is None else data
    given = {"schema": SCHEMA, "progress": False, "method": "objective", **arguments}
    return dpreg.dp_ols(formula, data, eps, **given)


def test_it_is_least_squares_where_noise_is_little():
    data = table(4000)
    theirs = smf.ols(FORMULA, data).fit()
    ours = fitted(data, eps=10**4).params
    assert list(ours.index) == list(theirs.params.index)
    assert np.abs((ours - theirs.params) / theirs.bse).max() < 0.4  # far rows count less


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_it_is_nearer_than_one_look_where_rows_are_few(neighbors):
    data = table(1500, seed=3)
    truth = smf.ols(FORMULA, data).fit().params

    def errors(method):
        runs = [fitted(data, method=method, unsafe_seed=s, neighbors=neighbors) for s in range(12)]
        return np.median([((run.params - truth) ** 2).sum() for run in runs])

    assert errors("objective") < errors("gram") / 2


def test_it_gives_coefficients_and_predictions_and_says_why_no_more():
    fit = fitted(unsafe_seed=1)
    assert (fit.method, fit.noise, fit.passes) == ("objective", "l2-norm", 3)
    assert np.isfinite(fit.params).all()
    assert np.isfinite(fit.predict(table(5))).all()
    for told in (fit.bse, fit.pvalues, fit.tvalues, fit.conf_int(), fit.t_test("x = 0").pvalue):
        assert np.isnan(np.asarray(told)).all()
    for name in ("rsquared", "scale"):
        with pytest.raises(NotReleased, match='method="objective"'):
            getattr(fit, name)
    shown = " ".join(str(fit.summary(full=True)).split())
    assert 'Intervals need method="auto"' in shown
    assert "coefficients without standard errors" in shown
    assert "share 0.49" in shown


def test_delta_is_not_spent():
    fit = fitted(delta=1e-6)
    assert str(fit.spent) == "eps=1"
    assert fit.budget["delta"].tolist() == ["0"] * 5
    assert "delta was not needed, and is not spent." in fit.notes
    assert "delta was not needed, and is not spent." not in fitted().notes


def test_a_ledger_is_charged_what_was_asked_for():
    ledger = dpreg.Ledger(2)
    fitted(budget=ledger, delta=0)
    assert str(ledger.spent) == "eps=1"
    with pytest.raises(BudgetError):
        fitted(eps=1.5, budget=ledger)


def test_bounds_that_are_bought_take_their_share():
    with pytest.warns(DpregWarning, match="x"):
        fit = fitted(schema={k: v for k, v in SCHEMA.items() if k != "x"}, eps=4)
    assert fit.budget["eps"].astype(float).sum() == pytest.approx(4)
    assert fit.budget["step"].tolist()[0] == "bounds of x"
    assert fit.bounds["x"] == "private"


def test_a_saved_result_shows_the_same(tmp_path):
    fit = fitted(unsafe_seed=2)
    fit.save(tmp_path / "fit.json")
    again = dpreg.load(tmp_path / "fit.json")
    assert str(again.summary(full=True)) == str(fit.summary(full=True))
    assert again.params.equals(fit.params)
    assert again.predict(table(4)).equals(fit.predict(table(4)))


MISSING = table(40).assign(x=np.nan)
CONSTANT = table(40).assign(x=4.0, z=0.0, g="a", y=5.0)


@pytest.mark.parametrize("eps", [4e-5, 0.1, 1000])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    "data",
    [table(1), table(7), MISSING, CONSTANT, table(0)],
    ids=["one row", "few rows", "all missing", "constant", "no row"],
)
def test_whatever_the_rows_are_numbers_are_finite(data, neighbors, eps):
    if neighbors == "replace-one" and len(data) < 5:  # a public number of rows
        with pytest.raises((ArgumentError, DataError), match="row"):
            fitted(data, eps, neighbors=neighbors)
        return
    assert np.isfinite(fitted(data, eps, neighbors=neighbors).params).all()


@pytest.mark.parametrize("formula", ["y ~ 1", "y ~ x", "y ~ x + np.log(z + 5) + x:z + g:x"])
def test_models_of_any_number_of_columns(formula):
    fit = fitted(formula=formula, eps=3)
    assert np.isfinite(fit.params).all()
    assert fit.budget["eps"].astype(float).sum() == pytest.approx(3)


@pytest.mark.parametrize("how", [{"clip": 0.5}, {"center": False}, {"contributions": 3}])
def test_other_arguments_are_those_of_other_methods(how):
    fit, theirs = fitted(eps=10**5, **how), fitted(eps=10**5, method="gram", **how)
    assert np.abs(fit.params - theirs.params).max() < 0.1
    assert np.abs(fitted(eps=10**5).params - fit.params).max() < 0.5


REFUSED = [
    ({"formula": "y ~ x + z - 1"}, "needs an intercept"),
    ({"person": "who"}, "takes no person"),
    ({"noise": "gaussian", "delta": 1e-6}, '"objective" has no noise'),
    ({"scaling": "row-norm"}, '"objective" has no scaling'),
    ({"eps": 1e-4, "contributions": 10**6}, "at least 2\\*\\*-30"),
]


@pytest.mark.parametrize(("how", "why"), REFUSED)
def test_what_it_cannot_do_is_refused_before_a_charge(how, why):
    ledger = dpreg.Ledger(dpreg.Budget(5, "1e-5"))
    with pytest.raises(ArgumentError, match=why):
        fitted(table().assign(who=1), budget=ledger, **how)
    assert str(ledger.spent) == "eps=0"


def test_directions_that_no_row_settles_stay_where_they_are_at_any_eps():
    """Their noise is b/D: D may not fall as fast as b. Without a least D steps hardly end."""
    rows = table()
    rows["z"] = rows["x"]
    for eps in (100, 10**4, 10**6):
        fit = fitted(rows, eps, "y ~ x + z")
        own = fitted(rows, eps, "y ~ x", method="gram")
        assert np.abs(fit.params).max() < 2, eps
        assert fit.params["x"] + fit.params["z"] == pytest.approx(own.params["x"], abs=0.1)


@pytest.mark.parametrize("eps", [1, 10**4, 10**6])
def test_tables_without_a_complete_row_end_like_others(eps):
    rows = table()
    for empty in (rows.assign(x=np.nan), rows.assign(x=0.0, y=0.0, z=0.0)):
        fit = fitted(empty, eps, "y ~ x + z")
        assert np.isfinite(fit.params).all()


def test_rows_that_cannot_be_held_here_or_read_again_are_refused(monkeypatch):
    dd = pytest.importorskip("dask.dataframe")
    with pytest.raises(ArgumentError, match=r"Bring the columns here \(.compute"):
        fitted(dd.from_pandas(table(), npartitions=2))
    with pytest.raises(DataError, match="3 times"):
        fitted(as_source(pa.Table.from_pandas(table()).to_reader(), hold=False))
    monkeypatch.setattr(few, "_MOST_CELLS", 1500 * 5 - 1)
    with pytest.raises(ArgumentError, match="this table has more"):
        fitted()
    fitted(neighbors="add-remove")  # the number of rows is private, and decides on nothing


def test_auto_is_not_changed_and_names_it_only_where_it_can_be_had():
    offer = 'method="objective" gives nearer coefficients'
    few = fitted(table(300), method="auto")
    assert few.method == "gram"
    assert offer in few.notes[0]
    told = {"method": "auto", "eps": 0.1, "data": table(300)}
    for how in [{"formula": "y ~ x - 1"}, {"noise": "matrix-laplace"}]:
        other = fitted(**told, **how)
        assert other.method == "gram"
        assert offer not in " ".join(other.notes)
