"""Release count, sums and sums of squares of bounded columns jointly: all that means need.

`dpreg.estimation.sums` says what is released, and how far one row can move it.

Code a bounded row into cells whose noise is small: count, sums and sums of squares together.

A value x with public bounds becomes u = (x - middle)/(half the width), clipped to [-1, 1] and put
on the grid 2**-20; the sums over rows are exact integers, so the sensitivities below hold for the
numbers that the computer holds. A row with a missing value, or in no declared group, is the zero
row: it is excluded everywhere. So the number of complete rows is private under both relations
and is released with the sums. Only the caller's word (`complete`) makes it n: then w = 0 below, and
the sensitivities hold even where that word is wrong; a missing value then stands for the middle.

What is released
----------------
For each group, a vector of cells, linear in (count, sum u, sum u^2) of each of d columns, with
noise of one scale. Two codings of a row:

*power*      (w c,  u_j,  (u_j^2 - c/2)/2  for each column j),  c = 1 for a complete row;
*Bernstein*  (((1-u_j)/2)^2,  (1-u_j^2)/2,  ((1+u_j)/2)^2  for each column j).

Without squares ("degree 1") they are (w c, u_j) and ((1-u_j)/2, (1+u_j)/2). Count, sums and squares
are read off by linear maps. With w = 3d/4 (degree 1: d) for Laplace noise:

Statement
---------
One row changes the stacked vector of all groups by at most

===========  ==========================  ========================================
coding       row appears or vanishes     row replaced
===========  ==========================  ========================================
Bernstein    L1 = d, L2^2 <= d           L1 <= 2d, L2^2 <= 2d
power, 2     L1 = w + 5d/4,              in one group L1 <= max(2d, w + 5d/4),
             L2^2 <= w^2 + 17d/16        L2^2 <= max(4d, w^2 + 17d/16);
                                         across groups twice the left column
power, 1     L1 = w + d, L2^2 = w^2 + d  in one group L1 <= max(2d, w + d),
                                         L2^2 <= max(4d, w^2 + d); across: twice
===========  ==========================  ========================================

and k rows by k times as much in L1, k^2 times in L2^2. So **under replace-one the count and the
squares cost nothing**: the sum alone would have L1 = 2d. Under add-remove the Bernstein cells cost
half of what (count, sum) would, for each row adds to each column's cells a point of a simplex, and
the squares again cost nothing.

Proof
-----
*Bernstein.* The cells of a column are nonnegative and sum to 1 (the binomial theorem), exactly so
on the grid, whose units the code checks out: L1 = 1, and the sum of squares is at most the square
of the sum. A replaced row takes one such point away and adds another, in the same or in two
groups; two nonnegative vectors of sum d differ by at most 2d in L1, and by at most
|p|^2 + |q|^2 <= 2d in L2^2.
*Power, appearing.* |u| + |u^2 - 1/2|/2 <= 5/4 and u^2 + (u^2 - 1/2)^2/4 <= 17/16, both at |u| = 1.
*Power, replaced in one group, both complete.* a becomes b: with e = |a - b|, s = |a + b| <= 2 - e
a column's L1 is e (1 + s/2) <= 2e - e^2/2 <= 2, and its L2^2 is e^2 (1 + s^2/4) <=
e^2 (1 + (2-e)^2/4), increasing on [0, 2] (its derivative is 2e (1 + (2-e)(1-e)/2) > 0), so at most
4. The count stays. *One of both missing:* the row appears or vanishes. *Two groups:* it vanishes in
one and appears in the other, disjoint cells.
*k rows:* the triangle inequality along a chain of k steps.

The sum's noise, d = 1, in units of (k/eps)^2 and per row's half width: variance 8 under
replace-one, 4 under add-remove, 16 for groups under replace-one. Gaussian noise uses the power
coding with w = 3/2 under replace-one (free there as well) and w = 1 elsewhere.

Shares of rows: where an interval of one is centred, and how far sampling moves it.

The law of a count x of N rows is skew where the share is near 0 or 1, and x (N - x) is then often
0, so that x/N -+ z sqrt(x (N - x)/N)/N covers far too seldom. Agresti and Coull (1998) add two rows
that are inside and two that are not before they compute either: the interval at 95 percent is about
Wilson's, and holds for rare shares too. Privacy noise moves x/N, so its variance is added.

Means and exponential families from released sums: post-processing, with honest errors.

With released count N, sum S and sum of squares Q of u in [-1, 1] (`dpreg.estimation.sums`), noise
covariance C (3 x 3, known exactly) and m = S/N:

- mean          m,          gradient of the noise  (-m, 1, 0)/N
- variance      v = Q/N - m^2 + g'Cg,  gradient    (m^2 - v, -2m, 1)/N

by the delta method; g'Cg, the variance of the noise in m, corrects that m^2 is too large on
average. The sampling variance of the mean is v/N; it is added to the noise's, so intervals account
for both. A variance below the standard deviation of its own noise is set to that: a public rule
that matters only where noise swamps the data, and errs on the wide side.

Exponential families (`FAMILIES`): the released sums are the sufficient statistics, and the maximum
likelihood estimate is computed from them as if they were exact. Sampling errors are those of the
model (Fisher information), noise by the delta method:

===========  ================  ===================================  =========================
family       statistics        estimate                             sampling variance
===========  ================  ===================================  =========================
gaussian     sum x, sum x^2    mean, variance                       v/N, 2 v^2/N
bernoulli    sum x             probability: the mean                `dpreg.estimation.sums`
poisson      sum x             rate: the mean                       rate/N
exponential  sum x             rate: 1/mean                         rate^2/N
===========  ================  ===================================  =========================

Values are clipped to their bounds, so bounds that cut off a tail of the law bias the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpreg.arrays import Floats, Ints, Objects
from dpreg.privacy.account import Part
from dpreg.privacy.budget import Budget
from dpreg.privacy.noise import VectorNoise, fit_noise, offered
from dpreg.privacy.protection import Protection, VectorChange

_BITS: Final = 20
GRID_ONE: Final = 1 << _BITS
"""Values are integers in units of 1 / GRID_ONE."""
CELL_UNITS: Final = 1 << (2 * _BITS + 2)
"""Cells are integers in units of 1 / CELL_UNITS: squares of halves of grid numbers."""


@dataclass(frozen=True, slots=True)
class Coding:
    """Which cells a row has, and what one row can change; see the module's statement.

    Attributes
    ----------
    bernstein : bool
        Else the power coding.
    degree : {1, 2}
    columns : int
        d.
    weight : Fraction
        w of the power coding; zero leaves the count out (it is public).
    """

    bernstein: bool
    degree: int
    columns: int
    weight: Fraction = Fraction(0)

    @property
    def cells(self) -> int:
        """Number of cells of one group."""
        if self.bernstein:
            return (self.degree + 1) * self.columns
        return (self.weight > 0) + self.degree * self.columns

    def sensitivity(self, protection: Protection, grouped: bool) -> VectorChange:
        """Bound the change of the stacked cells of all groups, in cell units."""
        k, d, w = protection.contributions, self.columns, self.weight
        replaced = protection.changes == 2
        if self.bernstein:
            first, second = Fraction(d), Fraction(d)
        elif self.degree == 2:
            first, second = w + Fraction(5, 4) * d, w**2 + Fraction(17, 16) * d  # proved
        else:
            first, second = w + d, w**2 + d
        if replaced and self.bernstein:
            first, second = 2 * first, 2 * second
        elif replaced:
            moved = 2 if grouped else 1
            first = max(Fraction(2 * d), moved * first)
            second = max(Fraction(4 * d), moved * second)
        return VectorChange(
            l1=math.ceil(first * CELL_UNITS * k),
            l2_squared=math.ceil(second * CELL_UNITS**2 * k**2),
            protection=protection,
            joint=grouped or self.bernstein or not replaced,
        )

    def encode(self, exact: Sequence[int]) -> list[int]:
        """Return one group's cells, exactly, from what `accumulate` adds up of it."""
        count, *rest = map(int, exact)
        sums = [GRID_ONE * s for s in rest[: self.columns]]
        whole, squares = GRID_ONE * GRID_ONE * count, rest[self.columns :]
        if not self.bernstein:
            cells = [int(self.weight * CELL_UNITS) * count] if self.weight > 0 else []
            cells += [4 * s for s in sums]
            return cells + [2 * q - whole for q in squares] * (self.degree == 2)
        if self.degree == 1:
            return [2 * (whole + sign * s) for s in sums for sign in (-1, 1)]
        triples = zip(sums, squares, strict=True)
        return [
            cell
            for s, q in triples
            for cell in (whole - 2 * s + q, 2 * (whole - q), whole + 2 * s + q)
        ]

    def decoder(self) -> Floats:
        """Return the matrix that reads (count, sums, squares) off the cells, all in units of 1.

        Shape (1 + degree * d, cells); a public count has a row of zeros. Of the counts that the
        columns of the Bernstein coding give, the mean is taken.
        """
        d, rows = self.columns, 1 + self.degree * self.columns
        matrix = np.zeros((rows, self.cells))
        eye = np.eye(d)
        if self.bernstein:
            matrix[0] = 1 / d
            top = [-1.0, 1.0] if self.degree == 1 else [-1.0, 0.0, 1.0]
            matrix[1 : d + 1] = np.kron(eye, top)
            if self.degree == 2:
                matrix[d + 1 :] = np.kron(eye, [1.0, -1.0, 1.0])
            return matrix
        first = int(self.weight > 0)
        if first:
            matrix[0, 0] = 1 / float(self.weight)
        matrix[1 : d + 1, first : first + d] = eye
        if self.degree == 2:
            matrix[d + 1 :, first + d :] = 2 * eye
            matrix[d + 1 :] += matrix[0] / 2  # u^2 = 2 ((u^2 - c/2)/2) + c/2
        return matrix


