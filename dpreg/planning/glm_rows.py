"""Rows that a plan of a generalised linear model assumes: columns, predictors and responses.

Columns are those of `dpreg.planning.assumed`. Each has an equal part in the linear predictor, whose
middle is such that the mean response is as stated; responses are drawn from the model with a fixed
seed. Where ``like=`` has the response, its own stands.

Tested in `tests/planning/test_glm.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from scipy.linalg import cholesky

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError
from dpreg.looks.described import Described
from dpreg.looks.families import family_of
from dpreg.planning.assumed import of_formula
from dpreg.planning.fitted import Rows
from dpreg.planning.glm_call import GLMCall

__all__ = ["rows_of"]

_SEED: Final = 36
_EVENTS: Final = 400
"""Ones, or successes, that made-up rows should hold."""
_ROWS: Final = (4096, 1 << 15)
_HALVINGS: Final = 60


def rows_of(
    call: GLMCall, sd: Mapping[str, float], correlation: float, like: Any, *, skewed: bool = False
) -> Rows:
    """Assume rows for a call.

    Parameters
    ----------
    call : GLMCall
    sd, correlation, like
        As for `dpreg.plan_glm`, checked.
    skewed : bool
        Whether they are of the second assumption of `dpreg.planning.assumed`.
    """
    design, model = call.design, call.model
    columns, _ = model.places(design)
    family = family_of(call.name, design.response.hi)
    place = {column.name: j for j, column in enumerate(design.columns)}
    given = {
        place[name]: float(value) / design.columns[place[name]].width for name, value in sd.items()
    }
    mean = call.supposed.mean
    rare = min(mean, 1 - mean) if call.name == "binomial" and mean else max(mean, 0.1)
    least = int(min(max(_EVENTS / max(rare, 1e-9), _ROWS[0]), _ROWS[1]))
    assumed = of_formula(design, given, correlation, like, skewed=skewed, least=least)
    described = model.described(design)
    y, beta = assumed.own, None
    if y is None:
        if not mean:
            raise ArgumentError("give mean, or rows in like= that have the response.")
        y, beta = _responses(call, described, assumed.x, design.response.hi)
    return Rows(
        family,
        described,
        np.column_stack([np.ones(len(assumed.x)), assumed.x, y]),
        tuple(range(len(columns) + 1)),
        tuple(design.columns[j].name for j in (0, *columns)),
        model.to_user_units(design, (0, *columns)),
        beta,
    )


def _responses(
    call: GLMCall, described: Described, columns: Floats, cap: float
) -> tuple[Floats, Floats]:
    """Return stored responses, drawn from the model that is supposed, and its coefficients."""
    supposed, family = call.supposed, family_of(call.name, cap)
    x = columns[:, [j - 1 for j in described.columns]]
    slopes = supposed.slopes
    if slopes is None:
        covariance = np.cov(x.T).reshape(x.shape[1], x.shape[1])
        held = covariance + 1e-9 * np.diag(np.diag(covariance) + 1e-12)
        equal = np.full(x.shape[1], supposed.spread / np.sqrt(x.shape[1]))
        slopes = np.linalg.solve(cholesky(held, lower=True).T, equal)
    eta = (x - x.mean(axis=0)) @ slopes
    if described.offsets:
        eta = eta + columns[:, [j - 1 for j in described.offsets]] @ np.array(described.known)
    low, high = -60.0 - float(np.abs(eta).max()), 60.0 + float(np.abs(eta).max())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = float(family.terms(eta + middle).mean.mean()) > supposed.mean
        low, high = (low, middle) if above else (middle, high)
    mean = family.terms(eta + low).mean
    rng = np.random.default_rng(_SEED)
    if call.name == "binomial":
        trials = described.trials
        times = np.ones(len(x))
        if trials is not None:
            times = np.rint(trials.scale[0] + trials.scale[1] * columns[:, trials.column - 1])
        y = rng.binomial(np.maximum(times, 0).astype(int), np.clip(mean, 0, 1)).astype(float)
    else:
        y = np.minimum(_counts(rng, mean, supposed.dispersion), cap)
    base, unit = described.response
    beta = np.append(low - float(x.mean(axis=0) @ slopes), slopes)
    return np.asarray((y - base) / unit), beta


def _counts(rng: np.random.Generator, mean: Floats, scatter: float) -> Floats:
    """Draw counts whose variance is `scatter` times the mean."""
    if scatter > 1:
        return rng.negative_binomial(np.maximum(mean, 1e-12) / (scatter - 1), 1 / scatter).astype(
            float
        )
    if scatter == 1:
        return rng.poisson(mean).astype(float)
    noise = rng.standard_normal(len(mean)) * np.sqrt(scatter * mean)
    return np.asarray(np.maximum(np.rint(mean + noise), 0.0))
