"""Sets of models inside the tree: how many there are, a uniform one of them, and how they split.

A *cell* is a set of models: those that hold all units of I, other units from U alone, and a number
of units within [lo, hi], ends that lie within what I, U and the limit of the space allow. Units are
bits of Python integers. With i and u the numbers of units in I and U it has

    N = sum over lo <= k <= hi of C(u, k - i)

models, an exact integer; the penalty of each is at least that of I and of the lo - i cheapest units
of U, and the same for all where units have one price and lo = hi.

Hierarchy. Counting the models that respect a hierarchy is hard for general requirements, so the
cells count a larger set: all models within the limits, those that break the hierarchy included.
Such a *phantom* gets noise like any model and the score plus infinity. The noises of distinct
models are independent, so phantoms change nothing in the law of the argmax over the true models:
they never win, and only widen a bound by the log of N over the true count. A split on unit j
makes three parts: models with j and all it requires; models without j and all that requires it;
the rest, phantoms all, which are dropped. So in every cell the requirements of I lie in I, those of
U in I + U, and when all required units are decided the count is that of the true models.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np

from dpreg.arrays import Places
from dpreg.selection.space import Space
from dpreg.selection.tree.noise import Bits


def members(mask: int) -> Places:
    """Return the units of a mask in increasing order."""
    raw = np.frombuffer(mask.to_bytes((mask.bit_length() + 7) // 8, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(raw, bitorder="little"))


def _mask(units: Places, length: int) -> int:
    flags = np.zeros(length, dtype=np.uint8)
    flags[units] = 1
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


@lru_cache(maxsize=512)
def _sums(n: int) -> tuple[int, ...]:
    """Return the sums of a row of Pascal's triangle, from the left."""
    row = accumulate(range(n), lambda value, k: value * (n - k) // (k + 1), initial=1)
    return tuple(accumulate(row))


def binomials(n: int, lo: int, hi: int) -> int:
    """Return sum_{lo <= k <= hi} C(n, k), exactly."""
    sums = _sums(n)
    return (sums[min(hi, n)] if hi >= 0 else 0) - (sums[min(lo - 1, n)] if lo > 0 else 0)


@dataclass(frozen=True, slots=True)
class Cell:
    """A set of models; see the module docstring.

    Attributes
    ----------
    inside, free : int
        Masks of I and U.
    lo, hi : int
        Least and largest number of units, I included.
    """

    inside: int
    free: int
    lo: int
    hi: int


class Counts:
    """The units of a space with their prices, and the arithmetic of its cells."""

    def __init__(self, space: Space, phi: int, psi: int) -> None:
        self.units = len(space.units)
        self.prices = space.prices(phi, psi)
        self.limit = space.limit
        self.needs = [0] * self.units
        self.needed_by = [0] * self.units
        for unit, needs in enumerate(space.requires):
            for need in needs:
                self.needs[unit] |= 1 << need
                self.needed_by[need] |= 1 << unit

    def root(self) -> Cell:
        """Return the cell of all models."""
        return self._tight((1 << self.units) - 1, 0, 0, self.limit)

    def _tight(self, free: int, inside: int, lo: int, hi: int) -> Cell:
        """Return the cell with the ends of its sizes moved to what they can reach."""
        held = inside.bit_count()
        return Cell(inside, free, max(lo, held), min(hi, held + free.bit_count()))

    def penalty(self, cell: Cell) -> int:
        """Return the least penalty of sets of units like those of the cell."""
        missing = cell.lo - cell.inside.bit_count()
        cheapest = np.sort(self.prices[members(cell.free)])[:missing]
        return self.penalty_of(cell.inside) + int(cheapest.sum())

    def penalty_of(self, model: int) -> int:
        """Return the penalty of a model."""
        return int(self.prices[members(model)].sum())

    def size(self, cell: Cell) -> int:
        """Return N, the exact number of models in the cell."""
        held = cell.inside.bit_count()
        if cell.lo > cell.hi:
            return 0
        return binomials(cell.free.bit_count(), cell.lo - held, cell.hi - held)

    def draw(self, cell: Cell, bits: Bits) -> int:
        """Return a model of the cell, exactly uniform over its N."""
        free, held = members(cell.free), cell.inside.bit_count()
        n, lo, hi = len(free), cell.lo - held, cell.hi - held
        if hi - lo == n:
            return cell.inside | (bits.word(self.units) & cell.free)
        rank = binomials(n, 0, lo - 1) + bits.below(self.size(cell))  # by the number of units
        k = bisect_right(range(hi), rank, lo=lo, key=lambda k: binomials(n, 0, k))
        return cell.inside | _mask(free[bits.choose(n, k)], self.units)

    def draw_other(self, cell: Cell, gone: frozenset[int], bits: Bits) -> int:
        """Return a model of the cell, uniform over those that are not `gone`: by rejection."""
        while (model := self.draw(cell, bits)) in gone:
            pass
        return model

    def is_model(self, model: int) -> bool:
        """Whether a drawn model respects the hierarchy."""
        return all(self.needs[u] & ~model == 0 for u in members(model).tolist())

    def with_unit(self, cell: Cell, unit: int) -> Cell:
        """Return the models of the cell that hold a free unit and all it requires."""
        added = ((1 << unit) | self.needs[unit]) & ~cell.inside
        return self._tight(cell.free & ~added, cell.inside | added, cell.lo, cell.hi)

    def without_unit(self, cell: Cell, unit: int) -> Cell:
        """Return the models of the cell without a free unit and all that requires it."""
        removed = (1 << unit) | self.needed_by[unit]
        return self._tight(cell.free & ~removed, cell.inside, cell.lo, cell.hi)

    def halves(self, cell: Cell) -> tuple[Cell, Cell]:
        """Split the range of sizes in the middle."""
        middle = (cell.lo + cell.hi) // 2
        return (
            self._tight(cell.free, cell.inside, cell.lo, middle),
            self._tight(cell.free, cell.inside, middle + 1, cell.hi),
        )

    def holds(self, cell: Cell, model: int) -> bool:
        """Whether a model lies in the cell."""
        if cell.inside & ~model or model & ~(cell.inside | cell.free):
            return False
        return cell.lo <= model.bit_count() <= cell.hi
