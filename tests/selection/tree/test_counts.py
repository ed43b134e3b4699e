"""Cells against all their models, listed."""

import math
from itertools import product

import numpy as np
import pytest

from dpreg.selection.space import Space
from dpreg.selection.tree.counts import Cell, Counts, binomials, members
from dpreg.selection.tree.noise import Bits


def random_counts(rng: np.random.Generator) -> Counts:
    q = int(rng.integers(0, 7))
    widths = rng.choice([1, 1, 2, 3], size=q)
    starts = 1 + np.concatenate([[0], np.cumsum(widths)])
    columns = tuple(tuple(range(a, a + w)) for a, w in zip(starts, widths, strict=False))
    most = None if rng.random() < 0.5 else int(rng.integers(0, q + 1))
    requires: tuple[tuple[int, ...], ...] = ()
    if q >= 3 and rng.random() < 0.5:
        requires = tuple(() if u < 2 else (0,) if u % 2 else (0, 1) for u in range(q))
    space = Space(tuple(f"u{u}" for u in range(q)), columns, (0,), most, requires)
    return Counts(space, int(rng.choice([0, 3])), int(rng.choice([0, 2])))


def check(counts: Counts, cell: Cell, rng: np.random.Generator, bits: Bits) -> None:
    """Compare a cell with its models listed; split it and go on."""
    models = [m for m in range(1 << counts.units) if counts.holds(cell, m)]
    assert counts.size(cell) == len(models)
    if not models:
        return
    assert counts.penalty(cell) <= min(counts.penalty_of(m) for m in models)
    assert all(counts.draw(cell, bits) in models for _ in range(3))
    if cell.lo < cell.hi and rng.random() < 0.4:
        parts = counts.halves(cell)
    elif cell.free:
        unit = int(rng.choice(members(cell.free)))
        parts = (counts.with_unit(cell, unit), counts.without_unit(cell, unit))
    else:
        return
    inside = [sum(counts.holds(part, m) for part in parts) for m in models]
    assert max(inside) <= 1
    for model, held in zip(models, inside, strict=True):
        assert held or not counts.is_model(model)  # only phantoms are dropped
    for part in parts:
        check(counts, part, rng, bits)


@pytest.mark.parametrize("seed", range(120))
def test_cells_count_draw_and_split_their_models(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = random_counts(rng)
    check(counts, counts.root(), rng, Bits(rng))


@pytest.mark.parametrize("least", [0, 3])
def test_draws_from_a_cell_are_uniform(least: int) -> None:
    space = Space(tuple("abcdef"), ((1,), (2, 3), (4,), (5, 6), (7,), (8,)), (0,), 4)
    counts = Counts(space, 1, 1)
    cell = counts.without_unit(counts.root(), 4)
    cell = counts.halves(cell)[1] if least else cell
    assert cell.lo == least
    models = [m for m in range(64) if counts.holds(cell, m)]
    bits = Bits(np.random.default_rng(0))
    seen = dict.fromkeys(models, 0)
    for _ in range(200 * len(models)):
        seen[counts.draw(cell, bits)] += 1
    statistic = sum((x - 200) ** 2 / 200 for x in seen.values())
    degrees = len(models) - 1
    assert statistic < degrees + 6 * math.sqrt(2 * degrees)


@pytest.mark.parametrize("gone", [1, 9, 14])
def test_draws_without_those_gone_are_uniform(gone: int) -> None:
    space = Space(tuple("abcde"), ((1,), (2, 3), (4,), (5,), (6,)), (0,), 2)
    counts = Counts(space, 1, 1)
    cell = counts.root()
    models = [m for m in range(32) if counts.holds(cell, m)]
    taken, left = frozenset(models[:gone]), models[gone:]
    bits = Bits(np.random.default_rng(gone))
    seen = dict.fromkeys(left, 0)
    for _ in range(100 * len(left)):
        seen[counts.draw_other(cell, taken, bits)] += 1
    statistic = sum((x - 100) ** 2 / 100 for x in seen.values())
    assert statistic < len(left) + 6 * math.sqrt(2 * len(left))


def test_binomials_sum_exactly() -> None:
    for n, lo in product(range(12), range(13)):
        for hi in range(lo, 13):
            exact = sum(math.comb(n, k) for k in range(lo, hi + 1))
            assert binomials(n, lo, hi) == exact
    assert binomials(1000, 500, 500) == math.comb(1000, 500)
    assert binomials(1000, 0, 700) == sum(math.comb(1000, k) for k in range(701))


def test_members_lists_the_bits() -> None:
    assert members(0).tolist() == []
    assert members(0b1011 << 70).tolist() == [70, 71, 73]
