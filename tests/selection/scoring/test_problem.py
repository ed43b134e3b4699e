"""Scores are the floor of an exactly defined number, and depend on nothing else."""

import hashlib
import os
import subprocess
import sys
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from oracles.l1_ball import RADII, enumerate_faces, interior_point, parts, random_moments
from oracles.l1_ball import times as repeated
from oracles.scores import quadratic_scores

from dpreg.arrays import MOMENT_BITS
from dpreg.moments import Moments, accumulate
from dpreg.privacy.proofs import score_grid
from dpreg.selection.scoring import problem as exact
from dpreg.selection.scoring import problem as scores
from dpreg.selection.scoring.problem import FloatForm, Problem


def every_model(width):
    return (np.arange(2**width)[:, None] >> np.arange(width) & 1).astype(bool)


def regression(rows, p, seed=0):
    """Return moments of correlated columns, some of them two-valued, with a strong signal."""
    rng = np.random.default_rng(seed)
    x = np.clip(
        0.4 * rng.normal(size=(rows, p)) @ (np.eye(p) + 0.3 * rng.normal(size=(p, p))), -1, 1
    )
    x[:, : p // 2] = np.sign(x[:, : p // 2])
    y = np.clip(x @ rng.normal(size=p) * 0.1 + 0.3 * rng.normal(size=rows), -1, 1)
    return accumulate([np.column_stack([np.ones(rows), x, y])], p + 2)


def in_units(value, rho):
    """An exact minimum in cells as a multiple of the grid."""
    return value / (score_grid(rho) * 2**MOMENT_BITS)


# 1e-9 is the tolerance, relative to Q at beta = 0, i.e. y'y (and one cell, 2**-40, for
# y = 0); the floor takes up to one unit.
@pytest.mark.parametrize("p", range(1, 13))
def test_agrees_with_an_interior_point_method(p):
    rng = np.random.default_rng(p)
    for _ in range(84):  # 12 x 84 = 1,008 problems
        moments = random_moments(rng, p)
        rho = RADII[rng.integers(len(RADII))]
        model = rng.random(p + 1) < 0.8
        q = quadratic_scores(moments, model[None, :], rho)[0]
        columns = np.flatnonzero(model)
        want = interior_point(*parts(moments, columns), float(rho))
        unit = float(score_grid(rho)) * 2.0**MOMENT_BITS
        tolerance = 1.0 + 1e-9 * moments.cells[-1][-1]
        assert -tolerance <= want - q * unit
        assert want - (q + 1) * unit <= tolerance


def check_against_all_faces(seeds):
    """Compare with exact rationals: 4 or 8 models a problem."""
    ties = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        p = 1 + seed % 2
        moments = random_moments(rng, p)
        rho = RADII[rng.integers(len(RADII))]
        models = every_model(p + 1)
        got = quadratic_scores(moments, models, rho)
        for model, q in zip(models, got.tolist(), strict=True):
            columns = np.flatnonzero(model)
            value = enumerate_faces(*parts(moments, columns), rho)
            ties += value != 0 and in_units(value, rho).denominator == 1
            assert q == floor(in_units(value, rho))
    return ties


def test_equals_the_floor_of_an_exact_oracle_ties_included():
    assert check_against_all_faces(range(400)) > 100


def test_perfect_fits_need_no_exact_solver(monkeypatch):
    rng = np.random.default_rng(0)
    z = rng.choice([-1.0, 1.0], (6, 11))
    z[:, 0] = 1.0
    problem, models = Problem(accumulate([z], 11), Fraction(20)), every_model(10)
    perfect = problem.scores(models) == -6 / score_grid(problem.rho)
    assert perfect.mean() > 0.3
    monkeypatch.setattr(scores, "ball_minimum", None)
    problem.scores(models[perfect])


def test_exact_ties_of_every_kind():
    # One column, G = 9, b = 3: F = -b^2 / G = -1 is whole, at 1/3, which is not dyadic.
    one = 2**MOMENT_BITS
    cells = ((0, 0, 0), (0, 9 * one, 3 * one), (0, 3 * one, 9 * one))
    moments, rho = Moments(9, cells), Fraction(1)
    problem = Problem(moments, rho)
    assert problem.scores(np.array([[False, True]]))[0] == -1 / score_grid(rho)
    # At a vertex of the ball, and at a dyadic point inside it: whole numbers.
    cells = ((0, 0, 0), (0, 2 * one, 5 * one), (0, 5 * one, 13 * one))
    q = Problem(Moments(13, cells), rho).scores(np.array([[False, True]]))
    assert q[0] == (2 - 10) / score_grid(rho)
    cells = ((0, 0, 0), (0, 4 * one, 2 * one), (0, 2 * one, 9 * one))
    q = Problem(Moments(9, cells), rho).scores(np.array([[False, True]]))
    assert q[0] == -1 / score_grid(rho)


@pytest.mark.parametrize("rho", RADII)
@pytest.mark.parametrize("rows", [0, 1, 2, 300, 40_000])
def test_never_rises_when_columns_join(rows, rho):
    q = Problem(regression(rows, 6), rho).scores(every_model(7))
    for j in range(7):
        without = np.flatnonzero(~every_model(7)[:, j])
        assert (q[without + 2**j] <= q[without]).all()
    assert q[0] == 0
    if rows == 0:
        assert not q.any()


def check_same_in_every_order(moments, rho):
    problem = Problem(moments, rho)
    width = moments.size - 1
    models = every_model(width)
    q = problem.scores(models)
    order = np.random.default_rng(0).permutation(len(models))
    np.testing.assert_array_equal(problem.scores(models[order]), q[order])
    for i in range(0, len(models), 7):
        assert problem.scores(models[i : i + 1])[0] == q[i]
    return problem, models, q


def check_same_one_by_one(moments, rho):
    problem, models, q = check_same_in_every_order(moments, rho)
    rng = np.random.default_rng(1)
    for i in range(0, len(models), 5):
        columns = rng.permutation(np.flatnonzero(models[i]))
        assert problem.score_one(columns.tolist()) == q[i]


@pytest.mark.parametrize("rho", RADII[1:5])
@pytest.mark.parametrize("rows", [3, 500])
def test_no_dependence_on_order_batch_or_start(rows, rho):
    check_same_one_by_one(regression(rows, 6), rho)


@pytest.mark.parametrize("seed", range(12))
def test_no_dependence_on_start_where_columns_are_collinear(seed):
    rng = np.random.default_rng(seed)
    check_same_one_by_one(random_moments(rng, 5), RADII[seed % len(RADII)])


def test_mutant_no_certificate_and_no_start_is_caught(monkeypatch):
    """Without the gap, the floor of a good float solution is still wrong at ties."""

    def trusting(self, beta, columns):
        del columns
        value = np.einsum("ij,ij->i", beta, beta @ self.gram) - 2.0 * beta @ self.cross
        return value, value

    monkeypatch.setattr(FloatForm, "interval", trusting)
    with pytest.raises(AssertionError):
        check_against_all_faces(range(400))


@pytest.mark.parametrize("spread", [0.0, 1e-3, 1.0])
def test_candidates_carry_no_weight(spread, monkeypatch):
    """A solver that returns rubbish changes the time taken and no score."""
    moments = regression(200, 5)
    want = Problem(moments, Fraction(1, 2)).scores(every_model(6))

    def rubbish(gram, cross, rho, columns):
        found = solve(gram, cross, rho, columns)
        noise = spread * np.random.default_rng(0).normal(size=found.beta.shape)
        return type(found)(found.beta * noise * columns, -found.signs, ~found.binding)

    solve = scores.solve
    monkeypatch.setattr(scores, "solve", rubbish)
    q = Problem(moments, Fraction(1, 2)).scores(every_model(6))
    np.testing.assert_array_equal(q, want)


@pytest.mark.parametrize("times", [1, 1000, 500_000, 50_000_000])
def test_tiers_agree_from_a_thousand_to_fifty_thousand_million_rows(times):
    moments = repeated(regression(1000, 6), times)
    for rho in (Fraction(3, 10), Fraction(2)):
        problem = Problem(moments, rho)
        q = problem.scores(every_model(7))
        for i in range(0, 128, 11):
            columns = np.flatnonzero(every_model(7)[i])
            value = exact.ball_minimum(*parts(moments, columns), rho).value
            assert q[i] == floor(in_units(value, rho))


def test_one_model_of_many_columns():
    moments = regression(900, 45)
    rng = np.random.default_rng(0)
    for rho in (Fraction(1, 5), Fraction(1), Fraction(30)):
        problem = Problem(repeated(moments, 1000), rho)
        columns = rng.permutation(46)[:38].tolist()
        minimum = exact.ball_minimum(*parts(moments, columns), rho)
        want = floor(1000 * in_units(minimum.value, rho))
        assert problem.score_one(columns) == want


THREADS = """
import hashlib, numpy as np
from fractions import Fraction
from dpreg.moments import accumulate
from dpreg.selection.scoring.problem import Problem
rng = np.random.default_rng(5)
x = rng.uniform(-1, 1, (5000, 10))
z = np.column_stack([np.ones(5000), x, np.clip(x @ rng.normal(size=10) * 0.2, -1, 1)])
moments = accumulate([z] * 40, 12)
models = (np.arange(0, 2048, 8)[:, None] >> np.arange(11) & 1).astype(bool)
q = [Problem(moments, Fraction(r)).scores(models) for r in ("1/2", "3")]
print(hashlib.sha256(np.concatenate(q).tobytes()).hexdigest())
"""


def test_same_for_every_number_of_threads():
    seen = set()
    for threads in (1, 2, 4):
        names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
        environment = os.environ | dict.fromkeys(names, str(threads))
        command = [sys.executable, "-c", THREADS]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        seen.add(ran.stdout.strip())
    assert len(seen) == 1
    assert len(seen.pop()) == len(hashlib.sha256().hexdigest())


def test_batches_larger_than_the_memory_limit(monkeypatch):
    moments = regression(100, 6)
    whole = Problem(moments, Fraction(1)).scores(every_model(7))
    monkeypatch.setattr(scores, "_BATCH", 10)
    np.testing.assert_array_equal(Problem(moments, Fraction(1)).scores(every_model(7)), whole)


def test_no_models_and_no_columns():
    assert quadratic_scores(accumulate([], 2), np.zeros((0, 1), dtype=bool), Fraction(1)).shape == (
        0,
    )
    nothing = np.zeros((3, 1), dtype=bool)
    assert not quadratic_scores(regression(5, 0), nothing, Fraction(1)).any()
    assert Problem(regression(5, 3), Fraction(1)).score_one([]) == 0


def test_the_smallest_and_the_largest_radius():
    for rho in (Fraction(1, 2**64), Fraction(2**64)):
        q = Problem(regression(500, 3), rho).scores(every_model(4))
        assert q[0] == 0


def test_the_exact_solver_alone_decides_as_both_together(monkeypatch):
    def unsure(self, beta, columns):
        return np.full(len(beta), -np.inf), np.full(len(beta), np.inf)

    moments = regression(3000, 6)
    want = Problem(moments, Fraction(1, 2)).scores(every_model(7))
    monkeypatch.setattr(FloatForm, "interval", unsure)
    q = Problem(moments, Fraction(1, 2)).scores(every_model(7))
    np.testing.assert_array_equal(q, want)
