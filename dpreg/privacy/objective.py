r"""Noise of pure eps for the minimum of a convex objective, solved to a tolerance, with proofs.

For rows x_i in R^d and public c, G, R, D and t0 the objective is

    J(t) = sum_i f_i(t) + D |t - t0|^2 / 2 + b't,

each f_i convex with a gradient along x_i that is Lipschitz, of norm at most G R, and with a second
derivative of rank one and norm at most c wherever it exists, which is almost everywhere. b has a
density proportional to exp(-|b|/s). No minimum of floats is exact; so what is released is

    floor(t^ / u) + floor(V),    V of density proportional to exp(-|v|/r),

in units u of a power of two, t^ any point at which the gradient of J is at most g in length.

*Statement.* With k rows a person and

    s >= 2 k G R / eps_1 where they are replaced, k G R / eps_1 where they are added or removed,
    D >= c / (e + e^2/2),  e = eps_2 / k,
    r >= (2 g / (D u) + d^(1/2)) / eps_3,

the release is (eps_1 + eps_2 + eps_3)-DP, whatever t^ is within its tolerance.

*Proof.* 1. The exact minimum t* alone (Chaudhuri, Monteleoni and Sarwate 2011; Kifer, Smith and
Thakurta 2012). For a table T let b_T(t) = -sum grad f_i(t) - D (t - t0). As -b_T is Lipschitz and
strongly monotone, b_T is one to one from R^d onto R^d, and t* = t just where b = b_T(t). By the
area formula t* has the density p(b_T(t)) |det b_T'(t)| almost everywhere. Between neighbours
b_T(t) moves by k gradients, or by k differences of two: the first factor changes by exp(eps_1) at
most. -b_T' is M + E, M of the common rows and the penalty, E of the k own ones: k matrices of rank
one, of trace at most k c together; of two tables that differ by added rows, one has E = 0.
det(M + E)/det(M) = det(1 + M^(-1/2) E M^(-1/2)) is at least 1. At most k of the eigenvalues in it
exceed 1, by k c / D in all: it is at most (1 + c/D)^k, by the inequality of the means. So the
determinants of both tables lie between det(M) and (1 + c/D)^k times that, and
1 + c/D <= 1 + e + e^2/2 <= exp(eps_2/k).

2. What is released, given t* (Iyengar et al. 2019). J is strongly convex, so that |t^ - t*| <=
|grad J(t^)| / D <= g/D. Given t* = t, any two points t^ that two tables may lead to are both that
near to t: their floors differ by at most 2 g / (D u) + d^(1/2). So the second release is eps_3-DP
by the statement of `dpreg.privacy.mechanisms.l2_norm`, for each value of t*. That t^ depends on b
is no matter: given t* and the table b is known. The two compose in sequence. QED

c, G, R, D and t0, and what a row's coordinates are made with, may be functions of earlier releases
instead of public. Given these they are fixed, and the above bounds the loss whatever they are: so
all releases together cost the sum of what each costs (adaptive composition at pure eps).

*Roundings.* J is the objective of the stored floats, taken as exact numbers; R and c bound what
they stand for. Write u = 2**-53. A squared length is a sum of d squares that holds 1 (the
constant's): each term is rounded d times at most, so that the float is at least (1 - u)^d of it. A
weight min(1, R^2/|x|^2) made of it, and rows and weights made of that in up to eight roundings
more, so have weight |x|^2 <= R^2 (1 + u)^8 (1 - u)^-(d + 2), and weight |x| at most R times the
root of that. G and R themselves, as floats, are rounded six times more at most. So G R and c are
taken (1 + s)^2 and 1 + s times as large, s = 2 (d + 16) u: enough, as (1 + u)^8 (1 - u)^-(d + 2) <=
1 + s for d up to 2**50. Rows that are made with more roundings than these need a proof of their
own.

b is drawn as w (floor(B) + 1/2), B of scale s/w, w a power of two: this is within w d^(1/2) / 2 of
w B, and the gradient's bound counts that (`ObjectiveNoise.slack`).

Nothing here reads a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from dpreg.errors import ArgumentError
from dpreg.privacy.mechanisms.l2_norm import l2_norm_noise
from dpreg.privacy.protection import Protection
from dpreg.privacy.scales import check_scales
from dpreg.privacy.stability import AccountError, Stability

if TYPE_CHECKING:
    from dpreg.privacy.account import Part

__all__ = ["DRAWN", "OBJECTIVE", "ObjectiveNoise", "objective_noise", "objective_units"]

OBJECTIVE: Final = "objective perturbation"
"""The mechanism, as the budget table names it."""
DRAWN: Final = "l2-norm"
"""What draws b and V."""
_BENT: Final = Fraction(10, 100)
"""Part of eps for the determinants: the larger, the smaller the penalty."""
_SOLVED: Final = Fraction(1, 100)
"""And for the tolerance."""
_QUIET: Final = Fraction(1, 64)
"""V beside what b moves the minimum by at least, as standard deviations."""


@dataclass(frozen=True, slots=True)
class ObjectiveNoise:
    """Noise fitted to an objective.

    Attributes
    ----------
    size : int
        d.
    scale : int
        s, in units of w = 2**-`bits`.
    bits, places : int
        b is drawn in units of 2**-`bits`, and the release in units u = 2**-`places`.
    penalty : Fraction
        D.
    tolerance : Fraction
        g.
    spread : int
        r, in units of u.
    shares : (Fraction, Fraction)
        Of eps that b and the penalty take together, and V.
    eps : Fraction
    protection : Protection
    """

    size: int
    scale: int
    bits: int
    places: int
    penalty: Fraction
    tolerance: Fraction
    spread: int
    shares: tuple[Fraction, Fraction]
    eps: Fraction
    protection: Protection

    @property
    def slack(self) -> Fraction:
        """Bound on how far the drawn b is from the real one: part of the gradient's bound."""
        return Fraction(math.isqrt(self.size) + 1, 2 * 2**self.bits)

    def opened(self, part: Part) -> tuple[list[Fraction], Part]:
        """Draw b, of d places, and return it with the part that `released` draws from."""
        first, second = part.split(self.shares)
        self._use(first, self.shares[0])
        drawn = l2_norm_noise(self.size, self.scale, rng=first.rng)
        return [Fraction(2 * cell + 1, 2 * 2**self.bits) for cell in drawn], second

    def released(self, found: list[int], part: Part) -> list[Fraction]:
        """Add V to floors of the found minimum, in units of u, and return what is released."""
        if len(found) != self.size:
            raise AccountError("internal error: another number of coefficients than was planned")
        self._use(part, self.shares[1])
        drawn = l2_norm_noise(self.size, self.spread, rng=part.rng)
        return [Fraction(a + b, 2**self.places) for a, b in zip(found, drawn, strict=True)]

    def _use(self, part: Part, share: Fraction) -> None:
        bound = Stability(protection=self.protection, mechanisms=(DRAWN,))
        if part.draw(DRAWN, bound).eps < self.eps * share:
            raise AccountError("internal error: noise is drawn for more than was charged")


