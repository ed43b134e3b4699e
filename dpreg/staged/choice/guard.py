r"""Which chosen terms the release can tell from what might stand in for them.

A term without an effect is chosen where it stands for terms that have one. The true model T lacks
it and holds these; beside T it gains what chance gives it, as much as its price with probability
alpha/q (`dpreg.staged.choice.prices`). A *stand-in* of a chosen term k is therefore a model without
k that holds something the chosen model lacks, and *beside which k gains less than its price*. A
model that swaps k for another term of about its size is none if k gains as much beside that one:
it is no other reason for what k explains. Smaller models are none either: their odds are what the
price of k has settled. Two rules keep k from being reported, with the margin 2 ln(1/alpha), odds of
1/alpha:

1. the cheapest stand-in fits less than the margin worse than the chosen model, once both pay no
   more than the chosen one does. One useless term may stand for several real ones; that it is the
   cheaper way to say the same is no evidence for it. Stand-ins are looked for among the models
   without k that cost up to six margins more than the best of these, three with more than eleven
   units;
2. at a quarter of all prices, about AIC's, the best model without k costs less than the margin more
   than the best one with k, and holds something that this one and the chosen one lack. The true
   model may have many weak terms: at full prices it is far from the best, and still a better reason
   for what is seen than a few useless terms between them.

Where the noise hides most directions (`Problem.silent`), no term is reported at all.

What follows: where T is the cheapest stand-in, if it is one, and fits that well, a useless k is
reported with probability alpha/q at most, so that such terms add up to alpha at most. How often
another model is cheaper, or T too dear to be looked at, is not proved but tried: `docs/found.md`,
*Stand-ins*, says on what, and where it fails.

The quarter was chosen on drawn rows, 30 runs each. In a chain of 20 columns, each correlated by .9
with the next and every other one with an effect (10,000 rows, eps = 1, delta = 1e-6), an earlier
first rule alone reported .17 useless terms and 3.13 of 10 true ones; with the second at half of the
prices .07 and 2.97, with a quarter .03 and 2.87. In equicorrelated columns (.5 and .9) that rule
cost at most .03 of 5 true terms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import Final

import numpy as np

from dpreg.staged.choice.certify import EXACT_UNITS, Listing, near_best, usual_nodes
from dpreg.staged.choice.problem import Model, Problem, Response
from dpreg.staged.choice.search import search
from dpreg.staged.choice.sweeps import Fit

__all__ = [
    "LENIENT",
    "Alternative",
    "Verdict",
    "best_of_both",
    "guard_margin",
    "is_needed",
    "judge",
    "lenient",
    "reach_of",
]

LENIENT: Final = 0.25
"""Share of the prices at which the second rule compares."""
_REACH: Final = (6, 3)
"""How many margins above the best model without a term its stand-ins are looked for; the second
with more than `_FEW` units, where listing them takes too long. The true model of many weak terms is
dear beside one that holds a second column of their sum: with eight terms and two such columns six
margins report .07 useless terms a draw where three report .34 (`docs/found.md`, *Stand-ins*)."""
_FEW: Final = 11
"""Spaces of so many units are used whole where intervals allow for the choice."""
_PARTS: Final = 10
"""With many units a listing of stand-ins has this part of the usual nodes."""
_SHOWN: Final = 5
"""The most stand-ins that are listed for one term."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A chosen term that something else might stand for.

    Attributes
    ----------
    unit : int
        The chosen term.
    instead : tuple of models
        What would come in for it, the nearest first, at most five.
    gap : float
        By how much the nearest costs more, its own surplus of terms not counted.
    """

    unit: int
    instead: tuple[Model, ...]
    gap: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The best model, and which of its terms are beyond doubt.

    Attributes
    ----------
    model, reported : sets of units
    alternatives : tuple of Alternative
        One for each unit of the model that is not reported; none where the problem is silent.
    criterion : float
    certified : bool
        Whether it is proved that no model is better. Up to `EXACT_UNITS` units it always is, and no
        stand-in is missed.
    """

    model: Model
    reported: Model
    alternatives: tuple[Alternative, ...]
    criterion: float
    certified: bool


