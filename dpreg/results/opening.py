"""The first lines of a page, in words: what was found, what stays unclear, what it cost.

Tested in `tests/results/test_remarks.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dpreg.privacy.budget import decimal_string
from dpreg.results.report import Paragraph

if TYPE_CHECKING:
    from dpreg.results.claim import PrivacyClaim
    from dpreg.results.classic import Estimates
    from dpreg.results.regression import RegressionResults
    from dpreg.results.selection import SelectionResults

__all__ = ["cost", "estimates", "regression", "selection"]

_MOST: Final = 8
"""Names that a sentence lists."""

_TOO_SMALL: Final = "an effect may be too small to be seen at this budget and number of rows"


def regression(fit: RegressionResults, alpha: float) -> list[Paragraph]:
    """Say which coefficients differ from 0, which were not shown to, and the cost."""
    names = np.array(fit.exog_names)
    p = fit.pvalues.to_numpy()
    if np.isnan(p).all():
        found = "coefficients without standard errors, so that none can be said to differ from 0."
        return [Paragraph("Found", found), cost(fit.claim)]
    slopes = names != "Intercept"
    seen, unseen = names[slopes & (p < alpha)], names[slopes & ~(p < alpha)]
    level = f"{100 * alpha:g}% level"
    found = (
        f"{_count(len(seen), int(slopes.sum()))} from 0 at the {level}: {_listed(seen)}."
        if len(seen)
        else f"no coefficient that differs from 0 at the {level}."
    )
    return [Paragraph("Found", found), *_unclear(unseen), cost(fit.claim)]


def selection(result: SelectionResults, alpha: float) -> list[Paragraph]:
    """Say what was selected, what was not and what that means, and the cost."""
    chosen = [term for term in result.selected if term in result.candidates]
    found = f"{_listed(chosen)}." if chosen else "none of the candidates was selected."
    found += "".join(
        f" Also {_listed(group, 'or')}: the release cannot tell which."
        for group in result.alternatives
    )
    found += _unsure(result, chosen, alpha)
    grouped = {term for group in result.alternatives for term in group}
    absent = [term for term in result.candidates if term not in grouped.union(chosen)]
    return [Paragraph("Found", found), *_unclear(absent), cost(result.claim)]


def estimates(result: Estimates, alpha: float) -> list[Paragraph]:
    """Say the estimates with their intervals, and the cost."""
    limits = result.conf_int(alpha).to_numpy()
    values = result.params
    told = [
        f"{_name(label)}{value:.4g} ({low:.4g} to {high:.4g})"
        for label, value, (low, high) in zip(values.index, values, limits, strict=True)
    ]
    each = "its " if len(told) == 1 else ""
    level = f", with {each}{100 * (1 - alpha):g}% interval{'' if each else 's'}" if told else ""
    return [Paragraph("Found", f"{_listed(told)}{level}."), cost(result.claim)]


def cost(claim: PrivacyClaim) -> Paragraph:
    """Say in a line what the release cost."""
    eps, delta = decimal_string(claim.spent.eps), decimal_string(claim.spent.delta)
    slack = "" if claim.spent.delta == 0 else f" and delta = {delta}"
    rows = "one row" if claim.contributions == 1 else f"up to {claim.contributions} rows"
    rows = "all rows" if claim.whole else rows
    told = f"eps = {eps}{slack} for each person ({rows}, {claim.neighbors})."
    return Paragraph("Cost", f"{claim.stamp}. It would be {told}" if claim.stamp else told)


def _unsure(result: SelectionResults, chosen: Sequence[str], alpha: float) -> str:
    """Say of which chosen terms all intervals hold 0, as the fit sees less than the choice did."""
    fit = result.regression
    if fit is None:
        return ""
    p = dict(zip(fit.exog_names, fit.pvalues, strict=True))
    each = {term: [p[c] for c in result.columns.get(term, (term,)) if c in p] for term in chosen}
    unsure = [term for term, values in each.items() if values and min(values) >= alpha]
    return f" The fit alone does not tell {_listed(unsure)} from 0." if unsure else ""


def _unclear(names: Sequence[str]) -> list[Paragraph]:
    if not len(names):
        return []
    useless = "it is useless" if len(names) == 1 else "they are useless"
    told = f"{_listed(names)}. That does not show that {useless}: {_TOO_SMALL}."
    return [Paragraph("Unclear", told)]


def _count(some: int, whole: int) -> str:
    verb = "differs" if some == 1 else "differ"
    return f"{some} of {whole} coefficient{'s' if whole > 1 else ''} {verb}"


def _listed(names: Sequence[str], word: str = "and") -> str:
    shown = list(names[:_MOST])
    if len(names) > _MOST:
        return f"{', '.join(shown)} {word} {len(names) - _MOST} more"
    if len(shown) > 1:
        return f"{', '.join(shown[:-1])} {word} {shown[-1]}"
    return "".join(shown)


def _name(label: object) -> str:
    return f"{', '.join(map(str, label)) if isinstance(label, tuple) else label}: "
