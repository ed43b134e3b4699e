"""Inference from released coefficients: post-processing, free of charge.

Everything here is a function of released numbers, so it costs no budget. The reference law is the
normal one: under differential privacy the noise is known but the degrees of freedom need not be.

The reference law of a released coefficient: one law for intervals, p-values and quantiles.

A combination r'beta of the estimates errs by a sampling part, normal by the central limit theorem,
and a privacy part that is known: r'H N (theta, -1), N the noise. Gaussian noise makes it normal.
Matrix-Laplace noise N = W1 - W2, independent Wisharts with nu degrees of freedom, makes it

    sum_k (x_k y_k - x'_k y'_k),    k = 1..nu,    x = r'H g_k and y = (theta, -1)'g_k normal:

given the y it is normal, and where x and y are uncorrelated its variance is proportional to
chi2_{2 nu}. The GLS estimate has them all but uncorrelated, so that with a and b the two variances

    error ~ N(0, a + b V),    V ~ chi2_{2 nu} / (2 nu):

a normal mixture, of excess kurtosis (3/nu) (b/(a+b))^2. Mean over V by its N midpoint quantiles:

    P(|error| > t) = mean_i 2 Phi(-t / sqrt(a + b V_i)),    V_i the (i - 1/2)/N quantile.

In R: ``v <- qchisq((1:256 - .5)/256, 2*nu)/(2*nu); mean(2*pnorm(-t/sqrt(a + b*v)))``.

A normal estimate that was seen only because it fell into a known set.

T ~ N(beta, s^2) given that T lies in a union of intervals. The conditional distribution function
at the estimate falls as beta grows (the family is an exponential one with a monotone likelihood
ratio, whatever the set). So the beta at which it is 1/2 is median-unbiased, and those at which it
is 1 - level/2 and level/2 are the ends of an equal-tailed interval (Lee, Sun, Sun and Taylor 2016,
Theorem 5.2 and Lemma A.1). Estimate, interval and p-value come from the one function.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from typing import Annotated, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri, log_ndtr, logsumexp, ndtr, ndtri, stdtrit

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError, shown
from dpreg.estimation import inference as drawn
from dpreg.estimation.sums import centred_shares

_BLOCK: Final = 1024  # combinations at a time: B x 1024 floats are a few megabytes


def level(alpha: object) -> float:
    """Return alpha as a float if it is a number in (0, 1), else raise ArgumentError."""
    if isinstance(alpha, Real | Decimal):  # 0 < True < 1 fails below
        with suppress(OverflowError, ValueError):
            if 0 < (number := float(alpha)) < 1:
                return number
    raise ArgumentError(f"alpha must be a number between 0 and 1, got {shown(alpha)}")


def places(cols: ArrayLike, size: int) -> NDArray[np.intp]:
    """Return the places of wanted coefficients, checked to lie among `size`."""
    found = np.atleast_1d(np.asarray(cols))
    whole = found.ndim == 1 and found.dtype.kind in "iu"
    if not whole or not ((-size <= found) & (found < size)).all():
        raise ArgumentError(f"cols must hold places between 0 and {size - 1}.")
    return found.astype(np.intp)


def root(variances: Floats) -> Floats:
    """Return standard errors; NaN for a variance below zero, which noise can produce."""
    return np.sqrt(np.where(variances >= 0, variances, np.nan))


@np.errstate(over="ignore", invalid="ignore")
def combined(combinations: Floats, params: Floats) -> Floats:
    """Return r'beta for the rows r of `combinations` (m x p), the columns added from the left.

    A matrix product may fuse and reorder its sums as the machine likes, and a row's value depend on
    the rows beside it; this one has the same last digit everywhere, in R too.
    """
    total = np.zeros(len(combinations))
    for column, weight in zip(combinations.T, params, strict=True):
        total += column * weight
    return total


@np.errstate(over="ignore", invalid="ignore")
def variances(covariance: Floats, combinations: Floats) -> Floats:
    """Return r' V r of rows r (m x p); NaN only where r has weight on a coefficient without one."""
    found = np.einsum("ij,jk,ik->i", combinations, known(covariance), combinations)
    unknown = np.isnan(np.diag(covariance))
    return np.where((combinations[:, unknown] != 0).any(axis=1), np.nan, found)


