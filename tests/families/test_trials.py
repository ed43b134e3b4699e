"""Successes of several trials: rows within their limits, blocks, start, and whole calls."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from families.test_rows import corners, some_location
from staged.test_rows import Stored, chunk

import dpreg
from dpreg.errors import ArgumentError, FormulaError, SchemaError
from dpreg.families.family import Binomial
from dpreg.families.location import FamilyLocation
from dpreg.families.rows import FamilyRows, Trials
from dpreg.families.trials import of_trials
from dpreg.moments import accumulate

ONE, FULL = 2**20, 2**40
MOST = 40.0
SCHEMA = {"a": (-1, 1), "b": (0, 10), "g": ["u", "v"], "m": (0, 12), "y": (0, 12), "rest": (0, 12)}


def with_trials(z, rng):
    """Put a column of trials before the response: both ends, what rounds, and ordinary numbers."""
    m = rng.choice([-1.0, 1.0, 0.03, -0.97, 0.999999], len(z))
    return np.column_stack([z[:, :-1], m, z[:, -1]])


def made(location, z):
    p = location.size
    trials = Trials(p + 1, (MOST / 2, MOST / 2), MOST)
    response = (MOST / 2, MOST / 2)
    vectors = FamilyRows(Stored(z.shape[1]), location, range(1, p + 1), (), response, trials)
    return vectors, vectors.block(chunk(z))


@pytest.mark.parametrize("seed", range(12))
def test_no_row_leaves_its_limits_whatever_its_trials(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 6))
    location = some_location(rng, Binomial(7.5), p, steep=10.0 ** rng.uniform(-1, 2))
    _, block = made(location, with_trials(corners(rng, 3000, p), rng))
    whole = block * ONE
    assert (whole == np.rint(whole)).all()
    k, f, q = whole[:, : p + 1].astype(np.int64), whole[:, p + 1], whole[:, p + 2]
    squares = (k * k).sum(axis=1)
    assert squares.max() <= FULL
    exact = [int(s) * int(g) ** 2 for s, g in zip(squares, f, strict=True)]
    assert max(exact) <= location.limit**2
    assert q.min() >= 0
    assert q.max() <= ONE
    assert (q * location.limit / ONE + 1e-3 >= np.sqrt(np.array(exact, dtype=float))).all()


def test_a_row_has_the_same_bits_in_any_chunk():
    rng = np.random.default_rng(7)
    location = some_location(rng, Binomial(9.0), 4, steep=2.0)
    z = with_trials(corners(rng, 333, 4), rng)
    vectors, whole = made(location, z)
    for size in (1, 2, 3, 64):
        pieces = [vectors.block(chunk(z[i : i + size])) for i in range(0, 333, size)]
        assert np.concatenate(pieces).tobytes() == np.ascontiguousarray(whole).tobytes()


def test_blocks_are_those_of_so_many_trials_and_none_counts_for_nothing():
    rng = np.random.default_rng(3)
    p, n = 3, 500
    location = FamilyLocation.on_grid(
        Binomial(10.0),
        whitening=np.eye(p) * 3,
        offset=np.full(p, 0.3),
        slopes=[0.4, -0.6, 0.1],
        intercept=-0.4,
        mean_weight=2.2,
        information=8.0,
        score=12.0,
        most_trials=4.0,
    )
    z = with_trials(corners(rng, n, p), rng)
    vectors, block = made(location, z)
    moments = accumulate([block], vectors.size).as_float()
    cells = np.rint(z * ONE) / ONE
    m = np.rint(MOST / 2 * (1 + cells[:, -2]))
    y = np.minimum(MOST / 2 * (1 + cells[:, -1]), m)
    assert set(m) >= {0.0, 1.0, MOST}
    assert (block[m == 0] == 0).all()
    u = np.column_stack([np.ones(n), cells[:, 1 : p + 1] * 3 + 0.3])
    eta = location.predictor.floats[0] + cells[:, 1 : p + 1] @ location.predictor.floats[1]
    chance = 1 / (1 + np.exp(-eta))
    mean, weight = m * chance, np.maximum(m, 1) * chance * (1 - chance)
    length, wbar = np.sqrt((u * u).sum(axis=1)), location.mean_weight
    farthest = np.maximum(np.maximum(mean, m - mean), 1e-9)
    omega = np.minimum(1, location.score * np.sqrt(wbar) / (farthest * length))
    omega = np.minimum(omega, location.information * wbar / (weight * length**2))
    omega[m == 0] = 0
    assert 0.2 < omega[m > 0].mean() < 1
    information = (u * (omega * weight / wbar)[:, None]).T @ u / location.information
    score = u.T @ (omega * (y - mean) / np.sqrt(wbar))
    score /= np.sqrt(location.information) * location.residual
    np.testing.assert_allclose(moments[: p + 1, : p + 1], information, atol=n * 3e-6)
    np.testing.assert_allclose(moments[: p + 1, p + 1], score, atol=n * 3e-6)


def test_the_box_is_freed_of_the_trials_part():
    rng = np.random.default_rng(1)
    n = 50_000
    x, m = rng.uniform(-1, 1, n), rng.integers(0, 13, n)
    y = rng.binomial(m, 0.3)
    z = np.column_stack([np.ones(n), x, m / 6 - 1, y / 6 - 1])
    family, mean, cells, sd = of_trials(
        z.T @ z, np.ones((4, 4)), Trials(2, (6.0, 6.0), 12.0), (6.0, 6.0)
    )
    assert family.trials == pytest.approx(6, abs=0.05)
    assert mean == pytest.approx(1.8, abs=0.02)
    left = cells - np.outer(cells[0], cells[0]) / n
    assert abs(left[2, -1]) < 0.02 * left[2, 2]
    assert sd[1, -1] == pytest.approx(np.hypot(1, 0.3), abs=0.01)


def table(n=20_000, seed=0, depends=False):
    rng = np.random.default_rng(seed)
    a, b, g = rng.uniform(-1, 1, n), rng.uniform(0, 10, n), rng.choice(["u", "v"], n)
    m = rng.integers(0, 13, n)
    if depends:
        m = np.clip(rng.poisson(np.exp(1 + a)), 0, 12)
    y = rng.binomial(m, 1 / (1 + np.exp(0.7 - a - 0.1 * b)))
    return pd.DataFrame({"a": a, "b": b, "g": g, "m": m, "y": y, "rest": m - y})


def theirs(data):
    some = data[data["m"] > 0]
    x = sm.add_constant(some[["a", "b"]])
    return sm.GLM(some[["y", "rest"]], x, family=sm.families.Binomial()).fit()


@pytest.mark.parametrize("depends", [False, True])
@pytest.mark.parametrize("trials", ["m", "I(m + 0 * b)"])
def test_tends_to_statsmodels_two_columns_as_the_noise_vanishes(trials, depends):
    data = table(depends=depends)
    asked = {"delta": 1e-6, "schema": SCHEMA, "trials": trials, "unsafe_seed": 1}
    ours = dpreg.dp_glm("y ~ a + b", data, 1e6, **asked)
    expected = theirs(data)
    away = (ours.params.to_numpy() - expected.params.to_numpy()) / expected.bse.to_numpy()
    assert np.abs(away).max() < 0.005
    assert ours.trials is not None
    rows = table(4, seed=9)[["a", "b"]]
    chance = expected.predict(sm.add_constant(rows))
    np.testing.assert_allclose(ours.predict(rows), chance, atol=8e-4)
    assert "Trials" in str(ours)


def test_errors_are_of_the_stated_size_and_a_choice_finds_the_terms():
    data, gaps = table(), []
    expected = theirs(data)
    for seed in range(20):
        fit = dpreg.dp_glm(
            "y ~ a + b", data, 1, delta=1e-6, schema=SCHEMA, trials="m", unsafe_seed=seed
        )
        gaps.append((fit.params.to_numpy() - expected.params.to_numpy()) / fit.bse_privacy)
    assert 0.75 < np.sqrt(np.mean(np.square(gaps))) < 1.3
    chosen = dpreg.dp_select(
        "y ~ a + b + g", data, 1, delta=1e-6, schema=SCHEMA, trials="m", family="binomial",
        false_inclusions="1e-3", fit="fresh", unsafe_seed=1,
    )  # fmt: skip
    assert (chosen.selected, chosen.candidates) == (["Intercept", "a", "b"], ("g", "a", "b"))
    assert "m" not in chosen.columns


def test_a_response_that_is_left_out_has_the_bounds_of_the_trials():
    schema = {name: how for name, how in SCHEMA.items() if name != "y"}
    asked = {"delta": 1e-6, "trials": "m", "unsafe_seed": 2}
    left_out = dpreg.dp_glm("y ~ a", table(2000), 1, schema=schema, **asked)
    declared = dpreg.dp_glm("y ~ a", table(2000), 1, schema=SCHEMA, **asked)
    assert left_out.schema["y"] == declared.schema["y"]
    np.testing.assert_array_equal(left_out.coefficients, declared.coefficients)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"family": "poisson"}, 'trials is for family="binomial"'),
        ({"trials": "a"}, "not a term of the formula"),
        ({"trials": "g"}, "one column of numbers"),
        ({"trials": "b", "schema": {**SCHEMA, "b": (-1, 10)}}, "bounds from 0 or 1"),
        ({"schema": {**SCHEMA, "m": (0, 10**6)}}, "bounds from 0 or 1"),
        ({"schema": {**SCHEMA, "y": (1, 12)}}, "number of successes"),
        ({"schema": {**SCHEMA, "y": bool}}, "number of successes"),
        ({"schema": {k: v for k, v in SCHEMA.items() if k != "m"}}, "declare the bounds"),
        ({"trials": "I(y + rest)"}, "the response"),
        (
            {"trials": "I(m)", "schema": {k: v for k, v in SCHEMA.items() if k != "y"}},
            "do not tell",
        ),
        ({"response_cap": 3}, "response_cap is for counts"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_charged(options, says):
    ledger = dpreg.Ledger(5)
    asked = {"schema": SCHEMA, "trials": "m", "budget": ledger, **options}
    with pytest.raises((ArgumentError, FormulaError, SchemaError), match=says):
        dpreg.dp_glm("y ~ a", table(100), 1, **asked)
    assert not ledger.entries
