"""Rows of the working law, as a look weights them.

Post-processing of released numbers.

Tested in `tests/families/test_looks.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpreg.arrays import Floats
from dpreg.families.counts import CountLaw, capped
from dpreg.families.locate import Fit
from dpreg.families.location import FamilyLocation
from dpreg.families.omega import row_weights

__all__ = ["WorkingRows", "weighted_rows"]


@dataclass(frozen=True, slots=True)
class WorkingRows:
    """Rows (1, u) of the working law, with their predictors, weights and omega.

    `variance` is that of their residuals over phi, and `means(t)` what responses would count as on
    average if the predictors were t: the fit's means, unless counts are cut.
    """

    rows: Floats
    eta: Floats
    weight: Floats
    omega: Floats
    variance: Floats
    caps: Floats | None
    fit: Fit
    location: FamilyLocation

    @property
    def lengths(self) -> Floats:
        """|(1, u)|^2."""
        return np.asarray(np.einsum("ij,ij->i", self.rows, self.rows))

    def means(self, eta: Floats) -> Floats:
        """Return the mean of what a row's response counts as, at other predictors."""
        mean = self.fit.family.moments(eta)[0]
        if self.caps is None or self.location.excess is None:
            return mean
        return np.asarray(mean - self.location.excess.of(eta, self.caps) * mean)


def weighted_rows(
    fit: Fit,
    location: FamilyLocation,
    law: CountLaw | None = None,
    sample: Floats | None = None,
    moved: tuple[float, float] = (0.0, 1.0),
) -> WorkingRows:
    """Return the rows at a fit, weighted as a look at a location weights them.

    `law` is that of counts with caps of their own; `sample` are other draws, (rows, p + 1), than
    those that looks are planned with. `moved` is added to the predictor, and multiplies u.
    """
    family, at = fit.family, fit.situation(sample)
    if moved != (0.0, 1.0):
        u = moved[1] * at.rows[:, 1:]
        eta = at.eta + (u - at.rows[:, 1:]) @ fit.along + moved[0]
        at = replace(at, eta=eta, rows=np.column_stack([at.rows[:, 0], u]))
    mean, weight = family.moments(at.eta)
    bound, root = location.score * math.sqrt(location.mean_weight), np.sqrt(at.length)
    variance, caps, farthest = weight, None, np.maximum(mean, family.cap - mean)
    if location.excess is not None and law is not None:
        reach, farthest = np.maximum(bound / root, mean), mean
        caps, _ = capped(location.excess, family.cap, at.eta, mean, reach)
        variance = law.variance.of(at.eta, caps) * mean / max(fit.dispersion, 1.0)
    norms = weight / location.mean_weight * at.length
    omega = row_weights(bound, farthest * root, location.information, norms)
    return WorkingRows(at.rows, at.eta, weight, omega, variance, caps, fit, location)
