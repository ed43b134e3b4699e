r"""Noise of a set of models, computed only as precisely as needed, with certified comparisons.

Arrivals
--------
Let F be the law of one model's noise and L = -ln F(v) its *arrival*: v falls as L grows, and L is
standard exponential for one model. The largest noise of N models has arrival Exp(1)/N, and given
that the largest noise of a set lies below a cap with arrival C, its arrival is C + Exp(1)/N:

    F(v)^N / F(cap)^N = V uniform   <=>   -ln F(v) = -ln F(cap) + (-ln V)/N.

So truncation is an addition. Back to noise: Gumbel, v = -ln L; exponential noise,
v = -ln(1 - exp(-L)).

Precision
---------
V is a uniform real of infinitely many random bits, drawn as they are needed. 192 bits come first
and make a ball (midpoint and radius, `flint.arb`) that certainly holds V; arrivals and values are
balls computed from it, with every rounding inside the radius. Where two values must be compared
and their balls overlap, each V of both chains gets more bits, the precision is doubled, and the
values are computed again. Hence no comparison is ever decided wrongly: the draw is that of exact
real noise, and nothing remains to be bounded. (Two values are equal with probability zero, so the
loop ends; it goes beyond 192 bits with probability below 2**-140 a comparison.)
Floating-point numbers serve as outward-rounded ends of balls alone.

The random bits come from the operating system's entropy. A NumPy generator may be given instead
for seeded runs: those are never private.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Final

import numpy as np
from flint import arb, ctx, fmpz

from dpreg.arrays import Places

PRECISION: Final = 192
"""Bits of the first look at any noise; doubled as often as a comparison asks."""

_BUFFER: Final = 4096
_FEW: Final = 16


class Bits:
    """Random bits, buffered: from the operating system, or from a generator (never private)."""

    def __init__(self, generator: np.random.Generator | None = None) -> None:
        self._source: Callable[[int], bytes] = os.urandom if generator is None else generator.bytes
        self._buffer = b""
        self._at = 0

    def take(self, size: int) -> bytes:
        """Return `size` random bytes, which are never used again."""
        end = self._at + size
        if end > len(self._buffer):
            self._buffer = self._source(max(size, _BUFFER))
            self._at, end = 0, size
        taken = self._buffer[self._at : end]
        self._at = end
        return taken

    def word(self, bits: int) -> int:
        """Return an integer uniform on [0, 2**bits)."""
        size = (bits + 7) // 8
        return int.from_bytes(self.take(size), "little") >> (8 * size - bits)

    def below(self, n: int) -> int:
        """Return an integer exactly uniform on [0, n), by rejection."""
        bits = (n - 1).bit_length()
        while (value := self.word(bits)) >= n:
            pass
        return value

    def choose(self, n: int, k: int) -> Places:
        """Return a uniform k-subset of range(n), in no order.

        Small subsets (or complements) by Floyd's method (Bentley & Floyd 1987). Otherwise the k
        smallest of n independent 64-bit keys, drawn again if two keys agree: given that all
        differ, every order of them is equally likely.
        """
        if 2 * k > n:
            keep = np.ones(n, dtype=np.bool_)
            keep[self.choose(n, n - k)] = False
            return np.flatnonzero(keep)
        if k <= _FEW:
            chosen: set[int] = set()
            for top in range(n - k, n):
                pick = self.below(top + 1)
                chosen.add(top if pick in chosen else pick)
            return np.array(list(chosen), dtype=np.intp)
        while True:
            keys = np.frombuffer(self.take(8 * n), dtype=np.uint64)
            order = np.argsort(keys)
            ranked = keys[order]
            if not (ranked[1:] == ranked[:-1]).any():
                return order[:k]


def gumbel_noise(arrival: arb) -> arb:
    """Return the Gumbel noise with this arrival: F(v) = exp(-exp(-v))."""
    return -(arrival.log())


def exponential_noise(arrival: arb) -> arb:
    """Return the exponential noise with this arrival: F(v) = 1 - exp(-v)."""
    return -((-(-arrival).expm1()).log())


class Arrival:
    """The arrival of the largest noise of `count` models, given one above it (or none).

    Attributes
    ----------
    ball : arb
        Certainly holds the arrival.
    noise : arb
        Certainly holds the noise.
    """

    __slots__ = ("_cap", "_count", "_law", "_length", "_word", "ball", "noise")
    ball: arb
    noise: arb

    def __init__(
        self, cap: Arrival | None, count: int, bits: Bits, law: Callable[[arb], arb]
    ) -> None:
        self._law = law
        self._cap = cap
        self._count = fmpz(count)
        self._word = bits.word(PRECISION)
        self._length = PRECISION
        self._set()
        while not self.noise.is_finite():  # the ball holds V = 0 or V = 1: look closer
            with ctx.workprec(2 * self._length):
                self._extend(2 * self._length, bits)
                self._set()

    def _set(self) -> None:
        exponent = -self._length - 1
        uniform = arb((2 * self._word + 1, exponent), (1, exponent))
        step = -uniform.log() / self._count
        self.ball = step if self._cap is None else self._cap.ball + step
        self.noise = self._law(self.ball)

    def _extend(self, length: int, bits: Bits) -> None:
        more = length - self._length
        if more > 0:
            self._word = (self._word << more) | bits.word(more)
            self._length = length

    def refine(self, precision: int, bits: Bits) -> None:
        """Draw more bits for the whole chain and recompute at the context's precision."""
        chain: list[Arrival] = []
        node: Arrival | None = self
        while node is not None:
            chain.append(node)
            node = node._cap
        for link in reversed(chain):
            link._extend(precision, bits)
            link._set()


def outward(ball: arb) -> tuple[float, float]:
    """Return floats certainly at or below, and at or above, every point of the ball."""
    lo, hi = float(ball.lower()), float(ball.upper())
    return math.nextafter(lo, -math.inf), math.nextafter(hi, math.inf)
