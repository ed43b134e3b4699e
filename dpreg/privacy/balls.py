"""Exact numbers in ball arithmetic, and back out of it, rounded to the safe side.

Tested in `tests/privacy/test_composition.py`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from flint import arb, fmpq

_DIGITS: Final = 12


def ball(value: Fraction | float | int) -> arb:
    """Turn an exact number into a ball around it, as wide as the working precision needs."""
    exact = Fraction(value)
    return arb(fmpq(exact.numerator, exact.denominator))


def ceiling(value: arb) -> int:
    """Return an integer that is at least every number in the ball."""
    return int(str(value.upper().ceil().unique_fmpz()))


def round_up(value: arb) -> Fraction:
    """Round the upper end of a ball upwards to a decimal of 12 significant digits."""
    mantissa, exponent = (int(part) for part in value.upper().man_exp())
    top = Fraction(mantissa) * Fraction(2) ** exponent
    if top == 0:
        return top
    size = math.log10(abs(top.numerator)) - math.log10(top.denominator)
    unit = Fraction(10) ** (math.floor(size) - _DIGITS + 1)
    return math.ceil(top / unit) * unit


def float_above(value: Fraction) -> float:
    """Return the least float that is at least `value`."""
    found = float(value)
    return found if Fraction(found) >= value else math.nextafter(found, math.inf)


def float_below(value: Fraction) -> float:
    """Return the largest float that is at most `value`."""
    found = float(value)
    return found if Fraction(found) <= value else math.nextafter(found, -math.inf)
