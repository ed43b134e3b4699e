"""The weights of rows, where a look is planned: floats, no rows of any table.

Tested in `tests/families/test_looks.py`.
"""

from __future__ import annotations

import numpy as np

from dpreg.arrays import Floats

__all__ = ["row_weights"]


def row_weights(
    bound: Floats | float, scores: Floats, limit: Floats | float, norms: Floats
) -> Floats:
    """Return omega of rows, the least of 1 and of what each block allows; arguments broadcast.

    `dpreg.families.rows` gives a row of a table the same weight, by operations in a fixed order.

    Parameters
    ----------
    bound : array or float
        S, or sqrt(wbar) S.
    scores : array
        The largest score of a row that weighs 1, ebar |(1, u)| / sqrt(wbar), or sqrt(wbar) times
        that.
    limit : array or float
        A.
    norms : array
        (w/wbar) |(1, u)|^2, the information of such a row.
    """
    omega = np.minimum(bound / scores, limit / norms)
    return np.asarray(np.minimum(omega, 1.0, out=omega))
