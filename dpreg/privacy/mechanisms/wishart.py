r"""Exact draws of floored matrix-Laplace noise, the difference of two Wisharts.

N = sum_k (x_k x_k' - y_k y_k'), k = 1..nu, all x_k and y_k independent and normal with covariance
C = diag(c). Put x = C^(1/2) (p + m)/sqrt(2) and y = C^(1/2) (p - m)/sqrt(2): p and m are
independent and standard normal too, and

    x x' - y y' = C^(1/2) (p m' + m p') C^(1/2),

so N_ij = sqrt(c_i c_j) (X_ij + X_ji), where X = P'M is one product of two nu x D matrices of
standard normals. The floors are decided in ball arithmetic from the operating system's bits:
`dpreg.privacy.mechanisms.floors` has the statement. Privacy: `dpreg.privacy.matrix_laplace`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from flint import arb, arb_mat

from dpreg.errors import ArgumentError
from dpreg.privacy.matrix_laplace import degrees
from dpreg.privacy.mechanisms.floors import SPARE_BITS, Bits, floors, normals

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["wishart_noise"]

Symmetric = tuple[tuple[int, ...], ...]


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
    kinds = {scale: kind for kind, scale in enumerate(dict.fromkeys(scales))}

    def values(uniforms: list[arb]) -> list[arb]:
        numbers = normals(uniforms)
        half = nu * size
        right = arb_mat(nu, size, numbers[half:])
        del numbers[half:]
        left = arb_mat(size, nu, numbers)
        numbers.clear()
        product = left * right
        del left, right
        product = product + product.transpose()
        both = product.entries()
        roots = [[arb(one * other).sqrt() for other in kinds] for one in kinds]
        places = [kinds[scale] for scale in scales]
        found = []
        for i, kind in enumerate(places):
            beside = [roots[kind][other] for other in places[i:]]
            row = both[i * size + i : (i + 1) * size]
            found += [root * cell for root, cell in zip(beside, row, strict=True)]
        return found

    bits = SPARE_BITS + max(scales).bit_length()
    return _symmetric(floors(values, 2 * nu * size, bits=bits, source=source), size)


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
