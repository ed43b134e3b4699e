"""Limits follow released numbers by the rule of the module."""

import math

import numpy as np
import pytest
from oracles.look_rows import KINDS, ONE, hostile, plain, point_of, rows_of

from dpreg.looks.coordinates import place_of
from dpreg.looks.locate import cut_by, farthest, fit_limits, locating_limits
from dpreg.looks.records import Release
from dpreg.looks.rows import Rows
from dpreg.looks.tuning import TUNING


def test_what_a_limit_cuts_is_within_the_bound():
    """(U - S)+ <= (4/27) U^3/S^2, so that n rows of any law lose no more than the bound says."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        u, S = np.exp(rng.normal(size=1000) * rng.uniform(0.1, 2)), 10.0 ** rng.uniform(-1, 2)
        assert np.maximum(u - S, 0).sum() <= 4 / 27 * (u**3).sum() / S**2 * (1 + 1e-12)


def test_the_score_s_limit_balances_what_it_cuts_and_the_noise():
    n, d, phi, sd = 1e7, 5, 0.3, 8.0
    _, S = fit_limits(n, d, phi, 1.0, sd)

    def lost(limit):
        cut = TUNING.limit * n * (d * phi) ** 1.5 / limit**2
        return cut**2 / 2 + d * (limit * sd) ** 2 / 4

    grid = S * np.geomspace(0.2, 5, 4001)
    best = grid[np.argmin([lost(limit) for limit in grid])]
    assert 0.4 < best / S < 2.5  # the constant is chosen, the power is not
    for factor in (8, 64):
        wider = fit_limits(n * factor, d, phi, 1.0, sd)[1]
        assert wider == pytest.approx(S * factor ** (1 / 3), rel=1e-9)
        assert fit_limits(n, d, phi * factor**2, 1.0, sd)[1] == pytest.approx(S * factor)


def fitted(rest, score_sd, S):
    """A release at a limit S of which this lies beyond half of it."""
    point = point_of(np.random.default_rng(1), KINDS["linear"], len(rest) - 1)
    return Release(
        point=point, information=np.eye(len(rest)), score=rest, information_sd=1.0,
        score_sd=score_sd, middle=None, middle_sd=1.0, trace=1.0, limits=(9.0, S), share=0.1,
        rest=rest,
    )  # fmt: skip


@pytest.mark.parametrize("size", [0.0, 3_000.0, 40_000.0])
def test_the_last_limit_balances_noise_and_what_the_look_before_says_is_cut(size):
    d, sd, S0, noise = 5, 8.0, 6.0, 2_000.0
    before = fitted(np.full(d, size), noise, S0)
    t = max(size**2 - noise**2 / 2, 0.0) + TUNING.doubt * noise**2 / 2 * math.sqrt(2 / d)
    assert cut_by(before) == pytest.approx(t)
    _, S = fit_limits(1e5, d, 1e-6, 1.0, sd, before=before)

    def squares(limit):
        return t * (S0 / limit) ** 2 + (limit * sd) ** 2 / 2

    grid = S * np.geomspace(0.5, 2, 4001)
    assert grid[np.argmin([squares(limit) for limit in grid])] == pytest.approx(S, rel=1e-3)
    assert fit_limits(1e5, d, 1e12, 1.0, sd, before=before)[1] == pytest.approx(1e6 * math.sqrt(d))


def test_the_information_s_limit_lets_the_noise_have_a_share_of_the_rows():
    A = [fit_limits(n, 4, 1.0, 50.0, 8.0)[0] for n in (1, 1e4, 4e4, 1e12)]
    assert sorted(A) == A
    assert A[0] == 2 * 4
    assert A[-1] == 2**10 * 4
    assert fit_limits(10, 4, 1.0, 0.0, 8.0)[0] == 2**10 * 4  # where none is released


def test_limits_are_positive_whatever_noise_says_of_the_count():
    for rows in (-50.0, 0.0, 1.0):
        A, S = fit_limits(rows, 3, 1e-9, 5.0, 9.0)
        assert A > 0
        assert S > 0
        assert math.isfinite(A + S)


def test_locating_limits_scale_with_the_point():
    point = point_of(np.random.default_rng(1), KINDS["linear"], 3)
    R, tau = locating_limits(point)
    assert math.sqrt(1 + 3) < R
    assert tau > 1.0


@pytest.mark.parametrize("name", KINDS)
def test_no_row_of_the_box_reaches_farther_than_is_said_and_a_corner_about_as_far(name):
    rng, kind = np.random.default_rng(2), KINDS[name]
    for p, offsets in ((1, 0), (1, 1), (3, 2)):
        point = point_of(rng, kind, p, far=2.0, steep=0.3)
        made = rows_of(rng, kind, p, offsets=offsets)
        place, point = place_of(
            point, kind.family, known=made.described.known, information=1.0, score=1.0
        )
        z = np.clip(np.nan_to_num(hostile(rng, 4000, made.design.size)), -1, 1)
        z[:, 0] = 1.0
        own = plain(Rows(made.design, made.described, place), np.rint(z.T * ONE))
        squared = (own.v**2).sum(axis=0)
        trace = squared * own.weight / point.weight
        score = np.abs(own.residual) * np.sqrt(squared / point.weight)
        most = farthest(point, kind.family, made.described)
        assert trace.max() <= most[0] * (1 + 1e-6)
        assert score.max() <= most[1] * (1 + 1e-6)
        if (p, offsets) == (1, 0) and not kind.most:
            assert score.max() > 0.4 * most[1]


def test_limits_go_no_farther_than_rows_do():
    A, S = fit_limits(1e6, 4, 1.0, 50.0, 8.0)
    assert fit_limits(1e6, 4, 1.0, 50.0, 8.0, 1, (A / 2, S / 3)) == (A / 2, S / 3)
    assert fit_limits(1e6, 4, 1.0, 50.0, 8.0, 1, (2 * A, 2 * S)) == (A, S)


def test_where_noise_is_small_the_middle_s_decides():
    """It grows as S^2, whatever it costs the score: S as the sixth root of mu^2 at last."""
    S = [fit_limits(1e6, 4, 1.0, 1.0, sd)[1] for sd in (2e-3, 2e-4)]
    assert S[1] / S[0] == pytest.approx(10 ** (1 / 6), rel=0.01)
