"""The printed page of a plan: results in, plain `Report` out.

The picture of a plan; matplotlib is an extra and is imported when asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import ndtr

from dpreg.errors import ArgumentError, shown
from dpreg.planning.chances import Promise, Situation, least_rows, theorem_41, theorem_42
from dpreg.privacy.budget import decimal_string
from dpreg.results.plots import literal, new_axes
from dpreg.results.report import Block, Facts, Grid, Paragraph, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpreg.planning.results import Plan, Planned, RegressionPlan

_CLIPPED: Final = 0.02
"""A larger share of responses beyond their bounds is said to be one."""
_READING: Final = {
    "pcls": (),
    "adaptive": (
        "gain: what a term explains on average, in squared standard errors that count the noise, "
        "beside all other terms; reach: what it has to, for its test to pass.",
    ),
    "fit": (
        "width: length of the private interval over the ordinary one; overlap: their common part "
        "as a share of each, in the mean; same decision: the chance that both or neither is "
        "significant at 5%; power: that the private one is.",
    ),
    "glm": (),
}


def report(plan: Planned) -> Report:
    """Return the page of a plan."""
    facts, method = plan.call.facts, plan.method
    title = "Plan of a private " + ("selection" if facts.chooses else "regression")
    kind = method if facts.chooses else "glm" if facts.family else "fit"
    formula = [Paragraph("Formula", str(facts.formula))] if facts.family else []
    blocks: tuple[Block, ...] = (
        *formula,
        _facts(plan, kind),
        *_TABLES[kind](plan),
        *(Paragraph(f"[{i}]", note) for i, note in enumerate(_notes(plan), 1)),
        *(Paragraph("Reading", text) for text in _READING[kind]),
        *([] if facts.family else [_way(plan)]),
        *(_promises(plan) if kind == "pcls" else ()),
        Paragraph("Assumed", f"{_used(plan)} {_assumed(plan, kind)}"),
    )
    return Report(title, None, blocks)


def _facts(plan: Planned, kind: str) -> Facts:
    call, mark = plan.call, {plan.solved: " (found)"}
    facts, stated = call.facts, call.stated
    method = {"pcls": "pcls", "gram": "gram: one look"}.get(
        plan.method, f"adaptive: three {'or four' if facts.chooses else 'to five'} looks"
    )
    left = [
        ("Rows n", f"{plan.n:,}{mark.get('n', '')}"),
        ("eps", f"{plan.eps:g}{mark.get('eps', '')}"),
        ("delta", decimal_string(facts.request.budget.delta)),
        ("Neighbours", facts.request.protection.neighbors),
        ("Contributions", str(facts.request.protection.contributions)),
        ("Method", method),
    ]
    right = [("Family", facts.family)] if facts.family else []
    if facts.chooses:
        models = f"{stated.models:,}" if stated.models < 10**12 else f"{stated.models:.2e}"
        terms = f"{len(stated.names)} of {len(stated.units)} with an effect"
        right += [("Terms", terms), ("Models", models)]
    if kind == "pcls":
        return Facts(
            (*left, ("Rows selecting", f"{call.paper.rows:,.0f}")), (*right, *_costs(plan))
        )
    right += [("Noise", plan.mechanism), ("Rows needed", f"{plan.rows_needed:,}")]
    if facts.chooses:
        right.append(("Level of a test", f"{call.gains.level:.3g}"))
    else:
        right.append(("Columns", str(len(call.rows.described.columns))))
    if not facts.chooses or call.fit is not None:
        missing = plan.errors["std err"].isna()
        told = "expected" if plan.enough else "may be missing"
        if missing.any():
            told = "none" if missing.all() else "not of all coefficients"
        right.append(("Intervals", told))
    if kind == "fit":
        near = call.measured[["overlap", "same decision"]].mean()
        right += [("Overlap", f"{near.iloc[0]:.3f}"), ("Same decision", f"{near.iloc[1]:.3f}")]
    return Facts(tuple(left), tuple(right))


def _costs(plan: Planned) -> tuple[tuple[str, str], ...]:
    """Return what a draw of the paper's is made with."""
    paper, facts = plan.call.paper, plan.call.facts
    (phi, psi), squared = paper.charges, float(facts.request.clip) ** 2
    return (
        ("Mechanism", facts.mechanism),
        ("Radius", f"{float(facts.request.rho * facts.request.clip):g}"),
        ("Penalty/column", f"{phi * squared:.6g}"),
        ("Penalty/term", f"{psi * squared:.6g}"),
        ("Noise scale", f"{squared / paper.rate:.6g}"),
    )


