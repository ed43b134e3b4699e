"""What makes row vectors of a table's rows.

Tested in `tests/formula/test_groups.py` and `tests/test_moments.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpreg.columns import ColumnType
from dpreg.grouped.layout import CodedRows, Layout, plain_layout
from dpreg.sources import Chunk

__all__ = ["CodedVectors", "GriddedVectors", "Vectors", "layout_of", "whole_rows"]


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


@runtime_checkable
class GriddedVectors(Vectors, Protocol):
    """Vectors that are made on the grid, and need no rounding."""

    def cells(self, chunk: Chunk, /) -> NDArray[np.float64]:
        """Make what `to_grid` would make of `block`'s rows, bit for bit. The array is fresh."""


def layout_of(vectors: Vectors) -> Layout:
    """Return where the moments of rows lie in a pass's vector."""
    return vectors.layout if isinstance(vectors, CodedVectors) else plain_layout(vectors.size)


def whole_rows(vectors: Vectors) -> Callable[[Chunk], NDArray[np.float64]]:
    """Return what makes every column of some rows, for `to_grid` alone.

    The same on the grid as `block`'s, and sooner made where no factor is left as codes. Its arrays
    are fresh.
    """
    if not isinstance(vectors, CodedVectors) or vectors.layout.groups:
        return vectors.block
    coded = vectors.coded
    return lambda chunk: coded(chunk).dense
