"""The types of arguments that calls of every kind name in their signatures.

Tested in `tests/api/test_signatures.py`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpreg.schema import Schema

__all__ = ["Amount", "Amounts", "Bins", "Bounds", "Cells", "SchemaLike", "Table", "Texts"]

Amount: TypeAlias = int | float | str | Decimal | Fraction
"""A number that is taken exactly as typed: 0.1, "0.1", "1e-6", Fraction(1, 3)."""

Amounts: TypeAlias = Amount | Sequence[Amount] | NDArray[np.number]
"""One such number, or several."""

Texts: TypeAlias = str | Sequence[str]
"""One word, or several."""

Table: TypeAlias = object
"""What `dpreg.sources.as_source` takes; many of these have no type that could be named without
importing their library."""

SchemaLike: TypeAlias = Schema | Mapping[str, object] | str | os.PathLike[str] | None
"""A schema, a mapping of columns to declarations, or the path of a TOML or JSON file."""

Bins: TypeAlias = int | str | Sequence[float] | NDArray[np.floating]
"""A number of equal bins, edges, or "private"."""

Cells: TypeAlias = object
"""A column's name, a list of names, or the cells themselves: an array, list, Series or table."""

Pair: TypeAlias = Sequence[float] | tuple[float, float] | NDArray[np.floating]

Bounds: TypeAlias = Pair | Mapping[str, Pair] | None
"""(lowest, highest) for every column, or a mapping of names to such pairs."""
