"""Clips of the last look: they open where that saves more than the noise costs."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from dpreg.staged import clips
from dpreg.staged.clips import (
    allowed,
    heaviness_of,
    open_clips,
    open_early,
    wide_cut,
)
from dpreg.staged.locate import CUT, locate, noise_unit
from dpreg.staged.predict import located_rows, spread_sums
from dpreg.staged.released import NoisyLook, box, residual_power
from dpreg.staged.tails import NORMAL, Heaviness

HEAVY = Heaviness(0.2, 0.01, skew=0.4)


def table(n=4_000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3))
    return x, 0.1 + x @ [0.2, -0.1, 0.05] + rng.normal(0, 0.1, n)


def found_in(x, y, sd=1.0):
    z = located_rows(x, y, box(3))
    return locate(NoisyLook(z.T @ z, np.full((5, 5), sd), box(3), None, len(x)))


def unit(strength):
    return noise_unit(strength, "replace-one", None)


def test_clips_open_as_the_noise_falls_and_stop_at_the_corner():
    x, y = table()
    found = found_in(x, y)
    radii, widths = [], []
    for strength in (0.1, 1.0, 10.0, 1e6, 1e15):
        at = open_clips(found, noise_unit(strength, "replace-one", None))
        radii.append(at.squared_radius)
        widths.append(at.width)
    assert radii == sorted(radii)
    assert widths == sorted(widths)
    corners = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
    u = corners @ at.whitening.T + at.offset
    assert radii[-1] >= (1 + (u**2).sum(axis=1)).max() - 1e-9
    farthest = np.abs(corners @ at.slopes + at.intercept).max() + 1
    assert widths[-1] == pytest.approx(1 + abs(at.intercept) + np.abs(at.slopes).sum())
    assert widths[-1] >= farthest - 1e-9
    z = located_rows(x, y, at)
    assert (z[:, 0] == 1).all()


def test_nothing_opens_where_the_noise_is_large():
    found = found_in(*table())
    at = open_clips(found, unit(1e-3), HEAVY)
    assert at.squared_radius == found.coordinates.squared_radius
    assert at.width == found.coordinates.width


def test_skewed_tails_open_the_cut():
    found = found_in(*table())
    usual, wide = (open_clips(found, unit(1.0), tails) for tails in (NORMAL, HEAVY))
    assert wide.width > 1.3 * usual.width
    assert open_clips(found, unit(1.0), Heaviness(0.2, 0.01)).width < wide.width
    # a skew that is all noise is possible, and allowed for
    hidden = Heaviness(0.2, 0.01, skew_noise=0.8)
    assert open_clips(found, unit(1.0), hidden).width >= wide.width


def test_rows_far_out_open_the_radius():
    found = found_in(*table())
    near, far = (Heaviness(0.0, 0.01, 0.0, 0.1, far=share) for share in (1e-4, 0.03))
    radii = [open_clips(found, unit(1.0), tails).squared_radius for tails in (near, far)]
    assert radii[1] > 1.2 * radii[0]
    at = replace(found.coordinates, squared_radius=1.5 * found.coordinates.squared_radius)
    assert allowed(found, at, far) > 2 * allowed(found, at, near) > 0


def test_for_a_choice_without_delta_rows_are_shortened_sooner_and_tails_open_nothing():
    found = found_in(*table())
    far = Heaviness(0.2, 0.01, 0.6, 0.05, skew=0.4, far=0.03)
    pure = {"choosing": True, "gaussian": False}
    chosen, usual = open_clips(found, unit(0.2), **pure), open_clips(found, unit(0.2))
    located = found.coordinates.squared_radius
    assert located <= chosen.squared_radius < 0.9 * usual.squared_radius
    assert chosen.width <= 1.1 * usual.width
    for told, own in (
        ({"choosing": True}, usual),
        ({"gaussian": False}, usual),
        ({"tails": far, **pure}, chosen),
    ):
        other = open_clips(found, unit(0.2), **told)
        assert (other.squared_radius, other.width) == (own.squared_radius, own.width)
    # with many rows nothing is shortened, as before
    many = open_clips(found, unit(1e15), **pure)
    assert many.squared_radius == open_clips(found, unit(1e15)).squared_radius


def test_for_a_choice_without_delta_residuals_are_cut_where_a_mean_errs_least():
    """The whole sum at one radius, by quadrature: noise, sampling, and what cuts may move."""
    found = found_in(*table())
    at, pure, widths = found.coordinates, {"choosing": True, "gaussian": False}, []
    shares = np.geomspace(0.75, 3.0, 60)
    cuts = CUT * shares
    within = norm.cdf(cuts) - norm.cdf(-cuts)
    scatter = within - 2 * cuts * norm.pdf(cuts) + cuts**2 * (1 - within)
    moved = NORMAL.slopes(NORMAL.possible_skew, cuts, 4) ** 2 + 2e-5 / 4 * shares**-6.0
    for strength in (0.05, 0.2, 0.3, 0.6, 1.0, 1e4):
        chosen = open_clips(found, unit(strength), **pure)
        widths.append(chosen.width / at.width)
        blurred = 4 * unit(strength) * chosen.squared_radius * np.sqrt(5) / found.count
        cell = unit(strength) * np.sqrt(chosen.squared_radius / (found.count * found.residual))
        noise = (cell * shares * at.width / max(1 - blurred, 0.05)) ** 2
        loss = (noise + scatter) / within**2 + found.count * moved
        best = shares[np.argmin(loss)]
        assert widths[-1] == pytest.approx(best, rel=0.04) or min(widths[-1], best) > 2
    assert widths[0] == pytest.approx(0.75)
    assert widths[1] < 0.9 < 1.1 < widths[3]
    for told in ({"choosing": True}, {"gaussian": False}):
        assert open_clips(found, unit(0.05), **told).width >= at.width


def test_the_wider_cut_grows_with_the_rows_and_stays_in_the_box():
    x, y = table()
    found = found_in(x, y)
    at, omega = found.coordinates, np.sqrt(found.residual)
    assert wide_cut(found, at, found.count) == at.width
    sd = found.count / 1000
    assert wide_cut(found, at, sd) == pytest.approx(min(8 * omega, 1 + abs(at.intercept)
        + np.abs(at.slopes).sum()))  # fmt: skip
    assert wide_cut(found, at, sd, squares=True) == pytest.approx(3 * omega)


@pytest.mark.parametrize(("draw", "low", "high", "skew"), [
    (lambda rng, n: rng.standard_normal(n), -0.02, 0.02, 0.0),
    (lambda rng, n: rng.exponential(size=n) - 1, 0.12, 0.3, 0.55),
    (lambda rng, n: 1 - rng.exponential(size=n), 0.12, 0.3, -0.55),
    (lambda rng, n: rng.standard_t(3, n) / np.sqrt(3), 0.12, 0.25, 0.0),
])  # fmt: skip
def test_the_heaviness_is_that_of_the_residuals(draw, low, high, skew):
    rng = np.random.default_rng(2)
    n = 400_000
    found = found_in(*table())
    x, e = np.zeros((n, 3)), 0.1 * draw(rng, n)
    at = replace(found.coordinates, width=CUT * 0.1)
    y = at.intercept + x @ at.slopes + e
    z = located_rows(x, y, at)
    noise = np.full((5, 5), 10.0)
    look = NoisyLook(z.T @ z, noise, at, None, n)
    tails = heaviness_of(look, spread_sums(x, y, at, 0.3), 20.0, 0.3, n, found)
    assert low < tails.found < high
    assert abs(tails.skew - skew) < 0.12
    assert tails.far == 0.0
    own = np.hypot(20.0 * np.sqrt(2) * 9, 10.0 * CUT**2) / n  # over s^2, from 1 to half of it
    assert own * 0.98 < tails.noise < 2 * own
    assert 20.0 * np.sqrt(2) * 9 / n < tails.skew_noise < 3 * own


def test_residuals_larger_far_out_open_both_clips():
    found = found_in(*table())
    usual = open_clips(found, unit(1.0), Heaviness(0.0, 0.01, 0.0, 0.05))
    bent = Heaviness(0.0, 0.01, 0.6, 0.05)
    wider = open_clips(found, unit(1.0), bent)
    assert wider.squared_radius * wider.width**2 > 1.2 * usual.squared_radius * usual.width**2
    assert wider.width > usual.width
    # what the noise hides may be there: between both
    hidden = open_clips(found, unit(1.0), Heaviness(0.0, 0.01, 0.0, 10.0))
    assert usual.width <= hidden.width <= wider.width
    # the law allows for what is left, for less where nothing was seen, and for nothing where no
    # row is bound
    left = allowed(found, found.coordinates, bent)
    unseen = allowed(found, found.coordinates, Heaviness(0.0, 0.01, 0.05, 0.05))
    assert left > allowed(found, wider, bent) > 0
    assert left > unseen > 0
    assert allowed(found, open_clips(found, unit(1e15), bent), bent) == 0


@pytest.mark.parametrize(("curve", "low", "high"), [(0.0, -0.1, 0.1), (0.5, 0.3, 3.0)])
def test_the_outer_excess_is_that_of_rows_far_out(curve, low, high):
    rng = np.random.default_rng(3)
    n = 200_000
    x = np.clip(rng.standard_normal((n, 3)) / 4, -1, 1)
    y = 0.3 * x[:, 0] + curve * (x[:, 0] ** 2 - x[:, 0].var()) + rng.normal(0, 0.05, n)
    found = found_in(x, y, sd=1e-6)
    at = found.coordinates
    z = located_rows(x, y, at)
    wide = 3 * np.sqrt(found.residual)
    look = NoisyLook(z.T @ z, np.full((5, 5), 1e-6), at, None, n)
    tails = heaviness_of(look, spread_sums(x, y, at, wide), 1.0, wide, n, found)
    assert low < tails.outer < high
    assert tails.outer_noise < 0.01
    assert (tails.bent > 0.01) == (curve > 0)
    weights = located_rows(x, y, replace(at, squared_radius=2.25 * at.squared_radius))[:, 0]
    assert tails.far == pytest.approx(1 - (weights**2).mean(), abs=1e-12)
    assert tails.far < 0.01 < 1 - (z[:, 0] ** 2).mean()
    assert tails.reach == 1.0


def test_an_early_look_opens_its_radius_alone_and_only_with_many_rows():
    x, y = table()
    found = found_in(x, y)
    before, corner = found.coordinates, found.coordinates.corner
    for strength, factor in ((0.1, 1.0), (1e6, 2.25)):
        at = open_early(found, unit(strength))
        assert at.squared_radius == pytest.approx(min(factor * before.squared_radius, corner))
        assert (at.width, at.intercept) == (before.width, before.intercept)
    between = open_early(found, unit(0.2)).squared_radius / before.squared_radius
    assert 1.0 < between < 2.25
    look = NoisyLook(np.eye(5), np.ones((5, 5)), at, None, len(x))
    tails = heaviness_of(look, (1.0, 1.0, 0.0, 0.0), 1.0, 0.3, len(x), found)
    assert tails.reach == pytest.approx(1.5)


def test_with_many_rows_clips_open_where_nothing_shows_too():
    """What may hide is as nothing beside the sampling error of few rows, not of many."""
    found = found_in(*table())
    quiet = Heaviness(-0.3, 0.001, 0.0, 0.001, far=0.0)
    widths, radii = [], []
    for rows in (4e3, 1e5, 1e8):
        at = open_clips(replace(found, count=rows), unit(0.1), quiet)
        widths.append(at.width / found.coordinates.width)
        radii.append(at.squared_radius / found.coordinates.squared_radius)
    assert widths[0] == 1.0 < widths[1] < widths[2]
    assert radii[0] < radii[1] < radii[2]


def test_a_stretch_makes_the_clip_shorter_and_its_noise_less():
    found = found_in(*table(60_000))
    for strength in (0.1, 0.3, 1.0):
        plain = open_clips(found, unit(strength), HEAVY)
        longer = open_clips(found, unit(strength), HEAVY, 1.5)
        size, own = (np.sqrt(at.squared_radius) * at.width for at in (plain, longer))
        assert own < size
        assert allowed(found, longer, HEAVY, 1.5) <= allowed(found, longer, HEAVY)
    assert wide_cut(found, longer, 1e12, stretch=1.5) == 1.5 * longer.width


def test_the_cut_of_a_typical_row_lies_between_one_clip_and_the_stretch():
    x, y = table()
    found = found_in(x, y)
    for radius, within in ((1.0, (1.0, 1.2)), (1.3, (1.2, 1.45)), (4.0, (1.5, 1.5))):
        at = replace(found.coordinates, squared_radius=found.coordinates.squared_radius * radius**2)
        z = located_rows(x, y, at, 1.5)
        look = NoisyLook(z.T @ z, np.ones((5, 5)), at, None, len(x), 1.5)
        assert within[0] <= look.cut <= within[1]
        assert replace(look, stretch=1.0).cut == 1.0
        lengths = np.linalg.norm(z[:, :-1], axis=1) / np.sqrt(at.squared_radius)
        assert (lengths * np.abs(z[:, -1])).max() <= 1 + 1e-12
        assert np.abs(z[:, -1]).max() <= 1.5


@pytest.mark.parametrize("stretch", [1.0, 1.5])
def test_shortened_rows_count_more_only_where_few_are_left(stretch):
    found = found_in(*table(60_000))
    before = found.coordinates
    for wider, power in ((1.0, 1.0), (1.24, 1.0), (1.26, -0.5), (4.0, -0.5)):
        at = replace(before, squared_radius=before.squared_radius * wider**2)
        assert residual_power(found.coordinates, at, stretch) == (power if stretch > 1 else 1.0)
    opened = {1.0: set(), 1.5: set()}
    for strength in np.geomspace(0.003, 1.0, 12):
        at = open_clips(found, unit(strength), HEAVY, stretch)
        opened[stretch].add(residual_power(found.coordinates, at, stretch))
    assert opened[stretch] == ({1.0, -0.5} if stretch > 1 else {1.0})


def test_where_shortened_rows_count_more_the_cut_opens_for_more_change(monkeypatch):
    found = found_in(*table(60_000))

    def cut(strength):
        at = open_clips(found, unit(strength), HEAVY, 1.5)
        return at.width, residual_power(found.coordinates, at, 1.5)

    few, many = cut(0.003), cut(0.3)
    assert (few[1], many[1]) == (1.0, -0.5)
    monkeypatch.setattr(clips, "_FREER", 1.0)
    assert cut(0.003) == few
    assert cut(0.3)[0] < 0.97 * many[0]
