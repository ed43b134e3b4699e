"""The least n, or the least eps, at which a plan reaches what is wanted: doubling, then halving.

Tested in `tests/planning/test_planner.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from dpreg.errors import ArgumentError

__all__ = ["bracket", "least_eps", "least_rows", "narrowed"]

_MOST: Final = {"n": 1e12, "eps": 1e6}  # work
_FIRST: Final = {"n": 8.0, "eps": 1e-4}  # work
_DIGITS: Final = 4


def least_rows(reached: Callable[[int], bool], wanted: str, first: float, *, floor: bool) -> int:
    """Return the least number of rows, to a part in two thousand.

    Parameters
    ----------
    reached : callable
        Whether so many rows are enough.
    wanted : str
        What an error says that no n does.
    first : float
        The first number that is tried.
    floor : bool
        Whether fewer are never enough.
    """
    if floor and reached(math.ceil(first)):
        return math.ceil(first)
    step, near = 1.0, 5e-4  # precision
    return math.ceil(_least(lambda n: reached(round(n)), wanted, "n", first, near, step))


def least_eps(reached: Callable[[float], bool], wanted: str, first: float, *, floor: bool) -> float:
    """Return the least eps, with four digits, rounded up; arguments as for `least_rows`."""
    if floor and reached(_up(first)):
        return _up(first)
    near = 1e-3  # precision
    return _up(_least(lambda eps: reached(_up(eps)), wanted, "eps", first, near))


def _up(value: float) -> float:
    """Return a number's first digits, rounded up."""
    step = 10.0 ** (math.floor(math.log10(value)) - _DIGITS + 1)  # by definition
    return float(f"{math.ceil(value / step - 1e-9) * step:.{_DIGITS}g}")


def _least(
    reached: Callable[[float], bool],
    wanted: str,
    name: str,
    first: float,
    near: float,
    step: float = 0.0,
) -> float:
    found = bracket(reached, max(first, _FIRST[name]), _MOST[name])
    if found is None:
        other = "eps" if name == "n" else "n"
        raise ArgumentError(
            f"no {name} up to {_MOST[name]:.0e} {wanted}: raise {other}, or use fewer columns."
        )
    return narrowed(reached, *found, near, step)


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


def narrowed(
    reached: Callable[[float], bool], low: float, high: float, near: float, step: float = 0.0
) -> float:
    """Return nearly the least value between `low` and `high`: to `near` of it, or to a step."""
    while high - low > max(step, near * low):
        middle = (low + high) / 2 if step else math.sqrt(low * high)
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
