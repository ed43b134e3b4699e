"""Rows that are assumed, as looks see them: what a call would release of a table of such rows.

Limits, sums and noise are those of a call, by the same code: each assumed row stands for rows /
(assumed rows) of the table's, and noise is drawn from its law with a fixed seed. Nothing here is
private, and nothing needs to be: no confidential row is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dpreg.arrays import Floats, to_grid
from dpreg.looks.coordinates import Place, pseudo
from dpreg.looks.loop import Seen, moved
from dpreg.looks.minimum import hold, minimum, perturbation
from dpreg.looks.plan import LookPlan
from dpreg.looks.records import Described
from dpreg.looks.rows import Rows, StoredVectors
from dpreg.looks.table import Exact, LookTally, Taken, exact_sums
from dpreg.moments import Moments, accumulate
from dpreg.privacy.look_noise import MinimumNoise
from dpreg.privacy.noise import HOLD
from dpreg.sources.kept import MADE
from dpreg.sources.persons import PERSON

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["Expected", "expected_moments", "without_noise"]


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
    rng : Generator or None
        Without one locating looks have no noise.
    each : int
        Rows of a person, where the looks are of persons: those that follow each other.
    """

    plan: LookPlan
    described: Described
    z: Floats
    rows: int
    rng: Generator | None
    each: int = 1

    def _moments(self) -> Moments:
        return expected_moments(self.z, self.rows)

    def _sums(self, place: Place, described: Described, *, matrix: bool) -> Exact:
        rows = Rows(StoredVectors(self.z.shape[1]), described, place)
        tally = LookTally(rows, matrix, self.plan.persons)
        codes = np.arange(len(self.z)) // self.each
        vector = tally([(0, {MADE: to_grid(self.z), PERSON: codes})])
        return exact_sums(tally, np.array(_scaled(vector, self.rows, self.z), dtype=object))

    def _drawn(self, noise: Any, share: Fraction, *, last: bool = False) -> Any:
        if self.rng is None:
            return ((0,) * len(noise.sd),) * len(noise.sd)
        return noise.simulate(self.rng)

    def _minimum(
        self, place: Place, noise: MinimumNoise, share: Fraction, count: float
    ) -> tuple[Floats, float, tuple[int, ...], int]:
        rows = Rows(StoredVectors(self.z.shape[1]), self.described, place)
        held = hold(rows, [to_grid(self.z).T.astype(np.float64)])
        eps = noise.strength * noise.shares[0]
        own = perturbation(held, eps, noise.protection, count, HOLD)
        each = held.weights * (self.rows / len(self.z))
        outer, trace = noise.simulate(self.rng)
        b = own.simulate(self.rng)
        whole = replace(held, weights=each, penalty=own.penalty, noise=b)
        found = minimum(whole, own.tolerance, own.slack, own.places)
        t = np.array([float(cell) for cell in own.hidden(found, self.rng)])
        return t, float(own.penalty), outer, trace


def expected_moments(z: Floats, rows: int) -> Moments:
    """Return the moments of a table of so many rows, which these stand for."""
    found = accumulate([z], z.shape[1])
    return Moments(rows, tuple(tuple(_scaled(row, rows, z)) for row in found.cells))


def _scaled(cells: Any, rows: int, z: Floats) -> list[int]:
    return [int(cell) * rows // len(z) for cell in cells]


def without_noise(rows: Expected, seen: Seen, beta: Floats) -> Seen:
    """Return the same looks, the last of them, a locating one, as it is without its noise.

    Its score is that of coefficients `beta` of (1, x) in stored units: what assumed rows show of
    them by chance would count as an effect if they stand for many.
    """
    last = seen.releases[-1]
    exact = replace(rows, rng=None)
    told = exact.locating(last.point, seen.family, last.limits, Fraction(last.share), 0.0)
    theta = pseudo(last.point.transform) @ (beta - last.point.shift)
    told = replace(last, information=told.information, trace=told.trace)
    told = replace(told, score=moved(told, seen.family) @ theta)
    return replace(seen, releases=(*seen.releases[:-1], told))
