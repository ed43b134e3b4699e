"""Wide, long and many-levelled tables beside the tools that everyone has: CPU seconds and memory.

Each measurement is a process of its own, and counts the CPU seconds of one call after its imports;
ours and the peer's take turns, all on as many threads, and the ratio is the median of the rounds.
CPU seconds travel better between machines than the clock's, on a shared one above all.

- columns: `dp_ols(method="gram")` of p columns, beside NumPy's Gram matrix and one solve;
- levels: exact moments of a factor and two numbers, and the whole `dp_ols(method="gram")` of them,
  both beside pandas' group-by sums of the same;
- candidates: exact moments of 1,000 columns of a Parquet file, and the whole `dp_select` of them;
- csv, parquet: exact moments of 14 columns (and a factor of 20 levels, "text"), beside DuckDB's and
  Polars' sums and sums of products of all pairs; "decode" is pyarrow's reading of the file alone;
- looks: the whole `dp_ols` of a CSV file of 14 columns, parsed once for all its looks, with delta
  and without, beside DuckDB's sums of the same; "frame" is the same call of the table in memory.

    python -m benchmarks.scale                          # all but the longest, some minutes
    python -m benchmarks.scale --only levels columns
    python -m benchmarks.scale --rows 10000000 50000000 --only parquet
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROWS = 200_000
CSV_ROWS = 1_000_000
NAMES = [*(f"x{j}" for j in range(1, 14)), "y"]
LEVELS = [f"level {j}" for j in range(20)]
PAIRS = [*combinations_with_replacement(NAMES, 2)]
GROUP_ROWS = 250_000
THREADS = int(os.environ.get("DPREG_THREADS", "1"))


def columns_table(p: int) -> tuple[pd.DataFrame, list[str]]:
    """Simulate normal rows, nobody's."""
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(p)]
    values = rng.normal(size=(p + 1, ROWS))  # column by column, as files and mappings come
    values[-1] += values[0]
    return pd.DataFrame(values.T, columns=[*names, "y"], copy=False), names


def levels_table(levels: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, ROWS))
    return pd.DataFrame({"g": rng.integers(0, levels, ROWS), "x": x, "y": y})


def columns_ours(p: int) -> Callable[[], object]:
    import dpreg

    table, names = columns_table(p)
    formula, schema = "y ~ " + " + ".join(names), dict.fromkeys(table.columns, (-4, 4))
    return lambda: dpreg.dp_ols(formula, table, 1, schema=schema, method="gram")


def columns_numpy(p: int) -> Callable[[], object]:
    table, _ = columns_table(p)
    rows = np.column_stack([np.ones(ROWS), table.to_numpy()])

    def fit() -> object:
        gram = rows.T @ rows
        return np.linalg.solve(gram[:-1, :-1], gram[:-1, -1])

    return fit


def moments(formula: str, data: object, schema: dict[str, Any]) -> Callable[[], object]:
    from dpreg.formula.design import build_design
    from dpreg.moments import read_moments
    from dpreg.sources import as_source
    from dpreg.sources.reader import Reader

    return lambda: read_moments(Reader(as_source(data)), build_design(formula, schema))


def levels_ours(levels: int) -> Callable[[], object]:
    bounds = {"x": (-4, 4), "y": (-4, 4)}
    schema = {**bounds, "g": {"levels": list(range(levels))}}
    return moments("y ~ x + g", levels_table(levels), schema)


def levels_ols(levels: int) -> Callable[[], object]:
    import dpreg

    table = levels_table(levels)
    schema = {"x": (-4, 4), "y": (-4, 4), "g": {"levels": list(range(levels))}}
    return lambda: dpreg.dp_ols("y ~ x + g", table, 1, schema=schema, method="gram")


def levels_pandas(levels: int) -> Callable[[], object]:
    table = levels_table(levels)

    def sums() -> object:
        whole = table.assign(n=1.0, xx=table.x**2, xy=table.x * table.y, yy=table.y**2)
        return whole.groupby("g")[["n", "x", "y"]].sum(), whole[["xx", "xy", "yy"]].sum()

    return sums


def file_ours(path: str) -> Callable[[], object]:
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401

    schema: dict[str, Any] = dict.fromkeys(NAMES, (-4, 4))
    formula = "y ~ " + " + ".join(NAMES[:-1])
    if "text" in path:
        formula, schema = formula + " + g", {**schema, "g": LEVELS}
    return moments(formula, path, schema)


