"""Pictures of studies, readable in grey; matplotlib is an extra and is imported when asked for.

Each function returns a matplotlib Figure whose title carries the study's stamp.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from dpreg.arrays import Ints
from dpreg.errors import ArgumentError, shown
from dpreg.planning.pages import plain
from dpreg.request import choice, count
from dpreg.results.plots import STYLES, literal, name_rows, new_axes, plotting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpreg.study.results import SelectionStudy
    from dpreg.study.simulation import SimulationStudy

__all__ = ["agreement", "frequencies", "probabilities", "relative_rsquared", "simulation"]

_PALE: Final = "0.8"
_MOST_COLUMNS: Final = 16
_MOST_TICKS: Final = 6
_LONGEST: Final = 60
_SHORT: Final = {"permute-and-flip": "p&f", "exponential": "exp.", "laplace": "Laplace"}


def agreement(study: SelectionStudy, reference: str = "same score") -> Figure:
    """Draw the chance of the non-private choice (the paper's Figures 3 and 4).

    With ``reference="bic"`` a pale line says where the score without noise chooses BIC's model.
    """
    choice(reference, "reference", ("same score", "bic"))
    table = study.agreement
    frame = pd.DataFrame({"value": table[reference]})
    if reference == "same score":
        return _lines(study, frame, "chance of the choice\nwithout noise")
    frame["noiseless"] = (table["same score's choice"] == table["bic's choice"]).astype(float)
    return _lines(study, frame, "chance of BIC's choice")


def relative_rsquared(study: SelectionStudy) -> Figure:
    """Draw the expected R-squared of the drawn model over that of BIC's."""
    frame = study.relative_rsquared.rename(columns={"relative": "value"})
    return _lines(study, frame, "expected R-squared\nover BIC's")


def frequencies(study: SelectionStudy) -> Figure:
    """Draw the chance that the drawn model holds each term: a table in greys (the slides')."""
    if not study.candidates:
        raise ArgumentError("every term is in keep: there are no frequencies to draw.")
    values = study.frequencies.to_numpy()[:, :_MOST_COLUMNS]
    rows, columns = values.shape
    panel = new_axes(None, rows + 1, max(2.6 + 0.62 * columns, 4.8))
    panel.imshow(values, cmap="Greys", vmin=0, vmax=1.25, aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        ink = "white" if value > 0.75 else "black"
        panel.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=7, color=ink)
    panel.set_yticks(range(rows), [literal(name) for name in study.candidates])
    heads, _ = study.headings(_MOST_COLUMNS)
    for name, short in _SHORT.items():
        heads = [head.replace(name, short) for head in heads]
    panel.set_xticks(range(columns), heads, fontsize=7)
    panel.xaxis.tick_top()
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    left = len(study.settings) - columns
    if left:
        panel.set_xlabel(f"{left} settings are left out")
    return _titled(panel.get_figure(), f"Chance of each term, {study.response}", study.privacy)


def probabilities(study: SelectionStudy, models: int = 15, setting: int = 0) -> Figure:
    """Draw the likeliest models of one setting as bars; the non-private choice is filled."""
    setting, models = count(setting, "setting", 0), count(models, "models")
    if setting >= len(study.settings):
        raise ArgumentError(
            f"setting must be 0 to {len(study.settings) - 1}; got {shown(setting)}."
        )
    chances, chosen = study.law.probabilities[:, setting], study.chosen[setting]
    order = np.argsort(-chances, kind="stable")[:models]
    panel = new_axes(None, len(order), 9.0)
    faces = ["0.25" if i == chosen else "white" for i in order]
    bars = panel.barh(
        range(len(order)), chances[order], color=faces, edgecolor="0.25", linewidth=0.8
    )
    panel.bar_label(bars, fmt=" %.3f", fontsize=7)
    name_rows(panel, _names(study, order, chosen))
    panel.set_xlim(0, max(float(chances[order].max()) * 1.12, 1e-12))
    panel.locator_params(axis="x", nbins=4)
    panel.set_xlabel(
        f"chance of the model (filled: the choice without noise);\n"
        f"all others together {max(1 - float(chances[order].sum()), 0):.3f}"
    )
    eps, radius, penalty, mechanism = map(plain, study.settings[setting].key)
    title = f"{study.response}: {mechanism}, eps {eps}, R {radius}, penalty {penalty}"
    return _titled(panel.get_figure(), title, study.privacy)


def simulation(
    study: SimulationStudy, n: int | None = None, reference: bool = True, **chosen: Any
) -> Figure:
    """Draw the chance of the right model over phi (the paper's Figures 1 and 2).

    A row of panels for each n, a column for each R, a line for each eps; the pale line is the
    share of data sets in which the same score is right without noise.
    """
    table = study.proportions[study.proportions["penalty/n"] != "auto"]
    wanted = {key: table[key].iloc[0] for key in ("bound", "mechanism", "neighbors", "scale")}
    if unknown := [key for key in chosen if key not in wanted]:
        raise ArgumentError(f"unknown option {unknown[0]!r}; keys are {', '.join(wanted)}.")
    wanted |= chosen
    for key, value in (wanted | ({} if n is None else {"n": n})).items():
        table = table[table[key] == value]
        if table.empty:
            raise ArgumentError(f"{key}={value!r} was not studied.")
    frame = table.rename(columns={"right": "value", "without noise": "noiseless"})
    frame["penalty phi"] = frame["penalty/n"].astype(float) * frame["n"]
    if not reference:
        frame = frame.drop(columns="noiseless")
    labels = {size: f"n = {size:,}\nchance of the right model" for size in frame["n"]}
    figure = _panels(frame, labels, "n", "penalty phi", "eps")
    said = ", ".join([f"r {_number(wanted.pop('bound'))}", *wanted.values()])
    return _titled(figure, f"{study.design.title}; {said}", study.privacy)


# ---- parts --------------------------------------------------------------------------------------


def _lines(study: SelectionStudy, frame: pd.DataFrame, label: str) -> Figure:
    """Lines over the penalty, or over eps where fewer than two penalties are numbers."""
    frame = frame.reset_index()
    number = np.array([not isinstance(penalty, str) for penalty in frame["penalty"]])
    if frame["penalty"][number].nunique() > 1:
        across, apart, frame = "penalty", "eps", frame[number]
    else:
        across, apart, frame = "eps", "penalty", frame.drop(columns="noiseless", errors="ignore")
    mechanisms = list(dict.fromkeys(frame["mechanism"]))
    several = len(mechanisms) > 1
    labels = {name: f"{name}\n{label}" if several else label for name in mechanisms}
    figure = _panels(frame, labels, "mechanism", across, apart)
    law = "exact" if study.exact else f"{study.law.draws} draws"
    mechanism = "" if several else f"{mechanisms[0]}, "
    title = f"{study.response}: {mechanism}{study.n_models:,} models, {law}"
    return _titled(figure, title, study.privacy)


def _panels(frame: pd.DataFrame, labels: dict[Any, str], row: str, across: str, apart: str) -> Any:
    """Draw "value": a row of panels for each of `labels`, a column for each radius, some lines.

    A pale line shows "noiseless", where there is such a column.
    """
    radii = list(dict.fromkeys(frame["radius"]))
    size = max(1.4 + 2.4 * len(radii), 4.8), 1 + 2.2 * len(labels)
    shared: Any = {"squeeze": False, "sharey": True, "sharex": "row", "layout": "constrained"}
    figure, axes = plotting().subplots(len(labels), len(radii), figsize=size, **shared)
    low, top = min(0.0, float(frame["value"].min())), max(1.0, float(frame["value"].max()))
    room = 0.03 * (1 - low)
    for (i, value), (j, radius) in product(enumerate(labels), enumerate(radii)):
        panel, beside = axes[i, j], frame[frame[row] == value]
        lines = beside[beside["radius"] == radius].groupby(apart, sort=False)
        for k, (group, line) in enumerate(lines):
            x, label = line[across].to_numpy(dtype=float), f"{apart} {_number(group)}"
            if k == 0 and "noiseless" in line:
                without = line["noiseless"].to_numpy()
                panel.plot(x, without, color=_PALE, linewidth=3, label="no noise", zorder=1)
            style, every = STYLES[k % len(STYLES)], max(1, len(x) // 6)
            marks = {"markersize": 3.5, "markevery": every, "linewidth": 1.2}
            panel.plot(x, line["value"].to_numpy(), label=label, **marks, **style)
        panel.spines[["top", "right"]].set_visible(False)
        panel.set_ylim(low - room, top + room)
        _spread(panel, sorted({float(x) for x in beside[across]}))
        if i == 0:
            panel.set_title(f"R = {radius:.4g}", fontsize="medium")
        if i == len(labels) - 1:
            panel.set_xlabel(across)
        if j == 0:
            panel.set_ylabel(labels[value])
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right center", frameon=False, handlelength=3.2)
    return figure


def _spread(panel: Axes, values: list[float]) -> None:
    """Use a logarithmic axis for values that grow by factors, and mark the values themselves."""
    if len(values) < 3 or values[0] <= 0 or values[-1] < 8 * values[0]:
        return
    if values[1] - values[0] > (values[-1] - values[0]) / (len(values) - 1) / 2:
        return
    panel.set_xscale("log")
    marked = values[:: -(-len(values) // _MOST_TICKS)]
    panel.set_xticks(marked, [f"{value:.3g}" for value in marked])
    panel.set_xticks([], minor=True)


def _number(value: object) -> str:
    return _SHORT.get(value, value) if isinstance(value, str) else f"{value:.4g}"


def _names(study: SelectionStudy, rows: Ints, chosen: int) -> list[str]:
    """Name models in full, or, where that is long, by how they differ from the chosen one."""
    if max(len(study.models[i]) for i in rows) <= _LONGEST:
        return [study.models[i] for i in rows]
    terms, base, out = np.array(study.candidates, dtype=object), study.law.models[chosen], []
    for model in study.law.models[rows]:
        said = " ".join(
            [*("+ " + terms[model & ~base]), *("\N{MINUS SIGN} " + terms[base & ~model])]
        )
        out.append(said or "the choice without noise")
    return [said if len(said) <= _LONGEST else said[: _LONGEST - 3] + "..." for said in out]


def _titled(figure: Any, title: str, stamp: str) -> Figure:
    figure.suptitle(f"{literal(title)}\n{stamp}", fontsize="medium")
    titled: Figure = figure
    return titled
