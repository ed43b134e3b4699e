r"""From the look that terms are chosen from to the choice, and to the looks at chosen columns.

At its point the look released s = H theta + N(0, W) of what is left over, theta, with

    W = phi H+ + score_sd^2 I + information_sd^2 (tr(T) I + T),    T the mean of theta theta',

H+ without negative eigenvalues: the first part is that of the rows, the others of the noise in s
and in H times theta. T is the posterior's under the prior of the choice, N(0, tau^2 phi I), and so
a fixed point that a few rounds come near to. Limits are let be: they shorten all of s and H alike
in rows far out, which a useless term has as well, and allowing for what they cut of coefficients
would hide terms.

Looks at chosen columns begin where this law puts the model of these columns alone, whitened by the
moments of the columns as far as they stand above their noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.choice.released import Released, priors
from dpreg.looks.families import Family
from dpreg.looks.locate import noise_norm
from dpreg.looks.loop import Seen
from dpreg.looks.point import Point
from dpreg.looks.release import Release
from dpreg.looks.solve import eigen, held, inverse, pseudo
from dpreg.looks.tuning import TUNING

__all__ = ["laws_for_choice", "point_of_chosen"]

_ROUNDS: Final = 4  # precision: rounds of a fixed point


def laws_for_choice(seen: Seen) -> tuple[Released, ...]:
    """Return the law of the last look under each of `priors`."""
    release = seen.releases[-1]
    point, phi = release.point, _dispersion(release, seen.family, seen.rows)
    laws = []
    for prior in priors(point.size):
        W, _, _ = _law(release, phi, prior)
        laws.append(
            Released(
                start=point.shift,
                transform=point.transform * math.sqrt(phi),
                equations=release.information * math.sqrt(phi),
                left=release.score,
                covariance=W,
                prior=prior,
                degrees=release.degrees,
            )
        )
    return tuple(laws)


def _dispersion(release: Release, family: Family, rows: float) -> float:
    """Return phi, above the noise in it; 1 at least where it is known to be that."""
    d = release.point.size
    whole = max(float(np.trace(release.information)), TUNING.least * rows * d)
    phi = held(max(release.trace, 2 * release.middle_sd) / whole, 1e-30)
    return phi if family.dispersed else max(phi, 1.0)


def _law(release: Release, phi: float, prior: float) -> tuple[Floats, Floats, Floats]:
    """Return W, and the posterior's mean and covariance of theta."""
    H, s = release.information, release.score
    values, Q = eigen(H)
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
    return W, theta, spread


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
    W, _, _ = _law(release, phi, priors(point.size)[0])
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
    A = release.information @ towards[:, chosen]
    told = release.score + release.information @ (towards @ point.shift)
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
    )


_LEAST: Final = 1e-9  # precision: least centred moment of a column, in stored units