_TOGETHER: Final = 1 << 20
"""Rows added up in int64: with |u| <= 2**20 units their squares stay below 2**60."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisySums:
    """Released sums of one group, in units of u, with the covariance of their noise.

    Attributes
    ----------
    count : float
        Released number of complete rows, or n where it is public.
    sums, squares : (d,) arrays
        sum u and sum u^2 of each column; squares are absent (empty) at degree 1.
    noise : (3, 3) array
        Covariance of the noise in (count, sum, square), the same for every column.
    """

    count: float
    sums: Floats
    squares: Floats
    noise: Floats


def plan(
    columns: int,
    groups: int,
    *,
    degree: int,
    grouped: bool,
    cost: Budget,
    protection: Protection,
    complete: bool = False,
    noise: str | None = None,
) -> tuple[Coding, VectorNoise]:
    """Choose coding and noise, from public facts: the least noise in the sums.

    Parameters
    ----------
    columns, groups : int
        d, and the number of groups whose cells are released (1 without `grouped`).
    degree : {1, 2}
        2 releases sums of squares as well.
    grouped : bool
        Whether a replaced row may move between groups.
    cost : Budget
    protection : Protection
    complete : bool
        The caller says that no value is missing; n is public.
    noise : {None, "laplace", "gaussian"}
    """
    plans = []
    for mechanism in offered(noise, cost):
        coding = _coding(columns, degree, grouped, protection, complete, mechanism)
        bound = coding.sensitivity(protection, grouped)
        fitted = fit_noise(mechanism, bound, cells=groups * coding.cells, cost=cost)
        plans.append((fitted.variance * (2 if coding.bernstein else 1), coding, fitted))
    _, coding, fitted = min(plans, key=lambda option: option[0])
    return coding, fitted


def _coding(
    d: int, degree: int, grouped: bool, protection: Protection, complete: bool, mechanism: str
) -> Coding:
    if complete:
        return Coding(False, degree, d)
    replaced = protection.changes == 2
    if mechanism == "laplace":
        if grouped or not replaced:
            return Coding(True, degree, d)
        return Coding(False, degree, d, Fraction(3 * d, 4) if degree == 2 else Fraction(d))
    together = Fraction(3, 2) if replaced and not grouped else Fraction(1)  # proved
    return Coding(False, degree, d, together)


def release(
    exact: Sequence[Sequence[int]] | Objects | Ints,
    coding: Coding,
    noise: VectorNoise,
    *,
    part: Part,
    rows: int | None = None,
) -> list[NoisySums]:
    """Add the noise and read the sums off again, group by group.

    Parameters
    ----------
    exact : array of integers
        From `accumulate`: a row for each group, in a public order.
    coding, noise
        From `plan`.
    part : Part
        What the sums of all groups may cost: they are one vector.
    rows : int, optional
        n, where the coding leaves the count out.
    """
    decoder, released = coding.decoder(), []
    d = coding.columns
    covariance = noise.variance / CELL_UNITS**2 * (decoder @ decoder.T)
    first = [0, 1, 1 + d][: 1 + coding.degree]
    small = np.zeros((3, 3))
    small[: len(first), : len(first)] = covariance[np.ix_(first, first)]
    for sums, own in zip(exact, part.across(len(exact)), strict=True):
        cells = coding.encode(sums)
        drawn = noise.draw(len(cells), own)
        noisy = np.array([(c + z) / CELL_UNITS for c, z in zip(cells, drawn, strict=True)])
        read = decoder @ noisy
        squares = read[1 + d :]
        if rows is not None:
            read[0] = rows
            squares = squares + rows / 2  # the part of the count in u^2 - c/2
        released.append(NoisySums(float(read[0]), read[1 : 1 + d], squares, small))
    return released


def to_grid(values: Floats, lo: float, hi: float) -> Floats:
    """Clip to the bounds, scale to [-1, 1], round to whole units of 2**-20. NaN stays NaN."""
    middle, half = lo + (hi - lo) / 2, (hi - lo) / 2
    scaled = np.clip((np.clip(values, lo, hi) - middle) / half, -1.0, 1.0)
    return np.asarray(np.rint(scaled * GRID_ONE), dtype=np.float64)


def accumulate(chunks: Iterable[tuple[Floats, Ints]], columns: int, groups: int) -> Objects:
    """Sum exactly, group by group, over chunks of any size.

    Parameters
    ----------
    chunks : iterable of (grid, labels)
        Rows (m, d) from `to_grid`, and each row's group, -1 for none. A row with a NaN is excluded.
    columns, groups : int

    Returns
    -------
    (groups, 1 + 2 d) array of integers
        Complete rows; sum u of each column in units of 2**-20; sum u^2 in units of 2**-40.
        Curator-only until noise is added.
    """
    totals = np.zeros((groups, 1 + 2 * columns), dtype=object)
    for grid, labels in chunks:
        kept = (labels >= 0) & ~np.isnan(grid).any(axis=1)
        cells, where = grid[kept].astype(np.int64), labels[kept]
        for group in range(groups):
            part = cells if groups == 1 else cells[where == group]
            for start in range(0, len(part), _TOGETHER):
                some = part[start : start + _TOGETHER]
                found = np.concatenate([[len(some)], some.sum(axis=0), (some * some).sum(axis=0)])
                totals[group] += found.astype(object)
    return totals


_ADDED: Final = 2.0
"""Rows of each kind."""


def centred_shares(shares: Floats, rows: Floats | float) -> Floats:
    """Return the shares that two more rows of each kind would give; released ones end at 0, 1."""
    inside = np.clip(shares, 0.0, 1.0)
    return np.asarray((inside * rows + _ADDED) / (rows + 2 * _ADDED), dtype=np.float64)


def share_errors(shares: Floats, rows: Floats | float) -> Floats:
    """Return standard errors of sampling of released shares of so many rows."""
    centres = centred_shares(shares, rows)
    return np.asarray(np.sqrt(centres * (1 - centres) / (rows + 2 * _ADDED)), dtype=np.float64)


_TINY: Final = 1e-300
_WIDEST: Final = 1e140
"""Bounds beyond have squares that, summed over rows, float64 cannot hold."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One released number with the standard errors of sampling and of privacy noise."""

    value: float
    sampling: float
    privacy: float


