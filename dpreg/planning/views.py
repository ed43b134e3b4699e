"""The printed page of a plan: results in, plain `Report` out.

Tested in `tests/planning/test_planner.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from scipy.special import ndtr

from dpreg.planning.theorems import Promise, Situation, least_rows, theorem_41, theorem_42
from dpreg.privacy.budget import decimal_string
from dpreg.results.report import Block, Facts, Grid, Paragraph, Report

if TYPE_CHECKING:
    import pandas as pd

    from dpreg.planning.regression import RegressionPlan
    from dpreg.planning.results import Plan

__all__ = ["range_text", "regression_report", "report"]

_CLIPPED: Final = 0.02
"""A larger share of responses beyond their bounds is said to be one."""


def report(plan: Plan) -> Report:
    """Return the page of a plan of a selection."""
    blocks = _adaptive_blocks(plan) if plan.adaptive else _paper_blocks(plan)
    return Report("Plan of a private selection", None, blocks)


def _left(plan: Plan | RegressionPlan, *more: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    mark = {plan.solved: " (found)"}
    asked = plan.call.asked
    return (
        ("Rows n", f"{plan.n:,}{mark.get('n', '')}"),
        ("eps", f"{plan.eps:g}{mark.get('eps', '')}"),
        ("delta", decimal_string(asked.delta)),
        ("Neighbours", asked.protection.neighbors),
        ("Contributions", str(asked.protection.contributions)),
        *more,
    )


def _models(models: int) -> str:
    return f"{models:,}" if models < 10**12 else f"{models:.2e}"


def _used(plan: Plan | RegressionPlan) -> str:
    """Say which rows the figures are made of."""
    if plan.call.assumed.like:
        return "The rows of like count as public, and show in these figures; nothing was spent"
    return "No data were used and nothing was spent"


def _found(plan: Plan, cells: list[tuple[str, str]], headers: tuple[str, str]) -> Grid:
    """Return for each effect what it changes, what that is measured against, and its chance."""
    stated, detection, clip = plan.call.stated, plan.detection, float(plan.call.facts.clip)
    rows = [
        (
            name,
            f"{stated.scaled[i] * clip:.4g}",
            f"{stated.deviations[i]:.3g}",
            *cells[i],
            f"{detection.each[i]:.3f}",
        )
        for i, name in enumerate(stated.names)
    ]
    rows.append(("all of them", "", "", "", "", f"{detection.all:.3f}"))
    rows.append(("exactly them", "", "", "", "", f"{detection.right:.3f}"))
    shown = ("term", "effect\n(scaled)", "sd\n(scaled)", *headers, "P(found)")
    return Grid(shown, tuple(rows), "lrrrrr")


def _adaptive_blocks(plan: Plan) -> tuple[Block, ...]:
    call, stated = plan.call, plan.call.stated
    gains = call.gains()
    facts = Facts(
        _left(plan, ("Method", "adaptive: three or four looks")),
        (
            ("Noise", call.asked.looks(plan.eps).mechanism),
            ("Terms", f"{len(stated.names)} of {call.units} with an effect"),
            ("Models", _models(stated.models)),
            ("Rows looked at", f"{call.rows:,.0f}"),
            ("Rows needed", f"{plan.rows_needed:,}"),
            ("Level of a test", f"{gains.level:.3g}"),
        ),
    )
    cells = [
        (f"{gains.strength[i]:.4g}", f"{gains.reach[i]:.4g}") for i in range(len(stated.names))
    ]
    grid = _found(plan, cells, ("gain", "reach"))
    notes = (
        Paragraph("Useless", f"{plan.useless:.3g} terms without an effect are expected."),
        Paragraph(
            "Rule",
            "gain >= (root(reach) + z)^2, z the normal quantile of the chance of one "
            f"effect, asks for about n = {plan.rule_of_thumb:,}.",
        ),
        Paragraph(
            "Reading",
            "gain: what a term explains on average, in squared standard errors that count the "
            "noise, beside all other terms; reach: what it has to, for its test to pass.",
        ),
        _way(plan, "pcls"),
        Paragraph(
            "Assumed",
            f"{_used(plan)}. A linear model with normal errors, and columns as made up from the "
            f"schema, sd and correlation, or as in like.{_clipped(plan)}",
        ),
    )
    return (facts, grid, *notes)


def _paper_blocks(plan: Plan) -> tuple[Block, ...]:
    call, stated = plan.call, plan.call.stated
    phi, psi = call.charges
    given = call.facts
    squared = float(given.clip) ** 2
    facts = Facts(
        _left(plan, ("Method", "pcls"), ("Rows selecting", f"{call.rows:,.0f}")),
        (
            ("Mechanism", given.mechanism),
            ("Terms", f"{len(stated.names)} of {call.units} with an effect"),
            ("Models", _models(stated.models)),
            ("Radius", f"{float(given.rho * given.clip):g}"),
            ("Penalty/column", f"{phi * squared:.6g}"),
            ("Penalty/term", f"{psi * squared:.6g}"),
            ("Noise scale", f"{squared / call.rate:.6g}"),
        ),
    )
    cells = [
        (
            f"{call.rows * float(stated.effects.strength[i]) * squared:.4g}",
            f"{(psi + phi * float(stated.effects.columns[i])) * squared:.4g}",
        )
        for i in range(len(stated.names))
    ]
    grid = _found(plan, cells, ("fall of\nRSS", "price"))
    return (facts, grid, *_notes(plan))


def _way(plan: Plan | RegressionPlan, instead: str) -> Paragraph:
    """Say which method "auto" takes here, and what the other would need."""
    if plan.method == "adaptive":
        text = (
            f'method="auto" takes looks from n = {plan.rows_needed:,} on at this eps, and from '
            f'eps = {plan.eps_needed:.3g} on with these rows; below it takes "{instead}".'
        )
    elif plan.call.method == "auto" and plan.call.facts.papers:
        given = ", ".join(plan.call.facts.papers)
        text = f'method="auto" takes "{instead}": only it takes {given}.'
    else:
        text = (
            f"Looks at the rows would need n = {plan.rows_needed:,} at this eps, or "
            f"eps = {plan.eps_needed:.3g} with these rows."
        )
    return Paragraph("Method", text)


def regression_report(plan: RegressionPlan) -> Report:
    """Return the page of a plan of a regression."""
    call = plan.call
    planned = call.asked.planned(plan.eps)
    looks = "adaptive: three to five looks" if call.adaptive else "gram: one look"
    facts = Facts(
        _left(plan),
        (
            ("Method", looks),
            ("Noise", planned.mechanism),
            ("Columns", str(len(call.stated.beta))),
            ("Rows needed", f"{plan.rows_needed:,}"),
            ("Intervals", "expected" if plan.enough else "not of all coefficients"),
            ("Overlap", f"{plan.overlap:.3f}"),
            ("Same decision", f"{plan.same:.3f}"),
        ),
    )
    table, ranged = plan.coefficients, call.skewed is not None
    rows = tuple(
        (
            str(name),
            f"{row['coef']:.4g}",
            f"{row['least squares']:.3g}",
            f"{row['std err']:.3g}",
            *([f"{row['std err if skewed']:.3g}"] if ranged else []),
            *(f"{row[key]:.2f}" for key in ("width", "overlap", "same decision", "power")),
        )
        for name, row in table.iterrows()
    )
    headers = (
        *("", "coef", "least\nsquares", "private\nstd err"),
        *(["if\nskewed"] if ranged else []),
        *("width", "overlap", "same\ndecision", "power"),
    )
    rough = (
        ""
        if call.adaptive
        else " For one look the standard errors are rough: real ones were up to half as large "
        "again."
    )
    notes = (
        Paragraph(
            "Reading",
            "width: length of the private interval over the ordinary one; overlap: their common "
            "part as a share of each, in the mean; same decision: the chance that both or neither "
            "is significant at 5%; power: that the private one is.",
        ),
        *_marked(table),
        _way(plan, "gram"),
        Paragraph(
            "Assumed",
            f"{_used(plan)}. {range_text(ranged)} A linear model with errors of one variance. "
            f"Where it is not linear, private intervals are wider and overlap less.{rough}",
        ),
    )
    grid = Grid(headers, rows, "l" + "r" * (len(headers) - 1))
    return Report("Plan of a private regression", None, (facts, grid, *notes))


def range_text(ranged: bool) -> str:
    """Say which rows were assumed."""
    if not ranged:
        return "Columns and the shape of the errors are those of like."
    return (
        "Nothing is known of the columns but the schema, sd and correlation: private std err is "
        "for columns that fill their bounds, even levels and normal errors; if skewed, for columns "
        "whose median is 10% of the way up, levels of 5% of the rows and errors with a long tail. "
        "Real tables lie between, or beyond; rows in like= would tell."
    )


def _marked(table: pd.DataFrame) -> list[Paragraph]:
    """Say which coefficients a call would mark."""
    found = []
    for mark, text in (
        ("no interval", "a call is expected to print no interval of {}: the noise hides them."),
        ("wide", "a call is expected to mark {} as wide."),
    ):
        names = [str(name) for name in table.index[table["mark"] == mark]]
        if names:
            found.append(Paragraph("Marks", text.format(", ".join(names))))
    return found


def _clipped(plan: Plan) -> str:
    """Warn of responses beyond their bounds."""
    effects = plan.call.stated.effects
    spread = math.sqrt(float(effects.strength.sum()) + effects.sigma2)
    clipped = 2 * float(ndtr(-1 / spread))
    if clipped <= _CLIPPED:
        return ""
    return f" About {clipped:.0%} of the responses would be clipped: the chances are too high."


def _notes(plan: Plan) -> list[Paragraph]:
    call, facts = plan.call, plan.call.facts
    length = sum(call.stated.scaled)
    binds = (
        f" The effects' moduli add up to {length * float(facts.clip):.3g}, beyond the radius: they "
        "cannot all be fitted, and the chances are too high."
        if length > float(facts.rho)
        else ""
    )
    return [
        Paragraph(
            "Useless",
            f"{plan.useless:.3g} terms without an effect are expected in the drawn model.",
        ),
        Paragraph(
            "Rule",
            f"n beta^2 Var(x | rest) >= price + ln(k / {1 - facts.chance:.2g}) x noise scale asks "
            f"for n = {plan.rule_of_thumb:,}.",
        ),
        _way(plan, "pcls"),
        Paragraph("Theorem 4.1", _promise(plan, theorem_41)),
        Paragraph("Theorem 4.2", f'(method="pcpl") {_promise(plan, theorem_42)}'),
        Paragraph(
            "Assumed",
            f"{_used(plan)}. A linear model with normal errors, columns uncorrelated (or sd given "
            "the others), nothing clipped, and a radius that does not bind."
            f"{binds}{_clipped(plan)}",
        ),
    ]


def _promise(plan: Plan, theorem: Callable[[Situation], Promise]) -> str:
    """Say what a theorem promises here, and from which n it promises what is wanted."""
    at, chance = plan.call.situation, plan.call.facts.chance
    promise = theorem(at)
    rows = least_rows(theorem, at, chance) * plan.n / plan.call.rows
    narrow = "" if promise.wide_enough else "; it also asks for a larger radius"
    if promise.right > 0:
        here = f"promises the right model with chance at least {promise.right:.3f}"
    else:
        here = "promises nothing here"
    later = f"; {chance:g} from n = {rows:,.3g}" if promise.right < chance else ""
    return f"{here}{later}{narrow}."
