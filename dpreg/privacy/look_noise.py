"""Noise fitted to one look at a table's moments: what is drawn, how large, and what it costs.

A look releases M = sum z z', D x D integers in units of 2**-40, plus the noise of one of two laws:

- `GaussianLook`, for looks that share one (eps, delta) (`dpreg.privacy.looks`);
- `MatrixLaplaceLook`, for pure eps (`dpreg.privacy.matrix_laplace`).

Each fits two kinds of rows: those on the unit scale [-1, 1] (`gram_sensitivity`), as at a first
look, and located ones (`located_sensitivity`), as at the later looks. Neither reads a row. A fitted
noise is public: everything in it follows from the arguments.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dpreg.arrays import Floats
from dpreg.errors import ArgumentError
from dpreg.privacy.budget import ALL_ROWS
from dpreg.privacy.gram_sensitivity import CELL_UNITS, Triangle, sensitivity_l2_squared
from dpreg.privacy.located_sensitivity import located_l2_squared, located_weights
from dpreg.privacy.looks import look_scale, weighted_scale
from dpreg.privacy.matrix_laplace import (
    degrees,
    matrix_laplace_scales,
    matrix_laplace_variance,
)
from dpreg.privacy.mechanisms.additive import gaussian_noise
from dpreg.privacy.mechanisms.wishart import wishart_noise
from dpreg.privacy.protection import Protection
from dpreg.privacy.stability import AccountError, Stability

if TYPE_CHECKING:
    from numpy.random import Generator

    from dpreg.privacy.account import Part

__all__ = [
    "GaussianLook",
    "MatrixLaplaceLook",
    "box_gaussian",
    "box_matrix_laplace",
    "located_gaussian",
    "located_matrix_laplace",
]

Symmetric = tuple[tuple[int, ...], ...]
Places = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class GaussianLook:
    """Discrete Gaussian noise for a look, independent from cell to cell.

    Attributes
    ----------
    size : int
        D.
    cells : tuple of tuples of (int, int)
        For each number drawn the entries (i, j), i <= j, of the matrix that it fills. Entries that
        are in none are known without a release: products of two columns of one factor.
    scales : tuple of float
        The scale of each number drawn, in units of 2**-40.
    mu_squared : Fraction
        r_j^2, the look's part of what all looks share.
    protection : Protection
        Of `Protection.sums`, where rows of a person were limited by their sum.
    """

    size: int
    cells: tuple[Places, ...]
    scales: tuple[float, ...]
    mu_squared: Fraction
    protection: Protection
    mechanism: ClassVar[str] = "gaussian"
    degrees: ClassVar[None] = None

    @property
    def sd(self) -> Floats:
        """(D, D) standard deviations in stored units of 1; 0 where nothing is drawn."""
        found = np.zeros((self.size, self.size))
        for places, scale in zip(self.cells, self.scales, strict=True):
            for i, j in places:
                found[i, j] = found[j, i] = scale / CELL_UNITS
        return found

    def draw(self, part: Part, rows: str = ALL_ROWS) -> Symmetric:
        """Use up the part of looks that was charged and draw the noise, D x D integers."""
        if part.look(self.mechanism, _bound(self), rows) < self.mu_squared:
            raise AccountError("internal error: a look is drawn with less noise than was charged")
        return self.simulate(part.rng)

    def simulate(self, rng: Generator | None) -> Symmetric:
        """Draw from the law alone; with a generator **not private**."""
        matrix = [[0] * self.size for _ in range(self.size)]
        for scale in sorted(set(self.scales)):
            alike = [c for c, own in zip(self.cells, self.scales, strict=True) if own == scale]
            for places, noise in zip(
                alike, gaussian_noise(len(alike), scale, rng=rng), strict=True
            ):
                for i, j in places:
                    matrix[i][j] = matrix[j][i] = noise
        return tuple(tuple(row) for row in matrix)


@dataclass(frozen=True, slots=True)
class MatrixLaplaceLook:
    """Matrix-Laplace noise for a look: the floored difference of two Wisharts.

    Attributes
    ----------
    scales : tuple of int
        c_1..c_D in units of 2**-40.
    eps : Fraction
        What the look costs.
    protection : Protection
        As for `GaussianLook`.
    """

    scales: tuple[int, ...]
    eps: Fraction
    protection: Protection
    mechanism: ClassVar[str] = "matrix-laplace"

    @property
    def size(self) -> int:
        """D."""
        return len(self.scales)

    @property
    def degrees(self) -> int:
        """The degrees of freedom of each Wishart, nu = D + 1."""
        return degrees(self.size)

    @property
    def sd(self) -> Floats:
        """(D, D) standard deviations in stored units of 1."""
        found: Floats = np.sqrt(matrix_laplace_variance(self.scales)) / CELL_UNITS
        return found

    def draw(self, part: Part, rows: str = ALL_ROWS) -> Symmetric:
        """Use up the part of eps that was charged and draw the noise, D x D integers."""
        if part.draw(self.mechanism, _bound(self), rows).eps < self.eps:
            raise AccountError("internal error: a look is drawn with less noise than was charged")
        return self.simulate(part.rng)

    def simulate(self, rng: Generator | None) -> Symmetric:
        """Draw from the law alone; with a generator **not private**."""
        return wishart_noise(self.scales, rng=rng)


def _bound(noise: GaussianLook | MatrixLaplaceLook) -> Stability:
    """Return the bound that a look's noise was fitted to; the mechanism's module proves it."""
    return Stability(protection=noise.protection, mechanisms=(noise.mechanism,), summed=True)


def located_gaussian(
    size: int, weight: Fraction, mu_squared: Fraction, protection: Protection
) -> GaussianLook:
    """Fit Gaussian noise to located rows of `size` places, the response last.

    Parameters
    ----------
    size : int
        D.
    weight : Fraction
        g, the response's weight (`located_sensitivity.response_weight`).
    mu_squared : Fraction
        The look's part of r^2 (`looks.looks_ratio`).
    protection : Protection
        Where it names persons, rows are limited by their sum: a person is one unit then, whatever
        `contributions` (`located_sensitivity`, "Persons").
    """
    squared = located_l2_squared(weight, protection.sums)
    weights = located_weights(size, weight)
    sigma = look_scale(squared, mu_squared)
    cells = tuple((cell,) for cell in weights)
    scales = tuple(weighted_scale(sigma, square) for square in weights.values())
    return GaussianLook(size, cells, scales, mu_squared, protection.sums)


def box_gaussian(triangle: Triangle, mu_squared: Fraction, protection: Protection) -> GaussianLook:
    """Fit Gaussian noise to rows on the unit scale [-1, 1], the constant among their places.

    The response's weight is the public one of `box_response_weight`.

    Parameters
    ----------
    triangle : Triangle
        The cells (`gram_sensitivity.layout`), with the constant: a look counts its rows even where
        the model has no intercept.
    mu_squared : Fraction
        As for `located_gaussian`.
    protection : Protection
        Of rows, whoever is named: they are not summed.
    """
    _with_constant(triangle)
    weight, last = box_response_weight(triangle), len(triangle.columns)
    squared = sensitivity_l2_squared(triangle, protection, weight) * CELL_UNITS**2
    sigma = look_scale(squared, mu_squared)
    scales = tuple(weighted_scale(sigma, weight ** cell.count(last)) for cell in triangle.cells)
    cells = tuple(triangle.places(cell) for cell in triangle.cells)
    return GaussianLook(last + 1, cells, scales, mu_squared, replace(protection, person=None))


def box_response_weight(triangle: Triangle) -> int:
    """Return g of a Gaussian look on the unit scale.

    With an expected |theta|^2 of 1/4 (B + 1/g)(D - 1 + g)^2 is least at g = sqrt(2 D - 1) - 1, D
    the triangle's dimension; rounded to an integer of at least 1.
    """
    return max(1, round(math.sqrt(2 * triangle.dimension - 1)) - 1)


def located_matrix_laplace(
    size: int, share: Fraction, eps: Fraction, protection: Protection
) -> MatrixLaplaceLook:
    """Fit matrix-Laplace noise to located rows of `size` places, the response last.

    `share` is a, the response's share of the norm (`matrix_laplace.response_share`); `eps` what the
    look costs; the rest as for `located_gaussian`.
    """
    scales = matrix_laplace_scales(size, eps, share, protection.sums)
    return MatrixLaplaceLook(scales, eps, protection.sums)


def box_matrix_laplace(
    triangle: Triangle, share: Fraction, eps: Fraction, protection: Protection
) -> MatrixLaplaceLook:
    """Fit matrix-Laplace noise to rows on the unit scale [-1, 1], the constant among their places.

    A row's columns have a squared norm of at most `triangle.dimension` - 1, where a factor counts
    as one. All D x D entries get noise, those that are known to be equal or zero among them.
    """
    _with_constant(triangle)
    size, squared = len(triangle.columns) + 1, triangle.dimension - 1
    scales = matrix_laplace_scales(size, eps, share, protection, squared_norm=squared)
    return MatrixLaplaceLook(scales, eps, replace(protection, person=None))


def _with_constant(triangle: Triangle) -> None:
    if not triangle.intercept:
        raise ArgumentError("a look on the unit scale holds the constant, to count its rows")
