r"""Noise for vectors of integers: discrete Gaussian, discrete Laplace, L-infinity K-norm.

All three give integers and are drawn without any rounding from the operating system's entropy:
what is released is an exact cell plus an exact draw.

K-norm
------
For widths s_c >= 1 write |v| = max_c ceil(|v_c| / s_c) for integer vectors v of length m.

*Statement.* If neighbours' vectors differ by at most D s_c in cell c, then adding v with
P(v) proportional to exp(-a |v|), a = eps/D, is eps-DP (the L-infinity K-norm mechanism of Awan and
Slavkovic 2021, on the integers and with a box for the ball).

*Proof.* ceil((x + y)/s) <= ceil(x/s) + ceil(y/s), so |.| obeys the triangle inequality, and a shift
d with |d_c| <= D s_c, D an integer, has |d| <= D: P(v - d) <= exp(a D) P(v).

*Sampler.* {|v| <= r} is the box of prod_c (2 s_c r + 1) integer points. Draw r with weight
q^r prod_c (2 s_c r + 1), q = exp(-a), then v uniformly in that box: P(v) is proportional to
sum over r >= |v| of q^r, that is to q^|v|. To draw r: the sum of m + 1 geometric variables,
P(g) = (1 - q) q^g, has weight q^r C(r + m, m); accept it with probability

    prod over cells i = 1..m of (r + 1/(2 s_i)) / (r + i)  <=  1,

proportional to the ratio of the two weights. (With s = 1: (r + 1/2)/(r + i).) At dpreg's scales r
is about m/a, above 2**35, and a proposal is almost always accepted.

*Variance.* Given r, cell c is uniform on -s_c r..s_c r: variance s_c r (s_c r + 1)/3. E[r^2] comes
from the weights; see `knorm_variance`.

Exact coins
-----------
Geometric variables with q = exp(-p/t), p/t rational, by Canonne, Kamath and Steinke (2020): u
uniform on 0..t-1, accepted with probability exp(-u/t); w, the number of successes of exp(-1) coins
before the first failure; then (u + t w) // p. A coin of probability exp(-x), x in [0, 1] rational,
is von Neumann's: count how long coins of probability x/1, x/2, x/3, ... keep coming up; heads if an
even number did. Rational coins and uniforms are `secrets.randbelow`.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dpreg.errors import ArgumentError
from dpreg.privacy.mechanisms import _opendp as dp

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = [
    "gaussian_noise",
    "knorm_noise",
    "knorm_variance",
    "laplace_noise",
    "laplace_variance",
]

Below = Callable[[int], int]
"""below(n): a uniform integer in 0..n-1."""

_LARGEST: Final = 2.0**52
"""OpenDP's integers saturate at 2**63; the scales it is asked for stay 2**11 times below."""


def gaussian_noise(size: int, scale: float, *, rng: Generator | None = None) -> list[int]:
    """Draw `size` discrete Gaussian integers, P(k) proportional to exp(-k^2 / (2 scale^2)).

    By OpenDP. Above a scale of 2**52, where its 64-bit integers could saturate, by the exact
    rejection of Canonne, Kamath and Steinke in Python integers. With `rng`, **not private**.
    """
    if rng is not None:
        return [int(k) for k in np.rint(rng.normal(0.0, scale, size))]
    if scale <= _LARGEST:
        return [int(k) for k in _opendp("make_gaussian", scale)(np.zeros(size, dtype=np.int64))]
    return [_gaussian(Fraction(scale), secrets.randbelow) for _ in range(size)]


def laplace_noise(size: int, scale: float, *, rng: Generator | None = None) -> list[int]:
    """Draw `size` discrete Laplace integers, P(k) proportional to exp(-|k| / scale).

    By OpenDP up to a scale of 2**52. There a draw would saturate with probability exp(-2**11); by
    the tail's lack of memory a saturated draw plus a fresh geometric has the exact law again.
    Above it by the exact sampler in Python integers. With `rng`, **not private**.
    """
    if rng is not None:
        up, down = rng.exponential(scale, (2, size))
        return [int(k) for k in np.rint(up - down)]
    exact = Fraction(scale)
    if scale > _LARGEST:
        return [_laplace(exact, secrets.randbelow) for _ in range(size)]
    drawn = [int(k) for k in _opendp("make_laplace", scale)(np.zeros(size, dtype=np.int64))]
    return [_beyond(k, exact) for k in drawn]


