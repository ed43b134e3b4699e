"""What a selection by the paper's mechanism would cost and find, from public numbers.

Tested in `tests/planning/test_planner.py` and `tests/planning/test_detection.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpreg.planning.detection import Detection, detect, rule_rows
from dpreg.planning.facts import Facts
from dpreg.planning.sizes import Stated
from dpreg.planning.theorems import Situation
from dpreg.privacy.proofs import score_grid, score_range
from dpreg.selection.probabilities import charges
from dpreg.selection.run import divided_eps

__all__ = ["Paper"]


@dataclass(frozen=True, slots=True)
class Paper:
    """A plan of ``method="pcls"``, as asked for."""

    facts: Facts
    stated: Stated
    n: int
    eps: float

    @property
    def fit(self) -> str | None:
        """The `fit` of the method."""
        return {"auto": "split", "same": "split", "fresh": "share"}.get(
            self.facts.request.fit or "", self.facts.request.fit
        )

    @property
    def rows(self) -> float:
        """Rows that the selection reads: half of them where the other half fits."""
        return self.n / 2 if self.fit == "split" else float(self.n)

    @property
    def draw_eps(self) -> float:
        """What is left of eps for the draw, after the noisy count and the fit."""
        facts, private = self.facts, not self.facts.request.protection.n_is_public
        counted = private and facts.sigma2 is not None and isinstance(facts.request.penalty, str)
        needed = {"count": counted, "fit": self.fit == "share"}
        return float(divided_eps(Fraction(self.eps), needed, {})["selection"])

    @property
    def rate(self) -> float:
        """t, per squared stored unit: eps of the draw over the range of the scores' changes."""
        rho = self.facts.request.rho
        moved = score_range(rho, self.facts.request.protection).width * score_grid(rho)
        return self.draw_eps / float(moved)

    @property
    def charges(self) -> tuple[float, float]:
        """(phi, psi): per column and per term, in squared stored units."""
        facts, request = self.facts, self.facts.request
        phi, psi = charges(
            request.penalty,
            unit=request.clip**2,
            rows=self.rows,
            sigma2=facts.sigma2,
            units=len(self.stated.units),
            false_inclusions=request.false_inclusions,
            rate=Fraction(self.rate),
            mechanism=facts.mechanism,
        )
        return float(phi), float(psi)

    def detect(self) -> Detection:
        """Predict the choice."""
        (phi, psi), mechanism = self.charges, self.facts.mechanism
        effects, rows, rate = self.stated.effects, self.rows, self.rate
        return detect(effects, rows=rows, rate=rate, phi=phi, psi=psi, mechanism=mechanism)

    @property
    def rule_of_thumb(self) -> float:
        """The n that the rule of thumb of `dpreg.planning.detection` asks for."""
        (phi, psi), miss = self.charges, 1 - self.facts.chance
        rows = rule_rows(self.stated.effects, rate=self.rate, phi=phi, psi=psi, miss=miss)
        return rows * self.n / self.rows

    @property
    def situation(self) -> Situation:
        """What the paper's theorems ask about: the response divided by sigma."""
        stated, sigma = self.stated, self.stated.sigma
        columns = stated.effects.columns
        each = zip(stated.scaled, columns, strict=True)
        return Situation(
            rows=max(self.rows, 3.0),  # precision: log n is above 1
            eps=self.draw_eps,
            models=stated.models,
            kappa0=stated.kappa,
            least=min(b / sigma / count for b, count in each),
            true=int(columns.sum()),
            largest=stated.widest,
            radius=float(self.facts.request.rho) / sigma,
            bound=1 / sigma,
        )
