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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.linalg import block_diag

from dpreg.arrays import Bools, Floats, Ints
from dpreg.errors import ArgumentError
from dpreg.options import Amount, Amounts, Texts
from dpreg.planning.facts import sized
from dpreg.planning.pages import Columns, columns, grid, laid_out, plain, words
from dpreg.privacy.protection import CHOICES, NEIGHBORS
from dpreg.request import (
    Arguments,
    answered_by,
    checked,
    checked_fields,
    choice,
    count,
    inclusions,
    optional,
    truth,
)
from dpreg.results.summary import Paragraph, Printed, Summary
from dpreg.running import bar
from dpreg.selection.probabilities import panels, useless_term_penalty
from dpreg.selection.scoring import candidates as constrained
from dpreg.sources.reader import showing
from dpreg.study.results import SIMULATED, left_out, marked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OBSERVED: Final = "observed"
"""The bound r = max |y| of each data set, as in the paper; the privacy budget does not cover it."""
KEYS: Final = ["n", "bound", "radius", "eps", "mechanism", "neighbors", "scale"]
_MOST_COLUMNS: Final = 12  # work
_ANY_SIZE: Final = partial(sized, any_sign=True)
_NEAR: Final = 0.9  # by definition: of the best chance, where a penalty counts as one that does
_SHOWN: Final = 40
"""Settings of a page."""
_TOGETHER: Final = 16  # work: data sets that one block-diagonal problem holds
_ROWS: Final = 2**21  # simulated cells at a time
_CHUNK: Final = 512  # work: score vectors worked on together: their nodes stay in the cache
_FAR: Final = 700.0
_NONE: Final = 1e-18  # precision: what moves no product
_EDGES: Final = (0.0, 2.0**-9, 2.0**-6, 2.0**-4, 2.0**-3, 2.0**-2, 2.0**-1)


