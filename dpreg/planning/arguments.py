"""Numbers that a plan can work with: what their squares and ratios leave in float64.

Tested in `tests/planning/test_planner.py`.
"""

from __future__ import annotations

from typing import Final

from dpreg.errors import ArgumentError, shown
from dpreg.privacy.budget import exact
from dpreg.request import count, positive

__all__ = ["chance_of", "check_asked", "rows_of_table", "sized"]

_LARGEST: Final = 10**30
_MOST_ROWS: Final = 10**18


def sized(value: object, name: str, *, signed: bool = False) -> float:
    """Return a number whose size lies between 1e-30 and 1e30, positive unless `signed`."""
    number = exact(value, name) if signed else positive(value, name)
    if not 1 <= abs(number) * _LARGEST <= _LARGEST**2:
        raise ArgumentError(f"{name} must lie between 1e-30 and 1e30 in size; got {shown(value)}.")
    return float(number)


def rows_of_table(n: object) -> int:
    """Return a number of rows, at least 2."""
    rows = count(n, "n", 2)
    if rows > _MOST_ROWS:
        raise ArgumentError(f"n must be at most {_MOST_ROWS:.0e}.")
    return rows


def check_asked(n: object, eps: object) -> None:
    """Refuse a plan that is given neither n nor eps."""
    if n is None and eps is None:
        raise ArgumentError("give n, eps or both: the one left out is what is found.")


def chance_of(chance: object) -> float:
    """Return a chance, above 0 and below 1."""
    if not (number := float(positive(chance, "chance"))) < 1:
        raise ArgumentError(f"chance must lie between 0 and 1; got {shown(chance)}.")
    return number
