r"""The plan of the looks at a family: which noise, how many looks at most, what each may take.

A call spends .10 of its budget on a first look in the box and .12 on one at the fit that it starts
from. While that fit still moves by more than a threshold, another look takes a part; the last one
takes all that is left. How many looks there are follows from released values. That is free: the
parts add up to no more than the whole on every path, which is what `dpreg.privacy.looks` asks of
Gaussian looks, and what bounds the loss of pure ones, path by path.

Tested in `tests/families/test_looks.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpreg.families.family import Family
from dpreg.looks.need import rows_needed
from dpreg.privacy.account import Account, Line, Part
from dpreg.privacy.block_noise import (
    LAPLACES,
    BlocksLaplaceLook,
    blocks_gaussian,
    blocks_laplace,
)
from dpreg.privacy.budget import ALL_ROWS, FITTING, SELECTING, Budget, decimal_string
from dpreg.privacy.gram_sensitivity import Triangle, layout
from dpreg.privacy.look_noise import (
    GaussianLook,
    MatrixLaplaceLook,
    box_gaussian,
    box_matrix_laplace,
)
from dpreg.privacy.looks import looks_ratio
from dpreg.privacy.matrix_laplace import response_share
from dpreg.privacy.protection import Protection

__all__ = [
    "CHOSEN",
    "FIRST",
    "MOST_LOOKS",
    "SECOND",
    "SURE",
    "FamilyPlan",
    "OpenFamilyLooks",
    "can_hold",
    "plan_family",
]

_BOX_SIGNAL: Final = 0.25
"""|theta|^2 that a first look expects: the columns explain a quarter of the response's box."""
FIRST: Final = Fraction(10, 100)
SECOND: Final = Fraction(12, 100)
MORE: Final = (Fraction(18, 100), Fraction(12, 100))
"""Parts of the whole that further looks take while the fit moves."""
MOVED: Final = (0.15, 0.03)
"""Mean square of the predictor's change above which there is such a look."""
MOVED_PURE: Final = (0.15, 0.08)
"""The same at pure eps: a look that takes a fifth of eps costs more than one that takes a fifth of
mu^2."""
MOVED_COUNTS: Final = (0.02, 0.02)
"""The same for counts, whose means grow without end: where columns are skewed a step of Newton's
that long has been seen to be off by several standard errors."""
CHEAP: Final = 0.05
"""Noise beside the sampling error, as variances, below which a further look costs nothing."""
STILL: Final = 1e-10
"""Below this change of the predictor even such a look is not made."""
NEEDED: Final = {"gaussian": 2.2, "matrix-laplace": 12.0}
"""Rows that intervals need, beside those at which columns just stand out of the noise. At pure eps
looks cost shares of eps, not of its square: of simulated tables of uncorrelated columns about half
earned intervals with 12 times as many, and hardly any with 8 times."""
HOPELESS: Final = 0.73
"""The same for coefficients that say anything."""
SURE: Final = 2.0
"""With so many times the rows that intervals need, looks go on whatever is still hidden: narrow
columns that two looks hide have been seen to earn intervals by the last one."""
_MOST_CELLS: Final = 1 << 26
"""Cells of the rows that are held at once."""
_LEAST_EPS: Final = Fraction(1, 2**30)
MOST_LOOKS: Final = 3 + len(MORE)
CHOSEN: Final = "look at the chosen columns"
"""The step of one more look, after a choice, as the budget table names it."""


