"""The law of the last look, and coefficients from it.

Let beta be what the fit without privacy would give. Its score is 0, so that a look at a point says,
in the point's coordinates theta of beta,

    s = H theta + N(0, C + B + D + E),

whatever the model, right or wrong:

- C, the noise: that of s, and that of H times theta, (theta'P theta) P + P theta theta' P, where P
  is information_sd I, or what that became where H is of earlier looks (`Release.spread`);
- B, what the limit S may have cut of the score; nothing where no row of the box reaches it. The
  look releases what S/(1 + m) leaves of the score and the rest, what lies between that and S,
  apart. B is the rest times itself over m: as if sqrt(m) times less lay beyond S, which it does
  where the chance of scores falls as t^-2 (m = 1) or t^-1.8 (m = 2). Beside a minimum the rest is
  what its losses cut, S/2 at most, and B is half of rr', as for t^-2.3;
- D, what is not known of H: rows far out were limited in it, and where an earlier look had shown
  more it is lifted, by g_k in the directions q_k. How much was right to lift lies between 0 and
  g_k, whose square times q_k'T q_k is D's part along q_k;
- E = (r H theta)(r H theta)': a step that is long where the link is not the identity, r its length.

theta has the prior N(0, TUNING.prior phi I): what is left over may explain a direction of small
variance all the same. A column that says which level a row has moves predictors by its coefficient
at least, and these have public limits: its prior is N(0, h^2) as well, h half their range, so that
a level that nobody has takes nothing of the others. T is the mean of theta theta' by the posterior,
so that the law is a fixed point, sought from the prior downwards. In C theta's directions count
together, and a hidden one would drown all others: there the prior is what the looks before usually
leave over, N(0, phi TUNING.prior d/n I), or theta as it is found where that is larger. Where a
look took H itself little is left of theta, and TUNING.doubt times that variance is the prior of the
estimates, beside noise alone: what this takes off them, times itself, is added to their variance.

The truth lies around beta with the sandwich H^-1 M H^-1, in which M is drawn towards phi H by the
square of its noise, in units of phi. M adds up rows, or persons: robust errors.

A coefficient of which the look says less than its prior, so that its variance is more than half of
that, or that lies as much in directions that only seemed to be shown, has no interval: no finite
one would hold. Where more than TUNING.guess of a variance is a guess, it is marked.

From the last look to coefficients in the user's units, and which of them are marked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.looks.coordinates import eigen, held, pseudo
from dpreg.looks.coordinates import inverse as inverse_of
from dpreg.looks.families import Family
from dpreg.looks.locate import lifted, noise_norm
from dpreg.looks.loop import Seen
from dpreg.looks.records import Described, Release
from dpreg.looks.tuning import TUNING


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """The equations that a last look released: see the module.

    Attributes
    ----------
    release : Release
    score : (d,) array
        s as it is used.
    information : (d, d) array
        H, lifted.
    gap : (d, d) array
        G.
    middle : (d, d) array
        M as it is used.
    fixed : (d, d) array
        B and the noise of s.
    noise : float
        Variance of the score's noise, a row.
    dispersion : float
        phi.
    rows : float
    curved : bool
        Whether the link is not the identity.
    trust : float
        How much of the released M is used; the rest is phi H.
    bounded : (d,) array
        Inverse variance of each coefficient of (1, x) before any look.
    doubted : (k, d) array
        Directions of theta of which nothing is known after all.
    """

    release: Release
    score: Floats
    information: Floats
    gap: Floats
    middle: Floats
    fixed: Floats
    noise: float
    dispersion: float
    rows: float
    curved: bool
    trust: float
    bounded: Floats
    doubted: Floats


def law(release: Release, family: Family, rows: float, described: Described | None = None) -> Law:
    """Return the law of a look; of a locating one that of its rows as they are limited.

    Without `described` no column says which level a row has.
    """
    d = release.point.size
    H = lifted(release, rows)
    phi = release.dispersion(H, rows)
    if not family.dispersed:
        phi = max(phi, TUNING.least)
    values, Q = eigen(H)
    norm = noise_norm(release.information_sd, d)
    root = (Q * np.sqrt(np.maximum(values, 0.5 * norm))) @ Q.T
    inner, trust = phi * np.eye(d), 0.0
    if release.middle is not None:
        turned = inverse_of(root)
        noise = math.sqrt(2) * release.middle_sd / rows
        trust = 1 / (1 + held(noise / phi) ** 2)
        inner = inner + trust * (turned @ release.middle @ turned - inner)
        values, Q = eigen(inner)
        inner = (Q * np.clip(values, TUNING.least * phi, phi / TUNING.least)) @ Q.T
    score, fixed = _score(release)
    low, high = family.limits
    half = (high - low) / 2 if math.isfinite(low) else 1.0
    bounded = np.zeros(d)
    if described is not None:
        bounded[[described.columns.index(j) + 1 for j in described.levels]] = 1 / half**2
    return Law(
        release=release,
        score=score,
        information=H,
        gap=H - release.information + (0 if release.unseen is None else release.unseen),
        middle=root @ inner @ root,
        fixed=fixed,
        noise=held(release.score_sd) ** 2 / max(rows, 1.0),
        dispersion=phi,
        rows=rows,
        curved=math.isfinite(family.limits[0]),
        trust=trust,
        bounded=bounded,
        doubted=_doubted(release, H - release.information),
    )


def _doubted(release: Release, gap: Floats) -> Floats:
    """Return the directions, as rows, that earlier looks had shown and this one does not bear out.

    H is mostly lift there, and the rest does not stand above its noise: what seemed to be shown was
    noise, and nothing is known.
    """
    values, Q = eigen(gap)
    told = np.einsum("ji,jk,ki->i", Q, release.information, Q)
    noise = np.einsum("ji,jk,ki->i", Q, release.spread, Q)
    return np.asarray(Q.T[(told < values) & (told < 2 * math.sqrt(2) * noise)], dtype=np.float64)


def _score(release: Release) -> tuple[Floats, Floats]:
    """Return the score as it is used, and the covariance of its noise and of what S cut of it.

    The rest, what lies beyond S/(1 + m), is drawn towards 0 as its own length tells: its prior is
    N(0, t I), t d what its square exceeds its noise by.
    """
    unit = np.eye(release.point.size)
    if release.rest is None:
        return release.score, held(release.score_sd) ** 2 * unit
    near, noise, seen = release.parts
    share = seen / (seen + noise)
    rest, left = share * release.rest, share * noise
    cut = (np.outer(rest, rest) + left * unit) / release.times if release.cuts else 0.0
    return release.score - release.rest + rest, (near + left) * unit + cut


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Coefficients of (1, x) in stored units.

    Attributes
    ----------
    params : (m,) array
    covariance, sampling : (m, m) arrays
        Of both sources, and of sampling alone.
    hidden : (m,) array
        Each variance, over what it was before the look.
    guessed : (m,) array
        Share of it that comes of what is not known of H.
    step : float
        Length of the last step, a row, in units of the predictor.
    """

    params: Floats
    covariance: Floats
    sampling: Floats
    hidden: Floats
    guessed: Floats
    step: float

    def of(self, some: Sequence[int]) -> Fit:
        """Return some of the coefficients, as they are beside the others."""
        square = np.ix_(some, some)
        return replace(
            self,
            params=self.params[some],
            covariance=self.covariance[square],
            sampling=self.sampling[square],
            hidden=self.hidden[some],
            guessed=self.guessed[some],
        )


