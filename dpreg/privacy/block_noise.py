r"""Noise fitted to one look at a family's rows: information, score and its square.

The blocks, their units and their sensitivity are those of `dpreg.privacy.block_sensitivity`. There
are two laws:

- `blocks_gaussian`, for looks that share one (eps, delta) (`dpreg.privacy.looks`);
- `BlocksLaplaceLook`, for pure eps: matrix-Laplace noise on H, noise of density exp(-|v|/b) on s,
  Laplace noise on Q, the eps of all three adding up.

*Statement.* With H of d columns, its noise has scales c, and with

    c >= k 2**40 / (q eps_H),  q = 1 under replace-one and 2 under add-remove,
    b >= |ds| / eps_s,         the Laplace noise of Q a scale of at least k 2**40 / eps_Q,

the look is (eps_H + eps_s + eps_Q)-DP. *Proof.* Every row has k'k <= 2**40, so that for C = c I
k'C^-1 k <= 2**40 / c: the statement of `dpreg.privacy.matrix_laplace` for D = d. For s that of
`dpreg.privacy.mechanisms.l2_norm`; Q moves by at most k 2**40. The three compose in sequence. QED

Nothing here reads a row.

Tested in `tests/privacy/test_block_sensitivity.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from dpreg.errors import ArgumentError
from dpreg.privacy.balls import float_above
from dpreg.privacy.block_sensitivity import blocks_l2_squared, blocks_weights, score_sensitivity
from dpreg.privacy.budget import ALL_ROWS
from dpreg.privacy.gram_sensitivity import CELL_UNITS
from dpreg.privacy.look_noise import GaussianLook
from dpreg.privacy.looks import look_scale, weighted_scale
from dpreg.privacy.matrix_laplace import matrix_laplace_variance
from dpreg.privacy.mechanisms.additive import laplace_noise, laplace_variance
from dpreg.privacy.mechanisms.l2_norm import l2_norm_noise, l2_norm_variance
from dpreg.privacy.mechanisms.wishart import wishart_noise
from dpreg.privacy.protection import Protection
from dpreg.privacy.scales import check_eps, check_scales
from dpreg.privacy.stability import AccountError, Stability

if TYPE_CHECKING:
    from numpy.random import Generator

    from dpreg.privacy.account import Part

__all__ = ["LAPLACES", "MIDDLE", "BlocksLaplaceLook", "blocks_gaussian", "blocks_laplace"]

MIDDLE: Final = Fraction(3, 100)
"""The part of a look's mu^2, or eps, that sum q^2 takes: one number, needed to a few percent."""

LAPLACES: Final = ("matrix-laplace", "l2-norm", "laplace")
"""What draws the noise of H, s and Q at pure eps."""

Symmetric = tuple[tuple[int, ...], ...]


def blocks_gaussian(
    size: int,
    limit: int,
    weight: Fraction,
    mu_squared: Fraction,
    neighbors: str,
    contributions: int,
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
    _check_size(size)
    blocks = blocks_l2_squared(limit, weight, neighbors, contributions)
    square = Fraction(contributions * CELL_UNITS) ** 2
    middle = MIDDLE / (1 - MIDDLE) * blocks / square
    sigma = look_scale(blocks + middle * square, mu_squared)
    weights = blocks_weights(size, weight, middle)
    cells = tuple((cell,) for cell in weights)
    scales = tuple(weighted_scale(sigma, own) for own in weights.values())
    return GaussianLook(size, cells, scales, mu_squared, neighbors, contributions)


@dataclass(frozen=True, slots=True)
class BlocksLaplaceLook:
    """Noise of pure eps for the blocks.

    Attributes
    ----------
    size : int
        D: the columns, and one place for the score.
    information, score, middle : int
        c, b and the scale of Q's noise, in units of 2**-40.
    shares : (Fraction, Fraction, Fraction)
        Of the look's eps that H, s and Q take.
    eps : Fraction
    neighbors, contributions : str, int
    """

    size: int
    information: int
    score: int
    middle: int
    shares: tuple[Fraction, Fraction, Fraction]
    eps: Fraction
    neighbors: str
    contributions: int
    mechanism: ClassVar[str] = "matrix-laplace"

    @property
    def sd(self) -> NDArray[np.float64]:
        """(D, D) standard deviations in stored units of 1."""
        d = self.size - 1
        variance = np.empty((self.size, self.size))
        variance[:d, :d] = matrix_laplace_variance((self.information,) * d)
        variance[d, :d] = variance[:d, d] = l2_norm_variance(d, self.score)
        variance[d, d] = laplace_variance(float(self.middle))
        found: NDArray[np.float64] = np.sqrt(variance) / CELL_UNITS
        return found

    def draw(self, part: Part, rows: str = ALL_ROWS) -> Symmetric:
        """Use up the part of eps that was charged and draw the noise, D x D integers."""
        bound = Stability(
            protection=Protection(self.neighbors, self.contributions), mechanisms=LAPLACES
        )
        parts = part.split(self.shares)
        for own, share, mechanism in zip(parts, self.shares, LAPLACES, strict=True):
            if own.draw(mechanism, bound, rows).eps < self.eps * share:
                raise AccountError(
                    "internal error: a look is drawn with less noise than was charged"
                )
        return self.simulate(part.rng)

    def simulate(self, rng: Generator | None) -> Symmetric:
        """Draw from the law alone; with a generator **not private**."""
        d = self.size - 1
        information = wishart_noise((self.information,) * d, rng=rng)
        score = l2_norm_noise(d, self.score, rng=rng)
        (middle,) = laplace_noise(1, float(self.middle), rng=rng)
        columns = zip(information, score, strict=True)
        return (*((*row, own) for row, own in columns), (*score, middle))


def blocks_laplace(
    size: int,
    limit: int,
    share: Fraction,
    eps: Fraction,
    neighbors: str,
    contributions: int,
) -> BlocksLaplaceLook:
    """Fit noise of pure eps to the blocks of rows of `size` - 1 columns.

    `share` is the part of what Q leaves of `eps` that the score takes; the rest as for
    `blocks_gaussian`.

    Raises
    ------
    ArgumentError
        For arguments out of range, and for an eps so small that a scale leaves 2**200.
    """
    _check_size(size)
    if not 0 < share < 1:
        raise ArgumentError(f"the score's share must lie between 0 and 1, got {share}")
    check_eps(eps)
    shares = (1 - MIDDLE) * (1 - share), (1 - MIDDLE) * share, MIDDLE
    moved = score_sensitivity(limit, neighbors, contributions)  # checks relation and rows
    unit = contributions * CELL_UNITS / Fraction(eps)
    information = unit / ((1 if neighbors == "replace-one" else 2) * shares[0])
    wanted = information, moved / (eps * shares[1]), unit / shares[2]
    check_scales(*wanted)
    first, second, third = (max(math.ceil(scale), 1) for scale in wanted)
    third = int(float_above(Fraction(third)))  # a scale that float64 holds
    return BlocksLaplaceLook(
        size, first, second, third, shares, Fraction(eps), neighbors, contributions
    )


def _check_size(size: int) -> None:
    if size < 2:
        raise ArgumentError("a look at a family holds one column at least")
