import json
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpreg.errors import ArgumentError, BudgetError
from dpreg.privacy import budget as module
from dpreg.privacy.budget import (
    Budget,
    BudgetTable,
    Spend,
    decimal_string,
    exact,
    in_parallel,
    together,
)

FRACTIONS = st.fractions(min_value=0, max_value=1000)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (0.1, Fraction(1, 10)),
        (1, Fraction(1)),
        (1e-6, Fraction(1, 10**6)),
        ("0.1", Fraction(1, 10)),
        (" 2.50 ", Fraction(5, 2)),
        ("1/3", Fraction(1, 3)),
        ("0.1/0.3", Fraction(1, 3)),
        (Decimal("0.30"), Fraction(3, 10)),
        (Fraction(2, 7), Fraction(2, 7)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (np.int64(3), Fraction(3)),
    ],
)
def test_exact_takes_the_decimal_typed(typed, meant):
    assert exact(typed, "eps") == meant


def test_exact_keeps_no_number_that_overflows():
    held = exact(Fraction(np.int64(2**62), np.int64(3)), "eps")
    assert type(held.numerator) is type(held.denominator) is int
    assert not Budget(Fraction(np.int64(3))).covers(Budget(2**63))


@pytest.mark.parametrize(
    "typed",
    [
        True,
        np.True_,
        float("nan"),
        float("inf"),
        -np.inf,
        "nan",
        "inf",
        "1/0",
        "1/x",
        "",
        None,
        1j,
        [1],
        "1e999999999",
        Decimal("NaN"),
        "1e-500",
    ],
)
def test_exact_refuses_what_is_no_finite_number_and_names_the_argument(typed):
    with pytest.raises(ArgumentError, match="radius"):
        exact(typed, "radius")


def test_fifty_spends_of_a_tenth_make_five():
    assert together([Budget(0.1)] * 50) == Budget(5)
    assert Budget(0.1) * 50 == Budget(5)
    assert sum((0.1 for _ in range(50)), 0.0) != 5.0  # what floats make of it


@pytest.mark.parametrize(
    ("eps", "delta"),
    [
        (float("nan"), 0),
        (1, float("nan")),
        (float("inf"), 0),
        (-0.1, 0),
        (1, -1e-9),
        (1, 1),
        (1, 1.5),
        (True, 0),
        (1, False),
        ("much", 0),
        (None, 0),
    ],
)
def test_a_budget_refuses_what_is_none(eps, delta):
    with pytest.raises(BudgetError):
        Budget(eps, delta)


def test_a_budget_is_frozen_and_exact():
    budget = Budget(0.1, "1e-6")
    assert (budget.eps, budget.delta) == (Fraction(1, 10), Fraction(1, 10**6))
    with pytest.raises(AttributeError):
        budget.eps = Fraction(9)
    assert str(budget) == "eps=0.1, delta=0.000001"
    assert str(Budget("1/3")) == "eps=1/3"
    assert eval(repr(budget)) == budget


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Fraction(0), "0"),
        (Fraction(100), "100"),
        (Fraction(1, 8), "0.125"),
        (Fraction(-7, 20), "-0.35"),
        (Fraction(1, 3), "1/3"),
        (Fraction(7, 30), "7/30"),
        (Fraction(1, 10**12), "1e-12"),
    ],
)
def test_decimals_are_written_exactly(value, written):
    assert decimal_string(value) == written


@given(FRACTIONS, st.fractions(min_value=0, max_value=Fraction(99, 100)))
def test_round_trips_are_exact(eps, delta):
    budget = Budget(eps, delta)
    assert exact(decimal_string(eps), "eps") == eps
    assert Budget.from_dict(json.loads(json.dumps(budget.to_dict()))) == budget
    assert pickle.loads(pickle.dumps(budget)) == budget


@given(FRACTIONS, FRACTIONS)
def test_arithmetic(a, b):
    assert Budget(a) + Budget(b) == Budget(a + b)
    assert Budget(a + b) - Budget(b) == Budget(a)
    assert Budget(a + b).covers(Budget(b))
    assert in_parallel([Budget(a), Budget(b)], contributions=1) == Budget(max(a, b))


def test_covers_needs_both_parts_and_subtraction_refuses_to_go_below_zero():
    assert not Budget(1).covers(Budget(0.5, 1e-9))
    assert not Budget(1, 0.5).covers(Budget(1.1))
    with pytest.raises(BudgetError):
        Budget(1) - Budget(1.0000001)
    with pytest.raises(BudgetError):
        together([Budget(0, 0.6), Budget(0, 0.6)])
    with pytest.raises(BudgetError):
        Budget(1) * float("nan")
    with pytest.raises(TypeError):
        Budget(1) + 1


def test_the_table_shows_exact_strings_and_adds_up():
    table = BudgetTable((Spend("bounds", "histogram", "0.1"), Spend("selection", "pf", "0.9")))
    assert table.total == Budget(1)
    frame = table.frame()
    assert list(frame.columns) == ["step", "mechanism", "eps", "delta"]
    assert list(frame["eps"]) == ["0.1", "0.9"]
    assert list(frame["delta"]) == ["0", "0"]
    assert list(BudgetTable().frame().columns) == ["step", "mechanism", "eps", "delta"]


def test_disjoint_groups_of_rows_compose_in_parallel():
    table = BudgetTable(
        (
            Spend("bounds", "histogram", "0.1"),
            Spend("selection", "permute-and-flip", "0.9", rows="half 1"),
            Spend("moments", "k-norm", "0.5", rows="half 2"),
            Spend("scale", "laplace", "0.2", rows="half 2"),
        )
    )
    assert table.total == Budget(1)
    assert list(table.frame()["rows"]) == ["all", "half 1", "half 2", "half 2"]


def test_deltas_add_where_one_person_may_own_rows_in_both_halves():
    halves = (
        Spend("selection", "exponential", 1, "1e-6", rows="half 1"),
        Spend("moments", "gaussian", 1, "1e-6", rows="half 2"),
    )
    assert BudgetTable(halves).total == Budget(1, "1e-6")
    assert BudgetTable(halves, contributions=3).total == Budget(1, "2e-6")
    assert BudgetTable(halves[:1], contributions=3).total == Budget(1, "1e-6")


def test_gaussian_delta_falls_with_the_share_of_rows():
    # The step of the proof in `in_parallel`: delta(a eps, a m) rises with a.
    from scipy.stats import norm

    shares = np.linspace(0.02, 1, 50)
    for eps in (0.1, 1.0, 5.0):
        for ratio in (0.05, 0.3, 1.0, 4.0):
            e, m = shares * eps, shares * ratio
            delta = norm.cdf(-e / m + m / 2) - np.exp(e) * norm.cdf(-e / m - m / 2)
            assert (np.diff(delta) >= -1e-15).all()


def test_mutant_floats_for_fractions_is_caught(monkeypatch):
    monkeypatch.setattr(module, "exact", lambda value, name, error=None: Fraction(value))
    assert together([Budget(0.1)] * 50) != Budget(5)
