"""How a column of a frame is read: as NumPy holds it, or pandas, or Arrow.

Tested in `tests/sources/test_meaning.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from dpreg.columns import ColumnType
from dpreg.sources.meaning import Values, meaning_of, read_array

__all__ = ["array_reader"]


def array_reader(array: Any, how: ColumnType) -> Callable[[slice], Values]:
    """Make the function that reads a range of an array's cells.

    Parameters
    ----------
    array : ndarray or pandas ExtensionArray
    how : ColumnType
    """
    meaning = meaning_of(how)
    if isinstance(array, pd.Categorical):
        # Each category on its own, used or not; code -1 looks up the last entry, None. Read in
        # bulk: to take one out raises where it is a time that Python has not.
        categories = array_reader(_held(array.categories), how)(slice(None))
        table = np.concatenate([categories, meaning.cells([None])])
        return lambda part: table[array.codes[part]]
    if isinstance(array, pd.arrays.ArrowExtensionArray):
        return _arrow(array, how)
    return lambda part: read_array(array[part], meaning)


def _arrow(array: Any, how: ColumnType) -> Callable[[slice], Values]:
    """Read what pandas holds as Arrow by way of Arrow: pandas raises on nulls among some of it."""
    from dpreg.sources.arrow_cells import arrow_reader

    held = array.__arrow_array__()
    read = arrow_reader(held.type, how)

    def ranged(part: slice) -> Values:
        pieces = [read(piece) for piece in held[part].iterchunks()] or [meaning_of(how).cells([])]
        return np.concatenate(pieces) if len(pieces) > 1 else pieces[0]

    return ranged


def _held(cells: pd.Index[Any]) -> Any:
    return cells.to_numpy() if isinstance(cells.dtype, np.dtype) else cells.array
