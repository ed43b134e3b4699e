"""Linear algebra on released numbers, which may be anything that noise makes of them.

Nothing here raises for any float64 array: what is not finite is replaced by large numbers, and
what has no inverse gets one of its eigenvalues that stand above rounding.

Affine functions of stored rows, on grids on which they are exact.

Statement. Let cells be integers in [-2**20, 2**20], the grid of `dpreg.moments`. Every value of a
`Form` is a whole multiple of a power of two, and any sum of any of its terms, in any order and any
grouping, is exact in float64.

Proof. A `Form` holds integers k_0, .., k_q with sum |k_j| <= 2**33, in units of 2**-shift; its
value at a row is 2**-(shift + 20) sum k_j c_j, where the c_j are the row's cells and c_0 = 2**20
stands for 1. Each product is an integer of at most 2**20 |k_j|, and any partial sum is an integer
of at most 2**20 sum |k_j| <= 2**53. A float64 holds all of those, so no operation rounds, fused
or not. The power of two is exact as well. QED

Where a look is taken: public coordinates, and the fit that residuals are measured from.

With columns x on the unit scale, a point has a centre m, a whitening L, slopes b and a middle a:

    u = L (x - m),    v = (1, u),    eta = a + b'(x - m) (+ an offset).

A look taken there tells of theta, beta = t0 + T theta, beta the coefficients of (1, x):

    t0 = (a - b'm, b),    T = wbar^(-1/2) [1, -m'L'; 0, L'],

wbar the mean weight of rows, a public number. Everything in a point is public: post-processing of
what earlier looks released.

A point as rows are really written there, and how far they may reach: on grids, once and for all.

Rounding costs no accuracy, only the choice of slightly other coordinates: from here on the rounded
numbers are the map, and `Place.point` takes coefficients back with the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError
from dpreg.looks.families import Family

_LARGEST: Final = 1e100  # precision: products of a few such numbers stay in float64
_ROUNDING: Final = 1e-14  # precision


def held(number: float, least: float = 1 / _LARGEST) -> float:
    """Return a number between `least` and 1e100; NaN counts as the least."""
    return min(max(number, least), _LARGEST) if number == number else least


def _finite(matrix: Floats) -> Floats:
    if np.abs(matrix).max(initial=0.0) <= _LARGEST:  # not where any is NaN
        return matrix
    return np.clip(np.nan_to_num(matrix, posinf=_LARGEST, neginf=-_LARGEST), -_LARGEST, _LARGEST)


def eigen(matrix: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues, ascending, and eigenvectors of a symmetric matrix."""
    finite = _finite(matrix)
    values, vectors = np.linalg.eigh((finite + finite.T) / 2)
    return np.asarray(values, dtype=np.float64), np.asarray(vectors, dtype=np.float64)


def inverse(matrix: Floats) -> Floats:
    """Return the inverse of a positive semidefinite matrix, by its correlations."""
    finite = _finite(matrix)
    scale = np.sqrt(np.maximum(np.diag(finite), 1 / _LARGEST))
    both = np.outer(scale, scale)
    values, vectors = eigen(finite / both)
    floor = _ROUNDING * max(float(values[-1]), 1.0) if len(values) else 1.0
    return np.asarray((vectors / np.maximum(values, floor)) @ vectors.T / both, dtype=np.float64)


def pseudo(matrix: Floats) -> Floats:
    """Return the pseudo-inverse of a matrix."""
    return np.asarray(np.linalg.pinv(_finite(matrix)), dtype=np.float64)


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


def written(forms: Sequence[Form]) -> tuple[Floats, Floats]:
    """Return L, (p, p), and -L m, (p,), as rounded."""
    both = [form.floats for form in forms]
    L = np.array([slopes for _, slopes in both], dtype=np.float64).reshape(len(forms), len(forms))
    return L, np.array([constant for constant, _ in both], dtype=np.float64)


