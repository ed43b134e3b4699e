"""From one look's release to the point of the next: post-processing of released numbers.

With S the covariance of columns that a look released and nu the norm of the noise in it, the next
whitening is L = Lambda^(-1/2) Q', Lambda = max(lam, 0) + nu/2: directions that noise hides are not
blown up. The fit moves by a ridge estimate whose penalty is the score's noise over the variance
that a step may have.

How far a row may reach in a look: A for its information, S for its score; R and tau for both.

*Fitting looks.* What is released for s has noise of 2 S/a a cell, so S is as small as what it cuts
allows. For any unit U = |s_i|, (U - S)+ <= (4/27) U^3/S^2, so that n rows lose at most

    (4/27) n kappa_3 (d phi)^(3/2) / S^2,    kappa_3 = E U^3 / (d phi)^(3/2),

of the score. The square of that, a constant times (d phi)^3 n^2/S^4, and of the noise, 4 d S^2/a^2,
are together least where S^3 is in proportion to phi^(3/2) n d a:

    S = sqrt(phi) (c a n d / sqrt 2)^(1/3),

c about .148 kappa_3 (`TUNING.limit`). S is no less than sqrt(d phi), the root mean square of |s_i|.

Where several looks have settled the fit, as with delta, the one before the last says what limits
cut. Its limit was S0, and of what lies between S0/2 and S0 it released the sum: t is the mean
square of that in a cell, above its noise, and TUNING.doubt of its standard errors higher. Scores
whose chance falls as x^-2 have as much again beyond S0, and S0/S of that beyond S. The square,
t (S0/S)^2, and the noise of what half the limit leaves, 2 S^2/a^2 in a cell, are together least
where

    S^4 = t S0^2 a^2/2.

So S is narrow where the rows' tails are short, and as wide as they are long.

A is what lets the noise of H have a public share of n.

Beside a minimum, which needs no direction to be shown, usual rows are as long as what is shown of
them: 1 and the sum of the point's `spread` take the place of d.

*Locating looks.* One weight serves both blocks; R and tau are fixed multiples of the located scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from dpreg.arrays import CELL_BITS, Floats
from dpreg.looks.coordinates import Point, eigen, held, pseudo
from dpreg.looks.families import Binomial, Family
from dpreg.looks.records import Box, Described, Release
from dpreg.looks.tuning import TUNING

_MOST: Final = 2.0**10
"""Largest A, in units of d and the rows of a unit: a usual row is then 2**15 units of its grid."""


def fit_limits(
    rows: float,
    size: int,
    dispersion: float,
    information_sd: float,
    score_sd: float,
    several: int = 1,
    farthest: tuple[float, float] = (math.inf, math.inf),
    *,
    limit: float = TUNING.limit,
    before: Release | None = None,
    squared: float | None = None,
) -> tuple[float, float]:
    """Return A and S of a fitting look.

    Parameters
    ----------
    rows : float
        Released number of rows.
    size : int
        d.
    dispersion : float
        phi.
    information_sd, score_sd : float
        Of the noise in a cell of H, in units of A (0 where none is released), and in a cell of what
        is released for s, in units of S (`dpreg.privacy.proofs`).
    several : int
        Rows that a unit is expected to have.
    farthest : (float, float)
        What no unit exceeds (`farthest`).
    limit : float
        c.
    before : Release, optional
        The fitting look that says what limits cut; without it S follows from c.
    squared : float, optional
        The mean of |v|^2 that limits are made for; None: d, where all directions are shown.
    """
    squared = size if squared is None else squared
    loud = math.inf
    if information_sd > 0:
        loud = TUNING.loud * rows / noise_norm(information_sd, size)
    A = min(max(loud, 2 * squared * several), _MOST * squared * several)
    a = 2 / score_sd
    heard = a / math.sqrt(1 + a / 2)
    wide = (limit * heard * max(rows, 1.0) * squared / math.sqrt(2)) ** (1 / 3)  # by definition
    S = math.sqrt(dispersion) * wide
    if before is not None:
        S = math.sqrt(before.limits[1] * a) * (cut_by(before) / 2) ** 0.25  # by definition
    S = max(S, math.sqrt(dispersion * squared))
    return held(min(A, farthest[0])), held(min(S, farthest[1]))


def cut_by(release: Release) -> float:
    """Return how large what lies between S/(1 + m) and S may be: its mean square in a cell.

    Parameters
    ----------
    release : Release
        Of a fitting look.
    """
    _, noise, cut = release.parts
    return cut + TUNING.doubt * noise * math.sqrt(2 / release.point.size)


def farthest(point: Point, family: Family, described: Described) -> tuple[float, float]:
    """Return the largest trace and the longest score that a row within its bounds can have.

    Neither is a proof's: rows are limited whatever it says.
    """
    spread = np.abs(point.whitening).sum(axis=1) + np.abs(point.moved)
    squared = 1.0 + float(spread @ spread)
    middle = point.middle - float(point.slopes @ point.centre)
    away = float(np.abs(point.slopes).sum()) + sum(map(abs, described.known))
    terms = family.terms(np.clip([-math.inf, 0.0, math.inf], middle - away, middle + away))
    base, unit = described.response
    times, top = 1.0, base + abs(unit)
    if described.trials is not None:
        times = max(described.trials.most / family.cap, 1.0)
    if math.isfinite(family.limits[0]):
        top = min(top, family.cap * times)
    error = max(top - float(terms.mean[0]), times * float(terms.mean[-1]) - base + abs(unit))
    error *= float(np.max(terms.factor))
    weight = times * float(terms.weight.max()) / point.weight
    return held(weight * squared), held(error * math.sqrt(squared / point.weight))


def locating_limits(
    point: Point, *, choosing: bool = False, gaussian: bool = False
) -> tuple[float, float]:
    """Return R and tau of a locating look; `choosing` where terms are chosen from looks."""
    radius, residual = TUNING.radius, TUNING.residual
    if choosing:
        radius = TUNING.radius_choosing if gaussian else TUNING.radius_choosing_pure
        residual = TUNING.residual_choosing
    R = radius * math.sqrt(1.0 + float(point.spread.sum()))
    return held(R), held(residual * math.sqrt(point.dispersion))


_NODES: Final = np.polynomial.hermite_e.hermegauss(21)[0]  # precision
_WEIGHTS: Final = np.polynomial.hermite_e.hermegauss(21)[1] / math.sqrt(2 * math.pi)  # precision
_SEEN: Final = 1e-9  # precision
_LEAST: Final = 2.0**-CELL_BITS
"""Probabilities and weights are kept a cell's unit from 0, and probabilities from 1."""


