"""The printed page of a plan: results in, plain `Report` out.

Tested in `tests/planning/test_planner.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from scipy.special import ndtr

from dpreg.planning.theorems import Promise, Situation, least_rows, theorem_41, theorem_42
from dpreg.results.report import Facts, Grid, Paragraph, Report

if TYPE_CHECKING:
    from dpreg.planning.results import Plan

__all__ = ["report"]

_NO_DATA: Final = "No data were used and nothing was spent"
_CLIPPED: Final = 0.02
"""A larger share of responses beyond their bounds is said to be one."""


def report(plan: Plan) -> Report:
    """Return the page of a plan."""
    call, detection = plan.call, plan.detection
    stated = call.stated
    phi, psi = call.charges
    squared = float(call.clip) ** 2
    mark = {plan.solved: " (found)"}
    facts = Facts(
        (
            ("Rows n", f"{plan.n:,}{mark.get('n', '')}"),
            ("eps", f"{plan.eps:g}{mark.get('eps', '')}"),
            ("Mechanism", call.mechanism),
            ("Neighbours", call.protection.neighbors),
            ("Contributions", str(call.protection.contributions)),
            ("Rows selecting", f"{call.rows:,.0f}"),
        ),
        (
            ("Terms", f"{len(stated.names)} of {call.units} with an effect"),
            ("Models", f"{stated.models:,}" if stated.models < 10**12 else f"{stated.models:.2e}"),
            ("Radius", f"{float(call.rho * call.clip):g}"),
            ("Penalty/column", f"{phi * squared:.6g}"),
            ("Penalty/term", f"{psi * squared:.6g}"),
            ("Noise scale", f"{squared / call.rate:.6g}"),
        ),
    )
    rows = []
    for i, name in enumerate(stated.names):
        drop = call.rows * float(stated.effects.strength[i])
        charge = psi + phi * float(stated.effects.columns[i])
        rows.append(
            (
                name,
                f"{stated.scaled[i] * float(call.clip):.4g}",
                f"{stated.deviations[i]:.3g}",
                f"{drop * squared:.4g}",
                f"{charge * squared:.4g}",
                f"{detection.each[i]:.3f}",
            )
        )
    rows.append(("all of them", "", "", "", "", f"{detection.all:.3f}"))
    rows.append(("exactly them", "", "", "", "", f"{detection.right:.3f}"))
    grid = Grid(
        ("term", "effect\n(scaled)", "sd\n(scaled)", "fall of\nRSS", "price", "P(found)"),
        tuple(rows),
        "lrrrrr",
    )
    return Report("Plan of a private selection", None, (facts, grid, *_notes(plan)))


def _notes(plan: Plan) -> list[Paragraph]:
    call = plan.call
    length = sum(call.stated.scaled)
    effects = call.stated.effects
    spread = math.sqrt(float(effects.strength.sum()) + effects.sigma2)
    clipped = 2 * float(ndtr(-1 / spread))
    cut = (
        f" About {clipped:.0%} of the responses would be clipped: the chances are too high."
        if clipped > _CLIPPED
        else ""
    )
    binds = (
        f" The effects' moduli add up to {length * float(call.clip):.3g}, beyond the radius: they "
        "cannot all be fitted, and the chances are too high."
        if length > float(call.rho)
        else ""
    )
    return [
        Paragraph(
            "Useless",
            f"{plan.useless:.3g} terms without an effect are expected in the drawn model.",
        ),
        Paragraph(
            "Rule",
            f"n beta^2 Var(x | rest) >= price + ln(k / {1 - call.chance:.2g}) x noise scale asks "
            f"for n = {plan.rule_of_thumb:,}.",
        ),
        Paragraph("Theorem 4.1", _promise(plan, theorem_41)),
        Paragraph("Theorem 4.2", f'(method="pcpl") {_promise(plan, theorem_42)}'),
        Paragraph(
            "Assumed",
            f"{_NO_DATA}. A linear model with normal errors, columns uncorrelated (or sd given the "
            f"others), nothing clipped, and a radius that does not bind.{binds}{cut}",
        ),
    ]


def _promise(plan: Plan, theorem: Callable[[Situation], Promise]) -> str:
    """Say what a theorem promises here, and from which n it promises what is wanted."""
    at, call = plan.call.situation, plan.call
    promise = theorem(at)
    rows = least_rows(theorem, at, call.chance) * plan.n / call.rows
    narrow = "" if promise.wide_enough else "; it also asks for a larger radius"
    if promise.right > 0:
        here = f"promises the right model with chance at least {promise.right:.3f}"
    else:
        here = "promises nothing here"
    later = f"; {call.chance:g} from n = {rows:,.3g}" if promise.right < call.chance else ""
    return f"{here}{later}{narrow}."
