"""`dp_glm` beside other private logistic and Poisson regressions: excess deviance and coefficients.

Real sets: randhie (any visit; visits, capped at 20) and King County (price above 600,000; needs
`DPREG_DATA`), four fifths of the rows to fit. Simulated: normal columns, a predictor of standard
deviation 1 (.5 for counts). The excess is the deviance a row beyond the least: over all rows of a
real set, that of the fit to all of them without privacy (a fifth alone would tell the methods apart
no better than by chance); over fresh simulated rows, that of the truth, in expectation. The
distance is that of the coefficients in the box from those of the fit to the same rows without
privacy, relative to their norm.

Every peer has settings that are the best of a grid, chosen by the excess with the answer in hand
and at no cost; dpreg has none. Where rows are many, settings are tried on a part of them with the
noise of all (see `GLMRows.part`), and the two best are run on all of them.

    python -m benchmarks.glm_peers --out FILE [--most ROWS] [--only WORD ...] [--part k/K]
    python -m benchmarks.glm_peers --table FILE ...

Each cell is one line of JSON; cells that the file has are not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.api as sm

import dpreg
from benchmarks._family_cells import CAP, DELTA
from benchmarks.peers import diffpriv
from benchmarks.peers.glm import GLM_PEERS
from benchmarks.peers.glm._rows import GLMRows, mean, potential

PART = 20_000
"""Rows that settings are tried on; a quarter of them where they are simulated."""
WORST = 10.0
"""Excess that a fit which noise has thrown anywhere counts as, at most."""


@dataclass(frozen=True)
class Sample:
    """Rows to fit and to predict, in the box, the response from 0 to `cap`, and what is best."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    best: np.ndarray


