"""`Plan` and `RegressionPlan`: what a call would find or show, predicted, from no data.

The call's own release is made of the rows that are assumed (`dpreg.planning.rows`), or the law of
the paper's mechanism is computed (`dpreg.planning.chances`). The rules are those of the calls
themselves: public numbers decide, before a row is read.

Tested in `tests/planning/test_planner.py`, `tests/planning/test_adaptive_plan.py` and
`tests/planning/test_regression_plan.py`.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pandas as pd

from dpreg.api.context import exclusive_groups
from dpreg.api.looks import unsuited
from dpreg.errors import ArgumentError
from dpreg.looks.plan import NOISES, LookPlan, eps_for, fresh_share, plan_looks, too_few
from dpreg.planning import chances, pages
from dpreg.planning.chances import Detection, Paper, Situation
from dpreg.planning.facts import MOST_ROWS, Facts, sized
from dpreg.planning.rows import (
    NONE,
    WIDE,
    Rows,
    Stated,
    by_looks,
    by_moments,
    predicted,
    stated,
)
from dpreg.privacy.budget import Budget
from dpreg.request import count
from dpreg.results.summary import Printed, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RANGES: Final = {"n": (8.0, 1e12, 5e-4), "eps": (1e-4, 1e6, 1e-3)}  # work
"""Where the least n or eps is sought, and how near."""
_DIGITS: Final = 4


@dataclass(frozen=True, eq=False, repr=False)
class Planned(Printed):
    """What plans have in common.

    Attributes
    ----------
    facts : Facts
        What the caller said; n and eps are settled here.
    stated : Stated
        In stored units.
    rows : Rows
        As assumed.
    skewed : Rows or None
        Of the second assumption; None with ``like=`` and where terms are chosen.
    n : int
        Rows of the table.
    eps : float
        What the whole call would cost.
    solved : {"n", "eps", None}
        Which of them was found.
    """

    facts: Facts
    stated: Stated
    rows: Rows
    skewed: Rows | None
    n: int
    eps: float
    solved: str | None = None

    @classmethod
    def of(cls, facts: Facts) -> Self:
        """Assume rows for what a caller said."""
        told = stated(facts)
        ranged = not facts.chooses and facts.like is None
        return cls(
            facts=replace(facts, like=None),  # its rows, so far as they are used, are in `rows`
            stated=told,
            rows=Rows.of(facts, told),
            skewed=Rows.of(facts, told, skewed=True) if ranged else None,
            n=facts.n or 0,
            eps=facts.eps or 0.0,
        )

    def at(self, *, n: int | None = None, eps: float | None = None) -> Self:
        """Return the plan at another n or eps."""
        n = self.n if n is None else count(n, "n", 2, MOST_ROWS)
        eps = self.eps if eps is None else sized(eps, "eps")
        return replace(self, n=n, eps=eps, solved=None)

    # ---- the method, by the rules of the call ----------------------------------------------------

    @property
    def cost(self) -> Budget:
        """What the whole call would cost."""
        return Budget(Fraction(self.eps), self.facts.request.budget.delta)

    def looks(self, cost: Budget | None = None) -> LookPlan:
        """Return the looks of the call, or of one at another cost."""
        facts, described, design = self.facts, self.rows.described, self.stated.design
        fresh = facts.chooses and facts.request.fit in ("auto", "fresh")
        return plan_looks(
            len(described.columns),
            cost or self.cost,
            facts.request.protection,
            others=len(design.columns) - 1 - len(described.columns),
            exclusive=exclusive_groups(design, range(len(design.columns))),
            noise=facts.noise if facts.noise in NOISES else None,
            chooses=facts.chooses,
            later=fresh_share(facts.request.budget.delta) if fresh else Fraction(0),
            holds=True,
        )

    @property
    def mechanism(self) -> str:
        """The noise of looks."""
        return self.looks().mechanism

    @property
    def rows_needed(self) -> int:
        """The rows from which on ``method="auto"`` looks at the rows, at this eps."""
        return math.ceil(self.looks().rows_needed)

    @property
    def eps_needed(self) -> float:
        """The eps from which on ``method="auto"`` looks at the rows, with these rows."""
        delta = self.facts.request.budget.delta
        return eps_for(self.n, Fraction(1), lambda e: self.looks(Budget(e, delta)).rows_needed)

    @property
    def adaptive(self) -> bool:
        """Whether the call looks at the rows several times: the rule of the call itself."""
        facts = self.facts
        if facts.method != "auto":
            return facts.method == "adaptive"
        once = facts.request.fit == "share" or facts.noise == "laplace" or self.unsuited
        return not once and self.n >= self.looks().rows_needed

    @property
    def unsuited(self) -> str:
        """Why "auto" does not look at these columns, however many the rows; empty if it does."""
        stated = self.stated
        return unsuited(stated.model, stated.design, self.cost, chooses=self.facts.chooses)

    @property
    def method(self) -> str:
        """The method that the call would take: "adaptive", "pcls" or "gram"."""
        return "adaptive" if self.adaptive else "pcls" if self.facts.chooses else "gram"

    # ---- standard errors -------------------------------------------------------------------------

    def predicted(self, rows: Rows) -> pd.DataFrame:
        """Predict the standard errors that the call tells."""
        release = partial(by_looks, self.looks(), rows, self.n)
        if not (self.facts.chooses or self.adaptive):
            told, noise = self.stated, self.facts.noise
            release = partial(by_moments, self.looks(), rows, self.n, told=told, noise=noise)
        return predicted(release, rows.names)

    @cached_property
    def errors(self) -> pd.DataFrame:
        """Predicted standard errors: in all, of each source, without privacy; if skewed; marks.

        NaN where no interval is expected. Of a choice by looks: of the kept terms and of those with
        an effect; empty where no coefficients are told, as by the paper's way.
        """
        rows = self.rows
        if self.facts.chooses:
            if self.facts.request.fit is None or not self.adaptive:
                return pd.DataFrame({"std err": [], "mark": []})
            useless = {j for unit in self.stated.units[len(self.stated.names) :] for j in unit}
            rows = rows.only([place for place in rows.places if place not in useless])
        found = self.predicted(rows)
        found.insert(3, "without privacy", rows.plain(self.n, self.facts.scatter))
        if self.skewed is not None:
            found.insert(4, "if skewed", self.predicted(self.skewed)["std err"])
        return found

    # ---- what it comes to ------------------------------------------------------------------------

    @property
    def marks(self) -> pd.Series[str]:
        """What a call is expected to say of each coefficient that is planned."""
        return self.errors["mark"]

    @property
    def enough(self) -> bool:
        """Whether an interval of each coefficient can be expected, and a choice that holds."""
        few = self.facts.chooses and self.adaptive and self.n < self.looks().rows_needed
        return not few and NONE not in set(self.marks)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a call would warn of, and what would be needed."""
        said, marks = [], self.marks
        if self.adaptive and (short := too_few(self.looks, self.cost, self.n)):
            then = "Terms may be missed." if self.facts.chooses else "Intervals may be missing."
            said.append(f"{short} {then}")
        for mark in (NONE, WIDE):
            if names := [str(name) for name in marks.index[marks == mark]]:
                said.append(pages.words(mark.replace(" ", "-"), names=", ".join(names)))
        return tuple(said)

    @property
    def reached(self) -> bool:
        """Whether all is found, or significant, with the chance that is wanted."""
        raise NotImplementedError

    def summary(self) -> Summary:
        """Return the printable page of the plan."""
        return pages.report(self)

    # ---- the least n or eps ----------------------------------------------------------------------

    def solve(self) -> Self:
        """Return the plan with the least n or eps that reaches what is wanted."""
        facts, name = self.facts, "n" if self.facts.n is None else "eps"
        if facts.n is not None and facts.eps is not None:
            return self
        if facts.of == "ols" and not np.any(self.stated.beta):
            raise ArgumentError("without an effect there is nothing to find: give both n and eps.")
        if not facts.chooses or facts.method != "auto":
            return self._least(name)
        # By the paper's way first, which is for the smallest tables.
        with suppress(*([] if facts.request.fit == "share" else [ArgumentError])):
            paper = self._by("pcls")._least(name)._by("auto")
            if not paper.adaptive:
                return paper
        return self._by("adaptive")._least(name)._by("auto")

    def _by(self, method: str) -> Self:
        return replace(self, facts=replace(self.facts, method=method))

    def _least(self, name: str) -> Self:
        rows, (first, last, near) = name == "n", _RANGES[name]
        quick = replace(self, skewed=None)

        def settled(value: float) -> float:
            return math.ceil(value) if rows else _up(value)

        def reached(value: float) -> bool:
            return quick._with(name, settled(value)).reached

        needed = self.looks().rows_needed if rows else self.eps_needed
        if self.facts.of == "ols":
            first = max(first, needed / 8 if rows else 1e-3)  # work
        elif self.facts.method == "adaptive":
            first = max(first, needed)
            if reached(needed):
                return self._with(name, settled(needed))
        found = chances.least(reached, first, last, near, 1.0 if rows else 0.0)
        if found is None:
            wanted = pages.words(f"wanted-{self.facts.of}", chance=self.facts.chance)
            raise ArgumentError(
                f"no {name} up to {last:.0e} {wanted}: raise {'eps' if rows else 'n'}, or use "
                "fewer columns."
            )
        return self._with(name, settled(found))

    def _with(self, name: str, value: float) -> Self:
        return replace(self, **{name: value, "solved": name})  # type: ignore[arg-type]


