"""The comparison with other private regressions: what it measures, and what it prints in bold."""

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import official
from benchmarks._beside_cells import Cell, Drawn, Sample, at_mu, cells, made
from benchmarks._beside_table import NEEDS, OURS, loses, table
from benchmarks.beside import Judge, best, gathered, measure
from benchmarks.peers import BESIDE, ssp
from benchmarks.peers._rows import Rows, gdp


def small(rng: np.random.Generator) -> Drawn:
    x = rng.standard_normal((2000, 2))
    return Drawn(x, x @ [3.0, -1.0] + 2 + rng.standard_normal(2000), np.array([3.0, -1.0]))


CELL = Cell("small", "nobody", 2.0, 1e-5, small, ((-5, 6), (-4, 5), (-30, 20)))


@pytest.fixture(scope="module")
def sample() -> Sample:
    return Sample(CELL, small(np.random.default_rng(1)))


def test_coefficients_and_errors_come_back_from_the_box(sample):
    rows, judge = sample.rows(), Judge(sample)
    found = np.linalg.lstsq(rows.x, rows.y, rcond=None)[0]
    np.testing.assert_allclose(sample.unboxed(found[None])[0], judge.plain, rtol=1e-9)
    inverse = np.linalg.inv(rows.x.T @ rows.x)
    scores = rows.x * (rows.y - rows.x @ found)[:, None]
    robust = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse) * 2000 / 1997)
    np.testing.assert_allclose(sample.unboxed_errors(robust[None])[0], judge.robust, rtol=1e-9)


def test_error_is_the_share_that_squared_error_grows_by(sample):
    judge, x, y = Judge(sample), sample.design, sample.drawn.y
    moved = judge.plain + np.array([0.1, -0.2, 0.05])
    grown = np.square(y - x @ moved).mean() / np.square(y - x @ judge.plain).mean() - 1
    assert judge.excess(moved[None])[0] == pytest.approx(grown)


def test_intervals_are_judged_by_the_slopes_that_made_the_rows(sample):
    judge = Judge(sample)
    found = np.array([[0.0, 3.1, -1.5], [0.0, 3.0, np.nan]])
    half = np.array([[0.2, 0.2], [0.1, np.nan]])
    held, width = judge.intervals(found, half)
    assert held.tolist() == [True, False, True]
    np.testing.assert_allclose(width[0], 0.2 / 1.96 / judge.robust[0])


def test_a_peer_takes_its_best_setting(sample):
    class Peer:
        @staticmethod
        def settings(eps, delta):
            return ["none", "far", "near"]

        @staticmethod
        def fit(rows, setting, eps, delta, repeats, rng):
            exact = np.linalg.lstsq(rows.x, rows.y, rcond=None)[0]
            away = {"none": np.nan, "far": 0.3, "near": 0.1}[setting]
            return np.tile(exact + away, (repeats, 1))

    assert best(Peer, sample, Judge(sample)) == ("near", "none")
    assert best(ssp, sample, Judge(sample))[0] in ssp.settings(2.0, 1e-5)


def test_intervals_have_a_setting_of_their_own(sample):
    """The narrowest that hold: neither those that miss, nor the widest."""

    class Peer:
        @staticmethod
        def settings(eps, delta):
            return ["wide", "missing", "narrow"]

        @staticmethod
        def released(rows, setting, eps, delta, repeats, rng):
            exact = np.linalg.lstsq(rows.x, rows.y, rcond=None)[0]
            away, error = {"wide": (0.02, 1.0), "missing": (0.01, 1e-4), "narrow": (0.03, 0.1)}[
                setting
            ]
            found = np.tile(exact + away, (repeats, 1))
            return found, np.full_like(found, error)

    assert best(Peer, sample, Judge(sample)) == ("missing", "narrow")


def test_a_cell_is_measured_with_every_method_asked_for():
    line = measure(replace(CELL, eps=0.5), 1, 2, ["dpreg", "newton", "tukey"])
    assert set(line["methods"]) == {"dpreg", "newton", "tukey"}
    assert line["methods"]["dpreg"]["held"] > 0.4
    assert line["methods"]["tukey"] == {
        "excess": None, "median": None, "answers": 0.0, "setting": (400, 400),
    }  # fmt: skip
    assert "small (nobody)" in table([line])


def test_all_methods_say_what_they_need():
    assert set(OURS) | set(BESIDE) <= set(NEEDS)


