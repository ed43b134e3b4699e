"""Coefficients of a family from its last look, and what may be said of them.

Intervals are given where they have been seen to hold. Where rows are too few for the budget, the
fit has not come to rest, the responses are nearly separated by the columns or events are rare,
there are coefficients without errors, drawn towards what the noise leaves visible, and a sentence
that says what would be needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpreg.arrays import Floats
from dpreg.families.law import family_law
from dpreg.families.locate import Fit
from dpreg.families.looks import FamilyLooked
from dpreg.families.recount import recounted
from dpreg.staged.coefficients import coefficients
from dpreg.staged.law import LookLaw

__all__ = ["FamilyEstimate", "astray", "converged", "doubts_of", "estimate"]

_UNSEEN: Final = 0.2
"""Share of a coefficient's variance from directions that are noise, from where on it is weak."""
_RESOLVED: Final = 2.0
"""Least eigenvalue of the information over the norm of its noise: below it intervals have been seen
to miss the intercept while the fit moves."""
_HIDDEN: Final = 1.0
"""The same for a fit at rest. The released eigenvalue is part noise: where most runs fall below the
limit, those above it have errors that look too small. Below it no need is told either."""
_STILL: Final = 0.05
"""Mean square of the predictor's change at the last look up to which a fit is at rest in this."""
_AT_REST: Final = 0.25
"""Mean square of the predictor's change at the last look beyond which one step was too long."""
_AT_REST_COUNTS: Final = 0.1
"""The same for counts: the error that a long step leaves in their mean goes into the intercept."""
_STEEP: Final = 0.95
"""Part of the steepest fit that is allowed: beyond it the columns nearly separate the responses."""
_ASTRAY: Final = 3.0
"""Spread of yes/no scores over their information, from where on the fit is nowhere near the rows:
there useless terms have been seen to be chosen."""
_FAR: Final = 2.0
"""The same of the mean of a fit, over or below the released one, beside three standard deviations
of its noise."""
_FARTHER: Final = 20.0
"""The same below the released mean, however large its noise."""
_LOST: Final = 0.1
"""Part of the mean of counts that a fit may lose,"""
_SURELY: Final = 2.0
"""beside so many standard deviations of the released mean's noise."""
_RARE: Final = 0.1
"""A response whose rarer kind is less than this part of the rows is called rare."""
_EVENTS: Final = 20.0
"""Events that each coefficient needs."""


@dataclass(frozen=True, slots=True, eq=False)
class FamilyEstimate:
    """Coefficients in stored units.

    Parameters
    ----------
    params : (d,) array
        Intercept first, what the offsets add to it included.
    sampling, privacy : (d, d) arrays
        NaN where no errors are earned.
    dispersion : float
        phi, where the family reports one; else 1.
    count : float
        Released number of complete rows.
    converged : bool
        Whether the last look asked for a small step only.
    weak : tuple of int
        Places of weakly determined coefficients.
    doubts : bool
        Whether no intervals are earned.
    notes : tuple of str
    """

    params: Floats
    sampling: Floats
    privacy: Floats
    dispersion: float
    count: float
    converged: bool
    weak: tuple[int, ...]
    doubts: bool
    notes: tuple[str, ...]

    def of(self, places: Sequence[int]) -> FamilyEstimate:
        """Return a part of the coefficients, as they are beside the others."""
        at, block = list(places), np.ix_(places, places)
        return replace(
            self,
            params=self.params[at],
            sampling=self.sampling[block],
            privacy=self.privacy[block],
            weak=tuple(at.index(j) for j in self.weak if j in at),
        )

    @property
    def doubted(self) -> tuple[str, ...]:
        """Why no intervals are earned; nothing where they are."""
        return self.notes[: int(self.doubts)]


def estimate(seen: FamilyLooked, names: Sequence[str]) -> FamilyEstimate:
    """Return the coefficients of the last look's law, with what is to be said of them.

    Parameters
    ----------
    seen : FamilyLooked
    names : sequence of str
        Of the d coefficients.
    """
    last = seen.looks[-1]
    law = family_law(last, seen.plan.degrees)
    found = coefficients(law)
    weak = tuple(int(j) for j in np.flatnonzero(found.unresolved > _UNSEEN))
    doubts = doubts_of(seen, law)
    params, sampling, privacy = found.params, found.sampling, found.privacy
    notes = list(doubts)
    if doubts:
        sampling, privacy = (np.full(sampling.shape, np.nan) for _ in range(2))
        params, how = _fallback(seen, found.params)
        notes.append(f"No intervals are given. {how}")
    elif weak:
        listed = ", ".join(names[j] for j in weak)
        notes.append(
            f"Weakly determined: {listed}. The noise hides a direction in which these columns "
            "hardly vary, or vary only together."
        )
    dispersion = _scale(seen) if seen.fit.family.quasi else 1.0
    return FamilyEstimate(
        params,
        sampling,
        privacy,
        dispersion,
        law.count,
        converged(seen),
        weak,
        bool(doubts),
        tuple(notes),
    )


def _scale(seen: FamilyLooked) -> float:
    """Return the dispersion of counts, as the last look has it."""
    again = recounted(seen.looks[-1])
    return seen.fit.dispersion if again is None else again.scale


