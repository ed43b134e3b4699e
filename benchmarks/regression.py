"""Accuracy of private linear regression: dpreg's default beside its peers, cell by cell.

    python -m benchmarks.regression [--eps .5 1 4] [--most ROWS] [--only TEXT] [--part 0/2]
                                    [--out FILE] [--table FILE...]

A cell is a data set, eps and delta. Real: four UCI sets, King County, randhie, prostate (a fifth of
the rows is held out). Drawn: p = 5, 15, 30 columns, n rows, correlation r^|i-j|, R^2 = .5. All fit
the same rows, mapped to [-1, 1] by public bounds, with an intercept, for add-remove neighbours.

Each method's error is that of its predictions of held-out rows against those of OLS, in units of
OLS's own squared error there ("excess": what privacy adds, in the mean over repeats). Its
coefficients' squared distance from OLS's, and the medians, are kept beside it. Peers take the
best of their settings in each cell, with hindsight (`benchmarks.peers`); dpreg's methods have none.

With --table the lines of earlier runs' files are gathered into tables. Where several files hold a
cell, each method is taken from the last that ran it: dpreg's can be run anew without its peers.

This is a benchmark of errors, not of privacy: noise comes from a seed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpreg
from benchmarks._regression_cells import Design, Sample, designs
from benchmarks._regression_tables import tables
from benchmarks.peers import PEERS, diffpriv
from benchmarks.peers._rows import Rows
from dpreg.results.regression import RegressionResults

OURS = ("auto", "gram", "objective-dpreg")
"""The last is `method="objective"`: "objective" is a peer, with hindsight and without scales."""
DELTAS = (0.0, 1e-6)


class Judge:
    """What coefficients cost on the held-out rows of a sample."""

    def __init__(self, sample: Sample) -> None:
        self.ols = np.linalg.lstsq(sample.x, sample.y, rcond=None)[0]
        self.error = float(((sample.y_test - sample.x_test @ self.ols) ** 2).mean())
        self.moments = sample.x_test.T @ sample.x_test / len(sample.x_test)

    def excess(self, found: np.ndarray) -> np.ndarray:
        gap = found - self.ols
        return np.einsum("ri,ij,rj->r", gap, self.moments, gap) / self.error

    def distance(self, found: np.ndarray) -> np.ndarray:
        return np.square(found - self.ols)[:, 1:].sum(axis=1)


def ours(
    method: str, sample: Sample, eps: float, delta: float, repeats: int, seed: int
) -> tuple[np.ndarray, str]:
    """Coefficients of `dp_ols`, one row a repeat, and the method that it took."""
    found, taken = [], method
    for place in range(repeats):
        name = method.removesuffix("-dpreg")
        fit = fitted(sample, seed + place, eps=eps, delta=delta, method=name)
        found.append(fit.params.to_numpy())
        taken = fit.method
    return np.array(found), taken


def fitted(sample: Sample, seed: int, **options: Any) -> RegressionResults:
    """`dp_ols` on a sample, for add-remove neighbours."""
    names = [f"x{j}" for j in range(1, sample.x.shape[1])]
    data = pd.DataFrame(sample.x[:, 1:], columns=names).assign(y=sample.y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpreg.dp_ols(
            f"y ~ {' + '.join(names)}",
            data,
            schema=dict.fromkeys(data.columns, (-1, 1)),
            neighbors="add-remove",
            progress=False,
            unsafe_seed=seed,
            **options,
        )


def measure(
    design: Design, eps: float, delta: float, samples: int, repeats: int, methods: list[str]
) -> dict[str, object]:
    errors: dict[tuple[str, object], list[tuple[np.ndarray, np.ndarray]]] = defaultdict(list)
    tried: dict[str, dict[str, float]] = defaultdict(dict)
    picked: dict[str, list] = {}
    taken = ""
    for place, sample in enumerate(design.samples(samples, 1)):
        judge, rows = Judge(sample), Rows(sample.x, sample.y)

        def keep(name: str, setting: object, found: np.ndarray, judge: Judge = judge) -> None:
            errors[name, setting].append((judge.excess(found), judge.distance(found)))

        for method in methods:
            if method in OURS:
                found, used = ours(method, sample, eps, delta, repeats, 1000 * place)
                taken = used if method == "auto" else taken
                keep(method, None, found)
                continue
            peer = PEERS[method]
            if not place:
                picked[method], tried[method] = chosen(peer, rows, judge, eps, delta)
            for setting in picked[method]:
                rng = np.random.default_rng([place, 7])
                keep(method, setting, peer.fit(rows, setting, eps, delta, repeats, rng))
    best: dict[str, dict[str, object]] = {}
    for (name, setting), parts in errors.items():
        excess, distance = (np.concatenate([p[k] for p in parts]) for k in (0, 1))
        tried[name][json.dumps(setting)] = float(excess.mean())
        if name not in best or excess.mean() < best[name]["excess"]:
            best[name] = {
                "excess": float(excess.mean()),
                "median": float(np.median(excess)),
                "distance": float(distance.mean()),
                "setting": None if setting is None else list(setting),
            }
    return {
        "data": design.name, "real": design.real, "n": design.n, "p": design.p,
        "correlation": design.correlation, "eps": eps, "delta": delta, "taken": taken,
        "runs": samples * repeats, "methods": best, "tried": tried,
    }  # fmt: skip


def chosen(
    peer, rows: Rows, judge: Judge, eps: float, delta: float
) -> tuple[list, dict[str, float]]:
    """Settings worth all repeats: all, or the best of a first try where rows are many."""
    settings = peer.settings(eps, delta)
    if len(settings) < 2 or rows.x.size < 100_000:
        return settings, {}
    rng = np.random.default_rng(11)
    tried = [judge.excess(peer.fit(rows, s, eps, delta, 4, rng)).mean() for s in settings]
    scores = {json.dumps(s): float(t) for s, t in zip(settings, tried, strict=True)}
    return [settings[int(np.argmin(tried))]], scores


def gathered(files: list[Path]) -> list[dict]:
    """Cells of several files, each method of a cell from the last file that has it."""
    cells: dict[tuple, dict] = {}
    for row in (json.loads(row) for file in files for row in file.read_text().splitlines()):
        before = cells.setdefault((row["data"], row["eps"], row["delta"]), row)
        for part in ("methods", "tried"):
            before[part] = {**before[part], **row[part]}
        before["taken"] = row["taken"] or before["taken"]
    return list(cells.values())


def line(found: dict) -> str:
    cells = " ".join(f"{name} {m['excess']:.3g}" for name, m in found["methods"].items())
    head = f"{found['data']:24s} eps {found['eps']:g} delta {found['delta']:g}"
    return f"{head} [{found['taken']}] {cells} | {found['seconds']:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--eps", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    parser.add_argument("--most", type=int, default=100_000, help="leave out sets with more rows")
    parser.add_argument("--only", default="", help="data sets whose name holds this")
    parser.add_argument("--methods", nargs="+", default=[*OURS, *PEERS])
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--part", default="0/1", help="k/K: the k-th of K parts of the cells")
    parser.add_argument("--out", type=Path, help="write a line of JSON for each cell here")
    parser.add_argument("--table", type=Path, nargs="+", help="gather these files, measure nothing")
    given = parser.parse_args()
    if given.table:
        print(tables(gathered(given.table)))
        return
    if (why := diffpriv.missing()) and "diffprivlib" in given.methods:
        print(f"diffprivlib is left out: {why}", file=sys.stderr)
    k, parts = map(int, given.part.split("/"))
    sets = [d for d in designs(given.most) if given.only in d.name]
    cells = [(d, e, s) for e in given.eps for d in sets for s in DELTAS][k::parts]
    done = []
    for design, eps, delta in cells:
        started = time.perf_counter()
        found = measure(design, eps, delta, given.samples, given.repeats, given.methods)
        found["seconds"] = time.perf_counter() - started
        print(line(found), flush=True)
        done.append(found)
        if given.out:
            with given.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")
    print(tables(done))


if __name__ == "__main__":
    main()
