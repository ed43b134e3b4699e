"""The expressions that a factor or a test may hold, as a small closed tree with bounds.

dpreg never evaluates formula text as Python: `dpreg.formula.syntax` turns it into these nodes, and
each node knows the raw columns it reads, its value on a chunk of rows, and its bounds. Nothing else
can be expressed, so nothing else can run. Every value depends on the cells of its own row alone.
Bounds of raw columns are carried to bounds of whatever is computed from them by interval
arithmetic.

Statement. Let ``f`` be an expression of the allowlist and let each column's cell lie in its
interval. Then both the real value of ``f`` and the float64 that NumPy computes for it lie in the
interval given here.

Proof sketch, by induction over the expression. Sums, differences, products and quotients of floats
are taken as exact rationals at the corners, where an operation that is monotone in each argument
has its extremes, and rounded outwards to float64 only where they are not floats. NumPy rounds the
same operations to nearest, which is monotone, so a computed value cannot pass a corner's outward
rounding. The functions are monotone too; NumPy's vectorised ones err by at most 4 units in the last
place, so their corners are widened by `SLACK` units. Dependence between operands is ignored:
``x * x`` is wider than ``x ** 2``, never narrower.

Tested in `tests/formula/test_intervals.py`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpreg.privacy.balls import float_above, float_below

SLACK = 8
"""Units in the last place by which corners of inexact functions are widened."""

LARGEST_EXACT_POWER = 32
"""Whole exponents up to this one are raised exactly; larger ones in float64, with slack."""


class NotFiniteError(Exception):
    """The interval of an expression is not finite; the message says which operation made it so."""


@dataclass(frozen=True, slots=True)
class Interval:
    """All reals from `lo` to `hi`, both finite.

    Raises
    ------
    NotFiniteError
        If an end is infinite or NaN. So does every operation whose result is not bounded.
    """

    lo: float
    hi: float

    def __post_init__(self) -> None:
        """Refuse ends that are not finite."""
        if not (math.isfinite(self.lo) and math.isfinite(self.hi)):
            raise NotFiniteError("a value beyond the range of float64")

    def __contains__(self, value: float) -> bool:
        """Say whether a number lies in the interval; NaN does not."""
        return self.lo <= value <= self.hi

    def __neg__(self) -> Interval:
        """Negate, exactly."""
        return Interval(-self.hi, -self.lo)

    def __add__(self, other: Interval) -> Interval:
        """Add, rounded outwards."""
        return _outward(
            Fraction(self.lo) + Fraction(other.lo), Fraction(self.hi) + Fraction(other.hi)
        )

    def __sub__(self, other: Interval) -> Interval:
        """Subtract as if the operands were independent, rounded outwards."""
        return self + (-other)

    def __mul__(self, other: Interval) -> Interval:
        """Multiply as if the operands were independent, rounded outwards."""
        corners = [Fraction(a) * Fraction(b) for a in self._ends for b in other._ends]
        return _outward(min(corners), max(corners))

    def __truediv__(self, other: Interval) -> Interval:
        """Divide, rounded outwards; the divisor may not hold 0."""
        if 0.0 in other:
            raise NotFiniteError("a division by an interval that holds 0")
        corners = [Fraction(a) / Fraction(b) for a in self._ends for b in other._ends]
        return _outward(min(corners), max(corners))

    def __pow__(self, other: Interval) -> Interval:
        """Raise to a power; even powers know that both factors are the same number.

        ``x ** k`` for a whole constant ``k`` is monotone on either side of 0. Every other power
        needs a base above 0 (at 0 for a constant exponent above 0), where it is monotone in base
        and in exponent.
        """
        if other.lo == other.hi and other.lo.is_integer():
            return self._whole_power(int(other.lo))
        if self.lo < 0:
            raise NotFiniteError("a power of an interval that reaches below 0")
        if self.lo == 0 and not other.lo == other.hi > 0:
            raise NotFiniteError("a power of an interval that touches 0")
        corners = [_float_power(a, b) for a in self._ends for b in other._ends]
        return _widened(corners, positive=True)

    def _whole_power(self, k: int) -> Interval:
        if k == 0:
            return Interval(1.0, 1.0)
        if k < 0 and 0.0 in self:
            raise NotFiniteError("a negative power of an interval that holds 0")
        base = self.absolute() if k % 2 == 0 else self
        if abs(k) <= LARGEST_EXACT_POWER:
            exact = [Fraction(a) ** k for a in base._ends]
            result = _outward(min(exact), max(exact))
            if k in (-1, 1, 2):
                return result
            corners = [result.lo, result.hi]
        else:
            corners = [_float_power(a, float(k)) for a in base._ends]
        return _widened(corners, positive=base.lo >= 0, negative=base.hi <= 0)

    def absolute(self) -> Interval:
        """Absolute value, exact."""
        ends = [abs(self.lo), abs(self.hi), *([0.0] if 0.0 in self else [])]
        return Interval(min(ends), max(ends))

    def sqrt(self) -> Interval:
        """Square root; the operand may not reach below 0."""
        if self.lo < 0:
            raise NotFiniteError("a square root of an interval that reaches below 0")
        return _widened([math.sqrt(a) for a in self._ends], positive=True)

    def log(self, plus: float = 0.0) -> Interval:
        """Take the natural logarithm of x + `plus`, 0 or 1; it must lie above 0."""
        if self.lo <= -plus:
            raise NotFiniteError("a logarithm of an interval that touches 0")
        corners = [math.log1p(a) if plus else math.log(a) for a in self._ends]
        return _widened(corners, positive=self.lo >= 1 - plus, negative=self.hi <= 1 - plus)

    def exp(self) -> Interval:
        """Exponential."""
        if self.hi > 709.0:
            raise NotFiniteError("an exponential beyond the range of float64")
        return _widened([math.exp(a) for a in self._ends], positive=True)

    @property
    def _ends(self) -> tuple[float, float]:
        return (self.lo, self.hi)


def _outward(lo: Fraction, hi: Fraction) -> Interval:
    """Round two exact ends outwards, and not at all where they are floats already."""
    try:
        return Interval(float_below(lo), float_above(hi))
    except OverflowError:
        raise NotFiniteError("a value beyond the range of float64") from None


def _widened(corners: Sequence[float], *, positive: bool, negative: bool = False) -> Interval:
    """Move computed ends outwards by `SLACK` units in the last place, within the sign of values.

    `positive` means that no value is below 0, `negative` that none is above it.
    """
    lo, hi = min(corners), max(corners)
    if not (math.isfinite(lo) and math.isfinite(hi)):
        raise NotFiniteError("a value beyond the range of float64")
    low = lo - SLACK * float(np.spacing(abs(lo)))
    high = hi + SLACK * float(np.spacing(abs(hi)))
    return Interval(max(low, 0.0) if positive else low, min(high, 0.0) if negative else high)


def _float_power(base: float, exponent: float) -> float:
    """Power in float64 without Python's exceptions."""
    with np.errstate(all="ignore"):
        return float(np.float64(base) ** np.float64(exponent))