def knorm_noise(
    widths: Sequence[int],
    rate: Fraction,
    *,
    rng: Generator | None = None,
    below: Below = secrets.randbelow,
) -> list[int]:
    """Draw one integer vector v, P(v) proportional to exp(-rate * max_c ceil(|v_c| / widths_c)).

    Parameters
    ----------
    widths : sequence of int
        s_c >= 1 for each of the m cells.
    rate : Fraction
        a = eps / D, positive.
    rng : numpy Generator, optional
        For reproducible runs that are **not private** (the continuous law, rounded).
    below : callable
        Source of uniform integers, for tests; the operating system's by default.
    """
    if rate <= 0 or any(width < 1 for width in widths):
        raise ArgumentError("the K-norm mechanism needs a positive rate and widths of at least 1")
    size = len(widths)
    if rng is not None:
        radius = rng.gamma(size + 1) / float(rate)
        box = rng.uniform(-radius, radius, size) * np.asarray(widths, dtype=float)
        return [int(k) for k in np.rint(box)]
    while True:
        r = sum(_geometric(rate, below) for _ in range(size + 1))
        if all(
            below(2 * width * (r + i)) < 2 * width * r + 1
            for i, width in enumerate(widths, start=1)
        ):
            return [below(2 * width * r + 1) - width * r for width in widths]


def laplace_variance(scale: float) -> float:
    """Return the exact variance 2 q / (1 - q)^2, q = exp(-1/scale), of discrete Laplace noise."""
    half = 0.5 / scale
    return float(0.5 / np.sinh(half) ** 2)


def knorm_variance(widths: Sequence[int], rate: Fraction) -> tuple[float, ...]:
    """Return the variance of each cell of K-norm noise.

    With weights q^r prod (2 s_c r + 1) the moments of r are ratios of sums over r >= 0. For a rate
    of at least 2**-12 they are summed term by term. Below it the polynomial weight is
    r^m prod (1 + 1/(2 s_c r)) and, writing h = sum_c 1/(2 s_c), r behaves as a gamma variable of
    shape m + 1 and rate a: E[r^j] = (m + j)!/m! a^-j (1 - h a j/(m (m + j)) + O((m a)^2)).
    """
    size, a = len(widths), float(rate)
    counts = Counter(widths)
    if a >= 2.0**-12:
        top = int((size + 60 * (size + 1) ** 0.5 + 800) / a) + 10
        r = np.arange(top + 1, dtype=float)
        log_weight = -a * r
        for width, count in counts.items():
            log_weight += count * np.log(2 * width * r + 1)
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        first, second = float(weight @ r), float(weight @ r**2)
    else:
        slope = sum(0.5 * count / width for width, count in counts.items()) * a
        first = (size + 1) / a * (1 - slope / (size * (size + 1)))
        second = (size + 1) * (size + 2) / a**2 * (1 - 2 * slope / (size * (size + 2)))
    of_width = {width: (width**2 * second + width * first) / 3 for width in counts}
    return tuple(of_width[width] for width in widths)


@cache
def _space(maker: str) -> tuple[Any, Any]:
    """Return OpenDP's domain and metric of vectors of 64-bit integers: always the same."""
    metric = dp.l2_distance if maker == "make_gaussian" else dp.l1_distance
    with dp.contrib():
        return dp.vector_domain(dp.atom_domain(T="i64")), metric(T="i64")


def _opendp(maker: str, scale: float) -> Any:
    """Build OpenDP's noise for vectors of 64-bit integers."""
    domain, metric = _space(maker)
    with dp.contrib():
        return getattr(dp.measurements, maker)(domain, metric, scale=scale)


def _beyond(draw: int, scale: Fraction) -> int:
    """Undo saturation at the ends of int64 by the geometric tail's lack of memory."""
    if draw == 2**63 - 1:
        return draw + _geometric(1 / scale, secrets.randbelow)
    if draw == -(2**63):
        return draw - _geometric(1 / scale, secrets.randbelow)
    return draw


def _exp_coin(x: Fraction, below: Below) -> bool:
    """Toss a coin of probability exp(-x), x >= 0 rational."""
    while x > 1:
        if not _exp_coin(Fraction(1), below):
            return False
        x -= 1
    top, bottom = x.numerator, x.denominator
    count = 1
    while below(bottom * count) < top:
        count += 1
    return count % 2 == 1


def _geometric(rate: Fraction, below: Below) -> int:
    """Draw g >= 0 with P(g) = (1 - q) q^g, q = exp(-rate)."""
    p, t = rate.numerator, rate.denominator
    u = below(t)
    while not _exp_coin(Fraction(u, t), below):
        u = below(t)
    w = 0
    while _exp_coin(Fraction(1), below):
        w += 1
    return (u + t * w) // p


def _laplace(scale: Fraction, below: Below) -> int:
    """Draw a discrete Laplace integer: a signed geometric, minus zero refused."""
    while True:
        size, negative = _geometric(1 / scale, below), below(2) == 1
        if size or not negative:
            return -size if negative else size


def _gaussian(scale: Fraction, below: Below) -> int:
    """Draw a discrete Gaussian integer by rejection from a discrete Laplace one."""
    t = int(scale) + 1
    while True:
        k = _laplace(Fraction(t), below)
        if _exp_coin((abs(k) - scale**2 / t) ** 2 / (2 * scale**2), below):
            return k
