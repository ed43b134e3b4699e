r"""After a look at counts: how they vary as that look itself has it, and what this mends.

A look adds back what caps take off counts by the law of the dispersion that the looks before it
released (`dpreg.families.counts`). These may have it wrong: of counts with twice Poisson's variance
a third of the excess was seen, as it was told from what their caps had left. What the look itself
released tells more, without another draw. With omega, the caps C and (1, u) of that look, and rows
of the working law that are

1. moved to where the released information has them: its first cell and its trace give what is to be
   added to the predictor, and by how much u is to be stretched,

the dispersion phi is

2. that at which the law of counts has the released size of scores,

       Q = E omega^2 |(1, u)|^2 (v(phi, C) + delta^2 m'^2) / wbar,

   v being the variance of min(Y, C), m' the slope of its mean, and delta^2 the mean square by which
   the look still moves the predictor; and the scores gain

3. n E omega (x(1) + PART (x(phi) - x(1)) - x(before)) (1, u) / sqrt(wbar), x being what caps take
   off on average: the law's tail is among the heavier ones.

What 3 may get wrong: the dispersion, by the noise of Q and by FORM of Q; how the variance grows, as
if it grew with the square of the mean alone; and the law, by CAUTION of
what is added back, and by BEYOND of what is added back beyond Poisson's law. Of two counts with the
same variance one may have many zeros and a light tail, the other few large values. The constants
were set on simulated counts of five such laws.

All of it is post-processing of released numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.families.counts import CountLaw, law_of
from dpreg.families.family import Poisson
from dpreg.families.locate import LEAST_DISPERSION, Fit
from dpreg.families.looks import FamilyLook
from dpreg.families.weighted import WorkingRows, weighted_rows
from dpreg.families.working import light_draws

__all__ = ["Recounted", "moved_rows", "recounted"]

_NEAR: Final = 0.05
"""Steps of slopes that are told from differences."""
_FORM: Final = 0.05
"""FORM."""
_CAUTION: Final = (0.05, 0.3)
"""CAUTION; the second where the caller states no law."""
_BEYOND: Final = 0.35
"""BEYOND."""
_PART: Final = 0.8
"""PART."""
_TRIED: Final = 4
"""Laws that are tried for phi, beside the look's own."""
_FASTEST: Final = 4.0
"""By how much phi may grow or fall from one to the next."""
_LEAST_STEP: Final = 0.01
_LEAST_RISE: Final = 0.1
"""Of the size of scores, relative, for a relative step of phi."""
_LEAST_SLOPE: Final = 0.3
_FAR: Final = 0.2
"""How far another dispersion is, relative, that stands for those near phi."""
_TINY: Final = 1e-12
_ROUNDS: Final = 3
_USUAL: Final = np.array([0.3, 0.15])
"""What is expected of moves: in the predictor, and in the logarithm of u's stretch."""
_MOST: Final = np.array([1.0, 0.4])
_SURE: Final = 0.01
"""Relative error of the working law's information, however small the noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Recounted:
    """What a look at counts says of them.

    Attributes
    ----------
    rows : WorkingRows
        Of the working law, moved; means and variances are those of `dispersion`.
    dispersion : float
        phi, at least 1.
    scale : float
        The same, and less than 1 where counts vary less than Poisson's.
    slope : float
        As in `dpreg.families.working.Clips`.
    scores : (d,) array
        What the look's scores gain.
    wrong : (d, 4) array
        What they may still get wrong, each column independently.
    """

    rows: WorkingRows
    dispersion: float
    scale: float
    slope: float
    scores: Floats
    wrong: Floats


def moved_rows(look: FamilyLook) -> WorkingRows:
    """Return rows of the working law, moved to where the released information has them."""
    fit, size = look.fit, len(look.cells) - 1
    sample, scale = light_draws(size - 1), look.location.mean_weight / fit.rows
    diagonal, noise = (np.diag(block)[:size] * scale for block in (look.cells, look.noise_sd))
    told = np.array([diagonal[0], diagonal.sum()])
    error = np.array([noise[0], math.sqrt(float((noise**2).sum()))])
    error = np.hypot(error, _SURE * np.abs(told)) + 1e-300

    def at(move: Floats) -> tuple[WorkingRows, Floats]:
        moved = float(move[0]), math.exp(float(move[1]))
        rows = weighted_rows(fit, look.location, look.law, sample, moved)
        weight = rows.omega * rows.weight
        return rows, np.array([weight.mean(), (weight * rows.lengths).mean()])

    move = np.zeros(2)
    rows, found = at(move)
    steps = _NEAR * np.eye(2)
    slope = np.column_stack([(at(step)[1] - found) / _NEAR for step in steps]) / error[:, None]
    inner = slope.T @ slope + np.diag(1 / _USUAL**2)
    for _ in range(_ROUNDS):
        toward = slope.T @ ((told - found) / error) - move / _USUAL**2
        move = np.clip(move + np.linalg.solve(inner, toward), -_MOST, _MOST)
        rows, found = at(move)
    return rows


def recounted(look: FamilyLook) -> Recounted | None:
    """Return what a look at counts says of them; None where no row has a cap of its own."""
    if look.law is None:
        return None
    rows, fit = moved_rows(look), look.fit
    if rows.caps is None:
        return None
    size = len(look.cells) - 1
    trace = max(float(np.trace(look.cells[:size, :size])), 1e-300)
    counted = _Counted(rows, rows.caps, look.moved)
    phi, law, rise, scale = _dispersion(counted, look, look.law)
    error = math.hypot(float(look.noise_sd[size, size]) / trace, _FORM * look.middle) / rise
    error = min(error, _most(fit))  # behind the noise the trace may be nothing
    others = _law(fit, (1 + _FAR) * phi), _law(fit, 1.0), _law(fit, phi, grows=1.0)
    before, taken, more, plain, grown = map(counted.taken, (look.law, law, *others))
    doubts = (
        (more - taken) * (error / (_FAR * phi)),
        grown - taken,
        taken * _CAUTION[fit.family.quasi],
        (taken - plain) * _BEYOND,
    )
    taken = plain + _PART * (taken - plain)
    per_row = fit.rows / math.sqrt(look.location.mean_weight)
    return Recounted(
        rows=counted.under(law, phi),
        dispersion=phi,
        scale=scale,
        slope=counted.slope(law),
        scores=(taken - before) * per_row,
        wrong=np.column_stack(doubts) * per_row,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Counted:
    """Rows of counts with caps, and the mean square by which their predictors are still to move."""

    rows: WorkingRows
    caps: Floats
    moved: float

    def size(self, law: CountLaw) -> float:
        """Return the size of scores over the information."""
        rows, mean = self.rows, self.rows.weight
        varied = law.variance.of(rows.eta, self.caps) * mean + self.moved * self._slopes(law) ** 2
        size = float((rows.omega**2 * rows.lengths * varied).mean()) / self._information
        return max(size, _TINY)

    def slope(self, law: CountLaw) -> float:
        """Return the mean change of scores by the fit, over the information."""
        rows = self.rows
        found = float((rows.omega * rows.lengths * self._slopes(law)).mean()) / self._information
        return max(found, _LEAST_SLOPE)

    def taken(self, law: CountLaw) -> Floats:
        """Return what is added back to a score, (d,), per row."""
        rows = self.rows
        each = rows.omega * law.excess.of(rows.eta, self.caps) * rows.weight
        return np.asarray(each @ rows.rows / len(each))

    def under(self, law: CountLaw, phi: float) -> WorkingRows:
        """Return the rows with the means and variances of a law."""
        rows = self.rows
        variance = law.variance.of(rows.eta, self.caps) * rows.weight / phi
        return replace(rows, variance=variance, location=replace(rows.location, excess=law.excess))

    @property
    def _information(self) -> float:
        return max(float((self.rows.omega * self.rows.weight * self.rows.lengths).mean()), 1e-300)

    def _slopes(self, law: CountLaw) -> Floats:
        above, below = (self._mean(law, step) for step in (_NEAR, -_NEAR))
        return (above - below) / (2 * _NEAR)

    def _mean(self, law: CountLaw, step: float) -> Floats:
        eta = self.rows.eta + step
        mean = self.rows.fit.family.moments(eta)[0]
        return np.asarray(mean - law.excess.of(eta, self.caps) * mean)


def _dispersion(
    counted: _Counted, look: FamilyLook, law: CountLaw
) -> tuple[float, CountLaw, float, float]:
    """Return phi, its law, by how much the size of scores grows with phi, and the scale."""
    fit, phi = look.fit, max(look.fit.dispersion, 1.0)
    found = counted.size(law)
    rise = found / phi
    for _ in range(_TRIED):
        wanted = phi + (look.middle - found) / rise
        wanted = min(max(wanted, phi / _FASTEST, 1.0), _FASTEST * phi, _most(fit))
        step = wanted - phi
        if abs(step) < _LEAST_STEP * phi:
            break
        law = _law(fit, wanted)
        now = counted.size(law)
        rise = max((now - found) / step, _LEAST_RISE * now / wanted)
        phi, found = wanted, now
    scale = min(max(phi * look.middle / found, LEAST_DISPERSION), fit.family.cap)
    return phi, law, rise, scale


def _most(fit: Fit) -> float:
    """Return the most that phi can be: counts up to a cap vary by no more."""
    return max(fit.family.cap, 1.0)


def _law(fit: Fit, phi: float, grows: float = 0.5) -> CountLaw:
    return law_of(Poisson(fit.family.cap), min(phi, fit.family.cap), fit.mean, grows)
