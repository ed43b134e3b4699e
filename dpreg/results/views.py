"""What each result's summary says: results in, plain `Report` out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from dpreg.privacy.budget import decimal_string
from dpreg.results import adaptive_views, opening, staged_views
from dpreg.results.fit_views import (
    LOOKS_NOTE,
    coefficients,
    estimate_headers,
    fit_facts,
    fit_notes,
    fixed,
    looks,
    numbers,
    weakly,
)
from dpreg.results.report import Block, Facts, Grid, Paragraph, Report

if TYPE_CHECKING:
    from dpreg.results.base import Released
    from dpreg.results.claim import PrivacyClaim
    from dpreg.results.contrast import Contrast
    from dpreg.results.regression import RegressionResults
    from dpreg.results.selection import SelectionResults

__all__ = [
    "chosen_terms",
    "closing",
    "contrast",
    "fixed",
    "privacy_facts",
    "regression",
    "selection",
    "step_notes",
]

_MANY_TERMS: Final = 40
"""A selection table longer than this gathers the terms that no draw holds in a paragraph."""

_LONG_FORMULA: Final = 600  # characters
_METHODS: Final = {"pcls": "PCLS", "pcpl": "PCPL"}


def selection(result: SelectionResults, alpha: float) -> Report:
    """Return the page of a selection, with its coefficients where there are any."""
    blocks = chosen_terms(result, alpha)
    notes = list(result.notes)
    fit = result.regression
    if result.by_looks:
        about = LOOKS_NOTE if result.looks else adaptive_views.CHOOSING
        notes = staged_views.notes(result, about)
    notes = [*result.remarks, *notes]
    if fit is not None:
        blocks += [fit_facts(fit), coefficients(fit, alpha)]
        notes = [*fit_notes(fit), *notes, *fit.notes]
    blocks += looks((*result.looks, *(() if fit is None else fit.looks)))
    blocks += adaptive_views.looks((*result.releases, *(() if fit is None else fit.releases)))
    blocks += [] if fit is None else [*weakly(fit), *adaptive_views.caution(fit)]
    if result.draws > 1:
        notes.insert(0, _frequency_note(result.draws))
    blocks += closing(result.claim, notes)
    return Report(
        f"Private variable selection: {result.response}", result.claim.stamp, tuple(blocks)
    )


def chosen_terms(result: SelectionResults, alpha: float) -> list[Block]:
    """Return the first part of a selection's page: all but coefficients, looks and notes."""
    return [
        *opening.selection(result, alpha),
        Paragraph("Formula", _cut(result.formula, "formula")),
        Paragraph("Selected", _cut(result.selected_formula, "selected_formula")),
        _selection_facts(result),
        *_selection_table(result),
        *staged_views.groups(result),
    ]


def regression(result: RegressionResults, alpha: float) -> Report:
    """Return the page of a regression."""
    blocks: list[Block] = [
        *opening.regression(result, alpha),
        Paragraph("Formula", _cut(result.formula, "formula")),
        _regression_facts(result),
        coefficients(result, alpha),
        *looks(result.looks),
        *adaptive_views.looks(result.releases),
        *weakly(result),
        *adaptive_views.caution(result),
        *closing(result.claim, [*result.remarks, *fit_notes(result), *result.notes]),
    ]
    title = f"Private linear regression: {result.endog_names}"
    return Report(title, result.claim.stamp, tuple(blocks))


def contrast(result: Contrast, alpha: float) -> Report:
    """Return the page of a test of constraints."""
    table = result.summary_frame(alpha)
    rows = tuple(
        (str(name), *numbers(values))
        for name, values in zip(table.index, table.to_numpy(), strict=True)
    )
    grid = Grid(("", *estimate_headers(alpha)), rows, "lrrrrrr")
    return Report("Test for constraints", result.claim.stamp, (grid,))


def _selection_facts(result: SelectionResults) -> Facts:
    kept, free = len(result.kept), len(result.candidates)
    left = (
        ("Method", _METHODS.get(result.method, result.method)),
        ("Mechanism", result.mechanism),
        ("Engine", result.engine),
        *staged_views.facts(result),
        ("Models", _count(result.n_models)),
        ("Terms", f"{kept} kept, {free} candidates"),
        ("Units", result.units),
        ("Hierarchy", result.hierarchy),
        ("max_terms", "none" if result.max_terms is None else str(result.max_terms)),
        ("Draws", str(result.draws)),
        ("Bounds", _sources(result.bounds)),
    )
    right = (
        *privacy_facts(result),
        *[("Radius", f"{_short(r)} ({result.radius_source})") for r in _given(result.radius)],
        ("Clip", _short(result.clip)),
        ("Penalty", result.penalty),
        *[("phi (per column)", _short(phi)) for phi in _given(result.phi)],
        *[("psi (per term)", _short(psi)) for psi in _given(result.psi)],
        *([("Sigma2", _short(result.sigma2))] if result.sigma2 is not None else []),
    )
    return Facts(left, right)


