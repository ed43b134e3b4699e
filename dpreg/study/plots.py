"""Pictures of studies, readable in grey; matplotlib is an extra and is imported when asked for.

Each function returns a matplotlib Figure whose title carries the study's stamp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from dpreg.arrays import Bools, Ints
from dpreg.errors import ArgumentError, shown
from dpreg.request import count
from dpreg.results.plots import literal, plotting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpreg.study.results import SelectionStudy
    from dpreg.study.simulation import SimulationStudy

__all__ = ["agreement", "frequencies", "probabilities", "relative_rsquared", "simulation"]

# Lines differ in shade, dash and marker, so that any one of the three is enough.
_STYLES: Final = (
    {"color": "0.0", "linestyle": "-", "marker": "o"},
    {"color": "0.25", "linestyle": "--", "marker": "s"},
    {"color": "0.35", "linestyle": "-.", "marker": "^"},
    {"color": "0.45", "linestyle": ":", "marker": "D"},
    {"color": "0.2", "linestyle": (0, (5, 1)), "marker": "v"},
    {"color": "0.5", "linestyle": (0, (1, 1)), "marker": "x"},
)
_PALE: Final = "0.8"
_MOST_COLUMNS: Final = 16
_MOST_TICKS: Final = 6
_LONGEST: Final = 60
_SHORT: Final = {"permute-and-flip": "p&f", "exponential": "exp.", "laplace": "Laplace"}


def agreement(study: SelectionStudy, reference: str = "same score") -> Figure:
    """Draw the chance of the non-private choice (the paper's Figures 3 and 4).

    With ``reference="bic"`` a pale line says where the score without noise chooses BIC's model.
    """
    if reference not in ("same score", "bic"):
        raise ArgumentError(f'reference must be "same score" or "bic"; got {shown(reference)}.')
    whose = "of the choice\nwithout noise" if reference == "same score" else "of BIC's choice"
    noiseless = None if reference == "same score" else study.law.chosen == study.law.bic
    return _lines(study, study.agreement[reference], f"chance {whose}", (0.0, 1.0), noiseless)


def relative_rsquared(study: SelectionStudy) -> Figure:
    """Draw the expected R-squared of the drawn model over that of BIC's."""
    values = study.relative_rsquared["relative"]
    low = min(0.0, float(values.min()))
    return _lines(study, values, "expected R-squared\nover BIC's", (low, 1.0))


def frequencies(study: SelectionStudy) -> Figure:
    """Draw the chance that the drawn model holds each term: a table in greys (the slides')."""
    if not study.candidates:
        raise ArgumentError("every term is in keep: there are no frequencies to draw.")
    shown = study.frequencies.iloc[:, :_MOST_COLUMNS]
    values = shown.to_numpy()
    rows, columns = values.shape
    figure, axes = _subplots(1, 1, (2.6 + 0.62 * columns, 1.9 + 0.27 * max(rows, 2)))
    panel = axes[0, 0]
    panel.imshow(values, cmap="Greys", vmin=0, vmax=1.25, aspect="auto")
    for i in range(rows):
        for j in range(columns):
            ink = "white" if values[i, j] > 0.75 else "black"
            text = f"{values[i, j]:.2f}"
            panel.text(j, i, text, ha="center", va="center", fontsize=7, color=ink)
    panel.set_yticks(range(rows), [literal(str(name)) for name in shown.index])
    panel.set_xticks(range(columns), _labels(shown.columns), fontsize=7)
    panel.xaxis.tick_top()
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    left = study.frequencies.shape[1] - columns
    if left:
        panel.set_xlabel(f"{left} settings are left out")
    return _titled(figure, f"Chance of each term, {study.response}", study.privacy)


def probabilities(study: SelectionStudy, models: int = 15, setting: int = 0) -> Figure:
    """Draw the likeliest models of one setting as bars; the non-private choice is filled."""
    setting, models = count(setting, "setting", 0), count(models, "models")
    if setting >= len(study.settings):
        raise ArgumentError(
            f"setting must be 0 to {len(study.settings) - 1}; got {shown(setting)}."
        )
    chances = study.law.probabilities[:, setting]
    order = np.argsort(-chances, kind="stable")[:models]
    chosen = int(study.law.chosen[setting])
    figure, axes = _subplots(1, 1, (9.0, 1.6 + 0.27 * max(len(order), 3)))
    panel = axes[0, 0]
    faces = ["0.25" if i == chosen else "white" for i in order]
    panel.barh(range(len(order)), chances[order], color=faces, edgecolor="0.25", linewidth=0.8)
    for place, i in enumerate(order):
        panel.text(chances[i], place, f" {chances[i]:.3f}", va="center", fontsize=7)
    names = _names(study, order, chosen)
    panel.set_yticks(range(len(order)), [literal(name) for name in names])
    panel.invert_yaxis()
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_xlim(0, max(float(chances[order].max()) * 1.12, 1e-12))
    rest = 1 - float(chances[order].sum())
    panel.locator_params(axis="x", nbins=4)
    panel.set_xlabel(
        f"chance of the model (filled: the choice without noise);\n"
        f"all others together {max(rest, 0):.3f}"
    )
    eps, radius, penalty, mechanism = study.settings[setting].key
    price = penalty if isinstance(penalty, str) else f"{penalty:g}"
    title = f"{study.response}: {mechanism}, eps {eps:g}, R {radius:g}, penalty {price}"
    return _titled(figure, title, study.privacy)


def simulation(
    study: SimulationStudy, n: int | None = None, reference: bool = True, **chosen: Any
) -> Figure:
    """Draw the chance of the right model over phi (the paper's Figures 1 and 2).

    A row of panels for each n, a column for each R, a line for each eps; the pale line is the
    share of data sets in which the same score is right without noise.
    """
    table = study.proportions[study.proportions["penalty/n"] != "auto"]
    said = []
    for key in ("bound", "mechanism", "neighbors", "scale"):
        wanted = chosen.pop(key, table[key].iloc[0])
        table = table[table[key] == wanted]
        said.append(f"r {_number(wanted)}" if key == "bound" else str(wanted))
        if table.empty:
            raise ArgumentError(f"{key}={wanted!r} was not studied.")
    if chosen:
        keys = ", ".join(map(str, study.best.index.names))
        raise ArgumentError(f"unknown option {next(iter(chosen))!r}; keys are {keys}.")
    if n is not None:
        table = table[table["n"] == n]
    if table.empty:
        raise ArgumentError(f"n={n!r} was not studied.")
    frame = table.rename(columns={"right": "value", "without noise": "noiseless"})
    frame["penalty phi"] = frame["penalty/n"].astype(float) * frame["n"]
    if not reference:
        frame = frame.drop(columns="noiseless")
    labels = {size: f"n = {size:,}\nchance of the right model" for size in frame["n"]}
    figure = _panels(frame, labels, "n", "penalty phi", "eps", (0.0, 1.0))
    beta = ", ".join(f"{b:g}" for b in study.design.beta)
    return _titled(figure, f"beta = ({beta}); {', '.join(said)}", study.privacy)


# ---- parts --------------------------------------------------------------------------------------


def _lines(
    study: SelectionStudy,
    values: pd.Series[float],
    label: str,
    span: tuple[float, float],
    noiseless: Bools | None = None,
) -> Figure:
    """Lines over the penalty, or over eps where fewer than two penalties are numbers."""
    frame = values.rename("value").reset_index()
    if noiseless is not None:
        frame["noiseless"] = noiseless.astype(float)
    numbers = [p for p in dict.fromkeys(frame["penalty"]) if not isinstance(p, str)]
    across, apart = ("penalty", "eps") if len(numbers) > 1 else ("eps", "penalty")
    if across == "penalty":
        frame = frame[[not isinstance(p, str) for p in frame["penalty"]]]
    mechanisms = list(dict.fromkeys(frame["mechanism"]))
    several = len(mechanisms) > 1
    labels = {name: f"{name}\n{label}" if several else label for name in mechanisms}
    if across == "eps":
        frame = frame.drop(columns="noiseless", errors="ignore")
    figure = _panels(frame, labels, "mechanism", across, apart, span)
    law = "exact" if study.exact else f"{study.law.draws} draws"
    mechanism = "" if several else f"{mechanisms[0]}, "
    title = f"{study.response}: {mechanism}{study.n_models:,} models, {law}"
    return _titled(figure, title, study.privacy)


def _panels(
    frame: pd.DataFrame,
    labels: dict[Any, str],
    row: str,
    across: str,
    apart: str,
    span: tuple[float, float],
) -> Figure:
    """Draw "value": a row of panels for each of `labels`, a column for each radius, some lines.

    A pale line shows "noiseless", where there is such a column.
    """
    radii = list(dict.fromkeys(frame["radius"]))
    figure, axes = _subplots(
        len(labels), len(radii), (1.4 + 2.4 * len(radii), 1 + 2.2 * len(labels))
    )
    room, top = 0.03 * (span[1] - span[0]), max(span[1], float(frame["value"].max()))
    for i, (value, label) in enumerate(labels.items()):
        beside = frame[frame[row] == value]
        for j, radius in enumerate(radii):
            panel = axes[i, j]
            for k, (group, line) in enumerate(
                beside[beside["radius"] == radius].groupby(apart, sort=False)
            ):
                x = line[across].to_numpy(dtype=float)
                if k == 0 and "noiseless" in line:
                    without = line["noiseless"].to_numpy()
                    panel.plot(x, without, color=_PALE, linewidth=3, label="no noise", zorder=1)
                _line(panel, x, line["value"].to_numpy(), k, f"{apart} {_number(group)}")
            panel.spines[["top", "right"]].set_visible(False)
            panel.set_ylim(span[0] - room, top + room)
            _spread(panel, sorted({float(x) for x in beside[across]}))
            if i == 0:
                panel.set_title(f"R = {radius:.4g}", fontsize="medium")
            if i == len(labels) - 1:
                panel.set_xlabel(across)
        axes[i, 0].set_ylabel(label)
    _legend(figure, axes[0, 0])
    return figure


def _subplots(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, Any]:
    figure, axes = plotting().subplots(
        rows,
        columns,
        figsize=(max(size[0], 4.8), max(size[1], 2.6)),
        squeeze=False,
        sharey=True,
        sharex="row",
        layout="constrained",
    )
    return figure, axes


def _line(
    panel: Axes, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], which: int, label: str
) -> None:
    style: dict[str, Any] = dict(_STYLES[which % len(_STYLES)])
    every = max(1, len(x) // 6)
    panel.plot(x, y, markersize=3.5, linewidth=1.2, markevery=every, label=label, **style)


def _spread(panel: Axes, values: list[float]) -> None:
    """Use a logarithmic axis for values that grow by factors, and mark the values themselves."""
    if len(values) < 3 or values[0] <= 0 or values[-1] < 8 * values[0]:
        return
    if values[1] - values[0] > (values[-1] - values[0]) / (len(values) - 1) / 2:
        return
    panel.set_xscale("log")
    marked = values if len(values) <= _MOST_TICKS else _apart(values)
    panel.set_xticks(marked, [f"{value:.3g}" for value in marked])
    panel.set_xticks([], minor=True)


def _apart(values: list[float]) -> list[float]:
    """Return a few of the values, about evenly far apart on a logarithmic axis."""
    kept = values[:1]
    for value in values[1:]:
        if value >= kept[-1] * (values[-1] / values[0]) ** (0.95 / (_MOST_TICKS - 2)):
            kept.append(value)
    return kept


def _legend(figure: Figure, panel: Axes) -> None:
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, handlelength=3.2)