# ---- nodes ---------------------------------------------------------------------------------------

Cells = Mapping[str, NDArray[Any]]
"""Raw columns of one chunk: float64 for numbers and truths, level codes for categories."""
Bounds = Mapping[str, Interval]
"""The interval of each raw column that holds numbers or truths."""

COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
FUNCTIONS: Final = ("log", "log1p", "exp", "sqrt", "abs")


def _compared(symbol: str, left: Any, right: Any) -> Any:
    """Compare cell by cell: 1 where it holds, 0 where not, NaN where a side has no value."""
    return COMPARISONS[symbol](left, right) + ((left - left) + (right - right))


def _decided(symbol: str, left: Interval, right: Interval) -> Interval:
    """Return [0, 1], or one of its ends where the bounds of the sides decide the comparison."""
    if symbol in ("==", "!="):
        same = left.lo == left.hi and left == right
        apart = left.hi < right.lo or right.hi < left.lo
        ends = [same, not apart] if symbol == "==" else [apart, not same]
    else:
        holds = COMPARISONS[symbol]
        ends = sorted([holds(left.hi, right.lo), holds(left.lo, right.hi)])
    return Interval(float(ends[0]), float(ends[1]))


def _joined(join: Callable[[Iterable[float]], float], *truths: Interval) -> Interval:
    return Interval(join(truth.lo for truth in truths), join(truth.hi for truth in truths))


