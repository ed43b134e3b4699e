"""Rows at a point: their own, bit for bit, and within the limits, whatever the cells are."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from oracles.look_rows import (
    FULL,
    KINDS,
    ONE,
    Stored,
    chunk,
    hostile,
    plain,
    rows_of,
    squares,
    with_contrast,
)

from dpreg.errors import ArgumentError
from dpreg.formula.design import build_design
from dpreg.looks import rows as module
from dpreg.looks.coordinates import Point, place_of
from dpreg.looks.families import Linear
from dpreg.looks.records import Described, Told
from dpreg.looks.rows import Rows, made_once
from dpreg.moments import read_moments
from dpreg.schema import Schema
from dpreg.sources import as_source
from dpreg.sources.reader import Reader

KIND = pytest.mark.parametrize("name", KINDS)
TOGETHER = pytest.mark.parametrize("together", [False, True], ids=["fitting", "locating"])


def located(rows, z):
    return with_contrast(rows.located(rows.cells(chunk(z))))


def width(rows):
    return rows.design.size


def longest_parts(f, contrast, times):
    """Exact squared lengths of both parts of scores, in units of what they may be."""
    parts = (f + contrast) / 2, (f - contrast) / 2
    assert all((part == np.rint(part)).all() for part in parts)
    room = Fraction(FULL, (1 + times) ** 2)
    return [max(squares(part)) / (room * m**2) for part, m in zip(parts, (1, times), strict=True)]


# ---- statement 1: a row's integers are its own -------------------------------------------------


@TOGETHER
@KIND
@pytest.mark.parametrize("seed", range(3))
def test_a_row_has_the_same_bits_in_any_chunk_and_order(name, together, seed):
    rng = np.random.default_rng([1, seed])
    rows = rows_of(rng, KINDS[name], 5, offsets=1, together=together, steep=2.0)
    z = hostile(rng, 333, width(rows))
    whole = located(rows, z)
    for size in (1, 2, 3, 7, 64):
        pieces = [located(rows, z[i : i + size]) for i in range(0, 333, size)]
        for at in range(3):
            joined = np.concatenate([piece[at] for piece in pieces], axis=1)
            assert joined.tobytes() == np.ascontiguousarray(whole[at]).tobytes()
    order = rng.permutation(333)
    for found, once in zip(located(rows, z[order]), whole, strict=True):
        assert found.tobytes() == np.ascontiguousarray(once[:, order]).tobytes()


def digest_of_rows():
    """Of integers of many rows of every kind, for processes to compare."""
    digest = hashlib.sha256()
    for name, kind in KINDS.items():
        rng = np.random.default_rng(len(name))
        for together in (False, True):
            rows = rows_of(rng, kind, 12, offsets=1, together=together, steep=2.0)
            for found in located(rows, hostile(rng, 9000, width(rows))):
                digest.update(np.ascontiguousarray(found).tobytes())
    return digest.hexdigest()


def test_threads_of_the_blas_change_no_bit():
    code = "from looks.test_rows import digest_of_rows as made; print(made())"
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ
            | {"OPENBLAS_NUM_THREADS": threads, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "4")
    }
    assert len(told) == 1


# ---- statement 2: no row leaves its limits -----------------------------------------------------


@TOGETHER
@KIND
@pytest.mark.parametrize("seed", range(8))
def test_no_row_leaves_its_limits(name, together, seed):
    rng = np.random.default_rng([2, seed])
    p, far = int(rng.integers(1, 7)), 10.0 ** rng.uniform(-3, 9)
    rows = rows_of(
        rng, KINDS[name], p, offsets=seed % 3, together=together, far=far,
        steep=10.0 ** rng.uniform(-1, 2), times=1 + seed % 3,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        k, f, contrast = located(rows, hostile(rng, 1500, width(rows)))
    assert k.shape == (p + 1, 1500)
    assert max(squares(k)) <= FULL
    assert contrast.shape == ((0 if together else p + 1), 1500)
    if together:
        assert f.shape == (1, 1500)
        assert (f == np.rint(f)).all()
        assert np.abs(f).max() <= ONE
    else:
        assert max(squares(f)) <= FULL
        assert max(longest_parts(f, contrast, 1 + seed % 3)) <= 1


def longest(floats):
    """Exact squared length of the longest column."""
    return max(sum(Fraction(cell) ** 2 for cell in column) for column in floats.T.tolist())


@TOGETHER
@KIND
def test_no_information_is_too_long_before_it_is_truncated(name, together, monkeypatch):
    """Truncation would hide what roundings lose: by chance alone, half of these are too long."""
    rng = np.random.default_rng(9)
    rows = rows_of(rng, KINDS[name], 4, together=together, far=9.0, limits=(0.01, 1e9))
    z = hostile(rng, 400, width(rows))
    monkeypatch.setattr(np, "trunc", lambda cells, out=None: cells)
    k, *_ = located(rows, z)
    assert 0.999 * FULL < longest(k) <= FULL


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("by_person", [False, True], ids=["rows", "persons"])
@KIND
def test_no_part_of_a_score_is_too_long_before_it_is_truncated(name, by_person, times, monkeypatch):
    rng = np.random.default_rng([9, times])
    limits = (1e9, 1e-3 * KINDS[name].family.cap ** 0.5)
    rows = rows_of(rng, KINDS[name], 4, far=9.0, limits=limits, times=times)
    z, given = hostile(rng, 400, width(rows)), []
    parts = module._of_parts
    monkeypatch.setattr(module, "_of_parts", lambda *args: given.append(args) or parts(*args))
    if by_person:
        of_persons(rows, z, np.arange(400))
    else:
        located(rows, z)
    ((ways, inner, outer),) = given
    for part, m in ((inner, 1), (outer, times)):
        assert 0.99 < longest(ways * part) / Fraction(FULL * m * m, (1 + times) ** 2) <= 1


@pytest.mark.parametrize("times", [1, 2])
@TOGETHER
@KIND
def test_limits_are_reached(name, together, times):
    """A limit that nothing comes near would hide that another one holds."""
    rng = np.random.default_rng(3)
    limits = (2.0, 1e-3)
    rows = rows_of(rng, KINDS[name], 3, together=together, far=50.0, limits=limits, times=times)
    k, f, contrast = located(rows, hostile(rng, 3000, width(rows)))
    assert together or max(squares(k)) > 0.999 * FULL
    assert max(squares(f)) > 0.999 * FULL
    assert together or min(longest_parts(f, contrast, times)) > 0.998
    if together:  # where the score's limit is wide the other one is met
        rows = rows_of(rng, KINDS[name], 3, together=True, far=50.0, limits=(2.0, 1e9))
        assert max(squares(located(rows, hostile(rng, 3000, width(rows)))[0])) > 0.999 * FULL


# ---- what rows come to -------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2])
@KIND
def test_a_fitting_look_is_information_and_score(name, times):
    rng = np.random.default_rng(4)
    kind = KINDS[name]
    limits = (8.0, 6.0 * kind.family.cap**0.5)
    rows = rows_of(rng, kind, 3, offsets=1, far=2.0, steep=0.5, limits=limits, times=times)
    cells = rows.cells(chunk(hostile(rng, 800, width(rows))))
    own = plain(rows, cells)
    k, f, contrast = with_contrast(rows.located(cells))
    length = np.sqrt((own.v**2).sum(axis=0))
    root, A, S = rows.place.weight**0.5, *limits
    h = np.minimum(np.sqrt(own.weight) / (root * A**0.5), 1 / length) * own.held
    np.testing.assert_allclose(k / ONE, own.v * h, atol=2e-6, rtol=1e-9)

    def limited(limit):
        drawn = own.residual / (root * S)
        if kind.family.blind:  # the factor is the same whatever the response
            drawn *= np.minimum(root * limit / (np.maximum(own.farthest, 1e-9) * length), 1)
        else:
            drawn = np.clip(drawn, -limit / S / length, limit / S / length)
        return own.v * drawn * own.held

    np.testing.assert_allclose(f / ONE, limited(S), atol=2e-6, rtol=1e-9)
    inner = (f + contrast) / (2 * ONE)
    np.testing.assert_allclose(inner, limited(S / (1 + times)), atol=2e-6, rtol=1e-9)
    free = np.abs(own.residual) * length < root * S
    assert 0.02 < (free & own.held).mean() < 0.98


@KIND
def test_a_locating_look_has_one_weight_for_both(name):
    rng = np.random.default_rng(5)
    kind = KINDS[name]
    R, tau = limits = 1.2, 0.8
    rows = rows_of(rng, kind, 3, offsets=1, far=2.0, steep=0.5, together=True, limits=limits)
    cells = rows.cells(chunk(hostile(rng, 800, width(rows))))
    own = plain(rows, cells)
    k, f, *_ = rows.located(cells)
    length, wbar = np.sqrt((own.v**2).sum(axis=0)), rows.place.weight
    omega = np.minimum(1, R**2 * wbar / (np.maximum(own.weight, 1e-300) * length**2))
    if kind.family.blind:
        omega = np.minimum(omega, tau**2 * own.weight / np.maximum(own.farthest, 1e-9) ** 2)
    expected = own.v * np.sqrt(omega * own.weight / wbar) / R * own.held
    np.testing.assert_allclose(k / ONE, expected, atol=2e-6, rtol=1e-9)
    with np.errstate(divide="ignore", invalid="ignore"):
        clipped = np.clip(np.sqrt(omega / own.weight) * own.residual / tau, -1, 1)
    found, whole = f[0] / ONE, np.where(own.held, clipped, 0.0)
    np.testing.assert_allclose(found, whole, atol=2e-6, rtol=1e-9)
    assert (omega[own.held] < 1).any()


@TOGETHER
@pytest.mark.parametrize("name", ["logit", "trials"])
def test_the_limit_of_a_blind_family_does_not_see_the_response(name, together):
    """Score over residual is one number for every response there can be."""
    rng = np.random.default_rng(6)
    rows = rows_of(rng, KINDS[name], 3, far=9.0, together=together, limits=(2.0, 0.05))
    z = hostile(rng, 400, width(rows))
    z[:, 0] = 1.0
    found = []
    for answer in (-1.0, 1.0):
        z[:, -1] = answer
        cells = rows.cells(chunk(z))
        k, f, *_ = rows.located(cells)
        own = plain(rows, cells)
        seen = own.held & (np.abs(own.residual) > 0.02 * own.farthest)
        found.append((k, f / np.where(seen, own.residual, np.nan)))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    both = np.isfinite(found[0][1]).all(axis=0) & np.isfinite(found[1][1]).all(axis=0)
    assert both.sum() > 50
    scale = np.abs(found[0][1][:, both]).max(axis=0)
    gap = np.abs(found[0][1] - found[1][1])[:, both] / scale
    assert gap.max() < 0.01


@TOGETHER
@pytest.mark.parametrize(("name", "cell"), [("logit", 0.5), ("counts", 0.25), ("trials", 0.25)])
def test_a_response_beyond_its_cap_counts_as_its_cap(name, cell, together):
    """A design may declare more than the family allows: `cell` is where its own cap lies."""
    kind = KINDS[name]
    cap = 2 * kind.family.cap if name == "trials" else kind.family.cap
    described = replace(kind.described(1), response=(0.0, cap / cell))
    flat = np.zeros(1)
    point = Point(flat, np.eye(1), flat, 0.3, 1.0, 1.0, flat, flat)
    place, _ = place_of(point, kind.family, information=4.0, score=99.0, together=together)
    z = np.ones((3, 3 + (described.trials is not None)))
    z[:, 1] = 0.5
    if described.trials is not None:
        z[:, 2] = 2 * cap / kind.most - 1
    z[:, -1] = cell, 1.01 * cell, 1.2 * cell
    _, f, _ = located(Rows(Stored(z.shape[1]), described, place), z)
    assert f[:, 0].any()
    np.testing.assert_array_equal(f, f[:, :1].repeat(3, axis=1))


@TOGETHER
@KIND
def test_rows_without_an_answer_count_for_nothing(name, together):
    rng = np.random.default_rng(7)
    rows = rows_of(rng, KINDS[name], 2, together=together)
    z = hostile(rng, 50, width(rows))
    z[:, 0] = 0.0
    for found in located(rows, z):
        assert not found.any()
    if KINDS[name].most:
        z[:, 0], z[:, -2] = 1.0, -1.0  # no trials
        for found in located(rows, z):
            assert not found.any()


def test_offsets_move_the_predictor_and_are_no_column():
    rng = np.random.default_rng(8)
    rows = rows_of(rng, KINDS["counts"], 2, offsets=2, far=0.1, steep=0.1, limits=(5e4, 1e4))
    z = np.zeros((2, width(rows)))
    z[:, 0], z[1, 3] = 1.0, -0.5  # the first offset
    cells = rows.cells(chunk(z))
    k, *_ = rows.located(cells)
    assert len(k) == 3
    one, other = plain(rows, cells).weight
    assert k[0, 0] / k[0, 1] == pytest.approx(np.sqrt(one / other), rel=1e-4)
    assert one != pytest.approx(other, rel=0.05)


def test_rows_hold_public_facts_alone():
    rng = np.random.default_rng(9)
    rows = rows_of(rng, KINDS["logit"], 2)
    z = hostile(rng, 20, width(rows))
    again = pickle.loads(pickle.dumps(rows))
    assert again == rows
    assert "array" not in repr(rows)
    for one, other in zip(located(rows, z), located(again, z), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_does_not_fit_together_is_refused():
    rng = np.random.default_rng(10)
    rows = rows_of(rng, KINDS["linear"], 2)
    with pytest.raises(ArgumentError, match="other columns"):
        Rows(Stored(5), Described((1, 2, 3)), rows.place)
    for columns, offsets in (((1, 1), ()), ((1, 2), (2,)), ((0, 1), ())):
        with pytest.raises(ArgumentError, match="different indices"):
            Described(columns, offsets)


def test_trials_are_whole_and_within_their_most():
    cells = np.array([[ONE] * 4, [-ONE, 0, ONE, 3]], dtype=float)
    assert Told(1, (20.0, 20.0), 30.0, True).of(cells).tolist() == [0, 20, 30, 20]
    assert Told(1, (-5.0, 5.0), 30.0, True).of(cells).tolist() == [0, 0, 0, 0]


@TOGETHER
def test_a_weight_is_a_part_of_the_largest_and_its_rows_are_limited_like_others(together):
    """Whatever its cell says: below 0 it is 0, and the row counts for nothing."""
    cells = np.array([[ONE] * 4, [-ONE, 0, ONE / 4, ONE]], dtype=float)
    own = Told(1, (0.5, 1.0))
    assert own.of(cells).tolist() == [0.0, 0.5, 0.75, 1.0]
    rng = np.random.default_rng(12)
    plain_ = rows_of(rng, KINDS["linear"], 3, offsets=1, together=together, limits=(2.0, 1e-3))
    own = Told(plain_.described.offsets[0], (0.0, 3.0))
    rows = Rows(plain_.design, replace(plain_.described, weights=own), plain_.place)
    z = hostile(rng, 400, width(rows))
    k, f, contrast = located(rows, z)
    assert max(squares(k)) <= FULL
    assert max(squares(f)) <= FULL
    none = own.of(rows.cells(chunk(z))) == 0.0
    assert 20 < none.sum() < 380
    assert not k[:, none].any()
    assert not f[:, none].any()
    assert together or not contrast[:, none].any()
    assert k[:, ~none].any()
    summed = rows.summed(rows.cells(chunk(z)), np.arange(400) // 2)
    assert max(person_squares(summed[0], np.arange(400) // 2, 200)) <= FULL
    assert not np.isnan(summed[1]).any()
    pieces = [located(rows, z[i : i + 7]) for i in range(0, 400, 7)]
    assert np.concatenate([piece[1] for piece in pieces], axis=1).tobytes() == f.tobytes()


# ---- persons -----------------------------------------------------------------------------------


def of_persons(rows, z, codes):
    codes = np.asarray(codes, dtype=np.int64)
    return with_contrast(rows.summed(rows.cells(chunk(z)), codes))


def person_squares(found, codes, persons):
    """Exact sums of squares of the integers of each person's rows."""
    total = [0] * persons
    for own, code in zip(squares(found), codes, strict=True):
        total[code] += own
    return total


