r"""Where to look once more, at the columns of a chosen model: post-processing of released numbers.

The last look's law gives the information of all columns, and coefficients b of the model with their
covariance V. For the chosen columns let m be their means and S their centred moments, both in the
information's weights, with noise of about N. The new coordinates are as those of
`dpreg.staged.again`, in which |theta|^2 is expected to be wbar E|(1, u)'s slopes of b's error|^2:

    L (S + N/2) L' = 1,    |theta|^2 = wbar ((1, m)' V (1, m) + tr((S + N/2) V_slopes)).

Tested in `tests/families/test_looks.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpreg.families.locate import Fit
from dpreg.families.looks import FamilyLooked
from dpreg.staged.again import column_mass, spread_at
from dpreg.staged.coefficients import coefficients
from dpreg.staged.law import LookLaw

__all__ = ["locate_chosen"]


def locate_chosen(seen: FamilyLooked, law: LookLaw, places: Sequence[int]) -> Fit:
    """Return the fit, and the coordinates, for one more look at the columns of a model.

    Parameters
    ----------
    seen : FamilyLooked
    law : LookLaw
        Of its last look.
    places : sequence of int
        Of the model's columns among those that were looked at, from 1, ascending; at least one.
    """
    at, old = list(places), seen.fit
    found = coefficients(law, [0, *at])
    size = law.noise_norm / (law.count * law.weight * column_mass(law))
    spread = spread_at(law, at, size)
    means, moments, whitening = spread.means, spread.moments, spread.whitening
    error, ahead = found.covariance, np.append(1.0, means)
    lacking = float((law.moments[np.ix_([0, *at], [0, *at])] * error).sum())
    expected = float(ahead @ error @ ahead) + float((spread.floored * error[1:, 1:]).sum())
    return replace(
        old,
        whitening=whitening,
        center=means,
        intercept=float(found.params[0]),
        slopes=found.params[1:],
        spread=np.sqrt(np.diag(whitening @ moments @ whitening.T)),
        misfit=lacking / old.dispersion,
        signal=old.mean_weight * expected + (len(at) + 1) * old.dispersion / old.rows,
    ).held()
