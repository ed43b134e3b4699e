"""Private histograms, with given bins or with a bin width chosen privately in two stages.

Ints
------
Each row lies in one bin of one group, or is excluded. So the stacked counts change by at
most k in L1 (and k^2 in squared L2) when k rows appear or vanish, by 2k (2 k^2) when k rows are
replaced: noise of scale k/eps or 2k/eps whatever the number of bins. Proof: a row is a unit vector
or zero; the difference of two unit vectors has L1 norm at most 2 and squared L2 norm at most 2; k
rows by the triangle inequality. Where n is public and there is one group, the excluded rows
are a further bin, at no cost, and the total is n less its noisy count.

Shares and their errors
-----------------------
p_j = (noisy count)/(noisy total N). Sampling variance: `dpreg.estimation.sums`. Noise, by the
delta method:
(v - 2 p_j c + p_j^2 V)/N^2, v the variance of a count's noise, V of the total's, c their covariance
(v and B v where the total is the sum of the B counts; 0 and v where it is n less one count). The
density is the projection of the shares onto nonnegative ones of sum 1, over the widths:
post-processing that brings it nearer to every true density's shares.

Two stages
----------
*Stage one*, a share of eps: a fine histogram of D bins, D a public function of the number of rows,
with many divisors. *Stage two*: for every divisor d of D, bins are merged and the cross-validation
criterion of Rudemo (1982) for the integrated squared error is estimated, the noise's part removed:

    J(d) = 2 d/N - (d/N^2) (sum_j C_j^2 - D v1) + d^2 v2/N^2,

C_j the noisy merged counts, v1 the variance of the noise of stage one (D v1 is what it adds to the
sum of squares on average), and d^2 v2/N^2 what the noise of the counts to come adds to the error,
v2 public. The least J gives d, post-processing of a released histogram, and the rest of eps buys
counts over d equal bins. Both stages read all rows: their costs add.

*Rate.* For a smooth density the error of d bins is about d/n + C/d^2, least at d of order n^(1/3);
the noise adds d^2 v2/n^2, smaller by the factor d v2/n of order n^(-2/3). J's noise is of order
D sqrt(d) v1/n^2, of order n^(-3/2) for D and d of order n^(1/3), against differences of order
n^(-2/3). So the rate n^(-2/3) and its constant are those of the best fixed width; see
``benchmarks/classic.py`` for measured ratios.

Private quantiles with distribution-free intervals: three choices by rank.

The a-quantile is chosen among public grid points by `dpreg.privacy.ranks`, with a third of eps. Two
more choices, a third of eps each, are the ends of its interval: the cells that hold the values of
ranks a N -+ h, N the number of values; of each cell the outer edge is released, so the interval
holds what it claims whether or not the values are grid points.

Statement
---------
Let b = (range of the scores in rows)/(eps/3) be the noise scale of an end, K the most candidates
that one has and s^2 = a (1 - a) N. With

    h = b ln(K/2) + d,         P(s Z + b E > d) = alpha/2,   Z normal, E exponential,

each end lies on the wrong side of the a-quantile of the law that the values came from with chance
at most alpha/2, **whatever that law**: heaps, gaps and values between grid points included. The
one approximation is that a binomial count is taken as normal, and N as its released value.

Proof
-----
*Upper end.* Let A values lie below the quantile: a binomial count of mean at most a N and variance
about s^2. A candidate below the quantile has at most A values up to it, so it misses the rank
a N + h by a N + h - A at least; some candidate misses it by nothing. Permute-and-flip takes the
least of (score - b times standard exponential noise), so a candidate of score m beats one of score
zero with chance exp(-m/b)/2, and any of K does with chance at most K/2 exp(-m/b), that is
P(b ln(K/2) + b E > m). Here m = h - s Z. *Lower end:* the mirror image, of the inner edges of
candidates' cells.

The ln K cannot be avoided by a better proof: candidates in a gap all miss by the same number of
values, and many of them together are as likely as the one at a heap that is nearer by b ln K
(at delta = 0 every choice of an inner point pays for the number of candidates: the interior point
problem of Bun, Nissim, Stemmer and Vadhan 2015). Hence the candidates of an end are few: from the
released quantile outwards, `_STEPS` to each doubling of the distance, so K is about a hundred
whatever the grid.

Where a N + h exceeds N, or a N - h is below 0, no rank is far enough out: the end is the bound of
the column, and the other choices share its eps. (Which ends are bought follows from public and
released numbers.)

Standard error
--------------
The interval's width over the ranks that it spans stands for 1/density; times the standard deviation
of a rank it is the standard error, a (1 - a)/N for sampling and 2 (b'/N)^2 for privacy, b' the
scale of the first choice: among finely spaced candidates the rank by which a choice misses has
about Laplace's law.

Grid
----
2**16 cells between the bounds; where the bounds are whole numbers close enough together the cells
are 1/2^p wide, so that whole numbers are among the candidates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.special import erfcx, ndtr

from dpreg.arrays import Floats, Ints
from dpreg.estimation.sums import Estimate, share_errors
from dpreg.estimation.tuning import TUNING
from dpreg.privacy.account import Part
from dpreg.privacy.budget import Budget
from dpreg.privacy.mechanisms.choice import noise_scale
from dpreg.privacy.noise import VectorNoise, fit_noise, offered
from dpreg.privacy.protection import Protection, ScoreRange, VectorChange
from dpreg.privacy.ranks import RANK_UNIT, choose_rank, rank_range

_FINE: Final = (12, 24, 36, 48, 60, 120, 180, 240, 360, 720, 840, 1260, 1680, 2520, 5040)  # work
_NAMED: Final = 6  # by definition
"""Groups that a note names."""
_SEEN: Final = 2.0
"""Standard deviations of its own noise that a total must have for its shares to have errors."""
LARGEST_FINE: Final = _FINE[-1]
"""The most bins that stage one can have."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisyCounts:
    """Released counts of one group with shares and their standard errors.

    Attributes
    ----------
    counts : (B,) array
        With noise, so possibly negative; they are not adjusted to add up.
    total : float
        Released number of rows counted, at least 1.
    shares, sampling, privacy : (B,) arrays
        Estimated shares of the bins, with both parts of their standard errors: NaN where the total
        lies within twice the standard deviation of its own noise, so that nothing is known.
    """

    counts: Floats
    total: float
    shares: Floats
    sampling: Floats
    privacy: Floats


