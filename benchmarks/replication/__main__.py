"""Run the replications and write a line for each coefficient and run; or gather such files."""

from __future__ import annotations

import argparse
import os
import sys

import pandas as pd
from tqdm import tqdm

from benchmarks.replication.analyses import analyses, has_aer
from benchmarks.replication.runs import DELTAS, EPS, cell
from benchmarks.replication.tables import failures, summary


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replication")
    parser.add_argument("--runs", type=int, default=50, help="private runs of each cell")
    parser.add_argument("--peers", type=int, default=10, help="runs of each peer")
    parser.add_argument("--eps", type=float, nargs="+", default=list(EPS))
    parser.add_argument("--delta", type=float, nargs="+", default=list(DELTAS))
    parser.add_argument("--only", nargs="+", help="analyses whose name holds one of these")
    parser.add_argument("--out", help="a CSV file for the lines")
    parser.add_argument("--table", nargs="+", help="gather these files instead of running")
    told = parser.parse_args()
    if told.table:
        lines = pd.concat([pd.read_csv(file) for file in told.table])
    else:
        chosen = [
            analysis
            for analysis in analyses(real_data=bool(os.environ.get("DPREG_DATA")), with_r=has_aer())
            if not told.only or any(word in analysis.name for word in told.only)
        ]
        cells = [
            (analysis, eps, delta)
            for analysis in chosen
            for eps in told.eps
            for delta in told.delta
        ]
        parts = [
            cell(analysis, eps, delta, told.runs, told.peers)
            for analysis, eps, delta in tqdm(cells, desc="cells", disable=None)
        ]
        lines = pd.concat(parts)
        if told.out:
            lines.to_csv(told.out, index=False)
    with pd.option_context("display.width", 200, "display.max_rows", None):
        print(summary(lines).to_string())
        print()
        print(failures(lines).to_string())
    return 0


if __name__ == "__main__":
    sys.exit(main())
