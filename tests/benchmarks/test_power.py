"""The benchmark of power: its peers, its cells, and a file that a stopped run goes on with."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dpreg
from benchmarks import power
from benchmarks._power_cells import GRIDS, Cell, draw, effects, population
from benchmarks._power_runs import Setting, fitted, looked
from benchmarks._power_table import audit, best, by_rows, markdown, useless
from benchmarks.peers.choices import noisy_moments, stepwise
from dpreg.choice import choose

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
    own = {"adaptive": Counter(sets=10, found=3, useless=1, useless_squares=1)}
    power.write(path, cell, 20, own)
    power.write(path, cell, 5, own)
    sums = power.read(path)[cell.name, "adaptive"]
    assert (sums["runs"], sums["sets"], sums["found"], sums["useless"]) == (25, 20, 6, 2)


def test_no_useless_term_in_few_runs_proves_little():
    assert useless(Counter(runs=40, sets=40))[1] == pytest.approx(4.605 / 40, abs=1e-3)
    many = Counter(runs=2000, sets=2000, useless=200, useless_squares=200)
    assert 0.115 < useless(many)[1] < 0.12


def test_useless_terms_that_all_releases_of_a_data_set_share_count_as_one_finding():
    apart = Counter(runs=2000, sets=500, useless=200, useless_squares=200)
    alike = Counter(runs=2000, sets=500, useless=200, useless_squares=800)
    assert useless(apart)[0] == useless(alike)[0]
    assert useless(alike)[1] > 0.13 > useless(apart)[1]


def _called(cell, x, y, seed, **more):
    frame = pd.DataFrame(x, columns=[f"x{i + 1}" for i in range(8)]).assign(y=y)
    return dpreg.dp_select(
        "y ~ " + " + ".join(frame.columns[:-1]),
        frame,
        eps=str(cell.eps),
        delta="1e-6" if cell.delta else 0,
        schema=dict.fromkeys(frame.columns, (-1, 1)),
        method="adaptive",
        progress=False,
        unsafe_seed=seed,
        **more,
    )


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("fit", ["fresh", "same"])
def test_quick_looks_are_those_of_a_call_with_the_same_seed(delta, fit):
    """Number for number: the same code, the same noise."""
    cell = Cell(8, 6000, 2.0, delta, 0.5)
    x, y = draw(cell, np.random.default_rng(8))
    called = _called(cell, x, y, 1, fit=fit)
    later = float(power.fresh_share(power.Fraction(delta))) if fit == "fresh" else 0.0
    setting = Setting(2.0, delta, whole=1 - later)
    rows, seen = looked(x, y, setting, np.random.default_rng(1))
    for one, theirs in zip(seen.releases, called.releases[1:], strict=True):
        np.testing.assert_allclose(one.score, theirs.score, rtol=1e-9)
    chosen = choose(power.laws_for_choice(seen), cell.space)
    names = [f"x{unit + 1}" for unit in chosen.model]
    assert ("Intercept", *names) == called.best
    part = fitted(rows, seen, [0, *(unit + 1 for unit in chosen.model)], fit)
    np.testing.assert_allclose(part.params, called.regression.coefficients, rtol=1e-6, atol=1e-9)
    variances = np.diag(called.regression.covariance)
    np.testing.assert_allclose(np.diag(part.covariance), variances, rtol=1e-6)


def test_a_peer_is_shown_at_its_best_careful_setting():
    sums = {
        (CELL.name, "stepwise: a"): Counter(runs=10, found=40, useless=9),
        (CELL.name, "stepwise: b"): Counter(runs=10, found=30, useless=1),
        (CELL.name, "stepwise: c"): Counter(runs=10, found=20, useless=0),
    }
    assert best(sums, CELL, "stepwise")["found"] == 30
    assert best(sums, CELL, "nobody") is None


def test_a_table_of_intervals_shows_shares_and_leaves_few_out():
    own = Counter(runs=4, found=10, strong=20, strong_in=19, weak=9, weak_in=9)
    sums = {(CELL.name, "same"): own, (CELL.name, "fresh"): own}
    lines = audit(sums, [CELL, Cell(5)], ["same", "fresh"]).splitlines()
    assert lines[2] == "| **all runs together** | 4 | 2.50, 0.950, - | 2.50, 0.950, - |"
    assert lines[3] == f"| {CELL.name[6:]} | 4 | 2.50, 0.95, - | 2.50, 0.95, - |"
    assert len(lines) == 4


def test_columns_of_a_table_in_which_nothing_was_run_are_left_out():
    own = Counter(runs=20, sets=20, found=60, useless=1, useless_squares=1)
    sums = {(CELL.name, "adaptive"): own, (CELL.name, "bic"): own}
    head, _, row = markdown(sums, [CELL, Cell(5)]).splitlines()
    assert "copies" not in head
    assert "stepwise" not in head
    assert row.count("|") == head.count("|")
    assert "3.00 / 0.05" in row


def test_a_table_by_rows_holds_a_design_a_line_and_a_number_of_rows_a_column():
    own = Counter(runs=20, sets=20, found=60, useless=1, useless_squares=1)
    more = replace(CELL, n=100_000)
    sums = {(cell.name, way): own for cell in (CELL, more) for way in ("adaptive", "bic")}
    sums[more.name, "bic"] = Counter(runs=20, sets=20, found=80)
    head, _, row = by_rows(sums, [more, CELL, Cell(5)]).splitlines()
    assert head.split(" | ")[4:] == ["4,000 rows", "100,000 rows |"]
    bound = f"{useless(own)[1]:.3f}"
    assert row == f"| 8 | 0.5 | 1 | 0 | 3.00, 3.00, {bound} | 3.00, 4.00, {bound} |"


def test_useless_columns_of_real_rows_are_permuted_copies():
    (cell, *_) = GRIDS["real"]()
    x, y = draw(cell, np.random.default_rng(12))
    assert x.shape == (len(y), cell.p)
    np.testing.assert_array_equal(np.sort(x[:, -1]), np.sort(x[:, 2]))
    assert abs(np.corrcoef(x[:, -1], x[:, 2])[0, 1]) < 0.03
    assert not effects(cell)[-3:].any()
    assert effects(cell).any()
