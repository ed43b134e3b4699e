"""Changing one row changes no other stored row, nor what is raised or warned, nor any text.

Hostile frames: for each seed a formula, a number of rows and for each column a style (a dtype and
the cells it may hold) are drawn; then one row's cells are drawn again.
"""

import copy
import datetime
import functools
import pickle
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from oracles.design_rows import blocks

from dpreg.formula.design import build_design, undeclared
from dpreg.schema import Schema
from dpreg.sources import as_source

SECRET = "sEcReT"
SCHEMA = Schema(
    {
        "y": (-5, 5),
        "x": (0.5, 40),
        "z": (-3, 3),
        "g": ["a", "b", "01"],
        "h": ["u", "v"],
        "k": {"levels": [1, 2, 3.5]},
        "flag": bool,
    }
)
FORMULAS = [
    "y ~ x + z + g + h + k + flag",
    "np.exp(y) ~ np.log(x) * g + flag:z + I(z ** 2)",
    "y ~ 0 + g:k + bs(x, knots=[1, 10], lower_bound=0.5, upper_bound=40) + I(x > 7)",
    "I(y * z) ~ C(k, Sum) * h + np.sqrt(x) + I(x ** 1.7) + np.log1p(x) + np.abs(z)",
    "y ~ (x + g + flag) ** 2 + I(g == '01') + C(x, levels=[1, 2, 3])",
    "y ~ I(x / (z + 4)) + I(2 ** z) + C(h, Treatment('v')):x",
]

NUMBERS = [0.0, 1.0, -1.0, 2, 3.5, 1e308, -1e308, np.inf, -np.inf, np.nan, 5e-324, 40, 1e16 + 2]
OBJECTS = [
    *NUMBERS, None, pd.NA, pd.NaT, True, False, "1", "01", " 2 ", "1e400", "nan", "", SECRET,
    "a", "u", "True", "٣", "1_0", b"1", (1,), 1j, Decimal("1.5"), Decimal("sNaN"), 10**400,
    -(10**400), "9" * 5000, np.float32(2), np.int8(3), np.bool_(True), datetime.date(2020, 1, 1),
    pd.Timestamp("2020"), datetime.timedelta(1), np.datetime64("NaT"), [1], {}, set(), object,
    Ellipsis, slice(1), "x\x00",
]  # fmt: skip
WORDS = ["a", "b", "01", "1", "1.0", "u", "v", "U", "True", "false", "", " a", "2", "3.5", SECRET]


class Awkward:
    """A cell that minds being looked at."""

    def __eq__(self, other):
        raise ValueError(SECRET)

    __hash__ = None

    def __float__(self):
        raise ValueError(SECRET)

    def __str__(self):
        raise ValueError(SECRET)

    __repr__ = __str__

    def __bool__(self):
        raise ValueError(SECRET)


STYLES = {
    "float64": NUMBERS,
    "float32": [0.0, 1.0, 2.5, -1, np.nan, np.inf, 3e38],
    "int8": [-128, 127, 0, 1, 2, 3],
    "int64": [-(2**63), 2**63 - 1, 0, 1, 2, 3],
    "uint64": [0, 1, 2, 3, 2**64 - 1],
    "bool": [True, False],
    "boolean": [True, False, pd.NA],
    "Int64": [0, 1, 2, 3, pd.NA, -(2**63)],
    "Float64": [0.0, 1.0, 3.5, pd.NA, 1e308, -1e308],
    "complex128": [0j, 1 + 0j, 2 + 1j, complex(np.nan, 0), complex(np.inf, 1)],
    "object": [*OBJECTS, Awkward()],
    "object of numbers": NUMBERS,
    "str": [*WORDS, None],
    "string": [*WORDS, pd.NA],
    "category": [*WORDS, None],
    "category of numbers": [1, 2, 3.5, 7, None],
    "inferred": [1, 2, 3.5, None, True, "a", "01", "2", SECRET, np.nan],
    "float16": [0.0, 1.0, 2.0, np.nan, np.inf],
}
UNREADABLE = {
    "datetime64[ns]": [pd.Timestamp("2020"), pd.NaT, pd.Timestamp("1999")],
    "timedelta64[ns]": [pd.Timedelta(1), pd.NaT],
}


