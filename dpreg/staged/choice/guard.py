r"""Which chosen terms the release can tell from what might stand in for them.

A rival of a chosen term k is a model without k that holds something the chosen model lacks.
(Smaller models are no rivals: their odds are what the price of k has settled.) Three rules keep k
from being reported, each with the margin 2 ln(1/alpha), odds of 1/alpha:

1. some rival costs less than the margin more than the chosen model. A single swap is not enough:
   several terms may stand for one;
2. the best model without k is a rival, and fits less than the margin worse once both models pay no
   more than the chosen one does. One useless term may stand for several real ones; that it is the
   cheaper way to say the same is no evidence for it;
3. at a quarter of all prices, about AIC's, the best model without k is a rival of the best one with
   k, and costs less than the margin more. The true model may have many weak terms: at full prices
   it is far from the best, and still a better reason for what is seen than a few useless terms
   between them.

Where the noise hides most directions (`Problem.silent`), no term is reported at all.

The quarter was chosen on drawn rows, 30 runs each. In a chain of 20 columns, each correlated by .9
with the next and every other one with an effect (10,000 rows, eps = 1, delta = 1e-6), rules 1 and 2
reported .17 useless terms and 3.13 of 10 true ones; with a half of the prices .07 and 2.97, with a
quarter .03 and 2.87. In equicorrelated columns (.5 and .9) the third rule cost at most .03 of 5
true terms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import Final

from dpreg.staged.choice.certify import EXACT_UNITS, Listing, near_best
from dpreg.staged.choice.problem import Model, Problem, Response
from dpreg.staged.choice.search import search

__all__ = [
    "LENIENT",
    "Alternative",
    "Verdict",
    "best_of_both",
    "guard_margin",
    "is_needed",
    "judge",
    "lenient",
]

LENIENT: Final = 0.25
"""Share of the prices at which the third rule compares."""
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
        Whether it is proved that no model is better, and none that would unseat a reported term by
        the first two rules.
    """

    model: Model
    reported: Model
    alternatives: tuple[Alternative, ...]
    criterion: float
    certified: bool


def guard_margin(false_inclusions: float) -> float:
    """Return 2 ln(1/alpha), at least 0."""
    return max(0.0, -2.0 * log(false_inclusions))


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
    listing = near_best(problem, response, margin=margin, start=start, nodes=nodes)
    if not listing.complete:
        listing = _look_further(problem, response, listing, margin)
    near = _rivals(listing, margin)
    model, certified = listing.best, listing.complete
    alternatives = []
    for unit in sorted(model) if not problem.silent else ():
        rivals = near.get(unit)
        if rivals is None and not is_needed(problem, response, unit, listing.criterion + margin):
            without = near_best(problem, response, nodes=nodes, forbidden=frozenset({unit}))
            certified &= without.complete
            rivals = _cheaper_way(problem, listing, without, margin)
            rivals = rivals or _lenient_way(problem, response, model, unit, margin)
        if rivals:
            instead = tuple(dict.fromkeys(rival - model for rival, _ in rivals))[:_SHOWN]
            alternatives.append(Alternative(unit, instead, rivals[0][1]))
    return Verdict(
        model=model,
        reported=frozenset() if problem.silent else model - {a.unit for a in alternatives},
        alternatives=tuple(alternatives),
        criterion=listing.criterion,
        certified=certified,
    )


def _rivals(listing: Listing, margin: float) -> dict[int, list[tuple[Model, float]]]:
    """Return, for each chosen unit that has any, its rivals within the margin and their gaps."""
    out: dict[int, list[tuple[Model, float]]] = {}
    for rival, value in listing.models:
        gap = value - listing.criterion
        if gap < margin and not rival <= listing.best:
            for unit in listing.best - rival:
                out.setdefault(unit, []).append((rival, gap))
    return out


def is_needed(problem: Problem, response: Response, unit: int, most: float) -> bool:
    """Whether even all other units together fit worse than a rival may, prices apart.

    What a rival fits worse by than is allowed is at least its deviance less `most` (prices are not
    negative), and its deviance at least that of all other units.
    """
    others = frozenset(range(problem.size)) - {unit}
    slack = 1e-7 * max(1.0, 1e-3 * abs(response.total))
    return problem.deviance(others, response) > most + slack


def _cheaper_way(
    problem: Problem, chosen: Listing, without: Listing, margin: float
) -> list[tuple[Model, float]]:
    """Return the best model without a unit, if the chosen one only says the same for less."""
    rival = without.best
    if rival <= chosen.best or not problem.allows(rival):
        return []
    saved = max(0.0, problem.price(rival) - problem.price(chosen.best))
    gap = without.criterion - chosen.criterion - saved
    return [(rival, gap)] if gap < margin else []


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
        rival = near_best(cheap, response, start=rival, forbidden=own).best
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


def _look_further(problem: Problem, response: Response, listing: Listing, margin: float) -> Listing:
    """Add what a search finds without each term, and with each other term in.

    Where a better model than the listing's turns up, the search starts anew from it.
    """
    known = dict(listing.models)
    best = listing.best
    while True:
        found = dict(known)
        again = search(problem, response, starts=(best,))
        found[again] = problem.criterion(again, response)
        outside = frozenset(range(problem.size)) - best
        for unit in sorted(best):
            rest = best - {unit}
            ways = [(frozenset[int](), rest)] + [(frozenset({u}), rest | {u}) for u in outside]
            for forced, start in ways:
                rival = search(
                    problem,
                    response,
                    starts=(start,),
                    forbidden=frozenset({unit}),
                    forced=forced,
                )
                if problem.allows(rival):
                    found[rival] = problem.criterion(rival, response)
        least = min(found.values())
        if least >= known[best] - 1e-9 * max(1.0, abs(least)):
            break
        best = min(found, key=lambda m: found[m])
        known = found
    near = {m: v for m, v in found.items() if v <= least + margin}
    return Listing(
        tuple(sorted(near.items(), key=lambda item: (item[1], sorted(item[0])))),
        False,
        listing.nodes,
    )
