r"""Choose among public candidates by rank: the code behind every private quantile.

It is used for the quantile of a column, the radius of a selection and the window of
sample-and-aggregate: wherever a quantile is wanted of numbers a few of which one person can move.

Candidates c_0 < ... < c_J. Let A_j count the values at most c_j, A_(-1) = 0, and N all values.
For a target T the score of candidate j is

    s_j = max(0, A_(j-1) - T, T - A_j),

zero where the T-th smallest value lies in (c_(j-1), c_j], otherwise the number of values by which
the rank is missed. T is a N for the a-quantile, or a public number where N is public.

Statement
---------
Let k be the most values that one person has. Between neighbours the scores change within a range of

- 2k where up to k values change and N stays (blocks of rows under either relation;
  rows under replace-one with no value missing);
- 2 max(a, 1 - a) k, T = a N, where up to k values appear or vanish (add-remove);
- the larger of both, 2k, where rows are replaced and values may be missing.

Proof
-----
One value changes, N and T stay: every A_j moves by 0 or by s, the same s = 1 or s = -1 for all j
(the value passed some candidates in one direction). So both expressions in the maximum move by at
most 1, and so does their maximum with 0: the change lies in [-1, 1].
One value appears, T = a N: A_(j-1) - T moves by 1 - a or by -a, T - A_j by a or by a - 1. All
within max(a, 1 - a) in absolute value, hence also the maximum with 0. It vanishes: the same with
the sign turned. A replaced row both of whose values exist is the first case, one of whose values
is missing the second, and max(a, 1 - a) <= 1. k values: the ranges of a chain of k steps add.

Rows that move between groups
-----------------------------
Where a public column splits the rows into groups and each has its own quantile, a replaced row may
leave one group and join another: a vanished value here and an appeared one there, each changing its
group's scores within 2 max(a, 1 - a). `rank_range` then returns 4 max(a, 1 - a) k, at least 2k:
for j rows that leave a group (or join it, or change in it) that group's choice loses at most
eps j / (2k) (j / k where they change inside it), and over both groups that sums to at most eps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dpreg.arrays import Floats, Ints
from dpreg.errors import ArgumentError
from dpreg.privacy.mechanisms import draw_index
from dpreg.privacy.protection import Protection
from dpreg.privacy.stability import ScoreRange

if TYPE_CHECKING:
    from dpreg.privacy.account import Part

__all__ = [
    "RANK_UNIT",
    "cell_counts",
    "choose_rank",
    "fixed_range",
    "rank_range",
    "rank_scores",
]

RANK_UNIT: Final = 1 << 16
"""Quantiles are multiples of 1 / RANK_UNIT, so that scores are integers."""


def cell_counts(values: Floats, candidates: Floats) -> Ints:
    """Count the values in each cell (c_(j-1), c_j]; counts of disjoint sets of values add.

    Parameters
    ----------
    values : float64 array
        A value beyond the last candidate, or NaN, lies in no cell.
    candidates : float64 array, shape (J,)
        Ascending.
    """
    places = np.searchsorted(candidates, values, "left")
    return np.bincount(places, minlength=candidates.size + 1)[:-1].astype(np.int64)


def rank_scores(cells: Ints, target: int, unit: int = 1) -> Ints:
    """Return the scores, lowest best, in 1 / unit of a value.

    Parameters
    ----------
    cells : int64 array, shape (J,)
        From `cell_counts`.
    target : int
        T in the same units: a * unit * (number of values), or a public number.
    unit : int
    """
    at_most = unit * np.cumsum(cells)
    below = at_most - unit * cells
    return np.asarray(np.maximum(0, np.maximum(below - target, target - at_most)), dtype=np.int64)


def rank_range(share: int, protection: Protection, *, grouped: bool = False) -> ScoreRange:
    """Bound the range of the scores' changes for the quantile share / RANK_UNIT, T = a N.

    In 1 / RANK_UNIT of a value; values of rows may be missing under both relations. `grouped` says
    that each of several groups of rows has its own quantile, and rows may move between them.
    """
    if not 0 <= share <= RANK_UNIT:
        raise ArgumentError("a quantile lies between 0 and 1")
    one, replaced = 2 * max(share, RANK_UNIT - share), protection.changes == 2
    if replaced:
        one = 2 * one if grouped else 2 * RANK_UNIT
    return ScoreRange(
        width=protection.contributions * one, protection=protection, joint=grouped or not replaced
    )


def fixed_range(values: Protection, unit: int = RANK_UNIT) -> ScoreRange:
    """Bound the same for a public number of values, k of which may change, in 1 / unit of a value.

    Parameters
    ----------
    values : Protection
        Of the values: those of a person are replaced.
    unit : int
    """
    if values.neighbors != "replace-one":
        raise ArgumentError("a fixed number of values is replaced, not added to or removed from")
    return ScoreRange(width=2 * values.contributions * unit, protection=values)


def choose_rank(cells: Ints, share: int, *, part: Part, bound: ScoreRange) -> int:
    """Choose the index of a candidate near the quantile share / RANK_UNIT.

    Parameters
    ----------
    cells : int64 array, shape (J,)
        From `cell_counts`, of values none of which lies beyond the last candidate.
    share : int
        The quantile in 1 / RANK_UNIT.
    part : Part
        What the choice may cost.
    bound : ScoreRange
        From `rank_range` or `fixed_range`, in 1 / RANK_UNIT.
    """
    scores = rank_scores(cells, share * int(cells.sum()), RANK_UNIT)
    return draw_index(scores, bound, part, "permute-and-flip")
