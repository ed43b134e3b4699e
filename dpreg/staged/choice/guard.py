r"""Which chosen terms the release can tell from what might stand in for them.

A chosen term k is reported if every model that does without it, and holds something that the chosen
model lacks, costs at least 2 ln(1/alpha) more: odds of 1/alpha against the stand-in. Smaller models
are no rivals, their odds are what the price of k has settled. A single swap is not enough: one
proxy may stand for several terms, and several for one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Final

from dpreg.staged.choice.certify import Listing, near_best
from dpreg.staged.choice.problem import Model, Problem, Response
from dpreg.staged.choice.search import search

__all__ = ["Alternative", "Verdict", "guard", "guard_margin", "judge"]

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
        By how much the nearest costs more.
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
        One for each unit of the model that is not reported.
    criterion : float
    certified : bool
        Whether it is proved that no model is better, and none that would unseat a reported term.
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
    return guard(listing, margin)


def guard(listing: Listing, margin: float) -> Verdict:
    """Apply the guard to the models within the margin of the best one."""
    model, least = listing.best, listing.criterion
    rivals = [(rival, value - least) for rival, value in listing.models if not rival <= model]
    alternatives = []
    for unit in sorted(model):
        without = [
            (rival - model, gap) for rival, gap in rivals if unit not in rival and gap < margin
        ]
        if without:
            instead = tuple(dict.fromkeys(entering for entering, _ in without))[:_SHOWN]
            alternatives.append(Alternative(unit, instead, without[0][1]))
    return Verdict(
        model=model,
        reported=model - {a.unit for a in alternatives},
        alternatives=tuple(alternatives),
        criterion=least,
        certified=listing.complete,
    )


def _look_further(problem: Problem, response: Response, listing: Listing, margin: float) -> Listing:
    """Add what a search finds without each term, and with each other term in.

    Where a better model than the listing's turns up, the search starts anew from it.
    """
    known = dict(listing.models)
    best = listing.best
    while True:
        found = dict(known)
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
