"""From exact moments to a result: which rows count, which columns exclude each other."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.api.context import exclusive_groups
from dpreg.api.moments import unit_ball_rows
from dpreg.errors import BudgetError, DpregWarning
from dpreg.formula.design import build_design
from dpreg.moments import read_moments
from dpreg.schema import Schema
from dpreg.sources import as_source
from dpreg.sources.reader import Reader

SCHEMA = Schema.from_any({"y": (-1, 1), "a": (-1, 1), "g": ["u", "v", "w"]})
DESIGN = build_design("y ~ a + g", SCHEMA, clip=Fraction(1), center=True)


def columns(design):
    return [column for term in design.terms for column in term.columns]


def test_columns_of_a_factor_exclude_each_other():
    assert exclusive_groups(DESIGN, columns(DESIGN)) == [(1, 2)]
    assert exclusive_groups(DESIGN, [0, 1, 3]) == []


def test_columns_of_a_product_with_a_number_do_not():
    design = build_design("y ~ g + a:g", SCHEMA)
    places = {term.name: term.columns for term in design.terms}
    assert len(places["a:g"]) == 3
    assert exclusive_groups(design, columns(design)) == [places["g"]]


def wide_table(rows):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"y": rng.uniform(-1, 1, rows), "k": rng.integers(0, 50, rows)})


WIDE = {"y": (-1, 1), "k": {"levels": list(range(50))}}


def test_a_factor_too_wide_for_its_rows_is_told_before_the_charge():
    ledger, table = dpreg.Ledger("0.1"), wide_table(500)
    told = pytest.warns(DpregWarning, match=r"k has 50 levels for 500 rows, about 10 each")
    with told, pytest.raises(BudgetError):
        dpreg.dp_ols("y ~ k", table, 1, schema=WIDE, method="gram", budget=ledger)


def test_a_factor_with_rows_enough_is_not_spoken_of():
    dpreg.dp_ols("y ~ k", wide_table(40_000), 1, schema=WIDE, method="gram", unsafe_seed=1)


def test_a_private_number_of_rows_has_no_say_in_a_warning():
    given = {"schema": WIDE, "method": "gram", "neighbors": "add-remove", "unsafe_seed": 1}
    dpreg.dp_ols("y ~ k", wide_table(500), 1, **given)


@pytest.mark.parametrize("scaling", ["box", "row-norm", "row-norm-xy", "max-norm"])
def test_rows_lie_in_the_unit_ball_and_incomplete_ones_count_for_nothing(scaling):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"y": rng.uniform(-1, 1, 60), "a": rng.uniform(-1, 1, 60), "g": ["u", "v", "w"] * 20}
    )
    table.loc[:9, "a"] = np.nan
    table.loc[10:14, "g"] = "undeclared"
    rows = unit_ball_rows(DESIGN, columns(DESIGN), scaling)
    (chunk,) = as_source(table).chunks(rows.types, 100)
    made = rows.block(chunk)
    assert made.shape == (60, rows.size)
    assert not made[:15, 1:].any()
    assert (np.linalg.norm(made[:, 1:-1], axis=1) <= 1).all()
    (moments,) = read_moments(Reader(as_source(table)), rows)
    alone = read_moments(Reader(as_source(table.iloc[15:])), rows)[0]
    assert [row[1:] for row in moments.cells[1:]] == [row[1:] for row in alone.cells[1:]]


@pytest.mark.parametrize(("fit", "nobs"), [("split", None), ("share", 300)])
def test_the_rows_of_a_half_are_not_said_to_be_all(fit, nobs):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.uniform(-1, 1, (300, 2)), columns=["a", "y"])
    told = {"schema": {"a": (-1, 1), "y": (-1, 1)}, "method": "pcls", "fit": fit}
    result = dpreg.dp_select("y ~ a", table, 1, **told)
    assert result.nobs == 300
    assert result.regression.nobs == nobs
    assert result.regression.fit == fit
