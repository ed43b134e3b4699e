"""Wide factors left as codes give the moments of dense columns, bit for bit."""

import pickle
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.design_rows import blocks
from oracles.labelled import accumulate_groups

from dpreg.arrays import to_grid
from dpreg.formula import rows as groups
from dpreg.formula.design import Design, build_design
from dpreg.moments import accumulate, read_moments
from dpreg.privacy.mechanisms.coins import Coins
from dpreg.sources import as_source
from dpreg.sources.reader import Reader

SCHEMA = {
    "g": {"levels": [0, 1, 2, 3, 4]},
    "h": {"levels": ["a", "b", "c", "d"]},
    "t": bool,
    "x": (-3, 4),
    "w": (0, 2),
    "y": (-2, 2),
}
TERMS = (
    "g", "h", "t", "x", "w", "g:h", "g:x", "h:x:w", "g:h:x", "g*h", "h*x", "t:h", "C(g, Sum)",
    "C(h, Treatment('c'))", "C(g, levels=[4, 2, 0])", "np.exp(x):g",
    "h:bs(x, knots=[0, 1], degree=2, lower_bound=-3, upper_bound=4)",
)  # fmt: skip


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave every factor as codes, however few its levels."""
    monkeypatch.setattr(groups, "_FEWEST", 1)


def table(rows: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 2, rows)
    x[rng.random(rows) < 0.1] = np.nan
    return {
        "g": rng.integers(0, 7, rows).astype(float),
        "h": rng.choice([*"abcdef", None], rows),
        "t": rng.choice([True, False, None], rows, p=[0.5, 0.4, 0.1]),
        "x": x,
        "w": rng.choice([-np.inf, 0.0, -0.0, 0.7, 2.0, np.inf], rows),
        "y": rng.normal(size=rows),
    }


def formulas() -> st.SearchStrategy[str]:
    terms = st.lists(st.sampled_from(TERMS), min_size=1, max_size=3, unique=True)
    return st.builds(
        lambda some, constant: f"y ~ {constant} + {' + '.join(some)}", terms, st.sampled_from("01")
    )


@settings(max_examples=60, deadline=None)
@given(formulas(), st.booleans(), st.integers(0, 2**32), st.sampled_from([0, 1, 150, 40_000]))
def test_moments_are_those_of_dense_columns(
    formula: str, intercept: bool, seed: int, rows: int
) -> None:
    keep = ("Intercept",) if intercept and not formula.startswith("y ~ 0") else ()
    design = build_design(formula, SCHEMA, keep=keep)
    data = pd.DataFrame(table(rows, seed))
    source = as_source(data)
    dense = accumulate(blocks(design, source), design.size)
    (found,) = read_moments(Reader(source), design)
    assert found == dense
    assert tuple(found.cells) == tuple(dense.cells)
    coins = Coins.of(3, np.random.default_rng(seed))
    parts = read_moments(Reader(source), design, coins)
    labels = coins.labels(0, rows)
    whole = [(next(blocks(design, source, rows=rows)), labels)] if rows else []
    wanted = accumulate_groups(whole, design.size, 3)
    assert [part.cells for part in parts] == [part.cells for part in wanted]
    assert [part.rows for part in parts] == [part.rows for part in wanted]


def grouped(design: Design) -> list[int]:
    return [len(group.places) for group in design.layout.groups]


def test_which_columns_are_left_as_codes() -> None:
    assert grouped(build_design("y ~ g", SCHEMA)) == [4]
    assert grouped(build_design("y ~ 0 + g", SCHEMA)) == [5]
    assert grouped(build_design("y ~ g*h", SCHEMA)) == [4, 3, 12]
    assert grouped(build_design("y ~ g*x", SCHEMA)) == [4, 4]
    assert grouped(build_design("y ~ x + w", SCHEMA)) == []
    assert grouped(build_design("y ~ C(g, Sum)", SCHEMA)) == []


def test_narrow_factors_are_multiplied_as_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_FEWEST", 4)
    assert grouped(build_design("y ~ g + h", SCHEMA)) == [4]


def test_a_design_that_was_sent_leaves_the_same_columns_as_codes() -> None:
    design = build_design("y ~ g*x + h", SCHEMA)
    again = pickle.loads(pickle.dumps(design))
    assert grouped(again) == grouped(design)
    assert again.layout.dense.tolist() == design.layout.dense.tolist()


def test_thousands_of_levels_take_no_room_for_their_products() -> None:
    levels = 5000
    design = build_design("y ~ x + k", {**SCHEMA, "k": {"levels": list(range(levels))}})
    rng = np.random.default_rng(0)
    data = table(3000, 1) | {"k": rng.integers(0, levels, 3000)}
    (found,) = read_moments(Reader(as_source(pd.DataFrame(data))), design)
    assert len(found.cells.vector) < 5 * levels  # type: ignore[attr-defined]
    complete = np.isfinite(data["x"])
    for level in (1, 7, levels - 1, int(data["k"][0])):
        count = int((complete & (data["k"] == level)).sum()) << 40
        at = [column.name for column in design.columns].index(f"k[T.{level}]")
        assert found.cells[at][at] == found.cells[0][at] == count


def test_moments_are_the_sums_of_the_rows_on_the_grid():
    design = build_design("y ~ x + w", {"y": (-3, 5), "x": (0, 10), "w": (-1, 1)})
    rng = np.random.default_rng(3)
    chunk = {name: rng.uniform(-4, 11, 9_000) for name in "yxw"}
    (read,) = read_moments(Reader(as_source(chunk)), design)
    rows = to_grid(design.block(chunk)).astype(np.int64).astype(object)
    assert [list(row) for row in read.cells] == (rows.T @ rows).tolist()


def test_a_missing_cell_anywhere_makes_its_row_zero():
    design = build_design("y ~ x + w", {"y": (-3, 5), "x": (0, 10), "w": (-1, 1)})
    for name, place in product("yxw", range(5)):
        chunk = {one: np.linspace(-0.5, 0.5, 5) for one in "yxw"}
        chunk[name][place] = np.nan
        made = design.coded(chunk).dense
        assert not made[place].any()
        assert made[np.arange(5) != place, 0].all()
