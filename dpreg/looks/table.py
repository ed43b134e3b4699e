"""A table as looks see it: exact sums leave this file only with their noise added.

Privacy. Each look's exact sums are given noise that is drawn by the right of the look's own part of
the budget, and fitted to rows that reach just as far as `dpreg.looks.rows` proves of them. Its
place is a function of earlier released values: the setting of `dpreg.privacy.gaussian` (Gaussian),
and of sequential composition of adaptively chosen mechanisms (pure).

Sums over rows at a place: exact integers, whatever holds the table.

Statement. A look's sums are the exact integers, whatever the order of the rows, the sizes of the
chunks, the BLAS, its number of threads and its order of summation.

Proof. As for `dpreg.moments`: a cell is an integer in [-2**20, 2**20], held exactly by a float64; a
product of two is at most 2**40, and a sum of at most 8192 = 2**13 of them never leaves
[-2**53, 2**53], where every integer is a float64. Sums of blocks are added in int64, which holds
2**9 of them, and moved to Python's integers at least that often. QED
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from dpreg.arrays import CELL_BITS, Floats
from dpreg.grouped import Vectors
from dpreg.looks.coordinates import Place, Point, place_of
from dpreg.looks.families import Family, Linear
from dpreg.looks.locate import carried, farthest
from dpreg.looks.minimum import hold, released_minimum
from dpreg.looks.plan import LookPlan, Opened
from dpreg.looks.records import Box, Described, Release
from dpreg.looks.rows import PIECE, Rows
from dpreg.looks.tuning import TUNING
from dpreg.moments import Moments, read_moments
from dpreg.privacy.look_noise import FitNoise, MinimumNoise, MomentNoise
from dpreg.privacy.noise import HOLD
from dpreg.privacy.proofs import CELL_UNITS
from dpreg.sources import Chunk, Integers
from dpreg.sources.base import slices
from dpreg.sources.persons import PERSON
from dpreg.sources.reader import Reader

_FLUSH: Final = 512  # proved
_UNIT: Final = 1 << CELL_BITS


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Exact:
    """The exact sums of one look, integers in units of 2**-40; they never leave this room.

    Attributes
    ----------
    rows : int
        Rows read, complete or not.
    information : (d, d) tuple of tuples
        Sum of k k'.
    score : tuple
        2**20 times the sum of m a + b, for f's inner part a and its outer part b; at a locating
        look the sum of k f.
    middle : (d, d) tuple of tuples, or int
        Sum of f f', or of |f|^2.
    contrast : tuple
        2**20 times the sum of m a - b; empty at a locating look.
    """

    rows: int
    information: tuple[tuple[int, ...], ...]
    score: tuple[int, ...]
    middle: tuple[tuple[int, ...], ...] | int
    contrast: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LookTally:
    """Adds up what a look is of; see `dpreg.sources.base.Tally`.

    Attributes
    ----------
    rows : Rows
    matrix : bool
        Whether the middle is a matrix; else its trace.
    persons : bool
        Whether rows come by person.
    """

    rows: Rows
    matrix: bool
    persons: bool = False

    def __call__(self, chunks: Iterable[tuple[int, Chunk]]) -> Integers:
        """Sum over some of the rows, as one vector."""
        total: NDArray[Any] | None = None
        triangle = np.triu_indices(self.rows.described.size)
        partial, pending = np.zeros(sum(self.sizes), dtype=np.int64), 0
        for _, chunk in chunks:
            for k, f, outer in self._units(chunk):
                sums = [np.array([k.shape[1]]), (k @ k.T)[triangle]]
                if self.rows.place.together:
                    sums += [k @ f[0], (f @ f.T).ravel()]
                else:
                    far = outer.sum(axis=1)
                    near = self.rows.place.times * (f.sum(axis=1) - far)
                    middle = (f @ f.T)[triangle] if self.matrix else np.array([np.vdot(f, f)])
                    sums += [near + far, middle, near - far]
                partial += np.concatenate(sums).astype(np.int64)
                pending += 1
                if pending == _FLUSH:
                    total = partial.astype(object) + (0 if total is None else total)
                    partial[:], pending = 0, 0
        return partial if total is None else total + partial

    def _units(self, chunk: Chunk) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Yield k, f and outer parts of some rows, or of persons and their rows, 2**13 at most."""
        if not self.persons:
            for piece in slices(len(next(iter(chunk.values()))), PIECE):
                some = {name: column[piece] for name, column in chunk.items()}
                yield self.rows.located(self.rows.cells(some))[:3]
            return
        codes = chunk[PERSON].astype(np.int64)
        k, f, outer, _ = self.rows.summed(self.rows.cells(chunk), codes)
        apart = not self.rows.place.together
        for piece in slices(k.shape[1], PIECE):
            yield k[:, piece], f[:, :0] if apart else f[:, piece], outer[:, :0]
        if apart:
            for piece in slices(f.shape[1], PIECE):
                yield k[:, :0], f[:, piece], outer[:, piece]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells of the vector each part of `Exact` has."""
        size = self.rows.described.size
        triangle = size * (size + 1) // 2
        contrast = 0 if self.rows.place.together else size
        return 1, triangle, size, triangle if self.matrix else 1, contrast


def exact_sums(tally: LookTally, vector: Integers) -> Exact:
    """Read a look's sums off the vector that a pass added up."""
    cells, size = iter(map(int, vector)), tally.rows.described.size
    unit = 1 if tally.rows.place.together else _UNIT
    rows, H, s, M, contrast = (list(islice(cells, length)) for length in tally.sizes)
    return Exact(
        rows=rows[0],
        information=_symmetric(H, size),
        score=tuple(cell * unit for cell in s),
        middle=_symmetric(M, size) if tally.matrix else M[0],
        contrast=tuple(cell * unit for cell in contrast),
    )


