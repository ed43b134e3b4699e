"""Calls that say whose row each row is: what they compute is a function of k rows a person."""

import json

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.errors import ArgumentError, BudgetError, DataError, DpregWarning
from dpreg.results.base import load
from dpreg.sources import as_source, persons

SCHEMA = {"x": (0, 1), "y": (0, 1), "g": ["a", "b"]}
FORMULA = "y ~ x + g"


def told(result):
    """What a result holds but for its record, which knows the time of day."""
    saved = json.loads(result.to_json())
    return json.dumps(_without_records(saved))


def _without_records(value):
    if isinstance(value, dict):
        return {name: _without_records(one) for name, one in value.items() if name != "record"}
    return [_without_records(one) for one in value] if isinstance(value, list) else value


def panel(people=400, seed=0, visits=6):
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), rng.integers(1, visits, people))
    x = rng.random(len(who)).round(2)
    g = rng.choice(["a", "b"], len(who))
    return pd.DataFrame({"who": who, "x": x, "y": (x + rng.random(len(who))) / 2, "g": g})


def aggregated(data, **options):
    options.pop("by", None)
    return dpreg.sample_aggregate(lambda b: b.x.mean(), data, bounds=(0, 1), blocks=20, **options)


CALLS = {
    "dp_select": lambda data, **options: dpreg.dp_select(FORMULA, data, **options),
    "private radius": lambda data, **options: dpreg.dp_select(
        FORMULA, data, radius="private", sigma2="private", **options
    ),
    "pcpl": lambda data, **options: dpreg.dp_select(
        FORMULA, data, method="pcpl", **{"delta": "1e-6", **options}
    ),
    "dp_ols": lambda data, **options: dpreg.dp_ols(FORMULA, data, **options),
    "adassp": lambda data, **options: dpreg.dp_ols(
        FORMULA, data, method="adassp", delta="1e-6", **options
    ),
    "dp_glm": lambda data, **options: dpreg.dp_glm("g ~ x", data, **options),
    "dp_mean": lambda data, **options: dpreg.dp_mean("x", data, by="g", **options),
    "dp_suffstats": lambda data, **options: dpreg.dp_suffstats("x", data, **options),
    "dp_quantile": lambda data, **options: dpreg.dp_quantile("x", [0.5], data, **options),
    "dp_histogram": lambda data, **options: dpreg.dp_histogram("x", data, **options),
    "sample_aggregate": aggregated,
}
each_call = pytest.mark.parametrize("call", CALLS)
both_relations = pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])


def ask(call, data, **options):
    given = {"eps": 2, "schema": SCHEMA, "person": "who", "contributions": 2, **options}
    return CALLS[call](data, **given)


@each_call
def test_every_key_is_drawn_for_its_call_alone(call, monkeypatch):
    """A key that could be known would tell the coins of persons, and which of their rows count."""
    asked, drawn = [], []

    def listening(unsafe_seed=None):
        asked.append(unsafe_seed)
        drawn.append(secret_key(unsafe_seed))
        return drawn[-1]

    used, secret_key, read = set(), persons.secret_key, persons.PersonId
    monkeypatch.setattr(persons, "secret_key", listening)
    monkeypatch.setattr(persons, "PersonId", lambda key: (used.add(key), read(key))[1])
    for most in (2, 2, None):
        ask(call, panel(people=60), contributions=most)
    assert len(asked) >= 2
    assert set(asked) == {None}
    assert len(set(drawn)) == len(drawn)
    assert used == set(drawn)


@each_call
@both_relations
def test_the_number_of_rows_is_told_under_no_relation(call, neighbors):
    result = ask(call, panel(), neighbors=neighbors)
    assert result.nobs is None
    assert result.claim.person == "who"
    assert "all rows of any one person, the number of rows being private" in result.claim.sentence
    assert "at most 2 rows were used" in result.claim.sentence
    assert result.spent.eps == 2


@each_call
def test_a_seeded_call_is_the_same_whatever_the_order_of_rows_and_whatever_holds_them(call):
    frame = panel()
    first = ask(call, frame, unsafe_seed=5)
    shuffled = frame.sample(frac=1, random_state=1).reset_index(drop=True)
    assert told(ask(call, shuffled, unsafe_seed=5)) == told(first)
    lists = {name: shuffled[name].tolist() for name in shuffled}
    assert told(ask(call, lists, unsafe_seed=5)) == told(first)