def test_cells_are_as_their_papers_have_them():
    assert [(c.eps, c.delta) for c in cells()][:4] == [(math.log(3), 1e-5)] * 3 + [(1.0, 1e-6)]
    assert gdp(at_mu(1, 1e-3), 1e-3) == pytest.approx(1)
    drawn = made(30)(np.random.default_rng(2))
    assert drawn.x.shape == (22_000, 30)
    assert np.count_nonzero(drawn.slopes) == 10
    assert (drawn.y - drawn.x @ drawn.slopes).std() == pytest.approx(10, rel=0.02)


def method(excess, held=None, width=None):
    told = {} if held is None else {"held": held, "width": width}
    return {"excess": excess, "answers": 1.0, **told}


@pytest.mark.parametrize(
    ("name", "found", "lost"),
    [
        ("newton", method(0.08), (True, False)),
        ("newton", method(0.095), (False, False)),
        ("newton", method(9.0, 0.95, 1.5), (False, True)),
        ("newton", method(9.0, 0.90, 1.5), (False, False)),
        ("newton", method(9.0, 0.95, 1.9), (False, False)),
        ("tukey", method(0.5), (True, False)),
        ("tukey", method(None), (False, False)),
    ],
)
def test_what_dpreg_loses_by_a_tenth_is_in_bold(name, found, lost):
    methods = {"dpreg": method(0.1, 0.95, 2.0), "dpreg, bounds bought": method(1.0, 0.95, 2.0)}
    methods[name] = found
    assert loses(name, found, methods) == lost
    line = {"cell": "c", "whose": "w", "eps": 1.0, "delta": 1e-6, "methods": methods}
    entry = next(row for row in table([line]).splitlines() if row.startswith(f"| {name} |"))
    assert entry.count("**") == 2 * sum(lost)


@pytest.mark.parametrize("kind", ["LM", "AGM", "WKL pure", "WKL"])
def test_without_privacy_official_methods_are_least_squares(kind):
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(3000), rng.uniform(-1, 1, (3000, 2))])
    rows = Rows(x, x @ [0.1, 0.3, -0.2] + rng.uniform(-0.2, 0.2, 3000))
    found, *errors = official.NoisyMoments(kind).released(rows, 1e8, rng)
    plain = np.linalg.lstsq(x, rows.y, rcond=None)[0]
    variance = np.square(rows.y - x @ plain).mean()
    np.testing.assert_allclose(found, plain, atol=1e-3)
    for error in errors:
        np.testing.assert_allclose(
            error, np.sqrt(variance * np.diag(np.linalg.inv(x.T @ x))), rtol=0.15
        )


@pytest.mark.parametrize("kind", ["LM", "AGM", "WKL"])
def test_official_estimates_scatter_as_their_bootstrap_says(kind):
    rng, runs = np.random.default_rng(4), []
    for _ in range(40):
        x = np.column_stack([np.ones(2000), rng.uniform(-1, 1, (2000, 2))])
        rows = Rows(x, x @ [0.1, 0.3, -0.2] + rng.uniform(-0.3, 0.3, 2000))
        runs.append(official.NoisyMoments(kind).released(rows, 50.0, rng)[:2])
    scatter = np.std([run[0] for run in runs], axis=0)
    np.testing.assert_allclose(np.median([r[1] for r in runs], axis=0), scatter, rtol=0.35)


def test_overlap_is_the_mean_share_of_two_intervals():
    plain, half = np.array([1.0, 0.1]), np.array([0.5, 0.5])
    overlap, length, signs, zeros = official.measures(
        plain, half, np.array([1.5, -0.1]), np.array([1.0, np.nan])
    )
    # [.5, 1.5] and [.5, 2.5]: all of the first, half of the second; the other is not printed.
    assert overlap == pytest.approx((1 + 0.5) / 2 / 2)
    assert (length, signs, zeros) == (2.0, 0.5, 1.0)


def test_the_official_table_marks_what_beats_dpreg():
    better = [0.9, 2.0, 1.0, 1.0, 1.0]
    methods = {"dpreg": [0.5, 4.0, 0.8, 1.0, 1.1], "other": better, "wide": [0.4, 2.0, 0.8, 1, 1.1]}
    line = {"model": "m", "eps": 1.0, "delta": 1e-6, "methods": methods}
    ours, other, wide = official.table([line]).splitlines()[2:]
    assert "**" not in ours + wide
    assert other == "| m | other | **0.9**, **2**, **1**, 1, **1** |"


def test_a_cell_of_several_files_takes_each_method_from_the_last():
    first, second = ({"cell": "a", "methods": {"x": n, str(n): n}} for n in (1, 2))
    lines = gathered([first, {"cell": "b", "methods": {"x": 3}}, second])
    assert lines[0] == {"cell": "a", "methods": {"x": 2, "1": 1, "2": 2}}
    assert [line["cell"] for line in lines] == ["a", "b"]