def looks_of(data: object, delta: float) -> Callable[[], object]:
    import dpreg

    formula, schema = "y ~ " + " + ".join(NAMES[:-1]), dict.fromkeys(NAMES, (-4, 4))

    def fit() -> None:
        made = dpreg.dp_ols(formula, data, 1, delta=delta, schema=schema)
        assert made.method == "adaptive"

    return fit


def looks_ours(path: str, delta: float = 0.0) -> Callable[[], object]:
    import pyarrow.csv  # noqa: F401

    return looks_of(path, delta)


def looks_frame(path: str) -> Callable[[], object]:
    import pyarrow.csv

    return looks_of(pyarrow.csv.read_csv(path).to_pandas(), 0.0)


def candidates_of(path: str) -> tuple[str, dict[str, Any]]:
    import pyarrow.parquet

    names = [name for name in pyarrow.parquet.read_schema(path).names if name != "y"]
    return "y ~ " + " + ".join(names), dict.fromkeys([*names, "y"], (-4, 4))


def candidates_ours(path: str) -> Callable[[], object]:
    formula, schema = candidates_of(path)
    return moments(formula, path, schema)


def candidates_select(path: str) -> Callable[[], object]:
    import dpreg

    formula, schema = candidates_of(path)
    return lambda: dpreg.dp_select(formula, path, 1, schema=schema)


def file_duckdb(path: str) -> Callable[[], object]:
    import duckdb

    sums = [f"sum({name})" for name in NAMES] + [f"sum({a} * {b})" for a, b in PAIRS]
    by = " group by g" if "text" in path else ""
    connection = duckdb.connect()
    connection.execute(f"set threads = {THREADS}")
    query = f"select count(*), {', '.join(sums)} from '{path}'{by}"
    return lambda: connection.execute(query).fetchall()


def file_polars(path: str) -> Callable[[], object]:
    import polars as pl

    sums = [pl.col(name).sum().alias(name) for name in NAMES]
    sums += [(pl.col(a) * pl.col(b)).sum().alias(f"{a} {b}") for a, b in PAIRS]
    scan = pl.scan_csv if path.endswith("csv") else pl.scan_parquet
    if "text" in path:
        return lambda: scan(path).group_by("g").agg(sums).collect(engine="streaming")
    return lambda: scan(path).select(sums).collect(engine="streaming")


def file_decode(path: str) -> Callable[[], object]:
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(path, buffer_size=1 << 18, pre_buffer=False)

    def read() -> None:
        for _ in file.iter_batches(1 << 15, use_threads=False):
            pass

    return read


JOBS: dict[str, Callable[[Any], Callable[[], object]]] = {
    "columns dpreg": columns_ours,
    "columns numpy": columns_numpy,
    "levels dpreg": levels_ours,
    "levels pandas": levels_pandas,
    "ols dpreg": levels_ols,
    "ols pandas": levels_pandas,
    "candidates dpreg": candidates_ours,
    "candidates decode": file_decode,
    "select dpreg": candidates_select,
    "select decode": file_decode,
    "file dpreg": file_ours,
    "file duckdb": file_duckdb,
    "file polars": file_polars,
    "file decode": file_decode,
    "looks dpreg": looks_ours,
    "looks duckdb": file_duckdb,
    "looks frame": looks_frame,
    "delta dpreg": partial(looks_ours, delta=1e-6),
    "delta duckdb": file_duckdb,
}


