"""A released moment matrix.

Tested in `tests/estimation/test_gram.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
from scipy.sparse import csr_array

from dpreg.arrays import Floats, Places
from dpreg.privacy.gram_sensitivity import Triangle

__all__ = ["NoisyGram", "block", "symmetric"]


@dataclass(frozen=True, slots=True, eq=False)
class NoisyGram:
    """A released moment matrix: safe to print, save and compute with.

    Parameters
    ----------
    cells : (d + 1, d + 1) array, sparse where that was asked for
        Released sum z z' over the model's d columns and the response, in stored units; symmetric.
        Products of two columns of one factor are exact zeros.
    noise_sd : (d + 1, d + 1) array, sparse where that was asked for
        Standard deviation of each cell's noise, 0 where nothing was released.
    count, count_sd : float
        Released number of complete rows; with an intercept it is cells[0, 0].
    triangle : Triangle
        Which cells were drawn, and which entries share one draw.
    mechanism : {"gaussian", "matrix-laplace", "laplace"}
    eps, delta : Fraction
        What the release costs (delta is 0 for pure noises, whatever was on offer).
    neighbors : str
    contributions : int
    """

    cells: Floats
    noise_sd: Floats
    count: float
    count_sd: float
    triangle: Triangle
    mechanism: str
    eps: Fraction
    delta: Fraction
    neighbors: str
    contributions: int

    @property
    def columns(self) -> tuple[int, ...]:
        """The model's columns, as z indices."""
        return self.triangle.columns


def symmetric(
    entries: Sequence[tuple[int, int]], values: Sequence[float], size: int, sparse: bool
) -> Floats:
    """Lay out a symmetric matrix of which these entries i <= j are given."""
    i, j = np.array(entries, dtype=np.intp).reshape(-1, 2).T
    if sparse:
        off = i != j
        places = np.concatenate([i, j[off]]), np.concatenate([j, i[off]])
        given = np.asarray(values)
        found = csr_array((np.concatenate([given, given[off]]), places), shape=(size, size))
        return cast(Floats, found)  # as far as its diagonal and blocks go
    whole = np.zeros((size, size))
    whole[i, j] = whole[j, i] = values
    return whole


def block(matrix: Floats, rows: Sequence[int] | Places, columns: Places) -> Floats:
    """Return some rows and columns of a matrix, sparse or not, as an array."""
    found: Any = matrix[np.ix_(np.asarray(rows), columns)]
    return found if isinstance(found, np.ndarray) else np.asarray(found.toarray())
