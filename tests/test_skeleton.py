import pickle
import tomllib

import numpy as np
import pandas as pd
import pytest

import dpreg
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


PUBLIC = Schema(
    {
        "age": (0, 3),
        "rate": (0.5, 2.5),
        "town": ["ala", "cc"],
        "rooms": {"levels": [2, 7]},
        "own": bool,
    }
)


def test_made_up_rows_are_what_the_schema_allows_and_say_so():
    made = PUBLIC.sample(400, seed=3)
    assert list(made) == list(PUBLIC)
    assert made.index.name == "made up"
    assert "made up" in repr(made)
    assert "made up" in made.to_csv().splitlines()[0]
    assert set(made["age"]) == {0.0, 1.0, 2.0, 3.0}
    assert made["rate"].between(0.5, 2.5).all()
    assert made["rate"].nunique() == 400
    assert set(made["town"]) == {"ala", "cc"}
    assert set(made["rooms"]) == {2, 7}
    assert set(made["own"]) == {True, False}
    assert PUBLIC.doubts(made) == ()
    assert made.equals(PUBLIC.sample(400, seed=3))
    assert not made.equals(PUBLIC.sample(400))


def test_made_up_rows_have_the_columns_of_a_formula():
    assert list(PUBLIC.sample(2, formula="rate ~ np.log(age + 1) * (town == 'cc')")) == [
        "age", "rate", "town",
    ]  # fmt: skip
    assert list(Schema({"a b": (0, 1), "c": (0, 1)}).sample(2, formula="Q('a b') ~ 1")) == ["a b"]
    for formula in ("y ~ x", "y ~ ("):
        with pytest.raises(ArgumentError, match="the formula"):
            PUBLIC.sample(2, formula=formula)
    for wrong in ({"n": 0}, {"n": True}, {"n": 2.0}, {"n": 2, "seed": -1}):
        with pytest.raises(ArgumentError, match="must be an integer"):
            PUBLIC.sample(**wrong)


def test_every_call_runs_on_made_up_rows():
    made = PUBLIC.sample(3000, seed=1)
    fit = dpreg.dp_ols("rate ~ age + town", made, eps=9, delta=1e-6, schema=PUBLIC)
    assert np.isfinite(fit.params).all()
    assert dpreg.dp_glm("own ~ age", made, eps=9, delta=1e-6, schema=PUBLIC).params.size == 2
