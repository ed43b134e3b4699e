"""Counting the sets that hold what each of their members needs, by size, without listing them.

Tested in `tests/selection/test_space.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import comb

__all__ = ["count_closed_sets"]

Counts = tuple[int, ...]


def count_closed_sets(units: frozenset[int], needs: Mapping[int, frozenset[int]]) -> Counts:
    """Count, by size, the subsets of `units` that hold what each of their members needs.

    Parameters
    ----------
    units : frozenset of int
    needs : mapping of a unit to the units that it comes with, transitively closed

    Returns
    -------
    tuple of int
        Entry s is the number of S in `units`, |S| = s, with needs(u) & units inside S for all u in
        S. Trailing sizes without a set may be missing.

    Notes
    -----
    Proof, by induction: units tied by no need are chosen freely (binomials); sets that share no
    need multiply (their counts convolve); otherwise take a unit v: the sets without v are those of
    `units` less v and all that need it, the sets with v are v and its needs joined to those of the
    rest. Each branch has fewer units. Results are remembered by the set: the work grows with the
    units that others need (at worst as 2 to their number), not with all of them.
    """
    return _count(units, needs, {})


def _count(
    units: frozenset[int],
    needs: Mapping[int, frozenset[int]],
    seen: dict[frozenset[int], tuple[int, ...]],
) -> tuple[int, ...]:
    if units in seen:
        return seen[units]
    links = {u: needs.get(u, frozenset()) & units for u in units}
    tied = [u for u in units if links[u]]
    result: tuple[int, ...]
    if not tied:
        result = tuple(comb(len(units), s) for s in range(len(units) + 1))
    else:
        parts = _components(units, links)
        if len(parts) > 1:
            result = (1,)
            for part in parts:
                result = _convolve(result, _count(part, needs, seen))
        else:
            demand = {u: sum(u in links[v] for v in tied) for u in units}
            v = max(units, key=lambda u: (demand[u], -u))
            above = frozenset(u for u in units if v in links[u])
            without = _count(units - above - {v}, needs, seen)
            joined = links[v] | {v}
            within = (0,) * len(joined) + _count(units - joined, needs, seen)
            length = max(len(without), len(within))
            padded = [c + (0,) * (length - len(c)) for c in (without, within)]
            result = tuple(a + b for a, b in zip(*padded, strict=True))
    seen[units] = result
    return result


def _components(units: frozenset[int], links: dict[int, frozenset[int]]) -> list[frozenset[int]]:
    """Split the units into sets that no need connects."""
    neighbours: dict[int, set[int]] = {u: set(links[u]) for u in units}
    for u in units:
        for v in links[u]:
            neighbours[v].add(u)
    left, parts = set(units), []
    while left:
        stack, part = [min(left)], set()
        while stack:
            u = stack.pop()
            if u not in part:
                part.add(u)
                stack.extend(neighbours[u] - part)
        parts.append(frozenset(part))
        left -= part
    return parts


def _convolve(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    out = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[i + j] += x * y
    return tuple(out)