def guard_margin(false_inclusions: float) -> float:
    """Return 2 ln(1/alpha), at least 0."""
    return max(0.0, -2.0 * log(false_inclusions))


def reach_of(problem: Problem) -> int:
    """Return how many margins above the best model without a unit its stand-ins are looked for."""
    return _REACH[problem.size > _FEW]


def judge(
    problem: Problem,
    margin: float,
    response: Response | None = None,
    *,
    start: Model | None = None,
    nodes: int | None = None,
) -> Verdict:
    """Choose the best model and apply the guard to it.

    Parameters
    ----------
    problem : Problem
    margin : float
        See `guard_margin`.
    response : Response, optional
        Another left-hand side than the released one.
    start : model, optional
        A good model, if one is known.
    nodes : int, optional
        As in `near_best`.
    """
    response = problem.response if response is None else response
    listing = near_best(problem, response, start=start, nodes=nodes)
    if not listing.complete:
        listing = _look_further(problem, response, listing)
    model = listing.best
    alternatives = []
    for unit in sorted(model) if not problem.silent else ():
        if is_needed(problem, response, unit, listing.criterion + margin):
            continue
        rivals = _stand_ins(problem, response, listing, unit, margin, nodes)
        rivals = rivals or _lenient_way(problem, response, model, unit, margin)
        if rivals:
            instead = tuple(dict.fromkeys(rival - model for rival, _ in rivals))
            alternatives.append(Alternative(unit, instead, rivals[0][1]))
    return Verdict(
        model=model,
        reported=frozenset() if problem.silent else model - {a.unit for a in alternatives},
        alternatives=tuple(alternatives),
        criterion=listing.criterion,
        certified=listing.complete,
    )


def is_needed(problem: Problem, response: Response, unit: int, most: float) -> bool:
    """Whether even all other units together fit worse than a rival may, prices apart.

    What a rival fits worse by than is allowed is at least its deviance less `most` (prices are not
    negative), and its deviance at least that of all other units.
    """
    others = frozenset(range(problem.size)) - {unit}
    slack = 1e-7 * max(1.0, 1e-3 * abs(response.total))
    return problem.deviance(others, response) > most + slack


def _stand_ins(
    problem: Problem,
    response: Response,
    chosen: Listing,
    unit: int,
    margin: float,
    nodes: int | None,
) -> list[tuple[Model, float]]:
    """Return the stand-ins of a unit that the first rule finds, or none.

    The cheapest is looked for step by step. With more than `EXACT_UNITS` units a listing may give
    up, the sooner as there is one for each unit; then walks take its place.
    """
    if nodes is None and problem.size > EXACT_UNITS:
        nodes = usual_nodes(problem) // _PARTS
    known = {m: v for m, v in chosen.models if unit not in m}
    for step in range(1, reach_of(problem) + 1):
        without = near_best(
            problem, response, margin=step * margin, nodes=nodes, forbidden=frozenset({unit})
        )
        known |= without.models
        if not known:  # the space has no model without the unit
            return []
        if not without.complete:
            known |= _walked(problem, response, chosen.best, unit) if chosen.complete else {}
            known |= _grown(problem, response, min(known, key=lambda m: known[m]), unit)
        found = _standing(problem, response, chosen, unit, known, margin)
        if found or not without.complete:
            return found
    return []


def _standing(
    problem: Problem,
    response: Response,
    chosen: Listing,
    unit: int,
    known: dict[Model, float],
    margin: float,
) -> list[tuple[Model, float]]:
    """Return the stand-ins among some models within the margin, if the cheapest of them is."""
    paid, top = problem.price(chosen.best), min(known.values()) + reach_of(problem) * margin
    near = [m for m, value in known.items() if value <= top and not m <= chosen.best]
    spent = np.array([problem.price(m) for m in near])
    costs = np.array([known[m] for m in near])
    gains = costs - spent - problem.deviances([m | {unit} for m in near], response)
    gaps = costs - np.maximum(0.0, spent - paid) - chosen.criterion
    stands = [i for i in range(len(near)) if gains[i] < problem.prices[unit]]
    stands.sort(key=lambda i: (costs[i], sorted(near[i])))
    if not stands or gaps[stands[0]] >= margin:
        return []
    return [(near[i], max(float(gaps[i]), 0.0)) for i in stands if gaps[i] < margin][:_SHOWN]


