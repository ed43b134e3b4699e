"""Gauss-Legendre rules on panels. Tested in `tests/selection/test_probabilities.py`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from dpreg.arrays import Floats

__all__ = ["panels"]


@cache
def _rule(order: int) -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(order)
    return nodes, weights


def panels(edges: Sequence[float] | Floats, order: int) -> tuple[Floats, Floats]:
    """Return the nodes and weights of a rule of `order` points on each panel between two edges."""
    nodes, weights = _rule(order)
    ends = np.asarray(edges, dtype=np.float64)
    half = np.diff(ends)[:, None] / 2
    return (ends[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()
