"""Rows at a point: the only file of this room that sees any.

A complete row (1, x, y) of cells in units of 2**-20 becomes, with u and eta of its `Place`, v = (1,
u), mean, weight w and factor g of the family at eta, e = y - mean, integers in units of 2**-20. At
a *fitting look*

    k = h v,    h = min((w / (wbar A))^(1/2), 1/|v|),
    f = t v,    t = sign(e) min(g |e| / (wbar^(1/2) S), 1/|v|),

so that A sum k k' is the information and S sum f the score. Of a family whose scores are limited
blindly, f = c g e v / (wbar^(1/2) S) with c = min(1, wbar^(1/2) S / (g ebar |v|)), ebar the
farthest that any response lies from the mean: c does not see y. f comes in two parts: the *inner*
one is what f would be if S were S/(1 + m), the *outer* one is the rest; m is the place's. Where
the inner part is to be a minimum's, it is the slope of the row's loss (`dpreg.looks.minimum`), and
the outer one is the rest as far as m S/(1 + m). At a *locating look* one weight serves both,

    omega = min(1, R^2 wbar / (w |v|^2)),    k = (omega w / wbar)^(1/2) v / R,
    f = clip(omega^(1/2) g e w^(-1/2) / tau, -1, 1),

and blindly omega is also at most tau^2 w / (g ebar)^2. A row with a missing or undeclared cell
becomes 0. Of a row with m trials mean, weight and ebar are m times those of one; a row without
trials becomes 0. A row of a linear model may have a weight of its own, a part of the largest there
can be: w and g are multiplied by it, before all limits, so that what follows holds as it stands.

*Persons.* Where rows come by person, (k, f) of a row are only limited far out, to lengths of 2**26
(scores 2**30), by a factor in which no other row has a part. k of all rows of a person are
multiplied by one factor c of at most 1 that brings the sum of their squares to 2**40. The sum of f
over the rows is multiplied by c^2, by which k k' became less, and then limited as that of a row is;
blindly by the sum of g ebar |v| / (wbar^(1/2) S). So a person with more rows than A has room for
counts less, alike in H and s: the fit is weighted by what depends on columns alone. At a locating
look c serves k and f, and f has another factor. Sums saturate (`dpreg.sources.persons`): a
saturated sum of squares says too little, and its person is excluded.

Statement. For every table, chunk, order of rows, engine, number of threads and BLAS:

1. a row's (k, f) depends on that row and on public facts alone, bit for bit;
2. as integers sum k_i^2 <= 2**40; at a fitting look the squares of f's inner part add up to at
   most 2**40/(1 + m)^2, those of its outer part to m^2 times as much; at a
   locating one |f| <= 2**20; of a person the same of sums over k, and over f at a locating look.

Proof. 1. u and eta come from one product with a matrix of whole multiples of powers of two, which
`dpreg.looks.coordinates` proves exact in any order. All else is done to each row cell by cell by
single operations that IEEE 754 rounds correctly (sums, products, quotients, square roots) or that
are exact (minimum, truncation, powers of two); the exponential is made of such operations
(`dpreg.looks.families`), and the sum of squares in |v| is taken column by column, each addition a
step of its own. 2. What multiplies v is at most 2**20 (1 - 2**-32) / |v|, or the part of it that is
m's. |v| is one sum of d squares and a root, and at most twelve single operations lead from there
to an integer: all together err by less than (d/2 + 16) 2**-53 of it, which is below 2**-32 of fewer
than 2**21 columns. So the floats of a vector are short enough, and truncation towards zero lowers
them; the single f of a locating look is clipped. That blind limits hold for the response there is
follows from the same operations being monotone: |e| is at most ebar as floats too. A person's
score is limited by the length of its integers, or by what rows can add up to, unless that is
saturated; then it is 0. Of k: a row's integers have squares that sum to little more than 2**52,
which float64 holds exactly; their sum T over rows is exact in int64, or saturated, and then the
factor is 0. Else it is at most 2**20 (1 - 2**-41) / sqrt(T), which brings sum |k|^2 below 2**40
before anything is truncated. QED

Both parts hold for every row there can be, and nothing here raises, warns or branches on a value
that a caller could see.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpreg.arrays import CELL_BITS, Bools, Floats, Ints, Places
from dpreg.columns import Columns, Unbounded
from dpreg.errors import ArgumentError
from dpreg.grouped import CodedRows, Layout, Vectors
from dpreg.looks.coordinates import Place
from dpreg.looks.records import Described
from dpreg.sources import Chunk
from dpreg.sources.kept import MADE
from dpreg.sources.persons import MOST, person_sums
from dpreg.sources.reader import Reader

_ONE: Final = 2.0**CELL_BITS
_LONGEST: Final = _ONE * (1 - 2.0**-32)
"""How long the floats of a row may be, that its integers be no longer than 1: see the proof."""
PIECE: Final = 8192
"""Rows worked on together: products are exact (`dpreg.looks.table`), and memory stays near."""
_ALONE: Final = 1 << 18
"""Multiplications of a product up to which OpenBLAS leaves it to the thread that asks for it."""
_LEAST_STEP: Final = 64  # work
_LONG: Final = 2.0**26
"""Of a person's row: 64 limits. Squares stay exact, and fewer than 2**11 rows do not saturate."""
_FAR: Final = 2.0**30
"""Of the score of a person's row."""
_UP: Final = 1 + 2.0**-40
"""More than all roundings of a sum of squares, its root and a product can lose together."""


