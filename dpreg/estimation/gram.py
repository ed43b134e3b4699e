"""Release the noisy moment matrix of one model, once: all that its coefficients need.

The released cells are those of `dpreg.privacy.proofs`, exact integers in units of 2**-40.

Which noise
-----------
``gaussian`` (needs delta > 0): discrete Gaussian, analytic calibration. ``matrix-laplace``: pure
eps; its noise depends on a row's norm, and the response has a weight of its own
(`dpreg.privacy.look_noise`). ``laplace``: discrete Laplace, pure eps; a factor costs it as one
column, however many levels it has. With noise=None the one with the least *expected error* is
taken, a public rule: the error of the normal equations is h = e - E beta, of variance
v_iy + sum_j v_ij beta_j^2 in row i, and the rule puts sum beta_j^2 = B = 1/4 (stored units, where
the convention for the radius says |beta|_1 <= 1). At few columns a pure mechanism beats the
Gaussian even where delta is there to be spent; then none of delta is spent.

The response's weight
---------------------
Cells with the response carry more of that error than the many others. The Gaussian release gives
cells (i, y) noise of scale sigma/sqrt(g), (y, y) sigma/g, the others sigma; its sensitivity is that
of a response sqrt(g) y, at most T = D - 1 + g (`sensitivity_l2_squared`). Minimising
(B + 1/g) (D - 1 + g)^2 gives 2 B g^2 + g = D - 1, with B = 1/4 g = sqrt(2 D - 1) - 1, rounded to
an integer of at least 1. Against equal noise the squared error of the coefficients halves at
fifteen columns.

A released moment matrix.

Moments with one more level: the rows of a factor that none of its columns names.

*Statement.* A release of a model with an intercept may hold the cells of a factor's last level too,
in the coding that leaves it out: under the same bounds, so at no cost in accuracy or budget.

*Proof.* On a complete row at most one of the group's columns is 1, so r = 1 - (their sum) is 0 or
1, and 0 wherever one of them is 1: with r among them they are an exclusive group still. The bounds
of `dpreg.privacy.proofs` hold for any exclusive group and depend on the number of groups
and single columns, not on how many columns a group has. Its cells are differences of exact
integers. QED

Without it the last level's sums are what the constant's cells leave over, and the noise of all
other levels adds up in them: for L levels its standard deviation is sqrt(L) times as large.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, Protocol

import numpy as np
from numpy.random import Generator

from dpreg.arrays import Floats, Places
from dpreg.estimation.tuning import TUNING
from dpreg.privacy import proofs
from dpreg.privacy.account import Part
from dpreg.privacy.balls import float_above
from dpreg.privacy.budget import Budget
from dpreg.privacy.gaussian import discrete_sigma
from dpreg.privacy.look_noise import box_response_weight, matrix_laplace_scales, response_share
from dpreg.privacy.mechanisms.additive import gaussian_noise, laplace_noise, laplace_variance
from dpreg.privacy.mechanisms.wishart import degrees, wishart_noise
from dpreg.privacy.proofs import CELL_UNITS, Triangle
from dpreg.privacy.protection import Protection, Stability


@dataclass(frozen=True, slots=True, eq=False)
class NoisyGram:
    """A released moment matrix: safe to print, save and compute with.

    Parameters
    ----------
    cells : (d + 1, d + 1) array
        Released sum z z' over the model's d columns and the response, in stored units; symmetric.
        Products of two columns of one factor are exact zeros.
    noise_sd : (d + 1, d + 1) array
        Standard deviation of each cell's noise, 0 where nothing was released.
    count, count_sd : float
        Released number of complete rows; with an intercept it is cells[0, 0].
    triangle : Triangle
        Which cells were drawn, and which entries share one draw.
    mechanism : {"gaussian", "matrix-laplace", "laplace"}
    """

    cells: Floats
    noise_sd: Floats
    count: float
    count_sd: float
    triangle: Triangle
    mechanism: str

    @property
    def columns(self) -> tuple[int, ...]:
        """The model's columns, as z indices."""
        return self.triangle.columns


_LEAST_SCALE: Final = Fraction(1, 2**4)
"""An eps beyond about 1e8 does not lower the noise below this, in units of 2**-40: less noise would
change no result. What is private at a smaller eps is private at a larger one."""


