"""Sums over all rows of a person, from a frame, text ids, Parquet and CSV, beside pandas' group-by.

`python -m benchmarks.persons`: 1e6 rows of 200,000 persons, 16 columns, limited after they were
summed. The aim: 10 s and 1 GB for all of it, the table included. The peak of memory is of a process
of its own for each form; the seconds of one call, with the grouping and one pass.
"""

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks._harness import compare, show
from dpreg.columns import Unbounded
from dpreg.sources import as_source
from dpreg.sources.persons import PERSON, Persons, person_sums
from dpreg.sources.reader import Reader

ROWS, PERSONS, COLUMNS = 1_000_000, 200_000, 16
NAMES = [f"x{place}" for place in range(COLUMNS)]
LIMIT = 2**21


def main() -> None:
    comparisons, peaks = [], []
    with tempfile.TemporaryDirectory() as folder:
        paths = {form: str(Path(folder, f"rows.{form}")) for form in ("parquet", "csv")}
        made("frame").to_parquet(paths["parquet"])
        made("frame").to_csv(paths["csv"], index=False)
        for form in ("frame", "text ids", *paths):
            data = paths.get(form) or made(form)
            call = partial(ours, data)
            comparisons.append(compare(form, call, "pandas", partial(theirs, data), rounds=3))
            peaks.append(peak(form, paths.get(form, "")))
    show(comparisons)
    print(", ".join(peaks))


def made(form: str) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((ROWS, COLUMNS)), columns=NAMES)
    frame["who"] = rng.integers(0, PERSONS, ROWS)
    return frame if form == "frame" else frame.assign(who="P" + frame.who.astype(str))


def limited(chunks):
    """Sum each person's cells, in units of 2**-20, and what they come to where that is limited."""
    total = np.zeros(COLUMNS, dtype=np.int64)
    for _, chunk in chunks:
        cells = np.column_stack([chunk[name] for name in NAMES])
        sums = person_sums(chunk[PERSON], np.rint(cells * 2**20).astype(np.int64))
        norms = np.sqrt((sums.astype(float) ** 2).sum(axis=1))
        shrunk = sums * np.minimum(1.0, LIMIT / np.maximum(norms, 1.0))[:, None]
        total += np.trunc(shrunk).astype(np.int64).sum(axis=0)
    return total


def ours(data) -> np.ndarray:
    types = dict.fromkeys(NAMES, Unbounded())
    reader = Reader(as_source(data), persons=Persons("who", None, bytes(32)))
    reader.settle(types)
    return reader.total(types, limited, "sums")


def theirs(data) -> np.ndarray:
    if isinstance(data, str):
        data = pd.read_csv(data) if data.endswith("csv") else pd.read_parquet(data)
    sums = data.groupby("who")[NAMES].sum().to_numpy()
    norms = np.sqrt((sums**2).sum(axis=1))
    return (sums * np.minimum(1.0, LIMIT / 2**20 / norms)[:, None]).sum(axis=0)


def peak(form: str, path: str) -> str:
    """Run one call in a fresh process; return its most megabytes (Linux)."""
    command = [sys.executable, "-m", "benchmarks.persons", form, path]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()


def once(form: str, path: str) -> None:
    """Make a call, and print the most memory that it took."""
    ours(path or made(form))
    status = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in status if line.startswith("VmHWM"))
    print(f"{form}: {int(kilobytes) / 2**10:.0f} MB")


if __name__ == "__main__":
    once(*sys.argv[1:]) if sys.argv[1:] else main()
