r"""The plan of the looks: which noise, what share of the budget each gets, how many rows they need.

All of it is public, and fixed before the charge: the looks' coordinates follow later, from what
they release, and where a minimum may come last, so does which of two plans of one cost is followed.

A call spends a share of its budget on a first look in the box, on two located ones, and .05 on
three cells that the last one's residuals fill with a wider cut (`dpreg.privacy.tail_noise`). Of eps
(matrix-Laplace noise, pure) the looks have .15, .20 and .56; of mu^2 (Gaussian noise, whose looks
compose as `dpreg.privacy.looks` proves) .07, .15 and .69, since noise falls with mu. Another .04
buys four sums of squares of the second look's rows: they tell how heavy and how skewed residuals
are and how far rows lie out, and so how far the last look's clips should reach
(`dpreg.staged.clips`). More for the first look leaves too little for the last, which alone the
coefficients come from; less, and few rows do not even locate it.

A selection may fit the terms that it chose from one more located look at their columns alone, .05
of it for the same three cells: at the same rows, with a share of the budget of its own; or at the
other half of the rows, with a budget as large as that of the first.

Halves of the rows. Secret coins, independent of the rows' values, divide the rows
(`dpreg.privacy.mechanisms.coins`). Given them, k1 of a person's k rows lie in half 1 and k2 in half
2, k1 + k2 = k. *Gaussian*: all looks, at either half, are looks in the sense of
`dpreg.privacy.looks`. Noise is fitted to k rows and norms of changes are sums over rows, so that
looks at half 1 have together sum d_jc^2 <= (k1/k)^2 r^2, those at half 2 (k2/k)^2 r^2, and both
(k1^2 + k2^2)/k^2 r^2 <= r^2, for r of (eps, delta) and as many cells as both halves release. So
both together are (eps, delta)-DP. The budget table adds up the deltas of two halves where a
person's rows may lie in both; there r is that of delta/2, and the sum covers what is spent.
*Matrix-Laplace*: a half with j of the k rows costs j eps/k, since the exponent of the density ratio
is a sum over rows; both cost eps together (`dpreg.privacy.budget.in_parallel`).

Tested in `tests/staged/test_looks.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpreg.looks.need import rows_needed
from dpreg.privacy.budget import ALL_ROWS, SELECTING, Budget
from dpreg.privacy.gram_sensitivity import Triangle, layout
from dpreg.privacy.located_sensitivity import response_weight
from dpreg.privacy.look_noise import (
    GaussianLook,
    MatrixLaplaceLook,
    box_gaussian,
    box_matrix_laplace,
    located_gaussian,
    located_matrix_laplace,
    product_gaussian,
)
from dpreg.privacy.looks import looks_ratio
from dpreg.privacy.matrix_laplace import degrees, response_share
from dpreg.privacy.product_sensitivity import STRETCH, product_cost
from dpreg.privacy.protection import Protection
from dpreg.privacy.stability import AccountError
from dpreg.privacy.tail_noise import (
    TailNoise,
    squares_noise,
    squares_sd,
    tail_noise,
    tail_sd,
)
from dpreg.staged.locate import noise_unit
from dpreg.staged.minimum import ALONE, ALONE_RESPONSE

__all__ = [
    "FRESH",
    "LOOKS",
    "NOISES",
    "SHARES",
    "SQUARES",
    "TAIL",
    "LookPlan",
    "fresh_share",
    "plan_looks",
]

NOISES: Final = ("gaussian", "matrix-laplace")
LOOKS: Final = 3
SHARES: Final = {
    "gaussian": (Fraction(7, 100), Fraction(15, 100), Fraction(69, 100)),
    "matrix-laplace": (Fraction(15, 100), Fraction(20, 100), Fraction(56, 100)),
}
"""Of mu^2 or eps, for each look. On nineteen kinds of drawn tables (wages, counts, prices, curves,
skewed errors; 20,000 to 100,000 rows; eps 1, delta 1e-6) the squared error at .07, .15, .69 was a
tenth less than at .15, .20, .56, and no less with even less for the first two."""
TAIL: Final = Fraction(5, 100)
SQUARES: Final = Fraction(4, 100)
FRESH: Final = Fraction(2, 10)
"""The share of the one more look of ``fit="fresh"``. Found by ``python -m benchmarks.power --grid
coverage --fits fresh --later S`` (seven designs with delta, two without, 40 runs) and ``--grid
real --share 1-S`` (King County, randhie and bike with permuted columns, 80 runs), at S of .1, .15,
.2 and .3: intervals cover alike at all of them. With delta the designs have 4.22, 4.21, 4.19 and
4.17 terms, King County 9.93, 9.93, 9.86 and 9.80 of 11, bike 2.75, 2.83, 2.90 and 2.66 of 8;
R-squared falls short by .0031, .0028, .0026 and .0024."""
FRESH_PURE: Final = Fraction(15, 100)
"""The same without delta: at .1, .15, .2 and .3 King County has 8.09, 7.89, 7.19 and 6.30 of 11
terms, and R-squared falls short by .0060, .0038, .0030 and .0021 in the two designs."""

_GAUSSIAN: Final = 1.5
"""Gaussian noise is taken up to so many times the size of matrix-Laplace noise. On drawn normal
rows (1 to 7 columns, 1,000 to 50,000 rows, eps 1 and 4, both relations), where it was 1 to 1.6
times as large, its mean squared error was 1.2 to 3.2 times less: its tails are lighter, and in
`dp_ols` its last look is stretched. With delta 1e-9 and 1e-12, 1.5 times as large and more, it was
worse with 1,000 rows and better with 10,000."""

_BOX_SIGNAL: Final = 0.25
"""|theta|^2 that a first look expects: the columns explain a quarter of the response's box."""
_LARGEST_SIGNAL: Final = 0.25
"""R^2 |theta|^2 up to which a last look bounds rows by a product: beyond it the noise in the
moments of columns, times theta, weighs as much as that of the equations, and the norm of
`dpreg.privacy.located_sensitivity` divides a look between them better."""


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
        mu^2 or eps of the sums of squares of the look before it.
    cost : Budget
        Of all looks together; with halves that of each half.
    protection : Protection
    later : Fraction
        mu^2 or eps of one more look at the chosen columns, its tail included; 0 for none.
    split : bool
        Whether the looks read half 1 and the one more half 2.
    alone : bool
        Whether coefficients alone may take the last look's place (`dpreg.staged.minimum`), unless
        the first look settles otherwise (`dpreg.staged.foreseen`).
    """

    triangle: Triangle
    mechanism: str
    strengths: tuple[Fraction, ...]
    shares: tuple[Fraction, ...]
    tail_strength: Fraction
    squares_strength: Fraction
    cost: Budget
    protection: Protection
    later: Fraction = Fraction(0)
    split: bool = False
    alone: bool = False

    @property
    def rows(self) -> str:
        """The rows that the looks read."""
        return SELECTING if self.split else ALL_ROWS

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

    def unit(self, look: int, stretch: float = 1.0) -> float:
        """Return the noise's standard deviation in a cell of sum c (1, u) e, for R = 1."""
        neighbors = self.protection.neighbors
        if stretch > 1:
            return product_cost(neighbors) / self.strength(look)
        return noise_unit(self.strength(look), neighbors, self.degrees)

    def stretch(self, signal: float) -> float:
        """Return F of a look at which R^2 |theta|^2 is expected to be `signal`; 1 for none."""
        return float(STRETCH) if self.gaussian and signal <= _LARGEST_SIGNAL else 1.0

    def box_noise(self) -> GaussianLook | MatrixLaplaceLook:
        """Return the noise of the first look, at rows in the box."""
        own, who = self.strengths[0], self.protection
        if self.gaussian:
            return box_gaussian(self.triangle, own, who.neighbors, who.contributions)
        share = response_share(_BOX_SIGNAL * (self.triangle.dimension - 1))
        return box_matrix_laplace(self.triangle, share, own, who.neighbors, who.contributions)

    def located_noise(
        self, look: int, signal: float, stretch: float = 1.0
    ) -> GaussianLook | MatrixLaplaceLook:
        """Return the noise of a later look, in units of the stored rows (w/R, e).

        Parameters
        ----------
        look : int
            Its place, from 0.
        signal : float
            R^2 times the |theta|^2 that is expected.
        stretch : float
            F, where rows are bounded by a product as well.
        """
        own, who = self.strengths[look], self.protection
        if stretch != 1 and not (self.gaussian and stretch == STRETCH):
            raise AccountError(f"no noise is proved for rows with a stretch of {stretch:g}")
        if stretch > 1:
            return product_gaussian(self.size, own, who.neighbors, who.contributions)
        if self.gaussian:
            weight = response_weight(signal)
            return located_gaussian(self.size, weight, own, who.neighbors, who.contributions)
        share = response_share(signal)
        share *= ALONE_RESPONSE if self.alone and look < len(self.shares) - 1 else 1
        return located_matrix_laplace(self.size, share, own, who.neighbors, who.contributions)

    def tail_noise(self, full_weight: int) -> TailNoise:
        """Return the noise of the last look's three more cells; see `dpreg.privacy.tail_noise`."""
        return tail_noise(self.tail_strength, self.protection, full_weight, gaussian=self.gaussian)

    @property
    def tail_sd(self) -> float:
        """About the standard deviation of the noise in those cells."""
        return tail_sd(self.tail_strength, self.protection, gaussian=self.gaussian)

    def squares_noise(self) -> TailNoise:
        """Return the noise of the second look's sums of squares."""
        return squares_noise(self.squares_strength, self.protection, gaussian=self.gaussian)

    @property
    def squares_sd(self) -> float:
        """About the standard deviation of the noise in each of the four sums."""
        return squares_sd(self.squares_strength, self.protection, gaussian=self.gaussian)

    @property
    def rows_needed(self) -> float:
        """Complete rows below which the looks are mostly noise; see `dpreg.looks.need`."""
        strength, neighbors = self.strength(len(self.shares) - 1), self.protection.neighbors
        return rows_needed(self.size - 1, strength, neighbors, gaussian=self.gaussian)

    def at_chosen(self, columns: int) -> LookPlan:
        """Return the plan of the one more look, at so many chosen columns."""
        return LookPlan(
            layout(range(columns + 1)),
            self.mechanism,
            (self.later * (1 - TAIL),),
            (self.share_of_later,),
            self.later * TAIL,
            Fraction(0),
            self.cost,
            self.protection,
        )

    @property
    def looking(self) -> Fraction:
        """What all looks but the one more take together, of mu^2 or eps."""
        return sum(self.strengths, self.tail_strength + self.squares_strength)

    @property
    def share_of_later(self) -> Fraction:
        """The one more look's share of what its rows are charged."""
        return self.later * (1 - TAIL) / (self.later + (0 if self.split else self.looking))

    def share(self, strength: Fraction) -> Fraction:
        """Return what share of the whole that its rows are charged a strength is."""
        return strength / (self.looking + (0 if self.split else self.later))


