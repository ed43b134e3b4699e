"""The public coordinates of a look at the rows: centred, whitened, the response a residual.

A `Location` turns the stored row (x, y), cells in [-1, 1], into

    u = L (x - m),    e = y - b0 - b'x,

and says how far a row may reach: the radius R for |(1, u)|, tau for |e|. It is computed from
released numbers alone, and then rounded **once**, to grids of powers of two, so that the rows'
arithmetic is exact: from there on the rounded numbers are the map, and `matrix` and `shift` take
coefficients back with the same rounded numbers. Rounding therefore costs no accuracy, only the
choice of slightly other coordinates.

Statement. Let cells be integers in [-2**20, 2**20], the grid of `dpreg.moments`. Every coordinate
of u, and e, is a whole multiple of a power of two, and any sum of any of its terms, in any order
and any grouping, is exact in float64.

Proof. A `Form` holds integers k_0, .., k_q with sum |k_j| <= 2**33, in units of 2**-shift; its
value at a row is 2**-(shift + 20) sum k_j c_j, where the c_j are the row's cells and c_0 = 2**20
stands for 1. Each product is an integer of at most 2**20 |k_j|, and any partial sum is an integer
of at most 2**20 sum |k_j| <= 2**53. A float64 holds all of those, so no operation rounds, fused
or not. The power of two is exact as well. QED
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError
from dpreg.looks.coordinates import (
    CELL_BITS,
    LARGEST_REACH,
    Form,
    carried_back,
    offset_of,
    whitened_forms,
    whitening_of,
)

__all__ = [
    "LARGEST_RADIUS",
    "LARGEST_REACH",
    "LEAST_TAU",
    "Form",
    "Location",
    "carried_back",
    "offset_of",
    "whitened_forms",
    "whitening_of",
]

LARGEST_RADIUS: Final = 2.0**10
"""Cap on R. A located row is stored divided by R, in units of 2**-20, and its cells are truncated
one by one: c apart from c u. At this cap a unit of the store is 2**-10 of a standard deviation of
u, and the weight c of a row that is scaled down is still known to a part in a thousand."""

LEAST_TAU: Final = 2.0**-20
"""The least tau: one unit of the stored response."""


@dataclass(frozen=True, slots=True)
class Location:
    """Coordinates of a look, and how far a row may reach in them; make it with `on_grid`.

    All of it is public. p is the number of stored columns, the constant not among them.

    Attributes
    ----------
    forms : tuple of Form
        u_1 .. u_p, as functions of the p stored columns.
    response : Form
        e before it is divided by tau, as a function of x_1 .. x_p and y; y's slope is one.
    tau : float
        A row's residual counts up to tau, times its weight, or farther with a stretch.
    radius_units : int
        R = 2**20 / radius_units, so that 1/R lies on the grid of cells and a row of full weight
        is counted without rounding.
    """

    forms: tuple[Form, ...]
    response: Form
    tau: float
    radius_units: int

    @classmethod
    def on_grid(
        cls,
        *,
        whitening: ArrayLike,
        offset: ArrayLike,
        slopes: ArrayLike,
        intercept: float,
        tau: float,
        radius: float,
    ) -> Location:
        """Round coordinates to grids on which rows are computed exactly.

        Parameters
        ----------
        whitening : array_like, shape (p, p)
            L; rows longer than `LARGEST_REACH` in the sum of absolute values are scaled down.
        offset : array_like, shape (p,)
            -L m; a centre m outside the box is moved to its edge. Zero in a model without an
            intercept.
        slopes : array_like, shape (p,)
            b; scaled down with the intercept where both together exceed `LARGEST_REACH`.
        intercept : float
            b_0. Zero in a model without an intercept.
        tau : float
            Brought between `LEAST_TAU` and the largest residual within bounds.
        radius : float
            Brought between 1 and the lesser of `LARGEST_RADIUS` and the largest
            |(1, u)| within bounds, then rounded down (by a part in 2**10 at most).

        Raises
        ------
        ArgumentError
            If a number is not finite or a shape does not fit. The arguments come from released
            numbers.
        """
        L, shift = _finite(whitening, "whitening"), _finite(offset, "offset")
        b, b0 = _finite(slopes, "slopes"), float(_finite(intercept, "intercept"))
        p = b.size
        if L.shape != (p, p) or shift.shape != (p,) or b.shape != (p,):
            raise ArgumentError("offset and slopes must have p entries and whitening p x p")
        forms = whitened_forms(L, shift)
        shrink = min(1.0, LARGEST_REACH / max(1.0, abs(b0) + float(np.abs(b).sum())))
        response = Form.nearest(-b0 * shrink, [*(-b * shrink).tolist(), 1.0])
        return cls(forms, response, 1.0, 1 << CELL_BITS).with_clips(radius=radius, tau=tau)

    def with_clips(self, *, radius: float, tau: float) -> Location:
        """Return the same coordinates with other clips, brought within `on_grid`'s limits."""
        wanted, unit = float(_finite(radius, "radius")), float(_finite(tau, "tau"))
        wanted = min(max(wanted, 1.0), LARGEST_RADIUS, max(1.0, self.largest_norm))
        return replace(
            self,
            tau=min(max(unit, LEAST_TAU), self.largest_residual),
            radius_units=math.ceil((1 << CELL_BITS) / wanted),
        )

    @property
    def size(self) -> int:
        """p, the number of stored columns."""
        return len(self.forms)

    @property
    def radius(self) -> float:
        """R, as rounded."""
        return 2.0**CELL_BITS / self.radius_units

    @property
    def whitening(self) -> Floats:
        """L as rounded, (p, p)."""
        return whitening_of(self.forms)

    @property
    def offset(self) -> Floats:
        """-L m as rounded, (p,)."""
        return offset_of(self.forms)

    @property
    def slopes(self) -> Floats:
        """The slopes b as rounded, (p,)."""
        return -self.response.floats[1][:-1]

    @property
    def intercept(self) -> float:
        """The intercept b_0 as rounded."""
        return -self.response.floats[0]

    @property
    def largest_norm(self) -> float:
        """Largest |(1, u)| over the box: a larger R would open nothing."""
        return math.hypot(1.0, *(form.reach for form in self.forms))

    @property
    def largest_residual(self) -> float:
        """Largest |y - b0 - b'x| over the box: a larger tau would open nothing."""
        return self.response.reach

    @property
    def matrix(self) -> Floats:
        """T of beta = t0 + T theta, (p + 1, p + 1), the intercept first.

        theta are the coefficients of e/tau on (1, u), beta those of y on (1, x).
        """
        return carried_back(self.forms, self.tau)

    @property
    def shift(self) -> Floats:
        """t0 of beta = t0 + T theta: (b_0, b)."""
        return np.append(self.intercept, self.slopes)


def _finite(values: ArrayLike, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ArgumentError(f"{name} must be finite")
    return array
