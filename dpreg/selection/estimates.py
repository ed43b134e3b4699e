"""Quantities that a selection may buy before it draws: the radius, sigma^2, the number of rows.

Each is a release of its own with its own line in the budget; what is done with it afterwards is
post-processing.

Radius (sample and aggregate, Smith 2011)
-----------------------------------------
Independent coins send each row to one of B blocks, B public. In each block the full model is fitted
by least squares and |beta|_1 noted; a block whose Gram matrix is singular, or nearly so, gives a
public default. A row is in one block, with its own coin: replacing, adding or removing k rows
changes at most k of the B values, under both relations (contiguous blocks or i mod B would not do:
under add-remove they reshuffle).

*Choice among public candidates R_1 < ... < R_J by the distance of a rank.* Let c_j be the number of
values at most R_j, c_0 = 0, and r = round(quantile * B). Candidate j scores
s_j = max(0, c_(j-1) - r, r - c_j): zero where the r-th value lies in (R_(j-1), R_j]. One changed
value moves every c_j by at most 1, so every s_j by at most 1; k values, k. The range of the changes
is therefore at most 2k, and the choice is eps-DP by `dpreg.privacy.mechanisms.choice`.

Residual variance
-----------------
Q of the full model, in grid units, changes by at most D2 (`dpreg.selection.profile`): Laplace noise
of scale D2/eps_Q. The number of complete rows changes by at most k under both relations: Laplace
noise of scale k/eps_n. sigma2 = Q/(n - d) of the two noisy numbers, floored at one grid unit. It is
biased upwards where the radius binds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dpreg.moments import MOMENT_BITS, Moments
from dpreg.privacy.mechanisms import choose
from dpreg.privacy.mechanisms.additive import laplace_noise
from dpreg.selection.profile import lower_bound_shift, residual_offset, residual_sensitivity
from dpreg.selection.scores import Problem

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = [
    "RADII",
    "block_norms",
    "lower_bound",
    "noisy_count",
    "private_radius",
    "private_sigma2",
    "radius_blocks",
]

RADII: Final = tuple(Fraction(round(2 ** (12 + j / 2)), 4096) for j in range(-4, 13))
"""Candidate radii in stored units, a factor sqrt(2) apart: 1/4 to 64."""

_QUANTILE: Final = Fraction(1, 2)
_ROWS_PER_COLUMN: Final = 10
_BLOCKS_ADD_REMOVE: Final = 50


def radius_blocks(rows: int | None, columns: int) -> int:
    """Return B, a public number of blocks: ten rows a column where n is public, else 50."""
    if rows is None:
        return _BLOCKS_ADD_REMOVE
    return max(1, min(200, rows // (_ROWS_PER_COLUMN * columns)))


def block_norms(
    blocks: Sequence[Moments], columns: Sequence[int], default: float
) -> NDArray[np.float64]:
    """Return |beta|_1 of the full least squares fit in each block; curator-only."""
    norms = np.full(len(blocks), default)
    chosen = np.asarray(columns, dtype=np.intp)
    for index, block in enumerate(blocks):
        moments = block.as_float()
        gram = moments[np.ix_(chosen, chosen)]
        values, vectors = linalg.eigh(gram)
        if values[0] > 1e-9 * values[-1]:
            norms[index] = np.abs(vectors @ (vectors.T @ moments[chosen, -1] / values)).sum()
    return norms


def private_radius(
    norms: NDArray[np.float64],
    *,
    eps: Fraction,
    contributions: int,
    rng: Generator | None = None,
) -> Fraction:
    """Choose a radius, in stored units, near the middle of the blocks' norms. Costs eps.

    Parameters
    ----------
    norms : float64 array, shape (B,)
        |beta|_1 in each block; k rows change at most k of them.
    eps : Fraction
    contributions : int
    rng : numpy Generator, optional
        For reproducible runs that are **not private**.
    """
    radii = np.array([float(radius) for radius in RADII])
    at_most = (norms[:, None] <= radii).sum(axis=0)
    below = np.concatenate([[0], at_most[:-1]])
    rank = round(_QUANTILE * len(norms))
    scores = np.maximum(0, np.maximum(below - rank, rank - at_most)).astype(np.int64)
    drawn = choose(
        scores, eps=eps, score_range=2 * contributions, mechanism="permute-and-flip", rng=rng
    )
    return RADII[drawn]


def noisy_count(
    moments: Moments, *, eps: Fraction, contributions: int, rng: Generator | None = None
) -> int:
    """Release the number of complete rows, at least 1. Costs eps under both relations."""
    complete = moments.cells[0][0] >> MOMENT_BITS
    noise = laplace_noise(1, _scale_up(contributions / eps), rng=rng)[0]
    return max(complete + noise, 1)


def noisy_residuals(
    problem: Problem,
    moments: Moments,
    *,
    eps: Fraction,
    contributions: int,
    rng: Generator | None = None,
) -> int:
    """Release Q_g of the model with all columns, in grid units. Costs eps."""
    everything = range(moments.size - 1)
    full = problem.score_one(list(everything)) + residual_offset(moments, problem.rho)
    scale = residual_sensitivity(problem.rho, contributions) / eps
    return full + laplace_noise(1, _scale_up(scale), rng=rng)[0]


def lower_bound(
    problem: Problem,
    moments: Moments,
    *,
    eps: Fraction,
    delta: Fraction,
    contributions: int,
    rng: Generator | None = None,
) -> int:
    """Release A, PCPL's lower bound on the residuals, in grid units (`dpreg.selection.profile`).

    Costs (eps, delta): eps for the noise, delta for the chance that A is too high.
    """
    noisy = noisy_residuals(problem, moments, eps=eps, contributions=contributions, rng=rng)
    return noisy - lower_bound_shift(problem.rho, contributions, eps, delta)


def private_sigma2(
    problem: Problem,
    moments: Moments,
    *,
    columns: int,
    eps: Fraction,
    contributions: int,
    rng: Generator | None = None,
) -> tuple[Fraction, int]:
    """Release the residual variance of the full model and the number of complete rows.

    Four fifths of eps go to the residual sum of squares, one fifth to the count: at eps = 1 the
    first noise is (1 + rho)^2 times as large in a quantity that is smaller than the second.

    Returns
    -------
    sigma2 : Fraction
        In squared stored units of the response; at least one grid unit.
    rows : int
        The noisy count, at least 1.
    """
    residuals = noisy_residuals(
        problem, moments, eps=eps * Fraction(4, 5), contributions=contributions, rng=rng
    )
    rows = noisy_count(moments, eps=eps / 5, contributions=contributions, rng=rng)
    spare = max(rows - columns, 1)
    return max(residuals, 1) * problem.grid / spare, rows


def _scale_up(scale: Fraction) -> float:
    """Return the least float that is not below an exact scale."""
    rounded = float(scale)
    return rounded if Fraction(rounded) >= scale else math.nextafter(rounded, math.inf)