@dataclass(frozen=True, slots=True)
class FamilyPlan:
    """What the looks may cost and how noisy they are.

    Attributes
    ----------
    triangle : Triangle
        The cells of the first look, the constant among its columns.
    offsets : int
        How many of its columns have known slopes.
    mechanism : {"gaussian", "matrix-laplace"}
    strength : Fraction
        Of all these looks together: r^2 of Gaussian noise, or eps.
    cost : Budget
        Of all looks, the one more included; with halves that of each half.
    protection : Protection
    later : Fraction
        Strength of one more look, at the columns that a choice leaves; 0 for none.
    split : bool
        Whether these looks read half 1 and the one more half 2.
    once : bool
        Whether this is the plan of that one more look.
    """

    triangle: Triangle
    offsets: int
    mechanism: str
    strength: Fraction
    cost: Budget
    protection: Protection
    later: Fraction = Fraction(0)
    split: bool = False
    once: bool = False

    @property
    def rows(self) -> str:
        """The rows that the looks read."""
        return SELECTING if self.split else ALL_ROWS

    @property
    def size(self) -> int:
        """d: the columns with coefficients, the intercept among them."""
        return len(self.triangle.columns) - self.offsets

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian."""
        return self.mechanism == "gaussian"

    @property
    def degrees(self) -> int | None:
        """Degrees nu of the law chi2_(2 nu)/(2 nu) of the noise's variance; None if Gaussian.

        The score's noise, of density exp(-|v|/b) in d places, has an excess kurtosis of 6/(d + 1)
        in each; this law's is 3/nu. The information's noise has less.
        """
        return None if self.gaussian else max((self.size + 1) // 2, 1)

    def ratio(self, share: Fraction) -> float:
        """Return mu or eps of a look of this share, over the rows of one person."""
        own = float(self.strength * share)
        return (math.sqrt(own) if self.gaussian else own) / self.protection.contributions

    def moved_at_most(self, family: Family) -> tuple[float, ...]:
        """Return how far the fit may move at each look without another one."""
        if not self.gaussian:
            return MOVED_PURE
        return MOVED_COUNTS if family.dispersed else MOVED

    def box_noise(self) -> GaussianLook | MatrixLaplaceLook:
        """Return the noise of the first look, at rows in the box."""
        who, own = self.protection, self.strength * FIRST
        if self.gaussian:
            return box_gaussian(self.triangle, own, who.neighbors, who.contributions)
        share = response_share(_BOX_SIGNAL * (self.triangle.dimension - 1))
        return box_matrix_laplace(self.triangle, share, own, who.neighbors, who.contributions)

    def noise(self, share: Fraction, limit: int, weight: float) -> GaussianLook | BlocksLaplaceLook:
        """Return the noise of a look at a fit.

        Parameters
        ----------
        share : Fraction
            Of the whole.
        limit : int
            S of the rows' integers.
        weight : float
            g beside the integers of the information, or the score's part of eps.
        """
        who, own = self.protection, self.strength * share
        told = Fraction(max(round(weight * 2**20), 1), 2**20)
        fitted = blocks_gaussian if self.gaussian else blocks_laplace
        return fitted(self.size + 1, limit, told, own, who.neighbors, who.contributions)

    @property
    def last_share(self) -> Fraction:
        """The share of the last look where one look more than the least was needed."""
        return Fraction(1) if self.once else 1 - FIRST - SECOND - MORE[0]

    def part_of_whole(self, share: Fraction) -> Fraction:
        """Return the share of a look in what its rows are charged."""
        beside = Fraction(0) if self.split else self.later
        return share * self.strength / (self.strength + beside)

    @property
    def rows_needed(self) -> float:
        """Complete rows below which no intervals can be expected.

        About where the least eigenvalue of the information is twice the noise's norm: a multiple
        of what `dpreg.looks.need` says for the rows of a linear model.
        """
        return NEEDED[self.mechanism] * self._standing_out

    @property
    def rows_hopeless(self) -> float:
        """Complete rows below which coefficients of the looks are noise."""
        return HOPELESS * self._standing_out

    @property
    def _standing_out(self) -> float:
        ratio, relation = self.ratio(self.last_share), self.protection.neighbors
        return rows_needed(self.size, ratio, relation, gaussian=self.gaussian)

    def at_chosen(self, columns: int) -> FamilyPlan:
        """Return the plan of the one more look, at so many chosen columns."""
        beside = Fraction(0) if self.split else self.strength
        return FamilyPlan(
            layout(range(columns + 1)),
            0,
            self.mechanism,
            self.later,
            self.cost,
            self.protection,
            later=beside,
            once=True,
        )

    def open(self, account: Account) -> OpenFamilyLooks:
        """Open the looks' lines of a call's account, which is not yet charged."""
        note = f"at most {MOST_LOOKS} looks; the last takes what the others leave"
        if self.gaussian:
            return self._gaussian(account, note)
        line = account.joint(
            "looks",
            self.mechanism,
            Budget(self.strength),
            rows=self.rows,
            note=note,
            by=LAPLACES,
        )
        later = None
        if self.later:
            later = account.joint(
                CHOSEN,
                self.mechanism,
                Budget(self.later),
                rows=FITTING if self.split else ALL_ROWS,
                by=LAPLACES,
            )
        return OpenFamilyLooks(self, line, later)

    def _gaussian(self, account: Account, note: str) -> OpenFamilyLooks:
        whole = self.strength
        if self.later and not self.split:
            share = decimal_string(self.part_of_whole(Fraction(1)))
            note = f"{note} of {share} of mu^2; the rest is for a look at the chosen columns"
            whole += self.later
        line = account.joint(
            "looks", self.mechanism, self.cost, mu_squared=whole, rows=self.rows, note=note
        )
        later = line if self.later else None
        if self.split:
            later = account.joint(
                CHOSEN, self.mechanism, self.cost, mu_squared=self.later, rows=FITTING
            )
        return OpenFamilyLooks(self, line, later)


@dataclass(frozen=True, slots=True, eq=False)
class OpenFamilyLooks:
    """The looks' right to draw, opened in a call's account.

    Attributes
    ----------
    plan : FamilyPlan
    line : Line
    later : Line or None
        Of one more look at the chosen columns.
    """

    plan: FamilyPlan
    line: Line
    later: Line | None = None

    def at_chosen(self, columns: int) -> OpenFamilyLooks:
        """Return the right to the one more look, once it is known how many columns were chosen."""
        assert self.later is not None
        return OpenFamilyLooks(self.plan.at_chosen(columns), self.later)

    def part(self, share: Fraction) -> Part:
        """Take the part of one look."""
        own = self.plan.strength * share
        return self.line.look(own) if self.plan.gaussian else self.line.part(Budget(own))


def plan_family(
    columns: int,
    cost: Budget,
    protection: Protection,
    *,
    offsets: int = 0,
    exclusive: Sequence[Sequence[int]] = (),
    noise: str | None = None,
    later: Fraction = Fraction(0),
    split: bool = False,
) -> FamilyPlan:
    """Plan the looks at p columns and some of known slope.

    Parameters
    ----------
    columns : int
        p, the stored columns that have coefficients, without the constant.
    cost : Budget
        What all looks may cost.
    protection : Protection
    offsets : int
        Columns of known slope.
    exclusive : sequence of sequences of int
        z indices of the 0/1 columns of each factor.
    noise : {"gaussian", "matrix-laplace"}, optional
        None takes Gaussian noise where delta is above 0.
    later : Fraction
        Share of one more look at the chosen columns, below 1; 0 for none.
    split : bool
        Whether the looks read half of the rows, and one more look the other half.
    """
    once = split or later > 0
    triangle = layout(range(columns + offsets + 1), exclusive)

    def divided(mechanism: str, whole: Fraction, spent: Budget) -> FamilyPlan:
        return FamilyPlan(
            triangle,
            offsets,
            mechanism,
            whole if split else whole * (1 - later),
            spent,
            protection,
            later=whole if split else whole * later,
            split=split,
        )

    if (noise or ("gaussian" if cost.delta > 0 else "matrix-laplace")) == "matrix-laplace":
        return divided("matrix-laplace", cost.eps, Budget(cost.eps))
    halved = split and protection.apart > 1
    spent = Budget(cost.eps, cost.delta / 2) if halved else cost
    located = (columns + 2) * (columns + 3) // 2
    cells = len(triangle.cells) + (MOST_LOOKS - 1 + once) * located
    return divided("gaussian", Fraction(looks_ratio(spent.eps, spent.delta, cells)) ** 2, spent)


def can_hold(plan: FamilyPlan, rows: int) -> bool:
    """Return whether a minimum may be released: pure eps, a public number of rows, and not huge."""
    who = plan.protection
    return (
        not plan.gaussian
        and who.n_is_public
        and rows * (plan.size + plan.offsets) <= _MOST_CELLS
        and plan.strength / who.contributions >= _LEAST_EPS
    )
