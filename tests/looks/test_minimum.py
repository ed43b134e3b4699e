"""A last look that takes a minimum: its losses, their neighbours, and what is released at it."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from oracles.look_rows import FULL, KINDS, ONE, Stored, chunk, hostile, plain, point_of, squares
from oracles.minima import worst
from oracles.tagged_noise import cells_of, cost, tagged
from scipy.optimize import minimize

from dpreg.looks import table
from dpreg.looks.coordinates import Point, place_of
from dpreg.looks.families import Linear
from dpreg.looks.locate import farthest
from dpreg.looks.minimum import hold, perturbation
from dpreg.looks.plan import plan_looks
from dpreg.looks.records import Described, Release, Told
from dpreg.looks.rows import Rows
from dpreg.looks.table import Table
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.privacy.noise import HOLD, objective_noise
from dpreg.privacy.protection import Protection
from dpreg.sources import as_source
from dpreg.sources.reader import Reader

LINEAR = KINDS["linear"]
SHARE = Fraction(1, 5)
RELATIONS = pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])


def rows_at(point, limits, described=None, *, size=None, weighed=True):
    """Rows of a linear model at a point, as a minimum sees them."""
    described = described or LINEAR.described(point.size - 1)
    A, S = limits
    place, at = place_of(
        point, Linear(), known=described.known, information=A, score=S, weighed=weighed
    )
    return Rows(Stored(size or point.size + 1), described, place), at


def losses_of(rows, z):
    return hold(rows, [rows.cells(chunk(z))])


def some(rng, n, size):
    z = rng.uniform(-1, 1, (n, size))
    z[:, 0] = 1.0
    return z


@pytest.mark.parametrize("own", [False, True], ids=["plain", "own weights"])
def test_rows_have_the_losses_that_the_module_says(own):
    rng, p = np.random.default_rng(1), 3
    point = dataclasses.replace(point_of(rng, LINEAR, p, far=1.5), weight=1.3)
    limits = 6.0, 0.8
    described, size = Described((1, 2, 3), (4,), (0.5,), (0.0, 1.0)), p + 3
    if own:
        described = dataclasses.replace(described, weights=Told(5, (0.5, 0.5)))
        size += 1
    z = some(rng, 400, size)
    z[7, 0] = 0.0
    if own:
        z[8, 5] = -1.0  # a weight of 0: no such row
    rows, at = rows_at(point, limits, described, size=size)
    made = losses_of(rows, z)
    cells = np.rint(z.T * ONE)
    there = plain(rows, cells)
    weight = 0.5 + 0.5 * cells[5] / ONE if own else np.ones(len(z))
    here = there.held & (weight > 0)
    length = np.linalg.norm(there.v, axis=0)
    unit = limits[1] / 2 * math.sqrt(at.weight)
    w = weight * np.minimum(1, limits[0] * at.weight / (weight + ~here) / length**2)
    k = 1 / (w + ~here) / length
    assert len(made.y) == here.sum() == len(z) - 1 - own
    np.testing.assert_allclose(made.x * k[here, None], there.v.T[here], atol=1e-9)
    np.testing.assert_allclose(made.y * k[here], there.residual[here] / unit, rtol=1e-9)
    np.testing.assert_allclose(made.weights, (w * k * k)[here], rtol=1e-9)
    assert made.radius == pytest.approx(math.sqrt(limits[0] * at.weight))
    assert made.limit == 1.0
    far = w[here] < weight[here]
    assert 0.05 < far.mean() < 0.95


def test_a_row_has_the_same_losses_wherever_it_stands():
    rng = np.random.default_rng(2)
    rows, _ = rows_at(point_of(rng, LINEAR, 3, far=2.0), (4.0, 0.5))
    z = some(rng, 20_000, 5)
    whole, order = losses_of(rows, z), rng.permutation(len(z))
    moved, single = losses_of(rows, z[order]), losses_of(rows, z[[11]])
    for name in ("x", "y", "weights"):
        assert np.array_equal(getattr(moved, name), getattr(whole, name)[order])
        assert np.array_equal(getattr(single, name), getattr(whole, name)[[11]])


@pytest.mark.parametrize("own", [False, True], ids=["plain", "own weights"])
@pytest.mark.parametrize("seed", range(6))
def test_no_row_pulls_or_bends_by_more_than_noise_is_fitted_to(seed, own):
    """In exact arithmetic, whatever the cells, with the roundings that are allowed for."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 30))
    point = point_of(rng, LINEAR, p, far=10.0 ** rng.uniform(-2, 4))
    described, size = None, p + 2
    if own:
        size += 2
        described = Described(tuple(range(1, p + 1)), (p + 1,), (0.7,), (0.0, 1.0))
        described = dataclasses.replace(described, weights=Told(p + 2, (0.5, 0.5)))
    limits = 10.0 ** rng.uniform(-1, 3), 10.0 ** rng.uniform(-3, 2)
    rows, _ = rows_at(point, limits, described, size=size)
    made = losses_of(rows, hostile(rng, 120, size))
    who, eps = Protection("replace-one"), Fraction(1)
    noise = objective_noise(p + 1, 1 / made.radius, 1.0, made.radius**2, 60, eps, who)
    bent = Fraction(1, 10)
    curve = noise.penalty * (bent + bent * bent / 2)
    pull = Fraction(noise.scale, 2 * 2**noise.bits) * Fraction(89, 100)
    reached = 0.0
    for x, weight in zip(made.x, made.weights, strict=True):
        square = sum(Fraction(float(cell)) ** 2 for cell in x)
        omega = Fraction(float(weight))
        assert omega * square <= curve
        assert omega**2 * square <= pull**2
        reached = max(reached, float(omega**2 * square))
    assert reached > 1 - 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_what_is_beyond_the_losses_is_the_outer_part(seed):
    """At t = 0 the slopes of the losses are the inner parts, and neither part is too long."""
    rng = np.random.default_rng(seed)
    p = 3
    point, (A, S) = point_of(rng, LINEAR, p, far=2.0), (5.0, 0.3)
    rows, at = rows_at(point, (A, S))
    z = hostile(rng, 600, p + 2)
    k, whole, outer, far = rows.located(rows.cells(chunk(z)))
    inner = whole.copy()
    inner[:, far] -= outer
    assert max(squares(inner)) <= FULL / 4
    assert max(squares(outer)) <= FULL / 4
    assert max(squares(whole)) <= FULL
    assert max(squares(k)) <= FULL
    made = losses_of(rows, z)
    slopes = -(made.x.T * made.weights) @ np.clip(-made.y, -1, 1)
    np.testing.assert_allclose(inner.sum(axis=1) * 2 / ONE, slopes, atol=2 * len(z) / ONE)
    there = plain(rows, rows.cells(chunk(z)))
    length = np.linalg.norm(there.v, axis=0)
    score = there.residual / math.sqrt(at.weight)
    room = S / 2 / length
    near = np.clip(score * np.minimum(1, A * at.weight / length**2), -room, room)
    rest = np.clip(score - near, -room, room) * there.held
    wanted = (there.v * np.where(there.held, rest, 0.0)).sum(axis=1)
    np.testing.assert_allclose(outer.sum(axis=1) * S / ONE, wanted, atol=2 * S * len(z) / ONE)
    assert (np.abs(rest) > 0).sum() > 50


