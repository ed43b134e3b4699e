"""Noise of one scale for a vector of integers, from its L1 or its L2 sensitivity.

Statement: a vector of integers that changes between neighbours by at most L1 in the sum of absolute
changes is eps-DP with independent discrete Laplace noise of a scale of at least L1/eps; one that
changes by at most D in Euclidean length is (eps, delta)-DP with the discrete Gaussian noise of
`dpreg.privacy.gaussian.discrete_sigma`. Proof: Dwork, McSherry, Nissim and Smith (2006) for the
first (P(v - d) <= exp(|d|_1 / scale) P(v)); the module of `discrete_sigma` for the second.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from dpreg.errors import ArgumentError, shown
from dpreg.privacy.balls import float_above
from dpreg.privacy.budget import ALL_ROWS, Budget
from dpreg.privacy.gaussian import discrete_sigma
from dpreg.privacy.mechanisms.additive import gaussian_noise, laplace_noise, laplace_variance
from dpreg.privacy.scales import check_eps, check_scales
from dpreg.privacy.stability import AccountError, VectorChange

if TYPE_CHECKING:
    from dpreg.privacy.account import Part

__all__ = ["VECTOR_NOISES", "VectorNoise", "fit_noise"]

VECTOR_NOISES: Final = ("laplace", "gaussian")
"""Names of the noises for a vector of integers."""

_SMALLEST: Final = 1 / 600


@dataclass(frozen=True, slots=True)
class VectorNoise:
    """Noise fitted to a vector's change: its law, scale, variance (integer units) and cost."""

    mechanism: str
    scale: float
    variance: float
    eps: Fraction
    delta: Fraction
    bound: VectorChange

    @property
    def cost(self) -> Budget:
        """What the noise costs."""
        return Budget(self.eps, self.delta)

    def draw(self, size: int, part: Part, rows: str = ALL_ROWS) -> list[int]:
        """Draw independent integers, for a part of the budget that this noise was fitted to."""
        if part.draw(self.mechanism, self.bound, rows) != self.cost:
            raise AccountError(
                f"internal error: the noise of the step {part.step!r} was fitted to another cost"
            )
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
        For an unknown mechanism, an eps that is not positive, or one so small that the noise would
        have a scale beyond 2**200.
    """
    eps, delta = cost.eps, cost.delta
    check_eps(eps)
    if mechanism == "laplace":
        wanted = bound.l1 / eps
        check_scales(wanted)
        scale = float_above(wanted)
        # Below, exp(-1/scale) is 0 in float64 and squares on the way overflow.
        variance = laplace_variance(scale) if scale > _SMALLEST else 0.0
        return VectorNoise(mechanism, scale, variance, eps, Fraction(0), bound)
    if mechanism != "gaussian":
        raise ArgumentError(f"noise must be one of {VECTOR_NOISES} or None, got {shown(mechanism)}")
    if delta <= 0:
        raise ArgumentError('noise="gaussian" needs delta above 0, such as delta=1e-6')
    sigma = discrete_sigma(bound.l2_squared, cells, eps, delta)
    return VectorNoise(mechanism, sigma, sigma**2, eps, delta, replace(bound, divisible=False))
