r"""The plan of the looks: which noise, what share of the budget each gets, how many rows they need.

All of it is public, and fixed before the charge: the looks' coordinates follow later, from what
they release.

A call spends .15 of its budget on a first look in the box, .20 and .56 on two located ones, and .05
on three cells that the last one's residuals fill with a wider cut (`dpreg.privacy.tail_noise`): of
eps (matrix-Laplace noise, pure), or of mu^2 (Gaussian noise, whose looks compose as
`dpreg.privacy.looks` proves). Another .04 buys the sum of squares of the second look's residuals,
cut farther out: it tells how far the last look's clips should reach (`dpreg.staged.clips`). More
for the first look leaves too little for the last, which alone the coefficients come from; less, and
few rows do not even locate it.

Tested in `tests/staged/test_looks.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpreg.privacy.account import Account, Line, Part
from dpreg.privacy.budget import ALL_ROWS, Budget, decimal_string
from dpreg.privacy.gram_sensitivity import Triangle, layout
from dpreg.privacy.located_sensitivity import response_weight
from dpreg.privacy.look_noise import (
    GaussianLook,
    MatrixLaplaceLook,
    box_gaussian,
    box_matrix_laplace,
    located_gaussian,
    located_matrix_laplace,
)
from dpreg.privacy.looks import looks_ratio
from dpreg.privacy.matrix_laplace import degrees, response_share
from dpreg.privacy.protection import Protection
from dpreg.privacy.tail_noise import (
    TailNoise,
    squares_noise,
    squares_sd,
    tail_noise,
    tail_sd,
)
from dpreg.staged.locate import noise_unit
from dpreg.staged.need import rows_needed

__all__ = ["NOISES", "SHARES", "SQUARES", "TAIL", "LookPlan", "OpenLooks", "plan_looks"]

NOISES: Final = ("gaussian", "matrix-laplace")

SHARES: Final = (Fraction(15, 100), Fraction(20, 100), Fraction(56, 100))
TAIL: Final = Fraction(5, 100)
SQUARES: Final = Fraction(4, 100)

_BOX_SIGNAL: Final = 0.25
"""|theta|^2 that a first look expects: the columns explain a quarter of the response's box."""


@dataclass(frozen=True, slots=True)
class LookPlan:
    """What the looks may cost and how noisy they are.

    Attributes
    ----------
    triangle : Triangle
        The cells of the first look, the constant among its columns.
    mechanism : {"gaussian", "matrix-laplace"}
    strengths : tuple of Fraction
        mu^2 of each Gaussian look, or eps of each matrix-Laplace look.
    shares : tuple of Fraction
        Of the whole, in the same order.
    tail_strength : Fraction
        mu^2 or eps of the last look's tail.
    squares_strength : Fraction
        mu^2 or eps of the sum of squares of the look before it.
    cost : Budget
        Of all looks together.
    protection : Protection
    """

    triangle: Triangle
    mechanism: str
    strengths: tuple[Fraction, ...]
    shares: tuple[Fraction, ...]
    tail_strength: Fraction
    squares_strength: Fraction
    cost: Budget
    protection: Protection

    @property
    def size(self) -> int:
        """D: the constant, the p columns and the response."""
        return len(self.triangle.columns) + 1

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian."""
        return self.mechanism == "gaussian"

    @property
    def degrees(self) -> int | None:
        """The degrees of freedom of each Wishart; None for Gaussian noise."""
        return None if self.gaussian else degrees(self.size)

    def strength(self, look: int) -> float:
        """Return mu or eps of a look, divided by the rows of one person."""
        own = float(self.strengths[look])
        whole = math.sqrt(own) if self.gaussian else own
        return whole / self.protection.contributions

    def unit(self, look: int) -> float:
        """Return the noise's standard deviation in a cell of sum c (1, u) e, for R = 1."""
        return noise_unit(self.strength(look), self.protection.neighbors, self.degrees)

    def box_noise(self) -> GaussianLook | MatrixLaplaceLook:
        """Return the noise of the first look, at rows in the box."""
        own, who = self.strengths[0], self.protection
        if self.gaussian:
            return box_gaussian(self.triangle, own, who.neighbors, who.contributions)
        share = response_share(_BOX_SIGNAL * (self.triangle.dimension - 1))
        return box_matrix_laplace(self.triangle, share, own, who.neighbors, who.contributions)

    def located_noise(self, look: int, signal: float) -> GaussianLook | MatrixLaplaceLook:
        """Return the noise of a later look, in units of the stored rows (w/R, e).

        Parameters
        ----------
        look : int
            Its place, from 0.
        signal : float
            R^2 times the |theta|^2 that is expected.
        """
        own, who = self.strengths[look], self.protection
        if self.gaussian:
            weight = response_weight(signal)
            return located_gaussian(self.size, weight, own, who.neighbors, who.contributions)
        share = response_share(signal)
        return located_matrix_laplace(self.size, share, own, who.neighbors, who.contributions)

    def tail_noise(self, full_weight: int) -> TailNoise:
        """Return the noise of the last look's three more cells; see `dpreg.privacy.tail_noise`."""
        return tail_noise(self.tail_strength, self.protection, full_weight, gaussian=self.gaussian)

    @property
    def tail_sd(self) -> float:
        """About the standard deviation of the noise in those cells."""
        return tail_sd(self.tail_strength, self.protection, gaussian=self.gaussian)

    def squares_noise(self) -> TailNoise:
        """Return the noise of the second look's sum of squares."""
        return squares_noise(self.squares_strength, self.protection, gaussian=self.gaussian)

    @property
    def squares_sd(self) -> float:
        """About the standard deviation of the noise in that sum."""
        return squares_sd(self.squares_strength, self.protection, gaussian=self.gaussian)

    @property
    def rows_needed(self) -> float:
        """Complete rows below which the looks are mostly noise; see `dpreg.staged.need`."""
        strength, neighbors = self.strength(len(self.shares) - 1), self.protection.neighbors
        return rows_needed(self.size - 1, strength, neighbors, gaussian=self.gaussian)

    def open(self, account: Account, *, rows: str = ALL_ROWS) -> OpenLooks:
        """Open the looks' lines of a call's account.

        Parameters
        ----------
        account : Account
            Not yet charged.
        rows : str
            The group of rows that the looks read.
        """
        if self.gaussian:
            parts = ", ".join(decimal_string(share) for share in (*self.shares, TAIL, SQUARES))
            line = account.joint(
                f"looks 1-{len(self.shares)}",
                self.mechanism,
                self.cost,
                mu_squared=sum(self.strengths, self.tail_strength + self.squares_strength),
                rows=rows,
                note=f"shares {parts} of mu^2; the last two are for residuals beyond the clip",
            )
            return OpenLooks(self, line, ())
        own = tuple(
            account.line(
                f"look {place}",
                self.mechanism,
                Budget(eps),
                rows=rows,
                note=f"share {decimal_string(share)}",
            )
            for place, (eps, share) in enumerate(zip(self.strengths, self.shares, strict=True), 1)
        )
        tail = account.line(
            "residuals beyond the clip",
            "discrete laplace",
            Budget(self.tail_strength),
            rows=rows,
            note=f"share {decimal_string(TAIL)}",
        )
        squares = account.line(
            "spread of the residuals",
            "discrete laplace",
            Budget(self.squares_strength),
            rows=rows,
            note=f"share {decimal_string(SQUARES)}",
        )
        return OpenLooks(self, None, (*own, tail, squares))


