"""Coefficients of a model that the same release chose.

Files of dpreg 0.2 hold a law of each given the choice, which are read and printed here.

Tested in `tests/api/test_select_adaptive.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError, NotReleased
from dpreg.results import inference
from dpreg.results.truncated import Truncated

if TYPE_CHECKING:
    from dpreg.results.regression import RegressionResults

__all__ = ["centers", "intervals", "pvalues", "read", "refuse", "refuse_means"]


def centers(laws: Sequence[Truncated]) -> Floats:
    """Return median-unbiased estimates (p,); NaN where a law has none."""
    found = np.array([law.center() for law in laws])
    return np.where(np.isfinite(found), found, np.nan)


def intervals(laws: Sequence[Truncated], alpha: float) -> Floats:
    """Return intervals (p, 2) of level 1 - alpha; infinite ends where the law has none."""
    level = inference.level(alpha)
    return np.array([law.interval(level) for law in laws]).reshape(-1, 2)


def pvalues(laws: Sequence[Truncated]) -> Floats:
    """Return two-sided p-values (p,) of no effect."""
    return np.array([law.p_value() for law in laws])


def refuse(fit: RegressionResults, name: str) -> None:
    """Raise NotReleased for what combines coefficients that were chosen by the same look."""
    if fit.among is None and not fit.conditional:
        return
    means = "" if fit.among is not None else ", or predict() for means without errors"
    raise NotReleased(
        f'{name} is not released: fit="same" gives each coefficient by itself, corrected for its '
        f"choice, and no law for combinations. Use params, conf_int and pvalues{means}; or "
        'fit="fresh", which has all of it.'
    )


def refuse_means(fit: RegressionResults) -> None:
    """Raise NotReleased for means: they need the coefficients that were not chosen as well."""
    if fit.among is not None:
        raise NotReleased(
            'predict is not released: fit="same" gives coefficients as they are beside all '
            'candidates, of which some were not chosen. Use fit="fresh".'
        )


def read(estimate: float, se: float, intervals: Floats) -> Truncated:
    """Make a law from what a file holds."""
    if intervals.ndim != 2 or not len(intervals) or intervals.shape[1] != 2:
        raise ArgumentError("intervals must have two columns")
    return Truncated(estimate, se, intervals)
