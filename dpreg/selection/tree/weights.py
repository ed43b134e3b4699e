r"""Cells whose models count with integer weights, so that likely models are likely leaves.

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

Tested in `tests/selection/tree/test_sampler.py`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Container
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.selection.space import Space
from dpreg.selection.tree.bounds import State
from dpreg.selection.tree.counts import Cell, Counts, _mask, members
from dpreg.selection.tree.noise import Bits

__all__ = ["Weights", "excess"]


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
        super().__init__(space, 0, 0)
        self.charges = [phi * len(columns) + psi for columns in space.unit_columns]
        charge = t * np.array(self.charges, dtype=np.float64)
        with np.errstate(over="ignore"):
            share = 1.0 / (1.0 + np.exp(-np.nan_to_num(worth - charge)))
        self._a = np.clip(np.rint(share * 2.0**_BITS), 1, 2**_BITS - 1).astype(np.uint64)
        self.a = [int(a) for a in self._a]
        self.b = [2**_BITS - a for a in self.a]
        log_a = np.array([math.log(a) for a in self.a])
        self._log_b = np.array([math.log(b) for b in self.b])
        self._inside = log_a + charge
        self._log_a = log_a
        self._weighed: dict[int, int] = {}
        self._all = (1 << self.units) - 1

    def penalty_of(self, model: int) -> int:
        """Return the penalty of a model."""
        return sum(self.charges[u] for u in members(model).tolist())

    def size(self, cell: Cell) -> int:
        """Return the sum of the weights of the models in the cell."""
        out = self._all & ~(cell.inside | cell.free)
        decided: int = math.prod([self.a[u] for u in members(cell.inside).tolist()])
        decided *= math.prod([self.b[u] for u in members(out).tolist()])
        return decided << (_BITS * cell.free.bit_count())

    def weight(self, model: int) -> int:
        """Return the weight of a model."""
        known = self._weighed.get(model)
        if known is None:
            if len(self._weighed) > _REMEMBERED:
                self._weighed.clear()
            known = self._weighed[model] = self.size(Cell(model, 0, (0,), (0,)))
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
        inside, free = members(cell.inside), members(cell.free)
        out = members(self._all & ~(cell.inside | cell.free))
        fixed = float(self._inside[inside].sum() + self._log_b[out].sum())
        loose = np.minimum(self._inside[free], self._log_b[free] + rate * weight[free])
        main = rate * bound
        room = abs(main) + abs(fixed) + float(np.abs(loose).sum()) + 1.0
        return main + fixed + float(loose.sum()) - room * _SLACK

    def heaviest(self, cell: Cell) -> Heaviest:
        """Return the list of the cell's models by falling weight."""
        inside, free = members(cell.inside), members(cell.free)
        out = members(self._all & ~(cell.inside | cell.free))
        a, b = self._log_a[free], self._log_b[free]
        top = float(self._log_a[inside].sum() + self._log_b[out].sum())
        top += float(np.maximum(a, b).sum())
        model = cell.inside | _mask(free[a > b], self.units)
        odds = np.abs(a - b)
        order = np.argsort(odds)
        return Heaviest(model, top, odds[order].tolist(), free[order].tolist())

    def sharpest(self, cell: Cell, state: State, rate: float) -> tuple[int, float]:
        """Return the free unit on which a split should raise a level most, and by how much.

        Where no unit by itself raises one, as columns share what they explain, it is the unit that
        matters most.
        """
        free = members(cell.free)
        weight, expected = state.views[-1].weight[free], state.expected[free]
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
