"""The Gaussian mechanism, calibrated exactly: how much noise an (eps, delta) needs and buys.

Balle and Wang (2018), Theorem 8: x + N(0, sigma^2 I), for x of L2 sensitivity D, is (eps, delta)-DP
if and only if

    Phi(D/(2 sigma) - eps sigma/D) - exp(eps) Phi(-D/(2 sigma) - eps sigma/D) <= delta.

The curve is evaluated in ball arithmetic (python-flint), so a sigma that is returned is *proved* to
satisfy it, not merely computed to. Several Gaussian releases with sensitivities D_i and scales
sigma_i are together one with ratio sqrt(sum (D_i / sigma_i)^2).

Discrete noise
--------------
dpreg adds integers: k drawn with probability proportional to exp(-k^2/(2 sigma^2)) (Canonne, Kamath
and Steinke 2020), independently for each of m integer cells.

The scale may differ from cell to cell: sigma_c = sigma / weight_c, and then D is the sensitivity
of the vector with cell c multiplied by weight_c.

*Statement.* Let r = D/sigma, let s >= 1 be the smallest scale, L^2 = 2 ln(2m/delta) + 100,
K = L + r, eta = (K^2 + 1)/(8 s^2). If sigma satisfies Balle and Wang's equation at

    eps0 = eps - 2 m eta,     delta0 = exp(-m eta) (1 - exp(-50)) delta,

the discrete mechanism is (eps, delta)-DP.

*Proof.* Write Q for the law of x + round(noise), noise N(0, sigma_c^2) in cell c, P for the
discrete law around x, Q', P' around a neighbour x'. Rounding a continuous Gaussian release of an
integer vector is rounding its noise, so post-processing gives Q(S) <= exp(eps0) Q'(S) + delta0. In
one coordinate, sigma for its own scale, with f(k) = exp(-k^2/(2 sigma^2)),

    int_{k-1/2}^{k+1/2} f = f(k) int_{-1/2}^{1/2} cosh(k t/sigma^2) exp(-t^2/(2 sigma^2)) dt

lies between f(k) exp(-1/(8 sigma^2)) and f(k) exp(k^2/(8 sigma^4)) (cosh x <= exp(x^2/2)), and by
Poisson's formula the sum of f over the integers lies between sqrt(2 pi) sigma and
(1 + 3 exp(-2 pi^2 sigma^2)) times that, where 3 exp(-2 pi^2 sigma^2) <= 1/(8 sigma^2). So where
|k| <= K sigma the two probabilities agree within a factor exp(+-eta). Let T hold the vectors some
coordinate of which is further than K sigma from x or from x'. As |x - x'| <= r sigma in each, T
lies more than L sigma from both in that coordinate, and the discrete Gaussian is subgaussian
(ibid.): P(T) <= 2 m exp(-L^2/2) = exp(-50) delta. For every S,

    P(S) <= P(S - T) + P(T) <= exp(m eta) Q(S - T) + P(T)
         <= exp(m eta) [exp(eps0) exp(m eta) P'(S - T) + delta0] + P(T) <= exp(eps) P'(S) + delta.

A sampler that saturates beyond K sigma changes events in T only. At dpreg's grid (sigma of at
least 2**35 or so) eta is below 1e-17: the correction is proved, not felt.

`dpreg.privacy.gaussian` has the same for looks whose queries and scales depend on earlier ones.

Several Gaussian looks at the same rows, each planned with what the earlier ones released.

Setting
-------
A release makes at most J looks. Look j is given the values released so far, its *prefix*, and
nothing else; from these it chooses integer queries q_jc and scales sigma_jc for its cells c, and
releases q_jc(rows) + k_jc with independent discrete Gaussian noise,
P(k) proportional to exp(-k^2/(2 sigma_jc^2)). Public bounds hold whatever was released and for
every pair of neighbours x, x':

- all looks together have at most m cells;
- every scale is at least s >= 1;
- with d_jc = (q_jc(x') - q_jc(x)) / sigma_jc, the sum of d_jc^2 over all cells of all looks is at
  most r^2. (Look j keeps its own sum below r_j^2, and the r_j^2, which may depend on the prefix,
  sum to at most r^2 on every path.)

*Statement.* Let L^2 = 2 ln(2m/delta) + 100, K = L + r, eta = (K^2 + 1)/(8 s^2). If Balle and Wang's
inequality (see `dpreg.privacy.gaussian`) holds for ratio D/sigma = r at

    eps0 = eps - 2 m eta,     delta0 = exp(-m eta) (1 - exp(-50)) delta,

all looks together are (eps, delta)-DP. Nothing is paid for the planning in between: no look has to
fix its r_j beforehand.

Proof
-----
Fix neighbours x, x'. P and P' are the laws of all released values under x and x'. Q and Q' are
those where k_jc is a rounded normal variable of the same scale instead.

*Normal noise.* Rounding q + N(0, sigma^2), q an integer, is q plus the rounded noise. So Q is a
post-processing of the law R of looks that plan from rounded values but record the unrounded
y_jc = q_jc + sigma_jc g_jc, g_jc standard normal. Add one last cell to R, with noise N(0, 1) and
shift (r^2 - sum d_jc^2)^(1/2), which the record so far determines; the release is a part of the
longer record. Number all its cells in order, l = 1 .. m + 1, d_l = 0 where none is left. Under x

    log dR/dR' = sum_l (d_l^2/2 - d_l g_l) = r^2/2 - sum_l d_l g_l,

where d_l is a function of g_1 .. g_(l-1). For real t the conditional expectation of
exp(i t d_l g_l + t^2 d_l^2/2) given g_1 .. g_(l-1) is 1. So the product of these factors has
expectation 1; it is exp(i t sum d_l g_l) exp(t^2 r^2/2), where r is a constant. Hence sum d_l g_l
is exactly N(0, r^2), and the privacy loss is exactly N(r^2/2, r^2) under x and, by the same steps,
N(-r^2/2, r^2) under x'. The greatest R(S) - exp(eps0) R'(S) is that of S = {loss > eps0}: Balle and
Wang's left side. So Q(S) <= exp(eps0) Q'(S) + delta0 for every S.

*Discrete noise.* In one cell, given its prefix, the two laws of k agree within a factor
exp(+-eta) wherever |k| <= K sigma_jc (shown in `dpreg.privacy.gaussian`, with sigma_jc >= s). Let T
hold the records some cell of which lies further than K sigma_jc from q_jc(x) or from q_jc(x'), the
scale and the queries being those of its prefix. As |d_jc| <= r, such a cell lies further than
L sigma_jc from q_jc(x). Given its prefix that has a probability of at most 2 exp(-L^2/2) (Canonne,
Kamath and Steinke 2020: the discrete Gaussian is subgaussian), and there are at most m cells:
P(T) <= 2 m exp(-L^2/2) = exp(-50) delta. Outside T at most m factors exp(eta) separate P from Q,
and Q' from P'. For every S,

    P(S) <= P(S - T) + P(T) <= exp(m eta) Q(S - T) + P(T)
         <= exp(m eta) [exp(eps0) Q'(S - T) + delta0] + P(T)
         <= exp(eps0 + 2 m eta) P'(S - T) + (1 - exp(-50)) delta + exp(-50) delta
         <= exp(eps) P'(S) + delta.                                                          QED

A sampler that saturates beyond K sigma changes events in T only. OpenDP's 64-bit integers saturate
2**11 scales away at the least; r is therefore never taken above 2**10.

Steps between the looks that are eps_i-DP, such as private bounds, add their eps_i to the whole:
P(S) <= exp(eps) P''(S) + delta by the above for P'', where these steps still read x but the looks
x', and P''(S) <= exp(sum eps_i) P'(S).

References
----------
Balle, B. and Wang, Y.-X. (2018). Improving the Gaussian mechanism for differential privacy. ICML.
Canonne, C., Kamath, G. and Steinke, T. (2020). The discrete Gaussian for differential privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Final

from flint import arb, ctx

from dpreg.errors import ArgumentError
from dpreg.privacy.balls import ball

_BITS = 256
LARGEST_EPS: Final = Fraction(2**90)
"""More is taken for this, where balls still tell: delta(eps), the left side, falls in eps, so what
is proved at a smaller eps holds at a larger one."""


def _curve(ratio: arb, eps: arb) -> arb:
    """Balle and Wang's left side with ratio = D/sigma, as a ball."""
    root = arb(2).sqrt()
    shift = eps / ratio
    above = ((shift - ratio / 2) / root).erfc() / 2
    below = ((shift + ratio / 2) / root).erfc() / 2
    return above - eps.exp() * below


