"""What a summary says of a staged selection: doubts between terms, and what the numbers mean.

Tested in `tests/api/test_select_staged.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dpreg.results.fit_views import LOOKS_NOTE
from dpreg.results.report import Block, Paragraph

if TYPE_CHECKING:
    from dpreg.results.selection import SelectionResults

__all__ = ["ambiguous", "chosen", "facts", "notes"]

_STABILITY: Final = (
    "stability: how often the term would be chosen again if the released estimate were the truth; "
    "it counts the noise twice, so a useless term near the threshold gets about a half, and it is "
    "not the probability that the term belongs to the model."
)
_AMBIGUOUS: Final = (
    "Where the table says 'one of', the release cannot tell the term from what is listed under "
    "Alternatives. Such terms are not among the selected ones; the coefficients are those of the "
    "best model, which has them."
)


def chosen(result: SelectionResults, term: str) -> str:
    """Return what the table says of a term: whether it was selected, or is in doubt."""
    if term in result.alternatives:
        return "one of"
    return "yes" if term in result.selected else "no"


def facts(result: SelectionResults) -> tuple[tuple[str, str], ...]:
    """Return whether the choice is proved to be the best by the released numbers."""
    if result.certified is None:
        return ()
    return (("Certified", "yes" if result.certified else "no"),)


def ambiguous(result: SelectionResults) -> list[Block]:
    """Return a line for each term that others might stand for; none is ever left out."""
    lines = [
        "one of {" + ", ".join([term, *(" + ".join(each) for each in instead)]) + "}"
        for term, instead in result.alternatives.items()
    ]
    return [Paragraph("Alternatives", "; ".join(lines))] if lines else []


def notes(result: SelectionResults, about_looks: str = LOOKS_NOTE) -> list[str]:
    """Return the remarks of a staged selection, those of the call included."""
    doubts = [_AMBIGUOUS] if result.alternatives else []
    stable = [_STABILITY] if result.stabilities else []
    return [*doubts, *stable, about_looks, *result.notes]
