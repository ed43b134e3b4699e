"""Rows in the coordinates of a look: the only file of this room that sees any.

A complete row (1, x, y) of cells in units of 2**-20 becomes, with u and e of its `Location`,

    z = (c / R, c u / R, clip(c e / tau, -1, 1)),    c = min(1, R / |(1, u)|),

again in units of 2**-20. Where a second, wider cut tau' is asked for, two places follow:
clip(c e / tau', -1, 1) and (|c (1, u)| / R) |clip(c e / tau, -1, 1)|. Or four, with
f = clip(e / tau', -1, 1) and c' = min(1, 1.5 c),

    max(c f, 0),    max(-c f, 0),    (1 - c^2)^(1/2) |f|,    (1 - c'^2)^(1/2).

With a *stretch* F > 1 the third place is the residual in units of F tau, and may reach farther in
rows that lie near, clip(c e / (F tau), -g, g) with g = min(1, R / (F |c (1, u)|)); the place of
residuals times lengths then takes F times its absolute value. With the *power* -1/2 this place and
that of the wider cut have c^(-1/2) e for c e: a row that is shortened counts c^(1/2) in the
equations, for c^2, and its residual is cut the sooner.

A row with a missing or undeclared cell becomes 0, as in the design.

Statement. For every table, chunk, order of rows, engine, number of threads and BLAS:

1. a row's z depends on that row and on public facts alone, bit for bit;
2. its integers k of (c/R, c u/R) satisfy sum k_i**2 <= 2**40, and so do the first three of the
   four places; all that follow (c/R, c u/R) are at most 2**20;
3. with a stretch, the residual's integer k_e satisfies F |k_e| (sum k_i**2)^(1/2) <= 2**40.

Proof. 1. u and e come from one product with a matrix of whole multiples of powers of two, which
`dpreg.staged.location` proves exact in any order. All else is done to each row cell by cell by
single operations that IEEE 754 rounds correctly (products, quotients, square roots) or that are
exact (minimum, truncation); the sum of squares in |(1, u)| is taken column by column, in the order
of the columns, each addition a step of its own. c^(-1/2) e is three such steps: a quotient, its
square root and another quotient. No exponential or logarithm, no sum along a block, nothing whose
rounding may depend on the place in memory.
2. By construction: squares of integers of at most 2**20 are added exactly, and while a row's sum
exceeds 2**40, the largest of its integers moves towards zero by one. Rounding in u, c or their
product can therefore never break the bound; it only makes one more step.
3. m, the root of sum k_i**2 rounded up, is exact: the sum is an integer of at most 2**40, and where
it exceeds k**2 its root exceeds k by 2**-22, which a float64 near 2**20 shows. |k_e| is cut at an
integer g with g m <= 2**40 / F, a product of integers below 2**53 that is compared exactly. What
the residual was multiplied by before does not matter. QED

The sum is checked after truncation towards zero, so hardly any row needs a step. Both parts hold
for every row there can be, and nothing here raises, warns or branches on a value that a caller
could see.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.columns import ColumnType
from dpreg.errors import ArgumentError
from dpreg.grouped.vectors import whole_rows
from dpreg.moments import CELL_BITS, Vectors, to_grid
from dpreg.sources import Chunk
from dpreg.staged.location import Location
from dpreg.staged.released import FAR_POWER
from dpreg.staged.tails import FURTHER

__all__ = ["PIECE", "LocatedRows", "applied", "hold_norm"]

_ONE: Final = 2.0**CELL_BITS
_SQUARED_NORM: Final = _ONE * _ONE
PIECE: Final = 8192
"""Rows worked on together, so that what is computed from them stays in memory that is near."""
_ALONE: Final = 1 << 18
"""Multiplications of a product up to which OpenBLAS leaves it to the thread that asks for it."""
_LEAST_STEP: Final = 64
LARGEST_STRETCH: Final = 16.0


@dataclass(frozen=True, slots=True, repr=False)
class LocatedRows:
    """A design's rows at a location; see the module. Public facts alone, like the design.

    Parameters
    ----------
    design : Vectors
        Makes (1, x, y), its first cell 1 in complete rows and 0 in others; a `Design`.
    location : Location
    columns : sequence of int, optional
        Indices of the stored columns that the location speaks of, from 1; None takes all.
    wide : float, optional
        tau', at least tau: adds a place for residuals that are cut there, and one for residuals
        times the length of their columns.
    outer : bool
        Whether the four places of an earlier look are made instead.
    stretch : float
        F, from 1; 1 cuts all residuals at tau.
    power : float
        Of the weight that residuals are multiplied by: 1 or -1/2.
    """

    design: Vectors
    location: Location
    columns: tuple[int, ...]
    wide: float | None
    outer: bool
    stretch: float
    power: float
    _stored: Callable[[Chunk], Floats] = field(repr=False, compare=False)
    _forms: Floats = field(repr=False, compare=False)

    def __init__(
        self,
        design: Vectors,
        location: Location,
        columns: Sequence[int] | None = None,
        wide: float | None = None,
        outer: bool = False,
        stretch: float = 1.0,
        power: float = 1.0,
    ) -> None:
        """See the class."""
        chosen = tuple(range(1, design.size - 1)) if columns is None else tuple(columns)
        if len(set(chosen)) < len(chosen) or not all(0 < j < design.size - 1 for j in chosen):
            raise ArgumentError(f"columns must be different indices from 1 to {design.size - 2}")
        if location.size != len(chosen):
            raise ArgumentError(
                f"the location speaks of {location.size} columns, and {len(chosen)} are given"
            )
        if not 1 <= stretch <= LARGEST_STRETCH:
            raise ArgumentError(f"the stretch must be from 1 to {LARGEST_STRETCH:g}")
        if power not in (1.0, FAR_POWER):
            raise ArgumentError(f"the power must be 1 or {FAR_POWER:g}")
        if wide is not None and not wide >= location.tau:
            raise ArgumentError("the wider cut must be at least the location's tau")
        object.__setattr__(self, "stretch", float(stretch))
        object.__setattr__(self, "power", float(power))
        object.__setattr__(self, "wide", wide)
        object.__setattr__(self, "outer", outer)
        object.__setattr__(self, "design", design)
        object.__setattr__(self, "location", location)
        object.__setattr__(self, "columns", chosen)
        object.__setattr__(self, "_stored", whole_rows(design))
        object.__setattr__(self, "_forms", _matrix(location, chosen, design.size))

    @property
    def types(self) -> Mapping[str, ColumnType]:
        """What is read, and how."""
        return self.design.types

    @property
    def size(self) -> int:
        """D: the weight, the located columns, the response, and the places of a wider cut."""
        return len(self.columns) + 2 + (4 if self.outer else 2) * (self.wide is not None)

    def __repr__(self) -> str:
        """Show public facts only."""
        return f"<LocatedRows: {len(self.columns)} columns, R={self.location.radius:g}>"

    def __reduce__(self) -> tuple[type[LocatedRows], tuple[object, ...]]:
        """Keep the arguments only: what they make can be made again."""
        given = self.design, self.location, self.columns, self.wide, self.outer
        return LocatedRows, (*given, self.stretch, self.power)

    def block(self, chunk: Chunk) -> Floats:
        """Make located rows, (rows, D) in units of 1, each from its own row alone."""
        return self.cells(chunk) / _ONE

    def cells(self, chunk: Chunk) -> Floats:
        """Make the same rows in whole units of 2**-20, as `to_grid` would make of them."""
        rows = self._stored(chunk)
        cells = to_grid(rows, out=rows).T
        out = np.empty((self.size, len(rows)))
        for start in range(0, len(rows), PIECE):
            piece = slice(start, start + PIECE)
            located = out[:, piece]
            _locate(cells[:, piece], self._forms, self, located)
        return out.T


def _matrix(location: Location, columns: tuple[int, ...], size: int) -> Floats:
    """Return the (p + 1, D) matrix that takes gridded cells to (u, e), in units of 1."""
    forms = [form.on_cells(columns, size) for form in location.forms]
    response = location.response.on_cells((*columns, size - 1), size)
    return np.array([*forms, response])


def _locate(
    cells: Floats,
    forms: Floats,
    rows: LocatedRows,
    out: Floats,
) -> None:
    """Write the located rows of gridded cells (D, rows) to `out`, (places, rows)."""
    places, location, wide, outer = len(forms) + 1, rows.location, rows.wide, rows.outer
    applied(forms, cells, out[1:places])
    weight, u, e = out[0], out[1 : places - 1], out[places - 1]
    norm, square = np.ones(len(e)), np.empty(len(e))
    for coordinate in u:
        np.multiply(coordinate, coordinate, out=square)
        np.add(norm, square, out=norm)
    np.sqrt(norm, out=norm)
    length = norm.copy() if wide is not None and not outer else norm
    np.divide(_ONE, norm, out=norm)
    np.minimum(norm, location.radius_units, out=norm)  # c / R in units of 2**-20
    np.multiply(u, norm, out=u)
    np.trunc(norm, out=weight)
    np.trunc(u, out=u)
    squares = hold_norm(out[: places - 1])
    if wide is not None and outer:
        _cut(e, _ONE / wide, out[places])
        _spread(norm / location.radius_units, out[places:])
    full = float(location.radius_units)
    if rows.power == 1:
        np.multiply(e, norm, out=e)
    else:
        np.divide(e, np.sqrt(norm / full), out=e)
        full = 1.0
    if wide is not None and not outer:
        _cut(e, _ONE / (wide * full), out[places])
    most = _reach(squares, rows.stretch) if rows.stretch > 1 else _ONE
    _cut(e, _ONE / (rows.stretch * location.tau * full), e, most)
    if wide is not None and not outer:
        np.multiply(length, norm, out=length)  # |c (1, u)| / R in units of 2**-20
        np.multiply(np.abs(e), length * (rows.stretch / _ONE), out=out[places + 1])
        np.minimum(np.trunc(out[places + 1]), _ONE, out=out[places + 1])
    out[:, cells[0] == 0.0] = 0.0


def applied(forms: Floats, cells: Floats, out: Floats) -> None:
    """Write `forms` @ `cells` to `out`, a few rows of the table at a time.

    BLAS shares larger products among threads of its own. Rows are read by several threads anyway,
    and on a busy machine those that wait for each other take many times as long.
    """
    step = max(_LEAST_STEP, _ALONE // forms.size)
    for start in range(0, cells.shape[1], step):
        some = slice(start, start + step)
        np.matmul(forms, cells[:, some], out=out[:, some])


def _cut(residual: Floats, units: float, out: Floats, most: Floats | float = _ONE) -> None:
    """Write a weighted residual to `out`, clipped at whole `most`, in whole units of 2**-20."""
    np.multiply(residual, units, out=out)
    np.clip(out, -most, most, out=out)
    np.rint(out, out=out)


def _reach(squares: Floats, stretch: float) -> Floats:
    """Return the largest |k_e| of each row, whole numbers, where its columns have `squares`."""
    size = np.maximum(np.ceil(np.sqrt(squares)), 1.0)
    limit = math.floor(Fraction(1 << 2 * CELL_BITS) / Fraction(stretch))
    most = np.floor(limit / size)
    most -= most * size > limit  # a guard, should a quotient be rounded up
    return np.asarray(np.minimum(most, _ONE), dtype=np.float64)


def _spread(weight: Floats, out: Floats) -> None:
    """Turn cut residuals f in the first of four places into all four, in whole units."""
    above, below, taken, far = out
    np.multiply(np.abs(above), np.sqrt(1 - weight * weight), out=taken)
    np.multiply(above, weight, out=above)
    np.maximum(-above, 0.0, out=below)
    np.maximum(above, 0.0, out=above)
    further = np.minimum(FURTHER * weight, 1.0)
    np.multiply(np.sqrt(1 - further * further), _ONE, out=far)
    np.trunc(out, out=out)
    np.minimum(far, _ONE, out=far)
    hold_norm(out[:3])


def hold_norm(whole: Floats) -> Floats:
    """Lower the largest integers of each column until its squares add up to at most 2**40.

    Returns
    -------
    (columns,) array
        To what they then add up.
    """
    squares = np.einsum("ij,ij->j", whole, whole)  # integers below 2**53: exact in any order
    over = np.flatnonzero(squares > _SQUARED_NORM)
    while over.size:
        part = whole[:, over]
        largest = np.argmax(np.abs(part), axis=0), np.arange(over.size)
        part[largest] -= np.sign(part[largest])
        whole[:, over] = part
        squares[over] = np.einsum("ij,ij->j", part, part)
        over = over[squares[over] > _SQUARED_NORM]
    return np.asarray(squares, dtype=np.float64)
