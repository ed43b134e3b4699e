"""The rule: one test a term, and one a group of terms that cannot be told apart.

Tests. A unit with all units that need it has the p-value of its `Evidence.gain`, the largest over
the laws given, which differ in their priors: fixed effects in hidden directions add to a gain, and
more under a narrow prior. A group has that of its members' together.

Found. With q units, r_u the number of units that u brings along, and alpha_f for found terms, u is
found if q (1 + r_u) p_u <= alpha_f, or if it is brought along. "Has an effect" means by itself or
by what needs it: so what a useful unit brings along is useful, and if u is useless so is what needs
it, and p_u is a p-value. The expected number of useless units found is then at most the sum over u
of (1 + r_u) alpha_f / (q (1 + r_u)) = alpha_f, whatever depends on what.

One of. Clusters are fixed before any score; those that hold a found unit are dropped, and of the
rest, the smallest first, those with p <= alpha_g / (number of all clusters) are named, none of them
within another. A group of useless units is named with probability alpha_g at most. alpha_f and
alpha_g add up to `false_inclusions`; without clusters alpha_f is all of it.

Groups of terms that a look cannot tell apart, fixed before any of them is scored.

Average linkage of the correlations between estimates: two clusters merge while the mean
correlation between their members is at least `LIKE`. Every cluster on the way of at most `LARGEST`
members may be named as "one of". Correlations are those of the released equations and their noise,
never of what they say: the number of clusters, which a Bonferroni level needs, is fixed before any
gain is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.choice.evidence import Evidence, Released
from dpreg.selection.space import Space

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


OF_GROUPS: Final = 0.2
"""alpha_g over `false_inclusions`, where there are clusters (`python -m benchmarks.power`,
2026-11)."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What released laws say about which units matter; no privacy is spent on it.

    Attributes
    ----------
    found : tuple of int
        Units, in their order.
    groups : tuple of tuples of int
        Of each at least one matters.
    model : tuple of int
        The units found, and of each group those that say most of it: what coefficients are for.
    levels : (q,) array
        The least `false_inclusions` at which each unit would be found, without `max_units`.
    errors : (q,) array
        Standard error of the coefficient of each unit of one column, all others free; else NaN.
    resolved, directions : int
        Directions of which the look says more than the prior, and all.
    """

    found: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    model: tuple[int, ...]
    levels: Floats
    errors: Floats
    resolved: int
    directions: int


def choose(
    laws: Sequence[Released],
    space: Space,
    *,
    false_inclusions: float = 0.1,  # by definition: the level of the promise
) -> Choice:
    """Choose units from released laws.

    Parameters
    ----------
    laws : sequence of Released
        Of one look, one for each of `priors`.
    space : Space
        Its columns are the laws': 0 is the intercept.
    false_inclusions : float
        About how many useless units are found on average, at most; positive.
    """
    looks, top = [Evidence(law) for law in laws], space.max_units
    first, units = looks[0], range(len(space.units))
    needs = space.requires or ((),) * len(units)
    brought = [frozenset({unit, *own}) for unit, own in enumerate(needs)]  # a unit, what it needs

    def p(wanted: Iterable[int]) -> float:
        """Return the p-value of units and all that need them, by the least sure law."""
        asked = frozenset(wanted)
        columns = [c for u in units if brought[u] & asked for c in space.unit_columns[u]]
        return max(look.p(columns) for look in looks) if columns else 1.0

    like = clusters(first.likeness(space.unit_columns)) if space.units else ()
    share = 1 - OF_GROUPS if like else 1.0
    own = np.array([p([u]) * len(units) * len(brought[u]) for u in units]) / share
    found = set[int]()
    for unit in np.argsort(own, kind="stable"):  # the surest first, while there is room
        more = found | brought[unit]
        if own[unit] <= false_inclusions and (top is None or len(more) <= top):
            found = more
    level = false_inclusions * OF_GROUPS / max(len(like), 1)
    groups = list[tuple[int, ...]]()
    for group in like:
        taken = any(set(one) <= set(group) for one in groups) or found.intersection(group)
        if not taken and p(group) <= level:
            groups.append(group)
    single = [at[0] if len(at) == 1 else None for at in space.unit_columns]
    return Choice(
        found=tuple(sorted(found)),
        groups=tuple(groups),
        model=tuple(sorted(_model(p, brought, found, groups, level, top))),
        levels=np.array([min(own[v] for v in units if u in brought[v]) for u in units]),
        errors=np.array([np.nan if c is None else first.error(c) for c in single]),
        resolved=int((first.information > 1).sum()),
        directions=len(first.information),
    )


def _model(
    p: Callable[[Iterable[int]], float],
    brought: Sequence[frozenset[int]],
    found: set[int],
    groups: Sequence[tuple[int, ...]],
    level: float,
    top: int | None,
) -> set[int]:
    """Return `found` and of each group the units beside which the others explain least."""
    model = set(found)
    for group in groups:
        left = set(group)
        while left and (left == set(group) or p(left) <= level):
            best = max(sorted(left), key=lambda u: p(left - {u}))
            left.remove(best)
            more = model | brought[best]
            if top is None or len(more) <= top:
                model = more
    return model
