r"""The law of a last look, and coefficients from it.

In the coordinates of the point, with theta the coefficients that are left over,

    s = H theta + N(0, M + C + B + D + E),

whatever the model: M is the middle of the sandwich, released at the fit; and

- C, the noise: that of s, and that of H times theta, information_sd^2 (|theta|^2 I + theta theta');
- B, what limits may have cut of the score: TUNING.allowance times the bound of `limits`, any way;
- D, what is not known of H: H as released is limited, and is lifted to what an earlier look showed.
  With G >= 0 what was lifted, D = tr(G T) G + G T G, T the mean of theta theta';
- E = (r H theta)(r H theta)': a step that is long where the link is not the identity, r its length.

theta has the prior N(0, phi I): what is left over explains in no direction more than the residual.
T is its posterior mean square, so that the law is a fixed point, sought from the prior downwards. A
coefficient whose variance is more than half the prior's has no interval: no finite one would hold.

M as released is noisy. In the metric of H it is drawn towards phi I by the ratio of its noise to
the spread that such a matrix has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpreg.arrays import Floats
from dpreg.looks.families import Family
from dpreg.looks.limits import cut_score
from dpreg.looks.locate import lifted, noise_norm
from dpreg.looks.release import Release
from dpreg.looks.tuning import TUNING

__all__ = ["Fit", "Law", "fit", "law"]


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """The equations that a last look released: see the module.

    Attributes
    ----------
    shift, transform : (d,) and (d, d) arrays
        beta = shift + transform theta, for coefficients of (1, x) in stored units.
    information : (d, d) array
        H, lifted.
    gap : (d, d) array
        G.
    score : (d,) array
    middle : (d, d) array
        M as it is used.
    fixed : (d, d) array
        B and the noise of s.
    information_sd : float
    dispersion : float
        phi.
    rows : float
    curved : bool
        Whether the link is not the identity.
    weight : float
        wbar.
    degrees : int or None
    trust : float
        How much of the released M is used; the rest is phi H.
    """

    shift: Floats
    transform: Floats
    information: Floats
    gap: Floats
    score: Floats
    middle: Floats
    fixed: Floats
    information_sd: float
    dispersion: float
    rows: float
    curved: bool
    weight: float
    degrees: int | None
    trust: float


def law(release: Release, family: Family, rows: float) -> Law:
    """Return the law of a fitting look."""
    point, d = release.point, release.point.size
    H = lifted(release.information, point, rows)
    trace = max(float(np.trace(H)), TUNING.least_count * rows * d)
    least = 2 * release.middle_sd * math.sqrt(2 * d if release.middle is not None else 1)
    phi = max(release.trace, least) / trace
    if not family.dispersed:
        phi = max(phi, TUNING.least_phi)
    values, Q = np.linalg.eigh(H)
    norm = noise_norm(release.information_sd, d)
    root = (Q * np.sqrt(np.maximum(values, 0.5 * norm))) @ Q.T
    inner, trust = phi * np.eye(d), 0.0
    if release.middle is not None:
        inverse = np.linalg.inv(root)
        noise = math.sqrt(2) * release.middle_sd / rows
        trust = (TUNING.sandwich * phi) ** 2 / ((TUNING.sandwich * phi) ** 2 + noise**2)
        inner = inner + trust * (inverse @ release.middle @ inverse - inner)
        values, Q = np.linalg.eigh(inner)
        inner = (Q * np.clip(values, TUNING.least_phi * phi, phi / TUNING.least_phi)) @ Q.T
    cut = TUNING.allowance * cut_score(rows, d, phi, release.limits[1]) / math.sqrt(d)
    return Law(
        shift=point.shift,
        transform=point.transform,
        information=H,
        gap=H - release.information,
        score=release.score,
        middle=root @ inner @ root,
        fixed=(cut**2 + release.score_sd**2) * np.eye(d),
        information_sd=release.information_sd,
        dispersion=phi,
        rows=rows,
        curved=math.isfinite(family.limits[0]),
        weight=point.weight,
        degrees=release.degrees,
        trust=trust,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Coefficients of (1, x) in stored units.

    Attributes
    ----------
    params : (m,) array
    covariance, sampling : (m, m) arrays
        Of both sources, and of sampling alone.
    hidden : (m,) array
        Share of each variance that is the prior's.
    lifted : (m,) array
        Share that comes of what is not known of H.
    moved : float
        Length of the last step in units of the residual's scale, a row.
    """

    params: Floats
    covariance: Floats
    sampling: Floats
    hidden: Floats
    lifted: Floats
    moved: float


def fit(found: Law, columns: list[int] | None = None) -> Fit:
    """Return the coefficients of the model with these columns (0 the constant); None: all."""
    size = len(found.score)
    chosen = list(range(size)) if columns is None else columns
    inverse = np.linalg.pinv(found.transform)
    T, H = found.transform, found.information
    s = found.score
    if len(chosen) < size:  # coefficients that are left out are 0: theta = inverse (beta - shift)
        keep = inverse[:, chosen]
        s = s + H @ (inverse @ found.shift)
        H, T, shift = H @ keep, np.eye(len(chosen)), np.zeros(len(chosen))
        prior = np.linalg.inv(keep.T @ keep) * found.dispersion * TUNING.prior
        around = found.shift[chosen]
        back = keep
    else:
        shift, prior, around = (
            found.shift,
            np.eye(size) * found.dispersion * TUNING.prior,
            np.zeros(size),
        )
        back = np.eye(size)
    precision = np.linalg.inv(prior)
    theta: Floats = around.copy()
    spread: Floats = np.asarray(prior, dtype=np.float64)
    G, sd = found.gap, found.information_sd
    left = np.linalg.pinv(found.transform) @ found.shift if len(chosen) < size else np.zeros(size)
    for _ in range(_STEPS):
        full = back @ theta - left
        square = np.outer(full, full) + back @ spread @ back.T
        noise = sd**2 * (np.trace(square) * np.eye(size) + square)
        D = float(np.trace(G @ square)) * G + G @ square @ G
        W = found.middle + found.fixed + noise + D
        if found.curved:
            length = math.sqrt(max(float(full @ found.information @ full), 0.0) / found.rows)
            along = min(length / math.sqrt(found.weight), 1.0) * (found.information @ full)
            W = W + np.outer(along, along)
        Wi = np.linalg.inv(W)
        known = H.T @ Wi @ H
        spread = np.asarray(np.linalg.inv(known + precision), dtype=np.float64)
        near = TUNING.nearer * precision
        theta = np.asarray(
            np.linalg.solve(known + near, H.T @ Wi @ s + near @ around), dtype=np.float64
        )
    gain = spread @ H.T @ Wi
    covariance = T @ spread @ T.T
    diagonal = np.maximum(np.diag(covariance), 1e-300)
    full = back @ theta - left
    return Fit(
        params=shift + T @ theta,
        covariance=covariance,
        sampling=T @ (gain @ found.middle @ gain.T) @ T.T,
        hidden=diagonal / np.maximum(np.diag(T @ prior @ T.T), 1e-300),
        lifted=np.diag(T @ gain @ D @ gain.T @ T.T) / diagonal,
        moved=math.sqrt(
            max(float(full @ found.information @ full) / found.rows, 0.0) / found.dispersion
        ),
    )


_STEPS = 8
