"""What a call's looks may cost and how they divide it: public, and fixed before the charge.

With delta looks are Gaussian and compose in mu^2 (`dpreg.privacy.gaussian`), and the last one takes
all that is left. At pure eps looks compose in sequence. Either way they are one line of the budget
table.

How many rows an adaptive release needs: a rule of public numbers alone, before any charge.

The last look whitens its rows, so that sum c^2 (1, u)(1, u)' is about n times the identity where
all d directions are seen; then R^2 = d. They stand out from the noise where n exceeds nu, twice the
root of the largest row sum of the noise's variances. With the two blocks balanced (the response as
heavy as all columns together), f = sqrt(2) and q = 1 under replace-one, f = 1 and q = 2 under
add-remove, and diagonal cells with sqrt(2) times the sd of the others:

    Gaussian:        a cell has sd sqrt(2) d f / mu,
                     nu = 2 sqrt(2) d sqrt(d + 1) f / mu,
    matrix-Laplace:  c = 2 d / (q eps), a cell has sd sqrt(2 (d + 2)) c,
                     nu = 4 d sqrt(2 (d + 2) (d + 1)) / (q eps),

mu or eps that of the look, over the rows of one person. Below nu the columns are noise to most
directions, and another method is better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final

from dpreg.looks.locate import noise_norm
from dpreg.looks.tuning import TUNING
from dpreg.privacy.account import Account, Line, Part
from dpreg.privacy.budget import Budget
from dpreg.privacy.gaussian import looks_ratio
from dpreg.privacy.look_noise import (
    PURE,
    FitNoise,
    MinimumNoise,
    MomentNoise,
    box_gaussian,
    box_matrix_laplace,
    fit_cells,
    gaussian_fit,
    located_gaussian,
    located_matrix_laplace,
    minimum_fit,
    pure_fit,
    response_share,
)
from dpreg.privacy.proofs import Triangle, layout, response_weight
from dpreg.privacy.protection import Protection

_LARGEST_EPS: Final = 1e6  # work
_NEAR: Final = 1e-4  # precision


def too_few(planned: Callable[..., LookPlan], cost: Budget, rows: int, has: str = "has") -> str:
    """Return why so many rows are too few for looks, and which eps would do; empty if they do."""
    plan = planned(cost=cost)
    if rows >= plan.rows_needed:
        return ""
    eps = eps_for(rows, cost.eps, lambda e: planned(cost=Budget(e, cost.delta)).rows_needed)
    return (
        f"{plan.columns - 1} columns need about {plan.rows_needed:,.0f} rows at this budget; the "
        f"table {has} {rows:,}. With {rows:,} rows use eps >= {eps:.2g}."
    )


def eps_for(rows: int, eps: Fraction, needed_at: Callable[[Fraction], float]) -> float:
    """Return roughly the eps at which so many rows would do.

    Parameters
    ----------
    rows : int
    eps : Fraction
        At which they do not.
    needed_at : callable
        How many rows an eps needs: about in proportion to 1/eps, so that a few steps meet it.
    """
    found = float(eps)
    for _ in range(40):
        ratio = max(needed_at(Fraction(found)), 1.0) / max(rows, 1)
        found *= ratio
        if found > _LARGEST_EPS or abs(ratio - 1) < _NEAR:
            break
    return found


NOISES: Final = ("gaussian", "matrix-laplace")
MOST_PASSES: Final = 2 + max(TUNING.looks, TUNING.looks_pure)
"""The most passes that looks make."""

_MOST_CELLS: Final = 1 << 22  # work
"""Of the rows that a minimum is taken of: they are held, and gone through some ten times."""
_BOX_SIGNAL: Final = 0.25
"""|theta|^2 that a first look expects: the columns explain a quarter of the response's
box (`python -m benchmarks.holds --half tuning`, 2026-11)."""


@dataclass(frozen=True, slots=True)
class LookPlan:
    """What the looks may cost and how noisy they are.

    Attributes
    ----------
    triangle : Triangle
        The cells of the first look, the constant among its columns.
    columns : int
        d, of the later ones.
    gaussian : bool
    strength : Fraction
        mu^2 of all Gaussian looks, or eps of all pure ones.
    cost : Budget
    protection : Protection
    chooses : bool
        Whether terms are chosen from the last one.
    later : Fraction
        Share that is kept for looks at the columns that are chosen.
    holds : bool
        Whether the last look may take a minimum: at pure eps, where rows are at hand and are units.
    """

    triangle: Triangle
    columns: int
    gaussian: bool
    strength: Fraction
    cost: Budget
    protection: Protection
    chooses: bool = False
    later: Fraction = Fraction(0)
    holds: bool = False

    @property
    def mechanism(self) -> str:
        """The noise of the looks."""
        return "gaussian" if self.gaussian else "matrix-laplace"

    @property
    def persons(self) -> bool:
        """Whether a unit is a person, whose rows are summed before they are limited."""
        return self.protection.person is not None

    @property
    def several(self) -> int:
        """Rows of a person that limits are made for: what the caller expects, where rows come so.

        It is no cap: a person with more rows counts with less weight.
        """
        return self.protection.contributions if self.persons else 1

    def shares(self, *, curved: bool = True, held: bool = True) -> tuple[Fraction, ...]:
        """Return the shares of the looks before the last, the first one's in front.

        One of them is made in between where terms are chosen and the link is the identity. Those
        after the first are larger where rows turn out to be too many to be `held` for a minimum; if
        weights follow the fit they are as where terms are chosen.
        """
        if self.gaussian:
            first, more = TUNING.early, (TUNING.early,) * TUNING.looks
            choosing = TUNING.choosing
        else:
            choosing = TUNING.choosing_pure
            first = choosing[-1] if self.chooses or self.holds else TUNING.early_pure
            more = (first if self.holds and held else TUNING.early_pure,) * TUNING.looks_pure
        if self.locating:
            more = choosing if curved else choosing[:1]
        elif self.holds and held and curved:
            more = choosing
        return tuple(_share(one) * (1 - self.later) for one in (first, *more))

    @property
    def locating(self) -> bool:
        """Whether all looks are locating ones: they find more terms than others.

        Where a unit is a person only a fitting look knows how scores of its rows go together.
        """
        return self.chooses and not self.persons

    def at_chosen(self, columns: int) -> LookPlan:
        """Return the plan of the looks at so many chosen columns: of the same whole."""
        return replace(self, columns=columns + 1, chooses=False, later=Fraction(0))

    def box_noise(self) -> MomentNoise:
        """Return the noise of the first look."""
        own, who = self.strength * self.shares()[0], self.protection
        if self.persons:
            size = len(self.triangle.columns)
            return self._located(size + 1, own, _BOX_SIGNAL * size)
        if self.gaussian:
            return box_gaussian(self.triangle, own, who)
        share = response_share(_BOX_SIGNAL * (self.triangle.dimension - 1))
        return box_matrix_laplace(self.triangle, share, own, who)

    def fit_noise(
        self, share: Fraction, rows: float = math.inf, *, last: bool, carried: bool = False
    ) -> FitNoise:
        """Return the noise of a fitting look at so many rows.

        `carried` where its H is that of an earlier look. Else H gets the share at which its noise
        leaves room for usual rows (`dpreg.looks.locate`), within limits.
        """
        own, who = self.strength * share, self.protection
        if not self.gaussian:
            trace, times = _share(TUNING.early), TUNING.outer_pure
            return pure_fit(self.columns, own, who, trace=trace, times=times)
        h = 0.0 if carried else TUNING.information if last else TUNING.information_early
        fitted = partial(gaussian_fit, self.columns, own, who, middle="matrix" if last else "trace")
        noise = fitted(information=_share(h))
        needed = self._needed(noise, rows)
        if needed <= h:
            return noise
        return fitted(information=_share(min(needed, TUNING.information_most)))

    def held(self, rows: float) -> bool:
        """Return whether the last look takes a minimum of so many rows."""
        return self.holds and rows * self.columns <= _MOST_CELLS

    def minimum_noise(self, share: Fraction) -> MinimumNoise:
        """Return the noise of a last look that takes a minimum."""
        trace, times = _share(TUNING.early), TUNING.outer_pure
        own = self.strength * share
        return minimum_fit(self.columns, own, self.protection, trace=trace, times=times)

    def early(self, share: Fraction, rows: float) -> Fraction:
        """Return the share of a fitting look in between.

        It is larger by as much as noise would exceed the room that usual rows leave it if H had all
        of the share: up to one part in TUNING.looks + 3, so that the last look has two and more.
        Shares may follow from released values (`dpreg.privacy.gaussian`).
        """
        times = math.sqrt(self._needed(self.fit_noise(share, last=False), rows))
        most = (1 - self.later) / (TUNING.looks + 3)
        return max(share, min(_share(float(share) * times), most))

    def _needed(self, noise: FitNoise, rows: float) -> float:
        """Return H's share of a look at which its noise leaves room for usual rows."""
        norm = noise_norm(noise.information_sd, self.columns) * 2 * self.columns * self.several
        return float(noise.shares[0]) * (norm / (TUNING.loud * max(rows, 1.0))) ** 2

    def locating_noise(self, share: Fraction, signal: float) -> MomentNoise:
        """Return the noise of a locating look, where R^2 |theta|^2 is expected to be `signal`."""
        return self._located(self.columns + 1, self.strength * share, signal)

    def _located(self, size: int, own: Fraction, signal: float) -> MomentNoise:
        if self.gaussian:
            return located_gaussian(size, response_weight(signal), own, self.protection)
        return located_matrix_laplace(size, response_share(signal), own, self.protection)

    @property
    def most(self) -> int:
        """The most looks. A minimum reads the rows, which it may hold, once more."""
        return 1 + len(self.shares()) + (1 + self.gaussian) * (self.later > 0)

    @property
    def degrees(self) -> int | None:
        """Nu of the last score's noise, N(0, V) with V ~ chi2_(2 nu)/(2 nu); None where Gaussian.

        Noise of density exp(-|v|/b) in D dimensions is normal with such a V, 2 nu = D + 1. Score
        and contrast have 2 d; nu is that of d, which is wider, as what limits cut is not normal.
        """
        return None if self.gaussian else (self.columns + 1) // 2

    @property
    def rows_needed(self) -> float:
        """Nu: with fewer complete rows most directions stay unseen; a minimum shows no more."""
        shares = replace(self, holds=False).shares(curved=False)
        whole = float(self.strength * (1 - self.later - sum(shares)))
        who, d = self.protection.sums, self.columns
        replaced = who.neighbors == "replace-one"
        if self.gaussian:
            strength = math.sqrt(whole)
            nu = 2 * math.sqrt(2 * (d + 1)) * d * (math.sqrt(2) if replaced else 1.0)
        else:
            strength = whole
            nu = 4 * d * math.sqrt(2.0 * (d + 2) * (d + 1)) / (1 if replaced else 2)
        return nu * who.contributions / strength

    def open(self, account: Account) -> Opened:
        """Open the looks' line of an account that is not yet charged."""
        most = self.most
        if self.gaussian:
            line = account.joint(f"looks 1-{most}", "gaussian", self.cost, mu_squared=self.strength)
        else:
            line = account.joint(
                f"looks 1-{most}", "matrix-laplace", self.cost, by=("matrix-laplace", *PURE)
            )
        return Opened(self, line)


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """The looks' right to draw, opened in a call's account."""

    plan: LookPlan
    line: Line

    def at_chosen(self, columns: int) -> Opened:
        """Return the right to the looks at so many chosen columns."""
        return Opened(self.plan.at_chosen(columns), self.line)

    def nothing_chosen(self) -> None:
        """Say that there are no columns to look at: what was kept for it stays charged."""
        if self.plan.gaussian and self.plan.later:
            self.line.waive()

    def part(self, share: Fraction, *, last: bool = False) -> Part:
        """Take a share of the whole, or all that is left."""
        if last:
            return self.line.part()
        own = self.plan.strength * share
        return self.line.part(own if self.plan.gaussian else Budget(own))


