"""The printed page of a plan, and its picture; matplotlib is an extra, imported when asked for.

Tested in `tests/planning/test_planner.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from scipy.special import ndtr

from dpreg.errors import ArgumentError, shown
from dpreg.planning.chances import Promise, Situation, least_rows, theorem_41, theorem_42
from dpreg.privacy.budget import decimal_string
from dpreg.results.plots import literal, new_axes
from dpreg.results.summary import Block, Facts, Grid, Paragraph, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CLIPPED: Final = 0.02
"""A larger share of responses beyond their bounds is said to be one."""
_READING: Final = {
    "adaptive": (
        "gain: what a term explains on average, in squared standard errors that count the noise, "
        "beside all other terms; reach: what it has to, for its test to pass."
    ),
    "fit": (
        "width: length of the private interval over the ordinary one; overlap: their common part "
        "as a share of each, in the mean; same decision: the chance that both or neither is "
        "significant at 5%; power: that the private one is."
    ),
}
_ERRORS: Final = {
    "std err": ("std err", ".3g"),
    "sampling": ("sampling\nerror", ".3g"),
    "privacy": ("privacy\nnoise", ".3g"),
    "without privacy": ("without\nprivacy", ".3g"),
    "if skewed": ("if\nskewed", ".3g"),
}
_MEASURES: Final = {
    "coef": ("coef", ".4g"),
    "least squares": ("least\nsquares", ".3g"),
    "std err": ("private\nstd err", ".3g"),
    "std err if skewed": ("if\nskewed", ".3g"),
    "width": ("width", ".2f"),
    "overlap": ("overlap", ".2f"),
    "same decision": ("same\ndecision", ".2f"),
    "power": ("power", ".2f"),
}
"""The columns of a page's tables: their heads, and how numbers are written."""
_POINTS: Final = 25
_DASHES: Final = ("--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))
_MARKS: Final = ("s", "^", "D", "v", "x", "+")


def report(plan: Any) -> Summary:
    """Return the page of a plan."""
    facts = plan.facts
    kind = plan.method if facts.chooses else "glm" if facts.family else "fit"
    blocks: list[Block] = [Paragraph("Formula", str(facts.formula))] if facts.family else []
    blocks.append(_facts(plan, kind))
    if kind == "fit":
        blocks.append(_table(plan.coefficients, _MEASURES))
    elif kind == "pcls":
        blocks += _by_paper(plan)
    elif kind == "adaptive":
        blocks += _by_looks(plan)
    else:
        blocks.append(_table(plan.errors, _ERRORS))
    blocks += [Paragraph(f"[{i}]", note) for i, note in enumerate(_notes(plan), 1)]
    if kind in _READING:
        blocks.append(Paragraph("Reading", _READING[kind]))
    if not facts.family:
        blocks.append(Paragraph("Method", _way(plan)))
    if kind == "pcls":
        blocks.append(Paragraph("Theorem 4.1", _promise(plan, theorem_41)))
        told = f'(method="pcpl") {_promise(plan, theorem_42)}'
        blocks.append(Paragraph("Theorem 4.2", told))
    blocks.append(Paragraph("Assumed", f"{_used(plan)} {_assumed(plan, kind)}"))
    title = "Plan of a private " + ("selection" if facts.chooses else "regression")
    return Summary(title, None, tuple(blocks))


def _facts(plan: Any, kind: str) -> Facts:
    facts, told, mark = plan.facts, plan.stated, {plan.solved: " (found)"}
    method = {"pcls": "pcls", "gram": "gram: one look"}.get(
        plan.method, f"adaptive: three {'or four' if facts.chooses else 'to five'} looks"
    )
    left = {
        "Rows n": f"{plan.n:,}{mark.get('n', '')}",
        "eps": f"{plan.eps:g}{mark.get('eps', '')}",
        "delta": decimal_string(facts.request.budget.delta),
        "Neighbours": facts.request.protection.neighbors,
        "Contributions": str(facts.request.protection.contributions),
        "Method": method,
    }
    right = {"Family": facts.family} if facts.family else {}
    if facts.chooses:
        right["Terms"] = f"{len(told.names)} of {len(told.units)} with an effect"
        right["Models"] = f"{told.models:,}" if told.models < 10**12 else f"{told.models:.2e}"
    if kind == "pcls":
        (phi, psi), squared = plan.paper.charges, float(facts.request.clip) ** 2
        left["Rows selecting"] = f"{plan.paper.rows:,.0f}"
        right["Mechanism"] = facts.mechanism
        right["Radius"] = f"{float(facts.request.rho * facts.request.clip):g}"
        right["Penalty/column"] = f"{phi * squared:.6g}"
        right["Penalty/term"] = f"{psi * squared:.6g}"
        right["Noise scale"] = f"{squared / plan.paper.rate:.6g}"
        return Facts(tuple(left.items()), tuple(right.items()))
    right |= {"Noise": plan.mechanism, "Rows needed": f"{plan.rows_needed:,}"}
    if facts.chooses:
        right["Level of a test"] = f"{plan.gains.level:.3g}"
    else:
        right["Columns"] = str(len(plan.rows.described.columns))
    if not facts.chooses or plan.fit is not None:
        missing = plan.errors["std err"].isna()
        part = "none" if missing.all() else "not of all coefficients"
        whole = "expected" if plan.enough else "may be missing"
        right["Intervals"] = part if missing.any() else whole
    if kind == "fit":
        right |= {"Overlap": f"{plan.overlap:.3f}", "Same decision": f"{plan.same:.3f}"}
    return Facts(tuple(left.items()), tuple(right.items()))


# ---- tables ------------------------------------------------------------------------------------


def _table(table: pd.DataFrame, columns: Mapping[str, tuple[str, str]]) -> Grid:
    shown = {name: told for name, told in columns.items() if name in table}
    rows = tuple(
        (str(name), *(format(row[key], form) for key, (_, form) in shown.items()))
        for name, row in table.iterrows()
    )
    return Grid(("", *(head for head, _ in shown.values())), rows, "l" + "r" * len(shown))


def _found(plan: Any, cells: Sequence[Sequence[float]], headers: tuple[str, str]) -> Grid:
    """Return for each effect what it changes, what that is measured against, and its chance."""
    told, found, clip = plan.stated, plan.detection, float(plan.facts.request.clip)
    each = zip(told.names, told.scaled, told.deviations, *cells, found.each, strict=True)
    rows = [
        (name, f"{effect * clip:.4g}", f"{sd:.3g}", f"{own:.4g}", f"{wanted:.4g}", f"{chance:.3f}")
        for name, effect, sd, own, wanted, chance in each
    ]
    rows.append(("all of them", "", "", "", "", f"{found.all:.3f}"))
    rows.append(("exactly them", "", "", "", "", f"{found.right:.3f}"))
    shown = ("term", "effect\n(scaled)", "sd\n(scaled)", *headers, "chance of\nbeing found")
    return Grid(shown, tuple(rows), "lrrrrr")


def _by_looks(plan: Any) -> list[Block]:
    rule = (
        "gain >= (root(reach) + z)^2, z the normal quantile of the chance of one effect, asks for "
        f"about n = {plan.rule_of_thumb:,}."
    )
    found = _found(plan, (plan.gains.strength, plan.gains.reach), ("gain", "reach"))
    errors = [] if plan.errors.empty else [_table(plan.errors, _ERRORS)]
    return [found, *errors, _useless(plan), Paragraph("Rule", rule)]


def _by_paper(plan: Any) -> list[Block]:
    paper, facts, effects = plan.paper, plan.facts, plan.paper.effects
    (phi, psi), squared = paper.charges, float(facts.request.clip) ** 2
    falls = paper.rows * effects.strength * squared
    prices = (psi + phi * effects.columns) * squared
    rule = (
        f"n beta^2 Var(x | rest) >= price + ln(k / {1 - facts.chance:.2g}) x noise scale asks for "
        f"n = {plan.rule_of_thumb:,}."
    )
    found = _found(plan, (falls, prices), ("fall of\nRSS", "price"))
    return [found, _useless(plan), Paragraph("Rule", rule)]


def _useless(plan: Any) -> Paragraph:
    return Paragraph("Useless", f"{plan.useless:.3g} terms without an effect are expected.")


# ---- notes -------------------------------------------------------------------------------------


def _notes(plan: Any) -> list[str]:
    """Return what a call would warn of, and what would make the plan itself wrong."""
    facts, told, notes = plan.facts, plan.stated, list(plan.notes)
    if facts.family or not facts.chooses:
        return notes
    length, effects = sum(told.scaled), plan.paper.effects
    if plan.method == "pcls" and length > float(facts.request.rho):
        notes.append(
            f"The effects' moduli add up to {length * float(facts.request.clip):.3g}, beyond the "
            "radius: they cannot all be fitted, and the chances are too high."
        )
    clipped = 2 * float(ndtr(-1 / math.sqrt(float(effects.strength.sum()) + effects.sigma2)))
    if clipped > _CLIPPED:
        notes.append(
            f"About {clipped:.0%} of the responses would be clipped: the chances are too high."
        )
    return notes


def _way(plan: Any) -> str:
    """Say which method "auto" takes here, and what the other would need."""
    facts = plan.facts
    instead = "pcls" if facts.chooses else "gram"
    if plan.method == "adaptive":
        return (
            f'method="auto" takes looks from n = {plan.rows_needed:,} on at this eps, and from '
            f'eps = {plan.eps_needed:.3g} on with these rows; below it takes "{instead}".'
        )
    if facts.method == "auto" and facts.papers:
        return f'method="auto" takes "{instead}": only it takes {", ".join(facts.papers)}.'
    return (
        f"Looks at the rows would need n = {plan.rows_needed:,} at this eps, or "
        f"eps = {plan.eps_needed:.3g} with these rows."
    )


def _used(plan: Any) -> str:
    """Say which rows the figures are made of."""
    if plan.rows.like:
        return "The rows of like count as public, and show in these figures; nothing was spent."
    return "No data were used and nothing was spent."


def _assumed(plan: Any, kind: str) -> str:
    """Say what the figures suppose."""
    if kind == "pcls":
        return (
            "A linear model with normal errors, columns uncorrelated (or sd given the others), "
            "nothing clipped, and a radius that does not bind."
        )
    if kind == "adaptive":
        model = "A model that holds" if plan.facts.family else "A linear model"
        return (
            f"{model}, and columns as made up from the schema, sd and correlation, or as in like."
        )
    columns = "Columns and the shape of the errors are those of like."
    if plan.skewed is not None:
        columns = (
            "Nothing is known of the columns but the schema, sd and correlation: std err is for "
            "columns that fill their bounds, even levels and normal errors; if skewed, for columns "
            "whose median is 10% of the way up, levels of 5% of the rows and errors with a long "
            "tail. Real tables lie between, or beyond; rows in like= would tell."
        )
    if kind == "glm":
        return f"{columns} Errors that hold in a model that is not right, as a call prints them."
    return (
        f"{columns} A linear model with errors of one variance. Where it is not linear, private "
        "intervals are wider and overlap less."
    )


def _promise(plan: Any, theorem: Callable[[Situation], Promise]) -> str:
    """Say what a theorem promises here, and from which n it promises what is wanted."""
    at, chance = plan.paper.situation, plan.facts.chance
    promise = theorem(at)
    rows = least_rows(theorem, at, chance) * plan.n / plan.paper.rows
    narrow = "" if promise.wide_enough else "; it also asks for a larger radius"
    here = "promises nothing here"
    if promise.right > 0:
        here = f"promises the right model with chance at least {promise.right:.3f}"
    later = f"; {chance:g} from n = {rows:,.3g}" if promise.right < chance else ""
    return f"{here}{later}{narrow}."


# ---- the picture ---------------------------------------------------------------------------------


def picture(plan: Any, over: str, ax: Axes | None = None) -> Axes:
    """Draw the chance of each effect, and of all, over n or eps; the plan's own is marked."""
    if over not in ("n", "eps"):
        raise ArgumentError(f'over must be "n" or "eps"; got {shown(over)}.')
    centre = float(plan.n if over == "n" else plan.eps)
    values = centre * np.geomspace(1 / 8, 8, _POINTS)
    values = values[values <= (1e18 if over == "n" else 1e30)]  # what `plan` takes
    plans = [plan.at(n=max(2, round(v))) if over == "n" else plan.at(eps=float(v)) for v in values]
    axes, styles = new_axes(ax, 7), zip(cycle(_DASHES), cycle(_MARKS), strict=True)
    for i, (name, (dashes, mark)) in enumerate(zip(plan.stated.names, styles, strict=False)):
        line = [float(one.detection.each[i]) for one in plans]
        (drawn,) = axes.plot(values, line, color="0.45", linewidth=1.1, label=literal(name))
        drawn.set(linestyle=dashes, marker=mark, markersize=3.5, markevery=6)
    together = [one.found for one in plans]
    axes.plot(values, together, color="0.0", linewidth=1.8, label="all of them")
    axes.plot([centre], [plan.found], marker="o", color="0.0", linestyle="none")
    told, at = f"{plan.n:,} rows, eps {plan.eps:g}: {plan.found:.2f}", (centre, plan.found)
    axes.annotate(told, at, xytext=(8, -12), textcoords="offset points", fontsize="small")
    axes.set_xscale("log")
    ticks = centre * 2.0 ** np.arange(-3, 4)
    axes.set_xticks(ticks, [f"{t:,.0f}" if over == "n" else f"{t:.3g}" for t in ticks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(-0.03, 1.03)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("rows n" if over == "n" else "eps of the whole call")
    axes.set_ylabel("chance of being found")
    other = f"eps {plan.eps:g}" if over == "n" else f"n {plan.n:,}"
    used = "rows of like used" if plan.rows.like else "no data used"
    axes.set_title(f"Plan at {other}, {plan.facts.mechanism}; {used}", fontsize="medium")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1), handlelength=3.2)
    return axes
