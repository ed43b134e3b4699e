"""Groups of terms that a look cannot tell apart, fixed before any of them is scored.

Average linkage of the correlations between estimates: two clusters merge while the mean
correlation between their members is at least `LIKE`. Every cluster on the way of at most `LARGEST`
members may be named as "one of". Correlations are those of the released equations and their noise,
never of what they say: the number of clusters, which a Bonferroni level needs, is fixed before any
gain is.

Tested in `tests/choice/test_rule.py`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dpreg.arrays import Floats

__all__ = ["LARGEST", "LIKE", "clusters"]

LIKE: Final = 0.5
"""Least mean correlation between the estimates of terms that are one cluster."""
LARGEST: Final = 6  # by definition: the most names that a group has
"""Most members of a group worth naming."""


def clusters(likeness: Floats) -> tuple[tuple[int, ...], ...]:
    """Return the clusters of two and more units, the smallest first; some lie in others.

    Parameters
    ----------
    likeness : (q, q) array
        Correlations of the units' estimates, without signs.
    """
    units = len(likeness)
    if units < 2:
        return ()
    from scipy.cluster.hierarchy import linkage  # slow to import

    apart = 1 - likeness[np.triu_indices(units, 1)]
    members: list[tuple[int, ...]] = [(unit,) for unit in range(units)]
    for left, right, distance, _ in linkage(np.maximum(apart, 0.0), "average"):
        far = distance > 1 - LIKE
        members.append(() if far else members[int(left)] + members[int(right)])
    made = (tuple(sorted(one)) for one in members[units:] if 2 <= len(one) <= LARGEST)
    return tuple(sorted(made, key=lambda one: (len(one), one)))
