"""The two engines that draw a model: list them all, or search the tree.

Both draw from the same law (`tests/selection/tree/test_sampler.py` says so); which one runs
is chosen from public facts, the number of models and the mechanism, and is printed with the result.

Quantities that a selection may buy before it draws: the radius, sigma^2, the number of rows.

Each is a separate release with its own line in the budget; anything done with it afterwards is
post-processing.

Radius (sample and aggregate, Smith 2011)
-----------------------------------------
Independent coins send each row to one of B blocks, B public. In each block the full model is fitted
by least squares with a public ridge of one row, so that a singular block has a fit too, and
|beta|_1 is noted; a block with fewer rows than columns gives a public default. A row is in one
block, with its own coin: replacing, adding or removing k rows changes at most k of the B values,
under both relations (contiguous blocks or i mod B would not work: under add-remove they reshuffle).

The cell of a public grid that holds the middle value is chosen by `dpreg.privacy.ranks`: k values
change and B stays, so the range of its scores' changes is 2k. Its lower end is the radius.

Why the lower end: the best radius lies below the norm of the full fit, because noise grows like R^2
and the models that win are smaller than the full one. Measured with exact probabilities at eps = 1:
King County, norm 2.2, is best near 2 (grade and sqft_living are both drawn with probability .89; at
R = 1, .01; at 4, .10); simulated Bay Area, norm 3.5, near 2; randhie, norm 1.05, between 1 and 2.

Residual variance
-----------------
Q of the full model, in grid units, changes by at most D2 (`dpreg.selection.contest`):
Laplace noise of scale D2/eps_Q. The number of complete rows changes by at most k under both
relations: Laplace noise of scale k/eps_n. sigma2 = Q/(n - d) of the two noisy numbers, floored at
one grid unit. It is biased upwards where the radius binds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import linalg

from dpreg.arrays import MOMENT_BITS, Bools, Floats, Ints
from dpreg.errors import ArgumentError
from dpreg.moments import Moments
from dpreg.privacy.balls import float_above
from dpreg.privacy.budget import ALL_ROWS
from dpreg.privacy.composition import DrawPlan
from dpreg.privacy.mechanisms.additive import laplace_noise
from dpreg.privacy.mechanisms.choice import draw_index, effective_t, noise_scale
from dpreg.privacy.protection import AccountError, Protection, Transformation, VectorChange
from dpreg.privacy.ranks import cell_counts, fixed_range, rank_scores
from dpreg.selection.contest import (
    Contest,
    lower_bound_shift,
    residual_change,
    residual_offset,
    residuals,
)
from dpreg.selection.scoring.problem import Problem
from dpreg.selection.space import Space
from dpreg.selection.tree.noise import Bits
from dpreg.selection.tree.search import Tree

if TYPE_CHECKING:
    from dpreg.privacy.account import Part

LARGEST_LIST: Final = 2**20
"""More models than this are never listed."""

_AUTO_LIST: Final = 2**14
"""Spaces up to this size are listed by ``engine="auto"``: a list is as quick as a tree there."""


def choose_engine(engine: str, space: Space, mechanism: str) -> str:
    """Return "enumerate" or "tree" from public facts, or raise ArgumentError."""
    if engine == "tree" and mechanism == "laplace":
        raise ArgumentError(
            'engine="tree" cannot draw mechanism="laplace": its noise has no exact law for a '
            'maximum over many models here. Use "permute-and-flip", which is never worse.'
        )
    size = space.size
    if engine == "auto":
        engine = "enumerate" if size <= _AUTO_LIST or mechanism == "laplace" else "tree"
    if engine == "enumerate" and size > LARGEST_LIST:
        raise ArgumentError(
            f"the space holds {size} models and at most {LARGEST_LIST} are listed: set max_terms, "
            'or use engine="tree" with "permute-and-flip" or "exponential".'
        )
    return engine


class Enumerated:
    """The engine that lists every model of a space, with its total score.

    Attributes
    ----------
    models : bool array, shape (K, units)
    scores : int64 array, shape (K,)
        Charges included.
    """

    __slots__ = ("_contest", "_group", "_mechanism", "models", "scores")

    def __init__(self, problem: Problem, space: Space, contest: Contest, plan: DrawPlan) -> None:
        self._group, self._contest, self._mechanism = problem.group, contest, plan.mechanism
        self.models: Bools = space.models()
        self.scores: Ints = contest.totals(
            problem.scores(space.columns(self.models)), self.models, space
        )

    def draw(self, part: Part, *, progress: bool = False) -> tuple[int, ...]:
        """Draw one model at the cost of a part: the indices of its units outside ``keep``."""
        bound = self._contest.score_range
        drawn = draw_index(self.scores, bound, part, self._mechanism, self._group)
        return tuple(np.flatnonzero(self.models[drawn]).tolist())


class Searched:
    """The engine that searches the tree of models, made for the rate of one draw."""

    __slots__ = ("_contest", "tree")

    def __init__(self, problem: Problem, space: Space, contest: Contest, plan: DrawPlan) -> None:
        self._contest = contest
        rate = effective_t(plan.eps_each, contest.score_range.width, plan.mechanism)
        self.tree = Tree(problem, space, contest, mechanism=plan.mechanism, t=rate)

    def draw(self, part: Part, *, progress: bool = False) -> tuple[int, ...]:
        """Draw one model, as `Enumerated` does; the tree's rate must be the part's.

        `progress` shows the progress of the search on stderr, for the curator's eyes.
        """
        tree, bound = self.tree, self._contest.score_range
        eps = part.draw(tree.mechanism, bound, tree.problem.group).eps
        if tree.t != effective_t(eps, bound.width, tree.mechanism):
            raise AccountError("internal error: the tree was made for another rate than is charged")
        return tree.draw(Bits(part.rng), progress=progress).units


ENGINES: Final[Mapping[str, type[Enumerated] | type[Searched]]] = {
    "enumerate": Enumerated,
    "tree": Searched,
}
"""The engines, by the names that `choose_engine` returns; made once for all draws of a call."""


RADII: Final = tuple(Fraction(round(2 ** (12 + j / 2)), 4096) for j in range(-2, 9))  # precision
"""Ends of the grid of radii in stored units, a factor sqrt(2) apart: 1/2 to 16."""

_CHOOSER: Final = "permute-and-flip"
_QUANTILE: Final = Fraction(1, 2)
_ROWS_PER_COLUMN: Final = 5
"""Rows a column of each block that tells a radius: fewer make norms too large
(`python -m benchmarks.select`, 2026-07)."""
_MOST_BLOCKS: Final = 200
"""Blocks at most: so many tell the radius as well as more do (`python -m benchmarks.select`,
2026-07)."""
_OF_SQUARES: Final = Fraction(4, 5)
"""Share of the eps of sigma2 that goes to the residual sum of squares, the rest to the count: less
is noisier (`python -m benchmarks.select`, 2026-07)."""
_RIDGE: Final = 1.0


def radius_blocks(rows: int | None, columns: int) -> int:
    """Return B, a public number of blocks: five rows a column where n is public, at most 200.

    The rank is missed by about 2 k log(number of radii) / eps blocks, about 50 at eps = 0.1: B must
    be several times that for the radius to be informative.
    """
    if rows is None:
        return _MOST_BLOCKS
    return max(1, min(_MOST_BLOCKS, rows // (_ROWS_PER_COLUMN * columns)))


def block_norms(blocks: Sequence[Moments], columns: Sequence[int], default: float) -> Floats:
    """Return |beta|_1 of the full model's ridged fit in each block; curator-only."""
    norms = np.full(len(blocks), default)
    chosen = np.asarray(columns, dtype=np.intp)
    for index, block in enumerate(blocks):
        moments = block.as_float()
        if moments[0, 0] >= len(chosen):
            gram = moments[np.ix_(chosen, chosen)] + _RIDGE * np.eye(len(chosen))
            fitted = linalg.solve(gram, moments[chosen, -1], assume_a="pos")
            norms[index] = np.abs(fitted).sum()
    return norms


