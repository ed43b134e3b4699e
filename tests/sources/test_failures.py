"""When what holds the rows fails half way: the charge stays, and nothing of the rows is said."""

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpreg
from dpreg.errors import DataError

SECRET = 0.7316250948
SCHEMA = {"y": (-1, 1), "x": (-1, 1), "g": ["mallory-secret", "v"]}

CALLS: list[Callable[..., Any]] = [
    lambda data, **rest: dpreg.dp_select("y ~ x + g", data, **rest, method="pcls"),
    lambda data, **rest: dpreg.dp_select("y ~ x + g", data, **rest, radius="private"),
    lambda data, **rest: dpreg.dp_ols("y ~ x + g", data, **rest, method="gram"),
    lambda data, **rest: dpreg.dp_ols("y ~ x", data, **rest, delta=1e-6, method="ssp"),
    lambda data, **rest: dpreg.dp_mean(["x", "y"], data, **rest, by="g"),
    lambda data, **rest: dpreg.dp_quantile("x", 0.5, data, **rest),
    lambda data, **rest: dpreg.dp_histogram("x", data, **rest),
    lambda data, **rest: dpreg.sample_aggregate(
        lambda block: block["x"].mean(), data, **rest, bounds=(0, 1)
    ),
]


def frame(rows: int = 60_000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.uniform(-1, 1, size=(rows, 2)), columns=["x", "y"])
    data.loc[::7, ["x", "y"]] = SECRET
    data["g"] = np.where(rng.random(rows) < 0.5, "mallory-secret", "v")
    return data


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A Parquet file whose last pages are noise, under a sound footer."""
    path = tmp_path / "sales.parquet"
    table = pa.Table.from_pandas(frame(), preserve_index=False)
    pq.write_table(table, path, row_group_size=10_000, compression="snappy", use_dictionary=False)
    content = bytearray(path.read_bytes())
    length = int.from_bytes(content[-8:-4], "little")
    end = len(content) - length - 8
    content[end // 2 : end] = np.random.default_rng(1).bytes(end - end // 2)
    path.write_bytes(bytes(content))
    return path


def failing() -> Iterator[pd.DataFrame]:
    yield frame(40_000)
    raise RuntimeError(f"row 40001 has {SECRET} and mallory-secret")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", ["damaged file", "function that raises"])
def test_the_charge_stays_and_no_row_is_named(
    call: Callable[..., Any], kind: str, damaged: Path
) -> None:
    ledger = dpreg.Ledger(dpreg.Budget(2, "1e-5"))
    data = damaged if kind == "damaged file" else failing
    with pytest.raises(DataError) as refused:
        call(data, eps=1, schema=SCHEMA, budget=ledger)
    assert ledger.spent.eps == 1
    told = "".join(traceback.format_exception(refused.value)) + repr(refused.value)
    assert str(SECRET)[2:8] not in told
    assert "mallory-secret" not in told.replace(repr(SCHEMA["g"]), "")
    assert refused.value.__context__ is None
    assert refused.value.__cause__ is None
    if kind == "damaged file":
        assert str(damaged) in str(refused.value)


def test_a_file_with_a_bad_footer_costs_nothing(damaged: Path) -> None:
    damaged.write_bytes(damaged.read_bytes()[:-100])
    ledger = dpreg.Ledger(1)
    with pytest.raises(DataError, match=r"sales\.parquet"):
        dpreg.dp_select("y ~ x", damaged, eps=1, schema=SCHEMA, budget=ledger)
    assert ledger.spent.eps == 0
