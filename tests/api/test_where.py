"""`where=`: a call about some rows is that of a table of them, and tells no number."""

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.errors import ArgumentError, DpregError
from dpreg.privacy.budget import Budget
from dpreg.privacy.ledger import Ledger
from dpreg.results import notes

SCHEMA = {"y": (0, 10), "x": (0, 1), "op": ["in", "bay"], "g": ["u", "v"], "age": (0, 100)}
TEST = "op == 'in' and age >= 30"


def rows(n=6000, seed=3):
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"x": rng.random(n), "age": rng.uniform(0, 100, n)})
    data["op"] = rng.choice(["in", "bay"], n)
    data["g"] = rng.choice(["u", "v"], n)
    data["y"] = 2 + 3 * data["x"] * np.where(data["op"] == "in", 1, -0.5) + rng.normal(0, 0.3, n)
    data["who"] = np.arange(n) // 2
    return data


def chosen(data):
    return data[(data["op"] == "in") & (data["age"] >= 30)]


CALLS = {
    "mean": lambda d, **o: dpreg.dp_mean("y", d, schema=SCHEMA, by="g", **o),
    "quantile": lambda d, **o: dpreg.dp_quantile("y", 0.5, d, schema=SCHEMA, **o),
    "histogram": lambda d, **o: dpreg.dp_histogram("age", d, bins=4, schema=SCHEMA, **o),
    "suffstats": lambda d, **o: dpreg.dp_suffstats("y", d, schema=SCHEMA, **o),
    "aggregate": lambda d, **o: dpreg.sample_aggregate(
        lambda b: b["y"].mean(), d, bounds=(0, 10), blocks=20, schema=SCHEMA, **o
    ),
}
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@each_call
@pytest.mark.parametrize(
    "promise",
    [{}, {"neighbors": "add-remove"}, {"person": "who", "contributions": 2}],
    ids=["rows", "add-remove", "persons"],
)
def test_a_call_about_some_rows_is_that_of_a_table_of_them(call, promise):
    data = rows()
    inside = call(data, eps=1e5, where=TEST, **promise)
    beforehand = call(chosen(data), eps=1e5, **promise)
    spread = 0.05 if getattr(inside, "blocks", None) else 0.01
    assert np.allclose(inside.params, beforehand.params, atol=spread)
    assert inside.nobs == (6000 if not promise else None)
    assert not np.allclose(inside.params, call(data, eps=1e5, **promise).params, atol=0.01)


@each_call
def test_the_number_of_rows_that_pass_is_not_told(call):
    """Of neighbours one row passes in one table alone: all that is not noise agrees."""
    data = rows(2000)
    other = data.copy()
    other.loc[0, "op"] = "bay" if data.loc[0, "op"] == "in" else "in"
    told = [call(one, eps=1, where=TEST) for one in (data, other)]
    assert told[0].nobs == told[1].nobs == 2000
    assert told[0].claim == told[1].claim
    assert told[0].notes == told[1].notes


@each_call
def test_it_is_refused_before_the_charge(call):
    ledger = Ledger(Budget(9))
    for bad in ("op == 'out'", "nobody > 3", rows()["x"] > 0.5, "x >", "age > 100"):
        with pytest.raises(DpregError, match="where"):
            call(rows(), eps=1, where=bad, budget=ledger)
    assert ledger.spent == Budget(0)


def test_it_is_in_the_record_and_not_beside_complete():
    found = CALLS["mean"](rows(), eps=1, where=TEST)
    assert found.record.arguments["where"] == TEST
    for full in (False, True):
        assert f"Where:    {TEST}" in str(found.summary(full=full))
    assert not any("letter by letter" in note.text for note in notes.of(found))
    with pytest.raises(ArgumentError, match="complete=True and where"):
        dpreg.dp_mean("y", rows(), eps=1, schema=SCHEMA, where=TEST, complete=True)
    with pytest.raises(ArgumentError, match="where tests columns"):
        dpreg.sample_aggregate(np.mean, rows()["y"], eps=9, bounds=(0, 1), where=TEST)


def test_a_codebook_serves_an_estimator(tmp_path):
    book = {**SCHEMA, "income": (0, 1e6)}
    given = {"bounds": (0, 10), "eps": 9, "blocks": 20}
    assert dpreg.sample_aggregate(lambda b: b["y"].mean(), rows(), schema=book, **given)
    book["town"] = ["a", "b"]
    for wrong in ({"by": "town"}, {"where": "town == 'a'"}):
        with pytest.raises(DpregError, match="no column 'town'"):
            dpreg.sample_aggregate(np.mean, rows(), schema=book, **given, **wrong)


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow", "chunks", "mapping"])
def test_it_is_the_same_whatever_holds_the_rows(form, tmp_path):
    data = rows(3000)
    given = {"schema": SCHEMA, "where": TEST, "eps": 1, "by": "g", "unsafe_seed": 5}
    frame = dpreg.dp_mean("y", data, **given)
    match form:
        case "csv":
            data.to_csv(held := tmp_path / "d.csv", index=False)
        case "parquet":
            data.to_parquet(held := tmp_path / "d.parquet")
        case "arrow":
            held = pytest.importorskip("pyarrow").Table.from_pandas(data)
        case "chunks":
            held = lambda: (data.iloc[i : i + 700] for i in range(0, 3000, 700))  # noqa: E731
        case _:
            held = {name: data[name].to_numpy() for name in data}
    assert dpreg.dp_mean("y", held, **given).params.equals(frame.params)
