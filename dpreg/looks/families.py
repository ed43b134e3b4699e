"""Families: what a row's mean and weight are at a linear predictor, and how far it may reach.

A family is one class and one line of `FAMILIES`. With the predictor eta of a row, slope the
derivative of the mean by eta and variance that of the response at dispersion 1,

    weight w = slope^2 / variance,    factor g = slope / variance,

so that g (y - mean) v is a row's score and w v v' its information; g = 1 where the link is
canonical. Predictors are kept within public limits, beyond which the mean stays where it is. Every
number of a row is made by operations that give it the same bits wherever the row stands
(`dpreg.looks.families`).

The exponential, with the same bits for a number wherever it stands.

A library's `exp` may use one algorithm for most of an array and another for its last few entries,
or another on another machine; then a row's integers would depend on the rows beside it. Here
exp(x) is made of single additions and products of float64 arrays, which IEEE 754 rounds correctly,
each a step of its own, and of a power of two, which is exact.

    x = n ln 2 + r,  |r| <= 0.35,    exp(x) = 2^n (1 + r + r^2/2 + .. + r^13/13!),

with ln 2 as the sum of two numbers, the first of which has few enough digits for its product with n
to be exact. The relative error is below 1e-15 for |x| <= 700.

The mean of one trial, followed: where it would be steeper than a bend B it goes on in a straight
line of that slope. It never falls and its slope is at most B, so that a loss with this slope is
convex (`dpreg.looks.minimum`). Of a yes/no response it is never steeper than 1/4. For floats s and
B the float of it is off by at most `rounding` B (1 + |s|): of 1/(1 + exp(-s)), which is held
beyond the predictors' limits, by three roundings and what exp is off by, below 2**-48; of a count
by as much of B below the bend, and beyond it, where it is B (1 + s - log B), by 2**-52 B (|s| +
2 |log B| + 1), |log B| below 250.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

import numpy as np
from flint import arb

from dpreg.arrays import CELL_BITS, Floats

_INVERSE: Final = 1.4426950408889634  # by definition
_HIGH: Final = 0.6931471803691238  # precision
"""ln 2 to 32 bits: its product with an integer of up to 2**20 is exact."""
_LOW: Final = 1.9082149292705877e-10
_TERMS: Final = tuple(1 / math.factorial(k) for k in range(13, -1, -1))


def exp(x: Floats) -> Floats:
    """Return exp(x) for |x| <= 700; see the module."""
    whole = np.rint(x * _INVERSE)
    rest = x - whole * _HIGH
    rest -= whole * _LOW
    total = np.full(x.shape, _TERMS[0])
    for term in _TERMS[1:]:
        np.multiply(total, rest, out=total)
        np.add(total, term, out=total)
    return np.asarray(np.ldexp(total, whole.astype(np.int32)), dtype=np.float64)


_ROUNDING: Final = 2.0**-44  # precision

_REACH: Final = CELL_BITS * math.log(2)
"""Predictors of a yes/no response are kept within so much of 0, those of a count so much below the
logarithm of its cap: farther out a mean is less than a cell's unit from its limit."""


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """What a family says of rows: arrays of the shape of their predictors.

    Attributes
    ----------
    mean, weight : arrays
    factor : array or float
    """

    mean: Floats
    weight: Floats
    factor: Floats | float = 1.0