def count_change(protection: Protection, *, single: bool = False) -> VectorChange:
    """Bound the change of counts over disjoint bins of all groups; see the module.

    A `single` count, without bins or groups, moves by at most one for each row, replaced or not.
    """
    k, moved = protection.contributions, 1 if single else protection.changes
    return VectorChange(
        l1=moved * k, l2_squared=moved * k**2, protection=protection, joint=not single
    )


def count_noise(
    bins: int,
    *,
    cost: Budget,
    protection: Protection,
    noise: str | None = None,
    single: bool = False,
) -> VectorNoise:
    """Fit noise to `bins` counts: Laplace, or Gaussian where that is less and delta allows it.

    `single` as for `count_change`: each of the counts is then a release of its own.
    """
    bound = count_change(protection, single=single)
    fitted = [fit_noise(name, bound, cells=bins, cost=cost) for name in offered(noise, cost)]
    return min(fitted, key=lambda one: one.variance)


def count_cells(chunks: Iterable[tuple[Ints, Ints]], bins: int, groups: int) -> tuple[Ints, int]:
    """Count rows by group and bin: a (groups, bins) array, and the number left out.

    Parameters
    ----------
    chunks : iterable of (place, label)
        The bin of each row and its group; -1 in either leaves the row out.
    bins, groups : int
    """
    counts = np.zeros(groups * bins, dtype=np.int64)
    left = 0
    for places, labels in chunks:
        kept = (places >= 0) & (labels >= 0)
        counts += np.bincount((labels * bins + places)[kept], minlength=groups * bins)
        left += int(kept.size - kept.sum())
    return counts.reshape(groups, bins), left


