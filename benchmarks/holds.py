"""Do printed 95% intervals hold the fit without privacy, on the declared columns?

    python -m benchmarks.holds [--half tuning|held-out] [--kind real|drawn]
        [--family linear|logit|poisson] [--cases A,B]
        [--eps 1] [--delta 1e-6] [--runs 20] [--engine calls|MODULE:FUNCTION] [--jobs 1]
        [--json FILE] [--gate]
    python -m benchmarks.holds --list

On real tables an interval should hold least squares or maximum likelihood on the same rows, cut at
the bounds that the schema declares; on drawn tables the true coefficient. Slopes only. A case is
the mean over its slopes and releases, averages are over cases. Widths are over the robust error of
the fit without privacy (by person where rows have one).

Cases are in two halves with different tables. Constants of dpreg may be chosen on the tuning half
alone; the other half is looked at once, when they are chosen.

The tables come from Debian's packages of R (`scripts/apt_packages.sh holds`), statsmodels and the
folder DPREG_DATA; scaled rows are kept in the user's cache, or in DPREG_CACHE. A case whose table
is not here is left out, and named. Every release has a seed: never private.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tqdm import tqdm

from benchmarks import _holds_drawn, _holds_real, _holds_unseen
from benchmarks._holds_case import FAMILIES, HALVES, Case, scaled
from benchmarks._holds_fit import engine
from benchmarks._holds_score import Score, average_lines, averages, lines, missed, score
from benchmarks._holds_tables import SOURCES
from dpreg.errors import DatasetError

Job = tuple[str, str, int, float, float]


def all_cases() -> dict[str, Case]:
    """Return every case by its name."""
    found = [*_holds_real.cases(), *_holds_unseen.cases(), *_holds_drawn.cases()]
    named = {case.name: case for case in found}
    assert len(named) == len(found), "two cases have one name"
    return named


def run(job: Job) -> Score | str:
    """Score one case at one budget, or say why its table is not here."""
    name, how, runs, eps, delta = job
    case, fit = all_cases()[name], engine(how)
    try:
        case.rows(0)  # a table that is not here shows, whatever the cache has
        first = scaled(case)
    except (DatasetError, FileNotFoundError, subprocess.CalledProcessError) as error:
        return f"{name}: {type(error).__name__} ({case.table})"
    done = []
    for at in range(runs):
        rows = scaled(case, at) if case.drawn and at else first
        done.append((rows, fit(case, rows, at, eps, delta)))
    return score(case, eps, delta, done)


def scores(jobs: Sequence[Job], processes: int) -> Iterator[Score | str]:
    """Run the jobs, with a bar."""
    bar = tqdm(total=len(jobs), desc="cases", disable=None)
    if processes == 1:
        for job in jobs:
            bar.set_postfix_str(job[0])
            yield run(job)
            bar.update()
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for found in pool.map(run, jobs):
            yield found
            bar.update()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.holds")
    parser.add_argument("--half", choices=HALVES, help="default: both")
    parser.add_argument("--kind", choices=("real", "drawn"), help="default: both")
    parser.add_argument("--family", choices=tuple(FAMILIES), help="default: all")
    parser.add_argument("--cases", help="names, with commas; default: all")
    parser.add_argument("--eps", type=float, nargs="+", default=[1.0])
    parser.add_argument("--delta", type=float, nargs="+", default=[1e-6])
    parser.add_argument("--runs", type=int, default=20, help="releases of each case")
    parser.add_argument("--engine", default="calls", help="calls, or module:function")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    parser.add_argument("--list", action="store_true", help="list the cases and their tables")
    parser.add_argument("--gate", action="store_true", help="fail where a goal is missed")
    told = parser.parse_args()
    cases = all_cases()
    wanted = told.cases.split(",") if told.cases else list(cases)
    if unknown := [name for name in wanted if name not in cases]:
        parser.error(f"no such case: {', '.join(unknown)}; --list names them")
    chosen = [
        cases[name]
        for name in wanted
        if told.half in (None, cases[name].half)
        and told.family in (None, cases[name].family)
        and (told.kind is None or cases[name].drawn == (told.kind == "drawn"))
    ]
    if told.list:
        print("\n".join(_listed(chosen)))
        return 0
    kept, failed = [], False
    for delta in told.delta:
        for eps in told.eps:
            jobs = [(case.name, told.engine, told.runs, eps, delta) for case in chosen]
            found = list(scores(jobs, told.jobs))
            done = [one for one in found if isinstance(one, Score)]
            print(f"\neps {eps:g}, delta {delta:g}, {told.engine}, {told.runs} releases")
            print("\n".join(lines(done)), "\n")
            whole = averages(done)
            print("\n".join(average_lines(whole)), flush=True)
            for goal in (short := missed(whole, eps, delta)):
                print("missed:", goal, flush=True)
            failed = failed or bool(short)
            if absent := [one for one in found if isinstance(one, str)]:
                print("left out:", "; ".join(absent))
            kept.append(
                {"eps": eps, "delta": delta, "engine": told.engine, "averages": whole,
                 "cases": [one.to_dict() for one in done], "left_out": absent}
            )  # fmt: skip
    if told.json:
        told.json.write_text(json.dumps(kept, indent=1))
    return int(told.gate and failed)


def _listed(cases: Sequence[Case]) -> Iterator[str]:
    """Return a line for each case."""
    for case in cases:
        where = "drawn" if case.drawn else SOURCES[case.table].where
        table = "" if case.drawn else f" {case.table}"
        yield f"{case.half:9s} {case.name:16s} {case.family:8s} {where}{table}: {case.formula}"


if __name__ == "__main__":
    sys.exit(main())