def several(value: Any, name: str) -> tuple[Any, ...]:
    """Return the values of a varied argument; one value stands for itself."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return (value,)
    values = tuple(np.atleast_1d(value)) if isinstance(value, np.ndarray) else tuple(value)
    if not values:
        raise ArgumentError(f"{name} must hold at least one value.")
    return values


def _each(value: Any, name: str, check: Callable[..., Any], *rest: Any) -> tuple[Any, ...]:
    """Return the values of a varied argument, each as `check` returns it."""
    return tuple(check(one, name, *rest) for one in several(value, name))


def _bound(value: Any, name: str) -> float | str:
    return OBSERVED if isinstance(value, str) and value == OBSERVED else sized(value, name)


def _parts(value: Any, name: str) -> tuple[float, ...]:
    parts = np.linspace(0, 0.5, 51) if value is None else _each(value, name, _ANY_SIZE)
    if min(parts) < 0:
        raise ArgumentError(f"{name} must be at least 0.")
    return tuple(map(float, parts))


def _coefficients(value: Any, name: str) -> Floats:
    if isinstance(value, Mapping):
        raise ArgumentError(f"{name} must be a sequence of numbers, without names.")
    numbers = _each(value, name, _ANY_SIZE)
    if len(numbers) > _MOST_COLUMNS:
        raise ArgumentError(f"{name} must hold 1 to {_MOST_COLUMNS} coefficients.")
    return np.array(numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationDesign:
    """What is simulated and compared: the arguments of `dpreg.simulation_study`, checked."""

    beta: Floats = checked(_coefficients)
    sigma: float = checked(sized)
    n: tuple[int, ...] = checked(_each, count)
    radius: tuple[float, ...] = checked(_each, sized)
    eps: tuple[float, ...] = checked(_each, sized)
    penalty: tuple[float, ...] = checked(_parts)
    false_inclusions: Fraction | None = checked(optional, inclusions)
    mechanism: tuple[str, ...] = checked(_each, choice, CHOICES)
    neighbors: tuple[str, ...] = checked(_each, choice, NEIGHBORS)
    scale: tuple[str, ...] = checked(_each, choice, ("range", "paper"))
    bound: tuple[float | str, ...] = checked(_each, _bound)
    empty: bool = checked(truth)
    datasets: int = checked(count, 2)
    seed: int = checked(count, 0)

    @classmethod
    def of(cls, call: Arguments) -> SimulationDesign:
        """Check the arguments of a call."""
        design = cls(**checked_fields(cls, call))
        if not (design.empty or design.beta.any()):
            raise ArgumentError("beta must not be all zero unless empty=True.")
        return design

    @property
    def title(self) -> str:
        """The true coefficients, as pages and pictures name the design."""
        return f"beta = ({', '.join(f'{b:g}' for b in self.beta)})"


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


def simulate(design: SimulationDesign, n: int, bound: float | str) -> DataSets:
    """Draw the data sets: columns uniform on [-1, 1], normal errors, responses clipped at r.

    The same seed gives the same rows whatever the bound, so that bounds are compared on one sample.
    """
    rng = np.random.default_rng([design.seed, n])
    p, sets = len(design.beta), design.datasets
    gram, cross, largest = np.empty((sets, p, p)), np.empty((sets, p)), np.empty(sets)
    step = max(1, _ROWS // (n * p))
    for start in range(0, sets, step):
        part = slice(start, min(start + step, sets))
        x = rng.uniform(-1.0, 1.0, size=(part.stop - start, n, p))
        y = x @ design.beta + design.sigma * rng.standard_normal((part.stop - start, n))
        largest[part] = np.abs(y).max(axis=1) if isinstance(bound, str) else bound
        y = np.clip(y, -largest[part, None], largest[part, None])
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
    sets, p = data.cross.shape
    out = np.empty((sets, len(models)))
    for start in range(0, sets, _TOGETHER):
        part = slice(start, start + _TOGETHER)
        gram, cross = block_diag(*data.gram[part]), data.cross[part].ravel()
        columns = np.kron(np.eye(len(cross) // p, dtype=np.bool_), models)
        beta = constrained.solve(gram, cross, radius, columns).beta
        value = ((beta @ gram) * beta).sum(axis=1) - 2 * beta @ cross
        out[part] = value.reshape(-1, len(models))
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


def proportions(design: SimulationDesign, *, progress: bool = False) -> pd.DataFrame:
    """Return the proportions of all settings, one a row."""
    models, found = all_models(len(design.beta), design.empty), list[pd.DataFrame]()
    right = int(np.flatnonzero((models == (design.beta != 0)).all(axis=1))[0])
    order = np.r_[right, np.delete(np.arange(len(models)), right)]
    extra = models.sum(axis=1)[order] - models[right].sum()
    data_sets = list(product(design.n, design.bound))
    for n, bound in bar(data_sets, unit=" (n, bound)", shown=progress):
        data = simulate(design, n, bound)
        for radius in design.radius:
            gaps = scores(data, models, radius)[:, order]
            gaps = gaps - gaps[:, :1]
            for one in _proportions(design, n, radius, data, gaps, extra):
                found.append(pd.DataFrame({"n": n, "bound": bound, "radius": radius, **one}))
    return pd.concat(found, ignore_index=True)


def _proportions(
    design: SimulationDesign, n: int, radius: float, data: DataSets, gaps: Floats, extra: Ints
) -> Iterator[dict[str, object]]:
    """Yield the other columns of each setting."""
    numbers = np.tile(n * np.array(design.penalty), (len(gaps), 1))
    for eps, mechanism, neighbors, scale in product(
        design.eps, design.mechanism, design.neighbors, design.scale
    ):
        t = rates(data.bound, radius, eps, neighbors, scale)
        phi, charges = numbers, list[float | str](design.penalty)
        if (alpha := design.false_inclusions) is not None:
            # t psi depends on the number of units alone.
            x = float(useless_term_penalty(len(design.beta), alpha, Fraction(1), mechanism))
            phi, charges = np.column_stack([numbers, x / t]), [*charges, "auto"]
        priced = gaps[:, None, :] + phi[:, :, None] * extra
        rivals = (t[:, None, None] * priced).reshape(-1, len(extra))
        found = target_probability(rivals, mechanism).reshape(phi.shape)
        yield {
            "eps": eps,
            "mechanism": mechanism,
            "neighbors": neighbors,
            "scale": scale,
            "penalty/n": charges,
            "right": found.mean(axis=0),
            "se": found.std(axis=0) / np.sqrt(max(len(found) - 1, 1)),
            "without noise": (priced[:, :, 1:] > 0).all(axis=2).mean(axis=0),
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
    parts = np.split(gaps, range(_CHUNK, len(gaps), _CHUNK))
    return np.concatenate([_LAWS[mechanism](np.clip(part, -_FAR, _FAR)) for part in parts])


def _exponential(gaps: Floats) -> Floats:
    return np.asarray(1.0 / np.exp(-gaps).sum(axis=1))


def _permute_and_flip(gaps: Floats) -> Floats:
    u, weights = panels((0.0, 1.0), max(2, -(-gaps.shape[1] // 2)))
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
        numbers = self.proportions[self.proportions["penalty/n"] != "auto"]
        table = numbers.astype({"penalty/n": float}).reset_index(drop=True)
        groups = table.groupby(KEYS, sort=False)["right"]
        near = (table["right"] >= _NEAR * groups.transform("max")).groupby(groups.ngroup()).mean()
        top = table.loc[groups.idxmax()].set_index(KEYS)[["penalty/n", "right", "se"]]
        return marked(top.assign(wide=near.to_numpy()), SIMULATED)

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
        if OBSERVED not in self.design.bound or len(self.design.bound) < 2:
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
        choice(penalty, "penalty", ("best", "auto"))
        frame = (self.best if penalty == "best" else self.auto)["right"]
        names = [name for name in self._varied if name != "eps"] or ["mechanism"]
        rows = frame.reset_index()
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
        varied = self._varied or ["n"]
        facts = laid_out(
            "simulation",
            design=design,
            models=2 ** len(design.beta) - (not design.empty),
            settings=len(self.proportions),
            least=min(design.penalty),
            most=max(design.penalty),
        )
        sides = "".join("l" if isinstance(frame[key].iloc[0], str) else "r" for key in varied)
        keys: Columns = {key: (key, plain) for key in varied}
        title = "The best penalty of each setting"
        best = grid(frame.head(_SHOWN), keys | columns("best"), f"{sides}rrrr", title)
        reading = Paragraph("Reading", words("study-simulation"))
        cut = left_out(len(frame), _SHOWN, ".best")
        title = f"Simulation study: {self.design.title}"
        return Summary(title, SIMULATED, (facts, best, reading, *cut))

    def __repr__(self) -> str:
        """Say what it is."""
        return (
            f"<SimulationStudy: {self.design.title}, {self.design.datasets} data sets, "
            f"{len(self.proportions):,} settings; {SIMULATED}>"
        )

    @property
    def _varied(self) -> list[str]:
        return [key for key in KEYS if self.proportions[key].nunique() > 1]


def _simulation_study(call: Arguments) -> Any:
    shown, design = showing(call["progress"]), SimulationDesign.of(call)
    return SimulationStudy(design, marked(proportions(design, progress=shown), SIMULATED))


@answered_by(_simulation_study)
def simulation_study(
    beta: Sequence[float] | NDArray[np.floating],
    n: int | Sequence[int] = (100, 1000),  # by definition: the paper's
    *,
    radius: Amounts = (1, 2.5, 3.5, 10),  # by definition: the paper's
    eps: Amounts = (0.1, 1, 5, 10),  # by definition: the paper's
    penalty: Amounts | None = None,
    mechanism: Texts = ("laplace",),
    neighbors: Texts = ("replace-one",),
    bound: Amounts = (OBSERVED,),
    scale: Texts = ("range",),
    false_inclusions: Amount | None = None,
    sigma: Amount = 1,
    empty: bool = False,
    datasets: int = 500,  # work
    seed: int = 0,
    progress: bool | None = None,
) -> SimulationStudy:
    """Simulate data sets and compute how often the right model is drawn: section 5.1 of the paper.

    The columns are independent and uniform on [-1, 1], without an intercept; y = x'beta + sigma z,
    z standard normal. Per data set the chance of the right model is exact, so that 500 data sets
    give what took the paper 500 runs of the mechanism each, with a far smaller error. The defaults
    are the paper's, except `scale` and `bound`.

    Parameters
    ----------
    beta : sequence of float
        True coefficients, in units of the response; at most 12, some may be zero. All numbers here
        are zero or lie between 1e-30 and 1e30 in size.
    n : int or sequence
        Numbers of rows.
    radius, eps : number or sequence
        R bounds the sum of the moduli of the coefficients, in units of the response.
    penalty : sequence of float, optional
        Penalties phi as parts of n; default 51 from 0 to 1/2, the paper's range.
    mechanism : str or sequence
        "laplace" (the paper's), "permute-and-flip", "exponential".
    neighbors : str or sequence
        "replace-one", "add-remove".
    bound : "observed", number or sequence
        r, where responses are clipped. "observed" is ``max |y|`` of each data set, as in the paper:
        a function of the rows that no budget pays for. A public number shows the price of that
        leak.
    scale : {"range", "paper"} or sequence
        The noise: dpreg's, from the range of the changes of the scores, or the paper's
        2 (r + R)^2 / eps. They differ where R < r, and under add-remove.
    false_inclusions : number, optional
        Where given, ``penalty="auto"`` is tried as well, with this expected number.
    sigma : number
        Standard deviation of the errors.
    empty : bool
        Whether the model without any column is a candidate (64 models; the paper has 63).
    datasets, seed : int
    progress : bool, optional
        Show a bar on stderr; default where stderr is a terminal.

    Returns
    -------
    SimulationStudy
        With ``proportions``, ``best``, ``table()``, ``price_of_the_leak``, ``plot()``.

    Notes
    -----
    Scores are float64 minima, within 1e-9 of the exact ones relative to y'y, and not floored to the
    grid of `dpreg.selection.scoring.problem`; chances of the laplace mechanism carry an absolute
    error below 3e-5 (`dpreg.study.simulation`). The simulated rows describe nobody; `beta` and the
    settings are as public as their source.

    References
    ----------
    Lei, J., Charest, A.-S., Slavkovic, A., Smith, A. and Fienberg, S. (2018). Differentially
    private model selection with penalized and constrained likelihood. JRSS-A 181, 609-633.

    Examples
    --------
    >>> import dpreg
    >>> study = dpreg.simulation_study((1, 1, 0), 500, radius=2.5, eps=5, datasets=20,
    ...                                penalty=(0.05, 0.1), bound=6)
    >>> study.best["penalty/n"].iloc[0]
    np.float64(0.1)
    """
