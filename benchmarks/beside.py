"""dpreg beside other private regressions, on the data, budgets and measures of their papers.

    python -m benchmarks.beside [--only TEXT] [--samples 2] [--runs 8] [--methods A B]
                                [--official] [--out FILE] [--table FILE...]

Peers are written from their papers (`benchmarks.peers`) and take the best of their settings in each
cell, with hindsight: one for errors, one for intervals. *Error*: what privacy adds to the squared
error of least squares on the rows themselves, as a share of it, in the mean of runs that answer.
*Held*: the share of printed 95% intervals of slopes that hold the slope that made the rows (real
rows: that of least squares). *Width*: half an interval over that without privacy (1.96 White's
errors), in the median.

A method is compared with dpreg under the same needs: with declared bounds, or with bounds bought.
What dpreg loses by over a tenth is in bold: a smaller error; or intervals that hold at least .93
where dpreg's hold less, or are narrower. `--official` measures the study of `benchmarks.official`.

Neighbours differ by a row added or removed, for all. This is a benchmark of errors, not of privacy:
noise comes from a seed.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import dpreg
from benchmarks import official
from benchmarks._beside_cells import Cell, Sample, cells
from benchmarks._beside_table import OURS, table
from benchmarks.peers import BESIDE, PEERS
from dpreg.results.regression import RegressionResults

OTHERS = ("adassp", "boosted", "dp-gd", "objective")
"""Of the peers of `benchmarks.regression`: those that came nearest there."""
Found = tuple[np.ndarray, np.ndarray | None]


class Judge:
    """What coefficients cost on the rows of a sample, and whether their intervals hold."""

    def __init__(self, sample: Sample) -> None:
        x, y = sample.design, sample.drawn.y
        self.plain = np.linalg.lstsq(x, y, rcond=None)[0]
        residual = y - x @ self.plain
        self.error, self.moments = float((residual**2).mean()), x.T @ x / len(y)
        inverse = np.linalg.inv(x.T @ x)
        scores = x * residual[:, None]
        robust = inverse @ (scores.T @ scores) @ inverse * len(y) / (len(y) - x.shape[1])
        self.robust = np.sqrt(np.diag(robust))[1:]
        known = sample.drawn.slopes
        self.slopes = self.plain[1:] if known is None else known

    def excess(self, found: np.ndarray) -> np.ndarray:
        gap = found - self.plain
        return np.asarray(np.einsum("ri,ij,rj->r", gap, self.moments, gap) / self.error)

    def intervals(self, found: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether each printed interval of a slope holds it, and its width."""
        printed = np.isfinite(half) & (half > 0)
        held = np.abs(found[:, 1:] - self.slopes) <= half
        return held[printed], (half / self.robust / 1.96)[printed]


