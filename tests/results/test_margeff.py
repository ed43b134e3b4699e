"""Average marginal effects over rows of one's own, beside numerical derivatives without privacy."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import dpreg
from dpreg.errors import NotReleased

SCHEMA = {"x": (0, 10), "z": (0, 4), "g": ["a", "b", "c"], "b": bool}


def rows(n=20_000):
    rng = np.random.default_rng(1)
    x, z, g = rng.uniform(0, 10, n), rng.uniform(0, 4, n), rng.choice(list("abc"), n)
    chance = 1 / (1 + np.exp(1 - 0.2 * x - 0.3 * (g == "b") + 0.05 * x * z))
    return pd.DataFrame({"x": x, "z": z, "g": g, "b": rng.random(n) < chance})


@pytest.mark.parametrize("call", ["dp_glm", "dp_ols"])
def test_effects_are_those_of_the_model_with_its_interactions(call):
    data = rows()
    asked = {"eps": 1e4, "delta": 1e-6, "schema": SCHEMA, "unsafe_seed": 1}
    fit = getattr(dpreg, call)("b ~ x * z + g", data, **asked)
    model = {"dp_glm": smf.logit, "dp_ols": smf.ols}[call]
    exact = model("b ~ x * z + g", data.assign(b=data["b"].astype(int))).fit(cov_type="HC0")
    own = data[:500]
    found = fit.get_margeff(own)

    def mean(params, **cells):
        at = own.assign(**cells)
        columns = {
            "Intercept": 1.0, "g[T.b]": at["g"] == "b", "g[T.c]": at["g"] == "c",
            "x": at["x"], "z": at["z"], "x:z": at["x"] * at["z"],
        }  # fmt: skip
        eta = sum(columns[name] * b for name, b in zip(exact.params.index, params, strict=True))
        return float(np.mean(eta if call == "dp_ols" else 1 / (1 + np.exp(-eta))))

    def effects(params):
        h = 1e-4
        return np.array([
            (mean(params, x=own["x"] + h) - mean(params, x=own["x"] - h)) / (2 * h),
            (mean(params, z=own["z"] + h) - mean(params, z=own["z"] - h)) / (2 * h),
            mean(params, g="b") - mean(params, g="a"),
            mean(params, g="c") - mean(params, g="a"),
        ])  # fmt: skip

    assert list(found.index) == ["x", "z", "g[b]", "g[c]"]
    params = exact.params.to_numpy()
    np.testing.assert_allclose(found["dy/dx"], effects(params), atol=2e-4)
    steps = 1e-5 * np.eye(len(params))
    J = np.array([(effects(params + s) - effects(params - s)) / 2e-5 for s in steps]).T
    errors = np.sqrt(np.diag(J @ np.asarray(exact.cov_params()) @ J.T))
    np.testing.assert_allclose(found["std err"], errors, rtol=0.03)
    assert (found["[0.025"] < found["dy/dx"]).all()
    assert (found["dy/dx"] < found["0.975]"]).all()
    assert found["P>|z|"]["x"] < 1e-6 < 0.05 < found["P>|z|"]["g[c]"]
    with pytest.raises(NotReleased, match="of the table's own rows"):
        fit.get_margeff()


def test_a_line_s_marginal_effects_are_its_coefficients():
    fit = dpreg.dp_ols("b ~ x + g", rows(4_000), 1, delta=1e-6, schema=SCHEMA, unsafe_seed=1)
    found = fit.get_margeff({"x": [0.0, 10.0, 30.0], "g": ["a", "c", "b"]})
    names = ["x", "g[T.b]", "g[T.c]"]
    np.testing.assert_allclose(found["dy/dx"], fit.params[names])
    np.testing.assert_allclose(found["std err"], fit.bse[names])
    np.testing.assert_allclose(found["P>|z|"], fit.pvalues[names])
    np.testing.assert_allclose(found[["[0.025", "0.975]"]], fit.conf_int().loc[names])
    narrower = fit.get_margeff({"x": [1.0], "g": ["a"]}, alpha=0.5)
    np.testing.assert_allclose(narrower[["[0.25", "0.75]"]], fit.conf_int(0.5).loc[names])


def test_a_model_of_its_mean_alone_has_no_effects(make_regression):
    """It ended in numpy's own error."""
    fit = make_regression(("Intercept",), formula="price ~ 1")
    found = fit.get_margeff(pd.DataFrame({"bsqft": [1.0, 2.0], "county": ["ala", "cc"]}))
    assert found.shape == (0, 5)
