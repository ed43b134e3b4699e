r"""The law of a family's last look: the equations that its coefficients are estimated from.

At the fit t0 that the look was at, with beta = t0 + T theta, score and information give

    s - H theta = (scores at the truth) + (noise in s) - (noise in H) theta,

up to terms of second order in theta, which `_curved` allows for. So, as in `dpreg.staged.law`, with
A = H:

    g = K beta + N(0, W),    K = A T^-1,    g = s + K t0,    W = M + C,

M being the sandwich's middle (`_middle`) and C the covariance of the noise, averaged over a
posterior of theta. A is never inverted. Where counts are cut, scores change by less than H with the
fit, and A = slope H; s gains what the look itself says that its caps took off beyond what was added
back, and C what that may get wrong (`dpreg.families.recount`).

Tested in `tests/families/test_looks.py`.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.families.looks import FamilyLook
from dpreg.families.recount import recounted
from dpreg.families.weighted import WorkingRows, weighted_rows
from dpreg.staged.law import LookLaw, equation_noise, solved

__all__ = ["family_law"]

_ROUNDS: Final = 4
_STEPS: Final = 12
_NEAR: Final = 0.05
_FLAT: Final = 1e-200
"""Least sum of slopes that is solved with."""
_RIDGE: Final = 1e-6
"""Added to the working law's information, relative to its mean: it may be singular."""
_LONGEST: Final = 0.75
"""How far the allowance for curvature may move theta, as a part of its length."""


def family_law(look: FamilyLook, degrees: int | None = None, given: float | None = None) -> LookLaw:
    """Return the law of a released look, in stored units; raises on no released value.

    `degrees` are those of the plan; `residual` holds the dispersion, in which `sampling` is.
    `given` is the prior variance of theta a direction; without it the look says what it is.
    """
    size = len(look.cells) - 1
    variances = look.noise_sd**2
    a, h = look.cells[:size, :size], look.cells[:size, size]
    values, vectors = np.linalg.eigh(a)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    again = recounted(look)
    if again is None:
        working, slope, wrong = weighted_rows(look.fit, look.location), look.clips.slope, None
    else:
        working, slope, wrong = again.rows, again.slope, again.wrong @ again.wrong.T
        h = h + again.scores
    sampling = _middle(look, working, values, vectors)
    a = slope * a
    prior = min(max(look.fit.signal / size, 1e-6), 1.0) if given is None else given
    theta, spread = np.zeros(size), np.eye(size) * prior
    privacy = positive
    for _ in range(_ROUNDS):
        privacy = equation_noise(variances, theta, spread)
        if wrong is not None:
            privacy = privacy + wrong
        weighted = solved(sampling + privacy, np.column_stack([a, h]))
        spread = _posterior(a @ weighted[:, :size], prior)
        theta = spread @ (a @ weighted[:, size])
        if given is None:
            seen = float(theta @ theta + np.trace(spread)) / size
            prior = min(max(prior, seen), 1.0)
    h = h + a @ (_curved(look, working, theta, spread) - theta)
    location = look.location
    located = _inverse(location.transform)
    k = a @ located
    rows = look.fit.rows
    weight = min(max(float(look.cells[0, 0]) / rows, 0.05), 3.0)
    inverse = solved(sampling + privacy, np.eye(size))
    noise = inverse * variances[:size, :size]
    np.fill_diagonal(noise, np.diag(inverse) @ variances[:size, :size])
    back = located.T @ noise @ located
    return LookLaw(
        g=h + k @ location.shift,
        k=k,
        sampling=sampling,
        privacy=privacy,
        residual=look.middle,
        count=rows,
        weight=weight,
        theta=theta,
        eigenvalues=values,
        noise_norm=2 * float(np.sqrt(variances[:size, :size].sum(axis=1).max())),
        map_noise=(back + back.T) / 2,
        located=located,
        center=located @ location.shift,
        moments=located.T @ positive @ located / (weight * rows),
        heavy=1.0,
        degrees=degrees,
    )


