"""A look's law as a choice among terms reads it: in the look's coordinates, one for each prior.

Tested in `tests/staged/test_law.py`.
"""

from __future__ import annotations

from dpreg.arrays import Floats
from dpreg.choice.released import Released, priors
from dpreg.staged.law import LookLaw, law
from dpreg.staged.released import NoisyLook, Tail

__all__ = ["as_released", "laws_for_choice"]


def laws_for_choice(look: NoisyLook, count: float, tail: Tail | None) -> tuple[Released, ...]:
    """Return the law of a look under each of `priors`; arguments as for `law`."""
    at = look.coordinates
    return tuple(
        as_released(law(look, count, tail, prior), at.transform, at.shift, prior)
        for prior in priors(look.size)
    )


def as_released(law: LookLaw, transform: Floats, start: Floats, prior: float) -> Released:
    """Return the law of a look at beta = start + transform theta, averaged over this prior."""
    return Released(
        start=start,
        transform=transform,
        equations=law.k @ transform,
        left=law.g - law.k @ start,
        covariance=law.covariance,
        prior=prior,
        degrees=law.degrees,
    )
