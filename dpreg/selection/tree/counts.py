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

Cells whose models count with integer weights, so that likely models are likely leaves.

Idea
----
The noise of a model has the arrival L_M, standard exponential (`noise`). Give model M the
weight W_M, a positive integer, and let L'_M = L_M / W_M: independent exponentials of rates W_M.
The least L' of a cell is exponential with the rate sum W, exactly; it sits at M with probability
W_M / sum W; and given both, the others' L' exceed it by fresh exponentials of their own rates. So
the tree works on L' as it does on L, with sums of weights in place of counts; the value of a leaf
is law(L' W_M) - t S(M). W = 1 is the uniform case. This holds for **every** choice of weights and
for both mechanisms, since L_M stays standard exponential and independent of all others. (The
tempting shortcut, one maximum of F^(sum of odds) used as the noise itself, takes L' for L.)

Weights: a coin for each unit, in with probability a_u / 2**32; W_M = prod_in a_u prod_out b_u,
b_u = 2**32 - a_u. The sum over a cell is an exact integer: the decided units' factors times 2**32
for each free one; a leaf is drawn by independent exact coins. The odds are near
exp(t (w_u - price_u)), w_u the state's weight of unit u, so that W_M is near exp(-t S(M)) where
columns are near orthogonal: leaves are then near the final draw, and bounds near their values.

Bound. With S(M) >= F0/g - 1 + sum_out w_u / g + sum_in price_u for the models of a cell,

    ln W_M + t S(M) >= level = t (F0/g - 1) + sum of decided parts
                               + sum_free min(ln a_u + t price_u, ln b_u + t w_u / g).

Let l be the cell's least L'. Gumbel noise: the value, -ln L' - (ln W_M + t S(M)), is at most
-ln l - level. Exponential noise h(x) = -ln(1 - exp(-x)): h(x) + ln x grows in x and is at most x/2,
so that with y >= l W_M for all M of the cell, value <= -ln l + (h(y) + ln y) - level.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Container
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Final

import numpy as np

from dpreg.arrays import Floats, Places
from dpreg.selection.space import Space
from dpreg.selection.tree.noise import Bits

_TRIES: Final = 64


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
        prices = [phi * len(columns) + psi for columns in space.unit_columns]
        self.prices = np.array(prices, dtype=np.int64)
        self.limit = space.limit
        self.needs = [0] * self.units
        self.needed_by = [0] * self.units
        for unit, needs in enumerate(space.requires):
            for need in needs:
                self.needs[unit] |= 1 << need
                self.needed_by[need] |= 1 << unit
        self.hierarchy = any(self.needs)

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

    def weight(self, model: int) -> int:
        """Return how much a model counts in `size`: here once."""
        return 1

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


_BITS: Final = 32
_MATTERS: Final = 0.05
_REMEMBERED: Final = 2000
_SLACK: Final = 2.0**-40


class Weights(Counts):
    """The cells of a space without limits of size, with a coin for each unit.

    Parameters
    ----------
    worth : float array, by unit
        About t w_u / g: what leaving a unit out costs, in nats.
    t : float
        Nats per integer unit of score.
    """

    def __init__(self, space: Space, phi: int, psi: int, worth: Floats, t: float) -> None:
        super().__init__(space, phi, psi)
        charge = t * self.prices
        with np.errstate(over="ignore"):
            share = 1.0 / (1.0 + np.exp(-np.nan_to_num(worth - charge)))
        self._a = np.clip(np.rint(share * 2.0**_BITS), 1, 2**_BITS - 1).astype(np.uint64)
        self.a = [int(a) for a in self._a]
        self.b = [2**_BITS - a for a in self.a]
        self._log_a = np.array([math.log(a) for a in self.a])
        self._log_b = np.array([math.log(b) for b in self.b])
        self._inside = self._log_a + charge
        self._weighed: dict[int, int] = {}
        self._all = (1 << self.units) - 1

    def size(self, cell: Cell) -> int:
        """Return the sum of the weights of the models in the cell."""
        inside, out = self._decided(cell)
        decided: int = math.prod([self.a[u] for u in inside.tolist()])
        decided *= math.prod([self.b[u] for u in out.tolist()])
        return decided << (_BITS * cell.free.bit_count())

    def _decided(self, cell: Cell) -> tuple[Places, Places]:
        """Return the units in every model of the cell, and those in none."""
        return members(cell.inside), members(self._all & ~(cell.inside | cell.free))

    def weight(self, model: int) -> int:
        """Return the weight of a model."""
        known = self._weighed.get(model)
        if known is None:
            if len(self._weighed) > _REMEMBERED:
                self._weighed.clear()
            known = self._weighed[model] = self.size(Cell(model, 0, 0, 0))
        return known

    def draw(self, cell: Cell, bits: Bits) -> int:
        """Return a model of the cell with probability its share of the weight, exactly."""
        words = np.frombuffer(bits.take(self.units * _BITS // 8), dtype=np.uint32)
        return cell.inside | (_mask(np.flatnonzero(words < self._a), self.units) & cell.free)

    def level(self, cell: Cell, bound: float, weight: Floats, rate: float) -> float:
        """Return the level of the cell, rounded down.

        Parameters
        ----------
        bound : float
            F0, what units decided to be out add to it included.
        weight : float array, by unit
            w_u for the free units.
        rate : float
            t / g.
        """
        inside, out = self._decided(cell)
        free = members(cell.free)
        fixed = float(self._inside[inside].sum() + self._log_b[out].sum())
        loose = np.minimum(self._inside[free], self._log_b[free] + rate * weight[free])
        main = rate * bound
        room = abs(main) + abs(fixed) + float(np.abs(loose).sum()) + 1.0
        return main + fixed + float(loose.sum()) - room * _SLACK

    def heaviest(self, cell: Cell) -> Heaviest:
        """Return the list of the cell's models by falling weight."""
        inside, out = self._decided(cell)
        free = members(cell.free)
        a, b = self._log_a[free], self._log_b[free]
        top = float(self._log_a[inside].sum() + self._log_b[out].sum())
        top += float(np.maximum(a, b).sum())
        model = cell.inside | _mask(free[a > b], self.units)
        odds = np.abs(a - b)
        order = np.argsort(odds)
        return Heaviest(model, top, odds[order].tolist(), free[order].tolist())

    def sharpest(
        self, cell: Cell, weight: Floats, expected: Floats, rate: float
    ) -> tuple[int, float]:
        """Return the free unit on which a split should raise a level most, and by how much.

        Where no unit by itself raises one, as columns share what they explain, it is the unit that
        matters most.
        """
        free = members(cell.free)
        weight, expected = weight[free], expected[free]
        inside, out = self._inside[free], self._log_b[free]
        least = np.minimum(inside, out + rate * weight)
        rise = np.maximum(inside, out + rate * np.maximum(expected, weight)) - least
        best = int(np.argmax(rise + _MATTERS * rate * expected))
        return int(free[best]), float(rise[best])


class Heaviest:
    """The models of a cell by falling weight, as far as asked (rising sums of log odds flipped)."""

    def __init__(self, model: int, top: float, cost: list[float], units: list[int]) -> None:
        self._cost, self._units, self._top = cost, units, top
        self._room = (abs(top) + 1.0) * _SLACK
        self._heap: list[tuple[float, int, int]] = [(0.0, -1, model)]

    def most(self, gone: Container[int]) -> float:
        """Return at least the log of the largest weight of a model not in `gone`.

        `gone` may only grow from call to call.
        """
        while self._heap and self._heap[0][2] in gone:
            total, last, found = heapq.heappop(self._heap)
            if last + 1 < len(self._units):
                near, step = self._cost[last + 1], 1 << self._units[last + 1]
                heapq.heappush(self._heap, (total + near, last + 1, found ^ step))
                if last >= 0:
                    swapped = found ^ (1 << self._units[last]) ^ step
                    total += near - self._cost[last]
                    heapq.heappush(self._heap, (total, last + 1, swapped))
        return self._top + self._room - (self._heap[0][0] if self._heap else 0.0)


def excess(log_y: float) -> float:
    """Return at least h(y) + ln y for all y up to exp(log_y), h(y) = -ln(1 - exp(-y))."""
    if log_y < 0.5:
        return math.exp(log_y) / 2 * (1 + _SLACK)
    return max(log_y, 0.9) + 0.2  # exp(1/2) / 2 < 0.83; h falls, and h(exp(1/2)) < 0.22
