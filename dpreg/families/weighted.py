"""Rows of the working law, as a look weights them.

Post-processing of released numbers.

Tested in `tests/families/test_looks.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpreg.arrays import Floats
from dpreg.families.locate import Fit
from dpreg.families.location import FamilyLocation
from dpreg.families.working import draws

__all__ = ["WorkingRows", "weighted_rows"]


@dataclass(frozen=True, slots=True, eq=False)
class WorkingRows:
    """Rows (1, u) of the working law, with their predictors, means, weights and omega."""

    rows: Floats
    eta: Floats
    mean: Floats
    weight: Floats
    omega: Floats


def weighted_rows(fit: Fit, location: FamilyLocation, sample: Floats | None = None) -> WorkingRows:
    """Return the rows at a fit, weighted as a look at a location weights them.

    `sample` are other draws, (rows, p + 1), than those that looks are planned with.
    """
    family, at = fit.family, fit.situation(sample)
    u = (draws(len(fit.slopes)) if sample is None else sample)[:, :-1] * fit.spread
    mean, weight = family.moments(at.eta)
    wbar, farthest = location.mean_weight, np.maximum(mean, family.cap - mean)
    omega = location.score * math.sqrt(wbar) / (farthest * np.sqrt(at.length))
    omega = np.minimum(omega, location.information * wbar / (weight * at.length))
    rows = np.column_stack([np.ones(len(u)), u])
    return WorkingRows(rows, at.eta, mean, weight, np.minimum(omega, 1.0))
