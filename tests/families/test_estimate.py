"""What is said of a family's coefficients: intervals where they hold, else why not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from families.test_looks import logit_rows, looked

from dpreg.families.estimate import astray, estimate
from dpreg.families.family import Poisson

NAMES = [f"c{j}" for j in range(40)]


def of(z, eps, seed=1, **more):
    return estimate(looked(z, eps, seed, **more)[0], NAMES)


def test_where_rows_are_enough_there_are_intervals_and_nothing_to_say():
    z, _, truth = logit_rows(np.random.default_rng(0), 20000, 5)
    found = of(z, 2)
    assert found.notes == ()
    assert found.converged
    assert found.weak == ()
    errors = np.sqrt(np.diag(found.sampling + found.privacy))
    assert (np.abs(found.params - truth) < 4.5 * errors).all()
    assert found.dispersion == 1


@pytest.mark.parametrize(
    ("rows", "columns", "intercept", "eps", "said"),
    [
        (400, 8, -0.5, 1, "too few for 9 coefficients at this budget: intervals need about"),
        (4000, 3, -6.5, 1000, "The response is rare"),
        (40000, 4, -4.5, 0.5, "The noise hides a direction"),
    ],
)
def test_where_intervals_are_not_earned_there_are_none_and_a_reason(
    rows, columns, intercept, eps, said
):
    size = 3.0 if intercept > -5 else 0.3
    z, _, _ = logit_rows(np.random.default_rng(1), rows, columns, intercept, size)
    found = of(z, eps)
    assert said in found.notes[0]
    assert "No intervals are given" in found.notes[1]
    assert np.isnan(found.sampling).all()
    assert np.isnan(found.privacy).all()
    assert np.isfinite(found.params).all()
    assert np.abs(found.params).max() < 100
    if "set to zero" in found.notes[1]:
        assert found.params[1:].tolist() == [0.0] * columns


def test_where_nothing_can_be_seen_the_mean_stands():
    z, y, _ = logit_rows(np.random.default_rng(5), 4000, 6, -2.5)
    found = of(z, "0.05")
    assert found.params[1:].tolist() == [0.0] * 6
    assert "set to zero" in found.notes[1]
    seen, _ = looked(z, "1", 3)
    assert seen.fit.mean == pytest.approx(y.mean(), abs=0.1)


def test_separated_responses_give_no_intervals():
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (20000, 3))
    y = (x @ [1.0, -1.0, 0.5] > 0) * 1.0
    z = np.column_stack([np.ones(len(x)), x, 2 * y - 1])
    for seed in range(3):
        found = of(z, 5, seed)
        assert np.isnan(found.sampling).all()
        assert np.isfinite(found.params).all()
        assert found.params[1] > 1


@pytest.mark.parametrize("kind", ["constant", "one", "zero", "empty", "twins"])
def test_hostile_tables_raise_nothing(kind):
    rng = np.random.default_rng(3)
    z, _, _ = logit_rows(rng, 300, 3)
    if kind == "constant":
        z[:, 1:] = 1.0
    elif kind == "one":
        z[:, -1] = 1.0
    elif kind == "zero":
        z[:] = 0.0
    elif kind == "empty":
        z = z[:0]
    else:
        z[:, 2] = z[:, 1]
    for eps in ("0.001", "1", "1000000"):
        for relation in ("replace-one", "add-remove"):
            found = of(z, eps, neighbors=relation)
            assert np.isfinite(found.params).all()
            assert np.isfinite(found.count)


def test_a_fit_at_rest_needs_less_to_be_seen_than_one_that_moves():
    """Where a limit on what was released cuts through most runs, those above it look too exact."""
    rng, given = np.random.default_rng(4), []
    for seed in range(4):
        z, _, truth = logit_rows(rng, 100_000, 5, -4.5)
        seen, _ = looked(z, 1, seed)
        last = seen.looks[-1]
        still, moving = (
            estimate(replace(seen, looks=(*seen.looks[:-1], replace(last, moved=moved))), NAMES)
            for moved in (0.04, 0.06)
        )
        given.append((still.doubts, moving.doubts))
        if moving.doubts:
            assert "The noise hides a direction" in moving.notes[0]
        errors = np.sqrt(np.diag(still.sampling + still.privacy))
        if not still.doubts:
            assert (np.abs(still.params - truth) < 4.5 * errors).all()
    assert (False, True) in given
    assert (True, False) not in given


def test_a_step_of_counts_that_is_too_long_gives_no_intervals():
    rng = np.random.default_rng(5)
    x = np.clip(rng.standard_normal((20_000, 3)) / 3, -1, 1)
    y = np.minimum(rng.poisson(np.exp(0.7 + x @ [1.0, -1.0, 0.0])), 20)
    z = np.column_stack([np.ones(len(x)), x, y / 10 - 1])
    seen, _ = looked(z, 4, 1, family=Poisson(20), response=(10, 10))
    last = seen.looks[-1]
    assert not estimate(seen, NAMES).doubts
    long = replace(seen, looks=(*seen.looks[:-1], replace(last, moved=0.12)))
    assert "still moved" in estimate(long, NAMES).notes[0]


def test_counts_that_the_fit_has_far_above_their_mean_are_not_believed():
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, (20_000, 2))
    y = np.minimum(rng.poisson(np.exp(-1 + x @ [0.5, 0.0])), 20)
    z = np.column_stack([np.ones(len(x)), x, y / 10 - 1])
    seen, _ = looked(z, 4, 1, family=Poisson(20), response=(10, 10))
    assert not astray(seen)
    low = replace(seen, fit=replace(seen.fit, intercept=seen.fit.intercept - 4))
    thrown = replace(seen, fit=replace(seen.fit, intercept=seen.fit.intercept + 2))
    assert astray(low)
    assert astray(thrown)
    found = estimate(thrown, NAMES)
    assert "thrown the fit off" in found.notes[0]
    assert found.params[0] == pytest.approx(np.log(y.mean()), abs=0.1)
    assert found.params[1:].tolist() == [0.0, 0.0]


def test_a_fit_without_the_few_rows_that_hold_many_counts_gives_no_intervals():
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, (20_000, 2))
    y = np.minimum(rng.poisson(np.exp(0.5 + x @ [0.5, 0.0])), 20)
    z = np.column_stack([np.ones(len(x)), x, y / 10 - 1])
    seen, _ = looked(z, 4, 1, family=Poisson(20), response=(10, 10))
    assert not estimate(seen, NAMES).doubts
    short = replace(seen, fit=replace(seen.fit, intercept=seen.fit.intercept - 0.3))
    assert "a few rows hold a large part of the counts" in estimate(short, NAMES).notes[0]
    less = replace(seen, fit=replace(seen.fit, intercept=seen.fit.intercept - 0.05))
    assert not estimate(less, NAMES).doubts
