"""What one cell means, whatever column, dtype or table holds it.

A cell's meaning depends on the cell and on how its column is declared, and on nothing else: not on
the other rows, not on the dtype that pandas inferred from them. So the same value means the same
in an int8, Int64, float64, object, string, category or bool column.

A cell's own code never runs. A value counts as one of the types below only where it *is* of that
type: Python's, NumPy's and the standard library's, whose methods are known. An instance of any
subclass, and any other object, is missing: its methods could raise a text of their own, or wait.

As a number (`number`)
    integers and floats of any width: the nearest float64 (beyond its range: an infinity);
    ``Decimal`` and ``Fraction``: likewise; true and false: 1 and 0; text: the float that it denotes
    in Python's grammar, blanks around it allowed, underscores not (``"01"``, ``" 3 "``, ``"1e3"``,
    ``"-inf"``); a complex number without an imaginary part: its real part (one complex row
    turns a list of floats into a complex column). Infinities are kept. All else is missing: NaN,
    None, NA, NaT, other text, dates, durations, intervals, bytes, lists, any other object.
As a truth (`truth`)
    whatever is the number 0 or 1; the words "true" and "false" in any case, blanks around them
    allowed. All else is missing.
As one of several levels that are numbers (`LevelCoder`)
    the level that equals the cell's number. All else is missing.
As one of several levels that are text (`LevelCoder`)
    text: the level spelt exactly like it (``"01"`` is not ``"1"``); true and false: the level
    "True" or "False"; any other cell that is a number: the level spelt like that number, whole
    numbers without a point (1, 1.0 and Decimal("1.00") are all "1"; 0.5 is "0.5"). All else is
    missing.
As the name of a person (`spelling`)
    whatever is a number, in 15 significant digits: 17, 17.0, ``"17"``, ``" 017 "`` and ``"1.7e1"``
    are one person. Text may also be hexadecimal (``"0x11"``). True and false, as Booleans or as
    the words "true", "t", "false" and "f" in any case, are 1 and 0. Other text counts without the
    blanks around it and with its accents composed. Two cells name one person where they spell the
    same. Missing, so that they name nobody: blank text, NaN, words that readers of files take for
    missing cells among numbers and not among words ("nan", "NA", "NULL", "None"), infinities and
    what is beyond float64's range; fractions, and integers of 2**24 and more, in a float of 32 bits
    (2**11 in one of 16), since they may have been rounded from other numbers; and all else.

Why persons are spelled so: a single other row may turn a column of integers into floats (a missing
cell), text (a word), Booleans or levels, in one file or chunk and not in the next, and each of
these forms writes and rounds numbers in its own way. Fifteen digits survive in all of them: R may
write no more, and a float64 may hold no more. If two forms of one id were two persons, a person
could own twice the rows that the proofs allow; two ids that are taken for one only share k rows.
"""

from __future__ import annotations

import datetime
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Kind = Literal["numeric", "bool", "string", "category", "datetime", "object", "other"]
"""What a container calls a column, from its dtype alone; often inferred from rows, so not public.

"datetime" is dates, times, durations and periods; "other" is whatever holds neither numbers nor
labels (intervals, lists, bytes). Neither can be read.
"""

_MISSING = math.nan
_NAN = re.compile(r"[+-]?nan\(", re.IGNORECASE)  # what C writes more of behind it
_WHOLE = 2.0**53  # below, every integer is a float64
_NOBODY = {
    *("#N/A", "#N/A N/A", "#NA", "<NA>", "N/A", "NA", "NULL", "None", "n/a", "null"),
    *("-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN"),
}
_WORDS = {"true": 1.0, "t": 1.0, "false": 0.0, "f": 0.0}  # R reads T and F as truths
_TIMES = (
    np.datetime64,
    np.timedelta64,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    pd.Period,
)
_NUMBERS = (bool, int, float, complex, np.number, Decimal)
_REALS = frozenset(
    kind
    for kind in (bool, int, Decimal, np.bool_, *np.sctypeDict.values())
    if issubclass(kind, bool | int | Decimal | np.bool_ | np.integer | np.floating)
    and not issubclass(kind, np.timedelta64 | np.longdouble)  # durations count as integers there
)
_WIDE = frozenset({np.longdouble, complex, np.complex64, np.complex128, np.clongdouble})
_NARROW = frozenset({np.float16, np.float32, np.complex64})


def number(cell: Any) -> float:
    """Read a cell as a number; NaN is missing. Never raises, and never runs a cell's own code.

    Parameters
    ----------
    cell : object

    Returns
    -------
    float
        As the module's docstring says.
    """
    # The type is asked, not the cell, and it must be one of these and not a subclass, whose methods
    # could be anything. So float(), abs() and == below are those of Python's and NumPy's own types.
    kind = type(cell)
    if kind is float:
        return cell  # type: ignore[no-any-return]
    try:
        if kind is str or kind is np.str_:
            text = str.__str__(cell)
            return _MISSING if "_" in text else float(text)
        if kind in _REALS:
            return float(cell)
        if kind is Fraction:
            # Its parts can be anything that was put into them.
            top, bottom = cell._numerator, cell._denominator
            whole = type(top) is int and type(bottom) is int and bottom > 0
            return top / bottom if whole else _MISSING
        if kind in _WIDE:
            with np.errstate(all="ignore"):  # beyond float64's range
                return float(cell.real) if cell.imag == 0 else _MISSING
    except ValueError:  # text that is none, a signalling NaN
        return _MISSING
    except OverflowError:  # of integers and fractions, none of which is 0 then
        return math.inf if cell > 0 else -math.inf
    return _MISSING


