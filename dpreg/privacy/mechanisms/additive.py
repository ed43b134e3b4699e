r"""Noise for vectors of integers: discrete Gaussian and discrete Laplace.

Both give integers and are drawn without any rounding from the operating system's entropy:
what is released is an exact cell plus an exact draw.

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
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dpreg.privacy.mechanisms import _opendp as dp

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = [
    "gaussian_noise",
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


def laplace_variance(scale: float) -> float:
    """Return the exact variance 2 q / (1 - q)^2, q = exp(-1/scale), of discrete Laplace noise."""
    half = 0.5 / scale
    return float(0.5 / np.sinh(half) ** 2)


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
