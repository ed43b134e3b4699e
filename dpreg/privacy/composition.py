r"""What several private draws cost together, exactly.

Pure epsilons add up: K draws at eps / K each cost eps. With delta > 0, K draws of the exponential
mechanism cost less, because its privacy loss has a bounded range.

Statement (Dong, Durfee and Rogers 2020, Theorem 3)
---------------------------------------------------
K draws, chosen in advance, each of e-bounded range, are (eps, delta)-DP exactly for delta at least

    max_{l < K} [ P(B_1 <= l) - exp(eps) P(B_0 <= l) ],  t = clamp((eps + (l+1) e) / (K+1), 0, e),

B_0 and B_1 binomial with K trials and failure probabilities 1 - p and 1 - exp(t) p,
p = (exp(-t) - exp(-e)) / (1 - exp(-e)).

Proof
-----
*One draw.* Let P, Q be its laws on neighbours. Bounded range says that r = dP/dQ lies in
[exp(t - e), exp(t)] for some t; as r has mean 1 under Q, t is in [0, e]. Take two symbols H and L
with Q-probabilities p and 1 - p and likelihood ratios hi = exp(t), lo = exp(t - e). From H draw o
with density Q(o) (r(o) - lo) / (p (hi - lo)), from L with Q(o) (hi - r(o)) / ((1 - p)(hi - lo)).
Both are densities since r has mean 1, and o then has law Q, or P if the symbol came from P: the
draw is a post-processing of one symbol, and K draws of K symbols.
*The same t.* All K draws here run one mechanism on the same scores, so one t serves all. (For draws
that differ, equal t's are the worst: ibid.)
*K symbols.* With i symbols L the ratio is exp(K t - i e), falling in i. So delta(t) = sum_i of the
positive parts of P(i) - exp(eps) Q(i) is the largest over l of the sums over i <= l, d_l(t) =
P(B_1 <= l) - exp(eps) P(B_0 <= l).
*The worst t.* d/dp P(Bin(K, 1-p) <= l) is proportional to p^(K-1-l) (1-p)^l. Put in the two success
probabilities and their derivatives: d_l'(t) has the sign of exp(eps - t) - exp(K t - (l + 1) e),
positive before (K + 1) t = eps + (l + 1) e and negative after. Hence the t above; for l = K,
d_l < 0.

The sums are taken in ball arithmetic: deltas are rounded upwards, shares of eps downwards.

References
----------
Dong, J., Durfee, D. and Rogers, R. (2020). Optimal differential privacy composition for
exponential mechanisms. ICML.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

from flint import arb, ctx

from dpreg.privacy.balls import ball, round_up
from dpreg.privacy.budget import Budget

WORTHWHILE: Final = Fraction(6, 5)
"""Composed exponential draws replace permute-and-flip where each gets this many times the eps."""

_LARGEST_EPS: Final = 100  # beyond this, epsilons simply add up: delta no longer helps
_BITS: Final = 256
_STEP: Final = Fraction(1, 10**6)  # shares are rounded downwards to this part of eps / K


@dataclass(frozen=True, slots=True)
class DrawPlan:
    """How K draws are made from one budget.

    Attributes
    ----------
    draws : int
    mechanism : str
        What each draw uses.
    eps_each : Fraction
        The epsilon of each draw.
    cost : Budget
        What all draws cost together: the delta is 0 where it buys nothing.
    rule : str
        How the cost was composed, for the budget table.
    """

    draws: int
    mechanism: str
    eps_each: Fraction
    cost: Budget
    rule: str


def plan_draws(
    draws: int, budget: Budget, *, mechanism: str = "auto", contributions: int
) -> DrawPlan:
    """Divide a budget between K draws; public facts alone decide.

    Parameters
    ----------
    draws : int
        K, at least 1.
    budget : Budget
        For all draws together; eps positive.
    mechanism : {"auto", "permute-and-flip", "exponential", "laplace"}
        "auto" is permute-and-flip at eps / K, or the exponential mechanism where delta buys it
        at least 1.2 times that share: permute-and-flip draws better at equal eps (it never errs
        more, McKenna and Sheldon 2020), so a smaller gain would not be one.
    contributions : int
        Rows one person may own; see `bounded_range_share`.
    """
    pure = budget.eps / draws
    composes = budget.delta > 0 and draws > 1 and budget.eps <= _LARGEST_EPS
    if composes and mechanism in ("auto", "exponential"):
        share = bounded_range_share(draws, budget.eps, budget.delta, contributions)
        if share >= (WORTHWHILE if mechanism == "auto" else 1) * pure:
            rule = "exact composition of bounded-range draws"
            return DrawPlan(draws, "exponential", share, budget, rule)
    chosen = "permute-and-flip" if mechanism == "auto" else mechanism
    rule = "one draw" if draws == 1 else "epsilons add"
    return DrawPlan(draws, chosen, pure, Budget(budget.eps), rule)


def bounded_range_delta(each: Fraction, draws: int, eps: Fraction) -> Fraction:
    """Return the least delta at which K draws of `each`-bounded range are (eps, delta)-DP.

    Parameters
    ----------
    each : Fraction
        The bounded range of one draw; for the exponential mechanism its epsilon.
    draws : int
        K.
    eps : Fraction
        Their epsilon together.

    Returns
    -------
    Fraction
        Rounded upwards at the 12th digit; 0 where eps >= K each.
    """
    if eps >= draws * each:
        return Fraction(0)
    worst = Fraction(0)
    with ctx.workprec(_BITS):
        floor, limit = (-ball(each)).exp(), ball(eps).exp()
        for l in range(draws):  # noqa: E741 - the paper's name
            t = (eps + (l + 1) * each) / (draws + 1)
            if t >= each:  # p = 0: the ratio is 1 for certain, and d_l is 0 from here on
                break
            p = ((-ball(t)).exp() - floor) / (1 - floor)
            mass, odds, ratio = p**draws, (1 - p) / p, ball(draws * t).exp()
            total = arb(0)
            for i in range(l + 1):
                total += mass * (ratio - limit)
                mass, ratio = mass * odds * (draws - i) / (i + 1), ratio * floor
            worst = max(worst, round_up(total))
    return worst


@lru_cache(maxsize=128)
def bounded_range_share(draws: int, eps: Fraction, delta: Fraction, contributions: int) -> Fraction:
    """Return the largest epsilon of each of K exponential draws that cost (eps, delta) together.

    Rounded downwards to a millionth of eps / K. With contributions k the share also keeps, for
    every j < k, K draws of j/k of it within (j eps / k, delta): what j of a person's k rows cost
    where the rows are divided between releases (`dpreg.privacy.budget.in_parallel`).
    """
    step = eps / draws * _STEP

    def proved(steps: int) -> bool:
        return bounded_range_delta(steps * step, draws, eps) <= delta

    low = int(1 / _STEP)  # eps / K: pure
    high = 2 * low
    while proved(high):
        low, high = high, 2 * high
    low += bisect_left(range(low + 1, high), True, key=lambda steps: not proved(steps))
    while not all(
        bounded_range_delta(low * step * j / contributions, draws, eps * j / contributions) <= delta
        for j in range(1, contributions)
    ):
        low = math.floor(low * 0.999)
    return low * step
