"""`dp_histogram`: counts, shares and density of a column, in given or privately chosen bins.

The bins of `dp_histogram`: of levels, between given edges, or equal; and rows counted in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Final, Unpack

import numpy as np
from numpy.typing import NDArray

from dpreg.api import inputs
from dpreg.api.arguments import OfColumns
from dpreg.api.context import recorded
from dpreg.api.inputs import Bought, Choices, Columns
from dpreg.columns import SIZES, fit
from dpreg.errors import ArgumentError, shown
from dpreg.estimation import histogram
from dpreg.options import Amount, Bins, Cells, Table
from dpreg.privacy.account import Account
from dpreg.privacy.budget import Budget
from dpreg.request import Arguments, checked, count
from dpreg.results.classic import HistogramResults
from dpreg.sources import Integers

_MOST_BINS: Final = 10**6
"""Bins that a caller may ask for by their number: more would fill the memory, and hold noise."""


@dataclass(frozen=True, slots=True)
class Partition:
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
            return inputs.group_codes(values)
        found = np.searchsorted(self.edges, values, "right") - 1
        inside = np.clip(found, 0, self.size - 1)
        return np.where(np.isnan(values), -1, inside).astype(np.int64)


def _binned(name: str, bins: Partition, groups: int, grouped: inputs.Grouped) -> Integers:
    """Count rows by group, or all as one group, and bin; the number of those in neither is last."""
    last = groups - 1
    placed = ((bins.place(chunk[name]), np.minimum(labels, last)) for chunk, labels in grouped)
    counts, left = histogram.count_cells(placed, bins.size, groups)
    return np.append(counts, left)


def fixed_bins(columns: Columns, bins: Any, edges: NDArray[np.float64] | None) -> Partition | None:
    """Return the bins that the caller or the schema gives; None where they are to be chosen."""
    if levels := inputs.level_names(columns.how[columns.names[0]]):
        return Partition(levels=levels)
    if edges is not None:
        return Partition(edges)
    if isinstance(bins, str):
        return None
    size = count(bins, "bins")
    if size > _MOST_BINS:
        raise ArgumentError(f"bins must be at most {_MOST_BINS:,}.")
    return equal_bins(columns, size)


def equal_bins(columns: Columns, size: int) -> Partition:
    """Return so many bins of one width between the bounds, where floats have room for them."""
    lo, hi = columns.bounds[columns.names[0]]
    edges = np.linspace(lo, hi, size + 1)
    if not (np.diff(edges) > 0).all():
        raise ArgumentError("bins: that many would be too narrow for float64 between these bounds.")
    return Partition(edges)


def edges_of(bins: Any) -> NDArray[np.float64] | None:
    """Return the edges that a caller gives, checked; None where a number or "private" is given."""
    if isinstance(bins, str):
        if bins != "private":
            raise ArgumentError(f'bins must be "private", a number, or edges; got {shown(bins)}.')
        return None
    if not isinstance(bins, list | tuple | np.ndarray):
        return None
    try:
        edges = np.array(bins, dtype=np.float64)
    except (TypeError, ValueError):
        edges = None
    if edges is None:  # raised here: NumPy's own error quotes the item
        raise ArgumentError("bins: edges must be numbers.")
    if edges.ndim != 1 or edges.size < 2 or not np.isfinite(edges).all():
        raise ArgumentError("bins: edges must be at least two finite numbers.")
    if not fit(edges.tolist()):
        raise ArgumentError(f"bins: each edge must be {SIZES}: give the column in another unit.")
    if not (np.diff(edges) > 0).all():
        raise ArgumentError("bins: edges must be in ascending order.")
    return edges


_COUNT_SHARE: Final = Fraction(1, 50)
"""The part of eps that buys the number of rows for the bin width, where it is private."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramRequest(Choices):
    """What a caller of `dp_histogram` chose."""

    width_share: Fraction = checked(inputs.fraction_of)


