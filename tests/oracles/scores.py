"""Scores and charges of listed models, each in one call."""

from fractions import Fraction

import numpy as np

from dpreg.moments import Moments
from dpreg.selection.scoring.problem import Problem
from dpreg.selection.space import Space


def quadratic_scores(moments: Moments, columns: np.ndarray, rho: Fraction) -> np.ndarray:
    """q(M) = floor(F_rho(M) / g) for each row of `columns`, bool (K, p + 1)."""
    return Problem(moments, rho).scores(columns)


def penalty_counts(space: Space, models: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each model's columns and units outside keep: what phi and psi price."""
    widths = np.array([len(columns) for columns in space.unit_columns], dtype=np.int64)
    return models @ widths, models.sum(axis=1, dtype=np.int64)
