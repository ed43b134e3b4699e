"""What blocks are taken of: the same numbers from whatever holds the rows, and what is refused."""

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from dpreg import Ledger
from dpreg.api.aggregate import Aggregate, block_table, sample_aggregate
from dpreg.errors import ArgumentError, DataError, DpregError, SchemaError
from dpreg.estimation.blocks import taken
from dpreg.sources.table import TableSource

N = 3_001
SCHEMA = {"a": (0, 1), "n": (0, 9), "t": bool, "g": ["v", "u"], "l": {"levels": [3, 1.5]}}
NEIGHBORS = ("replace-one", "add-remove")


def rows() -> pa.Table:
    """Cells of every kind: missing, outside the bounds, infinite, with undeclared labels."""
    rng = np.random.default_rng(0)

    def gaps(values: Any) -> pa.Array:
        return pa.array(values, mask=rng.random(N) < 0.1)

    a = rng.uniform(-2, 8, N)
    a[rng.random(N) < 0.01] = np.inf
    return pa.table(
        {
            "unused": pa.array(np.arange(N)),
            "g": gaps(rng.choice(["u", "v", "undeclared"], N)),
            "a": gaps(a),
            "n": gaps(rng.integers(0, 20, N)),
            "t": gaps(rng.random(N) < 0.3),
            "l": gaps(rng.choice([1.5, 3.0, 7.0], N)),
        }
    )


def frame() -> pd.DataFrame:
    """The frame that blocks should be of: declared columns, in the schema's order."""
    table = rows().to_pydict()
    labels = {"g": ["v", "u"], "l": [3, 1.5]}
    made = {
        "a": np.array([np.nan if x is None else x for x in table["a"]]),
        "n": np.array([np.nan if x is None else float(x) for x in table["n"]]),
        "t": pd.array(table["t"], dtype="boolean"),
    }
    for name, levels in labels.items():
        known = [x if x in levels else None for x in table[name]]
        made[name] = pd.Categorical(known, categories=levels)
    return pd.DataFrame(made)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("forms")
    table = rows()
    for place, part in enumerate((table[:1_000], table[1_000:])):
        pq.write_table(part, made / f"{place}.parquet", row_group_size=400)
        pyarrow.csv.write_csv(part, made / f"{place}.csv")
    return made


def chunks(folder: Path) -> Callable[[], Iterator[pd.DataFrame]]:
    return lambda: (pd.read_parquet(folder / f"{place}.parquet") for place in (0, 1))


FORMS: dict[str, Callable[[Path], Any]] = {
    "Parquet": lambda folder: str(folder / "*.parquet"),
    "CSV": lambda folder: str(folder / "*.csv"),
    "paths": lambda folder: (folder / "0.parquet", folder / "1.parquet"),
    "pyarrow": lambda folder: rows(),
    "stream": lambda folder: rows().to_reader(max_chunksize=700),
    "Polars": lambda folder: pl.from_arrow(rows()),
    "DuckDB": lambda folder: duckdb.sql(
        f"select * from read_parquet(['{folder}/0.parquet', '{folder}/1.parquet'])"
    ),
    "chunks": chunks,
}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, folder: Path) -> Any:
    return FORMS[request.param](folder)


def middle(block: pd.DataFrame) -> list[float]:
    return [block["a"][np.isfinite(block["a"])].median(), block["t"].mean(), len(block)]


BOUNDS = {"middle": (0, 10), "truths": (0, 1), "rows": (0, 500)}


@pytest.mark.parametrize(
    ("by", "neighbors", "blocks"),
    [
        (None, "replace-one", None),
        (None, "add-remove", 30),
        ("g", "replace-one", 30),
        ("t", "add-remove", None),
        *(
            pytest.param(by, neighbors, blocks, marks=pytest.mark.audit)
            for by, neighbors, blocks in [
                (None, "replace-one", 30),
                (None, "add-remove", None),
                ("g", "replace-one", None),
                ("g", "add-remove", None),
                ("g", "add-remove", 30),
                ("t", "replace-one", None),
                ("t", "replace-one", 30),
                ("t", "add-remove", 30),
            ]
        ),
    ],
)
def test_whatever_holds_the_rows_the_numbers_are_those_of_a_frame(by, neighbors, blocks, folder):
    options = {
        "schema": SCHEMA, "by": by, "eps": 3, "bounds": BOUNDS, "neighbors": neighbors,
        "blocks": blocks, "unsafe_seed": 4, "correct_bias": blocks is None,
    }  # fmt: skip
    expected = sample_aggregate(middle, frame(), **options)
    assert expected.passes == 1
    for name, form in FORMS.items():
        assert sample_aggregate(middle, form(folder), **options) == expected, name


