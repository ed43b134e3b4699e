"""The chance that a private selection finds effects of given sizes, from its law. No data.

Setting
-------
Stored units: columns and response in [-1, 1] (`dpreg.columns`). Term j lowers the residual sum of
squares of any model by about D_j when it enters. Assumed: **the terms are uncorrelated given what
is kept** (or the variance given the rest is used, which is the least that D_j may come from), the
errors are normal with variance sigma2, the radius does not bind, and nothing is clipped. Then

    D_j = |beta_j sqrt((n - d) v_j) + sigma Z_j|^2 + sigma2 chi2_(d_j - 1),   Z_j standard normal,

v_j the variance of the column (of a term of several beta_j'V_j beta_j, V_j their covariance given
the other terms), d_j the columns of the term, d those of all effects; useless terms have
D_j = sigma2 chi2_(d_j). Each term is charged c_j = psi + phi d_j, so model M scores
sum_{j in M} (c_j - D_j) plus a constant, and a mechanism of rate t draws from these scores.

The mechanisms' laws
--------------------
exponential
    exp(-t S) factors over terms: each is in with chance 1 / (1 + exp(t (c_j - D_j))), alone.
permute-and-flip, laplace
    do not factor. The sets E of effects are listed, and the u useless terms counted: all models
    with effects E and s useless terms share one score, and there are C(u, s) of them. With p, f, H
    as in `dpreg.selection.probabilities`, P(E, s) = C(u, s) int f / H prod H^copies, one integral.
    The useless terms' D_j enter as one number d0, that for which a coin of the exponential
    mechanism has the same chance, 1 / (1 + exp(t (c - d0))) = E 1 / (1 + exp(t (c - D))).

The mean over Z is a mean over the points of a Kronecker lattice (deterministic; the same call gives
the same answer). Effects whose t |D_j - c_j| exceeds 40 at every point are settled and not listed.

A bound that needs no law
-------------------------
For permute-and-flip and exponential, P(M) / P(M') <= exp(-t (S(M) - S(M'))) if S(M) >= S(M').
(Exponential: equality. Permute-and-flip: P(M) = p int prod_{i != M} (1 - u p_i) du, and the
integrand for M is at most that for M' where p <= p'.) Pair each model without j with the one that
has it besides: P(j out) <= exp(-t (D_j - c_j)). So k effects are all found with chance at least
1 - alpha' where D_j >= c_j + ln(k / alpha') / t for each: with D_j at its mean this is

    n beta_j^2 v_j >= c_j + ln(k / alpha') / t,

the rule of thumb, solved for n by `Detection.rows_for`.

Theorems 4.1 and 4.2 of Lei et al. (2018) as numbers: what they promise for given n and eps.

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

What a selection by the paper's mechanism would cost and find, from public numbers.

The chance that a choice by looks finds effects of given sizes, in closed form. No data.

The looks of a call are made of assumed rows, `_CHOICE_DRAWS` times, each with noise of its own but
for the last (`dpreg.looks.expected`): that gives the laws that terms will be chosen from, with
nothing but the effects in them. What a term gains there is what its test is noncentral by
(`dpreg.choice.evidence`); the test is at alpha_f / q, and has to pass under each prior. Terms are
taken as independent of each other: the chance of all of them is the product.

How near a private coefficient will come to the one it stands for. No data.

Let b0 be the least squares estimate, with standard error s0 and the 5% interval b0 +- h0. The
private one is b1 = b0 + d with the interval b1 +- h1. The error d is independent of b0, N(0, t^2):
the privacy noise, and the little that cutting rows costs. Matrix-Laplace noise makes t^2 = a + b V
with V a mixing law (`dpreg.results.inference`). Both intervals are drawn, at the points of a
lattice, and compared:

overlap (Karr, Kohnen, Oganian, Reiter and Sanil 2006)
    Their common length is min(2 h0, 2 h1, h0 + h1 - |d|), at least 0; the overlap is half of its
    mean times (1/(2 h0) + 1/(2 h1)).
power
    P(|b0| > h0) and P(|b1| > h1) at the coefficient beta: b0 ~ N(beta, s0^2).
same decision
    P(both significant) + P(neither).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.special import chdtri, expit, gammaln, logit, ndtri

from dpreg.arrays import Floats, Ints
from dpreg.choice import evidence
from dpreg.choice.evidence import Evidence
from dpreg.choice.rule import OF_GROUPS, clusters
from dpreg.looks.expected import without_noise
from dpreg.looks.loop import laws_for_choice
from dpreg.looks.plan import LookPlan
from dpreg.planning.facts import Facts
from dpreg.planning.rows import Rows, Stated
from dpreg.privacy.proofs import score_grid, score_range
from dpreg.results.inference import mixing, quantiles
from dpreg.selection.probabilities import charges, log_law
from dpreg.selection.run import divided_eps

_CHOICE_DRAWS: Final = 5
"""Times that looks are made: where the last one is taken moves a chance by a few hundredths."""
_POINTS: Final = 64  # precision
_QUANTILES: Final = 256  # precision
_FAR: Final = 40.0  # precision: exp(-40) is no chance
_DEEPEST: Final = 700.0
_LEVEL: Final = 0.05  # by definition: of decisions, and one less the confidence of intervals
_PAIRS: Final = 2**13  # precision: pairs of intervals, private and not
_TINY: Final = 1e-9
"""Least gain that rows are multiplied by: the quotient stays finite."""


@dataclass(frozen=True, slots=True, eq=False)
class Detection:
    """What a law predicts of k effects.

    Attributes
    ----------
    each : (k,) array
        Chance that the chosen model holds each effect: by looks that its test passes under each
        prior.
    all : float
        Chance that it holds all of them.
    right : float
        Chance that it holds all of them and nothing else.
    useless : float
        Expected number of terms without an effect in it; by looks at most so many.
    own, wanted : (k,) arrays
        What each gains without noise, the least by any prior, and what it has to. By the paper's
        way: the fall of the residual sum of squares, and the price.
    level : float
        Of each test of looks.
    rate : float or None
        Of the paper's mechanism; None by looks.
    """

    each: Floats
    all: float
    right: float
    useless: float
    own: Floats
    wanted: Floats
    level: float = math.nan
    rate: float | None = None

    def rows_for(self, chance: float) -> float:
        """Return by how much rows must grow for every effect to be found with about this chance.

        The rule of thumb of the module. By looks: gain >= (root(reach) + z)^2, z the normal
        quantile of the chance of one of them; gains grow with the rows, and where noise matters
        faster.
        """
        if self.rate is not None:
            wanted = self.wanted + math.log(len(self.each) / (1 - chance)) / self.rate
            return float((wanted / self.own).max())
        z = float(ndtri(chance ** (1 / len(self.each))))
        wanted = (np.sqrt(self.wanted) + max(z, 0.0)) ** 2
        return float((wanted / np.maximum(self.own, _TINY)).max())


def least(
    reached: Callable[[float], bool], first: float, last: float, near: float, step: float = 0.0
) -> float | None:
    """Return nearly the least value that reaches: to `near` of it, or to a step.

    By doubling from `first`, then halving; None where no value up to `last` is enough.
    """
    high = first
    while not reached(high):
        high *= 2
        if high > last:
            return None
    low = high / 2
    while high - low > max(step, near * low):
        middle = (low + high) / 2 if step else math.sqrt(low * high)
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _lattice(points: int, dimensions: int) -> Floats:
    """Return points spread over the unit cube: Kronecker's, of a generalised golden ratio."""
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (dimensions + 1))
    steps = root ** -np.arange(1.0, dimensions + 1)
    return np.asarray((0.5 + np.arange(1, points + 1)[:, None] * steps) % 1.0)


