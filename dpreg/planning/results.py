"""`Plan`: what is predicted, printed and drawn. Made of public facts and assumptions alone.

Tested in `tests/planning/test_planner.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpreg.looks.described import Described
from dpreg.looks.expected import expected_looks
from dpreg.looks.families import Linear
from dpreg.planning.choice import DRAWS, Gains, gains, reported
from dpreg.planning.detection import Detection, detect, rule_rows
from dpreg.planning.looks import Planned, PlannedCall
from dpreg.planning.theorems import Promise, Situation, theorem_41, theorem_42
from dpreg.privacy.protection import Protection
from dpreg.privacy.sensitivity import score_grid, score_range
from dpreg.results.summary import Summary
from dpreg.selection.preparation import divided_eps
from dpreg.selection.tuning import charges

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Call", "Plan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(PlannedCall):
    """A plan of `dpreg.dp_select`, as asked for."""

    @property
    def protection(self) -> Protection:
        """Whom the call protects."""
        return self.asked.protection

    @property
    def way_of_fitting(self) -> str | None:
        """The `fit` of the method that is taken."""
        fit = self.facts.fit
        if self.adaptive:
            return "fresh" if fit == "auto" else fit
        return {"auto": "split", "same": "split", "fresh": "share"}.get(fit or "", fit)

    @property
    def rows(self) -> float:
        """Rows that the selection reads: half of them where the other half fits."""
        return self.n / 2 if self.way_of_fitting == "split" else float(self.n)

    @property
    def draw_eps(self) -> float:
        """What is left of eps for the draw, after the noisy count and the fit."""
        facts, private = self.facts, not self.protection.n_is_public
        counted = private and facts.sigma2 is not None and isinstance(facts.penalty, str)
        needed = {"count": counted, "fit": self.way_of_fitting == "share"}
        return float(divided_eps(Fraction(self.eps), needed, {})["selection"])

    @property
    def rate(self) -> float:
        """t, per squared stored unit: eps of the draw over the range of the scores' changes."""
        rho = self.facts.rho
        moved = score_range(rho, self.protection).width * score_grid(rho)
        return self.draw_eps / float(moved)

    @property
    def units(self) -> int:
        """q, the number of terms outside ``keep``."""
        return len(self.stated.effects.columns) + len(self.stated.effects.useless)

    @property
    def charges(self) -> tuple[float, float]:
        """(phi, psi): per column and per term, in squared stored units."""
        facts = self.facts
        phi, psi = charges(
            facts.penalty,
            unit=facts.clip**2,
            rows=self.rows,
            sigma2=facts.sigma2,
            units=self.units,
            false_inclusions=facts.false_inclusions,
            rate=Fraction(self.rate),
            mechanism=facts.mechanism,
        )
        return float(phi), float(psi)

    def gains(self) -> Gains:
        """Return what terms explain in the last of the looks."""
        y = self.assumed.response(self.stated.beta, self.stated.sigma)
        looks = self.asked.looks(self.eps)
        z = np.column_stack([np.ones(len(y)), self.assumed.x, y])
        beta = self.stated.beta
        middle = float(np.mean(y) - self.assumed.x.mean(axis=0) @ beta)
        described = Described(tuple(range(1, z.shape[1] - 1)))
        found = gains(
            expected_looks(looks, Linear(), described, z, round(self.rows), draws=DRAWS),
            self.stated.units,
            len(self.stated.names),
            float(self.facts.false_inclusions),
            np.append(middle, beta),
        )
        return found.stated(self.assumed.deviations() / self.assumed.stated(), self.stated.units)

    def predict(self) -> Detection:
        """Predict the choice."""
        if self.adaptive:
            return reported(self.gains())
        phi, psi = self.charges
        return detect(
            self.stated.effects,
            rows=self.rows,
            rate=self.rate,
            phi=phi,
            psi=psi,
            mechanism=self.facts.mechanism,
        )

    @property
    def situation(self) -> Situation:
        """What the paper's theorems ask about: the response divided by sigma."""
        stated = self.stated
        sigma = math.sqrt(stated.effects.sigma2)
        least = min(
            b / sigma / columns
            for b, columns in zip(stated.scaled, stated.effects.columns, strict=True)
        )
        return Situation(
            rows=max(self.rows, 3.0),
            eps=self.draw_eps,
            models=stated.models,
            kappa0=stated.kappa,
            least=least,
            true=int(stated.effects.columns.sum()),
            largest=stated.widest,
            radius=float(self.facts.rho) / sigma,
            bound=1 / sigma,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Planned[Call]):
    """What a private selection would find: a prediction, from no data.

    Attributes
    ----------
    call : Call
    solved : {"n", "eps", None}
        Which of them was found.
    detection : Detection
    """

    call: Call
    solved: str | None
    detection: Detection

    @property
    def adaptive(self) -> bool:
        """Whether the call would look at the rows several times."""
        return self.call.adaptive

    @property
    def method(self) -> str:
        """The method that the call would take: "adaptive" or "pcls"."""
        return "adaptive" if self.adaptive else "pcls"

    @property
    def found(self) -> float:
        """The chance that the chosen model holds all effects."""
        return self.detection.all

    @property
    def each(self) -> pd.Series[float]:
        """The chance that the drawn model holds each effect."""
        return pd.Series(self.detection.each, index=list(self.call.stated.names), name="chance")

    @property
    def right(self) -> float:
        """The chance that the drawn model holds all effects and nothing else."""
        return self.detection.right

    @property
    def useless(self) -> float:
        """The expected number of terms without an effect in the drawn model."""
        return self.detection.useless

    @property
    def theorem_41(self) -> Promise:
        """What theorem 4.1 of the paper promises."""
        return theorem_41(self.call.situation)

    @property
    def theorem_42(self) -> Promise:
        """What theorem 4.2 of the paper promises, for ``method="pcpl"``."""
        return theorem_42(self.call.situation)

    @property
    def rule_of_thumb(self) -> int:
        """The n that the rule of thumb asks for.

        By looks: n grows until every term explains enough (`dpreg.planning.choice`). By the paper's
        way (`dpreg.planning.detection`): n * beta^2 * Var(x | rest) >= penalty +
        ln(k / (1 - chance)) / t for each of k effects.
        """
        if self.adaptive:
            return math.ceil(self.n * self.call.gains().rows_for(self.call.facts.chance))
        phi, psi = self.call.charges
        miss = 1 - self.call.facts.chance
        rows = rule_rows(self.call.stated.effects, rate=self.call.rate, phi=phi, psi=psi, miss=miss)
        return math.ceil(rows * self.n / self.call.rows)

    def at(self, *, n: int | None = None, eps: float | None = None) -> Plan:
        """Return the plan at another n or eps."""
        call = self._moved(n, eps)
        return Plan(call, None, call.predict())

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

    def summary(self) -> Summary:
        """Return the printable page of the plan."""
        from dpreg.planning import views

        return Summary(views.report(self))

    def __repr__(self) -> str:
        """Say what is predicted."""
        return f"<Plan: n={self.n:,}, eps={self.eps:g}: all effects found with {self.found:.3f}>"
