r"""Private quantiles with distribution-free intervals: three choices by rank.

The a-quantile is chosen among public grid points by `dpreg.privacy.ranks`, with half of eps. Two
more choices, a quarter of eps each, are the ends of its interval: the quantiles

    a -+ z sqrt( a (1 - a)/N + 2 (b/N)^2 ),     b = (range of the scores in rows)/(eps/4),

N the number of values, z the normal quantile. *Why it covers:* an end is the value at the rank
a N + h + Z, Z the rank by which the choice misses; among finely spaced candidates the law of Z is
close to Laplace's of scale b, of variance 2 b^2, whatever the distribution of the values. The true
quantile lies below that end unless more than a N + h + Z values do, a binomial count of variance
a (1 - a) N independent of Z; h is z times the standard deviation of the sum of both. No density is
estimated. The standard error is the width of the interval over 2 z, divided into sampling and
privacy as the two terms under the root are.

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
from scipy.special import ndtri

from dpreg.estimation.classic import Estimate
from dpreg.privacy.mechanisms import noise_scale
from dpreg.privacy.ranks import RANK_UNIT, Counts, Floats, choose_rank, rank_range

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["Quantile", "candidate_grid", "private_quantile"]

GRID_CELLS: Final = 1 << 16
_POINT: Final = Fraction(1, 2)
_END: Final = Fraction(1, 4)


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


def private_quantile(
    cells: Counts,
    grid: Floats,
    share: int,
    *,
    count: float,
    eps: Fraction,
    alpha: float,
    neighbors: str,
    contributions: int,
    grouped: bool = False,
    rng: Generator | None = None,
) -> Quantile:
    """Release one quantile with an interval of level 1 - alpha. Costs eps.

    Parameters
    ----------
    cells : int64 array
        `dpreg.privacy.ranks.cell_counts` of the values over `grid`.
    grid : float64 array
    share : int
        The quantile in 1 / RANK_UNIT.
    count : float
        Public or released number of values.
    eps : Fraction
    alpha : float
    neighbors, contributions, grouped
        As for `dpreg.privacy.ranks.rank_range`.
    """

    def at(place: int, part: Fraction) -> float:
        reach = rank_range(place, neighbors, contributions, grouped=grouped)
        return float(grid[choose_rank(cells, place, eps=eps * part, score_range=reach, rng=rng)])

    value = at(share, _POINT)
    rows = max(count, 1.0)
    reach = rank_range(share, neighbors, contributions, grouped=grouped)
    rank = noise_scale(eps * _END, reach, "permute-and-flip") / RANK_UNIT
    a, z = share / RANK_UNIT, float(ndtri(1 - alpha / 2))
    sampling, privacy = a * (1 - a) / rows, 2 * (rank / rows) ** 2
    half = z * math.sqrt(sampling + privacy)
    ends = [min(max(round((a + side * half) * RANK_UNIT), 0), RANK_UNIT) for side in (-1, 1)]
    lower, upper = sorted(at(end, _END) for end in ends)
    error = (upper - lower) / (2 * z)
    part = sampling / (sampling + privacy)
    estimate = Estimate(value, error * math.sqrt(part), error * math.sqrt(1 - part))
    return Quantile(estimate, min(lower, value), max(upper, value))