# ---- tables ------------------------------------------------------------------------------------


def _found(plan: Plan, cells: Sequence[tuple[float, float]], headers: tuple[str, str]) -> Grid:
    """Return for each effect what it changes, what that is measured against, and its chance."""
    stated, detection, clip = plan.call.stated, plan.detection, float(plan.call.facts.request.clip)
    rows = [
        (
            name,
            f"{stated.scaled[i] * clip:.4g}",
            f"{stated.deviations[i]:.3g}",
            *(f"{cell:.4g}" for cell in cells[i]),
            f"{detection.each[i]:.3f}",
        )
        for i, name in enumerate(stated.names)
    ]
    rows.append(("all of them", "", "", "", "", f"{detection.all:.3f}"))
    rows.append(("exactly them", "", "", "", "", f"{detection.right:.3f}"))
    shown = ("term", "effect\n(scaled)", "sd\n(scaled)", *headers, "chance of\nbeing found")
    return Grid(shown, tuple(rows), "lrrrrr")


def _by_looks(plan: Plan) -> tuple[Block, ...]:
    gains = plan.call.gains
    cells = list(zip(gains.strength, gains.reach, strict=True))
    rule = (
        "gain >= (root(reach) + z)^2, z the normal quantile of the chance of one effect, asks for "
        f"about n = {plan.rule_of_thumb:,}."
    )
    errors = () if plan.errors.empty else _errors(plan)
    return (
        _found(plan, cells, ("gain", "reach")),
        *errors,
        _useless(plan),
        Paragraph("Rule", rule),
    )


def _by_paper(plan: Plan) -> tuple[Block, ...]:
    paper, facts, effects = plan.call.paper, plan.call.facts, plan.call.stated.effects
    (phi, psi), squared = paper.charges, float(facts.request.clip) ** 2
    falls = paper.rows * effects.strength * squared
    prices = (psi + phi * effects.columns) * squared
    rule = (
        f"n beta^2 Var(x | rest) >= price + ln(k / {1 - facts.chance:.2g}) x noise scale asks for "
        f"n = {plan.rule_of_thumb:,}."
    )
    cells = list(zip(falls, prices, strict=True))
    return _found(plan, cells, ("fall of\nRSS", "price")), _useless(plan), Paragraph("Rule", rule)


def _useless(plan: Plan) -> Paragraph:
    return Paragraph("Useless", f"{plan.useless:.3g} terms without an effect are expected.")


def _errors(plan: Planned) -> tuple[Block, ...]:
    table = plan.errors.drop(columns="mark")
    heads = ("", "std err", "sampling\nerror", "privacy\nnoise", "without\nprivacy", "if\nskewed")
    rows = tuple(
        (str(name), *(f"{value:.3g}" for value in values))
        for name, values in zip(table.index, table.to_numpy(), strict=True)
    )
    columns = len(table.columns)
    return (Grid(heads[: columns + 1], rows, "l" + "r" * columns),)


def _measures(plan: RegressionPlan) -> tuple[Block, ...]:
    table = plan.coefficients
    sizes = ["coef", "least squares", "std err", "std err if skewed"]
    shown = [name for name in sizes if name in table]
    rows = tuple(
        (
            str(name),
            *(f"{row[key]:.{4 if key == 'coef' else 3}g}" for key in shown),
            *(f"{row[key]:.2f}" for key in ("width", "overlap", "same decision", "power")),
        )
        for name, row in table.iterrows()
    )
    heads = ("coef", "least\nsquares", "private\nstd err", "if\nskewed")[: len(shown)]
    headers = ("", *heads, "width", "overlap", "same\ndecision", "power")
    return (Grid(headers, rows, "l" + "r" * (len(headers) - 1)),)


