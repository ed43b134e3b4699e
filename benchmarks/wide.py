"""Coverage of intervals that are made of few draws: models of 180 to 300 columns.

Intervals of ridged fits, and under noise that is not Gaussian, come from draws of the truth given
the release: 2,000 of them up to 80 columns, 200 from 173 on. Here 200 stand beside more on the
same releases, with the truth known. Coverage of 95% and of 99% intervals is averaged over all
slopes; the standard error is that of the means of runs, since the slopes of one release are not
independent. The constant is one number a run.

    python -m benchmarks.wide [--runs N] [--only TEXT] [--draws 200 2000]

This is a benchmark of coverage, not of privacy: noise comes from a seed.
"""

import argparse
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.stats import norm

from dpreg.arrays import MOMENT_BITS
from dpreg.estimation.gram import NoisyGram, release_gram
from dpreg.estimation.inference import GramFit, fit_gram, intervals
from dpreg.moments import Moments
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection

ERROR = 0.15


@dataclass(frozen=True)
class Cell:
    """p columns with the constant, n rows, a budget and its noise."""

    p: int
    n: int
    eps: str
    delta: str
    noise: str

    def __str__(self) -> str:
        """Name the cell."""
        return f"p={self.p} n={self.n:,} eps={self.eps} delta={self.delta} {self.noise}"


CELLS = [
    Cell(p, n, eps, delta, noise)
    for p in (180, 300)
    for n, eps, delta, noise in [
        (200_000, "1", "0", "matrix-laplace"),
        (5_000_000, "1", "0", "matrix-laplace"),
        (20_000_000, "8", "0", "matrix-laplace"),
        (20_000_000, "8", "0", "laplace"),
        (1_000_000, "1", "1e-6", "gaussian"),
    ]
]


def moments(cell: Cell, truth: np.ndarray, rng: np.random.Generator) -> Moments:
    """Draw the moments of rows of correlated columns, of the law that real rows would give them."""
    p = cell.p
    lags = 0.5 ** np.abs(np.subtract.outer(range(p - 1), range(p - 1))) / 9
    rows = rng.multivariate_normal(np.zeros(p - 1), lags, 20 * p)
    rows = np.column_stack([np.ones(len(rows)), np.clip(rows, -1, 1)])
    gram = rows.T @ rows * (cell.n / len(rows))
    beside = np.linalg.cholesky(gram) @ rng.normal(0, ERROR, p)  # x'errors
    squared = ERROR**2 * rng.chisquare(cell.n - p) + beside @ np.linalg.solve(gram, beside)
    cross = gram @ truth + beside
    total = truth @ gram @ truth + 2 * truth @ beside + squared
    whole = np.block([[gram, cross[:, None]], [cross, np.array([[total]])]])
    cells = [[int(value) << (MOMENT_BITS - 20) for value in row] for row in np.rint(whole * 2**20)]
    return Moments(cell.n, tuple(map(tuple, cells)))


def released(cell: Cell, exact: Moments, rng: np.random.Generator) -> NoisyGram:
    """Release all of them, with seeded noise."""
    account = Account(Protection("replace-one", 1), Budget(cell.eps, cell.delta), rng)
    part = account.line("coefficients", "gram release", Budget(cell.eps, cell.delta))
    account.charge(None, "a benchmark")
    return release_gram(exact, range(cell.p), part=part, noise=cell.noise)


def covered(fit: GramFit, truth: np.ndarray) -> list[float]:
    """Return what share of slopes, and whether the constant, is in its interval of 95% and 99%.

    Last comes the mean width of the slopes' 95% intervals.
    """
    shares: list[float] = []
    for alpha in (0.05, 0.01):
        low, high = _ends(fit, alpha).T
        held = (low <= truth) & (truth <= high)
        shares += [float(held[1:].mean()), float(held[0])]
    return [*shares, float(np.diff(_ends(fit, 0.05)[1:]).mean())]


def _ends(fit: GramFit, alpha: float) -> np.ndarray:
    if fit.draws is not None:
        return intervals(fit.beta, fit.draws, alpha)
    half = norm.ppf(1 - alpha / 2) * np.sqrt(np.diag(fit.cov))
    return np.column_stack([fit.beta - half, fit.beta + half])


def run(cell: Cell, runs: int, draws: list[int], seed: int) -> None:
    """Print one line for each number of draws."""
    rng = np.random.default_rng([seed, cell.p, cell.n, Fraction(cell.eps).numerator])
    found: dict[int, list[list[float]]] = {number: [] for number in draws}
    ridged = 0
    for _ in range(runs):
        truth = np.append(0.1, rng.normal(0, 0.3 / np.sqrt(cell.p), cell.p - 1))
        noisy = released(cell, moments(cell, truth, rng), rng)
        for number in draws:
            fit = fit_gram(noisy, rows=cell.n, draws=number)
            found[number].append(covered(fit, truth))
        ridged += fit.ridged
    for number, each in found.items():
        slopes, constant, slopes99, constant99, width = np.mean(each, axis=0)
        error, _, error99, *_ = np.std(each, axis=0, ddof=1) / np.sqrt(runs)
        print(
            f"{cell!s:56} draws={number:5} runs={runs} ridged={ridged:3} "
            f"slopes: 95%={slopes:.4f} se={error:.4f} 99%={slopes99:.4f} se={error99:.4f} "
            f"constant: 95%={constant:.3f} 99%={constant99:.3f} width={width:.4g}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--draws", type=int, nargs="+", default=[200])
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    for cell in CELLS:
        if asked.only in str(cell):
            run(cell, asked.runs, asked.draws, asked.seed)
