r"""Bring rows into the unit ball by public numbers, and coefficients back out of it.

SSP and AdaSSP need |x| <= 1 (Euclidean) and |y| <= 1 in every row. Four ways, the thesis's and the
one of dpreg's own designs. Where the originals take means, standard deviations, largest norms from
the data, they are public arguments here: numbers computed from confidential rows are not public.

==============  ==========================================  =======================  ==============
scaling         row                                         response                 affine in x
==============  ==========================================  =======================  ==============
``box``         ((x - centre)/half width)/sqrt(d)           y/ymax                   yes
``max-norm``    ((x - mean)/sd)/xmax                        y/ymax                   yes
``row-norm``    ((x - mean)/sd)/its own norm                y/ymax                   no
``row-norm-xy`` the same                                    (y/norm)/ymax            no
==============  ==========================================  =======================  ==============

A row or response that is still too long is shortened to 1. An intercept is a constant column: with
the affine scalings the row becomes (1, row)/sqrt(2), with the others the constant is in the norm.
Before all that, columns may be cut from above at mean + c sd (the thesis's robust variant).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpreg.errors import ArgumentError

__all__ = ["SCALINGS", "RowScaling", "as_floats", "row_scaling", "shorten"]

Array = NDArray[np.float64]

SCALINGS: Final = ("box", "row-norm", "row-norm-xy", "max-norm")
"""Names of the scalings."""

_FAR: Final = 1e100
"""Standardised values are cut here, so that no square overflows."""


@dataclass(frozen=True, slots=True, eq=False)
class RowScaling:
    """One public map from raw rows to the unit ball; make it with `row_scaling`.

    Parameters
    ----------
    kind : {"box", "row-norm", "row-norm-xy", "max-norm"}
    center, width : (d,) arrays
        Subtracted from, then divided into each column.
    length : float
        The affine scalings divide the standardised row by it.
    y_center, y_max : float
        Subtracted from the response; divided into it.
    upper : (d,) array or None
        Columns are cut to at most this before anything else.
    intercept : bool
        Whether a constant column comes first.
    """

    kind: str
    center: Array
    width: Array
    length: float
    y_center: float
    y_max: float
    upper: Array | None
    intercept: bool

    @property
    def affine(self) -> bool:
        """Whether coefficients can be given in the raw columns' units."""
        return self.kind in ("box", "max-norm")

    def apply(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        """Scale raw rows, shapes (n, d) and (n,); with an intercept X has d + 1 columns.

        A row with a missing value becomes all zero.
        """
        raw, response = as_floats(x, "x", 2), as_floats(y, "y", 1)
        complete = np.isfinite(raw).all(axis=1) & np.isfinite(response)
        raw = np.where(complete[:, None], raw, self.center)
        response = np.where(complete, response, self.y_center) - self.y_center
        if self.upper is not None:
            raw = np.minimum(raw, self.upper)
        with np.errstate(all="ignore"):  # no row may be the cause of a warning
            rows = np.clip((raw - self.center) / self.width, -_FAR, _FAR)
            response = np.clip(response / self.y_max, -_FAR, _FAR)
        if self.affine:
            rows = rows / self.length
            if self.intercept:
                rows = np.column_stack([np.ones(len(rows)), rows]) / np.sqrt(2)
        else:
            if self.intercept:
                rows = np.column_stack([np.ones(len(rows)), rows])
            norms = np.sqrt((rows**2).sum(axis=1))
            norms[norms == 0] = 1.0
            rows = rows / norms[:, None]
            if self.kind == "row-norm-xy":
                response = response / norms
        rows, response = shorten(rows, response)
        return np.where(complete[:, None], rows, 0.0), np.where(complete, response, 0.0)

    def unstandardise(self, theta: ArrayLike) -> Array:
        """Return coefficients for the raw columns and response, the intercept first.

        With y = y_center + y_max (theta_0 + sum theta_j (x_j - center_j)/(width_j length)); a
        model without an intercept column gets the constant that the centring implies.
        """
        if not self.affine:
            raise ArgumentError(
                f"scaling {self.kind!r} divides each row by its own norm: its coefficients have no "
                "counterpart for raw columns; use 'box' or 'max-norm'"
            )
        coefficients = np.asarray(theta, dtype=float) * self.y_max
        constant = 0.0
        if self.intercept:
            coefficients = coefficients / np.sqrt(2)
            constant, coefficients = float(coefficients[0]), coefficients[1:]
        slopes = coefficients / (self.width * self.length)
        return np.append(self.y_center + constant - slopes @ self.center, slopes)


def row_scaling(
    kind: str,
    *,
    bounds: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    sd: ArrayLike | None = None,
    x_max: float | None = None,
    y_max: float = 1.0,
    y_center: float = 0.0,
    clip_sd: float | None = None,
    intercept: bool = False,
) -> RowScaling:
    """Check public numbers and make a scaling of them.

    Parameters
    ----------
    kind : {"box", "row-norm", "row-norm-xy", "max-norm"}
    bounds : (d, 2) array
        For "box": public lower and upper bounds of the columns.
    mean, sd : (d,) arrays
        For the others: public means and standard deviations.
    x_max : float
        For "max-norm": a public bound for the norm of standardised rows.
    y_max, y_center : float
        The response is (y - y_center)/y_max, cut to [-1, 1].
    clip_sd : float, optional
        Cut columns from above at mean + clip_sd * sd; needs mean and sd.
    intercept : bool
        Add a constant column.
    """
    if kind not in SCALINGS:
        raise ArgumentError(f"scaling must be one of {SCALINGS}, got {kind!r}")
    if kind == "box":
        if bounds is None:
            raise ArgumentError("scaling 'box' needs bounds, one (lower, upper) pair per column")
        limits = np.asarray(bounds, dtype=float)
        center, width = limits.mean(axis=1), (limits[:, 1] - limits[:, 0]) / 2
        length = float(np.sqrt(max(len(center), 1)))
    else:
        if mean is None or sd is None:
            raise ArgumentError(f"scaling {kind!r} needs public mean and sd, one per column")
        center, width = np.asarray(mean, dtype=float), np.asarray(sd, dtype=float)
        length = 1.0
        if kind == "max-norm":
            if x_max is None or not x_max > 0:
                raise ArgumentError("scaling 'max-norm' needs x_max, a positive bound for norms")
            length = float(x_max)
    if not (np.isfinite(center).all() and np.isfinite(width).all() and (width > 0).all()):
        raise ArgumentError("scaling needs finite centres and positive widths")
    if not y_max > 0:
        raise ArgumentError("y_max must be positive")
    upper = None
    if clip_sd is not None:
        if mean is None or sd is None:
            raise ArgumentError("clip_sd needs public mean and sd, one per column")
        upper = np.asarray(mean, dtype=float) + clip_sd * np.asarray(sd, dtype=float)
    return RowScaling(
        kind, center, width, length, float(y_center), float(y_max), upper, bool(intercept)
    )


def as_floats(values: ArrayLike, name: str, dimensions: int) -> Array:
    """Return a float array, or raise without a word about what is in it."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be an array of numbers.") from None
    if array.ndim != dimensions:
        raise ArgumentError(f"{name} must have {dimensions} dimensions; it has {array.ndim}.")
    return array


def shorten(rows: Array, response: Array) -> tuple[Array, Array]:
    """Shorten rows of norm above 1 to norm 1, cut responses to [-1, 1], NaN to 0."""
    rows = np.clip(np.nan_to_num(rows), -_FAR, _FAR)
    largest = np.abs(rows).max(axis=1, initial=1.0)
    unit = rows / largest[:, None]
    norms = np.sqrt((unit**2).sum(axis=1))
    long = norms * largest > 1
    rows = np.where(long[:, None], unit / np.where(long, norms, 1.0)[:, None], rows)
    return rows, np.clip(np.nan_to_num(response), -1.0, 1.0)
