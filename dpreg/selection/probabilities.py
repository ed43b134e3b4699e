"""Exact probabilities with which a mechanism draws each model of an enumerated space.

They are computed from the exact integer scores, so they are **curator-only**: tests and studies
use them, no released result holds them. ``t`` is the rate per score unit, the reciprocal of the
noise scale. With d_i = S_i - min S and p_i = exp(-t d_i):

exponential
    P(r) = p_r / sum_i p_i.
permute-and-flip
    The law is that of the argmin of S_i - E_i/t with E_i standard exponential (Ding et al. 2021).
    Substituting u = exp(-(value of the winner)) in the one-dimensional integral over it gives
    P(r) = p_r * integral_0^1 prod_{i != r} (1 - u p_i) du.
laplace
    The argmin of S_i + Z_i/t, Z_i standard Laplace with density f and survival function H:
    P(r) = integral f(x - s_r) prod_{i != r} H(x - s_i) dx, s_i = t d_i.

The integrals are taken by Gauss-Legendre rules on panels. Both integrands are products of factors
that are analytic within a panel: for permute-and-flip the panels widen by fours from 1/sum(p),
the scale on which the product decays; for laplace they end at the s_i, where f and H have kinks.
Every term is kept as a logarithm until the last sum, so a probability of 1e-300 has as many right
digits as one of 0.5. Measured against 60-digit quadrature in the tests: relative error < 1e-10.

References
----------
McKenna, R. and Sheldon, D. (2020). Permute-and-flip. NeurIPS 33.
Ding, Z. et al. (2021). The permute-and-flip mechanism is identical to report-noisy-max with
exponential noise. arXiv:2105.07260.

Gauss-Legendre rules on panels.

The price of a term: how large a penalty keeps useless terms out of a noisy selection.

A useless term lowers the score by nothing, or nearly so; noise alone lets it in. `penalty="auto"`
charges each unit outside ``keep`` once, psi, so that the expected number of useless units in the
drawn model is at most alpha (`false_inclusions`).

Setting
-------
q useless units, true terms so strong that they are always in. A model with s useless units then
scores psi s above the best, and there are C(q, s) of them. With x = t psi, t the mechanism's rate
per score unit, the law of such classes (`log_law`) gives the expected number of useless units U(x).

- exponential: the q units enter as independent coins of odds exp(-x), so U(x) = q / (1 + exp(x)).
  psi = log(q / alpha) / t makes it alpha / (1 + alpha / q), a little below alpha.
- permute-and-flip: one useless unit beats none with probability exp(-x) / 2, whence the first
  approximation x = log(q / (2 alpha)).
- Laplace: one useless unit beats none with probability (2 + x) exp(-x) / 4, whence
  q (2 + x) exp(-x) = 4 alpha as a first approximation.

The first approximations sum over single units. For permute-and-flip they leave out the pairs and
triples (U is 1.13 alpha at alpha = 0.1, 1.4 alpha at 0.3), for Laplace that q rivals compete with
each other (0.5 to 0.9 alpha). So for these two U(x) = alpha is solved numerically. U falls from q/2
at x = 0; where alpha >= q/2 no charge is needed. All of this is public: q, alpha and t are.

A useless term does lower the score a little in a sample, by about sigma^2 per column, and is let in
a little more often for it: by the factor exp(t sigma^2) per column. BIC's penalty, added where
sigma^2 is known, is there for that part.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, lru_cache

import flint
import numpy as np
from scipy.special import expit, gammaln

from dpreg.arrays import Floats, Ints
from dpreg.request import SelectionRequest

_rule = cache(np.polynomial.legendre.leggauss)


def panels(edges: Sequence[float] | Floats, order: int) -> tuple[Floats, Floats]:
    """Return the nodes and weights of a rule of `order` points on each panel between two edges."""
    nodes, weights = _rule(order)
    ends = np.asarray(edges, dtype=np.float64)
    half = np.diff(ends)[:, None] / 2
    return (ends[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()


_DEEPEST = 700.0  # exp(-700) is the smallest probability that is not taken for zero
_MOST_COPIES = 600.0  # precision: the logarithm of the most copies that are counted one by one
_BLOCK = 1 << 21  # elements of a work matrix held at once


def _log_sum(terms: Floats, weights: Floats) -> Floats:
    """Log of the weighted sum of exp(terms) over the last axis, without underflow."""
    top = terms.max(axis=-1, keepdims=True)
    inner: Floats = np.log(np.exp(terms - top) @ weights) + top[..., 0]
    return inner


def _exponential(s: Floats, copies: Floats) -> Floats:
    log_total = np.log(copies @ np.exp(-s))
    return np.asarray(-s - log_total)


def _permute_and_flip(s: Floats, copies: Floats) -> Floats:
    p = np.exp(-s)
    total = float(copies @ p)
    edges = [0.0]
    while edges[-1] < 1.0 and edges[-1] * total < 2 * _DEEPEST:
        wider = max(edges[-1] * 4, 1.0 / max(total, 1.0))
        edges.append(wider if wider < 0.5 else 1.0)  # no sliver at 1, where nodes would round to 1
    u, weights = panels(edges, 48)  # precision
    log_keep = np.zeros_like(u)
    for part in _blocks(len(s), len(u)):
        log_keep += copies[part] @ np.log1p(-p[part, None] * u)
    out = np.empty_like(s)
    for part in _blocks(len(s), len(u)):
        out[part] = _log_sum(log_keep - np.log1p(-p[part, None] * u), weights)
    return np.asarray(out - s)


def _log_survival(x: Floats) -> Floats:
    """Log of P(Z > x) for a standard Laplace variable."""
    below = np.log1p(-0.5 * np.exp(np.minimum(x, 0.0)))
    return np.where(x > 0, np.log(0.5) - x, below)


def _laplace_panels(s: Floats, copies: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Nodes and weights from left to right, a batch of panels at a time.

    Some value lies below x with a chance of at most sum exp(x - s): there they begin.
    A panel ends at every kink; kinks nearer than 1e-4 share one, which costs a relative error
    of about (1e-4)**2 / 100 on the mass of one panel.
    """
    far = float(s.max()) + 45.0  # precision
    kinks = s[np.unique(np.floor(s * 1e4), return_index=True)[1]]
    low = -45.0 - math.ceil(max(math.log(float(copies @ np.exp(-s))), 0.0))  # precision
    edges = np.unique(np.concatenate([np.arange(low, far, 1.0), kinks, [far]]))
    wide = np.diff(edges) > 0.2  # precision
    turns = np.flatnonzero(wide[1:] != wide[:-1]) + 1
    for start, stop in itertools.pairwise((0, *turns, len(wide))):
        for first in range(start, stop, 32):
            order = 12 if wide[start] else 6  # precision
            yield panels(edges[first : min(first + 32, stop) + 1], order)


