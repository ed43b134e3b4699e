"""Affine functions of stored rows, on grids on which they are exact.

Statement. Let cells be integers in [-2**20, 2**20], the grid of `dpreg.moments`. Every value of a
`Form` is a whole multiple of a power of two, and any sum of any of its terms, in any order and any
grouping, is exact in float64.

Proof. A `Form` holds integers k_0, .., k_q with sum |k_j| <= 2**33, in units of 2**-shift; its
value at a row is 2**-(shift + 20) sum k_j c_j, where the c_j are the row's cells and c_0 = 2**20
stands for 1. Each product is an integer of at most 2**20 |k_j|, and any partial sum is an integer
of at most 2**20 sum |k_j| <= 2**53. A float64 holds all of those, so no operation rounds, fused
or not. The power of two is exact as well. QED
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError

__all__ = [
    "CELL_BITS",
    "LARGEST_REACH",
    "Form",
    "carried_back",
    "offset_of",
    "whitened_forms",
    "whitening_of",
]

CELL_BITS: Final = 20
"""A stored cell is an integer in units of 2**-20, as in `dpreg.moments`."""

LARGEST_REACH: Final = 2.0**20
"""Cap on sum_j |L_ij| for each i, and on |b_0| + sum_j |b_j|. A step of a stored cell, 2**-20, then
moves u_i or e by at most one: finer coordinates would resolve the rounding of cells, not rows. A
longer row of L is scaled down as a whole, which keeps its direction, and so is (b_0, b)."""

_LARGEST_SUM: Final = 2**33
_LARGEST_SHIFT: Final = 52  # precision


@dataclass(frozen=True, slots=True)
class Form:
    """An affine function of a stored row, exact on gridded cells.

    Attributes
    ----------
    shift : int
        The integers are in units of 2**-shift.
    constant : int
    slopes : tuple of int
        ``sum(map(abs, (constant, *slopes))) <= 2**33``.
    """

    shift: int
    constant: int
    slopes: tuple[int, ...]

    def __post_init__(self) -> None:
        """Hold the proof's assumption."""
        if abs(self.constant) + sum(map(abs, self.slopes)) > _LARGEST_SUM:
            raise ArgumentError("a form's integers must have absolute values of at most 2**33")

    @classmethod
    def nearest(cls, constant: float, slopes: Sequence[float]) -> Form:
        """Round to the finest grid on which the sum of absolute integers is at most 2**33."""
        total = abs(constant) + math.fsum(map(abs, slopes))
        shift = min(_LARGEST_SHIFT, 33 - math.frexp(total)[1] + 1) if total else 0  # precision
        while True:
            unit = 2.0**shift
            whole = [round(value * unit) for value in (constant, *slopes)]
            if sum(map(abs, whole)) <= _LARGEST_SUM:
                return cls(shift, whole[0], tuple(whole[1:]))
            shift -= 1

    @property
    def floats(self) -> tuple[float, Floats]:
        """The constant and the slopes that the integers stand for, exactly."""
        unit = 2.0**-self.shift
        return self.constant * unit, np.array(self.slopes, dtype=np.float64) * unit

    @property
    def reach(self) -> float:
        """The largest absolute value at any row of the box."""
        return (abs(self.constant) + sum(map(abs, self.slopes))) * 2.0**-self.shift

    def on_cells(self, places: Sequence[int], size: int) -> Floats:
        """Return the form as a vector over `size` gridded cells, the constant's in front.

        Its slopes belong to the cells at `places`.
        """
        constant, slopes = self.floats
        full = np.zeros(size)
        full[0] = constant
        full[list(places)] = slopes
        return full / 2.0**CELL_BITS


def whitened_forms(whitening: Floats, offset: Floats) -> tuple[Form, ...]:
    """Round u = L x + offset; a centre outside the box is moved to its edge, a long row shrunk."""
    reach = np.abs(whitening).sum(axis=1)
    bounded = np.clip(offset, -reach, reach)
    scale = np.minimum(1.0, LARGEST_REACH / np.maximum(reach, 1.0))
    return tuple(
        Form.nearest(float(a * s), (row * s).tolist())
        for a, row, s in zip(bounded, whitening, scale, strict=True)
    )


def whitening_of(forms: Sequence[Form]) -> Floats:
    """Return L as rounded, (p, p)."""
    rows = [form.floats[1] for form in forms]
    return np.array(rows, dtype=np.float64).reshape(len(forms), len(forms))


def offset_of(forms: Sequence[Form]) -> Floats:
    """Return -L m as rounded, (p,)."""
    return np.array([form.floats[0] for form in forms], dtype=np.float64)


def carried_back(forms: Sequence[Form], unit: float) -> Floats:
    """Return `unit` times the (p + 1, p + 1) map of coefficients on (1, u) to those on (1, x)."""
    T = np.zeros((len(forms) + 1, len(forms) + 1))
    T[0, 0] = unit
    T[0, 1:] = unit * offset_of(forms)
    T[1:, 1:] = unit * whitening_of(forms).T
    return T
