"""Scaling, clipping, incomplete rows, keep, and what a design holds and shows."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from oracles.design_rows import blocks

from dpreg.errors import ArgumentError, DataError, FormulaError, SchemaError
from dpreg.formula.design import build_design, resolve_keep, undeclared
from dpreg.schema import Schema
from dpreg.sources import as_source

SCHEMA = Schema(
    {
        "y": (100, 300),
        "x": (0, 4),
        "z": (-1, 3),
        "g": ["a", "b", "c"],
        "h": ["u", "v"],
        "flag": bool,
    }
)


def stored(design, **columns):
    return np.concatenate(list(blocks(design, as_source(pd.DataFrame(columns)))))


def scales(design):
    return {column.name: (column.offset, column.width) for column in design.columns[1:]}


def test_scales_with_the_intercept_kept():
    design = build_design("y ~ x + z + g + h + flag + g:x + h:z + g:h + C(g, Sum) + x:z", SCHEMA)
    found = scales(design)
    assert found["x"] == (2, 2)
    assert found["z"] == (1, 2)
    assert found["g[T.b]"] == (0, 1)
    assert found["h[T.v]"] == (0.5, 0.5)
    assert found["flag[T.True]"] == (0.5, 0.5)
    assert found["g[T.b]:x"] == (2, 2)
    assert found["h[T.v]:z"] == (1, 2)
    assert found["g[T.b]:h[T.v]"] == (0, 1)
    assert found["C(g, Sum)[S.a]"] == (0, 1)
    assert found["x:z"] == (4, 8)  # [-4, 12]
    assert (design.response.offset, design.response.width) == (200, 100)
    first = design.columns[0]
    assert (first.name, first.lo, first.hi, first.offset, first.width) == ("Intercept", 1, 1, 0, 1)


def test_each_column_of_a_term_is_scaled_by_its_own_factors():
    design = build_design("y ~ g:h", SCHEMA)  # patsy codes h alone, then g within h
    found = scales(design)
    assert found["h[T.v]"] == (0.5, 0.5)
    assert found["g[T.b]:h[u]"] == (0, 1)
    assert not design.terms[1].exclusive


@pytest.mark.parametrize(
    ("formula", "keep"),
    [("y ~ x + z + g + h + x:z", ()), ("y ~ 0 + x + z + g + h + x:z", ("Intercept",))],
)
def test_scales_without_the_intercept(formula, keep):
    design = build_design(formula, SCHEMA, keep=keep)
    found = scales(design)
    assert found["x"] == (0, 4)
    assert found["z"] == (0, 3)
    assert found["h[T.v]"] == (0, 1)
    assert found["x:z"] == (0, 12)
    assert design.keep == ()


def test_the_response_not_centred_and_clipped():
    design = build_design("y ~ x", SCHEMA, clip=Fraction(1, 4), center=False)
    assert (design.response.offset, design.response.width) == (0, 75)
    found = stored(design, y=[100, 60, -30, 300], x=[0, 1, 2, 9])
    assert found[:, 2].tolist() == [1, 1, 1, 1]  # every legal y is at least 100
    design = build_design("y ~ x", SCHEMA, clip=Fraction(1, 4))
    assert design.response.width == 25
    found = stored(design, y=[100, 190, 200, 205, 1000], x=[0, 1, 2, 4, 9])
    assert found[:, 2].tolist() == [-1, -0.4, 0, 0.2, 1]
    assert found[:, 1].tolist() == [-1, -0.5, 0, 1, 1]


def test_two_levels_are_minus_one_and_one_and_three_stay():
    design = build_design("y ~ h + flag + I(x > 2) + g", SCHEMA)
    found = stored(
        design,
        y=[200] * 3,
        x=[1, 2, 3],
        h=["u", "v", "u"],
        flag=[True, False, True],
        g=["a", "b", "c"],
    )
    names = [column.name for column in design.columns]
    assert found[:, names.index("h[T.v]")].tolist() == [-1, 1, -1]
    assert found[:, names.index("flag[T.True]")].tolist() == [1, -1, 1]
    assert found[:, names.index("I(x > 2)[T.True]")].tolist() == [-1, -1, 1]
    assert found[:, names.index("g[T.b]")].tolist() == [0, 1, 0]
    assert found[:, names.index("g[T.c]")].tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ x + g + h + flag",
        "y ~ g * x + np.log1p(x)",
        "y ~ g:h + h:flag:x",
        "y ~ I(g == 'b') + x",
    ],
)
@pytest.mark.parametrize(
    "spoilt",
    [
        {"y": np.nan},
        {"x": np.nan},
        {"x": "?"},
        {"x": None},
        {"g": None},
        {"g": "other"},
        {"g": 3},
        {"h": "U"},
        {"flag": None},
        {"flag": 2},
    ],
    ids=str,
)
def test_an_incomplete_row_is_zero(formula, spoilt):
    design = build_design(formula, SCHEMA)
    good = {"y": 150.0, "x": 1.0, "g": "b", "h": "v", "flag": True}
    columns = {name: pd.Series([cell] * 3, dtype=object) for name, cell in good.items()}
    for name, cell in spoilt.items():
        columns[name][1] = cell
    found = stored(design, **columns)
    reads = set(spoilt) <= set(design.needed)
    assert (found[1] == 0).all() == reads
    assert found[0].tobytes() == found[2].tobytes()
    assert found[0, 0] == 1


def test_a_level_that_the_formula_leaves_out_makes_a_row_incomplete():
    design = build_design("y ~ C(x, levels=[1, 2, 4]) + C(g, levels=['c', 'a'])", SCHEMA)
    found = stored(design, y=[300] * 5, x=[1, 2, 3, 9, np.nan], g=["a", "b", "c", "c", "c"])
    # 9 is clipped to 4, the bound, before it is looked up
    assert found.tolist() == [[1, 0, 0, 1, 1], [0] * 5, [0] * 5, [1, 0, 1, -1, 1], [0] * 5]


def test_cells_beyond_the_bounds_are_moved_to_them():
    design = build_design("y ~ x + np.exp(z) + x:z", SCHEMA)
    found = stored(design, y=[1e308, -np.inf], x=[np.inf, -1e308], z=[-np.inf, 1e308])
    at_ends = stored(design, y=[300, 100], x=[4, 0], z=[-1, 3])
    assert found.tobytes() == at_ends.tobytes()


def test_no_rows_and_no_columns():
    design = build_design("y ~ x", SCHEMA)
    empty = pd.DataFrame({"y": [], "x": []})
    assert sum(len(block) for block in blocks(design, as_source(empty))) == 0
    constant = build_design("y ~ 1", SCHEMA)
    assert stored(constant, y=[100, np.nan, 300]).tolist() == [[1, -1], [0, 0], [1, 1]]
    assert design.matrix(empty, [0, 1]).shape == (0, 2)


def test_blocks_are_fresh_and_of_the_size_asked_for():
    design = build_design("y ~ x", SCHEMA)
    source = as_source(pd.DataFrame({"y": [100.0] * 10, "x": np.linspace(0, 4, 10)}))
    pieces = list(blocks(design, source, rows=4))
    assert [len(block) for block in pieces] == [4, 4, 2]
    assert np.concatenate(pieces)[:, 1].tolist() == np.linspace(-1, 1, 10).tolist()
    assert all(block.flags.f_contiguous for block in pieces)


def test_a_table_is_not_written_to():
    frame = pd.DataFrame(
        {"y": [100.0, np.nan, 900.0], "x": [0.0, 9.0, np.nan], "g": ["a", "z", "c"]}
    )
    before = frame.copy(deep=True)
    design = build_design("y ~ x * g", SCHEMA)
    list(blocks(design, as_source(frame)))
    design.matrix(frame, range(len(design.columns)))
    pd.testing.assert_frame_equal(frame, before)


def test_a_table_without_a_column_is_refused_at_once():
    design = build_design("y ~ x", SCHEMA)
    with pytest.raises(DataError, match="x"):
        blocks(design, as_source(pd.DataFrame({"y": [1.0]})))


def test_prediction_extrapolates_and_keeps_the_index():
    design = build_design(
        "y ~ x + np.log1p(z) + g + bs(x, knots=[2], lower_bound=0, upper_bound=4)",
        Schema({**SCHEMA, "z": (0, 3)}),
    )
    frame = pd.DataFrame(
        {"x": [1, 8, np.nan, 2, 3], "z": [0.0, 9, 1, -2, 3], "g": ["a", "c", "b", "b", "other"]},
        index=list("pqrst"),
    )
    names = [column.name for column in design.columns]
    plain = design.matrix(frame, [0, *(names.index(name) for name in ("x", "g[T.c]"))])
    assert list(plain.index) == list("pqrst")
    assert list(plain.columns) == ["Intercept", "x", "g[T.c]"]
    assert plain.loc["q"].tolist() == [1, 8, 1]
    assert plain.loc[["r", "t"]].isna().all(axis=None)
    assert plain.loc[["p", "s"]].notna().all(axis=None)
    logs = design.matrix(frame[["z"]], [names.index("np.log1p(z)")])
    assert logs.iloc[:, 0].isna().tolist() == [False, False, False, True, False]
    both = design.matrix(frame, [0, names.index("np.log1p(z)")])
    assert both.isna().all(axis=1).tolist() == [False, False, False, True, False]
    spline = design.matrix(frame[["x"]], [len(names) - 1])
    assert spline.iloc[:, 0].isna().tolist() == [False, True, True, False, False]
    assert design.matrix(frame, [0]).iloc[:, 0].tolist() == [1] * 5
    assert design.matrix(frame, []).shape == (5, 0)
    mapping = {name: list(frame[name]) for name in frame}
    pd.testing.assert_frame_equal(
        design.matrix(mapping, range(4)), design.matrix(frame, range(4)).reset_index(drop=True)
    )
    assert design.matrix(mapping, [0]).shape == (5, 1)


@pytest.mark.parametrize("columns", [[5], [-1]])
def test_columns_that_are_none(columns):
    design = build_design("y ~ x", SCHEMA)
    with pytest.raises(AssertionError):
        design.to_user_units(columns)
    with pytest.raises(AssertionError):
        design.matrix(pd.DataFrame({"x": [1.0]}), columns)


def test_user_units_need_the_intercept_that_takes_up_shifts():
    with pytest.raises(ArgumentError, match="column 0"):
        build_design("y ~ x", SCHEMA).to_user_units([1])
    transform, shift = build_design("y ~ x", SCHEMA).to_user_units([1, 0])
    assert transform.tolist() == [[50, 0], [-100, 100]]
    assert shift.tolist() == [0, 200]
    transform, shift = build_design("y ~ x", SCHEMA, keep=()).to_user_units([1])
    assert transform.tolist() == [[75]]
    assert shift.tolist() == [0]


def test_keep():
    design = build_design("y ~ x + g + x:g + h", SCHEMA, keep=("g:x", "h", "Intercept"))
    assert design.keep == ("Intercept", "h", "x:g")
    assert build_design("y ~ x + h", SCHEMA, keep=["h"]).keep == ("h",)
    assert resolve_keep(design.terms, ()) == ()
    with pytest.raises(ArgumentError, match="'Intercept', 'g', 'h', 'x', 'x:g'"):
        build_design("y ~ x + g + x:g + h", SCHEMA, keep=("q",))


def test_terms_know_their_factors():
    design = build_design("y ~ x * g", SCHEMA)
    by_name = {term.name: term for term in design.terms}
    assert by_name["Intercept"].factors == ()
    assert set(by_name["x:g"].factors) == {"x", "g"}
    assert by_name["g"].exclusive
    assert not by_name["x:g"].exclusive
    assert not by_name["x"].exclusive


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ x + g:h + bs(z, knots=[0], lower_bound=-1, upper_bound=3)",
        "np.log(y) ~ 0 + C(g, Sum) + x",
    ],
)
def test_a_design_is_rebuilt_from_public_facts(formula):
    design = build_design(formula, SCHEMA, keep=("x",), clip=Fraction(1, 3), center=False)
    for twin in (pickle.loads(pickle.dumps(design)), copy.deepcopy(design), copy.copy(design)):
        assert twin == design
        assert hash(twin) == hash(design)
        assert repr(twin) == repr(design)
    assert design != build_design(formula, SCHEMA, keep=("x",), clip=Fraction(1, 2), center=False)
    assert formula in repr(design)
    with pytest.raises(AttributeError):
        design.clip = Fraction(1)


@pytest.mark.parametrize(
    ("formula", "schema"),
    [
        ("y ~ I(x * 1e-300 * 1e-300)", {"y": (0, 1), "x": (0, 1)}),
    ],
)
def test_no_width(formula, schema):
    with pytest.raises(SchemaError):
        build_design(formula, schema)


@pytest.mark.parametrize("unit", [1e70, 1e-70])
@pytest.mark.parametrize("keep", [("Intercept",), ()])
def test_a_response_whose_square_could_leave_float64_is_refused(unit, keep):
    schema = {"y": (0, 9 * unit), "x": (0, 1)}
    with pytest.raises(SchemaError, match="half the width of its bounds"):
        build_design("I(y**3) ~ x", schema, keep=keep)
    build_design("x ~ I(y**3)", schema, keep=keep)


@pytest.mark.parametrize("right", ["Intercept", "0 + Intercept", "0 + x + Intercept"])
@pytest.mark.parametrize("declared", [(0, 2), ["a", "b"]], ids=["numbers", "levels"])
def test_no_term_passes_for_the_intercept(right, declared):
    with pytest.raises(FormulaError, match="same name"):
        build_design(f"y ~ {right}", {"y": (0, 1), "x": (0, 1), "Intercept": declared})


def test_names_must_differ():
    schema = {"y": (0, 1), "g": ["a", "b", "b]:h[T.v"], "h": ["u", "v"]}
    with pytest.raises(FormulaError, match="two columns of the design would have the same name"):
        build_design("y ~ g * h", schema)


class TestUndeclared:
    frame = pd.DataFrame(
        {
            "y": [1.0, 2],
            "x": [1, 2],
            "text": ["a", "b"],
            "grade": pd.Categorical(["a", "b"]),
            "flag": [True, False],
            "mixed": pd.Series([1, "2"], dtype=object),
            "when": pd.to_datetime(["2020-01-01", "2020-01-02"]),
        }
    )

    def test_all_are_listed_whatever_their_kind(self):
        source = as_source(self.frame)
        formula = (
            "np.log(y) ~ x + flag + I(mixed ** 2) + bs(x, knots=[1], lower_bound=0, upper_bound=2)"
        )
        assert undeclared(formula, Schema({}), source) == ("y", "x", "flag", "mixed")
        assert undeclared(formula, Schema({"x": (0, 1)}), source) == ("y", "flag", "mixed")

    @pytest.mark.parametrize(
        "factor", ["text", "grade", "C(text)", "C(x)", "C(flag)", "I(text == 'a')", "when"]
    )
    def test_labels_need_levels(self, factor):
        with pytest.raises(SchemaError, match="levels"):
            undeclared(f"y ~ {factor}", Schema({}), as_source(self.frame))

    def test_levels_may_stand_in_the_formula(self):
        formula = "y ~ C(text, levels=['a', 'b']) + C(x, levels=[1, 2])"
        source = as_source(self.frame)
        assert undeclared(formula, Schema({}), source) == ("y",)
        design = build_design(formula, {"y": (0, 3)})
        found = np.concatenate(list(blocks(design, source)))
        assert found[:, 1:3].tolist() == [[-1, -1], [1, 1]]

    def test_levels_that_are_truths_or_look_like_them(self):
        frame = pd.DataFrame({"y": [1.0, 1, 1], "x": ["true", "1", "0"]}, dtype=object)
        truths = build_design("y ~ C(x, levels=[False, True])", {"y": (0, 1)})
        numbers = build_design("y ~ C(x, levels=[0, 1])", {"y": (0, 1)})
        assert stored(truths, **frame)[:, 1].tolist() == [1, 1, -1]
        assert stored(numbers, **frame)[:, 1].tolist() == [0, 1, -1]

    def test_a_name_from_nowhere(self):
        with pytest.raises(FormulaError, match="neither"):
            undeclared("y ~ nowhere", Schema({}), as_source(self.frame))
