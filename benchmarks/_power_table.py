"""The table and the picture of what `benchmarks.power` has counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np
from scipy.stats import chi2

from benchmarks._power_cells import Cell
from dpreg.looks.plan import plan_looks
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection

Sums = dict[tuple[str, str], Counter[str]]

PEERS = ("0.1: default", "0.1", "stepwise", "noisy moments")
MOST_USELESS = 0.15
FEW = 10
"""Fewer intervals than this say nothing of coverage."""


def useless(own: Counter[str]) -> tuple[float, float]:
    """Return the mean of useless terms, and an upper 99% bound.

    The larger of the exact one of a Poisson mean and the normal one, whose variance is that between
    data sets.
    """
    runs, mean = own["runs"], own["useless"] / own["runs"]
    between = own["useless_squares"] - own["useless"] ** 2 / own["sets"]
    spread = sqrt(max(between, own["useless"])) / runs
    poisson = float(chi2.isf(0.01, 2 * (own["useless"] + 1))) / 2 / runs
    return mean, max(mean + 2.326 * spread, poisson)


def line(method: str, own: Counter[str]) -> dict[str, str]:
    """Return a cell's means, its upper 99% bound of useless terms, and its coverage."""
    runs = own["runs"]
    mean, upper = useless(own)
    shown = {
        "method": method,
        "runs": f"{runs:.0f}",
        "found": f"{own['found'] / runs:.2f} of {own['real'] / runs:.0f}",
        "useless": f"{mean:.3f} (< {upper:.3f})",
        "groups": f"{own['groups'] / runs:.2f}, {own['wrong'] / runs:.3f} wrong",
    }
    if own["copies"] + own["copies_grouped"]:
        shown["copies"] = (
            f"{own['copies'] / runs:.2f}, in groups {own['copies_grouped'] / runs:.2f}"
        )
    for name in ("strong", "weak"):
        if own[name]:
            width = np.exp(own[f"{name}_log_width"] / own[name])
            cover = own[f"{name}_in"] / own[name]
            shown[name] = f"{cover:.3f} ({own[name]:.0f}, width {width:.2f})"
    if own["fitted"]:
        shown["R2 short by"] = f"{own['loss'] / own['fitted']:.4f}"
    return shown


def best(sums: Sums, cell: Cell, peer: str) -> Counter[str] | None:
    """Return the counts of a peer's best setting in a cell.

    The one that found the most with at most .15 useless terms; where none is so careful, the most
    careful.
    """
    own = [c for (name, m), c in sums.items() if name == cell.name and m.startswith(peer)]
    own = [c for c in own if c["runs"]]
    careful = [c for c in own if c["useless"] <= MOST_USELESS * c["runs"]]
    if careful:
        return max(careful, key=lambda c: c["found"] / c["runs"])
    return min(own, key=lambda c: c["useless"] / c["runs"], default=None)


def _shown(own: Counter[str] | None) -> str:
    if own is None or not own["runs"]:
        return "-"
    return f"{own['found'] / own['runs']:.2f} / {own['useless'] / own['runs']:.2f}"


def needed(cell: Cell) -> float:
    """Return the rows from which on ``method="auto"`` looks, the choice alone wanted."""
    delta = Fraction(cell.delta).limit_denominator(10**9)
    columns = sum(map(len, cell.space.unit_columns))
    cost = Budget(Fraction(cell.eps), delta)
    return plan_looks(columns, cost, Protection("replace-one", 1), chooses=True).rows_needed


def markdown(sums: Sums, cells: list[Cell]) -> str:
    """Return a table: found / useless of each method, a row for each cell that was run.

    Columns in which no cell has anything are left out.
    """
    head = [
        "cell", "rows needed", "draws", "looks", "useless below", "groups", "copies",
        "0.1, default", "0.1, best radius", "stepwise", "noisy moments", "BIC, not private",
    ]  # fmt: skip
    rows = [head]
    for cell in cells:
        own = sums.get((cell.name, "adaptive"))
        if not own:
            continue
        runs = own["runs"]
        copies = "-"
        if cell.design in ("copies", "sums"):
            copies = f"{own['copies'] / runs:.2f}, {own['copies_grouped'] / runs:.2f} in groups"
        name = cell.name.removeprefix("equal ")
        rows.append([
            name, f"{needed(cell):,.0f}", f"{runs:,.0f}", _shown(own), f"{useless(own)[1]:.2f}",
            f"{own['groups'] / runs:.2f}", copies,
            *(_shown(best(sums, cell, peer)) for peer in PEERS),
            _shown(sums.get((cell.name, "bic"))),
        ])  # fmt: skip
    kept = [j for j in range(len(head)) if any(row[j] != "-" for row in rows[1:])]
    lines = ["| " + " | ".join(row[j] for j in kept) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(kept), *lines[1:]])


