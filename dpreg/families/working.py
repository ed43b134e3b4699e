r"""How far rows should reach in a look: least predicted error under a public working law.

Where the columns lie is not known, only what was released: centres, and how much of each whitened
direction's spread is signal. The working law takes u from a multivariate t with five degrees of
freedom of that spread (a fixed list of seeded draws, no data), and eta = centre + u'(slopes). For
clips A and S, a look's predicted variance of a coefficient is

    (phi n I4 (1 + lack of fit) + N) / (n I2)^2 + (MISFIT (1 - I2/I0))^2,

I2 and I4 the mean of omega and omega^2 times the information of a direction, and I0 is I2 without
clips: rows that are weighted down change what is estimated where the model is not quite true. N is
the noise variance of an equation: D^2 (1/g + |theta|^2 (1 + 1/d)/2) / mu^2 for Gaussian noise, and
(d + 1) (b^2 + 2 |theta|^2 c^2 (1 + 1/d)) at pure eps, b and c the scales of score and information.
Beside that, the relative noise of Q, the size of single rows' scores, is kept small. Low clips,
which scores of counts may have, are chosen only where the others leave more than LOUD times as much
noise as sampling error.

Tested in `tests/families/test_looks.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpreg.arrays import Floats
from dpreg.families.family import Family
from dpreg.families.omega import row_weights
from dpreg.privacy.block_noise import MIDDLE

__all__ = [
    "Clips",
    "Situation",
    "Tried",
    "choose_clips",
    "draws",
    "light_draws",
    "limits",
    "row_limits",
    "tried_clips",
]

_DRAWS: Final = 1500
_LIGHT: Final = 4096
_FREEDOM: Final = 5
_SEED: Final = 20240917
_MISFIT: Final = 0.02
_SCORES: Final = (0.05, 0.2, 0.4, 0.6, 0.75, 0.87, 0.95, 0.98, 0.99, 0.997, 1.0, 1.15)
_ROWS: Final = (0.2, 0.4, 0.6, 0.75, 0.87, 0.95, 0.98, 0.99, 0.997, 1.0, 1.5)
"""Clips tried: quantiles of what rows reach under the working law; beyond 1, multiples of the
largest."""
_WEIGHTS: Final = np.exp(np.linspace(math.log(1e-2), math.log(3e3), 60))
"""Weights g of the score beside the information that are tried."""
_SHARES: Final = np.array([0.25, 0.35, 0.5, 0.6, 0.7, 0.8])
"""Parts of eps that the score may take."""
_QUIET: Final = 0.35
"""Noise in the information, as a share of it, from where on it is penalised."""
_SIZED: Final = 10.0
"""What relative noise in Q, squared, counts beside the error: the size of single rows' scores is
the dispersion and scales all sampling errors."""
_LOUD: Final = 16.0
"""Noise beside the sampling error, as variances, from where on low clips are worth what they may
get wrong: four standard errors."""


@lru_cache(maxsize=16)
def draws(columns: int) -> Floats:
    """Return the working law's draws, (1500, p + 1): unit covariance; the last is for offsets."""
    generator = np.random.default_rng(_SEED)
    normal = generator.standard_normal((_DRAWS, columns + 1))
    square = generator.chisquare(_FREEDOM, (_DRAWS, 1)) / (_FREEDOM - 2)
    found = normal / np.sqrt(square)
    found.setflags(write=False)
    return found


@lru_cache(maxsize=16)
def light_draws(columns: int) -> Floats:
    """Return normal draws, (4096, p + 1): clips are for heavier tails, which most columns lack."""
    found = np.random.default_rng(_SEED + 1).standard_normal((_LIGHT, columns + 1))
    found.setflags(write=False)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """What is known when a look is planned, all of it released or public.

    Parameters
    ----------
    family : Family
    eta : (1500,) array
        Linear predictors of the working law.
    rows : (1500, d) array
        Its (1, u).
    mean_weight : float
        wbar.
    dispersion : float
        phi.
    count : float
        n.
    size : int
        d: the columns with the intercept.
    misfit : float
        Mean square of what the fit still lacks, in units of the residual's.
    signal : float
        Expected |theta|^2.
    """

    family: Family
    eta: Floats
    rows: Floats
    mean_weight: float
    dispersion: float
    count: float
    size: int
    misfit: float
    signal: float

    @property
    def length(self) -> Floats:
        """|(1, u)|^2."""
        return np.asarray((self.rows * self.rows).sum(axis=1))


@dataclass(frozen=True, slots=True)
class Clips:
    """How far rows may reach, and the weight of the score.

    Attributes
    ----------
    information, score : float
        A and S.
    weight : float
        g, beside the information in the same units; at pure eps the score's part of it.
    error : float
        The predicted variance of a coefficient in the look's coordinates.
    efficiency : float
        The variance of scores over phi and the information that they come with.
    slope : float
        The mean change of scores by the fit, over the information that they come with: below 1
        where counts are cut.
    loudness : float
        The noise of a coefficient beside its sampling error, as variances.
    """

    information: float
    score: float
    weight: float
    error: float
    efficiency: float
    slope: float
    loudness: float


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """Clips that are tried, (S, 1) and (1, A), and what each leaves of the rows, (S, A).

    `second` and `fourth` are I2 and I4, `information` the part of the information that is counted,
    `whole` that without clips, and `biased` the mean square of what scores get wrong. `low` tells
    clips that are for loud noise alone.
    """

    S: Floats
    A: Floats
    second: Floats
    fourth: Floats
    information: Floats
    biased: Floats
    whole: float
    low: NDArray[np.bool_]