Limited: TypeAlias = tuple[Floats, Floats, Floats, Places]
"""k, f, the outer parts of those f that have one, and where these stand."""


@dataclass(frozen=True, slots=True, repr=False)
class Rows:
    """A table's rows at a place; see the module. Public facts alone, like the design.

    Parameters
    ----------
    design : Vectors
        Makes (1, x, y), its first cell 1 in complete rows and 0 in others; a `Design`.
    described : Described
    place : Place
    """

    design: Vectors
    described: Described
    place: Place
    _forms: Floats = field(init=False, compare=False)
    """The (d, D) matrix that takes gridded cells to (eta, u), in units of 1."""

    def __post_init__(self) -> None:
        """Settle what is done to all rows."""
        size, place = self.design.size, self.place
        columns = self.described.columns
        if len(place.forms) != len(columns):
            raise ArgumentError("the place speaks of other columns than are described")
        both = (*columns, *self.described.offsets)
        forms = (form.on_cells(columns, size) for form in place.forms)
        matrix = np.array([place.predictor.on_cells(both, size), *forms])
        object.__setattr__(self, "_forms", matrix)

    def cells(self, chunk: Chunk) -> Floats:
        """Return the stored rows of a chunk on their grid, (D, rows)."""
        return self.design.cells(chunk).T

    def located(self, cells: Floats) -> Limited:
        """Return k, f and the outer parts of f, of gridded cells (D, rows).

        k and f are (d, rows); at a locating look f is (1, rows), and there are no parts.
        """
        seen = _Seen.of(self, cells)
        limited = _together if self.place.together else _apart
        found = limited(seen, self.place)
        found[0][:, seen.absent] = 0.0
        return found

    def losses(self, cells: Floats) -> tuple[Floats, ...]:
        """Return what is held of complete rows for their losses: `dpreg.looks.minimum`.

        Parameters
        ----------
        cells : (D, rows) array

        Returns
        -------
        x : (rows, d) array
        y, weights, start, scale : (rows,) arrays
        """
        seen, place = _Seen.of(self, cells), self.place
        weight, unit = seen.counted(place), _unit(place)
        k = 1 / (weight * seen.length)
        here = np.logical_not(seen.absent)
        if not math.isfinite(place.family.limits[0]):
            none = np.zeros(len(k))
            e = (seen.response - seen.predictor) / unit
            made = (seen.v / k).T, e / k, weight * k * k, none, none + 1.0
        else:
            k = np.ones(len(k)) if place.family.blind else k * unit
            made = (seen.v * unit).T, seen.response, weight * k / unit / unit, seen.predictor, 1 / k
        return tuple(each[here] for each in made)

    def summed(self, cells: Floats, codes: Ints) -> Limited:
        """Return the same of persons, whose rows were summed before they were limited.

        Parameters
        ----------
        cells : (D, rows) array
            All rows of some persons.
        codes : (rows,) array
            Whose row it is, from 0.

        Returns
        -------
        k : (d, rows) array
            Of each person's rows sum |k|^2 <= 2**40.
        f : (d, persons) or (1, rows) array
            At a fitting look each |f|^2 <= 2**40; at a locating one of each person's rows
            sum f^2 <= 2**40.
        outer : (d, m) array
            The outer parts of those persons who have one, limited as those of rows are.
        far : (m,) array
            Who they are.
        """
        seen = _Seen.of(self, cells)
        return _summed(seen, self.place, codes)


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """Vectors of rows that were made before, D cells each: a chunk holds them."""

    size: int

    @property
    def types(self) -> Columns:
        """What is read, and how."""
        return {MADE: Unbounded()}

    @property
    def layout(self) -> Layout:
        """Where the moments lie: no column is given by a code."""
        return Layout(self.size)

    def cells(self, chunk: Chunk, /) -> Floats:
        """Return the vectors of some rows, on their grid."""
        return np.array(chunk[MADE], dtype=np.float64)

    def coded(self, chunk: Chunk, /) -> CodedRows:
        """Return the same vectors."""
        return CodedRows(self.cells(chunk), ())


