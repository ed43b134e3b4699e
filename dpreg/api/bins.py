"""The bins of `dp_histogram`: of levels, between given edges, or equal; and rows counted in them.

Tested in `tests/api/test_classic.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpreg.api.inputs import Columns, Grouped, group_codes
from dpreg.columns import Boolean, Categorical
from dpreg.errors import ArgumentError, shown
from dpreg.estimation import histogram
from dpreg.ranges import SIZES, fit
from dpreg.request import count
from dpreg.sources import Integers

__all__ = ["BinTally", "Partition", "edges_of", "equal_bins", "fixed_bins"]

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
            return group_codes(values)
        found = np.searchsorted(self.edges, values, "right") - 1
        inside = np.clip(found, 0, self.size - 1)
        return np.where(np.isnan(values), -1, inside).astype(np.int64)


@dataclass(frozen=True, slots=True)
class BinTally:
    """Counts rows by group and bin; the number of rows in neither comes last."""

    name: str
    bins: Partition
    groups: int
    pooled: bool = False

    def __call__(self, grouped: Grouped) -> Integers:
        """Return the counts, group by group, and the rows left over."""
        placed = (
            (self.bins.place(chunk[self.name]), np.minimum(labels, 0) if self.pooled else labels)
            for chunk, labels in grouped
        )
        counts, left = histogram.count_cells(placed, self.bins.size, self.groups)
        return np.append(counts, left)


def fixed_bins(columns: Columns, bins: Any, edges: NDArray[np.float64] | None) -> Partition | None:
    """Return the bins that the caller or the schema gives; None where they are to be chosen."""
    (name,) = columns.names
    match columns.how[name]:
        case Categorical(levels):
            names = tuple(str(level) for level in levels)
            return Partition(levels=names)
        case Boolean():
            return Partition(levels=("False", "True"))
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
