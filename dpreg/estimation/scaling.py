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
import pandas as pd
from numpy.typing import ArrayLike

from dpreg.arrays import Floats
from dpreg.cells import number
from dpreg.errors import ArgumentError, shown

SCALINGS: Final = ("box", "row-norm", "row-norm-xy", "max-norm")
"""Names of the scalings."""

_FAR: Final = 1e100
"""Standardised values are cut here, so that no square overflows."""

_WIDEST: Final = 1e150
"""Public numbers may not be larger."""


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
    center: Floats
    width: Floats
    length: float
    y_center: float
    y_max: float
    upper: Floats | None
    intercept: bool

    @property
    def affine(self) -> bool:
        """Whether coefficients can be given in the raw columns' units."""
        return self.kind in ("box", "max-norm")

    def apply(self, x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
        """Scale raw rows, shapes (n, d) and (n,); with an intercept X has d + 1 columns.

        A row with a missing value becomes all zero.
        """
        raw, response = paired(x, y)
        if raw.shape[1:] != self.center.shape:
            raise ArgumentError(
                f"x must have {self.center.size} columns, as the scaling has; it has {raw.shape[1]}"
            )
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
            rows = np.column_stack([np.ones(len(rows)), rows])
        if self.affine:
            rows = rows / np.sqrt(1 + self.intercept)
        else:
            norms = np.sqrt(_squares(rows))
            norms[norms == 0] = 1.0
            rows = rows / norms[:, None]
            if self.kind == "row-norm-xy":
                response = response / norms
        rows, response = shorten(rows, response)
        return np.where(complete[:, None], rows, 0.0), np.where(complete, response, 0.0)

    def unstandardise(self, theta: ArrayLike) -> Floats:
        """Return coefficients for the raw columns and response, the intercept first.

        With y = y_center + y_max (theta_0 + sum theta_j (x_j - center_j)/(width_j length)); a
        model without an intercept column gets the constant that the centring implies.
        """
        if not self.affine:
            raise ArgumentError(
                f"scaling {self.kind!r} divides each row by its own norm: its coefficients have no "
                "counterpart for raw columns; use 'box' or 'max-norm'"
            )
        coefficients = _public(theta, "theta", 1) * self.y_max
        if coefficients.size != self.center.size + self.intercept:
            raise ArgumentError(
                f"theta must hold {self.center.size + self.intercept} coefficients; it holds "
                f"{coefficients.size}"
            )
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
        raise ArgumentError(f"scaling must be one of {SCALINGS}, got {shown(kind)}")
    if not isinstance(intercept, bool | np.bool_):
        raise ArgumentError("intercept must be True or False")
    moments: tuple[Floats, ...] = ()
    if kind != "box" or clip_sd is not None:
        moments = _public(mean, "mean", 1), _public(sd, "sd", 1)
    far = 0.0 if clip_sd is None else _public(clip_sd, "clip_sd", 0)
    length = 1.0
    if kind == "box":
        limits = _public(bounds, "bounds", 2)
        if limits.shape[1:] != (2,):
            raise ArgumentError("bounds must hold one (lower, upper) pair per column")
        center, width = limits.mean(axis=1), (limits[:, 1] - limits[:, 0]) / 2
        length = float(np.sqrt(max(len(center), 1)))
    else:
        center, width = moments
        if kind == "max-norm":
            length = float(_public(x_max, "x_max", 0))
    middle, largest = float(_public(y_center, "y_center", 0)), float(_public(y_max, "y_max", 0))
    if any(one.shape != center.shape for one in (width, *moments)):
        raise ArgumentError("mean and sd must hold as many numbers as there are columns")
    if not ((width > 0).all() and length > 0 and largest > 0):
        raise ArgumentError("widths, sd, x_max and y_max must be above 0")
    upper = None if clip_sd is None else moments[0] + far * moments[1]
    return RowScaling(kind, center, width, length, middle, largest, upper, bool(intercept))


_EACH: Final = ("a number", "one number per column", "one (lower, upper) pair per column")


def _public(values: ArrayLike | None, name: str, dimensions: int) -> Floats:
    """Return public numbers as an array."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.full((0,) * 3, np.nan)
    if array.ndim != dimensions or not (np.abs(array) <= _WIDEST).all():
        raise ArgumentError(
            f"this scaling needs {name}: {_EACH[dimensions]}, at most {_WIDEST:g} in size"
        )
    return array


def paired(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Return rows and responses as float arrays; see `as_floats`."""
    rows, response = as_floats(x, "x", 2), as_floats(y, "y", 1)
    if response.shape != rows.shape[:1]:
        raise ArgumentError("x and y must have as many rows")
    return rows, response


def as_floats(values: ArrayLike, name: str, dimensions: int) -> Floats:
    """Return a float array; whether it raises depends on shape and dtype, never on a cell.

    Cells of arrays whose dtype is not numeric are read one by one (`dpreg.cells`): a cell that is
    not a number is missing.
    """
    if isinstance(values, pd.DataFrame | pd.Series):
        array = values.to_numpy()
    elif isinstance(values, np.ndarray):
        array = values
    else:
        try:  # as objects: the dtype that numpy would give a list follows from its cells
            array = np.array(values, dtype=object)
        except ValueError:
            raise ArgumentError(f"{name} must have rows of one length.") from None
    if array.ndim != dimensions:
        raise ArgumentError(f"{name} must have {dimensions} dimensions; it has {array.ndim}.")
    if array.dtype.kind in "biuf":
        with np.errstate(all="ignore"):
            return array.astype(np.float64)
    if array.dtype.kind not in "OUTc":
        raise ArgumentError(f"{name} must be an array of numbers; its dtype is {array.dtype}.")
    cells = [number(cell) for cell in array.ravel().tolist()]
    return np.array(cells, dtype=np.float64).reshape(array.shape)


def _squares(rows: Floats) -> Floats:
    """Return the sum of each row's squares, column by column.

    NumPy's own sum adds in an order that depends on the array's shape and layout: the last bit of
    a row's sum could depend on the rows around it.
    """
    total = np.zeros(len(rows))
    for column in rows.T:
        total += column * column
    return total


def shorten(rows: Floats, response: Floats) -> tuple[Floats, Floats]:
    """Shorten rows of norm above 1 to norm 1, cut responses to [-1, 1], NaN to 0."""
    rows = np.clip(np.nan_to_num(rows), -_FAR, _FAR)
    largest = np.abs(rows).max(axis=1, initial=1.0)
    unit = rows / largest[:, None]
    norms = np.sqrt(_squares(unit))
    long = norms * largest > 1
    rows = np.where(long[:, None], unit / np.where(long, norms, 1.0)[:, None], rows)
    return rows, np.clip(np.nan_to_num(response), -1.0, 1.0)