# ---- the law of the paper's mechanisms -----------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Paper:
    """What ``method="pcls"`` costs and looks for, from public numbers; in stored units.

    Attributes
    ----------
    strength : (k,) array
        Of each effect, one a term: the fall of the residual sum of squares per row.
    columns : int array, shape (k,)
        d_j.
    useless : int array, shape (u,)
        Columns of each term without an effect.
    sigma2 : float
        Residual variance.
    rows : float
        Those that the selection reads: half of them where the other half fits.
    eps : float
        Of the draw.
    rate : float
        t: the eps of the draw over the range of the scores' changes.
    charges : (float, float)
        (phi, psi): per column and per term.
    mechanism : {"permute-and-flip", "exponential", "laplace"}
    """

    strength: Floats
    columns: Ints
    useless: Ints
    sigma2: float
    rows: float
    eps: float
    rate: float
    charges: tuple[float, float]
    mechanism: str

    @classmethod
    def of(cls, facts: Facts, told: Stated, assumed: Rows, n: int, eps: float) -> Paper:
        """Settle a call."""
        request = facts.request.as_pcls()
        mechanism = {"auto": "permute-and-flip"}.get(request.mechanism, request.mechanism)
        rows = n / 2 if request.fit == "split" else float(n)
        needed = {"count": request.needs_count, "fit": request.fit == "share"}
        draw_eps = float(divided_eps(Fraction(eps), needed, {})["selection"])
        moved = score_range(request.rho, request.protection).width * score_grid(request.rho)
        rate, known = draw_eps / float(moved), (rows, request.known_sigma2)
        phi, psi = charges(request, known, len(told.units), Fraction(rate), mechanism)
        widths = np.array([len(unit) for unit in told.units], dtype=np.int64)
        columns, useless = np.split(widths, [len(told.names)])
        return cls(
            strength=assumed.strength,
            columns=columns,
            useless=useless,
            sigma2=told.sigma**2,
            rows=rows,
            eps=draw_eps,
            rate=rate,
            charges=(float(phi), float(psi)),
            mechanism=mechanism,
        )

    def detect(self) -> Detection:
        """Predict the drawn model; see the module's docstring."""
        (phi, psi), rate = self.charges, self.rate
        wanted = np.asarray(psi + phi * self.columns, dtype=np.float64)
        gain = rate * (self._falls() - wanted)  # (L, k): score saved by each effect
        sure_in, sure_out = (gain > _FAR).all(axis=0), (gain < -_FAR).all(axis=0)
        open_ = np.flatnonzero(~(sure_in | sure_out))
        held = (np.arange(2 ** len(open_))[:, None] >> np.arange(len(open_))) & 1 == 1
        sizes, log_copies, score = self._useless_classes()
        # Scores over (L, sets of effects x numbers of useless terms).
        s = -(gain[:, open_] @ held.T.astype(float))
        total = (s[:, :, None] + score).reshape(len(gain), -1)
        copies = np.tile(log_copies, len(held))
        law = np.array([np.exp(log_law(one, copies, self.mechanism)) for one in total])
        chances = law.reshape(len(gain), len(held), len(sizes)).mean(axis=0)
        each = sure_in.astype(float)
        each[open_] = chances.sum(axis=1) @ held
        every = chances[-1] if not sure_out.any() else np.zeros(len(sizes))
        found, useless = float(every.sum()), float(chances.sum(axis=0) @ sizes)
        own = self.rows * self.strength
        return Detection(each, found, float(every[0]), useless, own, wanted, rate=rate)

    def _falls(self) -> Floats:
        """D_j at each point of the lattice, (L, k)."""
        z = ndtri(_lattice(_POINTS, len(self.strength)))
        # The other columns of the model, fitted on the same rows, take that many dimensions.
        seen = max(self.rows - float(self.columns.sum()), 0.0)
        moved = np.sqrt(seen * self.strength) + math.sqrt(self.sigma2) * z
        return np.asarray(moved**2 + self.sigma2 * (self.columns - 1))

    def _useless_classes(self) -> tuple[Floats, Floats, Floats]:
        """Sizes s, log C(u, s) and scores of the sets of useless terms, as far as they have weight.

        Terms of different width are counted as terms of one price, that of the same mean chance.
        """
        above, u = 1 - (np.arange(_QUANTILES) + 0.5) / _QUANTILES, len(self.useless)
        (phi, psi), chances = self.charges, np.zeros(u)
        for columns in np.unique(self.useless):
            fall = self.sigma2 * chdtri(float(columns), above)
            gain = self.rate * (fall - psi - phi * float(columns))
            chances[self.useless == columns] = expit(gain).mean()
        chance = float(chances.mean()) if u else 0.0
        top = min(u, math.ceil(u * chance + 8 * math.sqrt(u * chance) + 4))  # precision
        s, price = np.arange(top + 1.0), float(np.clip(-logit(chance), -_DEEPEST, _DEEPEST))
        return s, gammaln(u + 1) - gammaln(s + 1) - gammaln(u - s + 1), s * price


