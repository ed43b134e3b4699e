"""What the summary of a generalised linear model says.

Tested in `tests/api/test_glm.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dpreg.privacy.budget import decimal_string
from dpreg.results import views
from dpreg.results.fit_views import coefficients, fixed
from dpreg.results.report import Block, Facts, Grid, Paragraph, Report

if TYPE_CHECKING:
    from dpreg.results.glm import GLMResults
    from dpreg.results.looks import Look

__all__ = ["RATIOS", "glm"]

RATIOS: Final = {"logit": "odds ratio", "log": "rate ratio"}

_ERRORS: Final = (
    "std err holds sampling error and privacy noise together; the last two columns tell how large "
    "each would be alone. {law} Intervals hold for independent rows whose mean is that of the "
    "model; the spread may be another."
)
_NORMAL: Final = "z, P>|z| and the interval use std err and the normal law."
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
    earned = not result.bse.isna().all()
    blocks: list[Block] = [
        Paragraph("Formula", result.formula),
        _facts(result, earned=earned),
        coefficients(result, alpha),
    ]
    if ratios:
        blocks.append(_ratios(result, alpha))
    blocks += _looks(result.looks)
    if result.weak:
        named = "; ".join(f"{name} ({why})" for name, why in result.weak.items())
        blocks.append(Paragraph("Weak", named))
    law = _NORMAL if result.noise_degrees is None else _MIXTURE
    notes = [_ERRORS.format(law=law)] * earned + [_LOOKS, *result.notes]
    title = f"Private {result.family} regression: {result.endog_names}"
    return Report(title, result.claim.stamp, (*blocks, *views.closing(result.claim, notes)))


def _facts(result: GLMResults, *, earned: bool) -> Facts:
    left = [
        ("Dep. Variable", result.endog_names),
        *([("Success", result.success)] if result.success is not None else []),
        ("Family", result.family),
        ("Link", result.link),
        ("Noise", result.noise),
        ("Df Model", f"{result.df_model:.0f}"),
        ("Scale", fixed(result.scale)),
        ("Complete, noisy", f"{result.complete_rows or 0:,.0f}"),
        ("Converged", "yes" if result.converged else "no"),
    ]
    offset = [("Offset", result.offset)] if result.offset is not None else []
    right = [*views.privacy_facts(result), *offset, ("Intervals", "yes" if earned else "none")]
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
