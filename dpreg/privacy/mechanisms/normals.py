r"""Standard normal numbers drawn exactly, many at once, as strings of bits that can be continued.

*Statement.* `Normals.draw` returns independent standard normal numbers s (k + x), with exactly
their law: a sign s, an integer k >= 0, and the first bits of x in (0, 1), whose other bits are
independent and fair given all that is returned.

*Proof.* A proposal is a fair sign, a k of probability 2**-(k+1) (the zeros before the first one
among fair bits), and two uniform numbers x and v on (0, 1), infinite strings of fair bits. It is
taken if v < a(k, x),

    a(k, x) = (4/5) 2**k exp(-(k + x)**2 / 2)  <=  (4/5) 2**k exp(-k**2 / 2),

which is largest at k = 1, (8/5) exp(-1/2) < 1. So s (k + x) has, given that it is taken, a density
proportional to 2**-(k+1) a(k, x), that is to exp(-(k + x)**2 / 2). Proposals are independent, and
so are the first ones that are taken. Whether one is taken is decided by the first bits of v and x
as soon as all strings that begin with these bits have the same answer; until then *more bits of the
same numbers* are drawn. The answer depends on the bits that were read alone, and the bits of x that
were not read stay independent of it, and fair. QED

Almost all proposals are decided by 47 bits of v and 60 of x in floating point. x is replaced by the
middle of an interval of width 2**-52, which changes a by at most 2 * 2**-53, as |da/dx| =
(k + x) a < 2. exp(-w), w = x (k + x/2)/64 < 0.26 (k < 16), is a Taylor polynomial of degree 12,
whose remainder is below 0.26**13/13! < 2**-57, and whose steps add at most 6 roundings of 2**-53
to its relative error. Six squarings make 64 times that, and 63 roundings of their own; with the
constant before it, less than 512 roundings or 2**-44 in all. Only sums and products are used, which
IEEE 754 rounds correctly. A proposal within 2**-42 of its bound, one in 2**40, and one with k >= 16
are decided in ball arithmetic (Arb).

The method is rejection from strips of width 1, after Karney (2016), Sampling exactly from the
normal distribution, ACM Transactions on Mathematical Software 42, 3.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import NDArray

from dpreg.arrays import Bools, Ints
from dpreg.privacy.mechanisms.floors import Bits

__all__ = ["DIGIT_BITS", "Normals"]

Words = NDArray[np.uint64]

DIGIT_BITS: Final = 20
"""Numbers are kept as digits of so many bits: a sum of 2**13 products of two is exact in floats."""

_FIRST: Final = 3
"""Digits of x that a proposal comes with."""
_LARGEST: Final = 16
"""k from which on floats are not asked."""
_CHANCE_BITS: Final = 47
_DEGREE: Final = 12
_SQUARINGS: Final = 6
_MARGIN: Final = 2.0**-42
_TABLE_BITS: Final = 100
_AT_ONCE: Final = 1 << 14
"""Proposals in the cache at once."""


def _height(k: int, z: arb) -> arb:
    """Return (4/5) 2**k exp(-z**2 / 2), in the working precision."""
    return arb(fmpq(4, 5)) * arb((1, k)) * (-z * z / 2).exp()


with ctx.workprec(_TABLE_BITS):  # whatever precision the importing program works at
    _HEIGHTS: Final = np.array([float(_height(k, arb(k)).mid()) for k in range(_LARGEST + 1)])


@dataclass(frozen=True, slots=True, eq=False)
class Normals:
    """Independent standard normal numbers, as far as their bits are known.

    Attributes
    ----------
    signs : (n,) array
        1 or -1.
    wholes : (n,) array
        k.
    digits : (n, m) array
        The first m digits of x, of 20 bits each.
    source : callable
        Where more come from.
    """

    signs: Ints
    wholes: Ints
    digits: Ints
    source: Bits

    @classmethod
    def draw(cls, count: int, bits: int, source: Bits | None = None) -> Normals:
        """Draw `count` numbers, and at least so many bits of each beyond its binary point.

        Parameters
        ----------
        count, bits : int
        source : callable, optional
            Fair bits; the operating system's by default, another one in tests.
        """
        source = source or secrets.randbits
        parts: list[tuple[Ints, Ints, Ints]] = []
        longer: dict[int, list[int]] = {}
        found = 0
        while found < count:
            negative, k, x, more = _proposals(min(2 * (count - found) + 32, _AT_ONCE), source)
            left = count - found
            longer |= {found + place: digits for place, digits in more.items() if place < left}
            parts.append((1 - 2 * negative[:left], k[:left], _cut(x[:left])))
            found += len(parts[-1][0])
        signs, wholes, first = (np.concatenate(part) for part in zip(*parts, strict=True))
        missing = max([-(-bits // DIGIT_BITS) - _FIRST, 0, *map(len, longer.values())])
        return cls(signs, wholes, first, source).continued(missing, longer)

    def continued(self, more: int, known: dict[int, list[int]] | None = None) -> Normals:
        """Return the same numbers with `more` further digits, some of them known already."""
        count = len(self.signs)
        words = _words(-(-count * more // 2), self.source).view(np.uint32)[: count * more]
        further = (words >> np.uint32(32 - DIGIT_BITS)).astype(np.int64).reshape(count, more)
        for place, found in (known or {}).items():
            further[place, : len(found)] = found
        digits = np.column_stack([self.digits, further])
        return replace(self, digits=digits)

    def signed_digits(self) -> Ints:
        """Return k and the digits of x, all with the number's sign, shape (1 + m, n)."""
        return np.vstack([self.wholes, self.digits.T]) * self.signs