def test_a_row_that_counts_for_less_than_half_may_lose_some_of_its_score():
    """However wide S is: and then what limits cut is no longer nothing."""
    z = np.array([[1.0, 1.0, 1.0]])
    point = Point(
        np.array([-0.9]), np.array([[3.0]]), np.zeros(1), 0.0, 1.0, 1.0, np.ones(1), np.ones(1)
    )
    S = 1.7 * farthest(point, Linear(), LINEAR.described(1))[1]
    plan = plan_of(Protection("replace-one"), 1, eps=10**6)
    for A, cuts in ((4.0, True), (20.0, False)):
        rows, _ = rows_at(point, (A, S))
        _, whole, *_ = rows.located(rows.cells(chunk(z)))
        score = math.hypot(1, 3 * 1.9)
        assert (np.linalg.norm(whole) / ONE * S < 0.98 * score) == cuts
        found = look_at(table_of(z, plan), point, (A, S), count=1.0)
        assert found.cuts == cuts


def test_where_all_rows_are_near_parts_are_those_of_a_fitting_look():
    rng = np.random.default_rng(5)
    point, limits = point_of(rng, LINEAR, 3), (1e6, 0.3)
    z = hostile(rng, 400, 5)
    one, other = (
        rows.located(rows.cells(chunk(z)))
        for rows, _ in (rows_at(point, limits, weighed=weighed) for weighed in (True, False))
    )
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


# ---- neighbours --------------------------------------------------------------------------------


def _tables(k, made_at):
    """Losses of a few common rows and of each of several choices of a person's k rows."""
    rng = np.random.default_rng(5)
    common = some(rng, 3, 4)
    corners = [np.array([1.0, *x, y]) for *x, y in itertools.product((-1.0, 0.0, 1.0), repeat=3)]
    own = [np.tile(one, (k, 1)) for one in corners] + [np.zeros((k, 4))]
    return [made_at(np.vstack([common, one])) for one in own]


