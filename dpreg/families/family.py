"""Families: what a row's mean and weight are at a linear predictor, and how far it may reach.

A family has its canonical link, so that the derivative of the mean by the predictor is the variance
at dispersion 1: e = y - mu(eta) moves the score, w = mu'(eta) the information. The predictor is
kept within public limits, beyond which the mean stays where it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

import numpy as np

from dpreg.arrays import Floats
from dpreg.families.exact_exp import exp

__all__ = ["Binomial", "Family", "Poisson"]

_REACH: Final = 12.0
"""Predictors of a yes/no response are kept within +-12: a probability of 6e-6."""
_DEPTH: Final = 12.0
"""Those of a count within 12 below the logarithm of its cap."""


class Family(Protocol):
    """What looks ask of a family; public facts alone."""

    link: ClassVar[str]
    dispersed: ClassVar[bool]
    steep: ClassVar[float]

    @property
    def name(self) -> str:
        """The family's name."""

    @property
    def quasi(self) -> bool:
        """Whether the dispersion is reported."""

    @property
    def cap(self) -> float:
        """The largest response; the least is 0."""

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest linear predictor."""

    def moments(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return the mean and the weight; the same bits for a number wherever it stands."""

    def predictor(self, mean: float) -> float:
        """Return the linear predictor of a mean."""

    def centre(self, mean: float, variance: float) -> float:
        """Return about the middle of normal predictors whose responses have this mean."""


def _bounded(eta: Floats, limits: tuple[float, float]) -> Floats:
    return np.minimum(np.maximum(eta, limits[0]), limits[1])


@dataclass(frozen=True, slots=True)
class Binomial:
    """Yes or no, or successes of several trials, with the logit link.

    Attributes
    ----------
    trials : float
        The usual number of trials of a row. Means and weights are of so many; a row with others
        has them in proportion.
    """

    trials: float = 1.0

    link: ClassVar[str] = "logit"
    dispersed: ClassVar[bool] = False
    steep: ClassVar[float] = 6.0

    @property
    def name(self) -> str:
        """The family's name."""
        return "binomial"

    @property
    def quasi(self) -> bool:
        """Whether the dispersion is reported."""
        return False

    @property
    def cap(self) -> float:
        """The largest response of so many trials."""
        return self.trials

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest linear predictor."""
        return -_REACH, _REACH

    def moments(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return trials/(1 + exp(-eta)) and its derivative."""
        held = _bounded(eta, self.limits)
        small = exp(-np.abs(held))
        below = 1.0 + small
        weight = small / below / below
        return self.trials * (np.where(held >= 0, 1.0, small) / below), self.trials * weight

    def predictor(self, mean: float) -> float:
        """Return log(p / (1 - p)), p = mean / trials, within the limits."""
        held = min(max(mean / self.trials, 1e-5), 1 - 1e-5)
        return math.log(held / (1 - held))

    def centre(self, mean: float, variance: float) -> float:
        """Return the middle of normal predictors: a probit's attenuation undone."""
        return self.predictor(mean) * math.sqrt(1 + variance * math.pi / 8)


@dataclass(frozen=True, slots=True)
class Poisson:
    """Counts up to a public cap, with the log link.

    Attributes
    ----------
    cap : float
        Larger responses count as this.
    quasi : bool
        Whether the dispersion is reported. Looks always allow for one; here its law is not stated,
        and caps are wider.
    """

    cap: float
    quasi: bool = False
    link: ClassVar[str] = "log"
    dispersed: ClassVar[bool] = True
    steep: ClassVar[float] = 2.5

    @property
    def name(self) -> str:
        """The family's name."""
        return "quasipoisson" if self.quasi else "poisson"

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest linear predictor."""
        top = math.log(self.cap)
        return top - _DEPTH, top

    def moments(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return exp(eta), twice."""
        mean = exp(_bounded(eta, self.limits))
        return mean, mean.copy()

    def predictor(self, mean: float) -> float:
        """Return log(mean), within the limits."""
        low, high = self.limits
        return min(max(math.log(max(mean, 1e-300)), low), high)

    def centre(self, mean: float, variance: float) -> float:
        """Return the middle of normal predictors: the mean is exp(middle + variance/2)."""
        return self.predictor(mean) - variance / 2