def norm_changes(protection: Protection) -> Transformation:
    """Say how many of the blocks' norms a person can change: one for each row (see the module)."""
    return Transformation(protection, Protection("replace-one", protection.contributions))


def check_radius(eps: Fraction, protection: Protection) -> None:
    """Reject, before anything is charged, an eps for which no radius can be drawn."""
    try:
        noise_scale(eps, fixed_range(norm_changes(protection).after, 1).width, _CHOOSER)
    except ArgumentError:
        raise ArgumentError(
            "the part of eps for the radius is too small to draw one: raise eps or shares['radius']"
        ) from None


def private_radius(norms: Floats, part: Part) -> Fraction:
    """Choose a radius, in stored units, near the middle of the blocks' norms.

    Parameters
    ----------
    norms : float64 array, shape (B,)
        |beta|_1 in each block.
    part : Part
    """
    radii = np.array([float(radius) for radius in RADII])
    scores = rank_scores(cell_counts(norms, radii), round(_QUANTILE * len(norms)))
    changes = norm_changes(part.protection)
    drawn = draw_index(scores, changes.then(fixed_range(changes.after, 1)), part, _CHOOSER)
    return RADII[max(drawn - 1, 0)]


def noisy_count(moments: Moments, part: Part) -> int:
    """Release the number of complete rows, at least 1; the cost holds under both relations."""
    return noisy_rows(moments.cells[0][0] >> MOMENT_BITS, part, moments.group)


