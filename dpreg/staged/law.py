r"""The law of the last look: weak equations for the coefficients, never an inverse.

With A, h, s the noisy blocks of the look's cells and theta the true coefficients in its
coordinates, h = A theta + (noise): exactly,

    h - A theta = sum c (1, u) error + (E_full (theta, -1))_{1..d} (up to sign),

so that in box coordinates, beta = t0 + T theta,

    g = K beta + N(0, W),    K = A T^-1,    g = h + K t0,    W = sigma2 A+ + C.

A+ is A without negative eigenvalues; C is the covariance of the noise times (theta, -1), averaged
over a posterior of theta whose prior has variance 1/4 a direction (one that explains as much as
the residual, since tau = 2 omega). Directions that the noise hides stay in as weak equations.

Cut residuals move with theta only where they are not cut: in a share q of rows, if they are normal
(`tails.kept`). The matrix of the equations is then B = sum over these of c^(1 + a) (1, u)(1, u)',
and is taken for q A. With a = 1 the two differ by chance. With a = -1/2 rows that are shortened
count more, c^(1/2) for c^2, and their residuals, c^(-1/2) e, are cut the sooner. Such a look has
its radius opened, and shortens few: on drawn tables (`benchmarks.drawn`, up to 60,000 rows) tr B is
.95 to 1.08 of q tr A, .99 in the middle. What that moves is (B - q A) theta, and theta is but the
error of the look before: about a tenth of a standard error.

Sampling is sum c^2 (1, u)(1, u)' f^2, f the residual as cut: the mean of f^2 times A+, where f^2 is
no larger far out; what is released of its trace corrects it (`_leverage`). sigma2 is sum f^2 over
what squared residuals count: sum c^2 for a = 1. For a = -1/2 sum 1/c is 1 to 1.02 of the rows
there, before cuts, and taken for these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.staged.released import NEARLY, NoisyLook, Tail
from dpreg.staged.tails import STRETCHED, kept, normal_cut

__all__ = ["LookLaw", "law", "solved"]

_PRIOR: Final = 0.25
"""Prior variance of theta a direction: at tau = 2 omega it explains as much as the residual."""
_SKEW: Final = 0.05
"""What cutting at 2 sigma moves the mean by, in sigma: .050 for exponential residuals, .063 for
lognormal ones. At k sigma it is taken for (2/k)^2 times that: between the two for k = 3..5."""
_SLOPES: Final = 0.8
"""Standard deviation of what cuts move slopes by, over `Heaviness.slope`, which is what they move
where the spread grows by half with a column; often it changes less."""
_SPREAD: Final = 0.2
"""How far the leverage of residuals is expected to differ from the usual one."""
_ROUNDS: Final = 4
"""Rounds of posterior and residual variance; the fourth changes both by under a percent."""


@dataclass(frozen=True, slots=True, eq=False)
class LookLaw:
    """g = K beta + N(0, W), q equations for the d coefficients in box units, intercept first.

    Parameters
    ----------
    g : (q,) array
    k : (q, d) array
    sampling, privacy : (q, q) arrays
        The two parts of W, positive semidefinite.
    residual : float
        sigma2: the residual variance, in squared box units of the response.
    count : float
        Released number of complete rows.
    weight : float
        Mean squared weight of a row: 1 where no row was shortened.
    theta : (d,) array
        Posterior mean in the look's coordinates.
    eigenvalues : (d,) array
        Of A, ascending; `noise_norm` is the size of the noise in them.
    noise_norm : float
    map_noise : (d, d) array
        M, the expected E' W^-1 E in box coordinates, E the noise in K: where K'W^-1 K hardly
        exceeds it, K itself is noise.
    located : (d, d) array
        T^-1: theta = located @ beta - center.
    center : (d,) array
        T^-1 t0.
    moments : (d, d) array
        Mean of the weighted rows' (1, x)(1, x)', without negative eigenvalues, in box units.
    heavy : float
        Mean square of residuals at the wide cut over that at the narrow one, less two standard
        deviations of its noise: about 1.2 at most for normal residuals; NaN without a tail.
    degrees : int or None
        As in `NoisyLook`.
    moved : float
        What `sampling` allows for the slopes that cutting residuals moves, over the rest of it.
    """

    g: Floats
    k: Floats
    sampling: Floats
    privacy: Floats
    residual: float
    count: float
    weight: float
    theta: Floats
    eigenvalues: Floats
    noise_norm: float
    map_noise: Floats
    located: Floats
    center: Floats
    moments: Floats
    heavy: float
    degrees: int | None
    moved: float = 0.0

    @property
    def covariance(self) -> Floats:
        """W, (q, q)."""
        return np.asarray(self.sampling + self.privacy)


def law(
    look: NoisyLook,
    count: float | None = None,
    tail: Tail | None = None,
    prior: float = _PRIOR,
) -> LookLaw:
    """Return the law of a released look; raises on no released value.

    Parameters
    ----------
    look : NoisyLook
    count : float, optional
        The number of complete rows that an earlier look released.
    tail : Tail, optional
        The two cells with the wider cut; without them the intercept's error allows for skewed
        residuals, which only they can tell from others.
    prior : float
        Variance of theta a direction that the noise of A theta is averaged over.
    """
    size, variances = look.size, look.noise_sd**2
    a, h = look.cells[:size, :size], look.cells[:size, size]
    rows = look.count(count) if count is None else max(count, size + 1.0)
    weights = min(max(float(look.cells[0, 0]), 0.2 * rows), rows)
    total_noise = 2 * float(look.noise_sd[size, size])
    total = max(float(look.cells[size, size]), total_noise / 2)
    counted = weights if look.power == 1 else rows
    share = counted / rows
    values, vectors = np.linalg.eigh(a)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    theta, spread = np.zeros(size), np.eye(size) * prior
    scatter, squared_cut = total / counted, look.cut**2
    sampling = privacy = positive
    for _ in range(_ROUNDS):
        privacy = equation_noise(variances, theta, spread)
        sampling = scatter * share * positive
        within = kept(scatter / squared_cut)
        weighted = solved(sampling + privacy, np.column_stack([within * a, h]))
        spread = _posterior(within * a @ weighted[:, :size], prior)
        theta = spread @ (within * a @ weighted[:, size])
        extended = np.append(theta, -1.0)
        noise = float(np.sqrt(extended**2 @ variances @ extended**2))
        left = float(look.cells[size, size] - (2 * h - within * a @ theta) @ theta)
        scatter = max(min(max(left, noise / 2), total), 1e-12) / counted
    if tail is not None:
        sampling *= _leverage(tail, scatter * float(np.trace(positive)), share) / share
    within = kept(scatter / squared_cut)
    covariance = sampling + privacy
    cut = _beyond(tail, look, scatter, weights, counted)
    parts = _with_tail(look, tail, sampling, cut, privacy, weights, within)
    a, h, sampling, privacy = parts
    to_box = look.coordinates
    located = _inverse(to_box.transform)
    k = a @ located
    return LookLaw(
        g=h + k @ to_box.shift,
        k=k,
        sampling=sampling,
        privacy=privacy,
        residual=cut.full * to_box.width**2,
        count=rows,
        weight=weights / rows,
        theta=theta,
        eigenvalues=values,
        noise_norm=look.noise_norm,
        map_noise=_map_noise(look, covariance, located),
        located=located,
        center=located @ to_box.shift,
        moments=to_box.width**2 / weights * located.T @ positive @ located,
        heavy=cut.heavy / scatter,
        degrees=look.degrees,
        moved=cut.slopes,
    )


def _inverse(transform: Floats) -> Floats:
    """Return the inverse; where noise left coordinates without one, the pseudo-inverse."""
    try:
        return np.asarray(np.linalg.inv(transform), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(transform), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Beyond:
    """What lies beyond the cut, in units of tau: mean squares, and what the cuts may move.

    `slopes` is the variance that cutting may add to slopes, over that of sampling.
    """

    full: float
    heavy: float
    moved: float
    moved_wide: float
    slopes: float = 0.0


def _leverage(tail: Tail, plain: float, share: float) -> float:
    """Return tr(sum c^2 (1, u)(1, u)' f^2) over its value if f^2 were the same in every row.

    Residuals that spread more, or less, where rows lie far out change the sampling error of all
    coefficients by this much on average. Without noise it is what was released; else it is drawn
    towards the mean squared weight, which it is where rows are shortened and the spread is equal.
    """
    if plain < 1e-100:  # no released moment is positive: nothing to compare with
        return share
    noise = (tail.leverage_sd / plain) ** 2
    found = min(max(tail.leverage / plain, share / 2), 4.0)
    return share + (found - share) * _SPREAD**2 / (_SPREAD**2 + noise)


def _beyond(
    tail: Tail | None, look: NoisyLook, scatter: float, weights: float, counted: float
) -> _Beyond:
    """Compare the mean squares of residuals cut at tau and at the wider cut.

    |e| - tau <= (e^2 - tau^2) / (2 tau) for |e| >= tau: if all that is cut lay on one side, the
    mean would move by at most half the difference of the mean squares. A uniform law between both
    sides has 1/sqrt(3) of that as its standard deviation. Where an earlier look released how heavy
    the tails are, `dpreg.staged.tails` says it better, and for slopes too.
    """
    if tail is None:
        moved = _SKEW * 4 * scatter * math.sqrt(scatter) / look.cut**2
        return _Beyond(scatter, math.nan, moved, moved)
    wide = tail.width / look.coordinates.width
    size = look.size
    excess = (tail.squares * wide**2 - look.cells[size, size]) / counted
    noise = math.hypot(tail.squares_sd * wide**2, look.noise_sd[size, size]) / counted
    usual = look.cut**2 * normal_cut(scatter / look.cut**2) ** -2 - scatter  # of normal residuals
    known = max(0.0, 1 - (noise / (excess - usual)) ** 2) if excess != usual else 0.0
    full = scatter + usual + (max(excess, 0.0) - usual) * known
    heavy, own = scatter + excess - 2 * noise, math.sqrt(full)
    if tail.heaviness is not None:
        tails = tail.heaviness
        likely, most = tails.likely_skew, tails.most_skew
        farthest = look.coordinates.farthest * NEARLY
        narrow = look.coordinates.width < farthest
        at = look.cut**STRETCHED / own
        moved = tails.beyond(most, at) * own if narrow else 0.0
        moved_wide = tails.beyond(most, wide / own) * own if tail.width < farthest else 0.0
        slopes = _SLOPES * tails.slope(likely, at, size) if narrow else 0.0
        return _Beyond(full, heavy, moved, moved_wide, (slopes**2 + tail.bent) * weights)
    most = _SKEW * 4 * full * own / look.cut**2
    moved = min(most, (max(excess, 0.0) + noise) / (2 * math.sqrt(3)))
    return _Beyond(full, heavy, moved, moved / wide**1.5)


def _with_tail(
    look: NoisyLook,
    tail: Tail | None,
    sampling: Floats,
    cut: _Beyond,
    privacy: Floats,
    weights: float,
    within: float,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Add the allowance for skewed residuals, and the equation of the tail.

    Cutting skewed residuals at +-tau moves the intercept by E[error - cut error], and slopes where
    the spread of residuals depends on columns: by sum (1, u) of what is cut off, whose direction is
    taken for that of sampling.
    """
    size = look.size
    a, h = look.cells[:size, :size], look.cells[:size, size]
    along, count = sampling[0], a[:, 0]
    sampling = (1 + cut.slopes) * sampling + cut.moved**2 * np.outer(count, count)
    if tail is None:
        return within * a, h, sampling, privacy
    wide = tail.width / look.coordinates.width
    beside = privacy[0].copy()
    beside[0] -= look.noise_sd[0, size] ** 2
    own = beside[0] + (tail.total_sd * wide) ** 2
    privacy = np.block([[privacy, beside[:, None]], [beside[None, :], np.array([[own]])]])
    own = _wide_variance(cut, weights, float(along[0]))
    sampling = np.block([[sampling, along[:, None]], [along[None, :], np.array([[own]])]])
    return np.vstack([within * a, a[0]]), np.append(h, tail.total * wide), sampling, privacy


def _wide_variance(cut: _Beyond, weights: float, narrow: float) -> float:
    """Return the variance of the wide cut's sum of residuals, `narrow` that of the narrow cut's.

    A residual that is cut farther out is never smaller. With less than `narrow`, which the leverage
    has raised or lowered, the covariance of both would have a negative eigenvalue.
    """
    return max(cut.full * weights, narrow) + (cut.moved_wide * weights) ** 2


def _map_noise(look: NoisyLook, covariance: Floats, located: Floats) -> Floats:
    """Return E[T^-T E' W^-1 E T^-1] over the noise E of A.

    Cell (i, j) of E is in rows i and j: entry (a, b) gets Winv_ab v_ab, and entry (a, a) also
    sum_i Winv_ii v_ia.
    """
    size = look.size
    variances = look.noise_sd[:size, :size] ** 2
    inverse = solved(covariance, np.eye(size))
    noise = inverse * variances
    np.fill_diagonal(noise, np.diag(inverse) @ variances)
    back = located.T @ noise @ located
    return np.asarray((back + back.T) / 2)


def equation_noise(variances: Floats, theta: Floats, spread: Floats) -> Floats:
    """Return C, (d, d): Cov((E (theta, -1))_{1..d}) averaged over theta ~ (theta, spread).

    Cells are independent or uncorrelated: cell (i, j) moves entry i by theta_j and entry j by
    theta_i, cell (i, i) entry i by theta_i.
    """
    size = len(theta)
    products = np.outer(theta, theta) + spread
    noise = np.asarray(variances[:size, :size] * products)
    np.fill_diagonal(noise, variances[:size] @ np.append(np.diag(products), 1.0))
    return noise


def solved(covariance: Floats, right: Floats) -> Floats:
    """Solve with a symmetric covariance, kept off singularity by a share of 1e-12."""
    size = len(covariance)
    ridge = max(1e-12 * float(np.trace(covariance)) / size, 1e-200)
    return np.asarray(np.linalg.solve(covariance + ridge * np.eye(size), right), dtype=np.float64)


def _posterior(precision: Floats, prior: float) -> Floats:
    """Return (precision + prior)^-1; its eigenvalues are at most the prior's variance."""
    values, vectors = np.linalg.eigh((precision + precision.T) / 2)
    return np.asarray((vectors / (np.maximum(values, 0.0) + 1 / prior)) @ vectors.T)
