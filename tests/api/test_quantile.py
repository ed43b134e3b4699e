"""Quantiles from the call: who pays, and which values count; `tests/estimation` has the theory."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.api.classic import QuantileRequest
from dpreg.errors import ArgumentError
from dpreg.privacy.ranks import RANK_UNIT

CALL = {"eps": 1, "neighbors": "replace-one", "contributions": 1, "unsafe_seed": None, "alpha": 0.1}


@pytest.mark.parametrize("q", [0.25, "0.25", [0.25], (0.25,), np.array([0.25])])
def test_a_quantile_is_taken_to_the_grid_of_ranks(q):
    request = QuantileRequest.of({**CALL, "q": q})
    assert request.shares == (RANK_UNIT // 4,)
    assert request.labels == ("q0.25",)


@pytest.mark.parametrize("q", [[], 0, 1, [0.5, 2]])
def test_what_is_no_quantile_is_refused(q):
    with pytest.raises(ArgumentError, match="q"):
        QuantileRequest.of({**CALL, "q": q})


def test_every_quantile_and_column_has_an_equal_share():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(0, 1, (500, 2)), columns=["a", "b"])
    result = dpreg.dp_quantile(["a", "b"], [0.25, 0.75], table, bounds=(0, 1), eps=2)
    assert result.budget["eps"].tolist() == ["0.1", *["0.475"] * 4]
    assert result.spent.eps == 2
    assert dpreg.dp_quantile("a", 0.5, table, bounds=(0, 1), eps=2, complete=True).budget[
        "eps"
    ].tolist() == ["2"]


def test_values_beyond_the_bounds_count_at_them():
    values = np.concatenate([np.full(300, -5.0), np.full(300, 0.5), np.full(500, 9.0)])
    result = dpreg.dp_quantile(
        values, [0.1, 0.4, 0.9], bounds=(0, 1), eps=1000, complete=True, unsafe_seed=1
    )
    np.testing.assert_allclose(result.params, [0, 0.5, 1], atol=1e-3)


def test_missing_values_count_for_nothing_and_groups_have_their_own():
    values = np.concatenate([np.full(400, 0.25), np.full(400, 0.75), np.full(4000, np.nan)])
    table = pd.DataFrame({"x": values, "g": ["u"] * 400 + ["v"] * 4400})
    result = dpreg.dp_quantile(
        "x", 0.5, table, bounds=(0, 1), by="g", schema={"g": ["u", "v"]}, eps=Fraction(1000)
    )
    np.testing.assert_allclose(result.params, [0.25, 0.75], atol=1e-3)
