"""The simulation of Lei et al. (2018), section 5.1, from exact probabilities.

Rows are simulated from a linear model; per data set the chance of the right model is computed from
the mechanism's law, so what is left of Monte Carlo is the sampling of data sets. Each data set is
reduced to moments, all models of all data sets are scored at once, and every penalty, eps, scale
and mechanism reuses the scores.

Units are the paper's: the response is not divided by its bound r, and R bounds |beta|_1 as it is.
Scores are floats, not the canonical integers: 2**-24 of the loss's range apart at most.

The chance of one model, for many score vectors at once. For scores S_i, the target r and gaps
a_i = t (S_i - S_r), with p_i = exp(-t (S_i - min S)):

exponential
    P(r) = 1 / sum_i exp(-a_i).
permute-and-flip
    P(r) = p_r int_0^1 prod_{i != r} (1 - u p_i) du. The integrand is a polynomial in u of degree
    K - 1, for which a Gauss-Legendre rule of K/2 nodes is exact up to rounding.
laplace
    P(r) = int f(x) prod_{i != r} H(x - a_i) dx, f Laplace's density and H its survival function.
    With u = exp(x)/2 for x < 0 and v = exp(-x)/2 for x > 0 both halves run over (0, 1/2), and

        H(x - a) = 1 - w if w < 1/2, else 1/(4 w),   w = exp(-a) g,   g = u, or 1/(4 v),

    so no exponential is taken at the nodes. Panels of Gauss-Legendre rules widen from zero. H has
    a kink in its second derivative at w = 1/2, which costs accuracy where rivals' kinks fall
    inside the panels: measured against `dpreg.selection.probabilities`, the absolute error stays
    below 3e-5 (`tests/study/test_batched.py`), a hundredth of any simulation's own error.

Tested in `tests/study/test_simulation.py` and `tests/study/test_batched.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import pandas as pd

from dpreg.arrays import Bools, Floats, Ints
from dpreg.errors import ArgumentError, shown
from dpreg.results.summary import Facts, Grid, Paragraph, Printed, Summary
from dpreg.running import bar
from dpreg.selection.probabilities import panels, useless_term_penalty
from dpreg.selection.scoring import candidates as constrained
from dpreg.study.results import SIMULATED, left_out, marked, share

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OBSERVED: Final = "observed"
"""The bound r = max |y| of each data set, as in the paper; the privacy budget does not cover it."""
KEYS: Final = ["n", "bound", "radius", "eps", "mechanism", "neighbors", "scale"]
_NEAR: Final = 0.9  # by definition: of the best chance, where a penalty counts as one that does
_SHOWN: Final = 40
"""Settings of a page."""
_TOGETHER: Final = 16  # work: data sets that one block-diagonal problem holds
_ROWS: Final = 2**21  # simulated cells at a time
_CHUNK: Final = 512  # work: score vectors worked on together: their nodes stay in the cache
_FAR: Final = 700.0
_NONE: Final = 1e-18  # precision: what moves no product
_EDGES: Final = (0.0, 2.0**-9, 2.0**-6, 2.0**-4, 2.0**-3, 2.0**-2, 2.0**-1)


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
        largest[part] = np.abs(y).max(axis=1)
        if isinstance(bound, Fraction):
            y = np.clip(y, -float(bound), float(bound))
            largest[part] = float(bound)
        turned = x.swapaxes(1, 2)
        gram[part], cross[part] = turned @ x, (turned @ y[:, :, None])[:, :, 0]
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


def run(design: SimulationDesign, *, progress: bool = False) -> pd.DataFrame:
    """Return the proportions of all settings, one a row."""
    models, found = all_models(len(design.beta), design.empty), list[pd.DataFrame]()
    right = int(np.flatnonzero((models == (design.beta != 0)).all(axis=1))[0])
    order = np.r_[right, np.delete(np.arange(len(models)), right)]
    extra = models.sum(axis=1)[order] - models[right].sum()
    total = len(design.sizes) * len(design.bounds) * len(design.radii)
    shown = bar(total=total, unit=" (n, bound, radius)", shown=progress)
    for n, bound in product(design.sizes, design.bounds):
        data = simulate(design, n, bound)
        for radius in map(float, design.radii):
            gaps = scores(data, models, radius)[:, order]
            gaps = gaps - gaps[:, :1]
            labels = {"n": n, "bound": bound if isinstance(bound, str) else float(bound)}
            for one in _proportions(design, n, radius, data, gaps, extra):
                found.append(pd.DataFrame({**labels, "radius": radius, **one}))
            shown.update()
    shown.close()
    return pd.concat(found, ignore_index=True)


def _proportions(
    design: SimulationDesign, n: int, radius: float, data: DataSets, gaps: Floats, extra: Ints
) -> Iterator[dict[str, object]]:
    """Yield the other columns of each setting."""
    phi = n * np.array(design.fractions)
    priced = gaps[:, None, :] + phi[:, None] * extra
    noiseless = (priced[:, :, 1:] > 0).all(axis=2).mean(axis=0)
    for eps, mechanism, neighbors, scale in product(
        design.eps, design.mechanisms, design.neighbors, design.scales
    ):
        t = rates(data.bound, radius, float(eps), neighbors, scale)
        charges: list[float | str] = list(design.fractions)
        stacked, reference = t[:, None, None] * priced, list(noiseless)
        if (alpha := design.false_inclusions) is not None:
            # t psi depends on the number of units alone.
            x = float(useless_term_penalty(len(design.beta), alpha, Fraction(1), mechanism))
            auto = t[:, None] * gaps + x * extra
            stacked = np.concatenate([stacked, auto[:, None, :]], axis=1)
            charges.append("auto")
            reference.append(float((auto[:, 1:] > 0).all(axis=1).mean()))
        found = target_probability(stacked.reshape(-1, stacked.shape[2]), mechanism)
        found = found.reshape(stacked.shape[:2])
        yield {
            "eps": float(eps),
            "mechanism": mechanism,
            "neighbors": neighbors,
            "scale": scale,
            "penalty/n": charges,
            "right": found.mean(axis=0),
            "se": found.std(axis=0) / np.sqrt(max(len(found) - 1, 1)),
            "without noise": reference,
        }


# ---- the chance of one model ---------------------------------------------------------------------


def target_probability(gaps: Floats, mechanism: str) -> Floats:
    """Return the chance that the target is drawn.

    Parameters
    ----------
    gaps : float64 array, shape (N, K)
        t (S_i - S_target) of each of K models, the target's own zero among them, in column 0.
    mechanism : {"permute-and-flip", "exponential", "laplace"}

    Returns
    -------
    float64 array, shape (N,)
    """
    if mechanism not in _LAWS:
        raise ArgumentError(f"unknown mechanism {mechanism!r}.")
    parts = np.split(gaps, range(_CHUNK, len(gaps), _CHUNK))
    return np.concatenate([_LAWS[mechanism](np.clip(part, -_FAR, _FAR)) for part in parts])


def _exponential(gaps: Floats) -> Floats:
    return np.asarray(1.0 / np.exp(-gaps).sum(axis=1))


def _permute_and_flip(gaps: Floats) -> Floats:
    count = gaps.shape[1]
    u, weights = panels((0.0, 1.0), max(2, -(-count // 2)))
    p = np.exp(gaps.min(axis=1, keepdims=True) - gaps)
    product = np.ones((len(gaps), len(u)))
    for rival in p.T[1:]:
        if rival.max() > _NONE:
            product *= 1.0 - rival[:, None] * u
    return np.asarray(p[:, 0] * (product @ weights))


_NODES, _WEIGHTS = panels(_EDGES, 6)  # precision
_SHIFT: Final = np.concatenate([_NODES, 0.25 / _NODES])  # by definition


def _laplace(gaps: Floats) -> Floats:
    product = np.ones((len(gaps), len(_SHIFT)))
    for rival in np.exp(-gaps).T[1:]:
        if rival.max() * _SHIFT[-1] > _NONE:
            w = rival[:, None] * _SHIFT
            factor = 1.0 - w
            np.divide(0.25, w, out=factor, where=w > 0.5)  # by definition
            product *= factor
    return np.asarray(product @ np.tile(_WEIGHTS, 2))


_LAWS: Final = {
    "permute-and-flip": _permute_and_flip,
    "exponential": _exponential,
    "laplace": _laplace,
}


# ---- what it shows -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class SimulationStudy(Printed):
    """Chance of the right model over simulated data sets, under many settings.

    Attributes
    ----------
    design : SimulationDesign
        What was simulated and compared.
    proportions : DataFrame
        One row a setting: ``right``, the mean over the data sets of the exact chance that the
        mechanism draws the right model; ``se``, its standard error (of sampling data sets; the
        mechanism adds none); ``without noise``, the share of data sets in which the same score
        picks it without noise. ``penalty/n`` is phi / n, or "auto".
    """

    design: SimulationDesign
    proportions: pd.DataFrame
    privacy: ClassVar[str] = SIMULATED

    @property
    def best(self) -> pd.DataFrame:
        """The best number for the penalty under each setting, and how wide its success is.

        ``wide`` is the part of the tried interval of penalties where the chance is at least nine
        tenths of the best one's.
        """
        table = self._numeric
        rows = []
        for key, group in table.groupby(KEYS, sort=False):
            top = group.iloc[int(group["right"].to_numpy().argmax())]
            wide = float((group["right"] >= _NEAR * top["right"]).mean())
            rows.append((*key, top["penalty/n"], top["right"], top["se"], wide))
        columns = [*KEYS, "penalty/n", "right", "se", "wide"]
        return marked(pd.DataFrame(rows, columns=columns).set_index(KEYS), SIMULATED)

    @property
    def auto(self) -> pd.DataFrame:
        """The settings under ``penalty="auto"``, which needs no tuning."""
        if self.design.false_inclusions is None:
            raise ArgumentError('penalty="auto" was not tried: give false_inclusions to the study.')
        table = self.proportions[self.proportions["penalty/n"] == "auto"]
        return marked(table.drop(columns="penalty/n").set_index(KEYS), SIMULATED)

    @property
    def price_of_the_leak(self) -> pd.DataFrame:
        """What the paper's r = ``max |y|``, outside any budget, gains over a public bound.

        Best chances with the observed maximum and with each public bound, side by side.
        """
        if OBSERVED not in self.design.bounds or len(self.design.bounds) < 2:
            raise ArgumentError('this needs bound=("observed", a public number).')
        table = self.best["right"].unstack("bound")
        for bound in [name for name in table.columns if name != OBSERVED]:
            table[f"price at {bound:g}"] = table[OBSERVED] - table[bound]
        return marked(table, SIMULATED)

    def table(self, penalty: str = "best") -> pd.DataFrame:
        """Compare mechanisms: chance of the right model, mechanism x eps.

        Parameters
        ----------
        penalty : {"best", "auto"}
            The best number that was tried, or "auto".
        """
        if penalty not in ("best", "auto"):
            raise ArgumentError(f'penalty must be "best" or "auto"; got {shown(penalty)}.')
        frame = (self.best if penalty == "best" else self.auto)["right"]
        single = [name for name in KEYS if name != "eps" and self._values(name) == 1]
        rows = frame.reset_index().drop(columns=single)
        names = [name for name in KEYS if name not in (*single, "eps")] or ["mechanism"]
        if "mechanism" not in rows and names == ["mechanism"]:
            rows["mechanism"] = self.design.mechanisms[0]
        made = rows.pivot_table(index=names, columns="eps", values="right", sort=False)
        return marked(made, SIMULATED)

    def plot(
        self, n: int | None = None, *, reference: bool = True, **options: str | float
    ) -> Figure:
        """Draw the chance of the right model over phi: panels for n and R, a line for each eps.

        Parameters
        ----------
        n : int, optional
            One sample size alone.
        reference : bool
            Whether to draw the chance without noise, too.
        **options
            ``bound=``, ``mechanism=``, ``neighbors=``, ``scale=``: which to show where several were
            studied; the first by default.
        """
        from dpreg.study import plots

        figure: Figure = plots.simulation(self, n, reference, **options)
        return figure

    def summary(self) -> Summary:
        """Return the printable page of the study."""
        design, frame = self.design, self.best.reset_index()
        varied = [key for key in KEYS if self._values(key) > 1] or ["n"]
        models, rows = 2 ** len(design.beta) - (not design.empty), frame.head(_SHOWN)
        facts = Facts(
            (
                ("Data sets", str(design.datasets)),
                ("Models", str(models)),
                ("Error sd", f"{design.sigma:g}"),
            ),
            (
                ("Settings", f"{len(self.proportions):,}"),
                ("Penalties/n", f"{min(design.fractions):g} to {max(design.fractions):g}"),
                ("Probabilities", "exact per data set"),
            ),
        )
        lines = tuple(
            (
                *(row[key] if isinstance(row[key], str) else f"{row[key]:g}" for key in varied),
                f"{row['penalty/n']:g}",
                share(float(row["right"])),
                f"{row['se']:.4f}",
                share(float(row["wide"])),
            )
            for _, row in rows.iterrows()
        )
        sides = "".join("l" if isinstance(frame[key].iloc[0], str) else "r" for key in varied)
        headers = (*varied, "best\nphi/n", "P(right)", "se", "wide")
        grid = Grid(headers, lines, f"{sides}rrrr", "The best penalty of each setting")
        reading = Paragraph(
            "Reading",
            "P(right) is the chance that the drawn model is the true one, averaged over the "
            "data sets; wide is the part of the tried penalties that reach nine tenths of it. "
            "A bound that is observed is a leak: no budget pays for r = max |y|.",
        )
        cut = left_out(len(frame), _SHOWN, ".best")
        title = f"Simulation study: {self._beta}"
        return Summary(title, SIMULATED, (facts, grid, reading, *cut))

    def __repr__(self) -> str:
        """Say what it is."""
        return (
            f"<SimulationStudy: {self._beta}, {self.design.datasets} data sets, "
            f"{len(self.proportions):,} settings; {SIMULATED}>"
        )

    @property
    def _beta(self) -> str:
        return f"beta = ({', '.join(f'{b:g}' for b in self.design.beta)})"

    @property
    def _numeric(self) -> pd.DataFrame:
        numbers = self.proportions[self.proportions["penalty/n"] != "auto"]
        return numbers.astype({"penalty/n": float})

    def _values(self, key: str) -> int:
        return int(self.proportions[key].nunique())
