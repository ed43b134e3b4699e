"""Choose among public candidates by rank: the code behind every private quantile.

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

Private bounds of a numeric column that nobody declared: a centre, a scale, and two ends.

Four choices, each among public candidates, by permute-and-flip (by the exponential mechanism for
the centre, whose candidates are 40,000: OpenDP draws it so much faster):

1. *centre* m, near the median, among numbers of a few significant bits over all magnitudes;
2. *scale* 2^e, the power of two below which all but about 3.5% of the distances |x - m| lie;
3. *lower end* and *upper end*: m - W f and m + W f, W = 2 * 2^e, f in {1, 3/4, 1/2, .. } or a
   power of two beyond: as near as may be while some 0.4% of the rows lie outside.

Three fifths of eps go to centre and scale (1/5, 2/5), a fifth to each end: they add up to eps.

Statement
---------
With k rows a person, let L, G, Q count the rows below, above and at a candidate centre c; let E(e)
count the rows with |x - m| > 2^e, N all rows with a value, a = 9/256. The scores

    centre  max(0, (L - G - Q)/2, (G - L - Q)/2)
    scale   max(0, E(e) - a N, a N - E(e - 1))
    end     max(0, rows beyond it - b N), b = 1/256

change between neighbours within a range of 2k, 2k, k under replace-one and k, 2k, k under
add-remove. Public penalties join them. So a `BoundsSearch` is eps-DP.

Proof
-----
One row added (or removed: the same with the sign turned). *Centre*: L - G - Q and G - L - Q move
by 1 up or down for every c, their maximum with 0 by at most 1 in absolute value, half of that by
1/2: range 1. *Scale*: E(e) - a N moves by 1 - a or -a, hence the maximum by at most 1 - a in
absolute value: range below 2. *End*: the difference moves by 1 - b or -b, its positive part by
something between: range 1.
One row replaced, with a value before and after: N stays. *Centre*: one removal and one addition:
range 2. *Scale*: E moves by 0 or s for all e at once, s = 1 or s = -1 (the row's distance went one
way), so the score by at most 1 in absolute value: range 2. *End*: likewise 0 or s: range 1. A row
whose value appears or vanishes is one added or removed. k rows: the ranges of a chain of k steps
add. Each choice is eps_i-DP by `dpreg.privacy.mechanisms.choice.choose`, given the earlier ones;
they compose in sequence.

What it is good for
-------------------
Nothing here depends on a guess of the scale. The public penalties only say that magnitudes far from
1 are rarer, and that of two ends that leave the same rows outside, the nearer one is better. The
price of choosing among so many is a few dozen rows divided by eps: with `RELIABLE` rows times eps
for each column that is a small part of all rows. No value raises an error: NaN is missing,
an infinity counts as the largest number, ends are finite, and lower < upper always holds.

References
----------
Smith, A. (2011). Privacy-preserving statistical estimation with optimal convergence rates. STOC.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from dpreg.arrays import Floats, Ints
from dpreg.privacy.mechanisms.choice import draw_index, noise_scale
from dpreg.privacy.protection import Protection, ScoreRange

if TYPE_CHECKING:
    from dpreg.privacy.account import Part

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
    assert values.neighbors == "replace-one"
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


PASSES: Final = 3
"""How often the rows are gone through, for however many columns: centre, scale, both ends."""

RELIABLE: Final = 1000
"""Rows times eps for each column (and row of a person) below which private bounds are poor."""


_SHARES: Final = (Fraction(1, 5), Fraction(2, 5), Fraction(1, 5), Fraction(1, 5))
"""Of centre, scale, lower and upper end."""
_FLIP: Final = "permute-and-flip"
_UNIT: Final = 256  # scores are integers in 1/256 of a row
_OUTSIDE: Final = 9  # a = 9/256 of the rows lie outside the scale
_BEYOND: Final = 1  # b = 1/256 of them may lie beyond each end
_LARGEST: Final = 1021  # exponents stop here, so that an end and a width are finite floats
_FAR: Final = 2.0**_LARGEST
_SMALLEST: Final = -200  # anything smaller counts as zero
_NEARER: Final = 0.5  # what one step outwards costs an end, in units of its noise
_LEAST_PRICE: Final = 8.0  # in scores' units: under less noise, rounding would make penalties alike
_NEAR_STEPS: Final = 12  # from W / 64 to W, half a power of two apart; then whole powers


def search_ranges(protection: Protection) -> tuple[ScoreRange, ScoreRange, ScoreRange]:
    """Bound the changes of the scores of centre, scale and an end (see the module).

    Noise for them can be drawn at any eps of a step and any contributions (`dpreg.columns`): the
    widest is 2 x 256 x 10**6, and over a fifth of 1e-6 that is a scale of 2.6e15, below the 2**53
    at which draws end.
    """
    centre, scale, end = (
        ScoreRange(width=rows * protection.contributions * _UNIT, protection=protection)
        for rows in (protection.changes, 2, 1)
    )
    return centre, scale, end


class BoundsSearch:
    """The choices for one column, which take three passes; many columns share each pass.

    Parameters
    ----------
    part : Part
        What all four choices may cost together.

    Attributes
    ----------
    counting : callable
        What the next pass counts: a function of some of the column's values, as a float64 array,
        to an int64 vector of a public length. The vectors of all chunks add up to what `learn`
        takes. It can be pickled, and holds released numbers only.
    bounds : (float, float)
        After the third.
    """

    def __init__(self, part: Part) -> None:
        self._centre, self._scale, self._end = search_ranges(part.protection)
        self._parts = iter(part.split(_SHARES))
        self.counting: _CentreCounts | _ScaleCounts | _EndCounts = _CentreCounts()
        self.bounds: tuple[float, float] = (math.nan, math.nan)

    def learn(self, counts: NDArray[Any]) -> None:
        """Choose from the counts of a whole pass; the fourth and last choices come together."""
        counts = np.asarray(counts, dtype=np.int64)
        match self.counting:
            case _CentreCounts():
                centres, rarity = _centres()
                scores = _centre_scores(counts)
                place = self._pick(scores, rarity, "exponential", self._centre)
                self.counting = _ScaleCounts(float(centres[place]))
            case _ScaleCounts(centre):
                exponents = _exponents()
                place = self._pick(_scale_scores(counts), _rarity(exponents), _FLIP, self._scale)
                self.counting = _EndCounts(centre, _half_width(centre, int(exponents[place])))
            case _EndCounts(_, half) as ends:
                outwards = _distances(half)[1]
                lower, upper = (
                    float(side[self._pick(_end_scores(part), outwards, _FLIP, self._end)])
                    for side, part in zip(ends.candidates(), np.split(counts, 2), strict=True)
                )
                self.bounds = (lower, upper)

    def _pick(self, scores: Ints, penalty: Floats, mechanism: str, bound: ScoreRange) -> int:
        part = next(self._parts)
        price = max(noise_scale(part.cost.eps, bound.width, mechanism), _LEAST_PRICE)
        priced = scores + np.rint(penalty * price).astype(np.int64)
        return draw_index(priced, bound, part, mechanism)


@dataclass(frozen=True, slots=True)
class _CentreCounts:
    """Counts for every candidate centre: how many values have it, and how many are right of it."""

    def __call__(self, values: Floats) -> Ints:
        centres, x = _centres()[0], _present(values)
        places = np.searchsorted(centres, x, "left"), np.searchsorted(centres, x, "right")
        return np.concatenate([np.bincount(at, minlength=centres.size + 1) for at in places])


@dataclass(frozen=True, slots=True)
class _ScaleCounts:
    """Counts the distances from the centre between powers of two; those of zero come first."""

    centre: float

    def __call__(self, values: Floats) -> Ints:
        edges = np.concatenate([[0.0], np.ldexp(1.0, _exponents()[1:])])
        distance = np.abs(_present(values) - self.centre)
        return np.bincount(np.searchsorted(edges, distance, "left"), minlength=edges.size + 1)


@dataclass(frozen=True, slots=True)
class _EndCounts:
    """Counts the values beyond each candidate end, lower ones first, and all values."""

    centre: float
    half: float

    def candidates(self) -> tuple[Floats, Floats]:
        """Return the candidates of the lower and the upper end, from the centre outwards."""
        distances = _distances(self.half)[0]
        lower, upper = (np.clip(self.centre + s * distances, -_FAR, _FAR) for s in (-1.0, 1.0))
        return lower, upper

    def __call__(self, values: Floats) -> Ints:
        counted = []
        for side, ends in zip((-1.0, 1.0), self.candidates(), strict=True):
            x = np.sort(side * _present(values))
            beyond = x.size - np.searchsorted(x, side * ends, "right")
            counted.append(np.append(beyond, x.size))
        return np.concatenate(counted)


def _distances(half: float) -> tuple[Floats, Floats]:
    """Return the candidate distances of an end from the centre, and their penalties.

    The penalty grows by 0.5 for each half power of two, by 2 for each power beyond W, and slowly
    from W * 2^7 on, so that rare distant values are reached where many rows, or a large eps,
    support them.
    """
    near = [half * f * 2.0**-j for j in range(6, 0, -1) for f in (0.75, 1.0)]
    whole = np.arange(max(1, _LARGEST + 1 - math.frexp(half)[1]))
    far = np.ldexp(half, whole)
    first = _NEARER * np.arange(_NEAR_STEPS, dtype=np.float64)
    steep = 2 * np.minimum(whole, 7) + 2 * np.log1p(np.maximum(whole - 7, 0))
    return np.concatenate([near, far]), np.concatenate([first, _NEARER * _NEAR_STEPS + steep])


def _half_width(centre: float, exponent: int) -> float:
    """Return W: twice the scale, or a public width where nearly all rows are equal."""
    if exponent < _SMALLEST:
        return max(1.0, abs(centre) / 8)
    return max(2.0 ** (exponent + 1), abs(centre) * 2.0**-30)


def _rarity(exponents: Ints) -> Floats:
    """Return the public penalty of a magnitude 2^e: none from 2^-40 to 2^8, a log beyond."""
    above = 4 * np.log1p(np.maximum(exponents - 8, 0))
    return np.asarray(above + 2 * np.log1p(np.maximum(-40 - exponents, 0)), dtype=np.float64)


@cache
def _centres() -> tuple[Floats, Floats]:
    """Return the candidate centres, ascending, and their penalties.

    Zero, and both signs of 512 numbers in each octave from 1 to 2^24, where offsets are found that
    are large beside the spread (years, degrees, postal codes), 64 from 2^-20 to 2^40, 4 beyond.
    """
    parts, rarity = [], []
    for e in range(_SMALLEST, _LARGEST):
        many = 512 if 0 < e <= 24 else 64 if -20 < e <= 40 else 4
        parts.append(np.ldexp(0.5 + np.arange(many) / (2 * many), e))
        rarity.append(np.full(many, float(_rarity(np.array([e]))[0]) + np.log(many / 4)))
    positive = np.concatenate([*parts, [_FAR]])
    penalty = np.concatenate([*rarity, rarity[-1][:1]])
    grid = np.concatenate([-positive[::-1], [0.0], positive])
    return grid, np.concatenate([penalty[::-1], [0.0], penalty])


def _present(chunk: Floats) -> Floats:
    """Return the values of a chunk, infinities as the largest magnitude there is."""
    chunk = np.asarray(chunk, dtype=np.float64)
    return np.clip(chunk[~np.isnan(chunk)], -_FAR, _FAR)


def _exponents() -> Ints:
    """Return the candidate scales' exponents; the first stands for zero."""
    return np.arange(_SMALLEST - 1, _LARGEST)


def _centre_scores(counts: Ints) -> Ints:
    """Return 256 times max(0, L - G - Q, G - L - Q) / 2 for every candidate."""
    at_most, below = np.split(counts, 2)
    rows = int(at_most.sum())
    less = np.cumsum(below)[:-1]  # L: x < c, that is at most c rows right of x
    more = rows - np.cumsum(at_most)[:-1]  # G
    equal = rows - less - more
    return np.asarray(_UNIT // 2 * np.maximum(0, np.abs(less - more) - equal))


def _scale_scores(counts: Ints) -> Ints:
    """Return 256 times max(0, E(e) - a N, a N - E(e - 1)), E(e) the distances beyond 2^e.

    With N - E(e) distances of at most 2^e these are the scores of the (1 - a)-quantile.
    """
    return rank_scores(counts[:-1], (_UNIT - _OUTSIDE) * int(counts.sum()), _UNIT)


def _end_scores(counts: Ints) -> Ints:
    """Return 256 max(0, rows beyond - N / 256); N comes last."""
    return np.asarray(np.maximum(0, _UNIT * counts[:-1] - _BEYOND * int(counts[-1])))
