r"""Private quantiles with distribution-free intervals: three choices by rank.

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
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import erfcx, ndtr

from dpreg.arrays import Floats, Ints
from dpreg.estimation.classic import Estimate
from dpreg.privacy.mechanisms import noise_scale
from dpreg.privacy.ranks import (
    RANK_UNIT,
    choose_rank,
    rank_range,
)
from dpreg.privacy.stability import ScoreRange

if TYPE_CHECKING:
    from dpreg.privacy.account import Part
    from dpreg.privacy.protection import Protection

__all__ = ["Quantile", "candidate_grid", "check_eps", "private_quantile"]


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