def known(covariance: Floats) -> Floats:
    """Return a covariance with 0 for what is not known of coefficients without a variance."""
    unknown = np.isnan(np.diag(covariance))
    return np.where(unknown | unknown[:, None], 0.0, covariance) if unknown.any() else covariance


def z_values(estimates: Floats, errors: Floats) -> Floats:
    """Return estimate over standard error; NaN where both are zero, infinite where one is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.divide(estimates, errors), dtype=np.float64)


@np.errstate(over="ignore", invalid="ignore")
def normal_intervals(
    estimates: Floats, errors: Floats, alpha: float, degrees: int | None = None
) -> Floats:
    """Return intervals (m x 2) of level 1 - alpha: estimate -+ z * standard error.

    With `degrees` of freedom, of Student's law.
    """
    tail = 1 - level(alpha) / 2
    half = (ndtri(tail) if degrees is None else stdtrit(degrees, tail)) * errors
    return np.column_stack([estimates - half, estimates + half])


@np.errstate(over="ignore", invalid="ignore")
def share_intervals(shares: Floats, rows: Floats, errors: Floats, alpha: float) -> Floats:
    """Return intervals (m x 2) of shares of so many rows, within 0 and 1.

    Normal ones about the share that two rows more inside and two more outside would give, as in
    `dpreg.estimation.sums`.
    """
    limits = normal_intervals(centred_shares(shares, rows), errors, alpha)
    return np.asarray(np.clip(limits, 0.0, 1.0), dtype=np.float64)


@np.errstate(over="ignore", invalid="ignore")
def drawn_intervals(estimates: Floats, draws: Floats, combinations: Floats, alpha: float) -> Floats:
    """Return intervals (m x 2) of r'beta by the law of the released draws (B x p) of beta.

    The law is that of `dpreg.estimation.inference`.
    """
    count = len(combinations) // _BLOCK + 1
    pairs = zip(np.array_split(estimates, count), np.array_split(combinations, count), strict=True)
    limits = [drawn.intervals(some, draws @ rows.T, level(alpha)) for some, rows in pairs]
    return np.asarray(np.concatenate(limits), dtype=np.float64)


def observation_intervals(mean: Floats, limits: Floats, scale: float, alpha: float) -> Floats:
    """Return intervals (m x 2) for a new observation.

    Each side of the interval of the mean and the side z sqrt(scale) of a normal residual add in
    quadrature; for a normal interval of the mean this is statsmodels' own formula.
    """
    residual = ndtri(1 - level(alpha) / 2) * root(np.array([scale]))[0]
    below = np.hypot(mean - limits[:, 0], residual)
    above = np.hypot(limits[:, 1] - mean, residual)
    return np.column_stack([mean - below, mean + above])


_NODES: Final = 256
"""Midpoints: at nu = 5 a p-value of .05 is off by a part in a thousand, one of 1e-4 by a tenth."""
_HALVINGS: Final = 60


@lru_cache(maxsize=64)
def mixing(degrees: int | None) -> Floats:
    """Return the midpoints V_i of the privacy part's mixing law; 1 alone for Gaussian noise."""
    upper = 1 - (np.arange(_NODES) + 0.5) / _NODES
    found: Floats = np.ones(1)
    if degrees is not None:
        found = np.asarray(chdtri(2.0 * degrees, upper) / (2.0 * degrees))
    found.setflags(write=False)
    return found


def _scales(sampling: Floats, privacy: Floats, degrees: int | None) -> Floats:
    variances = np.asarray(sampling)[..., None] + np.asarray(privacy)[..., None] * mixing(degrees)
    return np.sqrt(np.maximum(variances, 0.0))


