"""Released laws of made-up looks, and slow answers for them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.linalg import null_space

from dpreg.arrays import Floats
from dpreg.choice.evidence import Released
from dpreg.selection.space import Space


def look_of(
    correlation: Floats,
    beta: Floats,
    *,
    seed: int = 0,
    rows: float = 400.0,
    noise: float = 3.0,
    prior: float = 0.1,
    degrees: int | None = None,
    exact: bool = False,
) -> Released:
    """Return a look at `rows` rows of correlated columns, the intercept first.

    The coordinates whiten the columns, and start off the truth by a draw of the prior; left sides
    have sampling error and noise, unless they are `exact`.
    """
    rng = np.random.default_rng(seed)
    size = len(beta)
    moments = np.eye(size)
    moments[1:, 1:] = correlation
    transform = np.linalg.inv(np.linalg.cholesky(moments)).T
    theta = rng.normal(scale=np.sqrt(prior), size=size)
    mixed = np.sqrt(rng.chisquare(2 * degrees) / (2 * degrees)) if degrees else 1.0
    covariance = (rows + noise**2) * np.eye(size)
    equations = rows * np.eye(size)
    mixed = 0.0 if exact else mixed
    error = mixed * rng.normal(size=size) * np.sqrt(rows + noise**2)
    start = np.asarray(beta - transform @ theta)
    left = equations @ theta + error
    return Released(start, transform, equations, left, covariance, prior, degrees)


def both(law: Released) -> tuple[Released, Released]:
    """Return the law under its own prior and under a flat one."""
    return law, replace(law, prior=1.0)


def space_of(widths: list[int], **more: object) -> Space:
    """Return a space of units of so many columns each, after the intercept."""
    ends = np.cumsum([1, *widths])
    columns = tuple(tuple(range(a, b)) for a, b in pairwise(map(int, ends)))
    names = tuple(f"u{i}" for i in range(len(widths)))
    return Space(names, columns, (0,), **more)  # type: ignore[arg-type]


def slow_gain(law: Released, columns: list[int]) -> tuple[float, Floats, Floats]:
    """Return gain_S, the estimate of beta_S and its covariance, by generalised least squares.

    All of theta that beta_S does not depend on is noise, N(0, prior) a direction, so that

        s = H P (beta_S - t0_S) + H N b + N(0, W),    P = pinv(T_S), N the null space of T_S.
    """
    own = law.transform[columns]
    back, hidden = np.linalg.pinv(own), law.equations @ null_space(own)
    inverse = np.linalg.inv(law.covariance + law.prior * hidden @ hidden.T)
    design = law.equations @ back
    covariance = np.linalg.inv(design.T @ inverse @ design)
    estimate = covariance @ design.T @ inverse @ law.left + law.start[columns]
    return float(estimate @ np.linalg.solve(covariance, estimate)), estimate, covariance