def _labels(columns: pd.Index[Any]) -> list[str]:
    """Write each setting over its column, leaving out what does not vary."""
    keys = list(columns)
    varied = [i for i in range(4) if len({key[i] for key in keys}) > 1] or [0]
    names = ("eps ", "R ", "pen. ", "")
    return ["\n".join(names[i] + _number(key[i]) for i in varied) for key in keys]


def _number(value: object) -> str:
    return _SHORT.get(value, value) if isinstance(value, str) else f"{value:.4g}"


def _names(study: SelectionStudy, rows: Ints, chosen: int) -> list[str]:
    """Name models in full, or, where that is long, by how they differ from the chosen one."""
    names = [study.models[i] for i in rows]
    if max(map(len, names), default=0) <= _LONGEST:
        return names
    base = study.law.models[chosen]
    out = []
    for i in rows:
        model = study.law.models[i]
        more = [f"+ {study.candidates[j]}" for j in np.flatnonzero(model & ~base)]
        less = [f"\N{MINUS SIGN} {study.candidates[j]}" for j in np.flatnonzero(base & ~model)]
        said = " ".join([*more, *less]) or "the choice without noise"
        out.append(said if len(said) <= _LONGEST else said[: _LONGEST - 3] + "...")
    return out


def _titled(figure: Figure, title: str, stamp: str) -> Figure:
    figure.suptitle(f"{literal(title)}\n{stamp}", fontsize="medium")
    return figure
