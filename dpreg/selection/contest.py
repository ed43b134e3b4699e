"""What one private draw compares: integer scores, public penalties, and the range they move in.

A `Contest` is made before or between draws from public numbers and numbers already paid for. It
says how a model's canonical integer q(M) (`dpreg.selection.scoring.problem`) becomes its total
score

    S(M) = T(q(M)) + phi * (columns of M outside keep) + psi * (units of M outside keep),

all integers on one grid, and by how much such totals may move between neighbours. Both engines,
enumeration and tree, take the same contest; neither knows which method made it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from dpreg.arrays import Bools, Ints
from dpreg.privacy.protection import Protection
from dpreg.privacy.sensitivity import score_grid, score_range
from dpreg.privacy.stability import ScoreRange
from dpreg.selection.scoring.profile import (
    profile_grid,
    profile_range,
    profile_scores,
    residual_change,
    residuals,
)
from dpreg.selection.space import Space

__all__ = ["LARGEST_SCORE", "Contest", "least_squares_contest", "profile_contest"]

LARGEST_SCORE: Final = 2**61
"""Scores and the sum of all charges stay within this, so that their sum stays within int64."""
LARGEST_RANGE: Final = 2**53
"""The largest noise scale that is drawn, in grid units."""


@dataclass(frozen=True, slots=True)
class Contest:
    """How integers become scores that a mechanism may compare.

    Attributes
    ----------
    score_range : ScoreRange
        Of all scores, in grid units.
    grid : Fraction
        The value of one grid unit, in the units in which penalties are given.
    transform : callable or None
        T, non-decreasing, from an array of q to an array of scores; None is the identity.
    phi, psi : int
        Charge per column and per unit outside ``keep``, in grid units.
    uniform : bool
        Every score is zero whatever the rows, and no penalty is charged.
    """

    score_range: ScoreRange
    grid: Fraction
    transform: Callable[[Ints], Ints] | None = None
    phi: int = 0
    psi: int = 0
    uniform: bool = False

    def priced(self, phi: Fraction, psi: Fraction, space: Space) -> Contest:
        """Return the contest with these charges, rounded to whole grid units; uniform stays so.

        A charge is capped, by a public rule, so that the charges of the largest model add up to at
        most 2**61: scores lie below 2**61 in absolute value, and no total leaves int64. A charge
        near the cap already exceeds every difference of scores.
        """
        if self.uniform:
            return self
        priced = len(space.units) + sum(len(columns) for columns in space.unit_columns)
        most = LARGEST_SCORE // max(1, priced)
        return replace(
            self, phi=min(round(phi / self.grid), most), psi=min(round(psi / self.grid), most)
        )

    def totals(self, q: Ints, models: Bools, space: Space) -> Ints:
        """Return S of each model of an enumerated space.

        Parameters
        ----------
        q : int64 array, shape (K,)
        models : bool array, shape (K, units)
        space : Space
        """
        scores = q if self.transform is None else self.transform(q)
        charge = np.array(
            [self.phi * len(columns) + self.psi for columns in space.unit_columns], dtype=np.int64
        )
        return np.asarray(scores + models.astype(np.int64) @ charge)


def least_squares_contest(rho: Fraction, protection: Protection) -> Contest:
    """PCLS: S = Q_R + penalties; one grid unit is g, in squared stored units of the response."""
    return Contest(score_range(rho, protection), score_grid(rho))


def profile_contest(
    lower_bound: int,
    *,
    offset: int,
    rows: int,
    rho: Fraction,
    protection: Protection,
    eps: Fraction,
) -> Contest:
    """PCPL, given the private lower bound A: S = n log Q + penalties; one unit is h.

    Parameters
    ----------
    lower_bound : int
        A of `dpreg.selection.scoring.profile`, in score grid units. At or below zero every score
        is zero, so that the draw is uniform over the space.
    offset : int
        floor(y'y / g): what turns q into Q_g. Confidential; it stays inside the transform.
    rows : int
        n under replace-one, n0 under add-remove; of any size.
    eps : Fraction
        Of one draw; where it is too small for the range, the draw is uniform as well.
    """
    grid = profile_grid(rows)
    none = ScoreRange(width=1, protection=protection)
    uniform = Contest(none, grid, np.zeros_like, uniform=True)
    if lower_bound <= 0:
        return uniform
    moved = profile_range(lower_bound, residual_change(rho, protection), rows=rows)
    # More noise than is drawn exactly, or a range beyond the mechanisms' 64 bits, which a large eps
    # could pay for: A says so, not the rows.
    if moved.width > LARGEST_SCORE or moved.width > LARGEST_RANGE * eps:
        return uniform
    return Contest(moved, grid, lambda q: profile_scores(residuals(q, offset), rows))