@dataclass(frozen=True, slots=True)
class Family:
    """What an exponential family needs: parameter names, degree of its statistics, its support.

    Attributes
    ----------
    parameters : tuple of str
    degree : {1, 2}
        2 where sum x^2 is among the sufficient statistics.
    lowest : float
        Bounds may not lie below.
    highest : float
        Bounds may not lie above.
    """

    parameters: tuple[str, ...]
    degree: int
    lowest: float = -math.inf
    highest: float = math.inf


FAMILIES: Final = {
    "gaussian": Family(("mean", "variance"), 2, -_WIDEST, _WIDEST),
    "bernoulli": Family(("probability",), 1, 0.0, 1.0),
    "poisson": Family(("rate",), 1, 0.0),
    "exponential": Family(("rate",), 1, 0.0),
}
"""The families that `dp_suffstats` knows."""


def _scale(lo: float, hi: float) -> tuple[float, float]:
    """Return middle and half of x = middle + half * u, u in [-1, 1]."""
    half = (hi - lo) / 2
    return lo + half, half


def mean_estimates(
    sums: NoisySums, bounds: Sequence[tuple[float, float]], rows: int | None
) -> tuple[Estimate, ...]:
    """Estimate each column's mean, as `family_estimates` does that of normal ones."""
    return family_estimates("gaussian", sums, bounds, rows)[::2]


