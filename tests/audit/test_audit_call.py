"""The auditor of whole calls: it passes what is honest and finds what is not."""

import logging
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.audit import CallAudit, audit_call
from dpreg.audit.call import chance_of_constants
from dpreg.audit.events import PUBLIC, Elementary, Event, bound, observe, search
from dpreg.errors import ArgumentError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger

ROWS = pd.DataFrame({"x": np.linspace(0.0, 1.0, 20)})
OTHER = ROWS.assign(x=[1.0, *ROWS["x"][1:]])


def _mean(eps: Any, drawn: Any = None, seeds: Iterator[int] | None = None) -> Any:
    """Make a call that charges for eps and spends `drawn`."""

    def call(data: pd.DataFrame, ledger: Ledger) -> Any:
        ledger.charge(Budget(eps), "a mean")
        seed = None if seeds is None else next(seeds)
        eps_drawn = eps if drawn is None else drawn
        return dpreg.dp_mean(data["x"], bounds=(0, 1), eps=eps_drawn, unsafe_seed=seed)

    return call


def _found(audit: CallAudit) -> str:
    return "\n".join(str(finding) for finding in audit.findings)


def test_an_honest_call_passes() -> None:
    # Private draws would be blamed by chance, once in 10,000 times at most.
    audit = audit_call(_mean(1, seeds=count()), ROWS, OTHER, runs=100)
    assert audit.passed, audit
    assert audit.charged == Budget(1)
    assert audit.bound <= 1
    assert str(audit).startswith("CURATOR ONLY")
    assert "nothing breaks the promise" in str(audit)


def test_noise_at_a_larger_eps_than_charged_is_found() -> None:
    audit = audit_call(_mean("0.5", drawn=40), ROWS, OTHER, runs=100)
    assert not audit.passed
    assert audit.bound > 0.5
    assert "eps is at least" in str(audit)


def test_an_exception_after_the_charge_is_a_finding_by_itself() -> None:
    def call(data: pd.DataFrame, ledger: Ledger) -> float:
        ledger.charge(Budget(1), "a sum")
        if data["x"][0] > 0.5:
            raise OverflowError("too large")
        return 0.0

    audit = audit_call(call, ROWS, OTHER, runs=4)
    assert "an exception after the charge: OverflowError: too large" in _found(audit)


def test_an_error_before_the_charge_may_not_depend_on_rows_either() -> None:
    def call(data: pd.DataFrame, ledger: Ledger) -> float:
        if data["x"][0] > 0.5:
            raise ArgumentError("refused")
        ledger.charge(Budget(1), "a sum")
        return 0.0

    found = _found(audit_call(call, ROWS, OTHER, runs=4))
    assert "raised tells the tables apart" in found
    assert "charged tells the tables apart" in found


@pytest.mark.parametrize(
    "channel", ["early", "warnings", "logged", "printed", "names", "steps", "a"]
)
def test_whatever_no_noise_reaches_may_not_differ(channel: str) -> None:
    def call(data: pd.DataFrame, ledger: Ledger) -> Any:
        large = bool(data["x"][0] > 0.5)
        if channel == "early" and large:
            warnings.warn("large", UserWarning, stacklevel=1)
        ledger.charge(Budget(1), "a sum")
        if channel == "warnings" and large:
            warnings.warn("large", UserWarning, stacklevel=1)
        if channel == "logged" and large:
            logging.getLogger("a").warning("large")
        if channel == "printed" and large:
            print("large")

        class Result(dict[str, float]):
            budget = str(large) if channel == "steps" else ""

        return {"b" if channel == "names" and large else "a": float(channel == "a" and large)} | (
            Result()
        )

    if channel == "steps":
        plain = call

        def call(data: pd.DataFrame, ledger: Ledger) -> Any:
            result = plain(data, ledger)
            frame = pd.Series(result)
            object.__setattr__(frame, "budget", str(bool(data["x"][0] > 0.5)))
            return frame

    by_noise = channel in ("warnings", "names", "steps", "a")  # might follow from a released number
    audit = audit_call(call, ROWS, OTHER, runs=40 if by_noise else 4)
    what = "warned before the charge" if channel == "early" else channel
    assert f"{what} tells the tables apart" in _found(audit)
    assert audit_call(call, ROWS, ROWS, runs=4).passed
    if by_noise:
        assert audit_call(call, ROWS, OTHER, runs=4).passed


def test_a_rare_event_under_approximate_privacy_is_weighed_against_delta() -> None:
    rng = np.random.default_rng(1)

    def call(data: pd.DataFrame, ledger: Ledger) -> float:
        ledger.charge(Budget(1, "0.001"), "a coin")
        return float(rng.random() < (0.7 if data["x"][0] > 0.5 else 0.0))

    assert not audit_call(call, ROWS, OTHER, runs=400).passed

    def honest(data: pd.DataFrame, ledger: Ledger) -> float:
        ledger.charge(Budget(1, "0.8"), "a coin")
        return float(rng.random() < (0.7 if data["x"][0] > 0.5 else 0.0))

    assert audit_call(honest, ROWS, OTHER, runs=400).passed


def test_the_bound_holds_its_confidence() -> None:
    rng = np.random.default_rng(2)
    true = math.log(0.6 / 0.3)
    above = 0
    for _ in range(2000):
        above += bound(_binomials(rng), 200, delta=0.0, miss=0.1) > true
    assert above / 2000 < 0.1


def _binomials(rng: np.random.Generator) -> tuple[int, int]:
    return int(rng.binomial(200, 0.6)), int(rng.binomial(200, 0.3))