def objective_noise(
    size: int,
    slope: float,
    bend: float,
    reach_squared: float,
    rows: int,
    eps: Fraction,
    protection: Protection,
) -> ObjectiveNoise:
    """Fit the noise to losses of a predictor.

    Parameters
    ----------
    size : int
        d.
    slope, bend : float
        Bounds on the loss's first and second derivative by the predictor.
    reach_squared : float
        R^2: with its weight a row's length, and its squared length, are at most R and R^2, so that
        G = slope and c = bend R^2.
    rows : int
        For the tolerance alone: public, or released before.
    eps : Fraction
    protection : Protection

    Raises
    ------
    ArgumentError
        For arguments out of range, and for an eps so small that a scale leaves 2**200.
    """
    if size < 1 or rows < 1 or min(slope, bend, reach_squared) <= 0 or eps <= 0:
        raise ArgumentError("an objective needs rows, columns, bounds and an eps above 0")
    k, wide, moved = protection.contributions, 1 + _spare(size), _moved(protection)
    reach = Fraction(math.sqrt(reach_squared)) * wide
    curve = Fraction(bend) * Fraction(reach_squared) * wide
    x = eps * _BENT / k
    penalty = curve / (x + x * x / 2)
    wanted = moved * Fraction(slope) * wide * reach / (eps * (1 - _BENT - _SOLVED))
    tolerance = _QUIET * eps * _SOLVED * penalty * wanted / (2 * (rows * curve + penalty))
    root = math.isqrt(size) + 1
    bits = _finer(tolerance / (4 * root))
    places = _finer(2 * tolerance / (penalty * root))
    scale = math.ceil(wanted * Fraction(2) ** bits)
    apart = 2 * tolerance / penalty * Fraction(2) ** places + root
    spread = math.ceil(apart / (eps * _SOLVED))
    check_scales(scale, spread)
    shares = (1 - _SOLVED, _SOLVED)
    return ObjectiveNoise(
        size, scale, bits, places, penalty, tolerance, spread, shares, eps, protection
    )


def _spare(size: int) -> Fraction:
    """Return s: what bounds on rows of d floats may be exceeded by, relatively (see the module)."""
    return Fraction(size + 16, 2**52)


def _moved(protection: Protection) -> int:
    """Return how many gradients the objective's may move by."""
    return protection.contributions * (2 if protection.neighbors == "replace-one" else 1)


def objective_units(size: int, eps: Fraction, protection: Protection) -> tuple[float, float]:
    """Return the standard deviation of a cell of b at G R = 1, and D at c = 1: what to expect."""
    x = float(eps) * float(_BENT) / protection.contributions
    scale = _moved(protection) / (float(eps) * float(1 - _BENT - _SOLVED))
    return scale * math.sqrt(size + 1), 1 / (x + x * x / 2)


def _finer(length: Fraction) -> int:
    """Return the least b of at least 0 with 2**-b <= `length`."""
    bits = max(length.denominator.bit_length() - length.numerator.bit_length(), 0)
    return bits if length >= Fraction(1, 2**bits) else bits + 1
