"""From exact moments to a result: which rows count, which columns exclude each other."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.api.coefficients import exclusive_groups, unit_ball_rows
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
    result = dpreg.dp_select("y ~ a", table, 1, schema={"a": (-1, 1), "y": (-1, 1)}, fit=fit)
    assert result.nobs == 300
    assert result.regression.nobs == nobs
    assert result.regression.fit == fit
