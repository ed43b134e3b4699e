"""Objective perturbation: densities of the minimum between neighbours, scales and accounts."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from oracles.losses import Loss, Summed, omega

from dpreg.errors import ArgumentError
from dpreg.privacy import noise as objective
from dpreg.privacy.account import Account, AccountError
from dpreg.privacy.budget import Budget
from dpreg.privacy.noise import OBJECTIVE, objective_noise
from dpreg.privacy.protection import Protection

ONE = Protection("replace-one")
LOSSES = (Loss(False), Loss(True, 6.0))
REACH_SQUARED = 1.7
"""Between the squared lengths of the rows below: some are weighted down."""
SIGNS = list(itertools.product((-1.0, 1.0), repeat=2))


def _minima(loss, own, noise, weigh):
    """Objectives of a table of a few common rows and of each of several choices of one's own."""
    rng = np.random.default_rng(5)
    common = np.column_stack([np.ones(3), rng.uniform(-1, 1, (3, 2))])
    made = []
    for x, y, known in own:
        rows, told = np.vstack([common, x]), np.append([0.0, loss.top, 0.0], y)
        weights = weigh(rows, REACH_SQUARED)
        offsets = np.append(np.zeros(3), known)
        made.append(Summed(rows, told, offsets, weights, loss, float(noise.penalty)))
    return made


def _log_density(made, t, noise):
    """Log of the minimum's density at t, up to a constant: by the change of variables."""
    gradient, bent = made.gradient(t), made.curvature(t)
    pull = math.sqrt(gradient @ gradient) * 2**noise.bits / noise.scale
    return np.linalg.slogdet(bent)[1] - pull


def _worst(loss, k, noise, weigh=omega):
    """The largest change of the log density between tables whose k rows are at the corners.

    Offsets far out make residuals as large as they can be, along any row; rows are long, or just
    as long as the weights leave alone; one is missing.
    """
    long = [np.array([1.0, *sign]) for sign in SIGNS]
    rows = [*long, *(x * math.sqrt(REACH_SQUARED / 3) for x in long)]
    each = itertools.product(rows, (0.0, loss.top), (-40.0, 0.0, 40.0))
    own = [(np.tile(x, (k, 1)), np.full(k, y), np.full(k, known)) for x, y, known in each]
    own.append((np.zeros((0, 3)), np.zeros(0), np.zeros(0)))
    tables = _minima(loss, own, noise, weigh)
    rng, worst = np.random.default_rng(7), 0.0
    far = rng.standard_normal((60, 3)) * np.exp(rng.uniform(-4, 4, (60, 1)))
    for t in (*far, np.zeros(3), *(8.0 * np.array([0.0, *sign]) for sign in SIGNS)):
        told = [_log_density(made, t, noise) for made in tables]
        worst = max(worst, max(told) - min(told))
    return worst


def _fitted(loss, k, eps=Fraction(2)):
    who = Protection("replace-one", k)
    return objective_noise(3, loss.slope, loss.bend, REACH_SQUARED, 4, eps, who)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("loss", LOSSES, ids=["yes-no", "counts"])
def test_neighbours_at_the_corners_have_minima_of_about_the_same_law(loss, k):
    noise = _fitted(loss, k)
    most = float(noise.eps * noise.shares[0])
    worst = _worst(loss, k, noise)
    assert worst <= most * (1 + 1e-9)
    assert worst >= 0.8 * most  # the corners are attacked, not somewhere inside


