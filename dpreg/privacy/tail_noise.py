r"""Noise for more cells of a located look: residuals cut farther out, and their leverage.

A located row has a weight c, a residual t that is cut farther out, and v, the length of its columns
times its residual; what is released beside the look's moments is (sum c t, sum t^2, sum v^2).
Stored are integers k_c, k_t and k_v with |k_c| <= r, r the stored weight of a row that counts in
full, |k_t| <= 2**20 and |k_v| <= 2**20; a = k_c k_t / (r 2**20), b = k_t^2 / 2**40 and
l = k_v^2 / 2**40, so that with s = |k_t| / 2**20 in [0, 1]

    |a| <= s,    b = s^2,    0 <= l <= 1.

sum v^2 gets twice (Gaussian) or four times (Laplace) the noise of the others, and so l counts by
1/4 of its square in the L2 bound and by 1/4 in the L1 bound.

*Statement.* Between neighbours the sums of (a, b, l), the last so weighted, move by at most

    L2: (17/4)^(1/2) k under replace-one, (9/4)^(1/2) k under add-remove,
    L1: 5/2 k under replace-one, 9/4 k under add-remove,

k the rows of one person.

*Proof.* l moves by at most 1, which counts 1/4 in either. One row added: s^2 + s^4 <= 2 and
s + s^2 <= 2. One replaced: with p = s + s' and q = |s - s'|, |a - a'| <= p and |b - b'| = p q, and
p <= 2 - q as both are at most 1. L2: p^2 (1 + q^2) <= (2 - q)^2 (1 + q^2), which falls in q, as its
derivative 2 (2 - q) (2 q - 2 q^2 - 1) is negative: at most 4. L1: p (1 + q) <= (2 - q)(1 + q), at
most 9/4. Incomplete rows are s = l = 0. k rows: the triangle inequality. With l free all are
attained: (1, 1, 1) and (-1, 1, 0) for L2, (1, 1, 1) and (-1/2, 1/4, 0) for L1. QED

An earlier look releases four sums, to tell how heavy and how skewed the residuals' tails are, how
much larger they are far out, and how far rows lie out. With f = min(|e|, 1), e the residual in
units of the wider cut, c a row's weight and c' = min(1, 1.5 c), a row has the squares

    b+ or b- = (c f)^2, by the sign of e,    o = (1 - c^2) f^2,    l = 1 - c'^2,

stored as integers with k+^2 + k-^2 + k_o^2 <= 2**40 and k_l <= 2**20; b+ = k+^2 / 2**40, and so on.

*Statement.* Between neighbours the sums of (b+, b-, o, l) move by at most r k in the L1 norm and by
r^(1/2) k in the L2 norm, r = 3 under replace-one and 2 under add-remove.

*Proof.* All four are at least 0, b+ + b- + o <= 1 and l <= 1, and all are 0 in an incomplete row.
One row added: at most 2 in L1, and in L2^2 no more than in L1, as each is at most 1. One replaced:
in (b+, b-, o) the two rows have L1 norms of at most 1, so that these move by at most 2 in L1; and
|v - v'|^2 = |v|^2 + |v'|^2 - 2 v'v <= |v|^2 + |v'|^2 <= 2, as v'v >= 0. l adds at most 1 to either.
k rows: the triangle inequality. (1, 0, 0, 1) and (0, 1, 0, 0), or no row, attain all. QED

Gaussian noise is a look of its own in the sense of `dpreg.privacy.looks`; it may be planned with
what earlier looks released. At pure eps the cells get discrete Laplace noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from dpreg.privacy.balls import float_above
from dpreg.privacy.budget import ALL_ROWS
from dpreg.privacy.gram_sensitivity import CELL_UNITS
from dpreg.privacy.looks import look_scale, weighted_scale
from dpreg.privacy.mechanisms.additive import gaussian_noise, laplace_noise, laplace_variance
from dpreg.privacy.protection import Protection
from dpreg.privacy.stability import AccountError, Stability

if TYPE_CHECKING:
    from numpy.random import Generator

    from dpreg.privacy.account import Part

__all__ = [
    "SQUARES",
    "TailNoise",
    "squares_l2_squared",
    "squares_noise",
    "squares_reach",
    "squares_sd",
    "tail_l1",
    "tail_l2_squared",
    "tail_noise",
    "tail_sd",
]

SQUARES: Final = 4
"""Sums of squares that an earlier look releases."""
_LEVERAGE: Final = {"gaussian": 2, "laplace": 4}
"""The noise of sum v^2, as a multiple of that of the other cells."""


def tail_l2_squared(protection: Protection) -> Fraction:
    """Return the squared L2 sensitivity of the three cells, weighted, in units of one."""
    rows = Fraction(17 if protection.neighbors == "replace-one" else 9, 4)
    return rows * protection.contributions**2


def tail_l1(protection: Protection) -> Fraction:
    """Return the L1 sensitivity of the three cells, weighted, in units of one."""
    rows = Fraction(10 if protection.neighbors == "replace-one" else 9, 4)
    return rows * protection.contributions


def squares_reach(protection: Protection) -> Fraction:
    """Return how far the four sums move together between neighbours, in the L1 norm."""
    return Fraction(3 if protection.neighbors == "replace-one" else 2) * protection.contributions


def squares_l2_squared(protection: Protection) -> Fraction:
    """Return the squared L2 sensitivity of the four sums, in units of one."""
    return squares_reach(protection) * protection.contributions


def squares_sd(strength: Fraction, protection: Protection, *, gaussian: bool) -> float:
    """Return about the standard deviation of the noise of each, in units of one."""
    if gaussian:
        return math.sqrt(squares_l2_squared(protection) / strength)
    return math.sqrt(2) * float(squares_reach(protection) / strength)


def tail_sd(strength: Fraction, protection: Protection, *, gaussian: bool) -> float:
    """Return about the standard deviation of the noise of sum c t and sum t^2, in units of one.

    `strength` is the part's mu^2 (Gaussian) or eps (Laplace).
    """
    if gaussian:
        return math.sqrt(tail_l2_squared(protection) / strength)
    return math.sqrt(2) * float(tail_l1(protection) / strength)


@dataclass(frozen=True, slots=True)
class TailNoise:
    """Noise fitted to the three cells of a last look, or to the four of an earlier one.

    Attributes
    ----------
    mechanism : {"gaussian", "laplace"}
    scales : tuple of floats
        Of sum c t, sum t^2 and sum v^2, in their integer units: 1/(r 2**20), 2**-40 and 2**-40; or
        of the four sums of squares, in units of 2**-40.
    strength : Fraction
        The mu^2 or eps that it costs.
    protection : Protection
    """

    mechanism: str
    scales: tuple[float, ...]
    strength: Fraction
    protection: Protection

    @property
    def sds(self) -> tuple[float, ...]:
        """Standard deviations, in the same integer units."""
        if self.mechanism == "gaussian":
            return self.scales
        return tuple(math.sqrt(laplace_variance(scale)) for scale in self.scales)

    def draw(self, part: Part, rows: str = ALL_ROWS) -> tuple[int, ...]:
        """Use up the part that was charged and draw the noise of the cells."""
        bound = Stability(protection=self.protection, mechanisms=(self.mechanism,))
        if self.mechanism == "gaussian":
            charged = part.look(self.mechanism, bound, rows)
        else:
            charged = part.draw(self.mechanism, bound, rows).eps
        if charged < self.strength:
            raise AccountError("internal error: a tail is drawn with less noise than was charged")
        return self.simulate(part.rng)

    def simulate(self, rng: Generator | None) -> tuple[int, ...]:
        """Draw from the law alone; with a generator **not private**."""
        draw = gaussian_noise if self.mechanism == "gaussian" else laplace_noise
        return tuple(draw(1, scale, rng=rng)[0] for scale in self.scales)


def tail_noise(
    strength: Fraction, protection: Protection, full_weight: int, *, gaussian: bool
) -> TailNoise:
    """Fit noise to (sum c t, sum t^2, sum v^2).

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
        third = weighted_scale(scale, Fraction(1, _LEVERAGE["gaussian"] ** 2))
        scales = weighted_scale(scale, 1 / first**2), scale, third
        return TailNoise("gaussian", scales, strength, protection)
    wanted = tail_l1(protection) * CELL_UNITS / strength
    scales = _up(wanted * first), _up(wanted), _up(wanted * _LEVERAGE["laplace"])
    return TailNoise("laplace", scales, strength, protection)


def squares_noise(strength: Fraction, protection: Protection, *, gaussian: bool) -> TailNoise:
    """Fit noise to the four sums of squares of an earlier look.

    Parameters
    ----------
    strength : Fraction
        mu^2 (Gaussian) or eps (Laplace).
    protection : Protection
    gaussian : bool
    """
    if gaussian:
        scale = look_scale(squares_l2_squared(protection) * CELL_UNITS**2, strength)
        return TailNoise("gaussian", (scale,) * SQUARES, strength, protection)
    scale = _up(squares_reach(protection) * CELL_UNITS / strength)
    return TailNoise("laplace", (scale,) * SQUARES, strength, protection)


def _up(wanted: Fraction) -> float:
    """Return a float of at least `wanted`, and of at least 2**9."""
    return float_above(max(wanted, Fraction(2**9)))
