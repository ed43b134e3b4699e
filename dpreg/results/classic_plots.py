"""Pictures of released histograms; matplotlib is an extra and is imported when asked for.

Tested in `tests/results/test_classic.py`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from dpreg.results import inference
from dpreg.results.plots import finish, literal
from dpreg.results.plots import new_axes as axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpreg.results.histogram import HistogramResults

__all__ = ["histogram"]

_INK: Final = "0.15"
_PALE: Final = "0.8"
_MOST: Final = 60
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
    axes = axes_or_new(ax, max(12, len(result.levels)) if lying else 12)
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
        draw(heights[0], fill=True, color=_PALE)
        draw(heights[0], color=_INK, linewidth=0.8)
        if bins <= _MOST:
            low, high = (result.heights(end) for end in result.conf_int(alpha).to_numpy().T)
            middles = (edges[:-1] + edges[1:]) / 2
            (axes.hlines if lying else axes.vlines)(middles, low, high, color=_INK, linewidth=1.0)
    shown = "density" if numeric else "share"
    bars = "" if result.groups or bins > _MOST else f" ({100 * (1 - alpha):g}% intervals)"
    names = [literal(name) for name in result.levels]
    if lying:
        axes.set_yticks(np.arange(len(names)), names)
        axes.invert_yaxis()
        axes.set_xlabel(shown + bars)
        axes.set_ylabel(literal(result.column))
    else:
        axes.set_xlabel(literal(result.column))
        axes.set_ylabel(shown + bars)
        if numeric:
            axes.locator_params(axis="x", nbins=7)
        else:
            axes.set_xticks(np.arange(len(names)), names)
    axes.spines[["top", "right"]].set_visible(False)
    return finish(axes, f"Histogram of {result.column}, {result.spent}", result.claim)
