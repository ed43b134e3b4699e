"""The types that public calls name in their signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpreg.signatures import Amount, Amounts, SchemaLike, Table

__all__ = ["Amount", "Amounts", "Bins", "Bounds", "Cells", "SchemaLike", "Table"]

Bins: TypeAlias = int | str | Sequence[float] | NDArray[np.floating]
"""A number of equal bins, edges, or "private"."""

Cells: TypeAlias = object
"""A column's name, a list of names, or the cells themselves: an array, list, Series or table."""

Pair: TypeAlias = Sequence[float] | tuple[float, float] | NDArray[np.floating]

Bounds: TypeAlias = Pair | Mapping[str, Pair] | None
"""(lowest, highest) for every column, or a mapping of names to such pairs."""
