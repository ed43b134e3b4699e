"""Rows from which on a weak term is found nine times in ten, by looks and by version 0.1's default.

    python -m benchmarks.weak [--rho 0 .5] [--delta 0 1e-6] [--runs 400] [--peer-sets 4]

Eight columns, five effects, the residual's standard deviation .2: the first cells of
`benchmarks.power`. The weak term is the fifth, with a coefficient of .03 in the box. eps is 1.

Looks: 400 releases of 100 drawn data sets at each number of rows, as `benchmarks.power` makes them.
Version 0.1's default is `method="pcls"` with its default radius and penalty, whose chance to choose
the term `dpreg.selection_study` gives exactly for drawn data; without delta, which it does not use.
Rows double until nine in ten are passed; between the last two numbers of rows the chance is taken
for a normal distribution function of their logarithm.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable
from math import exp, log

import numpy as np
import pandas as pd
from scipy.stats import norm

import dpreg
from benchmarks._power_cells import EFFECTS, Cell, draw
from benchmarks._power_runs import Setting, choosing_laws
from dpreg.choice import choose

WEAK = len(EFFECTS) - 1
POWER = 0.9
TIMES = 4
STEP = 1.5
_MOST = 0.995
"""A chance that was always or never seen counts as this, or as the rest."""


def by_looks(cell: Cell, runs: int) -> float:
    """Return the share of releases that report the weak term."""
    found, setting = [], Setting(cell.eps, cell.delta)
    for place in range(-(-runs // TIMES)):
        rng = np.random.default_rng([zlib.crc32(cell.name.encode()), place, 90])
        x, y = draw(cell, rng)
        laws = [choosing_laws(x, y, setting, rng) for _ in range(TIMES)]
        found += [WEAK in choose(own, cell.space).found for own in laws]
    return float(np.mean(found))


def by_default(cell: Cell, sets: int) -> float:
    """Return the chance that version 0.1's default chooses it, the mean over drawn data sets."""
    names = [f"x{unit}" for unit in range(1, cell.p + 1)]
    chances = []
    for place in range(sets):
        rng = np.random.default_rng([zlib.crc32(cell.name.encode()), place, 91])
        x, y = draw(cell, rng)
        frame = pd.DataFrame(x, columns=names).assign(y=y)
        study = dpreg.selection_study(
            "y ~ " + " + ".join(names),
            frame,
            schema=dict.fromkeys(frame.columns, (-1, 1)),
            eps=cell.eps,
            progress=False,
        )
        chances.append(float(study.frequencies.loc[names[WEAK]].iloc[0]))
    return float(np.mean(chances))


def rows_for(chance: Callable[[int], float], start: int) -> tuple[float, list[tuple[int, float]]]:
    """Return from how many rows on the chance is nine in ten, and what was seen on the way."""
    seen: list[tuple[int, float]] = []
    rows = start
    while not seen or seen[-1][1] < POWER:
        seen.append((rows, chance(rows)))
        rows = round(rows * STEP)
    if len(seen) == 1:
        return float(start), seen
    (low, before), (high, after) = seen[-2:]
    scores = norm.ppf(np.clip([before, after], 1 - _MOST, _MOST))
    share = (norm.ppf(POWER) - scores[0]) / (scores[1] - scores[0])
    return exp(log(low) + share * (log(high) - log(low))), seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rho", nargs="+", type=float, default=[0.0, 0.5])
    parser.add_argument("--delta", nargs="+", type=float, default=[0.0, 1e-6])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--peer-sets", type=int, default=4)
    arguments = parser.parse_args()
    for rho in arguments.rho:
        default, seen = rows_for(
            lambda n, rho=rho: by_default(Cell(n=n, rho=rho), arguments.peer_sets), 200_000
        )
        told = ", ".join(f"{n:,}: {share:.2f}" for n, share in seen)
        print(f"rho {rho:g}: 0.1's default {default:,.0f} rows ({told})", flush=True)
        for delta in arguments.delta:
            ours, seen = rows_for(
                lambda n, rho=rho, delta=delta: by_looks(
                    Cell(n=n, rho=rho, delta=delta), arguments.runs
                ),
                8_000,
            )
            told = ", ".join(f"{n:,}: {share:.2f}" for n, share in seen)
            print(
                f"rho {rho:g}, delta {delta:g}: looks {ours:,.0f} rows ({told}), "
                f"1/{default / ours:.0f} of it",
                flush=True,
            )


if __name__ == "__main__":
    main()
