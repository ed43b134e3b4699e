"""A table as looks see it: what leaves it, with which noise, and what neighbours make of that."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from oracles.look_rows import KINDS, ONE, Stored, hostile, plain, point_of
from oracles.tagged_noise import cells_of, cost, tagged

from dpreg.looks.coordinates import Point, place_of
from dpreg.looks.locate import farthest
from dpreg.looks.plan import plan_looks
from dpreg.looks.records import Release
from dpreg.looks.rows import Rows
from dpreg.looks.table import Table
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.sources import as_source
from dpreg.sources.persons import Persons
from dpreg.sources.reader import Reader

PROTECTIONS = {
    f"{relation}, {k}" + (", persons" if person else ""): Protection(relation, k, person)
    for relation in ("replace-one", "add-remove")
    for k, person in ((1, None), (3, None), (2, "who"))
}
OF = pytest.mark.parametrize("who", PROTECTIONS)
NOISE = pytest.mark.parametrize("delta", ["1e-6", "0"], ids=["gaussian", "pure"])
SHARE = Fraction(1, 5)
SOME_ROWS = 6
"""That a hostile person owns, at most."""


def plan_of(who, delta, p, others=0, exclusive=(), eps=1):
    return plan_looks(p, Budget(eps, delta), who, others=others, exclusive=exclusive)


def table_of(z, kind, plan, p, *, offsets=0, owners=None, seed=1):
    """A table of rows, opened anew."""
    who = plan.protection
    account = Account(who, plan.cost, np.random.default_rng(seed))
    opened = plan.open(account)
    account.charge(None, "a test")
    frame = pd.DataFrame({f"z{j}": column for j, column in enumerate(np.asarray(z).T)})
    if who.person is not None:
        frame["who"] = np.arange(len(z)) if owners is None else owners
    reader = Reader(as_source(frame), None, Persons.of(who, 3))
    design = Stored(np.shape(z)[1])
    reader.settle(design.types)
    reader = reader if who.person is None else reader.every_row(design.types)
    return Table(reader, design, kind.described(p, offsets), opened)


def look_of(made, what, point, family, limits):
    """Take one look; the part that it may cost."""
    plan = made.plan
    if what == "box":
        return made.box(), plan.shares()[0]
    if what == "locating":
        return made.locating(point, family, limits, SHARE, 1.0), SHARE
    last = what == "last"
    noise, before = plan.fit_noise(SHARE, last=last), None
    if not noise.information_scales:
        size = point.size
        before = Release(
            point, np.eye(size), np.zeros(size), 1.0, 1.0, None, 1.0, 1.0, limits, 0.1, degrees=3
        )
    taken = made.fitting(point, family, limits, SHARE, noise, last=False, before=before)
    return taken, SHARE


def hostile_units(rng, kind, who, p, size):
    """Rows of persons: equal ones up to what they may own, and mixed ones."""
    rows = hostile(rng, 16, size)
    rows[:12, 0] = 1.0
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=min(p + 1, 4))))
    corners = np.ones((len(signs), size))
    corners[:, 1 : 1 + min(p, 3)] = signs[:, 1:]
    corners[:, -1] = signs[:, 0]
    rows = np.concatenate([rows, corners])
    most = SOME_ROWS if who.person else who.contributions
    units = [np.repeat(row[None], most, axis=0) for row in rows]
    for _ in range(8):
        units.append(rows[rng.integers(0, len(rows), most)])
    if who.person:
        units += [row[None] for row in rows[::3]]
    return units


LOOKS = [
    *((what, name, "1e-6") for what in ("fitting", "last") for name in ("linear", "logit")),
    *((what, name, "0") for what in ("last", "locating") for name in ("linear", "trials")),
    ("fitting", "counts", "1e-6"),
    ("locating", "counts", "0"),
    ("box", "linear", "1e-6"),
    ("box", "trials", "0"),
]


@OF
@pytest.mark.parametrize(("what", "name", "delta"), LOOKS, ids=[", ".join(one) for one in LOOKS])
def test_no_neighbours_exceed_what_a_look_costs(name, what, who, delta, monkeypatch):
    told = tagged(monkeypatch)
    protection, kind, p = PROTECTIONS[who], KINDS[name], 3
    rng = np.random.default_rng([len(who), len(what)])
    size = p + 2 + bool(kind.most)
    plan = plan_of(protection, delta, p, others=bool(kind.most))
    units = hostile_units(rng, kind, protection, p, size)
    worst = 0.0
    for far, limits in ((1.0, (4.0, 1.0)), (2e3, (2.0, 0.02))):
        point = point_of(rng, kind, p, far=far, steep=0.5)
        sums = []
        for rows in [np.zeros((1, size)), *units]:
            owners = np.zeros(len(rows), dtype=int)
            made = table_of(rows, kind, plan, p, owners=owners)
            _, share = look_of(made, what, point, kind.family, limits)
            sums.append(cells_of(told.take()))
        empty, own = sums[0], plan.strength * share
        alone = [cost(one, empty) for one in sums]
        worst = max(worst, *alone)
        if protection.neighbors == "replace-one":
            far_out = np.argsort(alone)[-16:]
            for i, j in itertools.combinations(far_out, 2):
                worst = max(worst, cost(sums[i], sums[j]))
        if what == "box":
            break
    assert worst <= float(own) * (1 + 1e-9)
    assert worst > 0.1 * float(own), "nothing here is hostile"


@NOISE
@pytest.mark.parametrize("person", [None, "who"])
def test_a_factor_of_the_box_is_exclusive(person, delta, monkeypatch):
    """Dummies of one factor: only one is 1 in a row."""
    told = tagged(monkeypatch)
    who = Protection("replace-one", 1, person)
    plan = plan_of(who, delta, 3, exclusive=[(1, 2, 3)])
    corners = [
        np.array([[1.0, *(float(level == j) for j in range(3)), y]])
        for level in range(4)
        for y in (-1.0, 1.0)
    ]
    sums = []
    for rows in corners:
        if person:  # the response has no limit of its own: many rows reach it
            rows = np.repeat(rows, 4, axis=0)
        table_of(rows, KINDS["linear"], plan, 3, owners=np.zeros(len(rows), dtype=int)).box()
        sums.append(cells_of(told.take()))
    worst = max(cost(one, other) for one, other in itertools.combinations(sums, 2))
    own = float(plan.strength * plan.shares()[0])
    assert 0.2 * own < worst <= own * (1 + 1e-9)


# ---- units: what is released is what the record says -------------------------------------------


def some(rng, kind, n, size):
    z = rng.uniform(-1, 1, (n, size))
    z[:, 0] = 1.0
    return z


@NOISE
@pytest.mark.parametrize("person", [None, "who"])
def test_the_box_holds_the_moments_of_rows(person, delta, monkeypatch):
    tagged(monkeypatch)
    rng = np.random.default_rng(1)
    z = some(rng, KINDS["linear"], 300, 5)
    plan = plan_of(Protection("replace-one", 1, person), delta, 3)
    found = table_of(z, KINDS["linear"], plan, 3).box()
    np.testing.assert_allclose(found.cells, z.T @ z, atol=300 * 4e-6)
    assert found.noise_sd.shape == (5, 5)
    assert (found.noise_sd > 0).all()


@NOISE
@pytest.mark.parametrize("name", ["linear", "counts", "logit", "trials"])
@pytest.mark.parametrize("last", [False, True])
def test_a_fitting_look_releases_sums_in_the_units_of_its_record(name, last, delta, monkeypatch):
    told = tagged(monkeypatch)
    rng = np.random.default_rng(2)
    kind, p = KINDS[name], 2
    plan = plan_of(Protection("replace-one"), delta, p, others=1 + bool(kind.most))
    z = some(rng, kind, 400, p + 3 + bool(kind.most))
    made = table_of(z, kind, plan, p, offsets=1)
    A, S = limits = 9e4, 1e4
    point = point_of(rng, kind, p, far=0.5, steep=0.3)
    found, _ = look_of(made, "last" if last else "fitting", point, kind.family, limits)
    own = plain(_rows(made, point, kind, limits), np.rint(z.T * ONE))
    wbar = point.weight
    if found.middle is not None or delta != "0":
        information = (own.v * own.weight / wbar) @ own.v.T
        np.testing.assert_allclose(found.information, information, rtol=2e-3, atol=0.3)
    score = own.v * own.residual / np.sqrt(wbar)
    np.testing.assert_allclose(found.score, score.sum(axis=1), rtol=1e-3, atol=S * 4e-4)
    # The inner limit is so wide that it leaves all.
    np.testing.assert_allclose(found.rest, 0.0, atol=S * 4e-4)
    assert found.trace == pytest.approx((score**2).sum(), rel=0.02)
    if found.middle is not None:
        np.testing.assert_allclose(
            found.middle, score @ score.T, rtol=0.02, atol=0.02 * abs(found.trace)
        )
        assert found.trace == pytest.approx(np.trace(found.middle))
    # the record's noise is the noise: scales in units of the exact integers, times the unit
    tags = {(tag.draw, tag.place): tag for _, tag in told.take()}
    noise = plan.fit_noise(SHARE, last=last)
    # Of (s, c) = (m a + b, m a - b), of equal variance, the score is ((m + 1) s - (m - 1) c)/2 m.
    m = found.times
    assert m == (1 if plan.gaussian else 2)
    mixed = math.sqrt((m + 1) ** 2 + (m - 1) ** 2) / (2 * m)
    assert found.score_sd == pytest.approx(S * noise.score_sd * mixed)
    assert found.middle_sd == pytest.approx(S * S * noise.middle_sd)
    if noise.information_scales:
        assert found.information_sd == pytest.approx(A * noise.information_sd)
    if plan.gaussian:
        drawn = [tag.scale / 2**40 for tag in tags.values()]
        assert min(abs(one * S / found.score_sd - 1) for one in drawn) < 1e-9
    assert found.limits == limits
    cuts = limits[1] < farthest(found.point, kind.family, made.described)[1]
    assert found.cuts == cuts
    assert found.share == float(SHARE)
    assert found.degrees == (None if delta != "0" else 3)
    assert not found.together


@pytest.mark.parametrize("person", [None, "who"])
def test_far_limits_cut_nothing_of_rows_but_of_persons_for_all_one_knows(person, monkeypatch):
    tagged(monkeypatch)
    kind, rng = KINDS["linear"], np.random.default_rng(4)
    plan = plan_of(Protection("replace-one", 1, person), "1e-6", 2)
    made = table_of(some(rng, kind, 100, 4), kind, plan, 2)
    point = point_of(rng, kind, 2)
    found, _ = look_of(made, "fitting", point, kind.family, (1e9, 1e9))
    assert found.cuts == (person is not None)


def _rows(made, point, kind, limits, *, together=False):
    place, _ = place_of(
        point, kind.family, known=made.described.known, information=limits[0], score=limits[1],
        together=together,
    )  # fmt: skip
    return Rows(made.design, made.described, place)


@pytest.mark.parametrize("name", ["linear", "counts", "logit", "trials"])
def test_a_locating_look_releases_sums_in_the_units_of_its_record(name, monkeypatch):
    told = tagged(monkeypatch)
    rng = np.random.default_rng(3)
    kind, p = KINDS[name], 2
    plan = plan_of(Protection("replace-one"), "0", p, others=1 + bool(kind.most))
    z = some(rng, kind, 400, p + 3 + bool(kind.most))
    made = table_of(z, kind, plan, p, offsets=1)
    R, tau = limits = 300.0, 240.0
    point = point_of(rng, kind, p, far=0.5, steep=0.3)
    found, _ = look_of(made, "locating", point, kind.family, limits)
    own = plain(_rows(made, point, kind, limits, together=True), np.rint(z.T * ONE))
    wbar = point.weight
    information = (own.v * own.weight / wbar) @ own.v.T
    np.testing.assert_allclose(found.information, information, rtol=2e-3, atol=0.3)
    score = (own.v * own.residual).sum(axis=1) / np.sqrt(wbar)
    np.testing.assert_allclose(found.score, score, rtol=2e-3, atol=0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = np.nansum(np.where(own.held, own.residual**2 / own.weight, 0.0))
    count = found.information[0, 0] * (wbar if name == "linear" else 1.0)
    mean = max(np.trace(found.information), 1.0) / max(count, 1.0)
    assert found.trace == pytest.approx(squares * mean, rel=0.01)
    noise = plan.locating_noise(SHARE, 1.0)
    assert found.information_sd == pytest.approx(R * R * noise.sd[0, 1])
    assert found.score_sd == pytest.approx(R * tau * noise.sd[0, 3])
    assert found.middle_sd == pytest.approx(tau * tau * noise.sd[3, 3] * mean)
    assert found.together
    assert found.middle is None
    assert {tag.law for _, tag in told.take()} == {"wishart"}


def test_looks_at_no_columns_count(monkeypatch):
    tagged(monkeypatch)
    plan = plan_of(Protection("replace-one"), "1e-6", 0)
    z = np.array([[1.0, 0.5], [1.0, 0.25], [0.0, 0.0]])
    made = table_of(z, KINDS["linear"], plan, 0)
    np.testing.assert_allclose(made.box().cells, [[2, 0.75], [0.75, 0.3125]], atol=1e-5)
    none = np.zeros(0)
    point = Point(none, np.zeros((0, 0)), none, 0.25, 1.0, 1.0, none, none)
    found, _ = look_of(made, "fitting", point, KINDS["linear"].family, (4.0, 1.0))
    np.testing.assert_allclose(found.information, [[2.0]], atol=1e-5)
    np.testing.assert_allclose(found.score, [0.25], atol=1e-5)
