"""Released means, quantiles, parameters and histograms, with their uncertainty.

Tested in `tests/results/test_classic.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd
from scipy.special import chdtrc, ndtri

from dpreg.errors import NotReleased
from dpreg.results import inference, notes, plots
from dpreg.results.base import Released, WithErrors
from dpreg.results.contrast import WaldTest
from dpreg.results.saved import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Estimates(WithErrors, Released):
    """The part that estimates of any kind share: numbers with two kinds of standard error."""

    _one_each: ClassVar[tuple[str, ...]] = ()
    """Further fields that have a number for each estimate."""

    noise: str
    by: str | None = None
    groups: tuple[str, ...] = ()
    estimates: Vector
    sampling_errors: Vector
    privacy_errors: Vector

    @property
    def labels(self) -> tuple[str, ...]:
        """What is estimated, in each group."""
        raise NotImplementedError

    @property
    def params(self) -> pd.Series:
        """The estimates."""
        return self._series(self.estimates)

    @property
    def bse(self) -> pd.Series:
        """Standard errors: sampling error and privacy noise together."""
        with np.errstate(over="ignore"):
            return self._series(np.hypot(self.sampling_errors, self.privacy_errors))

    def conf_int(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return intervals of level 1 - alpha, columns 0 and 1, sampling and noise included."""
        return self._frame(self._limits(inference.level(alpha)))

    def _limits(self, alpha: float) -> Vector:
        errors, rows = self.bse.to_numpy(), self.share_rows
        if rows is not None:
            return inference.share_intervals(self.estimates, rows, errors, alpha)
        return inference.normal_intervals(self.estimates, errors, alpha)

    @property
    def share_rows(self) -> Vector | None:
        """Released numbers of rows that the estimates are shares of, None where they are none."""
        return None

    def _index(self) -> pd.Index:
        if not self.groups:
            return pd.Index(list(self.labels))
        if len(self.labels) == 1:
            return pd.Index(list(self.groups), name=self.by)
        return pd.MultiIndex.from_product([self.groups, self.labels], names=[self.by, None])

    def _faults(self) -> Iterator[tuple[bool, str]]:
        size = max(len(self.groups), 1) * len(self.labels)
        for name in ("estimates", "sampling_errors", "privacy_errors", *self._one_each):
            array = getattr(self, name)
            wrong = array is not None and array.shape != (size,)
            yield wrong, f"{name} must hold {size} numbers, one for each estimate"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ClassicResults(Estimates):
    """Means, quantiles, parameters of a family, or an aggregated estimate.

    Parameters
    ----------
    statistic : str
        "mean", "quantile", "gaussian" and other families, "sample and aggregate".
    names : tuple of str
        What is estimated, in each group.
    by : str or None
        The grouping column; `groups` are its levels, in their declared order.
    groups : tuple of str
    estimates, sampling_errors, privacy_errors : arrays
        Group by group, in the order of `names`.
    lower, upper : arrays or None
        Released ends of intervals of level 1 - `alpha`, where these are not normal ones.
    alpha : float or None
    counts : array or None
        Released number of complete rows in each group.
    sufficient : array or None
        Released sufficient statistics, group by group; `sufficient_names` say which.
    sufficient_names : tuple of str
    nobs : int or None
        Rows, where their number is public (replace-one, without `person`); else None.
    passes : int
        How often the rows were read for this call; a count of them alone is not a pass.
    blocks : int or None
        Number of blocks of sample-and-aggregate.
    bounds : mapping of str to (lo, hi) array
    noise : str
    eps, delta : Fraction
        As typed in the call: the most that it may cost. `spent` is what it did cost.
    claim : PrivacyClaim
    notes : tuple of str
    """

    kind = "classic"
    title = "{0.statistic}"
    subject = "statistic"
    _one_each = ("lower", "upper")

    statistic: str
    names: tuple[str, ...]
    lower: Vector | None = None
    upper: Vector | None = None
    alpha: float | None = None
    counts: Vector | None = None
    sufficient: Vector | None = None
    sufficient_names: tuple[str, ...] = ()
    blocks: int | None = None
    bounds: Mapping[str, Vector]

    def _faults(self) -> Iterator[tuple[bool, str]]:
        yield from Estimates._faults(self)
        apart = len({self.lower is None, self.upper is None, self.alpha is None}) > 1
        yield apart, "lower, upper and alpha belong together"
        lines = max(len(self.groups), 1)
        wrong = self.counts is not None and self.counts.size != lines
        yield wrong, "counts must hold one number for each group"
        cells = lines * len(self.sufficient_names)
        wrong = self.sufficient is not None and self.sufficient.size != cells
        yield wrong, "sufficient does not match sufficient_names"

    @property
    def labels(self) -> tuple[str, ...]:
        """What is estimated, in each group."""
        return self.names

    @property
    def complete_rows(self) -> pd.Series:
        """Released, noisy numbers of complete rows, by group."""
        return self._by_group("complete_rows is", self.counts, ["all"])["all"].rename(None)

    @property
    def sufficient_statistics(self) -> pd.DataFrame:
        """Released sufficient statistics, a line for each group."""
        named = list(self.sufficient_names)
        return self._by_group("sufficient_statistics are", self.sufficient, named)

    def _by_group(self, asked: str, values: Vector | None, columns: list[str]) -> pd.DataFrame:
        if values is None:
            raise NotReleased(f"{asked} not released by this {self.statistic}.")
        index = pd.Index(list(self.groups) or ["all"], name=self.by)
        table = values.reshape(-1, len(columns)).copy()
        return self.claim.marked(pd.DataFrame(table, index, columns))

    def _limits(self, alpha: float) -> Vector:
        """Stretch released ends to another level as normal ones would, within the bounds."""
        if self.lower is None or self.upper is None or self.alpha is None:
            if self.blocks is None:
                return Estimates._limits(self, alpha)
            degrees = max(self.blocks - 1, 1)
            return inference.normal_intervals(self.estimates, self.bse.to_numpy(), alpha, degrees)
        ends = np.column_stack([self.lower, self.upper])
        if alpha == self.alpha:
            return ends
        factor = ndtri(1 - alpha / 2) / ndtri(1 - self.alpha / 2)
        middle = self.estimates[:, None]
        low, high = notes.ends_of(self).T[:, :, None]
        stretched = middle + factor * (ends - middle)
        return np.asarray(np.clip(stretched, low, high), dtype=np.float64)

    @property
    def share_rows(self) -> Vector | None:
        """Released numbers of rows that the estimates are shares of, None where they are none."""
        if self.statistic != "bernoulli" or self.counts is None:
            return None
        rows = np.clip(self.counts, 1.0, None if self.nobs is None else max(self.nobs, 1))
        return np.repeat(rows, len(self.names))


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
    title = "histogram: {0.column}"
    subject = "column"
    _one_each = ("bin_counts", "probabilities")

    column: str
    levels: tuple[str, ...] = ()
    edges: Vector | None = None
    binning: str
    bin_counts: Vector
    probabilities: Vector

    def _faults(self) -> Iterator[tuple[bool, str]]:
        yield from Estimates._faults(self)
        yield (self.edges is None) != bool(self.levels), "a histogram has either edges or levels"
        edges = np.arange(2) if self.edges is None else self.edges
        wrong = edges.size < 2 or not (np.diff(edges) > 0).all()
        yield wrong, "edges must be at least two numbers, ascending"

    @property
    def labels(self) -> tuple[str, ...]:
        """The bins: levels, or intervals, the last one closed."""
        if self.edges is None:
            return self.levels
        closed = [")"] * (len(self.edges) - 2) + ["]"]
        ends = zip(self.edges[:-1], self.edges[1:], closed, strict=True)
        return tuple(f"[{low:.6g}, {high:.6g}{end}" for low, high, end in ends)

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

    def test_nominal_association(self) -> WaldTest:
        """Test that the shares of the levels are the same in all groups of `by`.

        A chi-square test of the table of two factors whose null law holds the noise: where counts
        are N (P + E), P = r c' of the groups' and levels' shares, D = P - r c' has the covariance
        (diag r - r r') x (diag c - c c') / N of sampling and v/N^2 (A A') x (B'B) of noise of
        variance v a count, A = I - r 1' and B = I - 1 c'. Rows are independent.

        Raises
        ------
        NotReleased
            Without groups, or where the noise hides one or a level in all of them.
        """
        if len(self.groups) < 2 or len(self.labels) < 2:
            raise NotReleased("an association takes two factors: name the second by by=.")
        shape = len(self.groups), len(self.labels)
        counts = self.bin_counts.reshape(shape)
        rows, p, size = self.share_rows, self.estimates, shape[1]
        total = counts.sum()
        # What the noise has of a share: v (1 - 2 p + B p^2)/rows^2 (`dpreg.estimation.histogram`).
        of_noise = (self.privacy_errors * rows) ** 2 / (1 - 2 * p + size * p * p)
        r, c = counts.sum(axis=1) / total, counts.sum(axis=0) / total
        if not np.isfinite(of_noise).all() or min(r.min(), c.min()) <= 0:
            raise NotReleased("this test is not released: the noise hides a group, or a level.")
        A = np.eye(shape[0]) - np.outer(r, np.ones(shape[0]))
        B = np.eye(size) - np.outer(np.ones(size), c)
        noise = float(np.median(of_noise)) / total**2
        sampling = np.kron(A @ np.diag(r), np.diag(c) @ B) / total
        covariance = sampling + noise * np.kron(A @ A.T, B.T @ B)
        kept = np.arange(counts.size).reshape(shape)[:-1, :-1].ravel()
        apart = (counts / total - np.outer(r, c)).ravel()[kept]
        statistic = float(apart @ np.linalg.solve(covariance[np.ix_(kept, kept)], apart))
        tail = float(chdtrc(kept.size, max(statistic, 0.0)))
        return WaldTest(statistic, tail, kept.size, self.claim)

    @property
    def density(self) -> pd.Series:
        """The histogram as a density (a share of each level for a categorical column)."""
        return self._series(self.heights(self.probabilities))

    def plot(self, ax: Axes | None = None, alpha: float = 0.05) -> Axes:
        """Draw the histogram with intervals; see `dpreg.results.plots.histogram`."""
        return plots.histogram(self, ax, alpha)

    def heights(self, shares: Vector) -> Vector:
        """Divide numbers, one for each bin, by the widths of the bins."""
        if self.edges is None:
            return shares
        with np.errstate(over="ignore"):  # of bins narrower than 1e-308
            return shares / np.tile(np.diff(self.edges), max(len(self.groups), 1))