# ---- the theorems of the paper -------------------------------------------------------------------


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

    @classmethod
    def of(cls, facts: Facts, told: Stated, assumed: Rows, paper: Paper) -> Situation:
        """Read a call in the unit of the theorems."""
        free, sigma = [j - 1 for unit in told.units for j in unit], told.sigma
        return cls(
            rows=max(paper.rows, 3.0),  # precision: log n is above 1
            eps=paper.eps,
            models=told.models,
            kappa0=float(min(assumed.variance[free])),
            least=min(b / sigma / k for b, k in zip(told.scaled, paper.columns, strict=True)),
            true=int(paper.columns.sum()),
            largest=told.widest,
            radius=float(facts.request.rho) / sigma,
            bound=1 / sigma,
        )

    @property
    def wide_enough(self) -> bool:
        """Whether R >= r sqrt(dbar / kappa0)."""
        return self.radius >= self.bound * math.sqrt(self.largest / self.kappa0)


def theorem_41(at: Situation) -> float:
    """Return the chance of the right model that theorem 4.1 promises (penalised least squares)."""
    phi = at.kappa0 * at.least**2 * at.rows / max(4, 1 + 2 * at.true)
    a, c = _largest(at, phi / (2 * math.log(at.rows)))
    misses = (1 + 2 * at.largest) / math.sqrt(2 * math.pi * max(a, 1e-300) * math.log(at.rows))
    return _promised(at, phi / 4, c, misses * at.rows**-c)


