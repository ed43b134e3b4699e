"""`dp_histogram`: counts, shares and density of a column, in given or privately chosen bins."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from dpreg.api.inputs import (
    Choices,
    Columns,
    Grouped,
    columns_of,
    fraction_of,
    group_codes,
    public_count,
    spend_of,
)
from dpreg.errors import ArgumentError
from dpreg.estimation import histogram
from dpreg.estimation.histogram import NoisyCounts, count_noise, fine_bins
from dpreg.privacy.budget import BudgetTable
from dpreg.privacy.vector_noise import VectorNoise
from dpreg.request import count
from dpreg.results.histogram import HistogramResults
from dpreg.schema import Boolean, Categorical
from dpreg.sources import Integers

if TYPE_CHECKING:
    from numpy.random import Generator

    from dpreg.privacy.ledger import Ledger

__all__ = ["dp_histogram"]

_COUNT_SHARE: Final = Fraction(1, 50)
"""The part of eps that buys the number of rows for the bin width, where it is private."""


_MOST_BINS: Final = 10**6
"""Bins that a caller may ask for by their number: more would fill the memory, and hold noise."""


@dataclass(frozen=True, slots=True)
class _Bins:
    """Bins: of levels, or between edges."""

    edges: NDArray[np.float64] | None = None
    levels: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many."""
        return len(self.levels) if self.edges is None else self.edges.size - 1

    def place(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Return the bin of each value (levels: of their codes or truths); -1 where it has none."""
        if self.edges is None:
            return group_codes(values)
        found = np.searchsorted(self.edges, values, "right") - 1
        inside = np.clip(found, 0, self.size - 1)
        return np.where(np.isnan(values), -1, inside).astype(np.int64)


@dataclass(frozen=True, slots=True)
class _BinTally:
    """Counts rows by group and bin; the number of rows in neither comes last."""

    name: str
    bins: _Bins
    groups: int
    pooled: bool = False

    def __call__(self, grouped: Grouped) -> Integers:
        placed = (
            (self.bins.place(chunk[self.name]), np.minimum(labels, 0) if self.pooled else labels)
            for chunk, labels in grouped
        )
        counts, left = histogram.count_cells(placed, self.bins.size, self.groups)
        return np.append(counts, left)


def dp_histogram(
    x: Any,
    data: Any = None,
    *,
    bounds: Any = None,
    bins: Any = "private",
    eps: Any,
    delta: Any = 0,
    schema: Any = None,
    neighbors: str = "replace-one",
    contributions: int = 1,
    by: str | None = None,
    complete: bool = False,
    width_share: Any = 0.2,
    noise: str | None = None,
    budget: Ledger | None = None,
    progress: bool | None = None,
    unsafe_seed: int | None = None,
) -> HistogramResults:
    """Release a histogram of one column with differential privacy.

    The noise of a count does not depend on the number of bins (`dpreg.estimation.histogram`).

    Parameters
    ----------
    x, data, bounds, eps, delta, schema, neighbors, contributions, by, complete, noise, budget, \
progress, unsafe_seed
        As in `dp_mean`, for one column. A categorical or Boolean column of the schema has a bin
        for each level. Values outside the bounds count in the first or last bin, missing ones
        nowhere.
    bins : "private", int, or sequence of edges
        A number of equal bins between the bounds, at most a million; or edges, which are bounds
        then; or "private": `width_share` of eps chooses the number of equal bins, the rest buys
        their counts.
    width_share : number in (0, 1)
        Under add-remove above 1/50, the part of eps that the number of rows takes of it.

    Returns
    -------
    HistogramResults
        `params` are the shares of the bins, with `bse` and `conf_int()`; `counts`, `density`,
        `edges`, `plot()`.

    Raises
    ------
    ArgumentError, SchemaError, DataError, BudgetError
        From public facts alone and before anything is charged or read.

    References
    ----------
    Smith, A. (2008). Integrating differential privacy with statistical theory. Talk, NCHS/CDC.
    """
    choices = Choices.checked(
        eps=eps,
        delta=delta,
        neighbors=neighbors,
        contributions=contributions,
        noise=noise,
        unsafe_seed=unsafe_seed,
    )
    share = fraction_of(width_share, "width_share")
    edges = _edges(bins)
    if edges is not None:
        if bounds is not None:
            raise ArgumentError("edges are bounds themselves: leave bounds out.")
        bounds = (float(edges[0]), float(edges[-1]))
    columns = columns_of(x, data, bounds, schema, by, levels_allowed=True, progress=progress)
    if len(columns.names) != 1:
        raise ArgumentError("dp_histogram takes one column: call it for each.")
    complete = public_count(complete, choices, columns)
    fixed = _fixed_bins(columns, bins, edges)
    columns.reader.require(1 if fixed else 2, counts=fixed is None)
    stages = _stages(choices, columns, fixed, share, complete)
    choices.charge(budget, stages.spends, f"dp_histogram: {columns.names[0]}")
    rng = choices.rng()
    if fixed is None:
        fixed = _private_bins(choices, columns, stages, rng)
    released = _release(choices, columns, fixed, stages, complete, rng)
    return HistogramResults(
        column=columns.names[0],
        levels=fixed.levels,
        edges=fixed.edges,
        binning="schema" if fixed.levels else "private" if stages.first else "given",
        by=columns.by,
        groups=columns.groups,
        estimates=np.concatenate([line.shares for line in released]),
        se_sampling=np.concatenate([line.sampling for line in released]),
        se_privacy=np.concatenate([line.privacy for line in released]),
        bin_counts=np.concatenate([line.counts for line in released]),
        probabilities=np.concatenate([histogram.project(line.shares) for line in released]),
        nobs=columns.rows if choices.n_is_public else None,
        passes=columns.reader.passes,
        noise=stages.second.mechanism,
        eps=choices.budget.eps,
        delta=choices.budget.delta,
        claim=choices.claim(stages.spends),
    )


@dataclass(frozen=True, slots=True)
class _Stages:
    """Noise of each release, and what they cost together."""

    second: VectorNoise
    spends: BudgetTable
    first: VectorNoise | None = None
    counting: VectorNoise | None = None


def _stages(
    choices: Choices, columns: Columns, bins: _Bins | None, share: Fraction, complete: bool
) -> _Stages:
    """Plan the noise of all stages from public facts."""
    whole, none = choices.budget.eps, Fraction(0)
    spends = BudgetTable(contributions=choices.contributions)
    fit = partial(count_noise, neighbors=choices.neighbors, contributions=choices.contributions)
    counting = first = None
    if bins is None:
        _equal(columns, histogram.LARGEST_FINE)  # the finest grid: what it has room for, all have
        if not choices.n_is_public:
            if share <= _COUNT_SHARE:
                raise ArgumentError(
                    f"width_share must be above {_COUNT_SHARE} under "
                    f'neighbors="add-remove": the number of rows takes {_COUNT_SHARE} of eps.'
                )
            counting = fit(1, eps=whole * _COUNT_SHARE, delta=none, noise="laplace")
            spends = spends + spend_of("number of rows", counting)
        first = fit(
            1,
            eps=whole * share - (0 if counting is None else counting.eps),
            delta=none,
            noise="laplace",
        )
        spends = spends + spend_of("bin width", first)
    cells = columns.lines * (histogram.LARGEST_FINE if bins is None else bins.size) + 1
    second = fit(
        cells,
        eps=whole * (1 - share) if bins is None else whole,
        delta=choices.budget.delta,
        noise=choices.noise,
    )
    return _Stages(second, spends + spend_of("counts", second), first, counting)


def _private_bins(
    choices: Choices, columns: Columns, stages: _Stages, rng: Generator | None
) -> _Bins:
    """Stage one: release a fine histogram of all groups together and choose the width by it."""
    assert stages.first is not None
    if stages.counting is None:
        rows = float(columns.rows)
    else:
        rows = float(columns.rows + stages.counting.draw(1, rng)[0])
    fine = _equal(columns, fine_bins(max(rows, 1.0), stages.first.eps))
    *counts, _ = columns.total(_BinTally(columns.names[0], fine, 1, pooled=True), "bin width")
    drawn = stages.first.draw(fine.size, rng)
    noisy = np.array([float(c + z) for c, z in zip(counts, drawn, strict=True)])
    chosen = histogram.choose_bins(
        noisy, max(rows, 1.0), stages.first.variance, stages.second.variance
    )
    return _equal(columns, chosen)


def _release(
    choices: Choices,
    columns: Columns,
    bins: _Bins,
    stages: _Stages,
    complete: bool,
    rng: Generator | None,
) -> list[NoisyCounts]:
    tally = _BinTally(columns.names[0], bins, columns.lines)
    *counts, left = columns.total(tally, "counts").astype(np.int64)
    return histogram.release_counts(
        np.array(counts, dtype=np.int64).reshape(columns.lines, -1),
        int(left),
        stages.second,
        rows=columns.rows if choices.n_is_public else None,
        complete=complete,
        rng=rng,
    )


def _fixed_bins(columns: Columns, bins: Any, edges: NDArray[np.float64] | None) -> _Bins | None:
    """Return the bins that the caller or the schema gives; None where they are to be chosen."""
    (name,) = columns.names
    match columns.how[name]:
        case Categorical(levels):
            names = tuple(str(level) for level in levels)
            return _Bins(levels=names)
        case Boolean():
            return _Bins(levels=("False", "True"))
    if edges is not None:
        return _Bins(edges)
    if isinstance(bins, str):
        return None
    size = count(bins, "bins")
    if size > _MOST_BINS:
        raise ArgumentError(f"bins must be at most {_MOST_BINS:,}.")
    return _equal(columns, size)


def _equal(columns: Columns, size: int) -> _Bins:
    lo, hi = columns.bounds[columns.names[0]]
    edges = np.linspace(lo, hi, size + 1)
    if not (np.diff(edges) > 0).all():
        raise ArgumentError("bins: so many have no width in float64 between these bounds.")
    return _Bins(edges)


def _edges(bins: Any) -> NDArray[np.float64] | None:
    if isinstance(bins, str):
        if bins != "private":
            raise ArgumentError(f'bins must be "private", a number, or edges; got {bins!r}.')
        return None
    if not isinstance(bins, list | tuple | np.ndarray):
        return None
    try:
        edges = np.array(bins, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError("bins: edges must be numbers.") from None
    if edges.ndim != 1 or edges.size < 2 or not np.isfinite(edges).all():
        raise ArgumentError("bins: edges must be at least two finite numbers.")
    if not (np.diff(edges) > 0).all():
        raise ArgumentError("bins: edges must ascend.")
    return edges
