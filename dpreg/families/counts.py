r"""How counts vary, and what a cap takes off them on average: tables of released numbers.

A row's score may reach as far as its count does from the mean. Few counts come near the public cap,
so a look takes counts above a row's own cap C as C, and adds what that takes off on average to the
row's residual:

    e = min(y, C) - mu + x(mu, C),    x(mu, C) = E (min(Y, public cap) - C)+,

Y of Poisson's law or the negative binomial one of mean mu and variance s(mu) mu. Where that law
holds, e has the mean that it has without the cap, whatever the columns are. With the released
dispersion phi and mean m of all counts,

    s(mu) = 1 + (phi - 1) (1 + mu/m)/2,

halfway between a variance that grows with the mean and one that grows with its square. Where S is
the limit of a score, l = |(1, u)| and b = S sqrt(wbar),

    B = max(b/l, mu),    C = min(public cap, max(mu + B - MORE x(mu, mu + B), mu)),

so that |e| <= B wherever fewer than a sixth of the counts are cut; beyond, e is cut at the score's
limit. Rows with mu > b/l have a smaller weight, b/(l mu).

x(mu, C)/mu is tabulated where a look is planned, on a grid of predictors and of caps, and taken for
straight in between: in C it is, between integers. Rows read the table by single operations that
give a number the same bits wherever it stands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import betainc, gammainc, gammaincc

from dpreg.arrays import Floats
from dpreg.families.family import Poisson

__all__ = ["CountLaw", "Table", "capped", "count_law", "law_of"]

_POISSON: Final = 1.02
"""Dispersion up to which counts are taken for Poisson's."""
_WHOLE: Final = 64
"""Caps up to which counts are summed one by one; beyond, they are taken as continuous."""
_GROWTH: Final = 1.04
"""Caps beyond grow by this factor."""
_DEPTH: Final = 12
"""The table begins so far below the logarithm of the public cap, as means do."""
_PLACES: Final = 32
"""Predictors of the table per unit."""
_LEAST: Final = 3.0
"""Public caps up to which no count is cut."""
_LEAST_VARIANCE: Final = 0.01
"""Of counts as the public cap leaves them, over their mean."""
_MORE: Final = 1.25
"""MORE."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Values over a grid of predictors and caps, as a part of the mean.

    Attributes
    ----------
    low : float
        The first predictor; the others follow at 1/32 each.
    caps : (K,) array
        Ascending.
    values : (E, K) array
    """

    low: float
    caps: Floats
    values: Floats

    def __post_init__(self) -> None:
        """Make the arrays immutable."""
        self.caps.setflags(write=False)
        self.values.setflags(write=False)

    def of(self, eta: Floats, cap: Floats) -> Floats:
        """Return the values at some predictors and caps: the same bits wherever they stand."""
        places, columns = self.values.shape
        place = (eta - self.low) * float(_PLACES)
        row = np.minimum(np.maximum(np.floor(place), 0.0), places - 2.0)
        down = np.minimum(np.maximum(place - row, 0.0), 1.0)
        column = np.searchsorted(self.caps, cap, side="right") - 1
        column = np.minimum(np.maximum(column, 0), columns - 2)
        left = self.caps[column]
        along = (cap - left) / (self.caps[column + 1] - left)
        along = np.minimum(np.maximum(along, 0.0), 1.0)
        flat, at = self.values.ravel(), row.astype(np.int64) * columns + column
        above, below = flat[at], flat[at + columns]
        above = above + (flat[at + 1] - above) * along
        below = below + (flat[at + columns + 1] - below) * along
        return np.asarray(above + (below - above) * down, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class CountLaw:
    """What caps do to counts of one dispersion.

    Attributes
    ----------
    excess : Table
        x(mu, C)/mu.
    variance : Table
        Of min(Y, C), over mu; s(mu) at the public cap.
    """

    excess: Table
    variance: Table


def count_law(family: Poisson, scatter: float, usual: float) -> CountLaw | None:
    """Return the law of counts of a dispersion and a mean of all; None: nothing is cut."""
    return None if family.cap <= _LEAST else law_of(family, scatter, usual)


def law_of(family: Poisson, scatter: float, usual: float, grows: float = 0.5) -> CountLaw:
    """Return the same, cut or not; the part `grows` of the variance grows with mu^2."""
    most = family.cap
    low, caps = math.log(most) - _DEPTH, _caps(most)
    mean = np.exp(low + np.arange(_DEPTH * _PLACES + 1) / _PLACES)[:, None]
    taken, square = (np.empty((len(mean), len(caps))) for _ in range(2))
    exact = caps <= min(_WHOLE, most)
    rest = caps[~exact]
    varied = 1 + (scatter - 1) * (2 * (1 - grows) + 2 * grows * mean / usual) / 2
    shape, at = mean / varied, rest / varied
    beyond = gammaincc(shape, at)
    taken[:, ~exact] = mean * gammaincc(shape + 1, at) - rest * beyond
    second = mean * (mean + varied) * gammainc(shape + 2, at)
    square[:, ~exact] = second + rest**2 * beyond
    if exact.any():
        taken[:, exact], square[:, exact] = _summed(mean, caps[exact], varied)
    taken = np.maximum(taken, 0.0)
    variance = np.maximum(square - (mean - taken) ** 2, 0.0)
    excess = np.maximum(taken - taken[:, -1:], 0.0) / mean
    # The dispersion is that of counts as the public cap leaves them. At a cap of 10**15 nothing is
    # left of this difference; a variance is never so small, as means are at most the cap.
    variance *= varied / np.maximum(variance[:, -1:], _LEAST_VARIANCE * mean)
    return CountLaw(Table(low, caps, excess), Table(low, caps, variance))


def _caps(most: float) -> Floats:
    """Return the caps of the tables, the public one last."""
    whole = np.arange(math.floor(min(_WHOLE, most)) + 1.0)
    if most <= _WHOLE:
        return np.asarray(np.unique(np.append(whole, most)), dtype=np.float64)
    first = max(float(_WHOLE), most * math.exp(-_DEPTH - 1))
    steps = 2 + math.ceil(math.log(most / first) / math.log(_GROWTH))
    grown = np.geomspace(first, most, steps, dtype=np.float64)
    grown[-1] = most
    return grown if first > _WHOLE else np.append(whole[:-1], grown)


def _summed(mean: Floats, caps: Floats, varied: Floats) -> tuple[Floats, Floats]:
    """Return E (Y - C)+ and E min(Y, C)^2, from the chances of more than k."""
    k = np.arange(math.ceil(caps[-1]))
    if varied.max() <= _POISSON:
        above: Floats = np.asarray(gammainc(k + 1.0, mean))
    else:
        held = np.maximum(varied, _POISSON)
        above = np.asarray(betainc(k + 1.0, mean / (held - 1), 1 - 1 / held))
    ends: Floats = np.minimum(k + 1.0, caps[-1])
    kept = np.cumsum(above * (ends - k), axis=1)
    square = np.cumsum(above * (ends**2 - k**2), axis=1)
    zero = np.zeros((len(mean), 1))
    kept, square = np.hstack([zero, kept]), np.hstack([zero, square])
    places = np.searchsorted(np.append(k, caps[-1]), caps)
    return mean - kept[:, places], square[:, places]


def capped(
    excess: Table, most: float, eta: Floats, mean: Floats, reach: Floats
) -> tuple[Floats, Floats]:
    """Return rows' own caps, and what they take off on average.

    Parameters
    ----------
    excess : Table
    most : float
        The public cap.
    eta, mean : arrays
        Predictors and means of rows.
    reach : array
        B.
    """
    cap = np.minimum(mean + reach, most)
    cap -= excess.of(eta, cap) * mean * _MORE
    np.maximum(cap, mean, out=cap)
    np.minimum(cap, most, out=cap)
    # A cap that need not be lowered is the public one.
    np.copyto(cap, most, where=mean + reach >= most)
    return cap, excess.of(eta, cap) * mean
