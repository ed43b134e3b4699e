"""Coefficients alone after two looks: when, in which coordinates, and what they cost."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpreg.families.family import Binomial, Poisson
from dpreg.families.locate import Fit, Offsets
from dpreg.families.plan import FIRST, SECOND, plan_family
from dpreg.families.point import can_hold
from dpreg.families.switch import AT_FIT, LEFT, at_fit, located, rest, stops
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.staged.objective import HeldRows

ONE = Protection("replace-one")
FAMILIES = pytest.mark.parametrize("family", [Binomial(), Poisson(20.0)], ids=["yes-no", "counts"])


def a_fit(family, p=2, **other):
    given = {
        "family": family,
        "whitening": 3 * np.eye(p) + 0.5,
        "center": np.linspace(-0.3, 0.2, p),
        "intercept": 0.1,
        "slopes": np.linspace(0.4, -0.6, p),
        "offsets": Offsets(np.array([0.5]), 0.25, 0.1),
        "mean_weight": 0.2,
        "dispersion": 1.0,
        "spread": np.full(p, 0.9),
        "misfit": 0.001,
        "signal": 0.01,
        "rows": 4000.0,
        "mean": 0.5,
    }
    return Fit(**{**given, **other})


def some_rows(family, n=4000, seed=3):
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.uniform(-1, 1, (n, 2))])
    truth, known = np.array([0.3, 0.8, -0.6]), rng.uniform(-0.5, 0.5, n)
    eta = x @ truth + known
    y = rng.poisson(np.exp(eta)) if family.dispersed else rng.random(n) < 1 / (1 + np.exp(-eta))
    return HeldRows(x, np.minimum(y * 1.0, family.cap), known), truth


def test_looks_stop_by_public_and_released_numbers():
    plan = plan_family(6, Budget(2), ONE)
    need, seen = int(plan.rows_needed) + 1, a_fit(Binomial(), 6)

    def told(rows, **other):
        return stops(plan, rows, replace(seen, **{"rows": float(rows), **other}))

    hidden = np.array([0.9, 0.9, 0.9, 0.9, 0.9, 0.0])
    assert told(need - 2)
    assert not told(need + 1)
    assert told(need + 1, spread=hidden)
    assert not told(2 * need, spread=hidden)  # by the last look it may stand out
    assert told(2 * need, misfit=0.08)  # .4 of the predictor's squared units
    assert not told(2 * need, misfit=0.06)


def test_only_pure_looks_at_a_public_number_of_rows_stop():
    assert can_hold(plan_family(6, Budget(2), ONE), 5000)
    for cost, who in (
        (Budget(2, "1e-6"), ONE),
        (Budget(2), Protection("add-remove")),
        (Budget(2), Protection("replace-one", 1, "who")),
        (Budget(Fraction(1, 2**40)), ONE),
    ):
        assert not can_hold(plan_family(6, cost, who), 5000)
    assert not can_hold(plan_family(6, Budget(2), ONE), 10**8)


def test_a_row_has_the_same_coordinates_wherever_it_stands():
    rng = np.random.default_rng(1)
    fit = a_fit(Binomial(), 7, whitening=np.exp(3 * rng.standard_normal((7, 7))))
    x = np.column_stack([np.ones(501), rng.uniform(-1, 1, (501, 7))])
    rows = HeldRows(x, np.zeros(501), rng.uniform(size=501))
    found = located(rows, fit)
    np.testing.assert_allclose(found.x[:, 1:], (x[:, 1:] - fit.center) @ fit.whitening.T, atol=1e-9)
    np.testing.assert_array_equal(found.x[:, 0], 1.0)
    assert found.known is rows.known
    order = rng.permutation(501)
    moved = located(replace(rows, x=x[order]), fit)
    np.testing.assert_array_equal(moved.x, found.x[order])
    for place in (0, 17, 500):
        alone = located(replace(rows, x=x[place : place + 1]), fit)
        np.testing.assert_array_equal(alone.x[0], found.x[place])


@FAMILIES
def test_no_row_pulls_farther_than_its_limit_in_any_coordinates(family, monkeypatch):
    """Rows at the corners of the box, in coordinates that stretch them as far as noise may."""
    corners = np.array([[1.0, a, b] for a in (-1, 0, 1) for b in (-1, 0, 1)])
    seen = []

    def watched(objective, *rest):
        seen.append(objective)
        raise StopIteration

    monkeypatch.setattr("dpreg.families.point.minimum", watched)
    for stretched in (1e-6, 1.0, 1e6):
        fit = a_fit(family, whitening=stretched * np.array([[1.0, 0.2], [-0.4, 3.0]]))
        high = HeldRows(corners, np.full(9, family.cap), np.array([-50.0, 0, 50] * 3))
        for rows in (high, HeldRows(corners * [1, 0, 0], np.zeros(9), np.zeros(9))):
            account, opened = _opened(ONE, 8)
            with pytest.raises(StopIteration):
                at_fit(rows, family, fit, rest(account, opened), 9)
        one, other = seen[-2:]  # of other rows, but of the same bounds and noise
        assert (one.reach_squared, one.loss, one.penalty) == (
            other.reach_squared,
            other.loss,
            other.penalty,
        )
        assert list(one.noise) == list(other.noise)
    for objective in seen:
        loss, square = objective.loss, objective.reach_squared
        slopes = objective.loss.derivatives(objective.rows.known, objective.rows.y)[0]
        pulls = objective.weights * np.abs(slopes) * np.sqrt(objective.rows.length)
        assert pulls.max() <= loss.slope * np.sqrt(square) * (1 + 1e-9)
        assert (objective.weights * objective.rows.length).max() <= square * (1 + 1e-9)
        assert objective.rows.y.max() <= max(loss.top, 1.0)


def _opened(who, eps, seed=1):
    account = Account(who, Budget(eps), np.random.default_rng(seed))
    opened = plan_family(2, Budget(eps), who, offsets=1).open(account)
    account.charge(None, "test")
    for share in (FIRST, SECOND):
        opened.part(share)
    return account, opened


@FAMILIES
@pytest.mark.parametrize("k", [1, 3])
def test_coefficients_are_near_the_truth_where_eps_is_large(family, k, monkeypatch):
    rows, truth = some_rows(family)
    account, opened = _opened(Protection("replace-one", k), 60)
    for part in opened.line.parts:
        monkeypatch.setattr(part, "_state", "drawn from")
    fit = a_fit(family, mean=float(rows.y.mean()))
    found = at_fit(rows, family, fit, rest(account, opened), 4000)
    np.testing.assert_allclose(found.params, truth, atol=0.2)
    assert found.count == fit.rows
    table = account.table()
    assert [(s.step, s.mechanism, s.eps) for s in table] == [
        ("looks", "matrix-laplace", Fraction("13.2")),
        ("coefficients", "objective perturbation", Fraction("46.8")),
    ]
    assert table.total == Budget(60)
    assert "2 looks" in next(iter(table)).note


def test_noise_does_less_harm_in_the_coordinates_of_the_fit():
    """Of columns that nearly repeat each other."""
    rng = np.random.default_rng(4)
    shared = rng.uniform(-0.9, 0.9, 3000)
    gap = rng.uniform(-0.1, 0.1, 3000)
    x, eta = np.column_stack([np.ones(3000), shared, shared + gap]), shared + 10 * gap
    y = (rng.random(3000) < 1 / (1 + np.exp(-eta))) * 1.0
    rows, inner = HeldRows(x, y, np.zeros(3000)), x[:, 1:]
    whitening = np.linalg.inv(np.linalg.cholesky(np.cov(inner.T)))
    far = []
    for matrix in (whitening, np.eye(2)):
        off = []
        for seed in range(20):
            account, opened = _opened(ONE, 1, seed)
            fit = a_fit(Binomial(), whitening=matrix, center=inner.mean(axis=0))
            fit = replace(fit, offsets=Offsets(np.zeros(0)))
            found = at_fit(rows, Binomial(), fit, rest(account, opened), 3000).params
            off.append(float(((x @ found - eta) ** 2).mean()))
        far.append(np.mean(off))
    assert 1.5 * far[0] < far[1]


def test_the_note_says_what_happened_and_what_would_help():
    for words in ("two looks", "objective perturbation", "without errors", "more rows"):
        assert words in AT_FIT
    assert Fraction("0.78") == LEFT
