"""Exact draws of floored matrix-Laplace noise, the difference of two Wisharts.

N = sum_k (x_k x_k' - y_k y_k'), k = 1..nu, all x_k and y_k independent and normal with covariance
C = diag(c). Put x = C^(1/2) (p + m)/sqrt(2) and y = C^(1/2) (p - m)/sqrt(2): p and m are
independent and standard normal too, and

    x x' - y y' = C^(1/2) (p m' + m p') C^(1/2),

so N_ij = sqrt(c_i c_j) (X_ij + X_ji), where X = P'M is one product of two nu x D matrices of
standard normals. Its floors have exactly N's law: `dpreg.privacy.mechanisms.floors` decides them in
ball arithmetic, from as many bits of the same normal numbers as that takes.

Privacy: `dpreg.privacy.look_noise`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from flint import arb, arb_mat

from dpreg.privacy.mechanisms.floors import SPARE_BITS, Bits, floors, normals

if TYPE_CHECKING:
    from numpy.random import Generator

Symmetric = tuple[tuple[int, ...], ...]


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
    assert min(scales) >= 1
    size = len(scales)
    half = degrees(size) * size

    def values(uniforms: list[arb]) -> list[arb]:
        cells = normals(uniforms)
        left = arb_mat(size, half // size, cells[:half])
        product = left * arb_mat(half // size, size, cells[half:])
        both, roots = product + product.transpose(), [arb(scale).sqrt() for scale in scales]
        return [roots[i] * roots[j] * both[i, j] for i in range(size) for j in range(i, size)]

    if rng is not None:
        root = np.sqrt(np.array([float(scale) for scale in scales]))
        left, right = rng.standard_normal((2, half // size, size))
        product = left.T @ right
        floored = np.floor(np.outer(root, root) * (product + product.T))
        return _symmetric(floored[np.triu_indices(size)].tolist(), size)
    bits = SPARE_BITS + max(scales).bit_length()
    return _symmetric(floors(values, 2 * half, bits=bits, source=source), size)


def _symmetric(values: Sequence[float], size: int) -> Symmetric:
    """Lay out whole numbers, the upper triangle row by row, as a symmetric matrix."""
    rows = np.zeros((size, size), dtype=object)
    upper = np.triu_indices(size)
    rows[upper] = [int(value) for value in values]
    rows.T[upper] = rows[upper]
    return tuple(map(tuple, rows.tolist()))
