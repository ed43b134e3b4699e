"""Bounds that the schema leaves out: what is tried before, who pays, and what they may be."""

import math
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest

from dpreg import dp_ols, dp_select
from dpreg.columns import Numeric
from dpreg.errors import DataError, DpregWarning, SchemaError
from dpreg.formula.bounds import (
    _kept_within,
    buy_bounds,
    open_bounds,
    with_stand_ins,
)
from dpreg.formula.design import build_design
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.schema import Schema
from dpreg.sources import as_source
from dpreg.sources.reader import Reader

SCHEMA = Schema.from_any({"y": (0, 1)})


def account(eps=1, contributions=1):
    return Account(Protection("replace-one", contributions), Budget(eps))


@pytest.mark.parametrize("names", [("a",), ("a", "b", "c")])
def test_all_columns_share_one_share_of_eps(names):
    call = account(eps=2)
    parts = open_bounds(call, names, Fraction(1, 5))
    assert list(parts) == list(names)
    assert {part.cost.eps for part in parts.values()} == {Fraction(2, 5) / len(names)}
    assert call.total.eps == Fraction(2, 5)


def test_no_column_costs_nothing():
    call = account()
    assert open_bounds(call, (), Fraction(1, 10)) == {}
    assert call.total.eps == 0


@pytest.mark.parametrize(
    "formula", ["y ~ np.log(a)", "y ~ np.sqrt(a)", "y ~ np.exp(a)", "y ~ I(1 / a)", "y ~ I(a > 0)"]
)
def test_a_factor_that_some_bounds_would_not_allow_is_refused(formula):
    with pytest.raises(SchemaError, match="declare those of the columns in this factor"):
        with_stand_ins(partial(build_design, formula), SCHEMA, ("a",))


@pytest.mark.parametrize("formula", ["y ~ a", "y ~ I(a ** 2)", "y ~ np.abs(a) + I(2 * a - 1)"])
def test_a_factor_that_any_bounds_allow_is_built(formula):
    design = with_stand_ins(partial(build_design, formula), SCHEMA, ("a",))
    assert "a" in design.needed


@pytest.mark.parametrize(
    ("lo", "hi"),
    [
        (0.0, 0.0),
        (1e9, 1e9),
        (-math.inf, math.inf),
        (1e300, 1e300),
        (-1.0, 1.0),
        (5e-324, 1e-323),
        (3.0, 2.0),
    ],
)
def test_bought_bounds_have_a_width_and_are_finite(lo, hi):
    kept = _kept_within(lo, hi)
    assert math.isfinite(kept.lo)
    assert math.isfinite(kept.hi)
    assert kept.hi - kept.lo >= max(2.0**-60, abs(kept.hi) * 2.0**-21)
    if lo < hi <= 2.0**150:
        assert kept.lo <= lo
        assert kept.hi >= hi


def test_bounds_are_bought_in_three_passes_for_all_columns_at_once():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.uniform(0, 1, 5000), "b": rng.normal(50, 1, 5000)})
    reader, call = Reader(as_source(table)), account(eps=100)
    parts = open_bounds(call, ("a", "b"), Fraction(1))
    call.charge(None, "a test")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpregWarning)
        schema = buy_bounds(reader, SCHEMA, parts)
    assert reader.passes == 3
    assert isinstance(schema["b"], Numeric)
    assert 30 < schema["b"].lo < 49 < 51 < schema["b"].hi < 70
    assert schema["y"] == SCHEMA["y"]
    assert len(call.table().spends) == 2


def test_nothing_is_read_where_nothing_is_bought():
    reader = Reader(as_source({"a": [1.0]}))
    assert buy_bounds(reader, SCHEMA, {}) is SCHEMA
    assert reader.passes == 0


@pytest.mark.parametrize(
    "call", [partial(dp_ols, method="gram"), partial(dp_select, method="pcls")]
)
def test_a_table_that_cannot_be_read_often_enough_is_refused(call):
    pa = pytest.importorskip("pyarrow")
    stream = as_source(pa.table({"a": [1.0], "y": [1.0]}).to_reader(), hold=False)
    with pytest.raises(DataError, match="this call must read it 4 times"):
        call("y ~ a", stream, schema=SCHEMA, eps=1.0, neighbors="add-remove")
