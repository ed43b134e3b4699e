"""Exact draws of floored matrix-Laplace noise, the difference of two Wisharts.

N = sum_k (x_k x_k' - y_k y_k'), k = 1..nu, all x_k and y_k independent and normal with covariance
C = diag(c). Put x = C^(1/2) (p + m)/sqrt(2) and y = C^(1/2) (p - m)/sqrt(2): p and m are
independent and standard normal too, and

    x x' - y y' = C^(1/2) (p m' + m p') C^(1/2),

so N_ij = sqrt(c_i c_j) (X_ij + X_ji), where X = P'M is one product of two nu x D matrices of
standard normals.

*Statement.* `wishart_noise` returns floor(N) with exactly its law.

*Proof.* P and M are exact normal numbers of which the first m digits to the base 2**20 are known
(`dpreg.privacy.mechanisms.wishart`); let K be the largest whole part. Digits are multiplied in
floats: a sum of 2**13 products of integers of at most 2**20 is exact, in any order (see below).
Such sums are added in int64: the products of the i-th digit of one number and the j-th of the
other for i + j <= m + 1, so of at most m + 1 pairs for each i + j. With the transpose that is at
most 2 nu (m + 1) 2**40 in modulus, below 2**62 where nu (m + 2) < 2**21, and a carry adds less than
2**43. Where that is not so, or K reaches 2**20, Python's integers are multiplied. In units u =
2**(-20 (m + 1)) an entry of X is then off by at most nu 2**20 (2 K + 3 + m + 1): each of its nu
terms by 2**20 (2 K + 3) for the digits that are not known, as each number is off by less than
2**20 u and is at most K + 1 in modulus, and by less than 2**20 m for products left out, m - 1 of
them with i + j = m + 2, of less than 2**20 u each, and ever smaller ones beyond. With whole square
roots r <= 2**b sqrt(c_i c_j) < r + 1, b = 20 (m + 1), and an integer v that is off by at most e,
sqrt(c_i c_j) times the true sum lies within |v| + (r + 1) e of r v, in units 2**-b u. If both ends
of that interval have the same floor in all cells, all floors are decided. If not, *more digits of
the same numbers* are drawn. Nothing is drawn again and nothing is rejected, so stopping does not
change the law. A value that is an integer, the only case in which this would not end, has
probability 0. QED

What the floats rest on: that the BLAS's dgemm forms each cell as a sum of the products of its row
and column, in whatever order, fused or not, in IEEE 754's double precision. One that adds entries
before it multiplies (Strassen's way) would exceed 2**53. Those that NumPy is built with, OpenBLAS,
Accelerate and MKL, do not.

Privacy: `dpreg.privacy.look_noise`.

Standard normal numbers drawn exactly, many at once, as strings of bits that can be continued.

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

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import NDArray

from dpreg.arrays import Bools, Ints, Objects
from dpreg.errors import ArgumentError
from dpreg.privacy.mechanisms.floors import SPARE_BITS, Bits

if TYPE_CHECKING:
    from numpy.random import Generator

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


Symmetric = tuple[tuple[int, ...], ...]

_TERMS: Final = 1 << 13
"""Products of two digits of 20 bits whose sum a float64 holds exactly, in any order."""
_MOST: Final = 1 << 21
"""nu (m + 2) from which on int64 might not hold the sums."""
_JOINED: Final = 3
"""Digits that fit into 64 bits."""


def degrees(size: int) -> int:
    """Return nu = D + 1, the degrees of freedom of each Wishart; the proof needs just these."""
    return size + 1


def wishart_noise(
    scales: Sequence[int],
    *,
    rng: Generator | None = None,
    source: Bits | None = None,
) -> Symmetric:
    """Draw floor(N), N = W1 - W2 with D + 1 degrees of freedom each and scale diag(scales).

    Parameters
    ----------
    scales : sequence of int
        c_1..c_D in integer units, each at least 1.
    rng : numpy Generator, optional
        For reproducible runs that are **not private** (floats).
    source : callable, optional
        Fair bits, for tests; the operating system's by default.

    Returns
    -------
    tuple of tuples of int
        D x D, symmetric.
    """
    size = len(scales)
    if size < 1 or any(scale < 1 for scale in scales):
        raise ArgumentError("matrix-Laplace noise needs scales of at least 1")
    nu = degrees(size)
    if rng is not None:
        return _symmetric(_seeded(scales, nu, rng)[np.triu_indices(size)].tolist(), size)
    normals = Normals.draw(2 * nu * size, SPARE_BITS + max(scales).bit_length(), source)
    while (found := _floors(normals, scales, nu)) is None:
        normals = normals.continued(normals.digits.shape[1])
    return _symmetric(found, size)


def _floors(normals: Normals, scales: Sequence[int], nu: int) -> list[int] | None:
    """Return the floors, the upper triangle row by row, if all of them are decided."""
    size = len(scales)
    upper = np.triu_indices(size)
    digits = normals.signed_digits()
    half = nu * size
    left, right = digits[:, :half].reshape(-1, size, nu), digits[:, half:].reshape(-1, nu, size)
    sums, error = _product(left, right)
    both = _joined((sums + np.swapaxes(sums, 1, 2))[:, *upper])
    error *= 2
    kinds = {scale: kind for kind, scale in enumerate(dict.fromkeys(scales))}
    places = np.array([kinds[scale] for scale in scales])
    spare = DIGIT_BITS * len(digits)
    roots = np.array(
        [[math.isqrt(one * other << 2 * spare) for other in kinds] for one in kinds], dtype=object
    )
    values = both * roots[places[upper[0]], places[upper[1]]]
    slack = int(abs(both).max()) + (int(roots.max()) + 1) * error
    units = spare + DIGIT_BITS * len(digits)
    found, highest = (values - slack) >> units, (values + slack) >> units
    return found.tolist() if (found == highest).all() else None


def _product(left: Ints, right: Ints) -> tuple[Ints | Objects, int]:
    """Return the digits of P'M, not carried, and how far all of it may be from the truth.

    Parameters
    ----------
    left, right : (1 + m, size, nu) and (1 + m, nu, size) arrays
        Signed digits of P' and M: what stands before the binary point, and m digits.

    Returns
    -------
    sums : (2 + m, size, size) array
    error : int
        In units of the last of these digits.
    """
    size, nu = left.shape[1:]
    last = len(left)
    whole = int(max(abs(left[0]).max(), abs(right[0]).max()))
    # But for a chance of exp(-2**39), and for matrices of a quarter of a million rows.
    small = whole < 1 << DIGIT_BITS and nu * (last + 1) < _MOST
    sums: Ints | Objects = np.zeros((last + 1, size, size), dtype=np.int64 if small else object)
    for start in range(0, nu, _TERMS):
        rows = slice(start, start + _TERMS)
        these, those = (
            part.astype(np.float64 if small else object)
            for part in (left[:, :, rows], right[:, rows])
        )
        for i, one in enumerate(these):
            for j, other in enumerate(those[: last + 1 - i]):
                sums[i + j] += (one @ other).astype(sums.dtype)
    return sums, (nu << DIGIT_BITS) * (2 * whole + 3 + last)


def _joined(digits: Ints | Objects) -> Objects:
    """Return the integers of these digits, which need not be carried, shape (1 + m, cells)."""
    for place in range(len(digits) - 1, 0, -1):
        carried = digits[place] >> DIGIT_BITS
        digits[place] -= carried << DIGIT_BITS
        digits[place - 1] += carried
    whole: Objects = digits[0].astype(object)
    for start in range(1, len(digits), _JOINED):
        some = digits[start : start + _JOINED]
        word = some[0]
        for digit in some[1:]:
            word = word << DIGIT_BITS | digit
        whole = (whole << DIGIT_BITS * len(some)) + word.astype(object)
    return whole


def _seeded(scales: Sequence[int], nu: int, rng: Generator) -> np.ndarray:
    """Draw the floors in floats: **not private**."""
    root = np.sqrt(np.array([float(scale) for scale in scales]))
    left, right = rng.standard_normal((2, nu, len(root)))
    product = left.T @ right
    noise: np.ndarray = np.floor(np.outer(root, root) * (product + product.T))
    return noise


def _symmetric(values: Sequence[float], size: int) -> Symmetric:
    """Lay out whole numbers, the upper triangle row by row, as a symmetric matrix."""
    rows = np.zeros((size, size), dtype=object)
    upper = np.triu_indices(size)
    rows[upper] = [int(value) for value in values]
    rows.T[upper] = rows[upper]
    return tuple(map(tuple, rows.tolist()))
