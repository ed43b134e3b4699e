"""Data frames of rpy2, which hold R's: read without importing rpy2.

Tested in `tests/sources/test_rpy.py`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from dpreg.sources.base import Source
from dpreg.sources.table import frame_source

_MISSING: Final = np.iinfo(np.int32).min
"""R's NA of an integer, a logical or a factor."""


def rpy_source(data: Any) -> Source:
    """Copy an `rpy2.robjects.DataFrame`; a cell that is NA is missing.

    Cells are read below rpy2's converters, which a caller may have set.
    """
    low: Any = next(kind for kind in type(data).__mro__ if kind.__name__ == "ListSexpVector")
    columns = {
        str(name): _column(low.__getitem__(data, place))
        for place, name in enumerate(data.do_slot("names"))
    }
    return frame_source(pd.DataFrame(columns))


def _column(cells: Any) -> Any:
    kind = cells.rclass[0]
    if kind == "character":
        return pd.array([None if _is_na(cell) else str(cell) for cell in cells], dtype="string")
    if kind not in ("numeric", "integer", "logical", "factor", "Date", "POSIXct"):
        # Lists and the like: something else that is neither numbers nor labels.
        return pd.arrays.IntervalArray.from_breaks(np.arange(len(cells) + 1))
    values = np.array(cells.memoryview())
    if kind in ("Date", "POSIXct"):
        return pd.to_datetime(values, unit="D" if kind == "Date" else "s")
    if kind == "numeric":
        return values
    gone = values == _MISSING
    if kind == "factor":
        codes = np.where(gone, 0, values) - 1
        levels = pd.CategoricalDtype(list(cells.do_slot("levels")))
        return pd.Categorical.from_codes(codes, dtype=levels)
    if kind == "logical":
        return pd.arrays.BooleanArray(values == 1, gone)
    return np.where(gone, np.nan, values.astype(np.float64))


def _is_na(cell: object) -> bool:
    return type(cell).__name__ == "NACharacterType"
