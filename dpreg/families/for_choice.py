"""The law of a look at a family as a choice among terms reads it, one for each prior.

Tested in `tests/families/test_looks.py`.
"""

from __future__ import annotations

from dpreg.choice.released import Released, priors
from dpreg.families.law import family_law
from dpreg.families.looks import FamilyLook
from dpreg.staged.for_choice import as_released

__all__ = ["family_laws"]


def family_laws(look: FamilyLook, degrees: int | None) -> tuple[Released, ...]:
    """Return the law of a look under each of `priors`; arguments as for `family_law`."""
    at = look.location
    return tuple(
        as_released(family_law(look, degrees, prior), at.transform, at.shift, prior)
        for prior in priors(len(look.cells) - 1)
    )
