"""Accuracy of private linear regression: dpreg's joint release beside its peers.

    python -m benchmarks.regression [--quick] [--out FILE]

Rows are uniform on [-1, 1]^p, y = x'beta + N(0, 0.2^2) cut to [-1, 1], |beta|^2 = 0.14 for every
p, no intercept (all peers fit the same model on the same rows; AdaSSP and SSP see rows divided by
sqrt(p), so that their norm is at most 1). Add-remove neighbours, the relation whose sensitivities
the published AdaSSP constants use. eps = 1, delta = 1e-6; diffprivlib's LinearRegression is pure
at eps = 1 and gets the true bounds.

Two errors, both sums of squares over the p coefficients and means over repetitions: against the
true coefficients, and against the non-private OLS fit of the same rows (what privacy alone costs;
at n = 1e6 the former is mostly sampling error, the same for all).

Goals: gram never worse than the best peer by more than 5%; against adassp-wang, for p <= 15 and
n >= 1e4, at least twice as good in what privacy costs.

This is a benchmark of errors, not of privacy: noise comes from a seed.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np

from dpreg.estimation import perturbed
from dpreg.estimation.gram import release_gram
from dpreg.estimation.inference import fit_gram
from dpreg.moments import accumulate
from dpreg.privacy.account import Account, Part
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection

EPS, DELTA, NEIGHBORS = Fraction(1), Fraction("1e-6"), "add-remove"
REPETITIONS = {1_000: 100, 10_000: 40, 100_000: 12, 1_000_000: 3}
SIZES = (5, 15, 30)

Fit = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


def coefficients(p: int) -> np.ndarray:
    """Effects of mixed size, a fifth of them zero."""
    return np.tile([0.3, -0.2, 0.1, 0.05, 0.0], 6)[:p] * (5 / p) ** 0.5


def ols(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.linalg.solve(x.T @ x, x.T @ y)


def _part(rng: np.random.Generator) -> Part:
    account = Account(Protection(NEIGHBORS), Budget(EPS, DELTA), rng)
    part = account.line("coefficients", "gram release", account.budget)
    account.charge(None, "a benchmark")
    return part


def gram(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    p = x.shape[1]
    z = np.column_stack([np.ones(len(x)), x, y])
    noisy = release_gram(
        accumulate([z], p + 2),
        range(1, p + 1),
        part=_part(rng),
    )
    return fit_gram(noisy, draws=2).beta


def peer(method: str, noise: str) -> Fit:
    def fit(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        root = x.shape[1] ** 0.5
        found = getattr(perturbed, method)(
            x / root, y, eps=EPS, delta=DELTA, noise=noise, neighbors=NEIGHBORS, rng=rng
        )
        return found.params / root

    return fit


def diffprivlib(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    from diffprivlib.models import LinearRegression

    model = LinearRegression(
        epsilon=float(EPS),
        bounds_X=(-1, 1),
        bounds_y=(-1, 1),
        fit_intercept=False,
        random_state=int(rng.integers(2**31)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(model.fit(x, y).coef_).ravel()


def methods() -> dict[str, Fit]:
    found: dict[str, Fit] = {"ols": ols, "gram": gram}
    for noise in ("wang", "classical", "analytic"):
        found[f"adassp-{noise}"] = peer("adassp", noise)
    found["ssp-analytic"] = peer("ssp", "analytic")
    if importlib.util.find_spec("diffprivlib"):
        found["diffprivlib"] = diffprivlib
    return found


def measure(p: int, n: int, repetitions: int, seed: int) -> dict[str, tuple[float, float]]:
    """Mean squared errors of each method: (against the truth, against OLS)."""
    rng = np.random.default_rng(seed)
    beta = coefficients(p)
    errors: dict[str, list[tuple[float, float]]] = {}
    for _ in range(repetitions):
        x = rng.uniform(-1, 1, (n, p))
        y = np.clip(x @ beta + rng.normal(0, 0.2, n), -1, 1)
        exact = ols(x, y, rng)
        for name, fit in methods().items():
            found = exact if name == "ols" else fit(x, y, rng)
            pair = float(((found - beta) ** 2).sum()), float(((found - exact) ** 2).sum())
            errors.setdefault(name, []).append(pair)
    return {name: tuple(np.mean(found, axis=0)) for name, found in errors.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="n up to 1e4, few repetitions")
    parser.add_argument("--out", type=Path, help="write the table here too")
    options = parser.parse_args()
    if "diffprivlib" not in methods():
        print("diffprivlib is not installed: left out", file=sys.stderr)
    lines, missed = [], []
    for p in SIZES:
        for n, repetitions in REPETITIONS.items():
            if options.quick and n > 10_000:
                continue
            started = time.perf_counter()
            found = measure(p, n, 10 if options.quick else repetitions, seed=n + p)
            if not lines:
                lines.append("| p | n | " + " | ".join(found) + " | best peer/gram | wang/gram |")
                lines.append("|---" * (len(found) + 4) + "|")
            peers = {name: pair for name, pair in found.items() if name not in ("ols", "gram")}
            best = min(pair[0] for pair in peers.values()) / found["gram"][0]
            wang = peers["adassp-wang"][1] / found["gram"][1]
            cells = [f"{found[k][0]:.3g} ({found[k][1]:.3g})" if k in found else "-"
                     for k in ("ols", "gram", *peers)]  # fmt: skip
            lines.append(f"| {p} | {n:,} | " + " | ".join(cells) + f" | {best:.2f} | {wang:.2f} |")
            print(lines[-1], f"{time.perf_counter() - started:.0f} s", flush=True)
            if best < 1 / 1.05:
                missed.append(f"p={p}, n={n:,}: a peer is better by more than 5%")
            if p <= 15 and n >= 10_000 and wang < 2:
                missed.append(f"p={p}, n={n:,}: less than twice as good as adassp-wang")
    text = "\n".join([*lines, "", *(missed or ["All goals met."])]) + "\n"
    print("\n" + text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
