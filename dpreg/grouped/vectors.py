"""What makes row vectors of a table's rows.

Tested in `tests/formula/test_groups.py` and `tests/test_moments.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpreg.columns import ColumnType
from dpreg.grouped.layout import CodedRows, Layout, plain_layout
from dpreg.sources import Chunk

__all__ = ["CodedVectors", "Vectors", "layout_of"]


class Vectors(Protocol):
    """What makes row vectors, from public facts: a `Design`, for one. It is sent to the rows."""

    @property
    def types(self) -> Mapping[str, ColumnType]:
        """What is read, and how."""

    @property
    def size(self) -> int:
        """D, the cells of a row vector."""

    def block(self, chunk: Chunk, /) -> NDArray[np.float64]:
        """Make the vectors of some rows, (rows, D), each from its own row alone.

        The array is fresh: who asked for it may write to it.
        """


@runtime_checkable
class CodedVectors(Vectors, Protocol):
    """Vectors that can leave wide factors as codes: the same moments, sooner."""

    @property
    def layout(self) -> Layout:
        """Which columns are given by codes."""

    def coded(self, chunk: Chunk, /) -> CodedRows:
        """Make rows that `to_grid` makes the same of as of `block`'s. The arrays are fresh."""


def layout_of(vectors: Vectors) -> Layout:
    """Return where the moments of rows lie in a pass's vector."""
    return vectors.layout if isinstance(vectors, CodedVectors) else plain_layout(vectors.size)
