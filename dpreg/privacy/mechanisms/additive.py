"""Noise for vectors of integers: discrete Gaussian and discrete Laplace.

Both give integers and are drawn without any rounding from the operating system's entropy:
what is released is an exact cell plus an exact draw.

Exact coins
-----------
Geometric variables with q = exp(-p/t), p/t rational, by Canonne, Kamath and Steinke (2020): u
uniform on 0..t-1, accepted with probability exp(-u/t); w, the number of successes of exp(-1) coins
before the first failure; then (u + t w) // p. A coin of probability exp(-x), x in [0, 1] rational,
is von Neumann's: count how long coins of probability x/1, x/2, x/3, ... keep coming up; heads if an
even number did. Rational coins and uniforms are `secrets.randbelow`.

The one door to OpenDP: what dpreg uses of it, and its feature switch kept where it was found.

Its prelude is left alone: that imports Polars and whatever else OpenDP has extras for.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from opendp import measurements
from opendp.domains import atom_domain, vector_domain
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import GLOBAL_FEATURES, disable_features, enable_features

if TYPE_CHECKING:
    from numpy.random import Generator


_switch: Final = threading.RLock()


@contextmanager
def contrib() -> Iterator[None]:
    """Allow OpenDP's vetted-but-unproven ("contrib") constructors inside the block alone.

    OpenDP guards its constructors with a process-wide set of features. dpreg needs "contrib" to
    build a measurement, not to call one. Importing dpreg leaves the set as it was, and so does
    every draw: a program that uses OpenDP as well keeps its own choice.
    """
    with _switch:
        found = "contrib" in GLOBAL_FEATURES
        enable_features("contrib")
        try:
            yield
        finally:
            if not found:
                disable_features("contrib")


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
        return [
            int(k) for k in opendp_noise("make_gaussian", scale)(np.zeros(size, dtype=np.int64))
        ]
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
    drawn = [int(k) for k in opendp_noise("make_laplace", scale)(np.zeros(size, dtype=np.int64))]
    return [_beyond(k, exact) for k in drawn]


def laplace_variance(scale: float) -> float:
    """Return the exact variance 2 q / (1 - q)^2, q = exp(-1/scale), of discrete Laplace noise."""
    half = 0.5 / scale
    return float(0.5 / np.sinh(half) ** 2)


@cache
def _space(maker: str) -> tuple[Any, Any]:
    """Return OpenDP's domain and metric of vectors of 64-bit integers: always the same."""
    metric = l2_distance if maker == "make_gaussian" else l1_distance
    with contrib():
        return vector_domain(atom_domain(T="i64")), metric(T="i64")


def opendp_noise(maker: str, scale: float) -> Any:
    """Build OpenDP's noise for vectors of 64-bit integers."""
    domain, metric = _space(maker)
    with contrib():
        return getattr(measurements, maker)(domain, metric, scale=scale)


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