def test_a_person_whose_score_may_be_saturated_has_none(monkeypatch):
    rng = np.random.default_rng(5)
    rows = rows_of(rng, KINDS["logit"], 3, limits=(1e30, 1e-12))
    z = hostile(rng, 200, width(rows))
    _, f, _ = of_persons(rows, z, np.arange(200) // 2)
    assert f.any()
    monkeypatch.setattr(module, "MOST", 2**30)  # what one row can reach
    k, f, contrast = of_persons(rows, z, np.arange(200) // 2)
    assert not k.any()
    assert not f.any()
    assert not contrast.any()


@TOGETHER
@KIND
@pytest.mark.parametrize("seed", range(8))
def test_no_person_leaves_the_limits_however_many_rows(name, together, seed):
    rng = np.random.default_rng([11, seed])
    p, far = int(rng.integers(1, 6)), 10.0 ** rng.uniform(-2, 9)
    rows = rows_of(
        rng,
        KINDS[name],
        p,
        offsets=seed % 2,
        together=together,
        far=far,
        steep=3.0,
        times=1 + seed % 3,
    )
    owned = rng.choice([1, 2, 7, 400], 12)
    codes = np.repeat(np.arange(12), owned)
    z = hostile(rng, len(codes), width(rows))
    if seed % 2:  # rows all of one kind add up
        z = z[codes]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        k, f, contrast = of_persons(rows, z, codes)
    assert max(person_squares(k, codes, 12)) <= FULL
    if together:
        assert f.shape == (1, len(codes))
        assert max(person_squares(f, codes, 12)) <= FULL
    else:
        assert f.shape == contrast.shape == (p + 1, 12)
        assert max(squares(f)) <= FULL
        assert max(longest_parts(f, contrast, 1 + seed % 3)) <= 1


@TOGETHER
@pytest.mark.parametrize("p", [1, 9])
@pytest.mark.parametrize("copies", [1, 20, 3000])
@pytest.mark.parametrize("name", ["linear", "logit"])
def test_a_saturated_sum_is_no_limit_and_counts_for_nothing(name, copies, p, together):
    """A factor made of a saturated sum would be too large."""
    point = Point(
        np.zeros(p), np.eye(p) * 2.0**20, np.zeros(p), 0.0, 1.0, 1.0, np.ones(p), np.ones(p)
    )
    kind = KINDS[name]
    place, _ = place_of(point, kind.family, information=2.0, score=1e-6, together=together)
    rows = Rows(Stored(p + 2), kind.described(p), place)
    codes = np.zeros(copies, dtype=int)
    k, f, _ = of_persons(rows, np.ones((copies, p + 2)), codes)
    (squared,) = person_squares(k, codes, 1)
    assert squared <= FULL
    if copies < 2000:
        assert together or squared > 0.99 * FULL
        assert together or 0 < max(squares(f)) <= FULL
    else:
        assert squared == 0
    if together:
        assert person_squares(f, codes, 1)[0] <= FULL


@TOGETHER
@KIND
def test_other_persons_change_no_bit(name, together):
    rng = np.random.default_rng(12)
    rows = rows_of(rng, KINDS[name], 3, together=together, far=3.0)
    codes = np.repeat(np.arange(40), rng.integers(1, 9, 40))
    z = hostile(rng, len(codes), width(rows))
    k, f, _ = of_persons(rows, z, codes)
    for person in range(40):
        mine = codes == person
        own_k, own_f, _ = of_persons(rows, z[mine], np.zeros(mine.sum()))
        assert own_k.tobytes() == np.ascontiguousarray(k[:, mine]).tobytes()
        at = mine if together else [person]
        assert own_f.tobytes() == np.ascontiguousarray(f[:, at]).tobytes()
    order = rng.permutation(len(codes))
    mixed_k, mixed_f, _ = of_persons(rows, z[order], codes[order])
    assert (mixed_k == k[:, order]).all()
    assert (mixed_f == (f[:, order] if together else f)).all()


@TOGETHER
@KIND
def test_what_is_missing_in_a_person_s_rows_counts_for_nothing(name, together):
    rng = np.random.default_rng(15)
    rows = rows_of(rng, KINDS[name], 2, together=together, limits=(90.0, 1e6))
    z = rng.uniform(0.1, 0.9, (2, width(rows)))
    z[:, 0] = 1.0, 0.0
    k, f, _ = of_persons(rows, z, np.zeros(2))
    alone_k, alone_f, _ = of_persons(rows, z[:1], np.zeros(1))
    assert k[:, 1].any() == 0 < np.abs(k[:, 0]).max()
    np.testing.assert_array_equal(k[:, :1], alone_k)
    np.testing.assert_array_equal(f[:, :1], alone_f)
    assert not f[:, 1:].any()


@TOGETHER
@pytest.mark.parametrize("name", ["linear", "counts"])
def test_a_person_of_one_near_row_is_that_row(name, together):
    """The same maps, but for the last digit: limits that do not bind change nothing."""
    rng = np.random.default_rng(13)
    rows = rows_of(rng, KINDS[name], 3, together=together, far=0.3, limits=(90.0, 1e6))
    z = hostile(rng, 60, width(rows))
    both = list(zip(located(rows, z), of_persons(rows, z, np.arange(60)), strict=True))
    for one, other in both[: 2 if together else 3]:  # a locating look has no contrast
        assert np.abs(one - other).max() <= 2
        assert np.abs(one).max() > 0


@pytest.mark.parametrize("times", [1, 2])
def test_a_part_of_the_limit_of_a_person_is_that_part(times):
    """The inner part is the sum over a person's rows, limited to a part of what the score is."""
    rng = np.random.default_rng(16)
    rows = rows_of(rng, KINDS["linear"], 3, far=0.3, limits=(1e6, 3.0), times=times)
    codes = np.repeat(np.arange(80), 4)
    z = rng.uniform(-1, 1, (320, width(rows)))
    z[:, 0] = 1.0
    own = plain(rows, rows.cells(chunk(z)))
    total = np.array([
        (own.v * own.residual)[:, codes == one].sum(axis=1) for one in range(80)
    ]).T / rows.place.weight**0.5 / 3.0  # fmt: skip
    length = np.linalg.norm(total, axis=0)
    assert 5 < (length > 0.5).sum() < 75
    _, f, contrast = of_persons(rows, z, codes)
    for limit, found in ((1 / (1 + times), (f + contrast) / 2), (1.0, f)):
        wanted = total * np.minimum(1.0, limit / length)
        np.testing.assert_allclose(found / ONE, wanted, atol=2e-5)


@TOGETHER
@KIND
def test_one_factor_serves_all_rows_of_a_person(name, together):
    """Rows of a person keep their proportions, and sums come before limits."""
    rng = np.random.default_rng(14)
    kind = KINDS[name]
    limits = (1.5, 0.7) if kind.family.cap < 1e5 else (1e4, 1e4)
    rows = rows_of(rng, kind, 2, together=together, far=2.0, steep=0.3, limits=limits)
    z = hostile(rng, 30, width(rows))
    z[:, 0] = 1.0
    cells = rows.cells(chunk(z))
    own = plain(rows, cells)
    codes = np.zeros(30)
    k, f, *_ = rows.summed(cells, codes.astype(np.int64))
    unlimited = own.v * np.sqrt(own.weight) * own.held
    ratio = (k * unlimited).sum() / (unlimited**2).sum()
    share = ratio / ONE * (rows.place.weight * rows.place.information) ** 0.5
    np.testing.assert_allclose(k, ratio * unlimited, atol=3, rtol=1e-5)
    if together:
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(own.held, own.residual / np.sqrt(own.weight), 0.0)
        ratio = (f[0] * each).sum() / (each**2).sum()
        np.testing.assert_allclose(f[0], ratio * each, atol=4, rtol=1e-5)
        return
    score = (own.v * own.residual * own.held).sum(axis=1)
    root, S = rows.place.weight**0.5, rows.place.score
    length = np.linalg.norm(score)
    if kind.family.blind:
        each = own.farthest * np.sqrt((own.v**2).sum(axis=0)) * own.held
        length = each.sum()
    expected = score / (root * S) * min(share**2, root * S / length)
    np.testing.assert_allclose(f[:, 0] / ONE, expected, atol=2e-4, rtol=1e-4)


def test_a_person_counts_as_little_in_the_score_as_in_the_information():
    """Else H of persons with many rows is too small, and every step too long."""
    point = Point(np.zeros(1), np.eye(1), np.zeros(1), 0.0, 1.0, 1.0, np.ones(1), np.ones(1))
    place, _ = place_of(point, Linear(), information=4.0, score=1e3)
    rows = Rows(Stored(3), Described((1,)), place)
    z = np.tile([[1.0, 1.0, 0.5], [1.0, -1.0, -0.5]], (10, 1))  # y = x / 2
    k, f, _ = of_persons(rows, z, np.zeros(20))
    H, s = 4.0 * (k @ k.T) / ONE**2, 1e3 * f[:, 0] / ONE
    assert np.trace(H) == pytest.approx(4.0, rel=1e-4)
    np.testing.assert_allclose(np.linalg.solve(H, s), [0.0, 0.5], atol=1e-3)


def test_rows_of_a_person_that_cancel_cancel_before_the_limit():
    point = Point(np.zeros(1), np.eye(1), np.zeros(1), 0.0, 1.0, 1.0, np.ones(1), np.ones(1))
    place, _ = place_of(point, Linear(), information=9.0, score=0.1)
    rows = Rows(Stored(3), Described((1,)), place)
    z = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0], [1.0, 0.5, 0.01]])
    _, f, _ = of_persons(rows, z, np.zeros(3))
    np.testing.assert_allclose(f[:, 0] / ONE, [0.1, 0.05], atol=1e-4)