def plan_looks(
    columns: int,
    cost: Budget,
    protection: Protection,
    *,
    others: int = 0,
    exclusive: Sequence[Sequence[int]] = (),
    noise: str | None = None,
    chooses: bool = False,
    later: Fraction = Fraction(0),
    holds: bool = False,
) -> LookPlan:
    """Plan the looks at p columns.

    Parameters
    ----------
    columns : int
        p, those that have coefficients, without the constant.
    cost : Budget
        What all looks may cost.
    protection : Protection
    others : int
        Stored columns beside them: offsets and trials.
    exclusive : sequence of sequences of int
        z indices of the 0/1 columns of each factor.
    noise : {"gaussian", "matrix-laplace"}, optional
        None takes Gaussian noise where delta is above 0.
    chooses, later
        As for `LookPlan`.
    holds : bool
        Whether rows are at hand.
    """
    triangle = layout(range(columns + others + 1), exclusive)
    gaussian = cost.delta > 0 and noise != "matrix-laplace"
    d = columns + 1
    if not gaussian:
        pure = Budget(cost.eps)
        holds = holds and protection.person is None
        return LookPlan(triangle, d, gaussian, cost.eps, pure, protection, chooses, later, holds)
    box, joint = len(triangle.columns) + 1, (d + 1) * (d + 2) // 2
    trace, last = fit_cells(d, "trace"), fit_cells(d, "matrix")
    looks = TUNING.looks * trace + last
    if chooses and protection.person is None:
        looks = (len(TUNING.choosing) + 1) * joint
    looks += (trace + last) * (later > 0)
    cells = box * (box + 1) // 2 + looks
    whole = Fraction(looks_ratio(cost.eps, cost.delta, cells)) ** 2
    return LookPlan(triangle, d, gaussian, whole, cost, protection, chooses, later)


def fresh_share(delta: Fraction) -> Fraction:
    """Return the share of looks at chosen columns, where the caller names none."""
    return _share(TUNING.fresh if delta > 0 else TUNING.fresh_pure)


def _share(number: float) -> Fraction:
    return Fraction(round(number * 1000), 1000)  # precision
