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

import secrets
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
    source: Bits = secrets.randbits,
) -> Symmetric:
    """Draw floor(N), N = W1 - W2 with D + 1 degrees of freedom each and scale diag(scales).

    Parameters
    ----------
    scales : sequence of int
        c_1..c_D in integer units, each at least 1.
    rng : numpy Generator, optional
        For reproducible runs that are **not private** (floats).
    source : callable
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
    cells = [(i, j) for i in range(size) for j in range(i, size)]
    if rng is not None:
        drawn = _seeded(scales, nu, rng)
        return _symmetric(size, cells, [int(drawn[cell]) for cell in cells])

    def values(uniforms: list[arb]) -> list[arb]:
        numbers = normals(uniforms)
        half = nu * size
        product = arb_mat(size, nu, numbers[:half]) * arb_mat(nu, size, numbers[half:])
        both = (product + product.transpose()).entries()
        squares = {scales[i] * scales[j] for i, j in cells}  # a few, of thousands of cells
        roots = {square: arb(square).sqrt() for square in squares}
        return [roots[scales[i] * scales[j]] * both[i * size + j] for i, j in cells]

    bits = SPARE_BITS + max(scales).bit_length()
    drawn_floors = floors(values, 2 * nu * size, bits=bits, source=source)
    return _symmetric(size, cells, drawn_floors)


def _seeded(scales: Sequence[int], nu: int, rng: Generator) -> np.ndarray:
    """Draw the floors in floats: **not private**."""
    root = np.sqrt(np.array([float(scale) for scale in scales]))
    left, right = rng.standard_normal((2, nu, len(root)))
    product = left.T @ right
    noise: np.ndarray = np.floor(np.outer(root, root) * (product + product.T))
    return noise


def _symmetric(size: int, cells: Sequence[tuple[int, int]], values: Sequence[int]) -> Symmetric:
    """Lay out the upper triangle's values as a symmetric matrix."""
    rows = [[0] * size for _ in range(size)]
    for (i, j), value in zip(cells, values, strict=True):
        rows[i][j] = rows[j][i] = value
    return tuple(tuple(row) for row in rows)