@each_call
def test_rows_that_are_not_kept_have_no_say(call, monkeypatch):
    """A person's other rows may be anything. Told by a call that keeps rows of our choice."""
    frame = panel().assign(first=lambda f: ~f.who.duplicated())
    kept, others = frame[frame["first"]], frame[~frame["first"]]
    wild = others.assign(x=1e9, y=-1e9, g=None)

    def of_first(rows, most, key):
        chosen = {row[:2].tobytes(): row for row in rows[::-1]}
        return np.array(list(chosen.values()))

    monkeypatch.setattr(persons, "keep", of_first)
    monkeypatch.setattr("dpreg.sources.kept.keep", of_first)
    answers = [
        told(ask(call, pd.concat([kept, rest]).drop(columns="first"), unsafe_seed=5))
        for rest in (others, wild, wild[:0])
    ]
    assert len(set(answers)) == 1


def test_blocks_hold_all_kept_rows_of_a_person_and_none_holds_more_than_k():
    blocks = []

    def noted(block):
        blocks.append(block.mark.to_numpy())
        return 0.5

    frame = panel().assign(mark=lambda f: f.who)
    frame.loc[0:1, "mark"] = 0
    dpreg.sample_aggregate(
        noted, frame, eps=1, bounds=(0, 1), blocks=20, correct_bias=False,
        schema={"mark": (0, 400)}, person="who", contributions=3,
    )  # fmt: skip
    counts = pd.concat([pd.Series(b).value_counts() for b in blocks])
    assert counts.index.is_unique, "a person's rows are in two blocks"
    assert counts.max() == 3
    assert len(counts) == 400


def test_contributions_cost_nothing_in_blocks_of_persons():
    errors = [
        ask("sample_aggregate", panel(), contributions=k, aggregation="mean").bse_privacy.iloc[0]
        for k in (1, 5)
    ]
    assert errors[0] == errors[1]
    without = ask("sample_aggregate", panel(), person=None, contributions=5, aggregation="mean")
    assert without.bse_privacy.iloc[0] > 4 * errors[0]


@pytest.mark.parametrize(("relation", "moved"), [("replace-one", 4), ("add-remove", 2)])
def test_groups_of_a_person_s_rows_are_paid_for(relation, moved, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "dpreg.api.aggregate.Aggregate.steps", _spied(seen, dpreg.api.aggregate.Aggregate.steps)
    )
    schema = {**SCHEMA, "g": [*"abcdef"]}
    dpreg.sample_aggregate(
        lambda b: 0.5, panel(), eps=1, bounds=(0, 1), blocks=5, by="g", schema=schema,
        person="who", contributions=2, neighbors=relation,
    )  # fmt: skip
    assert seen == [moved]


def _spied(seen, steps):
    from dpreg.estimation import blocks as aggregate

    def noted(self, table, budget):
        original = aggregate.block_changes

        def changes(*args, **options):
            found = original(*args, **options)
            seen.append(found.after.contributions)
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(aggregate, "block_changes", changes)
            result = yield from steps(self, table, budget)
        return result

    return noted


def test_a_stream_that_is_read_once_will_do_for_any_number_of_passes():
    pa = pytest.importorskip("pyarrow")
    bare = {"y": (0, 1), "g": ["a", "b"]}
    stream = as_source(pa.Table.from_pandas(panel()).to_reader(100), hold=False)
    with pytest.warns(DpregWarning, match="leaves out x"):
        result = ask("dp_ols", stream, schema=bare)
    assert result.passes == 5  # to choose the rows, for bounds, for moments
    assert "bounds have to be bought" in result.notes[0]
    with pytest.warns(DpregWarning, match="leaves out x"):
        result = ask("dp_ols", pa.Table.from_pandas(panel()).to_reader(100), schema=bare)
    assert (result.method, result.passes) == ("adaptive", 8)  # of the rows that were kept
    stream = as_source(pa.Table.from_pandas(panel()).to_reader(100), hold=False)
    ledger = dpreg.Ledger(9)
    with pytest.raises(DataError, match="Declare the bounds"):
        ask(
            "dp_ols", stream, schema=bare, method="adaptive", budget=ledger,
        )  # fmt: skip
    assert ledger.spent.eps == 0
    whole = ask("dp_ols", pa.Table.from_pandas(panel()).to_reader(100), unsafe_seed=1)
    assert whole.params.equals(ask("dp_ols", panel(), unsafe_seed=1).params)