OPERATIONS: Final[Mapping[str, tuple[Callable[..., Any], Callable[..., Interval]]]] = {
    "+": (operator.add, operator.add),
    "-": (operator.sub, operator.sub),
    "*": (operator.mul, operator.mul),
    "/": (operator.truediv, operator.truediv),
    "**": (operator.pow, operator.pow),
    "negative": (operator.neg, operator.neg),
    "log": (np.log, Interval.log),
    "log1p": (np.log1p, partial(Interval.log, plus=1.0)),
    "exp": (np.exp, Interval.exp),
    "sqrt": (np.sqrt, Interval.sqrt),
    "abs": (np.abs, Interval.absolute),
    **{symbol: (partial(_compared, symbol), partial(_decided, symbol)) for symbol in COMPARISONS},
    "and": (lambda *truths: reduce(np.minimum, truths), partial(_joined, min)),
    "or": (lambda *truths: reduce(np.maximum, truths), partial(_joined, max)),
    "not": (lambda truth: 1.0 - truth, lambda truth: Interval(1.0 - truth.hi, 1.0 - truth.lo)),
}
"""What is done to values, cell by cell, and to intervals; NaN is no value of a truth either."""


@dataclass(frozen=True, slots=True)
class Number:
    """A literal number."""

    value: float

    def values(self, cells: Cells) -> Any:
        """Return the number."""
        return self.value

    def bounds(self, columns: Bounds) -> Interval:
        """Return the number as an interval."""
        return Interval(self.value, self.value)


@dataclass(frozen=True, slots=True)
class Name:
    """A raw column."""

    column: str

    def values(self, cells: Cells) -> Any:
        """Return the column's cells."""
        return cells[self.column]

    def bounds(self, columns: Bounds) -> Interval:
        """Return the column's own bounds."""
        return columns[self.column]


@dataclass(frozen=True, slots=True)
class Applied:
    """One of `OPERATIONS` of some nodes."""

    symbol: str
    operands: tuple[Expression, ...]

    def values(self, cells: Cells) -> Any:
        """Apply NumPy's operation cell by cell."""
        return OPERATIONS[self.symbol][0](*(one.values(cells) for one in self.operands))

    def bounds(self, columns: Bounds) -> Interval:
        """Apply the interval operation."""
        return OPERATIONS[self.symbol][1](*(one.bounds(columns) for one in self.operands))


@dataclass(frozen=True, slots=True)
class LevelTest:
    """Whether a categorical column is at one of its levels (or is not).

    `code` is the level's place in the schema's list; None until the schema is known.
    """

    column: str
    level: str | float
    equal: bool
    code: int | None = None

    def values(self, cells: Cells) -> Any:
        """Compare the column's level codes."""
        at_level = cells[self.column] == self.code
        return (at_level if self.equal else ~at_level).astype(np.float64)

    def bounds(self, columns: Bounds) -> Interval:
        """Return [0, 1]: a category has two levels or more."""
        return Interval(0.0, 1.0)


Expression: TypeAlias = Number | Name | Applied | LevelTest
"""A node.

Its `values` on a chunk are float64, an array with a cell a row or one number for a constant: NaN or
infinity marks a row where it has none. Its `bounds` hold every value that it can take.
"""


# ---- what a factor says --------------------------------------------------------------------------

Literal = str | bool | int | float


@dataclass(frozen=True, slots=True)
class Labels:
    """``C(column, contrast, levels=[...])``.

    `levels` is None where the schema's list stands; `reference` is None for the first level.
    `coding` is "treatment" or "sum".
    """

    column: str
    levels: tuple[Literal, ...] | None
    coding: str
    reference: Literal | None


@dataclass(frozen=True, slots=True)
class Spline:
    """``bs(x, knots=[...], lower_bound=..., upper_bound=...)`` with every constant literal."""

    operand: Expression
    knots: tuple[float, ...]
    degree: int
    include_intercept: bool
    lower: float
    upper: float


Spec = Expression | Labels | Spline
"""What a factor's text says, before the schema is known."""


def names(spec: Spec, *, labels: bool = False) -> tuple[str, ...]:
    """Name the raw columns that a factor reads, each once, in the order written.

    Where `labels`, those alone that it uses as labels.
    """
    match spec:
        case Labels(column=column) | LevelTest(column=column):
            return (column,)
        case Name(column):
            return () if labels else (column,)
        case Spline(operand=operand):
            return names(operand, labels=labels)
        case Applied(operands=operands):
            found = (name for operand in operands for name in names(operand, labels=labels))
            return tuple(dict.fromkeys(found))
    return ()
