"""What a choice by looks finds: true terms, useless ones, groups, and coverage after it.

    python -m benchmarks.power --out FILE.csv [--grid main hard] [--runs N] [--only TEXT]
                               [--peers] [--fits same fresh] [--most ROWS] [--share S]
    python -m benchmarks.power --out FILE.csv --table [--fits ...] [--by-rows] --picture FILE.png

Each cell is a design, a number of rows and a budget, the telling ones first. A line of the file
holds the sums over the runs of one cell and method. A command that is stopped goes on where it
was: what the file has counts towards --runs. Beyond --most rows a cell gets a tenth of the runs.

Counted per run: terms with an effect that are found; useless ones; groups ("one of"), and those of
them without any effect, "wrong"; what the choice by BIC on the rows themselves finds. In real data
(--grid real) the terms "with an effect" are those of BIC; three useless columns are added to each
table, permuted copies of its first ones, which "copies" counts. No intervals are checked there.
`fit="fresh"` leaves a choice --share of the budget.

With --fits, how often 95% intervals of found terms cover their coefficient in the population: for
"fresh" in its projection on the chosen model, for "same" beside all terms; and by how much the
R-squared of the private coefficients falls short of that of the true ones. Peers are those of
`benchmarks.peers.choices`.

With 10,000 rows and more four releases are made from each drawn data set, and bounds count data
sets (`benchmarks._power_runs` says what else makes it quick). This is a benchmark of power, not of
privacy: rows are floats and noise comes from a seed.
"""

from __future__ import annotations

import argparse
import csv
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import log
from pathlib import Path

import numpy as np

from benchmarks._power_cells import (
    GRIDS,
    REAL,
    STRONG,
    Cell,
    all_cells,
    bic,
    draw,
    effects,
    population,
)
from benchmarks._power_runs import Setting, called, choosing_laws, fitted, looked
from benchmarks._power_table import audit, by_rows, line, markdown, picture
from benchmarks.peers.choices import choices
from dpreg.choice import choose
from dpreg.looks.loop import laws_for_choice
from dpreg.looks.plan import fresh_share
from dpreg.results.inference import quantiles

FITS = ("same", "fresh")
BATCH, FEW = 100, 20
"""Data sets between lines of the file; fewer where terms are fitted or peers run."""
OFTEN, TIMES = 10_000, 4
"""From so many rows on, releases from each drawn data set."""
SUMS = (
    "sets", "found", "useless", "useless_squares", "groups", "wrong", "real", "copies",
    "copies_grouped", "strong", "strong_in", "strong_log_width", "weak", "weak_in",
    "weak_log_width", "loss", "fitted", "seconds",
)  # fmt: skip


def released_often(
    cell: Cell, rngs: Sequence[np.random.Generator], times: int, share: float = 1.0
) -> dict[str, Counter[str]]:
    """Draw a data set from each generator, release each `times`, and count what is chosen.

    This share of the budget chooses: "adaptive", and "bic" on the rows themselves.
    """
    start = time.perf_counter()
    out: dict[str, Counter[str]] = {"bic": Counter(), "adaptive": Counter()}
    laws, setting = [], Setting(cell.eps, cell.delta, whole=share)
    for rng in rngs:
        x, y = draw(cell, rng)
        own = counted(cell, bic(cell, boxed(x, y)))
        add_set(out["bic"], [own] * times)
        if cell.each or cell.neighbors != "replace-one":
            seeds = rng.integers(0, 2**31, times).tolist()
            add_set(out["adaptive"], [counted(cell, *called(cell, x, y, s)) for s in seeds])
            continue
        laws += [choosing_laws(x, y, setting, rng) for _ in range(times)]
    found = [choose(own, cell.space) for own in laws]
    for at in range(0, len(found), times):
        some = found[at : at + times]
        add_set(out["adaptive"], [counted(cell, one.found, one.groups) for one in some])
    out["adaptive"]["seconds"] = time.perf_counter() - start  # type: ignore[assignment]
    return out


