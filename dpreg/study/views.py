"""The printed pages of studies: results in, plain `Report` out.

Tested in `tests/study/test_selection.py` and `tests/study/test_adaptive.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dpreg.arrays import Bools
from dpreg.results.summary import Facts, Grid, Paragraph, Report
from dpreg.study.stamp import CURATOR_ONLY, SIMULATED

if TYPE_CHECKING:
    from dpreg.study.results import AdaptiveStudy, SelectionStudy
    from dpreg.study.simulated import SimulationStudy

__all__ = ["model_name", "report", "share", "simulation_report"]

_MOST: Final = {"settings": 24, "terms": 24, "columns": 8, "simulated": 40}
"""Lines and columns beyond these are left out of the page, and it says so."""


def model_name(study: SelectionStudy, units: Bools) -> str:
    """Name a model by its terms, kept ones first; "0" for the model without any."""
    drawn = [name for name, held in zip(study.candidates, units, strict=True) if held]
    names = ["1" if name == "Intercept" else name for name in (*study.kept, *drawn)]
    return " + ".join(names) or "0"


def share(value: float) -> str:
    """Write a probability as the slides do: .85, or 1 and 0 where it rounds to them."""
    text = f"{value:.3f}"
    return {"1.000": "1", "0.000": "0"}.get(text, text.lstrip("0"))


def report(study: Any) -> Report:
    """Return the page of a study of selections."""
    exact = hasattr(study, "exact")
    found = _exact(study) if exact else _by_looks(study)
    name = "Selection study" if exact else "Study of selection by looks"
    blocks = (Paragraph("Formula", study.formula), _facts(study), *found)
    return Report(f"{name}: {study.response}", CURATOR_ONLY, blocks)


def _facts(study: Any) -> Facts:
    left = (
        ("Rows", f"{study.rows:,}"),
        ("Models", f"{study.n_models:,}"),
        ("Terms", f"{len(study.kept)} kept, {len(study.candidates)} free"),
    )
    right = (("Neighbours", study.neighbors), ("Contributions", str(study.contributions)))
    if not hasattr(study, "exact"):
        return Facts(left, (("Draws", f"{study.draws} each"), *right))
    law = "exact" if study.exact else f"{study.law.draws} draws each"
    said = (("Settings", str(len(study.settings))), ("Probabilities", law))
    return Facts((*left, ("Units", study.units)), (*said, *right))


def _left_out(rows: int, most: int, where: str) -> list[Paragraph]:
    return [Paragraph("Left out", f"{rows - most} settings; see {where}.")] if rows > most else []


# ---- the paper's method --------------------------------------------------------------------------


def _exact(study: SelectionStudy) -> tuple[Grid | Paragraph, ...]:
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
    left_out = _left_out(len(study.settings), _MOST["settings"], "the data frames")
    return (_settings(study), *_frequencies(study), *notes, *left_out)


def _label(study: SelectionStudy, row: int) -> tuple[str, ...]:
    eps, radius, penalty, mechanism = study.settings[row].key
    price = penalty if isinstance(penalty, str) else f"{penalty:g}"
    return f"{eps:g}", f"{radius:g}", price, mechanism


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
        for s in range(min(len(study.settings), _MOST["settings"]))
    ]
    headers = (
        *("eps", "radius", "penalty", "mechanism", "P(same\nchoice)", "P(BIC's\nchoice)"),
        *("relative\nR-squared", "likeliest model", "its P"),
    )
    return Grid(headers, tuple(rows), "rrrlrrrlr", "Agreement and fit")


def _frequencies(study: SelectionStudy) -> list[Grid]:
    """Make the slides' table: terms x settings, as many settings as a page is wide."""
    shown = min(len(study.settings), _MOST["columns"])
    values = study.frequencies.to_numpy()
    order = np.argsort(-values.mean(axis=1), kind="stable")[: _MOST["terms"]]
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


