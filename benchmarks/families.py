"""Coverage and choices of generalised linear models, over tables of nobody's.

Coverage counts over simulated tables, with what is flagged (no intervals) told apart; the width is
relative to the intervals that statsmodels gives without privacy. Choices are counted beside Wald's
tests without privacy. Every run is one line of JSON; runs that the file has are not run again.

    python -m benchmarks.families coverage --out FILE [--runs N] [--only WORD ...]
    python -m benchmarks.families choice --out FILE [--runs N] [--only WORD ...]
    python -m benchmarks.families table --out FILE

This is a benchmark of statistics, not of privacy: every run has a seed.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import chi2

import dpreg
from benchmarks._family_cells import CHOICES, COVERED, Cell, simulated

Line = dict[str, Any]

_PLAIN = 5
"""Runs of a cell that are fitted without privacy as well, for the width."""
_TESTED = 60
"""And for what Wald's tests find."""


def coverage(cell: Cell, run: int) -> Line:
    """Fit one table, and say which intervals hold."""
    made = simulated(cell, np.random.default_rng([cell.rows, cell.columns, run]))
    told = dict(made.call)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpreg.errors.DpregWarning)
        fit = dpreg.dp_glm(
            told.pop("formula"), made.table, cell.eps, unsafe_seed=run, progress=False, **told
        )
    low, high = fit.conf_int().to_numpy().T
    if np.isnan(low).any():
        return {"flagged": "too few rows to say"}
    hit = (low < made.truth) & (made.truth < high)
    line: Line = {"hit": hit.astype(int).tolist()}
    if run < _PLAIN:
        ratio = fit.bse.to_numpy() / made.plain(cell.family).bse
        line["width"] = round(float(np.median(ratio[1:])), 4)
    return line


def choice(cell: Cell, run: int) -> Line:
    """Choose terms of one table, and count what is found and what is useless.

    Wald's tests without privacy keep the terms with p below .1 over the number of candidates: as
    many useless ones are expected of them as of the private choice, at most.
    """
    made = simulated(cell, np.random.default_rng([cell.rows, cell.columns, run]))
    used = set(np.flatnonzero(made.truth[1:]).tolist())
    told = dict(made.call)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpreg.errors.DpregWarning)
        result = dpreg.dp_select(
            told.pop("formula"), made.table, cell.eps, unsafe_seed=run, progress=False, **told
        )
    found = {result.candidates.index(name) for name in result.selected if name != "Intercept"}
    line: Line = {"of": len(used), "found": len(found & used), "useless": len(found - used)}
    if run < _TESTED:
        plain = made.plain(cell.family)
        tested = set(np.flatnonzero(plain.pvalues[1:] < 0.1 / cell.columns).tolist())
        line |= {"wald": len(tested & used), "wald_useless": len(tested - used)}
    return line


STUDIES: dict[str, tuple[tuple[Cell, ...], Callable[[Cell, int], Line]]] = {
    "coverage": (COVERED, coverage),
    "choice": (CHOICES, choice),
}


def done(out: Path) -> dict[tuple[str, str], dict[int, Line]]:
    """Return the runs that a file has, by study and cell."""
    found: dict[tuple[str, str], dict[int, Line]] = {}
    if out.exists():
        for text in out.read_text().splitlines():
            line = json.loads(text)
            found.setdefault((line["study"], line["cell"]), {})[line["run"]] = line
    return found


def lines(out: Path) -> Iterator[str]:
    """Return the lines of the tables, in the order of the cells."""
    kept = done(out)
    for study, told in (("coverage", _covered), ("choice", _chosen)):
        for cell in STUDIES[study][0]:
            if runs := kept.get((study, cell.name)):
                yield f"| {cell.name} | {len(runs)} | {told(list(runs.values()))} |"


def _covered(runs: list[Line]) -> str:
    flagged = Counter(line["flagged"] for line in runs if "flagged" in line)
    hits = np.array([line["hit"] for line in runs if "hit" in line])
    share = sum(flagged.values()) / len(runs)
    if not len(hits):
        return f"{share:.2f} | - | - | - | - | {', '.join(flagged)}"
    held, width = hits.mean(axis=0), [line["width"] for line in runs if "width" in line]
    wide = f"{np.median(width):.2f}" if width else "-"
    told = f"{held[0]:.3f} | {held[1:].mean():.3f} | {held[1:].min():.3f} | {wide}"
    return f"{share:.2f} | {told} | {', '.join(flagged)}"


def _chosen(runs: list[Line]) -> str:
    mean = {k: float(np.mean([r[k] for r in runs if k in r])) for k in _COUNTED}
    most = chi2.ppf(0.99, 2 * (sum(r["useless"] for r in runs) + 1)) / 2 / len(runs)
    told = f"{mean['found']:.2f} of {mean['of']:.0f} | {mean['wald']:.2f}"
    return f"{told} | {mean['useless']:.3f} | {most:.3f} | {mean['wald_useless']:.3f}"


_COUNTED = ("of", "found", "useless", "wald", "wald_useless")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=(*STUDIES, "table"))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--out", type=Path, required=True)
    told = parser.parse_args()
    warnings.simplefilter("ignore", dpreg.errors.DpregWarning)
    if told.what == "table":
        print("\n".join(lines(told.out)))
        return
    cells, study = STUDIES[told.what]
    for cell in sorted(
        cells, key=lambda cell: cell.rows * (cell.columns + 2)
    ):  # the dear ones last
        if not all(word in cell.name.split() for word in told.only):
            continue
        known = done(told.out).get((told.what, cell.name), {})
        with told.out.open("a") as out:
            for run in range(told.runs):
                if run not in known:
                    line = {"study": told.what, "cell": cell.name, "run": run}
                    print(json.dumps(line | study(cell, run)), file=out, flush=True)


if __name__ == "__main__":
    main()
