"""What the classic calls share: columns, bounds and groups from the arguments of a call."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.api.inputs import (
    Bought,
    Choices,
    columns_of,
    fraction_of,
    group_codes,
    grouping,
)
from dpreg.errors import ArgumentError, DataError
from dpreg.estimation.histogram import count_change
from dpreg.privacy.noise import fit_noise
from dpreg.schema import Schema

SCHEMA = {"a": (0, 1), "g": ["u", "v"], "t": bool}
TABLE = pd.DataFrame({"a": [0.1, 0.9, 0.5], "g": ["u", None, "x"], "t": [True, False, True]})


def choices(**given):
    call = {"eps": 1, "neighbors": "replace-one", "contributions": 1, "unsafe_seed": None, **given}
    return Choices.of(call)


def columns(x, data=None, bounds=None, schema=None, by=None, complete=False, **given):
    told = {"x": x, "data": data, "bounds": bounds, "schema": schema, "by": by}
    told |= {"where": None, "progress": False, "complete": complete}
    return columns_of(told, choices(**given))


@pytest.mark.parametrize(
    ("x", "names"),
    [
        (np.zeros(3), ("x",)),
        (np.zeros((3, 2)), ("x0", "x1")),
        ([1, 2], ("x",)),
        (pd.Series([1.0], name="age"), ("age",)),
        (pd.Series([1.0], name=5), ("x",)),
        ({"a": [1.0], "b": [2.0]}, ("a", "b")),
    ],
)
def test_columns_have_names_whatever_holds_them(x, names):
    assert columns(x, bounds=(0, 1)).names == names


def test_bounds_come_from_the_call_before_the_schema():
    found = columns(["a", "t"], TABLE, {"a": (0, 2)}, SCHEMA)
    assert found.bounds == {"a": (0.0, 2.0), "t": (0.0, 1.0)}
    assert found.lines == 1


def test_rows_of_no_declared_group_are_in_none():
    assert group_codes(np.array([0.0, math.nan, 1.0])).tolist() == [0, -1, 1]
    assert group_codes(np.array([0, -1, 1], dtype=np.int32)).tolist() == [0, -1, 1]
    found = columns("a", TABLE, None, SCHEMA, "g")
    assert (found.groups, found.lines) == (("u", "v"), 2)

    seen = []

    def count(grouped):
        for _, labels in grouped:
            seen.extend(labels.tolist())
        return np.zeros(0, dtype=object)

    found.total(count, "a test")
    assert seen == [0, -1, -1]
    assert found.reader.rows == 3


def test_truths_are_two_groups():
    _, levels = grouping("t", Schema.from_any(SCHEMA))
    assert levels == ("False", "True")
    with pytest.raises(ArgumentError, match="declared levels"):
        grouping("a", Schema.from_any(SCHEMA))


def test_the_word_that_nothing_is_missing_needs_a_public_n_and_no_groups():
    assert columns("a", TABLE, None, SCHEMA, complete=True).complete
    assert not columns("a", TABLE, None, SCHEMA, neighbors="add-remove").complete
    with pytest.raises(ArgumentError, match="replace-one"):
        columns("a", TABLE, None, SCHEMA, complete=True, neighbors="add-remove")
    with pytest.raises(ArgumentError, match="cannot be used together"):
        columns("a", TABLE, None, SCHEMA, "g", complete=True)


def test_the_number_of_rows_is_told_where_it_is_public():
    told = (
        columns("a", TABLE, None, SCHEMA),
        columns("a", TABLE, None, SCHEMA, neighbors="add-remove"),
    )
    assert [found.public_rows for found in told] == [3, None]


def test_gaussian_noise_needs_delta():
    with pytest.raises(ArgumentError, match="delta above 0"):
        choices(noise="gaussian")
    assert choices(noise="gaussian", delta="1e-6").budget.delta == Fraction("1e-6")


@pytest.mark.parametrize("share", [0, 1, "1.5", -0.1])
def test_a_share_lies_between_zero_and_one(share):
    with pytest.raises(ArgumentError, match="share"):
        fraction_of(share, "share")
    assert fraction_of("0.2", "share") == Fraction(1, 5)


def test_noise_is_paid_for_at_what_it_was_fitted_to():
    noise = fit_noise("laplace", count_change(choices().protection), cells=3, cost=choices().budget)
    account = choices().account()
    bought = Bought.counts(account, "a step", 3, choices().budget)
    assert bought.noise == noise
    assert bought.part.cost == account.total == noise.cost


@pytest.mark.parametrize(("neighbors", "nobs"), [("replace-one", 3), ("add-remove", None)])
def test_the_number_of_rows_is_in_a_result_where_it_is_public(neighbors, nobs):
    call = {"bounds": (0, 1), "eps": 1, "neighbors": neighbors}
    assert dpreg.dp_mean("a", TABLE, **call).nobs == nobs
    assert dpreg.dp_quantile("a", 0.5, TABLE, **call).nobs == nobs


@pytest.mark.parametrize("person", [None, "who"])
@pytest.mark.parametrize("cell", [0.5, 7.0])
def test_a_column_named_as_dpreg_names_coins_is_refused_before_the_charge(cell, person):
    ledger = dpreg.Ledger(99)
    data = {"x": np.zeros(50), "y": np.zeros(50), "who": np.arange(50.0), "\0coin": [cell] * 50}
    given = {"eps": 9, "schema": {"x": (-1, 1), "\0coin": (0, 1), "y": (-1, 1)}, "budget": ledger}
    given |= {"person": person}
    calls = [
        lambda: dpreg.dp_select('y ~ x + Q("\\x00coin")', data, fit="fresh", **given),
        lambda: dpreg.dp_ols('y ~ x + Q("\\x00coin")', data, **given),
        lambda: dpreg.dp_mean("\0coin", data, **given),
        lambda: dpreg.sample_aggregate(lambda b: 0.0, data, bounds=(0, 1), **given),
    ]
    for call in calls:
        with pytest.raises(DataError, match="NUL"):
            call()
    assert ledger.spent.eps == 0


def test_rows_in_the_place_of_q_are_not_quoted():
    rows = np.array([0.25, 52311.25])
    with pytest.raises(ArgumentError, match="must lie between 0 and 1") as told:
        dpreg.dp_quantile(rows, q=rows, eps=1, bounds=(0, 1))
    assert "52311" not in str(told.value)
