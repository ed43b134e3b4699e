r"""Noise for sums that say how large rows and residuals are, with proofs.

A complete row of p >= 1 columns x_j and a response y, all in [-1, 1], has the cells

    p (1, 2 y, 2 y^2),    3 sum_j x_j^2;

an incomplete row has zeros.

*Statement.* Between neighbours the sums of these cells over the rows move by at most 8 p k in the
L1 norm, under either relation, k the rows of one person.

*Proof.* One row added, or replaced by an incomplete one, or the reverse: at most
p (1 + 2 |y| + 2 y^2) + 3 sum x_j^2 <= 5 p + 3 p. A complete row for a complete one: the first cell
stays. With s = |y + y'| and d = |y - y'|, the next two move by 2 p d (1 + s), and s + d <= 2 as
both responses are at most 1: 2 p d (3 - d) <= 9 p / 2 < 5 p. The last cell lies between 0 and 3 p,
and moves by no more. k rows: the triangle inequality. A row of ones, added or taken away, attains
it. QED

*Statement.* Let the columns be single ones and G groups of 0/1 columns, of which at most one is not
zero in a row. With s single ones the sums of the columns move by at most (s + G) k in the L1 norm
under add-remove and by twice that under replace-one.

*Proof.* A row's absolute values add up to at most s + G, of which an incomplete one has none; two
rows differ by at most the sum of both. QED

*Statement.* A row's part of a sum lies between 0 and 1, and is 0 in an incomplete row. The sum
moves by at most k, under either relation. *Proof.* So does each part. QED

Stored cells lie on the grid 2**-20, so that all sums are whole in units of 2**-40, or of 2**-20
where a row's part of the last one is rounded down to it. Noise: `dpreg.privacy.vector_noise`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from dpreg.privacy.budget import ALL_ROWS, Budget
from dpreg.privacy.gram_sensitivity import CELL_UNITS
from dpreg.privacy.protection import Protection
from dpreg.privacy.stability import VectorChange
from dpreg.privacy.vector_noise import VectorNoise, fit_noise

if TYPE_CHECKING:
    from dpreg.privacy.account import Part

__all__ = ["PARTS", "SumsNoise", "means_noise", "part_noise", "scales_noise"]

PARTS: Final = 2**20
"""Integer units of a row's part of a sum."""
_ROW: Final = (1, 2, 2)
"""Weights of the number of rows, and of the sums of y and y^2."""
_COLUMNS: Final = 3
"""And of the sum of squares of all columns, over p. On drawn tables of 5 to 30 columns others were
no better."""


@dataclass(frozen=True, slots=True)
class SumsNoise:
    """Noise fitted to sums of cells.

    Attributes
    ----------
    weights : tuple of int
        What the sums are multiplied by before noise of one scale is added.
    units : int
        A sum of one is so many integers, before that.
    noise : VectorNoise
    """

    weights: tuple[int, ...]
    units: int
    noise: VectorNoise

    @property
    def sds(self) -> list[float]:
        """Standard deviations, in units of one."""
        sd = math.sqrt(self.noise.variance)
        return [sd / (weight * self.units) for weight in self.weights]

    def released(self, exact: Sequence[int], part: Part, rows: str = ALL_ROWS) -> list[float]:
        """Add the noise to integer sums, and return them in units of one."""
        drawn = self.noise.draw(len(self.weights), part, rows)
        return [
            float(Fraction(cell * weight + own, weight * self.units))
            for cell, weight, own in zip(exact, self.weights, drawn, strict=True)
        ]


def scales_noise(columns: int, eps: Fraction, protection: Protection) -> SumsNoise:
    """Fit noise to the number of complete rows, and the sums of y, of y^2 and of all x_j^2.

    Parameters
    ----------
    columns : int
        p; none counts as one that is zero.
    eps : Fraction
    protection : Protection
    """
    p = max(columns, 1)
    most = (sum(_ROW) + _COLUMNS) * p * protection.contributions
    weights = (*(weight * p for weight in _ROW), _COLUMNS)
    noise = _fitted(most * CELL_UNITS, len(weights), eps, protection)
    return SumsNoise(weights, CELL_UNITS, noise)


def means_noise(
    columns: int, groups: Sequence[Sequence[int]], eps: Fraction, protection: Protection
) -> SumsNoise:
    """Fit noise to the sums of the columns.

    Parameters
    ----------
    columns : int
        Their number, at least 1.
    groups : sequence of sequences of int
        The places of each group's 0/1 columns.
    eps : Fraction
    protection : Protection
    """
    apart = columns - sum(len(group) - 1 for group in groups)
    twice = 2 if protection.neighbors == "replace-one" else 1
    most = twice * apart * protection.contributions
    noise = _fitted(most * CELL_UNITS, columns, eps, protection)
    return SumsNoise((1,) * columns, CELL_UNITS, noise)


def part_noise(eps: Fraction, protection: Protection) -> SumsNoise:
    """Fit noise to one sum of parts between 0 and 1, in whole units of 1/`PARTS`."""
    return SumsNoise((1,), PARTS, _fitted(protection.contributions * PARTS, 1, eps, protection))


def _fitted(most: int, cells: int, eps: Fraction, protection: Protection) -> VectorNoise:
    moved = VectorChange(
        protection=protection, l1=most, l2_squared=most**2, mechanisms=("laplace",)
    )
    return fit_noise("laplace", moved, cells=cells, cost=Budget(eps))