def noise_norm(sd: float, size: int) -> float:
    """Return about the norm of a symmetric noise matrix (Bandeira and van Handel 2016)."""
    return 2 * math.sqrt(size) * sd


def mean_weight(family: Family, middle: float, variance: float) -> float:
    """Return the mean weight of normal predictors."""
    weights = family.terms(middle + _NODES * math.sqrt(variance)).weight
    return max(float(_WEIGHTS @ weights), _LEAST * min(family.cap, 1.0))


def usual_reach(family: Family, point: Point) -> float:
    """Return how far a response may lie from its mean, over the root of the weight.

    The root of the ratio of the mean squares of both, at normal predictors.
    """
    mean = family.terms(point.middle + _NODES * math.sqrt(point.variance)).mean
    reach = np.maximum(mean, family.cap - mean)
    return math.sqrt(float(_WEIGHTS @ (reach * reach)) / point.weight)


def from_box(box: Box, family: Family, described: Described) -> tuple[Point, Family, float]:
    """Return the first point, the family, and the released number of rows."""
    cells, sd = box.cells, box.noise_sd
    base, unit = described.response
    n = max(float(cells[0, 0]), float(sd[0, 0]), 1.0)  # no less than its noise
    if described.trials is not None:
        family, cells, sd, base, unit = _of_trials(cells, sd, described)
    at = list(described.columns)
    size, last = len(at), len(cells) - 1
    means = np.clip(cells[0] / n, -1.0, 1.0)
    S = cells / n - np.outer(means, means)
    noise = sd / n
    nu = noise_norm(float(np.sqrt((noise[np.ix_(at, at)] ** 2).mean())), size)
    values, Q = eigen(S[np.ix_(at, at)])
    kept = np.maximum(values, 0.0)
    total = unit**2 * (max(float(S[last, last]), 0.0) + float(noise[last, last]))
    mean = base + unit * float(means[last])
    if math.isfinite(family.limits[0]):
        least = max(unit * float(noise[0, last]), _LEAST * family.cap)
        mean = min(max(mean, least), family.cap - least)
    cross = S[at, last] * unit
    offsets, known = list(described.offsets), np.array(described.known)
    slope = family.slope(mean, 0.0)
    if offsets:
        cross = cross - S[np.ix_(at, offsets)] @ known * slope
    cross = Q.T @ cross
    sx, sxy = float(noise[np.ix_(at, at)].max()), float(noise[at, last].max()) * unit
    ratio = max(total, 1e-12) / max(float(kept.sum()), nu)
    ridge = 0.0 if values[0] > 2 * nu else (sxy**2 + sx**2 * ratio) * size / ratio
    low = np.maximum(values, 0.5 * nu)
    b = Q @ (low / (low * low + ridge) * cross)
    explained = float((kept * (Q.T @ b) ** 2).sum())
    slope = family.slope(mean, explained)
    slopes = b / slope
    variance = float((kept * (Q.T @ slopes) ** 2).sum())
    most = TUNING.longest / 2
    if variance > most**2:
        slopes, variance = slopes * (most / math.sqrt(variance)), most**2
    around = variance + float(known @ S[np.ix_(offsets, offsets)] @ known) if offsets else variance
    middle = family.centre(mean, max(around, 0.0))
    weight = mean_weight(family, middle, max(around, 0.0))
    if offsets:
        middle -= float(known @ means[offsets])
    rest = max(total - explained, 0.0) + unit**2 * float(noise[last, last])
    phi = held(min(max(rest, 1e-6 * total), total) / slope, 1e-30) if family.dispersed else 1.0
    spread = kept / (kept + 0.5 * nu)
    sure = np.maximum(kept - TUNING.sure * nu, 0.0) / (kept + 0.5 * nu)
    L = (Q / np.sqrt(kept + 0.5 * nu)).T
    own = np.diag(S)[at] - TUNING.sure * noise_norm(1.0, 1) * np.diag(noise)[at]
    surely = (TUNING.sure if math.isfinite(family.limits[0]) else 1.0) * np.maximum(own, 0.0)
    return Point(means[at], L, slopes, middle, weight, phi, spread, sure, least=surely), family, n


