"""A last look that takes a minimum: its losses, their neighbours, and what is released at it."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
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


EVERY = pytest.mark.parametrize("name", KINDS)


def rows_at(point, limits, described=None, *, size=None, bend=-1.0, kind=LINEAR):
    """Rows at a point, as a minimum sees them; without a bend as other looks do."""
    described = described or kind.described(point.size - 1)
    A, S = limits
    if bend == -1.0:
        bend = bend_of(point, kind)
    place, at = place_of(
        point, kind.family, known=described.known, information=A, score=S, bend=bend
    )
    return Rows(Stored(size or width(kind, point.size - 1)), described, place), at


def bend_of(point, kind):
    return kind.family.bend(point.weight * math.exp(2 * math.sqrt(point.variance)))


def width(kind, p):
    return p + 2 + (kind.most > 0)


def losses_of(rows, z):
    return hold(rows, [rows.cells(chunk(z))])


def losses_here(rows, z):
    """Which rows have a loss: those without trials have none."""
    return np.array(plain(rows, np.rint(z.T * ONE)).held)


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
    far = w[here] < weight[here]
    assert 0.05 < far.mean() < 0.95


def mean_of(kind, eta, bend):
    """The mean of one trial, and where a straight line goes on."""
    if kind.family.blind:
        return 1 / (1 + np.exp(-eta))
    top = math.log(bend)
    return np.exp(np.minimum(eta, top)) + bend * np.maximum(eta - top, 0)


@pytest.mark.parametrize("name", ["logit", "trials", "counts", "large counts"])
def test_rows_of_other_families_have_the_losses_that_the_module_says(name):
    """Their gradient, by the formula of the module and numpy's own functions."""
    rng, p, kind = np.random.default_rng(3), 2, KINDS[name]
    point = dataclasses.replace(point_of(rng, kind, p, far=1.5, steep=0.5), weight=0.3)
    z = some(rng, 500, width(kind, p))
    z[7, 0] = 0.0
    bend, there = bend_of(point, kind), plain(rows_at(point, (1, 1), kind=kind)[0], z.T * ONE)
    v, length = there.v[:, there.held], np.linalg.norm(there.v[:, there.held], axis=0)
    own = there.cap[there.held] if kind.family.blind else np.ones(there.held.sum())
    y = (there.residual + there.mean)[there.held] / own
    usual = float(np.median(own * length * length))
    limits = bend * usual / point.weight, 1.4 * math.sqrt(usual / point.weight)
    rows, at = rows_at(point, limits, kind=kind)
    made = dataclasses.replace(losses_of(rows, z), noise=[Fraction(0)] * (p + 1))
    unit = limits[1] / 2 * math.sqrt(at.weight)
    w = np.minimum(own, limits[0] * at.weight / bend / length**2)
    free = w == own
    if kind.family.blind:
        assert (unit / length < w).any()
        w = np.minimum(w, unit / length)
    assert 0.02 < free.mean() < 0.98
    assert len(made.y) == there.held.sum() < len(z)
    for t in (np.zeros(p + 1), rng.normal(size=p + 1), 8 * rng.normal(size=p + 1)):
        gap = mean_of(kind, there.eta[there.held] + unit * (t @ v), bend) - y
        slopes = np.clip(gap, *np.outer([-1, 1], unit / (w * length)))
        expected = v @ (w * slopes) / unit
        np.testing.assert_allclose(made.gradient(t), expected, rtol=1e-6, atol=1e-6 * len(z))
    cut = np.abs(gap) > unit / (w * length) * (1 + 1e-9)
    assert cut.any() != kind.family.blind


@pytest.mark.parametrize("name", ["logit", "trials"])
def test_weights_of_yes_and_no_do_not_see_which(name):
    rng, kind = np.random.default_rng(6), KINDS[name]
    rows, _ = rows_at(point_of(rng, kind, 2, far=3.0), (1.0, 1.0), kind=kind)
    z = some(rng, 300, width(kind, 2))
    made = []
    for y in (-1.0, 1.0):
        z[:, -1] = y
        made.append(losses_of(rows, z))
    one, other = made
    assert np.array_equal(one.weights, other.weights)
    assert np.array_equal(one.x, other.x)
    assert (one.y < other.y).all()


@EVERY
def test_a_bound_and_a_ball_hold_the_gradient(name):
    """In floats and in balls, of many digits, which the losses are nearly nothing of."""
    rng, kind = np.random.default_rng(7), KINDS[name]
    rows, _ = rows_at(point_of(rng, kind, 2, far=4.0, steep=2.0), (2.0, 0.7), kind=kind)
    made = losses_of(rows, hostile(rng, 400, width(kind, 2)))
    noise = [Fraction(1, 3), Fraction(-2, 7), Fraction(0)]
    made = dataclasses.replace(made, penalty=Fraction(7, 5), noise=noise)
    for size in (0.0, 0.1, 3.0, 1e3):
        t = rng.normal(size=3) * size
        with ctx.workprec(200):
            exact = made.ball([arb(float(cell)) for cell in t])
            length = float(sum((cell * cell for cell in exact), arb(0)).sqrt().mid())
        found = made.gradient(t)
        np.testing.assert_allclose(found, [float(cell.mid()) for cell in exact], rtol=1e-9)
        assert length <= made.near(t) <= length * 1.05 + 1e-9


