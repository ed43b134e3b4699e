"""The printed pages of studies: results in, plain `Report` out.

Tested in `tests/study/test_selection.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dpreg.arrays import Bools
from dpreg.results.report import Facts, Grid, Paragraph, Report
from dpreg.study.stamp import CURATOR_ONLY

if TYPE_CHECKING:
    from dpreg.study.results import SelectionStudy

__all__ = ["model_name", "report", "share"]

_ROWS: Final = 24
"""Settings beyond these are left out of the page, and it says so."""

_TERMS: Final = 24
_COLUMNS: Final = 8


def model_name(study: SelectionStudy, units: Bools) -> str:
    """Name a model by its terms, kept ones first; "0" for the model without any."""
    drawn = [name for name, held in zip(study.candidates, units, strict=True) if held]
    kept = ["1" if name == "Intercept" else name for name in study.kept]
    free = ["1" if name == "Intercept" else name for name in drawn]
    return " + ".join([*kept, *free]) or "0"


def share(value: float) -> str:
    """Write a probability as the slides do: .85, or 1 and 0 where it rounds to them."""
    text = f"{value:.3f}"
    return {"1.000": "1", "0.000": "0"}.get(text, text.lstrip("0"))


def report(study: SelectionStudy) -> Report:
    """Return the page of a selection study."""
    return Report(
        f"Selection study: {study.response}",
        CURATOR_ONLY,
        (
            Paragraph("Formula", study.formula),
            _facts(study),
            _settings(study),
            *_frequencies(study),
            *_notes(study),
        ),
    )


def _facts(study: SelectionStudy) -> Facts:
    law = "exact" if study.exact else f"{study.law.draws} draws each"
    left = (
        ("Rows", f"{study.rows:,}"),
        ("Models", f"{study.n_models:,}"),
        ("Terms", f"{len(study.kept)} kept, {len(study.candidates)} free"),
        ("Units", study.units),
    )
    right = (
        ("Settings", str(len(study.settings))),
        ("Probabilities", law),
        ("Neighbours", study.neighbors),
        ("Contributions", str(study.contributions)),
    )
    return Facts(left, right)


def _label(study: SelectionStudy, row: int) -> tuple[str, ...]:
    setting = study.settings[row]
    price = setting.penalty if isinstance(setting.penalty, str) else f"{float(setting.penalty):g}"
    return (
        f"{float(setting.eps):g}",
        f"{float(setting.radius):g}",
        price,
        setting.mechanism,
    )


def _settings(study: SelectionStudy) -> Grid:
    agreement, fit = study.agreement, study.relative_rsquared
    likeliest = study.law.probabilities.argmax(axis=0)
    rows = [
        (
            *_label(study, s),
            share(float(agreement["same score"].iloc[s])),
            share(float(agreement["bic"].iloc[s])),
            f"{float(fit['relative'].iloc[s]):.3f}",
            study.models[likeliest[s]],
            share(float(study.law.probabilities[likeliest[s], s])),
        )
        for s in range(min(len(study.settings), _ROWS))
    ]
    headers = (
        *("eps", "radius", "penalty", "mechanism", "P(same\nchoice)", "P(BIC's\nchoice)"),
        *("relative\nR-squared", "likeliest model", "its P"),
    )
    return Grid(headers, tuple(rows), "rrrlrrrlr", "Agreement and fit")


def _frequencies(study: SelectionStudy) -> list[Grid]:
    """Make the slides' table: terms x settings, as many settings as a page is wide."""
    shown = min(len(study.settings), _COLUMNS)
    values = study.frequencies.to_numpy()
    order = np.argsort(-values.mean(axis=1), kind="stable")[:_TERMS]
    if not len(order):
        return []
    labels = [_label(study, s) for s in range(shown)]
    varied = [i for i in range(4) if len({label[i] for label in labels}) > 1] or [0]
    names = ("eps", "R", "pen", "")
    headers = tuple(
        "\n".join(f"{names[i]} {label[i]}".strip().replace("-and", "-\nand") for i in varied)
        for label in labels
    )
    rows = tuple(
        (study.candidates[i], *(share(float(v)) for v in values[i, :shown])) for i in order
    )
    fixed = ", ".join(
        f"{('eps', 'R', 'penalty', 'mechanism')[i]} {labels[0][i]}"
        for i in range(4)
        if i not in varied
    )
    title = f"Chance that the drawn model holds each term: {fixed}"
    return [Grid(("term", *headers), rows, "l" + "r" * shown, title)]


def _notes(study: SelectionStudy) -> list[Paragraph]:
    bic = study.models[study.law.bic]
    notes = [
        Paragraph(
            "Choices",
            "P(same choice) is the chance of the model that minimises the same score without "
            f"noise; P(BIC's choice) that of least squares with BIC, which is {bic} "
            f"(R-squared {study.law.bic_rsquared:.3f}). Relative R-squared is the expected one of "
            "the drawn model's constrained fit over that of BIC's.",
        )
    ]
    if not study.exact:
        notes.append(
            Paragraph(
                "Draws",
                f"The space is too large to list: chances are shares of {study.law.draws} draws, "
                "with standard errors in frequency_errors and in the tables' se columns.",
            )
        )
    if len(study.settings) > _ROWS:
        notes.append(
            Paragraph("Left out", f"{len(study.settings) - _ROWS} settings; see the data frames.")
        )
    return notes