def _precision(eps: Fraction, ratio_squared: Fraction) -> int:
    """Bits enough for exp(eps) times a tail: both exponents, and room for their difference."""
    size = 3 * eps + eps**2 / ratio_squared + ratio_squared  # exact: these leave float64
    return _BITS + 2 * max(size.numerator.bit_length() - size.denominator.bit_length() + 1, 0)


def analytic_delta(ratio: float, eps: Fraction) -> float:
    """Return the least delta of a Gaussian release with D/sigma = `ratio`, rounded upwards.

    An eps above 2**90 is taken for 2**90, which only raises delta.
    """
    if ratio <= 0:
        return 0.0
    eps = min(eps, LARGEST_EPS)
    with ctx.workprec(_precision(eps, Fraction(ratio) ** 2)):
        upper = _curve(ball(ratio), ball(eps)).upper()
        found = float(upper)
        if not found < 1:  # also where the balls were too wide to tell: 1 is always true
            return 1.0
        if not upper <= ball(found):
            found = math.nextafter(found, math.inf)
    return max(found, 0.0)


def analytic_epsilon(ratio: float, delta: Fraction) -> float:
    """Return the least eps of a Gaussian release with D/sigma = `ratio` at `delta`."""
    if delta <= 0:
        raise ArgumentError("delta must be positive: no Gaussian noise is private at delta = 0")
    if ratio <= 0 or analytic_delta(ratio, Fraction(0)) <= delta:
        return 0.0

    def is_less(eps: float) -> bool:
        return analytic_delta(ratio, Fraction(eps)) > delta

    high = 1.0
    while is_less(high):
        high *= 2
    return math.nextafter(_last(is_less, 0.0, high), math.inf)


