"""The fit without privacy, with robust errors: what printed intervals are held against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]
_STEPS, _CLOSE = 100, 1e-10


@dataclass(frozen=True)
class Plain:
    """Least squares or maximum likelihood, the intercept first.

    `hc` is White's covariance (HC1), `cluster` that of persons, where there are any.
    """

    params: Floats
    hc: Floats
    cluster: Floats | None


def plain_fit(family: str, x: Floats, y: Floats, persons: NDArray[np.intp] | None) -> Plain:
    """Fit y on (1, x) by Newton's steps, halved where they overshoot."""
    v = np.column_stack([np.ones(len(y)), x])
    n, d = v.shape
    beta = np.zeros(d)
    if family == "poisson":
        beta[0] = np.log(y.mean())
    old = _loss(family, v @ beta, y)
    for _ in range(_STEPS):
        mean, weight = _mean(family, v @ beta)
        step = np.linalg.solve((v.T * weight) @ v, v.T @ (y - mean))
        size = 1.0
        while (new := _loss(family, v @ (beta + size * step), y)) > old + 1e-9 * abs(old):
            size /= 2
            if size < _CLOSE:
                raise ArithmeticError("the fit without privacy does not converge")
        beta, old = beta + size * step, new
        if np.abs(size * step).max() < _CLOSE * max(1.0, float(np.abs(beta).max())):
            break
    else:
        raise ArithmeticError("the fit without privacy does not converge")
    mean, weight = _mean(family, v @ beta)
    inverse = np.linalg.inv((v.T * weight) @ v)
    scores = v * (y - mean)[:, None]
    cluster = None
    if persons is not None:
        sums = np.zeros((int(persons.max()) + 1, d))
        np.add.at(sums, persons, scores)
        count = len(sums)
        cluster = inverse @ (sums.T @ sums) @ inverse * count / (count - 1)
    return Plain(beta, inverse @ (scores.T @ scores) @ inverse * n / (n - d), cluster)


def _mean(family: str, eta: Floats) -> tuple[Floats, Floats]:
    """Return the mean, and its derivative."""
    if family == "linear":
        return eta, np.ones_like(eta)
    mean = expit(eta) if family == "logit" else np.exp(np.minimum(eta, 50.0))
    return mean, mean * (1 - mean) if family == "logit" else mean


def _loss(family: str, eta: Floats, y: Floats) -> float:
    if family == "linear":
        return float(((y - eta) ** 2).sum())
    whole = np.logaddexp(0, eta) if family == "logit" else np.exp(np.minimum(eta, 50.0))
    return float((whole - y * eta).sum())
