r"""What comes after a first look: the shares of three looks, or those of two and a minimum.

Post-processing of released numbers. A minimum (`dpreg.staged.minimum`) takes the last look's place
where the second one sees all directions of the columns. It should then get more of eps, and spend
less of it on the response; where it will not see them, that is lost to the third. The first look
hardly sees directions, but it tells how the columns vary. From that we make the moments which a
second look would release on average, and ask of them what will be asked of its own.

The noise would have most tables look as if a column hardly varied. So what is unusual counts only
as far as the noise lets it be seen: variances of columns are drawn to their mean, by as much as
their spread is that of the noise, and the shortest direction is taken to have `_TURNED` of them.
Columns of two values are what hides a direction most often, as one of the values may be rare. Their
means tell their variances; one standard deviation of the noise is taken off, in its doubt.

What eps buys is settled by released values, and its sum is fixed: see `dpreg.staged.held`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.staged.clips import open_early
from dpreg.staged.locate import Located, centred, locate
from dpreg.staged.minimum import holds_as_many, seen_by
from dpreg.staged.plan import SHARES, LookPlan
from dpreg.staged.released import Coordinates, NoisyLook

__all__ = ["ENOUGH", "foreseen", "settled"]

ENOUGH: Final = 0.5
"""What a second look should be expected to see, over what a minimum asks of it. On 16 drawn tables
(eps 1, replaced rows, 150 or 500 releases) squared errors of slopes were .93 to 1.05 times those of
three looks where a minimum seldom comes, and 1.00 to 1.05 times those of always hoping for one
where it mostly does, 1.12 times with 6,000 rows of 6 gamma columns. At .35 and .7 they were .91 to
1.05 and .97 to 1.04 times, and 1.00 to 1.04 and 1.00 to 1.18 times."""
_TURNED: Final = 0.5
"""The variance of the shortest direction, over that of the columns."""
_DIFFER: Final = 0.3
"""How much variances of columns differ at least, over their mean."""
_LEAST: Final = 0.5
"""Least variance of a column of many values, over their mean."""
_SHORT: Final = 0.25
"""Least mean of their variances, over the noise."""
_RARE: Final = 0.1
"""Least variance of a column of two values, over the noise."""
_WEIGHT: Final = 0.9
"""Mean squared weight of the second look's rows."""
_CUT_SQUARE: Final = 0.3
"""Mean square of their cut residuals; it moves nothing."""


def settled(plan: LookPlan, first: NoisyLook, located: Located) -> LookPlan:
    """Return the plan of what comes after a first look, whose own share is the same in all.

    Parameters
    ----------
    plan : LookPlan
        Of two looks and a minimum.
    first : NoisyLook
    located : Located
        By it.
    """
    if holds_as_many(located, plan.size):
        at = open_early(located, plan.unit(1))
        units = np.append(np.full(plan.size - 1, math.sqrt(at.squared_radius)), 1.0)
        noise = plan.located_noise(1, located.expected_square * at.squared_radius)
        sd = noise.sd * np.outer(units, units)
        levels = [place - 1 for group in plan.triangle.groups for place in group]
        if foreseen(first, located, at, sd, levels) >= ENOUGH:
            return plan
    shares = SHARES[plan.mechanism]
    strengths = tuple(plan.cost.eps * share for share in shares)
    return replace(plan, strengths=strengths, shares=shares, alone=False)


def foreseen(
    first: NoisyLook, located: Located, at: Coordinates, sd: Floats, levels: Sequence[int] = ()
) -> float:
    """Return what a second look will probably see, over what a minimum asks of it.

    Parameters
    ----------
    first : NoisyLook
    located : Located
        By it.
    at : Coordinates
        Of the second look.
    sd : (d + 1, d + 1) array
        Standard deviations of its noise.
    levels : sequence of int
        Which of the p columns are 0/1 columns of factors.
    """
    size = first.size
    cells = np.zeros((size + 1, size + 1))
    cells[0, 0], cells[size, size] = 1.0, _CUT_SQUARE
    likely = _TURNED * np.diag(_variances(first, located, levels))
    cells[1:size, 1:size] = at.whitening @ likely @ at.whitening.T
    guess = NoisyLook(_WEIGHT * located.count * cells, sd, at, first.degrees, first.rows)
    return seen_by(guess, locate(guess, located))


def _variances(first: NoisyLook, located: Located, levels: Sequence[int]) -> Floats:
    """Return variances of the columns as they probably are, (p,)."""
    found, size = centred(first), first.size - 1
    means, level = found.means[:size], np.isin(np.arange(size), list(levels))
    released, noise = np.diag(found.moments)[:size], np.diag(found.variances)[:size]
    told = np.where(level, means * (1 - means), 1 - means**2)  # of 0 and 1; of -1 and 1
    off = np.where(level, 0.5, 1.0) * np.sqrt(noise)
    variances = np.maximum(told - off, _RARE * np.sqrt(noise))
    many = located.lengths == 0
    if many.any():
        own, chance = released[many], float(noise[many].mean())
        mean = max(float(own.mean()), _SHORT * math.sqrt(chance))
        differ = max(float(own.var()) - chance, (_DIFFER * mean) ** 2)
        drawn = mean + differ / (differ + noise[many]) * (own - mean)
        variances[many] = np.maximum(drawn, _LEAST * mean)
    return np.asarray(variances)