def _of_trials(
    cells: Floats, sd: Floats, described: Described
) -> tuple[Family, Floats, Floats, float, float]:
    """Return the family of the usual number of trials, and the box without the trials' part.

    With y successes of m trials, p = E y / E m, the cells of y are replaced by those of y - p m:
    were m independent of the columns, its covariance with them is E m times that of the
    probability, and otherwise nearly so.
    """
    trials, (base, unit) = described.trials, described.response
    assert trials is not None
    means = np.clip(cells[0] / max(float(cells[0, 0]), 1.0), -1.0, 1.0)
    usual = trials.scale[0] + trials.scale[1] * float(means[trials.column])
    usual = min(max(usual, 1.0), trials.most)
    share = (base + unit * float(means[-1])) / usual
    share = min(max(share, _LEAST), 1 - _LEAST)
    part = share * trials.scale[1] / unit
    turn = np.eye(len(cells))
    turn[-1, trials.column] = -part
    at = means[-1] - part * means[trials.column]
    variances = np.sqrt(turn**2 @ sd**2 @ (turn**2).T)
    return Binomial(usual), turn @ cells @ turn.T, variances, share * usual - unit * at, unit


def lifted(release: Release, rows: float) -> Floats:
    """Return released information, no less than what earlier looks showed of the columns.

    Nothing limits rows on the unit scale. So that look shows each column's variance, also of one
    that noise hides in a matrix of all: few rows far out, limited in H alone, make steps too long.
    It is counted on where H's limits may have cut what the score's did not.
    """
    point, information = release.point, release.information
    count = max(float(information[0, 0]), TUNING.least * rows)
    means = information[0, 1:]
    inner = information[1:, 1:] - np.outer(means, means) / count
    shown = point.sure > 0
    gap, Q = eigen((count * np.diag(point.sure) - inner) * np.outer(shown, shown))
    whole = information.copy()
    whole[1:, 1:] += (Q * np.maximum(gap, 0.0)) @ Q.T
    if release.lacks and not release.together and point.least is not None:
        L = point.whitening
        back = pseudo(L)
        seen = np.einsum("ij,jk,ik->i", back, whole[1:, 1:] - np.outer(means, means) / count, back)
        seen += TUNING.sure * noise_norm(release.information_sd, 1) * (back**2).sum(axis=1)
        whole[1:, 1:] += (L * np.maximum(count * point.least - seen, 0.0)) @ L.T
    return whole