@EVERY
def test_a_row_has_the_same_losses_wherever_it_stands(name):
    rng, kind = np.random.default_rng(2), KINDS[name]
    rows, _ = rows_at(point_of(rng, kind, 3, far=2.0), (4.0, 0.5), kind=kind)
    z = some(rng, 20_000, width(kind, 3))
    z = z[losses_here(rows, z)]
    whole, order = losses_of(rows, z), rng.permutation(len(z))
    moved, single = losses_of(rows, z[order]), losses_of(rows, z[[11]])
    for part in ("x", "y", "weights", "start", "scale"):
        assert np.array_equal(getattr(moved, part), getattr(whole, part)[order])
        assert np.array_equal(getattr(single, part), getattr(whole, part)[[11]])


@pytest.mark.parametrize("name", [*KINDS, "own weights"])
@pytest.mark.parametrize("seed", range(6))
def test_no_row_pulls_or_bends_by_more_than_noise_is_fitted_to(seed, name):
    """In exact arithmetic, whatever the cells, with the roundings that are allowed for."""
    rng, own, kind = np.random.default_rng(seed), name == "own weights", KINDS.get(name, LINEAR)
    p = 399 if seed == 5 else int(rng.integers(1, 30))
    point = point_of(rng, kind, p, far=10.0 ** rng.uniform(-2, 4))
    described, size = None, width(kind, p)
    if own:
        size += 2
        described = Described(tuple(range(1, p + 1)), (p + 1,), (0.7,), (0.0, 1.0))
        described = dataclasses.replace(described, weights=Told(p + 2, (0.5, 0.5)))
    limits = 10.0 ** rng.uniform(-1, 3), 10.0 ** rng.uniform(-3, 2)
    if kind.family.blind:  # whose weights both limits may hold down
        limits = (limits[0], limits[1] / 1e2) if seed % 2 else (limits[0] / 1e4, limits[1] * 1e3)
    rows, _ = rows_at(point, limits, described, size=size, kind=kind)
    made = losses_of(rows, hostile(rng, 120, size))
    who, eps = Protection("replace-one"), Fraction(1)
    noise = objective_noise(p + 1, 1 / made.radius, 1.0, made.radius**2, 60, eps, who)
    bent = Fraction(1, 10)
    curve = noise.penalty * (bent + bent * bent / 2)
    pull = Fraction(noise.scale, 2 * 2**noise.bits) * Fraction(89, 100)
    pulled = bent_by = 0.0
    bend = Fraction(float(made.bend))
    for x, weight, scale in zip(made.x, made.weights, made.scale, strict=True):
        square = sum(Fraction(float(cell)) ** 2 for cell in x)
        omega = Fraction(float(weight))
        assert omega * Fraction(float(scale)) * bend * square <= curve
        assert omega**2 * square <= pull**2
        pulled = max(pulled, float(omega**2 * square))
        bent_by = max(bent_by, float(omega * Fraction(float(scale)) * bend * square))
    assert max(pulled, bent_by / made.radius**2) > 1 - 1e-9
    assert pulled > 1 - 1e-9 or kind.family.blind


def parts_of(there, kind, place):
    """The inner and the outer part of each row's score, over its v, by the module's formulas."""
    length, root, S = np.linalg.norm(there.v, axis=0), math.sqrt(place.weight), place.score
    own, room = np.maximum(there.cap, 1e-9) if kind.family.blind else 1.0, S / 2 / length
    score = there.residual / root
    share = np.minimum(1, place.information * place.weight / (place.bend * own * length**2))
    if kind.family.blind:
        share = np.minimum(share, room * root / own)
        whole = 2 * room * root / np.maximum(there.farthest, 1e-9)
        return score * share, score * np.minimum(np.minimum(whole, 1) - share, whole / 2)
    mean = there.eta if kind is LINEAR else mean_of(kind, there.eta, place.bend)
    inner = np.clip((there.residual + there.mean - mean) / root * share, -room, room)
    return inner, np.clip(score - inner, -room, room)


@EVERY
@pytest.mark.parametrize("seed", range(4))
def test_what_is_beyond_the_losses_is_the_outer_part(seed, name):
    """At t = 0 the slopes of the losses are the inner parts, and neither part is too long."""
    rng, kind = np.random.default_rng(seed), KINDS[name]
    p, S = 3, 4.0 if kind.family.blind else 0.3
    rows, _ = rows_at(point_of(rng, kind, p, far=2.0), (5.0, S), kind=kind)
    z = hostile(rng, 600, width(kind, p))
    k, whole, outer, far = rows.located(rows.cells(chunk(z)))
    inner = whole.copy()
    inner[:, far] -= outer
    assert max(squares(inner)) <= FULL / 4
    assert max(squares(outer)) <= FULL / 4
    assert max(squares(whole)) <= FULL
    assert max(squares(k)) <= FULL
    made = losses_of(rows, z)
    slopes = -dataclasses.replace(made, noise=[Fraction(0)] * (p + 1)).gradient(np.zeros(p + 1))
    np.testing.assert_allclose(inner.sum(axis=1) * 2 / ONE, slopes, atol=2 * len(z) / ONE)
    there = plain(rows, rows.cells(chunk(z)))
    rest = np.where(there.held, parts_of(there, kind, rows.place)[1], 0.0)
    wanted = (there.v * rest).sum(axis=1)
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
        for rows, _ in (rows_at(point, limits, bend=bend) for bend in (1.0, None))
    )
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


