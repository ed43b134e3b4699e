r"""Theorems 4.1 and 4.2 of Lei et al. (2018) as numbers: what they promise for given n and eps.

Both bound the chance that the drawn model is wrong, under their assumptions A0-A4: a fixed design
with least sparse eigenvalue kappa0, normal errors, the least coefficient b0, d0 true columns, the
largest model of dbar columns, K = n^alpha models, R >= r sqrt(dbar / kappa0). A = 2(alpha + c):

4.1 (PCLS)  2A (1 v sigma2) log n <= phi <= kappa0 b0^2 sigma2 n / (4 v (1 + 2 d0)) gives
    P(wrong) <= K exp(-phi eps / (4 (R + r)^2)) + (1 + 2 dbar) n^-c / sqrt(2 pi A log n)
4.2 (PCPL)  4A log n <= phi <= (2 n / (3 d0)) log(1 + kappa0 b0^2 / (4 sigma2)) gives
    P(wrong) <= K exp(-eps sigma2 phi / (64 (R + r)^2)) + 3 n^(-A/2) + 2 dbar n^-c

4.1's conditions change with the unit of the response; they are read in the unit in which sigma is
1, as the theorem is stated. Both bounds fall in phi and in c, so they are taken at the largest
phi that the theorem admits, and at the largest A that this phi and condition (18) of assumption A4,

    n / log n >= max(64 A sigma2 / (kappa0 b0^2), 4 dbar sigma2 / (kappa0 b0^2), 8 A dbar),

admit: no other choice would make them better. Where that leaves no c > 0, or the bound is 1 or
more, the theorem promises nothing. (19), d0 <= n/8, is checked; (20) asks for delta, concerns
4.2 alone, and is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from dpreg.planning.solve import bracket, narrowed

__all__ = ["Promise", "Situation", "least_rows", "theorem_41", "theorem_42"]


@dataclass(frozen=True, slots=True)
class Situation:
    """What the theorems ask about, in the unit of the response in which sigma is 1.

    Attributes
    ----------
    rows : float
    eps : float
    models : int
        K.
    kappa0 : float
        Least eigenvalue of the columns' covariance, over sparse directions.
    least : float
        b0, the smallest true coefficient.
    true : int
        d0.
    largest : int
        dbar.
    radius, bound : float
        R and r.
    """

    rows: float
    eps: float
    models: int
    kappa0: float
    least: float
    true: int
    largest: int
    radius: float
    bound: float

    @property
    def wide_enough(self) -> bool:
        """Whether R >= r sqrt(dbar / kappa0)."""
        return self.radius >= self.bound * math.sqrt(self.largest / self.kappa0)


@dataclass(frozen=True, slots=True)
class Promise:
    """What a theorem says.

    Attributes
    ----------
    right : float
        It promises at least this chance of the right model; 0 where it promises nothing.
    penalty : float
        The largest phi that it admits, in squared units in which sigma is 1 (4.1) or of n log Q.
    holds : bool
        Whether its conditions hold, the one on R apart.
    wide_enough : bool
        Whether its condition on R holds.
    """

    right: float
    penalty: float
    holds: bool
    wide_enough: bool


def theorem_41(at: Situation) -> Promise:
    """Evaluate theorem 4.1 (penalised constrained least squares)."""
    log_n = math.log(at.rows)
    phi = at.kappa0 * at.least**2 * at.rows / max(4, 1 + 2 * at.true)
    a = _largest_a(at, phi / (2 * log_n))
    c = a / 2 - math.log(at.models) / log_n
    holds = c > 0 and at.true <= at.rows / 8  # by definition
    wrong = 1.0
    if holds:
        wrong = _union(at.models, phi * at.eps / (4 * (at.radius + at.bound) ** 2))  # by definition
        wrong += (1 + 2 * at.largest) * at.rows**-c / math.sqrt(2 * math.pi * a * log_n)
    return Promise(max(0.0, 1 - wrong), phi, holds, at.wide_enough)


def theorem_42(at: Situation) -> Promise:
    """Evaluate theorem 4.2 (penalised constrained profile likelihood)."""
    log_n = math.log(at.rows)
    phi = 2 / (3 * at.true) * at.rows * math.log1p(at.kappa0 * at.least**2 / 4)
    a = _largest_a(at, phi / (4 * log_n))
    c = a / 2 - math.log(at.models) / log_n
    holds = c > 0 and at.true <= at.rows / 8  # by definition
    wrong = 1.0
    if holds:
        falls = phi * at.eps / (64 * (at.radius + at.bound) ** 2)  # by definition
        wrong = _union(at.models, falls)
        wrong += 3 * at.rows ** (-a / 2) + 2 * at.largest * at.rows**-c
    return Promise(max(0.0, 1 - wrong), phi, holds, at.wide_enough)


def least_rows(theorem: Callable[[Situation], Promise], at: Situation, chance: float) -> float:
    """Return the least n, to a part in a thousand, at which a theorem promises `chance`.

    Its condition on R is ignored; infinity where no n up to 1e15 suffices.
    """

    def reached(rows: float) -> bool:
        return theorem(replace(at, rows=rows)).right >= chance

    found = bracket(reached, 16.0, 1e15)  # precision
    return math.inf if found is None else narrowed(reached, *found, 1e-3)  # precision


def _union(models: int, exponent: float) -> float:
    """Return K exp(-exponent), for any K."""
    return math.exp(min(math.log(models) - exponent, 1.0))


def _largest_a(at: Situation, most: float) -> float:
    """Return the largest A that condition (18) admits, at most `most`; 0 where there is none."""
    signal, size = at.kappa0 * at.least**2, at.rows / math.log(at.rows)
    if size < 4 * at.largest / signal:
        return 0.0
    return min(most, size * signal / 64, size / (8 * at.largest))  # by definition