def theorem_42(at: Situation) -> float:
    """Return the chance of the right model that theorem 4.2 promises (profile likelihood)."""
    phi = 2 / (3 * at.true) * at.rows * math.log1p(at.kappa0 * at.least**2 / 4)
    a, c = _largest(at, phi / (4 * math.log(at.rows)))
    missed = 3 * at.rows ** (-a / 2) + 2 * at.largest * at.rows**-c
    return _promised(at, phi / 64, c, missed)  # by definition


def _promised(at: Situation, phi: float, c: float, missed: float) -> float:
    """Return what is left of K exp(-phi eps / (R + r)^2) and the chance of missing a column.

    Nothing is promised where the conditions do not hold; the one on R is `wide_enough`.
    """
    if c <= 0 or at.true > at.rows / 8:  # by definition
        return 0.0
    falls = phi * at.eps / (at.radius + at.bound) ** 2
    return max(0.0, 1 - math.exp(min(math.log(at.models) - falls, 1.0)) - missed)


def _largest(at: Situation, most: float) -> tuple[float, float]:
    """Return the largest A that condition (18) admits, and c; 0 where there is none."""
    signal, size = at.kappa0 * at.least**2, at.rows / math.log(at.rows)
    a = min(most, size * signal / 64, size / (8 * at.largest))  # by definition
    a = 0.0 if size < 4 * at.largest / signal else a
    return a, max(a / 2 - math.log(at.models) / math.log(at.rows), 0.0)


