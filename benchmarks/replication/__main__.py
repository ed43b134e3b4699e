"""Run the replications and write a line for each coefficient and run; or gather such files."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pandas as pd
from tqdm import tqdm

from benchmarks.replication.predicted import beside
from benchmarks.replication.runs import DELTAS, EPS
from benchmarks.replication.tables import failures, goals, summary
from benchmarks.replication.work import chosen, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replication")
    parser.add_argument("--runs", type=int, default=50, help="private runs of each cell")
    parser.add_argument("--peers", type=int, default=10, help="runs of each peer")
    parser.add_argument("--eps", type=float, nargs="+", default=list(EPS))
    parser.add_argument("--delta", type=float, nargs="+", default=list(DELTAS))
    parser.add_argument("--only", nargs="+", help="analyses whose name holds one of these")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--out", help="a CSV file for the lines; plans go to PLAN-FILE beside it")
    parser.add_argument("--table", nargs="+", help="gather these files instead of running")
    parser.add_argument("--plans", nargs="+", help="with --table, the files of plans")
    told = parser.parse_args()
    if told.table:
        lines = pd.concat([pd.read_csv(file) for file in told.table])
        plans = pd.concat([pd.read_csv(file) for file in told.plans]) if told.plans else None
    else:
        lines, plans = _run_all(told)
    with pd.option_context(
        "display.width", 200, "display.max_rows", None, "display.max_columns", None
    ):
        print(summary(lines).to_string(), "\n")
        print(failures(lines).to_string(), "\n")
        print(goals(lines).to_string(), "\n")
        if plans is not None:
            print(beside(lines, plans).round(3).to_string())
    return 0


def _run_all(told: argparse.Namespace) -> tuple[pd.DataFrame, pd.DataFrame]:
    analyses_here = chosen(told.only)
    cells = [
        (analysis.name, eps, delta, told.runs, told.peers)
        for delta in told.delta
        for eps in told.eps
        for analysis in analyses_here
    ]
    parts = []
    with ProcessPoolExecutor(told.jobs, mp_context=get_context("spawn")) as pool:
        for part in tqdm(pool.map(run, cells), total=len(cells), desc="cells", disable=None):
            parts.append(part)
            if told.out:  # what is done so far, should the rest be interrupted
                folder, name = os.path.split(told.out)
                part[0].to_csv(told.out, mode="a", index=False, header=len(parts) == 1)
                beside_it = os.path.join(folder, f"plan-{name}")
                part[1].to_csv(beside_it, mode="a", index=False, header=len(parts) == 1)
    return pd.concat([part for part, _ in parts]), pd.concat([part for _, part in parts])


if __name__ == "__main__":
    sys.exit(main())