class ExactMoments(Protocol):
    """What a release reads: sum z z', symmetric, and the rows that were summed.

    No more, as a result, which knows how a release was drawn, may not reach exact moments.
    """

    @property
    def cells(self) -> Sequence[tuple[int, ...]]: ...  # noqa: D102
    @property
    def group(self) -> str: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class _Plan:
    """One mechanism fitted to a triangle: noise scales in units of 2**-40, and how to draw."""

    bound: Stability
    sds: tuple[float, ...]
    draw: Callable[[Generator | None], list[int]]

    @property
    def mechanism(self) -> str:
        return self.bound.mechanisms[0]


def release_gram(
    moments: ExactMoments,
    columns: Sequence[int],
    *,
    exclusive: Sequence[Sequence[int]] = (),
    part: Part,
    noise: str | None = None,
    rest_of: Sequence[int] = (),
) -> NoisyGram:
    """Release the model's moments, at the cost of a part of the call's budget.

    Parameters
    ----------
    moments : Moments
        Exact; z = (1, x_1..x_p, y), the response last.
    columns : sequence of int
        z indices of the model's columns, 0 first for an intercept.
    exclusive : sequence of sequences of int
        0/1 columns of one factor, at most one of them not zero in a row.
    part : Part
        Of the rows that `moments` sums.
    noise : {None, "gaussian", "matrix-laplace", "laplace"}
        None: the least expected error among those that the part's (eps, delta) allows.
    rest_of : sequence of int
        A factor's 0/1 columns. The level that none of them names then is a column as well, the last
        but the response.

    Returns
    -------
    NoisyGram
    """
    triangle = proofs.layout(columns, exclusive)
    places = (*triangle.columns, len(moments.cells) - (not rest_of))
    plan = _choose_plan(triangle, part.cost, part.protection, noise)
    part.draw(plan.mechanism, plan.bound, moments.group)
    cells, sds = np.zeros((2, len(places), len(places)))  # of many levels most is never touched
    count, count_sd = 0.0, 0.0
    rows = with_rest(moments.cells, rest_of) if rest_of else moments.cells.__getitem__
    exact = lru_cache(maxsize=1)(rows)  # cells come row by row
    of_cells = zip(triangle.cells, triangle.entries, plan.sds, plan.draw(part.rng), strict=True)
    for cell, entries, sd, drawn in of_cells:
        i, j = (0, 0) if cell == (-1, -1) else (places[cell[0]], places[cell[1]])
        released = (exact(i)[j] + drawn) / CELL_UNITS
        if i == j == 0:
            count, count_sd = released, sd / CELL_UNITS
        for a, b in entries if cell != (-1, -1) else ():
            cells[a, b] = cells[b, a] = released
            sds[a, b] = sds[b, a] = sd / CELL_UNITS
    return NoisyGram(
        cells=cells,
        noise_sd=sds,
        count=count,
        count_sd=count_sd,
        triangle=triangle,
        mechanism=plan.mechanism,
    )


def planned_noise(
    triangle: Triangle, cost: Budget, protection: Protection, noise: str | None = None
) -> tuple[float, ...]:
    """Return the noise's standard deviation in each cell, before anything is released."""
    return tuple(sd / CELL_UNITS for sd in _choose_plan(triangle, cost, protection, noise).sds)


def _choose_plan(
    triangle: Triangle, cost: Budget, protection: Protection, noise: str | None
) -> _Plan:
    """Fit the noise that is asked for, or the one with the least expected error."""
    if noise is not None:
        return _PLANS[noise](triangle, cost, protection)
    touches = _touches(triangle)

    def expected_error(plan: _Plan) -> float:
        """Return the mean variance of a normal equation's error at |beta|^2 = B."""
        variances = np.asarray(plan.sds) ** 2
        error = float(variances[touches == 1].mean()) if (touches == 1).any() else 0.0
        return error + TUNING.expected_norm * float(variances[touches != 1].mean())

    names = [name for name in _PLANS if name != "gaussian" or cost.delta > 0]
    return min((_PLANS[name](triangle, cost, protection) for name in names), key=expected_error)


def _touches(triangle: Triangle) -> Places:
    """Count how often the response is a factor of each cell: 0, 1 or 2."""
    return np.asarray((np.array(triangle.cells) == len(triangle.columns)).sum(axis=1))


