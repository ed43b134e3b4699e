"""Pictures of released histograms; matplotlib is an extra and is imported when asked for.

Tested in `tests/results/test_classic.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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


def histogram(result: HistogramResults, ax: Axes | None = None, alpha: float = 0.05) -> Axes:
    """Draw a histogram: bars of the density, and intervals of the unprojected shares.

    Groups are drawn as outlines over each other, without intervals. The bars of a categorical
    column are shares.

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
    axes = axes_or_new(ax, 12)
    numeric = result.edges is not None
    edges = np.arange(len(result.levels) + 1) - 0.5 if result.edges is None else result.edges
    if not numeric:
        axes.set_xticks(np.arange(len(result.levels)), [literal(name) for name in result.levels])
    bins = edges.size - 1
    heights = result.density.to_numpy().reshape(-1, bins)
    if result.groups:
        for group, line in zip(result.groups, heights, strict=True):
            axes.stairs(line, edges, label=literal(group))
        axes.legend(title=literal(result.by or ""), frameon=False)
    else:
        axes.stairs(heights[0], edges, fill=True, color=_PALE)
        axes.stairs(heights[0], edges, color=_INK, linewidth=0.8)
        if bins <= _MOST:
            low, high = (result.heights(end) for end in result.conf_int(alpha).to_numpy().T)
            middles = (edges[:-1] + edges[1:]) / 2
            axes.vlines(middles, low, high, color=_INK, linewidth=1.0)
    axes.set_xlabel(literal(result.column))
    shown = "density" if numeric else "share"
    bars = "" if result.groups or bins > _MOST else f" ({100 * (1 - alpha):g}% intervals)"
    axes.set_ylabel(shown + bars)
    axes.spines[["top", "right"]].set_visible(False)
    return finish(axes, f"Histogram of {result.column}, {result.spent}", result.claim)
