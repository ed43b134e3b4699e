import json
import pickle
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpreg.columns import Boolean, Categorical, Numeric
from dpreg.errors import SchemaError
from dpreg.schema import Schema

COLUMNS = {"price": (105, 905), "county": ["ala", "cc"], "rooms": {"levels": [1, 2]}, "idp": bool}
TOML = """
[columns]
price = [105, 905]
county = ["ala", "cc"]
rooms = {levels = [1, 2]}
idp = "bool"
"""


def test_a_mapping_declares_columns():
    schema = Schema(COLUMNS)
    assert isinstance(schema, Mapping)
    assert dict(schema) == {
        "price": Numeric(105, 905),
        "county": Categorical(("ala", "cc")),
        "rooms": Categorical((1, 2)),
        "idp": Boolean(),
    }
    assert list(schema) == list(COLUMNS)
    assert "lat" not in schema
    with pytest.raises(KeyError):
        schema["lat"]


@pytest.mark.parametrize(
    ("spec", "means"),
    [
        ([1, 2], Numeric(1, 2)),
        ((1, 2), Numeric(1, 2)),
        ({"bounds": [1, 2]}, Numeric(1, 2)),
        ({"levels": [1, 2]}, Categorical((1, 2))),
        ({"levels": ("x", "y", "z")}, Categorical(("x", "y", "z"))),
        (("x", "y"), Categorical(("x", "y"))),
        ({"levels": ["1", "2"]}, Categorical(("1", "2"))),
        (["1", "2", "3"], Categorical(("1", "2", "3"))),
        ("bool", Boolean()),
        ("boolean", Boolean()),
        (Boolean(), Boolean()),
        (Numeric(1, 2), Numeric(1, 2)),
    ],
)
def test_every_form_of_a_declaration(spec, means):
    assert Schema({"x": spec})["x"] == means


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ((2, 1), "below"),
        ((1, 1), "below"),
        ((1, 2, 3), "bounds, of which there are two"),
        ((1,), "bounds, of which there are two"),
        ((True, 2), "all text or all numbers"),
        ((1, float("inf")), "finite"),
        ([], "fewer than two"),
        (["a", "a"], "the same"),
        (["a", 1], "all text or all numbers"),
        ({"levels": ["a"]}, "fewer than two"),
        ({"levels": "ab"}, "list or tuple"),
        ({"bounds": [1, 2, 3]}, "either levels or two bounds"),
        ({"levels": ["a", "b"], "bounds": [1, 2]}, "either levels or two bounds"),
        ({}, "either levels or two bounds"),
        ("int", "unknown kind 'int'"),
        (int, "of type type"),
        (None, "type NoneType declares nothing"),
        (3, "of type int"),
        (..., "not filled in"),
        ((..., 2), "not filled in"),
        (np.array([1, 2]), "of type ndarray"),
        (pd.Series([1, 2]), "of type Series"),
    ],
)
def test_a_bad_declaration_names_its_column_and_the_mend(spec, says):
    with pytest.raises(SchemaError, match=f"^column 'x y': .*{says}"):
        Schema({"ok": bool, "x y": spec})


@pytest.mark.parametrize("name", ["", "  ", 3, None, ("a", "b")])
def test_a_bad_name_is_refused(name):
    with pytest.raises(SchemaError, match="name must be text"):
        Schema({name: bool})


ROWS = pd.Series(["Zoe", "Yan", "Zoe"])


@pytest.mark.parametrize(
    "spec",
    [ROWS, list(ROWS), tuple(ROWS), ROWS.to_numpy(), {"levels": ROWS}, {"levels": list(ROWS)}],
)
def test_rows_handed_over_by_mistake_end_in_no_message(spec):
    with pytest.raises(SchemaError) as caught:
        Schema({"x": spec})
    assert "Zoe" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_schema_is_a_frozen_value():
    schema = Schema(COLUMNS)
    same = Schema(dict(reversed(COLUMNS.items())))
    assert schema == same
    assert hash(schema) == hash(same)
    assert schema != Schema({**COLUMNS, "county": ["cc", "ala"]})
    with pytest.raises(TypeError):
        schema["x"] = Boolean()
    with pytest.raises(AttributeError, match="frozen"):
        schema._columns = {}
    with pytest.raises(AttributeError, match="frozen"):
        del schema._columns
    with pytest.raises(AttributeError):
        schema.other = 1


