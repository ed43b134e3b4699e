"""`Plan` and `RegressionPlan`: what is predicted, printed and drawn.

Made of public facts and assumptions alone.

The least n, or the least eps, at which a plan reaches what is wanted: doubling, then halving.

A planned call: the method that it would take, its looks at assumed rows, and the least n or eps.

The rules are those of the calls themselves: public numbers decide, before a row is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import pandas as pd

from dpreg.errors import ArgumentError
from dpreg.looks.expected import Expected, expected_looks
from dpreg.looks.loop import Seen
from dpreg.looks.need import eps_for, too_few
from dpreg.looks.plan import NOISES, LookPlan, fresh_share, plan_looks
from dpreg.planning.chances import (
    DRAWS,
    Detection,
    Gains,
    Paper,
    Promise,
    gains,
    measures,
    reported,
    theorem_41,
    theorem_42,
)
from dpreg.planning.facts import Facts, rows_of_table, sized
from dpreg.planning.rows import (
    NONE,
    WIDE,
    Fitted,
    Rows,
    Stated,
    fitted,
    fitted_chosen,
    fitted_once,
    rows_of,
    stated,
)
from dpreg.privacy.budget import Budget
from dpreg.results.summary import Printed, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST: Final = {"n": 1e12, "eps": 1e6}  # work
_FIRST: Final = {"n": 8.0, "eps": 1e-4}  # work
_DIGITS: Final = 4


def least_rows(reached: Callable[[int], bool], wanted: str, first: float, *, floor: bool) -> int:
    """Return the least number of rows, to a part in two thousand.

    Parameters
    ----------
    reached : callable
        Whether so many rows are enough.
    wanted : str
        What an error says that no n does.
    first : float
        The first number that is tried.
    floor : bool
        Whether fewer are never enough.
    """
    if floor and reached(math.ceil(first)):
        return math.ceil(first)
    step, near = 1.0, 5e-4  # precision
    return math.ceil(_least(lambda n: reached(round(n)), wanted, "n", first, near, step))


def least_eps(reached: Callable[[float], bool], wanted: str, first: float, *, floor: bool) -> float:
    """Return the least eps, with four digits, rounded up; arguments as for `least_rows`."""
    if floor and reached(_up(first)):
        return _up(first)
    near = 1e-3  # precision
    return _up(_least(lambda eps: reached(_up(eps)), wanted, "eps", first, near))


def _up(value: float) -> float:
    """Return a number's first digits, rounded up."""
    step = 10.0 ** (math.floor(math.log10(value)) - _DIGITS + 1)  # by definition
    return float(f"{math.ceil(value / step - 1e-9) * step:.{_DIGITS}g}")


def _least(
    reached: Callable[[float], bool],
    wanted: str,
    name: str,
    first: float,
    near: float,
    step: float = 0.0,
) -> float:
    found = bracket(reached, max(first, _FIRST[name]), _MOST[name])
    if found is None:
        other = "eps" if name == "n" else "n"
        raise ArgumentError(
            f"no {name} up to {_MOST[name]:.0e} {wanted}: raise {other}, or use fewer columns."
        )
    return narrowed(reached, *found, near, step)


def bracket(
    reached: Callable[[float], bool], first: float, last: float
) -> tuple[float, float] | None:
    """Double until `reached`; return the last two values, or None where `last` is not enough."""
    high = first
    while not reached(high):
        high *= 2
        if high > last:
            return None
    return high / 2, high


def narrowed(
    reached: Callable[[float], bool], low: float, high: float, near: float, step: float = 0.0
) -> float:
    """Return nearly the least value between `low` and `high`: to `near` of it, or to a step."""
    while high - low > max(step, near * low):
        middle = (low + high) / 2 if step else math.sqrt(low * high)
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


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
        from dpreg.planning import pages as views

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

        By looks: n grows until every term explains enough (`dpreg.planning.chances`). By the paper's
        way (`dpreg.planning.chances`): n * beta^2 * Var(x | rest) >= penalty +
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
        from dpreg.planning import pages as plots

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
        `dpreg.planning.rows` says.
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
