"""Pictures of released results; matplotlib is an extra and is imported here, when asked for.

Pictures of released histograms; matplotlib is an extra and is imported when asked for.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from dpreg.errors import ArgumentError
from dpreg.results import inference

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpreg.results.claim import PrivacyClaim
    from dpreg.results.classic import HistogramResults
    from dpreg.results.regression import RegressionResults
    from dpreg.results.selection import SelectionResults

_MOST: Final = 40
"""More candidates than this are not drawn: the most frequent are, and a line says so."""

_LONG_NUMBER: Final = 1e6
"""From here on ticks are written with few digits."""
_UNITS: Final = {
    "identity": "units of {}",
    "logit": "log odds of {}",
    "log": "logarithms of the mean of {}",
}
"""What a coefficient is measured in, by its link."""
_INK: Final = "0.15"
_PALE: Final = "0.6"
STYLES: Final[tuple[dict[str, Any], ...]] = (
    {"color": "0.0", "linestyle": "-", "marker": "o"},
    {"color": "0.25", "linestyle": "--", "marker": "s"},
    {"color": "0.35", "linestyle": "-.", "marker": "^"},
    {"color": "0.45", "linestyle": ":", "marker": "D"},
    {"color": "0.2", "linestyle": (0, (5, 1)), "marker": "v"},
    {"color": "0.5", "linestyle": (0, (1, 1)), "marker": "x"},
)
"""Lines differ in shade, dash and marker, so that any one of the three is enough."""


def frequencies(result: SelectionResults, ax: Axes | None = None) -> Axes:
    """Draw each candidate's share of the released draws: a filled dot where it was selected.

    Parameters
    ----------
    result : SelectionResults
    ax : matplotlib Axes, optional
        Made, at a fitting size, where not given.

    Returns
    -------
    matplotlib Axes
    """
    shares = result.selection_frequencies
    grouped = {term for group in result.alternatives for term in group}
    shares = shares.iloc[np.lexsort([~shares.index.isin(grouped), -shares.to_numpy()])]
    drawn = shares.iloc[:_MOST]
    axes, places, values = new_axes(ax, len(drawn)), np.arange(len(drawn)), drawn.to_numpy()
    chosen, open_ = (drawn.index.isin(names) for names in (result.selected, grouped))
    axes.hlines(places, 0, values, color=_PALE, linewidth=1.2)
    if result.draws > 1:
        errors = result.frequency_errors[drawn.index].to_numpy()
        reach = [np.minimum(errors, values), np.minimum(errors, 1 - values)]
        axes.errorbar(values, places, xerr=reach, fmt="none", ecolor=_INK, lw=0.8, capsize=2)
    kinds = [(chosen, _INK, "selected"), (~chosen & ~open_, "white", "not selected")]
    if open_.any():
        kinds.insert(1, (open_, _PALE, "one of several"))
    for mask, face, label in kinds:
        dots: Any = {"markerfacecolor": face, "markeredgecolor": _INK, "label": label, "zorder": 3}
        axes.plot(values[mask], places[mask], "o", **dots)
    axes.set_xlim(-0.03, 1.03)
    several = f"share of the {result.draws} released draws (bars: 1 binomial se)"
    where = "the reported model" if result.by_looks else "the one released draw"
    axes.set_xlabel(several if result.draws > 1 else f"in {where} (0 no, 1 yes)")
    if len(shares) > len(drawn):
        axes.set_ylabel(f"{len(shares) - len(drawn)} terms not more frequent are left out")
    name_rows(axes, list(drawn.index))
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    title = f"Selection of variables for {result.response}, {result.spent}"
    return finish(axes, title, result.claim)


def coefficients(result: RegressionResults, ax: Axes | None = None, alpha: float = 0.05) -> Axes:
    """Draw coefficients with intervals, on one scale, and write their values beside them.

    Where the widths of the columns are known, a coefficient is multiplied by half the declared
    range of its column, so that all are in units of the response, or of the linear predictor. The
    intercept is left out.

    Parameters
    ----------
    result : RegressionResults
    ax : matplotlib Axes, optional
    alpha : float, default 0.05
        The intervals have level 1 - alpha.

    Returns
    -------
    matplotlib Axes
    """
    alpha = inference.level(alpha)
    shown = [j for j, name in enumerate(result.exog_names) if name != "Intercept"]
    widths = result.column_widths
    scales = np.ones(len(shown)) if widths is None else widths[shown]
    raw, limits = result.params.to_numpy()[shown], result.conf_int(alpha).to_numpy()[shown]
    values, ends = raw * scales, limits * scales[:, None]
    axes = new_axes(ax, len(shown))
    places = np.arange(len(shown))
    axes.axvline(0, color=_PALE, linewidth=0.8, linestyle="--")
    axes.hlines(places, ends[:, 0], ends[:, 1], color=_INK, linewidth=1.6)
    axes.plot(values, places, "o", color=_INK)
    name_rows(axes, [result.exog_names[j] for j in shown])
    side = axes.secondary_yaxis("right")
    texts = [
        f"{_plain(b)}  [{_plain(low)}, {_plain(high)}]"
        for b, (low, high) in zip(raw, limits, strict=True)
    ]
    side.set_yticks(places, texts)
    side.tick_params(length=0)
    unit = _UNITS[getattr(result, "link", "identity")].format(literal(result.endog_names))
    times = "" if widths is None else f" x half the declared range, in {unit}"
    wide = np.nanmax(np.abs(ends), initial=0.0, where=np.isfinite(ends)) >= _LONG_NUMBER
    # matplotlib's own power of ten at the end of the axis would cover the label
    axes.xaxis.set_major_formatter("{x:.3g}" if wide else "{x:,.10g}")
    axes.locator_params(axis="x", nbins=3 if wide else 5)
    axes.set_xlabel(f"coefficient{times} ({100 * (1 - alpha):g}% interval)")
    title = f"Coefficients for {result.endog_names}, {result.spent}"
    return finish(axes, title, result.claim)


def plotting() -> Any:
    """Import matplotlib's pyplot, or say how to install it."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ArgumentError(
            "plot() needs matplotlib, which is an extra: run `pip install dpreg[plot]`"
        ) from None
    return pyplot