@functools.cache
def legal(name, style):
    """Return the places of the style's cells that are legal in a column; of all, where none is."""
    cells = {**STYLES, **UNREADABLE}[style]
    if style in UNREADABLE:
        return range(len(cells))
    source = as_source(pd.DataFrame({name: column(style, cells)}))
    (chunk,) = source.chunks({name: SCHEMA[name]}, len(cells))
    found = np.flatnonzero(chunk[name] >= 0 if name in "ghk" else chunk[name] == chunk[name])
    return found if len(found) else range(len(cells))


def drawn(rng, name, style, count):
    """Draw cells, nine in ten of them legal ones."""
    cells = {**STYLES, **UNREADABLE}[style]
    fine = rng.choice(legal(name, style), count)
    return [cells[i] for i in np.where(rng.random(count) < 0.9, fine, rng.integers(len(cells)))]


def styled(rng, choice):
    """Draw a style for each column, mostly one that can hold text where the levels are text."""
    texts = ["object", "str", "string", "category", "inferred"]
    return {
        name: str(rng.choice(texts if name in "gh" and rng.random() < 0.8 else list(choice)))
        for name in SCHEMA
    }


def column(style, cells):
    """Make a column whose dtype is public: of the style's, whatever the cells are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas and NumPy on making the column; not ours
        match style:
            case "inferred":
                return pd.Series(cells)
            case "object" | "object of numbers":
                made = np.empty(len(cells), dtype=object)
                made[:] = cells
                return pd.Series(made, dtype=object)
            case "category" | "category of numbers":
                known = [cell for cell in STYLES[style] if cell is not None]
                return pd.Series(pd.Categorical(cells, categories=[*known[::-1]]))
            case _:
                return pd.Series(cells, dtype=style)


def table(styles, cells):
    made = {name: column(style, cells[name]) for name, style in styles.items()}
    frame = pd.DataFrame(made)
    junk = pd.DataFrame([[SECRET, 1]] * len(frame), columns=["junk", "junk"], index=frame.index)
    return pd.concat([frame, junk], axis=1)


def outcome(design, frame, rows=8192):
    """Return the stored rows, or what was raised; and what was warned."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            source = as_source(frame)
            pieces = list(blocks(design, source, rows=rows))
            result = np.concatenate(pieces) if pieces else np.empty((0, len(design.columns) + 1))
        except Exception as error:
            result = (type(error), str(error))
    return result, [(w.category, str(w.message)) for w in warned]


