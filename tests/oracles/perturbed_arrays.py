"""SSP and AdaSSP on arrays that are already scaled, without a call around them."""

from typing import Any

from dpreg.estimation.constants import privacy_of_constants
from dpreg.estimation.perturbed import PerturbedFit, fit_sums, sums_of, to_ball
from dpreg.moments import accumulate


def exact_sums(x: Any, y: Any) -> Any:
    """X'X and X'y of the rows as they are summed, in units of 2**-40."""
    ball = to_ball(x, y)
    return sums_of(accumulate([ball], ball.shape[1]))


def _fitted(method: str, x: Any, y: Any, noise: str, rng: Any, claim: Any) -> PerturbedFit:
    privacy = privacy_of_constants(method, noise, **claim)
    return fit_sums(exact_sums(x, y), privacy, rng)


def ssp(x: Any, y: Any, *, noise: str = "analytic", rng: Any = None, **claim: Any) -> PerturbedFit:
    return _fitted("ssp", x, y, noise, rng, claim)


def adassp(
    x: Any, y: Any, *, noise: str = "analytic", rng: Any = None, **claim: Any
) -> PerturbedFit:
    return _fitted("adassp", x, y, noise, rng, claim)