def noisy_rows(rows: int, part: Part, group: str = ALL_ROWS) -> int:
    """Release a number of rows of a group, at least 1; at the same cost under both relations.

    One person's rows are at most k = `contributions`. They appear or vanish, or, where persons are
    replaced and the number of rows is private, i <= k of them vanish and j <= k appear: the number
    changes by at most k.
    """
    k = part.protection.contributions
    change = VectorChange(l1=k, l2_squared=k**2, protection=part.protection)
    return max(rows + _noise(change, part, group), 1)


def _noise(change: VectorChange, part: Part, rows: str) -> int:
    """Draw Laplace noise for one number."""
    eps = part.draw("laplace", change, rows).eps
    return laplace_noise(1, float_above(change.l1 / eps), rng=part.rng)[0]


def noisy_residuals(problem: Problem, moments: Moments, part: Part) -> int:
    """Release Q_g of the model with all columns, in grid units."""
    best = problem.scores(np.ones((1, problem.width), dtype=np.bool_))
    full = int(residuals(best, residual_offset(moments, problem.rho))[0])
    return full + _noise(residual_change(problem.rho, part.protection), part, moments.group)


def lower_bound(problem: Problem, moments: Moments, part: Part) -> int:
    """Release A, PCPL's lower bound on the residuals, in grid units.

    See `dpreg.selection.contest`. The part's eps is for the noise, its delta for the
    chance that A is too high.
    """
    cost, change = part.cost, residual_change(problem.rho, part.protection)
    shift = lower_bound_shift(change, cost.eps, cost.delta)
    return noisy_residuals(problem, moments, part) - shift


def private_sigma2(
    problem: Problem,
    moments: Moments,
    part: Part,
    *,
    columns: int,
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
    of_squares, of_rows = part.split((_OF_SQUARES, 1 - _OF_SQUARES))
    residuals = noisy_residuals(problem, moments, of_squares)
    rows = noisy_count(moments, of_rows)
    spare = max(rows - columns, 1)
    return max(residuals, 1) * problem.grid / spare, rows
