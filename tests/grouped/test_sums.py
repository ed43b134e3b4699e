"""Sums over codes are those of dense rows, bit for bit, also where int64 has to be emptied."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpreg import grouped as room
from dpreg.grouped import CodedRows, Group, GroupedCells, Layout, Slots, Sums

ONE = 1 << 20


def layouts(rng: np.random.Generator) -> Layout:
    """Shuffle columns into groups; the constant and the response stay."""
    widths = rng.integers(1, 5, size=rng.integers(0, 4))
    size = 3 + int(widths.sum())
    shuffled = rng.permutation(np.arange(1, size - 1))
    groups, start = [], 1
    for width in widths.tolist():
        places = shuffled[start : start + width]
        start += width
        rest = rng.choice([0, -ONE, ONE, 12345], size=width)
        groups.append(Group(places, rest))
    return Layout(size, tuple(groups))


def rows_of(layout: Layout, count: int, rng: np.random.Generator) -> tuple[object, ...]:
    """Draw coded rows, and the dense rows that they mean, as integers."""
    z = rng.integers(-ONE, ONE + 1, size=(count, layout.size))
    z[:, 0] = ONE
    complete = rng.random(count) < 0.8
    slots = []
    for group in layout.groups:
        width = len(group.places)
        codes = np.where(complete, rng.integers(-1, width, size=count), -1)
        values = rng.integers(-ONE, ONE + 1, size=count)
        z[:, group.places] = group.rest
        named = np.flatnonzero(codes >= 0)
        z[named, group.places[codes[named]]] = values[named]
        slots.append(Slots(codes, values.astype(float)))
    z[~complete] = 0
    return z, z[:, layout.dense].astype(float), slots


def summed(layout: Layout, sets: int, parts: Iterator[tuple[object, ...]]) -> list[GroupedCells]:
    sums = Sums(layout, sets)
    for cells, slots, labels in parts:
        sums.add(CodedRows(cells, tuple(slots)), labels)
    return [GroupedCells(layout, vector) for vector in sums.vectors()]


def check(seed: int, sets: int, pieces: int) -> None:
    rng = np.random.default_rng(seed)
    layout = layouts(rng)
    wanted = np.zeros((sets, layout.size, layout.size), dtype=object)
    parts = []
    for _ in range(pieces):
        z, cells, slots = rows_of(layout, int(rng.integers(0, 30)), rng)
        labels = None if sets == 1 else rng.integers(sets, size=len(z))
        for one in range(sets):
            some = z if labels is None else z[labels == one]
            wanted[one] += some.T @ some
        parts.append((cells, slots, labels))
    for found, exact in zip(summed(layout, sets, iter(parts)), wanted, strict=True):
        assert tuple(found) == tuple(map(tuple, exact.tolist()))


@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(0, 4))
def test_equal_to_the_dense_sums(seed: int, sets: int, pieces: int) -> None:
    check(seed, sets, pieces)


@given(st.integers(0, 2**32), st.integers(1, 3))
def test_flushes_change_nothing(seed: int, sets: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "_MOST_ROWS", 20)
        check(seed, sets, 4)


def test_right_beyond_int64(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two groups whose cells are all of the largest modulus, on more than 2**23 rows."""
    places = (np.array([1]), np.array([2]))
    groups = tuple(Group(place, np.array([0])) for place in places)
    layout = Layout(4, groups)
    rows = 1 << 18
    codes = np.zeros(rows, dtype=np.intp)
    slots = (Slots(codes, np.full(rows, -float(ONE))), Slots(codes, np.full(rows, float(ONE))))
    sums = Sums(layout, 1)
    times = 33
    for _ in range(times):
        sums.add(CodedRows(np.full((rows, 2), float(ONE)), slots))
    top = times * rows << 40
    assert top > 2**63
    (vector,) = sums.vectors()
    cells = GroupedCells(layout, vector)
    assert tuple(cells) == (
        (top, -top, top, top),
        (-top, top, -top, -top),
        (top, -top, top, top),
        (top, -top, top, top),
    )


def test_right_beyond_int64_where_the_rest_is_not_zero() -> None:
    group = Group(np.array([1, 2]), np.array([ONE, -ONE]))
    layout = Layout(4, (group,))
    rows, times = 1 << 18, 33
    sums = Sums(layout, 1)
    slots = (Slots(np.zeros(rows, dtype=np.intp), np.full(rows, -float(ONE))),)
    for _ in range(times):
        sums.add(CodedRows(np.full((rows, 2), float(ONE)), slots))
    top = times * rows << 40
    assert top > 2**63
    (vector,) = sums.vectors()
    assert tuple(GroupedCells(layout, vector)) == (
        (top, -top, -top, top),
        (-top, top, top, -top),
        (-top, top, top, -top),
        (top, -top, -top, top),
    )
