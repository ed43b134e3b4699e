"""Plain values between R and Python: arguments on their way in, results on their way out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpreg_bridge.rpy import R

__all__ = ["NA_INTEGER", "from_r", "to_r"]

NA_INTEGER: Final = -(2**31)
_LARGEST: Final = 2**31 - 1
_EXACT: Final = 2.0**53


def from_r(value: Any) -> Any:
    """Make a plain Python value of an R one.

    A vector of one value is that value and any other vector is a list; a list with names is a dict.
    Whole numbers are int, so that messages show them as typed. R has refused NA.
    """
    if value is R.NULL:
        return None
    if isinstance(value, R.ListSexpVector):
        items = [from_r(item) for item in value]
        names = value.names
        return items if names is R.NULL else dict(zip(map(str, names), items, strict=True))
    plain = [_scalar(value, item) for item in value]
    return plain[0] if len(plain) == 1 else plain


def _scalar(vector: Any, item: Any) -> Any:
    if isinstance(vector, R.StrSexpVector):
        return str(item)
    if isinstance(vector, R.BoolSexpVector):
        return bool(item)
    number = float(item)
    return int(number) if number.is_integer() and abs(number) < _EXACT else number


def to_r(value: Any) -> Any:
    """Make an R value of a plain Python one.

    An R value stays as it is; None is NULL; a tuple is a character vector; a list is an R list and
    a mapping one with names; an array is a vector or matrix of truths, of integers where it holds
    32-bit ones, or of numbers; a series is a vector with names, and a frame a data frame.
    """
    match value:
        case R.Sexp():
            return value
        case None:
            return R.NULL
        case bool():
            return R.BoolSexpVector([value])
        case int():
            return R.IntSexpVector([value]) if abs(value) <= _LARGEST else _number(value)
        case float() | Fraction():
            return _number(value)
        case str():
            return R.StrSexpVector([_text(value)])
        case tuple():
            return R.StrSexpVector([_text(item) for item in value])
        case list():
            return R.ListSexpVector([to_r(item) for item in value])
        case Mapping():
            return _named(R.ListSexpVector([to_r(item) for item in value.values()]), value)
        case np.ndarray():
            return _array(value)
        case pd.Series():
            return _named(to_r(_cells(value)), value.index)
        case pd.DataFrame():
            columns = to_r({name: _cells(column) for name, column in value.items()})
            rows = R.IntSexpVector([NA_INTEGER, -len(value)])  # none, as R counts them
            if not isinstance(value.index, pd.RangeIndex):
                rows = to_r(tuple(value.index))
            kind = R.StrSexpVector(["data.frame"])
            return R.baseenv["structure"](columns, **{"class": kind, "row.names": rows})
    raise TypeError(f"no R value for {type(value).__name__}")


def _named(vector: Any, names: Iterable[Any]) -> Any:
    vector.names = to_r(tuple(map(str, names)))
    return vector


def _cells(column: pd.Series[Any]) -> Any:
    """Return texts as a tuple, and an array of anything else."""
    values = column.to_numpy()
    return tuple(values) if values.dtype == object else values


def _text(text: str) -> str:
    """Make text that R can hold: NUL and halves of pairs would be R errors inside Python."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _number(value: Any) -> Any:
    return R.FloatSexpVector([float(value)])


def _array(value: NDArray[Any]) -> Any:
    if value.dtype == np.bool_:
        vector = R.BoolSexpVector(value.ravel(order="F"))
    elif value.dtype == np.int32:
        vector = R.IntSexpVector(value.ravel(order="F"))
    else:
        vector = R.FloatSexpVector(np.asarray(value, dtype=np.float64).ravel(order="F"))
    if value.ndim == 2:
        shape = R.IntSexpVector(value.shape)
        vector = R.baseenv["array"](vector, dim=shape)
    return vector