def fit(one: Law, columns: Sequence[int] | None = None) -> Fit:
    """Return the coefficients of the model with these columns (0 the constant); None: all.

    Coefficients of the others are 0.
    """
    point, size = one.release.point, len(one.release.score)
    chosen = list(range(size)) if columns is None else list(columns)
    inverse, shift = pseudo(point.transform), point.shift
    J = inverse[:, chosen]  # theta = J b - inverse shift
    A = J.T @ one.information @ J
    told = J.T @ (one.score + one.information @ (inverse @ shift))
    drawn = J.T @ J / one.dispersion  # theta is drawn nearer to 0 than its variance
    free = drawn / TUNING.prior
    levels, around = np.diag(one.bounded[chosen]), shift[chosen]
    prior = inverse_of(free + levels)
    b, spread, near = around, prior, prior
    lift, Q = eigen(one.gap)
    usual = TUNING.prior * size * max(one.dispersion, one.noise) / max(one.rows, 1.0)
    for _ in range(_STEPS):
        theta = J @ b - inverse @ shift
        W, loud = _noise(one, theta, J @ near @ J.T)
        square = np.outer(theta, theta) + J @ spread @ J.T
        D = (Q * (lift**2 * np.einsum("ij,ik,kj->j", Q, square, Q))) @ Q.T
        Wi = inverse_of(J.T @ (W + D + one.middle) @ J)
        known = A.T @ Wi @ A
        spread = inverse_of(known + free + levels)
        b = inverse_of(known + drawn + levels) @ (A.T @ Wi @ told + drawn @ around)
        left = max(usual, float(theta @ theta) / size)
        near = inverse_of(known + drawn * (one.dispersion / left) + levels)
    expected = TUNING.doubt * left if one.release.carried is None else one.dispersion
    nearer = drawn * (one.dispersion / expected)
    Vi = inverse_of(J.T @ (W + D) @ J)  # the fit without privacy has no sampling error
    estimate = inverse_of(A.T @ Vi @ A + nearer + levels) @ (A.T @ Vi @ told + nearer @ around)
    taken, b = b - estimate, estimate
    gain = spread @ A.T @ Wi @ J.T
    Wi = inverse_of(J.T @ (W - loud + one.middle) @ J)
    sure = inverse_of(A.T @ Wi @ A + free + levels)
    variance = np.maximum(np.diag(spread), 1e-300)
    turned = inverse_of(J.T @ J) @ J.T
    doubted = ((turned @ one.doubted.T) ** 2).sum(axis=1) / (turned**2).sum(axis=1)
    theta = J @ b - inverse @ shift
    moved = held(float(theta @ one.information @ theta) / one.rows / point.weight)
    return Fit(
        params=np.asarray(b, dtype=np.float64),
        covariance=np.asarray(spread + np.outer(taken, taken), dtype=np.float64),
        sampling=np.asarray(gain @ one.middle @ gain.T, dtype=np.float64),
        hidden=np.maximum(variance / np.maximum(np.diag(prior), 1e-300), doubted),
        guessed=1 - np.diag(sure) / variance,
        step=math.sqrt(moved),
    )


