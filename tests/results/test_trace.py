"""Why a standard error is what it is: `result.trace`."""

import math

import numpy as np
import pytest
from results import write_saved_0_2 as written
from results.test_adaptive import HIDDEN, glm, ols, without

import dpreg


def rules(result, at):
    """Return the rules at a place, with their numbers."""
    told = result.trace
    return dict(told.loc[told["at"] == at, ["rule", "value"]].to_numpy().tolist())


@pytest.mark.parametrize("call", [ols, glm])
@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_a_trace_has_each_look_with_its_share_limits_and_noise(call, delta):
    fit = call(delta=delta)
    assert list(fit.trace.columns) == ["at", "rule", "value"]
    for place, look in enumerate(fit.releases, 1):
        told = rules(fit, f"look {place}")
        of = "eps" if delta == 0 else "mu^2"
        assert told[f"share of {of}, {look.kind}"] == float(look.share)
        assert told["sd of the noise in a cell of the information"] == look.information_sd
        if look.kind == "fitting":
            assert told["limit of a row's information (A)"] == look.limits[0]
            assert told["limit of a row's score (S)"] == look.limits[1]
    assert fit.trace.attrs["privacy"] == "NOT PRIVATE: seeded"


def test_a_trace_adds_up_and_names_law_and_marks():
    fit = without(ols(delta=0), "g[T.w]")
    told = rules(fit, "x")
    assert told["std err"] == fit.bse["x"]
    both = math.hypot(told["sampling error"], told["privacy noise"])
    assert both == pytest.approx(told["std err"])
    assert f"mark: {HIDDEN}" in rules(fit, "g[T.w]")
    (law,) = (rule for rule in rules(fit, "fit") if "law of p-values" in rule)
    assert rules(fit, "fit")[law] == fit.noise_degrees
    assert "law of p-values and intervals: normal" in rules(ols(), "fit")
    assert rules(fit, "person") == {"rows that count, under replace-one": 1.0}
    assert rules(ols(person="id"), "person") == {"rows that count, under replace-one": math.inf}


def test_rules_that_fired_are_in_the_trace(make_regression):
    fit = make_regression(ridged=True, ridge=2.5, complete_rows=6.0)
    assert rules(fit, "fit")["ridge that was added, in stored units"] == 2.5
    fired = rules(fit, "notes")
    assert {"rows-missing-or-levels", "ridged"} <= set(fired)
    assert "errors" not in fired


@pytest.mark.parametrize("name", written.CALLS)
def test_every_result_of_0_2_has_a_trace(name):
    result = written.saved(name)
    told = result.trace
    assert {f"look {j + 1}" for j in range(len(getattr(result, "looks", ())))} <= set(told["at"])
    errors = told.loc[told["rule"] == "std err", "value"].to_numpy()
    fit = getattr(result, "regression", result)
    expected = [] if fit is None else fit.bse.to_numpy()
    np.testing.assert_array_equal(errors, expected)


def test_a_mean_has_a_trace():
    found = dpreg.dp_mean("x", {"x": np.arange(99.0)}, bounds=(0, 99), eps=1)
    assert rules(found, "x")["std err"] == found.bse["x"]
