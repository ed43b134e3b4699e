r"""Sample and aggregate (Smith 2008, 2011): a private average of an estimator over blocks.

Independent coins send each row to one of B blocks, B public; `dpreg.estimation.blocks` computes a
number (or d of them) in each, within public bounds. Two ways to average:

*mean* (2008): the average of the block values plus noise in proportion to the width of the bounds;
*winsorized* (2011): private centre and scale of the block values give a window that holds nearly
all of them, values are clipped to it, and noise is in proportion to the window, which shrinks as
blocks grow. The window is bought with 150/B of the eps that a value of one person has (half of it
at most): what it needs, whatever B.

Statement
---------
Both are eps-DP ((eps, delta) with Gaussian noise) under both relations, for any estimator that is a
function of its block (and of fresh random numbers).

Proof
-----
Fix the coins: neighbours may be taken to agree on the blocks of all common rows, though under
add-remove these have other places ("Rows keep their coins" in `dpreg.privacy.mechanisms.coins`),
and k rows lie in at most k blocks. So at most k of the B values change, each within the bounds,
and B is fixed, under both relations. Window: the centre is the median of the values, the scale a
quantile of their distances from that released centre; each is a choice by rank among public
candidates, T = a B, N = B fixed, range 2k (`dpreg.privacy.ranks`), three and two fifths of eps_w/d
in each of d coordinates.
Average: given the window the clipped values in [-1, 1] units are B rows of a table in which at most
k rows are replaced and none is missing: `dpreg.estimation.sums` with a public count, L1 sensitivity
2 k d, squared L2 4 k^2 d, squares included. The steps compose in sequence. Averaging over the coins
keeps both.

The squares, free of charge, estimate the variance s^2 of block values; the standard error of the
average from sampling is s/sqrt(B), whatever the estimator: no formula for its variance is needed.

*Groups.* Where a public column splits the rows, each group has B blocks of its own. Under
add-remove k rows change at most k block values of all groups together. A replaced row may leave one
group and join another, which changes one value in each: k rows at most 2k. With `moved` for that
number, a choice calibrated to it loses at most eps_w j/moved where j values of its group change
(its range is linear in them), which sums to eps_w over groups; and the averages of all groups are
one vector whose changes obey the triangle inequality over the moved values, as above with moved
for k.

*Persons.* Where the table says whose row each row is, all kept rows of a person have one coin
(`dpreg.sources.persons`): without groups they lie in one block, and one value changes, whatever k.
With L groups they lie in at most k of them, in one block of each; a replaced person's rows leave at
most k and join at most k, the same block in each: at most min(k, L), or min(2k, L), values change.

*Window.* The centre is one of 2**16 points between the bounds. A stretch without values is chosen
with odds of about (its width over the spread of the values) exp(-B eps_c/(4k)), eps_c what the
centre costs: hence `TUNING.window_blocks`. The scale w is the least power of two (times the bounds'
width) with half of the distances within it, and the window reaches 5w to both sides: 3.4 to 6.7
standard deviations of a normal law. Half, because a scale that is far too wide then misses its rank
by half of all blocks. Smaller reaches cut skew block values, and intervals cover too seldom.

*Blocks.* By default B = n^(5/8)/(2 sqrt(e)), e = eps/(d k) and at most 1: between n^(1/2)/e, below
which noise dominates, and n^(3/4), above which bias does; at least the 200/e that a window needs,
and at most n/20. At n = 10,000 and eps = 1 that is 200 blocks of 50 rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from dpreg.arrays import Floats, Places
from dpreg.estimation import sums
from dpreg.estimation.blocks import Limits
from dpreg.estimation.classic import Estimate, Scale, mean_estimates
from dpreg.estimation.coding import Coding
from dpreg.estimation.tuning import TUNING
from dpreg.privacy.mechanisms import assign_blocks, groups_of_coins, noise_scale
from dpreg.privacy.protection import Protection
from dpreg.privacy.ranks import RANK_UNIT, cell_counts, choose_rank, fixed_range
from dpreg.privacy.stability import Transformation
from dpreg.privacy.vector_noise import VectorNoise

if TYPE_CHECKING:
    from numpy.random import Generator

    from dpreg.privacy.account import Part
    from dpreg.privacy.budget import Budget

__all__ = [
    "AGGREGATES",
    "Averaging",
    "block_changes",
    "check_window",
    "default_blocks",
    "draw_blocks",
    "window",
    "window_pays",
    "window_share",
]

AGGREGATES: Final = ("auto", "winsorized", "mean")
_LARGEST_SHARE: Final = Fraction(1, 2)
_CANDIDATES: Final = 1 << 16
_SCALES: Final = 24  # precision
_MEDIAN: Final = RANK_UNIT // 2


def default_blocks(rows: int, share: Fraction) -> int:
    """Return B, a public function of the (public or released) number of rows.

    Parameters
    ----------
    rows : int
    share : Fraction
        eps/(d k), for d numbers and k rows a person.
    """
    each = float(min(share, Fraction(1)))
    rate = math.pow(max(rows, 1), 0.625)  # by definition: the best rate of a mean of blocks
    wanted = max(rate / (2 * math.sqrt(each)), TUNING.window_blocks / each)
    return max(1, min(math.floor(wanted), rows // TUNING.rows_in_block))


def window_pays(blocks: int, share: Fraction) -> bool:
    """Tell, from public facts, whether there are blocks enough for a window to be found."""
    return blocks * share >= TUNING.window_blocks


def window_share(blocks: int, share: Fraction) -> Fraction:
    """Return the part of eps that buys the window: less of it the more blocks there are.

    Parameters
    ----------
    blocks : int
    share : Fraction
        eps/(d k), for d numbers and k rows a person.
    """
    return min(_LARGEST_SHARE, Fraction(TUNING.window_need) / (blocks * share))


def block_changes(
    protection: Protection, groups: int = 1, *, grouped: bool = False
) -> Transformation:
    """Say how many of all groups' block values a person can change; see the module.

    Their number is public under both relations. `grouped` says that a public column splits the
    rows into the L = `groups` groups.
    """
    moved = protection.contributions * (protection.changes if grouped else 1)
    if protection.person is not None:  # all of a person's rows have one coin
        moved = min(moved, groups)
    return Transformation(protection, Protection("replace-one", moved), joint=True)


def check_window(size: int, changes: Transformation, eps: Fraction) -> None:
    """Raise ArgumentError where eps is too small for a window: before it is charged.

    Parameters
    ----------
    size : int
        d.
    changes : Transformation
        From `block_changes`.
    eps : Fraction
        What the whole call may cost, the most that is left for window and average.
    """
    share = window_share(1, eps / (size * changes.after.contributions))
    width = fixed_range(changes.after).width
    noise_scale(eps * share / size * TUNING.window_scale, width, "permute-and-flip")


def draw_blocks(
    rows: int, blocks: int, rng: Generator | None = None, coins: Floats | None = None
) -> list[Places]:
    """Send each row to a block by its own coin; return each block's rows in their order.

    Or by `coins`, shape (rows,): those of the persons whose rows they are.
    """
    if coins is None:
        labels = assign_blocks(rows, blocks, rng=rng)
    else:
        labels = groups_of_coins(coins, blocks)
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=blocks))
    return list(np.split(order, ends[:-1]))


def window(
    values: Floats,
    limits: Limits,
    *,
    part: Part,
    changes: Transformation,
) -> Limits:
    """Release a window that holds nearly all block values.

    Parameters
    ----------
    values : (B, d) array
        Within `limits`.
    limits : Limits
    part : Part
        What the window of this group may cost.
    changes : Transformation
        From `block_changes`.
    """
    size = values.shape[1]
    each = Fraction(1, size)
    bound = changes.then(fixed_range(changes.after))
    lower, upper = [], []
    parts = iter(part.split([each - each * TUNING.window_scale, each * TUNING.window_scale] * size))
    for column, low, high in zip(values.T, limits.lower, limits.upper, strict=True):
        grid = np.asarray(np.linspace(low, high, _CANDIDATES + 1), dtype=np.float64)
        cells = cell_counts(np.asarray(np.minimum(column, grid[-1]), dtype=np.float64), grid)
        place = choose_rank(cells, _MEDIAN, part=next(parts), bound=bound)
        centre = float(grid[place])
        scales = np.array([math.ldexp(high - low, j) for j in range(-_SCALES, 1)])
        distances = np.asarray(np.minimum(np.abs(column - centre), scales[-1]), dtype=np.float64)
        cells = cell_counts(distances, scales)
        place = choose_rank(cells, _MEDIAN, part=next(parts), bound=bound)
        half = TUNING.window_reach * float(scales[place])
        ends = max(centre - half, low), min(centre + half, high)
        if not ends[0] < ends[0] + (ends[1] - ends[0]) / 2 < ends[1]:
            ends = low, high  # no width in float64
        lower.append(ends[0])
        upper.append(ends[1])
    return Limits(tuple(lower), tuple(upper))


@dataclass(frozen=True, slots=True)
class Averaging:
    """The noise of averages over blocks, planned before a row is read.

    Attributes
    ----------
    coding : Coding
    noise : VectorNoise
    """

    coding: Coding
    noise: VectorNoise

    @classmethod
    def planned(
        cls,
        size: int,
        groups: int,
        cost: Budget,
        changes: Transformation,
        noise: str | None = None,
    ) -> Averaging:
        """Plan averages of `size` numbers in each of `groups` groups, at one cost for all.

        Parameters
        ----------
        size, groups : int
        cost : Budget
        changes : Transformation
            From `block_changes`.
        noise : {None, "laplace", "gaussian"}
        """
        coding, fitted = sums.plan(
            size,
            groups,
            degree=2,
            grouped=False,
            cost=cost,
            protection=changes.after,
            complete=True,
            noise=noise,
        )
        return cls(coding, replace(fitted, bound=changes.then(fitted.bound)))

    def release(self, values: Floats, limits: Limits, part: Part) -> tuple[Estimate, ...]:
        """Release the average of one group's block values, (B, d), within `limits`.

        `limits` are public, or released by `window`.
        """
        blocks, size = values.shape
        bounds = list(zip(limits.lower, limits.upper, strict=True))
        grid = np.column_stack(
            [sums.to_grid(column, *pair) for column, pair in zip(values.T, bounds, strict=True)]
        )
        exact = sums.accumulate([(grid, np.zeros(blocks, dtype=np.int64))], size, 1)
        (noisy,) = sums.release(exact, self.coding, self.noise, rows=blocks, part=part)
        return mean_estimates(noisy, [Scale.of(*pair) for pair in bounds], blocks)