def made_once(reader: Reader, vectors: Vectors) -> tuple[Reader, Vectors]:
    """Have held rows kept as vectors on their grid; return what reads these.

    Looks after the first are made sooner. Cells of the grid are whole numbers up to 2**20, which
    float32 holds.
    """

    def made(chunk: Chunk) -> NDArray[np.float32]:
        return vectors.cells(chunk).astype(np.float32)

    return reader.making(vectors.types, made), StoredVectors(vectors.size)


@dataclass(slots=True, eq=False, repr=False)
class _Seen:
    """What all looks begin with, row by row: v, |v| and the family's terms.

    `response` is that of one trial; `own` is the number of trials, or the weight of its own.
    """

    v: Floats
    length: Floats
    weight: Floats
    residual: Floats
    farthest: Floats | None
    absent: Bools
    predictor: Floats
    response: Floats
    own: Floats

    @classmethod
    def of(cls, rows: Rows, cells: Floats) -> _Seen:
        described, family = rows.described, rows.place.family
        v = np.empty((described.size, cells.shape[1]))
        applied(rows._forms, cells, v)
        predictor = v[0].copy()
        terms = family.terms(predictor)
        mean, weight, cap = terms.mean, terms.weight, np.full(cells.shape[1], family.cap)
        absent = cells[0] == 0.0
        if described.trials is not None:
            counts = described.trials.of(cells)
            times = np.maximum(counts, 1.0) / family.cap
            mean, weight, cap = mean * times, weight * times, cap * times
            absent |= counts == 0.0
        residual = cells[-1] * (described.response[1] / _ONE)
        residual += described.response[0]
        if math.isfinite(family.limits[0]):
            np.minimum(residual, cap, out=residual)
        own = cap if family.blind else np.ones(cells.shape[1])
        response = residual / own
        residual -= mean
        residual *= terms.factor
        if described.weights is not None:
            own = described.weights.of(cells)
            absent |= own == 0.0
            own[absent] = 1.0
            weight, residual = weight * own, residual * own
        residual[absent] = 0.0
        farthest = None
        if family.blind:
            farthest = np.maximum(mean, cap - mean)
            farthest *= np.abs(terms.factor)
        v[0] = 1.0
        length = np.ones(cells.shape[1])
        for coordinate in v[1:]:
            length += coordinate * coordinate
        np.sqrt(length, out=length)
        return cls(v, length, weight, residual, farthest, absent, predictor, response, own)

    def counted(self, place: Place) -> Floats:
        """Return w, how much rows count in a minimum: `dpreg.looks.minimum`."""
        assert place.bend is not None
        bent = place.bend * self.length * self.length
        weight = np.minimum(self.own, place.information * place.weight / bent)
        if self.farthest is not None:
            np.minimum(weight, _unit(place) / self.length, out=weight)
        return weight


def _unit(place: Place) -> float:
    """Return Z: `dpreg.looks.minimum`."""
    return place.score * math.sqrt(place.weight) / 2


def _apart(seen: _Seen, place: Place) -> Limited:
    """Return what a fitting look is of."""
    most = _LONGEST / seen.length
    root = math.sqrt(place.weight)
    scale = np.sqrt(seen.weight)
    scale *= _ONE / (root * math.sqrt(place.information))
    k = seen.v * np.minimum(scale, most)
    unit = _ONE / (root * place.score)
    drawn = seen.residual * unit
    near = most / (1 + place.times)
    room = most - near
    if seen.farthest is None:
        inner = drawn
        if place.bend is not None:
            mean = place.family.followed(seen.predictor, place.bend).mean
            inner = (seen.response - mean) * (seen.counted(place) * unit)
            inner[seen.absent] = 0.0
        inner = np.minimum(np.maximum(inner, -near), near)
        outer = np.minimum(np.maximum(drawn - inner, -room), room)
    else:
        whole = most / np.maximum(seen.farthest * unit, 1e-300)
        if place.bend is None:
            inner = drawn * np.minimum(whole / (1 + place.times), 1.0)
            outer = drawn * np.minimum(whole, 1.0) - inner
        else:
            share = seen.counted(place) / seen.own
            inner = np.minimum(np.maximum(drawn * share, -near), near)
            outer = drawn * np.minimum(np.minimum(whole, 1.0) - share, whole / 2)
    np.trunc(k, out=k)
    return k, *_of_parts(seen.v, inner, outer)


