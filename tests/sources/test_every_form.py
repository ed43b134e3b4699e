"""One large table in every form: the same moments, and the same results, bit for bit.

It has missing cells of every kind, a factor with undeclared labels, and a column whose bounds are
bought. What is compared is JSON, which holds every released number with all its digits.
"""

import json
import warnings
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

import dpreg
from dpreg.formula.design import build_design
from dpreg.looks.coordinates import Point, place_of
from dpreg.looks.families import Linear
from dpreg.looks.records import Described
from dpreg.looks.rows import Rows
from dpreg.looks.table import LookTally
from dpreg.moments import Moments, read_moments
from dpreg.schema import Schema
from dpreg.sources import as_source
from dpreg.sources.reader import Reader

pytestmark = [
    pytest.mark.xdist_group("cluster"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

ROWS = 300_000
FORMULA = "y ~ x + z + np.log(k) + b + g + g:x"
SCHEMA = {
    "y": (-8, 8),
    "x": (-3, 3),
    "z": (-50, 150),
    "k": (1, 40),
    "b": bool,
    "g": ["ala", "cc", "sf"],
}
BARE = {name: kind for name, kind in SCHEMA.items() if name != "z"}


def rows() -> pa.Table:
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=ROWS), rng.normal(40, 15, size=ROWS)
    k = rng.integers(0, 60, size=ROWS)
    b = rng.random(ROWS) < 0.3
    g = rng.integers(4, size=ROWS)
    y = x + 0.02 * z + b + (g == 1) + rng.normal(size=ROWS)
    x[rng.random(ROWS) < 1e-4] = np.inf

    def gaps(values: np.ndarray, part: float, **options: Any) -> pa.Array:
        return pa.array(values, mask=rng.random(ROWS) < part, **options)

    labels = pa.DictionaryArray.from_arrays(
        gaps(g.astype(np.int32), 0.02), ["sf", "nobody declared", "ala", "cc"]
    )
    return pa.table(
        {
            "unused": pa.array(np.arange(ROWS)),
            "y": gaps(y, 0.01),
            "x": gaps(x, 0.03),
            "z": gaps(z, 0.01),
            "k": gaps(k, 0.02),
            "b": gaps(b, 0.02),
            "g": labels,
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("forms")
    table = rows()
    half = ROWS // 2 - 7
    pq.write_table(table, made / "whole.parquet", row_group_size=30_001)
    for place, part in enumerate((table[:half], table[half:])):
        pq.write_table(part, made / f"part-{place}.parquet", row_group_size=20_000)
        plain = part.set_column(6, "g", part["g"].cast(pa.string()))
        pyarrow.csv.write_csv(plain, made / f"part-{place}.csv")
    return made


def chunks(folder: Path) -> Callable[[], Iterator[pd.DataFrame]]:
    def opened() -> Iterator[pd.DataFrame]:
        for batch in pq.ParquetFile(folder / "whole.parquet").iter_batches(27_777):
            yield batch.to_pandas(types_mapper=pd.ArrowDtype)

    return opened


LOCAL: dict[str, Callable[[Path], Any]] = {
    "pandas": lambda folder: pd.read_parquet(folder / "whole.parquet"),
    "pandas, Arrow inside": lambda folder: pd.read_parquet(
        folder / "whole.parquet", dtype_backend="pyarrow"
    ),
    "Parquet": lambda folder: folder / "whole.parquet",
    "several Parquet files": lambda folder: str(folder / "part-*.parquet"),
    "CSV": lambda folder: str(folder / "*.csv"),
    "pyarrow": lambda folder: pq.read_table(folder / "whole.parquet"),
    "Polars": lambda folder: pl.read_parquet(folder / "whole.parquet"),
    "DuckDB": lambda folder: duckdb.sql(f"select * from '{folder}/whole.parquet'"),
    "chunks": chunks,
}


@pytest.fixture(params=[*LOCAL, "Dask", "Spark"])
def form(request: pytest.FixtureRequest, folder: Path) -> Iterator[Any]:
    if request.param == "Dask":
        with request.getfixturevalue("dask_client").as_current():
            yield dd.read_parquet(folder / "whole.parquet", split_row_groups=True)
    elif request.param == "Spark":
        yield request.getfixturevalue("spark").read.parquet(str(folder / "whole.parquet"))
    else:
        yield LOCAL[request.param](folder)


def moments(data: Any) -> tuple[Moments, list[int]]:
    """Read moments as they are stored, and the sums of a look."""
    design = build_design(FORMULA, Schema.from_any(SCHEMA))
    reader, p = Reader(as_source(data)), design.size - 2
    rng = np.random.default_rng(1)
    point = Point(
        rng.normal(size=p) / 9,
        rng.normal(size=(p, p)) * 3,
        rng.normal(size=p) / 3,
        0.1,
        1.0,
        0.1,
        np.ones(p),
        np.ones(p),
    )
    place, _ = place_of(point, Linear(), information=30.0, score=4.0)
    tally = LookTally(Rows(design, Described(tuple(range(1, p + 1))), place), matrix=True)
    (stored,) = read_moments(reader, design)
    return stored, [int(cell) for cell in reader.total(tally.rows.design.types, tally, "look")]


CALLS: list[Callable[..., Any]] = [
    lambda data, **seeded: dpreg.dp_select(
        FORMULA, data, eps=1, radius="private", draws=3, **seeded
    ),
    lambda data, **seeded: dpreg.dp_histogram("y", data, eps=1, **seeded),
    lambda data, **seeded: dpreg.dp_ols(
        "y ~ x + k", data, 1, delta=1e-6, method="adassp", **seeded
    ),
    lambda data, **seeded: dpreg.dp_mean(["x", "y"], data, by="g", eps=1, **seeded),
    lambda data, **seeded: dpreg.dp_quantile("y", [0.1, 0.5], data, eps=1, **seeded),
]
SLOW = ("CsvSource", "SparkSource")
"""Make the first call alone: four passes, a private radius, three draws and a fit."""


def results(data: Any) -> list[str]:
    calls = CALLS[:1] if type(as_source(data)).__name__ in SLOW else CALLS
    with warnings.catch_warnings():  # of the column whose bounds are bought
        warnings.simplefilter("ignore", dpreg.errors.DpregWarning)
        found = [call(data, schema=BARE, unsafe_seed=5) for call in calls]
    return [json.dumps(result.to_dict() | {"record": None}) for result in found]


@pytest.fixture(scope="module")
def expected(folder: Path) -> tuple[tuple[Moments, list[int]], list[str]]:
    frame = pq.read_table(folder / "whole.parquet").to_pandas()
    return moments(frame), results(frame)


def test_moments_and_results_do_not_depend_on_the_form(form: Any, expected: Any) -> None:
    known, released = expected
    stored, looked = known
    assert stored.rows == looked[0] == ROWS
    assert 0.5 * ROWS < stored.cells[0][0] >> 40 < 0.8 * ROWS
    assert 0 < looked[1] < stored.cells[0][0]
    assert moments(form) == known
    found = results(form)
    assert found == released[: len(found)]


def test_another_order_of_rows_is_another_split_but_the_same_moments(
    folder: Path, expected: Any
) -> None:
    """So the comparison of seeded results above can fail."""
    turned = pq.read_table(folder / "whole.parquet")[::-1]
    assert moments(turned) == expected[0]
    assert results(turned)[0] != expected[1][0]


WRONG = [
    ("y ~ x + garden", SCHEMA | {"garden": (0, 1)}, "no column 'garden'"),
    ("y ~ x + g", {"x": (0, 1), "y": (0, 1)}, "'g'"),
    ("g ~ x", {"x": (0, 1), "g": ["sf", "cc"]}, "'g'"),
]


@pytest.mark.parametrize(("formula", "schema", "named"), WRONG)
def test_what_does_not_fit_is_refused_in_the_same_words_before_a_row_is_read(
    form: Any, formula: str, schema: dict[str, Any], named: str, folder: Path, monkeypatch: Any
) -> None:
    def message(data: Any) -> str:
        ledger = dpreg.Ledger(1)
        with pytest.raises(dpreg.errors.DpregError, match=named) as refused:
            dpreg.dp_select(formula, data, eps=1, schema=schema, budget=ledger)
        assert ledger.spent.eps == 0
        return f"{type(refused.value).__name__}: {refused.value}"

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a row was read")

    data = as_source(form)
    if data.kind("g") == "object" and "g" not in schema:
        return  # a CSV file does not say what its columns are
    monkeypatch.setattr(type(data), "total", refuse)
    monkeypatch.setattr(type(data), "count", refuse)
    if type(data).__name__ == "CsvSource" and "garden" in formula:
        assert "garden" in message(data)  # a first line may be a row: none of it is told
        return
    assert message(data) == message(pd.read_parquet(folder / "whole.parquet").head(3))
