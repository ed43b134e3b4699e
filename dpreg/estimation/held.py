r"""Rows at a location, held in memory, and the released minimum of losses of theirs.

A complete row of gridded cells becomes (1, u) and e (`dpreg.estimation.location`). With
lengths l = |(1, u)| it has, in units of tau, the loss

    w h(e - (1, u)'t),    w = min(1, R^2 / l^2),    h' = clip(., -k, k),    k = S / (w l),

the loss of Huber. It is stored as w k^2 times that of (1, u)/k and e/k, whose slope is cut at one.

Statement. The minimum of the sum of these losses, perturbed as `dpreg.privacy.objective` says for
G R = S and c = R^2, is eps-DP, whatever was released before.

Proof. Given what was released before, L, m, b, tau, R and S are fixed, and t0 = 0. A row's loss
then follows from the row alone: u and e are exact in any order (`dpreg.estimation.location`), l is
summed column by column, and all else is done cell by cell. It is convex and once differentiable in
t, with the gradient -w h' (1, u), whose length is at most w k l = S, and wherever it has a second
derivative that is w (1, u)(1, u)' or 0, of rank one and norm at most w l^2 <= R^2; that holds for
the stored floats up to their roundings, which `dpreg.privacy.objective` leaves room for. A missing
row has no loss. So the assumptions there hold. QED
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from flint import arb

from dpreg.arrays import Floats
from dpreg.estimation.location import Location
from dpreg.estimation.objective import HeldRows, Objective, minimum
from dpreg.grouped import CELL_BITS, Vectors, to_grid, whole_rows
from dpreg.looks.rows import PIECE, applied
from dpreg.privacy.objective import objective_noise
from dpreg.sources import LocalSource
from dpreg.sources.reader import Reader

if TYPE_CHECKING:
    from dpreg.privacy.account import Part

__all__ = ["Huber", "LocatedHeld", "can_hold", "hold_located", "released_minimum"]


@dataclass(frozen=True, slots=True)
class Huber:
    """h of residuals in units of their cut: the slope stays within [-1, 1]."""

    @property
    def bend(self) -> float:
        """Bound on h''."""
        return 1.0

    @property
    def cut(self) -> bool:
        """It is."""
        return True

    def derivatives(self, eta: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return the first two derivatives by the predictor."""
        gap = eta - y
        return np.clip(gap, -1.0, 1.0), (np.abs(gap) < 1.0).astype(np.float64)

    def ball(self, eta: arb, y: float) -> arb:
        """Return the first as a ball that holds it."""
        return (eta - y).min(arb(1)).max(arb(-1))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LocatedHeld:
    """Rows with their losses: never shown.

    Parameters
    ----------
    rows : HeldRows
        (1, u)/k and e/k.
    weights : (n,) array
        w k^2.
    location : Location
    limit : float
        S, in units of tau.
    """

    rows: HeldRows
    weights: Floats
    location: Location
    limit: float


def can_hold(reader: Reader) -> bool:
    """Return whether this process reads the table's rows itself, all of them."""
    return isinstance(reader.source, LocalSource) and reader.persons is None


def hold_located(reader: Reader, design: Vectors, location: Location, limit: float) -> LocatedHeld:
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
    matrix, stored = np.array([*forms, response]), whole_rows(design)
    blocks = [np.zeros((len(places) + 1, 0))]
    for chunk in reader.chunks(design.types, "rows"):
        made = stored(chunk)
        cells = to_grid(made, out=made).T
        cells = cells[:, cells[0] == 2.0**CELL_BITS]
        block = np.empty((len(matrix), cells.shape[1]))
        for start in range(0, cells.shape[1], PIECE):
            piece = slice(start, start + PIECE)
            applied(matrix, np.ascontiguousarray(cells[:, piece]), block[:, piece])
        block[-1] /= location.tau
        blocks.append(block)
    return weighted(np.concatenate(blocks, axis=1), location, limit)


def weighted(located: Floats, location: Location, limit: float) -> LocatedHeld:
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
    rows = HeldRows(x, e / cut, np.zeros(len(e)))
    return LocatedHeld(rows, weight * cut * cut, location, limit)


def released_minimum(
    held: LocatedHeld, part: Part, rows: float, least: float = 0.0
) -> tuple[Floats, float, float]:
    """Release the minimum.

    Parameters
    ----------
    held : LocatedHeld
    part : Part
        Of what is left of eps.
    rows : float
        Their number, public or released.
    least : float, optional
        D is at least this many times R^2. The proof asks for a least D alone.

    Returns
    -------
    (t, D, scale)
        The minimum in units of tau, the penalty, and the scale of b in units of tau.
    """
    size, radius = held.rows.x.shape[1], held.location.radius
    noise = objective_noise(
        size,
        held.limit / radius,
        1.0,
        radius**2,
        max(round(rows), 1),
        part.cost.eps,
        part.protection,
    )
    noise = replace(noise, penalty=max(noise.penalty, Fraction(least * radius**2)))
    b, second = noise.opened(part)
    origin = np.zeros(size)
    made = Objective(held.rows, Huber(), radius**2, noise.penalty, origin, b, held.weights)
    found = minimum(made, noise.tolerance, noise.slack, noise.places)
    told = np.array([float(cell) for cell in noise.released(found, second)])
    return told, float(noise.penalty), noise.scale / 2.0**noise.bits
