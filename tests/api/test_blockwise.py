"""The steps of an aggregated estimate, driven as the R package drives them."""

import numpy as np
import pandas as pd
import pytest

from dpreg import Ledger
from dpreg.api.aggregate import sample_aggregate
from dpreg.api.blockwise import Aggregate, Groups
from dpreg.errors import ArgumentError, BudgetError
from dpreg.estimation.blocks import corrected, evaluations

N = 3_000


def table():
    rng = np.random.default_rng(1)
    return pd.DataFrame({"a": rng.uniform(0, 10, N), "g": rng.choice(["u", "v"], N)})


def driven(estimator, data, *, by=None, schema=None, budget=None, **options):
    """Run the estimator outside, one estimate for each evaluation of each block."""
    asked = Aggregate.checked(**options)
    steps = asked.steps(len(data), Groups.of(data, by, schema), budget)
    blocks = next(steps)
    while True:
        values = []
        for block in blocks:
            wanted = evaluations(block, asked.correct_bias)
            found = [np.array([estimator(data.iloc[rows])]) for rows in wanted]
            values.append(asked.limits.clip(corrected(found, [rows.size for rows in wanted])))
        try:
            blocks = steps.send(np.array(values))
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("correct_bias", [True, False])
@pytest.mark.parametrize("by", [None, "g"])
def test_whoever_runs_the_estimator_gets_the_same_numbers(by, correct_bias, neighbors):
    def estimator(block):
        return block["a"].median() if block["a"].iloc[0] < 9 else np.nan

    options = {
        "eps": 2, "bounds": (0, 10), "by": by, "schema": {"g": ["u", "v"]}, "unsafe_seed": 3,
        "correct_bias": correct_bias, "neighbors": neighbors,
    }  # fmt: skip
    data = table()
    assert driven(estimator, data, **options) == sample_aggregate(estimator, data, **options)


def test_nothing_is_charged_read_or_drawn_before_the_first_step(monkeypatch):
    log = []

    def note(owner, name):
        honest = getattr(owner, name)

        def noted(*args):
            log.append(name)
            return honest(*args)

        monkeypatch.setattr(owner, name, noted)

    note(Ledger, "charge")
    note(Groups, "labels")
    asked = Aggregate.checked(eps=1, bounds=(0, 1))
    grouped = Groups.of(table(), "g", {"g": ["u", "v"]})
    steps = asked.steps(N, grouped, Ledger(1))
    assert log == []
    next(steps)
    assert log == ["charge", "labels"]
    log.clear()
    with pytest.raises(BudgetError):
        next(asked.steps(N, grouped, Ledger("0.5")))
    assert log == ["charge"]


@pytest.mark.parametrize("option", [{"correct_bias": 1}, {"timeout": 0}, {"blocks": 2**40}])
def test_bad_arguments_are_refused_before_anything(option):
    with pytest.raises(ArgumentError, match=next(iter(option))):
        Aggregate.checked(eps=1, bounds=(0, 1), **option)