def moved_rows(whitening: Floats, offset: Floats) -> Floats:
    """Return the (p + 1, p + 1) matrix that takes (1, x) to (1, u), u = L x + offset."""
    matrix = np.eye(len(offset) + 1)
    matrix[1:, 1:], matrix[1:, 0] = whitening, offset
    return matrix


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """See the module.

    Attributes
    ----------
    centre : (p,) array
    whitening : (p, p) array
    slopes : (p,) array
    middle : float
    weight : float
        wbar.
    dispersion : float
        phi: the mean square of a score a direction, per row.
    spread : (p,) array
        Expected variance of each u.
    sure : (p,) array
        What of it stands above the noise of the look that told it.
    offset : (p,) array or None
        -L m as rounded, once it is.
    least : (p,) array or None
        What the look on the unit scale surely showed of each column's variance.
    """

    centre: Floats
    whitening: Floats
    slopes: Floats
    middle: float
    weight: float
    dispersion: float
    spread: Floats
    sure: Floats
    offset: Floats | None = None
    least: Floats | None = None

    def __post_init__(self) -> None:
        """Keep it finite, whatever was released."""
        put = partial(object.__setattr__, self)
        for name in ("centre", "whitening", "slopes", "spread", "sure"):
            put(name, np.nan_to_num(getattr(self, name), posinf=1e100, neginf=-1e100))
        put("middle", float(np.nan_to_num(self.middle, posinf=1e100, neginf=-1e100)))
        put("weight", held(self.weight))
        put("dispersion", held(self.dispersion, 1e-60))

    @property
    def size(self) -> int:
        """d: the constant and the p columns."""
        return len(self.centre) + 1

    @property
    def shift(self) -> Floats:
        """t0, (d,)."""
        return np.append(self.middle - self.slopes @ self.centre, self.slopes)

    @property
    def transform(self) -> Floats:
        """T, (d, d)."""
        return np.asarray(np.ascontiguousarray(self.rows.T) / np.sqrt(self.weight))

    @property
    def moved(self) -> Floats:
        """-L m, (p,)."""
        if self.offset is not None:
            return self.offset
        return np.asarray(-self.whitening @ self.centre, dtype=np.float64)

    @property
    def rows(self) -> Floats:
        """The (d, d) matrix that takes (1, x) to (1, u)."""
        return moved_rows(self.whitening, self.moved)

    def ahead(self, step: Floats) -> Point:
        """Return the point whose predictor has a step, (d,), in (1, u) added to it."""
        slopes = self.slopes + self.whitening.T @ step[1:]
        return replace(self, slopes=slopes, middle=self.middle + float(step[0]))

    @property
    def variance(self) -> float:
        """Expected variance of the predictor."""
        along = pseudo(self.whitening.T) @ self.slopes
        return held(float((along**2 * self.spread).sum()))


_LEAST: Final = 1e-100
"""Far beyond what looks meet; between it and its inverse nothing of a row leaves float64."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows are written, all of it public; make it with `place_of`.

    Attributes
    ----------
    family : Family
    forms : tuple of Form
        u_1 .. u_p, as functions of the p columns.
    predictor : Form
        eta, as a function of the p columns and the offset columns after them.
    weight : float
        wbar.
    information, score : float
        A and S of a fitting look, R and tau of a locating one.
    together : bool
        Whether one weight limits both: a locating look.
    times : int
        m, how many times as long as its inner part the outer part of a score may be.
    bend : float or None
        Where the inner part of a score is that of the losses of a minimum: the most that their
        slopes may grow with the predictor (`dpreg.looks.families`).
    """

    family: Family
    forms: tuple[Form, ...]
    predictor: Form
    weight: float
    information: float
    score: float
    together: bool
    times: int = 1
    bend: float | None = None

    def __post_init__(self) -> None:
        """Refuse limits that limit nothing: rows count on them."""
        if not all(
            _LEAST <= of <= 1 / _LEAST
            for of in (self.weight, self.information, self.score, self.bend or 1.0)
        ):
            raise ArgumentError("a place's weight and limits must lie between 1e-100 and 1e100")


def place_of(
    point: Point,
    family: Family,
    *,
    known: tuple[float, ...] = (),
    information: float,
    score: float,
    together: bool = False,
    times: int = 1,
    bend: float | None = None,
) -> tuple[Place, Point]:
    """Round a point to grids; return the place, and the point as rounded.

    Parameters
    ----------
    point : Point
    family : Family
    known : tuple of float
        Slopes of the offset columns.
    information, score, together, times, bend
        As in `Place`.
    """
    forms = whitened_forms(point.whitening, -point.whitening @ point.centre)
    slopes = np.append(point.slopes, known)
    constant = point.middle - float(point.slopes @ point.centre)
    shrink = min(1.0, LARGEST_REACH / max(1.0, abs(constant) + float(np.abs(slopes).sum())))
    predictor = Form.nearest(constant * shrink, (slopes * shrink).tolist())
    whitening, offset = written(forms)
    centre = point.centre
    if forms:
        centre = -pseudo(whitening) @ offset
    b0, b = predictor.floats
    b = b[: len(forms)]
    rounded = replace(
        point,
        whitening=whitening,
        offset=offset,
        centre=centre,
        slopes=b,
        middle=b0 + float(b @ centre),
    )
    limits = information, score, together, times, bend
    return Place(family, forms, predictor, point.weight, *limits), rounded
