r"""Noise for two more cells of a located look: its residuals, cut farther out.

A located row has a weight c and a second cut residual t; what is released beside the look's moments
is (sum c t, sum t^2). Stored are integers k_c and k_t with |k_c| <= r, r the stored weight of a
row that counts in full, and |k_t| <= 2**20; a = k_c k_t / (r 2**20) and b = k_t^2 / 2**40, so that
with s = |k_t| / 2**20 in [0, 1]

    |a| <= s,    b = s^2.

*Statement.* Between neighbours the sums of (a, b) move by at most

    L2: 2 k under replace-one, sqrt(2) k under add-remove,
    L1: 9/4 k under replace-one, 2 k under add-remove,

k the rows of one person.

*Proof.* One row added: (s^2 + s^4)^(1/2) <= sqrt(2) and s + s^2 <= 2. One replaced: with p = s + s'
and q = |s - s'|, |a - a'| <= p and |b - b'| = p q, where p <= 2 - q as both are at most 1. L2:
p^2 (1 + q^2) <= (2 - q)^2 (1 + q^2), which falls in q, as its derivative
2 (2 - q) (2 q - 2 q^2 - 1) is negative: at most 4. L1: p (1 + q) <= (2 - q)(1 + q) <= 9/4.
Incomplete rows are s = 0. k rows: the triangle inequality. All are attained: (1, 1) and (-1, 1) for
L2, (1, 1) and (-1/2, 1/4) for L1. QED

Gaussian noise is a look of its own in the sense of `dpreg.privacy.looks`; it may be planned with
what earlier looks released. At pure eps both cells get discrete Laplace noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dpreg.privacy.budget import ALL_ROWS
from dpreg.privacy.gram_sensitivity import CELL_UNITS
from dpreg.privacy.look_noise import LookPart
from dpreg.privacy.looks import look_scale, weighted_scale
from dpreg.privacy.mechanisms.additive import gaussian_noise, laplace_noise, laplace_variance
from dpreg.privacy.protection import Protection

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["TailNoise", "tail_l1", "tail_l2_squared", "tail_noise", "tail_sd"]


def tail_l2_squared(protection: Protection) -> int:
    """Return the squared L2 sensitivity of (sum c t, sum t^2), in units of one."""
    return (4 if protection.neighbors == "replace-one" else 2) * protection.contributions**2


def tail_l1(protection: Protection) -> Fraction:
    """Return the L1 sensitivity of (sum c t, sum t^2), in units of one."""
    rows = Fraction(9, 4) if protection.neighbors == "replace-one" else Fraction(2)
    return rows * protection.contributions


def tail_sd(strength: Fraction, protection: Protection, *, gaussian: bool) -> float:
    """Return about the standard deviation of each cell's noise, in units of one.

    `strength` is the part's mu^2 (Gaussian) or eps (Laplace).
    """
    if gaussian:
        return math.sqrt(tail_l2_squared(protection) / strength)
    return math.sqrt(2) * float(tail_l1(protection) / strength)


@dataclass(frozen=True, slots=True)
class TailNoise:
    """Noise fitted to the two cells.

    Attributes
    ----------
    mechanism : {"gaussian", "laplace"}
    scales : tuple of two floats
        Of sum c t and sum t^2, in their integer units: 1/(r 2**20) and 2**-40.
    strength : Fraction
        The mu^2 or eps that it costs.
    protection : Protection
    """

    mechanism: str
    scales: tuple[float, float]
    strength: Fraction
    protection: Protection

    @property
    def sds(self) -> tuple[float, float]:
        """Standard deviations, in the same integer units."""
        if self.mechanism == "gaussian":
            return self.scales
        first, second = (math.sqrt(laplace_variance(scale)) for scale in self.scales)
        return first, second

    def draw(self, part: LookPart, rows: str = ALL_ROWS) -> tuple[int, int]:
        """Use up the part that was charged and draw the noise of both cells."""
        fitted = self.protection
        same = (part.protection.neighbors, part.protection.contributions)
        if same != (fitted.neighbors, fitted.contributions):
            raise RuntimeError("internal error: a tail's noise was fitted for other neighbours")
        if self.mechanism == "gaussian":
            charged = part.look(self.mechanism, rows)
        else:
            charged = part.draw(self.mechanism, rows).eps
        if charged < self.strength:
            raise RuntimeError("internal error: a tail is drawn with less noise than was charged")
        return self.simulate(part.rng)

    def simulate(self, rng: Generator | None) -> tuple[int, int]:
        """Draw from the law alone; with a generator **not private**."""
        draw = gaussian_noise if self.mechanism == "gaussian" else laplace_noise
        first, second = (draw(1, scale, rng=rng)[0] for scale in self.scales)
        return first, second


def tail_noise(
    strength: Fraction, protection: Protection, full_weight: int, *, gaussian: bool
) -> TailNoise:
    """Fit noise to (sum c t, sum t^2).

    Parameters
    ----------
    strength : Fraction
        mu^2 (Gaussian) or eps (Laplace).
    protection : Protection
    full_weight : int
        r, the stored weight of a row that counts in full.
    gaussian : bool
    """
    first = Fraction(full_weight, 2**20)  # units of the first cell beside those of the second
    if gaussian:
        scale = look_scale(tail_l2_squared(protection) * CELL_UNITS**2, strength)
        scales = weighted_scale(scale, 1 / first**2), scale
        return TailNoise("gaussian", scales, strength, protection)
    wanted = tail_l1(protection) * CELL_UNITS / strength
    return TailNoise("laplace", (_up(wanted * first), _up(wanted)), strength, protection)


def _up(wanted: Fraction) -> float:
    """Return a float of at least `wanted`, and of at least 2**9."""
    wanted = max(wanted, Fraction(2**9))
    scale = float(wanted)
    return scale if Fraction(scale) >= wanted else math.nextafter(scale, math.inf)
