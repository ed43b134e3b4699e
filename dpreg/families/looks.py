"""The looks at a family: read rows, add the noise, locate the next look from what was released.

Privacy. A look's exact blocks leave `_release` only with their noise added, drawn by the right of
the look's own part of the budget; its coordinates, its clips, its part and whether there is another
look are functions of earlier released values. That is the setting of `dpreg.privacy.looks`; pure
looks compose in sequence, however they were chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from dpreg.arrays import Floats
from dpreg.families.aim import aimed
from dpreg.families.counts import CountLaw
from dpreg.families.family import Family
from dpreg.families.locate import Fit, relocated, start
from dpreg.families.location import FamilyLocation
from dpreg.families.plan import (
    CHEAP,
    FIRST,
    MORE,
    SECOND,
    STILL,
    FamilyPlan,
    OpenFamilyLooks,
)
from dpreg.families.rows import FamilyRows, Trials
from dpreg.families.trials import of_trials
from dpreg.families.working import Clips
from dpreg.moments import Moments, Vectors
from dpreg.privacy.account import Part
from dpreg.privacy.block_noise import BlocksLaplaceLook
from dpreg.privacy.gram_sensitivity import CELL_UNITS
from dpreg.privacy.look_noise import GaussianLook, MatrixLaplaceLook

__all__ = ["FamilyLook", "FamilyLooked", "look_at_chosen", "look_at_family"]

Read = Callable[[Vectors], Moments]
"""Reads the rows that the looks are for once, and returns their exact moments."""


@dataclass(frozen=True, slots=True, eq=False)
class FamilyLook:
    """One released look at a fit.

    Parameters
    ----------
    location : FamilyLocation
    clips : Clips
    cells, noise_sd : (d + 1, d + 1) arrays
        H, s in the last column and row, and Q in the end, with the standard deviation of their
        noise; in the units of `FamilyLocation`.
    share : Fraction
        Of the whole.
    fit : Fit
        What it was located from.
    moved : float
        Mean square of the change of the predictor that it asks for; see `relocated`.
    law : CountLaw or None
        Of counts whose rows have caps of their own.
    """

    location: FamilyLocation
    clips: Clips
    cells: Floats
    noise_sd: Floats
    share: Fraction
    fit: Fit
    moved: float
    law: CountLaw | None = None

    @property
    def middle(self) -> float:
        """Q over the trace of H: what a score varies by, kept within twice its noise."""
        size = len(self.cells) - 1
        trace = float(np.trace(self.cells[:size, :size]))
        trace = max(trace, float(self.noise_sd[:size, :size].max()), 1e-9)
        found, noise = self.cells[size, size], self.noise_sd[size, size]
        least = max(2 * noise / trace, 0.02)
        return float(min(max(found / trace, least), 20.0 * max(self.fit.dispersion, 1.0)))


@dataclass(frozen=True, slots=True, eq=False)
class FamilyLooked:
    """What all looks released.

    Attributes
    ----------
    plan : FamilyPlan
    box, box_sd : arrays
        Released moments of the first look, and the standard deviations of their noise.
    looks : tuple of FamilyLook
        The later ones, in order.
    fit : Fit
        After the last look.
    left : Fraction
        Share that was left where looks stopped.
    """

    plan: FamilyPlan
    box: Floats
    box_sd: Floats
    looks: tuple[FamilyLook, ...]
    fit: Fit
    left: Fraction = Fraction(0)

    @property
    def first_share(self) -> Fraction:
        """The share of the look at the box."""
        return self.plan.part_of_whole(FIRST)


def look_at_family(
    read: Read,
    design: Vectors,
    family: Family,
    opened: OpenFamilyLooks,
    *,
    response: tuple[float, float],
    columns: Sequence[int],
    offsets: Sequence[int] = (),
    known: Sequence[float] = (),
    trials: Trials | None = None,
    public: bool = False,
) -> FamilyLooked:
    """Look at the rows, each time located by the looks before, until the fit stands.

    Parameters
    ----------
    read : callable
        Called once a look. The rows must be the same every time.
    design : Vectors
        Makes (1, x, y) of every row, the offsets among its columns.
    family : Family
    opened : OpenFamilyLooks
        Of an account that is charged.
    response : (float, float)
        The response is the first plus the second times its stored cell.
    columns, offsets : sequence of int
        Indices of the stored columns that have coefficients, and of those with known slopes.
    known : sequence of float
        Slopes of the predictor on the stored offsets.
    trials : Trials, optional
        Where rows have several: for "binomial".
    public : bool
        Whether the number of rows that `read` reads is public.
    """
    plan = opened.plan
    moments = read(design)
    box_noise = plan.box_noise()
    box = _release_box(moments, box_noise, opened.part(FIRST))
    rows = moments.rows if public else None
    order = np.ix_(*[[0, *columns, *offsets, design.size - 1]] * 2)
    slopes, mean = np.array(known, dtype=np.float64), None
    cells, sd = box, box_noise.sd
    if trials is not None:
        family, mean, cells, sd = of_trials(box, box_noise.sd, trials, response)
    fit = start(family, cells[order], sd[order], slopes, response, rows, mean)
    looks: list[FamilyLook] = []
    left, share, most = 1 - FIRST, SECOND, plan.moved_at_most(family)
    look = partial(_look, read, design, opened, response, columns, offsets, trials)
    while True:
        seen, fit = look(fit, share)
        looks.append(seen)
        left -= share
        if not left:
            return FamilyLooked(plan, box, box_noise.sd, tuple(looks), fit, left)
        again = len(looks) - 1
        more = again < len(MORE) and (seen.moved > most[again] or _cheap(seen))
        share = MORE[again] if more else left


def look_at_chosen(
    read: Read,
    design: Vectors,
    seen: FamilyLooked,
    located: Fit,
    opened: OpenFamilyLooks,
    *,
    response: tuple[float, float],
    columns: Sequence[int],
    offsets: Sequence[int] = (),
    trials: Trials | None = None,
) -> FamilyLooked:
    """Look once more, at the chosen columns, and return what that look released.

    Parameters
    ----------
    read, design, response, columns, offsets, trials
        As for `look_at_family`.
    seen : FamilyLooked
        What the looks before released.
    located : Fit
        Of the chosen columns.
    opened : OpenFamilyLooks
        Of the one more look.
    """
    look = partial(_look, read, design, opened, response, columns, offsets, trials)
    one, fit = look(located, Fraction(1))
    return FamilyLooked(opened.plan, seen.box, seen.box_sd, (one,), fit)


def _look(
    read: Read,
    design: Vectors,
    opened: OpenFamilyLooks,
    response: tuple[float, float],
    columns: Sequence[int],
    offsets: Sequence[int],
    trials: Trials | None,
    fit: Fit,
    share: Fraction,
) -> tuple[FamilyLook, Fit]:
    """Make one look at a fit, and return it with the fit that it moves to."""
    times = 1.0 if trials is None else trials.most / fit.family.cap
    at = aimed(opened.plan, fit, share, max(times, 1.0))
    moments = read(FamilyRows(design, at.location, columns, offsets, response, trials))
    cells, sd = _release(moments, at.noise, opened.part(share), at.units)
    seen = FamilyLook(at.location, at.clips, cells, sd, share, fit, 0.0, at.law)
    new, moved = relocated(fit, cells, sd, seen.middle, at.clips.efficiency, at.clips.slope)
    return replace(seen, moved=moved), new


def _cheap(seen: FamilyLook) -> bool:
    """Whether another look costs no precision: noise is small even in a small look."""
    return seen.clips.loudness < CHEAP and seen.moved > STILL


def _release_box(moments: Moments, noise: GaussianLook | MatrixLaplaceLook, part: Part) -> Floats:
    """Add the noise to the exact moments of rows in the box."""
    drawn = noise.draw(part, moments.group)
    return np.array(_added(moments.cells, drawn), dtype=np.float64) / CELL_UNITS


def _release(
    moments: Moments, noise: GaussianLook | BlocksLaplaceLook, part: Part, units: Floats
) -> tuple[Floats, Floats]:
    """Add the noise to exact blocks, and undo the rows' scales.

    Of the rows' moments H, s and Q are released; sums of squared residuals and whatever else the
    last two places fill are not.
    """
    drawn = noise.draw(part, moments.group)
    size = noise.size - 1
    exact = [list(row[: size + 1]) for row in moments.cells[: size + 1]]
    exact[size][size] = moments.cells[size + 1][size + 1]
    cells = np.array(_added(exact, drawn), dtype=np.float64) / CELL_UNITS * units
    return cells, noise.sd * units


def _added(exact: Sequence[Sequence[int]], drawn: Sequence[Sequence[int]]) -> list[list[int]]:
    return [
        [a + b for a, b in zip(row, own, strict=True)]
        for row, own in zip(exact, drawn, strict=True)
    ]
