"""Coverage and width of 95% intervals of the staged release, over a grid of settings.

    python -m benchmarks.coverage staged [--runs N] [--only TEXT] [--out FILE]

With --out each cell is kept as a line of JSON, and cells that the file has are not run again.

Each cell is a design, a sample size and a budget. Reported: coverage of slopes and of the
intercept, the median width of slopes relative to OLS, how often a run is flagged and why.

This is a benchmark of coverage, not of privacy: rows are floats and noise comes from a seed.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks._staged_rows import SHARES, Setting, staged
from dpreg.looks.need import rows_needed
from dpreg.staged import reference
from dpreg.staged.coefficients import coefficients
from dpreg.staged.flags import flags as flagged
from dpreg.staged.minimum import may_be_alone


@dataclass(frozen=True)
class Cell:
    """One setting of the grid."""

    p: int = 8
    n: int = 10_000
    eps: float = 1.0
    delta: float = 0.0
    rho: float = 0.5
    x: str = "normal"
    errors: str = "normal"
    rsq: float = 0.5
    intercept: bool = True
    missing: float = 0.0
    contributions: int = 1
    neighbors: str = "replace-one"

    @property
    def name(self) -> str:
        base = Cell()
        parts = [f"p{self.p} n{self.n:g} eps{self.eps:g} " + ("1e-6" if self.delta else "pure")]
        for key, value in asdict(self).items():
            if key not in ("p", "n", "eps", "delta") and value != getattr(base, key):
                parts.append(f"{key}={value}")
        return " ".join(parts)


LEVELS = np.array([0.45, 0.30, 0.17, 0.06, 0.02])


class Design:
    """Draws rows of a cell in box units, with the true coefficients (intercept first)."""

    def __init__(self, cell: Cell, rng: np.random.Generator) -> None:
        self.cell = cell
        p, pool = cell.p, int(min(2 * cell.n, cell.n + 100_000))
        index = np.arange(p)
        root = np.linalg.cholesky(
            cell.rho ** np.abs(index[:, None] - index) if cell.rho else np.eye(p)
        )
        x = rng.standard_normal((pool, p))
        if cell.x == "t3":
            x = x @ root.T / np.sqrt(rng.chisquare(3, (pool, 1)) / 3)
            x = np.clip(x / 10, -1, 1)
        elif cell.x == "uniform":
            x = rng.uniform(-1, 1, (pool, p))
        elif cell.x == "lognormal":
            x = np.clip(np.exp(x @ root.T) / 8 - 1, -1, 1)
        else:
            x = np.clip((x @ root.T) / 4 + 0.2, -1, 1)
        if cell.x == "factor":
            level = rng.choice(5, pool, p=LEVELS)
            for k in range(1, 5):
                x[:, k - 1] = level == k
        self.x = x
        raw = np.tile([1.0, -0.7, 0.4, 0.2, 0.0], p // 5 + 1)[:p]
        fitted = x @ raw
        spread = fitted.std()
        total = (
            1 / {"normal": 5, "t3": 10, "exponential": 7, "lognormal": 9, "hetero": 6}[cell.errors]
        )
        beta = raw * total * np.sqrt(cell.rsq) / spread
        self.sigma = total * np.sqrt(1 - cell.rsq)
        self.truth = np.append(0.1 if cell.intercept else 0.0, beta)
        if cell.intercept:
            self.truth[0] -= (x @ beta).mean()
        self.scale = x @ beta / (total * np.sqrt(cell.rsq) + 1e-12)

    def error(self, index: slice, size: int, rng: np.random.Generator) -> np.ndarray:
        kind = self.cell.errors
        if kind == "normal":
            return rng.standard_normal(size)
        if kind == "t3":
            return rng.standard_t(3, size) / np.sqrt(3)
        if kind == "exponential":
            return rng.exponential(size=size) - 1
        if kind == "lognormal":
            s = 0.8
            return (np.exp(s * rng.standard_normal(size)) - np.exp(s * s / 2)) / np.sqrt(
                (np.exp(s * s) - 1) * np.exp(s * s)
            )
        w = np.exp(0.4 * (self.scale[index] - self.scale.mean()))
        return rng.standard_normal(size) * w

    def draw(self, rng: np.random.Generator):
        n = self.cell.n
        start = int(rng.integers(len(self.x) - n + 1))
        index = slice(start, start + n)
        x = self.x[index]
        y = np.clip(
            self.truth[0] + x @ self.truth[1:] + self.sigma * self.error(index, n, rng), -1, 1
        )
        if self.cell.missing:
            complete = rng.random(n) >= self.cell.missing
            x, y = x[complete], y[complete]
        return x, y


def ols_errors(x, y, intercept: bool):
    z = np.column_stack([np.ones(len(x)), x]) if intercept else x
    gram = z.T @ z
    inverse = np.linalg.inv(gram)
    beta = inverse @ (z.T @ y)
    sigma2 = (y @ y - y @ z @ beta) / (len(y) - z.shape[1])
    return beta, np.sqrt(sigma2 * np.diag(inverse)), gram


def measure(cell: Cell, runs: int, seed: int = 1) -> dict:
    rng = np.random.default_rng([seed, cell.p, cell.n])
    design = Design(cell, rng)
    levels = tuple(range(4)) if cell.x == "factor" else ()
    setting = Setting(cell.eps, cell.delta, cell.neighbors, cell.contributions, 0, levels)
    columns = None if cell.intercept else list(range(1, cell.p + 1))
    first = 1 if cell.intercept else 0
    truth = design.truth if cell.intercept else design.truth[1:]
    names = [f"x{j}" for j in range(len(truth))]
    last = setting.strength(SHARES[cell.delta > 0][2])
    needed = rows_needed(cell.p + 1, last, cell.neighbors, gaussian=bool(cell.delta))
    alone = not cell.delta and may_be_alone(cell.n, needed, cell.p + 2)
    hits, widths, excess, zs, info, flags = [], [], [], [], [], []
    for _ in range(runs):
        x, y = design.draw(rng)
        run = staged(x, y, setting, cell.n, rng, stretched=True, alone=alone)
        fit = coefficients(run.law, columns)
        half = reference.quantiles(np.diag(fit.sampling), np.diag(fit.privacy), fit.degrees, 0.05)
        beta, bse, gram = ols_errors(x, y, cell.intercept)
        hits.append(np.abs(fit.params - truth) <= half)
        zs.append((fit.params - truth) / fit.errors)
        widths.append(half / (1.96 * bse))
        gap = fit.params - beta
        excess.append(gap @ gram @ gap / len(y) / design.sigma**2)
        look = run.looks[-1]
        info.append(
            [
                run.law.weight,
                run.law.eigenvalues[0] / run.law.noise_norm,
                look.coordinates.width / np.sqrt(run.law.residual),
                run.law.residual / design.sigma**2,
                fit.unresolved[first:].max(),
                run.law.heavy,
            ]
        )
        marks = flagged(run.law, fit, names, needed=needed)
        kinds = {mark.kind for mark in marks}
        heavy = {j for mark in marks if mark.kind == "heavy-residuals" for j in mark.columns}
        flags.append(
            [
                "rows" in kinds or "unseen" in kinds,
                first == 1 and 0 in heavy,
                max(heavy, default=-1) >= first,
            ]
        )
    hits, zs, widths = np.array(hits), np.array(zs), np.array(widths)
    info = np.median(np.array(info), axis=0)
    slopes = hits[:, first:]
    return {
        "cell": cell.name,
        "slopes": float(slopes.mean()),
        "worst": float(slopes.mean(axis=0).min()),
        "best": float(slopes.mean(axis=0).max()),
        "intercept": float(hits[:, 0].mean()) if cell.intercept else None,
        "width": float(np.median(widths[:, first:])),
        "iwidth": float(np.median(widths[:, 0])) if cell.intercept else None,
        "rms_z": float(np.sqrt((zs[:, first:] ** 2).mean())),
        "bias_z": float(zs[:, 0].mean()) if cell.intercept else None,
        "excess": float(np.mean(excess)),
        "weight": info[0],
        "least": info[1],
        "cut": info[2],
        "s2": info[3],
        "weak": info[4],
        "heavy": info[5],
        "over": cell.n / needed,
        "flagged": float(np.mean([mark[0] for mark in flags])),
        "iflagged": float(np.mean([mark[1] for mark in flags])),
        "sflagged": float(np.mean([mark[2] for mark in flags])),
        "runs": runs,
        "seed": seed,
    }


def line(found: dict) -> str:
    """One row of the table."""
    intercept = "-" if found["intercept"] is None else f"{found['intercept']:.3f}"
    width = "-" if found["iwidth"] is None else f"{found['iwidth']:.2f}"
    return (
        f"{found['cell']:58s} slopes {found['slopes']:.3f} "
        f"[{found['worst']:.3f}, {found['best']:.3f}] width {found['width']:6.2f} | "
        f"intercept {intercept} width {width} | n/nu {found['over']:6.1f} "
        f"lam/nu {found['least']:6.2f} weight {found['weight']:.2f} heavy {found['heavy']:.2f} | "
        f"flagged {found['flagged']:.2f}, tails: slopes {found['sflagged']:.2f} "
        f"intercept {found['iflagged']:.2f} | "
        f"{found['seconds']:.0f} s"
    )


VARIANTS = (
    {"rho": 0.0},
    {"rho": 0.9},
    {"x": "t3"},
    {"x": "lognormal"},
    {"errors": "exponential"},
    {"errors": "lognormal"},
    {"errors": "t3"},
    {"errors": "hetero"},
    {"x": "factor"},
    {"missing": 0.2},
    {"intercept": False},
    {"contributions": 3},
    {"neighbors": "add-remove"},
    {"rsq": 0.05},
    {"rsq": 0.95},
)


def grid() -> list[Cell]:
    """All cells: sizes, budgets, and one change at a time at two sample sizes."""
    base = Cell()
    deltas = (0.0, 1e-6)
    cells = [
        replace(base, p=p, n=n, delta=delta)
        for p in (5, 8, 15, 30)
        for n in (1_000, 10_000, 100_000)
        for delta in deltas
    ]
    for eps in (0.5, 2.0, 4.0):
        for delta in deltas:
            cells.append(replace(base, eps=eps, delta=delta))
            cells.append(replace(base, eps=eps, delta=delta, n=30_000, p=15))
    for change in VARIANTS:
        for delta in deltas:
            cells += [replace(base, n=n, delta=delta, **change) for n in (20_000, 100_000)]
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("method", nargs="?", default="staged", choices=["staged"])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", default="")
    parser.add_argument("--most", type=int, default=10**9, help="leave out cells with more rows")
    parser.add_argument("--out", type=Path, help="a line of JSON for each cell")
    parser.add_argument("--part", default="0/1", help="k/K: the k-th of K parts of the cells")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    k, parts = map(int, given.part.split("/"))
    cells = [c for c in grid() if given.only in c.name and c.n <= given.most][k::parts]
    cells.sort(key=lambda cell: cell.n)
    done = set()
    if given.out and given.out.exists():
        kept = map(json.loads, given.out.read_text(encoding="utf-8").splitlines())
        done = {(one["cell"], one["runs"], one["seed"]) for one in kept}
    for cell in cells:
        if (cell.name, given.runs, given.seed) in done:
            continue
        start = time.time()
        found = measure(cell, given.runs, given.seed)
        found["seconds"] = time.time() - start
        print(line(found), flush=True)
        if given.out:
            with given.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