# ---- neighbours --------------------------------------------------------------------------------


def _tables(k, kind, made_at):
    """Losses of a few common rows and of each of several choices of a person's k rows."""
    rng, size = np.random.default_rng(5), width(kind, 2)
    common = some(rng, 3, size)
    ends = (-1.0, 1.0) if kind.most else (-1.0, 0.0, 1.0)
    cells = itertools.product(ends, repeat=size - 1)
    own = [np.tile(np.array([1.0, *one]), (k, 1)) for one in cells] + [np.zeros((k, size))]
    return [made_at(np.vstack([common, one])) for one in own]


@RELATIONS
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("far", [1.0, 30.0])
@EVERY
def test_neighbours_at_the_corners_have_minima_of_about_the_same_law(name, k, far, neighbors):
    rng, kind = np.random.default_rng(4), KINDS[name]
    rows, _ = rows_at(point_of(rng, kind, 2, far=far), (3.0, 0.1), kind=kind)
    tables = _tables(k, kind, lambda z: losses_of(rows, z))
    noise = perturbation(tables[0], Fraction(2), Protection(neighbors, k), 4)
    most = float(noise.eps * noise.shares[0])
    found = worst(tables, noise, neighbors)
    assert found <= most * (1 + 1e-9)
    least = 0.55 if kind.family.blind else 0.75  # two opposite rows cannot both be far off
    assert found >= least * most  # the corners are attacked, not somewhere inside
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


def look_at(made, point, limits, share=SHARE, count=100.0, kind=LINEAR):
    plan = dataclasses.replace(made.plan, later=Fraction(1, 10))  # a part, not all that is left
    opened = dataclasses.replace(made.opened, plan=plan)
    noise, before = plan.minimum_noise(share), before_of(point)
    return dataclasses.replace(made, opened=opened).minimum(
        point, kind.family, limits, share, noise, count, before=before
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


@pytest.mark.parametrize("name", ["logit", "trials", "counts"])
def test_with_little_noise_other_families_have_their_minimum_and_what_it_cut(name):
    rng, p, n, kind = np.random.default_rng(8), 2, 4000, KINDS[name]
    z = some(rng, n, width(kind, p))
    z = z[losses_here(rows_at(point_of(rng, kind, p), (1, 1), kind=kind)[0], z)]
    point = dataclasses.replace(point_of(rng, kind, p, steep=0.4, far=2.0), weight=0.2)
    rows, at = rows_at(point, (1, 1), kind=kind)
    usual = float(np.median(losses_weights(rows, z, kind)))
    limits = usual * bend_of(point, kind) / 0.2, 1.4 * math.sqrt(usual / 0.2)
    plan = plan_of(Protection("replace-one"), p, eps=10**6)
    made = table_of(z, plan, kind.described(p))
    found = look_at(made, point, limits, count=len(z), kind=kind)
    rows, at = rows_at(point, limits, kind=kind)
    held = losses_of(rows, z)
    penalty = HOLD * limits[0] * at.weight
    held = dataclasses.replace(held, penalty=Fraction(penalty), noise=[Fraction(0)] * (p + 1))
    unit = limits[1] / 2 * math.sqrt(at.weight)
    step = np.append(0.0, pinv_step(at, found))
    step[0] = found.point.middle - at.middle
    t = step / unit
    size = np.abs(held.weights) @ np.linalg.norm(held.x, axis=1)
    assert np.linalg.norm(held.gradient(t)) < 1e-4 * size
    there = plain(dataclasses.replace(rows, place=place_at(found, limits, kind, rows)), z.T * ONE)
    inner, outer = (there.v @ part for part in parts_of(there, kind, rows.place))
    assert found.minimum
    assert np.abs(found.rest).max() > 1
    slack = 0.01 * np.abs(found.rest).max()
    np.testing.assert_allclose(found.rest, outer, atol=slack)
    np.testing.assert_allclose(found.score, inner + outer, atol=slack)


def losses_weights(rows, z, kind):
    there = plain(rows, z.T * ONE)
    own = there.cap if kind.family.blind else 1.0
    return own * (there.v**2).sum(axis=0)


def pinv_step(at, found):
    return np.linalg.pinv(at.whitening.T) @ (found.point.slopes - at.slopes)


def place_at(found, limits, kind, rows):
    bend = rows.place.bend
    return place_of(found.point, kind.family, information=limits[0], score=limits[1], bend=bend)[0]


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
