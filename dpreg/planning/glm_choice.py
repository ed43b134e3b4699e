"""What `dp_select(family=)` will find, and what it will be able to say of it: before any data.

The looks are gone through without noise (`dpreg.families.predict`); the law of the last one gives
the chances of the choice by the same formulas as for a linear model (`dpreg.planning.choice`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pandas as pd

from dpreg.families.estimate import estimate
from dpreg.families.for_choice import family_laws
from dpreg.families.predict import Supposed, expected_again, expected_looks
from dpreg.planning.choice import gains, reported
from dpreg.planning.detection import Detection
from dpreg.planning.glm_base import PlanOfFamily, predicted_fields, solve
from dpreg.planning.glm_call import GLMCall
from dpreg.planning.sizes import Stated, from_formula
from dpreg.results.report import Facts, Grid
from dpreg.results.summary import Summary
from dpreg.results.views import fixed
from dpreg.staged.plan import FRESH

__all__ = ["GLMSelectionPlan", "plan_choice"]

_NOT_SO: Final = "A call would say: {} The same holds for the choice."


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
    looked = replace(supposed, supposed=replace(supposed.supposed, slopes=slopes))
    fit = "fresh" if fit == "auto" else fit
    return solve(
        lambda **at: _predicted(replace(looked, **at), stated, false_inclusions, fit),
        call,
        lambda plan: plan.enough and plan.found >= chance,
        f"finds all effects with chance {chance:g} and is enough for intervals",
    )


def _predicted(
    call: GLMCall, stated: Stated, false_inclusions: float, fit: str | None
) -> GLMSelectionPlan:
    plan, rows = call.looks(FRESH if fit == "fresh" else Fraction(0)), float(call.n)
    seen, plain = expected_looks(call.family, plan, rows, call.supposed)
    doubts = [_NOT_SO.format(doubt) for doubt in estimate(seen, call.names).doubted]
    effects, laws = len(stated.names), family_laws(seen.looks[-1], plan.degrees)
    found = gains(laws, stated.units, effects, false_inclusions)
    offered = {j for unit in stated.units[effects:] for j in unit}
    chosen = [j for j in range(len(call.names)) if j not in offered]
    if fit == "fresh":
        later, own = plan.at_chosen(len(chosen) - 1), _of_columns(call.supposed, chosen)
        again, plain = expected_again(call.family, seen, later, rows, own)
        fitted = estimate(again, [call.names[j] for j in chosen])
    else:
        fitted, plain = estimate(seen, call.names).of(chosen), plain[chosen]
    doubts += [f"Of the coefficients a call would say: {doubt}" for doubt in fitted.doubted]
    return GLMSelectionPlan(
        **predicted_fields(call, plan, fitted, plain, chosen),
        enough=not doubts,
        notes=tuple(dict.fromkeys(doubts)),
        terms=stated.names,
        detection=reported(found),
    )


def _of_columns(supposed: Supposed, chosen: list[int]) -> Supposed:
    """Return what is supposed of a part of the columns; 0 is the intercept."""
    at = np.array(chosen[1:], dtype=int) - 1
    assert supposed.slopes is not None
    return replace(
        supposed, covariance=supposed.covariance[np.ix_(at, at)], slopes=supposed.slopes[at]
    )