def family_estimates(
    family: str, sums: NoisySums, bounds: Sequence[tuple[float, float]], rows: int | None
) -> tuple[Estimate, ...]:
    """Estimate a family's parameters for each column, in the order of `Family.parameters`.

    Parameters
    ----------
    family : str
    sums : NoisySums
        With squares where the family has them.
    bounds : sequence of (lo, hi), one a column
    rows : int or None
        n where it is public: an upper limit of the count.
    """
    estimates: list[Estimate] = []
    for column, (middle, half) in enumerate(_scale(*pair) for pair in bounds):
        mean, noise, variance, variance_noise, count = _moments(sums, column, rows)
        value, error = middle + half * mean, half * noise
        match family:
            case "gaussian":
                spread = half**2 * variance
                estimates += [
                    Estimate(value, half * math.sqrt(variance / count), error),
                    Estimate(spread, spread * math.sqrt(2 / count), half**2 * variance_noise),
                ]
            case "bernoulli":
                sampling = float(share_errors(np.array([value]), count)[0])
                estimates.append(Estimate(value, sampling, error))
            case "poisson":
                estimates.append(Estimate(value, math.sqrt(max(value, error) / count), error))
            case _:  # exponential; a mean below its own noise is set to that
                mean_value = max(value, error, _TINY)
                rate = 1 / mean_value
                relative = min(error / mean_value, 1.0)
                estimates.append(Estimate(rate, rate / math.sqrt(count), relative * rate))
    return tuple(estimates)