def test_another_order_of_rows_gives_other_numbers():
    """So the comparison above can fail."""
    options = {"schema": SCHEMA, "eps": 3, "bounds": BOUNDS, "unsafe_seed": 4}
    turned = rows()[::-1]
    assert sample_aggregate(middle, turned, **options) != sample_aggregate(
        middle, rows(), **options
    )


def settled(data, by=None, schema=SCHEMA):
    told = {"data": data, "by": by, "schema": schema, "where": None, "progress": None}
    return block_table(Aggregate.of({"eps": 1, "bounds": (0, 1)}), told)


def test_blocks_are_frames_of_the_declared_columns_and_types(form):
    table = settled(form)
    assert table.read() == N
    index = np.array([7, 3, 2_999, *range(500, 700)])
    expected = frame().iloc[index].reset_index(drop=True)
    block = taken(table.held, index)
    pd.testing.assert_frame_equal(block, expected)
    block["a"] = -1.0
    pd.testing.assert_frame_equal(taken(table.held, index), expected)
    assert table.reader.passes == 1


def test_a_block_s_cells_are_not_read_by_what_other_rows_hold():
    """Integers stay floats, truths nullable, levels all there: with gaps elsewhere or without."""
    seen = []

    def estimator(block: pd.DataFrame) -> float:
        seen.append(block.dtypes.to_dict())
        return 1.0

    ones = {"a": [1.0] * 40, "n": [1] * 40, "t": [True] * 40, "g": ["u"] * 40, "l": [3] * 40}
    for cells in (ones, {name: [*values[1:], None] for name, values in ones.items()}):
        options = {"schema": SCHEMA, "eps": 1, "bounds": (0, 2), "blocks": 2}
        sample_aggregate(estimator, pa.table(cells), **options)
    assert all(one == frame().dtypes.to_dict() for one in seen)


def test_a_table_of_no_rows_has_columns():
    table = settled(rows()[:0], by="g")
    assert table.read() == 0
    assert table.labels.tolist() == []
    pd.testing.assert_frame_equal(taken(table.held, np.zeros(0, dtype=np.intp)), frame()[:0])
    result = sample_aggregate(middle, rows()[:0], schema=SCHEMA, eps=1, bounds=BOUNDS)
    assert result.nobs == 0


def test_rows_are_copied_out_of_the_table_that_holds_them():
    held = np.arange(50.0)
    source = TableSource([("a", pd.Series(held, copy=False))], 50)
    table = settled(source, schema={"a": (0, 9)})
    table.read()
    held[:] = -1
    assert taken(table.held, np.arange(50))["a"].tolist() == list(range(50))


# ---- when rows are read ----------------------------------------------------------------------


class Noted(TableSource):
    """A table that does not say how many rows it has, and tells what is done with it."""

    def __init__(self, data: pd.DataFrame, log: list[str], once: bool = False) -> None:
        columns = [(name, data[name]) for name in data]
        super().__init__(columns, len(data))
        self.whole = TableSource(columns, len(data))
        self.rows = None
        self.log = log
        self.once = once

    @property
    def rereadable(self) -> bool:
        return not self.once

    def count(self) -> int:
        self.log.append("count")
        assert not self.once
        return len(self._columns[0])

    def _pieces(self, *args: Any) -> Iterator[Any]:
        self.log.append("read")
        return self.whole._pieces(*args)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("blocks", [None, 30])
@pytest.mark.parametrize("neighbors", NEIGHBORS)
def test_nothing_is_read_or_counted_before_the_charge_where_n_is_private(
    neighbors, blocks, once, monkeypatch
):
    log: list[str] = []
    honest = Ledger.charge
    monkeypatch.setattr(
        Ledger, "charge", lambda *args, **more: (log.append("charge"), honest(*args, **more))[1]
    )
    result = sample_aggregate(
        lambda block: block["a"].mean(), Noted(frame(), log, once), schema=SCHEMA, eps=1,
        bounds=(0, 9), neighbors=neighbors, blocks=blocks, by="g", budget=Ledger(1),
    )  # fmt: skip
    counted = neighbors == "replace-one" and blocks is not None and not once
    assert log == ["count"] * counted + ["charge", "read"]
    assert result.passes == 1
    assert result.nobs == (N if neighbors == "replace-one" else None)


