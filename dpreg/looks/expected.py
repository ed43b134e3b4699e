"""Rows that are assumed, as looks see them: what a call would release of a table of such rows.

Limits, sums and noise are those of a call, by the same code: each assumed row stands for rows /
(assumed rows) of the table's, and noise is drawn from its law with a fixed seed. Nothing here is
private, and nothing needs to be: no confidential row is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dpreg.arrays import Floats
from dpreg.columns import ColumnType
from dpreg.looks.coordinates import Place, pseudo
from dpreg.looks.described import Described
from dpreg.looks.families import Family
from dpreg.looks.loop import Seen, look, moved
from dpreg.looks.plan import LookPlan
from dpreg.looks.rows import Rows
from dpreg.looks.table import Exact, LookTally, Taken, exact_sums
from dpreg.moments import Moments, accumulate
from dpreg.sources import Chunk
from dpreg.sources.persons import PERSON

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["Expected", "expected_looks", "expected_moments", "without_noise"]

_CELLS = "cells"
_SEED = 35


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Expected(Taken):
    """Assumed rows that stand for a table.

    Parameters
    ----------
    plan : LookPlan
    described : Described
    z : (m, D) array
        (1, x, y) in stored units.
    rows : int
        n: how many rows the table has.
    rng : Generator
    each : int
        Rows of a person, where the looks are of persons: those that follow each other.
    """

    plan: LookPlan
    described: Described
    z: Floats
    rows: int
    rng: Generator
    each: int = 1

    def _moments(self) -> Moments:
        return expected_moments(self.z, self.rows)

    def _sums(self, place: Place, described: Described, *, matrix: bool) -> Exact:
        rows = Rows(_Stored(self.z.shape[1]), described, place)
        tally = LookTally(rows, matrix, self.plan.persons)
        codes = np.arange(len(self.z)) // self.each
        vector = tally([(0, {_CELLS: self.z, PERSON: codes})])
        return exact_sums(tally, np.array(_scaled(vector, self.rows, self.z), dtype=object))

    def _drawn(self, noise: Any, share: Fraction, *, last: bool = False) -> Any:
        return noise.simulate(self.rng)


def expected_moments(z: Floats, rows: int) -> Moments:
    """Return the moments of a table of so many rows, which these stand for."""
    found = accumulate([z], z.shape[1])
    return Moments(rows, tuple(tuple(_scaled(row, rows, z)) for row in found.cells))


def _scaled(cells: Any, rows: int, z: Floats) -> list[int]:
    return [int(cell) * rows // len(z) for cell in cells]


def expected_looks(
    plan: LookPlan,
    family: Family,
    described: Described,
    z: Floats,
    rows: int,
    *,
    each: int = 1,
    draws: int,
) -> tuple[tuple[Expected, Seen], ...]:
    """Look at assumed rows as a call would, several times; return rows and looks of each.

    Parameters
    ----------
    plan, described, z, rows, each
        As for `Expected`.
    family : Family
    draws : int
        How often; each time with noise of its own, the same at every call.
    """
    seeds = (np.random.default_rng([_SEED, draw]) for draw in range(draws))
    taken = (Expected(plan, described, z, rows, rng, each) for rng in seeds)
    return tuple((one, look(one, family)) for one in taken)


def without_noise(rows: Expected, seen: Seen, beta: Floats) -> Seen:
    """Return the same looks, the last of them, a locating one, as it is without its noise.

    Its score is that of coefficients `beta` of (1, x) in stored units: what assumed rows show of
    them by chance would count as an effect if they stand for many.
    """
    last = seen.releases[-1]
    exact = _Quiet(*(getattr(rows, one.name) for one in fields(rows)))
    told = exact.locating(last.point, seen.family, last.limits, Fraction(last.share), 0.0)
    theta = pseudo(last.point.transform) @ (beta - last.point.shift)
    told = replace(last, information=told.information, trace=told.trace)
    told = replace(told, score=moved(told, seen.family) @ theta)
    return replace(seen, releases=(*seen.releases[:-1], told))


class _Quiet(Expected):
    """The same rows, and no noise."""

    __slots__ = ()

    def _drawn(self, noise: Any, share: Fraction, *, last: bool = False) -> Any:
        return ((0,) * noise.size,) * noise.size


@dataclass(frozen=True, slots=True)
class _Stored:
    """Makes row vectors of a chunk that holds them."""

    size: int

    @property
    def types(self) -> Mapping[str, ColumnType]:
        return {}

    def block(self, chunk: Chunk, /) -> Floats:
        return np.array(chunk[_CELLS], dtype=np.float64)