def _fallback(seen: FamilyLooked, params: Floats) -> tuple[Floats, str]:
    """Return coefficients that stand where intervals do not, and what they are."""
    fit = seen.fit
    if seen.plan.rows_hopeless <= fit.rows and not astray(seen):
        how = "The coefficients are drawn towards zero as far as the noise asks for."
        return np.append(fit.intercept, fit.slopes), how
    intercept = fit.family.predictor(fit.mean) - fit.offsets.mean
    how = "The noise is larger than what the columns can show: their coefficients are set to zero."
    return np.append(intercept, np.zeros(len(params) - 1)), how


def _resolution(law: LookLaw) -> float:
    """Return the least eigenvalue of the information over the norm of its noise."""
    return float(law.eigenvalues[0]) / law.noise_norm


def astray(seen: FamilyLooked) -> bool:
    """Return whether noise has thrown the fit off: responses cannot be as it then has them.

    The scores of a yes/no response vary by their information, if the mean is about right. The mean
    of a fit is about the one that the first look released; for rare yes/no responses it is known
    from below alone, as columns are centred where the few are.
    """
    fit, family = seen.fit, seen.fit.family
    if not family.dispersed and family.cap != 1:
        return False
    if not family.dispersed and seen.looks[-1].middle > _ASTRAY:
        return True
    noise, fitted = 3 * _mean_noise(seen), _fitted_mean(fit)
    low, high = max((fit.mean - noise) / _FAR, fit.mean / _FARTHER), _FAR * (fit.mean + noise)
    return fitted < low or (family.dispersed and fitted > high)


def _loses_mean(seen: FamilyLooked) -> bool:
    """Return whether the mean of counts is less than the first look released, beyond its noise."""
    least = seen.fit.mean - _SURELY * _mean_noise(seen)
    return (1 + _LOST) * _fitted_mean(seen.fit) < least


def _mean_noise(seen: FamilyLooked) -> float:
    """Return the standard deviation of the noise in the mean that the first look released."""
    return seen.fit.family.cap / 2 * float(seen.box_sd[0, -1]) / seen.fit.rows


def _less_rare(fitted: float, released: float, cap: float) -> float:
    """Return the mean that is farther from both ends: either may have been thrown there."""
    return fitted if min(fitted, cap - fitted) > min(released, cap - released) else released


def _fitted_mean(fit: Fit) -> float:
    return float(fit.family.moments(fit.situation().eta)[0].mean())


def converged(seen: FamilyLooked) -> bool:
    """Return whether the last look asked for a small step only."""
    most = _AT_REST_COUNTS if seen.fit.family.dispersed else _AT_REST
    return seen.looks[-1].moved <= most


def doubts_of(seen: FamilyLooked, law: LookLaw) -> list[str]:
    """Return why no intervals are earned; nothing where they are. One reason is enough."""
    plan, fit, family = seen.plan, seen.fit, seen.fit.family
    resolution = _resolution(law)
    mean = _less_rare(_fitted_mean(fit), fit.mean, family.cap)
    events = max(fit.rows * min(mean, family.cap - mean), 1.0)
    wanted = _EVENTS * plan.size
    times = min(_RESOLVED / max(resolution, 0.1), 20.0)
    if fit.rows < plan.rows_needed:
        times = max(times, plan.rows_needed / fit.rows)
        return [
            f"About {fit.rows:,.0f} complete rows are too few for {plan.size} coefficients at this "
            f"budget: intervals need about {times * fit.rows:,.0f} rows, or an eps about "
            f"{times:.1f} times as large."
        ]
    if events < wanted:
        return [
            f"The response is rare: about {events:,.0f} rows are of the rarer kind, and intervals "
            f"for {plan.size} coefficients need about {wanted:,.0f}, whatever the budget; in "
            f"rows like these that would be {fit.rows * wanted / events:,.0f}."
        ]
    if resolution < (_HIDDEN if seen.looks[-1].moved <= _STILL else _RESOLVED):
        rare = " The response is rare, which makes the noise large beside it." * (
            events < _RARE * fit.rows
        )
        need = (
            f"about {times:.1f} times as many rows ({times * fit.rows:,.0f}), or an eps about "
            f"{times:.1f} times as large"
            if resolution >= _HIDDEN
            else "several times as many rows, or an eps several times as large"
        )
        return [f"The noise hides a direction of the columns.{rare} Intervals need {need}."]
    if astray(seen):
        return [
            "The noise has thrown the fit off: it contradicts what was released of the responses. "
            "Intervals need more rows, or a larger eps."
        ]
    if family.dispersed and _loses_mean(seen):
        return [
            f"The first look released a mean count of {fit.mean:.3g}, and the fit has "
            f"{_fitted_mean(fit):.3g}: a few rows hold a large part of the counts, and were cut "
            "where most counts end. Intervals need a lower public cap, or a larger eps."
        ]
    if math.sqrt(fit.predicted_variance) > _STEEP * fit.steepest:
        return [
            "The columns nearly separate the responses: the fit is as steep as is allowed, and "
            "larger coefficients would fit as well. Intervals need a larger eps, or fewer columns."
        ]
    if not converged(seen):
        return [
            "The fit still moved at the last look, too far for intervals: they need a larger eps, "
            "more rows, or fewer columns."
        ]
    return []