def by_rows(sums: Sums, cells: list[Cell]) -> str:
    """Return a table with a column for each number of rows: all designs of the main grid.

    A cell of it: what looks find, what BIC finds, and the upper bound of the looks' useless terms.
    """
    kept = [c for c in cells if sums.get((c.name, "adaptive"))]
    sizes = sorted({c.n for c in kept})
    lines: dict[tuple[int, float, float, float], dict[int, str]] = {}
    for c in kept:
        own, exact = sums[c.name, "adaptive"], sums[c.name, "bic"]
        found = f"{own['found'] / own['runs']:.2f}, {exact['found'] / exact['runs']:.2f}"
        shown = f"{found}, {useless(own)[1]:.3f}"
        lines.setdefault((c.p, c.rho, c.eps, c.delta), {})[c.n] = shown
    head = ["columns", "correlation", "eps", "delta", *(f"{n:,} rows" for n in sizes)]
    rows = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for (p, rho, eps, delta), shown in sorted(lines.items()):
        fields = [f"{p}", f"{rho:g}", f"{eps:g}", f"{delta:g}", *(shown.get(n, "-") for n in sizes)]
        rows.append("| " + " | ".join(fields) + " |")
    return "\n".join(rows)


def audit(sums: Sums, cells: list[Cell], fits: Sequence[str]) -> str:
    """Return a table of intervals: found terms, and coverage of strong and weak ones, by fit."""
    rows = ["| cell | runs | " + " | ".join(f"{fit}: found, strong, weak" for fit in fits) + " |"]
    rows.append("|" + "---|" * (2 + len(fits)))
    together: dict[str, Counter[str]] = {fit: Counter() for fit in fits}
    for cell in cells:
        some = [sums.get((cell.name, fit), Counter[str]()) for fit in fits]
        if not all(own["runs"] for own in some):
            continue
        for fit, own in zip(fits, some, strict=True):
            together[fit].update(own)
        rows.append(_audited(cell.name.removeprefix("equal "), some, "{:.2f}"))
    rows.insert(2, _audited("**all runs together**", list(together.values()), "{:.3f}"))
    return "\n".join(rows)


def _audited(name: str, fits: list[Counter[str]], form: str) -> str:
    shown = []
    for own in fits:
        parts = [f"{own['found'] / own['runs']:.2f}"]
        for kind in ("strong", "weak"):
            seen = own[kind]
            parts.append("-" if seen < FEW else form.format(own[f"{kind}_in"] / seen))
        shown.append(", ".join(parts))
    return f"| {name} | {min(own['runs'] for own in fits):.0f} | " + " | ".join(shown) + " |"


def picture(sums: Sums, cells: list[Cell], path: Path) -> None:
    """Draw terms found against rows, p = 8, correlation .5, eps = 1, without and with delta."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), sharey=True, layout="constrained")
    for ax, delta in zip(axes, (0.0, 1e-6), strict=True):
        some = [c for c in cells if (c.p, c.rho, c.eps, c.delta) == (8, 0.5, 1.0, delta)]
        some = sorted((c for c in some if c.design == "equal"), key=lambda c: c.n)
        for label, peer in (
            ("BIC, not private", "bic"),
            ("looks", "adaptive"),
            ("stepwise, best setting", "stepwise"),
            ("noisy moments, best setting", "noisy moments"),
            ("0.1, best radius", "0.1"),
            ("0.1, default", "0.1: default"),
        ):
            points = [
                (c.n, own["found"] / own["runs"])
                for c in some
                if (own := best(sums, c, peer)) is not None
            ]
            if points:
                style = "k--" if peer == "bic" else "o-"
                ax.plot(*zip(*points, strict=True), style, label=label, markersize=4)
        ax.set(xscale="log", xlabel="rows", title=f"eps = 1, delta = {delta:g}")
    axes[0].set_ylabel("true terms reported, of 5")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize=8)
    figure.savefig(path, dpi=110)
