"""The short way from the table to the grid makes the same rows as the long one, bit for bit."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpreg.arrays import to_grid
from dpreg.formula import rows as room
from dpreg.formula.design import build_design
from dpreg.moments import read_moments
from dpreg.sources import as_source
from dpreg.sources.reader import Reader

HOSTILE = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, 1.0, -1.0]


def on_grid(design, chunk):
    """Both ways' rows: the long one's and the short one's."""
    return to_grid(design.block(chunk)), to_grid(design.coded(chunk).dense)


def around(lo, hi):
    """Cells at, next to, between and far beyond the bounds, and whatever a float can hold."""
    middle, half = lo / 2 + hi / 2, hi / 2 - lo / 2
    cells = [lo, hi, middle, middle + half / 3, lo - 3 * half, hi + 3 * half, *HOSTILE]
    halves = [middle + half * (k + 0.5) * 2.0**-20 for k in (-(2**20), -7, 0, 4, 2**20 - 1)]
    cells += halves
    return np.array([*cells, *np.nextafter(cells, -np.inf), *np.nextafter(cells, np.inf)])


sizes = st.floats(min_value=1e-100, max_value=1e100)
finite = st.just(0.0) | sizes | sizes.map(lambda size: -size)


@given(finite, finite, st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(1, 1000)]))
def test_the_short_way_makes_the_same_rows(one, other, clip):
    lo, hi = min(one, other), max(one, other)
    if not lo < lo + (hi - lo) / 2 < hi:
        return
    cells = around(lo, hi)
    design = build_design("y ~ x", {"x": (lo, hi), "y": (lo, hi)}, clip=clip)
    long, short = on_grid(design, {"x": cells, "y": cells[::-1].copy()})
    np.testing.assert_array_equal(short, long)


@pytest.mark.parametrize(("keep", "straight"), [((), 0), (("Intercept",), 2)])
def test_columns_whose_bounds_do_not_reach_the_ends_of_the_grid_go_the_long_way(keep, straight):
    formula = "y ~ x" if keep else "y ~ 0 + x"
    design = build_design(formula, {"x": (1, 10), "y": (2, 8)}, keep=keep)
    assert len(design._short.columns) == straight
    cells = around(1.0, 10.0)
    long, short = on_grid(design, {"x": cells, "y": cells[::-1].copy()})
    np.testing.assert_array_equal(short, long)


SCHEMA = {"y": (-3, 5), "x": (0, 10), "w": (-1, 1), "b": bool, "g": ["a", "b", "c"]}
FORMULAS = [
    "y ~ x + w",
    "y ~ x + w + b + g",
    "y ~ x * w",
    "y ~ I(x) + np.log(1 + x) + x:g",
    "np.log(4 + y) ~ x + g:w",
    "y ~ 0 + x + w",
    "y ~ C(b) + w - 1",
]


def rows(size=400):
    rng = np.random.default_rng(3)
    cells = np.concatenate([rng.normal(0, 6, size), HOSTILE])
    chunk = {name: rng.permutation(cells) for name in "yxw"}
    chunk["b"] = rng.choice([0.0, 1.0, np.nan], len(cells))
    chunk["g"] = rng.integers(-1, 3, len(cells)).astype(np.int32)
    return chunk


@pytest.mark.parametrize("formula", FORMULAS)
def test_every_kind_of_formula_has_the_same_rows_both_ways(formula):
    design = build_design(formula, SCHEMA)
    chunk = {name: rows()[name] for name in design.types}
    kept = {name: column.copy() for name, column in chunk.items()}
    long, short = on_grid(design, chunk)
    np.testing.assert_array_equal(short, long)
    for name, column in kept.items():
        np.testing.assert_array_equal(chunk[name], column)


def test_moments_are_the_sums_of_the_long_ways_rows():
    design = build_design("y ~ x + w", SCHEMA)
    chunk = {name: rows(9_000)[name] for name in "yxw"}
    (read,) = read_moments(Reader(as_source(chunk)), design)
    long = to_grid(design.block(chunk)).astype(np.int64).astype(object)
    cells = (long.T @ long).tolist()
    assert [list(row) for row in read.cells] == cells


def test_mutant_that_takes_every_column_is_caught(monkeypatch):
    monkeypatch.setattr(room, "to_grid", lambda cells: np.array([-1.0, 1.0])[-len(cells) :])
    design = build_design("y ~ 0 + x", {"x": (1, 10), "y": (2, 8)}, keep=())
    cells = around(1.0, 10.0)
    long, short = on_grid(design, {"x": cells, "y": cells[::-1].copy()})
    assert not np.array_equal(short, long)


def test_a_missing_cell_anywhere_makes_its_row_zero():
    design = build_design("y ~ x + w", SCHEMA)
    for name, place in product("yxw", range(5)):
        chunk = {one: np.linspace(-0.5, 0.5, 5) for one in "yxw"}
        chunk[name][place] = np.nan
        made = design.coded(chunk).dense
        assert not made[place].any()
        assert made[np.arange(5) != place, 0].all()
