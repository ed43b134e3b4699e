r"""Exact draws of floored matrix-Laplace noise, the difference of two Wisharts.

N = sum_k (x_k x_k' - y_k y_k'), k = 1..nu, all x_k and y_k independent and normal with covariance
C = diag(c). Put x = C^(1/2) (p + m)/sqrt(2) and y = C^(1/2) (p - m)/sqrt(2): p and m are
independent and standard normal too, and

    x x' - y y' = C^(1/2) (p m' + m p') C^(1/2),

so N_ij = sqrt(c_i c_j) (X_ij + X_ji), where X = P'M is one product of two nu x D matrices of
standard normals.

*Statement.* `wishart_noise` returns floor(N) with exactly its law.

*Proof.* P and M are exact normal numbers of which the first m digits to the base 2**20 are known
(`dpreg.privacy.mechanisms.normals`); let K be the largest whole part. Digits are multiplied in
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

Privacy: `dpreg.privacy.matrix_laplace`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dpreg.arrays import Ints, Objects
from dpreg.errors import ArgumentError
from dpreg.privacy.matrix_laplace import degrees
from dpreg.privacy.mechanisms.floors import SPARE_BITS, Bits
from dpreg.privacy.mechanisms.normals import DIGIT_BITS, Normals

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["wishart_noise"]

Symmetric = tuple[tuple[int, ...], ...]

_TERMS: Final = 1 << 13
"""Products of two digits of 20 bits whose sum a float64 holds exactly, in any order."""
_MOST: Final = 1 << 21
"""nu (m + 2) from which on int64 might not hold the sums."""
_JOINED: Final = 3
"""Digits that fit into 64 bits."""


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
