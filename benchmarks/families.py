"""Coverage and errors of `dp_glm`: simulated rows, and randhie beside other private regressions.

Coverage counts over simulated tables, with what is flagged (no intervals) told apart; the width is
relative to the intervals that statsmodels gives without privacy. Accuracy is the excess deviance a
row over the best coefficients, on the rows themselves; the peers' steps, clips and penalties are
the best of a grid, chosen with the answer in hand and at no cost, in their favour.

    python -m benchmarks.families coverage [--runs N] [--only WORD ...]
    python -m benchmarks.families choice [--runs N] [--only WORD ...]
    python -m benchmarks.families accuracy [--runs N]
"""

from __future__ import annotations

import argparse
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
import statsmodels.api as sm
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import chi2

import dpreg
from dpreg.privacy.gaussian import analytic_ratio

Floats = NDArray[np.float64]
DELTA = 1e-6
CAP = 20


@dataclass(frozen=True)
class Cell:
    """One setting of the coverage grid."""

    family: str
    rows: int
    columns: int
    eps: float
    delta: float = DELTA
    intercept: float = -0.5
    spread: float = 1.0  # standard deviation of the linear predictor
    scatter: float = 0.0  # of counts, beyond Poisson's

    @property
    def name(self) -> str:
        told = f"{self.family} n{self.rows} p{self.columns} eps{self.eps:g}"
        told += " pure" if not self.delta else ""
        told += f" b{self.intercept:g}" if self.intercept != -0.5 else ""
        told += f" sd{self.spread:g}" if self.spread != 1 else ""
        return told + (f" scatter{self.scatter:g}" if self.scatter else "")


def _cells() -> Iterator[Cell]:
    sizes = ((1_000, 5), (10_000, 5), (10_000, 15), (30_000, 30), (100_000, 15))
    for (rows, columns), eps in itertools.product(sizes, (0.5, 1.0, 4.0)):
        yield Cell("binomial", rows, columns, eps)
    for rows, eps in ((10_000, 2.0), (100_000, 1.0), (30_000, 4.0)):
        yield Cell("binomial", rows, 5, eps, delta=0)
        yield Cell("binomial", rows, 15, eps, delta=0)
    yield Cell("binomial", 10_000, 5, 1.0, intercept=-3.0)
    yield Cell("binomial", 100_000, 5, 1.0, intercept=-4.5)
    yield Cell("binomial", 10_000, 15, 1.0, spread=2.0)
    yield Cell("binomial", 10_000, 5, 4.0, spread=0.0)
    for (rows, columns), eps in itertools.product(sizes[1:], (1.0, 4.0)):
        yield Cell("poisson", rows, columns, eps, intercept=0.7, spread=0.5)
    for rows, eps in ((10_000, 4.0), (30_000, 2.0), (100_000, 1.0)):
        yield Cell("poisson", rows, 5, eps, intercept=0.7, spread=0.5, scatter=0.5)
    yield Cell("poisson", 30_000, 5, 4.0, delta=0, intercept=0.7, spread=0.5)
    yield Cell("poisson", 100_000, 15, 4.0, delta=0, intercept=0.7, spread=0.5)


CELLS = tuple(_cells())


