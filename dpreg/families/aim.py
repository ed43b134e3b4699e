"""Where a look at a fit is to be, how far its rows reach, and its noise: before a row is read.

Post-processing of released numbers, and of public ones alone where a call is planned.

Tested in `tests/families/test_looks.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpreg.arrays import Floats
from dpreg.families.count_clips import doubted_scatter, for_light, tried_caps
from dpreg.families.counts import CountLaw, count_law
from dpreg.families.family import Poisson
from dpreg.families.locate import Fit
from dpreg.families.location import FamilyLocation
from dpreg.families.plan import FamilyPlan
from dpreg.families.working import Clips, choose_clips, light_draws, tried_clips
from dpreg.privacy.block_noise import MIDDLE, BlocksLaplaceLook
from dpreg.privacy.look_noise import GaussianLook

__all__ = ["Aimed", "aimed"]


@dataclass(frozen=True, slots=True, eq=False)
class Aimed:
    """A look that is yet to be made.

    Attributes
    ----------
    location : FamilyLocation
    clips : Clips
    noise : GaussianLook or BlocksLaplaceLook
    units : (d + 1, d + 1) array
        What the stored cells of H, s and Q are multiplied by.
    law : CountLaw or None
        Of counts whose rows have caps of their own.
    """

    location: FamilyLocation
    clips: Clips
    noise: GaussianLook | BlocksLaplaceLook
    units: Floats
    law: CountLaw | None


def aimed(plan: FamilyPlan, fit: Fit, share: Fraction, most_trials: float = 1.0) -> Aimed:
    """Choose the clips and the noise of a look at a fit; `most_trials` as in `FamilyLocation`."""
    at, family, law = fit.situation(), fit.family, None
    tried = tried_clips(at)
    if isinstance(family, Poisson):
        scatter = max(fit.dispersion, 1.0)
        law = count_law(family, scatter, fit.mean)
        doubted = count_law(family, doubted_scatter(family, scatter), fit.mean)
        if law is not None and doubted is not None:
            tried = tried_caps(at, law, doubted)
    clips = choose_clips(
        at,
        tried,
        plan.ratio(share * (1 - MIDDLE)),
        plan.protection.neighbors == "replace-one",
        pure=not plan.gaussian,
    )
    if law is not None:
        clips = for_light(clips, fit.situation(light_draws(len(fit.slopes))), law)
    location, weight = _on_grid(fit, clips, most_trials, law), clips.weight
    if plan.gaussian:  # told in the units of stored integers
        weight *= location.residual**2 / location.information
    noise = plan.noise(share, location.limit, weight)
    units = np.full((noise.size, noise.size), location.information)
    units[-1, :] = units[:, -1] = np.sqrt(location.information) * location.residual
    units[-1, -1] = location.score**2
    return Aimed(location, clips, noise, units, law)


def _on_grid(fit: Fit, clips: Clips, most_trials: float, law: CountLaw | None) -> FamilyLocation:
    return FamilyLocation.on_grid(
        fit.family,
        whitening=fit.whitening,
        offset=-fit.whitening @ fit.center,
        slopes=np.append(fit.slopes, fit.offsets.slopes),
        intercept=fit.intercept,
        mean_weight=fit.mean_weight,
        information=clips.information,
        score=clips.score,
        most_trials=most_trials,
        excess=None if law is None else law.excess,
    )
