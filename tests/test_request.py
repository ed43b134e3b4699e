"""Requests are made from the arguments of the calls that they belong to."""

import dataclasses
import inspect

import pandas as pd
import pytest

import dpreg
from dpreg.api.classic import QuantileRequest
from dpreg.api.histogram import HistogramRequest
from dpreg.api.inputs import Choices
from dpreg.api.regression import OLSRequest
from dpreg.errors import ArgumentError
from dpreg.looks.model import Asked
from dpreg.options import unpacked
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.request import SelectionRequest

CALLS = {
    dpreg.dp_select: SelectionRequest,
    dpreg.dp_ols: OLSRequest,
    dpreg.dp_mean: Choices,
    dpreg.dp_suffstats: Choices,
    dpreg.dp_histogram: HistogramRequest,
    dpreg.dp_quantile: QuantileRequest,
}


def arguments(call, **given):
    """The call's defaults and what is given, as its own locals() would hold them."""
    parameters = inspect.signature(call).parameters
    told = {name: None if p.default is p.empty else p.default for name, p in parameters.items()}
    return unpacked({**told, "formula": "y ~ a", "eps": 1, "q": 0.5, **given})


@pytest.mark.parametrize("call", CALLS)
def test_a_request_holds_budget_and_protection_exactly(call):
    asked = CALLS[call].of(arguments(call, eps=0.1, neighbors="add-remove", contributions=3))
    assert asked.budget == Budget("0.1")
    assert asked.protection == Protection("add-remove", 3)
    assert asked.account().protection == asked.protection
    assert asked.account().rng is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        asked.budget = Budget(2)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "wrong",
    [
        {"eps": 0},
        {"neighbors": "swap"},
        {"contributions": 0},
        {"contributions": 1.5},
        {"unsafe_seed": -1},
    ],
)
def test_a_bad_argument_is_named(call, wrong):
    (name,) = wrong
    with pytest.raises(ArgumentError, match=name):
        CALLS[call].of(arguments(call, **wrong))


@pytest.mark.parametrize("call", [dpreg.dp_select, dpreg.dp_ols])
def test_every_argument_that_changes_the_noise_is_in_the_request(call):
    """All but the data, what describes or shows them, the account, and what became a value."""
    apart = {"data", "schema", "budget", "analyst", "progress", "where"}
    apart |= {"cov_type"}  # it decides which method
    became = {"eps", "delta", "neighbors", "contributions", "person", "unsafe_seed"}
    held = {field.name for field in dataclasses.fields(CALLS[call])}
    if call is dpreg.dp_select:  # what only a family has stands in a request of its own
        held |= {field.name for field in dataclasses.fields(Asked)}
    assert set(inspect.signature(call).parameters) - apart - became <= held


def test_a_seed_makes_the_account_s_generator():
    asked = SelectionRequest.of(arguments(dpreg.dp_select, unsafe_seed=3))
    assert asked.account().rng.random() == asked.account().rng.random()


def test_no_seed_means_private_noise():
    assert SelectionRequest.of(arguments(dpreg.dp_select)).account().rng is None


def selecting(**given):
    return SelectionRequest.of(arguments(dpreg.dp_select, **given))


def test_the_radius_is_held_in_units_of_the_clip():
    assert selecting(radius="1.5", clip="0.5").rho == 3
    assert selecting(clip="0.5").rho == 1
    with pytest.raises(ArgumentError, match="not known yet"):
        _ = selecting(radius="private").rho


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        ({"neighbors": "add-remove", "sigma2": 1}, True),
        ({"neighbors": "add-remove", "sigma2": 1, "penalty": 3}, False),
        ({"neighbors": "add-remove", "sigma2": "private"}, False),
        ({"neighbors": "add-remove"}, False),
        ({"neighbors": "add-remove", "method": "pcpl", "delta": "1e-6"}, True),
        ({"sigma2": 1}, False),
    ],
)
def test_a_count_is_bought_where_n_is_private_and_used(given, needed):
    assert selecting(**given).needs_count == needed


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"shares": {"bounds": "0.5", "radius": "0.5"}}, "less than 1"),
        ({"shares": {"lunch": "0.1"}}, "lunch"),
        ({"method": "pcpl"}, "delta above 0"),
        ({"penalty": "bic"}, "needs sigma2"),
        ({"radius": 2.0**80}, "2\\*\\*64"),
        (
            {
                "method": "pcpl",
                "delta": "1e-6",
                "contributions": 2,
                "neighbors": "add-remove",
                "fit": "split",
            },
            "not proved",
        ),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(given, says):
    with pytest.raises(ArgumentError, match=says):
        selecting(**given)


@pytest.mark.parametrize("shares", [pd.DataFrame({"fit": [0.2]}), [0.2], "fit", 0.2])
def test_shares_that_are_no_mapping_are_refused_by_their_type(shares):
    with pytest.raises(ArgumentError, match=f"got {type(shares).__name__}"):
        dpreg.dp_select("y ~ x", {"x": [0.0], "y": [0.0]}, eps=1, shares=shares)