def test_rows_that_are_kept_are_the_rows():
    """Moments and cells are the same integers, at the first pass and after it."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.normal(size=9_000), "y": rng.normal(size=9_000)})
    frame["g"] = rng.integers(0, 3, 9_000).astype(str)
    frame.loc[::9, "x"] = np.nan
    schema = Schema.from_any({"x": (-2, 3), "y": (-4, 4), "g": ["0", "1", "2"]})
    design = build_design("y ~ x + g", schema)
    reader = Reader(as_source(lambda: [frame[:5_000], frame[5_000:]]), False)
    reader.settle(design.types)
    reader.require(3)
    kept, vectors = made_once(reader, design)

    class Cells:
        def __call__(self, chunks):
            found = [
                vectors.cells(chunk).sum(axis=0) @ range(1, design.size + 1) for _, chunk in chunks
            ]
            return np.array([int(sum(found))], dtype=object)

    whole = {name: np.asarray(values) for name, values in frame.items()}
    (plain,) = read_moments(Reader(as_source(frame)), design)
    codes = {**whole, "g": frame["g"].astype(int).to_numpy(np.int32)}
    total = int(design.cells(codes).sum(axis=0) @ range(1, design.size + 1))
    for _ in range(2):
        (found,) = read_moments(kept, vectors)
        assert found.rows == 9_000
        assert found.cells == plain.cells
        assert kept.total(vectors.types, Cells(), "cells") == [total]
