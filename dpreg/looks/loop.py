"""The looks of a call, each at a point that the releases before it fixed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from dpreg.looks.described import Described
from dpreg.looks.families import Family
from dpreg.looks.limits import farthest, fit_limits, locating_limits
from dpreg.looks.locate import advance, from_box, shortened, usual_reach
from dpreg.looks.plan import LookPlan
from dpreg.looks.point import Point
from dpreg.looks.release import Box, Release
from dpreg.looks.tuning import TUNING
from dpreg.privacy.look_noise import FitNoise

__all__ = ["RowsOfLooks", "Seen", "look", "look_at_chosen"]


class RowsOfLooks(Protocol):
    """What looks are taken of: a table, or rows that are assumed."""

    @property
    def plan(self) -> LookPlan:
        """What the looks may cost."""

    @property
    def described(self) -> Described:
        """What of the stored columns is what."""

    def box(self) -> Box:
        """Release the moments of the rows on the unit scale."""

    def fitting(
        self,
        point: Point,
        family: Family,
        limits: tuple[float, float],
        share: Fraction,
        noise: FitNoise,
        *,
        last: bool,
        before: Release | None = None,
        places: Sequence[int] | None = None,
    ) -> Release:
        """Release score, middle and information at a point."""

    def locating(
        self,
        point: Point,
        family: Family,
        limits: tuple[float, float],
        share: Fraction,
        signal: float,
    ) -> Release:
        """Release joint moments at a point."""


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What all looks of a call released.

    Attributes
    ----------
    plan : LookPlan
    family : Family
    box : Box
    releases : tuple of Release
        In order; the last is what coefficients come from.
    rows : float
        Released number of complete rows.
    described : Described
    """

    plan: LookPlan
    family: Family
    box: Box
    releases: tuple[Release, ...]
    rows: float
    described: Described


def look(rows: RowsOfLooks, family: Family) -> Seen:
    """Look as often as the plan allows: on the unit scale, nearer and nearer, last with the rest.

    With delta all looks but the first are fitting looks. At pure eps they are locating looks, and
    the last takes its information from the one before. Where terms are chosen all are locating.
    """
    plan = rows.plan
    box = rows.box()
    point, family, count = from_box(box, family, rows.described)
    releases: list[Release] = []
    left, seen = 1 - plan.box_share - plan.later, 0.0
    for place, share in enumerate(plan.early):
        if plan.gaussian and not plan.locating:
            noise = plan.fit_noise(share, last=False)
            point, limits = _placed(rows, point, family, count, noise, releases)
            release = rows.fitting(point, family, limits, share, noise, last=False)
        else:
            release = _locating(rows, point, family, count, share)
        releases.append(release)
        left -= share
        point, moved = advance(release, family, count, first=place == 0)
        hidden = moved.least < TUNING.least and (place < 1 or moved.least > seen)
        seen = max(moved.least, 0.0)
        shown = release.trace >= TUNING.shown * release.trace_sd or not family.dispersed
        done = moved.step <= TUNING.moved and shown and not hidden
        if plan.locating:
            if done or not math.isfinite(family.limits[0]):
                break
        elif plan.gaussian and done:
            noise = plan.fit_noise(left, last=True)
            _, (_, S) = _placed(rows, point, family, count, noise, releases)
            saved = (S * noise.score_sd) ** 2 * float(share / left)
            if _open(family, point, moved.length, count) <= saved:
                break
    if plan.locating:
        releases.append(_locating(rows, point, family, count, left))
        return Seen(plan, family, box, tuple(releases), count, rows.described)
    noise = plan.fit_noise(left, last=True)
    point, limits = _placed(rows, point, family, count, noise, releases)
    before = None if plan.gaussian else releases[-1]
    releases.append(rows.fitting(point, family, limits, left, noise, last=True, before=before))
    return Seen(plan, family, box, tuple(releases), count, rows.described)


def look_at_chosen(rows: RowsOfLooks, seen: Seen, point: Point, places: Sequence[int]) -> Seen:
    """Look at the columns that were chosen, from a point where the looks before put it.

    `places` say where they stand among those that were looked at before, 0 the constant.

    With delta there are two fitting looks: limits of the looks before are narrow, and one step from
    the fit of the bulk to that of all rows is long. At pure eps there is one. Information is that
    of the look that chose, which had more of the budget; but with delta, where weights follow the
    fit, each look has its own.
    """
    plan, left, family, count = rows.plan, seen.plan.later, seen.family, seen.rows
    releases: list[Release] = []
    carried = not (plan.gaussian and math.isfinite(family.limits[0]))
    before = seen.releases[-1] if carried else None
    if plan.gaussian:
        first = left * Fraction(TUNING.fresh_first).limit_denominator(1000)  # precision
        noise = plan.fit_noise(first, last=False, carried=carried)
        point, limits = _placed(rows, point, family, count, noise, ())
        releases.append(
            rows.fitting(
                point, family, limits, first, noise, last=False, before=before, places=places
            )
        )
        point, _ = advance(releases[-1], family, count, first=False)
        left -= first
    noise = plan.fit_noise(left, last=True, carried=carried)
    point, limits = _placed(rows, point, family, count, noise, releases)
    releases.append(
        rows.fitting(point, family, limits, left, noise, last=True, before=before, places=places)
    )
    return Seen(plan, family, seen.box, tuple(releases), count, rows.described)


def _open(family: Family, point: Point, length: float, count: float) -> float:
    """Return what a last look would leave open after a step of length r, as a score's variance.

    Where the link is curved, the next step has a length of about r^2, and what H was at the last
    point is right to about r.
    """
    if not math.isfinite(family.limits[0]):
        return 0.0
    return point.weight * (length**3 * count) ** 2 / point.size


def _placed(
    rows: RowsOfLooks,
    point: Point,
    family: Family,
    count: float,
    noise: FitNoise,
    releases: Sequence[Release],
) -> tuple[Point, tuple[float, float]]:
    """Return where a fitting look is taken, and its A and S."""

    def limits(point: Point) -> tuple[float, float]:
        reach = math.inf, math.inf
        if not rows.plan.persons:  # who may own any number of rows
            reach = farthest(point, family, rows.described)
        return fit_limits(
            count,
            point.size,
            point.dispersion,
            noise.information_sd,
            noise.score_sd,
            rows.plan.several,
            reach,
            rows.plan.limit,
        )

    if rows.plan.gaussian:
        A, _ = limits(point)
        before = releases[-1].limits[0] if releases else math.inf
        point = shortened(point, rows.described, A, A / before)
    return point, limits(point)


def _locating(
    rows: RowsOfLooks, point: Point, family: Family, count: float, share: Fraction
) -> Release:
    plan = rows.plan
    limits = locating_limits(point, choosing=plan.locating, gaussian=plan.gaussian)
    if plan.locating and family.blind:
        limits = limits[0], TUNING.residual_blind * usual_reach(family, point)
    signal = point.size * min(TUNING.prior * point.size / count, 1.0) * point.dispersion
    if plan.locating:
        signal = TUNING.left * point.dispersion * (limits[0] / limits[1]) ** 2
    return rows.locating(point, family, limits, share, signal)