@pytest.mark.parametrize("loss", LOSSES, ids=["yes-no", "counts"])
def test_less_noise_or_no_penalty_is_seen(loss):
    noise = _fitted(loss, 3)
    most = float(noise.eps * noise.shares[0])
    assert _worst(loss, 3, dataclasses.replace(noise, scale=noise.scale // 2)) > most
    bare = dataclasses.replace(noise, penalty=noise.penalty / 100)
    assert _worst(loss, 3, bare) > most


def test_one_weight_too_large_is_seen():
    noise, loss = _fitted(LOSSES[0], 1), LOSSES[0]
    most = float(noise.eps * noise.shares[0])
    assert _worst(loss, 1, noise, lambda x, _: np.ones(len(x))) > most


@pytest.mark.parametrize("k", [1, 3])
def test_the_pull_and_the_determinants_cost_what_b_and_the_penalty_pay_for(k):
    for loss, eps in itertools.product(LOSSES, (Fraction(1, 100), Fraction(1), Fraction(30))):
        noise = _fitted(loss, k, eps)
        reach = math.sqrt(REACH_SQUARED)
        pull = 2 * k * loss.slope * reach * 2**noise.bits / noise.scale
        bent = k * math.log1p(loss.bend * REACH_SQUARED / float(noise.penalty))
        paid = float(eps * noise.shares[0])
        assert 0.8 * paid < pull + bent <= paid


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("size", [1, 4, 31])
def test_what_is_released_hides_where_the_search_stopped(size, k):
    who = Protection("replace-one", k)
    for eps in (Fraction(1, 1000), Fraction(1), Fraction(20), Fraction(3000, 7), Fraction(2000)):
        noise = objective_noise(size, 1.0, 0.25, 3.0, 2_000, eps, who)
        stopped = 2 * noise.tolerance / noise.penalty * 2**noise.places
        floors = noise.spread * eps * noise.shares[1] - stopped  # at least sqrt(size), exactly
        assert floors > 0
        assert floors**2 >= size
        apart = 2 * float(noise.tolerance / noise.penalty) * 2**noise.places + math.sqrt(size)
        assert apart / noise.spread <= float(eps * noise.shares[1])
        assert noise.spread < 9 or apart / (noise.spread - 1) > float(eps * noise.shares[1]) / 2
        assert 0 < noise.slack <= noise.tolerance / 2
        assert float(noise.slack) >= math.sqrt(size) / 2 / 2**noise.bits
        assert sum(noise.shares) == 1


def test_the_release_adds_little_to_what_the_minimum_varies_by():
    noise = objective_noise(11, 1.0, 0.25, 3.0, 5_000, Fraction(1), ONE)
    least = noise.scale / 2**noise.bits / (5_000 * 0.25 * 3.0 + float(noise.penalty))
    assert noise.spread / 2**noise.places < 0.05 * least


def _part(noise, eps):
    account = Account(noise.protection, Budget(eps))
    part = account.line("minimum", OBJECTIVE, Budget(eps))
    account.charge(None, "test")
    return account, part


def test_both_draws_are_charged_and_drawn_once():
    noise = objective_noise(3, 1.0, 0.25, 3.0, 100, Fraction(1), ONE)
    account, part = _part(noise, Fraction(1))
    b, second = noise.opened(part)
    assert len(b) == 3
    with pytest.raises(AccountError, match="charged but not drawn from"):
        account.table()
    with pytest.raises(AccountError, match="divided before"):
        noise.opened(part)
    with pytest.raises(AccountError, match="another number"):
        noise.released([0], second)
    found = noise.released([2**noise.places, 0, 0], second)
    assert account.table().total == Budget(1)
    assert np.abs(np.array(found, dtype=float) - [1, 0, 0]).max() < 1
    with pytest.raises(AccountError, match="drawn from before"):
        noise.released([0, 0, 0], second)
    with pytest.raises(AccountError, match="less noise than was charged"):
        noise.opened(_part(noise, Fraction(1, 2))[1])
    other = dataclasses.replace(noise, protection=Protection("replace-one", 1))
    with pytest.raises(AccountError, match="protects"):
        other.opened(
            _part(dataclasses.replace(noise, protection=Protection("replace-one", 2)), 1)[1]
        )


def test_what_is_released_is_the_minimum_and_its_own_noise(monkeypatch):
    noise = objective_noise(3, 1.0, 0.25, 3.0, 100, Fraction(1), ONE)
    _, second = noise.opened(_part(noise, Fraction(1))[1])
    told = []
    monkeypatch.setattr(
        objective, "l2_norm_noise", lambda *law, rng: told.append(law) or [5, -60, 700]
    )
    found = noise.released([1, 2, 3], second)
    assert found == [Fraction(cell, 2**noise.places) for cell in (6, -58, 703)]
    assert told == [(3, noise.spread)]


def test_b_has_the_law_that_it_was_fitted_to():
    noise = objective_noise(3, 1.0, 0.25, 3.0, 100, Fraction(2), ONE)
    lengths = []
    for _ in range(3_000):
        b, _ = noise.opened(_part(noise, Fraction(2))[1])
        lengths.append(math.sqrt(float(sum(cell * cell for cell in b))))
    scale = noise.scale / 2**noise.bits  # a gamma law of shape 3
    assert np.mean(lengths) == pytest.approx(3 * scale, rel=0.05)
    assert np.var(lengths) == pytest.approx(3 * scale**2, rel=0.15)


def test_noise_beyond_all_measure_is_refused():
    with pytest.raises(ArgumentError, match="eps is too small"):
        objective_noise(3, 1.0, 0.25, 3.0, 100, Fraction(1, 2**250), ONE)
    assert objective._finer(Fraction(1, 4)) == 2
    assert objective._finer(Fraction(1, 5)) == 3
    assert objective._finer(Fraction(7)) == 0


def _exact(cells):
    return [Fraction(float(cell)) for cell in cells]


@pytest.mark.parametrize("size", [3, 40, 400])
def test_stored_rows_keep_within_the_bounds_that_noise_is_fitted_to(size):
    """In exact arithmetic, with the roundings that the module allows for and no others."""
    rng, slope, radius = np.random.default_rng(size), 2.0, 1.9
    u = rng.standard_normal((size - 1, 60)) * np.exp(rng.uniform(0, 9, 60))
    rows = np.vstack([np.ones(60), u]).T
    noise = objective_noise(size, slope, 1.0, radius**2, 60, Fraction(1), ONE)
    eps, bent = Fraction(1), Fraction(1, 10)
    curve = noise.penalty * (bent + bent * bent / 2)
    pull = Fraction(noise.scale, 2 * 2**noise.bits) * eps * Fraction(89, 100)
    beyond = 0
    for x, weight in zip(rows, _exact(omega(rows, radius**2)), strict=True):
        square = sum(cell * cell for cell in _exact(x))
        assert weight * square <= curve
        assert (weight * Fraction(slope)) ** 2 * square <= pull**2
        beyond += weight * square > Fraction(radius) ** 2
    assert beyond  # roundings do go beyond what they stand for: without room for them it fails
