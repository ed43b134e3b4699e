"""Other private ways to choose terms, each under several settings; used by `benchmarks.power`.

*0.1*: `dp_select(method="pcls")`, penalised constrained least squares by permute-and-flip, under
the default radius and others; the exact mechanism, from a seed.

*stepwise*: forward selection. In each of T steps permute-and-flip takes the column of the largest
|x'r|, r the residuals cut at tau; a noisy value of that sum decides whether to go on: it must
exceed the upper .1/q quantile of its noise. |x'r| changes by at most 2 tau if a row is replaced. T
steps share eps equally; with delta they share mu^2/2, the zCDP of the Gaussian mechanism at
(eps, delta), permute-and-flip costing eps^2/8. In its favour: columns are centred and residuals are
those of least squares on the terms so far, exactly, for which nothing is charged.

*noisy moments*: all moments are released once, by the noise that dpreg's first look would take
with the whole budget; eigenvalues below the noise are raised to it; then backward elimination by
BIC, its penalty multiplied. In its favour: the number of rows is exact, and the multiplier the best
with hindsight.

Every setting is listed under a name of its own: `benchmarks.power --table` shows, for each cell and
peer, the setting that found the most among those with at most .15 useless terms, which nobody could
know.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd

import dpreg
from benchmarks._power_cells import Cell
from dpreg.looks.plan import plan_looks
from dpreg.privacy.budget import Budget, exact
from dpreg.privacy.gaussian import analytic_ratio
from dpreg.privacy.proofs import CELL_UNITS
from dpreg.privacy.protection import Protection

__all__ = ["choices", "noisy_moments", "stepwise"]

RADII = (None, 0.25, 0.5, 2.0)
STEPS, CUTS = (2, 4, 8), (0.15, 0.5)
MULTIPLIERS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_LISTED = 12
"""Up to so many units 0.1 lists its models: in thousands of runs a tree takes too long."""


def choices(
    x: np.ndarray, y: np.ndarray, cell: Cell, rng: np.random.Generator
) -> dict[str, set[int]]:
    """Return the units that each peer chooses under each of its settings."""
    found = {}
    if cell.p <= _LISTED and cell.n <= 100_000:
        frame = pd.DataFrame(x, columns=[f"x{i}" for i in range(x.shape[1])]).assign(y=y)
        for radius in RADII:
            named = "default radius" if radius is None else f"radius {radius:g}"
            found[f"0.1: {named}"] = _before(frame, cell, radius, rng)
    for steps in STEPS:
        for cut in CUTS:
            found[f"stepwise: {steps} steps, cut {cut:g}"] = stepwise(
                x, y, steps, cut, cell.eps, cell.delta, rng
            )
    moments = noisy_moments(x, y, cell.eps, cell.delta, rng)
    for times in MULTIPLIERS:
        found[f"noisy moments: BIC x{times:g}"] = _backward(moments, len(y), times)
    return found


def _before(
    frame: pd.DataFrame, cell: Cell, radius: float | None, rng: np.random.Generator
) -> set[int]:
    names = [c for c in frame.columns if c != "y"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = dpreg.dp_select(
            "y ~ " + " + ".join(names),
            frame,
            eps=str(cell.eps),
            schema=dict.fromkeys(frame.columns, (-1, 1)),
            fit=None,
            progress=False,
            unsafe_seed=int(rng.integers(2**31)),
            method=dpreg.PCLS(radius=None if radius is None else str(radius)),
        )
    return {names.index(term) for term in result.selected if term in names}


def stepwise(
    x: np.ndarray,
    y: np.ndarray,
    steps: int,
    cut: float,
    eps: float,
    delta: float,
    rng: np.random.Generator,
) -> set[int]:
    """Return what forward selection takes, columns being units."""
    x, y = x - x.mean(axis=0), y - y.mean()
    reach = 2 * cut
    if delta:
        each = analytic_ratio(exact(eps, "eps"), exact(delta, "delta")) ** 2 / 2 / steps
        rate, sd = math.sqrt(8 * each / 2), reach / math.sqrt(each)
        threshold = sd * math.sqrt(2 * math.log(x.shape[1] / 0.1))
    else:
        rate, sd = eps / steps / 2, reach * 2 * steps / eps
        threshold = sd * math.log(x.shape[1] / 0.1)
    chosen: list[int] = []
    residual = y
    for _ in range(min(steps, x.shape[1])):
        sums = np.abs(x.T @ np.clip(residual, -cut, cut))
        sums[chosen] = -np.inf
        # Permute-and-flip draws as adding exponential noise of scale 2 reach / rate does.
        at = int(np.argmax(sums + rng.exponential(2 * reach / rate, len(sums))))
        noise = rng.standard_normal() * sd if delta else rng.laplace(0, sd)
        if sums[at] + noise < threshold:
            break
        chosen.append(at)
        residual = y - x[:, chosen] @ np.linalg.lstsq(x[:, chosen], y, rcond=None)[0]
    return set(chosen)


def noisy_moments(
    x: np.ndarray, y: np.ndarray, eps: float, delta: float, rng: np.random.Generator
) -> np.ndarray:
    """Return centred second moments of (x, y), released once, eigenvalues raised to the noise."""
    z = np.column_stack([np.ones(len(x)), x, y])
    plan = plan_looks(
        x.shape[1], Budget(exact(eps, "eps"), exact(delta, "delta")), Protection("replace-one")
    )
    noise = replace(plan, strength=plan.strength / plan.shares()[0]).box_noise()
    cells = z.T @ z + np.array(noise.simulate(rng), dtype=float) / CELL_UNITS
    means = cells[0, 1:] / len(y)
    centred = cells[1:, 1:] - len(y) * np.outer(means, means)
    values, vectors = np.linalg.eigh(centred)
    least = 2 * math.sqrt(float((noise.sd[1:, 1:] ** 2).sum(axis=1).max()))
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def _backward(moments: np.ndarray, n: int, times: float) -> set[int]:
    kept = list(range(len(moments) - 1))
    while kept:
        inverse = np.linalg.inv(moments[np.ix_(kept, kept)])
        slopes = inverse @ moments[kept, -1]
        left = max(moments[-1, -1] - slopes @ moments[kept, -1], 1e-9 * moments[-1, -1])
        losses = n * np.log1p(slopes**2 / np.diag(inverse) / left) - times * math.log(n)
        worst = int(np.argmin(losses))
        if losses[worst] > 0:
            break
        kept.pop(worst)
    return set(kept)