def add_set(sums: Counter[str], runs: Sequence[Counter[str]]) -> None:
    """Add the runs of one data set; squares are those of its sum of useless terms."""
    for one in runs:
        sums.update(one)
    sums["useless_squares"] += sum(one["useless"] for one in runs) ** 2
    sums["sets"] += 1


def run(
    cell: Cell, rng: np.random.Generator, fits: Sequence[str], later: float | None = None
) -> dict[str, Counter[str]]:
    """Draw rows, release, choose, fit; return counts of each way."""
    x, y = draw(cell, rng)
    out: dict[str, Counter[str]] = {"bic": Counter()}
    add_set(out["bic"], [counted(cell, bic(cell, boxed(x, y)))])
    for fit in fits:
        out[fit] = Counter()
        add_set(out[fit], [intervals(cell, x, y, fit, rng, later)])
    return out


def boxed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the moments of (1, x, y)."""
    z = np.column_stack([np.ones(len(x)), x, y])
    return np.asarray(z.T @ z)


def counted(
    cell: Cell, found: Iterable[int], groups: Sequence[tuple[int, ...]] = ()
) -> Counter[str]:
    """Count true and useless terms, and groups."""
    real = {int(u) for u in np.flatnonzero(effects(cell))}
    found, named = set(found), {u for group in groups for u in group}
    last = cell.design in ("copies", "sums", *REAL)
    tail = set(range(cell.p - 3, cell.p)) if last else set()
    return Counter(
        found=len(found & real),
        useless=len(found - real),
        groups=len(groups),
        wrong=sum(not real.intersection(group) for group in groups),
        real=len(real),
        copies=len(tail & found),
        copies_grouped=len(tail & named),
    )


def intervals(
    cell: Cell,
    x: np.ndarray,
    y: np.ndarray,
    fit: str,
    rng: np.random.Generator,
    later: float | None = None,
) -> Counter[str]:
    """Choose and fit in one of the ways; count what the intervals of found terms cover.

    Coefficients without an interval count for none.
    """
    later = float(fresh_share(Fraction(cell.delta))) if later is None else later
    whole = 1.0 - later if fit == "fresh" else 1.0
    rows, seen = looked(x, y, Setting(cell.eps, cell.delta, whole=whole), rng)
    choice = choose(laws_for_choice(seen), cell.space)
    counts = counted(cell, choice.found, choice.groups)
    if cell.design in REAL:  # no population is known
        return counts
    gram, beta = population(cell)
    truth = np.append(0.0, beta)
    places = cell.space.unit_columns
    at = [0, *(c for u in choice.model for c in places[u])]
    target, level = truth[at], 0.05 / (len(truth) - 1)
    if fit != "same":
        target, level = np.linalg.solve(gram[np.ix_(at, at)], gram[at] @ truth), 0.05
    part = fitted(rows, seen, at, fit)
    sampling, whole_variance = np.diag(part.sampling), np.diag(part.covariance)
    noise = np.maximum(whole_variance - sampling, 0.0)
    half = quantiles(sampling, noise, rows.plan.degrees, level)
    ends = np.column_stack([part.params - half, part.params + half])
    gap = -truth.copy()
    gap[at] += part.params
    moments = gram[1:, 1:] - np.outer(gram[0, 1:], gram[0, 1:])
    spread = y.var() if not beta.any() else float(beta @ moments @ beta) + np.var(y - x @ beta)
    counts.update(fitted=1, loss=float(gap @ gram @ gap) / spread)  # type: ignore[arg-type]
    wanted = {c: u for u in choice.found for c in places[u]}
    for place, column in enumerate(at):
        if column not in wanted or np.isnan(half[place]):
            continue
        unit = wanted[column]
        low, high = ends[place]
        name = "strong" if abs(effects(cell)[unit]) >= STRONG and len(places[unit]) == 1 else "weak"
        width = log(min(high - low, 1e3) / (2 * 1.96 * np.sqrt(whole_variance[place])))
        counts.update({name: 1, f"{name}_in": int(low <= target[place] <= high)})
        counts.update({f"{name}_log_width": width})  # type: ignore[dict-item]
    return counts


def read(path: Path) -> dict[tuple[str, str], Counter[str]]:
    """Return the sums so far, by cell and method."""
    sums: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    if path.exists():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                own = sums[row["cell"], row["method"]]
                own.update({name: float(row[name]) for name in ("runs", *SUMS)})  # type: ignore[dict-item]
    return sums


def write(path: Path, cell: Cell, runs: int, outcomes: dict[str, Counter[str]]) -> None:
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, ["cell", "method", "runs", *SUMS], restval=0)
        if new:
            writer.writeheader()
        for method, counts in outcomes.items():
            rounded = {name: float(f"{counts[name]:.6g}") for name in SUMS}
            writer.writerow({"cell": cell.name, "method": method, "runs": runs, **rounded})


def more(
    cell: Cell,
    places: range,
    times: int,
    fits: Sequence[str],
    *,
    peers: bool,
    share: float,
    later: float | None = None,
) -> dict[str, Counter[str]]:
    """Return the sums of the data sets of these numbers."""
    kind = len(fits) + 10 * peers
    seed = zlib.crc32(cell.name.encode())
    rngs = [np.random.default_rng([seed, place, kind]) for place in places]
    if not fits and not peers:
        return released_often(cell, rngs, times, share)
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for rng in rngs:
        if peers:
            found = choices(*draw(cell, rng), cell, rng)
            for name, model in found.items():
                add_set(sums[name], [counted(cell, model)])
        else:
            for method, counts in run(cell, rng, fits, later).items():
                sums[method].update(counts)
    return sums


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="csv to go on with")
    parser.add_argument("--grid", nargs="+", choices=tuple(GRIDS), default=["main", "hard"])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--only", default="", help="cells whose name holds this")
    parser.add_argument("--most", type=int, default=100_000, help="rows beyond which runs are few")
    parser.add_argument("--fits", nargs="+", choices=FITS, default=[])
    parser.add_argument("--share", type=float, default=1.0, help="of the budget that chooses")
    parser.add_argument("--later", type=float, help='what fit="fresh" keeps; default: as a call')
    parser.add_argument("--peers", action="store_true", help="peers in place of the looks")
    parser.add_argument("--table", action="store_true", help="show the file; run nothing")
    parser.add_argument("--by-rows", action="store_true", help="a table with a column each")
    parser.add_argument("--picture", type=Path, help="draw the file; run nothing")
    arguments = parser.parse_args()
    done = read(arguments.out)
    if arguments.table or arguments.picture:
        cells = [c for c in all_cells(arguments.grid) if arguments.only in c.name]
        if arguments.table:
            fits = arguments.fits
            shown = by_rows if arguments.by_rows else markdown
            print(audit(done, cells, fits) if fits else shown(done, cells))
        if arguments.picture:
            picture(done, cells, arguments.picture)
        return
    for cell in all_cells(arguments.grid):
        if arguments.only not in cell.name:
            continue
        marks = arguments.fits or (["noisy moments: BIC x1"] if arguments.peers else ["adaptive"])
        wanted = arguments.runs if cell.n <= arguments.most else -(-arguments.runs // 10)
        times = 1 if arguments.fits or arguments.peers or cell.n < OFTEN else TIMES
        have = min(int(done[cell.name, mark]["sets"]) for mark in marks)
        while have * times < wanted:
            batch = FEW if arguments.fits or arguments.peers else BATCH
            size = min(batch, -(-wanted // times) - have)
            places = range(have, have + size)
            outcomes = more(
                cell,
                places,
                times,
                arguments.fits,
                peers=arguments.peers,
                share=arguments.share,
                later=arguments.later,
            )
            write(arguments.out, cell, size * times, outcomes)
            for method, counts in outcomes.items():
                done[cell.name, method].update({"runs": size * times})
                done[cell.name, method].update(counts)
            have += size
        for (name, method), own in done.items():
            if name == cell.name and own["runs"]:
                print(
                    f"{name:44s}",
                    " | ".join(f"{k} {v}" for k, v in line(method, own).items()),
                    flush=True,
                )


if __name__ == "__main__":
    main()
