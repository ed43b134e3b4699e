"""What `fit="fresh"` should keep of the budget: found terms, and intervals of their coefficients.

    python -m benchmarks.fresh [--half tuning|held-out] [--share .2 .3] [--eps 1] [--delta 1e-6]
        [--runs 6] [--cases A,B]

Each linear table of `benchmarks.holds` with three columns or more and no persons, and three useless
columns beside them: permuted copies of its first ones. A run looks, chooses among all columns, each
a unit, and looks at the chosen ones with what was kept. Target: least squares of the rows on the
chosen columns, as declared. Found: over the terms that BIC finds on the rows themselves; useless:
permuted columns found. A case is the mean over its runs and slopes, a line the mean over cases;
widths, over the robust error of the target, and errors, over the same, are medians of cases.

Shares may be chosen on the tuning half alone. Noise comes from a seed: never private.
"""

from __future__ import annotations

import argparse
import zlib
from dataclasses import dataclass

import numpy as np

from benchmarks._holds_case import HALVES, Case, scaled
from benchmarks._holds_plain import plain_fit
from benchmarks._power_cells import PERMUTED, bic_units
from benchmarks._power_runs import Setting, fitted, looked
from benchmarks.holds import all_cases
from dpreg.choice import choose
from dpreg.looks.loop import laws_for_choice
from dpreg.results.inference import quantiles
from dpreg.selection.space import Space

FEWEST = 3
"""Columns of a table."""
HEADS = ["unmarked", "printed", "width", "absent", "marked", "error", "found", "useless"]


@dataclass(frozen=True)
class Run:
    """What one release says of the slopes of its model."""

    holds: np.ndarray
    widths: np.ndarray
    marked: np.ndarray
    errors: np.ndarray
    found: float
    useless: float


def tables(half: str) -> list[Case]:
    """Return the cases of a half."""
    return [
        case
        for case in all_cases().values()
        if case.half == half and case.family == "linear" and case.person is None and not case.drawn
    ]


def run(case: Case, at: int, setting: Setting) -> Run | None:
    """Release once; None for a table of few columns."""
    made = scaled(case)
    if made.x.shape[1] < FEWEST:
        return None
    rng = np.random.default_rng([zlib.crc32(case.name.encode()), at])
    x = np.hstack([made.x, rng.permuted(made.x[:, :PERMUTED], axis=0)])
    p = x.shape[1]
    space = Space(tuple(map(str, range(p))), tuple((j + 1,) for j in range(p)), keep_columns=(0,))
    rows, seen = looked(x, made.y, setting, rng)
    choice = choose(laws_for_choice(seen), space)
    z = np.column_stack([np.ones(len(x)), x, made.y])
    hoped = bic_units(z.T @ z, space)
    found = len(hoped & set(choice.found)) / max(len(hoped), 1)
    useless = sum(u >= p - PERMUTED for u in choice.found)
    at_columns = [0, *(u + 1 for u in choice.model)]
    if len(at_columns) == 1:
        none = np.zeros(0)
        return Run(none, none, none, none, found, useless)
    part = fitted(rows, seen, at_columns, "fresh")
    sampling, whole = np.diag(part.sampling), np.diag(part.covariance)
    noise = np.maximum(whole - sampling, 0.0)
    half = quantiles(sampling, noise, rows.plan.degrees, 0.05)
    plain = plain_fit("linear", x[:, list(choice.model)], made.y, None)
    off, error = np.abs(part.params - plain.params), np.sqrt(np.diag(plain.hc))
    marked = np.array([str(place) in part.marks for place in at_columns])
    return Run(
        (off <= half)[1:], (half / 1.96 / error)[1:], marked[1:], (off / error)[1:], found, useless
    )


def summed(runs: list[Run]) -> list[float]:
    """Return the columns of `HEADS` for one case."""
    holds, widths, marked, errors = (
        np.concatenate([getattr(one, name) for one in runs])
        for name in ("holds", "widths", "marked", "errors")
    )
    there = np.isfinite(widths)

    def mean(values: np.ndarray) -> float:
        return float(values.mean()) if len(values) else np.nan

    def middle(values: np.ndarray) -> float:
        return float(np.median(values)) if len(values) else np.nan

    return [
        mean(holds[there & ~marked.astype(bool)]),
        mean(holds[there]),
        middle(widths[there]),
        mean(~there),
        mean(marked[there]),
        middle(errors),
        float(np.mean([one.found for one in runs])),
        float(np.mean([one.useless for one in runs])),
    ]


def line(name: str, values: np.ndarray) -> str:
    """Return a line of the table."""
    return f"{name:18s}" + "".join(f"{value:9.3f}" for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fresh", description=__doc__)
    parser.add_argument("--half", choices=HALVES, default="tuning")
    parser.add_argument("--share", type=float, nargs="+", default=[0.2])
    parser.add_argument("--eps", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--cases", help="names, with commas")
    told = parser.parse_args()
    cases = [c for c in tables(told.half) if told.cases is None or c.name in told.cases.split(",")]
    print(f"{'':18s}" + "".join(f"{head:>9s}" for head in HEADS))
    for share in told.share:
        setting = Setting(told.eps, told.delta, whole=1 - share)
        table = []
        for case in cases:
            runs = [run(case, at, setting) for at in range(told.runs)]
            done = [one for one in runs if one is not None]
            if done:
                table.append(summed(done))
                if told.cases or len(told.share) == 1:
                    print(line(case.name, np.array(table[-1])), flush=True)
        whole = np.array(table)
        means = np.nanmean(whole, axis=0)
        for head in ("width", "error"):
            means[HEADS.index(head)] = np.nanmedian(whole[:, HEADS.index(head)])
        print(line(f"share {share:g}, {len(table)} tables", means), flush=True)


if __name__ == "__main__":
    main()
