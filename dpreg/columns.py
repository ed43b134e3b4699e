"""How a column may be declared: bounds, levels, truths, or numbers whose bounds come later.

What numbers a public call takes: one range for each, checked before anything is charged.

Inside them everything that follows a charge is computed in float64 without an end that an error
would have to tell, which could depend on rows or on noise: `tests/audit/test_edges.py` holds every
public call at all ends at once. Outside nothing useful is lost: an eps of a million promises
nothing, one of a millionth buys nothing but noise, and a column whose cells are larger than 1e100
can be given in another unit.

The forms in which a column may be declared, read and written.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np

from dpreg.cells import number
from dpreg.errors import SchemaError

LEAST_EPS: Final = Fraction(1, 10**6)
"""Of a call, and of each of its steps."""
MOST_EPS: Final = Fraction(10**6)
LEAST_DELTA: Final = Fraction(1, 10**300)
"""Or 0; and always below 1."""
MOST_ROWS: Final = 10**6
"""That one person may own."""

_LEAST, _MOST = 1e-100, 1e100
SIZES: Final = "0, or between 1e-100 and 1e100 in size"
"""What bounds of columns, and the edges of bins, may be."""


def fit(numbers: Iterable[float]) -> bool:
    """Tell whether all bounds are 0, or between 1e-100 and 1e100 in size."""
    return all(one == 0 or _LEAST <= abs(one) <= _MOST for one in numbers)


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
        given: tuple[Any, Any] = (self.lo, self.hi)
        for bound in given:
            if bound is None:
                raise SchemaError(
                    "a bound is None: both the lowest and the highest value must be given, from "
                    "public knowledge; a wide bound costs accuracy, not privacy"
                )
            if isinstance(bound, DATES):
                raise SchemaError(f"a bound is a date: {DATES_MEND}")
            if not is_number(bound) or not math.isfinite(number(bound)):
                raise SchemaError("a bound must be a finite number: correct the two bounds")
        lo, hi = map(number, given)
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
        return f"Numeric{python(self)}"


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

Columns: TypeAlias = Mapping[str, ColumnType]
"""Which raw columns are read, and how each of them is."""


def is_number(value: Any) -> bool:
    """Whether a value is a real number of any width; truths and durations are none."""
    numbers = int | float | np.integer | np.floating | Decimal | Fraction
    return isinstance(value, numbers) and not isinstance(value, bool | np.timedelta64)


def _levels(levels: Any) -> tuple[str, ...] | tuple[float, ...]:
    if not isinstance(levels, list | tuple):
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
    if not abs(value) < _TOO_LARGE:
        raise SchemaError("a level is not finite or too large to be told apart: write it as text")
    return int(value) if value.is_integer() else value


Declaration: TypeAlias = ColumnType | type[bool] | str | Sequence[object] | Mapping[str, object]

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")

HOW: Final = (
    'write (lowest, highest) for numbers, ["level", ...] for text, '
    '{"levels": [1, 2, 3]} for numbers that are labels, or bool'
)


def declared(spec: Any) -> Numeric | Categorical | Boolean:
    """Return a column's declaration, from any of the forms that `Schema` takes."""
    if isinstance(spec, Numeric | Categorical | Boolean):
        return spec
    if spec is bool or (isinstance(spec, str) and spec in ("bool", "boolean")):
        return Boolean()
    if isinstance(spec, Mapping):
        if set(spec) == {"levels"}:
            return Categorical(spec["levels"])
        bounds = spec.get("bounds")
        if set(spec) == {"bounds"} and isinstance(bounds, list | tuple) and len(bounds) == 2:
            return Numeric(*bounds)
        raise SchemaError("a table holds either levels or two bounds: " + HOW)
    blank = spec is ... or (isinstance(spec, str) and spec == "fill in")
    if blank or (isinstance(spec, list | tuple) and any(value is ... for value in spec)):
        raise SchemaError("not filled in yet: " + HOW)
    if isinstance(spec, str):
        raise SchemaError(f"unknown kind {spec[:40]!r}: {HOW}")
    if not isinstance(spec, list | tuple):
        # The type alone: someone may hand over the rows themselves.
        raise SchemaError(f"a value of type {type(spec).__name__} declares nothing: {HOW}")
    if len(spec) == 2 and all(is_number(v) for v in spec):
        return Numeric(*spec)
    if spec and all(is_number(v) for v in spec):
        raise SchemaError("numbers in a list are bounds, of which there are two: " + HOW)
    if len(spec) == 2:
        _check_pair(spec)
    return Categorical(tuple(spec))


def _check_pair(pair: Sequence[Any]) -> None:
    """Refuse two items that were meant as bounds and would be taken for levels."""
    if any(value is None for value in pair) and any(is_number(value) for value in pair):
        Numeric(*pair)  # says what is wrong with None
    if any(isinstance(value, DATES) for value in pair):
        raise SchemaError(f"bounds cannot be dates: {DATES_MEND}")
    if not all(isinstance(value, str) for value in pair):
        return
    if all(math.isfinite(number(value)) for value in pair):
        raise SchemaError(
            f"two numbers in quotes: write ({pair[0]}, {pair[1]}) if they are bounds, or "
            f'{{"levels": [{pair[0]!r}, {pair[1]!r}]}} if they are labels'
        )
    if all(_DATE.fullmatch(value.strip()) for value in pair):
        raise SchemaError(
            f"two dates: {DATES_MEND}; or write "
            f'{{"levels": [{pair[0]!r}, {pair[1]!r}]}} if they are labels'
        )


def plain(spec: Numeric | Categorical | Boolean) -> Any:
    """Spell a declaration for JSON, so that `declared` makes the same of it."""
    match spec:
        case Numeric(lo, hi):
            return [int(x) if x.is_integer() and abs(x) < _TOO_LARGE else x for x in (lo, hi)]
        case Categorical(levels):
            try:
                alike = declared(list(levels)) == spec
            except SchemaError:
                alike = False
            return list(levels) if alike else {"levels": list(levels)}
        case Boolean():
            return "bool"


def python(spec: Numeric | Categorical | Boolean) -> str:
    """Spell a declaration for Python, so that `declared` makes the same of it."""
    if isinstance(spec, Boolean):
        return "bool"
    told = plain(spec)
    return repr(tuple(told) if isinstance(spec, Numeric) else told)
