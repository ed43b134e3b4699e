"""Names for the arrays that dpreg computes with.

Tested in `tests/selection/scoring/test_problem.py`.
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
