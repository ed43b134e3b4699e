"""Gaussian noise fitted to one look at a family's rows: information, score and its square.

The blocks, their units and their sensitivity are those of `dpreg.privacy.block_sensitivity`; looks
compose as `dpreg.privacy.looks` proves. Nothing here reads a row.

Tested in `tests/privacy/test_block_sensitivity.py`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from dpreg.errors import ArgumentError
from dpreg.privacy.block_sensitivity import blocks_l2_squared, blocks_weights
from dpreg.privacy.gram_sensitivity import CELL_UNITS
from dpreg.privacy.look_noise import GaussianLook
from dpreg.privacy.looks import look_scale, weighted_scale

__all__ = ["MIDDLE", "blocks_gaussian"]

MIDDLE: Final = Fraction(3, 100)
"""The part of a look's mu^2 that sum q^2 takes: one number, needed to a few percent."""


def blocks_gaussian(
    size: int,
    limit: int,
    weight: Fraction,
    mu_squared: Fraction,
    neighbors: str,
    contributions: int = 1,
) -> GaussianLook:
    """Fit Gaussian noise to the blocks of rows of `size` - 1 columns.

    The look's last diagonal entry is Q; the sum of squared residuals is not released.

    Parameters
    ----------
    size : int
        D: the columns, and one place for the score.
    limit : int
        S, in units of 2**-40.
    weight : Fraction
        g, the score's weight beside the information's.
    mu_squared : Fraction
        The look's part of r^2 (`looks.looks_ratio`).
    neighbors : {"replace-one", "add-remove"}
    contributions : int
        Rows that one person may own.
    """
    if size < 2:
        raise ArgumentError("a look at a family holds one column at least")
    blocks = blocks_l2_squared(limit, weight, neighbors, contributions)
    square = Fraction(contributions * CELL_UNITS) ** 2
    middle = MIDDLE / (1 - MIDDLE) * blocks / square
    sigma = look_scale(blocks + middle * square, mu_squared)
    weights = blocks_weights(size, weight, middle)
    cells = tuple((cell,) for cell in weights)
    scales = tuple(weighted_scale(sigma, own) for own in weights.values())
    return GaussianLook(size, cells, scales, mu_squared, neighbors, contributions)
