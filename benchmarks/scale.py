"""`dp_select` on a Parquet file larger than it holds in memory, beside DuckDB and statsmodels.

All read one file of 14 float64 columns. DuckDB computes what least squares needs, the sums and
the sums of products of all pairs of columns, on as many threads; dpreg reads, scales, splits,
draws among 8,192 models and fits. Peak memory is that of a process that does nothing else.

    python -m benchmarks.scale            # 20,000,000 rows: 2.5 GB on disk, a few minutes
    python -m benchmarks.scale 1000000
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import combinations_with_replacement
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dpreg
from benchmarks._harness import compare, show

NAMES = [f"x{j}" for j in range(1, 14)]
FORMULA = "y ~ " + " + ".join(NAMES)
SCHEMA = dict.fromkeys([*NAMES, "y"], (-4, 4))
GROUP_ROWS = 250_000
SMALL = 1_000_000
THREADS = os.cpu_count() or 1


def write(path: Path, rows: int) -> None:
    """Write simulated rows, nobody's, in row groups."""
    rng = np.random.default_rng(0)
    effects = np.array([0.5, 0.3, 0.2] + 10 * [0.0])
    schema = pa.schema([(name, pa.float64()) for name in [*NAMES, "y"]])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, GROUP_ROWS):
            x = rng.normal(size=(min(GROUP_ROWS, rows - start), 13))
            y = x @ effects + rng.normal(size=len(x))
            columns = dict(zip(schema.names, [*x.T, y], strict=True))
            writer.write_table(pa.table(columns, schema=schema))


def select(path: Path) -> None:
    dpreg.dp_select(FORMULA, path, eps=1, schema=SCHEMA)


def sums_of_products(path: Path) -> None:
    pairs = combinations_with_replacement([*NAMES, "y"], 2)
    sums = [f"sum({name})" for name in [*NAMES, "y"]] + [f"sum({a} * {b})" for a, b in pairs]
    with duckdb.connect() as connection:
        connection.execute(f"set threads = {THREADS}")
        connection.execute(f"select count(*), {', '.join(sums)} from '{path}'").fetchall()


def least_squares(path: Path) -> None:
    import statsmodels.api as sm

    table = pq.read_table(path).to_pandas()
    sm.OLS(table["y"].to_numpy(), sm.add_constant(table[NAMES].to_numpy())).fit()


JOBS: dict[str, Callable[[Path], None]] = {
    "dpreg": select,
    "duckdb": sums_of_products,
    "statsmodels": least_squares,
}


def alone(job: str, path: Path) -> tuple[float, float] | None:
    """Run a job in a process of its own: seconds, and peak memory in MB; None where it died."""
    command = [sys.executable, "-m", "benchmarks.scale", "--job", job, "--file", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    seconds, peak = map(float, done.stdout.split())
    return seconds, peak


def peak_megabytes() -> float:
    """Peak memory of this program. (`getrusage` would count its parent's, from before it began.)"""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def main(rows: int, folder: Path) -> None:
    files = {n: folder / f"rows-{n}.parquet" for n in sorted({min(SMALL, rows), rows})}
    for n, path in files.items():
        write(path, n)
    print(f"{rows:,} rows, {THREADS} threads; a call against one query\n")
    largest = files[rows]
    found = compare(
        f"dp_select, {rows:,} rows",
        lambda: select(largest),
        "DuckDB",
        lambda: sums_of_products(largest),
        rounds=3,
        goal=1.5,
    )
    show([found])
    print(f"\ndpreg read {rows / found.ours / 1e6:.1f} million rows a second\n")
    print(f"{'job':12} {'rows':>12} {'seconds':>8} {'million rows/s':>15} {'peak MB':>8}")
    for n, path in files.items():
        for job in ("dpreg", "duckdb"):
            _line(job, n, alone(job, path))
    # Statsmodels holds the whole table: halve it until it fits.
    n = rows
    while (measured := alone("statsmodels", largest)) is None and n > SMALL:
        _line("statsmodels", n, None)
        n //= 2
        write(largest, n)
    _line("statsmodels", n, measured)


def _line(job: str, rows: int, measured: tuple[float, float] | None) -> None:
    if measured is None:
        print(f"{job:12} {rows:12,} does not fit")
        return
    seconds, peak = measured
    print(f"{job:12} {rows:12,} {seconds:8.2f} {rows / seconds / 1e6:15.1f} {peak:8.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int, nargs="?", default=20_000_000)
    parser.add_argument("--job", choices=JOBS)
    parser.add_argument("--file", type=Path)
    asked = parser.parse_args()
    if asked.job:
        started = time.perf_counter()
        JOBS[asked.job](asked.file)
        taken = time.perf_counter() - started
        print(taken, peak_megabytes())
    else:
        with tempfile.TemporaryDirectory() as made:
            main(asked.rows, Path(made))
