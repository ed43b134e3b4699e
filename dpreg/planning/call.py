"""A planned call: the method that it would take, its looks at assumed rows, and the least n or eps.

The rules are those of the calls themselves: public numbers decide, before a row is read.

Tested in `tests/planning/test_adaptive_plan.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd

from dpreg.errors import ArgumentError
from dpreg.looks.expected import Expected, expected_looks
from dpreg.looks.loop import Seen
from dpreg.looks.plan import NOISES, LookPlan, eps_for, fresh_share, plan_looks, too_few
from dpreg.planning.choice import DRAWS, Gains, gains, reported
from dpreg.planning.detection import Detection
from dpreg.planning.facts import Facts
from dpreg.planning.fitted import NONE, WIDE, Fitted, fitted, fitted_chosen, fitted_once
from dpreg.planning.measures import measures
from dpreg.planning.paper import Paper
from dpreg.planning.rows import Rows, rows_of
from dpreg.planning.sizes import Stated, stated
from dpreg.planning.solve import least_eps, least_rows
from dpreg.privacy.budget import Budget

__all__ = ["Call", "solved"]

_SAID: Final = {
    NONE: (
        "A call is expected to print no interval of {}: with so few rows at this budget the noise "
        "hides them."
    ),
    WIDE: "A call is expected to mark {} as wide.",
}


@dataclass(frozen=True, eq=False)
class Call:
    """What a plan asks about, in stored units.

    Attributes
    ----------
    facts : Facts
        What the caller said; n and eps are settled here.
    stated : Stated
    rows : Rows
    skewed : Rows or None
        Of the second assumption; None with ``like=`` and where terms are chosen.
    n : int
    eps : float
    """

    facts: Facts
    stated: Stated
    rows: Rows
    skewed: Rows | None
    n: int
    eps: float

    @classmethod
    def of(cls, facts: Facts) -> Call:
        """Assume rows for what a caller said."""
        told = stated(facts)
        rows = rows_of(facts, told)
        if not facts.family and (facts.correlation or facts.like is not None):
            # The paper's methods describe a column only by its deviation given the others.
            told = told.varying(rows.deviations)
        ranged = not facts.chooses and facts.like is None
        return cls(
            facts=replace(facts, like=None),  # its rows, so far as they are used, are in `rows`
            stated=told,
            rows=rows,
            skewed=rows_of(facts, told, skewed=True) if ranged else None,
            n=facts.n or 0,
            eps=facts.eps or 0.0,
        )

    @property
    def fit(self) -> str | None:
        """The `fit` of a choice by looks."""
        told = self.facts.request.fit
        return "fresh" if told == "auto" else told

    @property
    def cost(self) -> Budget:
        """What the whole call would cost."""
        return Budget(Fraction(self.eps), self.facts.request.budget.delta)

    def looks(self, cost: Budget | None = None) -> LookPlan:
        """Return the looks of the call, or of one at another cost."""
        facts, described = self.facts, self.rows.described
        fresh = facts.chooses and self.fit == "fresh"
        return plan_looks(
            len(described.columns),
            self.cost if cost is None else cost,
            facts.request.protection,
            others=len(described.offsets) + (described.trials is not None),
            exclusive=self.stated.exclusive,
            noise=facts.noise if facts.noise in NOISES else None,
            chooses=facts.chooses,
            later=fresh_share(facts.request.budget.delta) if fresh else Fraction(0),
        )

    @property
    def rows_needed(self) -> float:
        """The least n at which "auto" looks at the rows."""
        return self.looks().rows_needed

    @property
    def eps_needed(self) -> float:
        """The least eps at which "auto" looks at the rows."""
        delta = self.facts.request.budget.delta
        return eps_for(self.n, Fraction(1), lambda e: self.looks(Budget(e, delta)).rows_needed)

    @property
    def adaptive(self) -> bool:
        """Whether the call looks at the rows several times: the rule of the call itself."""
        if self.facts.method != "auto":
            return self.facts.method == "adaptive"
        one = self.facts.papers or self.facts.noise == "laplace"
        return not one and self.n >= self.rows_needed

    @property
    def method(self) -> str:
        """The method that the call takes."""
        return "adaptive" if self.adaptive else "pcls" if self.facts.chooses else "gram"

    @property
    def paper(self) -> Paper:
        """The same selection by the paper's mechanism."""
        return Paper(self.facts, self.stated, self.n, self.eps)

    @cached_property
    def taken(self) -> tuple[tuple[Expected, Seen], ...]:
        """The looks of a choice, several times."""
        rows = self.rows
        return expected_looks(
            self.looks(), rows.family, rows.described, rows.z, self.n, draws=DRAWS
        )

    @cached_property
    def gains(self) -> Gains:
        """What terms with an effect gain in the looks of a choice."""
        alpha, effects = float(self.facts.request.false_inclusions), len(self.stated.names)
        return gains(self.taken, self.rows, self.stated.units, effects, alpha)

    @cached_property
    def detection(self) -> Detection:
        """What a choice finds."""
        return reported(self.gains) if self.adaptive else self.paper.detect()

    def errors(self, rows: Rows | None = None) -> Fitted | None:
        """Predict standard errors; None of a choice that tells none, or by the paper's way."""
        rows = self.rows if rows is None else rows
        if not self.facts.chooses:
            if self.adaptive:
                return fitted(self.looks(), rows, self.n)
            exclusive, noise = self.stated.exclusive, self.facts.noise
            return fitted_once(self.looks(), exclusive, rows, self.n, noise)
        if self.fit is None or not self.adaptive:
            return None
        offered = {j for unit in self.stated.units[len(self.stated.names) :] for j in unit}
        chosen = rows.only(tuple(place for place in rows.places if place not in offered))
        return fitted_chosen(self.taken, chosen, fresh=self.fit == "fresh")

    @cached_property
    def table(self) -> pd.DataFrame:
        """Predicted standard errors: in all, of each source, and without privacy; marks."""
        found = self.errors()
        if found is None:
            return pd.DataFrame({"std err": [], "mark": []})
        at = tuple(self.rows.places[self.rows.names.index(name)] for name in found.names)
        columns = {
            "std err": found.errors,
            "sampling": found.sampling,
            "privacy": found.privacy,
            "without privacy": self.rows.only(at).plain(self.n, self.facts.scatter),
        }
        return pd.DataFrame(columns, index=list(found.names)).assign(mark=list(found.marks))

    @property
    def named(self) -> list[int]:
        """The lines of `table` that the stated coefficients have in a regression."""
        ahead = len(self.rows.names) - len(self.stated.beta)
        return [ahead + place for place in self.stated.places]

    @cached_property
    def measured(self) -> pd.DataFrame:
        """The stated coefficients of a linear model beside those of least squares."""
        told, at = self.stated, list(self.stated.places)
        found, beta = self.table.iloc[self.named], (told.beta * told.scales)[at]
        parts = (found[name].to_numpy() for name in ("without privacy", "sampling", "privacy"))
        own, sampling, privacy = parts
        near = measures(beta, own**2, sampling**2, privacy**2, self.looks().degrees)
        table: dict[str, Any] = {
            "coef": beta,
            "std err": found["std err"],
            "sampling error": sampling,
            "privacy noise": privacy,
            "least squares": own,
            "width": near.width,
            "overlap": near.overlap,
            "same decision": near.same,
            "power": near.power,
            "least squares power": near.power_exact,
            "mark": found["mark"],
        }
        return pd.DataFrame(table, index=found.index)

    @property
    def marks(self) -> pd.Series[str]:
        """What a call is expected to say of each coefficient that is planned."""
        told = self.facts.family or self.facts.chooses
        return (self.table if told else self.measured)["mark"]

    @property
    def enough(self) -> bool:
        """Whether intervals, and a choice that keeps to its limit, can be expected."""
        few = self.facts.chooses and self.adaptive and self.n < self.rows_needed
        return not few and NONE not in set(self.marks)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a call would warn of."""
        said = []
        if self.adaptive and (short := too_few(self.looks, self.cost, self.n)):
            then = "Terms may be missed." if self.facts.chooses else "Intervals may be missing."
            said.append(f"{short} {then}")
        marks = self.marks
        for mark, text in _SAID.items():
            names = [str(name) for name in marks.index[marks == mark]]
            if names:
                said.append(text.format(", ".join(names)))
        return tuple(said)

    @property
    def reached(self) -> bool:
        """Whether all is found, or significant, with the chance that is wanted."""
        facts = self.facts
        if facts.chooses:
            found = self.detection.all >= facts.chance
            return found and (not facts.family or self.enough)
        if facts.family:
            return not self.notes
        power = self.measured["power"]
        return bool((power[self.measured["coef"] != 0] >= facts.chance).all())


def solved(call: Call) -> tuple[Call, str | None]:
    """Return a call with the least n or eps that reaches what is wanted, and which of them."""
    facts = call.facts
    if facts.n is not None and facts.eps is not None:
        return call, None
    if facts.of == "ols" and not np.any(call.stated.beta):
        raise ArgumentError("without an effect there is nothing to find: give both n and eps.")
    name = "n" if facts.n is None else "eps"
    if facts.chooses and facts.method == "auto" and not facts.family:
        return _chosen(call, name), name
    return _solved(call, name), name


def _chosen(call: Call, name: str) -> Call:
    """Solve a selection under "auto" by the paper's way first, which is for the smallest."""
    try:
        paper = _as(_solved(_as(call, "pcls"), name), "auto")
    except ArgumentError:
        if call.facts.papers:
            raise
    else:
        if not paper.adaptive:
            return paper
    return _as(_solved(_as(call, "adaptive"), name), "auto")


def _as(call: Call, method: str) -> Call:
    return replace(call, facts=replace(call.facts, method=method))


def _solved(call: Call, name: str) -> Call:
    facts, wanted = call.facts, _WANTED[call.facts.of].format(call.facts.chance)

    def reached(value: Any) -> bool:
        return (replace(call, n=value) if name == "n" else replace(call, eps=value)).reached

    floor, ols = facts.method == "adaptive" and facts.of != "ols", facts.of == "ols"
    if name == "n":
        first = call.rows_needed / 8 if ols else call.rows_needed if floor else 0.0  # work
        return replace(call, n=least_rows(reached, wanted, first, floor=floor))
    first = 1e-3 if ols else call.eps_needed if floor else 0.0  # work
    return replace(call, eps=least_eps(reached, wanted, first, floor=floor))


_WANTED: Final = {
    "select": "finds all effects with chance {:g} (a lower penalty may)",
    "ols": "makes each effect significant with chance {:g}",
    "glm": "is enough for intervals without a mark",
}