def lenient(problem: Problem) -> Problem:
    """Return the problem at a quarter of its prices."""
    return replace(problem, prices=LENIENT * problem.prices)


def best_of_both(
    cheap: Problem, response: Response, model: Model, unit: int
) -> tuple[Model, Model]:
    """Return the best models with and without a unit of the chosen model.

    Up to `EXACT_UNITS` units they are certain. With more they are the best that walks find.
    """
    empty, own = frozenset[int](), frozenset({unit})
    with_unit = search(cheap, response, starts=(model, empty), forced=own)
    rival = search(cheap, response, starts=(model - own, empty), forbidden=own)
    if cheap.size <= EXACT_UNITS:
        with_unit = near_best(cheap, response, start=with_unit, forced=own).best
        listing = near_best(cheap, response, start=rival, forbidden=own)
        rival = listing.best if listing.models else rival  # none: no model is without the unit
    return with_unit, rival


def _lenient_way(
    problem: Problem, response: Response, model: Model, unit: int, margin: float
) -> list[tuple[Model, float]]:
    """Return the best model without a unit, if at low prices it is hardly worse than that with."""
    cheap = lenient(problem)
    with_unit, rival = best_of_both(cheap, response, model, unit)
    if rival <= with_unit or rival <= model or not problem.allows(rival) or unit in rival:
        return []
    gap = cheap.criterion(rival, response) - cheap.criterion(with_unit, response)
    return [(rival, max(gap, 0.0))] if gap < margin else []


def _walked(problem: Problem, response: Response, best: Model, unit: int) -> dict[Model, float]:
    """Return what a search finds without a unit of the best model, and with each other one in."""
    outside, rest = frozenset(range(problem.size)) - best, best - {unit}
    ways = [(frozenset[int](), rest)] + [(frozenset({u}), rest | {u}) for u in outside]
    found = {}
    for forced, start in ways:
        rival = search(
            problem, response, starts=(start,), forbidden=frozenset({unit}), forced=forced
        )
        if problem.allows(rival):
            found[rival] = problem.criterion(rival, response)
    return found


def _grown(problem: Problem, response: Response, start: Model, unit: int) -> dict[Model, float]:
    """Return models that grow from one until they are stand-ins of a unit.

    Each step adds the unit that takes most of what the other one gains: with g the gains beside a
    model, and h those beside it and the unit, the largest g - h.
    """
    found: dict[Model, float] = {}
    fit = Fit(problem, response, start)
    while True:
        both = fit.toggled(unit)
        if fit.deviance - both.deviance < problem.prices[unit]:
            return found
        taken = np.where(both.inside, -np.inf, fit.gains() - both.gains())
        if taken.max() <= 0:
            return found
        fit = fit.toggled(int(taken.argmax()))
        if problem.allows(fit.model):
            found[fit.model] = fit.criterion


def _look_further(problem: Problem, response: Response, listing: Listing) -> Listing:
    """Add what a search finds without each term; where it is better, start anew from it."""
    known = dict(listing.models)
    best = listing.best
    while True:
        found = dict(known)
        again = search(problem, response, starts=(best,))
        found[again] = problem.criterion(again, response)
        for unit in sorted(best):
            found |= _walked(problem, response, best, unit)
        least = min(found.values())
        if least >= known[best] - 1e-9 * max(1.0, abs(least)):
            break
        best = min(found, key=lambda m: found[m])
        known = found
    ranked = sorted(found.items(), key=lambda item: (item[1], sorted(item[0])))
    return Listing(tuple(ranked), False, listing.nodes)
