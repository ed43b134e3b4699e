"""Noise of one scale for a vector of integers, from its L1 or its L2 sensitivity.

Statement: a vector of integers that changes between neighbours by at most L1 in the sum of absolute
changes is eps-DP with independent discrete Laplace noise of a scale of at least L1/eps; one that
changes by at most D in Euclidean length is (eps, delta)-DP with the discrete Gaussian noise of
`dpreg.privacy.gaussian.discrete_sigma`. Proof: Dwork, McSherry, Nissim and Smith (2006) for the
first (P(v - d) <= exp(|d|_1 / scale) P(v)); the module of `discrete_sigma` for the second.

What eps and which scales noise is fitted with.

Noise for sums that say how large rows and residuals are, with proofs.

A complete row of p >= 1 columns x_j and a response y, all in [-1, 1], has the cells

    p (1, 2 y, 2 y^2),    3 sum_j x_j^2;

an incomplete row has zeros.

*Statement.* Between neighbours the sums of these cells over the rows move by at most 8 p k in the
L1 norm, under either relation, k the rows of one person.

*Proof.* One row added, or replaced by an incomplete one, or the reverse: at most
p (1 + 2 |y| + 2 y^2) + 3 sum x_j^2 <= 5 p + 3 p. A complete row for a complete one: the first cell
stays. With s = |y + y'| and d = |y - y'|, the next two move by 2 p d (1 + s), and s + d <= 2 as
both responses are at most 1: 2 p d (3 - d) <= 9 p / 2 < 5 p. The last cell lies between 0 and 3 p,
and moves by no more. k rows: the triangle inequality. A row of ones, added or taken away, attains
it. QED

*Statement.* Let the columns be single ones and G groups of 0/1 columns, of which at most one is not
zero in a row. With s single ones the sums of the columns move by at most (s + G) k in the L1 norm
under add-remove and by twice that under replace-one.

*Proof.* A row's absolute values add up to at most s + G, of which an incomplete one has none; two
rows differ by at most the sum of both. QED

*Statement.* A row's part of a sum lies between 0 and 1, and is 0 in an incomplete row. The sum
moves by at most k, under either relation. *Proof.* So does each part. QED

Stored cells lie on the grid 2**-20, so that all sums are whole in units of 2**-40, or of 2**-20
where a row's part of the last one is rounded down to it. Noise: `dpreg.privacy.noise`.

Noise of pure eps for the minimum of a convex objective, solved to a tolerance, with proofs.

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
by the statement of `dpreg.privacy.mechanisms.floors`, for each value of t*. That t^ depends on b
is no matter: given t* and the table b is known. The two compose in sequence. QED

c, G, R, D and t0, and what a row's coordinates are made with, may be functions of earlier releases
instead of public. Given these they are fixed, and the above bounds the loss whatever they are: so
all releases together cost the sum of what each costs (adaptive composition at pure eps).

*Roundings.* J is the objective of the stored floats, taken as exact numbers; R and c bound what
they stand for. Write u = 2**-53. A squared length is a sum of d squares that holds 1 (the
constant's): each term is rounded d times at most, so that the float is at least (1 - u)^d of it. A
weight min(1, R^2/|x|^2) made of it, and rows and weights made of that in up to twelve roundings
more, so have weight |x|^2 <= R^2 (1 + u)^12 (1 - u)^-(d + 2), and pull by at most G R times that.
G and R themselves, as floats, are rounded six times more at most. So G R and c are taken
(1 + s)^2 and 1 + s times as large, s = 2 (d + 16) u: enough, as (1 + u)^12 (1 - u)^-(d + 2) <=
1 + s for d up to 2**50. Rows that are made with more roundings than these need a proof of their
own.

b is drawn as w (floor(B) + 1/2), B of scale s/w, w a power of two: this is within w d^(1/2) / 2 of
w B, and the gradient's bound counts that (`ObjectiveNoise.slack`).

Nothing here reads a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from dpreg.errors import ArgumentError
from dpreg.privacy.balls import float_above
from dpreg.privacy.budget import ALL_ROWS, Budget
from dpreg.privacy.gaussian import discrete_sigma
from dpreg.privacy.mechanisms.additive import gaussian_noise, laplace_noise, laplace_variance
from dpreg.privacy.mechanisms.floors import l2_norm_noise
from dpreg.privacy.proofs import CELL_UNITS
from dpreg.privacy.protection import AccountError, Protection, Stability, VectorChange

if TYPE_CHECKING:
    from numpy.random import Generator

    from dpreg.privacy.account import Part

_LARGEST: Final = 2**200


def check_scales(*scales: Fraction | int) -> None:
    """Raise ArgumentError for a scale beyond 2**200."""
    if max(scales) > _LARGEST:
        raise ArgumentError(
            "eps is too small, or contributions too many: the noise would have a scale of over "
            "2**200"
        )


VECTOR_NOISES: Final = ("laplace", "gaussian")
"""Names of the noises for a vector of integers."""


def offered(noise: str | None, cost: Budget) -> tuple[str, ...]:
    """Return the noises to choose from: the wanted one, or all that a cost allows."""
    if noise is not None:
        return (noise,)
    return VECTOR_NOISES if cost.delta > 0 else VECTOR_NOISES[:1]


_SMALLEST: Final = 1 / 600


@dataclass(frozen=True, slots=True)
class VectorNoise:
    """Noise fitted to a vector's change: its law, scale, variance (integer units) and cost."""

    mechanism: str
    scale: float
    variance: float
    cost: Budget
    bound: VectorChange

    def draw(self, size: int, part: Part, rows: str = ALL_ROWS) -> list[int]:
        """Draw independent integers, for a part of the budget that this noise was fitted to."""
        part.draw(self.mechanism, self.bound, rows, fitted=self.cost)
        draw = laplace_noise if self.mechanism == "laplace" else gaussian_noise
        return draw(size, self.scale, rng=part.rng)


