"""Simulated scores against the canonical ones, and section 5.1 of the paper."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from oracles.bounds import score_range

from benchmarks._figures import BETAS, figure, mechanism_table
from dpreg.arrays import MOMENT_BITS
from dpreg.errors import ArgumentError
from dpreg.moments import Moments
from dpreg.privacy.proofs import score_grid
from dpreg.selection.scoring.problem import Problem
from dpreg.study import simulation
from dpreg.study.results import SIMULATED
from dpreg.study.simulation import simulation_study

SMALL = {"datasets": 40, "penalty": np.linspace(0, 0.5, 26)}


def _design(**changes):
    study = simulation_study(
        **{"beta": BETAS[1], "n": 200, "datasets": 12, "penalty": (0.1,), **changes}
    )
    return study.design


@pytest.mark.parametrize("radius", [0.3, 1.0, 2.5, 40.0])
def test_scores_are_the_canonical_ones(radius):
    """At a public bound r: F_R = r^2 F_rho, and q is its floor on the grid.

    The canonical scores are computed from moments on the grid 2**-40, built here from the float
    moments, so both sides see one problem.
    """
    bound = 6.0
    data = simulation.simulate(_design(), 200, 6.0)
    models = simulation.all_models(6, empty=True)
    found = simulation.scores(data, models, radius)
    rho = Fraction(str(radius)) / 6
    for b in range(len(found)):
        cells = np.zeros((8, 8))
        cells[1:7, 1:7] = data.gram[b]
        cells[1:7, 7] = cells[7, 1:7] = data.cross[b] / bound
        cells[7, 7] = 200.0
        integers = tuple(tuple(round(c * 2**MOMENT_BITS) for c in row) for row in cells.tolist())
        columns = np.zeros((64, 7), dtype=bool)
        columns[:, 1:] = models
        q = Problem(Moments(200, integers), rho).scores(columns)
        exact = (q + 0.5) * float(score_grid(rho)) * bound**2
        half = float(score_grid(rho)) * bound**2
        np.testing.assert_allclose(found[b], exact, rtol=1e-9, atol=0.5 * half + 1e-8)


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("radius", ["2.5", "10"])
def test_the_range_scale_is_the_one_that_dpreg_draws_with(radius, neighbors):
    rho = Fraction(radius) / 6
    found = simulation.rates(np.array([6.0]), float(radius), 1.0, neighbors, "range")[0]
    units = score_range(rho, neighbors, 1) * score_grid(rho) * 36
    assert found == pytest.approx(float(1 / units), rel=1e-6)


def test_the_paper_scale_is_the_one_that_algorithm_1_prints():
    found = simulation.rates(np.array([5.0]), 2.5, 2.0, "replace-one", "paper")[0]
    assert 1 / found == 2 * 7.5**2 / 2


def test_bounds_are_compared_on_the_same_rows():
    design = _design()
    one = simulation.simulate(design, 200, 100.0)
    two = simulation.simulate(design, 200, "observed")
    np.testing.assert_array_equal(one.cross, two.cross)
    assert two.bound.max() < 8
    clipped = simulation.simulate(design, 200, 1.0)
    assert not np.allclose(clipped.cross, one.cross)


def test_models_with_and_without_the_empty_one():
    assert simulation.all_models(6, True).shape == (64, 6)
    assert simulation.all_models(6, False).shape == (63, 6)
    assert simulation.all_models(3, False)[0].tolist() == [True, False, False]


# ---- section 5.1 --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def first():
    return figure(1, datasets=40, points=26)


@pytest.fixture(scope="module")
def second():
    return figure(2, datasets=40, points=26)


def _best(study, **key):
    table = study.best.reset_index()
    for name, value in key.items():
        table = table[table[name] == value]
    assert len(table) == 1
    return table.iloc[0]


@pytest.mark.parametrize("number", [1, 2])
def test_a_radius_of_one_fails(number, first, second):
    study = (first, second)[number - 1]
    for eps in (1.0, 5.0, 10.0):
        small = _best(study, n=1000, radius=1.0, eps=eps)
        fitting = _best(study, n=1000, radius=2.5, eps=eps)
        assert small["right"] < fitting["right"]
        if number == 1:
            assert small["right"] < 0.55 or eps == 10
    at_one = study.proportions.query("n == 1000 and radius == 1.0")
    assert (at_one[at_one["penalty/n"] >= 0.1]["without noise"] == 0).all()


@pytest.mark.parametrize("eps", [5.0, 10.0])
@pytest.mark.parametrize("radius", [2.5, 3.5])
def test_a_thousand_rows_are_right_over_a_wide_interval(first, radius, eps):
    """The text says so from eps = 1 on; with the noise that Algorithm 1 prints it is so from 5."""
    best = _best(first, n=1000, radius=radius, eps=eps)
    assert best["right"] > 0.96
    assert best["wide"] > 0.2


def test_the_noise_as_printed_is_too_much_for_eps_one(first, second):
    """The text claims near 1. The noise of Algorithm 1, 2 (r + R)^2 / eps, is about 120 here."""
    assert 0.25 < _best(first, n=1000, radius=2.5, eps=1.0)["right"] < 0.45
    assert 0.1 < _best(second, n=1000, radius=2.5, eps=1.0)["right"] < 0.2


def test_without_noise_both_models_are_found_over_an_interval(first, second):
    for study, least in ((first, 0.4), (second, 0.03)):
        at_eps = study.proportions.query("n == 1000 and eps == 1")
        for radius in (2.5, 3.5, 10.0):
            line = at_eps[at_eps["radius"] == radius]["without noise"]
            assert (line > 0.95).mean() > least


def test_more_eps_and_more_rows_never_hurt_the_best(first, second):
    for study in (first, second):
        for _, line in study.best["right"].groupby(["n", "radius"]):
            assert all(b >= a for a, b in pairwise(line)) or max(line) < 0.1
        by_size = study.best["right"].unstack("n")
        assert (by_size[1000] >= by_size[100]).all()


def test_the_best_penalty_grows_about_linearly_with_n():
    study = simulation_study(
        BETAS[1], (500, 1000, 2000, 4000), radius=2.5, eps=10, scale="paper", **SMALL
    )
    phi = study.best["penalty/n"].to_numpy() * np.array([500, 1000, 2000, 4000])
    slope = np.polyfit(np.log([500, 1000, 2000, 4000]), np.log(phi), 1)[0]
    assert 0.8 < slope < 1.2


def test_the_second_model_is_right_with_rows_and_eps_enough(second):
    assert _best(second, n=1000, radius=2.5, eps=10.0)["right"] > 0.6
    grid = {**SMALL, "penalty": np.linspace(0, 0.2, 41)}
    study = simulation_study(BETAS[2], 1000, radius=3, eps=(1, 20), scale="paper", **grid)
    assert study.best["right"].iloc[1] > 0.95  # a twentieth of the noise that eps = 1 has
    study = simulation_study(BETAS[2], 10_000, radius=3, eps=(1, 5), scale="paper", **grid)
    assert (study.best["right"] > [0.5, 0.95]).all()


def test_the_leak_has_a_price():
    study = simulation_study(
        BETAS[1], 1000, radius=2.5, eps=(1, 5), bound=("observed", 6), scale="paper", **SMALL
    )
    price = study.price_of_the_leak["price at 6"]
    assert (price > 0.02).all()
    assert price.xs(1.0, level="eps").iloc[0] > 0.1
    with pytest.raises(ArgumentError, match="observed"):
        _ = simulation_study(BETAS[1], 100, radius=1, eps=1, **SMALL).price_of_the_leak


def _check_table(datasets):
    table = mechanism_table(datasets=datasets)
    assert table.attrs["privacy"] == SIMULATED
    for column in table:
        laplace = table[column][("laplace", "replace-one", "range")]
        printed = table[column][("laplace", "replace-one", "paper")]
        flip = table[column][("permute-and-flip", "replace-one", "range")]
        softmax = table[column][("exponential", "replace-one", "range")]
        added = table[column][("permute-and-flip", "add-remove", "range")]
        assert printed <= laplace + 1e-4 < flip + 2e-4
        assert softmax < flip < added + 1e-3
    assert table[5.0, "best"].min() > 0.97
    assert table[1.0, "best"][("permute-and-flip", "add-remove", "range")] > 0.8
    return table


def test_permute_and_flip_is_the_best_and_add_remove_better_still():
    _check_table(60)


@pytest.mark.audit
def test_the_table_of_mechanisms_over_500_data_sets():
    print(_check_table(500).round(3).to_string())


# ---- the public call ----------------------------------------------------------------------------


def test_views_say_that_rows_were_simulated(first):
    assert SIMULATED in repr(first)
    assert str(first).count(SIMULATED) == 2
    for frame in (first.proportions, first.best, first.table()):
        assert frame.attrs["privacy"] == SIMULATED


def test_auto_needs_no_grid():
    study = simulation_study(
        (1, 1, 0),
        2000,
        radius=2.5,
        eps=5,
        bound=6,
        datasets=10,
        penalty=(0.1,),
        false_inclusions=0.1,
    )
    assert study.auto["right"].iloc[0] > 0.85
    assert list(study.table("auto").columns) == [5.0]


def test_auto_that_was_not_tried_is_said_to_be():
    study = simulation_study((1, 0), 50, radius=1, eps=1, datasets=2, penalty=(0.1,))
    with pytest.raises(ArgumentError, match="false_inclusions"):
        _ = study.auto
    with pytest.raises(ArgumentError, match="false_inclusions"):
        study.table("auto")


def test_the_same_seed_gives_the_same_numbers():
    calls = [simulation_study(BETAS[2], 100, radius=2.5, eps=1, **SMALL) for _ in range(2)]
    assert calls[0].proportions.equals(calls[1].proportions)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beta": ()}, "beta"),
        ({"beta": (0, 0)}, "empty"),
        ({"beta": [1.0] * 13}, "beta"),
        ({"n": 0}, "n must"),
        ({"radius": 0}, "radius"),
        ({"eps": ()}, "eps must hold"),
        ({"penalty": (-1,)}, "penalty"),
        ({"mechanism": "gaussian"}, "mechanism"),
        ({"bound": -1}, "bound"),
        ({"scale": "none"}, "scale"),
        ({"datasets": 1}, "datasets"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    with pytest.raises(ArgumentError, match=message):
        simulation_study(**{"beta": (1, 0), "n": 50, "datasets": 2, **changes})
