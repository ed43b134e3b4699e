"""The one description of a result's page, of which text, HTML, LaTeX and the report are made.

`page` gives one screen: what was found, of how many rows, at what cost, the table, what to make of
it, and the notes that say what not to trust. With ``full=True`` it has all that was recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from dpreg.results import notes, tables
from dpreg.results.claim import PrivacyClaim
from dpreg.results.summary import Block, Paragraph, Summary

_LONG_FORMULA: Final = 600  # characters
_SHORT_FORMULA: Final = 190
_MOST: Final = 8
"""Names that a sentence lists."""
_TOO_SMALL: Final = "an effect may be too small to be seen at this budget and number of rows"


def page(result: Any, alpha: float, *, full: bool = False, ratios: bool = False) -> Summary:
    """Describe a result: on one screen, or with all that was recorded."""
    build = _whole if full else _screen
    blocks = [*build(result, alpha, ratios=ratios)]
    short = () if full else tuple(_paper(result, alpha))
    title = f"Private {result.title.format(result)}"
    return Summary(title, result.claim.stamp, tuple(blocks), short)


def _screen(result: Any, alpha: float, *, ratios: bool) -> Iterable[Block]:
    fit, told = notes.fitted(result), notes.of(result, alpha)
    severe = [note for note in told if note.severe]
    held, nested = (result, False) if fit is None else (fit, fit is not result)
    yield from _found(result, alpha, full=False)
    if hasattr(result, "formula"):
        yield Paragraph("Model", _cut(result.formula, "formula", _SHORT_FORMULA))
    yield from _where(result)
    yield Paragraph("Rows", _rows(result, fit))
    yield _cost(result.claim)
    yield from _tables(result, alpha, full=False, ratios=ratios)
    marked = [] if fit is None else tables.marks(fit, alpha)
    if letters := {why: letter for each in marked for why, letter in each.items()}:
        lines = (f"{letter} = {why}" for why, letter in letters.items())
        yield Paragraph("mark", f"{'; '.join(lines)}.")
    yield from (Paragraph("noise", note.text) for note in notes.at("noise-column", held))
    yield Paragraph("Assumes", notes.line("assumes", held, nested=nested))
    yield Paragraph("Privacy", "formula, schema and the call are public; .privacy has the claim.")
    more = len(told) - len(severe)
    other = f"{more} more note{'s' * (more > 1)}" if more else "the budget"
    yield Paragraph("Details", f"summary(full=True) has {other}; .trace explains the errors.")
    yield from (Paragraph("Warning", note.text) for note in severe)


def _whole(result: Any, alpha: float, *, ratios: bool) -> Iterable[Block]:
    fit, selection = notes.fitted(result), hasattr(result, "selected")
    yield from _found(result, alpha, full=True)
    yield _cost(result.claim)
    if hasattr(result, "formula"):
        yield Paragraph("Formula", _cut(result.formula, "formula"))
    yield from _where(result)
    if selection:
        yield Paragraph("Selected", _cut(result.selected_formula, "selected_formula"))
    yield tables.facts("selection" if selection else result.kind, result)
    yield from _tables(result, alpha, full=True, ratios=ratios)
    for name in ("looks", "releases"):
        listed = (*getattr(result, name, ()), *(getattr(fit, name) if fit and selection else ()))
        yield from tables.looks(listed, family=result.kind.startswith("glm"))
    if fit is not None:
        yield from _weak(fit)
    yield tables.budget(result.claim)
    yield Paragraph("Privacy", result.claim.sentence)
    for place, note in enumerate(notes.of(result, alpha), 1):
        yield Paragraph(f"[{place}]", note.text)


def _paper(result: Any, alpha: float) -> Iterable[Block]:
    """Describe what stands in a paper: one table, and what is to be said beneath it."""
    if hasattr(result, "selected") and result.regression is None:
        yield from tables.terms(result, full=False)
    else:
        yield tables.paper(result, alpha)
    eps, delta = result.claim.spent.as_decimal()
    cost = f"n = {tables.fact('n', result)}; eps = {eps} and delta = {delta}"
    held = "Standard errors and intervals hold sampling error and privacy noise."
    yield Paragraph("Note", f"{cost} under {result.neighbors}. {held}")


def _tables(result: Any, alpha: float, *, full: bool, ratios: bool) -> Iterable[Block]:
    fit, selection = notes.fitted(result), hasattr(result, "selected")
    if selection and (full or fit is None):
        yield from tables.terms(result, full=full)
    if fit is not None:
        if selection and full:
            yield tables.facts(f"chosen {fit.kind}", fit)
        yield tables.coefficients(fit, alpha, full=full)
        if ratios:
            yield tables.ratios(fit, alpha)
    elif not selection:
        shown = tables.picture(result) if notes.is_picture(result) else None
        yield shown or tables.estimates(result, alpha, full=full)


# What was found, in words.


def _found(result: Any, alpha: float, *, full: bool) -> Iterable[Paragraph]:
    """Say what was found; the whole page says here, too, what the marks of one screen say."""
    if hasattr(result, "selected"):
        yield from _found_terms(result, alpha, full=full)
    elif result.kind == "classic":
        limits = result.conf_int(alpha).itertuples(name=None)
        told = [
            f"{tables.named(label)}: {value:.4g} ({low:.4g} to {high:.4g})"
            for value, (label, low, high) in zip(result.params, limits, strict=True)
        ]
        many = ("its ", "") if len(told) == 1 else ("", "s")
        level = f", with {many[0]}{100 * (1 - alpha):g}% interval{many[1]}" if told else ""
        yield Paragraph("Found", f"{_listed(told)}{level}.")
    elif result.kind != "histogram":
        yield from _found_coefficients(result, alpha, full=full)


def _found_coefficients(fit: Any, alpha: float, *, full: bool) -> Iterable[Paragraph]:
    names, p = np.array(fit.exog_names), fit.pvalues.to_numpy()
    if np.isnan(p).all():
        found = "coefficients without standard errors, so that none can be said to differ from 0."
        yield Paragraph("Found", found)
        return
    slopes = names != "Intercept"
    seen, unseen = names[slopes & (p < alpha)], names[slopes & ~(p < alpha)]
    level, whole = f"{100 * alpha:g}% level", int(slopes.sum())
    count = f"{len(seen)} of {whole} coefficient{'s' if whole > 1 else ''}"
    differ = f"differ{'s' if len(seen) == 1 else ''} from 0 at the {level}: {_listed(seen)}."
    nothing = f"no coefficient that differs from 0 at the {level}."
    yield Paragraph("Found", f"{count} {differ}" if len(seen) else nothing)
    if full:
        yield from _unclear(unseen)


def _found_terms(result: Any, alpha: float, *, full: bool) -> Iterable[Paragraph]:
    chosen = [term for term in result.selected if term in result.candidates]
    found = f"{_listed(chosen)}." if chosen else "none of the candidates was selected."
    for group in result.alternatives:
        found += f" Also {_listed(group, 'or')}: the release cannot tell which."
    yield Paragraph("Found", found + (_unsure(result, chosen, alpha) if full else ""))
    grouped = {term for group in result.alternatives for term in group}
    yield from _unclear([term for term in result.candidates if term not in grouped.union(chosen)])


def _unsure(result: Any, chosen: Sequence[str], alpha: float) -> str:
    """Say of which chosen terms all intervals hold 0, as the fit sees less than the choice did."""
    fit = result.regression
    if fit is None:
        return ""
    p = dict(zip(fit.exog_names, fit.pvalues, strict=True))
    each = {term: [p[c] for c in result.columns.get(term, (term,)) if c in p] for term in chosen}
    unsure = [term for term, values in each.items() if values and min(values) >= alpha]
    return f" The fit alone does not tell {_listed(unsure)} from 0." if unsure else ""


def _unclear(names: Sequence[str]) -> Iterable[Paragraph]:
    if len(names):
        useless = "it is useless" if len(names) == 1 else "they are useless"
        told = f"{_listed(names)}. That does not show that {useless}: {_TOO_SMALL}."
        yield Paragraph("Unclear", told)


def _where(result: Any) -> Iterable[Block]:
    """Say which rows the call was about, if not all."""
    asked = None if result.record is None else result.record.arguments.get("where")
    return () if asked is None else (Paragraph("Where", _cut(str(asked), "record")),)


def _rows(result: Any, fit: Any) -> str:
    """Say how many rows were used, and how many were left out, as far as that was released."""
    released = getattr(result, "counts", None) if fit is None else fit.complete_rows
    if released is None:
        lacking = "how many of them lack a value was not released"
        return "private." if result.nobs is None else f"{result.nobs:,}; {lacking}."
    used = max(float(np.sum(released)), 0.0)
    if result.nobs is None:
        return f"about {used:,.0f} used (a noisy count); their number is private."
    split = fit is not None and fit.fit == "split"
    whole = result.nobs // (2 if split else 1)
    used = min(used, whole)
    told = f"about {used:,.0f} of {whole:,}{' held out' * split} used"
    return f"{told}, about {whole - used:,.0f} left out (a noisy count)."


def _cost(claim: PrivacyClaim) -> Paragraph:
    """Say in a line what the release cost."""
    eps, delta = claim.spent.as_decimal()
    slack = "" if claim.spent.delta == 0 else f" and delta = {delta}"
    rows = "one row" if claim.contributions == 1 else f"up to {claim.contributions} rows"
    rows = "all rows" if claim.whole else rows
    told = f"eps = {eps}{slack} for each person ({rows}, {claim.neighbors})."
    return Paragraph("Cost", f"{claim.stamp}. It would be {told}" if claim.stamp else told)


def _weak(fit: Any) -> Iterable[Paragraph]:
    """Name the coefficients that the release leaves weak and why, but for what a note says."""
    lines: dict[str, list[str]] = {}
    for name, why in fit.weak.items():
        lines.setdefault(why, []).append(name)
    if fit.method == "adaptive":
        told = [f"{', '.join(names)}: {why}" for why, names in lines.items()]
    else:
        noted = any(note.startswith("Weakly determined: ") for note in fit.notes)
        weak = [pair for pair in fit.weak.items() if not (noted and pair[1] == "hidden direction")]
        told = [f"{name} ({why})" for name, why in weak]
    if told:
        yield Paragraph("Marked" if fit.method == "adaptive" else "Weak", "; ".join(told))


# Words and numbers.


def _cut(formula: str, attribute: str, most: int = _LONG_FORMULA) -> str:
    """Return a formula, shortened where it would fill the page."""
    if len(formula) <= most:
        return formula
    head = formula[:most].rpartition(" + ")[0] or formula[:most]
    return f"{head} + ... (whole in .{attribute})"


def _listed(names: Sequence[str], word: str = "and") -> str:
    shown = list(names[:_MOST])
    if len(names) > _MOST:
        return f"{', '.join(shown)} {word} {len(names) - _MOST} more"
    if len(shown) > 1:
        return f"{', '.join(shown[:-1])} {word} {shown[-1]}"
    return "".join(shown)
