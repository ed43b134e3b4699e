"""What looks at the rows cost: `dp_ols` by looks over one pass of gram, and their peak memory.

235,760 rows, fifteen columns; three looks with delta, and without it two looks and a minimum over
rows that are held. Time is the processor's, of all threads, and a ratio to the same call
with `method="gram"`, of a table in memory and of a Parquet file; memory is the peak of a process
that does nothing else, at so many rows and at eight times as many.

    python -m benchmarks.looks
"""

import argparse
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

import dpreg
from benchmarks._harness import Comparison, compare, show
from benchmarks.scale import peak_megabytes

ROWS, COLUMNS, TIMES, GOAL = 235_760, 15, 8, 4.0
NAMES = [f"x{j}" for j in range(1, COLUMNS + 1)]


def frame(rows: int, seed: int = 0) -> pd.DataFrame:
    """Simulate rows, nobody's."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, COLUMNS))
    y = x @ np.tile([0.5, 0.3, 0.0], COLUMNS // 3) + rng.normal(size=rows)
    return pd.DataFrame(x, columns=NAMES).assign(y=y)


def fit(data: Any, method: str, delta: float = 1e-6) -> None:
    schema = {**dict.fromkeys(NAMES, (-4, 4)), "y": (-8, 8)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dpreg.dp_ols(
            f"y ~ {' + '.join(NAMES)}", data, eps=1, delta=delta, schema=schema, method=method
        )


def run(folder: Path, rounds: int = 5) -> list[Comparison]:
    data, file = frame(ROWS), folder / "rows.parquet"
    data.to_parquet(file, row_group_size=50_000)
    return [
        compare(
            f"adaptive, {ROWS:,} x {COLUMNS}, {name}, delta {delta:g}",
            lambda rows=rows, delta=delta: fit(rows, "adaptive", delta),  # type: ignore[misc]
            "gram",
            lambda rows=rows, delta=delta: fit(rows, "gram", delta),  # type: ignore[misc]
            rounds=rounds,
            goal=GOAL,
            clock=time.process_time,
        )
        for name, rows in (("DataFrame", data), ("Parquet", file))
        for delta in (1e-6, 0.0)
    ]


def peak(method: str, file: Path) -> float:
    """Peak megabytes of a process that fits the file's rows."""
    command = [sys.executable, "-m", "benchmarks.looks", "--job", method, "--file", str(file)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main(folder: Path) -> None:
    show(run(folder))
    small, large = folder / "small.parquet", folder / "large.parquet"
    frame(ROWS).to_parquet(small, row_group_size=50_000)
    schema = pq.read_schema(small)
    with pq.ParquetWriter(large, schema) as writer:
        for _ in range(TIMES):
            writer.write_table(pq.read_table(small), row_group_size=50_000)
    print(f"\n{'method':8} {'rows':>10} {'peak MB':>8}")
    for method in ("gram", "adaptive"):
        for rows, file in ((ROWS, small), (ROWS * TIMES, large)):
            print(f"{method:8} {rows:10,} {peak(method, file):8.0f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job")
    parser.add_argument("--file", type=Path)
    given = parser.parse_args()
    if given.job:
        fit(given.file, given.job)
        print(peak_megabytes())
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made))
