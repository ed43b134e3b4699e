"""The simulation of Lei et al. (2018), section 5.1, from exact probabilities.

Rows are simulated from a linear model; per data set the chance of the right model is computed from
the mechanism's law (`dpreg.study.batched`), so what is left of Monte Carlo is the sampling of data
sets. Each data set is reduced to moments, all models of all data sets are scored at once, and
every penalty, eps, scale and mechanism reuses the scores.

Units are the paper's: the response is not divided by its bound r, and R bounds |beta|_1 as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Final

import numpy as np
import pandas as pd

from dpreg.arrays import Bools, Floats, Ints
from dpreg.running import bar
from dpreg.selection.probabilities import useless_term_penalty
from dpreg.selection.scoring import candidates as constrained
from dpreg.study.batched import target_probability

__all__ = [
    "KEYS",
    "OBSERVED",
    "DataSets",
    "SimulationDesign",
    "all_models",
    "run",
    "scores",
    "simulate",
]


OBSERVED: Final = "observed"
"""The bound r = max |y| of each data set, as in the paper; the privacy budget does not cover it."""

KEYS: Final = ["n", "bound", "radius", "eps", "mechanism", "neighbors", "scale"]

_TOGETHER: Final = 16  # work: data sets that one block-diagonal problem holds
_ROWS: Final = 2**21  # simulated cells at a time


@dataclass(frozen=True, slots=True)
class SimulationDesign:
    """What is simulated and compared.

    Attributes
    ----------
    beta : float64 array, shape (p,)
    sigma : float
        Standard deviation of the normal errors.
    sizes : tuple of int
        Numbers of rows n.
    radii, eps : tuple of Fraction
    fractions : tuple of float
        Penalties phi as parts of n.
    false_inclusions : Fraction or None
        Where given, ``penalty="auto"`` is tried as well.
    mechanisms, neighbors, scales : tuples of str
    bounds : tuple of Fraction or "observed"
    empty : bool
        Whether the model without any column counts (2**p models, else 2**p - 1).
    datasets, seed : int
    """

    beta: Floats
    sigma: float
    sizes: tuple[int, ...]
    radii: tuple[Fraction, ...]
    eps: tuple[Fraction, ...]
    fractions: tuple[float, ...]
    false_inclusions: Fraction | None
    mechanisms: tuple[str, ...]
    neighbors: tuple[str, ...]
    scales: tuple[str, ...]
    bounds: tuple[Fraction | str, ...]
    empty: bool
    datasets: int
    seed: int

    @property
    def cells(self) -> int:
        """How many combinations of n, bound and radius are scored."""
        return len(self.sizes) * len(self.bounds) * len(self.radii)


@dataclass(frozen=True, slots=True)
class DataSets:
    """Moments of B simulated data sets.

    Attributes
    ----------
    gram : (B, p, p)
    cross : (B, p)
    bound : (B,)
        r of each data set.
    """

    gram: Floats
    cross: Floats
    bound: Floats


def simulate(design: SimulationDesign, n: int, bound: Fraction | str) -> DataSets:
    """Draw the data sets: columns uniform on [-1, 1], normal errors, responses clipped at r.

    The same seed gives the same rows whatever the bound, so that bounds are compared on one sample.
    """
    rng = np.random.default_rng([design.seed, n])
    p, count = len(design.beta), design.datasets
    gram, cross, largest = np.empty((count, p, p)), np.empty((count, p)), np.empty(count)
    step = max(1, _ROWS // (n * p))
    for start in range(0, count, step):
        part = slice(start, min(start + step, count))
        x = rng.uniform(-1.0, 1.0, size=(part.stop - start, n, p))
        y = x @ design.beta + design.sigma * rng.standard_normal((part.stop - start, n))
        if isinstance(bound, Fraction):
            y = np.clip(y, -float(bound), float(bound))
            largest[part] = float(bound)
        else:
            largest[part] = np.abs(y).max(axis=1)
        turned = x.swapaxes(1, 2)
        gram[part] = turned @ x
        cross[part] = (turned @ y[:, :, None])[:, :, 0]
    return DataSets(gram, cross, largest)


def all_models(p: int, empty: bool) -> Bools:
    """List the sets of p columns in binary counting order, bool (K, p)."""
    listed = (np.arange(2**p)[:, None] >> np.arange(p)) & 1 == 1
    return np.asarray(listed if empty else listed[1:])


def scores(data: DataSets, models: Bools, radius: float) -> Floats:
    """Return F_R(M) = min of beta'G beta - 2 b'beta over |beta|_1 <= R, for each data set: (B, K).

    Several data sets make one block-diagonal problem, of which each model sees one block.
    """
    count, p = data.cross.shape
    out = np.empty((count, len(models)))
    for start in range(0, count, _TOGETHER):
        blocks = range(start, min(start + _TOGETHER, count))
        size = len(blocks) * p
        gram = np.zeros((size, size))
        columns = np.zeros((len(blocks) * len(models), size), dtype=np.bool_)
        for i, b in enumerate(blocks):
            own = slice(i * p, (i + 1) * p)
            gram[own, own] = data.gram[b]
            columns[i * len(models) : (i + 1) * len(models), own] = models
        cross = data.cross[start : blocks.stop].ravel()
        beta = constrained.solve(gram, cross, radius, columns).beta
        value = ((beta @ gram) * beta).sum(axis=1) - 2 * beta @ cross
        out[start : blocks.stop] = value.reshape(len(blocks), len(models))
    return out


def rates(bound: Floats, radius: float, eps: float, neighbors: str, scale: str) -> Floats:
    """Return t for each data set: one over the noise scale.

    "paper" is eps / (2 (r + R)^2), the paper's. "range" is eps over the range of the changes of
    the scores, 2 w r^2 under replace-one and w r^2 under add-remove, w the range of one row's loss
    (`dpreg.privacy.proofs.loss_range`, without the trifle for rounding to the grid).
    """
    if scale == "paper":
        return np.asarray(eps / (2 * (bound + radius) ** 2))
    rows = 2 if neighbors == "replace-one" else 1
    rho = radius / bound
    w = np.where(rho >= 1, (1 + rho) ** 2, 4 * rho)
    return np.asarray(eps / (rows * w * bound**2))


def sweep(design: SimulationDesign) -> Iterator[pd.DataFrame]:
    """Yield, for each n, bound and radius, the proportions under every other setting."""
    p = len(design.beta)
    models = all_models(p, design.empty)
    right = int(np.flatnonzero((models == (design.beta != 0)).all(axis=1))[0])
    order = np.r_[right, np.delete(np.arange(len(models)), right)]
    extra = models.sum(axis=1)[order] - models[right].sum()
    for n, bound in product(design.sizes, design.bounds):
        data = simulate(design, n, bound)
        for radius in design.radii:
            listed = scores(data, models, float(radius))[:, order]
            gaps = listed - listed[:, :1]
            yield _proportions(design, n, bound, radius, data, gaps, extra)


def _proportions(
    design: SimulationDesign,
    n: int,
    bound: Fraction | str,
    radius: Fraction,
    data: DataSets,
    gaps: Floats,
    extra: Ints,
) -> pd.DataFrame:
    phi = n * np.array(design.fractions)
    priced = gaps[:, None, :] + phi[:, None] * extra
    noiseless = (priced[:, :, 1:] > 0).all(axis=2).mean(axis=0)
    tables = []
    for eps, mechanism, neighbors, scale in product(
        design.eps, design.mechanisms, design.neighbors, design.scales
    ):
        t = rates(data.bound, float(radius), float(eps), neighbors, scale)
        charges: list[float | str] = list(design.fractions)
        stacked = t[:, None, None] * priced
        reference = list(noiseless)
        if design.false_inclusions is not None:
            x = _charge(len(design.beta), design.false_inclusions, mechanism)
            auto = t[:, None] * gaps + x * extra
            stacked = np.concatenate([stacked, auto[:, None, :]], axis=1)
            charges.append("auto")
            reference.append(float((auto[:, 1:] > 0).all(axis=1).mean()))
        found = target_probability(stacked.reshape(-1, stacked.shape[2]), mechanism)
        found = found.reshape(stacked.shape[:2])
        shown = bound if isinstance(bound, str) else float(bound)
        table = pd.DataFrame({"penalty/n": charges})
        table["right"] = found.mean(axis=0)
        table["se"] = found.std(axis=0) / np.sqrt(max(len(found) - 1, 1))
        table["without noise"] = reference
        labels = (n, shown, float(radius), float(eps), mechanism, neighbors, scale)
        for name, label in zip(reversed(KEYS), reversed(labels), strict=True):
            table.insert(0, name, label)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _charge(units: int, alpha: Fraction, mechanism: str) -> float:
    """Return t psi of ``penalty="auto"``: it depends on the number of units alone."""
    return float(useless_term_penalty(units, alpha, Fraction(1), mechanism))


def run(design: SimulationDesign, *, progress: bool = False) -> pd.DataFrame:
    """Return the proportions of all settings, one a row."""
    unit = " (n, bound, radius)"
    tables: list[pd.DataFrame] = [
        *bar(sweep(design), total=design.cells, unit=unit, shown=progress)
    ]
    return pd.concat(tables, ignore_index=True)
