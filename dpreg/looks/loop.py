"""The looks of a call, each at a point that the releases before it fixed.

From the look that terms are chosen from to the choice, and to the looks at chosen columns.

At its point the look released s = H theta + N(0, W) of what is left over, theta, with

    W = phi H+ + score_sd^2 I + information_sd^2 (tr(T) I + T),    T the mean of theta theta',

H+ without negative eigenvalues: the first part is that of the rows, the others of the noise in s
and in H times theta. Where residuals are cut the score moves by a part of H only (`moved`). T is
the posterior's under the prior of the choice, N(0, tau^2 phi I), and so a fixed point that a few
rounds come near to. Other limits are let be: they shorten s and H alike in rows far out, which a
useless term has as well, and allowing for what they cut of coefficients would hide terms.

Looks at chosen columns begin where this law puts the model of these columns alone, whitened by the
moments of the columns as far as they stand above their noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Protocol

import numpy as np
from scipy.special import ndtr

from dpreg.arrays import Floats
from dpreg.choice.evidence import Released, priors
from dpreg.looks.coordinates import Point, eigen, held, inverse, pseudo
from dpreg.looks.families import Family
from dpreg.looks.locate import (
    advance,
    combined,
    farthest,
    fit_limits,
    from_box,
    locating_limits,
    mean_weight,
    noise_norm,
    shortened,
    usual_reach,
)
from dpreg.looks.plan import LookPlan
from dpreg.looks.records import Box, Described, Release
from dpreg.looks.tuning import TUNING
from dpreg.privacy.look_noise import FitNoise, MinimumNoise


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

    def minimum(
        self,
        point: Point,
        family: Family,
        limits: tuple[float, float],
        share: Fraction,
        noise: MinimumNoise,
        count: float,
        *,
        before: Release | Callable[[Point], Release],
        places: Sequence[int] | None = None,
    ) -> Release:
        """Release a minimum around a point, and the outer part of the score at it."""

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
    """Look as often as the plan says: on the unit scale, nearer and nearer, last with the rest.

    With delta all looks but the first are fitting looks. At pure eps they are locating looks, and
    the last takes its information from the one before; or from both, where rows weigh the same in
    both: the link is the identity, and no person's rows are limited together. It takes a minimum
    where the plan has the rows at hand and they are not too many; if weights follow the fit the
    locating look before it waits for the minimum, and is taken there. Where terms are chosen all
    are locating, and one is made in between where the link is the identity.
    """
    plan = rows.plan
    box = rows.box()
    point, family, count = from_box(box, family, rows.described)
    releases: list[Release] = []
    curved, held = math.isfinite(family.limits[0]), plan.held(count)
    shares = plan.shares(curved=curved, held=held)
    fitting = plan.gaussian and not plan.locating
    waits = curved and held and not plan.locating
    if fitting:
        shares = shares[0], *[plan.early(shares[1], count)] * len(shares[1:])
    left = 1 - plan.later - sum(shares)
    for place, share in enumerate(shares[1:-1] if waits else shares[1:]):
        if fitting:
            release = _fitting(rows, point, family, count, share, releases)
        else:
            release = _locating(rows, point, family, count, share)
        releases.append(release)
        point, _ = advance(release, family, count, first=fitting and place == 0)
    if plan.locating:
        found = _locating(rows, point, family, count, left)
    else:
        before: Release | Callable[[Point], Release] | None = None
        if waits:

            def before(at: Point) -> Release:
                now, then = (mean_weight(family, one.middle, one.variance) for one in (at, point))
                at = replace(at, weight=point.weight * now / then)  # as far as the fit moved it
                releases.append(_locating(rows, at, family, count, shares[-1]))
                return releases[-1]

        elif not plan.gaussian:
            before = releases[-1] if curved or plan.persons else combined(*releases[-2:])
        found = _fitting(rows, point, family, count, left, releases, last=True, before=before)
    return Seen(plan, family, box, (*releases, found), count, rows.described)


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
    own = plan.gaussian and math.isfinite(family.limits[0])
    before = None if own else seen.releases[-1]
    shares = [left]
    if plan.gaussian:
        first = left * Fraction(TUNING.fresh).limit_denominator(1000)  # precision
        shares = [first, left - first]
    for place, share in enumerate(shares, 1):
        if releases:
            point, _ = advance(releases[-1], family, count, first=False)
        last = place == len(shares)
        found = _fitting(
            rows, point, family, count, share, releases, last=last, before=before, places=places
        )
        releases.append(found)
    return Seen(plan, family, seen.box, tuple(releases), count, rows.described)


def _fitting(
    rows: RowsOfLooks,
    point: Point,
    family: Family,
    count: float,
    share: Fraction,
    releases: Sequence[Release],
    *,
    last: bool = False,
    before: Release | Callable[[Point], Release] | None = None,
    places: Sequence[int] | None = None,
) -> Release:
    """Take a fitting look at a point, or nearer where its limits would cut a level's rows.

    With delta, information that is carried from an earlier look needs no noise of its own.
    """
    plan = rows.plan
    settled = plan.gaussian and places is None  # by several looks before the last
    noise: FitNoise | MinimumNoise
    if last and plan.held(count):
        noise, squared = plan.minimum_noise(share), 1.0 + float(point.spread.sum())
        c = TUNING.limit_minimum if places is None else TUNING.limit_wide
    else:
        squared = float(point.size)
        noise = plan.fit_noise(share, count, last=last, carried=before is not None)
        c = TUNING.limit if settled else TUNING.limit_wide
    told = releases[-1] if last and settled else None

    earlier = releases[-1].limits[0] if releases else math.inf
    for nearer in (False, True):
        reach = math.inf, math.inf
        if not plan.persons:  # who may own any number of rows
            reach = farthest(point, family, rows.described)
        A, S = fit_limits(
            count,
            point.size,
            point.dispersion,
            noise.information_sd,
            noise.score_sd,
            plan.several,
            reach,
            limit=c,
            before=told,
            squared=squared,
        )
        if plan.gaussian and not nearer:
            point = shortened(point, rows.described, A, A / earlier)
    if isinstance(noise, MinimumNoise):
        assert before is not None
        return rows.minimum(
            point, family, (A, S), share, noise, count, before=before, places=places
        )
    assert not callable(before)
    return rows.fitting(
        point, family, (A, S), share, noise, last=last, before=before, places=places
    )


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


_ROUNDS: Final = 4  # precision: rounds of a fixed point
_CUTS: Final = np.geomspace(8.0, 1e-3, 200)  # precision
"""tau in units of sigma; beneath, the mean square of normal residuals as cut, in units of tau."""
_WITHIN: Final = 2 * ndtr(_CUTS) - 1
_DENSITY: Final = np.exp(-(_CUTS**2) / 2) / math.sqrt(2 * math.pi)
_SQUARES: Final = (_WITHIN - 2 * _CUTS * _DENSITY) / _CUTS**2 + 1 - _WITHIN


def laws_for_choice(seen: Seen) -> tuple[Released, ...]:
    """Return the law of the last look under each of `priors`.

    With fewer rows than half of those that looks need even their number may be noise, and with it
    all that limits and errors are made of: then nothing is known.
    """
    release = seen.releases[-1]
    point, phi = release.point, _dispersion(release, seen.family, seen.rows)
    told = float(seen.rows >= seen.plan.rows_needed / 2)
    H, laws = moved(release, seen.family) * told, []
    for prior in priors(point.size):
        W = _noise(release, H, phi, prior)
        laws.append(
            Released(
                start=point.shift,
                transform=point.transform * math.sqrt(phi),
                equations=H * math.sqrt(phi),
                left=release.score * told,
                covariance=W,
                prior=prior,
                degrees=release.degrees,
            )
        )
    return tuple(laws)


def _dispersion(release: Release, family: Family, rows: float) -> float:
    """Return phi, above the noise in it; 1 at least where it is known to be that."""
    # At a locating look both traces are multiples of one count, however far noise moved it.
    least = 1.0 if release.together else TUNING.least * rows * release.point.size
    whole = max(float(np.trace(release.information)), least)
    phi = held(max(release.trace, 2 * release.middle_sd) / whole, 1e-30)
    return phi if family.dispersed else max(phi, 1.0)


def moved(release: Release, family: Family) -> Floats:
    """Return by what a score moves with the fit: H, less what is cut whatever the fit is.

    Of a locating look residuals are cut at tau; where they are normal their mean square as cut says
    what share of them is within. Where noise has made the fit diverge it is none, and nothing is
    known from the score.
    """
    if not release.together or family.blind:
        return release.information
    square = release.trace / max(float(np.trace(release.information)), 1.0)
    share = float(np.interp(square / release.limits[1] ** 2, _SQUARES, _WITHIN))
    return share * release.information


def _noise(release: Release, H: Floats, phi: float, prior: float) -> Floats:
    """Return W; H is `moved`."""
    s = release.score
    values, Q = eigen(release.information)
    size, theta = len(s), np.zeros(len(s))
    own = phi * (Q * np.maximum(values, 0.0)) @ Q.T + held(release.score_sd) ** 2 * np.eye(size)
    spread, precision = prior * phi * np.eye(size), np.eye(size) / (prior * phi)
    W = own
    for _ in range(_ROUNDS):
        square = np.outer(theta, theta) + spread
        noise = float(np.trace(square)) * np.eye(size) + square
        W = own + release.information_sd**2 * noise
        seen = H @ inverse(W)
        spread = inverse(seen @ H + precision)
        theta = spread @ (seen @ s)
    return W


def point_of_chosen(seen: Seen, columns: Sequence[int]) -> Point:
    """Return where to look at the columns of a model.

    Parameters
    ----------
    seen : Seen
        What the looks released that the model was chosen from.
    columns : sequence of int
        Of the model among those that were looked at, from 1, ascending; at least one.
    """
    release, at = seen.releases[-1], list(columns)
    point, phi = release.point, _dispersion(release, seen.family, seen.rows)
    H = moved(release, seen.family)
    W = _noise(release, H, phi, priors(point.size)[0])
    back = pseudo(point.rows)  # (1, x) = back (1, u)
    count = max(float(release.information[0, 0]), TUNING.least * seen.rows)
    moments = back @ release.information @ back.T / count
    means = np.clip(moments[0, at], -1.0, 1.0)
    spread = moments[np.ix_(at, at)] - np.outer(means, means)
    nu = noise_norm(release.information_sd, point.size) / count * (back @ back.T)[np.ix_(at, at)]
    values, Q = eigen(spread)
    spread = (Q * np.maximum(values, 0.0)) @ Q.T
    values, Q = eigen(spread + 0.5 * nu + _LEAST * np.eye(len(at)))
    whitening = (Q / np.sqrt(np.maximum(values, _LEAST))).T
    sure, turn = eigen(whitening @ (spread - TUNING.sure * nu) @ whitening.T)
    whitening = turn.T @ whitening
    chosen = [0, *at]
    towards = pseudo(point.transform)  # theta = towards (beta - shift)
    A = H @ towards[:, chosen]
    told = release.score + H @ (towards @ point.shift)
    known = A.T @ inverse(W)
    scale = inverse(towards[:, chosen].T @ towards[:, chosen]) * phi
    b = inverse(known @ A + inverse(scale)) @ (known @ told + inverse(scale) @ point.shift[chosen])
    return replace(
        point,
        centre=means,
        whitening=whitening,
        slopes=b[1:],
        middle=float(b[0] + b[1:] @ means),
        dispersion=phi if seen.family.dispersed else 1.0,
        spread=np.diag(whitening @ spread @ whitening.T),
        sure=np.maximum(sure, 0.0),
        offset=None,
        least=None,
    )


_LEAST: Final = 1e-9  # precision: least centred moment of a column, in stored units
