"""The picture of a plan; matplotlib is an extra and is imported when asked for.

Tested in `tests/planning/test_planner.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dpreg.errors import ArgumentError, shown
from dpreg.results.plots import literal, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpreg.planning.results import Plan

__all__ = ["chances"]

_POINTS: Final = 25
_DASHES: Final = ("--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))
_MARKS: Final = ("s", "^", "D", "v", "x", "+")


def chances(plan: Plan, over: str, ax: Axes | None = None) -> Axes:
    """Draw the chance of each effect, and of all, over n or eps; the plan's own is marked."""
    if over not in ("n", "eps"):
        raise ArgumentError(f'over must be "n" or "eps"; got {shown(over)}.')
    centre = float(plan.n if over == "n" else plan.eps)
    values = centre * np.geomspace(1 / 8, 8, _POINTS)
    values = values[values <= (1e18 if over == "n" else 1e30)]  # what `plan` takes
    plans = [plan.at(n=max(2, round(v))) if over == "n" else plan.at(eps=float(v)) for v in values]
    axes = new_axes(ax, 7)
    for i, name in enumerate(plan.call.stated.names):
        line = [float(p.detection.each[i]) for p in plans]
        axes.plot(
            values,
            line,
            color="0.45",
            linewidth=1.1,
            linestyle=_DASHES[i % len(_DASHES)],
            marker=_MARKS[i % len(_MARKS)],
            markersize=3.5,
            markevery=6,
            label=literal(name),
        )
    together = [p.found for p in plans]
    axes.plot(values, together, color="0.0", linewidth=1.8, label="all of them")
    axes.plot([centre], [plan.found], marker="o", color="0.0", linestyle="none")
    axes.annotate(
        f"{plan.n:,} rows, eps {plan.eps:g}: {plan.found:.2f}",
        (centre, plan.found),
        xytext=(8, -12),
        textcoords="offset points",
        fontsize="small",
    )
    axes.set_xscale("log")
    ticks = centre * np.array([1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8])
    axes.set_xticks(ticks, [f"{t:,.0f}" if over == "n" else f"{t:.3g}" for t in ticks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(-0.03, 1.03)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("rows n" if over == "n" else "eps of the whole call")
    axes.set_ylabel("chance of being found")
    other = f"eps {plan.eps:g}" if over == "n" else f"n {plan.n:,}"
    used = "rows of like used" if plan.call.rows.like else "no data used"
    axes.set_title(f"Plan at {other}, {plan.call.facts.mechanism}; {used}", fontsize="medium")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1), handlelength=3.2)
    return axes
