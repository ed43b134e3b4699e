"""One table in every form that it may come in gives the same exact moments, bit for bit."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from oracles.design_rows import blocks

from dpreg.formula.design import build_design
from dpreg.moments import accumulate, read_moments
from dpreg.schema import Schema
from dpreg.sources import as_source
from dpreg.sources.reader import Reader

pa = pytest.importorskip("pyarrow")
import pyarrow.dataset as ds  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

ROWS = 150_000  # enough for several threads
LEVELS = ["ala", "cc", "san mateo, ca", 'say "hi"', "\u00fcber"]
SCHEMA = Schema(
    {
        "price": (100, 900),
        "size": (-3, 3),
        "rooms": (0, 12),
        "rate": (0, 1),
        "county": LEVELS,
        "zone": {"levels": [1, 2, 2.5, 7]},
        "sold": bool,
    }
)
FORMULA = "price ~ size + rooms + np.log(1 + rate) + county + C(zone) + sold + size:county"


@pytest.fixture(scope="module")
def frame():
    """Numbers, integers beyond their bounds, factors with undeclared levels, truths; all gappy."""
    rng = np.random.default_rng(20261120)
    table = pd.DataFrame(
        {
            "price": rng.uniform(0, 1000, ROWS),
            "size": rng.normal(size=ROWS),
            "rooms": pd.array(rng.integers(-2, 15, ROWS), dtype="Int64"),
            "rate": (rng.integers(0, 65, ROWS) / 64).astype(np.float32),  # which text holds exactly
            "county": pd.Series(rng.choice([*LEVELS, "elsewhere"], ROWS), dtype="str"),
            "zone": rng.choice([1.0, 2.0, 2.5, 7.0, 9.0], ROWS),
            "sold": pd.array(rng.random(ROWS) < 0.3, dtype="boolean"),
        }
    )
    for name in table:
        table.loc[rng.random(ROWS) < 0.02, name] = pd.NA if name in ("rooms", "sold") else None
    table.loc[rng.random(ROWS) < 0.01, "size"] = math.inf
    return table


@pytest.fixture(scope="module")
def arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.fixture(scope="module")
def folder(frame, arrow, tmp_path_factory):
    folder = tmp_path_factory.mktemp("alike")
    cuts = [0, 70_001, 70_001, ROWS]
    for place, (start, stop) in enumerate(itertools.pairwise(cuts)):
        part = arrow.slice(start, stop - start)
        pq.write_table(part, folder / f"{place}.parquet", row_group_size=9000)
        frame.iloc[start:stop].to_csv(folder / f"{place}.csv", index=False)
        frame.iloc[start:stop].to_csv(folder / f"{place}.csv.gz", index=False)
    labels = arrow.schema.get_field_index("county")
    encoded = arrow.set_column(labels, "county", arrow.column("county").dictionary_encode())
    pq.write_table(encoded, folder / "encoded.pq", compression="zstd")
    return folder


@pytest.fixture(scope="module")
def design():
    return build_design(FORMULA, SCHEMA)


@pytest.fixture(scope="module")
def expected(frame, design):
    moments = accumulate(blocks(design, as_source(frame)), design.size)
    assert moments.rows == ROWS
    assert 0 < moments.cells[0][0] >> 40 < ROWS  # complete rows, and others
    return moments


def duckdb(arrow):
    return pytest.importorskip("duckdb").connect().from_arrow(arrow)


def enumerated(folder):
    """DuckDB on the file itself, the factor as one of its enumerations."""
    db = pytest.importorskip("duckdb").connect()
    names = ", ".join("'" + level.replace("'", "''") + "'" for level in [*LEVELS, "elsewhere"])
    files = str(folder / "?.parquet")
    return db.sql(f"select * replace (county::enum({names}) as county) from '{files}'")


def cut(frame, rows=40_000):
    return [frame.iloc[start : start + rows] for start in range(0, len(frame), rows)]


FORMS = {
    "pandas": lambda frame, arrow, folder: frame,
    "mapping of lists": lambda frame, arrow, folder: {n: list(frame[n]) for n in frame},
    "categories": lambda frame, arrow, folder: frame.astype({"county": "category"}),
    "Parquet": lambda frame, arrow, folder: folder / "*.parquet",
    "Parquet, dictionary": lambda frame, arrow, folder: folder / "encoded.pq",
    "CSV": lambda frame, arrow, folder: folder / "*.csv",
    "CSV, compressed": lambda frame, arrow, folder: folder / "*.csv.gz",
    "Table": lambda frame, arrow, folder: arrow,
    "Table, turned": lambda frame, arrow, folder: arrow.take(np.arange(ROWS)[::-1].copy()),
    "RecordBatchReader": lambda frame, arrow, folder: arrow.to_reader(5000),
    "Dataset": lambda frame, arrow, folder: ds.dataset(folder / "encoded.pq"),
    "Polars": lambda frame, arrow, folder: pytest.importorskip("polars").from_arrow(arrow),
    "DuckDB": lambda frame, arrow, folder: duckdb(arrow),
    "DuckDB, enumeration": lambda frame, arrow, folder: enumerated(folder),
    "function": lambda frame, arrow, folder: lambda: cut(frame),
    "function of Arrow": lambda frame, arrow, folder: lambda: arrow.to_reader(),
}


@pytest.mark.parametrize("form", FORMS)
def test_moments_are_the_same_in_every_form(form, frame, arrow, folder, design, expected):
    source = as_source(FORMS[form](frame, arrow, folder))
    assert read_moments(Reader(source), design) == (expected,)
    if source.rereadable:
        assert accumulate(blocks(design, source, rows=777), design.size) == expected
        assert source.count() == ROWS


@pytest.mark.parametrize("form", ["Parquet", "CSV", "Table", "function"])
def test_one_other_cell_is_another_sum(form, frame, arrow, folder, design, expected, tmp_path):
    """The mutant: what would not see a cell would pass the test above."""
    counts = frame.notna().all(axis=1) & np.isfinite(frame["size"]) & (frame["zone"] < 9)
    row = int(np.flatnonzero(counts & (frame["county"] == "cc"))[-1])
    other = frame.copy()
    other.loc[row, "county"] = "ala"
    changed = pa.Table.from_pandas(other, preserve_index=False)
    pq.write_table(changed, tmp_path / "t.parquet")
    other.to_csv(tmp_path / "t.csv", index=False)
    source = as_source(FORMS[form](other, changed, tmp_path))
    (moments,) = read_moments(Reader(source), design)
    assert moments.rows == expected.rows
    assert moments != expected