def _last(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the last float for which something holds: it does at `low`, and not at `high`.

    Where both are one float, that one.
    """
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


@lru_cache(maxsize=256)
def analytic_ratio(eps: Fraction, delta: Fraction) -> float:
    """Return the largest float ratio D/sigma that is proved (eps, delta)-DP, eps up to 2**90.

    Parameters
    ----------
    eps, delta : Fraction
        eps positive; delta in (0, 1).
    """
    if eps <= 0 or not 0 < delta < 1:
        raise ArgumentError("the Gaussian mechanism needs eps > 0 and 0 < delta < 1")
    eps = min(eps, LARGEST_EPS)

    def proved(ratio: float) -> bool:
        with ctx.workprec(_precision(eps, Fraction(ratio) ** 2)):
            return bool(_curve(ball(ratio), ball(eps)) <= ball(delta))

    low = high = 1.0
    while not proved(low):
        low /= 2
    while proved(high):
        high *= 2
    return _last(proved, low, high)


@lru_cache(maxsize=256)
def discrete_sigma(
    sensitivity_squared: int,
    cells: int,
    eps: Fraction,
    delta: Fraction,
    *,
    largest_weight: int = 1,
) -> float:
    """Return a scale at which discrete Gaussian noise on `cells` integers is (eps, delta)-DP.

    Parameters
    ----------
    sensitivity_squared : int
        Squared L2 sensitivity in the cells' integer units, weights included.
    cells : int
        m, the number of integers released.
    eps, delta : Fraction
    largest_weight : int
        No cell's scale is below sigma / largest_weight.

    Returns
    -------
    float
        The scale sigma of a cell of weight 1, proved by the module's statement: its inequality is
        checked in ball arithmetic for the very float that is returned.
    """
    eps = min(eps, LARGEST_EPS)
    root = math.sqrt(sensitivity_squared)
    ratio = analytic_ratio(eps, delta)
    sigma, step = max(root / ratio, float(largest_weight)), 2.0**-52

    def proved(scale: Fraction) -> bool:
        least = scale / largest_weight
        return discrete_holds(sensitivity_squared / scale**2, cells, eps, delta, least)

    while not proved(Fraction(sigma)):
        sigma *= 1 + step
        step *= 2
    return sigma


def discrete_holds(
    ratio_squared: Fraction, cells: int, eps: Fraction, delta: Fraction, least_scale: Fraction
) -> bool:
    """Tell whether the module's inequality is proved, in ball arithmetic, at a ratio r.

    Parameters
    ----------
    ratio_squared : Fraction
        r^2, positive.
    cells : int
        m.
    eps, delta : Fraction
        eps at most 2**90.
    least_scale : Fraction
        s, at least 1.
    """
    with ctx.workprec(_precision(eps, ratio_squared)):
        wanted, goal = ball(eps), ball(delta)
        ratio = ball(ratio_squared).sqrt()
        reach = (2 * (2 * cells / goal).log() + 100).sqrt() + ratio
        eta = (reach**2 + 1) / (8 * ball(least_scale) ** 2)
        eps0 = wanted - 2 * cells * eta
        delta0 = (-cells * eta).exp() * (1 - arb(-50).exp()) * goal
        return bool(eps0 > 0) and bool(_curve(ratio, eps0) <= delta0)


LEAST_SCALE: Final = 2.0**29
"""s of dpreg's looks: moments of rows that reach 2**40 never get less noise for r up to 2**10."""

LARGEST_RATIO: Final = 2.0**10
"""The largest r that is used, whatever eps would buy: it corresponds to an eps of about 500,000."""


@lru_cache(maxsize=256)
def looks_ratio(
    eps: Fraction, delta: Fraction, cells: int, least_scale: float = LEAST_SCALE
) -> float:
    """Return r, the ratio that all looks may use together, proved for the float returned.

    Parameters
    ----------
    eps, delta : Fraction
        What all looks cost together; eps positive, delta in (0, 1).
    cells : int
        m, the most cells that all looks release on any path.
    least_scale : float
        s, the public floor of every scale, at least 1.

    Returns
    -------
    float
        r; look j keeps sum_c (Delta_c/sigma_c)^2 below its part r_j^2 of r^2
        (`dpreg.privacy.look_noise.look_scale`).

    Raises
    ------
    ArgumentError
        Where no r is proved: the floor is too low for so many cells.
    """
    if cells < 1 or not least_scale >= 1:
        raise ArgumentError("looks need at least one cell and scales of at least 1")
    eps, floor = min(eps, LARGEST_EPS), Fraction(least_scale)

    def proved(ratio: float) -> bool:
        return discrete_holds(Fraction(ratio) ** 2, cells, eps, delta, floor)

    low = high = min(analytic_ratio(eps, delta), LARGEST_RATIO)
    step = 2.0**-52
    while not proved(low):
        if step >= 1:
            raise ArgumentError(
                f"scales of {least_scale:g} are too small to prove {cells} discrete cells private "
                "at this eps and delta; raise the least scale"
            )
        high, low = low, low * (1 - step)
        step *= 2
    return _last(proved, low, high)
