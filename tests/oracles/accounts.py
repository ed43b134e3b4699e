"""Parts of a budget for tests of single functions, which no call has opened an account for."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any

from dpreg.columns import LEAST_EPS
from dpreg.estimation import blocks as aggregate
from dpreg.estimation import gram, histogram, sums
from dpreg.estimation import histogram as quantile
from dpreg.privacy import ranks
from dpreg.privacy.account import Account, Part
from dpreg.privacy.budget import Budget
from dpreg.privacy.protection import Protection
from dpreg.selection import draws as estimates

ANY = ("permute-and-flip", "exponential", "laplace", "gaussian", "matrix-laplace")


def bought(
    eps: Any,
    delta: Any = 0,
    neighbors: str = "replace-one",
    contributions: int = 1,
    rng: Any = None,
    *,
    rows: str = "all",
    person: str | None = None,
) -> Part:
    """Return a charged part of this cost, which any mechanism may draw from.

    It may be smaller than a step: steps are divided further.
    """
    cost = Budget(eps, delta)
    step = Budget(max(cost.eps, LEAST_EPS), delta)
    account = Account(Protection(neighbors, contributions, person), step, rng)
    part = account.joint("a test", "any", step, rows=rows, by=ANY).hand_out(cost)
    account.charge(None, "a test")
    return part


def look_of(
    size: Any,
    mechanism: str,
    neighbors: str = "replace-one",
    contributions: int = 1,
    rng: Any = None,
    *,
    rows: str = "all",
    person: str | None = None,
) -> Part:
    """Return a charged part of a look: of mu^2 for Gaussian noise, else of eps."""
    if mechanism != "gaussian":
        return bought(size, 0, neighbors, contributions, rng, rows=rows, person=person)
    account = Account(Protection(neighbors, contributions, person), Budget(1, "1e-6"), rng)
    line = account.joint("looks", mechanism, account.budget, mu_squared=Fraction(size), rows=rows)
    account.charge(None, "a test")
    return line.part()


def with_part(function: Any) -> Any:
    """Call a function that takes a part by the numbers that the part is made of."""

    @functools.wraps(function)
    def called(
        *args: Any,
        eps: Any,
        delta: Any = 0,
        neighbors: str = "replace-one",
        contributions: int = 1,
        rng: Any = None,
        **options: Any,
    ) -> Any:
        part = bought(eps, delta, neighbors, contributions, rng)
        return function(*args, part=part, **options)

    return called


def with_cost(function: Any) -> Any:
    """Call a function that takes a cost and a protection by the numbers that these are made of."""

    @functools.wraps(function)
    def called(
        *args: Any,
        eps: Any,
        delta: Any = 0,
        neighbors: str = "replace-one",
        contributions: int = 1,
        **options: Any,
    ) -> Any:
        cost, protection = Budget(eps, delta), Protection(neighbors, contributions)
        return function(*args, cost=cost, protection=protection, **options)

    return called


def paid(noise: Any, rng: Any = None) -> Part:
    """Return a part of what fitted noise costs."""
    protection = noise.bound.protection
    cost = noise.cost
    return bought(cost.eps, cost.delta, protection.neighbors, protection.contributions, rng)


choose_rank = with_part(ranks.choose_rank)
release_gram = with_part(gram.release_gram)
private_quantile = with_part(quantile.private_quantile)
private_radius = with_part(estimates.private_radius)
noisy_count = with_part(estimates.noisy_count)
lower_bound = with_part(estimates.lower_bound)
window = with_part(aggregate.window)
count_noise = with_cost(histogram.count_noise)
plan_sums = with_cost(sums.plan)