def _regression_facts(result: RegressionResults) -> Facts:
    fit = fit_facts(result)
    intervals = fit.right[-1]
    left = (
        ("Dep. Variable", result.endog_names),
        *fit.left,
        ("Scaling", result.scaling),
        ("Df Model", f"{result.df_model:.0f}"),
        *fit.right[:-1],
    )
    right = (
        *privacy_facts(result),
        ("Clip", _short(result.clip)),
        ("Bounds", _sources(result.bounds)),
        intervals,
    )
    return Facts(left, right)


def privacy_facts(result: Released) -> tuple[tuple[str, str], ...]:
    """Return what every summary says of the claim and of the rows.

    eps and delta are what was spent: pure noise costs no delta, whatever the call allows.
    """
    eps, delta = result.claim.spent.as_decimal()
    return (
        ("Neighbors", result.claim.neighbors),
        ("Contributions", "all" if result.claim.whole else str(result.claim.contributions)),
        ("eps", eps),
        ("delta", delta),
        ("n", "private" if result.nobs is None else f"{result.nobs:,}"),
        ("Passes", str(result.passes)),
    )


def _selection_table(result: SelectionResults) -> list[Block]:
    shares = dict(result.selection_frequencies)
    errors = dict(result.frequency_errors)
    several = result.draws > 1
    told = staged_views.measures(result)
    grouped = {term for group in result.alternatives for term in group}
    headers = ("term", "role", "selected", "columns") + ("frequency (se)",) * several
    headers += tuple(told)
    rows, absent = [], []
    many = len(result.kept) + len(result.candidates) > _MANY_TERMS
    for term in (*result.kept, *result.candidates):
        if many and shares.get(term) == 0 and term not in grouped:
            absent.append(term)
            continue
        free = term in shares
        often = f"{shares[term]:.2f} ({errors[term]:.2f})" if free and several else ""
        role = "candidate" if free else "kept"
        chosen = staged_views.chosen(result, term)
        more = tuple(column.get(term, "") for column in told.values())
        width = str(len(result.columns.get(term, (term,))))
        rows.append((term, role, chosen, width) + (often,) * several + more)
    blocks: list[Block] = [Grid(headers, tuple(rows), "lllrrrr"[: len(headers)])]
    if absent:
        blocks.append(Paragraph(f"Never selected ({len(absent)})", ", ".join(absent)))
    return blocks


def _given(number: Fraction | float | None) -> list[Fraction | float]:
    return [] if number is None else [number]


def _frequency_note(draws: int) -> str:
    return (
        f"frequency: the share of the {draws} released draws that hold the term; (se) is its "
        f"binomial standard error over draws from this same table, 0 where all draws agree."
    )


def closing(claim: PrivacyClaim, notes: list[str]) -> list[Block]:
    """Return the end of every page: the budget, the claim and the notes."""
    split = any(spend.rows != "all" for spend in claim.spends)
    headers = ("step", "mechanism", *("rows",) * split, "eps", "delta")
    rows = [
        (spend.step, spend.mechanism, *(spend.rows,) * split, *spend.budget.as_decimal())
        for spend in claim.spends
    ]
    rows.append(("total", "", *("",) * split, *claim.spent.as_decimal()))
    remarks = step_notes(claim)
    if split:
        remarks.append(
            "Steps on different parts of the rows compose in parallel: the total holds the "
            "largest eps of those parts, not their sum."
        )
    listed: list[Block] = [
        Paragraph(f"[{i}]", note) for i, note in enumerate(dict.fromkeys(notes + remarks), 1)
    ]
    grid = Grid(headers, tuple(rows), "lllrr" if split else "llrr")
    return [grid, Paragraph("Privacy", claim.sentence), *listed]


def step_notes(claim: PrivacyClaim) -> list[str]:
    """Return what the budget's steps have to say: short notes in one paragraph, long ones alone."""
    told = [f"{spend.step}: {spend.note}" for spend in claim.spends if spend.note]
    long = [note for note in told if ";" in note]
    short = "; ".join(note for note in told if note not in long)
    return [*long, short] if short else long


def _cut(formula: str, attribute: str) -> str:
    """Return a formula, shortened where it would fill the page."""
    if len(formula) <= _LONG_FORMULA:
        return formula
    head = formula[:_LONG_FORMULA].rpartition(" + ")[0] or formula[:_LONG_FORMULA]
    return f"{head} + ... (whole in .{attribute})"


def _sources(bounds: Mapping[str, str]) -> str:
    counts = Counter(bounds.values())
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{counts[source]} {source}" for source in sorted(counts, reverse=True)) or "-"


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**12 else f"{Decimal(number):.3e}"


def _short(number: Fraction | float) -> str:
    """Return few digits: an exact decimal where it is short, else six significant digits."""
    if isinstance(number, Fraction):
        text = decimal_string(number)
        if len(text) <= 10 and "/" not in text:
            return text
    return f"{float(number):.6g}"
