"""Linear constraints on coefficients, as arrays or as text: "bsqft - lat = 0".

The text is read here, by a small recursive parser over the coefficients' own names, and nothing in
it is ever evaluated as Python.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpreg.errors import ArgumentError

__all__ = ["linear_constraints"]

Array = NDArray[np.float64]
Constraints = str | Sequence[str] | ArrayLike | tuple[ArrayLike, ArrayLike]

_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_DEEPEST = 50


def linear_constraints(constraints: Constraints, names: Sequence[str]) -> tuple[Array, Array]:
    """Return (R, q), m x p and m: the constraints say R beta = q.

    Parameters
    ----------
    constraints : str, list of str, array, or tuple (R, q)
        Text may hold several constraints between commas, and "a = b = 0" means two. Without "=" an
        expression is set to 0. Names are those of `exog_names`.
    names : sequence of str
        The p coefficients' names.

    Raises
    ------
    ArgumentError
        Names what could not be read, and the coefficients there are.
    """
    if isinstance(constraints, str):
        return _stack(_Reader(constraints, names).constraints(), names)
    if isinstance(constraints, Sequence) and constraints:
        texts = [part for part in constraints if isinstance(part, str)]
        if len(texts) == len(constraints):
            return _stack(
                [row for part in texts for row in _Reader(part, names).constraints()], names
            )
    left, right = constraints if isinstance(constraints, tuple) else (constraints, 0.0)
    try:
        matrix = np.atleast_2d(np.asarray(left, dtype=np.float64))
        target = np.broadcast_to(np.asarray(right, dtype=np.float64), (len(matrix),)).copy()
    except (TypeError, ValueError):
        raise ArgumentError("constraints must be text, an array, or a tuple (R, q)") from None
    if matrix.ndim != 2 or matrix.shape[1] != len(names):
        raise ArgumentError(
            f"a constraint needs one number for each of the {len(names)} coefficients, "
            f"got {matrix.shape[-1]}"
        )
    return matrix, target


@dataclass(frozen=True, slots=True)
class _Linear:
    """A linear form: weights' beta + constant."""

    weights: Array
    constant: float

    @property
    def is_constant(self) -> bool:
        return not self.weights.any()

    def scaled(self, factor: float) -> _Linear:
        return _Linear(self.weights * factor, self.constant * factor)

    def plus(self, other: _Linear) -> _Linear:
        return _Linear(self.weights + other.weights, self.constant + other.constant)


def _stack(rows: list[_Linear], names: Sequence[str]) -> tuple[Array, Array]:
    matrix = np.array([row.weights for row in rows]).reshape(len(rows), len(names))
    return matrix, np.array([-row.constant for row in rows])


class _Reader:
    """Reads one text from left to right; each method consumes what it returns."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        self.text = text
        self.names = names
        self.longest_first = sorted(names, key=len, reverse=True)
        self.at = 0
        self.depth = 0

    def constraints(self) -> list[_Linear]:
        rows = self.equation()
        while self.take(","):
            rows += self.equation()
        if self.at < len(self.text):
            self.fail()
        return rows

    def equation(self) -> list[_Linear]:
        sides = [self.sum()]
        while self.take("="):
            sides.append(self.sum())
        if len(sides) == 1:
            sides.append(_Linear(np.zeros(len(self.names)), 0.0))
        rows = [left.plus(right.scaled(-1)) for left, right in pairwise(sides)]
        if any(row.is_constant for row in rows):
            raise ArgumentError(f"constraint {self.text!r} holds no coefficient")
        return rows

    def sum(self) -> _Linear:
        total = self.product()
        while sign := self.take("+", "-"):
            total = total.plus(self.product().scaled(1 if sign == "+" else -1))
        return total

    def product(self) -> _Linear:
        result = self.atom()
        while sign := self.take("*", "/"):
            other = self.atom()
            if sign == "*" and result.is_constant:
                result, other = other, result
            if not other.is_constant or (sign == "/" and other.constant == 0):
                raise ArgumentError(f"constraint {self.text!r} is not linear in the coefficients")
            factor = other.constant
            result = result.scaled(factor if sign == "*" else 1 / factor)
        return result

    def atom(self) -> _Linear:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ArgumentError("the constraint is nested too deeply")
        try:
            return self.name() or self.number() or self.group()
        finally:
            self.depth -= 1

    def name(self) -> _Linear | None:
        self.skip_blanks()
        for name in self.longest_first:
            end = self.at + len(name)
            if not self.text.startswith(name, self.at) or self.inside_word(end):
                continue
            self.at = end
            weights = np.zeros(len(self.names))
            weights[list(self.names).index(name)] = 1.0
            return _Linear(weights, 0.0)
        return None

    def number(self) -> _Linear | None:
        found = _NUMBER.match(self.text, self.at)
        if not found or self.inside_word(found.end()):
            return None
        self.at = found.end()
        return _Linear(np.zeros(len(self.names)), float(found.group()))

    def group(self) -> _Linear:
        if sign := self.take("-", "+"):
            return self.atom().scaled(-1 if sign == "-" else 1)
        if not self.take("("):
            self.fail()
        inner = self.sum()
        if not self.take(")"):
            self.fail()
        return inner

    def take(self, *signs: str) -> str:
        self.skip_blanks()
        for sign in signs:
            if self.text.startswith(sign, self.at):
                self.at += len(sign)
                return sign
        return ""

    def skip_blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def inside_word(self, end: int) -> bool:
        """Tell whether stopping at `end` would cut a word in two."""
        if not 0 < end < len(self.text):
            return False
        before, after = self.text[end - 1], self.text[end]
        return (before.isalnum() or before in "_.") and (after.isalnum() or after in "_[(:")

    def fail(self) -> None:
        raise ArgumentError(
            f"constraint {self.text!r} cannot be read from position {self.at + 1}; "
            f"the coefficients are {', '.join(self.names)}"
        )