def test_a_schema_does_not_follow_the_mapping_that_it_was_made_of():
    columns = {"county": ["ala", "cc"]}
    schema = Schema(columns)
    columns["county"].append("sm")
    columns["x"] = bool
    assert schema == Schema({"county": ["ala", "cc"]})


def test_shows_a_call_that_makes_it_again():
    schema = Schema(COLUMNS)
    assert repr(schema).splitlines() == [
        "Schema({",
        "    'price': (105, 905),",
        "    'county': ['ala', 'cc'],",
        "    'rooms': {'levels': [1, 2]},",
        "    'idp': bool,",
        "})",
    ]
    assert repr(Schema()) == "Schema({})"


NAMES = st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip)
SIZES = st.floats(1e-100, 1e100)
BOUNDS = st.just(0.0) | SIZES | SIZES.map(lambda size: -size)
SPECS = st.one_of(
    st.just(bool),
    st.tuples(BOUNDS, BOUNDS).map(sorted).filter(lambda b: b[0] < b[0] + (b[1] - b[0]) / 2 < b[1]),
    st.lists(st.text(st.characters(codec="utf-8")), min_size=2, unique=True),
    st.lists(
        st.integers(-(2**53) + 1, 2**53 - 1) | BOUNDS.filter(lambda v: abs(v) < 2**53),
        min_size=2,
        unique=True,
    ).map(lambda levels: {"levels": levels}),
)


@given(st.dictionaries(NAMES, SPECS, max_size=5))
def test_round_trips(columns):
    schema = Schema(columns)
    for again in (
        Schema.from_json(schema.to_json()),
        Schema.from_dict(schema.to_dict()),
        Schema.from_any(schema.to_dict()),
        eval(repr(schema), {"Schema": Schema}),
        pickle.loads(pickle.dumps(schema)),
        Schema(schema),
    ):
        assert again == schema
        assert list(again) == list(schema)
        assert repr(again) == repr(schema)
    json.dumps(schema.to_dict(), allow_nan=False)


def test_from_anything():
    schema = Schema(COLUMNS)
    assert Schema.from_any(schema) is schema
    assert Schema.from_any(COLUMNS) == schema
    assert Schema.from_any(None) == Schema()
    for obj in (3, [("a", bool)], pd.DataFrame({"a": [1]})):
        with pytest.raises(SchemaError):
            Schema.from_any(obj)


def test_from_files(tmp_path: Path):
    schema = Schema(COLUMNS)
    toml, text = tmp_path / "s.TOML", tmp_path / "s.json"
    toml.write_text(TOML)
    text.write_text(schema.to_json())
    for path in (toml, str(toml), text, str(text)):
        assert Schema.from_any(path) == schema


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("s.yaml", "", "must end in .toml or .json"),
        ("s.toml", "[columns", "not valid TOML"),
        ("s.toml", "price = [1, 2]", 'one key, "columns"'),
        ("s.toml", "[columns]\nx = [1, 2]\n[more]\n", 'one key, "columns"'),
        ("s.toml", "[columns]\nx = [1, 2]\nx = [1, 3]\n", "not valid TOML"),
        ("s.toml", "[columns]\nx = 2020-01-01\n", "column 'x'"),
        ("s.json", "{", "not valid JSON"),
        ("s.json", "[]", 'one key, "columns"'),
        ("s.json", '{"columns": []}', "a schema is a mapping"),
        ("s.json", '{"columns": {"x": [1, 2], "x": [1, 3]}}', "holds a name twice"),
        ("s.json", '{"columns": {"x": [1, Infinity]}}', "column 'x'.*finite"),
        ("s.json", "[" * 100_000, "not valid JSON"),
        ("s.json", b"\xff\xfe", "not UTF-8"),
    ],
)
def test_bad_files(tmp_path, name, content, says):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SchemaError, match=says):
        Schema.from_file(path)


def test_an_absent_file(tmp_path):
    with pytest.raises(SchemaError, match="there is no file"):
        Schema.from_any(tmp_path / "none.toml")
    with pytest.raises(SchemaError, match="cannot be used: the name holds a null character"):
        Schema.from_any("none\0.toml")
