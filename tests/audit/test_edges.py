"""The ranges of `dpreg.columns`: inside, calls end as they should; outside, before the charge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracles.fuzz_calls import MAKERS, broken, pair

import dpreg
from dpreg.audit.events import NOTHING
from dpreg.errors import ArgumentError, DpregError

DOSE = 4
FULL = 60


def _holds(seed: int, name: str) -> bool:
    """Check the promises of a call at the ends of the ranges; return whether it was made."""
    one = pair(seed, (name,), edges=True, person=seed % 4 == 3)
    found, seen = broken(one, runs=1)
    assert not found, f"{one}\n" + "\n".join(found)
    return seen[0][0].seen["raised"] == NOTHING


@pytest.mark.parametrize("name", MAKERS)
def test_no_promise_is_broken_at_the_ends_of_the_ranges(name: str) -> None:
    seed = made = 0
    while seed < DOSE or not made:  # calls that are all refused would find nothing
        made += _holds(seed, name)
        seed += 1
        assert seed < FULL


@pytest.mark.audit
@pytest.mark.parametrize("seed", range(DOSE, DOSE + FULL))
@pytest.mark.parametrize("name", MAKERS)
def test_no_promise_is_broken_anywhere_near_the_ends(name: str, seed: int) -> None:
    _holds(seed, name)


ROWS = {"a": np.linspace(0, 1, 400), "y": np.tile([0.2, 0.9], 200), "h": np.tile([0, 1], 200)}
SCHEMA = {"a": (0, 1), "y": (0, 1), "h": (0, 1)}

Call = Callable[[dict[str, Any]], Any]
CALLS: dict[str, Call] = {
    "dp_mean": lambda told: dpreg.dp_mean("a", ROWS, **told),
    "dp_quantile": lambda told: dpreg.dp_quantile("a", 0.5, ROWS, **told),
    "dp_histogram": lambda told: dpreg.dp_histogram("a", ROWS, bins=2, **told),
    "dp_suffstats": lambda told: dpreg.dp_suffstats("a", ROWS, **told),
    "dp_ols": lambda told: dpreg.dp_ols("y ~ a", ROWS, **told),
    "dp_glm": lambda told: dpreg.dp_glm("h ~ a", ROWS, **told),
    "dp_select": lambda told: dpreg.dp_select("y ~ a", ROWS, **told),
    "dp_select of a family": lambda told: dpreg.dp_select("h ~ a", ROWS, family="binomial", **told),
    "sample_aggregate": lambda told: dpreg.sample_aggregate(
        lambda block: 0.5, ROWS, bounds=(0, 1), blocks=4, **told
    ),
}
BEYOND = {
    "no eps to speak of": ({"eps": "9.9e-7"}, "eps must lie between 1e-6 and 1e6"),
    "eps of no use": ({"eps": 1_000_001}, "eps must lie between 1e-6 and 1e6"),
    "eps that once ended a call": ({"eps": "1e165"}, "eps must lie between 1e-6 and 1e6"),
    "no delta to speak of": ({"delta": "9.9e-301"}, "delta must be 0, or at least 1e-300"),
    "delta of one": ({"delta": 1}, "delta"),
    "too many rows": ({"contributions": 10**6 + 1}, "contributions must be at most 1,000,000"),
    "large bounds": ({"schema": SCHEMA | {"a": (0, 1.01e100)}}, "give the column in another unit"),
    "large bounds below": (
        {"schema": SCHEMA | {"a": (-1.01e100, 1)}}, "give the column in another unit"
    ),
    "small bounds": ({"schema": SCHEMA | {"a": (9e-101, 1)}}, "give the column in another unit"),
}  # fmt: skip


@pytest.mark.parametrize("beyond", BEYOND)
@pytest.mark.parametrize("name", CALLS)
def test_numbers_beyond_are_refused_before_the_charge(name: str, beyond: str) -> None:
    ledger = dpreg.Ledger(dpreg.Budget("1e300", "0.99"))
    told, why = BEYOND[beyond]
    if name == "dp_quantile" and "delta" in told:
        return  # it takes none
    with pytest.raises(DpregError, match=why):
        CALLS[name]({"eps": 1, "schema": SCHEMA, "budget": ledger} | told)
    assert ledger.entries == ()


def test_a_step_of_too_little_is_refused_by_its_name() -> None:
    ledger = dpreg.Ledger(1)
    told = {"schema": {"y": (0, 1)}, "eps": "9e-6", "budget": ledger}  # a tenth buys bounds
    with pytest.raises(ArgumentError, match="the step 'bounds of a' gets 9e-07"):
        CALLS["dp_ols"](told)
    assert ledger.entries == ()


def test_edges_of_bins_are_bounds_too() -> None:
    ledger = dpreg.Ledger(1)
    with pytest.raises(ArgumentError, match="bins: each edge must be 0, or between"):
        dpreg.dp_histogram("a", ROWS, bins=[0, 1, 1e101], schema=SCHEMA, eps=1, budget=ledger)
    assert ledger.entries == ()
