"""dp_ols end to end, against statsmodels where the noise is negligible."""

import pickle

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import dpreg
from dpreg.errors import ArgumentError, DpregError, DpregWarning, FormulaError

SCHEMA = {
    "x": (-1, 3),
    "z": (0, 10),
    "g": ["u", "v", "w"],
    "h": ["no", "yes"],
    "y": (-40, 60),
}
FORMULAS = [
    "y ~ x",
    "y ~ x + z + g",
    "y ~ x * z",
    "y ~ g + h",
    "y ~ np.log(z + 1) + I(x ** 2) + x",
    "y ~ x:g",
    "y ~ x + z - 1",
    "y ~ 1",
]


def table(n: int = 4000) -> pd.DataFrame:
    rng = np.random.default_rng(n)
    x, z = rng.uniform(-1, 3, n), rng.uniform(0, 10, n)
    g, h = rng.choice(["u", "v", "w"], n), rng.choice(["no", "yes"], n)
    y = 3 + 2 * x - z + 4.0 * (g == "w") - 2.0 * (h == "yes") + rng.normal(0, 3, n)
    return pd.DataFrame({"x": x, "z": z, "g": g, "h": h, "y": y})


# Cells are rounded to 2**-20 of half their declared range, and eps = 1e6 leaves noise of about
# 1e-5 in sums of thousands: agreement to 1e-3 of a standard error's size is what can be asked.
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_agrees_with_statsmodels_where_noise_is_negligible(formula: str, neighbors: str) -> None:
    data = table()
    theirs = smf.ols(formula, data).fit()
    ours = dpreg.dp_ols(
        formula, data, eps=1e6, delta=1e-6, schema=SCHEMA, neighbors=neighbors, method="gram",
        unsafe_seed=1,
    )  # fmt: skip
    assert ours.params.index.tolist() == theirs.params.index.tolist()
    scale = theirs.bse.to_numpy()
    np.testing.assert_allclose(ours.params / scale, theirs.params / scale, atol=1e-2, rtol=1e-3)
    np.testing.assert_allclose(ours.bse, theirs.bse, rtol=1e-3)
    assert ours.scale == pytest.approx(theirs.scale, rel=1e-3)
    assert ours.rsquared == pytest.approx(theirs.rsquared, abs=1e-3)
    np.testing.assert_allclose(
        ours.predict(data.head(20)), theirs.predict(data.head(20)), atol=0.02
    )
    mean = ours.get_prediction(data.head(20)).summary_frame()
    sm_mean = theirs.get_prediction(data.head(20)).summary_frame()
    np.testing.assert_allclose(mean["mean_se"], sm_mean["mean_se"], rtol=1e-2)


@pytest.mark.parametrize(("method", "near"), [("gram", 0.01), ("adaptive", 0.02)])
def test_incomplete_rows_count_for_nothing(method: str, near: float) -> None:
    data = table()
    data.loc[::4, "x"] = np.nan
    data.loc[1::8, "g"] = "undeclared"
    kept = data[data.x.notna() & data.g.isin(["u", "v", "w"])]
    theirs = smf.ols("y ~ x + g", kept).fit(cov_type="HC1" if near > 0.01 else "nonrobust")
    told = {"delta": 1e-6, "schema": SCHEMA, "method": method, "unsafe_seed": 1}
    ours = dpreg.dp_ols("y ~ x + g", data, 1e6, **told)
    np.testing.assert_allclose(ours.params, theirs.params, atol=1e-2)
    np.testing.assert_allclose(ours.bse, theirs.bse, rtol=near)
    assert ours.nobs == 4000
    assert ours.complete_rows == pytest.approx(len(kept), abs=1)


@pytest.mark.parametrize("method", ["ssp", "adassp"])
@pytest.mark.parametrize("scaling", ["box", "max-norm"])
@pytest.mark.parametrize("formula", ["y ~ x + z + g", "y ~ x + z - 1"])
def test_published_methods_give_coefficients_in_user_units(
    formula: str, scaling: str, method: str
) -> None:
    data = table()
    theirs = smf.ols(formula, data).fit().params
    ours = dpreg.dp_ols(
        formula, data, eps=1e6, delta=1e-6, schema=SCHEMA, method=method, scaling=scaling,
        unsafe_seed=1,
    )  # fmt: skip
    np.testing.assert_allclose(ours.params, theirs, atol=0.05)
    assert ours.bse.isna().all()
    assert "coefficients alone" in " ".join(ours.summary(full=True).as_text().split())


def test_row_norms_are_not_passed_off_as_the_columns_own_units() -> None:
    ours = dpreg.dp_ols(
        "y ~ x + z",
        table(),
        1e6,
        delta=1e-6,
        schema=SCHEMA,
        method=dpreg.AdaSSP(scaling="row-norm"),
    )
    assert "not of the columns in their own units" in " ".join(
        ours.summary(full=True).as_text().split()
    )