def _symmetric(cells: list[int], size: int) -> tuple[tuple[int, ...], ...]:
    matrix = [[0] * size for _ in range(size)]
    for i, j, cell in zip(*np.triu_indices(size), cells, strict=True):
        matrix[i][j] = matrix[j][i] = cell
    return tuple(map(tuple, matrix))


_STEEPEST: Final = 50.0  # precision
_NEARLY: Final = 1 - 2.0**-20  # precision: a point is rounded to grids


class Taken(ABC):
    """From sums and noise to releases: of a table's rows, or of rows that are assumed."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def plan(self) -> LookPlan:
            """What the looks may cost."""

        @property
        def described(self) -> Described:
            """What of the stored columns is what."""

    @abstractmethod
    def _moments(self) -> Moments:
        """Return the sums of the rows on the unit scale."""

    @abstractmethod
    def _sums(self, place: Place, described: Described, *, matrix: bool) -> Exact:
        """Return the sums of the rows at a place."""

    @abstractmethod
    def _drawn(self, noise: Any, share: Fraction, *, last: bool = False) -> Any:
        """Return noise for a share of what all looks cost; the last takes what is left."""

    def box(self) -> Box:
        """Release the moments of the rows on the unit scale."""
        noise = self.plan.box_noise()
        if self.plan.persons:
            return self._box_of_persons(noise)
        moments = self._moments()
        drawn = self._drawn(noise, self.plan.shares()[0])
        return Box(_noisy(moments.cells, drawn), noise.sd)

    def _box_of_persons(self, noise: MomentNoise) -> Box:
        """Release the moments of persons, limited together to those of `several` rows.

        What is left of a person's rows by R leaves their responses within R too: these have no
        limit that would draw their mean to the middle of the box.
        """
        size = len(self.plan.triangle.columns)
        whole = Described(tuple(range(1, size)))
        unit, zero = np.eye(size - 1), np.zeros(size - 1)
        corner = Point(zero, unit, zero, 0.0, 1.0, 1.0, zero, zero)
        R = math.sqrt(size * self.plan.several)
        place, _ = place_of(corner, Linear(), information=R, score=R, together=True)
        exact = self._sums(place, whole, matrix=False)
        drawn = self._drawn(noise, self.plan.shares()[0])
        rows = zip(exact.information, exact.score, strict=True)
        joint = [(*cells, last) for cells, last in rows] + [(*exact.score, exact.middle)]
        return Box(_noisy(joint, drawn) * (R * R), noise.sd * (R * R))

    def fitting(
        self,
        point: Point,
        family: Family,
        limits: tuple[float, float],
        share: Fraction,
        noise: FitNoise,
        *,
        last: bool,
        before: Release | None = None,
        places: Sequence[int] | None = None,
    ) -> Release:
        """Release score, middle and information at a point.

        Parameters
        ----------
        point : Point
        family : Family
        limits : (float, float)
            A and S.
        share : Fraction
            Of what all looks cost.
        noise : FitNoise
        last : bool
        before : Release, optional
            A locating look whose information, carried to the point, stands for this look's, where
            the noise has none.
        places : sequence of int, optional
            Where the columns, 0 the constant, stand among that look's; None: they are the same.
        """
        A, S = limits
        if before is not None and self.plan.persons:
            # Persons count as little in the score as they did in the information.
            own = before.limits[0] ** 2 if before.together else before.limits[0]
            own *= before.point.weight / point.weight  # limits are in units of the mean weight
            A = min(A, own * point.size / before.point.size)
        known, m = self.described.known, noise.times
        place, at = place_of(point, family, known=known, information=A, score=S, times=m)
        matrix = noise.middle == "matrix"
        exact = self._sums(place, self.described, matrix=matrix)
        drawn = self._drawn(noise, share, last=last and not self.plan.later)
        spread: Floats | None = None
        unseen: Floats | None = None
        if drawn.information is None:
            assert before is not None
            information, spread, unseen = carried(before, at, places)
            information_sd = float(np.sqrt(np.diag(spread)).mean()) ** 2
        else:
            information = A * _noisy(exact.information, drawn.information)
            information_sd = A * noise.information_sd
        middle = S * S * _noisy(exact.middle, drawn.middle)
        added = S * _noisy(exact.score, drawn.score)
        contrast = S * _noisy(exact.contrast, drawn.contrast)
        return Release(
            point=at,
            information=information,
            score=((1 + m) * added + (1 - m) * contrast) / (2 * m),
            information_sd=information_sd,
            score_sd=S * noise.score_sd * math.sqrt((1 + m * m) / 2) / m,
            middle=middle if matrix else None,
            middle_sd=S * S * noise.middle_sd,
            trace=float(np.trace(middle) if matrix else middle),
            limits=limits,
            share=float(share),
            rest=(added - contrast) / 2,
            times=m,
            degrees=None if before is None else before.degrees,
            cuts=self._cuts(at, family, S, 1),
            lacks=self._cuts(at, family, A, 0),
            carried=spread,
            unseen=unseen,
        )

    @abstractmethod
    def _minimum(
        self, place: Place, noise: MinimumNoise, share: Fraction, count: float
    ) -> tuple[Floats, float, tuple[int, ...], int]:
        """Return a released minimum and its penalty, and noise of the outer part and the trace."""

    def minimum(
        self,
        point: Point,
        family: Family,
        limits: tuple[float, float],
        share: Fraction,
        noise: MinimumNoise,
        count: float,
        *,
        before: Release | Callable[[Point], Release],
        places: Sequence[int] | None = None,
    ) -> Release:
        """Release the minimum of losses around a point, and what they cut there.

        The look is at the minimum. What it shows of the inner part of the score is the penalty
        times the way that led there (`dpreg.looks.minimum`).

        Parameters
        ----------
        point, family, limits, share, places
            As for `fitting`; it is a call's last look.
        noise : MinimumNoise
        count : float
            Released number of rows.
        before : Release or callable
            As for `fitting`, or what takes a locating look at the minimum.
        """
        A, S = limits
        steep = point.weight * math.exp(min(TUNING.longest * math.sqrt(point.variance), _STEEPEST))
        place_at = partial(
            place_of,
            family=family,
            known=self.described.known,
            information=A,
            score=S,
            bend=family.bend(steep),
        )
        place, at = place_at(point)
        t, penalty, outer_noise, trace_noise = self._minimum(place, noise, share, count)
        place, at = place_at(at.ahead(t * (S / 2 * math.sqrt(at.weight))))
        exact = self._sums(place, self.described, matrix=False)
        parts = zip(exact.score, exact.contrast, strict=True)  # as long as each other
        outer = S * _noisy([(s - c) // 2 for s, c in parts], outer_noise)
        told = before if isinstance(before, Release) else before(at)
        information, spread, unseen = carried(told, at, places)
        return Release(
            point=at,
            information=information,
            score=S / 2 * penalty * t + outer,
            information_sd=float(np.sqrt(np.diag(spread)).mean()) ** 2,
            score_sd=S * noise.score_sd,
            middle=None,
            middle_sd=S * S * noise.middle_sd,
            trace=S * S * float(_noisy(exact.middle, trace_noise)),
            limits=limits,
            share=float(share),
            rest=outer,
            times=noise.times,
            minimum=True,
            degrees=told.degrees,
            # Of a row farther out than 2 A less than half is in the inner part.
            cuts=self._cuts(at, family, S, 1) or self._cuts(at, family, 2 * A, 0),
            lacks=False,
            carried=spread if told is before else None,
            unseen=unseen,
        )

    def _cuts(self, at: Point, family: Family, limit: float, place: int) -> bool:
        """Return whether a trace (place 0) or a score (1) can be longer than its limit."""
        return self.plan.persons or _NEARLY * farthest(at, family, self.described)[place] > limit

    def locating(
        self,
        point: Point,
        family: Family,
        limits: tuple[float, float],
        share: Fraction,
        signal: float,
    ) -> Release:
        """Release the joint moments of (k, f) at a point; `signal` is as for `locating_noise`."""
        R, tau = limits
        place, at = place_of(
            point, family, known=self.described.known, information=R, score=tau, together=True
        )
        noise = self.plan.locating_noise(share, signal)
        exact = self._sums(place, self.described, matrix=False)
        drawn = np.array(self._drawn(noise, share), dtype=object)
        d, sd = self.described.size, noise.sd
        information = R * R * _noisy(exact.information, drawn[:d, :d])
        squares = tau * tau * float(_noisy(exact.middle, drawn[d, d]))
        # Weights of a linear model are 1, whatever noise made of their mean.
        own = 1.0 if math.isfinite(family.limits[0]) else at.weight
        count = max(float(information[0, 0]) * own, 1.0)
        return Release(
            point=at,
            information=information,
            score=R * tau * _noisy(exact.score, drawn[d, :d]),
            information_sd=R * R * float(sd[0, 1]) if d > 1 else R * R * float(sd[0, 0]),
            score_sd=R * tau * float(sd[0, d]),
            middle=None,
            middle_sd=tau * tau * float(sd[d, d]) / count * max(float(np.trace(information)), 1.0),
            trace=squares / count * max(float(np.trace(information)), 1.0),
            limits=limits,
            share=float(share),
            together=True,
            degrees=noise.degrees,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Table(Taken):
    """The rows of a call: a look releases what its part of the budget allows.

    Attributes
    ----------
    reader : Reader
    design : Vectors
    described : Described
    opened : Opened
        Of an account that is charged.
    """

    reader: Reader
    design: Vectors
    described: Described
    opened: Opened

    @property
    def plan(self) -> LookPlan:
        """What the looks may cost."""
        return self.opened.plan

    def _moments(self) -> Moments:
        (moments,) = read_moments(self.reader, self.design)
        return moments

    def _sums(self, place: Place, described: Described, *, matrix: bool) -> Exact:
        rows = Rows(self.design, described, place)
        tally = LookTally(rows, matrix, self.plan.persons)
        return exact_sums(tally, self.reader.total(self.design.types, tally, "look"))

    def _drawn(self, noise: Any, share: Fraction, *, last: bool = False) -> Any:
        return noise.draw(self.opened.part(share, last=last))

    def _minimum(
        self, place: Place, noise: MinimumNoise, share: Fraction, count: float
    ) -> tuple[Floats, float, tuple[int, ...], int]:
        own, outer, trace = self._drawn(noise, share)
        rows = Rows(self.design, self.described, place)
        chunks = self.reader.chunks(self.design.types, "rows")
        t, penalty, _ = released_minimum(hold(rows, map(rows.cells, chunks)), own, count, HOLD)
        return t, penalty, outer, trace


def _noisy(exact: Any, drawn: Any) -> Floats:
    """Add noise to an integer, or to each of several, in units of 2**-40."""
    whole, noise = (np.array(of, dtype=object) for of in (exact, drawn))
    assert whole.shape == noise.shape  # each cell has noise of its own
    return np.asarray((whole + noise) / CELL_UNITS, dtype=np.float64)
