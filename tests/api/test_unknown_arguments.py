"""Arguments that a call does not have are refused by their names, which one was meant."""

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.errors import ArgumentError, UnknownArgument
from dpreg.privacy.budget import Budget, settled
from dpreg.privacy.ledger import Ledger
from dpreg.request import settle_budget

ROWS = pd.DataFrame({"x": np.linspace(0, 1, 200), "y": np.linspace(0, 1, 200) ** 2})
SCHEMA = {"x": (0, 1), "y": (0, 1)}
CELL = 52311.25


def fit(**given):
    return dpreg.dp_ols("y ~ x", ROWS, schema=SCHEMA, **given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"epsilon": 1}, r"^dp_ols\(\) has no argument 'epsilon'; did you mean 'eps'\?$"),
        ({"seed": 1}, r"'seed'; did you mean 'unsafe_seed'\?; results with it .* not private"),
        ({"subset": ROWS.x > 0.5}, r"'subset'; did you mean 'where'\?"),
        ({"alpha": 0.1}, r"'alpha': .*conf_int\(alpha=0.05\)"),
        ({"neighbours": "add-remove"}, r"did you mean 'neighbors'\?"),
        ({"vcov": "HC1"}, r"'vcov'; did you mean 'cov_type'\?"),
        ({"robust": True}, "residuals, which are not released"),
        ({"zzzzzz": 1}, r"has no argument 'zzzzzz'\.$"),
    ],
)
def test_what_a_call_lacks_is_named_with_what_was_meant(given, said):
    ledger = Ledger(Budget(9))
    with pytest.raises(UnknownArgument, match=said) as caught:
        fit(eps=1, budget=ledger, **given)
    assert str(CELL) not in str(caught.value)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ArgumentError)
    assert ledger.spent == Budget(0)


@pytest.mark.parametrize(
    "call",
    [getattr(dpreg, name) for name in dpreg.__all__ if name.startswith(("dp_", "plan", "s"))],
    ids=lambda call: call.__name__,
)
def test_every_public_call_refuses_by_name(call):
    with pytest.raises(UnknownArgument, match=rf"^{call.__name__}\(\) has no argument 'epsilln'"):
        call(epsilln=CELL)


def test_a_missing_argument_is_named_as_python_names_it():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'eps'"):
        fit()


def test_a_list_in_the_place_of_noise_is_an_error_of_its_own():
    with pytest.raises(ArgumentError, match=r"noise must be one of .*; got a list"):
        fit(eps=1, noise=[CELL])


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (0.3, "0.3"),
        (0.1 + 0.2, "0.3"),
        (sum([0.1] * 10), "1"),
        (1 - 0.9, "0.1"),
        (np.float64(0.1) * 3, "0.3"),
        (2 / 3, "0.666666666666"),
        (1e-6 / 3, "3.33333333333e-7"),
        (123456789012345.0, "123456789012345"),
        ("0.30000000000000004", "0.30000000000000004"),
        (Fraction(1, 3), "1/3"),
    ],
)
def test_a_number_of_arithmetic_is_taken_as_what_it_stands_for(given, taken):
    assert Budget(settled(given)).as_decimal()[0] == taken
    assert Budget(given).as_decimal()[0] == taken


@pytest.mark.parametrize("parts", [3, 7, 11, 13, 49])
def test_parts_of_a_budget_never_cost_more_than_the_whole(parts):
    assert Budget(2).covers(Budget(2 / parts) * parts)


@pytest.mark.parametrize("calls", [fit, lambda **o: dpreg.dp_mean("x", ROWS, schema=SCHEMA, **o)])
def test_what_is_taken_is_what_is_charged_claimed_and_recorded(calls):
    ledger = Ledger(Budget(9))
    result = calls(eps=0.1 + 0.2, budget=ledger)
    assert result.eps == Fraction(3, 10)
    assert ledger.spent == Budget("0.3")
    assert result.record.arguments["eps"] == "0.3"
    assert sum("0.3 was taken, charged and claimed" in note for note in result.notes) == 1
    assert "00000004" not in json.dumps(result.to_dict())
    assert not any("was taken" in note for note in calls(eps=0.3, budget=ledger).notes)


def test_delta_is_settled_too():
    given = {"eps": "0.1", "delta": (0.1 + 0.2) / 1e5}
    (note,) = settle_budget(given)
    assert note.startswith("delta had more digits")
    assert Budget(**given).delta == Fraction(3, 10**6)