def simulated(cell: Cell, rng: np.random.Generator) -> tuple[pd.DataFrame, Floats]:
    """Draw a table of nobody's, and return the true coefficients with it."""
    p, n = cell.columns, cell.rows
    x = np.clip(rng.standard_normal((n, p)) / 3, -1, 1)
    slopes = np.zeros(p)
    used = max(p // 2, 1)
    slopes[:used] = cell.spread * 3 / math.sqrt(used) * np.where(np.arange(used) % 2, 1, -1)
    eta = cell.intercept + x @ slopes
    if cell.family == "binomial":
        y = (rng.random(n) < 1 / (1 + np.exp(-eta))) * 1
    else:
        mean = np.exp(eta)
        if cell.scatter:
            mean = mean * rng.gamma(1 / cell.scatter, cell.scatter, n)
        y = rng.poisson(mean)  # cut at a cap that is hardly ever reached
    names = [f"x{j}" for j in range(p)]
    return pd.DataFrame(x, columns=names).assign(y=y), np.append(cell.intercept, slopes)


def family_of(name: str) -> sm.families.Family:
    return sm.families.Binomial() if name == "binomial" else sm.families.Poisson()


def coverage(cell: Cell, runs: int) -> str:
    """Count how often the intervals of a cell hold, and return its line of the table."""
    names = [f"x{j}" for j in range(cell.columns)]
    top = 1 if cell.family == "binomial" else 3 * CAP if cell.scatter else CAP
    schema = {**dict.fromkeys(names, (-1, 1)), "y": (0, top)}
    inside, widths, flagged, reasons = [], [], 0, {}
    for run in range(runs):
        table, truth = simulated(cell, np.random.default_rng([cell.rows, cell.columns, run]))
        if run == 0:
            design = sm.add_constant(table[names])
            whole = sm.GLM(table["y"], design, family=family_of(cell.family))
            plain = whole.fit(scale="X2" if cell.family == "poisson" else None).bse.to_numpy()
        fit = dpreg.dp_glm(
            f"y ~ {' + '.join(names)}",
            table,
            cell.eps,
            delta=cell.delta,
            family=cell.family,
            schema=schema,
            unsafe_seed=run,
        )
        if fit.bse.isna().all():
            flagged += 1
            reason = fit.notes[0].split(":")[0].split(",")[0]
            word = " ".join(w for w in reason.split() if not any(map(str.isdigit, w)))[:28]
            reasons[word] = reasons.get(word, 0) + 1
            continue
        low, high = fit.conf_int().to_numpy().T
        inside.append((low < truth) & (truth < high))
        widths.append((fit.bse / plain).to_numpy())
    if not inside:
        return f"{cell.name:42} flagged 1.00 {reasons}"
    hit, wide = np.mean(inside, axis=0), np.median(widths)
    told = f"flagged {flagged / runs:.2f}  intercept {hit[0]:.3f}  slopes {hit[1:].mean():.3f}"
    return f"{cell.name:42} {told} (least {hit[1:].min():.3f})  width {wide:.2f} {reasons or ''}"


# ---- choices -----------------------------------------------------------------------------------


def _choices() -> Iterator[Cell]:
    yield Cell("binomial", 10_000, 5, 0.5)
    yield Cell("binomial", 10_000, 15, 1.0, spread=0.5)
    yield Cell("binomial", 10_000, 5, 0.5, intercept=-3.0)
    yield Cell("binomial", 10_000, 5, 4.0, spread=0.0)
    yield Cell("binomial", 30_000, 15, 4.0, delta=0, spread=0.2)
    yield Cell("poisson", 30_000, 5, 1.0, intercept=0.7, spread=0.2)
    for spread in (0.05, 0.1, 0.2):
        yield Cell("binomial", 100_000, 15, 1.0, spread=spread)


CHOICES = tuple(_choices())


def choice(cell: Cell, runs: int) -> str:
    """Count what a choice finds, and what is useless, beside Wald's tests without privacy.

    Those keep the terms with p below .1 over the number of candidates: as many useless ones are
    expected as of the private choice, at most.
    """
    p = cell.columns
    names, used = [f"x{j}" for j in range(p)], max(p // 2, 1) if cell.spread else 0
    top = 1 if cell.family == "binomial" else CAP
    schema = {**dict.fromkeys(names, (-1, 1)), "y": (0, top)}
    found, useless, plain, missed = [], [], [], []
    for run in range(runs):
        table, truth = simulated(cell, np.random.default_rng([cell.rows, p, run]))
        result = dpreg.dp_select(
            f"y ~ {' + '.join(names)}",
            table,
            cell.eps,
            delta=cell.delta,
            family=cell.family,
            schema=schema,
            unsafe_seed=run,
        )
        chosen = [int(name[1:]) for name in result.selected[1:]]
        found.append(sum(j < used for j in chosen))
        useless.append(sum(j >= used for j in chosen))
        whole = sm.GLM(table["y"], sm.add_constant(table[names]), family=family_of(cell.family))
        tested = whole.fit(scale="X2" if cell.family == "poisson" else None).pvalues[1:] < 0.1 / p
        plain.append(int(tested.to_numpy()[:used].sum()))
        if result.regression is not None and result.bse.notna().all():
            low, high = result.conf_int().to_numpy().T
            at = np.append(0, 1 + np.array([int(name[1:]) for name in result.best[1:]], dtype=int))
            missed.append(np.mean((truth[at] < low) | (truth[at] > high)))
    most = chi2.ppf(0.99, 2 * (sum(useless) + 1)) / 2 / runs
    told = f"found {np.mean(found):.2f} of {used}, Wald {np.mean(plain):.2f}"
    covered = f"coverage {1 - np.mean(missed):.3f} in {len(missed)}" if missed else "no intervals"
    return f"{cell.name:42} {told}; useless {np.mean(useless):.3f} (99%: {most:.3f}); {covered}"


# ---- accuracy beside peers ---------------------------------------------------------------------


def _loss(y: Floats, eta: Floats, family: str) -> Floats:
    """Half the deviance a row, up to what depends on y alone."""
    if family == "binomial":
        return np.logaddexp(0, eta) - y * eta
    return np.exp(np.clip(eta, -30, math.log(CAP) + 2)) - y * eta


def _mean(eta: Floats, family: str) -> Floats:
    if family == "binomial":
        return 1 / (1 + np.exp(-eta))
    return np.exp(np.clip(eta, -30, math.log(CAP) + 2))


def objective_perturbation(
    x: Floats, y: Floats, family: str, eps: float, rng: np.random.Generator
) -> Iterator[Floats]:
    """Kifer, Smith and Thakurta (2012), logistic loss; replaced rows: twice the gradient."""
    if family != "binomial":
        return
    for radius in (0.5, 1.0):
        longest = radius * math.sqrt(x.shape[1])
        rows = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True) / longest, 1.0) / longest
        noise = 2 * rng.standard_normal(x.shape[1])
        noise *= math.sqrt(8 * math.log(2 / DELTA) + 4 * eps) / eps
        penalty = 0.5 / eps

        def loss(b: Floats, rows: Floats = rows, noise: Floats = noise, k: float = penalty):
            eta = rows @ b
            value = _loss(y, eta, family).sum() + noise @ b + k / 2 * b @ b
            return value, rows.T @ (_mean(eta, family) - y) + noise + k * b

        yield minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x / longest