def _up(value: float) -> float:
    """Return a number's first digits, rounded up."""
    step = 10.0 ** (math.floor(math.log10(value)) - _DIGITS + 1)  # by definition
    return float(f"{math.ceil(value / step - 1e-9) * step:.{_DIGITS}g}")


class Plan(Planned):
    """What a private selection would find: a prediction, from no data.

    Attributes
    ----------
    n, eps, solved
        As of `Planned`, like all others.
    """

    @property
    def paper(self) -> Paper:
        """The same selection by the paper's mechanism."""
        return Paper.of(self.facts, self.stated, self.rows, self.n, self.eps)

    @property
    def situation(self) -> Situation:
        """What the paper's theorems ask about."""
        return Situation.of(self.facts, self.stated, self.rows, self.paper)

    @cached_property
    def detection(self) -> Detection:
        """What the law of the call predicts."""
        if not self.adaptive:
            return self.paper.detect()
        return chances.gains(self.facts, self.stated, self.rows, self.looks(), self.n)

    @property
    def reached(self) -> bool:
        """Whether all is found with the chance that is wanted."""
        return self.found >= self.facts.chance and (not self.facts.family or self.enough)

    @property
    def found(self) -> float:
        """The chance that the chosen model holds all effects."""
        return self.detection.all

    @property
    def each(self) -> pd.Series[float]:
        """The chance that the chosen model holds each effect."""
        return pd.Series(self.detection.each, index=list(self.stated.names), name="chance")

    @property
    def right(self) -> float:
        """The chance that the chosen model holds all effects and nothing else."""
        return self.detection.right

    @property
    def useless(self) -> float:
        """The expected number of terms without an effect in the chosen model."""
        return self.detection.useless

    @property
    def theorem_41(self) -> float:
        """The chance of the right model that theorem 4.1 of the paper promises, at least."""
        return chances.theorem_41(self.situation)

    @property
    def theorem_42(self) -> float:
        """The same of theorem 4.2, for ``method="pcpl"``."""
        return chances.theorem_42(self.situation)

    @property
    def rule_of_thumb(self) -> int:
        """The n that the rule of thumb asks for.

        By looks: n grows until every term explains enough. By the paper's way n * beta^2 *
        Var(x | rest) >= penalty + ln(k / (1 - chance)) / t for each of k effects; for both see
        `dpreg.planning.chances`.
        """
        return math.ceil(self.n * self.detection.rows_for(self.facts.chance))

    def plot(self, over: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw the chances over n or over eps.

        Parameters
        ----------
        over : {"n", "eps"}, optional
            Default: what was solved for, else n.
        ax : matplotlib Axes, optional
        """
        return pages.picture(self, over or self.solved or "n", ax)

    def __repr__(self) -> str:
        """Say what is predicted."""
        return f"<Plan: n={self.n:,}, eps={self.eps:g}: all effects found with {self.found:.3f}>"


class RegressionPlan(Planned):
    """What a private regression would show beside an ordinary one: a prediction, from no data.

    Attributes
    ----------
    n, eps, solved
        As of `Planned`, like all others.
    """

    @cached_property
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
        `dpreg.planning.rows` says.
        """
        if self.facts.family:
            return self.errors
        ahead = len(self.rows.names) - len(self.stated.beta)
        found = self.errors.iloc[[ahead + place for place in self.stated.places]]
        beta = np.array(list(self.facts.effects.values()))
        _, sampling, privacy, own = found.iloc[:, :4].to_numpy(dtype=float).T
        table: dict[str, Any] = {
            "coef": beta,
            "std err": found["std err"],
            "sampling error": sampling,
            "privacy noise": privacy,
            "least squares": own,
            **chances.measures(beta, own**2, sampling**2, privacy**2, self.looks().degrees),
            "mark": found["mark"],
        }
        if "if skewed" in found:
            table["std err if skewed"] = found["if skewed"]
        return pd.DataFrame(table, index=found.index)

    @property
    def marks(self) -> pd.Series[str]:
        """What a call is expected to say of each coefficient that is planned."""
        return self.coefficients["mark"]

    @property
    def reached(self) -> bool:
        """Whether all is significant with the chance that is wanted, or has its interval."""
        if self.facts.family:
            return not self.notes
        effects = self.coefficients["coef"] != 0
        return bool((self.each[effects] >= self.facts.chance).all())

    @property
    def each(self) -> pd.Series[float]:
        """The chance that each stated coefficient is significant at 5% in the private table."""
        return self.coefficients["power"]

    @property
    def overlap(self) -> float:
        """Expected interval overlap, in the mean over the stated coefficients."""
        return float(self.coefficients["overlap"].mean())

    @property
    def same(self) -> float:
        """Share of the stated coefficients whose decision at 5% would be the same, expected."""
        return float(self.coefficients["same decision"].mean())

    def __repr__(self) -> str:
        """Say what is predicted."""
        told = "intervals" if self.enough else "no intervals"
        if not self.facts.family:
            told = f"overlap {self.overlap:.2f}, same decision {self.same:.2f}"
        return f"<RegressionPlan: n={self.n:,}, eps={self.eps:g}, {self.method}: {told}>"
