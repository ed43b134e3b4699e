"""Linear algebra on thousands of small sets of columns at once.

Sets of one size k are worked on together: arrays are (k, k, N) or (k, N), the N sets last and
contiguous, so that each numpy call does one step of N small problems.

Tested in `tests/selection/scoring/test_constrained.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpreg.arrays import Bools, Floats, Places

__all__ = ["FEW", "SINGULAR", "Factor", "gather", "groups", "scatter"]


FEW = 64
"""Below this many sets, fewer numpy calls matter more than fewer cells."""
SINGULAR = 1e-11
"""A pivot below this part of its diagonal is taken as collinear."""

_CHUNK = 1 << 16  # cells of a (k, k, N) array: half a megabyte, to stay in the cache
_BLOCK = 64  # rows of a large matrix that are worked on at once


def groups(columns: Bools) -> Iterator[tuple[Places, Places]]:
    """Yield (rows (N,), members (k, N)) of the sets of equal size k >= 1, in chunks."""
    sizes = columns.sum(axis=1)
    for k in np.unique(sizes):
        if k == 0:
            continue
        of_size = np.flatnonzero(sizes == k)
        chunk = max(1, _CHUNK // int(k * k))
        for start in range(0, of_size.size, chunk):
            rows = of_size[start : start + chunk]
            members = np.nonzero(columns[rows])[1].reshape(rows.size, k)
            yield rows, np.ascontiguousarray(members.T)


def gather(gram: Floats, members: Places) -> Floats:
    """Return the (k, k, N) matrices of N sets of columns."""
    flat = members[:, None, :] * gram.shape[1] + members[None, :, :]
    out: Floats = gram.reshape(-1)[flat]
    return out


def scatter(out: Floats, rows: Places, members: Places, values: Floats) -> None:
    """Put the values (k, N) of N sets into rows of `out`, at their members."""
    out[rows[None, :], members] = values


class Factor:
    """L D L' of N matrices (k, k, N), overwritten; collinear columns are left out (zero there)."""

    def __init__(self, matrix: Floats) -> None:
        k = len(matrix)
        diagonal = np.einsum("iin->in", matrix).copy()
        self.inverse = np.empty_like(diagonal)
        self.lower = matrix
        for j in range(k):
            pivot = matrix[j, j]
            usable = pivot > SINGULAR * diagonal[j]
            self.inverse[j] = np.where(usable, 1.0 / pivot, 0.0)
            if j + 1 < k:
                below = matrix[j + 1 :, j] * self.inverse[j]
                if matrix.shape[2] < FEW:  # the lower triangle, by blocks of rows
                    for i in range(j + 1, k, _BLOCK):
                        rows, sides = slice(i, i + _BLOCK), slice(j + 1, i + _BLOCK)
                        own = below[i - j - 1 :][:_BLOCK, None]
                        matrix[rows, sides] -= own * matrix[None, sides, j]
                else:
                    for i in range(j + 1, k):  # the lower triangle alone
                        matrix[i, j + 1 : i + 1] -= below[i - j - 1] * matrix[j + 1 : i + 1, j]
                matrix[j + 1 :, j] = below

    def solve(self, right: Floats) -> Floats:
        """Solve for (k, N) right-hand sides."""
        k = len(self.inverse)
        x = right.copy()
        for j in range(k - 1):
            x[j + 1 :] -= self.lower[j + 1 :, j] * x[j]
        x *= self.inverse
        for j in range(k - 2, -1, -1):
            x[j] -= (self.lower[j + 1 :, j] * x[j + 1 :]).sum(axis=0)
        return x
