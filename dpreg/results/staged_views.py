"""What a summary says of a choice by looks: its rule, its groups, and what the numbers mean.

Tested in `tests/api/test_select_adaptive.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from dpreg.results.fit_views import LOOKS_NOTE, fixed
from dpreg.results.report import Block, Paragraph

if TYPE_CHECKING:
    from dpreg.results.selection import SelectionResults

__all__ = ["chosen", "facts", "groups", "measures", "notes"]

_RULE: Final = (
    "A term is selected if it explains more than chance would beside all other candidates at once; "
    "the threshold lets in about {most:g} useless terms a call. Terms that pass only together are "
    "named as 'one of'."
)
_LEVEL: Final = (
    "level: the least false_inclusions at which the term would be selected, its p-value times the "
    "number of candidates. se: the standard error of its coefficient beside all candidates, which "
    "says which effects would have been seen."
)
_STABILITY: Final = (
    "stability: how often the term would be chosen again if the released estimate were the truth; "
    "it counts the noise twice, so a useless term near the threshold gets about a half, and it is "
    "not the probability that the term belongs to the model."
)
_GROUPS: Final = (
    "One of: the release shows that at least one of these terms matters, and cannot tell which. "
    "None of them is among the selected ones; the coefficients are those of the selected terms and "
    "of the likeliest of each group."
)


def chosen(result: SelectionResults, term: str) -> str:
    """Return what the table says of a term: whether it was selected, or is one of several."""
    if term in result.selected:
        return "yes"
    return "one of" if any(term in group for group in result.alternatives) else "no"


def facts(result: SelectionResults) -> tuple[tuple[str, str], ...]:
    """Return what pages of dpreg 0.2 say of its search: whether no model is better."""
    if result.certified is None:
        return ()
    return (("Certified", "yes" if result.certified else "no"),)


def measures(result: SelectionResults) -> dict[str, Mapping[str, str]]:
    """Return the columns of the table that belong to looks: what they say of each term."""
    if result.levels:
        levels = {term: _level(value) for term, value in result.levels.items()}
        errors = {term: fixed(value, 4) for term, value in result.choice_errors.items()}
        return {"level": levels, "se": errors}
    if result.stabilities:
        return {"stability": {term: f"{value:.2f}" for term, value in result.stabilities.items()}}
    return {}


def groups(result: SelectionResults) -> list[Block]:
    """Return a line with all groups; none is ever left out."""
    lines = ["{" + ", ".join(group) + "}" for group in result.alternatives]
    return [Paragraph("One of", "; ".join(lines))] if lines else []


def notes(result: SelectionResults, about_looks: str = LOOKS_NOTE) -> list[str]:
    """Return the remarks of a staged selection, those of the call included."""
    rule = result.false_inclusions
    told = [] if rule is None else [_RULE.format(most=rule), _LEVEL]
    doubts = [_GROUPS] if result.alternatives else []
    stable = [_STABILITY] if result.stabilities else []
    return [*told, *doubts, *stable, about_looks, *result.notes]


def _level(value: float) -> str:
    return ">1" if value > 1 else "<1e-6" if value < 1e-6 else f"{value:.2g}"