def _of_parts(ways: Floats, inner: Floats, outer: Floats) -> tuple[Floats, Floats, Places]:
    """Return the sum of scores' parts, each on the grid, and the outer ones."""
    far = np.flatnonzero(outer)  # most rows have none
    whole, rest = ways * inner, np.trunc(ways[:, far] * outer[far])
    np.trunc(whole, out=whole)
    whole[:, far] += rest
    return whole, rest, far


def _together(seen: _Seen, place: Place) -> Limited:
    """Return what a locating look is of, which has no parts."""
    root, weight = math.sqrt(place.weight), np.sqrt(seen.weight)
    share = place.information * root * (_LONGEST / _ONE) / (weight * seen.length)
    if seen.farthest is not None:
        share = np.minimum(share, place.score * weight / np.maximum(seen.farthest, 1e-300))
    np.minimum(share, 1.0, out=share)
    k = seen.v * (share * weight * (_ONE / (root * place.information)))
    np.trunc(k, out=k)
    f = share * seen.residual / weight * (_ONE / place.score)
    np.rint(np.minimum(np.maximum(f, -_ONE), _ONE), out=f)
    return k, *_whole(f[None, :])


def _whole(f: Floats) -> tuple[Floats, Floats, Places]:
    """Return f, of which no part is apart."""
    return f, f[:, :0], np.empty(0, dtype=np.intp)


def _summed(seen: _Seen, place: Place, codes: Ints) -> Limited:
    """Return what a look at persons is of; see the module."""
    root, present = math.sqrt(place.weight), np.logical_not(seen.absent)
    weight = np.sqrt(seen.weight)
    unit = _ONE / (root * (place.information if place.together else math.sqrt(place.information)))
    k = np.trunc(seen.v * (np.minimum(weight * unit, _LONG / seen.length) * present))
    share = _shrunk(person_sums(codes, _squares(k)))
    drawn = seen.residual if seen.farthest is None else seen.farthest
    if place.together:
        scale = _ONE / place.score / weight
        reach = np.abs(drawn) * scale * present
        f = seen.residual * (scale * _near(reach, _LONG))
        if seen.farthest is not None:
            most = np.ceil(np.minimum(reach, _LONG))
            share = np.minimum(share, _shrunk(person_sums(codes, _squares(most[None, :]))))
        f = np.trunc(f * share[codes])[None, :]
        f = np.trunc(f * _shrunk(person_sums(codes, _squares(f)))[codes])
        parts = _whole(f)
    else:
        own = _ONE / (root * place.score)
        reach = np.abs(drawn) * seen.length * own * present
        scores = np.trunc(seen.v * (seen.residual * own * _near(reach, _FAR)))
        total = person_sums(codes, scores.T.astype(np.int64)).T.astype(np.float64)
        if seen.farthest is None:
            length = np.zeros(total.shape[1])
            for cell in total:
                length += cell * cell
            np.sqrt(length, out=length)
        else:
            most = np.ceil(np.minimum(reach, _FAR))
            reached = person_sums(codes, most.astype(np.int64))
            length = np.where(reached < MOST, reached, np.inf)
        room, held = _LONGEST / np.maximum(length, 1.0), share * share
        inner = np.minimum(room / (1 + place.times), held)
        parts = _of_parts(total, inner, np.minimum(room, held) - inner)
    return np.trunc(k * share[codes]), *parts


def _near(reach: Floats, most: float) -> Floats:
    """Return by what rows are multiplied to reach no farther."""
    return np.asarray(np.minimum(most / np.maximum(reach, 1.0), 1.0))


def _squares(whole: Floats) -> Ints:
    """Return each row's sum of squares of integers, 2**53 at most."""
    return np.asarray(np.einsum("ij,ij->j", whole, whole).astype(np.int64))


def _shrunk(squares: Ints) -> Floats:
    """Return by what a person's integers are multiplied so that their squares stay in 2**40.

    0 where the sum is saturated: nobody knows by how much it would be larger.
    """
    length = np.sqrt(squares.astype(np.float64)) * _UP
    share = np.minimum(_ONE / np.maximum(length, 1.0), 1.0)
    return np.asarray(np.where(squares < MOST, share, 0.0))


def applied(forms: Floats, cells: Floats, out: Floats) -> None:
    """Write `forms` @ `cells` to `out`, a few rows of the table at a time.

    BLAS shares larger products among threads of its own. Rows are read by several threads anyway,
    and on a busy machine those that wait for each other take many times as long.
    """
    step = max(_LEAST_STEP, _ALONE // forms.size)
    for start in range(0, cells.shape[1], step):
        some = slice(start, start + step)
        np.matmul(forms, cells[:, some], out=out[:, some])
