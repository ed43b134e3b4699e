"""The minimum of a perturbed objective: rows, losses, the tolerance, and the rule for it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from flint import ctx
from scipy.optimize import minimize

from dpreg.families import point
from dpreg.families.family import Binomial, Poisson
from dpreg.families.objective import Loss, held_rows
from dpreg.families.plan import plan_family
from dpreg.families.point import alone, open_point, release_point, released_minimum
from dpreg.formula.design import build_design
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.privacy.stability import AccountError
from dpreg.schema import Schema
from dpreg.sources import as_source
from dpreg.sources.reader import Reader
from dpreg.staged import objective as search
from dpreg.staged.objective import HeldRows, Objective, minimum

ONE = Protection("replace-one")
LOSSES = pytest.mark.parametrize("loss", [Loss(False), Loss(True, 5.0)], ids=["yes-no", "counts"])


def made(loss, n=300, d=4, seed=0, penalty=Fraction(1, 3), noise=2.0):
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.uniform(-1, 1, (n, d - 1))])
    eta = x @ rng.uniform(-1, 1, d)
    y = rng.poisson(np.exp(eta)) if loss.counts else rng.random(n) < 1 / (1 + np.exp(-eta))
    rows = HeldRows(x, np.minimum(y * 1.0, loss.top), rng.uniform(-1, 1, n))
    b = [Fraction(round(cell * 2**20), 2**20) for cell in noise * rng.standard_normal(d)]
    return Objective(rows, loss, 1.9, penalty, np.array([0.2, *np.zeros(d - 1)]), b)


def losses(loss, eta, y):
    """The losses of rows, up to what does not depend on eta."""
    if not loss.counts:
        return np.logaddexp(0.0, eta) - y * eta
    held = np.minimum(eta, loss.last)
    return np.exp(held) * (1 + eta - held) - y * eta


def value(at, t):
    """J(t), up to a constant."""
    rows, gap = at.rows, t - at.centre
    own = at.weights @ losses(at.loss, rows.x @ t + rows.known, rows.y)
    return own + np.array(at.noise, dtype=float) @ t + float(at.penalty) / 2 * gap @ gap


@LOSSES
def test_losses_have_the_stated_derivatives_and_bounds(loss):
    eta, y = np.linspace(-6, 6, 2001), np.full(2001, 0.7 * loss.top)
    first, second = loss.derivatives(eta, y)
    near = 1e-6
    slope = (losses(loss, eta + near, y) - losses(loss, eta - near, y)) / (2 * near)
    np.testing.assert_allclose(first, slope, atol=1e-6)
    smooth = np.abs(eta - loss.last) > 0.02  # beyond, the mean stays where it is
    change = np.gradient(first, eta)
    np.testing.assert_allclose(second[smooth], change[smooth], atol=0.03)
    assert second.max() <= loss.bend * (1 + 1e-12)
    for end in (0.0, loss.top):
        assert np.abs(loss.derivatives(eta, np.full(2001, end))[0]).max() <= loss.slope * (1 + 1e-9)


@LOSSES
def test_balls_hold_the_gradient(loss):
    at = made(loss)
    t = np.array([0.3, -1.0, 2.0, 0.5])
    with ctx.workprec(100):
        balls = at.ball([search.arb(float(cell)) for cell in t])
        widest = max(float(cell.rad()) for cell in balls)
    np.testing.assert_allclose([float(cell) for cell in balls], at.gradient(t), rtol=1e-10)
    assert widest < 1e-20
    step = 1e-6
    for j, unit in enumerate(np.eye(4)):
        told = (value(at, t + step * unit) - value(at, t - step * unit)) / (2 * step)
        assert float(balls[j]) == pytest.approx(told, abs=1e-5)


@LOSSES
def test_the_minimum_is_within_its_tolerance(loss):
    at, tolerance = made(loss), Fraction(1, 10**9)
    found = np.array(minimum(at, tolerance, tolerance / 8, 40)) / 2**40
    theirs = minimize(
        lambda t: value(at, t), np.zeros(4), jac=lambda t: at.gradient(t), tol=1e-12
    ).x
    np.testing.assert_allclose(found, theirs, atol=1e-5)
    assert np.linalg.norm(at.gradient(found)) <= float(tolerance) + 4 * at.steepest / 2**40


@LOSSES
@pytest.mark.parametrize("offset", [1e16, 1e18, -1e30])
@pytest.mark.parametrize("seed", range(3))
def test_a_row_with_a_huge_offset_does_not_hold_the_search_up(loss, offset, seed, monkeypatch):
    at = made(loss, n=60, d=20, seed=seed, penalty=Fraction(1, 3000), noise=0.01)
    at.rows.known[0] = offset
    passes, ball = [], Objective.ball
    monkeypatch.setattr(Objective, "ball", lambda self, t: passes.append(t) or ball(self, t))
    minimum(at, Fraction(1, 10**6), Fraction(1, 10**7), 30)
    assert len(passes) < 60


@LOSSES
def test_a_search_that_stops_early_goes_on_until_it_is_there(loss, monkeypatch):
    at, tolerance = made(loss), Fraction(1, 10**25)  # nearer than floats can tell
    near = minimum(at, Fraction(1, 10**9), Fraction(0), 70)
    monkeypatch.setattr(search, "_searched", lambda at, near: np.array([3.0, -3.0, 3.0, 3.0]))
    found = minimum(at, tolerance, Fraction(0), 90)
    gap = [a / 2**90 - b / 2**70 for a, b in zip(found, near, strict=True)]
    assert np.abs(gap).max() < 1e-8
    again = minimum(at, tolerance / 1000, Fraction(0), 90)
    assert max(abs(a - b) for a, b in zip(found, again, strict=True)) <= 2**90 / 10**24


def test_separated_rows_no_rows_and_loud_noise_have_a_minimum():
    x = np.column_stack([np.ones(50), np.linspace(-1, 1, 50)])
    split = HeldRows(x, (x[:, 1] > 0) * 1.0, np.zeros(50))
    none = HeldRows(x[:0], np.zeros(0), np.zeros(0))
    for rows in (split, none):
        for b in (0, 10**6):
            at = Objective(rows, Loss(False), 2.0, Fraction(1, 100), np.zeros(2), [Fraction(b), 0])
            found = np.array(minimum(at, Fraction(1, 1000), Fraction(0), 30)) / 2**30
            assert np.isfinite(found).all()
            if rows is none:
                np.testing.assert_allclose(found, [-100.0 * b, 0.0], atol=0.2)


def _read(table, chunk_rows=None):
    schema = Schema.from_any({"a": (-1, 1), "b": (0, 4), "y": (0, 8)})
    design = build_design("y ~ a + b", schema, keep=("Intercept",))
    reader = Reader(as_source(table), False)
    reader.settle(design.types)
    return held_rows(reader, design, [1], [2], [0.5], (4.0, 4.0), 8.0)


def test_rows_are_read_complete_and_in_stored_units():
    table = pd.DataFrame({"a": [0.5, np.nan, 3.0], "b": [4.0, 1.0, 1.0], "y": [2.0, 3.0, 9.0]})
    rows = _read(table)
    np.testing.assert_array_equal(rows.x, [[1, 0.5], [1, 1]])
    np.testing.assert_array_equal(rows.y, [2, 8])
    np.testing.assert_array_equal(rows.known, [0.5, -0.25])
    assert repr(rows).startswith("<")


def test_the_rule_is_public_and_about_few_rows():
    few = plan_family(30, Budget(2), ONE)
    assert alone(few, 10_000)
    assert not alone(few, int(few.rows_needed) + 1)
    assert not alone(plan_family(30, Budget(2, "1e-6"), ONE), 100)
    assert not alone(plan_family(30, Budget(2), Protection("add-remove")), 100)
    assert not alone(plan_family(30, Budget(2), Protection("replace-one", 1, "who")), 100)
    assert not alone(plan_family(30, Budget(Fraction(1, 2**40)), ONE), 100)
    huge = plan_family(30, Budget(Fraction(1, 10**6)), ONE)
    assert not alone(huge, 5_000_000)  # too many to hold, at any eps


@pytest.mark.parametrize("family", [Binomial(), Poisson(20.0)], ids=["yes-no", "counts"])
def test_coefficients_are_near_the_truth_where_eps_is_large(family):
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(4000), rng.uniform(-1, 1, (4000, 2))])
    truth, known = np.array([0.3, 0.8, -0.6]), rng.uniform(-0.5, 0.5, 4000)
    eta = x @ truth + known
    y = rng.poisson(np.exp(eta)) if family.dispersed else rng.random(4000) < 1 / (1 + np.exp(-eta))
    for who in (ONE, Protection("replace-one", 3)):
        account = Account(who, Budget(60), np.random.default_rng(1))
        opened = open_point(account, Fraction(60))
        account.charge(None, "test")
        found = release_point(HeldRows(x, y * 1.0, known), family, opened, 4000)
        np.testing.assert_allclose(found.params, truth, atol=0.2)
        assert found.count == pytest.approx(4000, abs=40)
        steps = [(spend.step, spend.mechanism) for spend in account.table()]
        assert steps == [
            ("lengths and responses", "laplace"),
            ("coefficients", "objective perturbation"),
        ]
        assert account.table().total == Budget(60)


@pytest.mark.parametrize("family", [Binomial(), Poisson(20.0)], ids=["yes-no", "counts"])
@pytest.mark.parametrize("k", [1, 3])
def test_the_sums_move_by_no_more_than_their_noise_hides(family, k, monkeypatch):
    seen = []

    def noiseless(mechanism, bound, *, cells, cost):
        seen.append((mechanism, bound.l1))
        return _Quiet(seen)

    monkeypatch.setattr(point, "fit_noise", noiseless)
    monkeypatch.setattr(point, "_whole", _watched(seen))
    corners = [((1.0, 1.0, 1.0), family.cap), ((1.0, 0.0, 0.0), 0.0), ((1.0, 1.0, -1.0), 0.0)]
    told = []
    for x, y in [*corners, (None, 0.0)]:
        n = 0 if x is None else k
        rows = HeldRows(np.ones((n, 3)) * (x or 1.0), np.full(n, y), np.zeros(n))
        account = Account(Protection("replace-one", k), Budget(1))
        seen.clear()
        point._sums(rows, family, open_point(account, Fraction(1)), 10)
        told.append([len(rows.y) * 2**20, *[s for s in seen if isinstance(s, int)]])
        assert seen[0] == ("laplace", 3 * k * 2**20)
    moved = [np.abs(np.subtract(a, b)).sum() for a in told for b in told]
    assert max(moved) == 3 * k * 2**20


class _Quiet:
    def __init__(self, seen):
        self.seen = seen

    def draw(self, size, part):
        return [0] * size


def _watched(seen):
    honest = point._whole

    def whole(parts):
        found = honest(parts)
        seen.append(found)
        return found

    return whole


def test_a_private_number_of_rows_is_no_tolerance() -> None:
    class Given:
        protection = Protection("add-remove")

    with pytest.raises(AccountError, match="private number"):
        released_minimum(None, False, 1.0, 1.0, None, Given(), 100)
