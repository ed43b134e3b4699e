"""Coefficients alone where rows are few, at pure eps: scales, a minimum, and one more around it.

Looks pay for the moments of the columns, which a few rows do not lift out of their noise. The
minimum of a perturbed objective (`dpreg.privacy.noise`) pays for the score alone, as its
curvature is exact. What it needs to know beforehand is little: how far rows reach, and how far
residuals.

1. Four sums: complete rows, the response and its square, the squares of all columns together
   (`dpreg.privacy.noise`); and the sums of the columns, where their noise is small beside the
   box. They give coordinates u = (x - m) / s and e = (y - m_y) / s_y: one s for all columns, as p
   of them would have p times the noise.
2. A first minimum of the losses of `dpreg.looks.minimum` in these coordinates, around zero.
3. The mean square of the residuals there, cut at 3 s_y: omega^2.
4. A second minimum around the first, of residuals in units of omega s_y. The penalty pulls towards
   the first now, and what a row may add is as much smaller as residuals are. This is released.

Statement. Each of these is eps_j-DP whatever the earlier ones gave, and all of it is
(sum eps_j)-DP.

Proof. Step 1: `dpreg.privacy.noise`. Given the values released so far, the place of the rows is
fixed before one is read again, so that steps 2 and 4 are eps_j-DP by the statement and proof of
`dpreg.looks.minimum`, of a linear model with A = R^2 and B = 1. Step 3: a row's residual is
computed from its own cells alone, by one operation after the other on each cell, and its part of
the sum is floor(2**20 min(f^2, 1)), f the residual in units of the cut: it lies in [0, 2**20]
whatever the row is. Whether the columns' sums are released, and what that leaves for step 4,
follows from the released number of rows. All mechanisms are pure, and so are sequences of them,
each chosen by what the earlier ones gave. QED

No errors are released with the coefficients: that would need the moments.

The constants below were chosen on drawn tables of normal columns with 1,000 and 10,000 rows, p = 5
to 30, correlation 0 to .9, at eps 1 and 4; the cut of the second minimum also on tables of
`benchmarks.drawn` of 1,000 and 4,000 rows.

References
----------
Kifer, D., Smith, A. and Thakurta, A. (2012). Private convex empirical risk minimization and
high-dimensional regression. Chaudhuri, K., Monteleoni, C. and Sarwate, A. (2011). Differentially
private empirical risk minimization.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.special import ndtr

from dpreg.arrays import Floats
from dpreg.estimation.tuning import TUNING
from dpreg.grouped import Vectors
from dpreg.looks.coordinates import Point, place_of
from dpreg.looks.families import Linear
from dpreg.looks.locate import farthest
from dpreg.looks.minimum import Objective, hold, released_minimum
from dpreg.looks.records import Described
from dpreg.looks.rows import Rows
from dpreg.moments import Moments, read_moments
from dpreg.privacy.account import Account, Line, Part
from dpreg.privacy.budget import Budget, decimal_string
from dpreg.privacy.noise import (
    HOLD,
    OBJECTIVE,
    PARTS,
    means_noise,
    objective_units,
    part_noise,
    scales_noise,
)
from dpreg.sources.reader import Reader

PASSES: Final = 3  # by definition
"""How often the rows are read: for the sums, and for each minimum."""
_CUTS: Final = np.geomspace(TUNING.soonest, 9.0, 80)  # precision
"""S beside R in the second minimum, in units of omega: where its noise and what cutting may move
are least together."""


@dataclass(frozen=True, slots=True, eq=False)
class OpenFew:
    """The right to draw, opened in a call's account.

    Attributes
    ----------
    eps : Fraction
        Of all steps.
    scales : Part
        Of the four sums.
    rest : Line
        Of what follows them.
    """

    eps: Fraction
    scales: Part
    rest: Line

    def take(self, step: str, mechanism: str, share: Fraction) -> Part:
        """Give a step that follows its own line, with its part."""
        part = self.rest.release(step, mechanism, Budget(self.eps * share))
        part.line.note = _shown(share)
        return part

    def last(self) -> Part:
        """Take all that is left, for the second minimum."""
        self.rest.note = _shown(self.rest.cost.eps / self.eps)
        return self.rest.part()


def open_few(account: Account, eps: Fraction) -> OpenFew:
    """Open the lines of a call's account, which is not yet charged."""
    first = Budget(eps * TUNING.sums)
    scales = account.line("number and size of rows", "discrete laplace", first)
    scales.line.note = _shown(TUNING.sums)
    rest = account.joint("coefficients", OBJECTIVE, Budget(eps - first.eps))
    return OpenFew(eps, scales, rest)


def few_fit(
    reader: Reader, design: Vectors, groups: Sequence[Sequence[int]], opened: OpenFew
) -> tuple[Floats, float]:
    """Release coefficients in box units, the constant's first, and how many rows are complete.

    Parameters
    ----------
    reader : Reader
        Of a `LocalSource`; the rows are read once for each of `PASSES`.
    design : Vectors
        Makes (1, x, y) of every row.
    groups : sequence of sequences of int
        Of the places in (1, x, y) of each factor's 0/1 columns.
    opened : OpenFew
        Of an account that is charged.
    """
    (moments,) = read_moments(reader, design)
    public = opened.scales.protection.n_is_public
    point, count = scales_of(moments, groups, opened, moments.rows if public else None)
    part = opened.take("first coefficients", OBJECTIVE, TUNING.first)
    held, point = _held(reader, design, point, TUNING.pull)
    moved, _, _ = released_minimum(held, part, count, HOLD)
    part = opened.take("spread of residuals", "discrete laplace", TUNING.spread)
    point = _around(point, moved, _spread(held, moved, part, count))
    part = opened.last()
    cut = _cut(point.size, _radius(point), count, part)
    held, point = _held(reader, design, point, cut)
    moved, _, _ = released_minimum(held, part, count, HOLD)
    return point.ahead(moved * _unit(point, cut)).shift, count


