"""Noise of a last look that takes a minimum: what is drawn, what it costs, and how large it is."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpreg.errors import ArgumentError
from dpreg.privacy import look_noise
from dpreg.privacy.account import Account, AccountError
from dpreg.privacy.budget import Budget
from dpreg.privacy.look_noise import PURE, minimum_fit
from dpreg.privacy.noise import HOLD, objective_noise, objective_units
from dpreg.privacy.proofs import CELL_UNITS
from dpreg.privacy.protection import Protection

EPS, TRACE, D = Fraction(3, 4), Fraction(7, 100), 4
PROTECTIONS = [
    Protection(relation, k) for relation in ("replace-one", "add-remove") for k in (1, 3)
]
OF = pytest.mark.parametrize("who", PROTECTIONS, ids=str)


def fitted(who, times=2, eps=EPS):
    return minimum_fit(D, eps, who, trace=TRACE, times=times)


def opened(noise, who=None, eps=None):
    account = Account(who or noise.protection, Budget(1))
    part = account.joint("a look", "pure", Budget(eps or noise.strength), by=PURE).part()
    account.charge(None, "a test")
    return part


@OF
@pytest.mark.parametrize("times", [1, 2, 5])
def test_outer_parts_and_traces_pay_for_what_a_person_moves(who, times):
    """Outer parts are half as long as a score: two of them apart where rows are replaced."""
    noise = fitted(who, times)
    _, outer, trace = (float(EPS * share) for share in noise.shares)
    assert sum(noise.shares) == 1
    moved = who.contributions * (2 if who.neighbors == "replace-one" else 1) / 2
    assert moved * CELL_UNITS / noise.outer_scale == pytest.approx(outer, rel=1e-9)
    assert moved * CELL_UNITS / noise.outer_scale <= outer
    assert who.contributions * CELL_UNITS / noise.trace_scale == pytest.approx(trace, rel=1e-9)
    assert Fraction(noise.trace_scale) * EPS * noise.shares[2] >= who.contributions * CELL_UNITS


@OF
@pytest.mark.parametrize("times", [1, 2, 5])
def test_the_outer_part_has_as_many_times_the_noise_of_the_minimum(who, times):
    noise = fitted(who, times)
    outer = noise.outer_scale * math.sqrt(D + 1) / CELL_UNITS
    # The minimum's gradients are at most one half of a score long.
    b, penalty = objective_units(D, EPS * noise.shares[0], who)
    drawn = objective_noise(D, 0.5, 1.0, 1.0, 1000, EPS * noise.shares[0], who)
    inner = drawn.scale / 2**drawn.bits * math.sqrt(D + 1)
    assert inner == pytest.approx(b / 2, rel=1e-6)
    assert outer / inner == pytest.approx(times, rel=1e-6)
    assert noise.score_sd == pytest.approx(math.hypot(inner, outer), rel=1e-6)
    trace = math.sqrt(2) * noise.trace_scale / CELL_UNITS
    assert noise.middle_sd == pytest.approx(trace, rel=1e-6)
    loud = fitted(who, times, eps=Fraction(10**4))
    assert loud.information_sd == pytest.approx(HOLD / math.sqrt(D))
    # Noise in H of 2 sqrt(d) times its standard deviation would be as loud as two penalties.
    assert 2 * math.sqrt(D) * noise.information_sd == pytest.approx(2 * penalty)


@OF
def test_what_is_drawn_is_what_was_fitted_and_charged(who, monkeypatch):
    noise, told = fitted(who), []

    def recorded(name):
        honest = getattr(look_noise, name)

        def drawn(size, scale, rng):
            told.append((name, size, scale))
            return honest(size, scale, rng=rng)

        monkeypatch.setattr(look_noise, name, drawn)

    recorded("l2_norm_noise")
    recorded("laplace_noise")
    part = opened(noise)
    minimum, outer, trace = noise.draw(part)
    scales = noise.outer_scale, noise.trace_scale
    assert told == [("l2_norm_noise", D, scales[0]), ("laplace_noise", 1, scales[1])]
    assert len(outer) == D
    assert isinstance(trace, int)
    assert [one.state for one in part.line.parts] == ["handed out", "drawn from", "drawn from"]
    assert minimum.cost == Budget(EPS * noise.shares[0])
    with pytest.raises(AccountError, match="divided before"):
        noise.draw(part)


@OF
def test_less_noise_than_was_charged_is_never_drawn(who, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(look_noise, "l2_norm_noise", forbidden)
    noise = fitted(who)
    with pytest.raises(AccountError, match="less noise than was charged"):
        noise.draw(opened(noise, eps=EPS * Fraction(99, 100)))
    other = "add-remove" if who.neighbors == "replace-one" else "replace-one"
    for whom in (Protection(other, who.contributions), Protection(who.neighbors, 2)):
        with pytest.raises(AccountError, match="with a bound for"):
            noise.draw(opened(noise, whom))


def test_noise_has_the_law_that_it_was_fitted_to():
    noise, rng = fitted(PROTECTIONS[0]), np.random.default_rng(3)
    drawn = [noise.simulate(rng) for _ in range(3000)]
    lengths = np.linalg.norm([[float(cell) for cell in outer] for outer, _ in drawn], axis=1)
    assert lengths.mean() == pytest.approx(D * noise.outer_scale, rel=0.05)
    assert lengths.var() == pytest.approx(D * noise.outer_scale**2, rel=0.15)
    traces = np.array([float(trace) for _, trace in drawn])
    assert np.abs(traces).mean() == pytest.approx(noise.trace_scale, rel=0.1)


def test_noise_that_cannot_be_is_refused():
    with pytest.raises(ArgumentError, match=r"over 2\*\*200"):
        fitted(PROTECTIONS[0], eps=Fraction(1, 2**170))
    with pytest.raises(AssertionError):
        minimum_fit(D, EPS, PROTECTIONS[0], trace=Fraction(1), times=2)