@dataclass(frozen=True)
class Set:
    """A data set: a real one, or p columns and n rows."""

    name: str
    family: str
    rows: int
    columns: int
    real: bool = False

    @property
    def cap(self) -> int:
        return 1 if self.family == "binomial" else CAP

    def samples(self, count: int) -> Iterator[Sample]:
        if self.real:
            x, y = _real(self.name)
            for place in range(count):
                order = np.random.default_rng(place).permutation(len(y))
                train = order[len(y) // 5 :]
                yield Sample(x[train], y[train], x, _fitted(x, y, self.family))
            return
        for place in range(count):
            rng = np.random.default_rng([self.rows, self.columns, place])
            x, y, truth = self._draw(self.rows, rng)
            yield Sample(x, y, self._draw(20_000, rng)[0], truth)

    def _draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        p, used = self.columns, max(self.columns // 2, 1)
        x = np.clip(rng.standard_normal((n, p)) / 3, -1, 1)
        spread, middle = (1.0, -0.5) if self.family == "binomial" else (0.5, 0.7)
        slopes = np.zeros(p)
        slopes[:used] = spread * 3 / math.sqrt(used) * np.where(np.arange(used) % 2, 1, -1)
        truth, x = np.append(middle, slopes), np.column_stack([np.ones(n), x])
        mu = mean(x @ truth, self.family)
        drawn = rng.random(n) < mu if self.family == "binomial" else rng.poisson(mu)
        return x, np.minimum(drawn * 1.0, self.cap), truth


def _real(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name.startswith("King"):
        found = dpreg.datasets.load_kc_house()
        columns = [c for c in found.schema if c not in ("price", "sqft_basement", "yr_renovated")]
        y = (found.data["price"] > 600_000).to_numpy(float)
    else:
        found = dpreg.datasets.load_randhie()
        columns = [c for c in found.data.columns if c != "mdvis"]
        visits = found.data["mdvis"].to_numpy(float)
        y = np.minimum(visits, CAP) if "visits" in name else (visits > 0) * 1.0
    boxed = []
    for column in columns:
        declared, values = found.schema[column], found.data[column].to_numpy(float)
        low, high = getattr(declared, "lo", 0.0), getattr(declared, "hi", 1.0)
        boxed.append(np.clip((2 * values - low - high) / (high - low), -1, 1))
    return np.column_stack([np.ones(len(y)), *boxed]), y


def _fitted(x: np.ndarray, y: np.ndarray, family: str) -> np.ndarray:
    kind = sm.families.Binomial() if family == "binomial" else sm.families.Poisson()
    return sm.GLM(y, x, family=kind).fit().params


def sets() -> list[Set]:
    found = []
    for name, family in (
        ("randhie any visit", "binomial"),
        ("randhie visits", "poisson"),
        ("King County", "binomial"),
    ):
        try:
            x, y = _real(name)
        except dpreg.errors.DatasetError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        found.append(Set(name, family, len(y) - len(y) // 5, x.shape[1] - 1, real=True))
    for n in (10_000, 100_000, 1_000, 1_000_000):  # in the order of interest
        for p in (5, 15, 30):
            found += [Set(f"{family} n={n:,} p={p}", family, n, p) for family in _FAMILIES]
    return found


_FAMILIES = ("binomial", "poisson")


class Judge:
    """Tells how far coefficients are from the best, for one sample."""

    def __init__(self, data: Set, sample: Sample) -> None:
        self.plain = _fitted(sample.x, sample.y, data.family)
        self.family, self.sample = data.family, sample
        self.eta = sample.x_test @ sample.best
        self.mu = mean(self.eta, data.family)

    def excess(self, found: np.ndarray) -> np.ndarray:
        """Excess deviance a row, for each line of coefficients.

        At the fit to all rows of a real set scores add up to zero: responses then count as means.
        """
        told = []
        for theta in np.atleast_2d(found):
            eta = self.sample.x_test @ theta
            gap = potential(eta, self.family) - potential(self.eta, self.family)
            value = 2 * float((gap - self.mu * (eta - self.eta)).mean())
            told.append(min(value, WORST) if math.isfinite(value) else WORST)
        return np.array(told)

    def distance(self, found: np.ndarray) -> np.ndarray:
        gap = np.linalg.norm(np.atleast_2d(found) - self.plain, axis=1)
        return np.minimum(gap / np.linalg.norm(self.plain), 1e3)


def ours(data: Set, sample: Sample, eps: float, delta: float, seed: int) -> tuple[np.ndarray, bool]:
    """dpreg's coefficients in the box, and whether it gave intervals."""
    names = [f"x{j}" for j in range(1, data.columns + 1)]
    table = pd.DataFrame(sample.x[:, 1:], columns=names).assign(y=sample.y)
    fit = dpreg.dp_glm(
        f"y ~ {' + '.join(names)}",
        table,
        eps,
        delta=delta,
        family=data.family,
        schema={**dict.fromkeys(names, (-1, 1)), "y": (0, data.cap)},
        unsafe_seed=seed,
    )
    return fit.params.to_numpy(), bool(fit.bse.notna().all())


def measure(data: Set, eps: float, delta: float, samples: int, repeats: int) -> dict[str, Any]:
    """Run every method in a cell."""
    got: dict[tuple[str, Any], list[tuple[float, float]]] = {}
    picked: dict[str, list[Any]] = {}
    earned, plain = [], []
    for place, sample in enumerate(data.samples(samples)):
        judge = Judge(data, sample)
        plain.append(float(judge.excess(judge.plain)[0]))
        rows = GLMRows(sample.x, sample.y, data.family, data.cap, len(sample.y))

        def keep(name: str, setting: Any, found: np.ndarray, judge: Judge = judge) -> None:
            pairs = zip(judge.excess(found), judge.distance(found), strict=True)
            got.setdefault((name, setting), []).extend((float(a), float(b)) for a, b in pairs)

        for repeat in range(repeats):
            found, intervals = ours(data, sample, eps, delta, 100 * place + repeat)
            earned.append(intervals)
            keep("dpreg", None, found)
        for name, peer in GLM_PEERS.items():
            if not place:
                rng, settings = np.random.default_rng(11), peer.settings(data.family, eps, delta)
                part, tried = rows.part(PART if data.real else PART // 4, rng), []
                for setting in settings if len(settings) > 2 else []:
                    found = peer.fit(part, setting, eps, delta, 2, np.random.default_rng(5))
                    tried.append(float(np.mean(judge.excess(found))))
                picked[name] = [settings[i] for i in np.argsort(tried)[:2]]
            for setting in picked[name]:
                rng = np.random.default_rng([place, 7])
                keep(name, setting, peer.fit(rows, setting, eps, delta, repeats, rng))
    best: dict[str, dict[str, Any]] = {}
    for (name, setting), pairs in got.items():
        excess, distance = np.mean(pairs, axis=0)
        if name not in best or excess < best[name]["excess"]:
            best[name] = {
                "excess": float(excess),
                "distance": float(distance),
                "setting": None if setting is None else list(setting),
            }
    return {
        "data": data.name, "family": data.family, "n": data.rows, "p": data.columns,
        "real": data.real, "eps": eps, "delta": delta, "runs": samples * repeats,
        "intervals": float(np.mean(earned)), "plain": float(np.mean(plain)), "methods": best,
    }  # fmt: skip


def cells(most: int) -> list[tuple[Set, float, float]]:
    found = [
        (d, eps, delta) for d in sets() if d.rows <= most for delta in (DELTA, 0.0)
        for eps in (1.0, 2.0, 4.0)
    ]  # fmt: skip
    return found


def table(found: list[dict[str, Any]]) -> Iterator[str]:
    names = ["dpreg", *GLM_PEERS]
    yield "| data | eps | delta | " + " | ".join([*names, "no privacy", "intervals"]) + " |"
    yield "|---|---|---|" + "---|" * (len(names) + 2)
    for cell in found:
        told = [f"{cell['data']} | {cell['eps']:g} | {cell['delta']:g}"]
        least = min(m["excess"] for m in cell["methods"].values())
        for name in names:
            method = cell["methods"].get(name)
            mark = "**" if method and method["excess"] == least else ""
            told.append(f"{mark}{method['excess']:.2g}{mark}" if method else "-")
        yield "| " + " | ".join([*told, f"{cell['plain']:.2g}", f"{cell['intervals']:.2f}"]) + " |"
    for family in _FAMILIES:
        for delta in (DELTA, 0.0):
            kept = [
                c for c in found
                if c["family"] == family and c["delta"] == delta and c["n"] >= 10_000
            ]  # fmt: skip
            ratios = [_ratio(cell) for cell in kept]
            if ratios:
                told = f"least in {sum(r <= 1 for r in ratios)} of {len(ratios)}"
                worst = f"{max(ratios):.2f} times the best peer at most"
                yield f"{family}, delta {delta:g}, n >= 10,000: {told}; {worst}"


def _ratio(cell: dict[str, Any]) -> float:
    methods = cell["methods"]
    others = [m["excess"] for name, m in methods.items() if name != "dpreg"]
    return methods["dpreg"]["excess"] / max(min(others), 1e-12) if others else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(gettempdir()) / "dpreg-glm-peers.jsonl")
    parser.add_argument("--table", type=Path, nargs="+")
    parser.add_argument("--most", type=int, default=100_000)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--part", default="0/1", help="k/K: the k-th of K parts of the cells")
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    told = parser.parse_args()
    warnings.simplefilter("ignore", dpreg.errors.DpregWarning)
    if told.table:
        lines = [json.loads(row) for file in told.table for row in file.read_text().splitlines()]
        print("\n".join(table(lines)))
        return
    if why := diffpriv.missing():
        print(f"diffprivlib is left out: {why}", file=sys.stderr)
    done = set()
    if told.out.exists():
        kept = map(json.loads, told.out.read_text().splitlines())
        done = {(c["data"], c["eps"], c["delta"]) for c in kept}
    k, parts = map(int, told.part.split("/"))
    for data, eps, delta in cells(told.most)[k::parts]:
        named = (data.name, eps, delta)
        if named in done or not all(word in f"{data.name} {eps:g} {delta:g}" for word in told.only):
            continue
        started = time.perf_counter()
        samples = told.samples if data.rows < 50_000 else 1
        found = measure(data, eps, delta, samples, told.repeats)
        found["seconds"] = round(time.perf_counter() - started, 1)
        with told.out.open("a") as out:
            print(json.dumps(found), file=out, flush=True)


if __name__ == "__main__":
    main()
