"""A released histogram: shares, counts and density, with their uncertainty.

Tested in `tests/results/test_classic.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg.errors import ArgumentError
from dpreg.results.base import ERRORS_AS
from dpreg.results.classic import Estimates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["HistogramResults"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class HistogramResults(Estimates):
    """Shares, counts and density of the bins of a column.

    `params` are the shares of the bins; `density` is the histogram as a density.

    Parameters
    ----------
    column : str
    levels : tuple of str
        The bins of a categorical column, else empty.
    edges : array or None
        The B + 1 edges of the bins of a numeric column.
    binning : {"given", "private", "schema"}
        Where the bins come from.
    by, groups
        As in `ClassicResults`.
    estimates, sampling_errors, privacy_errors : arrays
        Shares, group by group.
    bin_counts : array
        Released counts, group by group.
    probabilities : array
        The shares projected onto nonnegative numbers of sum 1, group by group.
    nobs : int or None
    passes : int
        How often the rows were read for this call; a count of them alone is not a pass.
    noise : str
    eps, delta : Fraction
    claim : PrivacyClaim
    notes : tuple of str
    """

    kind = "histogram"
    saved_as = ERRORS_AS

    column: str
    levels: tuple[str, ...] = ()
    edges: Vector | None = None
    binning: str
    bin_counts: Vector
    probabilities: Vector

    def __post_init__(self) -> None:
        """Make the fields plain, immutable values and check that they fit together."""
        self._freeze(("levels",), ("bin_counts", "probabilities"), ("edges",))
        if (self.edges is None) != bool(self.levels):
            raise ArgumentError("a histogram has either edges or levels")
        if self.edges is not None and not (
            self.edges.size >= 2 and (np.diff(self.edges) > 0).all()
        ):
            raise ArgumentError("edges must be at least two numbers, ascending")

    @property
    def labels(self) -> tuple[str, ...]:
        """The bins: levels, or intervals, the last one closed."""
        if self.edges is None:
            return self.levels
        last = len(self.edges) - 2
        pairs = zip(self.edges[:-1], self.edges[1:], strict=True)
        return tuple(
            f"[{low:.6g}, {high:.6g}{']' if j == last else ')'}"
            for j, (low, high) in enumerate(pairs)
        )

    @property
    def counts(self) -> pd.Series:
        """Released counts: unbiased, hence possibly negative."""
        return self._series(self.bin_counts)

    @property
    def share_rows(self) -> Vector:
        """Released number of rows of each bin's group, at least 1: what its share is one of."""
        lines = max(len(self.groups), 1)
        counts, shares = (v.reshape(lines, -1) for v in (self.bin_counts, self.estimates))
        largest = np.abs(counts).argmax(axis=1)[:, None]
        count, share = (np.take_along_axis(v, largest, axis=1) for v in (counts, shares))
        with np.errstate(divide="ignore", invalid="ignore"):
            rows = np.where(share == 0, 1.0, count / share)
        return np.repeat(rows.ravel(), counts.shape[1])

    @property
    def density(self) -> pd.Series:
        """The histogram as a density (a share of each level for a categorical column)."""
        return self._series(self.heights(self.probabilities))

    def plot(self, ax: Axes | None = None, alpha: float = 0.05) -> Axes:
        """Draw the histogram with intervals; see `dpreg.results.classic_plots.histogram`."""
        from dpreg.results import classic_plots

        return classic_plots.histogram(self, ax, alpha)

    def heights(self, shares: Vector) -> Vector:
        """Divide numbers, one for each bin, by the widths of the bins."""
        if self.edges is None:
            return shares
        with np.errstate(over="ignore"):  # of bins narrower than 1e-308
            return shares / np.tile(np.diff(self.edges), max(len(self.groups), 1))

    @property
    def _subject(self) -> str:
        return self.column
