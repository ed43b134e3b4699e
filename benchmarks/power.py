"""What the staged release's choice finds: true terms, useless ones, and coverage after it.

    python -m benchmarks.power [--runs N] [--only TEXT] [--fit same|fresh|split] [--out FILE]

Each cell is a design, a sample size and a budget. Reported per run: terms with an effect that are
reported, and useless ones; what the non-private choice by BIC finds beside them; ambiguous terms,
counted as neither; and an upper 99% bound of the useless ones. With --fit, how often the 95%
intervals of reported terms, by that way of fitting, cover their coefficient in the population's
projection on the chosen model, for strong and weak terms; for "same" beside intervals that take the
model for given.

This is a benchmark of power, not of privacy: rows are floats and noise comes from a seed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path

import numpy as np

from benchmarks._staged_rows import Setting, again, staged
from dpreg.selection.space import Space
from dpreg.staged.choice.choose import choose, conditional_fit
from dpreg.staged.coefficients import coefficients
from dpreg.staged.reference import quantiles

SIGMA = 0.2
SPREAD = 0.25
"""Standard deviation of a column, in its box [-1, 1]."""
EFFECTS = (0.2, -0.15, 0.1, 0.06, 0.03)
STRONG = 0.1


@dataclass(frozen=True)
class Cell:
    """One setting of the grid.

    design: "equal" (equicorrelated columns, five effects), "chain" (each column correlated with
    the next, half of them with an effect), "copies" (three noisy copies of strong columns at the
    end), "sums" (three noisy sums of two columns with an effect at the end).
    """

    p: int = 8
    n: int = 10_000
    eps: float = 1.0
    delta: float = 0.0
    rho: float = 0.5
    design: str = "equal"

    @property
    def name(self) -> str:
        budget = f"eps{self.eps:g} " + ("1e-6" if self.delta else "pure")
        return f"{self.design} p{self.p} rho{self.rho:g} n{self.n:g} {budget}"


def cells() -> Iterator[Cell]:
    """Yield the grid."""
    budgets = [(e, d) for e in (0.5, 1.0, 2.0, 4.0) for d in (0.0, 1e-6)]
    for p in (8, 20, 50):
        for rho in (0.0, 0.5, 0.9):
            for n in (1_000, 10_000, 100_000):
                for eps, delta in budgets:
                    yield Cell(p, n, eps, delta, rho)
    for design, rho in (("chain", 0.9), ("chain", 0.98), ("copies", 0.3), ("sums", 0.3)):
        for p in (8, 20):
            for n in (1_000, 3_000, 10_000, 30_000):
                for delta in (0.0, 1e-6):
                    yield Cell(p, n, 1.0, delta, rho, design)


def population(cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns' covariance and their coefficients."""
    p = cell.p
    beta, index = np.zeros(p), np.arange(p)
    if cell.design == "chain":
        beta[np.linspace(0, p - 1, p // 2).astype(int)] = 0.1
        return SPREAD**2 * cell.rho ** np.abs(index[:, None] - index), beta
    covariance = np.full((p, p), cell.rho) + (1 - cell.rho) * np.eye(p)
    beta[: len(EFFECTS)] = EFFECTS
    if cell.design != "equal":
        beta[:3] = 0.2
        beta[3:] = 0.0
        mixed = np.eye(p)
        for place in range(3):
            mixed[p - 3 + place] = 0.0
            mixed[p - 3 + place, place] = 1.0
            if cell.design == "sums":
                mixed[p - 3 + place, (place + 1) % 3] = 1.0
                mixed[p - 3 + place] *= 0.6
        covariance = mixed @ covariance @ mixed.T
        covariance[-3:, -3:] += (0.2 if cell.design == "sums" else 0.1) ** 2 * np.eye(3)
    return SPREAD**2 * covariance, beta


@dataclass(frozen=True)
class Outcome:
    """One run's counts, and whether each interval of a reported term covers."""

    found: int
    useless: int
    ambiguous: int
    bic: int
    certified: bool
    resolved: float
    covered: list[tuple[bool, bool, bool, float]]


def run(cell: Cell, rng: np.random.Generator, fit: str | None) -> Outcome:
    """Draw rows, release, choose; return what came of it."""
    covariance, beta = population(cell)
    x = rng.standard_normal((cell.n, cell.p)) @ np.linalg.cholesky(covariance).T
    np.clip(x, -1, 1, out=x)
    y = np.clip(x @ beta + SIGMA * rng.standard_normal(cell.n), -1, 1)
    halves = slice(None, None, 2), slice(1, None, 2)
    first, second = halves if fit == "split" else (slice(None), slice(None))
    setting = Setting(cell.eps, cell.delta, whole=0.6 if fit == "fresh" else 1.0)
    looks = staged(x[first], y[first], setting, len(y[first]), rng, choosing=True)
    law = looks.choosing()
    assert looks.law is not None
    space = Space(
        units=tuple(f"x{i}" for i in range(1, cell.p + 1)),
        unit_columns=tuple((i,) for i in range(1, cell.p + 1)),
        keep_columns=(0,),
    )
    choice, problem, verdict = choose(law, space, again=False)
    real = {int(u) for u in np.flatnonzero(beta)}
    covered = []
    if fit and verdict.reported:
        at = sorted(verdict.model)
        target = np.linalg.solve(covariance[np.ix_(at, at)], covariance[at] @ beta)
        if fit == "same":
            given = conditional_fit(looks.law, problem, verdict)
            ends, plain = given.intervals()[1:], given.plain
            estimates, errors = plain.estimates[1:], plain.se[1:]
        else:
            setting = Setting(cell.eps, cell.delta, whole=0.4 if fit == "fresh" else 1.0)
            columns = [u + 1 for u in at]
            other = again(x[second], y[second], columns, setting, looks, len(y[second]), rng)
            found = coefficients(other)
            estimates, errors = found.params[1:], found.errors[1:]
            parts = np.diag(found.sampling)[1:], np.diag(found.privacy)[1:]
            half = quantiles(*parts, found.degrees, 0.05)
            ends = np.column_stack([estimates - half, estimates + half])
        for place, unit in enumerate(at):
            if unit in verdict.reported:
                truth, (low, high) = target[place], ends[place]
                se = float(errors[place])
                plainly = abs(estimates[place] - truth) <= 1.96 * se
                width = (high - low) / (2 * 1.96 * se)
                strong = abs(beta[unit]) >= STRONG
                covered.append((bool(strong), bool(low <= truth <= high), bool(plainly), width))
    return Outcome(
        found=len(verdict.reported & real),
        useless=len(verdict.reported - real),
        ambiguous=len(verdict.alternatives),
        bic=len(_bic(x, y) & real),
        certified=choice.certified,
        resolved=choice.resolved / choice.directions,
        covered=covered,
    )


def _bic(x: np.ndarray, y: np.ndarray) -> set[int]:
    """Return what backward elimination by BIC keeps, on the rows themselves."""
    n = len(y)
    z = np.column_stack([x - x.mean(axis=0), y - y.mean()])
    moments = z.T @ z
    kept = list(range(x.shape[1]))
    while kept:
        gram = moments[np.ix_(kept, kept)]
        inverse = np.linalg.inv(gram)
        slopes = inverse @ moments[kept, -1]
        left = moments[-1, -1] - slopes @ moments[kept, -1]
        losses = n * np.log1p(slopes**2 / np.diag(inverse) / left) - np.log(n)
        worst = int(np.argmin(losses))
        if losses[worst] > 0:
            break
        kept.pop(worst)
    return set(kept)


def summarise(cell: Cell, outcomes: list[Outcome], seconds: float) -> dict[str, object]:
    """Return a cell's means, its upper bound of useless terms, and coverage."""
    useless = np.array([o.useless for o in outcomes], dtype=float)
    # Poisson-like counts: the variance is taken as at least the mean with one more find.
    spread = sqrt(max(useless.var(), (useless.sum() + 1) / len(useless)) / len(useless))
    summary: dict[str, object] = asdict(cell) | {
        "runs": len(outcomes),
        "found": float(np.mean([o.found for o in outcomes])),
        "bic": float(np.mean([o.bic for o in outcomes])),
        "useless": float(useless.mean()),
        "useless_upper": float(useless.mean() + 2.33 * spread),
        "ambiguous": float(np.mean([o.ambiguous for o in outcomes])),
        "certified": float(np.mean([o.certified for o in outcomes])),
        "resolved": float(np.mean([o.resolved for o in outcomes])),
        "seconds": seconds / len(outcomes),
    }
    covered = [c for o in outcomes for c in o.covered]
    for name, wanted in (("strong", True), ("weak", False)):
        own = [c for c in covered if c[0] is wanted]
        if own:
            summary[name] = {
                "terms": len(own),
                "conditional": float(np.mean([c[1] for c in own])),
                "given": float(np.mean([c[2] for c in own])),
                "width": float(np.median([c[3] for c in own])),
            }
    return summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--only", default="", help="cells whose name holds this")
    parser.add_argument("--fit", choices=("same", "fresh", "split"))
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    table = []
    for number, cell in enumerate(cells()):
        if arguments.only not in cell.name:
            continue
        rng = np.random.default_rng([16, number])
        start = time.perf_counter()
        outcomes = [run(cell, rng, arguments.fit) for _ in range(arguments.runs)]
        row = summarise(cell, outcomes, time.perf_counter() - start)
        table.append(row)
        shown = "".join(
            f" | {name} {row[name]['conditional']:.3f} (given {row[name]['given']:.3f}, "  # type: ignore[index]
            f"{row[name]['terms']} terms, width {row[name]['width']:.2f})"  # type: ignore[index]
            for name in ("strong", "weak")
            if name in row
        )
        print(
            f"{cell.name:38s} found {row['found']:.2f} of bic {row['bic']:.2f} | useless "
            f"{row['useless']:.3f} (< {row['useless_upper']:.3f}) | ambiguous "
            f"{row['ambiguous']:.2f} | resolved {row['resolved']:.2f}, certified "
            f"{row['certified']:.2f}, {row['seconds']:.2f} s{shown}",
            flush=True,
        )
    if arguments.out:
        arguments.out.write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
