"""From one release to the next point: without noise, the model's own coordinates and fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from oracles.look_rows import KINDS, point_of

from dpreg.looks.coordinates import Point, pseudo
from dpreg.looks.families import Binomial, Linear
from dpreg.looks.locate import (
    advance,
    carried,
    combined,
    explained,
    from_box,
    lifted,
    mean_weight,
    noise_norm,
    shortened,
)
from dpreg.looks.records import Box, Described, Release, Told
from dpreg.looks.tuning import TUNING

N = 4000


def made(seed=0, p=3):
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(size=(N, p)) @ (np.eye(p) + 0.5) * 0.1 + 0.2, -1, 1)
    y = np.clip(0.1 + x @ np.linspace(0.3, -0.4, p) + rng.normal(size=N) * 0.05, -1, 1)
    return x, y


def box_of(x, y, sd=1e-6):
    z = np.column_stack([np.ones(len(x)), x, y])
    return Box(z.T @ z, np.full((z.shape[1],) * 2, sd))


def look(x, y, point, sd=1e-6):
    """A linear fitting look without limits."""
    v = np.column_stack([np.ones(len(x)), (x - point.centre) @ point.whitening.T])
    e = y - point.middle - (x - point.centre) @ point.slopes
    scores = v * e[:, None] / np.sqrt(point.weight)
    return Release(
        point, v.T @ v / point.weight, scores.sum(axis=0), sd, sd, scores.T @ scores, sd,
        float((scores**2).sum()), (1e3, 1e3), 0.5,
    )  # fmt: skip


def test_the_box_without_noise_is_least_squares():
    x, y = made()
    point, family, rows = from_box(box_of(x, y), Linear(), Described((1, 2, 3)))
    theirs = np.linalg.lstsq(np.column_stack([np.ones(N), x]), y, rcond=None)[0]
    np.testing.assert_allclose(point.slopes, theirs[1:], rtol=1e-3)
    assert point.middle - point.slopes @ point.centre == pytest.approx(theirs[0], rel=1e-3)
    np.testing.assert_allclose(point.centre, x.mean(axis=0), rtol=1e-9)
    u = (x - point.centre) @ point.whitening.T
    np.testing.assert_allclose(u.T @ u / N, np.eye(3), atol=1e-3)
    residual = y - np.column_stack([np.ones(N), x]) @ theirs
    assert point.dispersion == pytest.approx(residual.var(), rel=1e-2)
    assert rows == pytest.approx(N)
    assert family == Linear()
    assert point.weight == pytest.approx(1.0)


@pytest.mark.parametrize("count", [-300.0, 0.0, 20.0, 80.0])
def test_rows_are_no_fewer_than_their_noise(count):
    x, y = made()
    box = box_of(x, y, sd=50.0)
    box.cells[0, 0] = count
    assert from_box(box, Linear(), Described((1, 2, 3)))[2] == max(count, 50.0)


def test_directions_that_noise_hides_are_not_blown_up():
    x, y = made()
    x[:, 2] = x[:, 0] + 1e-7 * x[:, 1]
    point, _, _ = from_box(box_of(x, y, sd=30.0), Linear(), Described((1, 2, 3)))
    assert np.linalg.norm(point.whitening, 2) < 1 / np.sqrt(0.5 * noise_norm(30.0 / N, 3)) * 1.5
    assert np.abs(point.slopes).max() < 3


def test_offsets_are_taken_off_the_first_fit():
    x, y = made()
    point, _, _ = from_box(box_of(x, y), Linear(), Described((1, 2), (3,), (-0.4,)))
    rest = y + 0.4 * x[:, 2]
    theirs = np.linalg.lstsq(np.column_stack([np.ones(N), x[:, :2]]), rest, rcond=None)[0]
    np.testing.assert_allclose(point.slopes, theirs[1:], rtol=1e-3)
    at = point.middle + (x[:, :2] - point.centre) @ point.slopes - 0.4 * x[:, 2]
    assert at.mean() == pytest.approx(y.mean(), abs=1e-3)


@pytest.mark.parametrize("name", ["logit", "counts"])
def test_a_family_s_first_predictors_have_the_response_s_mean(name):
    rng = np.random.default_rng(2)
    kind = KINDS[name]
    x, _ = made()
    eta = kind.family.predictor(kind.family.cap * 0.2) + x @ [1.0, -2.0, 0.5]
    mean = kind.family.terms(eta).mean
    answer = rng.binomial(1, mean) if name == "logit" else np.minimum(rng.poisson(mean), 20)
    y = (answer - kind.response[0]) / kind.response[1]
    point, family, _ = from_box(
        box_of(x, y), kind.family, Described((1, 2, 3), (), (), kind.response)
    )
    found = family.terms(point.middle + (x - point.centre) @ point.slopes)
    assert found.mean.mean() == pytest.approx(answer.mean(), rel=0.1)
    assert point.weight == pytest.approx(found.weight.mean(), rel=0.15)
    np.testing.assert_allclose(point.slopes, [1.0, -2.0, 0.5], atol=0.8)


def test_the_usual_number_of_trials_is_released():
    rng = np.random.default_rng(3)
    n = 40_000
    x, m = rng.uniform(-1, 1, n), rng.integers(0, 13, n)
    y = rng.binomial(m, 0.3)
    box = box_of(np.column_stack([x, m / 6 - 1]), y / 6 - 1)
    about = Described((1,), (), (), (6.0, 6.0), Told(2, (6.0, 6.0), 12.0, True))
    point, family, _ = from_box(box, Binomial(), about)
    assert isinstance(family, Binomial)
    assert family.trials == pytest.approx(6, abs=0.1)
    found = family.terms(np.array([point.middle])).mean[0] / family.trials
    assert found == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("first", [True, False])
def test_a_step_without_noise_ends_at_least_squares(first):
    x, y = made()
    start, _, _ = from_box(box_of(x, y), Linear(), Described((1, 2, 3)))
    away = replace(start, slopes=start.slopes + 0.02, middle=start.middle - 0.01)
    point, moved = advance(look(x, y, away), Linear(), N, first=first)
    theirs = np.linalg.lstsq(np.column_stack([np.ones(N), x]), y, rcond=None)[0]
    np.testing.assert_allclose(point.slopes, theirs[1:], rtol=1e-6)
    assert point.middle - point.slopes @ point.centre == pytest.approx(theirs[0], rel=1e-6)
    assert moved > 0
    again, still = advance(look(x, y, point), Linear(), N, first=False)
    assert still < 1e-6
    np.testing.assert_allclose(again.slopes, theirs[1:], rtol=1e-6)
    u = (x - again.centre) @ again.whitening.T
    np.testing.assert_allclose(np.cov(u.T, bias=True), np.eye(3), atol=1e-3)


def test_a_step_has_a_longest_length():
    x, y = made()
    start, _, _ = from_box(box_of(x, y), Linear(), Described((1, 2, 3)))
    release = look(x, y, start)
    far = replace(release, score=release.score + 1e5)
    point, _ = advance(far, Linear(), N, first=False)
    step = (x - x.mean(axis=0)) @ (point.slopes - start.slopes)
    assert step.std() <= TUNING.longest * 1.01


def lift(information, point, sd=None):
    """Lift an information whose noise is `sd`; None: its own limits cut nothing."""
    own = replace(look(*made(), point), information=information, lacks=sd is not None)
    return lifted(replace(own, information_sd=sd or 0.0), N)


def test_lifting_adds_what_was_surely_seen_and_takes_nothing():
    x, y = made()
    start, _, _ = from_box(box_of(x, y), Linear(), Described((1, 2, 3)))
    sure = replace(start, sure=np.full(3, 0.9))
    H = look(x, y, sure).information
    np.testing.assert_allclose(lift(H, sure), H, rtol=1e-6)
    limited = H.copy()
    limited[2, :] *= 0.3
    limited[:, 2] *= 0.3
    found = lift(limited, sure)
    assert np.linalg.eigvalsh(found - limited).min() > -1e-6 * N
    assert np.linalg.eigvalsh(found[1:, 1:]).min() > 0.8 * N


def test_what_was_not_shown_is_not_lifted():
    """Nor does its noise mix with what was."""
    x, y = made()
    start, _, _ = from_box(box_of(x, y), Linear(), Described((1, 2, 3)))
    part = replace(start, sure=np.array([0.9, 0.9, 0.0]))
    noisy = look(x, y, part).information
    noisy[3, 1:] = noisy[1:, 3] = 0.3 * N * np.array([1, -1, 0])
    gap = lift(noisy, part) - noisy
    assert (gap[3] == 0).all()
    assert (gap[:, 3] == 0).all()


def test_a_column_counts_with_the_variance_that_the_unit_scale_showed_of_it():
    """Its rows, limited in H alone, would make the step along it too long."""
    x, y = made()
    start, _, _ = from_box(box_of(x, y), Linear(), Described((1, 2, 3)))
    np.testing.assert_allclose(start.least, x.var(axis=0), rtol=1e-6)
    point = replace(start, sure=np.zeros(3))
    H = look(x, y, point).information
    np.testing.assert_allclose(lift(H, point, 0.0), H, rtol=1e-6, atol=1e-6 * N)
    limited = H.copy()
    limited[1:, 1:] *= 0.3
    found = lift(limited, point, 0.0)
    back = np.linalg.inv(point.whitening)
    assert (np.diag(back @ found[1:, 1:] @ back.T) > 0.999 * N * x.var(axis=0)).all()
    assert np.linalg.eigvalsh(found - limited).min() > -1e-6 * N
    # Not where the limits were the score's as well, nor by what H's own noise may be.
    np.testing.assert_array_equal(lift(limited, point), limited)
    np.testing.assert_array_equal(lift(limited, point, N), limited)
    moved, _ = advance(replace(look(x, y, point), information=limited), Linear(), N, first=False)
    np.testing.assert_array_equal(moved.least, start.least)


def test_what_the_unit_scale_showed_of_a_column_stands_above_its_noise():
    x, y = made()
    quiet, _, _ = from_box(box_of(x, y), Linear(), Described((1, 2, 3)))
    loud, _, _ = from_box(box_of(x, y, sd=0.01 * N), Linear(), Described((1, 2, 3)))
    gap = quiet.least - loud.least
    np.testing.assert_allclose(gap, np.minimum(2 * TUNING.sure * 0.01, quiet.least), rtol=1e-6)


def test_rows_of_a_level_lie_within_the_limit_unless_noise_hides_them():
    x, y = made()
    one = Described((1, 2, 3), levels=(3,))
    start, _, _ = from_box(box_of(x, y), Linear(), one)
    L = np.array([[1.0, 0, 0.5], [0, 1, 0], [0, 0, 40.0]])
    point = replace(start, whitening=L, spread=np.full(3, 0.4), sure=np.full(3, 0.01))
    found = shortened(point, one, 100.0, 0.0)
    np.testing.assert_allclose(found.whitening, L * [[1], [1], [0.25]])
    np.testing.assert_allclose(found.spread, [0.4, 0.4, 0.025])
    np.testing.assert_allclose(found.sure, [0.01, 0.01, 0.01 / 16])
    for same in (
        shortened(point, replace(one, levels=()), 100.0, 0.0),  # a number may lie anywhere
        shortened(replace(point, sure=np.full(3, 0.1)), one, 100.0, 1.0),  # lifted as much
        shortened(replace(point, spread=np.full(3, 0.1)), one, 100.0, 2.0),  # hidden by noise
    ):
        np.testing.assert_allclose(same.whitening, L)


def test_the_dispersion_is_no_less_than_its_noise_and_no_more_than_limits_allow():
    x, y = made()
    start, _, _ = from_box(box_of(x, y), Linear(), Described((1, 2, 3)))
    release = look(x, y, start)
    phi = release.dispersion(release.information, N)
    assert phi == pytest.approx(start.dispersion, rel=0.05)
    none = replace(release, middle=None, trace=-5.0, middle_sd=10.0)
    assert none.dispersion(none.information, N) == pytest.approx(20 / N / 4, rel=0.01)
    noisy = replace(none, middle_sd=1e12, limits=(9.0, 3.0))
    assert noisy.dispersion(noisy.information, N) == pytest.approx(9 / 4, rel=0.01)


def test_the_variance_of_predictors_is_read_off_the_information():
    x, y = made()
    point, _, _ = from_box(box_of(x, y), Linear(), Described((1, 2, 3)))
    theirs = (x @ point.slopes).var()
    assert explained(look(x, y, point), N) == pytest.approx(theirs, rel=1e-3)
    assert mean_weight(Linear(), 0.3, 2.0) == pytest.approx(1.0)
    eta = np.random.default_rng(0).normal(0.4, 1.1, 400_000)
    own = Binomial().terms(eta).weight.mean()
    assert mean_weight(Binomial(), 0.4, 1.21) == pytest.approx(own, rel=0.01)


def test_a_point_takes_coefficients_back():
    x, y = made()
    point, _, _ = from_box(box_of(x, y), Linear(), Described((1, 2, 3)))
    assert isinstance(point, Point)
    theta = np.array([0.3, -0.2, 0.5, 0.1])
    beta = point.shift + point.transform @ theta
    v = np.column_stack([np.ones(N), (x - point.centre) @ point.whitening.T])
    expected = point.middle + (x - point.centre) @ point.slopes + v @ theta / np.sqrt(point.weight)
    np.testing.assert_allclose(beta[0] + x @ beta[1:], expected, rtol=1e-9)
    assert point.variance == pytest.approx((x @ point.slopes).var(), rel=1e-2)


def test_a_pure_look_takes_its_information_from_the_look_before():
    """Carried to other coordinates it is what it would have been there."""
    rng = np.random.default_rng(4)
    p = 3
    x = rng.normal(size=(200, p))
    one, other = (point_of(rng, KINDS["linear"], p) for _ in range(2))

    def seen(point):
        v = np.column_stack([np.ones(200), (x - point.centre) @ point.whitening.T])
        return v.T @ v / point.weight

    size = p + 1
    before = Release(one, seen(one), np.zeros(size), 2.0, 1.0, None, 1.0, 1.0, (1, 1), 0.1)
    found, _, _ = carried(before, other)
    np.testing.assert_allclose(found, seen(other), rtol=1e-9)
    same, spread, unseen = carried(before, one)
    np.testing.assert_allclose(same, seen(one), rtol=1e-9)
    np.testing.assert_allclose(spread, 2.0 * np.eye(size), atol=1e-9)
    assert unseen.any() != (one.sure > 0).all()


def test_noise_of_a_carried_information_is_long_where_the_look_before_hardly_saw():
    """Cells of independent noise, carried as H is: E N u (N u)' = (u'Pu) P + P u u' P."""
    rng = np.random.default_rng(5)
    size = 3
    one, other = (point_of(rng, KINDS["linear"], size - 1) for _ in range(2))
    one = replace(one, whitening=np.diag([0.01, 1.0]) @ one.whitening)
    before = Release(
        one, np.eye(size), np.zeros(size), 2.0, 1.0, None, 1.0, 1.0, (1, 1), 0.1, together=True
    )
    H, P, _ = carried(before, other)
    u, drawn = np.array([1.0, -0.5, 2.0]), np.zeros((size, size))
    for _ in range(20_000):
        N = 2.0 * np.triu(rng.normal(size=(size, size)), 1)
        N = N + N.T + np.diag(2.0 * np.sqrt(2) * rng.normal(size=size))
        moved = (carried(replace(before, information=np.eye(size) + N), other)[0] - H) @ u
        drawn += np.outer(moved, moved) / 20_000
    scale = np.sqrt(np.diag(drawn))
    expected = (u @ P @ u) * P + P @ np.outer(u, u) @ P
    np.testing.assert_allclose(
        drawn / np.outer(scale, scale), expected / np.outer(scale, scale), atol=0.05
    )
    assert np.linalg.cond(P) > 100