def _middle(look: FamilyLook, working: WorkingRows, values: Floats, vectors: Floats) -> Floats:
    """Return the sandwich's middle: Q for its trace, the working law for its shape.

    Rows that are weighted down have less of it for their information, omega^2 for omega: with
    M = E omega^2 v (1, u)(1, u)' and N = E omega w (1, u)(1, u)', v the residuals' variance over
    phi, it is A+^(1/2) N^(-1/2) M N^(-1/2) A+^(1/2), scaled to the trace Q.
    """
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    weighted = working.rows * (working.omega * working.weight)[:, None]
    own, turn = np.linalg.eigh(weighted.T @ working.rows)
    back = (turn / np.sqrt(np.maximum(own, 1e-9 * own[-1] + 1e-300))) @ turn.T
    varied = working.rows * (working.omega**2 * working.variance)[:, None]
    shape = root @ back @ (varied.T @ working.rows) @ back @ root
    trace = max(float(np.trace(root @ root)), 1e-300)
    if not _FLAT < float(np.trace(shape)) < math.inf:
        shape = root @ root  # the working law's counts do not vary: as they would without weights
    scale = look.middle * trace / max(float(np.trace(shape)), 1e-300)
    return np.asarray((shape + shape.T) / 2 * scale)


def _curved(look: FamilyLook, working: WorkingRows, theta: Floats, spread: Floats) -> Floats:
    """Return the coefficients whose scores one step of Newton's would take for theta's.

    The mean is not a straight line: over a long step the scores are not H theta. Under the working
    law of `dpreg.families.working` they are m(t) = E omega (mu(eta + t) - mu(eta)) (1, u),
    and t with m(t) = E[omega w' (1, u)(1, u)'] theta, w' the slope of mu, is found by the same
    steps from theta itself. Of cut counts mu is the mean of what they count as.
    What is not known of the step, its `spread`, bends the mean as well: two points stand for it.
    Where the working law has no columns, behind the noise, theta stays as it is.
    """
    unit = 1 / math.sqrt(look.location.mean_weight)
    rows, mean = working.rows, working.means(working.eta)
    weighted = rows * working.omega[:, None]
    slope = (working.means(working.eta + _NEAR) - working.means(working.eta - _NEAR)) / (2 * _NEAR)
    information = weighted.T @ (rows * np.maximum(slope, 0.0)[:, None])
    size, trace = len(theta), float(np.trace(information))
    if not _FLAT < trace < math.inf:
        return theta  # where all means are at their limits nothing is known of a bend
    straight = information @ theta
    information += _RIDGE * trace / size * np.eye(size)
    around = unit * np.sqrt(np.einsum("ij,jk,ik->i", rows, spread, rows))
    moved = theta.copy()
    for _ in range(_STEPS):
        ahead = working.eta + rows @ moved * unit
        change = (working.means(ahead + around) + working.means(ahead - around)) / 2 - mean
        lacking = straight - weighted.T @ change / unit
        moved = moved + 0.7 * np.linalg.solve(information, lacking)
    most, length = _LONGEST * float(np.linalg.norm(theta)), float(np.linalg.norm(moved - theta))
    if not math.isfinite(length):
        return theta
    return np.asarray(theta + (moved - theta) * min(1.0, most / max(length, 1e-300)))


def _inverse(transform: Floats) -> Floats:
    """Return the inverse; where noise left coordinates without one, the pseudo-inverse."""
    try:
        return np.asarray(np.linalg.inv(transform), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(transform), dtype=np.float64)


def _posterior(precision: Floats, prior: float) -> Floats:
    """Return (precision + 1/prior)^-1; its eigenvalues are at most the prior's variance."""
    values, vectors = np.linalg.eigh((precision + precision.T) / 2)
    return np.asarray((vectors / (np.maximum(values, 0.0) + 1 / prior)) @ vectors.T)
