"""The choice that needs no privacy: least squares with BIC, over the same models. Curator only.

Tested in `tests/study/test_selection.py`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from dpreg.arrays import Bools, Floats
from dpreg.formula.design import Design
from dpreg.moments import MOMENT_BITS, Moments
from dpreg.selection.scoring import constrained
from dpreg.selection.scoring.problem import Problem
from dpreg.selection.scoring.profile import profile_grid, profile_scores, residual_offset
from dpreg.selection.space import Space
from dpreg.selection.tree.noise import Bits
from dpreg.selection.tree.sampler import Tree

__all__ = ["NOISELESS", "bic_by_tree", "bic_choice", "complete", "rsquared", "total_squares"]

NOISELESS: Final = Fraction(2**20)
"""A rate per grid unit at which the tree's noise decides nothing but ties."""
_UNBOUND: Final = Fraction(64)
"""A radius, in stored units, that stands for none where models cannot be listed."""


def bic_by_tree(space: Space, moments: Moments, rng: np.random.Generator) -> tuple[int, ...]:
    """Search the least n log Q + columns log n, at a radius that binds in no usual table."""
    rows = complete(moments)
    offset = residual_offset(moments, _UNBOUND)
    tree = Tree(
        Problem(moments, _UNBOUND),
        space,
        mechanism="permute-and-flip",
        t=NOISELESS,
        phi_int=round(math.log(max(rows, 2)) / float(profile_grid(rows))),
        transform=lambda q: profile_scores(q + offset, rows),
    )
    return tree.draw(Bits(rng)).units


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
    residual = _residual(columns, moments)
    rows = max(complete(moments), 2)
    floor = max(float(moments.as_float()[-1, -1]), 1.0) * 1e-15
    criterion = rows * np.log(np.maximum(residual, floor)) + math.log(rows) * columns.sum(axis=1)
    best = int(criterion.argmin())
    return best, float(1 - residual[best] / max(total_squares(design, moments), 1e-300))


def rsquared(columns: Bools, design: Design, moments: Moments) -> Floats:
    """Return the R-squared of each model's least squares fit, (K,)."""
    residual = _residual(columns, moments)
    return np.asarray(1 - residual / max(total_squares(design, moments), 1e-300))


def _residual(columns: Bools, moments: Moments) -> Floats:
    """Return the residual sum of squares of each model, (K,)."""
    z = moments.as_float()
    gram, cross, squares = z[:-1, :-1], z[:-1, -1], float(z[-1, -1])
    beta = constrained.solve(gram, cross, math.inf, columns).beta
    return np.asarray(squares + ((beta @ gram) * beta).sum(axis=1) - 2 * beta @ cross)
