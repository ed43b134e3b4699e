"""Why a standard error is what it is: the rules that fired, and the numbers that they used.

All of it is released or public, and is read from what the result holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import pandas as pd

from dpreg.results import notes
from dpreg.results.marks import mark

__all__ = ["trace"]

_LIMITS: Final = {
    "fitting": ("limit of a row's information (A)", "limit of a row's score (S)"),
    "locating": ("limit of a row's columns (R)", "limit of a row's residual"),
    "box": (),
}
_RECORDED: Final = {
    "information_sd": "sd of the noise in a cell of the information",
    "score_sd": "sd of the noise in a cell of the score",
    "middle_sd": "sd of the noise in a cell of the scores' spread",
    "radius": "radius: limit of a row's columns",
    "width": "clip: limit of a row's residual",
    "opened": "limits were widened: 1 yes, 0 no",
    "weight": "mean weight of a row",
}
"""What looks record, in words; of 0.2's looks the latter ones."""
Line = tuple[str, str, float]


def trace(result: Any) -> pd.DataFrame:
    """Return a line for each rule: what it is at, the rule, and its number; NaN where none is."""
    lines = list(_lines(result))
    frame: pd.DataFrame = result.claim.marked(pd.DataFrame(lines, columns=["at", "rule", "value"]))
    return frame


def _lines(result: Any) -> Iterator[Line]:
    claim, fit = result.claim, notes.fitted(result)
    for spend in claim.spends:
        yield spend.step, f"eps of {spend.mechanism} noise", float(spend.budget.eps)
        yield spend.step, f"delta of {spend.mechanism} noise", float(spend.budget.delta)
    most = math.inf if claim.whole else float(claim.contributions)
    yield "person", f"rows that count, under {claim.neighbors}", most
    for holder in (result, *([] if fit in (None, result) else [fit])):
        for name in ("looks", "releases"):
            for place, look in enumerate(getattr(holder, name, ()), 1):
                yield from _of_look(f"look {place}", look)
    if fit is not None:
        yield from _of_fit(fit)
    elif hasattr(result, "selected"):
        return
    told = result if fit is None else fit
    parts = zip(told.bse.index, told.bse, told.bse_sampling, told.bse_privacy, strict=True)
    weak = getattr(told, "weak", {})
    for label, *errors in parts:
        rules = ("std err", "sampling error", "privacy noise")
        yield from ((str(label), rule, float(e)) for rule, e in zip(rules, errors, strict=True))
        if label in weak:
            yield str(label), f"mark: {mark(weak[label])}", math.nan
    severe = (note for note in notes.of(result) if note.severe)
    yield from (("notes", note.name, math.nan) for note in severe)


def _of_look(at: str, look: Any) -> Iterator[Line]:
    of = "eps" if look.mechanism == "matrix-laplace" else "mu^2"
    yield at, f"share of {of}, {getattr(look, 'kind', look.mechanism)}", float(look.share)
    limits = zip(_LIMITS[getattr(look, "kind", "box")], getattr(look, "limits", ()), strict=True)
    for rule, limit in limits:
        yield at, rule, float(limit)
    for name, rule in _RECORDED.items():
        if (value := getattr(look, name, None)) is not None:
            yield at, rule, float(value)


def _of_fit(fit: Any) -> Iterator[Line]:
    """Tell what all coefficients have in common."""
    law = "normal" if fit.noise_degrees is None else "sampling error and heavier noise, of degrees"
    law = "bootstrap draws" if fit.interval_method == "bootstrap" else law
    yield "fit", f"law of p-values and intervals: {law}", float(fit.noise_degrees or math.nan)
    told = {
        "complete rows, as released": fit.complete_rows,
        "residual variance": fit.error_variance,
        "ridge that was added, in stored units": fit.ridge if fit.ridged else None,
        "columns that share the level of intervals": fit.among,
    }
    yield from (("fit", rule, float(v)) for rule, v in told.items() if v is not None)
