"""The exponential, with the same bits for a number wherever it stands.

A library's `exp` may use one algorithm for most of an array and another for its last few entries,
or another on another machine; then a row's integers would depend on the rows beside it. Here
exp(x) is made of single additions and products of float64 arrays, which IEEE 754 rounds correctly,
each a step of its own, and of a power of two, which is exact.

    x = n ln 2 + r,  |r| <= 0.35,    exp(x) = 2^n (1 + r + r^2/2 + .. + r^13/13!),

with ln 2 as the sum of two numbers, the first of which has few enough digits for its product with n
to be exact. The relative error is below 1e-15 for |x| <= 700.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dpreg.arrays import Floats

__all__ = ["exp"]

_INVERSE: Final = 1.4426950408889634  # by definition
_HIGH: Final = 0.6931471803691238  # precision
"""ln 2 to 32 bits: its product with an integer of up to 2**20 is exact."""
_LOW: Final = 1.9082149292705877e-10
_TERMS: Final = tuple(1 / math.factorial(k) for k in range(13, -1, -1))


def exp(x: Floats) -> Floats:
    """Return exp(x) for |x| <= 700; see the module."""
    whole = np.rint(x * _INVERSE)
    rest = x - whole * _HIGH
    rest -= whole * _LOW
    total = np.full(x.shape, _TERMS[0])
    for term in _TERMS[1:]:
        np.multiply(total, rest, out=total)
        np.add(total, term, out=total)
    return np.asarray(np.ldexp(total, whole.astype(np.int32)), dtype=np.float64)