def ours(name: str, sample: Sample, runs: int, seed: int) -> Found:
    """Coefficients and half intervals of slopes, one row a run."""
    found, half = [], []
    for run in range(runs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = released(name, sample, 1000 * seed + run)
        coefficients = result.params.reindex(["Intercept", *sample.names], fill_value=0.0)
        found.append(coefficients.to_numpy(float))
        ends = result.conf_int().reindex(sample.names).to_numpy(float)
        half.append((ends[:, 1] - ends[:, 0]) / 2)
    return np.array(found), np.array(half)


def released(name: str, sample: Sample, seed: int) -> RegressionResults:
    cell, frame = sample.cell, sample.frame
    formula = "y ~ " + " + ".join(sample.names)
    told: dict[str, Any] = {
        "schema": {} if "bought" in name or ".4 for bounds" in name else sample.schema
    }
    cost: dict[str, Any] = {"eps": str(cell.eps), "delta": str(cell.delta)}
    told |= {"neighbors": "add-remove", "unsafe_seed": seed, "progress": False}
    if "choice" in name:
        chosen = dpreg.dp_select(formula, frame, fit="fresh", **cost, **told)
        assert chosen.regression is not None
        return chosen.regression
    method = "objective" if "objective" in name else "auto"
    if method == "objective":
        cost["delta"] = "0"
    if ".4 for bounds" in name:
        told["shares"] = {"bounds": "0.4"}
    return dpreg.dp_ols(formula, frame, method=method, **cost, **told)


def theirs(
    name: str, sample: Sample, runs: int, seed: int, tuned: dict[str, Any], judge: Judge
) -> tuple[np.ndarray, Found]:
    """Coefficients of a peer at its best setting for error, and a release at that for intervals.

    The first sample finds both, by hindsight, and the others take them from `tuned`.
    """
    peer, rows = {**PEERS, **BESIDE}[name], sample.rows()
    if name not in tuned:
        tuned[name] = best(peer, sample, judge)
    near, true = tuned[name]
    cost = (sample.cell.eps, sample.cell.delta, runs)
    if not hasattr(peer, "released"):
        found = sample.unboxed(peer.fit(rows, near, *cost, np.random.default_rng([seed, 7])))
        return found, (found, None)
    printed = [
        peer.released(rows, setting, *cost, np.random.default_rng([seed, 7]))
        for setting in (near, true)
    ]
    found, half = sample.unboxed(printed[1][0]), 1.96 * sample.unboxed_errors(printed[1][1])
    return sample.unboxed(printed[0][0]), (found, half)


def best(peer: Any, sample: Sample, judge: Judge, tries: int = 4) -> tuple[object, object]:
    """The settings with the least mean error, and with the narrowest intervals that hold.

    Both from a few runs: half of them answer, .93 of the intervals hold (or most, if none does so).
    """
    cell, rows = sample.cell, sample.rows()
    settings = peer.settings(cell.eps, cell.delta)
    errors, widths = [], []
    for setting in settings if len(settings) > 1 else []:
        told = (rows, setting, cell.eps, cell.delta, tries, np.random.default_rng(11))
        released = peer.released(*told) if hasattr(peer, "released") else (peer.fit(*told), None)
        found = sample.unboxed(released[0])
        excess = judge.excess(found)
        answers = np.isfinite(excess)
        errors.append(excess[answers].mean() if answers.mean() >= 0.5 else np.inf)
        widths.append((1.0, 0.0))
        if released[1] is not None:
            held, width = judge.intervals(found, 1.96 * sample.unboxed_errors(released[1]))
            short = max(0.0, 0.93 - held.mean()) if held.size else 1.0
            widths[-1] = (short, float(np.median(width)) if held.size else 0.0)
    if not errors:
        return settings[0], settings[0]
    return settings[int(np.argmin(errors))], settings[widths.index(min(widths))]


def measure(cell: Cell, samples: int, runs: int, only: list[str]) -> dict[str, Any]:
    names = [*OURS, *(["dpreg, choice"] if cell.choice else []), *BESIDE, *OTHERS]
    names = [n for n in names if (n != "kendall" or cell.choice) and (not only or n in only)]
    tuned: dict[str, Any] = {}
    parts: dict[str, list[tuple[np.ndarray, Any]]] = {name: [] for name in names}
    for place in range(samples):
        drawn = cell.draw(np.random.default_rng([place, 3]))
        sample = Sample(cell, drawn)
        judge = Judge(sample)
        for name in names:
            if name.startswith("dpreg"):
                released = ours(name, sample, runs, place)
                near = released[0]
            else:
                near, released = theirs(name, sample, runs, place, tuned, judge)
            kept = None if released[1] is None else judge.intervals(*released)
            parts[name].append((judge.excess(near), kept))
    return {
        "cell": cell.name, "whose": cell.whose, "eps": cell.eps, "delta": cell.delta,
        "runs": samples * runs,
        "methods": {name: summary(parts[name], tuned.get(name)) for name in names},
    }  # fmt: skip


def summary(parts: list[tuple[np.ndarray, Any]], setting: object) -> dict[str, Any]:
    excess = np.concatenate([part[0] for part in parts])
    answers = np.isfinite(excess)
    found: dict[str, Any] = {
        "excess": float(excess[answers].mean()) if answers.any() else None,
        "median": float(np.median(excess[answers])) if answers.any() else None,
        "answers": float(answers.mean()),
        "setting": setting,
    }
    printed = [part[1] for part in parts if part[1] is not None and len(part[1][0])]
    if printed:
        found["held"] = float(np.concatenate([p[0] for p in printed]).mean())
        found["width"] = float(np.median(np.concatenate([p[1] for p in printed])))
    return found


def gathered(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line a cell, each method from the last line that has it."""
    found: dict[str, dict[str, Any]] = {}
    for line in lines:
        found.setdefault(line["cell"], line)["methods"].update(line["methods"])
    return list(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cells whose name holds this")
    parser.add_argument("--methods", nargs="+", default=[])
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--runs", type=int, default=8, help="releases a sample")
    parser.add_argument("--official", action="store_true", help="the study of official statistics")
    parser.add_argument("--out", type=Path, help="write a line of JSON for each cell here")
    parser.add_argument("--table", type=Path, nargs="+", help="tables of these files alone")
    given = parser.parse_args()
    if given.table:
        lines = [json.loads(line) for file in given.table for line in file.read_text().splitlines()]
        print(table(gathered(line for line in lines if "cell" in line)))
        print(official.table([line for line in lines if "model" in line]))
        return
    done = []
    if given.official:
        work = (official.measure(study, given.runs) for study in official.studies())
    else:
        wanted = [cell for cell in cells() if given.only in cell.name]
        work = (measure(cell, given.samples, given.runs, given.methods) for cell in wanted)
    for line in work:
        done.append(line)
        if given.out:
            with given.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        print((official.table if given.official else table)([line]), flush=True)


if __name__ == "__main__":
    main()