def least_rows(theorem: Callable[[Situation], float], at: Situation, chance: float) -> float:
    """Return the least n, to a part in a thousand, at which a theorem promises `chance`.

    Its condition on R is ignored; infinity where no n up to 1e15 suffices.
    """

    def reached(rows: float) -> bool:
        return theorem(replace(at, rows=rows)) >= chance

    found = least(reached, 16.0, 1e15, 1e-3)  # precision
    return math.inf if found is None else found


# ---- choices by looks ----------------------------------------------------------------------------


def gains(facts: Facts, told: Stated, rows: Rows, plan: LookPlan, n: int) -> Detection:
    """Return what terms gain in looks: of each the least by any prior, in the mean over looks."""
    assert rows.beta is not None
    with_effect, offered = told.units[: len(told.names)], len(told.units)
    taken = (rows.looked(plan, n, draw) for draw in range(_CHOICE_DRAWS))
    quiet = (without_noise(one, seen, rows.beta) for one, seen in taken)
    looks = [[Evidence(law) for law in laws_for_choice(seen)] for seen in quiet]
    first, alpha = looks[0][0], float(facts.request.false_inclusions)
    share = 1 - OF_GROUPS if clusters(first.likeness(told.units)) else 1.0
    level = alpha * share / offered

    def shown(look: Evidence) -> tuple[list[float], list[float]]:
        own = [look.gain(unit) for unit in with_effect]
        both = zip(own, map(len, with_effect), strict=True)
        return own, [evidence.chance(look, gain, width, level) for gain, width in both]

    strength, each = np.array([[shown(look) for look in one] for one in looks]).min(1).mean(0)
    reach = np.array([evidence.reach(first, len(unit), level) for unit in with_effect])
    every, useless = float(np.prod(each)), level * (offered - len(with_effect))
    right = every * math.exp(-useless)
    return Detection(each, every, right, useless, strength, reach, level)


# ---- how near a coefficient comes ----------------------------------------------------------------


def measures(
    beta: Floats, exact: Floats, sampling: Floats, privacy: Floats, degrees: int | None
) -> dict[str, Floats]:
    """Predict how near m private coefficients come to those of least squares.

    Parameters
    ----------
    beta : (m,) array
        True coefficients.
    exact, sampling, privacy : (m,) arrays
        Variances: of least squares, and the two parts of the private estimate's.
    degrees : int or None
        As in `dpreg.results.inference`.

    Returns
    -------
    mapping
        Of (m,) arrays: "width", the length of the private interval over that of least squares;
        "overlap", the expected one of both; "same decision", the chance that both are significant,
        or neither; "power" and "least squares power", the chance that each is.
    """
    own = np.sqrt(exact)
    half = -float(ndtri(_LEVEL / 2)) * own
    private = quantiles(sampling, privacy, degrees, _LEVEL)
    points, mixed = _lattice(_PAIRS, 2), mixing(degrees)
    mixture = mixed[(_lattice(_PAIRS, 1) * len(mixed)).astype(int)]
    spread = np.sqrt(np.maximum(sampling - exact, 0.0) + privacy * mixture)
    first, moved = beta + own * ndtri(points[:, :1]), spread * ndtri(points[:, 1:])
    common = np.minimum(half + private - np.abs(moved), 2 * np.minimum(half, private))
    ordinary, found = np.abs(first) > half, np.abs(first + moved) > private
    known = np.where(np.isnan(private), np.nan, 1.0)
    return {
        "width": private / half,
        "overlap": np.maximum(common, 0).mean(axis=0) / 2 * (0.5 / half + 0.5 / private),
        "same decision": known * (ordinary == found).mean(axis=0),
        "power": known * found.mean(axis=0),
        "least squares power": ordinary.mean(axis=0),
    }