def tried_clips(at: Situation) -> Tried:
    """Return what weights leave of the rows."""
    mean, weight = at.family.moments(at.eta)
    length = at.length
    norms = weight / at.mean_weight * length
    farthest = np.maximum(mean, at.family.cap - mean)
    scores = farthest / math.sqrt(at.mean_weight) * np.sqrt(length)
    S, A = limits(scores, _SCORES)[:, None], row_limits(norms)[None, :]
    omega = row_weights(S[..., None], scores, A[..., None], norms)
    second = (omega * norms).mean(axis=-1) / at.size
    fourth = (omega * omega * norms).mean(axis=-1) / at.size
    whole = float(norms.mean()) / at.size
    none = np.zeros_like(second)
    return Tried(S, A, second, fourth, second, none, whole, none > 0)


def choose_clips(
    at: Situation, tried: Tried, ratio: float, replaced: bool, *, pure: bool = False
) -> Clips:
    """Return the clips of least predicted error for a look.

    Parameters
    ----------
    at : Situation
    tried : Tried
    ratio : float
        mu of the look, or its eps where that is pure, over the rows of one person.
    replaced : bool
        Whether neighbours replace a row.
    pure : bool
    """
    second, fourth = tried.second, tried.fourth
    A, S = np.broadcast_arrays(tried.A, tried.S)
    rule = _pure_noise if pure else _noise
    noise = rule(at, A, S, second, fourth, ratio, replaced)
    sampling = at.dispersion * at.count * fourth * (1 + at.misfit)
    added = noise.min(axis=-1) / ratio**2
    error = (sampling + added) / (at.count * second) ** 2 + tried.biased
    error = error + (_MISFIT * (1 - tried.information / tried.whole)) ** 2
    middle = _middle_noise(S, ratio, pure=pure) / (at.dispersion * at.count * at.size * fourth)
    ranked = error * (1 + _SIZED * middle**2)
    chosen = int(np.argmin(np.where(tried.low, np.inf, ranked)))
    if (added / sampling).flat[chosen] > _LOUD:
        chosen = int(np.argmin(ranked))
    i, j = np.unravel_index(chosen, error.shape)
    best = int(np.argmin(noise[i, j]))
    return Clips(
        information=float(A[i, j]),
        score=float(S[i, j]),
        weight=float((_SHARES if pure else _WEIGHTS)[best]),
        error=float(error[i, j]),
        efficiency=float(fourth[i, j] / tried.information[i, j]),
        slope=float(second[i, j] / tried.information[i, j]),
        loudness=float(added[i, j] / sampling[i, j]),
    )


def _middle_noise(S: Floats, ratio: float, *, pure: bool) -> Floats:
    """Return the standard deviation of the noise in Q, of which a row has at most S^2."""
    own = MIDDLE / (1 - MIDDLE)
    scale = math.sqrt(2) / float(own) if pure else 1 / math.sqrt(own)
    return np.asarray(S * S * scale / ratio)


def row_limits(norms: Floats) -> Floats:
    """Return the limits of a row's information that are tried."""
    return limits(norms, _ROWS)


def limits(reached: Floats, shares: tuple[float, ...]) -> Floats:
    """Return quantiles of what rows reach and, for shares beyond 1, multiples of the largest."""
    inner = np.quantile(reached, [share for share in shares if share <= 1])
    return np.append(inner, [reached.max() * share for share in shares if share > 1])


def _noise(
    at: Situation,
    A: Floats,
    S: Floats,
    second: Floats,
    fourth: Floats,
    ratio: float,
    replaced: bool,
) -> Floats:
    """Return the noise variance of an equation at ratio 1, for each clip and weight g."""
    g, d = _WEIGHTS, at.size
    squared, score = (A * A)[..., None], (S * S)[..., None] * g
    if replaced:
        square = squared + 4 * score
        x = score / squared
        close = squared * (2 + 2 * x + x * x / 2)
        square = np.where(x <= 2, np.maximum(square, close), square)
    else:
        square = squared + score
    known = (at.count * second)[..., None]
    spread = square / g / ratio**2 + at.dispersion * at.count * fourth[..., None]
    signal = at.signal + d * spread / known**2
    noise = square * (1 / g + signal * (0.5 + 0.5 / d))
    loud = 2 * np.sqrt(2 * d * square) / ratio / known
    return np.asarray(noise * (1 + np.maximum(0.0, loud / _QUIET - 1)) ** 4)


def _pure_noise(
    at: Situation,
    A: Floats,
    S: Floats,
    second: Floats,
    fourth: Floats,
    ratio: float,
    replaced: bool,
) -> Floats:
    """Return the same at pure eps 1, for each clip and share of the score."""
    d, times = at.size, 1.0 if replaced else 0.5
    score = (d + 1) * (2 * times * S[..., None] / _SHARES) ** 2
    scale = times * A[..., None] / (1 - _SHARES)
    known = (at.count * second)[..., None]
    spread = score / ratio**2 + at.dispersion * at.count * fourth[..., None]
    signal = at.signal + d * spread / known**2
    noise = score + signal * 2 * (d + 1) * scale**2 * (1 + 1 / d)
    loud = 2 * np.sqrt(2 * d * (d + 1)) * scale / ratio / known
    return np.asarray(noise * (1 + np.maximum(0.0, loud / _QUIET - 1)) ** 4)