def _laplace(s: Floats, copies: Floats) -> Floats:
    """Log probabilities under Laplace noise; ``s`` is ascending.

    For x > s_r the ratio f/H is 1, so every model already passed gains the same amount, and the
    models passed contribute to log H a line in x; the matrix work is on the others alone.
    """
    log_half = np.log(0.5)
    log_p = np.full(len(s), -np.inf)
    passed_copies, passed_sum = np.cumsum(copies), np.cumsum(copies * s)
    for x, weights in _laplace_panels(s, copies):
        passed = int(np.searchsorted(s, x[0], side="right"))
        log_keep = np.zeros_like(x)
        if passed:
            log_keep = passed_copies[passed - 1] * (log_half - x) + passed_sum[passed - 1]
        for part in _blocks(len(s) - passed, len(x), passed):
            log_keep = log_keep + copies[part] @ _log_survival(x - s[part, None])
        if log_keep[0] < -2 * _DEEPEST:
            break
        log_p[:passed] = np.logaddexp(log_p[:passed], _log_sum(log_keep, weights))
        for part in _blocks(len(s) - passed, len(x), passed):
            gap = x - s[part, None]
            terms = log_keep - _log_survival(gap) + log_half - np.abs(gap)
            log_p[part] = np.logaddexp(log_p[part], _log_sum(terms, weights))
    return log_p


def _blocks(models: int, nodes: int, offset: int = 0) -> Iterator[slice]:
    step = max(1, _BLOCK // max(nodes, 1))
    for first in range(offset, offset + models, step):
        yield slice(first, min(first + step, offset + models))


_LAWS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "exponential": _exponential,
    "permute-and-flip": _permute_and_flip,
    "laplace": _laplace,
}


def log_probabilities(scores: Ints, t: Fraction, mechanism: str) -> Floats:
    """Log probability that ``mechanism`` draws each model (curator-only).

    Parameters
    ----------
    scores : int64 array, shape (K,)
        Integer scores; the lowest is the best.
    t : Fraction
        Rate per score unit: the reciprocal of the noise scale.
    mechanism : {"permute-and-flip", "exponential", "laplace"}
        The mechanism that draws.

    Returns
    -------
    float64 array, shape (K,)
        Natural logarithms; ``-inf`` where the probability is below about exp(-700).
    """
    values, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    gaps = values - values[0]  # exact in int64, as scores are far below 2**62
    log_copies = np.log(counts)
    law = log_law(gaps.astype(np.float64) * float(t), log_copies, mechanism)
    return np.asarray((law - log_copies)[inverse])


