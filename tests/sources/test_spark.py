"""A pass over a Spark DataFrame is the pass over the same rows in pandas, bit for bit."""

import datetime
import logging
import threading
import traceback
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from oracles.spark_frames import split
from oracles.tallies import COLUMNS, ROWS, Exact, Leaks, Sums, Wide, table
from pyspark.logger import PySparkLogger
from pyspark.sql import functions, types
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

import dpreg
import dpreg.sources.spark as spark_module
from dpreg.columns import Boolean, Categorical, Numeric, Unbounded
from dpreg.errors import ArgumentError, DataError
from dpreg.privacy.ledger import Ledger
from dpreg.privacy.mechanisms.coins import Coins
from dpreg.sources import Source, as_source, cluster

pytestmark = [
    pytest.mark.usefixtures("no_rows_leave"),
    pytest.mark.xdist_group("cluster"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]


def test_executors_of_another_version_are_refused_before_the_charge(spark, monkeypatch):
    frame, ledger = split(spark, table(), 3), Ledger(1)
    theirs = cluster._OURS
    monkeypatch.setattr(cluster, "_OURS", "9.9")
    monkeypatch.setattr(spark_module, "_asked", set())
    told = f"this process has dpreg 9.9, and workers of Spark have dpreg {theirs}: install"
    for _ in range(2):
        with pytest.raises(DataError, match=told):
            dpreg.dp_mean("x", frame, eps=1, schema={"x": (0, 1)}, budget=ledger)
    assert ledger.entries == ()
    monkeypatch.undo()
    as_source(frame)
    monkeypatch.setattr(spark_module, "_of_executors", None)  # they are asked once for each session
    as_source(frame)


@pytest.mark.parametrize("parts", [1, 3, 17])
def test_vectors_are_those_of_pandas(spark, parts):
    frame, tally = table(), Sums.of(COLUMNS, scale=2**40)
    want = as_source(frame).total(COLUMNS, tally)
    got = as_source(split(spark, frame, parts)).total(COLUMNS, tally)
    assert got.dtype == object
    assert list(got) == list(want)
    assert all(type(entry) is int for entry in got)


def test_a_seeded_row_keeps_its_group(spark):
    frame, tally = table(), Sums.of(COLUMNS, Coins(3, key=11))
    want = as_source(frame).total(COLUMNS, tally, positions=True)
    source = as_source(split(spark, frame, 3))
    assert list(source.total(COLUMNS, tally, positions=True)) == list(want)
    # The test must be able to fail: groups follow places.
    assert list(source.total(COLUMNS, tally)) != list(want)


def test_empty_partitions_and_tables_count_for_nothing(spark):
    frame, tally = table(3), Sums.of(COLUMNS, Coins(2, key=1))
    want = as_source(frame).total(COLUMNS, tally, positions=True)
    got = as_source(split(spark, frame, 5)).total(COLUMNS, tally, positions=True)
    assert list(got) == list(want)
    nothing = as_source(split(spark, frame[:0], 2)).total(COLUMNS, tally)
    assert list(nothing) == [0] * len(want)


@pytest.mark.parametrize("length", [1, 5000])
def test_vectors_of_any_length_are_added(spark, length):
    source = as_source(split(spark, table(), 5))
    assert set(source.total({"x": Unbounded()}, Wide(length))) == {ROWS}
    assert len(spark_module._widths(Wide(length))) == (3 if length == 5000 else 1)


def test_what_is_public_is_the_schema_s_word(spark):
    source = as_source(split(spark, table(), 3))
    assert isinstance(source, Source)
    assert (source.rows, source.parts, source.unit, source.rereadable) == (
        None,
        None,
        "partition",
        True,
    )
    assert source.count() == ROWS
    assert repr(source) == (
        "Source(unused: string, x: numeric, whole: numeric, gone: numeric, truth: bool, "
        "text: string, label: string, code: numeric)"
    )
    with pytest.raises(DataError, match="not pickled"):
        source.__reduce_ex__(2)


CELLS = {
    "tinyint": [1, None, 3],
    "smallint": [1, None, 3],
    "int": [1, None, 3],
    "bigint": [2**62 + 1, None, 3],
    "float": [0.1, None, float("nan")],
    "double": [0.1, None, float("-inf")],
    "decimal(38,2)": [Decimal("1.00"), None, Decimal("123456789012345678901234567890.25")],
    "boolean": [True, None, False],
    "string": ["1", None, " 3 "],
    "date": [datetime.date(2001, 1, 1), None, datetime.date(9999, 1, 1)],
    "timestamp": [datetime.datetime(2001, 1, 1), None, datetime.datetime(1900, 1, 1)],
    "timestamp_ntz": [datetime.datetime(2001, 1, 1), None, datetime.datetime(1, 1, 1)],
    "interval day to second": [datetime.timedelta(1), None, datetime.timedelta(2)],
    "void": [None, None, None],
    "binary": [b"1", None, b"2"],
    "array<int>": [[1], None, []],
    "map<string,int>": [{"a": 1}, None, {}],
    "struct<a:int>": [(1,), None, (2,)],
}
KINDS = {
    "numeric": 7,
    "bool": 1,
    "string": 1,
    "datetime": 4,
    "object": 1,
    "other": 4,
}


def test_every_type_is_read_cell_by_cell(spark):
    """All types at once, each declared in every way: two jobs instead of seventy."""
    hows = [
        Numeric(0, 1),
        Boolean(),
        Categorical(["1", "3", "0.1", "True"]),
        Categorical([1, 3, 0.1]),
    ]
    names = [f"{kind} as {place}" for kind in CELLS for place in range(len(hows))]
    columns = {name: hows[int(name[-1])] for name in names}
    schema = types.StructType(
        [
            types.StructField(name, types.DataType.fromDDL(name.partition(" as ")[0]))
            for name in names
        ]
    )
    rows = list(zip(*(CELLS[name.partition(" as ")[0]] for name in names), strict=True))
    cells = pd.DataFrame(
        {name: pd.Series(CELLS[name.partition(" as ")[0]], dtype=object) for name in names}
    )
    for name in [n for n in names if n.startswith("float ")]:
        cells[name] = np.array([0.1, np.nan, np.nan], dtype=np.float32)
    source = as_source(spark.createDataFrame(rows, schema))
    kinds = [source.kind(f"{kind} as 0") for kind in CELLS]
    assert {kind: kinds.count(kind) for kind in kinds} == KINDS
    tally = Exact(tuple(names))
    assert list(source.total(columns, tally)) == list(as_source(cells).total(columns, tally))


def test_names_need_no_quoting(spark):
    rows = [(1.0, 2.0, 3.0, 4.0)]
    data = spark.createDataFrame(rows, "`a.b` double, a double, A double, `x``y ` double")
    source = as_source(data)
    for place, name in enumerate(["a.b", "a", "A", "x`y "]):
        columns = {name: Unbounded()}
        assert source.total(columns, Sums.of(columns))[2] == (place + 1) ** 2 * 2**40


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"absent": Unbounded()}, "no column 'absent'"),
        ({"twice": Unbounded()}, "several columns named 'twice'"),
        ({"text": Unbounded()}, "holds text or labels and the schema does not declare it"),
        ({"day": Unbounded()}, "holds dates or times"),
        ({"list": Unbounded()}, "neither numbers nor labels"),
        ({"x": "numeric"}, "no known type"),
        ({}, "at least one column"),
    ],
)
def test_a_mismatch_is_refused_as_in_pandas_before_any_job(spark, monkeypatch, columns, message):
    frame = pd.DataFrame(
        {
            "x": [1.0],
            "text": ["a"],
            "day": pd.to_datetime(["2001-01-01"]),
            "list": pd.array([[1]], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
            "t1": [1.0],
            "t2": [1.0],
        }
    ).set_axis(["x", "text", "day", "list", "twice", "twice"], axis=1)
    schema = "x double, text string, day date, list array<int>, twice double, twice double"
    data = spark.createDataFrame([], schema)

    def refuse(self, *args, **kwargs):
        raise AssertionError("a job was planned")

    monkeypatch.setattr(ClassicFrame, "mapInArrow", refuse)
    errors = []
    for one in (frame, data):
        with pytest.raises(ValueError, match=message) as caught:
            as_source(one).total(columns, Wide(1))
        errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]


