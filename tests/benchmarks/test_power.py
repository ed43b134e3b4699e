"""The benchmark of power: its peers, its cells, and a file that a stopped run goes on with."""

from collections import Counter

import numpy as np
import pytest

from benchmarks import power
from benchmarks._power_cells import GRIDS, Cell, draw, effects, population
from benchmarks._power_table import best, useless
from benchmarks.peers.choices import noisy_moments, stepwise

CELL = Cell(8, 4000, 1.0, 0.0, 0.5)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_without_privacy_the_peers_choose_as_their_exact_rules(delta):
    rng = np.random.default_rng(1)
    x, y = draw(CELL, rng)
    strong = {0, 1, 2}
    assert stepwise(x, y, 3, 0.5, 1e3, delta, rng) == strong
    moments = noisy_moments(x, y, 1e3, delta, rng)
    z = np.column_stack([x, y]) - np.append(x.mean(axis=0), y.mean())
    np.testing.assert_allclose(moments, z.T @ z, atol=0.05 * len(y) * 0.03)


def test_a_little_budget_stops_stepwise_selection():
    rng = np.random.default_rng(2)
    x, y = draw(CELL, rng)
    assert sum(len(stepwise(x, y, 4, 0.5, 1e-4, 0.0, rng)) for _ in range(50)) <= 15


@pytest.mark.parametrize("cell", [*GRIDS["skewed"]()[:20:2], *GRIDS["hard"]()[:16:4]])
def test_drawn_rows_have_the_moments_and_the_coefficients_of_their_population(cell):
    x, y = draw(cell, np.random.default_rng(3))
    gram, beta = population(cell)
    assert x.shape[1] == len(beta) == len(gram) - 1
    assert np.abs(x).max() <= 1
    assert np.abs(y).max() <= 1
    residual = y - x @ beta
    assert abs(residual.mean()) < 5 * residual.std() / np.sqrt(len(y))
    slopes = np.linalg.lstsq(np.column_stack([np.ones(len(x)), x]), y, rcond=None)[0][1:]
    ones = np.column_stack([np.ones(len(x)), x])
    errors = np.sqrt(np.diag(np.linalg.inv(ones.T @ ones))[1:] * residual.var())
    assert (np.abs(slopes - beta) < 8 * errors).all()
    assert (effects(cell) != 0).sum() <= cell.p


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    path, cell = tmp_path / "power.csv", Cell(5, 1000)
    own = {"staged": Counter(found=3, useless=1, useless_squares=1)}
    power.write(path, cell, 20, own)
    power.write(path, cell, 5, own)
    sums = power.read(path)[cell.name, "staged"]
    assert (sums["runs"], sums["found"], sums["useless"]) == (25, 6, 2)


def test_no_useless_term_in_few_runs_proves_little():
    assert useless(Counter(runs=40))[1] == pytest.approx(4.605 / 40, abs=1e-3)
    many = Counter(runs=2000, useless=200, useless_squares=200)
    assert 0.115 < useless(many)[1] < 0.12


def test_a_peer_is_shown_at_its_best_careful_setting():
    sums = {
        (CELL.name, "stepwise: a"): Counter(runs=10, found=40, useless=9),
        (CELL.name, "stepwise: b"): Counter(runs=10, found=30, useless=1),
        (CELL.name, "stepwise: c"): Counter(runs=10, found=20, useless=0),
    }
    assert best(sums, CELL, "stepwise")["found"] == 30
    assert best(sums, CELL, "nobody") is None