def sufficient_statistics(
    sums: NoisySums, bounds: Sequence[tuple[float, float]]
) -> tuple[float, ...]:
    """Return the released count, sum x and, where released, sum x^2 of each column."""
    told = []
    for column, (middle, half) in enumerate(_scale(*pair) for pair in bounds):
        total = float(sums.sums[column])
        told += [sums.count, sums.count * middle + half * total]
        if sums.squares.size:
            second = half**2 * float(sums.squares[column])
            told.append(sums.count * middle**2 + 2 * middle * half * total + second)
    return tuple(told)


def _moments(
    sums: NoisySums, column: int, rows: int | None
) -> tuple[float, float, float, float, float]:
    """Read (mean, its noise, variance, its noise, count) off the released sums, in units of u.

    All stay within what is possible, whatever the noise was.
    """
    most = math.inf if rows is None else float(max(rows, 1))
    count = min(max(sums.count, 1.0), most)
    mean = min(max(float(sums.sums[column]) / count, -1.0), 1.0)
    noise = _spread(np.array([-mean, 1.0, 0.0]) / count, sums.noise)
    if not sums.squares.size:
        return mean, noise, math.nan, math.nan, count
    raw = float(sums.squares[column]) / count - mean**2 + noise**2
    inside = min(max(raw, 0.0), 1.0)
    gradient = np.array([mean**2 - inside, -2 * mean, 1.0]) / count
    variance_noise = _spread(gradient, sums.noise)
    return mean, noise, min(max(raw, variance_noise, _TINY), 1.0), variance_noise, count


def _spread(gradient: Floats, covariance: Floats) -> float:
    return math.sqrt(max(float(gradient @ covariance @ gradient), 0.0))