def test_pure_eps_needs_no_delta_and_spends_none() -> None:
    result = dpreg.dp_ols("y ~ x", table(), eps="0.7", schema=SCHEMA)
    assert (str(result.spent), result.noise) == ("eps=0.7", "matrix-laplace")
    for noise in ("matrix-laplace", "laplace"):
        one = dpreg.dp_ols("y ~ x", table(), "0.7", schema=SCHEMA, method=dpreg.Gram(noise=noise))
        assert (str(one.spent), one.noise) == ("eps=0.7", noise)


@pytest.mark.parametrize("method", ["auto", "adaptive", "gram"])
def test_a_noise_that_is_gone_names_the_one_that_stands(method: str) -> None:
    with pytest.raises(ArgumentError, match='"knorm" is gone: use "matrix-laplace"'):
        dpreg.dp_ols("y ~ x", table(), 1, schema=SCHEMA, method=method, noise="knorm")


def test_undeclared_bounds_are_bought_from_their_share() -> None:
    schema = {"g": ["u", "v", "w"], "y": (-40, 60)}
    with pytest.warns(DpregWarning, match="x"):
        result = dpreg.dp_ols("y ~ x + g", table(), 1, schema=schema, shares={"bounds": 0.2})
    costs = result.budget["eps"].tolist()
    assert (result.method, costs) == ("adaptive", ["0.2", "0.8"])
    assert result.bounds == {"y": "schema", "x": "private", "g": "schema"}
    assert str(result.spent) == "eps=1"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"eps": -1}, "eps"),
        ({"method": "lasso"}, "'gram', 'objective', 'ssp', 'adassp'"),
        ({"noise": "gaussian"}, "delta"),
        ({"noise": "uniform"}, "noise"),
        ({"method": "ssp"}, "delta"),
        ({"method": "ssp", "delta": 1e-6, "noise": "wang"}, "more than is charged"),
        ({"method": "adassp", "delta": 1e-6, "noise": "knorm"}, "noise"),
        ({"scaling": "row-norm"}, "scaling"),
        ({"scaling": "sphere"}, "scaling"),
        ({"center": "yes"}, "center"),
        ({"clip": 0}, "clip"),
        ({"shares": {"bounds": 0.5}}, "bounds"),
        ({"shares": {"radius": 0.5}}, "bounds"),
        ({"shares": [0.5]}, "must be a mapping"),
        ({"neighbors": "swap"}, "neighbors"),
    ],
)
def test_bad_input_costs_nothing(change: dict, says: str) -> None:
    ledger = dpreg.Ledger(10)
    call = {"formula": "y ~ x", "data": table(10), "eps": 1, "schema": SCHEMA, "budget": ledger}
    with pytest.raises(ArgumentError, match=says):
        dpreg.dp_ols(**{**call, **change})
    with pytest.raises(FormulaError, match="scale"):
        dpreg.dp_ols(**{**call, "formula": "y ~ scale(x)"})
    assert ledger.spent.eps == 0


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("method", ["gram", "ssp", "adassp"])
def test_hardly_any_rows_still_give_a_result(method: str, rows: int) -> None:
    """Where their number is private, for nothing may be said of it."""
    for formula in FORMULAS:
        result = dpreg.dp_ols(
            formula,
            table(4000).head(rows),
            1,
            delta=1e-6,
            schema=SCHEMA,
            method=method,
            neighbors="add-remove",
        )
        assert np.isfinite(result.params).all()
        assert len(result.summary().as_text()) > 100


@pytest.mark.parametrize("method", ["auto", "gram"])
def test_no_row_value_is_in_a_result(method: str) -> None:
    secret = 0.8127391823
    data = table()
    data.loc[5, ["x", "z", "y"]] = secret
    data.loc[6, "g"] = "Mallory-Secret"
    told = {"schema": SCHEMA, "neighbors": "add-remove", "method": method}
    result = dpreg.dp_ols("y ~ x + z + g", data, eps=1, **told)
    for view in (repr(result), str(result), result.to_json(), str(pickle.dumps(result))):
        assert "Mallory" not in view
        assert "0.81273918" not in view
    assert result.nobs is None
    with pytest.raises(DpregError):
        _ = result.df_resid


def test_an_eigenvalue_beyond_its_proved_slack_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = table()
    call = {"schema": SCHEMA, "method": "adassp", "delta": "1e-6"}
    monkeypatch.setattr("dpreg.api.moments.MOST_CELLS", 2 * len(frame))
    dpreg.dp_ols("y ~ x", frame, 1, **call)
    monkeypatch.setattr("dpreg.api.moments.MOST_CELLS", 2 * len(frame) - 1)
    ledger = dpreg.Ledger(dpreg.Budget(2, "1e-5"))
    with pytest.raises(ArgumentError, match="cells"):
        dpreg.dp_ols("y ~ x", frame, 1, budget=ledger, **call)
    assert ledger.entries == ()
    dpreg.dp_ols("y ~ x", frame, 1, neighbors="add-remove", **call)  # nobody knows how many