def shortened(point: Point, described: Described, limit: float, more: float) -> Point:
    """Return the point with directions of levels scaled to where A limits none of their rows.

    All rows of a level lie as far out as its column's part in L says. Farther out than A they would
    count less in H than in the score. Directions stay where H is lifted as much, and where noise
    hides them at A too: rare levels move the other coefficients least when they are far out.

    Parameters
    ----------
    point : Point
    described : Described
        Its columns and levels.
    limit : float
        A of the look to come.
    more : float
        What it is of the A of the look before; 0 at the first.
    """
    at = [described.columns.index(column) for column in described.levels]
    if not at:
        return point
    reach = np.abs(point.whitening[:, at]).max(axis=1)
    share = limit / np.maximum(reach * reach, limit)
    above = point.spread / np.maximum(2 - 2 * point.spread, 1e-9)  # eigenvalue over its noise
    stays = (share <= point.sure) | ((more > 0) & (above * more <= TUNING.sure))
    share[stays] = 1.0
    return replace(
        point,
        whitening=point.whitening * np.sqrt(share)[:, None],
        spread=point.spread * share,
        sure=point.sure * share,
    )


def advance(release: Release, family: Family, rows: float, *, first: bool) -> tuple[Point, float]:
    """Return the next point, from a look that was released, and how far the fit moved.

    The latter is the step's length, a row, in units of the predictor.
    """
    point, H = release.point, release.information
    d, phi = point.size, point.dispersion
    norm = noise_norm(release.information_sd, d)
    prior = max(phi if first else 0.0, TUNING.prior * d * phi / rows)
    ridge = release.score_sd * (release.score_sd / prior)
    K = lifted(release, rows)
    values, Q = eigen(K)
    low = np.maximum(values, 0.5 * norm)
    theta = Q @ (low / (low * low + ridge) * (Q.T @ release.score))
    step = theta / math.sqrt(point.weight)
    length = math.sqrt(held(float(step @ K @ step) / rows))
    if length > TUNING.longest:
        step = step * (TUNING.longest / length)
    length = min(length, TUNING.longest)
    count = max(float(H[0, 0]), TUNING.least * rows)
    g, nu = H[0, 1:] / count, norm / count
    whole = max(float(K[0, 0]), TUNING.least * rows)
    values, Q = eigen(K[1:, 1:] / whole - np.outer(g, g))
    kept = np.maximum(values, 0.0)
    L, m = point.whitening, point.centre
    slopes = point.slopes + L.T @ step[1:]
    inverse = pseudo(L)
    centre = np.clip(m + inverse @ g, -1, 1)
    middle = point.middle + float(step[0]) + float((centre - m) @ slopes)
    weight = point.weight
    if family.dispersed:
        phi = release.dispersion(K, rows)
    fresh = weight * min(max(count / rows, TUNING.least), 1 / TUNING.least)
    fresh = max(fresh, _LEAST * min(family.cap, 1.0))
    if family.dispersed:
        phi = held(phi * weight / fresh, 1e-30)
    middle = min(max(middle, family.limits[0]), family.limits[1])
    # Weights follow the fit where the link is not the identity: the next look's may be less.
    shown = TUNING.sure if math.isfinite(family.limits[0]) else 1.0
    found = Point(
        centre,
        (Q / np.sqrt(kept + 0.5 * nu)).T @ L,
        slopes,
        middle,
        fresh,
        phi,
        kept / (kept + 0.5 * nu),
        shown * np.maximum(kept - TUNING.sure * nu, 0.0) / (kept + 0.5 * nu),
        least=point.least,
    )
    if found.variance > TUNING.longest**2:
        found = replace(found, slopes=slopes * (TUNING.longest / math.sqrt(found.variance)))
    return found, length