@pytest.mark.parametrize("seed", range(300))
def test_one_row_changes_no_other(seed):
    rng = np.random.default_rng(seed)
    design = build_design(
        FORMULAS[seed % len(FORMULAS)], SCHEMA, keep=[(), ("Intercept",)][seed // 7 % 2]
    )
    public = repr(design), pickle.dumps(design)
    count = int(rng.choice([1, 2, 3, 9, 40]))
    choice = STYLES | UNREADABLE if seed % 10 == 9 else STYLES
    styles = styled(rng, choice)
    cells = {name: drawn(rng, name, style, count) for name, style in styles.items()}
    before, warned_before = outcome(design, table(styles, cells))

    changed = int(rng.integers(count))
    for name, style in styles.items():
        if rng.random() < 0.7:
            cells[name][changed] = drawn(rng, name, style, 1)[0]
    frame = table(styles, cells)
    after, warned_after = outcome(design, frame)

    assert warned_before == warned_after == []
    if isinstance(before, tuple):
        assert seed % 10 == 9
        assert before == after
        assert SECRET not in before[1]
        return
    assert before.shape == after.shape == (count, len(design.columns) + 1)
    assert np.delete(before, changed, 0).tobytes() == np.delete(after, changed, 0).tobytes()
    assert (np.abs(after) <= 1).all()
    assert set(after[:, 0]) <= {0.0, 1.0}
    incomplete = after[after[:, 0] == 0]
    assert incomplete.tobytes() == np.zeros_like(incomplete).tobytes()  # assigned, so no -0.0
    assert (repr(design), pickle.dumps(design)) == public
    for rows in (1, 2, 7):
        assert outcome(design, frame, rows)[0].tobytes() == after.tobytes()


def test_the_hostile_frames_have_complete_rows_too():
    complete = total = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        design = build_design(FORMULAS[seed % len(FORMULAS)], SCHEMA)
        count = int(rng.choice([1, 2, 3, 9, 40]))
        styles = styled(rng, STYLES)
        cells = {name: drawn(rng, name, style, count) for name, style in styles.items()}
        rows, _ = outcome(design, table(styles, cells))
        total += count
        complete += int(rows[:, 0].sum())
    assert complete > total / 4
    assert complete < total * 3 / 4


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("rows", [3, 5, 64, 1000])
def test_blocks_do_not_depend_on_their_size(formula, rows):
    rng = np.random.default_rng(5)
    n = 2_000
    frame = pd.DataFrame(
        {
            "y": rng.normal(size=n) * 4,
            "x": rng.uniform(0, 50, n),
            "z": rng.normal(size=n) * 2,
            "g": rng.choice(["a", "b", "01", "other"], n),
            "h": rng.choice(["u", "v"], n),
            "k": rng.choice([1, 2, 3.5], n),
            "flag": rng.random(n) < 0.5,
        }
    )
    frame.loc[rng.random(n) < 0.1, "z"] = np.nan
    frame.loc[::5, "x"] = rng.integers(1, 4, n // 5)
    design = build_design(formula, SCHEMA)
    whole, _ = outcome(design, frame, n)
    assert outcome(design, frame, rows)[0].tobytes() == whole.tobytes()
    order = rng.permutation(n)
    shuffled, _ = outcome(design, frame.iloc[order], rows)
    assert shuffled.tobytes() == whole[order].tobytes()


@pytest.mark.parametrize("style", [*STYLES, *UNREADABLE])
def test_empty_tables(style):
    frame = table(dict.fromkeys(SCHEMA, style), {name: [] for name in SCHEMA})
    for formula in FORMULAS:
        result, warned = outcome(build_design(formula, SCHEMA), frame)
        assert warned == []
        if style in STYLES:
            assert result.shape[0] == 0


@pytest.mark.parametrize("formula", FORMULAS)
def test_public_looks_do_not_depend_on_rows(formula):
    def told(frame):
        try:
            return undeclared(formula, Schema({"g": ["a", "b", "01"], "k": SCHEMA["k"]}), frame)
        except Exception as error:
            return type(error), str(error)

    styles = {"y": "float64", "x": "object", "z": "Int64", "g": "str", "h": "str", "k": "int8"}
    styles["flag"] = "bool"
    found = set()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        cells = {name: drawn(rng, name, style, 5) for name, style in styles.items()}
        found.add(told(as_source(table(styles, cells))))
    assert len(found) == 1
    assert SECRET not in str(found)


def test_designs_hold_no_rows():
    design = build_design(FORMULAS[0], SCHEMA)
    frame = pd.DataFrame(
        {
            "y": [1.25],
            "x": [31.0625],
            "z": [0.5],
            "g": [SECRET],
            "h": ["u"],
            "k": [1],
            "flag": [True],
        }
    )
    before = pickle.dumps(design)
    list(blocks(design, as_source(frame)))
    design.matrix(frame, range(len(design.columns)))
    assert pickle.dumps(design) == pickle.dumps(copy.deepcopy(design)) == before
    assert SECRET.encode() not in before


def test_the_callers_error_state_is_left_alone():
    design = build_design("y ~ np.exp(x)", {"y": (0, 1), "x": (-800, 1)})  # which underflows
    frame = pd.DataFrame({"y": [1.0, np.inf, np.nan], "x": [np.nan, -1e308, -799.0]})
    with np.errstate(all="raise"):
        for block in blocks(design, as_source(frame), rows=1):
            assert np.geterr()["invalid"] == "raise"
            assert len(block) == 1
