"""One piece of work: an analysis at one budget, run and planned, in a process of its own."""

from __future__ import annotations

import os
import sys

import pandas as pd

from benchmarks.replication.analyses import Analysis, analyses, has_aer
from benchmarks.replication.predicted import WAYS, predicted
from benchmarks.replication.runs import cell


def chosen(words: list[str] | None, *, quiet: bool = False) -> list[Analysis]:
    """The analyses whose name holds one of the words; says on stderr what cannot be run here."""
    real, with_r = bool(os.environ.get("DPREG_DATA")), has_aer()
    if not real and not quiet:
        print("skipped: King County and bike, for want of DPREG_DATA", file=sys.stderr)
    if not with_r and not quiet:
        print("skipped: the tables of AER; `make replication` installs them", file=sys.stderr)
    return [
        analysis
        for analysis in analyses(real_data=real, with_r=with_r)
        if not words or any(word in analysis.name for word in words)
    ]


def run(asked: tuple[str, float, float, int, int]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Run one analysis at one budget, and plan it."""
    name, eps, delta, runs, peers = asked
    analysis = next(one for one in chosen([name], quiet=True) if one.name == name)
    plans = [predicted(analysis, eps, delta, way) for way in WAYS]
    return cell(analysis, eps, delta, runs, peers), pd.concat(plans)