def explained(release: Release, rows: float) -> float:
    """Return the variance of the predictor at a point, from the information that was released."""
    point, H = release.point, release.information
    count = max(float(H[0, 0]), TUNING.least * rows)
    g = H[0, 1:] / count
    spread = H[1:, 1:] / count - np.outer(g, g)
    along = pseudo(point.whitening.T) @ point.slopes
    return max(float(along @ spread @ along), 0.0)


def carried(
    before: Release, at: Point, places: Sequence[int] | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return an earlier look's information in the coordinates of a point, P of its noise, and U.

    With v = J v' for the coordinates v' of the earlier look, H = J H' J' and P = J P' J'. U is what
    H may lack of a long tail along what no look had shown before its rows were limited, in bounds
    many times too wide: sqrt(h) of the h that it saw, a row, as limits are near where h is near 1.
    `places` are as for `Taken.fitting`.
    """
    d = at.size
    new = np.zeros((d, before.point.size))
    new[:, list(range(d) if places is None else places)] = at.rows
    J = new @ pseudo(before.point.rows)
    scale = before.point.weight / at.weight
    count, *seen = np.maximum(np.diag(before.information), [1.0, *np.zeros(before.point.size - 1)])
    lacking = np.array([0.0, *(before.point.sure == 0) * seen * np.sqrt(seen / count)])
    return (
        scale * J @ before.information @ J.T,
        scale * J @ before.spread @ J.T,
        scale * (J * lacking) @ J.T,
    )


def combined(earlier: Release, last: Release) -> Release:
    """Return a locating look with the information of both, where weights do not follow the fit.

    Both saw the same rows, and each cell of H is weighed by the noise that either has in it: with
    eigenvalues p of the earlier P, in these directions, a variance of p_i p_j beside sd^2. P of
    what comes of them is pp' for the p that keeps the sum of each row's variances.
    """
    H, P, _ = carried(earlier, last.point)
    values, Q = eigen(P)
    p = np.where(values > _SEEN * values[-1], values, held(math.inf))  # where it saw nothing
    share = np.outer(p, p) / (np.outer(p, p) + last.information_sd**2)
    both = share * (Q.T @ last.information @ Q) + (1 - share) * (Q.T @ H @ Q)
    p = last.information_sd * share.sum(axis=1) / math.sqrt(share.sum())
    return replace(last, information=Q @ both @ Q.T, carried=(Q * p) @ Q.T)