def release_counts(
    counts: Ints,
    left: int,
    noise: VectorNoise,
    *,
    rows: int | None,
    part: Part,
    complete: bool = False,
) -> list[NoisyCounts]:
    """Add noise to the counts of every group; one part pays for all of them.

    Parameters
    ----------
    counts : (groups, bins) int64 array
    left : int
        Rows in no bin or group.
    noise : VectorNoise
        From `count_noise`, for one cell more than counts where `rows` is given.
    rows : int or None
        n where it is public.
    part : Part
    complete : bool
        On the caller's word no row is left out: the total is n.
    """
    groups, bins = counts.shape
    alone = groups == 1 and rows is not None and not complete
    drawn = noise.draw(counts.size + alone, part)
    noisy = np.array(
        [float(c + z) for c, z in zip(counts.ravel().tolist(), drawn, strict=False)]
    ).reshape(groups, bins)
    released = []
    for line in noisy:
        total, variance, shared = float(line.sum()), bins * noise.variance, noise.variance
        if rows is not None and groups == 1:
            shared = 0.0
            total, variance = float(rows), 0.0
            if alone:
                total, variance = float(rows - (left + drawn[-1])), noise.variance
        hidden = total < _SEEN * math.sqrt(variance)
        total = max(total, 1.0) if rows is None else min(max(total, 1.0), float(max(rows, 1)))
        shares = line / total
        inside = np.clip(shares, 0.0, 1.0)
        spread = noise.variance - 2 * inside * shared + inside**2 * variance
        privacy = np.sqrt(np.maximum(spread, 0)) / total
        sampling = share_errors(shares, total)
        if hidden:
            sampling, privacy = np.full(bins, math.nan), np.full(bins, math.nan)
        released.append(NoisyCounts(line, total, shares, sampling, privacy))
    return released


def fine_bins(rows: float, eps: Fraction) -> int:
    """Return D, the number of bins of stage one: near 8 n^(1/3), fewer where its eps is below 1/5.

    Eight times n^(1/3) is two to four times as many as smooth densities want.
    """
    reach = max(rows * float(min(TUNING.bins_rows * eps, Fraction(1))), 1.0)
    wanted = TUNING.bins * reach ** (1 / 3)  # by definition
    return min(_FINE, key=lambda size: abs(math.log(size / wanted)))


def choose_bins(fine: Floats, total: float, first: float, second: float) -> int:
    """Choose the number of bins from a released fine histogram: post-processing.

    Parameters
    ----------
    fine : (D,) array
        Released counts.
    total : float
        Public or released number of rows, at least 1.
    first, second : float
        Variances of the noise of a count, of stage one and of the counts to come.
    """
    size = fine.size
    criteria = {}
    for d in (d for d in range(1, size + 1) if size % d == 0):
        merged = fine.reshape(d, size // d).sum(axis=1)
        squares = float(merged @ merged) - size * first
        criteria[d] = 2 * d / total - d / total**2 * squares + d**2 * second / total**2
    return min(criteria, key=lambda d: criteria[d])


def project(shares: Floats) -> Floats:
    """Return the nearest nonnegative shares of sum 1 (Euclidean projection onto the simplex)."""
    shares = shares - shares.max()  # a common shift moves no projection, and saves the 1 below
    ordered = np.sort(shares)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, ordered.size + 1)
    last = int(np.flatnonzero(ordered > excess)[-1])
    return np.asarray(np.maximum(shares - excess[last], 0.0), dtype=np.float64)


def doubts(groups: Sequence[str], released: Sequence[NoisyCounts]) -> tuple[str, ...]:
    """Say where there are no intervals, or rough ones, by the released numbers."""
    notes = []
    hidden = [place for place, line in enumerate(released) if np.isnan(line.privacy).any()]
    if hidden:
        names = [groups[place] for place in hidden[:_NAMED]] if groups else ["All rows"]
        more = f" and {len(hidden) - _NAMED} more" if len(hidden) > _NAMED else ""
        notes.append(
            f"{', '.join(names)}{more}: the noise hides how many rows there are, so that nothing "
            "is known of their shares. They have no intervals."
        )
    seen = [line for place, line in enumerate(released) if place not in hidden]
    few = sum(int((line.counts < TUNING.few).sum()) for line in seen)
    if few:
        notes.append(
            f"{few:,} of {sum(line.counts.size for line in seen):,} shares seem to be of fewer "
            f"than {TUNING.few:.0f} rows. Their intervals are rough."
        )
    return tuple(notes)


GRID_CELLS: Final = 1 << 16
_STEPS: Final = 8
"""Candidates of an end to each doubling of its distance from the released quantile."""


@dataclass(frozen=True, slots=True)
class Quantile:
    """A released quantile with its interval."""

    estimate: Estimate
    lower: float
    upper: float


def candidate_grid(lo: float, hi: float) -> Floats:
    """Return the public candidates between two bounds, both included, ascending."""
    cells = GRID_CELLS
    width = hi - lo
    if lo.is_integer() and hi.is_integer() and width <= GRID_CELLS:
        cells = int(width) << int(math.log2(GRID_CELLS / width))
    return np.linspace(lo, hi, cells + 1)


