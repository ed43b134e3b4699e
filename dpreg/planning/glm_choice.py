"""What `dp_select(family=)` will find, and what it will be able to say of it: before any data.

The looks of a call are made of assumed rows; the chances of the choice are those of a linear model
(`dpreg.planning.choice`), and errors the medians of what the looks at chosen columns would say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pandas as pd

from dpreg.looks.chosen import point_of_chosen
from dpreg.looks.estimates import Estimates, estimates
from dpreg.looks.expected import Expected, expected_looks
from dpreg.looks.loop import Seen, look_at_chosen
from dpreg.planning.choice import DRAWS, gains, reported
from dpreg.planning.detection import Detection
from dpreg.planning.fitted import NONE, Rows, told
from dpreg.planning.glm import too_few
from dpreg.planning.glm_base import PlanOfFamily, solve
from dpreg.planning.glm_call import GLMCall
from dpreg.planning.glm_rows import rows_of
from dpreg.planning.looks import Asked
from dpreg.planning.sizes import Stated, from_formula
from dpreg.results.report import Facts, Grid
from dpreg.results.summary import Summary
from dpreg.results.views import fixed

__all__ = ["GLMSelectionPlan", "plan_choice"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GLMSelectionPlan(PlanOfFamily):
    """What a call of `dp_select` with a family would find: a prediction, from no data.

    Attributes
    ----------
    formula, family : str
    n : int
        Complete rows.
    eps, delta : Fraction
        What the whole call would cost.
    solved : {"n", "eps", None}
        Which of them was found.
    enough : bool
        Whether the choice keeps to `false_inclusions` and the intervals of the chosen terms hold.
    mechanism : str
    terms : tuple of str
        Those with an effect.
    detection : Detection
    names : tuple of str
        The coefficients of the kept terms and of those with an effect.
    sampling, privacy, without_privacy : arrays
        Their predicted standard errors, as those of `dpreg.planning.GLMPlan`.
    notes : tuple of str
        Why not enough, and what would be needed.
    """

    terms: tuple[str, ...]
    detection: Detection

    @property
    def found(self) -> float:
        """The chance that the chosen model holds all effects."""
        return float(self.detection.all)

    @property
    def each(self) -> pd.Series[float]:
        """The chance that the chosen model holds each effect."""
        return pd.Series(self.detection.each, index=list(self.terms), name="chance")

    @property
    def right(self) -> float:
        """The chance that the chosen model holds all effects and nothing else."""
        return float(self.detection.right)

    @property
    def useless(self) -> float:
        """The expected number of terms without an effect in the chosen model."""
        return float(self.detection.useless)

    def summary(self) -> Summary:
        """Return the printable page of the plan."""
        facts = self._facts()
        shown = Facts(
            (facts["Rows n"], facts["eps"], facts["Family"]),
            (
                ("All effects found", fixed(self.found)),
                ("Nothing else", fixed(self.right)),
                facts["Intervals"],
            ),
        )
        chances = tuple((str(name), fixed(value)) for name, value in self.each.items())
        grid = Grid(("effect", "chance of\nbeing found"), chances, "lr")
        return self._page("Plan of a private selection", shown, grid)

    def __repr__(self) -> str:
        return (
            f"<GLMSelectionPlan: n={self.n:,}, eps={float(self.eps):g}: "
            f"all effects found with {self.found:.3f}>"
        )


def plan_choice(
    effects: Mapping[str, float],
    call: Mapping[str, Any],
    *,
    chance: float,
    false_inclusions: float,
    max_terms: int | None,
    fit: str | None,
) -> GLMSelectionPlan:
    """Predict a choice.

    Parameters
    ----------
    effects : mapping
        Coefficients by column, on the scale of the linear predictor.
    call : mapping
        What `GLMCall.of` reads, and `keep`.
    chance, false_inclusions, max_terms, fit
        As checked for `dpreg.plan`.
    """
    supposed = GLMCall.of({**call, "spread": None}, "plan")
    stated = from_formula(
        effects,
        1.0,
        supposed.model.formula,
        supposed.schema,
        keep=call["keep"],
        sd=call["sd"] or {},
        clip=Fraction(1),
        center=True,
        max_terms=max_terms,
    )
    slopes = stated.beta * supposed.design.response.width
    supposed = replace(supposed, supposed=replace(supposed.supposed, slopes=slopes))
    rows = rows_of(supposed, call["sd"] or {}, 0.0, None)
    fit = "fresh" if fit == "auto" else fit
    return solve(
        lambda **at: _predicted(replace(supposed, **at), stated, rows, false_inclusions, fit),
        call,
        lambda plan: plan.enough and plan.found >= chance,
        f"finds all effects with chance {chance:g} and is enough for intervals",
    )


def _predicted(
    call: GLMCall, stated: Stated, rows: Rows, false_inclusions: float, fit: str | None
) -> GLMSelectionPlan:
    asked = Asked(len(call.names) - 1, call.exclusive, call.delta, call.protection, fit)
    plan = asked.looks(float(call.eps))
    taken = expected_looks(plan, rows.family, rows.described, rows.z, call.n, draws=DRAWS)
    effects = len(stated.names)
    assert rows.beta is not None
    found = gains(taken, stated.units, effects, false_inclusions, rows.beta)
    offered = {j for unit in stated.units[effects:] for j in unit}
    chosen = [j for j in range(len(call.names)) if j not in offered]
    own = replace(
        rows,
        places=tuple(chosen),
        names=tuple(call.names[j] for j in chosen),
        to_user=call.model.to_user_units(call.design, chosen),
    )
    shown = [_estimated(one, seen, own, fit) for one, seen in taken]
    fitted = told(shown, own.names, plan.degrees)
    notes = []
    if call.n < plan.rows_needed:
        notes.append(too_few(asked, plan, call.n, "Terms may be missed."))
    hidden = [name for name, mark in zip(own.names, fitted.marks, strict=True) if mark == NONE]
    if hidden:
        notes.append(f"A call is expected to print no interval of {', '.join(hidden)}.")
    return GLMSelectionPlan(
        formula=call.formula,
        family=call.name,
        n=call.n,
        eps=call.eps,
        delta=call.delta,
        solved=None,
        mechanism=plan.mechanism,
        names=own.names,
        sampling=fitted.sampling,
        privacy=fitted.privacy,
        without_privacy=own.plain(call.n, call.supposed.dispersion),
        enough=not notes,
        notes=tuple(notes),
        terms=stated.names,
        detection=reported(found),
    )


def _estimated(one: Expected, seen: Seen, rows: Rows, fit: str | None) -> Estimates:
    """Return what a call would say of the coefficients of the terms with an effect."""
    at = list(rows.places[1:])
    if fit != "fresh":
        whole = range(len(rows.described.columns) + 1)
        return estimates(seen, rows.places, rows.names, rows.to_user, among=whole)
    columns = tuple(rows.described.columns[place - 1] for place in at)
    own = replace(
        one,
        described=rows.described.only(columns),
        plan=one.plan.at_chosen(len(columns)),
    )
    later = look_at_chosen(own, seen, point_of_chosen(seen, at), [0, *at])
    return estimates(later, range(len(at) + 1), rows.names, rows.to_user)
