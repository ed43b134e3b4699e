"""The least n, or the least eps, at which a plan reaches what is wanted: doubling, then halving.

Tested in `tests/planning/test_planner.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from dpreg.errors import ArgumentError

__all__ = ["bracket", "least", "least_eps", "least_rows", "narrowed", "rounded_up"]

_MOST_ROWS: Final = 1e12
_MOST_EPS: Final = 1e6


def least_rows(reached: Callable[[int], bool], wanted: str, first: float = 8.0) -> int:
    """Return the least number of rows, to a part in two thousand.

    Parameters
    ----------
    reached : callable
        Whether so many rows are enough.
    wanted : str
        What an error says that no n does.
    first : float
        The first number that is tried.
    """
    low, high = _found(lambda rows: reached(round(rows)), first, _MOST_ROWS, "n", wanted)
    while high - low > max(1.0, 5e-4 * high):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(round(middle)) else (middle, high)
    return math.ceil(high)


def least_eps(reached: Callable[[float], bool], wanted: str, first: float = 1e-4) -> float:
    """Return the least eps, with four digits, rounded up."""
    return float(rounded_up(least(reached, first, _MOST_EPS, "eps", wanted, near=1.001), 4))


def least(
    reached: Callable[[float], bool],
    first: float,
    last: float,
    name: str,
    wanted: str,
    *,
    near: float,
) -> float:
    """Return a value of `name` at which `reached` is true, at most `near` times the least one."""
    low, high = _found(reached, first, last, name, wanted)
    return narrowed(reached, low, high, near)


def rounded_up(value: float, digits: int) -> str:
    """Return a number's first digits, rounded up."""
    step = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return f"{math.ceil(value / step - 1e-9) * step:.{digits}g}"


def _found(
    reached: Callable[[float], bool], first: float, last: float, name: str, wanted: str
) -> tuple[float, float]:
    found = bracket(reached, first, last)
    if found is None:
        other = "eps" if name == "n" else "n"
        raise ArgumentError(
            f"no {name} up to {last:.0e} {wanted}: raise {other}, or use fewer columns."
        )
    return found


def bracket(
    reached: Callable[[float], bool], first: float, last: float
) -> tuple[float, float] | None:
    """Double until `reached`; return the last two values, or None where `last` is not enough."""
    high = first
    while not reached(high):
        high *= 2
        if high > last:
            return None
    return high / 2, high


def narrowed(reached: Callable[[float], bool], low: float, high: float, near: float) -> float:
    """Return a value between `low` and `high`, at most `near` times the least that is enough."""
    while high / low > near:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