def check_eps(eps: Fraction, protection: Protection, *, grouped: bool = False) -> None:
    """Raise ArgumentError where eps is too small for `private_quantile`: before it is charged."""
    widest = rank_range(RANK_UNIT, protection, grouped=grouped)
    noise_scale(eps / 3, widest.width, "permute-and-flip")


def private_quantile(
    cells: Ints,
    grid: Floats,
    share: int,
    *,
    count: float,
    part: Part,
    alpha: float,
    grouped: bool = False,
) -> Quantile:
    """Release one quantile with an interval of level 1 - alpha.

    Parameters
    ----------
    cells : int64 array
        `dpreg.privacy.ranks.cell_counts` of the values over `grid`.
    grid : float64 array
    share : int
        The quantile in 1 / RANK_UNIT.
    count : float
        Public or released number of values.
    part : Part
        What quantile and interval may cost together.
    alpha : float
    grouped : bool
        As for `dpreg.privacy.ranks.rank_range`.
    """
    eps, protection = part.cost.eps, part.protection
    rows, last = max(count, 1.0), cells.size - 1
    a = share / RANK_UNIT
    deviation = math.sqrt(a * (1 - a) * rows)
    rivals = _distances(last).size

    def bound(at: int) -> ScoreRange:
        return rank_range(at, protection, grouped=grouped)

    def scale(at: int, eps: Fraction) -> float:
        """Return the noise scale, in rows, of the choice of a rank."""
        return noise_scale(eps, bound(at).width, "permute-and-flip") / RANK_UNIT

    def rank(side: int, eps: Fraction) -> int:
        """Return the rank of an end, in 1 / RANK_UNIT; it may lie outside the possible ranks."""
        found = share
        for _ in range(3):  # the range of the scores, and with it b, depends on the rank
            b = scale(min(max(found, 0), RANK_UNIT), eps)
            margin = b * math.log(max(rivals / 2, 1.0)) + _tail(deviation, b, alpha / 2)
            found = share + side * math.ceil(min(margin / rows, 2.0) * RANK_UNIT)
        return found

    def choose(at: int, candidates: Ints) -> int:
        """Choose a place on the grid among a few, the last of which has all values up to it."""
        few = np.diff(np.cumsum(cells)[candidates], prepend=0)
        return choose_rank(few, at, part=next(parts), bound=bound(at))

    bought = [side for side in (-1, 1) if 0 <= rank(side, eps / 3) <= RANK_UNIT]
    each = eps / (1 + len(bought))
    parts = iter(part.split([Fraction(1, 1 + len(bought))] * (1 + len(bought))))
    place = choose(share, np.arange(last + 1))
    lower, below, upper, above = 0, 0, last, RANK_UNIT
    if -1 in bought:
        below, inwards = rank(-1, each), np.unique(np.append(place - _distances(place), last))
        lower = int(inwards[max(choose(below, inwards) - 1, 0)])
    if 1 in bought:
        above, outwards = rank(1, each), place + _distances(last - place)
        upper = int(outwards[choose(above, outwards)])
    slope = float(grid[upper] - grid[lower]) / (above - below) * RANK_UNIT
    noise = min(math.sqrt(2) * scale(share, each) / rows, 1.0)
    estimate = Estimate(float(grid[place]), slope * deviation / rows, slope * noise)
    return Quantile(estimate, float(grid[lower]), float(grid[upper]))


def _distances(furthest: int) -> Ints:
    """Return 0, 1, 2, ..., then `_STEPS` whole numbers to each doubling, and the furthest."""
    octaves = range(max(furthest.bit_length() - _STEPS.bit_length() + 1, 0))
    parts = [np.arange(_STEPS), *((_STEPS + np.arange(_STEPS)) << octave for octave in octaves)]
    steps = np.concatenate(parts)
    return np.append(steps[steps < furthest], furthest)


def _tail(deviation: float, scale: float, chance: float) -> float:
    """Return d such that P(deviation * Z + scale * E > d) = chance, Z normal, E exponential."""

    def beyond(d: float) -> float:
        if deviation <= 0:
            return math.exp(-d / scale)
        u, v = d / deviation, deviation / scale
        # exp(v^2/2 - d/b) Phi(u - v), written so that neither factor is far out.
        if v >= u:
            shifted = math.exp(-(u**2) / 2) * erfcx((v - u) / math.sqrt(2)) / 2
        else:
            shifted = math.exp(v * (v / 2 - u)) * ndtr(u - v)
        return float(ndtr(-u) + shifted)

    low, high = 0.0, deviation + scale
    while beyond(high) > chance:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > chance else (low, middle)
    return high
