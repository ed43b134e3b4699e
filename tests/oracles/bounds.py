"""dpreg's proved bounds as plain numbers, by relation and rows a person."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpreg.estimation import histogram
from dpreg.privacy import proofs as sensitivity
from dpreg.privacy import ranks
from dpreg.privacy.protection import CHOICES, NOISES, Protection, ScoreRange, Stability
from dpreg.selection import contest as profile


def anything(neighbors: str = "replace-one", contributions: int = 1, **more: Any) -> Stability:
    """A bound that every mechanism may show, for tests of what else a part asks for."""
    return Stability(
        protection=Protection(neighbors, contributions),
        mechanisms=(*CHOICES, *NOISES, "matrix laplace"),
        **more,
    )


def of_scores(width: int, neighbors: str = "replace-one", contributions: int = 1) -> ScoreRange:
    return ScoreRange(width=width, protection=Protection(neighbors, contributions), joint=True)


def score_range(rho: Fraction, neighbors: str, contributions: int) -> int:
    return sensitivity.score_range(rho, Protection(neighbors, contributions)).width


def rank_range(share: int, neighbors: str, contributions: int, *, grouped: bool = False) -> int:
    return ranks.rank_range(share, Protection(neighbors, contributions), grouped=grouped).width


def residual_sensitivity(rho: Fraction, contributions: int) -> int:
    return profile.residual_change(rho, Protection("replace-one", contributions)).l1


def profile_range(
    lower_bound: int, *, rho: Fraction, rows: int, neighbors: str, contributions: int
) -> int:
    change = profile.residual_change(rho, Protection(neighbors, contributions))
    return profile.profile_range(lower_bound, change, rows=rows).width


def lower_bound_shift(rho: Fraction, contributions: int, eps1: Fraction, delta: Fraction) -> int:
    change = profile.residual_change(rho, Protection("replace-one", contributions))
    return profile.lower_bound_shift(change, eps1, delta)


def count_sensitivity(neighbors: str, contributions: int) -> tuple[int, int]:
    change = histogram.count_change(Protection(neighbors, contributions))
    return change.l1, change.l2_squared
