r"""The law of an estimate whose uncertainty is a set of draws: one law for intervals and p-values.

The draws are of the *true* value given the release (`dpreg.estimation.inference`). Their quantiles
Q(p), at Weibull positions, are exact where the truth is exchangeable with the draws. A ridged
estimate is drawn towards zero and the draws are not, so it may lie outside their middle 95%. The
interval of level 1 - alpha is therefore

    [min(Q(alpha/2), estimate), max(Q(1 - alpha/2), estimate)].

It is never shorter than the one between quantiles, so it covers no less often, and it always
holds the estimate. The p-value of a value q is the largest alpha whose interval holds q:

    1 where q lies between the estimate and the median of the draws, else 2 min(F(q), 1 - F(q)),

F the inverse of Q. So q lies in the interval of level 1 - alpha exactly where its p-value is at
least alpha.

Beyond the outermost half percent on either side there are too few draws to read quantiles off.
There the law goes on with an exponential tail from the median m through the anchor p0 = 1/200:

    Q(p) = m + (Q(p0) - m) log(2 p) / log(2 p0),    p < p0.

Laplace, K-norm and matrix-Laplace noise have tails of this kind and Gaussian noise has lighter
ones, so that far tails err on the side of caution.

Of the intercept of a ridged fit the draws lie on one side: among many columns, folded eigenvalues
take noise for columns that explain some of the constant, and what is left of it is divided by too
little. How far to one side the draws tell, and not to which one the estimate errs; it is not drawn
towards zero, and may be nearer than any draw. So `both_sides` takes, for each p, the outer one of
Q(p) and of its mirror image about the estimate, 2 estimate - Q(1 - p). The interval is never
shorter for it, and reaches as far below the estimate as above.

In R, at alpha >= 0.01: ``range(quantile(draws, c(alpha/2, 1 - alpha/2), type = 6), estimate)``.
"""

from __future__ import annotations

import numpy as np

from dpreg.arrays import Floats
from dpreg.estimation.tuning import TUNING

__all__ = ["both_sides", "intervals", "pvalues"]


def intervals(estimates: Floats, draws: Floats, alpha: float) -> Floats:
    """Return intervals (m, 2) of level 1 - alpha that hold the estimates.

    Parameters
    ----------
    estimates : (m,) array
    draws : (B, m) array
    alpha : float in (0, 1)
    """
    with np.errstate(invalid="ignore", over="ignore"):
        lower = _quantile(draws, alpha / 2)
        upper = -_quantile(-draws, alpha / 2)
    return np.column_stack([np.minimum(lower, estimates), np.maximum(upper, estimates)])


def both_sides(estimate: float, draws: Floats) -> Floats:
    """Return draws (B,), ordered as they were, that reach as far to either side of an estimate.

    Parameters
    ----------
    estimate : float
    draws : (B,) array
    """
    order = np.argsort(draws)
    there = draws[order]
    mirrored = 2 * estimate - there[::-1]
    below = len(draws) // 2
    outer = there.copy()
    outer[:below] = np.minimum(there, mirrored)[:below]
    outer[len(draws) - below :] = np.maximum(there, mirrored)[len(draws) - below :]
    found = np.empty_like(outer)
    found[order] = outer
    return found


def pvalues(estimates: Floats, draws: Floats, values: Floats) -> Floats:
    """Return two-sided p-values (m,): the largest alpha whose interval holds each value.

    Parameters
    ----------
    estimates : (m,) array
    draws : (B, m) array
    values : (m,) array
        What the truth is under the hypotheses.
    """
    middle = np.median(draws, axis=0)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        below = np.array([_tail(*each) for each in zip(draws.T, middle, values, strict=True)])
        above = np.array([_tail(*each) for each in zip(-draws.T, -middle, -values, strict=True)])
    tail = np.where(values < middle, below, above)
    inside = (np.minimum(estimates, middle) <= values) & (values <= np.maximum(estimates, middle))
    found = np.where(inside, 1.0, np.minimum(2 * tail, 1.0))
    unknown = np.isnan(estimates) | np.isnan(values) | np.isnan(middle)
    return np.where(unknown, np.nan, found)


def _anchor(draws: int) -> float:
    return min(max(TUNING.tail, 1 / (draws + 1)), TUNING.widest_tail)


def _quantile(draws: Floats, tail: float) -> Floats:
    """Return the lower quantiles (m,), p = tail at most 1/2, by the law of the module."""
    anchor = _anchor(len(draws))
    if tail >= anchor:
        return np.asarray(np.quantile(draws, tail, axis=0, method="weibull"))
    outer, middle = np.quantile(draws, [anchor, 0.5], axis=0, method="weibull")
    return np.asarray(middle + (outer - middle) * (np.log(2 * tail) / np.log(2 * anchor)))


def _tail(draws: Floats, middle: float, value: float) -> float:
    """Return p with Q(p) = value, for one estimate; meant for values below the median."""
    anchor = _anchor(len(draws))
    outer = np.quantile(draws, anchor, method="weibull")
    if value < outer:
        reach = (middle - value) / (middle - outer)
        return float(0.5 * (2 * anchor) ** reach)
    positions = np.arange(1, len(draws) + 1) / (len(draws) + 1)
    return float(np.interp(value, np.sort(draws), positions))