def _proposals(number: int, source: Bits) -> tuple[Ints, Ints, Ints, dict[int, list[int]]]:
    """Make proposals, and return those that are taken.

    Returns
    -------
    negative, k, x : (taken,) arrays
        Whether the sign is, the integer, and the first 60 bits of the fraction.
    more : dict of int to list of int
        Further digits of some of the fractions, which were needed to decide.
    """
    heads, tails = _words(2 * number, source).reshape(2, -1)
    k = _zeros_ahead((heads >> np.uint64(_CHANCE_BITS)) & np.uint64(0xFFFF))
    chances = (heads & np.uint64((1 << _CHANCE_BITS) - 1)).astype(np.int64)
    x = (tails >> np.uint64(64 - _FIRST * DIGIT_BITS)).astype(np.int64)
    taken, undecided = _in_floats(k, x, chances)
    more: dict[int, list[int]] = {}
    for place in np.flatnonzero(undecided).tolist():
        if k[place] == _LARGEST:
            k[place] += _zeros(source)
        taken[place], more[place] = _in_balls(
            int(k[place]), int(x[place]), int(chances[place]), source
        )
    places, rank = np.flatnonzero(taken), np.cumsum(taken) - 1
    longer = {int(rank[at]): digits for at, digits in more.items() if taken[at] and digits}
    negative = (heads[places] >> np.uint64(63)).astype(np.int64)
    return negative, k[places], x[places], longer


def _words(count: int, source: Bits) -> Words:
    """Draw words of 64 fair bits."""
    if source is secrets.randbits:
        drawn = secrets.token_bytes(8 * count)
    else:
        drawn = source(64 * count).to_bytes(8 * count, "little")
    return np.frombuffer(drawn, dtype="<u8").astype(np.uint64, copy=False)


def _zeros_ahead(fields: Words) -> Ints:
    """Count the zeros at the head of fields of 16 bits."""
    _, lengths = np.frexp(fields.astype(np.float64))
    return _LARGEST - lengths.astype(np.int64)


def _zeros(source: Bits) -> int:
    """Count the zeros before the first one among fair bits."""
    count = 0
    while source(1) == 0:
        count += 1
    return count


def _cut(x: Ints) -> Ints:
    """Cut the first 60 bits of x into digits."""
    shifts = DIGIT_BITS * np.arange(_FIRST - 1, -1, -1)
    return (x[:, None] >> shifts) & ((1 << DIGIT_BITS) - 1)


def _in_floats(k: Ints, x: Ints, chances: Ints) -> tuple[Bools, Bools]:
    """Return which proposals are taken, and which are left undecided (see the module)."""
    middle = ((x >> 8) + 0.5) * 2.0**-52
    w = middle * (0.5 * middle + k) * 2.0**-_SQUARINGS
    power = np.ones(len(w))
    for j in range(_DEGREE, 0, -1):
        power *= w * (1 / j)
        np.subtract(1.0, power, out=power)
    for _ in range(_SQUARINGS):
        power *= power
    beyond = _HEIGHTS[k] * power - chances * 2.0**-_CHANCE_BITS
    undecided = (np.abs(beyond) < _MARGIN + 2.0**-_CHANCE_BITS) | (k == _LARGEST)
    return beyond > 0, undecided


def _in_balls(k: int, x: int, chance: int, source: Bits) -> tuple[bool, list[int]]:
    """Decide a proposal by as many bits as it takes; return further digits of x as well."""
    digits: list[int] = []
    known, chance_bits = DIGIT_BITS * _FIRST, _CHANCE_BITS
    while True:
        with ctx.workprec(known + chance_bits):
            bound = _height(k, k + _ball(x, known))
            v = _ball(chance, chance_bits)
            if v < bound:
                return True, digits
            if v > bound:
                return False, digits
        digits.append(source(DIGIT_BITS))
        x, known = x << DIGIT_BITS | digits[-1], known + DIGIT_BITS
        chance = chance << DIGIT_BITS | source(DIGIT_BITS)
        chance_bits += DIGIT_BITS


def _ball(first: int, bits: int) -> arb:
    """Return the ball of the numbers in (0, 1) with these first bits."""
    return arb((2 * first + 1, -bits - 1), (1, -bits - 1))
