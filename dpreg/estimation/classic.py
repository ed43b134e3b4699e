r"""Means and exponential families from released sums: post-processing, with honest errors.

With released count N, sum S and sum of squares Q of u in [-1, 1] (`dpreg.estimation.sums`), noise
covariance C (3 x 3, known exactly) and m = S/N:

- mean          m,          gradient of the noise  (-m, 1, 0)/N
- variance      v = Q/N - m^2 + g'Cg,  gradient    (m^2 - v, -2m, 1)/N

by the delta method; g'Cg, the variance of the noise in m, corrects that m^2 is too large on
average. The sampling variance of the mean is v/N; it is added to the noise's, so intervals account
for both. A variance below the standard deviation of its own noise is set to that: a public rule
that matters only where noise swamps the data, and errs on the wide side.

Exponential families (`FAMILIES`): the released sums are the sufficient statistics, and the maximum
likelihood estimate is computed from them as if they were exact. Sampling errors are those of the
model (Fisher information), noise by the delta method:

===========  ================  ===================================  =========================
family       statistics        estimate                             sampling variance
===========  ================  ===================================  =========================
gaussian     sum x, sum x^2    mean, variance                       v/N, 2 v^2/N
bernoulli    sum x             probability: the mean                `dpreg.estimation.shares`
poisson      sum x             rate: the mean                       rate/N
exponential  sum x             rate: 1/mean                         rate^2/N
===========  ================  ===================================  =========================

Values are clipped to their bounds, so bounds that cut off a tail of the law bias the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.estimation.shares import share_errors
from dpreg.estimation.sums import NoisySums

__all__ = [
    "FAMILIES",
    "Estimate",
    "Family",
    "Scale",
    "family_estimates",
    "mean_estimates",
    "sufficient_statistics",
]

_TINY: Final = 1e-300
_WIDEST: Final = 1e140
"""Bounds beyond have squares that, summed over rows, float64 cannot hold."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """One released number with the standard errors of sampling and of privacy noise."""

    value: float
    sampling: float
    privacy: float


@dataclass(frozen=True, slots=True)
class Family:
    """What an exponential family needs: parameter names, degree of its statistics, its support.

    Attributes
    ----------
    parameters : tuple of str
    degree : {1, 2}
        2 where sum x^2 is among the sufficient statistics.
    lowest : float
        Bounds may not lie below.
    highest : float
        Bounds may not lie above.
    """

    parameters: tuple[str, ...]
    degree: int
    lowest: float = -math.inf
    highest: float = math.inf


FAMILIES: Final = {
    "gaussian": Family(("mean", "variance"), 2, -_WIDEST, _WIDEST),
    "bernoulli": Family(("probability",), 1, 0.0, 1.0),
    "poisson": Family(("rate",), 1, 0.0),
    "exponential": Family(("rate",), 1, 0.0),
}
"""The families that `dp_suffstats` knows."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How u in [-1, 1] and a column's own units belong together: x = middle + half * u."""

    middle: float
    half: float

    @classmethod
    def of(cls, lo: float, hi: float) -> Scale:
        """Return the scale of a column with these bounds."""
        half = (hi - lo) / 2
        return cls(lo + half, half)


def mean_estimates(
    sums: NoisySums, scales: Sequence[Scale], rows: int | None
) -> tuple[Estimate, ...]:
    """Estimate each column's mean, in its own units.

    Parameters
    ----------
    sums : NoisySums
        With squares.
    scales : sequence of Scale, one a column
    rows : int or None
        n where it is public: an upper limit of the count.
    """
    estimates = []
    for column, scale in enumerate(scales):
        mean, noise, variance, _, count = _moments(sums, column, rows)
        estimates.append(
            Estimate(
                scale.middle + scale.half * mean,
                scale.half * math.sqrt(variance / count),
                scale.half * noise,
            )
        )
    return tuple(estimates)


def family_estimates(
    family: str, sums: NoisySums, scales: Sequence[Scale], rows: int | None
) -> tuple[Estimate, ...]:
    """Estimate a family's parameters for each column, in the order of `Family.parameters`."""
    estimates: list[Estimate] = []
    for column, scale in enumerate(scales):
        mean, noise, variance, variance_noise, count = _moments(sums, column, rows)
        value, error = scale.middle + scale.half * mean, scale.half * noise
        match family:
            case "gaussian":
                squared = scale.half**2
                spread = squared * variance
                estimates += [
                    Estimate(value, math.sqrt(spread / count), error),
                    Estimate(spread, spread * math.sqrt(2 / count), squared * variance_noise),
                ]
            case "bernoulli":
                sampling = float(share_errors(np.array([value]), count)[0])
                estimates.append(Estimate(value, sampling, error))
            case "poisson":
                estimates.append(Estimate(value, math.sqrt(max(value, error) / count), error))
            case _:  # exponential; a mean below its own noise is set to that
                mean_value = max(value, error, _TINY)
                rate = 1 / mean_value
                relative = min(error / mean_value, 1.0)
                estimates.append(Estimate(rate, rate / math.sqrt(count), relative * rate))
    return tuple(estimates)


def sufficient_statistics(sums: NoisySums, scales: Sequence[Scale]) -> tuple[float, ...]:
    """Return the released count, sum x and, where released, sum x^2 of each column."""
    told = []
    for column, scale in enumerate(scales):
        first = sums.count * scale.middle + scale.half * float(sums.sums[column])
        told += [sums.count, first]
        if sums.squares.size:
            cross = 2 * scale.middle * scale.half * float(sums.sums[column])
            second = scale.half**2 * float(sums.squares[column])
            told.append(sums.count * scale.middle**2 + cross + second)
    return tuple(told)


def _moments(
    sums: NoisySums, column: int, rows: int | None
) -> tuple[float, float, float, float, float]:
    """Read (mean, its noise, variance, its noise, count) off the released sums, in units of u.

    All stay within what is possible, whatever the noise was.
    """
    most = math.inf if rows is None else float(max(rows, 1))
    count = min(max(sums.count, 1.0), most)
    mean = min(max(float(sums.sums[column]) / count, -1.0), 1.0)
    noise = _spread(np.array([-mean, 1.0, 0.0]) / count, sums.noise)
    if not sums.squares.size:
        return mean, noise, math.nan, math.nan, count
    raw = float(sums.squares[column]) / count - mean**2 + noise**2
    inside = min(max(raw, 0.0), 1.0)
    gradient = np.array([mean**2 - inside, -2 * mean, 1.0]) / count
    variance_noise = _spread(gradient, sums.noise)
    return mean, noise, min(max(raw, variance_noise, _TINY), 1.0), variance_noise, count


def _spread(gradient: Floats, covariance: Floats) -> float:
    return math.sqrt(max(float(gradient @ covariance @ gradient), 0.0))