def new_axes(ax: Axes | None, rows: int, width: float = 7.5) -> Axes:
    """Return axes with room for so many rows, or those that were given."""
    if ax is not None:
        return ax
    made: Axes
    _, made = plotting().subplots(figsize=(width, 1.6 + 0.27 * max(rows, 3)), layout="constrained")
    return made


def name_rows(axes: Axes, names: list[str]) -> None:
    """Put the names on the left, the first on top."""
    axes.set_yticks(np.arange(len(names)), [literal(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.spines[["top", "right"]].set_visible(False)


def literal(text: str) -> str:
    """Keep matplotlib from reading what stands between two "$" as a formula."""
    return text.replace("$", r"\$")


def finish(axes: Axes, title: str, claim: PrivacyClaim) -> Axes:
    """Write the title, and the stamp if there is one."""
    stamp = f"\n{claim.stamp}" if claim.stamp else ""
    axes.set_title(literal(title) + stamp, fontsize="medium")
    return axes


def _plain(value: float) -> str:
    """Write four significant digits, 97,960 rather than 9.796e+04."""
    short = f"{value:.4g}"
    return short if abs(value) >= _LONG_NUMBER else f"{float(short):,.10g}"


_FILL: Final = "0.8"
_MOST_BINS: Final = 60
"""With more bins than this, intervals are left out: they would hide the picture."""
_ROOM: Final = 60
"""Characters of all levels that stand beside each other; longer ones stand below each other."""


def histogram(result: HistogramResults, ax: Axes | None = None, alpha: float = 0.05) -> Axes:
    """Draw a histogram: bars of the density, and intervals of the unprojected shares.

    Groups are drawn as outlines over each other, without intervals. The bars of a categorical
    column are shares; they lie on their side where the levels have long names.

    Parameters
    ----------
    result : HistogramResults
    ax : matplotlib Axes, optional
    alpha : float, default 0.05
        The intervals have level 1 - alpha.

    Returns
    -------
    matplotlib Axes
    """
    alpha = inference.level(alpha)
    numeric = result.edges is not None
    lying = not numeric and sum(map(len, result.levels)) + 2 * len(result.levels) > _ROOM
    axes = new_axes(ax, max(12, len(result.levels)) if lying else 12)
    edges = np.arange(len(result.levels) + 1) - 0.5 if result.edges is None else result.edges
    bins = edges.size - 1
    heights = result.density.to_numpy().reshape(-1, bins)
    along: Literal["vertical", "horizontal"] = "horizontal" if lying else "vertical"
    draw = partial(axes.stairs, edges=edges, orientation=along)
    if result.groups:
        for group, line in zip(result.groups, heights, strict=True):
            draw(line, label=literal(group))
        axes.legend(title=literal(result.by or ""), frameon=False)
    else:
        draw(heights[0], fill=True, color=_FILL)
        draw(heights[0], color=_INK, linewidth=0.8)
        if bins <= _MOST_BINS:
            low, high = (result.heights(end) for end in result.conf_int(alpha).to_numpy().T)
            middles = (edges[:-1] + edges[1:]) / 2
            (axes.hlines if lying else axes.vlines)(middles, low, high, color=_INK, linewidth=1.0)
    shown = "density" if numeric else "share"
    bars = "" if result.groups or bins > _MOST_BINS else f" ({100 * (1 - alpha):g}% intervals)"
    axes.set(xlabel=literal(result.column), ylabel=shown + bars)
    axes.spines[["top", "right"]].set_visible(False)
    if numeric:
        axes.locator_params(axis="x", nbins=7)
    elif lying:
        axes.set(xlabel=shown + bars, ylabel=literal(result.column))
        name_rows(axes, list(result.levels))
    else:
        axes.set_xticks(np.arange(len(result.levels)), list(map(literal, result.levels)))
    return finish(axes, f"Histogram of {result.column}, {result.spent}", result.claim)
