r"""The plan of the looks at a family: which noise, how many looks at most, what each may take.

A call spends .10 of its budget on a first look in the box and .12 on one at the fit that it starts
from. While that fit still moves by more than a threshold, another look takes a part; the last one
takes all that is left. How many looks there are follows from released values. That is free: the
parts add up to no more than the whole on every path, which is what `dpreg.privacy.looks` asks of
Gaussian looks.

Tested in `tests/families/test_looks.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpreg.privacy.account import Account, Line, Part
from dpreg.privacy.budget import ALL_ROWS, Budget
from dpreg.privacy.gram_sensitivity import Triangle, layout
from dpreg.privacy.look_noise import GaussianLook, box_gaussian
from dpreg.privacy.looks import looks_ratio
from dpreg.privacy.protection import Protection
from dpreg.staged.need import rows_needed

__all__ = ["FIRST", "MOST_LOOKS", "SECOND", "FamilyPlan", "OpenFamilyLooks", "plan_family"]

FIRST: Final = Fraction(10, 100)
SECOND: Final = Fraction(12, 100)
MORE: Final = (Fraction(18, 100), Fraction(12, 100))
"""Parts of the whole that further looks take while the fit moves."""
MOVED: Final = (0.15, 0.08)
"""Mean square of the predictor's change from where on there is such a look."""
CHEAP: Final = 0.05
"""Noise beside the sampling error, as variances, below which a further look costs nothing."""
STILL: Final = 1e-10
"""Below this change of the predictor even such a look is not made."""
NEEDED: Final = 2.2
"""Rows that intervals need, beside those at which columns just stand out of the noise."""
MOST_LOOKS: Final = 3 + len(MORE)


@dataclass(frozen=True, slots=True)
class FamilyPlan:
    """What the looks may cost and how noisy they are.

    Attributes
    ----------
    triangle : Triangle
        The cells of the first look, the constant among its columns.
    offsets : int
        How many of its columns have known slopes.
    mu_squared : Fraction
        r^2 of all looks together.
    cost : Budget
    protection : Protection
    """

    triangle: Triangle
    offsets: int
    mu_squared: Fraction
    cost: Budget
    protection: Protection
    mechanism = "gaussian"

    @property
    def size(self) -> int:
        """d: the columns with coefficients, the intercept among them."""
        return len(self.triangle.columns) - self.offsets

    def ratio(self, share: Fraction) -> float:
        """Return mu of a look of this share, over the rows of one person."""
        return math.sqrt(self.mu_squared * share) / self.protection.contributions

    def box_noise(self) -> GaussianLook:
        """Return the noise of the first look, at rows in the box."""
        who = self.protection
        own = self.mu_squared * FIRST
        return box_gaussian(self.triangle, own, who.neighbors, who.contributions)

    @property
    def last_share(self) -> Fraction:
        """The share of the last look where one look more than the least was needed."""
        return 1 - FIRST - SECOND - MORE[0]

    @property
    def rows_needed(self) -> float:
        """Complete rows below which no intervals can be expected.

        About where the least eigenvalue of the information is twice the noise's norm: a multiple
        of what `dpreg.staged.need` says for the rows of a linear model.
        """
        ratio, relation = self.ratio(self.last_share), self.protection.neighbors
        return NEEDED * rows_needed(self.size, ratio, relation, gaussian=True)

    def open(self, account: Account, *, rows: str = ALL_ROWS) -> OpenFamilyLooks:
        """Open the looks' line of a call's account, which is not yet charged."""
        line = account.joint(
            "looks",
            self.mechanism,
            self.cost,
            mu_squared=self.mu_squared,
            rows=rows,
            note=f"at most {MOST_LOOKS} looks; the last takes what the others leave of mu^2",
        )
        return OpenFamilyLooks(self, line)


@dataclass(frozen=True, slots=True, eq=False)
class OpenFamilyLooks:
    """The looks' right to draw, opened in a call's account.

    Attributes
    ----------
    plan : FamilyPlan
    line : Line
    """

    plan: FamilyPlan
    line: Line

    def part(self, share: Fraction) -> Part:
        """Take the part of one look."""
        return self.line.look(self.plan.mu_squared * share)


def plan_family(
    columns: int,
    cost: Budget,
    protection: Protection,
    *,
    offsets: int = 0,
    exclusive: Sequence[Sequence[int]] = (),
) -> FamilyPlan:
    """Plan the looks at p columns and some of known slope.

    Parameters
    ----------
    columns : int
        p, the stored columns that have coefficients, without the constant.
    cost : Budget
        What all looks may cost; delta above 0.
    protection : Protection
    offsets : int
        Columns of known slope.
    exclusive : sequence of sequences of int
        z indices of the 0/1 columns of each factor.
    """
    triangle = layout(range(columns + offsets + 1), exclusive)
    located = (columns + 2) * (columns + 3) // 2
    cells = len(triangle.cells) + (MOST_LOOKS - 1) * located
    whole = Fraction(looks_ratio(cost.eps, cost.delta, cells)) ** 2
    return FamilyPlan(triangle, offsets, whole, cost, protection)