def fit_noise(mechanism: str, bound: VectorChange, *, cells: int, cost: Budget) -> VectorNoise:
    """Fit noise of one scale to how far a vector moves.

    Parameters
    ----------
    mechanism : {"laplace", "gaussian"}
    bound : VectorChange
        In the vector's integer units.
    cells : int
        Length of the vector.
    cost : Budget
        Its delta is spent by "gaussian" alone, which needs it.

    Raises
    ------
    ArgumentError
        For an eps so small that the noise would have a scale beyond 2**200.
    """
    if mechanism == "laplace":
        wanted = bound.l1 / cost.eps
        check_scales(wanted)
        scale = float_above(wanted)
        # Below, exp(-1/scale) is 0 in float64 and squares on the way overflow.
        variance = laplace_variance(scale) if scale > _SMALLEST else 0.0
        return VectorNoise(mechanism, scale, variance, Budget(cost.eps), bound)
    sigma = discrete_sigma(bound.l2_squared, cells, cost.eps, cost.delta)
    return VectorNoise(mechanism, sigma, sigma**2, cost, replace(bound, divisible=False))


PARTS: Final = 2**20
"""Integer units of a row's part of a sum."""
_ROW: Final = (1, 2, 2)
"""Weights of the number of rows, and of the sums of y and y^2."""
_COLUMNS: Final = 3
"""And of the sum of squares of all columns, over p. On drawn tables of 5 to 30 columns others were
no better."""


@dataclass(frozen=True, slots=True)
class SumsNoise:
    """Noise fitted to sums of cells.

    Attributes
    ----------
    weights : tuple of int
        What the sums are multiplied by before noise of one scale is added.
    units : int
        A sum of one is so many integers, before that.
    noise : VectorNoise
    """

    weights: tuple[int, ...]
    units: int
    noise: VectorNoise

    @property
    def sds(self) -> list[float]:
        """Standard deviations, in units of one."""
        sd = math.sqrt(self.noise.variance)
        return [sd / (weight * self.units) for weight in self.weights]

    def released(self, exact: Sequence[int], part: Part, rows: str = ALL_ROWS) -> list[float]:
        """Add the noise to integer sums, and return them in units of one."""
        drawn = self.noise.draw(len(self.weights), part, rows)
        return [
            float(Fraction(cell * weight + own, weight * self.units))
            for cell, weight, own in zip(exact, self.weights, drawn, strict=True)
        ]


def scales_noise(columns: int, eps: Fraction, protection: Protection) -> SumsNoise:
    """Fit noise to the number of complete rows, and the sums of y, of y^2 and of all x_j^2.

    Parameters
    ----------
    columns : int
        p; none counts as one that is zero.
    eps : Fraction
    protection : Protection
    """
    p = max(columns, 1)
    most = (sum(_ROW) + _COLUMNS) * p * protection.contributions
    weights = (*(weight * p for weight in _ROW), _COLUMNS)
    noise = _fitted(most * CELL_UNITS, len(weights), eps, protection)
    return SumsNoise(weights, CELL_UNITS, noise)


def means_noise(
    columns: int, groups: Sequence[Sequence[int]], eps: Fraction, protection: Protection
) -> SumsNoise:
    """Fit noise to the sums of the columns.

    Parameters
    ----------
    columns : int
        Their number, at least 1.
    groups : sequence of sequences of int
        The places of each group's 0/1 columns.
    eps : Fraction
    protection : Protection
    """
    apart = columns - sum(len(group) - 1 for group in groups)
    most = protection.changes * apart * protection.contributions
    noise = _fitted(most * CELL_UNITS, columns, eps, protection)
    return SumsNoise((1,) * columns, CELL_UNITS, noise)


def part_noise(eps: Fraction, protection: Protection) -> SumsNoise:
    """Fit noise to one sum of parts between 0 and 1, in whole units of 1/`PARTS`."""
    return SumsNoise((1,), PARTS, _fitted(protection.contributions * PARTS, 1, eps, protection))


