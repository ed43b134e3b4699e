"""`Plan`: what is predicted, printed and drawn. Made of public facts and assumptions alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import pandas as pd
from scipy.special import ndtr

from dpreg.planning.detection import Detection, detect, rule_rows
from dpreg.planning.sizes import Stated
from dpreg.planning.theorems import Promise, Situation, least_rows, theorem_41, theorem_42
from dpreg.privacy.sensitivity import loss_range
from dpreg.request import SHARES
from dpreg.results.report import Facts, Grid, Paragraph, Report
from dpreg.results.summary import Summary
from dpreg.selection.tuning import useless_term_penalty

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Call", "Plan"]

_NO_DATA: Final = "No data were used and nothing was spent"
_CLIPPED: Final = 0.02
"""A larger share of responses beyond their bounds is said to be one."""


@dataclass(frozen=True, slots=True)
class Call:
    """The checked arguments of `plan`, in stored units."""

    stated: Stated
    n: int
    eps: float
    chance: float
    mechanism: str
    neighbors: str
    contributions: int
    rho: Fraction
    clip: Fraction
    penalty: float | str
    sigma2: float | None
    false_inclusions: Fraction
    fit: str | None

    @property
    def rows(self) -> float:
        """Rows that the selection reads: half of them where the other half fits."""
        return self.n / 2 if self.fit == "split" else float(self.n)

    @property
    def rate(self) -> float:
        """t, per squared stored unit: eps of the draw over the range of the scores' changes."""
        eps = self.eps * float(1 - SHARES["fit"]) if self.fit == "share" else self.eps
        replaced = 2 if self.neighbors == "replace-one" else 1
        return eps / (replaced * self.contributions * float(loss_range(self.rho)))

    @property
    def units(self) -> int:
        """q, the number of terms outside ``keep``."""
        return len(self.stated.effects.columns) + len(self.stated.effects.useless)

    @property
    def charges(self) -> tuple[float, float]:
        """(phi, psi): per column and per term, in squared stored units."""
        if not isinstance(self.penalty, str):
            return self.penalty / float(self.clip) ** 2, 0.0
        phi = 0.0 if self.sigma2 is None else self.sigma2 * math.log(max(self.rows, 1.0))
        if self.penalty == "bic":
            return phi, 0.0
        x = useless_term_penalty(self.units, self.false_inclusions, Fraction(1), self.mechanism)
        return phi, float(x) / self.rate

    def predict(self) -> Detection:
        """Predict the draw."""
        phi, psi = self.charges
        return detect(
            self.stated.effects,
            rows=self.rows,
            rate=self.rate,
            phi=phi,
            psi=psi,
            mechanism=self.mechanism,
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
        eps = self.eps * float(1 - SHARES["fit"]) if self.fit == "share" else self.eps
        return Situation(
            rows=max(self.rows, 3.0),
            eps=eps,
            models=stated.models,
            kappa0=stated.kappa,
            least=least,
            true=int(stated.effects.columns.sum()),
            largest=stated.widest,
            radius=float(self.rho) / sigma,
            bound=1 / sigma,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
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
    def n(self) -> int:
        """Rows of the table."""
        return self.call.n

    @property
    def eps(self) -> float:
        """What the whole call would cost."""
        return self.call.eps

    @property
    def found(self) -> float:
        """The chance that the drawn model holds all effects."""
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
        """The n that the rule of thumb asks for (`dpreg.planning.detection`).

        n * beta^2 * Var(x | rest) >= penalty + ln(k / (1 - chance)) / t for each of k effects.
        """
        phi, psi = self.call.charges
        miss = 1 - self.call.chance
        rows = rule_rows(self.call.stated.effects, rate=self.call.rate, phi=phi, psi=psi, miss=miss)
        return math.ceil(rows * self.n / self.call.rows)

    def at(self, *, n: int | None = None, eps: float | None = None) -> Plan:
        """Return the plan at another n or eps."""
        call = replace(
            self.call, n=self.n if n is None else n, eps=self.eps if eps is None else eps
        )
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
        return Summary(_report(self))

    def __repr__(self) -> str:
        """Say what is predicted."""
        return f"<Plan: n={self.n:,}, eps={self.eps:g}: all effects found with {self.found:.3f}>"

    def __str__(self) -> str:
        """Return the page as text."""
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()


def _report(plan: Plan) -> Report:
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
            ("Neighbours", call.neighbors),
            ("Contributions", str(call.contributions)),
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
