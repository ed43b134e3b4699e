"""Rows at a location, held in memory, and the released minimum of losses of theirs.

A complete row of gridded cells becomes (1, u) and e (`dpreg.estimation.few`). With
lengths l = |(1, u)| it has, in units of tau, the loss

    w h(e - (1, u)'t),    w = min(1, R^2 / l^2),    h' = clip(., -k, k),    k = S / (w l),

the loss of Huber. It is stored as w k^2 times that of (1, u)/k and e/k, whose slope is cut at one.

Statement. The minimum of the sum of these losses, perturbed as `dpreg.privacy.noise` says for
G R = S and c = R^2, is eps-DP, whatever was released before.

Proof. Given what was released before, L, m, b, tau, R and S are fixed, and t0 = 0. A row's loss
then follows from the row alone: u and e are exact in any order (`dpreg.estimation.few`), l is
summed column by column, and all else is done cell by cell. It is convex and once differentiable in
t, with the gradient -w h' (1, u), whose length is at most w k l = S, and wherever it has a second
derivative that is w (1, u)(1, u)' or 0, of rank one and norm at most w l^2 <= R^2; that holds for
the stored floats up to their roundings, which `dpreg.privacy.noise` leaves room for. A missing
row has no loss. So the assumptions there hold. QED

The public coordinates of a look at the rows: centred, whitened, the response a residual.

A `Location` turns the stored row (x, y), cells in [-1, 1], into

    u = L (x - m),    e = y - b0 - b'x,

and says how far a row may reach: the radius R for |(1, u)|, tau for |e|. It is computed from
released numbers alone, and then rounded **once**, to grids of powers of two, so that the rows'
arithmetic is exact: from there on the rounded numbers are the map, and `matrix` and `shift` take
coefficients back with the same rounded numbers. Rounding therefore costs no accuracy, only the
choice of slightly other coordinates.

Sums of any of a coordinate's terms are exact in float64: `dpreg.looks.coordinates` proves it of a
`Form` at gridded cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpreg.arrays import CELL_BITS, Floats
from dpreg.grouped import Vectors
from dpreg.looks import coordinates
from dpreg.looks.coordinates import Form
from dpreg.looks.minimum import Objective
from dpreg.looks.rows import PIECE, applied
from dpreg.sources.reader import Reader

LARGEST_RADIUS: Final = 2.0**10
"""Cap on R."""

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
        Unit of residuals.
    radius : float
        R.
    """

    forms: tuple[Form, ...]
    response: Form
    tau: float
    radius: float

    @classmethod
    def on_grid(
        cls,
        *,
        whitening: Floats,
        offset: Floats,
        slopes: Floats,
        intercept: float,
        tau: float,
        radius: float,
    ) -> Location:
        """Round coordinates to grids on which rows are computed exactly.

        Parameters
        ----------
        whitening : (p, p) array
            L; rows longer than `LARGEST_REACH` in the sum of absolute values are scaled down.
        offset : (p,) array
            -L m; a centre m outside the box is moved to its edge.
        slopes : (p,) array
            b; scaled down with the intercept where both together exceed `LARGEST_REACH`.
        intercept : float
            b_0.
        tau : float
            Brought between `LEAST_TAU` and the largest residual within bounds: a larger one would
            open nothing.
        radius : float
            Brought between 1 and the lesser of `LARGEST_RADIUS` and the largest |(1, u)| within
            bounds, then rounded down (by a part in 2**10 at most).
        """
        forms = coordinates.whitened_forms(whitening, offset)
        shrink = min(
            1.0, coordinates.LARGEST_REACH / max(1.0, abs(intercept) + float(np.abs(slopes).sum()))
        )
        response = Form.nearest(-intercept * shrink, [*(-slopes * shrink).tolist(), 1.0])
        largest = math.hypot(1.0, *(form.reach for form in forms))
        wanted = min(max(radius, 1.0), LARGEST_RADIUS, max(1.0, largest))
        whole = 2.0**CELL_BITS
        return cls(
            forms,
            response,
            tau=min(max(tau, LEAST_TAU), response.reach),
            radius=whole / math.ceil(whole / wanted),
        )

    @property
    def whitening(self) -> Floats:
        """L as rounded, (p, p)."""
        return coordinates.written(self.forms)[0]

    @property
    def offset(self) -> Floats:
        """-L m as rounded, (p,)."""
        return coordinates.written(self.forms)[1]

    def carried(self, theta: Floats) -> Floats:
        """Return coefficients of y on (1, x), (p + 1,), from those of e/tau on (1, u)."""
        constant, slopes = self.response.floats
        start = -np.append(constant, slopes[:-1])
        back = coordinates.moved_rows(*coordinates.written(self.forms)).T
        return np.asarray(start + self.tau * np.ascontiguousarray(back) @ theta)


def hold_located(reader: Reader, design: Vectors, location: Location, limit: float) -> Objective:
    """Read the complete rows once.

    Parameters
    ----------
    reader : Reader
        Of a `LocalSource`.
    design : Vectors
        Makes (1, x, y).
    location : Location
    limit : float
        S, in units of tau.
    """
    places = tuple(range(1, design.size - 1))
    forms = [form.on_cells(places, design.size) for form in location.forms]
    response = location.response.on_cells((*places, design.size - 1), design.size)
    matrix = np.array([*forms, response])
    blocks = [np.zeros((len(places) + 1, 0))]
    for chunk in reader.chunks(design.types, "rows"):
        cells = design.cells(chunk).T
        cells = cells[:, cells[0] == 2.0**CELL_BITS]
        block = np.empty((len(matrix), cells.shape[1]))
        for start in range(0, cells.shape[1], PIECE):
            piece = slice(start, start + PIECE)
            applied(matrix, np.ascontiguousarray(cells[:, piece]), block[:, piece])
        block[-1] /= location.tau
        blocks.append(block)
    return weighted(np.concatenate(blocks, axis=1), location, limit)


def weighted(located: Floats, location: Location, limit: float) -> Objective:
    """Return the losses of rows (u, e/tau), given as columns, in the module's form."""
    u, e = located[:-1], located[-1]
    square = np.ones(len(e))
    for coordinate in u:
        square += coordinate * coordinate
    weight = np.minimum(1.0, location.radius**2 / square)
    cut = limit / (weight * np.sqrt(square))
    x = np.empty((len(e), len(u) + 1))
    x[:, 0] = 1 / cut
    for place, coordinate in enumerate(u, 1):
        x[:, place] = coordinate / cut
    return Objective(x, e / cut, weight * cut * cut, location.radius, limit)
