"""Coefficients of a model that the same release chose: each has a law given the choice.

Tested in `tests/api/test_select_staged.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError, NotReleased
from dpreg.results import inference
from dpreg.staged.choice.truncated import Truncated

__all__ = ["centers", "intervals", "pvalues", "read", "refuse"]


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


def refuse(laws: Sequence[Truncated], name: str) -> None:
    """Raise NotReleased for what combines coefficients, where each has a law of its own."""
    if laws:
        raise NotReleased(
            f'{name} is not released: fit="same" gives each coefficient a law of its own, given '
            "the choice, and no law for combinations. Use params, conf_int and pvalues, or "
            "predict() for means without errors."
        )


def read(estimate: float, se: float, intervals: Floats) -> Truncated:
    """Make a law from what a file holds."""
    if intervals.ndim != 2 or not len(intervals) or intervals.shape[1] != 2:
        raise ArgumentError("intervals must have two columns")
    return Truncated(estimate, se, intervals)
