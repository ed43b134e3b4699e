"""Inference from released coefficients: post-processing, free of charge.

Everything here is a function of released numbers, so it costs no budget. The reference law is the
normal one: under differential privacy the noise is known but the degrees of freedom need not be.
"""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from numbers import Real
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, stdtrit

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError, shown
from dpreg.estimation import inference as drawn
from dpreg.estimation.sums import centred_shares

__all__ = [
    "binomial_errors",
    "combined",
    "combined_errors",
    "drawn_intervals",
    "known",
    "level",
    "normal_intervals",
    "normal_pvalues",
    "observation_intervals",
    "places",
    "read_only",
    "root",
    "share_intervals",
    "variances",
    "z_values",
]

_BLOCK: Final = 1024  # combinations at a time: B x 1024 floats are a few megabytes


def read_only(values: ArrayLike, ndim: int, name: str) -> Floats:
    """Return float64 numbers that refuse writes, or raise where the dimension is wrong.

    A copy, unless the array refuses writes already and owns its numbers.
    """
    kept = isinstance(values, np.ndarray) and not values.flags.writeable and values.flags.owndata
    array = np.array(values, dtype=np.float64, copy=None if kept else True)
    if array.shape == (0,):
        array = array.reshape((0,) * ndim)  # of no columns: JSON does not tell [] of two dimensions
    if array.ndim != ndim:
        raise ArgumentError(f"{name} must have {ndim} dimension(s), got {array.ndim}")
    array.setflags(write=False)
    return array


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
    if (
        found.ndim != 1
        or found.dtype.kind not in "iu"
        or not ((-size <= found) & (found < size)).all()
    ):
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
def combined_errors(covariance: Floats, combinations: Floats) -> Floats:
    """Return the standard errors of rows r'beta of `combinations` (m x p): sqrt(r' V r)."""
    return root(variances(covariance, combinations))


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


def normal_pvalues(z: Floats) -> Floats:
    """Return two-sided p-values from the normal law."""
    return np.asarray(2 * ndtr(-np.abs(z)), dtype=np.float64)


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


def binomial_errors(shares: Floats, draws: int) -> Floats:
    """Return sqrt(f (1 - f) / K), the standard error of a share f of K draws; NaN for one draw."""
    if draws < 2:
        return np.full(len(shares), np.nan)
    return np.asarray(np.sqrt(shares * (1 - shares) / draws), dtype=np.float64)