def test_the_search_adds_up_weak_events() -> None:
    """Ten noisy cells that each tell little: their weighted sum tells much."""
    rng = np.random.default_rng(3)

    def runs(shift: float) -> list[dict[str, float | str]]:
        return [
            {f"cell {j}": float(value) for j, value in enumerate(rng.normal(shift, 1, 10))}
            for _ in range(600)
        ]

    event = search(runs(0.0), runs(0.7), 0.0)
    assert event is not None
    assert len(event.parts) > 1
    happened = event.holds(runs(0.7)).mean(), event.holds(runs(0.0)).mean()
    likelier, other = happened[::-1] if event.first else happened
    assert math.log(likelier / max(other, 1 / 600)) > 2.0
    assert "weighted sum" in str(event)


@pytest.mark.parametrize(("runs", "eps"), [(4, 1), (10, 0.5), (20, 3)])
def test_the_chance_of_two_constants_is_bounded(runs: int, eps: float) -> None:
    """Randomised response over two values, the worst case, at every bias."""
    claimed = chance_of_constants(runs, Budget(str(eps)))
    for p in np.linspace(0.01, 0.99, 99):
        q = max(p * math.exp(-eps), 1 - (1 - p) * math.exp(eps))
        assert p**runs * (1 - q) ** runs <= claimed + 1e-12
    assert chance_of_constants(runs, Budget(10**6)) == 1.0


def test_a_panic_is_seen_and_an_interrupt_is_not() -> None:
    class Panic(BaseException):
        pass

    def stopped(error: type[BaseException]) -> Any:
        def call(data: pd.DataFrame, ledger: Ledger) -> float:
            ledger.charge(Budget(1), "a sum")
            raise error("here")

        return call

    assert "Panic: here" in _found(audit_call(stopped(Panic), ROWS, OTHER, runs=4))
    with pytest.raises(KeyboardInterrupt):
        observe(stopped(KeyboardInterrupt), ROWS)


def test_noise_added_in_floats_is_seen_by_its_low_bits() -> None:
    """Coarse noise on a number of few bits, or of all: the sum keeps the difference."""
    rng = np.random.default_rng(5)

    def call(data: pd.DataFrame, ledger: Ledger) -> float:
        ledger.charge(Budget("0.01"), "a sum")
        exact = 0.5 if data["x"][0] > 0.5 else 0.1
        return exact + float(rng.integers(-(2**20), 2**20)) / 2**10

    audit = audit_call(call, ROWS, OTHER, runs=200)
    assert audit.bound > 1
    assert "bits used" in audit.event


def test_what_a_call_returns_is_walked_to_its_leaves() -> None:
    @dataclass
    class Found:
        huge: int
        table: pd.Series
        pair: tuple[float, float]

    found = Found(10**400, pd.Series({"b": 0.25}), (1.0, math.inf))
    seen = observe(lambda data, ledger: found, ROWS).seen
    assert (seen["huge"], seen["table.b"]) == (str(10**400), 0.25)
    assert (seen["table.b (bits used)"], seen["pair[1] (bits used)"]) == (1.0, 0.0)


def test_a_rare_tail_is_searched() -> None:
    rng = np.random.default_rng(6)
    plain = [{"n": float(value)} for value in rng.normal(size=3000)]
    other = [{"n": float(value)} for value in rng.normal(size=3000)]
    other[:30] = [{"n": float(value)} for value in 10 + rng.random(30)]
    event = search(plain, other, 0.001)
    assert event is not None
    assert event.holds(other[:30]).all() != event.holds(plain).all()
    assert sum(event.holds(plain)) in (0, 1, 2, 2998, 2999, 3000)


def test_nothing_to_see_gives_no_event() -> None:
    audit = audit_call(lambda data, ledger: 1.0, ROWS, OTHER, runs=4)
    assert (audit.bound, audit.event, audit.passed) == (-math.inf, "none", True)


def test_events_in_words() -> None:
    part = Elementary("nobs", "below", 2.0)
    assert str(Event((part,), (-1.0,), 0.0, True)) == "not nobs <= 2.0"


def test_numbers_and_texts_are_told_apart_and_nan_is_one_thing() -> None:
    nan = observe(lambda data, ledger: math.nan, ROWS).seen
    assert nan[""] == "nan"
    same = Event((Elementary("", "equals", "nan"),), (1.0,), 0.0, True)
    below = Event((Elementary("", "below", 1.0),), (1.0,), 0.0, True)
    runs = [nan, {"": "text"}, {"": 0.5}, {}]
    assert same.holds(runs).tolist() == [True, False, False, False]
    assert below.holds(runs).tolist() == [False, False, True, False]


def test_every_channel_is_observed() -> None:
    seen = observe(_mean(1), ROWS).seen
    assert set(PUBLIC) <= set(seen)
    assert seen["pickle length"] > 100
    assert "claim.spends" in " ".join(seen) or "budget" in seen


@pytest.mark.parametrize(("runs", "confidence"), [(3, 0.9), (10, 1.0), (10, 0.0)])
def test_arguments_are_checked(runs: int, confidence: float) -> None:
    with pytest.raises(ArgumentError):
        audit_call(_mean(1), ROWS, OTHER, runs=runs, confidence=confidence)


def test_progress_that_is_no_truth_is_refused_before_a_run() -> None:
    with pytest.raises(ArgumentError, match="progress"):
        audit_call(_never, ROWS, OTHER, progress="x")  # type: ignore[arg-type]


def _never(data: object, ledger: Ledger) -> object:
    raise AssertionError("a run was made")
