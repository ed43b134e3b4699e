"""What is public of a look: what of the stored columns is what, and what it released.

Tested in `tests/looks/test_rows.py` and `tests/looks/test_table.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpreg.arrays import CELL_BITS, Floats
from dpreg.errors import ArgumentError
from dpreg.looks.coordinates import Point, held
from dpreg.looks.tuning import TUNING

_ONE: Final = 2.0**CELL_BITS


@dataclass(frozen=True, slots=True)
class Told:
    """Where something else stands that a row tells: its weight, or its number of trials; public.

    Attributes
    ----------
    column : int
        Index of the stored column.
    scale : (float, float)
        It is the first plus the second times its stored cell: of a weight a part of the largest.
    most : float
        The largest there is.
    whole : bool
        Whether it is rounded to an integer.
    """

    column: int
    scale: tuple[float, float]
    most: float = 1.0
    whole: bool = False

    def of(self, cells: Floats) -> Floats:
        """Return it for gridded cells (D, rows), within [0, most], each from its own cell."""
        found = cells[self.column] * (self.scale[1] / _ONE)
        found += self.scale[0]
        if self.whole:
            np.rint(found, out=found)
        return np.asarray(np.minimum(np.maximum(found, 0.0), self.most), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Described:
    """What of a design's stored columns, (1, x, y), is what; public.

    Attributes
    ----------
    columns : tuple of int
        Indices of the stored columns that have coefficients, from 1.
    offsets : tuple of int
        Those of the columns whose slopes are known.
    known : tuple of float
        These slopes, in stored units.
    response : (float, float)
        The response is the first plus the second times its stored cell.
    trials : Told, optional
        Where rows have several: the response counts successes.
    levels : tuple of int
        Those of the columns that say which level a row has, by a code of at most 1.
    weights : Told, optional
        Where rows of a linear model do not count alike.
    """

    columns: tuple[int, ...]
    offsets: tuple[int, ...] = ()
    known: tuple[float, ...] = ()
    response: tuple[float, float] = (0.0, 1.0)
    trials: Told | None = None
    levels: tuple[int, ...] = ()
    weights: Told | None = None

    def only(self, columns: tuple[int, ...]) -> Described:
        """Return what is left where others of its columns have no coefficients."""
        levels = tuple(column for column in self.levels if column in columns)
        return replace(self, columns=columns, levels=levels)

    def __post_init__(self) -> None:
        """Refuse columns that are not there."""
        both = (*self.columns, *self.offsets)
        if len(set(both)) < len(both) or min(both, default=1) < 1:
            raise ArgumentError("columns must be different indices from 1")

    @property
    def size(self) -> int:
        """d: the constant and the columns that have coefficients."""
        return len(self.columns) + 1


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """What the first look released: moments of (1, x, y) on the unit scale, and their noise."""

    cells: Floats
    noise_sd: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """What one look released, whichever of the three kinds it was; d coordinates (1, u).

    Attributes
    ----------
    point : Point
        Where it was taken, as rows were really written.
    information : (d, d) array
        H: sum of (w / wbar) v v', limited.
    score : (d,) array
        s: sum of g e v / sqrt(wbar), limited.
    information_sd, score_sd : float
        Of the noise in an off-diagonal cell of H and in a cell of s.
    middle : (d, d) array or None
        M: sum of s_i s_i'; None where its trace alone was released.
    middle_sd : float
        Of the noise in an off-diagonal cell of M, or in the trace.
    trace : float
        Of M.
    limits : (float, float)
        A and S, or R and tau.
    rest : (d,) array or None
        Of s, the sum of outer parts; None at a locating look.
    times : int
        m, how many times as much noise the outer part has as the inner one; but for a minimum also
        how many times as long it may be.
    share : float
        Of what all looks cost together.
    together : bool
        Whether it was a locating look.
    minimum : bool
        Whether the inner part of s is a minimum's.
    degrees : int or None
        Of matrix-Laplace noise.
    cuts : bool
        Whether a score can be longer than its limit.
    lacks : bool
        Whether the information may lack what its own limit cut, where the score's was farther out.
    carried : (d, d) array or None
        P of an H that is not the look's alone, see `spread`; None where the look took H itself.
    unseen : (d, d) array or None
        What such an H may lack of directions that no look showed before its own limits.
    """

    point: Point
    information: Floats
    score: Floats
    information_sd: float
    score_sd: float
    middle: Floats | None
    middle_sd: float
    trace: float
    limits: tuple[float, float]
    share: float
    rest: Floats | None = None
    times: int = 1
    together: bool = False
    minimum: bool = False
    degrees: int | None = None
    cuts: bool = True
    lacks: bool = True
    carried: Floats | None = None
    unseen: Floats | None = None

    @property
    def spread(self) -> Floats:
        """P: the noise N of H has E N u (N u)' = (u'Pu) P + P u u' P, for any u.

        An earlier look's coordinates may have shown a direction badly, and P is long along it.
        """
        own = self.information_sd * np.eye(self.point.size)
        return own if self.carried is None else self.carried

    @property
    def parts(self) -> tuple[float, float, float]:
        """Variances of a cell: the noise in the inner part of s, that in the rest, the rest itself.

        The last is the mean square of the rest's cells, less what their noise has of it.
        """
        assert self.rest is not None
        inner = held(self.score_sd) ** 2 / (1 + self.times**2)
        outer = inner * self.times**2
        squares = held(float(self.rest @ self.rest)) / self.point.size
        return inner, outer, max(squares - outer, 0.0)

    @property
    def trace_sd(self) -> float:
        """Of the noise in the trace of M."""
        return self.middle_sd * (1 if self.middle is None else math.sqrt(2 * self.point.size))

    @property
    def shown(self) -> bool:
        """Whether the mean square of scores stands above its noise."""
        return self.trace > 2 * self.trace_sd

    def dispersion(self, information: Floats, rows: float) -> float:
        """Return phi, the mean square of a score a direction, no less than its noise.

        No row adds more to M than its score's limit squared, whatever noise says.

        Parameters
        ----------
        information : (d, d) array
            H as it is used.
        rows : float
        """
        trace = max(float(np.trace(information)), TUNING.least * rows * self.point.size)
        most = self.limits[1] ** 2 * (trace if self.together else rows)
        return held(min(max(self.trace, 2 * self.trace_sd), most) / trace, 1e-60)
