"""Selections by looks, simulated on the curator's own rows: what a choice by looks would report.

No closed form gives the law of several looks at given rows, so they are made again and again, with
seeded noise of the very law of a private call. All that leaves this room is curator-only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpreg.arrays import Bools, Floats
from dpreg.choice import choose
from dpreg.formula.design import Design
from dpreg.looks.described import Described
from dpreg.looks.families import Linear
from dpreg.looks.loop import laws_for_choice, look
from dpreg.looks.plan import LookPlan
from dpreg.looks.table import Table
from dpreg.moments import read_moments
from dpreg.privacy.account import Account
from dpreg.request import SelectionRequest
from dpreg.running import bar
from dpreg.selection.space import Space
from dpreg.sources.reader import Reader
from dpreg.study.bic import bic_units, rsquared

__all__ = ["AdaptiveLaw", "Drawn", "simulate_choices"]


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """What the draws under one setting gave; K draws over q terms on offer.

    Attributes
    ----------
    reported : bool array, shape (K, q)
        Terms found.
    best : bool array, shape (K, q)
        Terms of the model that is fitted.
    grouped : bool array, shape (K, q)
        Terms of a group that the look cannot tell apart.
    rsquared : float array, shape (K,)
        Of that model's least squares fit.
    """

    reported: Bools
    best: Bools
    grouped: Bools
    rsquared: Floats


@dataclass(frozen=True, slots=True, eq=False)
class AdaptiveLaw:
    """All settings, and the choice that needs no privacy.

    Attributes
    ----------
    drawn : tuple of Drawn
        One a setting.
    bic : bool array, shape (q,)
        The terms that least squares with BIC chooses.
    bic_rsquared : float
    rows : int
        Rows read, complete or not.
    """

    drawn: tuple[Drawn, ...]
    bic: Bools
    bic_rsquared: float
    rows: int


def simulate_choices(
    settings: Sequence[tuple[SelectionRequest, LookPlan]],
    design: Design,
    space: Space,
    reader: Reader,
    *,
    draws: int,
    seed: int,
    progress: bool,
) -> AdaptiveLaw:
    """Make the looks `draws` times under each setting, and choose from each.

    Parameters
    ----------
    settings : sequence of (SelectionRequest, LookPlan)
        They share formula and space.
    design : Design
    space : Space
    reader : Reader
        Of rows that can be read again: three or four passes a draw.
    draws, seed : int
    progress : bool
        Whether to show a bar over the draws.
    """
    (moments,) = read_moments(reader, design)
    bic = bic_units(space, design, moments)
    drawing = bar(total=len(settings) * draws, unit=" draws", shown=progress)
    drawn = []
    for place, (request, plan) in enumerate(settings):
        rng = np.random.default_rng([seed, place])
        reported, best, grouped = (np.zeros((draws, len(space.units)), np.bool_) for _ in range(3))
        for k in range(draws):
            own = _choose(request, plan, design, space, reader, rng)
            for table, units in zip((reported, best, grouped), own, strict=True):
                table[k, list(units)] = True
            drawing.update()
        models, back = np.unique(best, axis=0, return_inverse=True)
        fits = rsquared(space.columns(models), design, moments)
        drawn.append(Drawn(reported, best, grouped, fits[back.ravel()]))
    drawing.close()
    fit = float(rsquared(space.columns(bic[None]), design, moments)[0])
    return AdaptiveLaw(tuple(drawn), bic, fit, moments.rows)


def _choose(
    request: SelectionRequest,
    plan: LookPlan,
    design: Design,
    space: Space,
    reader: Reader,
    rng: np.random.Generator,
) -> tuple[tuple[int, ...], ...]:
    """Look once with seeded noise; return the terms found, those fitted, and those of groups."""
    account = Account(request.protection, request.budget, rng)
    opened = plan.open(account)
    account.charge(None, "a study")
    described = Described(tuple(range(1, len(design.columns))), levels=design.levels)
    seen = look(Table(reader, design, described, opened), Linear())
    alpha = float(request.false_inclusions)
    choice = choose(laws_for_choice(seen), space, false_inclusions=alpha)
    return choice.found, choice.model, tuple(unit for group in choice.groups for unit in group)
