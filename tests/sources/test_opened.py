"""Functions that return a table in chunks: called anew, checked chunk by chunk, never quoted."""

import json
import math
import traceback

import numpy as np
import pandas as pd
import pytest

import dpreg
from dpreg.columns import Boolean, Categorical, Numeric, Unbounded
from dpreg.errors import ArgumentError, DataError
from dpreg.sources import Source, as_source

HOW = {"x": Numeric(0, 1), "c": Categorical(["b", "a"]), "k": Unbounded()}
SECRET = "Zebulon"


def frame(rows=1000):
    rng = np.random.default_rng(7)
    x = rng.normal(size=rows)
    x[rng.random(rows) < 0.1] = math.nan
    return pd.DataFrame(
        {"x": x, "c": rng.choice(["a", "b", "zz"], rows), "k": rng.integers(0, 9, rows)}
    )


def parts():
    whole = frame()
    return [whole.iloc[:300], whole.iloc[300:300], whole.iloc[300:301], whole.iloc[301:]]


def as_pandas():
    yield from parts()


def as_mappings():
    return ({name: part[name] for name in part} for part in parts())


def as_list():
    return parts()


def as_one_frame():
    return frame()


def as_mixture():
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    first, second, third, fourth = parts()
    yield pa.Table.from_pandas(first, preserve_index=False)
    yield {name: list(second[name]) for name in second}
    yield pl.from_pandas(third)
    yield from pa.Table.from_pandas(fourth, preserve_index=False).to_batches(100)


def as_reader():
    pa = pytest.importorskip("pyarrow")
    return pa.Table.from_pandas(frame(), preserve_index=False).to_reader(100)


def as_duckdb():
    return pytest.importorskip("duckdb").connect().from_df(frame())


FUNCTIONS = [as_pandas, as_mappings, as_list, as_one_frame, as_mixture, as_reader, as_duckdb]


def read(source, how=HOW, size=97):
    chunks = list(source.chunks(how, size))
    assert all(0 < len(next(iter(chunk.values()))) <= size for chunk in chunks)
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in how}


def same(a, b):
    return all(
        a[name].dtype == b[name].dtype
        and np.array_equal(a[name], b[name], equal_nan=a[name].dtype.kind == "f")
        for name in a
    )