@each_call
def test_what_cannot_be_meant_is_refused_before_the_charge(call):
    ledger = dpreg.Ledger(10)
    blocks = call == "sample_aggregate"  # which get all that the schema declares
    wrong = {"schema": {**SCHEMA, "who": (0, 9)}} if blocks else {"person": "x"}
    with pytest.raises(DataError, match="also uses"):
        ask(call, panel(), budget=ledger, **wrong)
    with pytest.raises(DataError, match="no column 'nobody'"):
        ask(call, panel(), budget=ledger, person="nobody")
    with pytest.raises(ArgumentError, match="person must be the name"):
        ask(call, panel(), budget=ledger, person=3)
    assert not ledger.entries


def test_complete_needs_a_public_number_of_rows():
    with pytest.raises(ArgumentError, match="without person"):
        dpreg.dp_mean("x", panel(), eps=1, schema=SCHEMA, person="who", complete=True)


def test_arrays_have_no_column_of_persons():
    with pytest.raises(ArgumentError, match="person must be the name of a column"):
        dpreg.sample_aggregate(np.mean, np.ones(9), eps=1, bounds=(0, 1), person="who")
    result = dpreg.dp_mean(panel()[["x", "who"]], bounds=(0, 1), eps=1, person="who")
    assert list(result.params.index) == ["x"]


def test_a_ledger_counts_persons_whatever_k():
    ledger = dpreg.Ledger(10)
    ask("dp_mean", panel(), budget=ledger)
    ask("dp_ols", panel(), budget=ledger, contributions=5)
    assert {entry.unit for entry in ledger.entries} == {"replace-one, all rows of one 'who'"}
    with pytest.raises(BudgetError):
        ask("dp_mean", panel(), budget=ledger, person=None)


def test_the_claim_survives_saving(tmp_path):
    result = ask("dp_mean", panel())
    result.save(tmp_path / "result.json")
    assert load(tmp_path / "result.json").claim == result.claim


def test_coins_of_rows_would_be_seen(monkeypatch):
    rng = np.random.default_rng(1)
    monkeypatch.setattr(persons, "coins_of", lambda low: rng.random(len(low)))
    with pytest.raises(AssertionError, match="two blocks"):
        test_blocks_hold_all_kept_rows_of_a_person_and_none_holds_more_than_k()


def test_halves_of_whole_persons_may_each_spend_the_whole_of_delta():
    frame = panel(6000).groupby("who").head(1)
    twice = pd.concat([frame, frame.assign(x=1 - frame.x)], ignore_index=True)
    split = {"eps": 2, "delta": "1e-6", "fit": "split", "contributions": 2, "schema": SCHEMA}
    drawn = ask("pcpl", twice, **split)
    halves = drawn.budget[drawn.budget["rows"].isin(["half 1", "half 2"])]
    assert set(halves["delta"]) - {"0"} == {"0.000001"}
    assert str(drawn.spent) == "eps=2, delta=0.000001"


@pytest.mark.parametrize("call", ["dp_ols", "dp_glm"])
@both_relations
def test_looks_use_all_rows_of_a_person_unless_a_cap_is_given(call, neighbors):
    one = panel(people=2_000, visits=5)
    more = one.loc[one.index.repeat(3)].reset_index(drop=True)
    asked = {"eps": 1e6, "delta": "1e-6", "unsafe_seed": 1, "neighbors": neighbors}

    def told(data, **options):
        result = ask(call, data, **asked, **options)
        return result, result.releases[0].information[0, 0]

    result, rows = told(more, contributions=None)
    assert result.claim.whole
    assert "however many: they were summed" in result.claim.sentence
    assert rows > 2_500  # sums of a person are limited
    capped, rows = told(more, contributions=1)
    assert not capped.claim.whole
    assert "at most one row was used" in capped.claim.sentence
    assert rows == pytest.approx(2_000, rel=0.01)


@pytest.mark.parametrize("more", [{"formula": FORMULA}, {"formula": "g ~ x", "family": "binomial"}])
@pytest.mark.parametrize("fit", ["fresh", "same", None])
def test_a_choice_says_how_many_rows_of_a_person_it_used(more, fit):
    asked = {"eps": 50, "delta": "1e-6", "schema": SCHEMA, "method": "adaptive", "person": "who"}
    for rows in (None, 2):
        result = dpreg.dp_select(
            data=panel(people=300), contributions=rows, fit=fit, unsafe_seed=1, **asked, **more
        )
        held = [result] if result.regression is None else [result, result.regression]
        assert len(held) == 1 + (fit is not None)
        assert {one.claim.whole for one in held} == {rows is None}