def fresh_share(delta: Fraction) -> Fraction:
    """Return the share of the one more look of ``fit="fresh"``, where the caller names none."""
    return FRESH if delta > 0 else FRESH_PURE


def plan_looks(
    columns: int,
    cost: Budget,
    protection: Protection,
    *,
    exclusive: Sequence[Sequence[int]] = (),
    noise: str | None = None,
    later: Fraction = Fraction(0),
    split: bool = False,
    alone: bool = False,
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
        None takes Gaussian noise unless in a cell of the last look's X'e, without a stretch, it is
        more than 1.5 times that of matrix-Laplace noise; it needs delta above 0.
    later : Fraction
        Share of one more look at the chosen columns, below 1; 0 for none.
    split : bool
        Whether the looks read half of the rows, and one more look the other half.
    alone : bool
        Whether coefficients alone may take the last look's place, if the noise is not Gaussian.
    """
    triangle = layout(range(columns + 1), exclusive)
    looking = 1 - later

    def planned(mechanism: str) -> LookPlan:
        whole, spent, taken = cost.eps, Budget(cost.eps), alone and mechanism != "gaussian"
        shares = tuple(share * looking for share in (ALONE if taken else SHARES[mechanism]))
        if mechanism == "gaussian":
            halved = split and protection.apart > 1
            spent = Budget(cost.eps, cost.delta / 2) if halved else cost
            located = LOOKS - 1 + (split or later > 0)
            cells = len(triangle.cells) + located * (columns + 2) * (columns + 3) // 2
            cells += 10 if split or later else 7
            whole = Fraction(looks_ratio(spent.eps, spent.delta, cells)) ** 2
        return LookPlan(
            triangle,
            mechanism,
            tuple(whole * share for share in shares),
            shares,
            whole * TAIL * looking,
            whole * SQUARES * looking,
            spent,
            protection,
            whole if split else whole * later,
            split,
            taken,
        )

    allowed = (noise,) if noise else (NOISES if cost.delta > 0 else NOISES[1:])
    return min(
        map(planned, allowed),
        key=lambda plan: plan.unit(LOOKS - 1) / (_GAUSSIAN if plan.gaussian else 1.0),
    )