@RELATIONS
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("far", [1.0, 30.0])
def test_neighbours_at_the_corners_have_minima_of_about_the_same_law(k, far, neighbors):
    rng = np.random.default_rng(4)
    rows, _ = rows_at(point_of(rng, LINEAR, 2, far=far), (3.0, 0.1))
    tables = _tables(k, lambda z: losses_of(rows, z))
    noise = perturbation(tables[0], Fraction(2), Protection(neighbors, k), 4)
    most = float(noise.eps * noise.shares[0])
    found = worst(tables, noise, neighbors)
    assert found <= most * (1 + 1e-9)
    assert found >= 0.75 * most  # the corners are attacked, not somewhere inside
    less = dataclasses.replace(noise, scale=noise.scale // 2)
    assert worst(tables, less, neighbors) > most


def table_of(z, plan, described=None, seed=1):
    who = plan.protection
    account = Account(who, plan.cost, np.random.default_rng(seed))
    opened = plan.open(account)
    account.charge(None, "a test")
    reader = Reader(as_source({f"z{j}": column for j, column in enumerate(np.asarray(z).T)}), None)
    design = Stored(np.shape(z)[1])
    reader.settle(design.types)
    return Table(reader, design, described or LINEAR.described(np.shape(z)[1] - 2), opened)


def plan_of(who, p, eps=1):
    return plan_looks(p, Budget(eps), who, holds=True)


def before_of(point):
    size = point.size
    return Release(
        point, np.eye(size), np.zeros(size), 1.0, 1.0, None, 1.0, 1.0, (2.0, 1.0), 0.1, degrees=3
    )


def look_at(made, point, limits, share=SHARE, count=100.0):
    plan = dataclasses.replace(made.plan, later=Fraction(1, 10))  # a part, not all that is left
    opened = dataclasses.replace(made.opened, plan=plan)
    noise, before = plan.minimum_noise(share), before_of(point)
    return dataclasses.replace(made, opened=opened).minimum(
        point, Linear(), limits, share, noise, count, before=before
    )


@RELATIONS
@pytest.mark.parametrize("k", [1, 3])
def test_no_neighbours_exceed_what_is_released_at_a_minimum(k, neighbors, monkeypatch):
    """Of the outer part and the trace; the minimum's own cost is above."""
    told, who, p = tagged(monkeypatch), Protection(neighbors, k), 2
    where = np.array([0.1, -0.3, 0.2]), 7.0, 1.0
    monkeypatch.setattr(table, "released_minimum", lambda *_: where)
    rng, plan = np.random.default_rng(3), plan_of(who, p)
    found = 0.0
    for far, limits in ((1.0, (4.0, 1.0)), (2e3, (2.0, 0.02))):
        point, sums = point_of(rng, LINEAR, p, far=far, steep=0.5), []
        ends = itertools.product((-1.0, 1.0), repeat=p + 1)
        rows = [np.zeros(p + 2), *(np.array([1.0, *end]) for end in ends), *some(rng, 12, p + 2)]
        for row in rows:
            look_at(table_of(np.tile(row, (k, 1)), plan), point, limits)
            sums.append(cells_of(told.take()))
        pairs = itertools.combinations(range(len(sums)), 2)
        if neighbors == "add-remove":
            pairs = ((0, i) for i in range(len(sums)))
        found = max(found, *(cost(sums[i], sums[j]) for i, j in pairs))
    noise = plan.minimum_noise(SHARE)
    own = float(plan.strength * SHARE * (1 - noise.shares[0]))
    assert found <= own * (1 + 1e-9)
    assert found > 0.5 * own


# ---- what is released --------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1.0, 0.2])
def test_with_little_noise_it_is_the_minimum_and_what_it_cut(weight):
    rng, p, n = np.random.default_rng(8), 2, 4000
    z = some(rng, n, p + 2)
    z[:, -1] = np.clip(0.2 * z[:, 1] - 0.1 * z[:, 2] + rng.standard_t(3, n) * 0.1, -1, 1)
    point = dataclasses.replace(point_of(rng, LINEAR, p, steep=0.1), weight=weight, middle=0.05)
    A, S = limits = 2.5, 0.4
    made = table_of(z, plan_of(Protection("replace-one"), p, eps=10**6))
    found = look_at(made, point, limits, count=n)
    rows, at = rows_at(point, limits)
    there = plain(rows, np.rint(z.T * ONE))
    v, e, length = there.v.T, there.residual, np.linalg.norm(there.v, axis=0)
    w = np.minimum(1, A * at.weight / length**2)
    k = S / 2 * math.sqrt(at.weight) / (w * length)
    penalty = HOLD * A * at.weight

    def loss(theta):
        left = np.abs(e - v @ theta)
        huber = np.where(left <= k, left**2 / 2, k * left - k**2 / 2)
        return float(w @ huber + penalty * theta @ theta / 2) / n

    best = minimize(loss, np.zeros(p + 1), method="BFGS", options={"gtol": 1e-10}).x
    slopes = point.slopes + at.whitening.T @ best[1:]
    np.testing.assert_allclose(found.point.slopes, slopes, atol=2e-5)
    assert found.point.middle == pytest.approx(at.middle + best[0], abs=2e-5)
    left = (e - v @ best) / math.sqrt(at.weight)
    near = np.clip(left * w, -S / 2 / length, S / 2 / length)
    outer = v.T @ np.clip(left - near, -S / 2 / length, S / 2 / length)
    np.testing.assert_allclose(found.rest, outer, atol=0.02)
    inner = v.T @ near
    np.testing.assert_allclose(inner, penalty * best / math.sqrt(at.weight), atol=0.02)
    np.testing.assert_allclose(found.score, inner + outer, atol=0.02)
    cut = np.minimum(np.abs(near) + S / 2 / length, np.abs(left)) * length
    assert found.trace == pytest.approx((cut**2).sum(), rel=1e-3)
    assert found.minimum
    assert not found.together
    assert found.limits == limits
    assert found.carried is not None


@RELATIONS
def test_the_score_has_the_noise_that_its_record_says(neighbors):
    """Exact parts at the released point, beside what is told of them."""
    rng, p, n = np.random.default_rng(9), 2, 3000
    z = some(rng, n, p + 2)
    z[:, -1] = np.clip(0.2 * z[:, 1] + rng.standard_t(3, n) * 0.1, -1, 1)
    point, limits = point_of(rng, LINEAR, p, steep=0.1), (2.5, 0.4)
    plan, inner_left, outer_left, trace_left = plan_of(Protection(neighbors), p), [], [], []
    for seed in range(200):
        made = table_of(z, plan, seed=seed)
        found = look_at(made, point, limits, count=n)
        rows, _ = rows_at(found.point, limits)
        exact = made._sums(rows.place, made.described, matrix=False)
        added, contrast = (np.array(c, dtype=float) / 2**40 for c in (exact.score, exact.contrast))
        inner, outer = ((added + s * contrast) / 2 * limits[1] for s in (1, -1))
        inner_left.append(found.score - found.rest - inner)
        outer_left.append(found.rest - outer)
        trace_left.append(found.trace - exact.middle / 2**40 * limits[1] ** 2)
        assert all(cell != 0 for cell in (*inner_left[-1], *outer_left[-1], trace_left[-1]))
    near, beyond, _ = found.parts
    assert np.std(inner_left, axis=0) == pytest.approx([math.sqrt(near)] * 3, rel=0.2)
    assert np.std(outer_left, axis=0) == pytest.approx([math.sqrt(beyond)] * 3, rel=0.2)
    assert np.std(trace_left) == pytest.approx(found.middle_sd, rel=0.2)
    assert found.times == 2


def test_no_table_is_too_empty():
    made = table_of(np.zeros((3, 4)), plan_of(Protection("add-remove"), 2))
    found = look_at(made, point_of(np.random.default_rng(1), LINEAR, 2), (2.0, 1.0))
    assert np.isfinite(found.score).all()


def test_nothing_shows_rows():
    rows, _ = rows_at(point_of(np.random.default_rng(1), LINEAR, 2), (2.0, 1.0))
    made = losses_of(rows, some(np.random.default_rng(2), 20, 4))
    for shown in (repr(made), str(made), repr(dataclasses.replace(made, penalty=Fraction(1)))):
        assert "array" not in shown
        assert len(shown) < 200


def test_the_penalty_holds_directions_that_no_row_settles():
    rows, _ = rows_at(point_of(np.random.default_rng(1), LINEAR, 2), (2.0, 1.0))
    made = losses_of(rows, some(np.random.default_rng(2), 20, 4))
    much = perturbation(made, Fraction(10**6), Protection("replace-one"), 20, HOLD)
    assert float(much.penalty) == pytest.approx(2 / 3 * made.radius**2)
