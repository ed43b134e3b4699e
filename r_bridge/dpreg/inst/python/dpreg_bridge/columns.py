"""Columns of an R table as pandas columns. R/columns.R lays them out and says what travels how.

Only the kind of a column, which is public, decides how it is read; a missing value of any type
becomes pandas' missing value. Numbers without NA to translate are views of R's own memory: they are
read while R waits, and never written.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg_bridge.rpy import R
from dpreg_bridge.values import NA_INTEGER

__all__ = ["table"]

_NA_INTEGER64: Final = -(2**63)
_TEXT: Final = pd.StringDtype("python", na_value=math.nan)


def table(columns: Any, rows: int) -> pd.DataFrame:
    """Make a frame of the columns that R laid out."""
    named = {name: _column(column) for name, column in _items(columns)}
    return pd.DataFrame(named, index=pd.RangeIndex(rows), copy=False)


def _items(columns: Any) -> list[tuple[str, dict[str, Any]]]:
    names = list(columns.names) if len(columns) else []
    return [
        (str(name), dict(zip(map(str, column.names), column, strict=True)))
        for name, column in zip(names, columns, strict=True)
    ]


def _column(column: dict[str, Any]) -> Any:
    kind = column["kind"][0]
    values = _memory(column["values"])
    match kind:
        case "number":
            if not isinstance(column["values"], R.IntSexpVector):
                return values
            return _floats(values, NA_INTEGER)
        case "integer64":
            # All digits are kept: two persons' ids may differ in the last alone.
            whole = values.view(np.int64)
            return pd.arrays.IntegerArray(whole, whole == _NA_INTEGER64)
        case "logical":
            missing = values == NA_INTEGER
            return pd.arrays.BooleanArray((values != 0) & ~missing, missing)
        case "labels":
            levels = pd.Index([str(level) for level in column["levels"]], dtype=object)
            kept = bool(column["ordered"][0])
            return pd.Categorical.from_codes(_codes(values), levels, ordered=kept)
        case "text":
            texts = np.array([*map(str, column["levels"]), math.nan], dtype=object)
            return pd.array(texts[_codes(values)], dtype=_TEXT)
    raise ValueError(f"unknown kind of column {kind!r}")


def _memory(vector: Any) -> NDArray[Any]:
    """View R's own memory; of no cells rpy2's API mode can make no view."""
    if len(vector):
        return np.asarray(vector.memoryview())
    return np.empty(0, dtype=np.float64 if isinstance(vector, R.FloatSexpVector) else np.int32)


def _floats(values: NDArray[Any], missing: int) -> NDArray[np.float64]:
    floats = values.astype(np.float64)
    floats[values == missing] = math.nan
    return floats


def _codes(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """Count levels from 0, and -1 for a missing one."""
    return np.where(values == NA_INTEGER, np.int32(-1), values - np.int32(1))