def pvalues(errors: Floats, sampling: Floats, privacy: Floats, degrees: int | None) -> Floats:
    """Return P(|error| > |errors|), two-sided, elementwise.

    Parameters
    ----------
    errors : array
        Estimate less hypothesis.
    sampling, privacy : arrays of the same shape
        The two variances.
    degrees : int or None
        nu of matrix-Laplace noise; None for Gaussian noise.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.abs(errors)[..., None] / _scales(sampling, privacy, degrees)
    return np.asarray(2 * ndtr(-z).mean(axis=-1))


def quantiles(sampling: Floats, privacy: Floats, degrees: int | None, alpha: float) -> Floats:
    """Return half-widths t with P(|error| > t) = alpha, elementwise."""
    scales = _scales(sampling, privacy, degrees)
    if degrees is None:
        return np.asarray(ndtri(1 - alpha / 2) * scales[..., 0])
    normal = float(-ndtri(alpha / 2))
    low, high = normal * scales.min(axis=-1), normal * scales.max(axis=-1)
    scales = np.where(scales > 0, scales, np.finfo(float).tiny)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = 2 * ndtr(-middle[..., None] / scales).mean(axis=-1) > alpha
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray((low + high) / 2)


_REACHES: Final = tuple(2.0**k for k in range(8))  # precision
"""How many standard errors from the estimate ends are looked for; farther ones are infinite."""


@dataclass(frozen=True, slots=True, eq=False)
class Truncated:
    """An estimate, its standard error, and the set that it had to lie in.

    Parameters
    ----------
    estimate, se : float
    intervals : (k, 2) array
        Lower and upper ends, ascending, apart, possibly infinite; the estimate lies in one.
    """

    estimate: float
    se: float
    intervals: Annotated[Floats, 2]

    def __post_init__(self) -> None:
        """Refuse what is no set of intervals."""
        if self.intervals.ndim != 2 or not len(self.intervals) or self.intervals.shape[1] != 2:
            raise ArgumentError("intervals must have two columns")

    def below(self, beta: float) -> float:
        """Return P(T <= estimate | T in the set) at a true value."""
        lower, upper = (self.intervals.T - beta) / self.se
        cut = np.clip(np.divide(self.estimate - beta, self.se), lower, upper)
        whole, under = (logsumexp(_log_mass(lower, ends)) for ends in (upper, cut))
        return float(min(np.exp(under - whole), 1.0))

    def solve(self, probability: float) -> float:
        """Return the beta at which `below` is the probability; infinite if none is in reach."""
        from scipy.optimize import brentq  # slow to import, and seldom needed

        for reach in _REACHES:
            low, high = self.estimate - reach * self.se, self.estimate + reach * self.se
            if self.below(low) >= probability >= self.below(high):
                above = lambda beta: self.below(beta) - probability  # noqa: E731
                return float(brentq(above, low, high, xtol=1e-9 * self.se))
        return -np.inf if self.below(low) < probability else np.inf

    def center(self) -> float:
        """Return the median-unbiased estimate."""
        return self.solve(0.5)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the equal-tailed interval that misses the truth with probability `level`."""
        return self.solve(1 - level / 2), self.solve(level / 2)

    def p_value(self, beta: float = 0.0) -> float:
        """Return the two-sided p-value of a true value."""
        below = self.below(beta)
        return min(1.0, 2 * min(below, 1 - below))


def _log_mass(low: Floats, high: Floats) -> Floats:
    """Return log of the normal probability of each [low, high], exact far out in either tail."""
    flip = low > 0
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    top, bottom = log_ndtr(b), log_ndtr(a)
    with np.errstate(invalid="ignore", divide="ignore"):
        out = top + np.log1p(-np.exp(np.minimum(bottom - top, 0.0)))
    return np.where(np.isneginf(top) | (b <= a), -np.inf, out)
