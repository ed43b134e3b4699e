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
table, permuted copies of its first ones. No intervals
are checked there. `fit="fresh"` leaves a choice --share of the budget.

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
from benchmarks._power_runs import choosing_laws
from benchmarks._power_table import audit, by_rows, line, markdown, picture
from benchmarks._staged_rows import Rows, Run, Setting, again, staged
from benchmarks.peers.choices import choices
from dpreg.choice import Choice, choose
from dpreg.staged.coefficients import coefficients
from dpreg.staged.plan import fresh_share
from dpreg.staged.reference import quantiles

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

    This share of the budget chooses: "staged", and "bic" on the rows themselves.
    """
    start = time.perf_counter()
    out: dict[str, Counter[str]] = {"bic": Counter(), "staged": Counter()}
    laws, setting = [], Setting(cell.eps, cell.delta, whole=share)
    for rng in rngs:
        rows = Rows(*draw(cell, rng))
        own = counted(cell, bic(cell, rows.boxed))
        add_set(out["bic"], [own] * times)
        laws += [choosing_laws(rows, setting, rng) for _ in range(times)]
    found = [choose(own, cell.space) for own in laws]
    for at in range(0, len(found), times):
        some = found[at : at + times]
        add_set(out["staged"], [counted(cell, one.found, one.groups) for one in some])
    out["staged"]["seconds"] = time.perf_counter() - start  # type: ignore[assignment]
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
    add_set(out["bic"], [counted(cell, bic(cell, Rows(x, y).boxed))])
    for fit in fits:
        out[fit] = Counter()
        add_set(out[fit], [fitted(cell, x, y, fit, rng, later)])
    return out


def chosen(
    cell: Cell,
    x: np.ndarray,
    y: np.ndarray,
    whole: float,
    rng: np.random.Generator,
    *,
    fits: bool = False,
) -> tuple[Run, Choice]:
    """Look and choose; `fits` as where the same looks give the coefficients."""
    setting = Setting(cell.eps, cell.delta, whole=whole)
    looks = staged(x, y, setting, len(y), rng, choosing=not fits)
    return looks, choose(looks.for_choice(), cell.space)


def counted(
    cell: Cell, found: Iterable[int], groups: Sequence[tuple[int, ...]] = ()
) -> Counter[str]:
    """Count true and useless terms, and groups."""
    real = {int(u) for u in np.flatnonzero(effects(cell))}
    found, named = set(found), {u for group in groups for u in group}
    tail = set(range(cell.p - 3, cell.p)) if cell.design in ("copies", "sums") else set()
    return Counter(
        found=len(found & real),
        useless=len(found - real),
        groups=len(groups),
        wrong=sum(not real.intersection(group) for group in groups),
        real=len(real),
        copies=len(tail & found),
        copies_grouped=len(tail & named),
    )


def fitted(
    cell: Cell,
    x: np.ndarray,
    y: np.ndarray,
    fit: str,
    rng: np.random.Generator,
    later: float | None = None,
) -> Counter[str]:
    """Choose and fit in one of the ways; count what the intervals of found terms cover."""
    later = float(fresh_share(Fraction(cell.delta))) if later is None else later
    looks, choice = chosen(
        cell, x, y, 1.0 - later if fit == "fresh" else 1.0, rng, fits=fit == "same"
    )
    counts = counted(cell, choice.found, choice.groups)
    if cell.design in REAL:  # no population is known
        return counts
    gram, beta = population(cell)
    truth = np.append(0.0, beta)
    places = cell.space.unit_columns
    at = [0, *(c for u in choice.model for c in places[u])]
    target = truth[at]
    assert looks.law is not None
    if fit == "same":
        part, level = coefficients(looks.law).of(at), 0.05 / (len(truth) - 1)
    else:
        target = np.linalg.solve(gram[np.ix_(at, at)], gram[at] @ truth)
        setting, level = Setting(cell.eps, cell.delta, whole=later), 0.05
        law = again(x, y, at[1:], setting, looks, len(y), rng) if at[1:] else looks.law
        part = coefficients(law, None if at[1:] else at)
    estimates, errors = part.params, part.errors
    half = quantiles(np.diag(part.sampling), np.diag(part.privacy), part.degrees, level)
    ends = np.column_stack([estimates - half, estimates + half])
    gap = -truth.copy()
    gap[at] += estimates
    moments = gram[1:, 1:] - np.outer(gram[0, 1:], gram[0, 1:])
    spread = y.var() if not beta.any() else float(beta @ moments @ beta) + np.var(y - x @ beta)
    counts.update(fitted=1, loss=float(gap @ gram @ gap) / spread)  # type: ignore[arg-type]
    wanted = {c: u for u in choice.found for c in places[u]}
    for place, column in enumerate(at):
        if column not in wanted:
            continue
        unit = wanted[column]
        low, high = ends[place]
        name = "strong" if abs(effects(cell)[unit]) >= STRONG and len(places[unit]) == 1 else "weak"
        width = log(min(high - low, 1e3) / (2 * 1.96 * errors[place]))
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
        marks = arguments.fits or (["noisy moments: BIC x1"] if arguments.peers else ["staged"])
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
