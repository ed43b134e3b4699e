"""How a column may be declared: bounds, levels, truths, or numbers whose bounds come later."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dpreg.cells import number, number_text
from dpreg.errors import SchemaError
from dpreg.ranges import SIZES, fit

DATES = (datetime.date, datetime.timedelta, np.datetime64, np.timedelta64)
DATES_MEND = (
    "make a number of the column, such as days since a fixed day "
    "((x - pd.Timestamp('2000-01-01')).dt.days), and declare the bounds of that number"
)

_TOO_LARGE = 2**53  # from here on float64 skips integers


@dataclass(frozen=True, slots=True)
class Numeric:
    """A column of numbers that lie between two public bounds.

    Parameters
    ----------
    lo, hi : float
        Lowest and highest legal value, ``lo < hi``, each 0 or between 1e-100 and 1e100 in size.
        Cells outside are clipped to them by the design; they are not an error.

    Raises
    ------
    SchemaError
        If a bound is not a finite number, or the interval has no width in float64.
    """

    lo: float
    hi: float

    def __post_init__(self) -> None:
        """Turn the bounds into floats and refuse an interval that cannot be scaled."""
        lo, hi = _bound(self.lo), _bound(self.hi)
        if not lo < hi:
            raise SchemaError("the lower bound must be below the upper bound: correct them")
        if not fit((lo, hi)):
            raise SchemaError(
                f"each bound must be {SIZES}: give the column in another unit, or round it to 0"
            )
        if not lo < lo + (hi - lo) / 2 < hi:
            raise SchemaError("the bounds have no width in float64: set them further apart")
        object.__setattr__(self, "lo", lo)
        object.__setattr__(self, "hi", hi)

    def __repr__(self) -> str:
        """Show the bounds as a reader would type them."""
        return f"Numeric({number_text(self.lo)}, {number_text(self.hi)})"


@dataclass(frozen=True, slots=True)
class Categorical:
    """A column of labels, each one of a public list of levels.

    Parameters
    ----------
    levels : sequence of str, or sequence of int or float
        At least two, all different, all text or all numbers. The order is kept and the first is
        the reference. Whole floats are kept as integers: 1.0 and 1 are the same level.

    Raises
    ------
    SchemaError
        If there are fewer than two levels, two are the same, or text and numbers are mixed.
    """

    levels: tuple[str, ...] | tuple[float, ...]

    def __post_init__(self) -> None:
        """Turn the levels into plain values and refuse those that cannot be told apart."""
        object.__setattr__(self, "levels", _levels(self.levels))

    def __repr__(self) -> str:
        """Show the levels in their order."""
        return f"Categorical([{', '.join(map(repr, self.levels))}])"


@dataclass(frozen=True, slots=True)
class Boolean:
    """A column of truths: false is 0 and true is 1."""


@dataclass(frozen=True, slots=True)
class Unbounded:
    """A column of numbers that the schema leaves undeclared; its bounds are estimated later.

    It only says how a column is to be read (see `dpreg.sources`): a `Schema` has no such entry.
    """


@dataclass(frozen=True, slots=True)
class PersonId:
    """A column that says whose row it is: cells are read as keyed hashes of what they spell.

    As `Unbounded`, it only says how a column is to be read: a `Schema` has no such entry.

    Attributes
    ----------
    key : bytes
        Secret; see `dpreg.sources.persons`.
    """

    key: bytes = field(repr=False)


ColumnType = Numeric | Categorical | Boolean | Unbounded | PersonId
"""How a raw column is to be read."""


def is_list(value: Any) -> bool:
    """Whether a value is a list that somebody wrote down, not an array that may hold rows."""
    return isinstance(value, list | tuple)


def is_number(value: Any) -> bool:
    """Whether a value is a real number of any width; truths and durations are none."""
    numbers = int | float | np.integer | np.floating | Decimal | Fraction
    return isinstance(value, numbers) and not isinstance(value, bool | np.timedelta64)


def _bound(value: Any) -> float:
    if value is None:
        raise SchemaError(
            "a bound is None: both the lowest and the highest value must be given, from public "
            "knowledge; a wide bound costs accuracy, not privacy"
        )
    if isinstance(value, DATES):
        raise SchemaError(f"a bound is a date: {DATES_MEND}")
    if not is_number(value) or not math.isfinite(number(value)):
        raise SchemaError("a bound must be a finite number: correct the two bounds")
    return number(value)


def _levels(levels: Any) -> tuple[str, ...] | tuple[float, ...]:
    if not is_list(levels):
        raise SchemaError(
            "levels are a list or tuple that you write down; levels read from rows are not public"
        )
    if len(levels) < 2:
        raise SchemaError("fewer than two levels: list every level, or drop the column")
    if all(isinstance(level, str) for level in levels):
        plain: list[Any] = [str.__str__(level) for level in levels]
    elif all(is_number(level) for level in levels):
        plain = [_level_number(level) for level in levels]
    elif any(isinstance(level, DATES) for level in levels):
        raise SchemaError(f"the levels are dates: {DATES_MEND}")
    else:
        raise SchemaError(
            "levels must be all text or all numbers: put each in quotes, or none "
            "(for true and false declare bool)"
        )
    first: dict[Any, int] = {}
    for place, level in enumerate(plain, start=1):
        if first.setdefault(level, place) != place:
            # Places, not the level: a list made of a column's rows must not end in a message.
            raise SchemaError(f"levels {first[level]} and {place} are the same: list each once")
    return tuple(plain)


def _level_number(level: Any) -> float:
    value = number(level)
    if (
        not math.isfinite(value)
        or abs(value) >= _TOO_LARGE
        or (isinstance(level, int) and value != level)
    ):
        raise SchemaError("a level is not finite or too large to be told apart: write it as text")
    return int(value) if value.is_integer() else value
