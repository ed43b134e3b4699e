"""The steps of an aggregated estimate, driven as the R package drives them."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpreg
from dpreg import Ledger
from dpreg.api import aggregate as blockwise
from dpreg.api.aggregate import Aggregate, block_table, sample_aggregate
from dpreg.errors import ArgumentError, BudgetError, SchemaError
from dpreg.estimation.blocks import corrected, evaluations
from dpreg.sources.table import TableSource

N = 3_000


def table():
    rng = np.random.default_rng(1)
    return pd.DataFrame({"a": rng.uniform(0, 10, N), "g": rng.choice(["u", "v"], N)})


def held(data, by=None, schema=None):
    """Settle what blocks are taken from."""
    told = {"data": data, "by": by, "schema": schema, "where": None, "progress": None}
    return block_table(Aggregate.of({"eps": 1, "bounds": (0, 1)}), told)


def driven(estimator, data, *, by=None, schema=None, budget=None, **options):
    """Run the estimator outside, one estimate for each evaluation of each block."""
    asked = Aggregate.of(options)
    steps = asked.steps(held(data, by, schema), budget)
    blocks = next(steps)
    while True:
        values = []
        for block in blocks.rows:
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
        "eps": 2, "bounds": (0, 10), "by": by, "unsafe_seed": 3,
        "schema": {"a": (0, 10), "g": ["u", "v"]},
        "correct_bias": correct_bias, "neighbors": neighbors,
    }  # fmt: skip
    data = table()
    assert driven(estimator, data, **options) == sample_aggregate(estimator, data, **options)


def test_nothing_is_charged_read_or_drawn_before_the_first_step(monkeypatch):
    log = []

    def note(owner, name):
        honest = getattr(owner, name)

        def noted(*args, **options):
            log.append(name)
            return honest(*args, **options)

        monkeypatch.setattr(owner, name, noted)

    note(Ledger, "charge")
    note(TableSource, "chunks")
    asked = Aggregate.of({"eps": 1, "bounds": (0, 1)})
    grouped = held(table(), "g", {"g": ["u", "v"]})
    steps = asked.steps(grouped, Ledger(1))
    assert log == []
    next(steps)
    assert log == ["charge", "chunks"]
    log.clear()
    with pytest.raises(BudgetError):
        next(asked.steps(grouped, Ledger("0.5")))
    assert log == ["charge"]


@pytest.mark.parametrize(
    "option",
    [
        {"correct_bias": 1},
        {"timeout": 0},
        {"timeout": "1e300"},
        {"timeout": "1e400"},
        {"timeout": 3 * 10**6},  # Python's wait for a process ends in an OverflowError
        {"blocks": 10**7 + 1},
    ],
)
def test_bad_arguments_are_refused_before_anything(option):
    with pytest.raises(ArgumentError, match=next(iter(option))):
        Aggregate.of({"eps": 1, "bounds": (0, 1), **option})


# ---- the ledger, and what is refused before it is charged ------------------------------------


def mean(block):
    return float(np.mean(block))


def test_the_charge_says_whom_it_protects_and_a_ledger_keeps_to_one_unit():
    ledger = Ledger(9)
    sample_aggregate(mean, [1.0] * 50, bounds=(0, 2), eps=1, contributions=3, budget=ledger)
    assert ledger.entries[0].unit == "replace-one, 3 rows a person"
    with pytest.raises(BudgetError, match="add-remove, 1 row a person"):
        sample_aggregate(
            mean, [1.0] * 50, bounds=(0, 2), eps=1, neighbors="add-remove", budget=ledger
        )
    assert ledger.spent.eps == 1


def test_a_budget_that_is_no_ledger_is_refused():
    with pytest.raises(ArgumentError, match="budget must be a Ledger"):
        sample_aggregate(mean, [1.0] * 50, bounds=(0, 2), eps=1, budget=5)


@pytest.mark.parametrize(("by", "most"), [(None, N // 2), ("g", N // 4)])
def test_more_blocks_than_half_of_the_public_rows_are_refused_before_the_charge(by, most):
    ledger = Ledger(9)
    options = {"bounds": (0, 10), "by": by, "schema": {"g": ["u", "v"]}, "eps": 1}

    def call(blocks, neighbors="replace-one"):
        return sample_aggregate(
            lambda block: block["a"].mean(), table(), blocks=blocks, neighbors=neighbors,
            correct_bias=False, aggregation="mean", budget=ledger, **options,
        )  # fmt: skip

    with pytest.raises(ArgumentError, match=f"blocks={most + 1} .*{N} rows"):
        call(most + 1)
    assert ledger.entries == ()
    assert call(most).blocks == most
    assert len(ledger.entries) == 1


def test_blocks_of_a_private_number_of_rows_are_warned_of_by_the_arguments_alone():
    def notes(rows, **options):
        call = {"bounds": (0, 2), "eps": 1, "correct_bias": False} | options
        return sample_aggregate(mean, [1.0] * rows, **call).notes

    private = {"neighbors": "add-remove"}
    warned = notes(2_000, blocks=20, **private)
    assert "block without rows" in warned[-1]
    assert warned == notes(3, blocks=20, **private) == notes(0, blocks=20, **private)
    plain = notes(2_000, blocks=20)
    assert warned[:-1] == plain == notes(2_000, **private)
    # eps = 0.01 does not tell 2,000 rows from none; seeds 0 to 4 released no more than 5,000
    assert warned in [notes(2_000, **private, eps="0.01", unsafe_seed=seed) for seed in range(5)]


def test_no_noise_on_the_number_of_rows_makes_more_blocks_than_can_be_drawn(monkeypatch):
    monkeypatch.setattr(blockwise, "_MOST_BLOCKS", 7)
    assert sample_aggregate(mean, [1.0] * 400, bounds=(0, 2), eps=1).blocks == 7


def test_a_group_may_be_small_whatever_the_relation():
    for neighbors in ("replace-one", "add-remove"):
        result = sample_aggregate(
            lambda block: block["a"].mean(), table(), bounds=(0, 10), by="g",
            schema={"g": ["u", "v"]}, eps=1, neighbors=neighbors,
        )  # fmt: skip
        assert "in a group of few rows" in result.notes[-1]


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_an_eps_too_small_for_a_window_is_refused_before_the_charge(neighbors):
    ledger = Ledger(1)
    options = {"bounds": (0, 2), "aggregation": "winsorized", "neighbors": neighbors}
    with pytest.raises(ArgumentError, match="eps is too small"):
        sample_aggregate(
            mean, [1.0] * 90, eps="1e-5", contributions=10**6, budget=ledger, **options
        )
    assert ledger.entries == ()
    sample_aggregate(mean, [1.0] * 90, eps="1e-4", blocks=4, budget=ledger, **options)


def test_the_longest_time_limit_is_one_that_works():
    options = {"bounds": (0, 2), "eps": 1, "blocks": 2}
    sample_aggregate(mean, [1.0] * 20, timeout=10**6, **options)


@pytest.mark.parametrize("data", [[1.0] * 50, np.ones(50), table()], ids=["list", "array", "frame"])
def test_a_schema_is_checked_even_where_it_is_not_needed(data):
    ledger = Ledger(1)
    options = {"bounds": (0, 2), "eps": 1, "budget": ledger}
    with pytest.raises(SchemaError, match="'a'"):
        sample_aggregate(mean, data, schema={"a": (3, 1)}, **options)
    with pytest.raises(SchemaError, match="schema must be"):
        sample_aggregate(mean, data, schema=3, **options)
    assert ledger.entries == ()


TINY = {"bounds": (0, 2), "eps": "6e-5", "neighbors": "add-remove", "aggregation": "mean"}


def test_a_number_of_rows_that_is_but_noise_is_refused_before_the_charge():
    ledger = Ledger(1)
    for rows in (0, 3, 400):
        with pytest.raises(ArgumentError, match="about 1,178,511 rows\\. Give blocks"):
            sample_aggregate(mean, [1.0] * rows, budget=ledger, **TINY)
    assert ledger.entries == ()
    assert sample_aggregate(mean, [1.0] * 400, blocks=9, budget=ledger, **TINY).blocks == 9
    assert sample_aggregate(mean, [1.0] * 400, **{**TINY, "neighbors": "replace-one"}).blocks == 20


def test_blocks_of_mere_noise_are_seen(monkeypatch):
    """Without the refusal three rows may be cut into some hundred thousand blocks."""
    monkeypatch.setattr(blockwise, "_MOST_DOUBT", math.inf)
    found = [
        sample_aggregate(mean, [1.0] * 3, **TINY, unsafe_seed=seed).blocks for seed in range(4)
    ]
    assert max(found) > 10_000


def test_a_block_without_rows_has_the_midpoint_and_is_never_estimated():
    asked = []

    def estimator(block):
        asked.append(len(block))
        return 2.0

    result = sample_aggregate(
        estimator, [1.0] * 3, bounds=(0, 2), eps=10**6, blocks=300, neighbors="add-remove",
        aggregation="mean",
    )  # fmt: skip
    assert sum(asked) == 3
    assert 0 not in asked
    assert result.params.iloc[0] == pytest.approx(1 + len(asked) / 300, abs=1e-3)
    assert np.isnan(corrected([np.ones(1)], [0])).all()


def test_rows_whose_persons_nobody_knows_are_refused_before_the_charge():
    ledger = Ledger(1)
    asked = Aggregate.of({"eps": 1, "bounds": (0, 10), "person": "who"})
    for taken in (held(table(), "g", {"g": ["u", "v"]}), held([1.0, 2.0])):
        with pytest.raises(ArgumentError, match="person needs a table"):
            next(asked.steps(taken, ledger))
    assert ledger.entries == ()


def failing_note(estimator, **options):
    data = np.random.default_rng(0).uniform(0, 1, 20_000)
    call = {"bounds": (0, 1), "eps": 1, "blocks": 400, "unsafe_seed": 1, **options}
    result = sample_aggregate(estimator, data, **call)
    assert any("estimator fails counts as the midpoint" in note for note in result.notes)
    return any("does the estimator fail?" in note for note in result.notes)


def test_an_aggregate_of_midpoints_alone_is_told():
    def raising(block):
        raise KeyError("incme")

    def mostly(block):
        return np.median(block) if block[0] < 0.3 else raising(block)

    assert failing_note(raising)
    assert failing_note(mostly)
    assert failing_note(raising, bounds={"a": (0, 1), "b": (-5, 9)})
    assert not failing_note(np.mean, blocks=50)
    assert not failing_note(np.mean)
    assert not failing_note(np.var)


def test_intervals_of_few_blocks_are_student_s():
    result = sample_aggregate(
        mean, [1.0, 2.0] * 200, bounds=(0, 3), eps=1, blocks=5, unsafe_seed=1, aggregation="mean"
    )
    half = np.diff(result.conf_int(0.1).to_numpy())[0, 0] / 2
    np.testing.assert_allclose(half, stats.t(4).ppf(0.95) * result.bse.iloc[0])
    assert "Student's law, with 4 degrees of freedom" in " ".join(
        str(result.summary(full=True)).split()
    )


def test_the_record_holds_the_call_s_own_charge_whatever_the_estimator_charges():
    outer, inner = Ledger(9), Ledger(9)

    def spending(block):
        dpreg.dp_mean(block, bounds=(0, 1), eps="0.1", budget=inner)
        return 0.5

    call = {"bounds": (0, 1), "eps": 1, "blocks": 3, "correct_bias": False}
    result = sample_aggregate(spending, [0.5] * 60, budget=outer, **call)
    assert inner.spent.eps > 0
    assert result.record.ledger.head == str(outer.head)
    assert sample_aggregate(spending, [0.5] * 60, **call).record.ledger is None
