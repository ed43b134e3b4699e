"""`Plan` and `RegressionPlan`: what is predicted, printed and drawn.

Made of public facts and assumptions alone.

Tested in `tests/planning/test_planner.py` and `tests/planning/test_regression_plan.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import pandas as pd

from dpreg.planning.arguments import rows_of_table, sized
from dpreg.planning.call import Call
from dpreg.planning.detection import Detection
from dpreg.planning.theorems import Promise, theorem_41, theorem_42
from dpreg.results.summary import Printed, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Plan", "Planned", "RegressionPlan"]


@dataclass(frozen=True, eq=False, repr=False)
class Planned(Printed):
    """What plans have in common.

    Attributes
    ----------
    call : Call
    solved : {"n", "eps", None}
        Which of them was found.
    """

    call: Call
    solved: str | None

    @property
    def n(self) -> int:
        """Rows of the table."""
        return self.call.n

    @property
    def eps(self) -> float:
        """What the whole call would cost."""
        return self.call.eps

    @property
    def method(self) -> str:
        """The method that the call would take: "adaptive", "pcls" or "gram"."""
        return self.call.method

    @property
    def mechanism(self) -> str:
        """The noise of looks."""
        return self.call.looks().mechanism

    @property
    def rows_needed(self) -> int:
        """The rows from which on ``method="auto"`` looks at the rows, at this eps."""
        return math.ceil(self.call.rows_needed)

    @property
    def eps_needed(self) -> float:
        """The eps from which on ``method="auto"`` looks at the rows, with these rows."""
        return self.call.eps_needed

    @property
    def enough(self) -> bool:
        """Whether an interval of each coefficient can be expected, and a choice that holds."""
        return self.call.enough

    @property
    def notes(self) -> tuple[str, ...]:
        """What a call would warn of, and what would be needed."""
        return self.call.notes

    @cached_property
    def errors(self) -> pd.DataFrame:
        """Predicted standard errors: in all, of each source, without privacy; if skewed; marks.

        NaN where no interval is expected. Of a choice by looks: of the kept terms and of those with
        an effect; empty where no coefficients are told.
        """
        found = self.call.table.copy()
        if self.call.skewed is not None:
            skewed = self.call.errors(self.call.skewed)
            assert skewed is not None
            found.insert(4, "if skewed", skewed.errors)
        return found

    def at(self, *, n: int | None = None, eps: float | None = None) -> Self:
        """Return the plan at another n or eps."""
        n = self.n if n is None else rows_of_table(n)
        eps = self.eps if eps is None else sized(eps, "eps")
        return type(self)(replace(self.call, n=n, eps=eps), None)

    def summary(self) -> Summary:
        """Return the printable page of the plan."""
        from dpreg.planning import views

        return Summary(views.report(self))


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Planned):
    """What a private selection would find: a prediction, from no data.

    Attributes
    ----------
    call : Call
    solved : {"n", "eps", None}
        Which of them was found.
    """

    @property
    def detection(self) -> Detection:
        """What the law of the call predicts."""
        return self.call.detection

    @property
    def found(self) -> float:
        """The chance that the chosen model holds all effects."""
        return self.detection.all

    @property
    def each(self) -> pd.Series[float]:
        """The chance that the chosen model holds each effect."""
        return pd.Series(self.detection.each, index=list(self.call.stated.names), name="chance")

    @property
    def right(self) -> float:
        """The chance that the chosen model holds all effects and nothing else."""
        return self.detection.right

    @property
    def useless(self) -> float:
        """The expected number of terms without an effect in the chosen model."""
        return self.detection.useless

    @property
    def theorem_41(self) -> Promise:
        """What theorem 4.1 of the paper promises."""
        return theorem_41(self.call.paper.situation)

    @property
    def theorem_42(self) -> Promise:
        """What theorem 4.2 of the paper promises, for ``method="pcpl"``."""
        return theorem_42(self.call.paper.situation)

    @property
    def rule_of_thumb(self) -> int:
        """The n that the rule of thumb asks for.

        By looks: n grows until every term explains enough (`dpreg.planning.choice`). By the paper's
        way (`dpreg.planning.detection`): n * beta^2 * Var(x | rest) >= penalty +
        ln(k / (1 - chance)) / t for each of k effects.
        """
        if self.call.adaptive:
            return math.ceil(self.n * self.call.gains.rows_for(self.call.facts.chance))
        return math.ceil(self.call.paper.rule_of_thumb)

    def plot(self, over: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw the chances over n or over eps.

        Parameters
        ----------
        over : {"n", "eps"}, optional
            Default: what was solved for, else n.
        ax : matplotlib Axes, optional
        """
        from dpreg.planning import plots

        return plots.chances(self, over or self.solved or "n", ax)

    def __repr__(self) -> str:
        """Say what is predicted."""
        return f"<Plan: n={self.n:,}, eps={self.eps:g}: all effects found with {self.found:.3f}>"


@dataclass(frozen=True, eq=False, repr=False)
class RegressionPlan(Planned):
    """What a private regression would show beside an ordinary one: a prediction, from no data.

    Attributes
    ----------
    call : Call
    solved : {"n", "eps", None}
        Which of them was found.
    """

    @property
    def coefficients(self) -> pd.DataFrame:
        """What is predicted of each coefficient: of a family `errors`, else of each stated one.

        Columns: ``coef`` as stated; ``std err`` of the private estimate, and its parts
        ``sampling error`` and ``privacy noise``; ``least squares``, the standard error without
        privacy; ``width``, of the private interval over the ordinary one; ``overlap``, the expected
        interval overlap of Karr et al. (2006); ``same decision``, the chance that both or neither
        is significant at 5%; ``power`` and ``least squares power``, the chances that they are;
        ``mark``, what a call is expected to say of the coefficient: nothing, "wide" or "no
        interval" (its numbers are then missing); without `like` also ``std err if skewed``: the
        standard error if columns bunch at one end of their bounds and levels are rare, as
        `dpreg.planning.assumed` says.
        """
        if self.call.facts.family:
            return self.errors
        found = self.call.measured.copy()
        if self.call.skewed is not None:
            skewed = self.errors["if skewed"].to_numpy()
            found["std err if skewed"] = skewed[self.call.named]
        return found

    @property
    def each(self) -> pd.Series[float]:
        """The chance that each stated coefficient is significant at 5% in the private table."""
        return self.call.measured["power"]

    @property
    def overlap(self) -> float:
        """Expected interval overlap, in the mean over the stated coefficients."""
        return float(self.call.measured["overlap"].mean())

    @property
    def same(self) -> float:
        """Share of the stated coefficients whose decision at 5% would be the same, expected."""
        return float(self.call.measured["same decision"].mean())

    def __repr__(self) -> str:
        """Say what is predicted."""
        told = "intervals" if self.enough else "no intervals"
        if not self.call.facts.family:
            told = f"overlap {self.overlap:.2f}, same decision {self.same:.2f}"
        return f"<RegressionPlan: n={self.n:,}, eps={self.eps:g}, {self.method}: {told}>"