@dataclass(frozen=True, slots=True, eq=False)
class OpenLooks:
    """The looks' right to draw, opened in a call's account.

    Attributes
    ----------
    plan : LookPlan
    line : Line or None
        Of Gaussian looks, which compose jointly.
    parts : tuple of Part
        Of looks that each have a line, of the tail and of the squares.
    """

    plan: LookPlan
    line: Line | None
    parts: tuple[Part, ...]

    def part(self, look: int) -> Part:
        """Take the part of one look, from 0; each once."""
        if self.line is None:
            return self.parts[look]
        return self.line.look(self.plan.strengths[look])

    def tail(self) -> Part:
        """Take the part of the last look's tail, once."""
        return self.parts[-2] if self.line is None else self.line.look(self.plan.tail_strength)

    def squares(self) -> Part:
        """Take the part of the second look's sum of squares, once."""
        return self.parts[-1] if self.line is None else self.line.look(self.plan.squares_strength)


def plan_looks(
    columns: int,
    cost: Budget,
    protection: Protection,
    *,
    exclusive: Sequence[Sequence[int]] = (),
    noise: str | None = None,
) -> LookPlan:
    """Plan the looks at p columns.

    Parameters
    ----------
    columns : int
        p, the stored columns without the constant.
    cost : Budget
        What all looks may cost.
    protection : Protection
    exclusive : sequence of sequences of int
        z indices of the 0/1 columns of each factor.
    noise : {"gaussian", "matrix-laplace"}, optional
        None takes the one with the less noise in a cell of the last look's X'e; Gaussian noise
        needs delta above 0.
    """
    triangle = layout(range(columns + 1), exclusive)

    def planned(mechanism: str) -> LookPlan:
        whole, spent = cost.eps, Budget(cost.eps)
        if mechanism == "gaussian":
            located = (columns + 2) * (columns + 3) // 2
            cells = len(triangle.cells) + (len(SHARES) - 1) * located + 4
            whole, spent = Fraction(looks_ratio(cost.eps, cost.delta, cells)) ** 2, cost
        strengths = tuple(whole * share for share in SHARES)
        tail, squares = whole * TAIL, whole * SQUARES
        return LookPlan(triangle, mechanism, strengths, SHARES, tail, squares, spent, protection)

    allowed = (noise,) if noise else (NOISES if cost.delta > 0 else NOISES[1:])
    return min(map(planned, allowed), key=lambda plan: plan.unit(len(SHARES) - 1))
