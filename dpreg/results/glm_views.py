"""What the summary of a generalised linear model says.

Tested in `tests/api/test_glm.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dpreg.privacy.budget import decimal_string
from dpreg.results import adaptive_views, staged_views, views
from dpreg.results.fit_views import (
    BESIDE_ALL,
    ERRORS,
    GIVEN,
    GIVEN_CHOICE,
    NORMAL,
    coefficients,
    fixed,
    weakly,
)
from dpreg.results.report import Block, Facts, Grid, Paragraph, Report

if TYPE_CHECKING:
    from dpreg.results.glm import GLMResults
    from dpreg.results.glm_selection import GLMSelectionResults
    from dpreg.results.looks import Look

__all__ = ["RATIOS", "glm", "selection"]

RATIOS: Final = {"logit": "odds ratio", "log": "rate ratio"}

_MODEL: Final = (
    "Intervals hold for independent rows whose mean is that of the model (the spread may be "
    "another)"
)
_MIXTURE: Final = (
    "P>|z| and the interval use the law of sampling error and noise of pure eps together, whose "
    "tails are heavier than normal ones."
)
_LOOKS: Final = (
    "Each look after the first releases the information and the score at the fit that earlier "
    "looks gave, of rows that are weighted down to its limits; a row's weight depends on its "
    "columns alone."
)


def glm(result: GLMResults, alpha: float, *, ratios: bool) -> Report:
    """Return the page of a generalised linear model."""
    blocks: list[Block] = [
        Paragraph("Formula", result.formula),
        _facts(result),
        *_coefficients(result, alpha, ratios=ratios),
        *_looks(result.looks),
        *adaptive_views.looks(result.releases),
        *weakly(result),
        *adaptive_views.caution(result),
    ]
    looked = [_LOOKS] if result.looks else []
    notes = [*result.remarks, *_errors(result), *looked, *result.notes]
    title = f"Private {result.family} regression: {result.endog_names}"
    return Report(title, result.claim.stamp, (*blocks, *views.closing(result.claim, notes)))


def selection(result: GLMSelectionResults, alpha: float, *, ratios: bool) -> Report:
    """Return the page of a selection, with its coefficients where there are any."""
    fit, blocks = result.regression, views.chosen_terms(result, alpha)
    about = _LOOKS if result.looks else adaptive_views.CHOOSING
    notes = [*result.remarks, *staged_views.notes(result, about)]
    if fit is not None:
        blocks += [_fit_facts(fit), *_coefficients(fit, alpha, ratios=ratios)]
        notes = [*_errors(fit), *notes, *fit.notes]
    blocks += _looks((*result.looks, *(() if fit is None else fit.looks)))
    blocks += adaptive_views.looks((*result.releases, *(() if fit is None else fit.releases)))
    blocks += [] if fit is None else [*weakly(fit), *adaptive_views.caution(fit)]
    title = f"Private variable selection, {result.family} regression: {result.response}"
    return Report(title, result.claim.stamp, (*blocks, *views.closing(result.claim, notes)))


def _earned(result: GLMResults) -> bool:
    return not result.bse.isna().all()


def _errors(result: GLMResults) -> list[str]:
    """Return what the errors and intervals mean."""
    if result.method == "adaptive":
        own = [] if result.among is None else [BESIDE_ALL.format(result.among)]
        return [*own, *adaptive_views.told(result, ERRORS, NORMAL)]
    if not _earned(result):
        return []
    if result.conditional:
        return [GIVEN_CHOICE, f"{_MODEL}."]
    if result.among is not None:
        return [BESIDE_ALL.format(result.among), f"{_MODEL}."]
    law = NORMAL if result.noise_degrees is None else _MIXTURE
    return [f"{ERRORS} {law}", _MODEL + GIVEN.get(result.fit, ".")]


def _coefficients(result: GLMResults, alpha: float, *, ratios: bool) -> list[Block]:
    table = coefficients(result, alpha)
    return [table, _ratios(result, alpha)] if ratios else [table]


def _intervals(result: GLMResults) -> str:
    if not _earned(result):
        return "none"
    if result.among is not None:
        return f"for the choice among {result.among}"
    if result.method == "adaptive":
        return "robust, clustered" if result.cov_type == "cluster" else "robust"
    return "given the choice" if result.conditional else "yes"


def _scale(fit: GLMResults) -> str:
    return "not released" if fit.error_variance is None else fixed(fit.error_variance)


def _fit_facts(fit: GLMResults) -> Facts:
    """Return how the chosen model was fitted."""
    rows = "held out" if fit.fit == "split" else "all"
    left = (("Family", fit.family), ("Link", fit.link), ("Fit", fit.fit), ("Rows", rows))
    right = (
        ("Complete, noisy", f"{fit.complete_rows or 0:,.0f}"),
        ("Scale", _scale(fit)),
        ("Converged", "yes" if fit.converged else "no"),
        ("Intervals", _intervals(fit)),
    )
    return Facts(left, right)


def _facts(result: GLMResults) -> Facts:
    rows = result.complete_rows
    # Of persons no look counts the rows.
    hidden = result.method == "adaptive" and rows is None
    complete = [] if hidden else [("Complete, noisy", f"{rows or 0:,.0f}")]
    left = [
        ("Dep. Variable", result.endog_names),
        *([("Success", result.success)] if result.success is not None else []),
        ("Family", result.family),
        ("Link", result.link),
        ("Noise", result.noise),
        ("Df Model", f"{result.df_model:.0f}"),
        ("Scale", _scale(result)),
        *complete,
        ("Converged", "yes" if result.converged else "no"),
    ]
    trials = [("Trials", result.trials)] if result.trials is not None else []
    offset = [("Offset", result.offset)] if result.offset is not None else []
    right = [*views.privacy_facts(result), *offset, *trials, ("Intervals", _intervals(result))]
    return Facts(tuple(left), tuple(right))


def _ratios(result: GLMResults, alpha: float) -> Grid:
    table = result.ratios(alpha)
    names = ("", RATIOS[result.link], f"[{alpha / 2:.5g}", f"{1 - alpha / 2:.5g}]")
    shown = table if not np.isnan(table.to_numpy()[:, 1:]).all() else table.iloc[:, :1]
    rows = tuple(
        (str(name), *(fixed(value) for value in values))
        for name, values in zip(shown.index, shown.to_numpy(), strict=True)
    )
    width = shown.shape[1] + 1
    return Grid(names[:width], rows, "lrrr"[:width])


def _looks(listed: Sequence[Look]) -> list[Block]:
    rows = tuple(
        (
            f"look {place}",
            "box" if look.radius is None else "at a fit",
            decimal_string(look.share),
            "" if look.radius is None else f"{look.radius**2:.3g}",
            "" if look.radius is None else f"{look.width:.3g}",
            f"{look.weight:.3f}",
        )
        for place, look in enumerate(listed, 1)
    )
    headers = ("", "rows", "share", "information\nlimit", "score\nlimit", "relative\nweight")
    return [Grid(headers, rows, "llrrrr")] if rows else []