_TABLES: Final[dict[str, Callable[..., tuple[Block, ...]]]] = {
    "adaptive": _by_looks,
    "pcls": _by_paper,
    "fit": _measures,
    "glm": _errors,
}


# ---- notes -------------------------------------------------------------------------------------


def _notes(plan: Planned) -> tuple[str, ...]:
    """Return what a call would warn of, and what would make the plan itself wrong."""
    call, notes = plan.call, list(plan.notes)
    facts, effects = call.facts, call.stated.effects
    if facts.family or not facts.chooses:
        return tuple(notes)
    length, clip = sum(call.stated.scaled), float(facts.request.clip)
    if plan.method == "pcls" and length > float(facts.request.rho):
        notes.append(
            f"The effects' moduli add up to {length * clip:.3g}, beyond the radius: they cannot "
            "all be fitted, and the chances are too high."
        )
    clipped = 2 * float(ndtr(-1 / math.sqrt(float(effects.strength.sum()) + effects.sigma2)))
    if clipped > _CLIPPED:
        notes.append(
            f"About {clipped:.0%} of the responses would be clipped: the chances are too high."
        )
    return tuple(notes)


def _way(plan: Planned) -> Paragraph:
    """Say which method "auto" takes here, and what the other would need."""
    facts = plan.call.facts
    instead = "pcls" if facts.chooses else "gram"
    if plan.method == "adaptive":
        text = (
            f'method="auto" takes looks from n = {plan.rows_needed:,} on at this eps, and from '
            f'eps = {plan.eps_needed:.3g} on with these rows; below it takes "{instead}".'
        )
    elif facts.method == "auto" and facts.papers:
        text = f'method="auto" takes "{instead}": only it takes {", ".join(facts.papers)}.'
    else:
        text = (
            f"Looks at the rows would need n = {plan.rows_needed:,} at this eps, or "
            f"eps = {plan.eps_needed:.3g} with these rows."
        )
    return Paragraph("Method", text)


def _used(plan: Planned) -> str:
    """Say which rows the figures are made of."""
    if plan.call.rows.like:
        return "The rows of like count as public, and show in these figures; nothing was spent."
    return "No data were used and nothing was spent."


def _assumed(plan: Planned, kind: str) -> str:
    """Say what the figures suppose."""
    if kind == "pcls":
        return (
            "A linear model with normal errors, columns uncorrelated (or sd given the others), "
            "nothing clipped, and a radius that does not bind."
        )
    if kind == "adaptive":
        model = "A model that holds" if plan.call.facts.family else "A linear model"
        return (
            f"{model}, and columns as made up from the schema, sd and correlation, or as in like."
        )
    range_text = "Columns and the shape of the errors are those of like."
    if plan.call.skewed is not None:
        range_text = (
            "Nothing is known of the columns but the schema, sd and correlation: std err is for "
            "columns that fill their bounds, even levels and normal errors; if skewed, for columns "
            "whose median is 10% of the way up, levels of 5% of the rows and errors with a long "
            "tail. Real tables lie between, or beyond; rows in like= would tell."
        )
    model = (
        "Errors that hold in a model that is not right, as a call prints them."
        if kind == "glm"
        else "A linear model with errors of one variance. Where it is not linear, private "
        "intervals are wider and overlap less."
    )
    return f"{range_text} {model}"


def _promises(plan: Planned) -> tuple[Paragraph, ...]:
    """Say what the theorems promise here, and from which n they promise what is wanted."""
    return (
        Paragraph("Theorem 4.1", _promise(plan, theorem_41)),
        Paragraph("Theorem 4.2", f'(method="pcpl") {_promise(plan, theorem_42)}'),
    )


def _promise(plan: Planned, theorem: Callable[[Situation], Promise]) -> str:
    at, chance = plan.call.paper.situation, plan.call.facts.chance
    promise = theorem(at)
    rows = least_rows(theorem, at, chance) * plan.n / plan.call.paper.rows
    narrow = "" if promise.wide_enough else "; it also asks for a larger radius"
    if promise.right > 0:
        here = f"promises the right model with chance at least {promise.right:.3f}"
    else:
        here = "promises nothing here"
    later = f"; {chance:g} from n = {rows:,.3g}" if promise.right < chance else ""
    return f"{here}{later}{narrow}."


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