def _noise(one: Law, theta: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Return C + B + E for a theta of this mean and spread, and what H's noise has of it."""
    square = np.outer(theta, theta) + spread
    P = one.release.spread
    loud = np.asarray(float(np.sum(P * square)) * P + P @ square @ P, dtype=np.float64)
    W = one.fixed + loud
    if one.curved:
        length = math.sqrt(held(float(theta @ one.information @ theta) / one.rows))
        along = min(length / math.sqrt(one.release.point.weight), 1.0) * (one.information @ theta)
        W = W + np.outer(along, along)
    return np.asarray(W, dtype=np.float64), loud


def residual_variance(release: Release, one: Law, found: Fit) -> float:
    """Return the variance of the residuals of a linear model: phi, or what M says of it.

    phi weighs a row by the length of its v, so it is not that variance where errors fan out or rows
    are few. M's cell of the constant is the residuals' sum of squares before the last step, which
    takes theta' H theta off it. It is used where it stands above its noise as phi does.

    Parameters
    ----------
    release : Release
    one : Law
        Of the release.
    found : Fit
        Of all the columns that were looked at.
    """
    freedom = max(one.rows - len(found.params), 1.0)
    usual = one.dispersion * max(one.rows / freedom, 1.0)
    if release.middle is None:
        return usual
    squares = float(release.middle[0, 0])
    if squares <= 2 * math.sqrt(2) * release.middle_sd:
        return usual
    return max(squares - one.rows * found.step**2, TUNING.least * squares) / freedom


_STEPS: Final = 8  # precision: steps of a fixed point that contracts
_HALF: Final = 0.5  # by definition: of the prior's variance, where look and prior say as much


WIDE: Final = "wide: the fit without privacy may differ by more"
NARROW: Final = "narrow: rows far from the rest count less, the fit of all may differ by more"
NO_INTERVAL: Final = "too few rows to say"


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Coefficients of the columns of a model in the user's units; see `estimates`."""

    found: Fit
    law: Law
    params: Floats
    covariance: Floats
    sampling: Floats
    marks: Mapping[str, str]
    residual_variance: float


def estimates(
    seen: Seen,
    places: Sequence[int],
    names: Sequence[str],
    to_user: tuple[Floats, Floats],
    *,
    among: Sequence[int] | None = None,
) -> Estimates:
    """Estimate a model from the last look.

    Parameters
    ----------
    seen : Seen
    places : sequence of int
        Where its columns stand among those that were looked at, 0 the constant.
    names : sequence of str
    to_user : (m, m) and (m,) arrays
        T and t: coefficients b of stored columns become T b + t.
    among : sequence of int, optional
        The places of a larger model, beside all of which the coefficients are wanted.
    """
    own = law(seen.releases[-1], seen.family, seen.rows, seen.described)
    model = list(among or places)
    whole = model == list(range(len(own.information)))
    found = fit(own, None if whole else model)
    variance = residual_variance(seen.releases[-1], own, found)
    if among is not None:
        found = found.of([model.index(place) for place in places])
    transform, shift = to_user
    freedom = max(seen.rows, 1.0) / max(seen.rows - len(model), 1.0)
    sampling = transform @ found.sampling @ transform.T * freedom
    covariance = transform @ found.covariance @ transform.T + sampling * (1 - 1 / freedom)
    # An intercept in the user's units is a mixture of all coefficients: it is as hidden as they.
    share = np.abs(transform) > 0
    unknown = np.array([found.hidden[row].max() for row in share]) > _HALF
    lifted = np.array([found.guessed[row].max() for row in share])
    marks = {}
    for name, none, far in zip(names, unknown, lifted, strict=True):
        if none:
            marks[name] = NO_INTERVAL
        elif far > TUNING.guess:
            marks[name] = WIDE
        elif seen.releases[-1].together:
            marks[name] = NARROW
    for array in (covariance, sampling):
        array[unknown, :] = np.nan
        array[:, unknown] = np.nan
    return Estimates(
        found, own, transform @ found.params + shift, covariance, sampling, marks, variance
    )