def scales_of(
    moments: Moments, groups: Sequence[Sequence[int]], opened: OpenFew, rows: int | None
) -> tuple[Point, float]:
    """Release the sums; return the point that they give, and how many rows are complete.

    Its dispersion is s_y^2. Both are kept out of reach of the sums' own noise.

    Parameters
    ----------
    moments : Moments
        Of (1, x, y), exact.
    groups, opened
        As for `few_fit`.
    rows : int or None
        Of the table, where that is public.
    """
    cells, p, who = moments.cells, moments.size - 2, opened.scales.protection
    noise = scales_noise(p, opened.scales.cost.eps, who)
    squares = sum(cells[j][j] for j in range(1, p + 1))
    exact = (cells[0][0], cells[0][-1], cells[-1][-1], squares)
    told = noise.released(exact, opened.scales, moments.group)
    least = max(noise.sds[0], 1.0)
    count = max(told[0], least) if rows is None else min(max(told[0], least), max(rows, 1))
    _, y_mean_sd, y_sd, x_sd = (sd / count for sd in noise.sds)
    y_mean = float(_shrunk(np.array([told[1]]) / count, y_mean_sd)[0])
    middle = _middle(moments, groups, opened, count)
    square = float(middle @ middle) / max(p, 1)
    x_variance = max(told[3] / count / max(p, 1) - square, x_sd / max(p, 1))
    y_variance = max(told[2] / count - y_mean**2, y_sd)
    whitening = np.eye(p) / math.sqrt(_within(x_variance, TUNING.least_column))
    dispersion = _within(y_variance, TUNING.least_response)
    point = Point(middle, whitening, np.zeros(p), y_mean, 1.0, dispersion, np.ones(p), np.ones(p))
    return point, count


def _radius(point: Point) -> float:
    """Return R: no row within its bounds is longer, or longer than usual rows."""
    longest, _ = farthest(point, Linear(), _described(point))
    return math.sqrt(min(TUNING.reach * point.size, longest))


def _described(point: Point) -> Described:
    """Return what of (1, x, y) is what: all columns have coefficients."""
    return Described(tuple(range(1, point.size)))


def _unit(point: Point, cut: float) -> float:
    """Return the unit of steps of a minimum: where the residual of a row at R is cut, times R."""
    return cut * _radius(point) * math.sqrt(point.dispersion)


def _held(reader: Reader, design: Vectors, point: Point, cut: float) -> tuple[Objective, Point]:
    """Read the complete rows once; return their losses around the point, and it as rounded.

    Parameters
    ----------
    reader, design
        As for `few_fit`.
    point : Point
    cut : float
        S beside R, in units of tau.
    """
    place, at = place_of(
        point,
        Linear(),
        information=_radius(point) ** 2,
        score=2 * _unit(point, cut),
        bend=1.0,
    )
    rows = Rows(design, _described(point), place)
    return hold(rows, map(rows.cells, reader.chunks(design.types, "rows"))), at


def _middle(
    moments: Moments, groups: Sequence[Sequence[int]], opened: OpenFew, count: float
) -> Floats:
    """Release the columns' means, and shrink them by their noise; zeros where that is too much."""
    p = moments.size - 2
    noise = means_noise(max(p, 1), groups, opened.eps * TUNING.sums, opened.scales.protection)
    sd = noise.sds[0] / count
    if not p or sd > TUNING.centred:
        return np.zeros(p)
    part = opened.take("middle of the columns", "discrete laplace", TUNING.sums)
    told = noise.released(moments.cells[0][1:-1], part, moments.group)
    return _shrunk(np.array(told) / count, sd)


def _shrunk(means: Floats, sd: float) -> Floats:
    """Return means of the box, nearer to 0 the more of their squares may be noise."""
    seen = max(float(means @ means) / len(means) - sd**2, 0.0)
    return np.clip(means, -1.0, 1.0) * (seen / (seen + sd**2))


def _spread(held: Objective, moved: Floats, part: Part, count: float) -> float:
    """Release omega^2, in units of s_y^2: at most 1."""
    x, left = held.x, held.y.copy()
    for column, t in zip(x.T, moved, strict=True):  # by single operations: a row has its own bits
        left -= column * t
    far = np.square(np.clip(left / x[:, 0] * (TUNING.pull * held.radius / TUNING.cut), -1.0, 1.0))
    exact = int(np.floor(far * PARTS).astype(np.int64).sum())
    noise = part_noise(part.cost.eps, part.protection)
    (told,) = noise.released((exact,), part)
    square = max(told, noise.sds[0]) * TUNING.cut**2 / count
    return _within(square, TUNING.least_response)


def _cut(size: int, radius: float, count: float, part: Part) -> float:
    """Return where residuals of a row at R are cut in the second minimum, in units of omega."""
    sd, _ = objective_units(size, part.cost.eps, part.protection)
    noise = size * (sd * radius * _CUTS / (count * (2 * ndtr(_CUTS) - 1))) ** 2
    return float(_CUTS[int(np.argmin(noise + TUNING.skew * np.exp(-2 * (1 + _CUTS))))])


def _around(point: Point, moved: Floats, spread: float) -> Point:
    """Return the first minimum, and what is left of the dispersion there."""
    there = point.ahead(moved * _unit(point, TUNING.pull))
    return replace(there, dispersion=point.dispersion * spread)


def _within(variance: float, least: float) -> float:
    return min(max(variance, least), 1.0)


def _shown(share: Fraction) -> str:
    return f"share {decimal_string(share)}"
