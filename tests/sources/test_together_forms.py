"""Whole persons in every pass, of every kind of table: the same sums, bit for bit."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest
from oracles.limited_persons import COLUMNS, SLOTS, LimitedPersons, slot, slowly

from dpreg.cells import spelling
from dpreg.columns import Categorical, Unbounded
from dpreg.privacy.protection import Protection
from dpreg.sources import as_source
from dpreg.sources.kept import _cuts, kept_source
from dpreg.sources.persons import PERSON, Persons, digests
from dpreg.sources.reader import Reader

KEY = bytes(range(32))


def table(rows=400, people=40, seed=0):
    """Panels of many lengths, with missing cells, missing ids and copies of rows."""
    rng = np.random.default_rng(seed)
    owner = np.minimum(rng.geometric(2 / people, rows), people).astype(float)
    owner[rng.random(rows) < 0.05] = np.nan
    x = rng.integers(-300, 300, rows) / 128
    x[rng.random(rows) < 0.1] = np.nan
    level = rng.choice(np.array(["a", "b", "c", None], dtype=object), rows)
    frame = pd.DataFrame({"who": owner, "x": x, "level": level, "z": rng.integers(0, 9, rows)})
    frame["who"] = frame.who.astype("Int64")
    return frame


def reader_of(data, most=None, key=KEY, columns=COLUMNS):
    reader = Reader(as_source(data), persons=Persons("who", most, key))
    reader.settle(columns)
    return reader


def sums(data, key=KEY, columns=COLUMNS):
    return reader_of(data, None, key, columns).total(columns, LimitedPersons((*columns,)), "sums")


def parquet(frame, folder):
    frame.to_parquet(folder / "rows.parquet", row_group_size=50)
    return str(folder / "rows.parquet")


def csv(frame, folder):
    cut = len(frame) // 2
    frame[:cut].to_csv(folder / "1.csv", index=False)
    frame[cut:].to_csv(folder / "2.csv", index=False)
    return str(folder / "*.csv")


def dataset(frame, folder):
    parquet(frame, folder)
    return pa.dataset.dataset(str(folder / "rows.parquet"))


def duckdb(frame, folder):
    library = pytest.importorskip("duckdb")
    arrow = pa.Table.from_pandas(frame)
    return library.connect().from_arrow(arrow)


def polars(frame, folder):
    return pytest.importorskip("polars").from_arrow(pa.Table.from_pandas(frame))


FORMS = {
    "frame": lambda frame, _: frame,
    "mapping": lambda frame, _: {name: frame[name].to_numpy() for name in frame},
    "lists": lambda frame, _: {name: frame[name].tolist() for name in frame},
    "text": lambda frame, _: frame.assign(who=frame.who.astype("string")),
    "arrow": lambda frame, _: pa.Table.from_pandas(frame),
    "a stream that is read once": lambda frame, _: pa.Table.from_pandas(frame).to_reader(70),
    "chunks": lambda frame, _: lambda: iter([frame[:10], frame[10:11], frame[11:]]),
    "polars": polars,
    "duckdb": duckdb,
    "parquet": parquet,
    "dataset": dataset,
    "csv": csv,
}


def small_limits(monkeypatch):
    """Send all but the smallest tables to a file, in many pieces."""
    monkeypatch.setattr("dpreg.sources.kept._READ_ROWS", 37)
    monkeypatch.setattr("dpreg.sources.kept.HELD_BYTES", 3000)
    monkeypatch.setattr("dpreg.sources.kept._WRITE_BYTES", 1500)


@pytest.mark.parametrize("where", ["memory", "file"])
@pytest.mark.parametrize("form", FORMS)
def test_the_same_sums_whatever_holds_the_table(form, where, tmp_path, monkeypatch):
    frame = table()
    if where == "file":
        small_limits(monkeypatch)
    for order in (frame, frame.sample(frac=1, random_state=3), frame[::-1]):
        assert (sums(FORMS[form](order, tmp_path)) == slowly(frame, KEY)).all()


@pytest.mark.parametrize("size", [1, 2, 7, 64, 1 << 15])
@pytest.mark.parametrize("where", ["memory", "file"])
def test_the_same_sums_in_chunks_of_any_size(size, where, monkeypatch):
    frame = table(rows=900, people=25)
    if where == "file":
        small_limits(monkeypatch)
    monkeypatch.setattr("dpreg.sources.base.rows_of", lambda columns: size)
    assert (sums(frame) == slowly(frame, KEY)).all()


def test_a_person_of_more_rows_than_a_chunk_has_comes_in_one():
    frame = table(rows=300, people=3)
    kept = kept_source(as_source(frame), COLUMNS, Persons("who", None, KEY))
    chunks = list(kept.chunks(COLUMNS, 10))
    assert [len(np.unique(chunk[PERSON])) for chunk in chunks] == [1, 1, 1]
    assert sorted(len(chunk[PERSON]) for chunk in chunks) == sorted(frame.who.value_counts())


def test_cuts_fill_chunks_with_whole_persons():
    starts = np.array([0, 2, 3, 9, 10, 11])
    cuts = [(part.start, part.stop) for part in _cuts(starts, 14, 4)]
    assert cuts == [(0, 3), (3, 9), (9, 11), (11, 14)]
    assert not list(_cuts(np.array([], dtype=int), 0, 4))


# ---- one person ----------------------------------------------------------------------------------


def spread(frame):
    dd = pytest.importorskip("dask.dataframe")
    return dd.from_pandas(frame, npartitions=3, sort=False)


@pytest.mark.xdist_group("cluster")
@pytest.mark.parametrize("where", ["memory", "file", "dask"])
def test_one_person_s_rows_change_that_person_s_group_and_no_other(where, monkeypatch):
    if where == "file":
        small_limits(monkeypatch)
    rng = np.random.default_rng(5)
    form = spread if where == "dask" else lambda frame: frame
    for trial in range(3 if where == "dask" else 30):
        frame = table(rows=200, people=15, seed=trial)
        whose = int(rng.integers(1, 16))
        new = table(rows=int(rng.integers(0, 90)), seed=trial + 500)
        if trial % 3 == 0 and len(new):
            new = new.iloc[np.zeros(70, dtype=int)]
        others = frame[(frame.who != whose).fillna(True)]
        neighbour = pd.concat([new.assign(who=whose), others.sample(frac=1, random_state=trial)])
        mine = slot(spelling(whose), KEY)
        before, after = (sums(form(one)).reshape(SLOTS, -1) for one in (frame, neighbour))
        assert before[mine, 0] == (whose in set(frame.who.dropna()))
        assert after[mine, 0] == (len(new) > 0)
        assert np.delete(before, mine, axis=0).tolist() == np.delete(after, mine, axis=0).tolist()


def test_one_id_is_one_person_however_it_is_written():
    frame = table()
    text = frame.who.astype("string") + ".0"
    mixed = frame.assign(who=np.where(np.arange(len(frame)) % 2, text, frame.who.astype(object)))
    assert (sums(mixed) == slowly(frame, KEY)).all()


def test_rows_that_name_nobody_count_for_nothing():
    frame = table()
    assert (sums(frame[frame.who.notna()]) == sums(frame)).all()
    nobody = frame.assign(who=None)
    assert not sums(nobody).any()
    assert reader_of(nobody).person_count == reader_of(nobody).rows == 0


def test_the_key_decides_coins_and_hashes():
    frame = table()
    assert (sums(frame, bytes(32)) == slowly(frame, bytes(32))).all()
    assert (sums(frame, bytes(32)) != sums(frame)).any()
    assert digests(["17"], KEY) != digests(["17"], bytes(32))


def test_persons_are_counted_whatever_is_missing(monkeypatch):
    frame = table().assign(x=None, level=None)
    persons = frame.who.nunique()
    for most in (None, 1, 3):
        reader = reader_of(frame, most)
        assert reader.person_count == persons
        assert reader.passes == 1
    assert reader_of(frame).rows == frame.who.notna().sum()
    small_limits(monkeypatch)
    for most in (None, 2):
        assert reader_of(frame, most).person_count == persons
    assert reader_of(frame).rows == frame.who.notna().sum()


def test_a_cap_holds_and_its_rows_come_together():
    reader = reader_of(table(), 3)
    found = reader.total(COLUMNS, LimitedPersons(), "sums").reshape(SLOTS, -1)
    assert found[:, 0].sum() == reader.person_count
    assert (found[:, 1] <= 3 * found[:, 0]).all()
    assert found[:, 1].sum() == reader.rows


def test_a_call_chooses_all_rows_or_its_contributions():
    protection = Protection("replace-one", 4, "who")
    assert Persons.of(protection).rows == 4
    assert Persons.of(Protection("replace-one")) is None
    every = reader_of(table(), 4).every_row(COLUMNS)
    assert every.persons.rows is None
    assert every.rows > reader_of(table(), 4).rows


def test_a_pass_reads_some_of_the_columns_in_any_order(monkeypatch):
    frame = table()
    few = {"z": Unbounded(), "level": Categorical(["a", "b"])}
    expected = slowly(frame, KEY, tuple(few))
    for _ in range(2):
        found = reader_of(frame).total(few, LimitedPersons(tuple(few)), "sums")
        assert (found == expected).all()
        small_limits(monkeypatch)


# ---- clusters ------------------------------------------------------------------------------------


@pytest.mark.xdist_group("cluster")
@pytest.mark.parametrize("size", [3, 50, 1 << 15])
def test_dask_s_partitions_hold_whole_persons(size, monkeypatch):
    monkeypatch.setattr("dpreg.sources.dask.CHUNK_ROWS", size)
    monkeypatch.setattr("dpreg.sources.cluster.CHUNK_ROWS", size)
    frame = table()
    reader = reader_of(spread(frame.sample(frac=1, random_state=2)))
    assert (reader.total(COLUMNS, LimitedPersons(), "sums") == slowly(frame, KEY)).all()
    assert reader.person_count == frame.who.nunique()


@pytest.mark.xdist_group("cluster")
def test_workers_of_their_own_processes_do_the_same(dask_client):
    frame = table()
    spread_ids = spread(frame.assign(who=frame.who.astype("string")))
    with dask_client.as_current():
        reader = reader_of(spread_ids)
        assert (reader.total(COLUMNS, LimitedPersons(), "sums") == slowly(frame, KEY)).all()
        assert reader.person_count == frame.who.nunique()


@pytest.mark.xdist_group("cluster")
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_spark_s_tasks_read_whole_persons(spark, no_rows_leave):
    frame = table(150, 8)
    cells = frame.astype(object).itertuples(index=False)
    rows = [tuple(None if pd.isna(cell) else cell for cell in row) for row in cells]
    schema = "who bigint, x double, level string, z bigint"
    most = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "4")
    try:
        reader = reader_of(spark.createDataFrame(spark.sparkContext.parallelize(rows, 3), schema))
        assert (reader.total(COLUMNS, LimitedPersons(), "sums") == slowly(frame, KEY)).all()
        assert reader.person_count == frame.who.nunique()
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", most)