def write(path: Path, rows: int) -> None:
    """Write simulated rows, nobody's: numbers of three digits ("short") or of seventeen."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    kinds = [(name, pa.float64()) for name in NAMES]
    schema = pa.schema([*kinds, ("g", pa.string())] if "text" in path.name else kinds)
    parquet = path.suffix == ".parquet"
    kind = pyarrow.parquet.ParquetWriter if parquet else pyarrow.csv.CSVWriter
    with kind(str(path), schema) as writer:
        for start in range(0, rows, GROUP_ROWS):
            size = min(GROUP_ROWS, rows - start)
            values = rng.normal(size=(len(NAMES), size))
            if not parquet and "long" not in path.name:
                values = np.round(values, 3)
            columns: dict[str, Any] = dict(zip(NAMES, values, strict=True))
            if "text" in path.name:
                columns["g"] = rng.choice(LEVELS, size)
            writer.write_table(pa.table(columns, schema=schema))


def write_candidates(path: Path, rows: int) -> None:
    """Write 1,000 columns and a response."""
    import pyarrow as pa
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    schema = pa.schema([(name, pa.float64()) for name in [*(f"x{j}" for j in range(1000)), "y"]])
    with pyarrow.parquet.ParquetWriter(str(path), schema) as writer:
        for start in range(0, rows, GROUP_ROWS // 10):
            values = rng.normal(size=(len(schema), min(GROUP_ROWS // 10, rows - start)))
            writer.write_table(pa.table([*values], schema=schema))


def peak_megabytes() -> float:
    """Peak memory of this program. (`getrusage` would count its parent's, from before it began.)"""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def run(job: str, size: str) -> None:
    """Do one job in this process, and print its CPU seconds and the memory before and after."""
    call = JOBS[job](
        size if job.startswith(("file", "candidates", "select", "looks", "delta")) else int(size)
    )
    before, started = peak_megabytes(), time.process_time()
    call()
    print(time.process_time() - started, before, peak_megabytes())


def alone(job: str, size: object) -> tuple[float, float, float]:
    """Do one job in a process of its own."""
    pinned = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS", "DPREG_THREADS")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", "--job", job, str(size)],
        env={**os.environ, **dict.fromkeys(pinned, str(THREADS))},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, before, after = map(float, done.stdout.split())
    return seconds, before, after


def compare(what: str, size: object, shown: object, peers: list[str], rounds: int) -> None:
    """Measure ours and the peers in turns, and print a line for each peer."""
    jobs = ["dpreg", *peers]
    taken = [{job: alone(f"{what} {job}", size) for job in jobs} for _ in range(rounds)]
    ours = statistics.median(one["dpreg"][0] for one in taken)
    for peer in peers:
        theirs = statistics.median(one[peer][0] for one in taken)
        ratios = [one["dpreg"][0] / one[peer][0] for one in taken]
        before, after = (max(one["dpreg"][place] for one in taken) for place in (1, 2))
        print(
            f"{shown!s:26} {peer:8} {ours:9.3f} {theirs:9.3f} {statistics.median(ratios):7.2f} "
            f"({min(ratios):.2f}-{max(ratios):.2f}) {before:8.0f} {after:8.0f} "
            f"{max(one[peer][2] for one in taken):8.0f}",
            flush=True,
        )


def main(only: list[str], rows: list[int], rounds: int) -> None:
    print(f"CPU seconds, {THREADS} threads; memory in MB: before our call, its peak, the peer's")
    print(f"{'case':26} {'peer':8} {'ours':>9} {'peer':>9} {'ratio':>7}")
    if "levels" in only:
        for levels in (5, 100, 1000, 5000):
            compare("levels", levels, f"{levels:,} levels", ["pandas"], rounds)
            compare("ols", levels, f"{levels:,} levels, dp_ols", ["pandas"], rounds)
    if "columns" in only:
        for p in (10, 30, 100, 300):
            compare("columns", p, f"{p} columns", ["numpy"], rounds)
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("short", "long", "text") if "csv" in only else ():
            path = Path(folder) / f"{kind}.csv"
            write(path, CSV_ROWS)
            compare("file", path, f"csv {kind} {CSV_ROWS:,}", ["duckdb", "polars"], rounds)
            path.unlink()
        for kind in ("short", "long") if "looks" in only else ():
            path = Path(folder) / f"{kind}.csv"
            write(path, CSV_ROWS)
            compare("looks", path, f"looks, csv {kind}", ["duckdb", "frame"], rounds)
            compare("delta", path, f"looks, csv {kind}, delta", ["duckdb"], rounds)
            path.unlink()
        for count in (50_000, 200_000) if "candidates" in only else ():
            path = Path(folder) / f"candidates-{count}.parquet"
            write_candidates(path, count)
            compare("candidates", path, f"1,000 columns of {count:,}", ["decode"], rounds)
            compare("select", path, f"dp_select, {count:,} rows", ["decode"], rounds)
            path.unlink()
        for count in rows if "parquet" in only else ():
            path = Path(folder) / f"{count}.parquet"
            write(path, count)
            compare("file", path, f"parquet {count:,}", ["duckdb", "polars", "decode"], rounds)
            path.unlink()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = ["levels", "columns", "candidates", "csv", "looks", "parquet"]
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--rows", nargs="+", type=int, default=[1_000_000, 10_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--job", nargs=2, metavar=("JOB", "SIZE"))
    asked = parser.parse_args()
    if asked.job:
        run(*asked.job)
    else:
        main(asked.only, asked.rows, asked.rounds)