class Family(Protocol):
    """What looks ask of a family; public facts alone.

    Attributes
    ----------
    link : str
    ratio : str or None
        What exp of a coefficient is called.
    blind : bool
        Whether scores are limited by the farthest response there can be, not by the row's own: a
        yes/no response has two values, and a limit that saw which would move the odds of rare ones.
    dispersed : bool
        Whether the dispersion is not known.
    rounding : float
        Of the mean that is followed; see the module.
    """

    link: ClassVar[str]
    ratio: ClassVar[str | None]
    blind: ClassVar[bool]
    dispersed: ClassVar[bool]
    rounding: ClassVar[float]

    @property
    def name(self) -> str:
        """The family's name."""

    @property
    def cap(self) -> float:
        """The largest response; the least is 0, or its negative in a linear model."""

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest linear predictor."""

    def terms(self, eta: Floats) -> Terms:
        """Return mean, weight and factor of rows."""

    def predictor(self, mean: float) -> float:
        """Return the linear predictor of a mean."""

    def centre(self, mean: float, variance: float) -> float:
        """Return about the middle of normal predictors whose responses have this mean."""

    def slope(self, mean: float, explained: float) -> float:
        """Return about the mean slope where predictors explain so much of the variance."""

    def bend(self, weight: float) -> float:
        """Return the steepest that the mean of one trial is where weights are no larger."""

    def followed(self, eta: Floats, bend: float) -> Terms:
        """Return the mean of one trial, followed, and its slope as the weight."""

    def ball(self, eta: arb, bend: float) -> arb:
        """Return a ball that holds the mean, followed."""


def _bounded(eta: Floats, limits: tuple[float, float]) -> Floats:
    return np.minimum(np.maximum(eta, limits[0]), limits[1])


def _ball_within(eta: arb, low: float, high: float | arb) -> arb:
    return eta.max(arb(low)).min(arb(high))


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear model; the response in stored units, within [-1, 1]."""

    rounding: ClassVar[float] = 0.0
    link: ClassVar[str] = "identity"
    ratio: ClassVar[str | None] = None
    blind: ClassVar[bool] = False
    dispersed: ClassVar[bool] = True
    name: ClassVar[str] = "gaussian"
    cap: ClassVar[float] = 1.0
    limits: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    def terms(self, eta: Floats) -> Terms:
        """Return eta, and weights of 1."""
        return Terms(eta, np.ones_like(eta))

    def predictor(self, mean: float) -> float:
        """Return the mean."""
        return mean

    def centre(self, mean: float, variance: float) -> float:
        """Return the mean."""
        return mean

    def slope(self, mean: float, explained: float) -> float:
        """Return 1."""
        return 1.0

    def bend(self, weight: float) -> float:
        """Return 1."""
        return 1.0

    def followed(self, eta: Floats, bend: float) -> Terms:
        """Return eta, and slopes of 1."""
        return self.terms(eta)

    def ball(self, eta: arb, bend: float) -> arb:
        """Return eta."""
        return eta


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
    rounding: ClassVar[float] = _ROUNDING
    link: ClassVar[str] = "logit"
    ratio: ClassVar[str | None] = "odds ratio"
    blind: ClassVar[bool] = True
    dispersed: ClassVar[bool] = False
    name: ClassVar[str] = "binomial"
    limits: ClassVar[tuple[float, float]] = (-_REACH, _REACH)

    @property
    def cap(self) -> float:
        """The largest response of so many trials."""
        return self.trials

    def terms(self, eta: Floats) -> Terms:
        """Return trials/(1 + exp(-eta)) and its derivative."""
        small = exp(-np.abs(_bounded(eta, self.limits)))
        below = 1.0 + small
        weight = small / below / below
        return Terms(self.trials * (np.where(eta >= 0, 1.0, small) / below), self.trials * weight)

    def predictor(self, mean: float) -> float:
        """Return log(p / (1 - p)), p = mean / trials, within the limits."""
        least = 1 / (1 + math.exp(_REACH))
        held = min(max(mean / self.trials, least), 1 - least)
        return math.log(held / (1 - held))

    def centre(self, mean: float, variance: float) -> float:
        """Return the middle of normal predictors: a probit's attenuation undone."""
        return self.predictor(mean) * math.sqrt(1 + variance * math.pi / 8)  # by definition

    def slope(self, mean: float, explained: float) -> float:
        """Return the mean of p (1 - p): its value at the mean less the variance of p."""
        at = mean * (1 - mean / self.trials)
        return max(at - explained / self.trials, 0.5 * at)

    def bend(self, weight: float) -> float:
        """Return 1/4."""
        return 0.25  # by definition

    def followed(self, eta: Floats, bend: float) -> Terms:
        """Return 1/(1 + exp(-eta)) and its derivative."""
        return Binomial().terms(eta)

    def ball(self, eta: arb, bend: float) -> arb:
        """Return a ball that holds 1/(1 + exp(-eta))."""
        return 1 / (1 + (-_ball_within(eta, *self.limits)).exp())


@dataclass(frozen=True, slots=True)
class Poisson:
    """Counts up to a public cap, with the log link.

    Attributes
    ----------
    cap : float
        Larger responses count as this.
    quasi : bool
        Whether the dispersion is reported; looks always allow for one.
    """

    cap: float
    quasi: bool = False
    rounding: ClassVar[float] = _ROUNDING
    link: ClassVar[str] = "log"
    ratio: ClassVar[str | None] = "rate ratio"
    blind: ClassVar[bool] = False
    dispersed: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The family's name."""
        return "quasipoisson" if self.quasi else "poisson"

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest linear predictor."""
        top = math.log(self.cap)
        return top - _REACH, top

    def terms(self, eta: Floats) -> Terms:
        """Return exp(eta), twice."""
        mean = exp(_bounded(eta, self.limits))
        return Terms(mean, mean.copy())

    def predictor(self, mean: float) -> float:
        """Return log(mean), within the limits."""
        low, high = self.limits
        return min(max(math.log(max(mean, 1e-300)), low), high)

    def centre(self, mean: float, variance: float) -> float:
        """Return the middle of normal predictors: the mean is exp(middle + variance/2)."""
        return self.predictor(mean) - variance / 2

    def slope(self, mean: float, explained: float) -> float:
        """Return the mean."""
        return mean

    def bend(self, weight: float) -> float:
        """Return the weight, within the limits: it is the slope."""
        return min(max(weight, math.exp(self.limits[0])), self.cap)

    def followed(self, eta: Floats, bend: float) -> Terms:
        """Return exp(eta), twice, but a straight line from where it is `bend`."""
        top = math.log(bend)
        slope = exp(_bounded(eta, (self.limits[0], top)))
        return Terms(slope + bend * np.maximum(eta - top, 0.0), slope)

    def ball(self, eta: arb, bend: float) -> arb:
        """Return a ball that holds exp(eta), but a straight line from where it is `bend`."""
        top = arb(bend).log()
        return _ball_within(eta, self.limits[0], top).exp() + bend * (eta - top).max(arb(0))


FAMILIES: Final = ("binomial", "poisson", "quasipoisson")
"""Names of those of generalised linear models."""


def family_of(name: str, cap: float) -> Family:
    """Return a generalised linear model's family by its name; `cap` is the largest count."""
    if name == "binomial":
        return Binomial()
    return Poisson(cap, quasi=name == "quasipoisson")
