"""Names for the arrays that dpreg computes with, and the grid that makes their sums exact.

Tested in `tests/test_moments.py`.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

Places: TypeAlias = NDArray[np.intp]
"""Indices into other arrays."""

Objects: TypeAlias = NDArray[np.object_]
"""Python integers of any size."""

CELL_BITS = 20
"""A stored cell is an integer in units of 2**-CELL_BITS."""
MOMENT_BITS = 2 * CELL_BITS
"""A moment is an integer in units of 2**-MOMENT_BITS."""


def to_grid(block: Floats, out: Floats | None = None) -> Floats:
    """Clip to [-1, 1] and round to whole units of 2**-20, into `out`; a NaN counts as zero."""
    cells: Floats = np.clip(block, -1.0, 1.0, out=out, dtype=np.float64)
    cells *= 2.0**CELL_BITS
    np.rint(cells, out=cells)
    np.copyto(cells, 0.0, where=np.isnan(cells))
    return cells