def test_information_of_two_looks_is_weighed_by_the_noise_in_its_cells():
    """Both of the same rows: it stays theirs, with as much noise as P says; of either alone too."""
    rng = np.random.default_rng(9)
    size = 4
    one, other = (point_of(rng, KINDS["linear"], size - 1) for _ in range(2))
    one = replace(one, whitening=np.diag([0.3, 1.0, 1.0]) @ one.whitening)
    x = rng.normal(size=(200, size - 1))

    def release(point, sd, noise=0.0):
        v = np.column_stack([np.ones(200), (x - point.centre) @ point.whitening.T])
        H = v.T @ v / point.weight + noise
        return Release(
            point, H, np.zeros(size), sd, 1.0, None, 1.0, 1.0, (1, 1), 0.1, together=True
        )

    def cells(sd):
        N = sd * np.triu(rng.normal(size=(size, size)), 1)
        return N + N.T + np.diag(sd * np.sqrt(2) * rng.normal(size=size))

    same = combined(release(one, 3.0), release(other, 2.0))
    np.testing.assert_allclose(same.information, release(other, 2.0).information, rtol=1e-9)
    late, early = combined(release(one, 1e9), same), combined(release(one, 1e-9), same)
    np.testing.assert_allclose(late.spread, same.information_sd * np.eye(size), atol=1e-9)
    assert np.abs(early.spread).max() < 1e-6
    drawn = [
        combined(release(one, 3.0, cells(3.0)), release(other, 2.0, cells(2.0))).information
        for _ in range(4_000)
    ]
    values, Q = np.linalg.eigh(same.spread)
    variances = (Q.T @ np.array(drawn) @ Q).var(axis=0)
    variances[np.diag_indices(size)] /= 2
    np.testing.assert_allclose(variances.sum(axis=1), values * values.sum(), rtol=0.1)
    assert (values * values.sum() < size * 2.0**2).all()
    J = one.rows @ pseudo(other.rows)
    scale = other.weight / one.weight
    np.testing.assert_allclose(carried(same, one)[1], scale * J @ same.spread @ J.T, rtol=1e-9)


def test_what_a_first_limited_look_may_lack_of_a_column_is_said():
    """The nearer its limits, the more; nothing where an earlier look had shown the column."""
    point = point_of(np.random.default_rng(6), KINDS["linear"], 2)
    H = 1_000.0 * np.diag([1.0, 0.25, 0.8])

    def lacking(*sure):
        at = replace(point, sure=np.array(sure))
        before = Release(at, H, np.zeros(3), 2.0, 1.0, None, 1.0, 1.0, (2, 1), 0.1)
        return carried(before, at)[2]

    assert not lacking(0.5, 0.5).any()
    np.testing.assert_allclose(lacking(0.0, 0.5), np.diag([0, 125.0, 0]), atol=1e-6)