def _histogram(call: Arguments) -> HistogramResults:
    request = HistogramRequest.of(call)
    edges = edges_of(call["bins"])
    if edges is not None:
        if call["bounds"] is not None:
            raise ArgumentError("edges are bounds already: leave bounds out.")
        call = {**call, "bounds": (float(edges[0]), float(edges[-1]))}
    columns = inputs.columns_of(call, request, levels_allowed=True)
    if len(columns.names) != 1:
        raise ArgumentError("dp_histogram takes one column: call it once for each.")
    bins = fixed_bins(columns, call["bins"], edges)
    columns.reader.require(1 if bins else 2, counts=bins is None)
    account = request.account()
    rows, width, counting = _stages(request, account, columns, bins)
    account.charge(call["budget"], f"dp_histogram: {columns.names[0]}")
    if bins is None:
        assert width is not None
        bins = _private_bins(columns, rows, width, counting.noise.variance)
    tally = partial(_binned, columns.names[0], bins, columns.lines)
    *counts, left = columns.total(tally, "counts").astype(np.int64)
    released = histogram.release_counts(
        np.array(counts, dtype=np.int64).reshape(columns.lines, -1),
        int(left),
        counting.noise,
        rows=columns.public_rows,
        part=counting.part,
        complete=columns.complete,
    )
    return HistogramResults(
        column=columns.names[0],
        levels=bins.levels,
        edges=bins.edges,
        binning="schema" if bins.levels else "private" if width else "given",
        estimates=np.concatenate([line.shares for line in released]),
        sampling_errors=np.concatenate([line.sampling for line in released]),
        privacy_errors=np.concatenate([line.privacy for line in released]),
        bin_counts=np.concatenate([line.counts for line in released]),
        probabilities=np.concatenate([histogram.project(line.shares) for line in released]),
        notes=histogram.doubts(columns.groups, released),
        **columns.fields(account, counting.noise.mechanism),
    )


def _stages(
    request: HistogramRequest, account: Account, columns: Columns, bins: Partition | None
) -> tuple[Bought | None, Bought | None, Bought]:
    """Fit the noise of all stages from public facts, and open their lines, in this order.

    They are the number of rows and the width of bins, not always bought, and the counts.
    """
    whole, share = request.budget.eps, request.width_share
    rows = width = None
    if bins is None:
        # What has room for the finest grid has room for all.
        equal_bins(columns, histogram.LARGEST_FINE)
        left = whole * share
        if not request.protection.n_is_public:
            if share <= _COUNT_SHARE:
                raise ArgumentError(
                    f"width_share must be above {_COUNT_SHARE} under "
                    f'neighbors="add-remove": the number of rows takes {_COUNT_SHARE} of eps.'
                )
            rows = Bought.counts(account, "number of rows", 1, Budget(whole * _COUNT_SHARE))
            left -= whole * _COUNT_SHARE
        width = Bought.counts(account, "bin width", 1, Budget(left))
    cells = columns.lines * (histogram.LARGEST_FINE if bins is None else bins.size) + 1
    cost = Budget(whole * (1 - share) if bins is None else whole, request.budget.delta)
    return rows, width, Bought.counts(account, "counts", cells, cost, request.noise)


def _private_bins(
    columns: Columns, counted: Bought | None, bought: Bought, later: float
) -> Partition:
    """Stage one: release a fine histogram of all groups together and choose the width by it.

    `later` is the variance of the noise of the counts to come.
    """
    width, rows = bought.noise, float(columns.reader.rows)
    if counted is not None:
        rows = float(columns.reader.rows + counted.noise.draw(1, counted.part)[0])
    fine = equal_bins(columns, histogram.fine_bins(max(rows, 1.0), width.cost.eps))
    *counts, _ = columns.total(partial(_binned, columns.names[0], fine, 1), "bin width")
    drawn = bought.noise.draw(fine.size, bought.part)
    noisy = np.array([float(c + z) for c, z in zip(counts, drawn, strict=True)])
    chosen = histogram.choose_bins(noisy, max(rows, 1.0), width.variance, later)
    return equal_bins(columns, chosen)


@recorded(_histogram, OfColumns)
def dp_histogram(
    x: Cells,
    data: Table = None,
    *,
    eps: Amount,
    delta: Amount = 0,
    bins: Bins = "private",
    width_share: Amount = 0.2,
    noise: str | None = None,
    **others: Unpack[OfColumns],
) -> HistogramResults:
    """Release a histogram of one column with differential privacy.

    The noise of a count does not depend on the number of bins (`dpreg.estimation.histogram`).

    Parameters
    ----------
    x : str, array, Series, DataFrame or mapping
        The name of a column of `data`, or the column itself. A categorical or Boolean column of
        the schema has a bin for each level. Values outside the bounds count in the first or last
        bin, missing ones nowhere.
    data : table, optional
        What `dpreg.sources.as_source` takes.
    eps, delta : number or decimal string
        The most that the whole call may cost; delta is spent only on Gaussian noise.
    noise : {None, "laplace", "gaussian"}
        None: the one with the least noise.
    bins : "private", int, or sequence of edges
        A number of equal bins between the bounds, at most a million; or edges, which then are
        the bounds; or "private": `width_share` of eps chooses the number of equal bins, and the
        rest buys their counts.
    width_share : number in (0, 1)
        Under add-remove it must be above 1/50, the share of eps that the number of rows takes.

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
