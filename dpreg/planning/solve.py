"""The least n, or the least eps, at which a plan reaches the chance that is wanted.

Tested in `tests/planning/test_planner.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from dpreg.errors import ArgumentError

__all__ = ["least_eps", "least_rows"]

_MOST_ROWS: Final = 10**12
_MOST_EPS: Final = 10.0**6


def least_rows(reached: Callable[[int], bool], wanted: str, first: float = 8.0) -> int:
    """Return the least number of rows, to a part in two thousand.

    Parameters
    ----------
    reached : callable
        Whether so many rows are enough.
    wanted : str
        What an error says that no n does.
    first : float
        Half of the first number that is tried.
    """
    low, high = _bracket(lambda rows: reached(round(rows)), first, _MOST_ROWS, "n", wanted)
    while high - low > max(1.0, 5e-4 * high):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(round(middle)) else (middle, high)
    return math.ceil(high)


def least_eps(reached: Callable[[float], bool], wanted: str, first: float = 1e-4) -> float:
    """Return the least eps, with four digits, rounded up."""
    low, high = _bracket(reached, first, _MOST_EPS, "eps", wanted)
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reached(middle) else (middle, high)
    step = 10.0 ** (math.floor(math.log10(high)) - 3)
    return float(f"{math.ceil(high / step) * step:.4g}")


def _bracket(
    reached: Callable[[float], bool], first: float, last: float, name: str, wanted: str
) -> tuple[float, float]:
    """Double until the chance is reached; between the last two values it is first reached."""
    high = first
    while not reached(high):
        high *= 2
        if high > last:
            other = "eps" if name == "n" else "n"
            raise ArgumentError(f"no {name} up to {last:.0e} {wanted}: raise {other}.")
    return high / 2, high