def fails(call, says):
    with pytest.raises(DataError, match=says) as caught:
        call()
    said = "".join(traceback.format_exception(caught.value, chain=True))
    assert SECRET not in said + repr(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("function", FUNCTIONS)
def test_chunks_are_the_rows_as_often_as_they_are_read(function):
    source = as_source(function)
    assert isinstance(source, Source)
    assert source.names == ("x", "c", "k")
    assert [source.kind(name) for name in source.names] == ["numeric", "string", "numeric"]
    assert (source.rows, source.parts, source.unit, source.rereadable) == (
        None,
        None,
        "chunk",
        True,
    )
    assert repr(source) == "Source(x: numeric, c: string, k: numeric)"
    for _ in range(3):
        assert same(read(source), read(as_source(frame())))
        assert source.count() == 1000


def test_the_function_is_called_once_for_the_names_and_once_for_a_pass():
    calls, taken = [], []

    def function():
        calls.append(1)
        for part in parts():
            taken.append(1)
            yield part

    source = as_source(function)
    assert (len(calls), len(taken)) == (1, 1)
    with pytest.raises(DataError, match="no column 'lat'"):
        source.chunks({"lat": Unbounded()})
    assert len(calls) == 1
    read(source)
    assert (len(calls), len(taken)) == (2, 5)


def test_threads_see_every_row_once():
    def function():
        for start in range(0, 400_000, 5000):
            yield {"k": np.arange(start, start + 5000)}

    def tally(chunks):
        sums = [(len(chunk["k"]), int(chunk["k"].sum())) for _, chunk in chunks]
        return np.array([sum(n for n, _ in sums), sum(k for _, k in sums)], dtype=object)

    told = []
    got = as_source(function).total({"k": Unbounded()}, tally, advance=told.append)
    assert got.tolist() == [400_000, sum(range(400_000))]
    assert sum(told) == 80


def test_a_list_is_an_object_column_in_any_chunk():
    def function():
        yield {"k": [1, "2", None]}
        yield {"k": np.array([3.5])}

    source = as_source(function)
    assert source.kind("k") == "object"
    values = read(source, {"k": Unbounded()})["k"]
    assert np.array_equal(values, [1, 2, math.nan, 3.5], equal_nan=True)


ODD = {
    "lacks it": lambda: frame(3).drop(columns="k"),
    "has it twice": lambda: pd.concat([frame(3), frame(3)[["k"]]], axis=1),
    "has none of them": lambda: pd.DataFrame({SECRET: range(3)}),
    "has no column": lambda: pd.DataFrame(index=range(3)),
    "has levels of names": lambda: pd.DataFrame({(SECRET, "a"): range(3)}),
    "mapping that lacks it": lambda: {"x": [1.0] * 3, 7: [1]},
    "mapping of one that is no column": lambda: {"x": [1.0] * 3, "k": np.ones((2, 2)), SECRET: 3},
    "mapping of what is no column": lambda: {"k": np.ones((3, 2))},
    "stream that lacks it": lambda: arrow({SECRET: [1] * 3, "x": [0.5] * 3}),
    "stream that has none of them": lambda: arrow({SECRET: [1] * 3}),
    "stream that is read once": lambda: arrow({SECRET: [1] * 3}).to_reader(2),
    "stream that is read once and has it twice": lambda: (
        arrow({"k": [1] * 3, SECRET: [2] * 3}).rename_columns(["k", "k"]).to_reader(2)
    ),
}


def arrow(columns):
    return pytest.importorskip("pyarrow").table(columns)


@pytest.mark.parametrize("odd", ODD)
def test_what_columns_a_later_chunk_has_decides_nothing_but_its_cells(odd):
    """A JSON reader's chunk has the keys of its rows: an error would tell of them."""
    source = as_source(lambda: [frame(5), ODD[odd](), frame(4)])
    assert source.names == ("x", "c", "k")
    got = read(source, size=2)
    assert [len(column) for column in got.values()] == [12, 12, 12]
    assert np.isnan(got["k"][5:8]).all()
    assert np.array_equal(got["k"][[*range(5), *range(8, 12)]], [*frame(5).k, *frame(4).k])
    assert source.count() == 12
    given = ODD[odd]()
    there = "x" in (given.keys() if hasattr(given, "keys") else given.schema.names)
    assert np.isnan(got["x"][5:8]).all() == (not there)


def test_columns_of_a_later_chunk_that_are_too_short_are_missing_at_their_end():
    def function():
        yield {"k": [1], "x": [0.5]}
        yield {"k": np.array([2, 3]), "x": [0.5], "c": pd.Series(["a", "b", "a"], index=[9, 8, 7])}

    got = read(as_source(function), {"k": Unbounded(), "x": Numeric(0, 1)})
    assert np.array_equal(got["k"], [1, 2, 3, math.nan], equal_nan=True)
    assert np.array_equal(got["x"], [0.5, 0.5, math.nan, math.nan], equal_nan=True)


def test_the_first_chunk_s_columns_are_looked_at_before_anything_is_read():
    source = as_source(lambda: [frame(3).drop(columns="k"), frame(3)])
    with pytest.raises(DataError, match="the table has no column 'k'; it has x, c"):
        read(source)
    with pytest.raises(DataError, match="different lengths"):
        as_source(lambda: [{"x": [1], "k": [1, 2]}])


def test_json_lines_whose_keys_change_are_never_refused(tmp_path):
    """The names of columns that one row alone has, and whether there is one, are that row's."""
    spent = []
    for secret in ({}, {"x": 0.5}, {"x": 0.5, SECRET: 1}, {SECRET: "y"}):
        rows = [{"y": 0.5} | ({"x": 0.5} if place < 100 else {}) for place in range(300)]
        rows[250] |= secret
        path = tmp_path / "rows.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in rows))
        ledger = dpreg.Ledger(dpreg.Budget(10))
        dpreg.dp_mean(
            "x",
            lambda path=path: pd.read_json(path, lines=True, chunksize=200),
            eps=1,
            schema={"x": (0, 1)},
            neighbors="add-remove",
            budget=ledger,
        )
        spent.append(str(ledger.spent))
    assert len(set(spent)) == 1


def test_a_later_chunk_is_read_whatever_its_kind():
    """By then the call is charged, and a chunk's kind tells of its rows."""

    def function():
        yield {"k": np.array([1.0])}
        yield {"k": np.array([SECRET, "2"])}

    values = read(as_source(function), {"k": Unbounded()})["k"]
    assert np.array_equal(values, [1, math.nan, 2], equal_nan=True)


def test_a_declared_column_is_read_whatever_a_chunk_made_of_it():
    """pandas infers a chunk's dtype from its rows: to refuse it would tell of them."""

    def function():
        yield pd.DataFrame({"k": [1.0]})
        yield pd.DataFrame({"k": ["2", None]})
        yield pd.DataFrame({"k": pd.to_datetime(["2020-01-01"])})

    values = read(as_source(function), {"k": Numeric(0, 1)})["k"]
    assert np.array_equal(values, [1, 2, math.nan, math.nan], equal_nan=True)


def test_an_iterator_that_was_used_up_is_refused():
    pa = pytest.importorskip("pyarrow")
    reader = pa.Table.from_pandas(frame(), preserve_index=False).to_reader()
    for used in (iter(parts()), (part for part in parts()), reader):
        with pytest.raises(DataError, match="the same iterator again"):
            read(as_source(lambda used=used: used))


def test_rows_that_change_from_pass_to_pass_are_refused():
    left = [5, 5, 4]
    source = as_source(lambda: [frame(left.pop(0))])
    read(source)
    fails(lambda: read(source), "another number of rows than at the pass before")


@pytest.mark.parametrize("returned", [None, 3, "data.csv", b"x", object()])
def test_what_returns_no_tables_is_refused(returned):
    with pytest.raises(ArgumentError, match=f"it returned a {type(returned).__name__}"):
        as_source(lambda: returned)


@pytest.mark.parametrize("chunk", [None, 3, "data.csv", [1, 2], np.zeros((2, 2)), as_list])
def test_chunks_that_are_no_tables_are_refused(chunk):
    with pytest.raises(ArgumentError, match=f"one of its chunks is a {type(chunk).__name__}"):
        as_source(lambda: [chunk])
    with pytest.raises(ArgumentError, match=f"one of its chunks is a {type(chunk).__name__}"):
        read(as_source(lambda: [frame(2), chunk]))


def test_no_chunk_at_all_is_refused_and_one_without_rows_is_not():
    with pytest.raises(DataError, match="returned no chunk: let it give one without rows"):
        as_source(lambda: [])
    source = as_source(lambda: [frame(0)])
    assert list(source.chunks(HOW)) == []
    assert source.count() == 0


def test_a_function_that_fails_says_nothing_of_a_row():
    def at_once():
        raise KeyError(SECRET)

    def later():
        yield frame(3)
        raise ValueError(SECRET)

    fails(lambda: as_source(at_once), r"the function given as data failed \(KeyError\)")
    source = as_source(later)
    fails(lambda: read(source), r"the function given as data failed \(ValueError\)")
    fails(source.count, r"the function given as data failed \(ValueError\)")


def test_repeated_names_matter_only_where_they_are_needed():
    table = pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"])
    source = as_source(lambda: [table])
    assert repr(source) == "Source(a: repeated, b: numeric, a: repeated)"
    assert read(source, {"b": Boolean()})["b"].shape == (1,)
    with pytest.raises(DataError, match="several columns named 'a'"):
        source.kind("a")