def log_law(s: Floats, log_copies: Floats, mechanism: str) -> Floats:
    """Log probability of each class of equal models; `s` is t S of one of them.

    More than exp(600) of them win at values so far down that -log H(y) is exp(y) there, but for a
    factor: exp(600) models, each better by the rest of the logarithm, win as often.
    """
    copies = np.minimum(log_copies, _MOST_COPIES)
    s = s - (log_copies - copies)
    s, order = s - s.min(), np.argsort(s)
    near = order[s[order] <= _DEEPEST]
    log_p = np.full(len(s), -np.inf)
    log_p[near] = copies[near] + _LAWS[mechanism](s[near], np.exp(copies[near]))
    return log_p


def selection_probabilities(scores: Ints, t: Fraction, mechanism: str) -> Floats:
    """Probability that ``mechanism`` draws each model (curator-only; see `log_probabilities`)."""
    return np.exp(log_probabilities(scores, t, mechanism))


def charges(
    request: SelectionRequest,
    known: tuple[float | None, Fraction | None],
    units: int,
    rate: Fraction,
    mechanism: str,
) -> tuple[Fraction, Fraction]:
    """Return (phi, psi), what a column and a unit outside ``keep`` are charged.

    A number is phi, as in the paper. "auto" is psi, the price of the privacy noise, and BIC's phi
    as well where sigma2 is known; "bic" is the latter alone. In the units of n log Q, PCPL's, BIC's
    phi is log n and needs no sigma2.

    Parameters
    ----------
    request : SelectionRequest
    known : (number or None, Fraction or None)
        n and sigma2 for BIC's phi, sigma2 log n: public, or bought.
    units : int
        Units outside ``keep``.
    rate, mechanism
        As for `useless_term_penalty`.
    """
    (rows, sigma2), profile = known, request.method == "pcpl"
    if isinstance(request.penalty, Fraction):
        return request.penalty / (1 if profile else request.clip**2), Fraction(0)
    phi = psi = Fraction(0)
    sigma2 = Fraction(1) if profile else sigma2
    if rows is not None and sigma2 is not None:
        phi = sigma2 * Fraction(float(flint.arb(max(rows, 1)).log()))
    if request.penalty == "auto" and units:
        psi = useless_term_penalty(units, request.false_inclusions, rate, mechanism)
    return phi, psi


def useless_term_penalty(
    units: int, false_inclusions: Fraction, rate: Fraction, mechanism: str
) -> Fraction:
    """Return psi: the charge per unit that keeps the expected useless units at alpha or below.

    Parameters
    ----------
    units : int
        q, the number of units outside ``keep``: all are taken for useless, the worst case.
    false_inclusions : Fraction
        alpha, positive.
    rate : Fraction
        t, the mechanism's rate per score unit (`dpreg.privacy.mechanisms.choice.effective_t`).
    mechanism : {"permute-and-flip", "exponential", "laplace"}

    Returns
    -------
    Fraction
        In score units; 0 where alpha is at least half the number of units.
    """
    if 2 * false_inclusions >= units:
        return Fraction(0)
    return Fraction(_charge(units, float(false_inclusions), mechanism)) / rate


@lru_cache(maxsize=256)
def _charge(units: int, alpha: float, mechanism: str) -> float:
    """Return x = t psi with U(x) <= alpha < units / 2, and not much less."""
    if mechanism == "exponential":
        return max(0.0, math.log(units / alpha))
    from scipy.optimize import brentq  # slow to import, and seldom needed

    def excess(x: float) -> float:
        return math.log(expected_useless_units(x, units, mechanism) / alpha)

    high = math.log(units / alpha) + 1.0
    while excess(high) > 0:
        high += 1.0
    low = high
    while low > 1e-3 and excess(low) <= 0:  # precision
        high, low = low, low / 2
    if excess(low) <= 0:
        return low
    return float(brentq(excess, low, high, xtol=1e-9)) + 1e-8


def expected_useless_units(x: float, units: int, mechanism: str) -> float:
    """Return U(x), the expected number of useless units drawn when each costs x noise scales.

    Parameters
    ----------
    x : float
        t psi, at least 0.
    units : int
        q.
    mechanism : {"permute-and-flip", "exponential", "laplace"}
    """
    # A binomial's size lies further off its mean than this with a chance below exp(-70) (Chernoff).
    mean = units * float(expit(-x))
    reach = 12 * math.sqrt(mean) + 40  # precision
    least, most = max(0, math.floor(mean - reach)), min(units, math.ceil(mean + reach))
    sizes = np.arange(least, most + 1, dtype=np.float64)
    log_count = gammaln(units + 1) - gammaln(sizes + 1) - gammaln(units - sizes + 1)
    return float(sizes @ np.exp(log_law(x * sizes, log_count, mechanism)))
