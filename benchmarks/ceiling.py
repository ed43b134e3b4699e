"""How much of a staged release's error is the price of finding out where the rows lie.

    python -m benchmarks.ceiling [--eps 1 4] [--most ROWS] [--only TEXT] [--repeats R]

`dp_ols` as it is, beside the same release that is *told* where to look: its first looks and sums of
squares have almost no noise, and the last release has all of eps (or mu^2) but the tail's share.
Nobody could be told so without the rows: this is no private method, but what no rule for locating,
no shares of eps and no settling of them could beat. With it stands the gram release, so that one
sees what is left to win. Cells, errors and tables are those of `benchmarks.regression`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

from benchmarks._regression_cells import Design, designs
from benchmarks.regression import DELTAS, Judge, fitted
from dpreg.api import staged as routes
from dpreg.errors import ArgumentError
from dpreg.privacy.budget import Budget
from dpreg.staged.plan import TAIL, LookPlan, plan_looks

FREE = Fraction(10**6)
"""Eps of a look that is almost without noise; of mu^2 its square."""
WHOLE = 10**15
"""Eps of a call that such looks fit into."""


@contextmanager
def told(eps: str, delta: str) -> Iterator[None]:
    """Let looks be planned for eps and delta, and then be told where the rows lie."""

    def planned(columns: int, cost: Budget, *given: Any, **options: Any) -> LookPlan:
        plan = plan_looks(columns, Budget(Fraction(eps), Fraction(delta)), *given, **options)
        free = FREE**2 if plan.gaussian else FREE
        last = plan.looking * (1 - TAIL)
        # A joint line costs what its looks' plan says; others cost their own eps.
        whole = cost if plan.gaussian else Budget(2 * FREE + plan.looking)
        return replace(plan, strengths=(free, free, last), squares_strength=free, cost=whole)

    with mock.patch.object(routes, "plan_looks", planned):
        yield


def measure(design: Design, eps: str, delta: str, samples: int, repeats: int) -> dict[str, float]:
    """Mean excess of the default, of the release that is told, and of gram."""
    found: dict[str, list[float]] = {"auto": [], "told": [], "gram": []}
    for place, sample in enumerate(design.samples(samples, 1)):
        judge, rows = Judge(sample), len(sample.x)
        for seed in range(1000 * place, 1000 * place + repeats):
            costs: dict[str, Any] = {"eps": eps, "delta": delta}
            fits = {
                "auto": fitted(sample, seed, expected_rows=rows, **costs),
                "gram": fitted(sample, seed, method="gram", **costs),
            }
            with told(eps, delta):
                fits["told"] = fitted(
                    sample, seed, expected_rows=rows, method="staged", eps=WHOLE, delta=delta
                )
            for name, fit in fits.items():
                found[name].append(float(judge.excess(fit.params.to_numpy()[None])[0]))
    return {name: float(np.mean(values)) for name, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--eps", nargs="+", default=["1", "4"])
    parser.add_argument("--most", type=int, default=20_000, help="leave out sets with more rows")
    parser.add_argument("--only", default="", help="data sets whose name holds this")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    print("| data | eps | delta | auto | told | gram | gram / auto | gram / told |")
    print("|---|---|---|---|---|---|---|---|")
    means: dict[tuple[bool, str, float], list[dict[str, float]]] = {}
    for design in designs(given.most):
        if given.only not in design.name:
            continue
        for eps in given.eps:
            for delta in DELTAS:
                try:
                    cell = measure(design, eps, str(delta), given.samples, given.repeats)
                except ArgumentError:  # too few rows for looks, told or not
                    print(f"| {design.name} | {eps} | {delta:g} | too few rows |", flush=True)
                    continue
                print(line(design.name, eps, delta, cell), flush=True)
                means.setdefault((design.real, eps, delta), []).append(cell)
    for (real, eps, delta), cells in means.items():
        name = f"{'real' if real else 'drawn'}, {len(cells)} cells"
        mean = {k: float(np.exp(np.mean([np.log(c[k]) for c in cells]))) for k in cells[0]}
        print(line(name, eps, delta, mean))


def line(name: str, eps: str, delta: float, cell: dict[str, float]) -> str:
    """Return a row of the table."""
    values = " | ".join(f"{cell[k]:.3g}" for k in ("auto", "told", "gram"))
    ratios = " | ".join(f"{cell['gram'] / cell[k]:.1f}" for k in ("auto", "told"))
    return f"| {name} | {eps} | {delta:g} | {values} | {ratios} |"


if __name__ == "__main__":
    main()
