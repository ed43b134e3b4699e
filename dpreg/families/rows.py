r"""Rows of a family at a fit: the only file of this room that sees any.

A complete row (1, x, y) of cells in units of 2**-20 becomes, with u, eta, omega, A and F of its
`FamilyLocation`,

    k = (omega w / (wbar A))^(1/2) (1, u),    f = omega^(1/2) (y - mu) w^(-1/2) / F,
    q = |k| |f| / S,

again in units of 2**-20: sum k k' is the information over A, sum k f the score over sqrt(A) F, and
sum q^2 the sum of squared scores over S^2. A row with a missing or undeclared cell becomes 0. Of a
row with m trials, m a rounded cell, w, mu and the largest y are m times those of one; a row
without trials becomes 0. Of counts with caps of their own y - mu is min(y, C) - mu + x(mu, C)
(`dpreg.families.counts`).

Statement. For every table, chunk, order of rows, engine, number of threads and BLAS:

1. a row's (k, f, q) depends on that row and on public facts alone, bit for bit;
2. as integers sum k_i^2 <= 2**40, ceil(|k|) |f| <= S and 0 <= q <= 2**20.

Proof. 1. u and eta come from one product with a matrix of whole multiples of powers of two, which
`dpreg.staged.location` proves exact in any order. All else is done to each row cell by cell by
single operations that IEEE 754 rounds correctly (sums, products, quotients, square roots) or that
are exact (minimum, truncation, powers of two); the exponential is made of such operations
(`dpreg.families.exact_exp`), the table of what caps take off is read by such operations and by
comparisons, and the sum of squares in |(1, u)| is taken column by column, each
addition a step of its own. Nothing else is rounded in a way that may depend on the place in memory.
2. By construction. While a row's exact sum of squares exceeds 2**40 the largest of its integers
moves towards zero by one. sqrt of an integer N <= 2**40 is off by less than 2**-32, and where N is
no square it is at least 2**-22 away from any integer: ceil(sqrt(N)) is exact. f is cut to the
integer part of S/ceil(|k|): where that is at most 2**20 the quotient is off by less than 2**-32,
and is an integer or at least 2**-20 away from one, so that its integer part is exact. q is cut to
[0, 2**20]. QED

Both parts hold for every row there can be, and nothing here raises, warns or branches on a value
that a caller could see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.columns import ColumnType
from dpreg.errors import ArgumentError
from dpreg.families.counts import capped
from dpreg.families.location import FamilyLocation
from dpreg.grouped.vectors import whole_rows
from dpreg.looks.described import Trials
from dpreg.moments import CELL_BITS, Vectors, to_grid
from dpreg.sources import Chunk
from dpreg.staged.rows import PIECE, applied, hold_norm

__all__ = ["FamilyRows", "Trials"]

_ONE: Final = 2.0**CELL_BITS


@dataclass(frozen=True, slots=True, repr=False)
class FamilyRows:
    """A design's rows at a fit; see the module. Public facts alone, like the design.

    Parameters
    ----------
    design : Vectors
        Makes (1, x, y), its first cell 1 in complete rows and 0 in others; a `Design`.
    location : FamilyLocation
    columns : sequence of int
        Indices of the stored columns that have coefficients, from 1.
    offsets : sequence of int
        Those of the columns whose slopes are known.
    response : (float, float)
        The response is the first plus the second times its stored cell.
    trials : Trials, optional
        Where rows have several: the response counts successes.
    """

    design: Vectors
    location: FamilyLocation
    columns: tuple[int, ...]
    offsets: tuple[int, ...]
    response: tuple[float, float]
    trials: Trials | None
    _stored: Callable[[Chunk], Floats] = field(repr=False, compare=False)
    _forms: Floats = field(repr=False, compare=False)

    def __init__(
        self,
        design: Vectors,
        location: FamilyLocation,
        columns: Sequence[int],
        offsets: Sequence[int],
        response: tuple[float, float],
        trials: Trials | None = None,
    ) -> None:
        """See the class."""
        chosen, known = tuple(columns), tuple(offsets)
        both = (*chosen, *known)
        if len(set(both)) < len(both) or not all(0 < j < design.size - 1 for j in both):
            raise ArgumentError(f"columns must be different indices from 1 to {design.size - 2}")
        if location.size != len(chosen) or len(location.predictor.slopes) != len(both):
            raise ArgumentError("the location speaks of other columns than are given")
        put = object.__setattr__
        put(self, "design", design)
        put(self, "location", location)
        put(self, "columns", chosen)
        put(self, "offsets", known)
        put(self, "response", response)
        put(self, "trials", trials)
        put(self, "_stored", whole_rows(design))
        put(self, "_forms", _matrix(location, chosen, both, design.size))

    @property
    def types(self) -> Mapping[str, ColumnType]:
        """What is read, and how."""
        return self.design.types

    @property
    def size(self) -> int:
        """The places of a row: the constant, the columns, the residual and q."""
        return len(self.columns) + 3

    def __repr__(self) -> str:
        """Show public facts only."""
        return f"<FamilyRows: {len(self.columns)} columns, {self.location.family.name}>"

    def __reduce__(self) -> tuple[type[FamilyRows], tuple[object, ...]]:
        """Keep the arguments only: what they make can be made again."""
        kept = (self.design, self.location, self.columns, self.offsets, self.response, self.trials)
        return FamilyRows, kept

    def block(self, chunk: Chunk) -> Floats:
        """Make rows, (rows, size) in units of 1, each from its own row alone."""
        rows = self._stored(chunk)
        cells = to_grid(rows, out=rows).T
        out = np.empty((self.size, len(rows)))
        for start in range(0, len(rows), PIECE):
            piece = slice(start, start + PIECE)
            some = cells[:, piece]
            _locate(some, self._forms, self.location, self.response, self.trials, out[:, piece])
        return out.T


def _matrix(
    location: FamilyLocation, columns: tuple[int, ...], both: tuple[int, ...], size: int
) -> Floats:
    """Return the (p + 1, D) matrix that takes gridded cells to (eta, u), in units of 1."""
    forms = (form.on_cells(columns, size) for form in location.forms)
    return np.array([location.predictor.on_cells(both, size), *forms])


def _locate(
    cells: Floats,
    forms: Floats,
    location: FamilyLocation,
    response: tuple[float, float],
    trials: Trials | None,
    out: Floats,
) -> None:
    """Write the rows of gridded cells (D, rows) to `out`, (places, rows)."""
    family, size = location.family, len(forms)
    k, f, q = out[:size], out[size], out[size + 1]
    applied(forms, cells, k)
    mean, weight = family.moments(k[0])
    cap: float | Floats = family.cap
    counts = np.ones(len(f)) if trials is None else trials.of(cells)
    if trials is not None:
        times = np.maximum(counts, 1.0) / cap
        mean, weight, cap = mean * times, weight * times, cap * times
    square = np.ones(len(f))
    for coordinate in k[1:]:
        square += coordinate * coordinate
    length = np.sqrt(square)
    bound, lowered = location.score * np.sqrt(location.mean_weight), mean
    if location.excess is None:
        farthest = np.maximum(mean, cap - mean)
    else:
        farthest, reach = mean, np.maximum(bound / length, mean)
        cap, taken = capped(location.excess, family.cap, k[0], mean, reach)
        lowered = mean - taken
    omega = bound / (farthest * length)
    np.minimum(omega, location.information * location.mean_weight / (weight * square), out=omega)
    np.minimum(omega, 1.0, out=omega)
    scale = np.sqrt(omega * weight)
    scale *= _ONE / np.sqrt(location.mean_weight * location.information)
    k[1:] *= scale
    k[0] = scale
    np.trunc(k, out=k)
    hold_norm(k)
    np.multiply(cells[-1], response[1] / _ONE, out=f)
    f += response[0]
    np.minimum(f, cap, out=f)
    f -= lowered
    f *= np.sqrt(omega / weight)
    f *= _ONE / location.residual
    np.rint(f, out=f)
    norm = np.ceil(np.sqrt(np.einsum("ij,ij->j", k, k)))  # integers below 2**53: exact
    _hold_score(f, norm, location.limit)
    np.multiply(np.abs(f), norm, out=q)
    q *= _ONE / location.limit
    np.minimum(np.ceil(q), _ONE, out=q)
    out[:, (cells[0] == 0.0) | (counts == 0.0)] = 0.0
    out *= 1 / _ONE


def _hold_score(whole: Floats, norm: Floats, limit: int) -> None:
    """Cut each integer until its product with the norm is at most the limit."""
    most = np.minimum(np.floor(limit / np.maximum(norm, 1.0)), _ONE)
    np.clip(whole, -most, most, out=whole)
