"""Sums over rows at a place: the exact integers, whatever holds them."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.look_rows import KINDS, chunk, hostile, rows_of, with_contrast

from dpreg.looks import table as module
from dpreg.looks.table import LookTally, exact_sums
from dpreg.sources.persons import PERSON


def slowly(k, f, *, together, matrix):
    """Python's integers."""
    d, at = len(k), range(len(k))
    k = [[int(cell) for cell in column] for column in k.T]
    f = [[int(cell) for cell in column] for column in f.T]
    information = tuple(
        tuple(sum(row[i] * row[j] for row in k) for j in range(d)) for i in range(d)
    )
    if together:
        score = tuple(sum(row[i] * own[0] for row, own in zip(k, f, strict=True)) for i in range(d))
        return information, score, sum(own[0] ** 2 for own in f)
    score = tuple(2**20 * sum(own[i] for own in f) for i in at)
    squares = tuple(tuple(sum(own[i] * own[j] for own in f) for j in at) for i in at)
    return information, score, squares if matrix else sum(squares[i][i] for i in range(d))


MIDDLES = [(False, False), (False, True), (True, False)]
KIND = pytest.mark.parametrize(("name", "times"), [("linear", 1), ("trials", 2), ("counts", 3)])
WAY = pytest.mark.parametrize(("together", "matrix"), MIDDLES, ids=["trace", "matrix", "locating"])


def of(tally, chunks):
    return exact_sums(tally, tally(enumerate(chunks)))


def same(one, other):
    mine = one.information, one.score, one.middle, one.contrast
    return mine == (other.information, other.score, other.middle, other.contrast)


def both_of(f, contrast, times):
    """Exact sums over rows of m a + b and m a - b, in units of 2**-40; a, b the parts of f."""
    a, b = (f + contrast) / 2, (f - contrast) / 2
    return [
        tuple(sum(int(cell) for cell in cells) * 2**20 for cells in of)
        for of in (times * a + b, times * a - b)
    ]


@WAY
@KIND
def test_sums_are_the_integers_in_any_chunks(name, times, together, matrix, monkeypatch):
    rng = np.random.default_rng(1)
    rows = rows_of(rng, KINDS[name], 3, offsets=1, together=together, far=4.0, times=times)
    z = hostile(rng, 500, rows.design.size)
    tally = LookTally(rows, matrix)
    k, f, contrast = with_contrast(rows.located(rows.cells(chunk(z))))
    information, score, middle = slowly(k, f, together=together, matrix=matrix)
    whole = of(tally, [chunk(z)])
    assert (whole.information, whole.middle) == (information, middle)
    both = [score, ()] if together else both_of(f, contrast, times)
    assert [whole.score, whole.contrast] == both
    assert together or times > 1 or whole.score == score
    assert whole.rows == 500
    monkeypatch.setattr(module, "PIECE", 64)
    monkeypatch.setattr(module, "_FLUSH", 3)
    for size in (1, 37, 499):
        pieces = [chunk(z[i : i + size]) for i in range(0, 500, size)]
        assert same(of(tally, pieces), whole)
    vectors = [tally(enumerate([chunk(z[:100])])), tally(enumerate([chunk(z[100:])]))]
    assert same(exact_sums(tally, vectors[0].astype(object) + vectors[1]), whole)


@WAY
@KIND
def test_persons_are_summed_whole(name, times, together, matrix, monkeypatch):
    rng = np.random.default_rng(2)
    rows = rows_of(rng, KINDS[name], 3, together=together, far=4.0, times=times)
    codes = np.repeat(np.arange(60), rng.integers(1, 9, 60))
    z = hostile(rng, len(codes), rows.design.size)
    tally = LookTally(rows, matrix, persons=True)
    k, f, contrast = with_contrast(rows.summed(rows.cells(chunk(z)), codes))
    information, score, middle = slowly(k, f, together=together, matrix=matrix)
    whole = of(tally, [chunk(z) | {PERSON: codes}])
    assert (whole.information, whole.middle) == (information, middle)
    both = [score, ()] if together else both_of(f, contrast, times)
    assert [whole.score, whole.contrast] == both
    monkeypatch.setattr(module, "PIECE", 16)
    monkeypatch.setattr(module, "_FLUSH", 5)
    parts = [
        chunk(z[codes // 7 == part]) | {PERSON: codes[codes // 7 == part] - 7 * part}
        for part in range(9)
    ]
    assert same(of(tally, parts), whole)


def test_more_rows_than_a_float_holds_the_squares_of_are_summed_exactly():
    rng = np.random.default_rng(6)
    rows = rows_of(rng, KINDS["linear"], 1, limits=(1.0, 1e-6))
    z = rng.uniform(0.5, 1.0, (40_001, rows.design.size))
    z[:, 0] = 1.0
    k, f, *_ = rows.located(rows.cells(chunk(z)))
    information, score, middle = slowly(k, f, together=False, matrix=True)
    assert information[0][0] > 2**53
    found = of(LookTally(rows, matrix=True), [chunk(z)])
    assert (found.information, found.score, found.middle) == (information, score, middle)


def test_sums_leave_int64_before_they_would_wrap(monkeypatch):
    """More rows at the limit than 2**63 holds the squares of: Python's integers hold them."""
    rng = np.random.default_rng(3)
    rows = rows_of(rng, KINDS["linear"], 1, limits=(1.0, 1e-6))
    z = np.ones((8192, rows.design.size))
    z[:, -1] = -1.0
    tally = LookTally(rows, matrix=False)
    once = of(tally, [chunk(z)])
    many = of(tally, [chunk(z)] * 1100)
    assert many.middle == 1100 * once.middle > 2**62
    assert many.information[0][0] == 1100 * once.information[0][0]
    assert many.rows == 1100 * 8192


def test_no_rows_have_no_sums_and_none_show():
    rows = rows_of(np.random.default_rng(4), KINDS["linear"], 2)
    tally = LookTally(rows, matrix=True)
    empty = of(tally, [])
    assert (empty.rows, empty.score) == (0, (0, 0, 0))
    z = np.ones((3, rows.design.size))
    shown = repr(of(tally, [chunk(z)]))
    assert not any(character.isdigit() for character in shown.split(" at ")[0])
