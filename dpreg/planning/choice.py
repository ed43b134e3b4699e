r"""The chance that a choice by looks finds effects of given sizes, in closed form. No data.

The looks of a call are made of assumed rows, `DRAWS` times, each with noise of its own but for the
last (`dpreg.looks.expected`): that gives the laws that terms will be chosen from, with nothing but
the effects in them. What a term gains there is what its test statistic is noncentral by
(`dpreg.choice.evidence`); the test is at alpha_f / q, and has to pass under each prior. Terms are
taken as independent of each other: the chance of all of them is the product.

Tested in `tests/planning/test_adaptive_plan.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import ndtri

from dpreg.arrays import Floats
from dpreg.choice import Evidence
from dpreg.choice.evidence import chance, reach
from dpreg.choice.rule import clusters, share_of_found
from dpreg.looks.expected import Expected, without_noise
from dpreg.looks.loop import Seen, laws_for_choice
from dpreg.planning.detection import Detection
from dpreg.planning.rows import Rows

__all__ = ["DRAWS", "Gains", "gains", "reported"]

DRAWS: Final = 5
"""Times that looks are made: where the last one is taken moves a chance by a few hundredths."""
_LEAST: Final = 1e-9  # precision


@dataclass(frozen=True, slots=True, eq=False)
class Gains:
    """What terms with an effect gain, by predicted laws.

    Attributes
    ----------
    looks : tuple of tuples of Evidence
        Of each draw, by prior.
    strengths : (draws, priors, k) array
        Gains of the k terms without noise.
    widths : tuple of int
        Their columns.
    level : float
        Of each test.
    useless : float
        The expected number of terms without an effect that are found, at most.
    """

    looks: tuple[tuple[Evidence, ...], ...]
    strengths: Floats
    widths: tuple[int, ...]
    level: float
    useless: float

    @property
    def strength(self) -> Floats:
        """The least gain of each term, (k,), in the mean."""
        return np.asarray(self.strengths.min(axis=1).mean(axis=0))

    @property
    def reach(self) -> Floats:
        """What each has to gain, (k,)."""
        return np.array([reach(self.looks[0][0], width, self.level) for width in self.widths])

    def rows_for(self, wanted: float) -> float:
        """Return by how much rows must grow for every effect to be found with about this chance.

        A rule of thumb: gain >= (root(reach) + z)^2, z the normal quantile of the chance of one of
        them. Gains grow with the rows, and where noise matters faster.
        """
        z = float(ndtri(wanted ** (1 / len(self.widths))))
        least = (np.sqrt(self.reach) + max(z, 0.0)) ** 2
        return float((least / np.maximum(self.strength, _LEAST)).max())


def gains(
    taken: Sequence[tuple[Expected, Seen]],
    rows: Rows,
    units: tuple[tuple[int, ...], ...],
    effects: int,
    false_inclusions: float,
) -> Gains:
    """Return what terms gain.

    Parameters
    ----------
    taken : sequence of (Expected, Seen)
        Looks at the rows.
    rows : Rows
        Made with effects. Where their columns vary by another ratio than was stated, gains do by
        its square.
    units : tuple of tuples of int
        The columns of each term on offer, from 1; those with an effect first.
    effects : int
        How many of them have one.
    false_inclusions : float
    """
    assert rows.beta is not None
    looks = tuple(
        tuple(Evidence(law) for law in laws_for_choice(without_noise(one, seen, rows.beta)))
        for one, seen in taken
    )
    with_effect = units[:effects]
    varied = [float(np.mean(rows.ratios[[j - 1 for j in unit]] ** -2)) for unit in with_effect]
    level = false_inclusions * share_of_found(clusters(looks[0][0].likeness(units))) / len(units)
    return Gains(
        looks=looks,
        strengths=np.array(
            [[[look.gain(unit) for unit in with_effect] for look in laws] for laws in looks]
        )
        * varied,
        widths=tuple(len(unit) for unit in with_effect),
        level=level,
        useless=level * (len(units) - effects),
    )


def reported(found: Gains) -> Detection:
    """Predict what a choice finds."""
    each = np.array(
        [
            [
                min(
                    chance(look, float(own[k]), width, found.level)
                    for look, own in zip(laws, strengths, strict=True)
                )
                for k, width in enumerate(found.widths)
            ]
            for laws, strengths in zip(found.looks, found.strengths, strict=True)
        ]
    ).mean(axis=0)
    every = float(np.prod(each))
    return Detection(each, every, every * math.exp(-found.useless), found.useless)
