import pickle
import tomllib

import pandas as pd
import pytest

from dpreg.errors import ArgumentError, DataError, SchemaError
from dpreg.schema import Schema
from dpreg.sources import as_source


def frame(text="alpha", number=17.25, truth=True, when="2031-05-06"):
    return pd.DataFrame(
        {
            "price": [number],
            "town": pd.Series([text], dtype="str"),
            "idp": [truth],
            "kind": pd.Categorical([text]),
            "any thing": pd.Series([number], dtype=object),
            "sold": [pd.Timestamp(when)],
            "span": [pd.Interval(-4e9, number)],
        }
    )


def test_prints_as_a_template():
    assert str(Schema.skeleton(frame())).splitlines() == [
        "schema = {",
        "    'price': (..., ...),  # numbers: the lowest and the highest legal value",
        "    'town': [..., ...],  # text: every level, the reference first",
        "    'idp': bool,  # true or false",
        "    'kind': [..., ...],  # labels: every level, the reference first",
        "    'any thing': ...,  # undeclared kind: two bounds, a list of levels, or bool",
        "    # 'sold':  # dates: make numbers of them, (x - pd.Timestamp('2000-01-01')).dt.days",
        "    # 'span':  # neither numbers nor labels: cannot be used",
        "}",
    ]


def test_both_templates_parse_and_are_refused_until_filled_in():
    skeleton = Schema.skeleton(frame())
    scope = {}
    exec(skeleton.to_python(), scope)
    assert list(scope["schema"]) == ["price", "town", "idp", "kind", "any thing"]
    assert list(tomllib.loads(skeleton.to_toml())["columns"]) == list(scope["schema"])
    with pytest.raises(SchemaError, match="column 'price': not filled in yet"):
        Schema(scope["schema"])
    with pytest.raises(SchemaError, match="column 'price': not filled in yet"):
        Schema.from_toml(skeleton.to_toml())


def test_says_nothing_of_any_row():
    one = Schema.skeleton(frame())
    other = Schema.skeleton(frame("beta", -3e9, False, "1999-01-01"))
    many = Schema.skeleton(pd.concat([frame()] * 3))
    none = Schema.skeleton(frame().iloc[:0])
    assert one == other == many == none
    assert pickle.dumps(one) == pickle.dumps(other)
    shown = repr(one) + one.to_toml() + repr(pickle.dumps(one))
    assert not any(secret in shown for secret in ("alpha", "17", "2031"))


def test_names_are_quoted():
    odd = 'a"b\\c\n\x7f€'
    skeleton = Schema.skeleton(pd.DataFrame({odd: [True]}))
    assert list(Schema.from_toml(skeleton.to_toml())) == [odd]


def test_a_source_does_as_well():
    assert Schema.skeleton(as_source(frame())) == Schema.skeleton(frame())


def test_other_things_are_refused():
    with pytest.raises(ArgumentError, match="DataFrame or a Source"):
        Schema.skeleton([1, 2])
    several = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_product([["a"], ["b", "c"]]))
    with pytest.raises(DataError, match="several levels"):
        Schema.skeleton(several)