def truth(cell: Any) -> float:
    """Read a cell as a truth: 0.0, 1.0, or NaN where it is missing. Never raises."""
    if type(cell) is str or type(cell) is np.str_:
        word = str.__str__(cell).strip().lower()
        if word in ("true", "false"):
            return float(word == "true")
    value = number(cell)
    return abs(value) if value in (0.0, 1.0) else _MISSING  # abs: minus zero is zero


def number_text(value: float) -> str:
    """Spell a number the one way that a level of text must be spelt to mean it."""
    if value.is_integer() and abs(value) < _WHOLE:
        return str(int(value))
    return repr(float(value))


def spelling(cell: Any) -> str | None:
    """Spell a cell that names a person; None is missing. Never raises.

    Returns
    -------
    str or None
        As the module's docstring says.
    """
    kind = type(cell)
    if kind is str or kind is np.str_:
        text = str.__str__(cell).strip()
        value = _number_of_name(text)
        if value is None:
            return text if text.isascii() else unicodedata.normalize("NFC", text)
    else:
        value = number(cell)
        if kind in _NARROW and not surely_whole(np.array([value]), np.dtype(kind))[0]:
            return None
    return f"{value + 0.0:.15g}" if math.isfinite(value) else None  # minus zero is zero


def _number_of_name(text: str) -> float | None:
    """Return the number that text denotes in Python, R or a file's column of truths, if any."""
    if not text or text in _NOBODY or _NAN.match(text):
        return _MISSING
    if "_" in text:
        return None
    try:
        return float.fromhex(text) if "x" in text.lower() else float(text)
    except OverflowError:
        return math.inf
    except ValueError:
        return _WORDS.get(text.lower())


def surely_whole(values: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[np.bool_]:
    """Tell which numbers that came as floats of fewer than 64 bits are the integers they were."""
    digits = np.finfo(dtype).nmant + 1
    whole: NDArray[np.bool_] = (values == np.rint(values)) & (abs(values) < 2.0**digits)
    return whole


class LevelCoder:
    """Codes of cells in an ordered list of declared levels; -1 where missing or undeclared.

    Parameters
    ----------
    levels : sequence of str, or sequence of int or float
        All different, as `dpreg.columns.Categorical` keeps them.
    """

    __slots__ = ("_by_number", "_by_text", "_codes", "_values")

    def __init__(self, levels: Sequence[str] | Sequence[float]) -> None:
        self._by_text = {level: code for code, level in enumerate(levels) if isinstance(level, str)}
        self._by_number: dict[float, int] = {}
        for code, level in enumerate(levels):
            value = number(level)
            if not self._by_text or (number_text(value) == level and not math.isnan(value)):
                self._by_number[value] = code
        ordered = sorted(self._by_number.items())
        # NaN comes after all numbers and equals none.
        self._values = np.array([value for value, _ in ordered] + [np.nan], dtype=np.float64)
        self._codes = np.array([code for _, code in ordered] + [-1], dtype=np.int32)

    def cell(self, cell: Any) -> int:
        """Code of one cell."""
        if self._by_text:
            if type(cell) is str or type(cell) is np.str_:
                return self._by_text.get(str.__str__(cell), -1)
            if type(cell) is bool or type(cell) is np.bool_:
                return self._by_text.get(str(bool(cell)), -1)
        return self._by_number.get(number(cell), -1)

    def cells(self, cells: Iterable[Any]) -> NDArray[np.int32]:
        """Codes of many cells, each read as `cell` reads it."""
        code = self.cell
        if not self._by_text:
            return np.array([code(c) for c in cells], dtype=np.int32)
        get = self._by_text.get
        return np.array([get(c, -1) if type(c) is str else code(c) for c in cells], dtype=np.int32)

    def numbers(self, values: NDArray[np.float64]) -> NDArray[np.int32]:
        """Codes of many cells that are numbers already, NaN where missing."""
        place = np.searchsorted(self._values, values)
        return self._codes[np.where(self._values[place] == values, place, -1)]


def kind_of(dtype: Any) -> Kind:
    """Kind of a column, from its pandas, NumPy or Arrow-backed dtype.

    Parameters
    ----------
    dtype : numpy.dtype or pandas extension dtype

    Returns
    -------
    str
        One of `Kind`. Nothing that a dtype holds of the rows (categories, fill values) has a part
        in it.
    """
    if isinstance(dtype, pd.SparseDtype):
        dtype = dtype.subtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "category"
    try:
        holds = dtype.type
    except NotImplementedError:  # Arrow types that pandas does not know
        return "other"
    if holds is np.object_ or str(dtype) == "null[pyarrow]":
        return "object"
    if issubclass(holds, bool | np.bool_):
        return "bool"
    if issubclass(holds, _TIMES):
        return "datetime"
    if issubclass(holds, str):
        return "string"
    if issubclass(holds, _NUMBERS):
        return "numeric"
    # The type that Arrow-backed dictionaries name is private to pandas.
    return "category" if holds.__name__ == "CategoricalDtypeType" else "other"
