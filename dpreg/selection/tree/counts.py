r"""Sets of models inside the tree: how many there are, a uniform one of them, and how they split.

A *cell* is a set of models: those that hold all units of I, other units from U alone, and, for
each *class* of units (units with the same penalty), a number of units within [lo, hi]; besides,
the whole number of units lies within the limits of the space. Units are bits of Python integers.

Counts. With i_c and u_c the numbers of units of class c in I and U,

    N = sum over (k_c), lo_c <= k_c <= hi_c, min <= sum k_c <= max, of prod_c C(u_c, k_c - i_c),

an exact integer; the penalty of every model in a cell is at least that of k_c = max(lo_c, i_c),
and the same for all once lo = hi.

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
from typing import Final

import numpy as np

from dpreg.arrays import Places
from dpreg.selection.space import Space
from dpreg.selection.tree.noise import Bits

_TRIES: Final = 64

__all__ = ["Cell", "Counts", "members"]

Vector = tuple[int, ...]


def members(mask: int) -> Places:
    """Return the units of a mask in increasing order."""
    raw = np.frombuffer(mask.to_bytes((mask.bit_length() + 7) // 8, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(raw, bitorder="little"))


def _mask(units: Places, length: int) -> int:
    flags = np.zeros(length, dtype=np.uint8)
    flags[units] = 1
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


class Binomials:
    """Exact binomial coefficients, summed: rows of Pascal's triangle grown as far as asked."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[list[int], list[int]]] = {}

    def up_to(self, n: int, k: int) -> int:
        """Return sum_{j <= k} C(n, j)."""
        if k < 0:
            return 0
        if k >= n:
            return 1 << n
        if 2 * k > n:
            return (1 << n) - self.up_to(n, n - k - 1)
        row, sums = self._rows.setdefault(n, ([1], [1]))
        while len(row) <= k:
            j = len(row)
            row.append(row[-1] * (n - j + 1) // j)
            sums.append(sums[-1] + row[-1])
        return sums[k]

    def one(self, n: int, k: int) -> int:
        """Return C(n, k)."""
        if not 0 <= k <= n:
            return 0
        k = min(k, n - k)
        self.up_to(n, k)
        return self._rows[n][0][k] if k else 1

    def between(self, n: int, lo: int, hi: int) -> int:
        """Return sum_{lo <= j <= hi} C(n, j)."""
        return self.one(n, lo) if lo == hi else self.up_to(n, hi) - self.up_to(n, lo - 1)


@dataclass(frozen=True, slots=True)
class Cell:
    """A set of models; see the module docstring.

    Attributes
    ----------
    inside, free : int
        Masks of I and U.
    lo, hi : tuple of int
        Least and largest number of units of each class, I included.
    """

    inside: int
    free: int
    lo: Vector
    hi: Vector


class Counts:
    """The units of a space in classes of equal penalty, and the arithmetic of its cells."""

    def __init__(self, space: Space, phi: int, psi: int) -> None:
        self.units = len(space.units)
        prices = [phi * len(columns) + psi for columns in space.unit_columns]
        self.prices = tuple(sorted(set(prices))) or (0,)
        self.masks = tuple(
            sum(1 << u for u, price in enumerate(prices) if price == of) for of in self.prices
        )
        top = self.units if space.max_units is None else min(space.max_units, self.units)
        self.limits = (space.min_units, top)
        self.needs = [0] * self.units
        self.needed_by = [0] * self.units
        for unit, needs in enumerate(space.requires):
            for need in needs:
                self.needs[unit] |= 1 << need
                self.needed_by[need] |= 1 << unit
        self.hierarchy = any(self.needs)
        self._binomials = Binomials()
        self._known: dict[tuple[Vector, Vector, Vector, int, int], int] = {}

    def root(self) -> Cell:
        """Return the cell of all models."""
        sizes = tuple(mask.bit_count() for mask in self.masks)
        return self._tight((1 << self.units) - 1, 0, (0,) * len(sizes), sizes)

    def _tight(self, free: int, inside: int, lo: Vector, hi: Vector) -> Cell:
        """Return the cell with the ends of its classes moved to what they can reach."""
        if len(self.masks) == 1:
            i, u = inside.bit_count(), free.bit_count()
            least = max(lo[0], i, self.limits[0])
            return Cell(inside, free, (least,), (min(hi[0], i + u, self.limits[1]),))
        reached: list[tuple[int, int]] = []
        for mask, a, b in zip(self.masks, lo, hi, strict=True):
            i = (inside & mask).bit_count()
            reached.append((max(a, i), min(b, i + (free & mask).bit_count(), self.limits[1])))
        return Cell(inside, free, tuple(a for a, _ in reached), tuple(b for _, b in reached))

    def penalty(self, numbers: Vector) -> int:
        """Return the penalty of a model with these numbers of units of each class."""
        return sum(price * k for price, k in zip(self.prices, numbers, strict=True))

    def penalty_of(self, model: int) -> int:
        """Return the penalty of a model."""
        return self.penalty(tuple((model & mask).bit_count() for mask in self.masks))

    def weight(self, model: int) -> int:
        """Return how much a model counts in `size`: here once."""
        return 1

    def size(self, cell: Cell) -> int:
        """Return N, the exact number of models in the cell."""
        inside = tuple((cell.inside & mask).bit_count() for mask in self.masks)
        free = tuple((cell.free & mask).bit_count() for mask in self.masks)
        lo = tuple(a - i for a, i in zip(cell.lo, inside, strict=True))
        hi = tuple(b - i for b, i in zip(cell.hi, inside, strict=True))
        decided = sum(inside)
        return self._count(free, lo, hi, self.limits[0] - decided, self.limits[1] - decided)

    def _count(self, free: Vector, lo: Vector, hi: Vector, least: int, most: int) -> int:
        if any(a > b for a, b in zip(lo, hi, strict=True)):
            return 0
        least, most = max(least, sum(lo)), min(most, sum(hi))
        if least > most:
            return 0
        key = (free, lo, hi, least, most)
        known = self._known.get(key)
        if known is None:
            if len(free) == 1:
                known = self._binomials.between(free[0], least, most)
            elif least == sum(lo) and most == sum(hi):
                known = 1
                for u, a, b in zip(free, lo, hi, strict=True):
                    known *= self._count((u,), (a,), (b,), a, b)
            else:
                known = sum(
                    self._binomials.one(free[0], k)
                    * self._count(free[1:], lo[1:], hi[1:], least - k, most - k)
                    for k in range(lo[0], hi[0] + 1)
                )
            self._known[key] = known
        return known

    def draw(self, cell: Cell, bits: Bits) -> int:
        """Return a model of the cell, exactly uniform over its N."""
        if len(self.masks) == 1 and cell.hi[0] - cell.lo[0] == cell.free.bit_count():
            return cell.inside | (bits.word(self.units) & cell.free)
        model = cell.inside
        inside = [(cell.inside & mask).bit_count() for mask in self.masks]
        groups = [members(cell.free & mask) for mask in self.masks]
        free = tuple(len(group) for group in groups)
        lo = tuple(a - i for a, i in zip(cell.lo, inside, strict=True))
        hi = tuple(b - i for b, i in zip(cell.hi, inside, strict=True))
        least, most = (limit - sum(inside) for limit in self.limits)
        for c, group in enumerate(groups):
            left = bits.below(self._count(free[c:], lo[c:], hi[c:], least, most))
            k = self._number(free[c:], lo[c:], hi[c:], least, most, left)
            model |= _mask(group[bits.choose(free[c], k)], self.units)
            least, most = least - k, most - k
        return model

    def draw_other(self, cell: Cell, gone: frozenset[int], bits: Bits) -> int:
        """Return a model of the cell, with its share of the count or weight, but none of `gone`.

        By rejection; where that takes long, unit by unit until nothing of `gone` is left inside:
        each step takes a part with probability its share of what is left, exactly.
        """
        for _ in range(_TRIES):
            model = self.draw(cell, bits)
            if model not in gone:
                return model
        left = [model for model in gone if self.holds(cell, model)]
        for unit in members(cell.free).tolist():
            if not left:
                break
            bit = 1 << unit
            parts = [
                self._tight(cell.free & ~bit, cell.inside | within, cell.lo, cell.hi)
                for within in (bit, 0)
            ]
            inside = [model for model in left if model & bit]
            sizes = [
                self.size(part) - sum(self.weight(model) for model in own)
                for part, own in zip(parts, (inside, [m for m in left if not m & bit]), strict=True)
            ]
            first = bits.below(sum(sizes)) < sizes[0]
            cell = parts[0] if first else parts[1]
            left = [model for model in left if bool(model & bit) == first]
        return self.draw(cell, bits)

    def _number(
        self, free: Vector, lo: Vector, hi: Vector, least: int, most: int, left: int
    ) -> int:
        """Return the number of the first class in the model of rank `left`, by that number."""
        if len(free) == 1:
            first, last = max(lo[0], least), min(hi[0], most)
            left += self._binomials.up_to(free[0], first - 1)
            return bisect_right(
                range(last), left, lo=first, key=lambda k: self._binomials.up_to(free[0], k)
            )
        for k in range(lo[0], hi[0]):
            rest = self._count(free[1:], lo[1:], hi[1:], least - k, most - k)
            here = self._binomials.one(free[0], k) * rest
            if left < here:
                return k
            left -= here
        return hi[0]

    def is_model(self, model: int) -> bool:
        """Whether a drawn model respects the hierarchy."""
        if not self.hierarchy:
            return True
        return all(self.needs[u] & ~model == 0 for u in members(model).tolist())

    def with_unit(self, cell: Cell, unit: int) -> Cell:
        """Return the models of the cell that hold a free unit and all it requires."""
        added = ((1 << unit) | self.needs[unit]) & ~cell.inside
        return self._tight(cell.free & ~added, cell.inside | added, cell.lo, cell.hi)

    def without_unit(self, cell: Cell, unit: int) -> Cell:
        """Return the models of the cell without a free unit and all that requires it."""
        removed = (1 << unit) | self.needed_by[unit]
        return self._tight(cell.free & ~removed, cell.inside, cell.lo, cell.hi)

    def halves(self, cell: Cell, c: int) -> tuple[Cell, Cell]:
        """Split the range of class c in the middle."""
        middle = (cell.lo[c] + cell.hi[c]) // 2
        low = (*cell.hi[:c], middle, *cell.hi[c + 1 :])
        high = (*cell.lo[:c], middle + 1, *cell.lo[c + 1 :])
        return (
            self._tight(cell.free, cell.inside, cell.lo, low),
            self._tight(cell.free, cell.inside, high, cell.hi),
        )

    def holds(self, cell: Cell, model: int) -> bool:
        """Whether a model lies in the cell."""
        if cell.inside & ~model or model & ~(cell.inside | cell.free):
            return False
        if not self.limits[0] <= model.bit_count() <= self.limits[1]:
            return False
        return all(
            a <= (model & mask).bit_count() <= b
            for mask, a, b in zip(self.masks, cell.lo, cell.hi, strict=True)
        )
