"""Private selection: draw the index of a low score, by one of three mechanisms.

Let r bound the range of the changes of the integer scores between neighbours
(`dpreg.privacy.proofs.score_range`) and b be the noise scale, the float that
`noise_scale` returns, b >= r / eps. With lower scores better:

- ``permute-and-flip``: argmin of s_i - b E_i, E_i standard exponential (McKenna and Sheldon 2020;
  the same law by Ding et al. 2021). Drawn by OpenDP as permute-and-flip.
- ``exponential``: argmin of s_i - b G_i, G_i standard Gumbel. Drawn by OpenDP.
- ``laplace``: argmin of s_i + Z_i, Z_i discrete Laplace of scale b drawn by OpenDP (the paper's).

Statement
---------
Each is (r / b)-DP, hence eps-DP. `exponential` is moreover (r / b)-bounded-range, hence
(eps^2 / 8)-zCDP.

Proof
-----
Let s and s' = s + d be neighbours' scores, max d - min d <= r. A constant added to all scores
changes no law here, so assume 0 <= d_i <= r. Fix all noises but that of candidate i. Then i wins
if and only if its noise lies beyond a threshold T, and under s' beyond T' with |T' - T| <= r,
because T' - T = d_i - d_j at most, for some j's in both directions. It remains that a shift of
the threshold by r multiplies the tail by at most exp(r / b):

- exponential noise: P(b E > u) = exp(-max(u, 0) / b), log-Lipschitz with constant 1 / b;
- Gumbel: the law of the winner is softmax(-s / b): numerator and normaliser move by factors in
  [exp(-max d / b), exp(-min d / b)], their ratio within exp(+-r / b), and the log ratios of any two
  outcomes differ by (d_j - d_i) / b, at most r / b: bounded range (Dong, Durfee and Rogers 2020),
  so (r / b)^2 / 8-zCDP (Cesar and Rogers 2021);
- discrete Laplace: for integers u the tail P(-Z >= u) is c exp(-u / b) for u >= 1 and
  1 - c exp((u - 1) / b) for u <= 0, c = 1 / (1 + exp(-1 / b)): each step of u by one multiplies
  it by at most exp(1 / b) (the discrete Laplace law is log-concave).
  *Ties*: the lowest index wins, so i wins iff s_i + Z_i < s_j + Z_j for j < i and <= for j > i,
  that is iff Z_i <= T, T = min(min_{j<i} s_j + Z_j - s_i - 1, min_{j>i} s_j + Z_j - s_i), an
  integer that moves by at most r as before. A rule that reads no score costs nothing.

Exactness
---------
OpenDP draws permute-and-flip in exact rational arithmetic and Gumbel by refining partial samples
until the order is certain, so no rounding enters. Scores are int64; nothing is subtracted from
them in int64: OpenDP turns each into a rational first, and the Laplace noise, drawn on a vector of
zeros, is added in Python integers. Its draws have the exact law too, however far out they are
(`dpreg.privacy.mechanisms.additive.laplace_noise`): no saturation is left over for delta.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from opendp import measurements
from opendp.domains import atom_domain, vector_domain
from opendp.measures import max_divergence, zero_concentrated_divergence
from opendp.metrics import linf_distance

from dpreg.arrays import Ints
from dpreg.errors import ArgumentError
from dpreg.privacy import seeded
from dpreg.privacy.balls import float_above
from dpreg.privacy.budget import ALL_ROWS
from dpreg.privacy.mechanisms.additive import contrib, laplace_noise, opendp_noise
from dpreg.privacy.protection import ScoreRange

if TYPE_CHECKING:
    from numpy.random import Generator

    from dpreg.privacy.account import Part


_LARGEST_SCALE: Final = 2.0**53
_LARGEST_REACH: Final = 2**62
"""OpenDP holds ranges in 64 bits."""


def draw_index(
    scores: Ints,
    bound: ScoreRange,
    part: Part,
    mechanism: str,
    rows: str = ALL_ROWS,
) -> int:
    """Draw the index of a low score, at the cost of a part of a call's budget.

    Parameters
    ----------
    scores : int64 array, shape (K,)
        As for `choose`.
    bound : ScoreRange
        How far the scores move, proved for the neighbours that the call protects.
    part : Part
    mechanism : {"permute-and-flip", "exponential", "laplace"}
    rows : str
        The group of rows that the scores were computed from.
    """
    eps = part.draw(mechanism, bound, rows).eps
    return choose(scores, eps=eps, score_range=bound.width, mechanism=mechanism, rng=part.rng)


def choose(
    scores: Ints,
    *,
    eps: Fraction,
    score_range: int,
    mechanism: str,
    rng: Generator | None = None,
) -> int:
    """Draw the index of a low score, eps-DP when the scores change by at most `score_range`.

    Parameters
    ----------
    scores : int64 array, shape (K,)
        Exact integer scores, lowest best. K is public and at least 1.
    eps : Fraction
        The pure epsilon of this draw, positive.
    score_range : int
        Bound on max d - min d, d the change of the scores between neighbours. Trusted: calls use
        `draw_index`, which takes a bound that says what it was proved for.
    mechanism : {"permute-and-flip", "exponential", "laplace"}
    rng : numpy Generator, optional
        For reproducible runs that are **not private**; by default the noise comes from OpenDP and
        the operating system's entropy.

    Returns
    -------
    int
        The index drawn; releasing it costs eps.
    """
    scores = np.ascontiguousarray(scores)
    assert scores.dtype == np.int64
    scale = noise_scale(eps, score_range, mechanism)
    if rng is not None:
        return seeded.choose(scores, scale=scale, mechanism=mechanism, rng=rng)
    if mechanism == "laplace":
        noise = laplace_noise(scores.size, scale)
        noisy = [score + z for score, z in zip(scores.tolist(), noise, strict=True)]
        return noisy.index(min(noisy))
    return int(_noisy_min(scale, mechanism)(scores))


@lru_cache(maxsize=256)
def noise_scale(eps: Fraction, score_range: int, mechanism: str) -> float:
    """Return the least float b with b >= score_range / eps for which OpenDP's own map agrees.

    The privacy loss that OpenDP computes for the built measurement, rounded upwards in float64, is
    compared with eps (with eps^2 / 8 for the exponential mechanism, measured in zCDP) as exact
    Fractions; while it exceeds it by an ulp the scale is taken one float higher.
    """
    assert eps > 0
    wanted = score_range / eps
    if wanted > _LARGEST_SCALE or score_range > _LARGEST_REACH:
        raise ArgumentError("eps is too small for the range of the scores: the noise is over 2**53")
    scale = float_above(wanted)
    limit = eps**2 / 8 if mechanism == "exponential" else eps
    while Fraction(_measurement(scale, mechanism).map(score_range)) > limit:
        scale = math.nextafter(scale, math.inf)
    return scale


def _measurement(scale: float, mechanism: str) -> Any:
    if mechanism == "laplace":
        return opendp_noise("make_laplace", scale)
    return _noisy_min(scale, mechanism)


def effective_t(eps: Fraction, score_range: int, mechanism: str = "permute-and-flip") -> Fraction:
    """Return 1 / b exactly: the rate per grid unit that `choose` really uses, at most eps / r.

    Exact probabilities computed elsewhere take this number, so that they are the probabilities of
    the draw and not of a nearby one.
    """
    return 1 / Fraction(noise_scale(eps, score_range, mechanism))


@lru_cache(maxsize=64)
def _noisy_min(scale: float, mechanism: str) -> Any:
    """Build OpenDP's noisy minimum; the range bound makes the metric monotonic.

    OpenDP's L-infinity metric with ``monotonic=True`` takes d_in for the range of the changes
    instead of twice their largest modulus. Changes within [u, u + r] are, up to the common shift
    u that no law notices, changes within [0, r], which are monotonic with L-infinity distance r.
    """
    pure = mechanism == "permute-and-flip"
    with contrib():
        return measurements.make_noisy_max(
            vector_domain(atom_domain(T="i64")),
            linf_distance(T="i64", monotonic=True),
            max_divergence() if pure else zero_concentrated_divergence(),
            scale=scale,
            negate=True,
        )
