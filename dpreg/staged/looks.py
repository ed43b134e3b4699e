"""The looks themselves: read rows, add the noise, locate the next look from what was released.

Privacy. Each look's exact moments leave `_release` only with its noise added, drawn by the right of
the look's own part of the budget; a look's coordinates are a function of earlier released values.
That is the setting of `dpreg.privacy.looks` (Gaussian), and for matrix-Laplace noise sequential
composition of adaptively chosen pure mechanisms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpreg.choice.released import Released
from dpreg.moments import CELL_BITS, Moments, Vectors
from dpreg.privacy.account import Part
from dpreg.privacy.gram_sensitivity import CELL_UNITS
from dpreg.privacy.look_noise import GaussianLook, MatrixLaplaceLook
from dpreg.staged.clips import Sums, allowed, heaviness_of, open_clips, open_early, wide_cut
from dpreg.staged.for_choice import laws_for_choice
from dpreg.staged.law import LookLaw, law
from dpreg.staged.locate import Located, locate
from dpreg.staged.location import Location
from dpreg.staged.opened import OpenLooks
from dpreg.staged.plan import LookPlan
from dpreg.staged.released import Coordinates, NoisyLook, Tail, box
from dpreg.staged.rows import LocatedRows
from dpreg.staged.tails import NORMAL, Heaviness

__all__ = ["Looked", "look", "look_at"]

Read = Callable[[Vectors], Moments]
"""Reads the rows that the looks are for once, and returns their exact moments."""


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """What all looks released.

    Attributes
    ----------
    plan : LookPlan
    looks : tuple of NoisyLook
        In order; cells in the units of their coordinates.
    opened : tuple of bool
        For each look whether its clips were opened, as the noise is small anyway.
    located : Located
        Where the last look was located from.
    count : float
        The released number of complete rows, of the first look.
    tail : Tail
        Residuals of the last look, with a wider cut.
    """

    plan: LookPlan
    looks: tuple[NoisyLook, ...]
    opened: tuple[bool, ...]
    located: Located
    count: float
    tail: Tail

    def law(self) -> LookLaw:
        """Return the law of the last look, from which coefficients are estimated."""
        return law(self.looks[-1], self.count, self.tail)

    def for_choice(self) -> tuple[Released, ...]:
        """Return the same for a choice among terms, one for each of its priors.

        They do not allow for what cutting skewed residuals may move slopes by: that would hide
        terms, for a move that is small beside a coefficient that can be seen.
        """
        return laws_for_choice(self.looks[-1], self.count, replace(self.tail, heaviness=None))


def look(
    read: Read,
    design: Vectors,
    opened: OpenLooks,
    *,
    public: bool = False,
    choosing: bool = False,
) -> Looked:
    """Look at the rows as often as the plan says, each time located by the looks before.

    The constant is looked at whether the model has an intercept or not: rows are centred, and what
    cutting skewed residuals does stays out of the slopes.

    Parameters
    ----------
    read : callable
        Called once a look. The rows must be the same every time.
    design : Vectors
        Makes (1, x, y) of every row: the first look's rows, and what later ones are located from.
    opened : OpenLooks
        Of an account that is charged.
    public : bool
        Whether the number of rows that `read` reads is public.
    choosing : bool
        Whether terms are to be chosen from the looks, and other looks give the coefficients. What
        cutting skewed residuals may move by a little matters less then than noise, which grows with
        the clip: the last look opens it as for nearly normal residuals.

    Notes
    -----
    What `choosing` buys and costs was measured on drawn rows (`benchmarks._power_cells.
    skewed_cells`: normal, exponential, lognormal, count, rare and factor columns, p = 12, 20,000
    rows, correlation .5, eps = 1; 25 runs with five effects, 60 without any). With lognormal
    residuals of lognormal columns it finds 4.64 of 5 terms (with delta) and 3.60 (pure) where
    clips opened for the tails find 4.00 and 1.88; with exponential ones of counts 4.88 and 4.20,
    against 4.68 and 3.36. Columns on which the response does not depend come out at most .12 times
    a run, either way. But a column on which only the *spread* of skewed residuals depends (by a
    factor of about 3) is chosen in 8 or 9 runs of 10, with opened clips in 0 to 4, as the middle of
    skewed residuals moves with their spread. And coefficients of the same look would be off:
    intervals that take the choice for given cover .59 to .81 of the time, with opened clips .83 to
    .92. So coefficients that come with the choice have opened clips.
    """
    plan = opened.plan
    moments = read(design)
    rows = moments.rows if public else None
    noise = plan.box_noise()
    columns = plan.size - 2
    first = _release(moments, noise, opened.part(0), box(columns), 1.0, rows)
    levels = [place - 1 for group in plan.triangle.groups for place in group]
    located = locate(first, levels=levels)
    looks, wider, count = [first], [False], located.count
    tails = NORMAL
    for place in range(1, len(plan.shares) - 1):
        wanted = open_early(located, plan.unit(place))
        location = _on_grid(wanted)
        coordinates = Coordinates.rounded(location)
        wide = wide_cut(located, coordinates, plan.squares_sd, squares=True)
        noise = plan.located_noise(place, located.expected_square * coordinates.squared_radius)
        moments = read(LocatedRows(design, location, wide=wide, outer=True))
        part, radius = opened.part(place), location.radius
        looks.append(_release(moments, noise, part, coordinates, radius, rows))
        wider.append(wanted.squared_radius > located.coordinates.squared_radius)
        sums, sd = _release_squares(moments, plan, opened.squares())
        tails = heaviness_of(looks[-1], sums, sd, wide, count, located)
        located = locate(looks[-1], located)
    last = look_at(read, design, opened, located, tails=tails, public=public, choosing=choosing)
    return replace(last, looks=(*looks, *last.looks), opened=(*wider, *last.opened), count=count)


def look_at(
    read: Read,
    design: Vectors,
    opened: OpenLooks,
    located: Located,
    *,
    tails: Heaviness = NORMAL,
    columns: tuple[int, ...] | None = None,
    public: bool = False,
    choosing: bool = False,
) -> Looked:
    """Make the last look of a plan, with its tail, located from what was released before.

    Parameters
    ----------
    read, design, opened, public, choosing
        As for `look`.
    located : Located
    tails : Heaviness
        Of the residuals, as an earlier look released it.
    columns : tuple of int, optional
        The stored columns that it looks at, from 1, and `located` speaks of; None: all.
    """
    plan, count = opened.plan, located.count
    place = len(plan.shares) - 1
    unit, gaussian = plan.unit(place), plan.gaussian
    wanted = open_clips(located, unit, tails, choosing=choosing, gaussian=gaussian)
    wider = wanted.squared_radius > located.coordinates.squared_radius
    location = _on_grid(wanted)
    coordinates = Coordinates.rounded(location)
    wide = wide_cut(located, coordinates, plan.tail_sd)
    signal = located.expected_square * coordinates.squared_radius
    noise = plan.located_noise(place, signal)
    moments = read(LocatedRows(design, location, columns, wide))
    rows, part = moments.rows if public else None, opened.part(place)
    one = _release(moments, noise, part, coordinates, location.radius, rows)
    tail = _release_tail(moments, plan, opened.tail(), location, wide, tails)
    tail = replace(tail, bent=allowed(located, coordinates, tails))
    return Looked(plan, (one,), (wider,), located, count, tail)


def _release_squares(moments: Moments, plan: LookPlan, part: Part) -> tuple[Sums, float]:
    """Add the noise to the second look's four sums; return them and the noise's sd."""
    noise = plan.squares_noise()
    drawn = noise.draw(part, moments.group)
    exact = (moments.cells[place][place] for place in range(-4, 0))
    above, below, outer, far = (
        (cell + own) / CELL_UNITS for cell, own in zip(exact, drawn, strict=True)
    )
    return (above, below, outer, far), noise.sds[0] / CELL_UNITS


def _release_tail(
    moments: Moments,
    plan: LookPlan,
    part: Part,
    location: Location,
    wide: float,
    tails: Heaviness,
) -> Tail:
    """Add the noise to the sums that the two places of the wider cut fill."""
    noise = plan.tail_noise(location.radius_units)
    drawn = noise.draw(part, moments.group)
    units = (
        location.radius_units * 2.0**CELL_BITS,
        float(CELL_UNITS),
        CELL_UNITS / location.radius**2,
    )
    exact = moments.cells[0][-2], moments.cells[-2][-2], moments.cells[-1][-1]
    total, squares, leverage = (
        (cell + own) / unit for cell, own, unit in zip(exact, drawn, units, strict=True)
    )
    sds = [sd / unit for sd, unit in zip(noise.sds, units, strict=True)]
    return Tail(total, squares, sds[0], sds[1], wide, leverage, sds[2], tails)


def _release(
    moments: Moments,
    noise: GaussianLook | MatrixLaplaceLook,
    part: Part,
    coordinates: Coordinates,
    radius: float,
    rows: int | None,
) -> NoisyLook:
    """Add the noise to exact moments, and undo the rows' division by R.

    The places of the tail, which has noise of its own, are left out.
    """
    drawn = noise.draw(part, moments.group)
    units = np.full(noise.size, radius)
    units[-1] = 1.0
    scale = np.outer(units, units)
    released = [
        [(exact + own) / CELL_UNITS for exact, own in zip(row[: noise.size], noisy, strict=True)]
        for row, noisy in zip(moments.cells[: noise.size], drawn, strict=True)
    ]
    cells, sd = np.array(released) * scale, noise.sd * scale
    return NoisyLook(cells, sd, coordinates, noise.degrees, rows)


def _on_grid(at: Coordinates) -> Location:
    return Location.on_grid(
        whitening=at.whitening,
        offset=at.offset,
        slopes=at.slopes,
        intercept=at.intercept,
        tau=at.width,
        radius=float(np.sqrt(at.squared_radius)),
    )