def _fitted(most: int, cells: int, eps: Fraction, protection: Protection) -> VectorNoise:
    moved = VectorChange(
        protection=protection, l1=most, l2_squared=most**2, mechanisms=("laplace",)
    )
    return fit_noise("laplace", moved, cells=cells, cost=Budget(eps))


OBJECTIVE: Final = "objective perturbation"
"""The mechanism, as the budget table names it."""
DRAWN: Final = "l2-norm"
"""What draws b and V."""
_BENT: Final = Fraction(10, 100)
"""Part of eps for the determinants: the larger, the smaller the penalty."""
_SOLVED: Final = Fraction(1, 100)
"""And for the tolerance."""
SCORED: Final = 1 - _BENT - _SOLVED
"""What is left of eps for b."""
HOLD: Final = 2 / 3  # by definition
"""D over c, at least: what it is with e = 1. A larger eps would let it fall faster than b, whose
noise is b/D in directions that no row settles: of a column that copies another, or of a level that
is nowhere seen. Copies came to 1.2 and 8 at eps 100 and 1,000 without it, to .35 with it, and other
columns were as near."""
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
    eps : Fraction
    protection : Protection
    shares : (Fraction, Fraction)
        Of eps that b and the penalty take together, and V.
    """

    size: int
    scale: int
    bits: int
    places: int
    penalty: Fraction
    tolerance: Fraction
    spread: int
    eps: Fraction
    protection: Protection
    shares: tuple[Fraction, Fraction] = (1 - _SOLVED, _SOLVED)

    @property
    def slack(self) -> Fraction:
        """Bound on how far the drawn b is from the real one: part of the gradient's bound."""
        return Fraction(math.isqrt(self.size) + 1, 2 * 2**self.bits)

    def opened(self, part: Part) -> tuple[list[Fraction], Part]:
        """Draw b, of d places, and return it with the part that `released` draws from."""
        first, second = part.split(self.shares)
        self._use(first, self.shares[0])
        return self.simulate(first.rng), second

    def simulate(self, rng: Generator | None) -> list[Fraction]:
        """Draw b from its law alone; with a generator **not private**."""
        drawn = l2_norm_noise(self.size, self.scale, rng=rng)
        return [Fraction(2 * cell + 1, 2 * 2**self.bits) for cell in drawn]

    def released(self, found: list[int], part: Part) -> list[Fraction]:
        """Add V to floors of the found minimum, in units of u, and return what is released."""
        if len(found) != self.size:
            raise AccountError("internal error: another number of coefficients than was planned")
        self._use(part, self.shares[1])
        return self.hidden(found, part.rng)

    def hidden(self, found: list[int], rng: Generator | None) -> list[Fraction]:
        """Add V from its law alone; with a generator **not private**."""
        drawn = l2_norm_noise(self.size, self.spread, rng=rng)
        return [Fraction(a + b, 2**self.places) for a, b in zip(found, drawn, strict=True)]

    def _use(self, part: Part, share: Fraction) -> None:
        bound = Stability(protection=self.protection, mechanisms=(DRAWN,))
        part.draw(DRAWN, bound, fitted=Budget(self.eps * share))


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
    assert min(slope, bend, reach_squared) > 0
    # What bounds on rows of d floats may be exceeded by, relatively: 1 + s (see the module).
    k, wide = protection.contributions, 1 + Fraction(size + 16, 2**52)
    reach = Fraction(math.sqrt(reach_squared)) * wide
    curve = Fraction(bend) * Fraction(reach_squared) * wide
    x = eps * _BENT / k
    penalty = curve / (x + x * x / 2)
    wanted = k * protection.changes * Fraction(slope) * wide * reach / (eps * SCORED)
    tolerance = _QUIET * eps * _SOLVED * penalty * wanted / (2 * (rows * curve + penalty))
    root = math.isqrt(size) + 1
    bits = _finer(tolerance / (4 * root))
    places = _finer(2 * tolerance / (penalty * root))
    scale = math.ceil(wanted * Fraction(2) ** bits)
    apart = 2 * tolerance / penalty * Fraction(2) ** places + root
    spread = math.ceil(apart / (eps * _SOLVED))
    check_scales(scale, spread)
    return ObjectiveNoise(size, scale, bits, places, penalty, tolerance, spread, eps, protection)


def objective_units(size: int, eps: Fraction, protection: Protection) -> tuple[float, float]:
    """Return the standard deviation of a cell of b at G R = 1, and D at c = 1: what to expect."""
    x = float(eps) * float(_BENT) / protection.contributions
    scale = protection.contributions * protection.changes / (float(eps) * float(SCORED))
    return scale * math.sqrt(size + 1), 1 / (x + x * x / 2)


def _finer(length: Fraction) -> int:
    """Return the least b of at least 0 with 2**-b <= `length`."""
    bits = max(length.denominator.bit_length() - length.numerator.bit_length(), 0)
    return bits if length >= Fraction(1, 2**bits) else bits + 1