def _gaussian_plan(triangle: Triangle, cost: Budget, protection: Protection) -> _Plan:
    """Discrete Gaussian noise, the response's cells weighted."""
    weight = box_response_weight(triangle)
    squared = CELL_UNITS**2 * proofs.sensitivity_l2_squared(triangle, protection, weight)
    # As for k times the cells, so that j of a person's k rows cost j/k of eps (`in_parallel`).
    cells = len(triangle.cells) * protection.contributions
    sigma = discrete_sigma(squared, cells, cost.eps, cost.delta, largest_weight=weight)
    scales = (sigma, _divided(sigma, weight), _divided(sigma, weight**2))
    classes = _touches(triangle).tolist()

    def draw(rng: Generator | None) -> list[int]:
        pools = [
            iter(gaussian_noise(classes.count(kind), scales[kind], rng=rng)) for kind in range(3)
        ]
        return [next(pools[kind]) for kind in classes]

    sds = tuple(scales[kind] for kind in classes)
    return _Plan(Stability(protection=protection, mechanisms=("gaussian",)), sds, draw)


def _divided(sigma: float, squared_weight: int) -> float:
    """Return a float of at least sigma / sqrt(squared_weight), proved by exact comparison."""
    scale = sigma / math.sqrt(squared_weight)
    while Fraction(sigma) ** 2 > squared_weight * Fraction(scale) ** 2:
        scale = math.nextafter(scale, math.inf)
    return scale


def _laplace_plan(triangle: Triangle, cost: Budget, protection: Protection) -> _Plan:
    """Discrete Laplace noise, calibrated by the L1 sensitivity."""
    moved = proofs.sensitivity_l1(triangle, protection)
    scale = float_above(max(moved * CELL_UNITS / cost.eps, _LEAST_SCALE))
    size = len(triangle.cells)
    sds = (math.sqrt(laplace_variance(scale)),) * size
    bound = Stability(protection=protection, mechanisms=("laplace",))
    return _Plan(bound, sds, lambda rng: laplace_noise(size, scale, rng=rng))


def _matrix_laplace_plan(triangle: Triangle, cost: Budget, protection: Protection) -> _Plan:
    """Matrix-Laplace noise for (1, x, y), of which the cells that the model needs are released.

    The constant, which counts rows, is among the places even without an intercept. A cell that is
    the same in two places, (0, a) and (a, a) of a factor's column, takes the lesser noise, of
    (0, a).
    """
    ahead = int(not triangle.intercept)
    squared_norm = triangle.dimension - 1 + ahead
    scales = matrix_laplace_scales(
        len(triangle.columns) + 1 + ahead,
        min(cost.eps, 1 / _LEAST_SCALE * CELL_UNITS),
        response_share(TUNING.expected_norm * squared_norm),
        protection,
        squared_norm=squared_norm,
    )
    i, j = np.array([entries[0] for entries in triangle.entries]).T + ahead  # the count's is (0, 0)
    c, twice = np.array([float(scale) for scale in scales]), 2.0 * degrees(len(scales))
    sds = tuple(np.sqrt(twice * (c[i] * c[j]) * np.where(i == j, 2, 1)).tolist())

    def draw(rng: Generator | None) -> list[int]:
        noise = wishart_noise(scales, rng=rng)
        return [noise[row][column] for row, column in zip(i.tolist(), j.tolist(), strict=True)]

    return _Plan(Stability(protection=protection, mechanisms=("matrix-laplace",)), sds, draw)


_PLANS: Final[Mapping[str, Callable[[Triangle, Budget, Protection], _Plan]]] = {
    "laplace": _laplace_plan,
    "matrix-laplace": _matrix_laplace_plan,
    "gaussian": _gaussian_plan,
}
"""How each noise is fitted; of equally good ones the first is taken."""


def with_rest(
    cells: Sequence[tuple[int, ...]], group: Sequence[int]
) -> Callable[[int], tuple[int, ...]]:
    """Return what makes rows of the moments of (1, x_1..x_p, r, y) of those of (1, x_1..x_p, y).

    Parameters
    ----------
    cells : sequence of tuples of int
    group : sequence of int
        z indices of a factor's 0/1 columns, at most one of them not zero in a row; r is the level
        that they leave out.
    """
    last, inside = len(cells) - 1, frozenset(group)
    rest = [0] * (last + 2)
    for j in range(last + 1):
        if j not in inside:
            row = cells[j]
            rest[j + (j == last)] = row[0] - sum(row[a] for a in group)
    rest[last] = rest[0]

    def extended(place: int) -> tuple[int, ...]:
        if place == last:
            return tuple(rest)
        row = cells[min(place, last)]
        return (*row[:last], rest[place], row[last])

    return extended