def test_only_frames_that_end_are_taken(spark):
    with pytest.raises(ArgumentError, match=r"give a pyspark\.sql\.DataFrame"):
        as_source(spark.sparkContext)
    with pytest.raises(ArgumentError, match="stream without an end"):
        as_source(spark.readStream.format("rate").load())


def test_what_to_install_is_said(spark, monkeypatch):
    monkeypatch.setattr(spark_module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ArgumentError, match=r"pip install 'dpreg\[spark\]'"):
        as_source(spark.range(1))


@pytest.mark.parametrize("where", ["tally", "plan", "frame"])
def test_a_failure_tells_its_class_and_nothing_of_the_rows(spark, where, capfd):
    data, tally = split(spark, table(), 1), Leaks("x")
    if where == "plan":
        data, tally = data.selectExpr("double(concat('secret', unused)) as x"), Wide(1)
    if where == "frame":
        said = functions.concat(functions.lit("secret"), data["unused"])
        data, tally = data.select(said.cast("double").alias("x")), Wide(1)
    with pytest.raises(DataError, match=r"^Spark failed while it read the rows: \w+$") as caught:
        as_source(data).total({"x": Unbounded()}, tally)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert "secret" not in "".join(traceback.format_exception(error))
    assert "secret" not in "".join(capfd.readouterr())


class Kept(logging.Handler):
    """Keeps what is logged."""

    def __init__(self):
        super().__init__()
        self.said = []

    def emit(self, record):
        self.said.append(record.getMessage())


@pytest.mark.parametrize("name", spark_module._LOGGERS)
def test_only_this_thread_s_plan_is_not_logged(spark, name):
    logger, kept = PySparkLogger.getLogger(name), Kept()
    logger.addHandler(kept)
    try:
        data = split(spark, table(), 1).where("double(concat('secret', unused)) > 0")
        with pytest.raises(DataError, match="Spark failed"):
            as_source(data).count()
        with spark_module._unlogged():
            thread = threading.Thread(target=lambda: logger.error("another thread"))
            thread.start()
            thread.join()
            logger.error("secret")
        logger.error("afterwards")
    finally:
        logger.removeHandler(kept)
    assert kept.said == ["another thread", "afterwards"]


def test_partitions_that_change_end_a_seeded_pass(spark, monkeypatch):
    monkeypatch.setattr(spark_module, "_counted", lambda frame: {0: ROWS - 1})
    tally = Sums.of(COLUMNS, Coins(2, key=3))
    source = as_source(split(spark, table(), 1))
    with pytest.raises(DataError, match="Spark failed"):
        source.total(COLUMNS, tally, positions=True)