# ---- looks -------------------------------------------------------------------------------------


def _by_looks(study: AdaptiveStudy) -> tuple[Grid | Paragraph, ...]:
    outcomes, frequencies, doubts = study.outcomes, study.frequencies, study.alternatives
    labels = [(f"{float(eps):g}", f"{float(delta):g}", m) for eps, delta, m in study.settings]
    told = Grid(
        ("eps", "delta", "noise", "found", "useless", "in\ngroups", "P(BIC's)", "relative\nR2"),
        tuple(
            (
                *label,
                *(f"{row[name]:.2f}" for name in ("found", "useless", "in groups")),
                share(float(row["same"])),
                f"{row['relative R-squared']:.3f}",
            )
            for label, (_, row) in zip(labels, outcomes.iterrows(), strict=True)
        ),
        "rrlrrrrr",
        f"On average; BIC chooses {len(study.bic)} terms",
    )
    shown = min(len(labels), _MOST["columns"])
    order = np.argsort(-frequencies.to_numpy().mean(axis=1), kind="stable")[: _MOST["terms"]]
    both = zip(frequencies.to_numpy()[order], doubts.to_numpy()[order], strict=True)
    rows = tuple(
        (
            study.candidates[i],
            "yes" if study.law.bic[i] else "no",
            *(f"{share(a)} ({share(b)})" for a, b in zip(own[:shown], doubt, strict=False)),
        )
        for i, (own, doubt) in zip(order, both, strict=True)
    )
    headers = tuple(f"eps {eps}\ndelta {delta}" for eps, delta, _ in labels[:shown])
    title = "Share of draws that report each term, and that name it in a group (in brackets)"
    reading = Paragraph(
        "Reading",
        "The looks were made anew for each draw, with seeded noise of the law of a call. found "
        "and useless: reported terms that least squares with BIC chooses on these rows, and "
        "that it does not; in groups: terms of which the looks show that one at least matters.",
    )
    return told, Grid(("term", "BIC", *headers), rows, "ll" + "r" * shown, title), reading


# ---- simulated rows ------------------------------------------------------------------------------


def simulation_report(study: SimulationStudy, varied: list[str]) -> Report:
    """Return the page of a simulation; `varied` names the keys of its settings to show."""
    d, frame = study.design, study.best.reset_index()
    models, rows = 2 ** len(d.beta) - (not d.empty), frame.head(_MOST["simulated"])
    facts = Facts(
        (("Data sets", str(d.datasets)), ("Models", str(models)), ("Error sd", f"{d.sigma:g}")),
        (
            ("Settings", f"{len(study.proportions):,}"),
            ("Penalties/n", f"{min(d.fractions):g} to {max(d.fractions):g}"),
            ("Probabilities", "exact per data set"),
        ),
    )
    lines = tuple(
        (
            *(row[key] if isinstance(row[key], str) else f"{row[key]:g}" for key in varied),
            f"{row['penalty/n']:g}",
            share(float(row["right"])),
            f"{row['se']:.4f}",
            share(float(row["wide"])),
        )
        for _, row in rows.iterrows()
    )
    sides = "".join("l" if isinstance(frame[key].iloc[0], str) else "r" for key in varied)
    headers = (*varied, "best\nphi/n", "P(right)", "se", "wide")
    grid = Grid(headers, lines, f"{sides}rrrr", "The best penalty of each setting")
    reading = Paragraph(
        "Reading",
        "P(right) is the chance that the drawn model is the true one, averaged over the "
        "data sets; wide is the part of the tried penalties that reach nine tenths of it. "
        "A bound that is observed is a leak: no budget pays for r = max |y|.",
    )
    left_out = _left_out(len(frame), _MOST["simulated"], ".best")
    beta = ", ".join(f"{b:g}" for b in d.beta)
    title = f"Simulation study: beta = ({beta})"
    return Report(title, SIMULATED, (facts, grid, reading, *left_out))