def test_too_many_blocks_for_a_stream_are_refused_when_it_has_been_read():
    for data, charged in ((rows(), 0), (rows().to_reader(), 1)):
        ledger = Ledger(1)
        with pytest.raises(ArgumentError, match=f"blocks=2000 .*{N} rows"):
            sample_aggregate(
                middle, data, schema=SCHEMA, eps=1, bounds=BOUNDS, blocks=2_000, budget=ledger
            )
        assert len(ledger.entries) == charged


def test_an_engine_that_fails_costs_the_charge_and_tells_nothing():
    def failing() -> Iterator[pd.DataFrame]:
        yield frame()
        raise RuntimeError("secret 99")

    ledger = Ledger(1)
    with pytest.raises(DataError, match="RuntimeError") as caught:
        sample_aggregate(middle, failing, schema=SCHEMA, eps=1, bounds=BOUNDS, budget=ledger)
    assert "secret" not in str(caught.value)
    assert len(ledger.entries) == 1


# ---- what is refused -------------------------------------------------------------------------

BAD = [
    (lambda: rows(), {}, ArgumentError, "schema must declare"),
    (lambda: rows(), {"schema": {}}, ArgumentError, "schema must declare"),
    (lambda: rows(), {"schema": {"zz": (0, 1)}}, DataError, "no column 'zz'"),
    (lambda: rows(), {"schema": {"a": (1, 0)}}, SchemaError, "'a'"),
    (lambda: rows(), {"schema": SCHEMA, "by": "zz"}, ArgumentError, "levels"),
    (lambda: rows(), {"schema": SCHEMA, "by": "a"}, ArgumentError, "levels"),
    (lambda: rows(), {"schema": SCHEMA, "by": 3}, ArgumentError, "by must be"),
    (lambda: rows(), {"schema": SCHEMA, "progress": "yes"}, ArgumentError, "progress"),
    (lambda: [1.0], {"progress": 1}, ArgumentError, "progress"),
    (lambda: "no_such.parquet", {"schema": SCHEMA}, DataError, "no file"),
    (lambda: ["0.parquet", "1.parquet"], {"schema": SCHEMA}, ArgumentError, "tuple of paths"),
    (lambda: 3, {"schema": SCHEMA}, ArgumentError, "data is a int"),
    (lambda: pl.Series([1.0]), {"schema": SCHEMA}, ArgumentError, "not a table"),
]


@pytest.mark.parametrize(("data", "options", "kind", "match"), BAD, ids=range(len(BAD)))
def test_bad_input_is_refused_by_name_and_nothing_is_charged(data, options, kind, match):
    ledger = Ledger(1)
    with pytest.raises(kind, match=match) as caught:
        sample_aggregate(middle, data(), eps=1, bounds=BOUNDS, budget=ledger, **options)
    assert isinstance(caught.value, DpregError)
    assert ledger.entries == ()


def from_spark() -> Any:
    from pyspark.sql.classic.dataframe import DataFrame

    return object.__new__(DataFrame)


@pytest.mark.parametrize("schema", [None, SCHEMA])
@pytest.mark.parametrize(
    "data",
    [
        lambda: dd.from_pandas(frame()[["a", "n"]], npartitions=2),
        lambda: dd.from_pandas(frame()["a"], npartitions=2),
        from_spark,
    ],
    ids=["frame of Dask", "column of Dask", "Spark"],
)
def test_rows_on_a_cluster_are_refused_with_the_mend(data, schema):
    ledger = Ledger(1)
    for mend in (r"\.compute\(\)", r"\.toPandas\(\)", "dp_mean", "rows together"):
        with pytest.raises(ArgumentError, match=mend):
            sample_aggregate(middle, data(), eps=1, bounds=BOUNDS, schema=schema, budget=ledger)
    assert ledger.entries == ()


# ---- the bar ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("progress", "shown"), [(True, True), (False, False), (None, False)])
def test_a_bar_is_shown_where_it_is_asked_for(progress, shown, monkeypatch):
    """None: a quick reading shows none even on a terminal."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    options = {"schema": SCHEMA, "eps": 1, "bounds": BOUNDS, "unsafe_seed": 1}
    sample_aggregate(middle, rows(), progress=progress, **options)
    assert ("rows" in stream.getvalue()) == shown
    sample_aggregate(middle, frame(), progress=progress, **options)
