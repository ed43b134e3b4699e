"""The look that a minimum equals: its cells, its noise, its clips, and intervals from its law."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from benchmarks._staged_rows import Setting, staged
from dpreg.privacy.budget import Budget
from dpreg.privacy.objective import objective_noise, objective_units
from dpreg.privacy.protection import Protection
from dpreg.staged import minimum, reference
from dpreg.staged.coefficients import coefficients
from dpreg.staged.locate import Located
from dpreg.staged.minimum import ALONE, as_look, holds_as_many, may_be_alone, open_minimum, seen
from dpreg.staged.plan import SHARES, SQUARES, TAIL, plan_looks
from dpreg.staged.released import Coordinates, NoisyLook, Tail
from dpreg.staged.tails import NORMAL


def coordinates(p=3, seed=0, width=0.2, squared=4.0):
    rng = np.random.default_rng(seed)
    whitening = 4 * np.eye(p) + rng.uniform(-1, 1, (p, p))
    return Coordinates(
        whitening, rng.uniform(-1, 1, p), 0.1, rng.uniform(-0.2, 0.2, p), width, squared
    )


def located(count=20_000.0, residual=0.02, squared=4.0, least=3.0):
    at = coordinates(squared=squared, width=1.7 * math.sqrt(residual))
    values = np.array([least, 5.0, 6.0])
    return Located(at, count, residual, 1e-4, values, 1.0, np.zeros(3), np.eye(3))


def test_shares_are_of_the_whole_and_public_numbers_decide():
    assert sum(ALONE) + TAIL + SQUARES == 1
    assert may_be_alone(700, 100, 5)
    assert not may_be_alone(699, 100, 5)
    assert may_be_alone(1 << 21, 100, 4)
    assert not may_be_alone(1 << 22, 100, 3)
    assert not may_be_alone(700, 100, 3, 1 << 22)
    assert holds_as_many(located(count=2.0**21), 4)
    assert not holds_as_many(located(count=2.0**22), 4)
    plan = plan_looks(3, Budget(1), Protection("replace-one"))
    assert plan.shares == SHARES["matrix-laplace"]
    alone = plan_looks(3, Budget(1), Protection("replace-one"), alone=True)
    assert alone.shares == ALONE
    assert sum(alone.strengths, alone.tail_strength + alone.squares_strength) == 1
    with_delta = plan_looks(3, Budget(1, "1e-6"), Protection("replace-one"), alone=True)
    assert with_delta.gaussian
    assert not with_delta.alone
    assert not may_be_alone(700, 100, 5, gaussian=True)


def test_the_second_look_spares_its_columns():
    usual, alone = (
        plan_looks(3, Budget(1), Protection("replace-one"), alone=alone) for alone in (False, True)
    )
    for place, less in ((1, True), (2, False)):
        one, other = (plan.located_noise(place, 0.1) for plan in (usual, alone))
        shares = float(usual.strengths[place] / alone.strengths[place])
        assert (other.scales[0] < 0.9 * shares * one.scales[0]) == less
        assert (other.scales[-1] > 1.5 * shares * one.scales[-1]) == less


def test_only_a_second_look_that_sees_all_directions_is_enough():
    look = second()
    here = replace(HERE, coordinates=look.coordinates)
    norm = 2 * math.sqrt(float((look.noise_sd[:4, :4] ** 2).sum(axis=1).max()))
    values, vectors = np.linalg.eigh(look.cells[:4, :4])
    sure = 2.5 * float(look.noise_sd[:4, :4].max())
    for least, enough in ((1.11, True), (1.09, False), (1.11 - sure / norm, False)):
        cells = look.cells.copy()
        cells[:4, :4] = (vectors * np.append(least * norm + sure, values[1:])) @ vectors.T
        assert seen(replace(look, cells=cells), here) == enough
    shorter = np.diag([1.0, 1.0, 0.05])  # as rows of a rare level are
    drawn_in = replace(
        look.coordinates,
        whitening=shorter @ look.coordinates.whitening,
        offset=shorter @ look.coordinates.offset,
    )
    assert seen(look, here)
    assert not seen(look, replace(here, coordinates=drawn_in))


def test_clips_open_as_noise_falls_and_stop_at_the_corner():
    at, widths, radii = located(), [], []
    for noise in (2000.0, 200.0, 20.0, 2.0, 0.002):
        found, limit = open_minimum(at, NORMAL, noise, 20.0)
        widths.append(limit * found.width / 2)
        assert limit == pytest.approx(2) or found.width == at.coordinates.farthest
    assert widths == sorted(widths)
    ends = math.sqrt(found.squared_radius) / 2 * at.coordinates.farthest
    assert widths[0] < at.coordinates.farthest < widths[-1] <= ends * 1.000001
    for bend in (1e4, 100.0, 20.0, 1e-3):
        radii.append(open_minimum(at, NORMAL, 20.0, bend)[0].squared_radius)
    assert radii == sorted(radii)
    assert radii[0] == pytest.approx(1.2 * 4)
    assert radii[1] == pytest.approx(0.06 * 20_000 / 100)
    assert radii[-1] == at.coordinates.corner
    far = located(squared=1e6)
    found, _ = open_minimum(far, NORMAL, 20.0, 1e-9)
    assert found.squared_radius == far.coordinates.squared_radius


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_units_are_those_of_the_noise_that_is_drawn(neighbors):
    who, eps = Protection(neighbors, 2), Fraction(1, 2)
    sd, bend = objective_units(5, eps, who)
    noise = objective_noise(5, 3.0, 1.0, 4.0, 1000, eps, who)
    assert sd * 6 == pytest.approx(noise.scale / 2**noise.bits * math.sqrt(6), rel=1e-6)
    assert bend * 4 == pytest.approx(float(noise.penalty), rel=1e-6)


def second(p=3, count=5000.0, degrees=5, seed=1):
    rng = np.random.default_rng(seed)
    root = rng.uniform(-1, 1, (p + 2, p + 2))
    cells = count * (np.eye(p + 2) + 0.1 * (root + root.T))
    sd = np.full((p + 2, p + 2), 40.0)
    np.fill_diagonal(sd, 40 * math.sqrt(2))
    return NoisyLook(cells, sd, coordinates(p, seed=3), degrees, None)


HERE = located(count=5000.0)
TAIL_AT = Tail(10.0, 300.0, 8.0, 9.0, 0.8)


def test_cells_are_those_of_the_second_look_in_other_coordinates():
    look, at = second(), coordinates(seed=9)
    found = as_look(look, HERE, at, np.arange(4.0), 7.0, TAIL_AT)
    turn = minimum._turn(look.coordinates, at)
    x = np.random.default_rng(2).uniform(-1, 1, (6, 3))
    before, after = (
        np.column_stack([np.ones(6), x @ one.whitening.T + one.offset])
        for one in (look.coordinates, at)
    )
    assert np.allclose(before @ turn.T, after)
    kept = minimum._kept(look, HERE, at, NORMAL)
    lifted = found.cells[:4, :4] - kept * turn @ look.cells[:4, :4] @ turn.T
    assert np.abs(lifted).max() < 0.1 * np.abs(found.cells[:4, :4]).max()
    assert np.array_equal(found.cells[:4, 4], np.arange(4.0))
    assert np.array_equal(found.cells[4, :4], np.arange(4.0))
    assert (found.noise_sd[:4, 4] == 7.0).all()
    assert found.degrees == 2  # (4 + 1) // 2
    square = 300 * (0.8 / 0.2) ** 2 / found.cells[0, 0]
    drawn = math.sqrt(square) * np.random.default_rng(1).standard_normal(400_000)
    cut = np.minimum(drawn**2, 1).mean()
    assert found.cells[4, 4] == pytest.approx(cut * found.cells[0, 0], rel=0.01)


def test_the_noise_of_turned_cells_is_that_of_turned_noise():
    look, at = second(), coordinates(seed=9)
    turn = minimum._turn(look.coordinates, at)
    rng = np.random.default_rng(5)
    drawn = rng.standard_normal((20_000, 4, 4)) * look.noise_sd[:4, :4]
    drawn = np.triu(drawn) + np.swapaxes(np.triu(drawn, 1), 1, 2)
    turned = turn @ drawn @ turn.T
    found = as_look(look, HERE, at, np.zeros(4), 1.0, TAIL_AT).noise_sd[:4, :4]
    found /= minimum._kept(look, HERE, at, NORMAL)
    assert found == pytest.approx(turned.std(axis=0), rel=0.03)


def test_rows_weigh_what_the_wider_radius_leaves_them():
    look, at = second(), coordinates(seed=9, squared=4.0)
    few = replace(look, cells=look.cells * 0.9 * 5000 / look.cells[0, 0])
    assert minimum._kept(few, HERE, at, NORMAL) == pytest.approx(1.0)  # .1 is left out, as before
    wide = replace(at, squared_radius=16.0)
    assert minimum._kept(few, HERE, wide, NORMAL) == pytest.approx(1 / 0.9, rel=0.005)
    all_of_them = replace(look, cells=look.cells * 5000 / look.cells[0, 0])
    assert minimum._kept(all_of_them, HERE, at, NORMAL) == 1.0
    corner = replace(at, squared_radius=at.corner)
    assert minimum._kept(few, HERE, corner, NORMAL) == pytest.approx(1 / 0.9)


def test_lifted_moments_have_the_right_inverse_on_average():
    look, rng = second(), np.random.default_rng(6)
    look = replace(look, noise_sd=look.noise_sd * 9)
    truth = np.linalg.inv(look.cells[:4, :4])
    plain, lifted = np.zeros((2, 4, 4))
    for _ in range(4000):
        noise = np.triu(rng.standard_normal((5, 5)) * look.noise_sd)
        noisy = replace(look, cells=look.cells + noise + np.triu(noise, 1).T)
        plain += np.linalg.inv(noisy.cells[:4, :4]) / 4000
        lifted += np.linalg.inv(minimum._lifted(noisy)) / 4000
    off = [float(np.abs(one - truth).max() / np.abs(truth).max()) for one in (plain, lifted)]
    assert off[0] > 0.03
    assert off[1] < off[0] / 3


def test_heavy_tails_leave_less_for_the_narrow_cut():
    look, at = second(), coordinates(seed=9)
    heavy = replace(TAIL_AT, heaviness=replace(NORMAL, found=0.5))
    told, light = (as_look(look, HERE, at, np.zeros(4), 1.0, tail) for tail in (heavy, TAIL_AT))
    assert told.cells[4, 4] < light.cells[4, 4]
    nothing = as_look(look, HERE, at, np.zeros(4), 1.0, replace(TAIL_AT, squares=-5.0))
    assert np.isfinite(nothing.cells).all()
    assert nothing.cells[4, 4] > 0


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_intervals_hold_and_are_narrower_than_those_of_three_looks(neighbors):
    rng, p, n = np.random.default_rng(8), 4, 8000
    truth, setting = np.array([0.02, 0.2, -0.1, 0.05, 0.0]), Setting(1.0, 0.0, neighbors)
    hits, widths, errors = ({True: [], False: []} for _ in range(3))
    for _ in range(120):
        x = np.clip(rng.standard_normal((n, p)) / 4, -1, 1)
        y = np.clip(truth[0] + x @ truth[1:] + 0.12 * rng.standard_normal(n), -1, 1)
        for alone in (True, False):
            run = staged(x, y, setting, n, rng, stretched=True, alone=alone)
            fit = coefficients(run.law)
            half = reference.quantiles(
                np.diag(fit.sampling), np.diag(fit.privacy), fit.degrees, 0.05
            )
            hits[alone].append(np.abs(fit.params - truth) <= half)
            widths[alone].append(half[1:])
            errors[alone].append(np.square(fit.params - truth)[1:])
    assert 0.92 <= np.mean(hits[True]) <= 0.995
    less = 0.95 if neighbors == "replace-one" else 1.0  # where there is less noise to spare
    assert np.median(widths[True]) < less * np.median(widths[False])
    assert np.mean(errors[True]) < (less - 0.05) * np.mean(errors[False])
