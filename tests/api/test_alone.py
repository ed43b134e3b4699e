"""Coefficients alone in the last look's place: when a call of dp_ols ends so, and what it shows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import dpreg
from dpreg.privacy.objective import OBJECTIVE
from dpreg.staged import minimum

SCHEMA = {"y": (-5, 5), "x": (-4, 4), "z": (-4, 4), "w": (-4, 4)}
STEPS = ["residuals beyond the clip", "spread of residuals and rows"]
ALONE = ["look 1", "look 2", "coefficients", *STEPS]
USUAL = ["0.15", "0.2", "0.56", "0.05", "0.04"]
LOOKS = ["look 1", "look 2", "look 3", *STEPS]


def table(n=6000, seed=0, alike=0.0):
    rng = np.random.default_rng(seed)
    x, z, w = rng.normal(size=(3, n))
    z = alike * x + np.sqrt(1 - alike**2) * z
    return pd.DataFrame({"y": 0.5 * x - 0.3 * z + rng.normal(size=n), "x": x, "z": z, "w": w})


def fitted(data=None, eps=1, formula="y ~ x + z + w", **arguments):
    data = table() if data is None else data
    given = {"schema": SCHEMA, "progress": False, **arguments}
    return dpreg.dp_ols(formula, data, eps, **given)


def steps(fit):
    return fit.budget["step"].tolist()


def test_the_last_release_is_of_the_coefficients_and_has_a_line():
    fit = fitted()
    assert steps(fit) == ALONE
    assert fit.budget["eps"].tolist() == ["0.15", "0.26", "0.5", "0.05", "0.04"]
    assert fit.budget["mechanism"].tolist()[2] == OBJECTIVE
    assert [look.mechanism for look in fit.looks] == ["matrix-laplace"] * 2 + [OBJECTIVE]
    assert fit.passes == 4
    assert fit.noise_degrees == 2  # (4 + 1) // 2
    shown = " ".join(str(fit.summary()).split())
    assert "coefficients alone, by objective perturbation" in shown
    assert "K-norm noise together" in shown
    assert "alone located 0.5" in shown


def test_the_released_coefficients_are_the_origin_of_the_look_that_they_equal():
    fit = fitted(eps=20, unsafe_seed=1)
    last = fit.looks[-1]
    box = np.append(last.center[0], last.center[1:])
    slopes = box[1:] * 5 / 4  # response in units of 5, columns in units of 4
    assert fit.params.iloc[1:].to_numpy() == pytest.approx(slopes, abs=0.2 * fit.bse.iloc[1])
    assert np.array_equal(last.cells[:4, 4], last.cells[4, :4])


@pytest.mark.parametrize(
    ("given", "data"),
    [
        ({"noise": "matrix-laplace"}, table()),
        ({"eps": 0.1}, table()),
        ({"neighbors": "add-remove", "expected_rows": 200}, table()),
        ({"method": "staged", "eps": 0.5}, table(1000)),
        ({"eps": 4}, table(alike=0.99999)),
    ],
    ids=["its noise asked for", "small eps", "few declared", "few", "hidden direction"],
)
def test_otherwise_there_is_a_third_look(given, data):
    fit = fitted(data, **{"method": "staged", "unsafe_seed": 1, **given})
    assert steps(fit) == LOOKS
    assert {look.mechanism for look in fit.looks} == {"matrix-laplace"}
    assert "alone" not in str(fit.summary()).split()


def test_with_gaussian_noise_and_in_a_selection_nothing_is_alone():
    joint = fitted(delta=1e-6)
    assert joint.looks[-1].mechanism == "gaussian"
    chosen = dpreg.dp_select("y ~ x + z + w", table(20_000), 1, schema=SCHEMA, progress=False)
    assert OBJECTIVE not in chosen.budget["mechanism"].tolist()


def test_the_noise_of_looks_is_chosen_once():
    """At this delta matrix-Laplace noise is better by little, and shares differ a little."""
    told = {"formula": "y ~ x", "eps": 8, "delta": 1e-9, "unsafe_seed": 1}
    assert fitted(**told).budget["mechanism"].tolist()[:3] == ["matrix-laplace"] * 2 + [OBJECTIVE]


def test_a_hidden_direction_leaves_what_was_kept_for_it_to_the_third_look():
    fit = fitted(table(alike=0.99999), eps=4)
    assert fit.budget["eps"].tolist() == ["0.6", "1.04", "2", "0.2", "0.16"]


def test_a_rare_value_leaves_three_looks_their_usual_shares():
    data = table(20_000, seed=3)
    data["w"] = np.where(np.arange(20_000) % 250, -4.0, 4.0)
    for neighbors in ("replace-one", "add-remove"):
        fit = fitted(data, unsafe_seed=1, neighbors=neighbors, expected_rows=20_000)
        assert steps(fit) == LOOKS
        assert fit.budget["eps"].tolist() == USUAL
        assert [float(look.share) for look in fit.looks] == [0.15, 0.2, 0.56]
        assert fit.passes == 3
    notes = [line for line in str(fit.summary()).splitlines() if "look" in line]
    assert any("0.56" in line for line in notes)


def test_rows_are_held_by_their_own_number(monkeypatch):
    monkeypatch.setattr(minimum, "_MOST_CELLS", 5500 * 5)
    told = {"expected_rows": 5000, "method": "staged"}
    public, private = fitted(**told), fitted(**told, neighbors="add-remove")
    assert steps(public) == steps(private) == LOOKS
    assert public.budget.equals(private.budget)  # never planned, or given up after the first look
    assert public.budget["eps"].tolist() == USUAL
    monkeypatch.setattr(minimum, "_MOST_CELLS", 6500 * 5)
    assert steps(fitted(**told, neighbors="add-remove")) == ALONE


def test_rows_that_another_process_reads_are_not_held():
    dd = pytest.importorskip("dask.dataframe")
    fit = fitted(dd.from_pandas(table(), npartitions=2), expected_rows=6000, method="staged")
    assert steps(fit) == LOOKS


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("k", [1, 2])
def test_estimates_err_by_what_the_errors_say(neighbors, k):
    data = table(12_000, seed=4)
    theirs = smf.ols("y ~ x + z + w", data).fit()
    told = {"neighbors": neighbors, "contributions": k, "expected_rows": 12_000}
    runs = [fitted(data, unsafe_seed=seed, **told) for seed in range(40)]
    assert all(steps(run) == ALONE for run in runs)
    z = np.array([(run.params - theirs.params) / run.bse_privacy for run in runs])[:, 1:]
    assert 0.7 < np.sqrt((z**2).mean()) < 1.2
    assert abs(z.mean()) < 0.4


def test_little_noise_gives_least_squares_and_its_errors():
    data = table(8000, seed=5)
    theirs = smf.ols("y ~ x + z + w", data).fit()
    ours = fitted(data, eps=10**5, unsafe_seed=1)
    assert steps(ours) == ALONE
    scale = theirs.bse.to_numpy()
    np.testing.assert_allclose(ours.params / scale, theirs.params / scale, atol=0.25)
    np.testing.assert_allclose(ours.bse, theirs.bse, rtol=0.1)


def test_a_saved_result_shows_the_same(tmp_path):
    fit = fitted(unsafe_seed=2)
    fit.save(tmp_path / "fit.json")
    again = dpreg.load(tmp_path / "fit.json")
    assert str(again.summary()) == str(fit.summary())
    assert again.conf_int().equals(fit.conf_int())
