"""The choice that needs no privacy: least squares with BIC, over the same models. Curator only."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from dpreg.arrays import Bools, Floats
from dpreg.formula.design import Design
from dpreg.grouped import MOMENT_BITS
from dpreg.moments import Moments
from dpreg.selection.scoring import constrained
from dpreg.selection.space import Space

__all__ = [
    "LISTED",
    "NOISELESS",
    "bic_by_steps",
    "bic_choice",
    "bic_units",
    "complete",
    "rsquared",
    "total_squares",
]

LISTED: Final = 2**16
"""Spaces up to this size are listed, where nothing else was asked for."""

_LEAST: Final = 1e-12
"""Relative changes smaller than this are rounding."""
NOISELESS: Final = Fraction(2**20)
"""A rate per grid unit at which the tree's noise decides nothing but ties."""


def bic_units(space: Space, design: Design, moments: Moments) -> Bools:
    """Return which units the choice holds, (q,): of all models, or where they are many by steps."""
    if space.size <= LISTED:
        models = space.models()
        return np.asarray(models[bic_choice(space.columns(models), design, moments)[0]])
    out = np.zeros(len(space.units), dtype=np.bool_)
    out[list(bic_by_steps(space, moments))] = True
    return out


def bic_by_steps(space: Space, moments: Moments) -> tuple[int, ...]:
    """Return units that no add, drop or swap improves: of low n log Q + columns log n.

    For spaces that are too large to list. The walk starts from the least model; a unit brings
    what it needs, and takes along what needs it.
    """
    units = frozenset(range(len(space.units)))
    needs = [frozenset(need) for need in space.requires] or [frozenset[int]()] * len(units)
    most = len(units) if space.max_units is None else space.max_units

    def added(model: frozenset[int]) -> set[frozenset[int]]:
        grown = {model | {u} | needs[u] for u in units - model}
        return {one for one in grown if len(one) <= most}

    def dropped(model: frozenset[int]) -> set[frozenset[int]]:
        return {model - {v for v in model if v == u or u in needs[v]} for u in model}

    def least(models: set[frozenset[int]]) -> tuple[float, frozenset[int]]:
        listed = sorted(models, key=sorted)
        table = np.zeros((len(listed), len(units)), np.bool_)
        for row, model in zip(table, listed, strict=True):
            row[sorted(model)] = True
        values = _criterion(space.columns(table), moments)
        return float(values.min()), listed[int(values.argmin())]

    model = frozenset[int]()
    while len(model) < space.min_units:
        model = least(added(model))[1]
    value = least({model})[0]
    while True:
        shorter = dropped(model)
        swaps = (one for fewer in shorter for one in added(fewer) if len(one) <= len(model))
        for steps in (added(model) | shorter, set(swaps)):
            near = {one for one in steps if len(one) >= space.min_units} - {model}
            found, step = least(near) if near else (value, model)
            if found < value - _LEAST * abs(value):
                value, model = found, step
                break
        else:
            return tuple(sorted(model))


def complete(moments: Moments) -> int:
    """Return the number of complete rows."""
    return moments.cells[0][0] >> MOMENT_BITS


def total_squares(design: Design, moments: Moments) -> float:
    """Sum of squares of the stored response: about its mean if the formula has an intercept."""
    z = moments.as_float()
    if not design.has_intercept or z[0, 0] == 0:
        return float(z[-1, -1])
    return float(z[-1, -1] - z[0, -1] ** 2 / z[0, 0])


def bic_choice(columns: Bools, design: Design, moments: Moments) -> tuple[int, float]:
    """Return the row of `columns` with the least BIC by least squares, and its R-squared."""
    best = int(_criterion(columns, moments).argmin())
    return best, float(rsquared(columns[best : best + 1], design, moments)[0])


def rsquared(columns: Bools, design: Design, moments: Moments) -> Floats:
    """Return the R-squared of each model's least squares fit, (K,)."""
    residual = _residual(columns, moments)
    return np.asarray(1 - residual / max(total_squares(design, moments), 1e-300))


def _criterion(columns: Bools, moments: Moments) -> Floats:
    """Return n log Q + columns log n of each model, (K,)."""
    rows = max(complete(moments), 2)
    floor = max(float(moments.as_float()[-1, -1]), 1.0) * 1e-15
    fits = rows * np.log(np.maximum(_residual(columns, moments), floor))
    return np.asarray(fits + math.log(rows) * columns.sum(axis=1))


def _residual(columns: Bools, moments: Moments) -> Floats:
    """Return the residual sum of squares of each model, (K,)."""
    z = moments.as_float()
    gram, cross, squares = z[:-1, :-1], z[:-1, -1], float(z[-1, -1])
    beta = constrained.solve(gram, cross, math.inf, columns).beta
    return np.asarray(squares + ((beta @ gram) * beta).sum(axis=1) - 2 * beta @ cross)