def gradient_descent(
    x: Floats, y: Floats, family: str, eps: float, rng: np.random.Generator
) -> Iterator[Floats]:
    """Full-batch DP-GD with exact Gaussian accounting, on columns in their box as they are."""
    mu = analytic_ratio(Fraction(eps), Fraction(DELTA))
    n = len(x)
    unit = 1.0 if family == "binomial" else 3.0
    rates = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
    grid = itertools.product((10, 30, 100, 300), (0.5, 1.0, 3.0), rates)
    for steps, clip, rate in grid:
        limit, b = clip * unit, np.zeros(x.shape[1])
        sd = 2 * limit * math.sqrt(steps) / mu
        for _ in range(steps):
            each = x * (_mean(x @ b, family) - y)[:, None]
            each /= np.maximum(np.linalg.norm(each, axis=1, keepdims=True) / limit, 1.0)
            b = b - rate / unit * (each.sum(axis=0) + sd * rng.standard_normal(len(b))) / n
        yield b


PEERS: dict[str, Callable[..., Iterator[Floats]]] = {
    "objective perturbation": objective_perturbation,
    "DP-GD": gradient_descent,
}


def _tables() -> Iterator[tuple[str, str, str, pd.DataFrame, dict[str, object]]]:
    rand = dpreg.datasets.load_randhie()
    formula = "lncoins + idp + lpi + fmde + physlm + disea + hlthg + hlthf + hlthp"
    data = rand.data.assign(any=(rand.data["mdvis"] > 0) * 1)
    schema = {**dict(rand.schema), "any": (0, 1)}
    yield "randhie, any visit", "binomial", f"any ~ {formula}", data, schema
    yield "randhie, visits", "poisson", f"mdvis ~ {formula}", data, schema
    for family, intercept, spread in (("binomial", -0.5, 1.0), ("poisson", 0.7, 0.5)):
        for rows, columns in ((10_000, 5), (10_000, 15), (100_000, 15)):
            cell = Cell(family, rows, columns, 1.0, intercept=intercept, spread=spread)
            table, _ = simulated(cell, np.random.default_rng(rows + columns))
            names = [f"x{j}" for j in range(columns)]
            bounds = {**dict.fromkeys(names, (-1, 1)), "y": (0, 1 if family == "binomial" else CAP)}
            told = f"simulated n{rows} p{columns}"
            yield told, family, f"y ~ {' + '.join(names)}", table, bounds


def accuracy(runs: int) -> Iterator[str]:
    """Compare mean excess deviance, each peer at its best of a grid."""
    for name, family, formula, table, schema in _tables():
        response, _, right = formula.partition(" ~ ")
        columns = right.split(" + ")
        low, high = np.array(
            [
                tuple(schema[c])[:2]
                if isinstance(schema[c], tuple)
                else (schema[c].lo, schema[c].hi)
                for c in columns
            ]
        ).T
        x = (table[columns].to_numpy(float) - (low + high) / 2) / ((high - low) / 2)
        x = np.column_stack([np.ones(len(x)), x])
        y = np.clip(table[response].to_numpy(float), 0, 1 if family == "binomial" else CAP)
        best = sm.GLM(y, x, family=family_of(family)).fit()
        least = _loss(y, x @ best.params, family).mean()

        def excess(eta: Floats, y=y, family=family, least=least) -> float:
            return float(2 * (_loss(y, eta, family).mean() - least))

        for eps in (0.5, 1.0, 2.0):
            ours = []
            for seed in range(runs):
                fit = dpreg.dp_glm(
                    formula, table, eps, delta=DELTA, family=family, schema=schema, unsafe_seed=seed
                )
                ours.append(excess(fit.predict(table, which="linear").to_numpy()))
            told = [f"{name:24} {family:9} eps {eps:<4g} dpreg {np.mean(ours):.5f}"]
            for peer, run in PEERS.items():
                found = []
                for seed in range(max(runs // 4, 3)):
                    rng = np.random.default_rng(seed)
                    found.append([excess(x @ b) for b in run(x, y, family, eps, rng)])
                if found[0]:
                    told.append(f"{peer} {np.mean(found, axis=0).min():.5f}")
            yield "  ".join(told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("coverage", "choice", "accuracy"))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", nargs="*", default=())
    told = parser.parse_args()
    warnings.simplefilter("ignore", dpreg.errors.DpregWarning)
    if told.what == "accuracy":
        for line in accuracy(told.runs):
            print(line, flush=True)
        return
    cells, count = (CELLS, coverage) if told.what == "coverage" else (CHOICES, choice)
    for cell in cells:
        if all(word in cell.name.split() for word in told.only):
            print(count(cell, told.runs), flush=True)


if __name__ == "__main__":
    main()
