"""A point as rows are really written there, and how far they may reach: on grids, once and for all.

Rounding costs no accuracy, only the choice of slightly other coordinates: from here on the rounded
numbers are the map, and `Place.point` takes coefficients back with the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpreg.errors import ArgumentError
from dpreg.looks.families import Family
from dpreg.looks.grid import LARGEST_REACH, Form, offset_of, whitened_forms, whitening_of
from dpreg.looks.point import Point
from dpreg.looks.solve import pseudo

__all__ = ["Place", "place_of"]

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
    """

    family: Family
    forms: tuple[Form, ...]
    predictor: Form
    weight: float
    information: float
    score: float
    together: bool

    def __post_init__(self) -> None:
        """Refuse limits that limit nothing: rows count on them."""
        if not all(
            _LEAST <= of <= 1 / _LEAST for of in (self.weight, self.information, self.score)
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
) -> tuple[Place, Point]:
    """Round a point to grids; return the place, and the point as rounded.

    Parameters
    ----------
    point : Point
    family : Family
    known : tuple of float
        Slopes of the offset columns.
    information, score, together
        As in `Place`.
    """
    forms = whitened_forms(point.whitening, -point.whitening @ point.centre)
    slopes = np.append(point.slopes, known)
    constant = point.middle - float(point.slopes @ point.centre)
    shrink = min(1.0, LARGEST_REACH / max(1.0, abs(constant) + float(np.abs(slopes).sum())))
    predictor = Form.nearest(constant * shrink, (slopes * shrink).tolist())
    whitening, offset = whitening_of(forms), offset_of(forms)
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
    return Place(family, forms, predictor, point.weight, information, score, together), rounded
