"""The expressions that a factor may hold, as a small closed tree.

dpreg never evaluates formula text as Python: `dpreg.formula.check` turns it into these nodes, and
each node knows the raw columns it reads, its value on a chunk of rows, and its bounds. Nothing else
can be expressed, so nothing else can run. Every value depends on the cells of its own row alone.

Tested in `tests/formula/test_intervals.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpreg.formula.intervals import Interval

__all__ = [
    "ARITHMETIC",
    "COMPARISONS",
    "FUNCTIONS",
    "Arithmetic",
    "Comparison",
    "Expression",
    "Function",
    "LevelTest",
    "Name",
    "Negation",
    "Number",
    "names",
]

Cells = Mapping[str, NDArray[Any]]
"""Raw columns of one chunk: float64 for numbers and truths, level codes for categories."""
Bounds = Mapping[str, Interval]
"""The interval of each raw column that holds numbers or truths."""

ARITHMETIC: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
}
COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
FUNCTIONS: Final[Mapping[str, tuple[Callable[[Any], Any], Callable[[Interval], Interval]]]] = {
    "log": (np.log, Interval.log),
    "log1p": (np.log1p, Interval.log1p),
    "exp": (np.exp, Interval.exp),
    "sqrt": (np.sqrt, Interval.sqrt),
    "abs": (np.abs, Interval.absolute),
}


@dataclass(frozen=True, slots=True)
class Expression:
    """A node. Values are float64: an array with a cell a row, or one number for a constant."""

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The nodes directly below."""
        held = (getattr(self, field.name) for field in fields(self))
        return tuple(one for one in held if isinstance(one, Expression))

    def values(self, cells: Cells) -> Any:
        """Compute the node on a chunk; NaN or infinity marks a row where it has no value."""
        raise NotImplementedError

    def bounds(self, columns: Bounds) -> Interval:
        """Compute an interval that holds every value the node can take."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Number(Expression):
    """A literal number."""

    value: float

    def values(self, cells: Cells) -> Any:
        """Return the number."""
        return self.value

    def bounds(self, columns: Bounds) -> Interval:
        """Return the number as an interval."""
        return Interval.point(self.value)


@dataclass(frozen=True, slots=True)
class Name(Expression):
    """A raw column."""

    column: str

    def values(self, cells: Cells) -> Any:
        """Return the column's cells."""
        return cells[self.column]

    def bounds(self, columns: Bounds) -> Interval:
        """Return the column's own bounds."""
        return columns[self.column]


@dataclass(frozen=True, slots=True)
class Negation(Expression):
    """Unary minus."""

    operand: Expression

    def values(self, cells: Cells) -> Any:
        """Negate the operand's values."""
        return -self.operand.values(cells)

    def bounds(self, columns: Bounds) -> Interval:
        """Negate the operand's interval."""
        return -self.operand.bounds(columns)


@dataclass(frozen=True, slots=True)
class _Pair(Expression):
    """A symbol between two nodes."""

    symbol: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic(_Pair):
    """One of ``+ - * / **`` between two nodes."""

    def values(self, cells: Cells) -> Any:
        """Apply NumPy's operation cell by cell."""
        return ARITHMETIC[self.symbol](self.left.values(cells), self.right.values(cells))

    def bounds(self, columns: Bounds) -> Interval:
        """Apply the interval operation."""
        interval: Interval = ARITHMETIC[self.symbol](
            self.left.bounds(columns), self.right.bounds(columns)
        )
        return interval


@dataclass(frozen=True, slots=True)
class Function(Expression):
    """One of `FUNCTIONS` of a node."""

    name: str
    operand: Expression

    def values(self, cells: Cells) -> Any:
        """Apply NumPy's function cell by cell."""
        return FUNCTIONS[self.name][0](self.operand.values(cells))

    def bounds(self, columns: Bounds) -> Interval:
        """Apply the interval function."""
        return FUNCTIONS[self.name][1](self.operand.bounds(columns))


@dataclass(frozen=True, slots=True)
class Comparison(_Pair):
    """A comparison of two nodes: 1 where it holds, 0 where not, NaN where a side has no value."""

    def values(self, cells: Cells) -> Any:
        """Compare cell by cell."""
        left, right = self.left.values(cells), self.right.values(cells)
        holds = COMPARISONS[self.symbol](left, right)
        return holds + ((left - left) + (right - right))

    def bounds(self, columns: Bounds) -> Interval:
        """Return [0, 1], or one of its ends where the bounds of the sides decide the comparison."""
        left, right = self.left.bounds(columns), self.right.bounds(columns)
        apart = left.hi < right.lo or right.hi < left.lo
        lowest = {
            "<": left.hi < right.lo,
            "<=": left.hi <= right.lo,
            ">": right.hi < left.lo,
            ">=": right.hi <= left.lo,
            "==": left.is_point and left == right,
            "!=": apart,
        }[self.symbol]
        highest = {
            "<": left.lo < right.hi,
            "<=": left.lo <= right.hi,
            ">": right.lo < left.hi,
            ">=": right.lo <= left.hi,
            "==": not apart,
            "!=": not (left.is_point and left == right),
        }[self.symbol]
        return Interval(float(lowest), float(highest))


@dataclass(frozen=True, slots=True)
class LevelTest(Expression):
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


def names(expression: Expression) -> Iterator[str]:
    """Yield the raw columns that an expression reads, in the order written, repeats included."""
    if isinstance(expression, Name | LevelTest):
        yield expression.column
    for operand in expression.operands:
        yield from names(operand)
