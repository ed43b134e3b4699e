"""What a summary says of fitted coefficients: their table, the looks, and the notes below.

Tested in `tests/results/test_views.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from dpreg.privacy.budget import decimal_string
from dpreg.privacy.objective import OBJECTIVE
from dpreg.results import adaptive_views
from dpreg.results.report import Block, Facts, Grid, Paragraph

if TYPE_CHECKING:
    from dpreg.results.looks import Look
    from dpreg.results.regression import RegressionResults

__all__ = [
    "BESIDE_ALL",
    "ERRORS",
    "GIVEN",
    "GIVEN_CHOICE",
    "LOOKS_NOTE",
    "NORMAL",
    "coefficients",
    "estimate_headers",
    "fit_facts",
    "fit_notes",
    "fixed",
    "looks",
    "numbers",
]

ERRORS: Final = (
    "std err holds sampling error and privacy noise together; the last two columns show how large "
    "each would be alone."
)
NORMAL: Final = "z, P>|z| and the interval use std err and the normal law."
_CUT: Final = (
    " The sampling column also includes how far cutting heavy-tailed residuals may have moved a "
    "coefficient."
)
_MIXTURE: Final = (
    "P>|z| and the interval use the law of sampling error and {} noise together, whose tails are "
    "heavier than normal ones."
)
_BOOTSTRAP: Final = (
    "P>|z| and the interval come from bootstrap draws made with the public law of the noise; z is "
    "coef over std err."
)
_DRAWN: Final = (
    " Unlike coef, the draws are not shrunk towards zero: coef may be at the end of its interval."
)
_MODEL: Final = "Intervals hold for a linear model with independent rows and one residual variance"
GIVEN: Final = {
    "split": ", given the terms that the other rows selected.",
    "share": ". The same rows selected the terms, which the intervals do not account for.",
    "fresh": (
        ". The same rows selected the terms, with noise other than that of these estimates; the "
        "intervals do not account for the rows themselves having favoured these terms."
    ),
}
GIVEN_CHOICE: Final = (
    "coef, P>|z| and the interval are those of each coefficient given that this model was chosen: "
    "an estimate that is too low as often as too high, and an interval that covers as often as it "
    "says. std err and the last two columns are as if the terms had been given beforehand."
)
BESIDE_ALL: Final = (
    "The same look selected the terms. coef is beside all {0} columns on offer; P>|z| and the "
    "interval allow for {0} of them, so that the share of intervals of selected terms that miss is "
    "no larger on average than the level says. std err is that of one coefficient by itself."
)
_RIDGED: Final = (
    "The privacy noise is large for these columns: the fit was ridged by a public rule, and "
    "coefficients are drawn towards zero."
)
LOOKS_NOTE: Final = (
    "Each look releases the moments of rows in coordinates that earlier looks fixed: a row whose "
    "columns lie outside the radius is weighted down to it, and its residual is clipped; clips are "
    "shares of half the response's range, and are opened where the noise is small anyway."
)
_ALONE: Final = (
    " The last release was of the coefficients alone, by objective perturbation; its line shows "
    "the look that it equals."
)
_STRETCHED: Final = (
    " In the last look a residual may reach 1.5 clips, the nearer its row lies to the centre."
)


_ROBUST: Final = {"HC": "robust", "cluster": "robust, clustered"}


def fit_facts(fit: RegressionResults) -> Facts:
    """Return how a model was fitted."""
    rows = {"split": "held out"}
    left = [("Fit", fit.method), ("Noise", fit.noise), ("Rows", rows.get(fit.fit, "all"))]
    if fit.complete_rows is not None:
        left.append(("Complete, noisy", f"{fit.complete_rows:,.0f}"))
    right = []
    if (share := fit.explained) is not None:
        right.append(("R-squared", fixed(share)))
    if (variance := fit.error_variance) is not None:
        right.append(("Residual sd", fixed(math.sqrt(max(variance, 0)), 4)))
    kind = fit.interval_method + (", ridged" if fit.ridged else "")
    kind = _ROBUST[fit.cov_type] if fit.method == "adaptive" else kind
    kind = "given the choice" if fit.conditional else kind
    kind = f"for the choice among {fit.among}" if fit.among else kind
    right.append(("Intervals", kind if _has_errors(fit) else "none"))
    return Facts(tuple(left), tuple(right))


def _has_errors(fit: RegressionResults) -> bool:
    """Whether the method gives errors; SSP, AdaSSP and "objective" give coefficients alone."""
    return not fit.bse.isna().all()


def coefficients(fit: RegressionResults, alpha: float) -> Grid:
    """Return the table of coefficients; without errors where the method gives none."""
    if not _has_errors(fit):
        listed = zip(fit.exog_names, fit.coefficients, strict=True)
        alone = tuple((name, fixed(value, 4)) for name, value in listed)
        return Grid(("", "coef"), alone, "lr")
    columns = (
        fit.params.to_numpy(),
        fit.bse,
        fit.tvalues,
        fit.pvalues,
        *fit.conf_int(alpha).to_numpy().T,
        fit.bse_sampling.to_numpy(),
        fit.bse_privacy.to_numpy(),
    )
    rows = tuple(
        (name, *numbers(values)) for name, *values in zip(fit.exog_names, *columns, strict=True)
    )
    cut = fit.method == "staged" and fit.kind == "regression"  # a family's looks cut no residuals
    sampling = "sampling\nand cut" if cut else "sampling\nerror"
    headers = ("", *estimate_headers(alpha), sampling, "privacy\nnoise")
    return Grid(headers, rows, "lrrrrrrrr")


def looks(listed: Sequence[Look]) -> list[Block]:
    """Return one line for each look at moments."""
    rows = tuple(
        (
            "alone" if look.mechanism == OBJECTIVE else f"look {place}",
            "box" if look.radius is None else "located",
            decimal_string(look.share),
            "" if look.radius is None else f"{look.radius:.2f}",
            f"{look.width:.3g}",
            "yes" if look.opened else "no",
            f"{look.weight:.3f}",
        )
        for place, look in enumerate(listed, 1)
    )
    headers = ("", "rows", "share", "radius", "residual\nclip", "opened", "mean\nweight")
    return [Grid(headers, rows, "llrrrlr")] if listed else []


def weakly(fit: RegressionResults) -> list[Block]:
    """Name the coefficients that the release leaves weak and why, but for what a note says."""
    if fit.method == "adaptive":
        return adaptive_views.marked(fit)
    noted = any(note.startswith("Weakly determined: ") for note in fit.notes)
    named = [
        f"{name} ({why})"
        for name, why in fit.weak.items()
        if not (noted and why == "hidden direction")
    ]
    return [Paragraph("Weak", "; ".join(named))] if named else []


def fit_notes(fit: RegressionResults) -> list[str]:
    """Return what the errors and intervals mean."""
    if fit.method == "adaptive":
        own = [] if fit.among is None else [BESIDE_ALL.format(fit.among)]
        return [*own, *adaptive_views.told(fit, ERRORS, NORMAL)]
    if not _has_errors(fit):
        return []
    if fit.conditional:
        return [GIVEN_CHOICE + _CUT, f"{_MODEL}."]
    if fit.among is not None:
        return [BESIDE_ALL.format(fit.among) + _CUT, f"{_MODEL}."]
    alone = bool(fit.looks) and fit.looks[-1].mechanism == OBJECTIVE
    intervals = _MIXTURE.format("K-norm" if alone else "matrix-Laplace")
    intervals = NORMAL if fit.noise_degrees is None else intervals
    if fit.interval_method == "bootstrap":
        intervals = _BOOTSTRAP + _DRAWN * fit.ridged
    stretched = bool(fit.looks) and fit.looks[-1].stretch > 1
    staged = [LOOKS_NOTE + _STRETCHED * stretched + _ALONE * alone] if fit.looks else []
    return [
        f"{ERRORS}{_CUT * (fit.method == 'staged')} {intervals}",
        _MODEL + GIVEN.get(fit.fit, "."),
        *[_RIDGED] * fit.ridged,
        *staged,
    ]


def estimate_headers(alpha: float) -> tuple[str, ...]:
    """Return the headers that statsmodels' tables have."""
    low, high = f"[{alpha / 2:.5g}", f"{1 - alpha / 2:.5g}]"
    return ("coef", "std err", "z", "P>|z|", low, high)


def numbers(values: Iterable[float]) -> tuple[str, ...]:
    """Write coefficient, error, z, p-value and limits, each as statsmodels does."""
    coefficient, error, z, p, *rest = values
    return (
        fixed(coefficient, 4),
        fixed(error),
        f"{z:.3f}" if abs(z) < 1e5 else f"{z:.3g}",
        f"{p:.3f}",
        *(fixed(value) for value in rest),
    )


def fixed(number: float, places: int = 3) -> str:
    """Return a number as statsmodels' tables do: fixed where that is readable, else scientific.

    At most six digits are shown of a number beyond 100, and three of one that rounds to nothing.
    """
    if number == 0 or not math.isfinite(number):
        return f"{number:.{places}f}"
    if not 10.0**-places <= abs(number) < 1e5:
        return f"{number:.{places if abs(number) > 1 else 3}g}"
    before = math.floor(math.log10(abs(number))) + 1
    return f"{number:.{max(0, min(places, 6 - before))}f}"
